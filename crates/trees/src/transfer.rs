//! Bytes read from and written to the files of a tree.
//!
//! Knows where in a file the next transfer goes and when a file is left. Knows nothing of
//! how a file was chosen, nor what its name is.

use super::call::{Access, OsResult};
use super::open_file::OpenTreeFile;
use super::registry::KnownFile;
use super::take::{Taken, GONE};
use super::worker::FileWorker;
use super::SharedTree;
use loadstone_base::ops::{AnyOp, Op, OpKind};
use loadstone_io::backend::{syscall, Io, OpenFile};
use loadstone_plan::{FileOperation, FileStop, TargetKind};
use loadstone_worker::state::files::{OperationStep, Times};
use loadstone_worker::stream::Reason;

/// Direct transfers begin and end on these.
pub const SECTOR_BYTES: u64 = 512;

/// How filling a file ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filled {
    /// It is full.
    Whole,
    /// The stream's time was over.
    Stopped,
    /// A step failed, with an error number.
    Failed(i32),
}

impl SharedTree {
    /// So much of a size can be read.
    pub(super) fn usable(&self, size_bytes: u64) -> u64 {
        size_bytes / self.unit_bytes * self.unit_bytes
    }

    /// Where transfers in order go on: a file that is filled at the end of its whole units, another
    /// where the last ones ended; at its end they begin anew.
    fn position(&self, number: u32, size_bytes: u64, fills: bool) -> u64 {
        let end = self.usable(size_bytes);
        let position = self.registry.position(number);
        if fills {
            end
        } else if position < end {
            position
        } else {
            0
        }
    }
}

/// How far whole units go: what came back short of one is written again.
fn unit_of(moved: u32, unit_bytes: u64) -> u64 {
    u64::from(moved) / unit_bytes * unit_bytes
}

impl FileWorker {
    /// One transfer, after a file was opened for it where none is.
    pub(super) fn transfer(&mut self, index: u32, arrival_ns: Option<u64>, now: u64) {
        let job = &mut self.jobs[index as usize];
        if job.open.as_ref().is_some_and(OpenTreeFile::is_done) {
            return self.close_file(index);
        }
        if job.open.is_none() {
            // The transfer that comes to be is what is asked for: the open before it is
            // timed by itself.
            if let Some((taken, times)) = self.seek(index, arrival_ns, now) {
                self.jobs[index as usize].picked_ns = Some(times.picked_ns);
                self.open_for_transfers(index, taken);
                if self.jobs[index as usize].open.is_none() {
                    // It failed, and with it the transfer.
                    self.jobs[index as usize].picked_ns = None;
                    self.count_requested(index, 0, 0);
                }
            }
            return;
        }
        let Some((op, offset, bytes)) = self.next_transfer(index) else {
            return self.close_file(index);
        };
        if !self.state.streams[index as usize].left.fits(bytes) {
            self.state.stop_issuing(index, Reason::Bytes, now);
            return;
        }
        let job = &mut self.jobs[index as usize];
        let picked_ns = job.picked_ns.take();
        let free_ns = self.state.streams[index as usize].free_since_ns();
        let times = Times {
            intended_ns: arrival_ns.unwrap_or(free_ns),
            picked_ns: arrival_ns.and(picked_ns).unwrap_or(now),
        };
        let fd = job.open.map_or(-1, |open| open.fd);
        let moved = self.checked_io(index, op, (fd, offset, bytes), Some(times));
        self.count_requested(index, bytes, moved.unwrap_or(0));
        self.note_transfer(index, op, (offset, bytes), moved);
    }

    /// What the open file has learned of a transfer.
    fn note_transfer(
        &mut self,
        index: u32,
        op: Op,
        (offset, bytes): (u64, u32),
        moved: Result<u32, i32>,
    ) {
        let job = &mut self.jobs[index as usize];
        let Some(open) = &mut job.open else { return };
        open.moved(op, offset, bytes, moved.unwrap_or(0));
        if op == Op::Read && moved == Ok(0) && open.taken.alone {
            // The file is shorter than it was: somebody else cut it.
            let anchor = &self.trees.trees[job.in_tree.tree as usize].anchor;
            if let Ok(size_bytes) = anchor.getattr(&job.path) {
                open.left.size_bytes = size_bytes;
            }
        }
    }

    /// The next transfer in the open file; none when there is no more.
    fn next_transfer(&mut self, index: u32) -> Option<(Op, u64, u32)> {
        let job = &mut self.jobs[index as usize];
        let FileOperation::Transfer { random, .. } = job.in_tree.operation else {
            return None;
        };
        let open = job.open.as_ref()?;
        let reads = match job.read_percent {
            0 => false,
            100 => true,
            percent => job.rng.below(100) < u64::from(percent),
        };
        let tree = &self.trees.trees[job.in_tree.tree as usize];
        let (op, limit) = if reads {
            (Op::Read, tree.usable(open.left.size_bytes))
        } else {
            (Op::Write, open.full_bytes)
        };
        let bytes = job.sizes[op.index()].draw(&mut job.rng);
        let (offset, bytes) = open.next(bytes, limit, random, &mut job.rng)?;
        Some((op, offset, bytes))
    }

