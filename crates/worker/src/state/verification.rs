//! What verification says in the course of a run.
//!
//! Knows when damage is told and when it ends a stream. How it is found is in
//! [`loadstone_verification::verify`].

use super::WorkerState;
use crate::control::Message;
use crate::events::{DamageFound, Event, WriteState, MAX_ERRORS_PER_TARGET};
use crate::slots::Slot;
use crate::stream::Reason;
use loadstone_base::ops::OpKind;
use loadstone_verification::headers::check::Wrong;
use loadstone_verification::verify::damage::Damage;
use loadstone_verification::verify::stamp::SECTOR_BYTES;
use loadstone_verification::verify::verifier::Verifier;

impl WorkerState {
    /// Judges what a verified stream's I/O brought. False when it was damaged.
    pub(super) fn verify(
        &mut self,
        index: u32,
        number: u32,
        slot: &Slot,
        moved: u32,
        failed: bool,
        now: u64,
    ) -> bool {
        let stream = &mut self.streams[index as usize];
        let io = slot.transfer(number - stream.first_slot);
        let Some(verifier) = stream.checks.verifier_mut() else {
            return true;
        };
        // SAFETY: the I/O is back, so the slot's buffer of at least `moved` bytes is ours.
        let buffer =
            unsafe { std::slice::from_raw_parts(slot.buffer as *const u8, moved as usize) };
        let damages = verifier.complete(&io, moved, failed, buffer);
        let sound = damages.is_empty();
        for damage in damages {
            self.say_damage(index, damage, now);
        }
        if !sound {
            self.damaged(index, now);
        }
        sound
    }

    /// A stream met damage: it ends when that is what was asked for.
    pub fn damaged(&mut self, index: u32, now: u64) {
        let verifier = self.streams[index as usize].checks.verifier();
        if verifier.is_some_and(Verifier::is_fatal) {
            self.end_because(index, Reason::Damage, now);
        }
    }

    /// Judges what an I/O of a stream that verifies by headers brought.
    pub(super) fn verify_by_headers(
        &mut self,
        index: u32,
        number: u32,
        slot: &Slot,
        moved: u32,
        failed: bool,
        now: u64,
    ) {
        let stream = &mut self.streams[index as usize];
        let own_number = number - stream.first_slot;
        let file = stream.uses.iter().position(|own| own.target == slot.target);
        let Some(readback) = stream.checks.readback_mut() else {
            return;
        };
        // SAFETY: the I/O is back, so the slot's buffer of at least `moved` bytes is ours.
        let buffer =
            unsafe { std::slice::from_raw_parts_mut(slot.buffer as *mut u8, moved as usize) };
        let read = if slot.op == OpKind::Read {
            buffer
        } else {
            &mut []
        };
        let wrongs = readback.complete(own_number, moved, failed, read);
        if wrongs.is_empty() {
            return;
        }
        let file = file.unwrap_or_default() as u32;
        let dumps: Vec<String> = wrongs
            .iter()
            .map(|wrong| {
                readback.count_wrong(wrong.kind);
                readback.dump(wrong, (file, slot.offset), read)
            })
            .collect();
        let goes_on = readback.plan().go_on && !readback.plan().fatal;
        for (wrong, dumped) in wrongs.iter().zip(dumps) {
            self.say_wrong(index, slot.target, wrong, &dumped, now);
        }
        if !goes_on {
            self.end_because(index, Reason::Damage, now);
        }
    }

    #[cold]
    fn say_wrong(&mut self, index: u32, target: u32, wrong: &Wrong, dumped: &str, now: u64) {
        let id = self.streams[index as usize].id;
        let said = self.reported.damage.entry(target).or_default();
        if said.len() >= MAX_ERRORS_PER_TARGET as usize {
            return;
        }
        said.push((id, wrong.offset));
        self.say(Message::Event(Event::Damage(Box::new(DamageFound {
            t_ns: self.run_time(now),
            stream: id,
            target,
            offset: wrong.offset,
            bytes: wrong.bytes,
            kind: wrong.kind,
            sectors: wrong.bytes.div_ceil(SECTOR_BYTES as u32),
            message: wrong.message.clone(),
            lines: Some(format!("{}{dumped}", wrong.lines)),
            // Headers know neither generations nor sectors.
            ..DamageFound::default()
        }))));
    }

