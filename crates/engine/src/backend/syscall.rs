//! Single I/Os by a system call that returns when they are done.
//!
//! Knows which call does what on which kind of target. Results are as in a completion
//! queue: bytes, or a negative error number. A call that a signal interrupts before
//! anything was moved is made again.
//!
//! Reads and writes are made in place, not through the C library: its functions prepare
//! for cancellation in programs with threads, and each return on the way back is foreseen
//! wrongly where the kernel protects its own returns.

use std::io;

use super::{Io, Op, OpenFile};
use crate::plan::TargetKind;

/// `_IO(0x12, 119)` of `linux/fs.h`.
const BLKDISCARD: libc::c_ulong = 0x1277;

/// Does the I/O, whatever it is.
#[inline(always)]
pub(super) fn perform(file: &OpenFile, io: &Io) -> i32 {
    match io.op {
        Op::Read => transfer(libc::SYS_pread64, file, io),
        Op::Write => transfer(libc::SYS_pwrite64, file, io),
        Op::Trim => trim(file, io.offset, io.len),
        Op::Sync => sync(file, io.len == 1),
    }
}

/// `pread64(2)` or `pwrite64(2)`.
#[inline(always)]
fn transfer(call: libc::c_long, file: &OpenFile, io: &Io) -> i32 {
    loop {
        // SAFETY: the worker's slot owns `len` bytes at `buffer` until the I/O is reaped.
        let returned = unsafe { positioned(call, file.fd, io) };
        if returned != -(libc::EINTR as isize) {
            return returned as i32;
        }
    }
}

/// A call with the arguments of `pread64(2)`; what it returns is its result or a negative
/// error number.
///
/// # Safety
/// As for the call.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn positioned(call: libc::c_long, fd: i32, io: &Io) -> isize {
    let returned: isize;
    // SAFETY: the kernel's convention: arguments in these registers, `rcx` and `r11` are
    // lost; memory may change.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") call as isize => returned,
            in("rdi") fd as isize,
            in("rsi") io.buffer,
            in("rdx") io.len as usize,
            in("r10") io.offset,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    returned
}

/// As above, by the C library.
///
/// # Safety
/// As for the call.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
unsafe fn positioned(call: libc::c_long, fd: i32, io: &Io) -> isize {
    // SAFETY: by the caller's promise; the call takes these four arguments.
    let returned = unsafe { libc::syscall(call, fd, io.buffer, io.len as usize, io.offset) };
    if returned < 0 {
        -(io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EIO) as isize)
    } else {
        returned as isize
    }
}

/// Discards a range: on a block device the device's own operation, in a file a hole.
/// Other targets have no such operation.
#[inline(never)]
pub(super) fn trim(file: &OpenFile, offset: u64, len: u32) -> i32 {
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
        TargetKind::Char | TargetKind::Virtual => -libc::EOPNOTSUPP,
    };
    if outcome < 0 {
        outcome
    } else {
        i32::try_from(len).unwrap_or(i32::MAX)
    }
}

/// `fsync(2)` or `fdatasync(2)`.
#[inline(never)]
pub(super) fn sync(file: &OpenFile, data_only: bool) -> i32 {
    retried(|| {
        // SAFETY: no memory is involved.
        (unsafe {
            if data_only {
                libc::fdatasync(file.fd)
            } else {
                libc::fsync(file.fd)
            }
        }) as isize
    })
}

/// Makes a call until no signal interrupts it.
#[inline]
fn retried(mut call: impl FnMut() -> isize) -> i32 {
    loop {
        let returned = call();
        if returned >= 0 {
            return returned as i32;
        }
        let error = io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EIO);
        if error != libc::EINTR {
            return -error;
        }
    }
}