    fn open_for_transfers(&mut self, index: u32, taken: Taken) {
        self.name_file(index, taken.number);
        let job = &self.jobs[index as usize];
        let FileOperation::Transfer {
            random,
            stop,
            delete_before,
        } = job.in_tree.operation
        else {
            return;
        };
        let only_reads = job.read_percent == 100;
        let full_bytes = self.tree(index).sizes.of(taken.number);
        // With a stop of its own a file is filled before it is written anew.
        let whole = stop == (FileStop::Whole {});
        let anew = delete_before && (whole || taken.known.size_bytes >= full_bytes);
        let Some((fd, left)) = self.open_taken(index, &taken, only_reads, anew) else {
            return;
        };
        let has_bytes = if only_reads {
            left.size_bytes
        } else {
            full_bytes
        };
        let (most_bytes, most_transfers) = most_of(stop, has_bytes, random);
        let position = if random || whole {
            0
        } else {
            let fills = !only_reads && left.size_bytes < full_bytes;
            self.tree(index)
                .position(taken.number, left.size_bytes, fills)
        };
        self.jobs[index as usize].open = Some(OpenTreeFile {
            fd,
            taken,
            left,
            full_bytes,
            position,
            done_bytes: 0,
            done_transfers: 0,
            most_bytes,
            most_transfers,
        });
        self.state.streams[index as usize].flushes.close_at_end();
    }

    /// Opens what was taken, `anew` without what is there; gives its descriptor and what is known of it
    /// then. None: it could not, and the operation is finished.
    fn open_taken(
        &mut self,
        index: u32,
        taken: &Taken,
        only_reads: bool,
        anew: bool,
    ) -> Option<(i32, KnownFile)> {
        let mut left = taken.known;
        if anew && left.exists {
            match self.delete_file(index, taken.number, None) {
                Ok(()) | Err(libc::ENOENT) => {
                    self.forget(index, taken.number);
                    left = GONE;
                }
                Err(_) => {
                    self.finish(index, taken, left);
                    return None;
                }
            }
        }
        match self.open_or_create(index, only_reads, left.exists) {
            Ok(fd) => {
                left.exists = true;
                return Some((fd, left));
            }
            Err(libc::ENOENT) if taken.alone => self.finish(index, taken, GONE),
            Err(errno) => {
                let left = self.seen_again(index, errno, left);
                self.finish(index, taken, left);
            }
        }
        None
    }

    fn open_or_create(&mut self, index: u32, only_reads: bool, exists: bool) -> OsResult<i32> {
        match (only_reads, exists) {
            (true, _) => self.open_file(index, Access::Read, None),
            (false, true) => self.open_file(index, Access::Write, None),
            (false, false) => self.create_file(index),
        }
    }

    /// Writes a file to its full size, from the block its end is in.
    pub(super) fn fill(
        &mut self,
        index: u32,
        fd: i32,
        number: u32,
        left: &mut KnownFile,
    ) -> Filled {
        let full_bytes = self.tree(index).sizes.of(number);
        let job = &mut self.jobs[index as usize];
        let first = u64::from(job.sizes[OpKind::Write as usize].draw(&mut job.rng));
        let mut position = left.size_bytes / first * first;
        let unit = self.tree(index).unit_bytes;
        while position < full_bytes {
            let job = &mut self.jobs[index as usize];
            let wanted = job.sizes[OpKind::Write as usize].draw(&mut job.rng);
            let bytes = u64::from(wanted).min(full_bytes - position) as u32;
            match self.checked_io(index, Op::Write, (fd, position, bytes), None) {
                Ok(moved) if unit_of(moved, unit) == 0 => return Filled::Failed(libc::EIO),
                Ok(moved) => position += unit_of(moved, unit),
                Err(errno) => return Filled::Failed(errno),
            }
            left.size_bytes = left.size_bytes.max(position);
            let now = self.clock.now_ns();
            if position < full_bytes && !self.state.goes_on(index, now) {
                return Filled::Stopped;
            }
        }
        Filled::Whole
    }

