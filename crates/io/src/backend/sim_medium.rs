//! What a simulated device holds, and how it damages it.
//!
//! Knows sectors of 512 bytes, each with the content before the last, and seeded faults.
//! Knows no time: a write takes effect, and a read sees, when it is handed over.
//! Shared by the workers and stages of a run; holds only what was written.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::{Io, Op};
use loadstone_base::rng::Rng;
use loadstone_plan::SimFaults;

const SECTOR_BYTES: usize = 512;
type SectorBytes = [u8; SECTOR_BYTES];

/// A fault that was injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Injected {
    /// As damage of this kind is called.
    pub kind: &'static str,
    /// First byte of the I/O it was done to.
    pub offset: u64,
    /// Where a misdirected write went.
    pub to: Option<u64>,
}

/// The content of one device.
#[derive(Debug, Default)]
pub struct Medium(Mutex<MediumContent>);

#[derive(Debug, Default)]
struct MediumContent {
    /// Sectors written, with what they held before.
    sectors: HashMap<u64, (SectorBytes, Option<SectorBytes>)>,
    injected: Vec<Injected>,
}

/// Chooses the fate of an I/O: at most one fault each.
#[derive(Debug)]
pub struct Faults {
    plan: SimFaults,
    rng: Rng,
}

impl Faults {
    /// Faults of a device with this seed.
    #[must_use]
    pub fn new(plan: SimFaults, seed: u64) -> Self {
        Self {
            plan,
            rng: Rng::new(seed),
        }
    }

    /// The fault of the next I/O.
    fn next(&mut self, op: Op) -> Option<&'static str> {
        let plan = &self.plan;
        let writes = [
            ("lost_write", plan.lost_ppm),
            ("torn_write", plan.torn_ppm),
            ("misdirected_write", plan.misdirected_ppm),
            ("bit_flip", plan.flip_ppm),
            ("zeroed_block", plan.zero_ppm),
            ("foreign", plan.foreign_ppm),
        ];
        let reads = [("stale_read", plan.stale_ppm)];
        let choices: &[(&str, u32)] = if op == Op::Write { &writes } else { &reads };
        let mut at = self.rng.below(1_000_000) as u32;
        for &(kind, ppm) in choices {
            if at < ppm {
                return Some(kind);
            }
            at -= ppm;
        }
        None
    }
}

impl MediumContent {
    fn put(&mut self, offset: u64, bytes: &[u8]) {
        for (number, sector) in
            (offset / SECTOR_BYTES as u64..).zip(bytes.chunks_exact(SECTOR_BYTES))
        {
            let mut new = [0; SECTOR_BYTES];
            new.copy_from_slice(sector);
            let before = self.sectors.get(&number).map(|(now, _)| *now);
            self.sectors.insert(number, (new, before));
        }
    }

    /// What is there, or what was there before when all of it was written twice.
    fn get(&self, offset: u64, bytes: &mut [u8], before: bool) {
        for (number, sector) in
            (offset / SECTOR_BYTES as u64..).zip(bytes.chunks_exact_mut(SECTOR_BYTES))
        {
            match self.sectors.get(&number) {
                Some((_, Some(old))) if before => sector.copy_from_slice(old),
                Some((now, _)) => sector.copy_from_slice(now),
                None => sector.fill(0),
            }
        }
    }

    fn has_before(&self, offset: u64, len: usize) -> bool {
        let first = offset / SECTOR_BYTES as u64;
        (first..first + (len / SECTOR_BYTES) as u64)
            .all(|number| matches!(self.sectors.get(&number), Some((now, Some(old))) if now != old))
    }
}

impl Medium {
    /// Does `moved` bytes of an I/O.
    pub fn perform(&self, io: &Io, moved: u32, faults: &mut Faults) {
        let fault = faults.next(io.op);
        // SAFETY: the worker's slot owns `len` bytes at `buffer` until the I/O is reaped.
        let buffer = unsafe { std::slice::from_raw_parts_mut(io.buffer, moved as usize) };
        let mut content = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match io.op {
            Op::Read => {
                let stale = fault.is_some() && content.has_before(io.offset, buffer.len());
                content.get(io.offset, buffer, stale);
                if stale {
                    content.injected.push(Injected {
                        kind: "stale_read",
                        offset: io.offset,
                        to: None,
                    });
                }
            }
            Op::Write => {
                let injected =
                    fault.and_then(|kind| damage(&mut content, kind, io, buffer, &mut faults.rng));
                match injected {
                    Some(injected) => content.injected.push(injected),
                    None => content.put(io.offset, buffer),
                }
            }
            Op::Trim => {
                let zeros = vec![0; moved as usize];
                content.put(io.offset, &zeros);
            }
            Op::Sync(_) => {}
        }
    }

    /// Faults injected so far, in order.
    #[must_use]
    pub fn injected(&self) -> Vec<Injected> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .injected
            .clone()
    }
}

/// Does a write wrongly; none when this write cannot be done wrongly in this way.
fn damage(
    content: &mut MediumContent,
    kind: &'static str,
    io: &Io,
    bytes: &[u8],
    rng: &mut Rng,
) -> Option<Injected> {
    let sectors = bytes.len() / SECTOR_BYTES;
    let mut to = None;
    match kind {
        "lost_write" => {}
        "torn_write" => {
            let whole = 1 + rng.below(sectors.checked_sub(2)? as u64 + 1) as usize;
            content.put(io.offset, &bytes[..whole * SECTOR_BYTES]);
        }
        "misdirected_write" => {
            // To another of the places of this size before it, or right behind it.
            let places = io.offset / bytes.len() as u64;
            let place = if places == 0 { 1 } else { rng.below(places) };
            let wrong = place * bytes.len() as u64;
            content.put(wrong, bytes);
            to = Some(wrong);
        }
        "bit_flip" => {
            let mut copy = bytes.to_vec();
            let sector = rng.below(sectors as u64) * 8 * SECTOR_BYTES as u64;
            for _ in 0..=rng.below(4) {
                let bit = sector + rng.below(8 * SECTOR_BYTES as u64);
                copy[(bit / 8) as usize] ^= 1 << (bit % 8);
            }
            if copy == bytes {
                return None;
            }
            content.put(io.offset, &copy);
        }
        "zeroed_block" => content.put(io.offset, &vec![0; bytes.len()]),
        _ => {
            let copy: Vec<u8> = bytes.iter().map(|_| rng.next_u64() as u8).collect();
            content.put(io.offset, &copy);
        }
    }
    Some(Injected {
        kind,
        offset: io.offset,
        to,
    })
}
