//! The name of a target in a held directory, and its removal.
//!
//! Knows what stood there when the target was opened; knows no target. Linux removes names and no files, so a name is
//! looked at before it goes. After the run it is first taken aside, under a name that nobody
//! knows, and looked at once more: another file that had taken its place gets it back. Not
//! closed: who writes to the unknown name meanwhile. An operation that is measured (`filedelete`)
//! only looks and removes: a file that takes the name between those two calls is lost.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use crate::directory::{Directory, FileStatus, OsResult};
use loadstone_plan::Identity;

/// A name, and what stood there when its target was opened.
#[derive(Debug, Clone)]
pub struct Name {
    /// None: where the process stands; the name is a path then.
    directory: Option<Arc<OwnedFd>>,
    name: CString,
    expected: Option<Identity>,
}

impl Name {
    /// A path, which is looked up anew each time: nothing can be removed by it.
    ///
    /// # Errors
    /// Of a path with a zero byte.
    pub fn unheld(path: &str) -> io::Result<Self> {
        Ok(Self {
            directory: None,
            name: CString::new(path)?,
            expected: None,
        })
    }

    /// The directory it is in.
    #[must_use]
    pub fn directory(&self) -> Directory {
        let held = self.directory.as_ref();
        held.map_or(Directory::WORKING, Directory::held)
    }

    /// Itself, in that directory.
    #[must_use]
    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// Removes the file that was opened, or an empty one, which operations by name make;
    /// `ESTALE` for any other.
    ///
    /// # Errors
    /// Error numbers of the look and of the removal.
    pub fn delete(&self) -> OsResult<()> {
        let may_go = |expected: Option<&Identity>, flags| -> OsResult<bool> {
            let found = self.look(&self.name, flags)?;
            Ok(stays(&found, expected).is_none())
        };
        // The number of a file is known without asking a server once more; its length is not.
        let opened = self.expected.is_some();
        let may_go =
            opened && may_go(self.expected.as_ref(), libc::AT_STATX_DONT_SYNC)? || may_go(None, 0)?;
        if !may_go {
            return Err(libc::ESTALE);
        }
        self.directory().unlink(&self.name)
    }

    /// Removes what was opened, a directory or an empty file where nothing was, and nothing else.
    ///
    /// # Errors
    /// Of the system; of another file, which keeps its name.
    pub fn remove(&self) -> io::Result<()> {
        let found = self.look(&self.name, 0).map_err(errno)?;
        self.judge(&found)?;
        if found.is_directory() {
            return self.directory().rmdir(&self.name).map_err(errno);
        }
        let aside = unknown_name()?;
        match self.directory().rename_to_new(&self.name, &aside) {
            // A file system with neither way to do it: what it can is to remove.
            Err(libc::EPERM | libc::EOPNOTSUPP | libc::ENOSYS | libc::EMLINK) => {
                return self.directory().unlink(&self.name).map_err(errno);
            }
            taken => taken.map_err(errno)?,
        }
        let judged = self.look(&aside, 0).map_err(errno);
        let judged = judged.and_then(|found| self.judge(&found));
        let Err(other) = judged else {
            return self.directory().unlink(&aside).map_err(errno);
        };
        match self.directory().rename_to_new(&aside, &self.name) {
            Ok(()) => Err(other),
            Err(number) => Err(io::Error::other(format!(
                "{other}; it is beside it now as {}: {}",
                aside.to_string_lossy(),
                errno(number)
            ))),
        }
    }

    /// A target may be named by a link to it; a file that the run made by its name is no link.
    fn look(&self, name: &CStr, flags: i32) -> OsResult<FileStatus> {
        let follows = match self.expected {
            Some(_) => 0,
            None => libc::AT_SYMLINK_NOFOLLOW,
        };
        self.directory().look(name, flags | follows)
    }

    fn judge(&self, found: &FileStatus) -> io::Result<()> {
        match stays(found, self.expected.as_ref()) {
            None => Ok(()),
            Some(what) => Err(io::Error::other(format!(
                "another file stands there now: {what}"
            ))),
        }
    }
}

/// Says why what stands at a name must stay; none where it may go. What operations by name make
/// is empty, and a directory is removed only when it is.
fn stays(found: &FileStatus, expected: Option<&Identity>) -> Option<String> {
    match expected {
        Some(expected) => found.difference(expected),
        None if found.is_directory() || (found.is_file() && found.size_bytes == 0) => None,
        None => Some(format!("it has {} bytes", found.size_bytes)),
    }
}

/// Directories that are held, each once.
#[derive(Debug, Default)]
pub struct Parents(BTreeMap<CString, Arc<OwnedFd>>);

impl Parents {
    /// Holds the directory that a path leads to now; `expected` is what was opened by the path.
    ///
    /// # Errors
    /// Of opening it; of a path that ends in no name.
    pub fn hold(&mut self, path: &str, expected: Option<&Identity>) -> io::Result<Name> {
        let path = Path::new(path);
        let parent = path.parent().filter(|parent| *parent != Path::new(""));
        let parent = CString::new(parent.unwrap_or(Path::new(".")).as_os_str().as_bytes())?;
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let directory = match self.0.get(&parent) {
            Some(held) => held.clone(),
            None => {
                let flags = libc::O_CLOEXEC | libc::O_DIRECTORY | libc::O_PATH;
                let opened = Directory::WORKING.open(&parent, flags, 0).map_err(errno)?;
                self.0.entry(parent).or_insert(Arc::new(opened)).clone()
            }
        };
        Ok(Name {
            directory: Some(directory),
            name: CString::new(name.as_bytes())?,
            expected: expected.copied(),
        })
    }
}

/// A name that nobody can guess.
fn unknown_name() -> io::Result<CString> {
    let mut drawn = [0u8; 16];
    // SAFETY: the kernel fills so many bytes.
    let got = unsafe { libc::getrandom(drawn.as_mut_ptr().cast(), drawn.len(), 0) };
    if usize::try_from(got) != Ok(drawn.len()) {
        return Err(io::Error::last_os_error());
    }
    let number = u128::from_ne_bytes(drawn);
    Ok(CString::new(format!(".loadstone-removed-{number:032x}"))?)
}

fn errno(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}
