//! Linux native AIO by its system calls, without the library.
//!
//! Knows `io_setup`, `io_submit` and `io_getevents` (structures from
//! `linux/aio_abi.h`). The kernel does AIO truly asynchronously only with `O_DIRECT`;
//! on other files `io_submit` itself does the I/O, which `slat` then shows. Trims, which
//! AIO lacks, and flushes, where the file system lacks them in AIO, are done by system
//! calls in place.

use std::io;
use std::os::fd::RawFd;

use super::queue::CompletionQueue;
use super::{sleep_until, syscall, Done, Io, IoBackend, Op, OpenFile, Outcome, SyncKind};
use loadstone_base::clock::Clock;

const PREAD: u16 = 0;
const PWRITE: u16 = 1;
const FSYNC: u16 = 2;
const FDSYNC: u16 = 3;
/// The request says its priority.
const FLAG_PRIORITY: u32 = 2;

/// How long to wait for a completion when the kernel has no room for another request.
const NO_ROOM_NS: u64 = 100_000;

/// `struct iocb`, in its little-endian layout.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Request {
    data: u64,
    key: u32,
    rw_flags: u32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct IoEvent {
    data: u64,
    request: u64,
    result: i64,
    result2: i64,
}

/// The AIO backend.
#[derive(Debug)]
pub struct Libaio {
    clock: Clock,
    files: Vec<OpenFile>,
    context: libc::c_ulong,
    /// Pushed and not yet submitted, with the file of each; those before `submitted` are.
    requests: Vec<(Request, u32)>,
    pointers: Vec<*const Request>,
    events: Vec<IoEvent>,
    done: CompletionQueue,
    in_flight: u32,
}

