//! Error numbers of the system in words.
//!
//! Knows the usual remedy of each. Knows nothing of what was done.

use std::io;

/// Text for an error number, with the remedy where there is a usual one.
#[must_use]
pub fn describe_errno(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    let text = text
        .split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned();
    match hint_for(errno) {
        "" => text,
        hint => format!("{text}; {hint}"),
    }
}

/// The usual remedy for an error number; empty when there is none.
#[must_use]
pub fn hint_for(errno: i32) -> &'static str {
    match errno {
        libc::ENOSPC => "the file system or thin volume is full: free space or lower the size",
        libc::EIO => "the device or file system reported a failure: see the kernel log (dmesg)",
        libc::EBUSY => "the device is in use: unmount it, stop its holder, or choose another one",
        libc::EINVAL => "with direct I/O, offset, size and buffer must be multiples of the logical block size",
        libc::EACCES | libc::EPERM => "run as a user with access to it, or grant CAP_SYS_ADMIN where a device asks for it",
        libc::ENOENT => "the path does not exist: check it, or let the job create the file",
        libc::EROFS => "it is read-only: remount it or make the job read-only",
        libc::EMFILE | libc::ENFILE => "too many open files: raise RLIMIT_NOFILE (ulimit -n)",
        libc::EMLINK => "it has several names (hard links), and a write would change them all: move it away",
        libc::ENOMEM => "not enough memory: lower iodepth or block size, or raise RLIMIT_MEMLOCK for registered buffers",
        libc::EOPNOTSUPP => "the target does not support this operation (polling, discard or direct I/O)",
        libc::EDQUOT => "the quota is used up: raise it or lower the size",
        libc::EFBIG => "it is longer than the file system or the limit on file sizes allows (ulimit -f)",
        libc::ESTALE => "another file took its place: see who works there, and run again",
        libc::ENODEV | libc::ENXIO => "the device went away",
        _ => "",
    }
}
