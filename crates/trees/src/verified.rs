//! Verification of what is in the files of a tree: where their blocks stand in the tables,
//! and what is read beside a write.
//!
//! The files of a tree stand one after the other in the table of its target, each with its
//! full size. Knows no stamp and no expectation. A file that is removed takes what was known
//! of it along.

use super::worker::FileWorker;
use super::SharedTree;
use loadstone_base::ops::Op;
use loadstone_generation::tree::sizes::TreeFileSizes;
use loadstone_plan::{Plan, Verify};
use loadstone_verification::verify::damage::Damage;
use loadstone_verification::verify::verifier::{Transfer, Verifier};
use loadstone_worker::state::files::Times;

/// Bytes of memory for each file of a tree that is verified and has several sizes.
pub const START_BYTES: u64 = 8;

/// Where each file of a tree begins in the table of its target.
#[derive(Debug)]
pub enum Starts {
    /// All have this size.
    Same(u64),
    /// By file, and the end of the last.
    Each(Box<[u64]>),
}

impl Starts {
    /// Those of the first `count` files.
    #[must_use]
    pub fn new(sizes: &TreeFileSizes, count: u32) -> Self {
        if let Some(bytes) = sizes.same() {
            return Self::Same(bytes);
        }
        let mut end = 0;
        let before = (0..count).map(|file| {
            let start = end;
            end += sizes.of(file);
            start
        });
        let mut starts: Vec<u64> = before.collect();
        starts.push(end);
        Self::Each(starts.into())
    }

    /// Start of a file.
    #[must_use]
    pub fn of(&self, file: u32) -> u64 {
        match self {
            Self::Same(bytes) => bytes * u64::from(file),
            Self::Each(starts) => starts[file as usize],
        }
    }

    /// The file that has this place, and the place in it.
    #[must_use]
    pub fn file_at(&self, place: u64) -> (u32, u64) {
        let file = match self {
            Self::Same(bytes) => place / (*bytes).max(1),
            Self::Each(starts) => starts.partition_point(|start| *start <= place) as u64 - 1,
        };
        let file = u32::try_from(file).unwrap_or(u32::MAX);
        match self {
            Self::Each(starts) if file as usize >= starts.len() => (file, 0),
            _ => (file, place - self.of(file)),
        }
    }
}

/// How the content of a tree is verified; none: it is not.
#[must_use]
pub fn verify_of(plan: &Plan, tree: u32) -> Option<Verify> {
    let mut uses = plan.streams.iter();
    uses.find_map(|stream| stream.verify.filter(|_| works_in(stream, tree)))
}

fn works_in(stream: &loadstone_plan::Stream, tree: u32) -> bool {
    stream.tree.as_ref().is_some_and(|its| its.tree == tree)
}

impl FileWorker {
    fn verifier(&mut self, index: u32) -> Option<&mut Verifier> {
        self.state.streams[index as usize].checks.verifier_mut()
    }

    /// An I/O in the open file as the tables know it; none when the stream does not verify.
    fn known_place(&self, index: u32, op: Op, offset: u64, bytes: u32) -> Option<Transfer> {
        self.state.streams[index as usize].checks.verifier()?;
        let tree = self.tree(index);
        let starts = tree.starts.as_ref()?;
        let number = self.jobs[index as usize].number;
        Some(Transfer {
            slot: 0,
            op: op.kind(),
            target: tree.target,
            offset: starts.of(number) + offset,
            len: bytes,
        })
    }

    /// One read or write of the open file; a write with the reads that are asked for beside
    /// it. What was found damaged before is not written.
    pub(super) fn checked_io(
        &mut self,
        index: u32,
        op: Op,
        (fd, offset, bytes): (i32, u64, u32),
        times: Option<Times>,
    ) -> Result<u32, i32> {
        let Some(place) = self.known_place(index, op, offset, bytes) else {
            return self.io(index, op, (fd, offset, bytes), None, times);
        };
        let id = self.jobs[index as usize].id as usize;
        let (before, after) = match self.state.plan.streams[id].verify {
            Some(its) if op == Op::Write => (its.read_before_write, its.read_after_write),
            _ => (false, false),
        };
        let demanded = |this: &mut Self| {
            let verifier = this.verifier(index);
            verifier.is_some_and(|its| its.demands(place.target, place.offset, bytes))
        };
        if before && demanded(self) && !self.one_io(index, (fd, offset), Op::Read, place, None).1 {
            return Err(libc::EILSEQ);
        }
        let (moved, _) = self.one_io(index, (fd, offset), op, place, times);
        if after && moved.is_ok() {
            // What it brought is judged and told there.
            let _ = self.one_io(index, (fd, offset), Op::Read, place, None);
        }
        moved
    }