impl Libaio {
    /// A context for up to `depth` I/Os in flight on `files`.
    ///
    /// # Errors
    /// Of `io_setup(2)`: `EAGAIN` when all contexts together would exceed
    /// `/proc/sys/fs/aio-max-nr`, `ENOSYS` when the kernel has no AIO.
    pub fn new(clock: Clock, files: &[OpenFile], depth: u32) -> io::Result<Self> {
        let depth = depth.max(1);
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes the context to the pointer, which it wants to find 0.
        let outcome = unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut context) };
        if outcome < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            clock,
            files: files.to_vec(),
            context,
            requests: Vec::with_capacity(depth as usize),
            pointers: Vec::with_capacity(depth as usize),
            events: vec![IoEvent::default(); depth as usize],
            done: CompletionQueue::new(depth),
            in_flight: 0,
        })
    }

    fn request(&self, io: &Io) -> Request {
        let opcode = match io.op {
            Op::Write => PWRITE,
            Op::Sync(SyncKind::Data) => FDSYNC,
            Op::Sync(SyncKind::File) => FSYNC,
            Op::Read | Op::Trim => PREAD,
        };
        let fd = self.files[io.file as usize].fd as u32;
        let mut request = Request {
            data: u64::from(io.slot),
            opcode,
            fd,
            ..Request::default()
        };
        if !io.op.is_sync() {
            request.buffer = io.buffer as u64;
            request.bytes = u64::from(io.len);
            request.offset = io.offset as i64;
            if io.priority != 0 {
                request.priority = io.priority as i16;
                request.flags = FLAG_PRIORITY;
            }
        }
        request
    }

    /// Hands everything over. What the kernel refuses completes with its error number.
    fn submit(&mut self, until_ns: u64) -> io::Result<()> {
        let mut pointers = std::mem::take(&mut self.pointers);
        pointers.clear();
        pointers.extend(self.requests.iter().map(|(request, _)| &raw const *request));
        let mut first = 0;
        let outcome = loop {
            if first == pointers.len() {
                break Ok(());
            }
            let rest = &pointers[first..];
            // SAFETY: the pointers lead to `requests`, which stay where they are; the
            // kernel copies them, and the slots' buffers live until they are reaped.
            let taken = unsafe {
                libc::syscall(libc::SYS_io_submit, self.context, rest.len(), rest.as_ptr())
            };
            if taken > 0 {
                first += taken as usize;
                self.in_flight += taken as u32;
                continue;
            }
            let error = io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(libc::EIO);
            match error {
                libc::EINTR => {}
                // Another user of the system's limit may have taken the room meanwhile.
                libc::EAGAIN if self.in_flight > 0 => {
                    let (before, soon) = (self.in_flight, self.clock.now_ns() + NO_ROOM_NS);
                    match self.get_events(1, soon) {
                        Err(error) => break Err(error),
                        // The rest stays for the next flush.
                        Ok(()) if self.in_flight == before && soon >= until_ns => break Ok(()),
                        Ok(()) => {}
                    }
                }
                error => {
                    self.refused(first, error);
                    first += 1;
                }
            }
        };
        pointers.clear();
        self.pointers = pointers;
        self.requests.drain(..first);
        outcome
    }

    /// The kernel does not take this request.
    #[cold]
    fn refused(&mut self, index: usize, error: i32) {
        let (request, file) = self.requests[index];
        let kind = match request.opcode {
            FSYNC => Some(SyncKind::File),
            FDSYNC => Some(SyncKind::Data),
            _ => None,
        };
        let outcome = match kind {
            Some(kind) if error == libc::EINVAL => syscall::sync(&self.files[file as usize], kind),
            _ => Outcome::failed(error),
        };
        self.done.push(request.data as u32, outcome);
    }

    /// Waits for `least` completions or until the time, and queues what there is.
    fn get_events(&mut self, least: u32, until_ns: u64) -> io::Result<()> {
        loop {
            let wait_ns = if least == 0 {
                0
            } else {
                until_ns.saturating_sub(self.clock.now_ns())
            };
            let timeout = libc::timespec {
                tv_sec: (wait_ns / 1_000_000_000).min(i64::MAX as u64) as _,
                tv_nsec: (wait_ns % 1_000_000_000) as libc::c_long,
            };
            // SAFETY: `events` has room for `len` events; the timeout is valid.
            let got = unsafe {
                libc::syscall(
                    libc::SYS_io_getevents,
                    self.context,
                    libc::c_long::from(least.min(self.in_flight)),
                    self.events.len() as libc::c_long,
                    self.events.as_mut_ptr(),
                    &raw const timeout,
                )
            };
            if got >= 0 {
                for event in &self.events[..got as usize] {
                    let outcome = Outcome::of(event.result as i32);
                    self.done.push(event.data as u32, outcome);
                }
                self.in_flight -= got as u32;
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

impl IoBackend for Libaio {
    #[inline]
    fn now_ns(&mut self) -> u64 {
        self.clock.now_ns()
    }

    #[inline]
    fn push(&mut self, io: Io) {
        if io.op == Op::Trim {
            let outcome = syscall::trim(&self.files[io.file as usize], io.offset, io.len);
            self.done.push(io.slot, outcome);
        } else {
            self.requests.push((self.request(&io), io.file));
        }
    }

    fn use_file(&mut self, file: u32, fd: RawFd) {
        self.files[file as usize].fd = fd;
    }

    fn flush(&mut self, wait_for: u32, until_ns: u64) -> io::Result<()> {
        if !self.requests.is_empty() {
            self.submit(until_ns)?;
        }
        let missing = wait_for.saturating_sub(self.done.len() as u32);
        if self.in_flight > 0 {
            self.get_events(missing, until_ns)
        } else {
            if wait_for == 0 && self.done.len() == 0 {
                sleep_until(&self.clock, until_ns);
            }
            Ok(())
        }
    }

    #[inline]
    fn reap(&mut self, max: u32, take: &mut impl FnMut(Done)) -> u32 {
        self.done.reap(max, take)
    }
}

impl Drop for Libaio {
    fn drop(&mut self) {
        // Destroying a context waits for its I/O: not for one that hangs.
        if self.in_flight == 0 {
            // SAFETY: the context is ours and idle.
            unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
        }
    }
}