    /// Tells damage: every stream tells what it meets, and a block once until it is written
    /// again.
    #[cold]
    fn say_damage(&mut self, index: u32, damage: Damage, now: u64) {
        let id = self.streams[index as usize].id;
        if let Some(damage) = self.untold(index, damage) {
            self.say(Message::Event(Event::Damage(Box::new(describe(
                &damage,
                id,
                self.run_time(now),
            )))));
        }
    }

    /// Tells damage in a file of a tree: `offset` is that in the file, `name` says what place
    /// is which.
    #[cold]
    pub fn say_damage_in_tree(
        &mut self,
        index: u32,
        damage: Damage,
        (offset, name): (u64, &dyn Fn(u32, u64) -> String),
        now: u64,
    ) {
        let id = self.streams[index as usize].id;
        let Some(damage) = self.untold(index, damage) else {
            return;
        };
        let place = name(damage.target, damage.offset);
        let file = place
            .rsplit_once(" offset ")
            .map_or(&*place, |(file, _)| file);
        self.say(Message::Event(Event::Damage(Box::new(DamageFound {
            offset,
            // Places of the table are nobody's offsets: the message has them.
            found_target: None,
            found_offset: None,
            message: format!("in {file}: {}", damage.describe_with(name)),
            ..describe(&damage, id, self.run_time(now))
        }))));
    }

    /// Damage as it is told now; none when it is not told again.
    fn untold(&mut self, index: u32, damage: Damage) -> Option<Damage> {
        let id = self.streams[index as usize].id;
        let said = self.reported.damage.entry(damage.target).or_default();
        let place = (id, damage.offset);
        if said.len() >= MAX_ERRORS_PER_TARGET as usize
            || (damage.repeated && said.contains(&place))
        {
            return None;
        }
        said.push(place);
        let verifier = self.streams[index as usize].checks.verifier();
        Some(match verifier {
            Some(verifier) if damage.repeated => verifier.understood(damage),
            _ => damage,
        })
    }

    /// What a verified stream checked, at its end.
    pub(super) fn say_verified(&self, index: u32, now: u64) {
        let stream = &self.streams[index as usize];
        if let Some(verifier) = stream.checks.verifier() {
            self.say(Message::Event(Event::VerifyEnd {
                t_ns: self.run_time(now),
                stream: stream.id,
                checked: verifier.checked,
                unverified: verifier.unverified,
                damaged: verifier.damaged,
                rehearsed: None,
                reading_ns: None,
            }));
        }
        if let Some(readback) = stream.checks.readback() {
            self.say(Message::Event(Event::VerifyEnd {
                t_ns: self.run_time(now),
                stream: stream.id,
                checked: readback.checked,
                unverified: 0,
                damaged: readback.damaged,
                rehearsed: readback.rehearses().then_some(readback.rehearsed),
                reading_ns: Some(readback.reading_ns(now)),
            }));
            if readback.plan().tell_state {
                self.say(Message::Event(Event::WriteState(Box::new(WriteState {
                    t_ns: self.run_time(now),
                    stream: stream.id,
                    number: readback.written(),
                    open: readback.open_writes(),
                    completed: if readback.plan().flushed_only {
                        Vec::new()
                    } else {
                        readback.last_done()
                    },
                }))));
            }
        }
    }
}

#[cold]
fn describe(damage: &Damage, stream: u32, t_ns: u64) -> DamageFound {
    DamageFound {
        t_ns,
        stream,
        target: damage.target,
        offset: damage.offset,
        bytes: damage.block_bytes,
        kind: damage.kind.name(),
        expected_generation: damage.expected.newest,
        found_generation: damage.found.map(|found| found.generation),
        found_target: damage.found.map(|found| found.target),
        found_offset: damage.found.map(|found| found.offset),
        first_sector: damage.first_sector,
        sectors: damage.sectors,
        flipped_bits: damage.flips.and_then(|flips| flips.count),
        first_bit: damage.flips.and_then(|flips| flips.first),
        message: damage.describe(),
        lines: None,
    }
}
