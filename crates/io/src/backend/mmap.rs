//! Copies through a shared mapping, one I/O at a time.
//!
//! Knows mapping, copying and `msync(2)`. Touching a page the kernel cannot supply (the
//! file was cut short, the device failed, the file system is full) raises SIGBUS; here
//! that becomes `EIO` for the one I/O. Queue depth means nothing to this backend.

use std::cell::Cell;
use std::io;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{compiler_fence, AtomicPtr, Ordering};
use std::sync::Once;

use super::queue::CompletionQueue;
use super::{sleep_until, syscall, Done, Io, IoBackend, Op, OpenFile, Outcome};
use loadstone_base::clock::Clock;

/// The mapping backend.
#[derive(Debug)]
pub struct Mmap {
    clock: Clock,
    files: Vec<Mapped>,
    done: CompletionQueue,
    page_bytes: usize,
    /// A mapping that could not be put back after a fault, reported by the next `flush`.
    broken: Option<io::Error>,
}

/// One mapped target.
#[derive(Debug)]
struct Mapped {
    file: OpenFile,
    start: *mut u8,
    len: usize,
    protection: libc::c_int,
}

impl Mmap {
    /// Maps all of each file.
    ///
    /// # Errors
    /// Of `mmap(2)`, with the number of the file: `ENODEV` for a target that cannot be
    /// mapped, `EACCES` for one opened write-only, `ENOMEM` without address space.
    pub fn new(clock: Clock, files: &[OpenFile], depth: u32) -> Result<Self, (usize, io::Error)> {
        install_handler();
        let map = |(index, file)| Mapped::new(file).map_err(|error| (index, error));
        let files = files
            .iter()
            .enumerate()
            .map(map)
            .collect::<Result<_, _>>()?;
        // SAFETY: asks for a number.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        Ok(Self {
            clock,
            files,
            done: CompletionQueue::new(depth),
            page_bytes,
            broken: None,
        })
    }

    fn perform(&mut self, io: &Io) -> Outcome {
        let mapped = &self.files[io.file as usize];
        match io.op {
            Op::Trim => syscall::trim(&mapped.file, io.offset, io.len),
            Op::Sync(_) => mapped.sync(),
            Op::Write if mapped.protection & libc::PROT_WRITE == 0 => Outcome::failed(libc::EBADF),
            Op::Read | Op::Write => self.copy(io),
        }
    }

    fn copy(&mut self, io: &Io) -> Outcome {
        let mapped = &self.files[io.file as usize];
        let len = io.len as usize;
        let Some(start) = mapped.address(io.offset, len) else {
            return Outcome::failed(libc::EINVAL);
        };
        let (from, to) = match io.op {
            Op::Read => (start.cast_const(), io.buffer),
            _ => (io.buffer.cast_const(), start),
        };
        // SAFETY: `len` bytes at `start` are inside the mapping (checked above) and the
        // slot owns as many at `buffer`; the two never overlap.
        let complete = unsafe { copy_guarded(from, to, len, start as usize) };
        if complete {
            return Outcome::moved(io.len);
        }
        if let Err(error) = mapped.map_again(io.offset, len, self.page_bytes) {
            self.broken = Some(error);
        }
        Outcome::failed(libc::EIO)
    }
}

impl Mapped {
    fn new(file: &OpenFile) -> io::Result<Self> {
        let len = usize::try_from(file.size_bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let protection = protection(file.fd)?;
        let shared = libc::MAP_SHARED | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, at a place the kernel chooses.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, protection, shared, file.fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            file: *file,
            start: start.cast(),
            len,
            protection,
        })
    }

    /// Where `len` bytes at `offset` are, when all of them are in the mapping.
    fn address(&self, offset: u64, len: usize) -> Option<*mut u8> {
        let offset = usize::try_from(offset).ok()?;
        let end = offset.checked_add(len)?;
        // SAFETY: `offset` is at most the length of the mapping.
        (end <= self.len).then(|| unsafe { self.start.add(offset) })
    }

    fn sync(&self) -> Outcome {
        // SAFETY: exactly the mapping.
        match unsafe { libc::msync(self.start.cast(), self.len, libc::MS_SYNC) } {
            0 => Outcome::moved(0),
            _ => {
                let error = io::Error::last_os_error().raw_os_error();
                Outcome::failed(error.unwrap_or(libc::EIO))
            }
        }
    }

    /// Replaces what the signal handler put under an I/O by the file again, so that the
    /// next I/O there meets the file and not anonymous memory.
    #[cold]
    fn map_again(&self, offset: u64, len: usize, page_bytes: usize) -> io::Result<()> {
        let first = offset as usize / page_bytes * page_bytes;
        let bytes = offset as usize + len - first;
        // SAFETY: the range is inside the mapping, page-aligned, and nobody else uses it.
        let outcome = unsafe {
            let (start, flags) = (self.start.add(first), libc::MAP_SHARED | libc::MAP_FIXED);
            let fd = self.file.fd;
            libc::mmap(
                start.cast(),
                bytes,
                self.protection,
                flags,
                fd,
                first as libc::off_t,
            )
        };
        if outcome == libc::MAP_FAILED {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping, which nobody uses any more.
        unsafe { libc::munmap(self.start.cast(), self.len) };
    }
}