    /// Reads one file and writes the other.
    pub(super) fn copy_bytes(
        &mut self,
        index: u32,
        (from, to): (i32, i32),
        taken: &Taken,
        target: u32,
        other: &mut KnownFile,
    ) -> Filled {
        let end = taken.known.size_bytes;
        let mut position = 0;
        while position < end {
            let job = &mut self.jobs[index as usize];
            let wanted = job.sizes[OpKind::Read as usize].draw(&mut job.rng);
            let bytes = u64::from(wanted).min(end - position) as u32;
            let read = match self.io(index, Op::Read, (from, position, bytes), None, None) {
                Ok(0) => return Filled::Failed(libc::EIO),
                Ok(read) => read,
                Err(errno) => return Filled::Failed(errno),
            };
            match self.io(index, Op::Write, (to, position, read), Some(target), None) {
                Ok(0) => return Filled::Failed(libc::EIO),
                Ok(moved) => position += u64::from(moved),
                Err(errno) => return Filled::Failed(errno),
            }
            other.size_bytes = position;
            let now = self.clock.now_ns();
            if position < end && !self.state.goes_on(index, now) {
                return Filled::Stopped;
            }
        }
        Filled::Whole
    }

    /// One read or write. What is written is the stream's payload, or in another tree what
    /// was read before.
    pub(super) fn io(
        &mut self,
        index: u32,
        op: Op,
        (fd, offset, bytes): (i32, u64, u32),
        other: Option<u32>,
        times: Option<Times>,
    ) -> Result<u32, i32> {
        if op == Op::Read {
            self.jobs[index as usize].primed = false;
        } else if other.is_none() {
            self.fill_buffer(index, bytes);
        }
        self.moved(index, op, (fd, offset, bytes), other, times)
    }

    /// The system call of it, timed and counted.
    pub(super) fn moved(
        &mut self,
        index: u32,
        op: Op,
        (fd, offset, bytes): (i32, u64, u32),
        other: Option<u32>,
        times: Option<Times>,
    ) -> Result<u32, i32> {
        let target = self.tree(index).target;
        let step = OperationStep {
            op: AnyOp::Io(op.kind()),
            target: other.unwrap_or(target),
            offset,
            bytes,
        };
        let file = OpenFile {
            fd,
            direct: false,
            kind: TargetKind::File,
            size_bytes: 0,
        };
        self.step(index, step, times, |_, job| {
            let io = Io {
                slot: 0,
                op,
                file: 0,
                offset,
                len: bytes,
                buffer: job.buffer,
                priority: 0,
            };
            syscall::perform(&file, &io).result()
        })
    }

    pub(super) fn fill_buffer(&mut self, index: u32, bytes: u32) {
        let stream = &mut self.state.streams[index as usize];
        let Some(filler) = &mut stream.filler else {
            return;
        };
        let job = &mut self.jobs[index as usize];
        // SAFETY: the stream's slot owns its largest block at the buffer, and no call is
        // under way.
        let whole =
            unsafe { std::slice::from_raw_parts_mut(job.buffer, stream.block_bytes as usize) };
        if !std::mem::replace(&mut job.primed, true) {
            filler.prime(whole);
        }
        filler.next(&mut whole[..bytes as usize]);
    }
}

/// After how many bytes, and after how many transfers, a file is left.
fn most_of(stop: FileStop, has_bytes: u64, random: bool) -> (u64, u64) {
    match stop {
        // Whole files written one after the other end at their end, not after their bytes.
        FileStop::Whole {} if !random => (u64::MAX, u64::MAX),
        FileStop::Whole {} => (has_bytes, u64::MAX),
        FileStop::Transfers { count } => (u64::MAX, count),
        FileStop::Percent { percent } => {
            let share = u128::from(has_bytes) * u128::from(percent) / 100;
            (u64::try_from(share).unwrap_or(u64::MAX).max(1), u64::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_base::rng::Rng;

    fn open(position: u64) -> OpenTreeFile {
        let known = GONE;
        let taken = Taken {
            number: 0,
            known,
            alone: true,
            other: GONE,
        };
        OpenTreeFile {
            fd: -1,
            taken,
            left: known,
            full_bytes: 10_000,
            position,
            done_bytes: 0,
            done_transfers: 0,
            most_bytes: u64::MAX,
            most_transfers: 3,
        }
    }

    #[test]
    fn a_sequential_transfer_is_shorter_at_the_end_and_there_is_none_behind_it() {
        let mut rng = Rng::new(1);
        let mut file = open(0);
        let mut seen = Vec::new();
        while let Some((offset, bytes)) = file.next(4096, 10_000, false, &mut rng) {
            seen.push((offset, bytes));
            file.moved(Op::Write, offset, bytes, bytes);
        }
        assert_eq!(seen, [(0, 4096), (4096, 4096), (8192, 1808)]);
        assert_eq!((file.left.size_bytes, file.is_done()), (10_000, true));
    }

    #[test]
    fn random_transfers_stay_inside_on_multiples_of_their_size() {
        let mut rng = Rng::new(2);
        let file = open(0);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let (offset, bytes) = file.next(4096, 10_000, true, &mut rng).unwrap();
            assert_eq!(bytes, 4096);
            seen.insert(offset);
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 4096]);
        assert_eq!(file.next(4096, 100, true, &mut rng), Some((0, 100)));
        assert_eq!(file.next(4096, 0, true, &mut rng), None);
    }
}
