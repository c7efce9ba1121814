//! Preparation of files: created, allocated, really written.
//!
//! Knows the Plan's `layout`. Knows nothing of the load that follows. Existing bytes are
//! kept: only what lies beyond the present end is written. Writes to open targets only,
//! whose identity was checked: never to a name.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use loadstone_base::rng::Rng;
use loadstone_base::run_error::RunError;
use loadstone_io::target::OpenTarget;
use loadstone_plan::{Fallocate, Layout, Target};
use loadstone_worker::events::Event;

/// Bytes written at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// Time between two reports of progress.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// Fills one open target as its Plan says. `report` is called with progress and says
/// whether to go on. Gives false when it was stopped.
///
/// # Errors
/// [`RunError::Target`].
pub fn prepare(
    index: u32,
    target: &Target,
    open: &OpenTarget,
    report: &mut dyn FnMut(Event) -> bool,
) -> Result<bool, RunError> {
    let (Some(layout), Some(file)) = (&target.layout, open.file()) else {
        return Ok(true);
    };
    fill(index, file, layout, report)
        .map_err(|error| RunError::target(&target.path, "cannot be laid out", &error))
}

/// The same file once more, to be written through the page cache without `O_DIRECT` or
/// `O_SYNC`, even when the load only reads it. Goes by the descriptor, not by the name.
fn writable(file: &File) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_CLOEXEC)
        .open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn fill(
    index: u32,
    file: &File,
    layout: &Layout,
    report: &mut dyn FnMut(Event) -> bool,
) -> io::Result<bool> {
    let had = file.metadata()?.len();
    let whole = if had > layout.size_bytes && layout.truncate {
        writable(file)?.set_len(layout.size_bytes)?;
        true
    } else if had < layout.size_bytes {
        let file = &writable(file)?;
        allocate(file, layout)?;
        if layout.write {
            write_rest(index, file, layout, had, report)?
        } else {
            file.set_len(layout.size_bytes)?;
            true
        }
    } else {
        true
    };
    if layout.fsync && whole {
        file.sync_all()?;
    }
    Ok(whole)
}

fn allocate(file: &File, layout: &Layout) -> io::Result<()> {
    let bytes = layout.size_bytes as i64;
    let fd = file.as_raw_fd();
    let errno = match layout.fallocate {
        Fallocate::None => 0,
        Fallocate::Truncate => return file.set_len(layout.size_bytes),
        // SAFETY: the descriptor is open.
        Fallocate::Posix => unsafe { libc::posix_fallocate(fd, 0, bytes) },
        // SAFETY: the descriptor is open.
        Fallocate::Native => errno_of(unsafe { libc::fallocate(fd, 0, 0, bytes) }),
        Fallocate::Keep => {
            // SAFETY: the descriptor is open.
            errno_of(unsafe { libc::fallocate(fd, libc::FALLOC_FL_KEEP_SIZE, 0, bytes) })
        }
    };
    match errno {
        // A file system without allocation is no reason not to write.
        0 | libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

fn errno_of(result: i32) -> i32 {
    if result == 0 {
        0
    } else {
        io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EIO)
    }
}

fn write_rest(
    index: u32,
    file: &File,
    layout: &Layout,
    had: u64,
    report: &mut dyn FnMut(Event) -> bool,
) -> io::Result<bool> {
    let mut random = Rng::new(layout.seed);
    let mut chunk = vec![0u8; CHUNK_BYTES];
    let total_bytes = layout.size_bytes - had;
    let mut reported = Instant::now();
    let mut offset = had;
    while offset < layout.size_bytes {
        for word in chunk.chunks_exact_mut(8) {
            word.copy_from_slice(&random.next_u64().to_le_bytes());
        }
        let bytes = (layout.size_bytes - offset).min(CHUNK_BYTES as u64) as usize;
        file.write_all_at(&chunk[..bytes], offset)?;
        offset += bytes as u64;
        if reported.elapsed() >= REPORT_EVERY || offset == layout.size_bytes {
            reported = Instant::now();
            let done_bytes = offset - had;
            if !report(Event::Layout {
                target: index,
                done_bytes,
                total_bytes,
            }) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
