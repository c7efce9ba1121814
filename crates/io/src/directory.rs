//! A directory that is held open, and the system calls on names in it.
//!
//! Knows descriptors, names and error numbers. Knows no target and no tree: what a name is for
//! is its caller's. Whatever is put in the place of a directory by others, one that is held
//! stays the one that was opened.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use loadstone_plan::Identity;

/// A result, or an error number.
pub type OsResult<T> = Result<T, i32>;

/// A directory that its owner keeps open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Directory(RawFd);

/// What stands at a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStatus {
    /// Tells it from any other.
    pub identity: Identity,
    /// Its length.
    pub size_bytes: u64,
    /// Its names.
    pub links: u32,
    /// When it was changed, or came to where it is (`ctime`).
    pub changed_ns: u64,
    kind: libc::mode_t,
}

impl FileStatus {
    /// What is open.
    ///
    /// # Errors
    /// The error number of `statx(2)`.
    pub fn of(file: &impl AsRawFd) -> OsResult<Self> {
        Directory(file.as_raw_fd()).look_at_itself()
    }

    /// A regular file.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.kind == libc::S_IFREG
    }

    /// A directory.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.kind == libc::S_IFDIR
    }

    /// A symbolic link.
    #[must_use]
    pub fn is_link(&self) -> bool {
        self.kind == libc::S_IFLNK
    }

    /// Says what tells it from the one that is expected; none where it is that one.
    #[must_use]
    pub fn difference(&self, expected: &Identity) -> Option<String> {
        let seen = &self.identity;
        let numbers = |one: &Identity| (one.device, one.inode, one.special);
        if numbers(seen) != numbers(expected) {
            return Some(format!(
                "device {}, inode {}, special {} instead of {}, {}, {}",
                seen.device,
                seen.inode,
                seen.special,
                expected.device,
                expected.inode,
                expected.special
            ));
        }
        match (expected.born_ns, seen.born_ns) {
            (Some(then), Some(now)) if then != now => Some(format!(
                "a file made later has its inode number, {}",
                seen.inode
            )),
            _ => None,
        }
    }
}

impl Directory {
    /// Where the process stands: names are paths then, and nothing is held.
    pub const WORKING: Self = Self(libc::AT_FDCWD);

    /// One that somebody keeps open.
    #[must_use]
    pub fn held(by: &impl AsRawFd) -> Self {
        Self(by.as_raw_fd())
    }

    /// Its descriptor.
    #[must_use]
    pub fn number(self) -> RawFd {
        self.0
    }

