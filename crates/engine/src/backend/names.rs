//! Operations on the targets by their names, as fio's `filecreate`, `dirdelete` and the like.
//!
//! Knows which system call each operation is. Reads and writes are the same here: an I/O is
//! the operation on its target, whatever bytes it stands for. A file that is made is closed
//! again within the I/O.

use std::ffi::CString;
use std::mem::MaybeUninit;

use super::special_engines::{retried, Call};
use super::{Io, Outcome};
use crate::plan::NameOperation;

/// The operation, and the names of the worker's targets.
#[derive(Debug)]
pub struct Names {
    operation: NameOperation,
    paths: Vec<CString>,
}

impl Names {
    /// One of `paths`, in the order in which [`Io::file`] counts them.
    #[must_use]
    pub fn new(operation: NameOperation, paths: Vec<CString>) -> Self {
        Self { operation, paths }
    }
}

impl Call for Names {
    fn call(&mut self, io: &Io) -> Outcome {
        if io.op.is_sync() {
            return Outcome::moved(0); // There is nothing to be written back.
        }
        let path = self.paths[io.file as usize].as_ptr();
        // SAFETY: the path is a text with its end; what is filled is as large as the kernel
        // fills it.
        let result = retried(|| unsafe {
            match self.operation {
                NameOperation::Create => {
                    let flags = libc::O_CREAT | libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW;
                    libc::open(path, flags, 0o600) as isize
                }
                NameOperation::Stat => {
                    libc::stat(path, MaybeUninit::uninit().as_mut_ptr()) as isize
                }
                NameOperation::Lstat => {
                    libc::lstat(path, MaybeUninit::uninit().as_mut_ptr()) as isize
                }
                NameOperation::Statx => {
                    let mut found = MaybeUninit::uninit();
                    let found = found.as_mut_ptr();
                    libc::statx(libc::AT_FDCWD, path, 0, libc::STATX_ALL, found) as isize
                }
                NameOperation::Delete => libc::unlink(path) as isize,
                NameOperation::Mkdir => libc::mkdir(path, 0o700) as isize,
                NameOperation::Rmdir => libc::rmdir(path) as isize,
            }
        });
        let opened = match result {
            Ok(opened) => opened,
            Err(errno) => return Outcome::failed(errno),
        };
        if self.operation == NameOperation::Create {
            // SAFETY: the descriptor was just opened and nobody else has it.
            unsafe { libc::close(opened as i32) };
        }
        Outcome::moved(io.len)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Op;
    use super::*;

    #[test]
    fn each_operation_does_what_it_says() {
        use std::os::unix::ffi::OsStrExt;

        let place = std::env::temp_dir().join(format!("loadstone-names-{}", std::process::id()));
        let name = CString::new(place.as_os_str().as_bytes()).unwrap();
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
}
