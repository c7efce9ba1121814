//! Space instead of data: allocation and exchange of extents, as fio's `falloc` and `e4defrag`.
//!
//! Knows `fallocate(2)` and ext4's exchange of extents. Moves no bytes through memory.

use std::os::fd::RawFd;

use super::special_engines::{retried, Call};
use super::{syscall, Io, Op, OpenFile, Outcome};

/// Reads allocate and leave the size alone, writes allocate and may make the file longer,
/// trims punch holes.
#[derive(Debug)]
pub struct Falloc {
    files: Vec<OpenFile>,
}

impl Falloc {
    /// For `files`, all open for writing.
    #[must_use]
    pub fn new(files: &[OpenFile]) -> Self {
        Self {
            files: files.to_vec(),
        }
    }
}

impl Call for Falloc {
    fn call(&mut self, io: &Io) -> Outcome {
        let file = &self.files[io.file as usize];
        let mode = match io.op {
            Op::Read => libc::FALLOC_FL_KEEP_SIZE,
            Op::Write => 0,
            Op::Trim => libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
            Op::Sync(kind) => return syscall::sync(file, kind),
        };
        fallocate(file.fd, mode, io.offset, io.len)
            .map(|_| io.len)
            .into()
    }
}

/// Writes give the range the blocks a donor has there.
#[derive(Debug)]
pub struct MoveExtents {
    files: Vec<OpenFile>,
    donor: RawFd,
    /// The donor is given blocks before each exchange and loses them after it.
    in_place: bool,
    block_bytes: u64,
}

/// `struct move_extent` of ext4.
#[repr(C)]
struct MoveExtent {
    reserved: u32,
    donor_fd: u32,
    orig_start: u64,
    donor_start: u64,
    len: u64,
    moved_len: u64,
}

/// `_IOWR('f', 15, struct move_extent)` of ext4.
const EXT4_IOC_MOVE_EXT: libc::c_ulong = 0xC028_660F;

impl MoveExtents {
    /// For `files`; `donor` is open for writing.
    #[must_use]
    pub fn new(files: &[OpenFile], donor: RawFd, in_place: bool) -> Self {
        // SAFETY: a zeroed stat is valid and is filled by the call.
        let mut found: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        unsafe { libc::fstat(donor, &mut found) };
        Self {
            files: files.to_vec(),
            donor,
            in_place,
            block_bytes: u64::try_from(found.st_blksize).unwrap_or(4096).max(1),
        }
    }

    fn exchange(&self, file: &OpenFile, io: &Io) -> Result<u32, i32> {
        let (block, len) = (self.block_bytes, u64::from(io.len));
        let first = io.offset / block;
        let mut asked = MoveExtent {
            reserved: 0,
            donor_fd: self.donor as u32,
            orig_start: first,
            donor_start: first,
            len: (io.offset + len).div_ceil(block) - first,
            moved_len: 0,
        };
        let asked_at = std::ptr::from_mut(&mut asked);
        // SAFETY: the request reads and writes this structure.
        retried(|| unsafe { libc::ioctl(file.fd, EXT4_IOC_MOVE_EXT as _, asked_at) } as isize)?;
        match (asked.moved_len * block).min(len) {
            0 => Err(libc::EINVAL), // Beyond the end of the file.
            moved => Ok(moved as u32),
        }
    }
}

impl Call for MoveExtents {
    fn call(&mut self, io: &Io) -> Outcome {
        let file = &self.files[io.file as usize];
        match io.op {
            Op::Sync(kind) => return syscall::sync(file, kind),
            Op::Read | Op::Trim => return Outcome::failed(libc::EINVAL),
            Op::Write => {}
        }
        if self.in_place {
            if let Err(errno) = fallocate(self.donor, 0, io.offset, io.len) {
                return Outcome::failed(errno);
            }
        }
        let outcome = self.exchange(file, io);
        if self.in_place {
            // SAFETY: no memory is involved.
            let emptied = retried(|| unsafe { libc::ftruncate(self.donor, 0) } as isize);
            return outcome.and_then(|moved| emptied.map(|_| moved)).into();
        }
        outcome.into()
    }
}

fn fallocate(fd: RawFd, mode: i32, offset: u64, len: u32) -> Result<u32, i32> {
    let (offset, len) = (offset as i64, i64::from(len));
    // SAFETY: no memory is involved.
    retried(|| unsafe { libc::fallocate64(fd, mode, offset, len) } as isize)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::backend::SyncKind;
    use loadstone_plan::TargetKind;

    #[test]
    fn reads_keep_the_size_writes_extend_it_and_trims_give_space_back() {
        let path = std::env::temp_dir().join(format!("loadstone-falloc-{}", std::process::id()));
        let file = std::fs::File::create_new(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let view = OpenFile {
            fd: file.as_raw_fd(),
            direct: false,
            kind: TargetKind::File,
            size_bytes: 1 << 20,
        };
        let mut space = Falloc::new(&[view]);
        let mut does = |op, offset| {
            let io = Io {
                slot: 0,
                op,
                file: 0,
                offset,
                len: 65536,
                buffer: std::ptr::null_mut(),
                priority: 0,
            };
            let result = space.call(&io);
            let found = file.metadata().unwrap();
            (result, found.len(), found.blocks() * 512)
        };
        let first = does(Op::Read, 0);
        if first.0 == Outcome::failed(libc::EOPNOTSUPP) {
            eprintln!("skipped: this file system allocates nothing ahead");
            return;
        }
        assert_eq!(first, (Outcome::moved(65536), 0, 65536));
        assert_eq!(
            does(Op::Write, 65536),
            (Outcome::moved(65536), 131_072, 131_072)
        );
        assert_eq!(
            does(Op::Trim, 65536),
            (Outcome::moved(65536), 131_072, 65536)
        );
        assert_eq!(does(Op::Sync(SyncKind::File), 0).0, Outcome::moved(0));
    }
}
