//! Discards where the ring cannot do them: kernels before 6.12 have no such command.
//!
//! Knows how to ask, and wraps a backend so that discards of block devices go through
//! `ioctl(BLKDISCARD)` on the worker, which waits for each. Everything else is passed on.

use std::io;
use std::os::fd::RawFd;

use super::queue::CompletionQueue;
use super::ring::{abi, Ring, RingOptions};
use super::{syscall, Done, Io, IoBackend, Op, OpenFile};
use loadstone_plan::TargetKind;

/// A backend whose discards are made by the worker itself.
#[derive(Debug)]
pub struct Discarding<B> {
    inner: B,
    files: Vec<OpenFile>,
    done: CompletionQueue,
}

impl<B: IoBackend> Discarding<B> {
    /// Wraps a backend for `files` with up to `depth` I/Os in flight.
    pub fn new(inner: B, files: &[OpenFile], depth: u32) -> Self {
        Self {
            inner,
            files: files.to_vec(),
            done: CompletionQueue::new(depth),
        }
    }
}

impl<B: IoBackend> IoBackend for Discarding<B> {
    fn now_ns(&mut self) -> u64 {
        self.inner.now_ns()
    }

    fn push(&mut self, io: Io) {
        let file = &self.files[io.file as usize];
        if io.op == Op::Trim && file.kind == TargetKind::Block {
            let outcome = syscall::trim(file, io.offset, io.len);
            self.done.push(io.slot, outcome);
        } else {
            self.inner.push(io);
        }
    }

    fn group(&self) -> Option<u32> {
        self.inner.group()
    }

    fn hand_over(&mut self) {
        self.inner.hand_over();
    }

    fn use_file(&mut self, file: u32, fd: RawFd) {
        self.files[file as usize].fd = fd;
        self.inner.use_file(file, fd);
    }

    fn flush(&mut self, wait_for: u32, until_ns: u64) -> io::Result<()> {
        if self.done.len() > 0 {
            // Something can be reaped: hand over and do not wait.
            return self.inner.flush(0, 0);
        }
        self.inner.flush(wait_for, until_ns)
    }

    fn reap(&mut self, max: u32, take: &mut impl FnMut(Done)) -> u32 {
        let count = self.done.reap(max, take);
        count + self.inner.reap(max - count, take)
    }
}

/// Whether the ring can discard on this block device. A discard of nothing is refused
/// either way, but a kernel without the command refuses the command.
///
/// # Errors
/// Of the ring.
pub fn ring_discards(file: &OpenFile) -> io::Result<bool> {
    let mut ring = Ring::new(&RingOptions {
        sq_entries: 1,
        cq_entries: 2,
        iopoll: false,
        sqpoll: false,
    })?;
    ring.write(abi::Sqe {
        opcode: abi::OP_URING_CMD,
        fd: file.fd,
        off: abi::BLOCK_CMD_DISCARD,
        ..abi::Sqe::default()
    });
    ring.enter(1, 1_000_000_000, true)?;
    let mut result = -libc::EOPNOTSUPP;
    ring.reap(1, |cqe| result = cqe.result);
    Ok(result != -libc::EOPNOTSUPP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::psync::Psync;
    use crate::backend::Outcome;
    use loadstone_base::clock::Clock;
    use std::os::fd::AsRawFd;
    use std::process::Command;

    fn losetup(arguments: &[&str]) -> Option<String> {
        let output = Command::new("losetup").args(arguments).output().ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// What came back of one I/O of 4 KiB, and the first byte that its buffer then has.
    fn done(
        backend: &mut Discarding<Psync>,
        slot: u32,
        op: Op,
        offset: u64,
    ) -> (Vec<(u32, Outcome)>, u8) {
        let mut buffer = vec![1u8; 4096];
        backend.push(Io {
            slot,
            op,
            file: 0,
            offset,
            len: 4096,
            buffer: buffer.as_mut_ptr(),
            priority: 0,
        });
        backend.flush(1, 0).unwrap();
        let mut outcomes = Vec::new();
        backend.reap(8, &mut |done| outcomes.push((done.slot, done.outcome)));
        (outcomes, buffer[0])
    }

    #[test]
    fn a_discard_through_the_worker_empties_the_range_and_nothing_else() {
        let path = std::env::temp_dir().join(format!("loadstone-discard-{}", std::process::id()));
        std::fs::write(&path, vec![7u8; 1 << 20]).unwrap();
        let Some(device) = losetup(&["-f", "--show", path.to_str().unwrap()]) else {
            std::fs::remove_file(&path).unwrap();
            eprintln!("skipped: no loop device (needs root)");
            return;
        };
        let open = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&device);
        let outcome = open.map(|file| {
            let view = OpenFile {
                fd: file.as_raw_fd(),
                direct: false,
                kind: TargetKind::Block,
                size_bytes: 1 << 20,
            };
            let known = ring_discards(&view);
            let inner = Psync::new(Clock::monotonic(), &[view], 4);
            let mut backend = Discarding::new(inner, &[view], 4);
            let trimmed = done(&mut backend, 0, Op::Trim, 8192).0;
            let before = done(&mut backend, 1, Op::Read, 4096);
            let inside = done(&mut backend, 2, Op::Read, 8192);
            (known.is_ok(), trimmed, before, inside)
        });
        losetup(&["-d", &device]);
        std::fs::remove_file(&path).unwrap();
        let (known, trimmed, before, inside) = outcome.unwrap();
        assert!(known);
        if trimmed == [(0, Outcome::failed(libc::EOPNOTSUPP))] {
            eprintln!("skipped: this loop device has no discard");
            return;
        }
        assert_eq!(trimmed, [(0, Outcome::moved(4096))]);
        assert_eq!(before, (vec![(1, Outcome::moved(4096))], 7));
        assert_eq!(inside, (vec![(2, Outcome::moved(4096))], 0));
    }
}
