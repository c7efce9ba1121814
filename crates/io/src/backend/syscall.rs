//! Single I/Os by a system call that returns when they are done.
//!
//! Knows which call does what on which kind of target. A call that a signal interrupts before
//! anything was moved is made again.
//!
//! Reads and writes are made in place ([`super::raw`]), not through the C library: its
//! functions prepare for cancellation in programs with threads.

use super::special_engines::retried;
use super::{raw, Io, Op, OpenFile, Outcome, SyncKind};
use loadstone_plan::TargetKind;

/// `_IO(0x12, 119)` of `linux/fs.h`.
const BLKDISCARD: libc::c_ulong = 0x1277;

/// Does the I/O, whatever it is.
#[inline(always)]
pub fn perform(file: &OpenFile, io: &Io) -> Outcome {
    match io.op {
        Op::Read => transfer(libc::SYS_pread64, file, io),
        Op::Write => transfer(libc::SYS_pwrite64, file, io),
        Op::Trim => trim(file, io.offset, io.len),
        Op::Sync(kind) => sync(file, kind),
    }
}

/// `pread64(2)` or `pwrite64(2)`.
#[inline(always)]
fn transfer(call: libc::c_long, file: &OpenFile, io: &Io) -> Outcome {
    loop {
        let arguments = [
            file.fd as usize,
            io.buffer as usize,
            io.len as usize,
            io.offset as usize,
            0,
            0,
        ];
        // SAFETY: the worker's slot owns `len` bytes at `buffer` until the I/O is reaped.
        let returned = unsafe { raw::call(call, arguments) };
        if returned != -(libc::EINTR as isize) {
            return Outcome::of(returned as i32);
        }
    }
}

/// Discards a range: on a block device the device's own operation, in a file a hole.
/// Other targets have no such operation.
#[inline(never)]
pub(super) fn trim(file: &OpenFile, offset: u64, len: u32) -> Outcome {
    let outcome = match file.kind {
        TargetKind::Block => {
            let range = [offset, u64::from(len)];
            // SAFETY: the request reads two 64-bit numbers from the pointer.
            retried(|| unsafe { libc::ioctl(file.fd, BLKDISCARD as _, range.as_ptr()) } as isize)
        }
        TargetKind::File => {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            let (offset, len) = (offset as i64, i64::from(len));
            // SAFETY: no memory is involved.
            retried(|| unsafe { libc::fallocate64(file.fd, mode, offset, len) } as isize)
        }
        TargetKind::Char | TargetKind::Nvme | TargetKind::Virtual | TargetKind::Tree => {
            Err(libc::EOPNOTSUPP)
        }
    };
    outcome.map(|_| len).into()
}

/// `fsync(2)` or `fdatasync(2)`.
#[inline(never)]
pub(super) fn sync(file: &OpenFile, kind: SyncKind) -> Outcome {
    retried(|| {
        // SAFETY: no memory is involved.
        (unsafe {
            match kind {
                SyncKind::Data => libc::fdatasync(file.fd),
                SyncKind::File => libc::fsync(file.fd),
            }
        }) as isize
    })
    .into()
}
