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

/// The remedy where a file of the engine's own, in a bundle, cannot be written.
#[must_use]
pub fn own_file_hint(errno: Option<i32>) -> &'static str {
    match errno {
        Some(libc::ENOSPC) => "free space where the bundle is",
        Some(libc::EDQUOT) => "free some of the quota where the bundle is, or raise it",
        Some(libc::EFBIG) => "raise the limit on file sizes (ulimit -f unlimited)",
        Some(libc::ENOMEM) => "free memory, or raise the limit on it (ulimit -v)",
        Some(other @ (libc::EIO | libc::EROFS | libc::EMFILE | libc::ENFILE)) => hint_for(other),
        _ => "name another directory for the bundle (--out)",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_ours_that_cannot_be_written_has_the_remedy_of_its_reason() {
        assert_eq!(
            own_file_hint(Some(libc::ENOSPC)),
            "free space where the bundle is"
        );
        assert!(own_file_hint(Some(libc::EFBIG)).contains("ulimit -f"));
        assert!(own_file_hint(Some(libc::EDQUOT)).contains("quota"));
        assert!(own_file_hint(Some(libc::EROFS)).contains("read-only"));
        for errno in [
            None,
            Some(libc::EACCES),
            Some(libc::ENOENT),
            Some(libc::EISDIR),
        ] {
            assert!(own_file_hint(errno).contains("--out"), "{errno:?}");
        }
    }
}
