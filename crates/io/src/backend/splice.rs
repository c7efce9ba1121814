//! Transfers through a pipe with `splice(2)`, one I/O at a time, as fio's engine of that name.
//!
//! Knows one pipe per worker. It is empty between two I/Os: after an error it is made anew.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::special_engines::{retried, Call};
use super::{syscall, Io, Op, OpenFile, Outcome};

/// What a pipe holds unless it is told otherwise.
const PIPE_BYTES: usize = 65_536;

/// The files and the pipe.
#[derive(Debug)]
pub struct Splice {
    files: Vec<OpenFile>,
    pipe: Pipe,
}

#[derive(Debug)]
struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
}

impl Pipe {
    fn new() -> io::Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: the call fills two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both were just opened and belong to nobody else.
        let (out, into) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
        Ok(Self { out, into })
    }
}

impl Splice {
    /// For `files`.
    ///
    /// # Errors
    /// Of the pipe.
    pub fn new(files: &[OpenFile]) -> io::Result<Self> {
        Ok(Self {
            files: files.to_vec(),
            pipe: Pipe::new()?,
        })
    }

    /// Bytes from the file to the pipe, and from there to memory.
    fn read(&self, file: &OpenFile, io: &Io) -> Result<u32, i32> {
        let (mut offset, mut moved) = (io.offset as i64, 0);
        let (out, into) = (self.pipe.out.as_raw_fd(), self.pipe.into.as_raw_fd());
        let none = std::ptr::null_mut();
        while moved < io.len as usize {
            let most = (io.len as usize - moved).min(PIPE_BYTES);
            // SAFETY: the call reads and moves `offset`.
            let found = retried(|| unsafe {
                libc::splice(file.fd, &mut offset, into, none, most, libc::SPLICE_F_MORE)
            })?;
            if found == 0 {
                break;
            }
            let end = moved + found as usize;
            while moved < end {
                // SAFETY: the worker's slot owns `len` bytes at `buffer`.
                let taken = retried(|| unsafe {
                    libc::read(out, io.buffer.add(moved).cast(), end - moved)
                })?;
                if taken == 0 {
                    return Err(libc::EIO);
                }
                moved += taken as usize;
            }
        }
        Ok(moved as u32)
    }

    /// Pages of memory to the pipe, and from there to the file.
    fn write(&self, file: &OpenFile, io: &Io) -> Result<u32, i32> {
        let (mut offset, mut given) = (io.offset as i64, 0);
        let (out, into) = (self.pipe.out.as_raw_fd(), self.pipe.into.as_raw_fd());
        while given < io.len as usize {
            let part = libc::iovec {
                // SAFETY: the worker's slot owns `len` bytes at `buffer`.
                iov_base: unsafe { io.buffer.add(given) }.cast(),
                iov_len: (io.len as usize - given).min(PIPE_BYTES),
            };
            // SAFETY: the part is memory of the slot until the I/O is reaped.
            let lent =
                retried(|| unsafe { libc::vmsplice(into, &part, 1, libc::SPLICE_F_NONBLOCK) })?;
            let end = given + lent as usize;
            while given < end {
                let none = std::ptr::null_mut();
                // SAFETY: the call reads and moves `offset`.
                let taken = retried(|| unsafe {
                    libc::splice(out, none, file.fd, &mut offset, end - given, 0)
                })?;
                if taken == 0 {
                    return Err(libc::EIO);
                }
                given += taken as usize;
            }
        }
        Ok(given as u32)
    }
}

impl Call for Splice {
    fn call(&mut self, io: &Io) -> Outcome {
        let file = self.files[io.file as usize];
        let outcome = match io.op {
            Op::Read => self.read(&file, io),
            Op::Write => self.write(&file, io),
            Op::Trim => return syscall::trim(&file, io.offset, io.len),
            Op::Sync(kind) => return syscall::sync(&file, kind),
        };
        if outcome.is_err() {
            if let Ok(pipe) = Pipe::new() {
                self.pipe = pipe;
            }
        }
        outcome.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_plan::TargetKind;

    #[test]
    fn what_is_written_comes_back_in_any_size_and_a_read_past_the_end_is_short() {
        let path = std::env::temp_dir().join(format!("loadstone-splice-{}", std::process::id()));
        let file = std::fs::File::create_new(&path).unwrap();
        drop(file);
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        let view = OpenFile {
            fd: file.as_raw_fd(),
            direct: false,
            kind: TargetKind::File,
            size_bytes: 1 << 20,
        };
        let mut splice = Splice::new(&[view]).unwrap();
        let mut does = |op, offset, bytes: &mut [u8]| {
            splice.call(&Io {
                slot: 0,
                op,
                file: 0,
                offset,
                len: bytes.len() as u32,
                buffer: bytes.as_mut_ptr(),
                priority: 0,
            })
        };
        for len in [1usize, 4096, 65_536, 65_537, 300_000] {
            let mut written: Vec<u8> = (0..len).map(|i| (i * 7 % 251) as u8).collect();
            assert_eq!(
                does(Op::Write, 512, &mut written),
                Outcome::moved(len as u32)
            );
            let mut read = vec![0; len];
            assert_eq!(does(Op::Read, 512, &mut read), Outcome::moved(len as u32));
            assert_eq!(read, written);
        }
        let mut beyond = vec![0; 100_000];
        assert_eq!(does(Op::Read, 300_000, &mut beyond), Outcome::moved(512));
    }
}
