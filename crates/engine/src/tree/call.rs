//! The system calls on files and directories by name.
//!
//! Knows paths below an anchor and error numbers. Knows no registry and no time. No name
//! leads out of the anchor: a file is opened without following any symbolic link on the
//! way where the kernel can do that (`openat2(2)`), and never its last one; names are the
//! tree's own, and what was found below the anchor before the run had no link among them.

use std::os::fd::RawFd;

use crate::plan::{OpenSync, Target};

/// A result, or an error number.
pub type Outcome<T> = Result<T, i32>;

/// `RESOLVE_NO_XDEV`, `RESOLVE_NO_MAGICLINKS`, `RESOLVE_NO_SYMLINKS` and `RESOLVE_BENEATH`
/// of `linux/openat2.h`.
const RESOLVE: u64 = 0x01 | 0x02 | 0x04 | 0x08;

/// `struct open_how` of `linux/openat2.h`.
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

/// The directory everything is below, and how files there are opened.
#[derive(Debug, Clone, Copy)]
pub struct Anchor {
    fd: RawFd,
    flags: i32,
    openat2: bool,
    /// What is cached of a file is dropped when it is opened.
    clears_cache: bool,
}

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To read.
    Read,
    /// To read and write.
    Write,
    /// To read and write, and it must not be there yet.
    Create,
}

impl Anchor {
    /// The anchor of an open target.
    #[must_use]
    pub fn new(fd: RawFd, target: &Target) -> Self {
        let direct = if target.direct { libc::O_DIRECT } else { 0 };
        let sync = match target.sync {
            OpenSync::None => 0,
            OpenSync::Sync => libc::O_SYNC,
            OpenSync::Dsync => libc::O_DSYNC,
        };
        let mut this = Self {
            fd,
            flags: direct | sync | libc::O_CLOEXEC | libc::O_NOFOLLOW,
            openat2: true,
            clears_cache: target.invalidate,
        };
        let probed = this.open2(
            c".".to_bytes_with_nul(),
            libc::O_RDONLY | libc::O_DIRECTORY,
            0,
        );
        match probed {
            Ok(fd) => drop(close(fd)),
            Err(_) => this.openat2 = false,
        }
        this
    }