    /// `openat(2)`.
    ///
    /// # Errors
    /// Its error number, as of all that follow.
    pub fn open(self, name: &CStr, flags: i32, mode: libc::mode_t) -> OsResult<OwnedFd> {
        // SAFETY: a name is a text with its end, here and below.
        let fd = retried(|| unsafe { libc::openat(self.0, name.as_ptr(), flags, mode) })?;
        // SAFETY: the descriptor was just opened and nobody else has it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// `statx(2)` of what is open, which need not be a directory.
    ///
    /// # Errors
    /// As above.
    pub fn look_at_itself(self) -> OsResult<FileStatus> {
        self.look(c"", libc::AT_EMPTY_PATH)
    }

    /// `statx(2)` with `flags`: what stands at a name.
    ///
    /// # Errors
    /// As above.
    pub fn look(self, name: &CStr, flags: i32) -> OsResult<FileStatus> {
        let wanted = libc::STATX_BASIC_STATS | libc::STATX_BTIME;
        let mut found = MaybeUninit::<libc::statx>::zeroed();
        // SAFETY: as above.
        retried(|| unsafe {
            libc::statx(self.0, name.as_ptr(), flags, wanted, found.as_mut_ptr())
        })?;
        // SAFETY: all zeros are valid, and the kernel filled it.
        let found = unsafe { found.assume_init() };
        let told = found.stx_mask & libc::STATX_BTIME != 0;
        Ok(FileStatus {
            identity: Identity {
                device: libc::makedev(found.stx_dev_major, found.stx_dev_minor),
                inode: found.stx_ino,
                special: libc::makedev(found.stx_rdev_major, found.stx_rdev_minor),
                born_ns: nanoseconds(found.stx_btime).filter(|_| told),
            },
            size_bytes: found.stx_size,
            links: found.stx_nlink,
            changed_ns: nanoseconds(found.stx_ctime).unwrap_or(0),
            kind: libc::mode_t::from(found.stx_mode) & libc::S_IFMT,
        })
    }

    /// `mkdirat(2)`.
    ///
    /// # Errors
    /// As above.
    pub fn mkdir(self, name: &CStr, mode: libc::mode_t) -> OsResult<()> {
        // SAFETY: as above.
        done(retried(|| unsafe {
            libc::mkdirat(self.0, name.as_ptr(), mode)
        }))
    }

    /// `unlinkat(2)` of anything but a directory.
    ///
    /// # Errors
    /// As above.
    pub fn unlink(self, name: &CStr) -> OsResult<()> {
        // SAFETY: as above.
        done(retried(|| unsafe {
            libc::unlinkat(self.0, name.as_ptr(), 0)
        }))
    }

    /// `unlinkat(2)` of a directory, which has to be empty.
    ///
    /// # Errors
    /// As above.
    pub fn rmdir(self, name: &CStr) -> OsResult<()> {
        let flags = libc::AT_REMOVEDIR;
        // SAFETY: as above.
        done(retried(|| unsafe {
            libc::unlinkat(self.0, name.as_ptr(), flags)
        }))
    }

    /// `utimensat(2)`: both times are now.
    ///
    /// # Errors
    /// As above.
    pub fn touch(self, name: &CStr) -> OsResult<()> {
        let (now, flags) = (std::ptr::null(), libc::AT_SYMLINK_NOFOLLOW);
        // SAFETY: no times mean the present one.
        done(retried(|| unsafe {
            libc::utimensat(self.0, name.as_ptr(), now, flags)
        }))
    }

    /// `faccessat(2)`: whether it may be read. By the system call itself: the C library makes
    /// two of it for some flags.
    ///
    /// # Errors
    /// As above.
    pub fn access(self, name: &CStr) -> OsResult<()> {
        let (number, name) = (libc::SYS_faccessat, name.as_ptr());
        // SAFETY: as above.
        done(retried(
            || unsafe { libc::syscall(number, self.0, name, libc::R_OK) } as i32,
        ))
    }

    /// `renameat(2)`; what has the other name is replaced.
    ///
    /// # Errors
    /// As above.
    pub fn rename(self, name: &CStr, to: Self, other: &CStr) -> OsResult<()> {
        let (name, other) = (name.as_ptr(), other.as_ptr());
        // SAFETY: as above.
        done(retried(|| unsafe {
            libc::renameat(self.0, name, to.0, other)
        }))
    }

    /// `renameat2(2)` to a name that nothing has; `EINVAL` or `ENOSYS` where a file system
    /// cannot tell (NFS).
    ///
    /// # Errors
    /// As above; `EEXIST` where something has the name.
    pub fn rename_to_free(self, name: &CStr, into: Self, new: &CStr) -> OsResult<()> {
        let (from, to) = (name.as_ptr(), new.as_ptr());
        let (number, flags) = (libc::SYS_renameat2, libc::RENAME_NOREPLACE);
        // SAFETY: as above.
        done(retried(
            || unsafe { libc::syscall(number, self.0, from, into.0, to, flags) } as i32,
        ))
    }

    /// Gives a file another name here that nothing has: by `renameat2(2)`, or, where a file
    /// system cannot, by a second name and the removal of the first.
    ///
    /// # Errors
    /// As above.
    pub fn rename_to_new(self, name: &CStr, new: &CStr) -> OsResult<()> {
        match self.rename_to_free(name, self, new) {
            Err(libc::EINVAL | libc::ENOSYS) => {
                let (from, to) = (name.as_ptr(), new.as_ptr());
                // SAFETY: as above.
                retried(|| unsafe { libc::linkat(self.0, from, self.0, to, 0) })?;
                self.unlink(name)
            }
            outcome => outcome,
        }
    }
}

/// None for a time before 1970.
fn nanoseconds(time: libc::statx_timestamp) -> Option<u64> {
    let since = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    u64::try_from(since).ok()
}

/// Drops what a call gives when it succeeds.
pub fn done(outcome: OsResult<i32>) -> OsResult<()> {
    outcome.map(|_| ())
}

/// What a system call returned, or its error number.
///
/// # Errors
/// The error number.
pub fn result(returned: i32) -> OsResult<i32> {
    if returned >= 0 {
        return Ok(returned);
    }
    let error = std::io::Error::last_os_error();
    Err(error.raw_os_error().unwrap_or(libc::EIO))
}

/// Makes a call until no signal interrupts it.
///
/// # Errors
/// As above.
#[inline]
pub fn retried(mut call: impl FnMut() -> i32) -> OsResult<i32> {
    loop {
        match result(call()) {
            Err(libc::EINTR) => {}
            outcome => return outcome,
        }
    }
}
