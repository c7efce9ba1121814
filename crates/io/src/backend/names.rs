//! Operations on the targets by their names, as fio's `filecreate`, `dirdelete` and the like.
//!
//! Knows which system call each operation is. Reads and writes are the same here: an I/O is
//! the operation on its target, whatever bytes it stands for. A file that is made is closed
//! again within the I/O.

use std::mem::MaybeUninit;

use super::special_engines::Call;
use super::{Io, Outcome};
use crate::directory::{done, retried};
use crate::name::Name;
use loadstone_plan::NameOperation;

/// The operation, and the names of the worker's targets.
#[derive(Debug)]
pub struct Names {
    operation: NameOperation,
    names: Vec<Name>,
}

impl Names {
    /// One of `names`, in the order in which [`Io::file`] counts them.
    #[must_use]
    pub fn new(operation: NameOperation, names: Vec<Name>) -> Self {
        Self { operation, names }
    }
}

impl Call for Names {
    fn call(&mut self, io: &Io) -> Outcome {
        if io.op.is_sync() {
            return Outcome::moved(0); // There is nothing to be written back.
        }
        let at = &self.names[io.file as usize];
        let (directory, name) = (at.directory(), at.name());
        let (here, text) = (directory.number(), name.as_ptr());
        let stat = |flags| {
            // SAFETY: a name is a text with its end; what is filled is as large as the kernel fills it.
            done(retried(|| unsafe {
                libc::fstatat(here, text, MaybeUninit::uninit().as_mut_ptr(), flags)
            }))
        };
        let outcome = match self.operation {
            NameOperation::Create => {
                let flags = libc::O_CREAT | libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW;
                directory.open(name, flags, 0o600).map(drop)
            }
            NameOperation::Stat => stat(0),
            NameOperation::Lstat => stat(libc::AT_SYMLINK_NOFOLLOW),
            NameOperation::Statx => {
                let mut found = MaybeUninit::uninit();
                let found = found.as_mut_ptr();
                // SAFETY: as above.
                done(retried(|| unsafe {
                    libc::statx(here, text, 0, libc::STATX_ALL, found)
                }))
            }
            NameOperation::Delete => at.delete(),
            NameOperation::Mkdir => directory.mkdir(name, 0o700),
            NameOperation::Rmdir => directory.rmdir(name),
        };
        match outcome {
            Ok(()) => Outcome::moved(io.len),
            Err(errno) => Outcome::failed(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Op;
    use super::*;
    use crate::name::Parents;

    #[test]
    fn each_operation_does_what_it_says() {
        let place = std::env::temp_dir().join(format!("loadstone-names-{}", std::process::id()));
        let name = Parents::default()
            .hold(place.to_str().unwrap(), None)
            .unwrap();
        let io = Io {
            slot: 0,
            op: Op::Write,
            file: 0,
            offset: 0,
            len: 4096,
            buffer: std::ptr::null_mut(),
            priority: 0,
        };
        let does = |operation| Names::new(operation, vec![name.clone()]).call(&io);
        assert_eq!(does(NameOperation::Stat), Outcome::failed(libc::ENOENT));
        assert_eq!(does(NameOperation::Create), Outcome::moved(4096));
        assert!(place.is_file());
        for looks in [
            NameOperation::Stat,
            NameOperation::Lstat,
            NameOperation::Statx,
        ] {
            assert_eq!(does(looks), Outcome::moved(4096));
        }
        assert_eq!(does(NameOperation::Mkdir), Outcome::failed(libc::EEXIST));
        assert_eq!(does(NameOperation::Rmdir), Outcome::failed(libc::ENOTDIR));
        assert_eq!(does(NameOperation::Delete), Outcome::moved(4096));
        assert!(!place.exists());
        assert_eq!(does(NameOperation::Mkdir), Outcome::moved(4096));
        assert!(place.is_dir());
        assert_eq!(does(NameOperation::Rmdir), Outcome::moved(4096));
        assert!(!place.exists());
    }

    #[test]
    fn only_what_was_opened_or_is_empty_is_deleted_and_only_in_the_directory_that_is_held() {
        use std::fs;
        use std::os::unix::fs::symlink;

        use crate::directory::FileStatus;

        let place = std::env::temp_dir().join(format!("loadstone-deleted-{}", std::process::id()));
        let (here, there) = (place.join("here"), place.join("there"));
        for directory in [&here, &there] {
            fs::create_dir_all(directory).unwrap();
            fs::write(directory.join("f"), "somebody's").unwrap();
        }
        let ours = FileStatus::of(&fs::File::open(here.join("f")).unwrap()).unwrap();
        let path = here.join("f");
        let name = Parents::default()
            .hold(path.to_str().unwrap(), Some(&ours.identity))
            .unwrap();
        // Another file stands in the directory that took the place of the one that is held.
        fs::rename(&here, place.join("away")).unwrap();
        symlink(&there, &here).unwrap();
        assert_eq!(name.delete(), Ok(()));
        assert!(there.join("f").exists() && !place.join("away/f").exists());
        assert_eq!(name.delete(), Err(libc::ENOENT));
        // What came under the name since stays, unless there is nothing in it.
        fs::rename(there.join("f"), place.join("away/f")).unwrap();
        assert_eq!(name.delete(), Err(libc::ESTALE));
        assert_eq!(fs::read(place.join("away/f")).unwrap(), b"somebody's");
        fs::write(place.join("away/f"), "").unwrap();
        assert_eq!(name.delete(), Ok(()));
        fs::remove_dir_all(place).unwrap();
    }
}