    /// Its descriptor.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.fd
    }

    /// Opens a file, and drops what is cached of it where that is asked for.
    ///
    /// # Errors
    /// The error number of `openat(2)` or `openat2(2)`, or of what the dropping took; the
    /// file is not open then.
    pub fn open(&self, path: &[u8], access: Access) -> Outcome<RawFd> {
        let fd = self.open_as_it_is(path, access)?;
        if self.clears_cache && access != Access::Create {
            if let Err(errno) = drop_cache(fd) {
                let _ = close(fd);
                return Err(errno);
            }
        }
        Ok(fd)
    }

    fn open_as_it_is(&self, path: &[u8], access: Access) -> Outcome<RawFd> {
        let (flags, mode) = match access {
            Access::Read => (libc::O_RDONLY, 0),
            Access::Write => (libc::O_RDWR, 0),
            Access::Create => (libc::O_RDWR | libc::O_CREAT | libc::O_EXCL, 0o644),
        };
        let flags = flags | self.flags;
        if self.openat2 {
            return self.open2(path, flags, mode);
        }
        // SAFETY: the path ends with a zero byte.
        retried(|| unsafe { libc::openat(self.fd, text(path), flags, mode) })
    }

    fn open2(&self, path: &[u8], flags: i32, mode: libc::mode_t) -> Outcome<RawFd> {
        let how = OpenHow {
            flags: flags as u64,
            mode: u64::from(mode),
            resolve: RESOLVE,
        };
        let (how, bytes) = (std::ptr::from_ref(&how), size_of::<OpenHow>());
        let path = text(path);
        // SAFETY: the path ends with a zero byte; the kernel reads so many bytes at `how`.
        retried(|| unsafe { libc::syscall(libc::SYS_openat2, self.fd, path, how, bytes) } as i32)
    }

    /// `mkdirat(2)`.
    ///
    /// # Errors
    /// Its error number, as of all that follow.
    pub fn mkdir(&self, path: &[u8]) -> Outcome<()> {
        // SAFETY: the path ends with a zero byte, here and below.
        done(retried(|| unsafe {
            libc::mkdirat(self.fd, text(path), 0o755)
        }))
    }

    /// `unlinkat(2)` of a directory.
    ///
    /// # Errors
    /// As above.
    pub fn rmdir(&self, path: &[u8]) -> Outcome<()> {
        let flags = libc::AT_REMOVEDIR;
        // SAFETY: as above.
        done(retried(|| unsafe {
            libc::unlinkat(self.fd, text(path), flags)
        }))
    }

    /// `unlinkat(2)` of a file.
    ///
    /// # Errors
    /// As above.
    pub fn delete(&self, path: &[u8]) -> Outcome<()> {
        // SAFETY: as above.
        done(retried(|| unsafe {
            libc::unlinkat(self.fd, text(path), 0)
        }))
    }

    /// `fstatat(2)`: the size of a regular file.
    ///
    /// # Errors
    /// As above; `ELOOP` and the like when it is something else.
    pub fn getattr(&self, path: &[u8]) -> Outcome<u64> {
        // SAFETY: a zeroed stat is valid and is filled by the call.
        let mut found: libc::stat = unsafe { std::mem::zeroed() };
        let flags = libc::AT_SYMLINK_NOFOLLOW;
        // SAFETY: as above.
        retried(|| unsafe { libc::fstatat(self.fd, text(path), &mut found, flags) })?;
        match found.st_mode & libc::S_IFMT {
            libc::S_IFREG => Ok(found.st_size as u64),
            libc::S_IFLNK => Err(libc::ELOOP),
            libc::S_IFDIR => Err(libc::EISDIR),
            _ => Err(libc::EINVAL),
        }
    }

    /// `utimensat(2)`: both times are now.
    ///
    /// # Errors
    /// As above.
    pub fn setattr(&self, path: &[u8]) -> Outcome<()> {
        let flags = libc::AT_SYMLINK_NOFOLLOW;
        let now = std::ptr::null();
        // SAFETY: as above; no times mean the present one.
        done(retried(|| unsafe {
            libc::utimensat(self.fd, text(path), now, flags)
        }))
    }

    /// `faccessat(2)`: whether it may be read. By the system call itself: the C library
    /// makes two of it for some flags.
    ///
    /// # Errors
    /// As above.
    pub fn access(&self, path: &[u8]) -> Outcome<()> {
        let path = text(path);
        // SAFETY: as above.
        let call = || unsafe { libc::syscall(libc::SYS_faccessat, self.fd, path, libc::R_OK) };
        done(retried(|| call() as i32))
    }

    /// `renameat(2)` to another anchor; what is there is replaced.
    ///
    /// # Errors
    /// As above.
    pub fn rename(&self, path: &[u8], to: &Self, to_path: &[u8]) -> Outcome<()> {
        let (from_path, to_path) = (text(path), text(to_path));
        // SAFETY: as above.
        done(retried(|| unsafe {
            libc::renameat(self.fd, from_path, to.fd, to_path)
        }))
    }
}

/// `close(2)`. Not made again when interrupted: the descriptor is gone.
///
/// # Errors
/// As above.
pub fn close(fd: RawFd) -> Outcome<()> {
    // SAFETY: the caller owns the descriptor and uses it no more.
    done(result(unsafe { libc::close(fd) }))
}

/// `fsync(2)`.
///
/// # Errors
/// As above.
pub fn flush(fd: RawFd) -> Outcome<()> {
    // SAFETY: the caller owns the descriptor.
    done(retried(|| unsafe { libc::fsync(fd) }))
}

/// Drops the cached pages of a file. Dirty ones are not dropped, so they are written first.
fn drop_cache(fd: RawFd) -> Outcome<()> {
    // SAFETY: the caller owns the descriptor, here and below.
    done(retried(|| unsafe { libc::fdatasync(fd) }))?;
    // SAFETY: as above; it returns its error.
    match unsafe { libc::posix_fadvise(fd, 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        errno => Err(errno),
    }
}

fn text(path: &[u8]) -> *const libc::c_char {
    debug_assert_eq!(path.last(), Some(&0));
    path.as_ptr().cast()
}

fn done(outcome: Outcome<i32>) -> Outcome<()> {
    outcome.map(|_| ())
}

fn result(returned: i32) -> Outcome<i32> {
    if returned >= 0 {
        return Ok(returned);
    }
    let error = std::io::Error::last_os_error();
    Err(error.raw_os_error().unwrap_or(libc::EIO))
}

/// Makes a call until no signal interrupts it.
#[inline]
fn retried(mut call: impl FnMut() -> i32) -> Outcome<i32> {
    loop {
        match result(call()) {
            Err(libc::EINTR) => {}
            outcome => return outcome,
        }
    }
}