/// The access a descriptor allows.
fn protection(fd: RawFd) -> io::Result<libc::c_int> {
    // SAFETY: no memory is involved.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    let writable = flags & libc::O_ACCMODE == libc::O_RDWR;
    Ok(libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 })
}

impl IoBackend for Mmap {
    const SYNCHRONOUS: bool = true;

    #[inline]
    fn now_ns(&mut self) -> u64 {
        self.clock.now_ns()
    }

    #[inline]
    fn push(&mut self, io: Io) {
        let outcome = self.perform(&io);
        self.done.push(io.slot, outcome);
    }

    #[inline]
    fn flush(&mut self, wait_for: u32, until_ns: u64) -> io::Result<()> {
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        if wait_for == 0 && self.done.len() == 0 {
            sleep_until(&self.clock, until_ns);
        }
        Ok(())
    }

    #[inline]
    fn reap(&mut self, max: u32, take: &mut impl FnMut(Done)) -> u32 {
        self.done.reap(max, take)
    }
}

thread_local! {
    /// Part of a mapping this thread is copying from or to; empty when it is not.
    static COPY_START: Cell<usize> = const { Cell::new(0) };
    static COPY_END: Cell<usize> = const { Cell::new(0) };
    /// A page of it could not be supplied.
    static COPY_FAULT: Cell<bool> = const { Cell::new(false) };
}

/// Copies; false when a page of the mapping, which begins at `mapped`, was missing.
///
/// # Safety
/// As for `copy_nonoverlapping`, but pages from `mapped` on may raise SIGBUS.
unsafe fn copy_guarded(from: *const u8, to: *mut u8, len: usize, mapped: usize) -> bool {
    COPY_FAULT.set(false);
    COPY_END.set(mapped + len);
    COPY_START.set(mapped);
    // The handler runs on this thread: the compiler's order is all that matters.
    compiler_fence(Ordering::SeqCst);
    // SAFETY: by the caller; a missing page is replaced by the handler.
    unsafe { ptr::copy_nonoverlapping(from, to, len) };
    compiler_fence(Ordering::SeqCst);
    COPY_END.set(0);
    !COPY_FAULT.get()
}

/// What SIGBUS did before.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

fn install_handler() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: both structures are valid when zeroed; the handler only does what a
        // signal handler may. The previous action is leaked on purpose: the handler may
        // need it at any time.
        unsafe {
            let previous: &mut libc::sigaction = Box::leak(Box::new(std::mem::zeroed()));
            libc::sigaction(libc::SIGBUS, ptr::null(), previous);
            PREVIOUS.store(previous, Ordering::Release);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_sigbus as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGBUS, &action, ptr::null_mut());
        }
    });
}

/// Puts an anonymous page under a faulting copy, so that the copy can go on to its end,
/// and notes it. Any other SIGBUS is given to whoever had it before, by putting the old
/// action back: the instruction then faults again.
extern "C" fn on_sigbus(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid structure, and SIGBUS fills in the address;
    // `sysconf`, `mmap` and `sigaction` here are plain calls without locks.
    unsafe {
        let address = (*info).si_addr() as usize;
        let errno = *libc::__errno_location();
        let page_bytes = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let page = address / page_bytes * page_bytes;
        let end = COPY_END.get();
        // The whole range counts from its page on: the kernel may report the page.
        let ours = end != 0 && address < end && page + page_bytes > COPY_START.get();
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let replaced = ours && {
            let at = page as *mut libc::c_void;
            libc::mmap(at, page_bytes, access, flags, -1, 0) != libc::MAP_FAILED
        };
        if replaced {
            COPY_FAULT.set(true);
        } else {
            libc::sigaction(
                libc::SIGBUS,
                PREVIOUS.load(Ordering::Acquire),
                ptr::null_mut(),
            );
        }
        *libc::__errno_location() = errno;
    }
}