    /// One I/O, stamped before or judged after it. Second: nothing damaged was found.
    fn one_io(
        &mut self,
        index: u32,
        (fd, offset): (i32, u64),
        op: Op,
        place: Transfer,
        times: Option<Times>,
    ) -> (Result<u32, i32>, bool) {
        let place = Transfer {
            op: op.kind(),
            ..place
        };
        if op == Op::Write {
            self.fill_buffer(index, place.len);
        }
        let buffer = self.jobs[index as usize].buffer;
        if let Some(verifier) = self.verifier(index) {
            // SAFETY: the stream's slot owns its largest block at the buffer, and no call is
            // under way; the same below.
            let bytes = unsafe { std::slice::from_raw_parts_mut(buffer, place.len as usize) };
            verifier.issue(&place, bytes);
        }
        let done = self.moved(index, op, (fd, offset, place.len), None, times);
        let job = &mut self.jobs[index as usize];
        // What is stamped, or was read, is no payload for the next.
        job.primed = false;
        let moved = done.unwrap_or(0);
        let damages = match self.verifier(index) {
            Some(verifier) => {
                // SAFETY: as above.
                let bytes = unsafe { std::slice::from_raw_parts(buffer, moved as usize) };
                verifier.complete(&place, moved, done.is_err(), bytes)
            }
            None => Vec::new(),
        };
        let sound = damages.is_empty();
        let now = self.clock.now_ns();
        for damage in damages {
            self.say_damaged(index, damage, now);
        }
        if !sound {
            self.state.damaged(index, now);
        }
        (done, sound)
    }

    fn say_damaged(&mut self, index: u32, damage: Damage, now: u64) {
        let tree = self.tree(index).target;
        let trees = self.trees.clone();
        let name = |target: u32, place: u64| name_of(&trees.trees, target, place);
        let start = place_in_file(&trees.trees, tree, damage.offset);
        self.state
            .say_damage_in_tree(index, damage, (start, &name), now);
    }

    /// A file is no longer there: nothing is known of what it held.
    pub(super) fn forget(&mut self, index: u32, number: u32) {
        let tree = self.tree(index);
        let (target, bytes) = (tree.target, tree.sizes.of(number));
        let Some(start) = tree.starts.as_ref().map(|starts| starts.of(number)) else {
            return;
        };
        if let Some(verifier) = self.verifier(index) {
            verifier.forget(target, start, bytes);
        }
    }
}

fn place_in_file(trees: &[SharedTree], target: u32, place: u64) -> u64 {
    let tree = trees.iter().find(|tree| tree.target == target);
    let starts = tree.and_then(|tree| tree.starts.as_ref());
    starts.map_or(place, |starts| starts.file_at(place).1)
}

/// File and offset of a place in a tree's table, as a person reads them.
fn name_of(trees: &[SharedTree], target: u32, place: u64) -> String {
    let tree = trees.iter().find(|tree| tree.target == target);
    let Some((tree, starts)) = tree.and_then(|tree| Some((tree, tree.starts.as_ref()?))) else {
        return format!("target {target} offset {place}");
    };
    let (file, offset) = starts.file_at(place);
    if file >= tree.used_files {
        return format!("target {target} offset {place}");
    }
    let mut path = Vec::new();
    tree.shape.file_path(file, &mut path);
    let path = path.strip_suffix(&[0]).unwrap_or(&path);
    format!("{} offset {offset}", String::from_utf8_lossy(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stand_one_after_the_other() {
        let each = Starts::Each(Box::new([0, 4096, 12_288, 12_800]));
        for (place, file, offset) in [
            (0, 0, 0),
            (4095, 0, 4095),
            (4096, 1, 0),
            (12_288, 2, 0),
            (12_700, 2, 412),
        ] {
            assert_eq!(each.file_at(place), (file, offset));
            assert_eq!(each.of(file) + offset, place);
        }
        let same = Starts::Same(8192);
        assert_eq!((same.of(3), same.file_at(30_000)), (24_576, (3, 5424)));
    }
}
