//! A raw io_uring: set-up, registration, the two shared queues and `io_uring_enter(2)`.
//!
//! Knows the kernel's interface (`include/uapi/linux/io_uring.h`) and nothing of I/O
//! patterns. Entries are written in place. One thread creates and uses a ring.

use std::io;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{fence, AtomicU32, Ordering};

pub mod abi;

use super::raw;
use abi::{Cqe, Params, Sqe};

/// Waits as long as it takes.
pub const NO_TIMEOUT: u64 = u64::MAX;

/// A submission entry, which decides the sizes of a ring's entries.
///
/// # Safety
/// With [`SubmissionEntry::SETUP`] the kernel's entries have the sizes of the two types. They are integers
/// only; a submission begins as an [`Sqe`] does and a completion as a [`Cqe`].
pub unsafe trait SubmissionEntry: Copy + std::fmt::Debug {
    /// Set-up flags that ask for entries of these sizes.
    const SETUP: u32;
    /// The completion entry.
    type Completion: Copy + std::fmt::Debug;
}

// SAFETY: as long as a ring's entries are without any flag.
unsafe impl SubmissionEntry for Sqe {
    const SETUP: u32 = 0;
    type Completion = Cqe;
}

/// What the entry of a completion had with it.
#[inline(always)]
pub fn user_data<E: SubmissionEntry>(completion: &E::Completion) -> u64 {
    // SAFETY: every completion begins as this one.
    unsafe { (*(&raw const *completion).cast::<Cqe>()).user_data }
}

/// What a ring is asked to be.
#[derive(Debug, Clone, Copy)]
pub struct RingOptions {
    /// Submission entries (rounded up to a power of two by the kernel).
    pub sq_entries: u32,
    /// Completion entries.
    pub cq_entries: u32,
    /// `IORING_SETUP_IOPOLL`.
    pub iopoll: bool,
    /// `IORING_SETUP_SQPOLL`.
    pub sqpoll: bool,
}

/// A mapped ring.
#[derive(Debug)]
pub struct Ring<E: SubmissionEntry = Sqe> {
    fd: RawFd,
    enter_fd: RawFd,
    enter_flags: u32,
    setup_flags: u32,
    features: u32,
    sq: Submission<E>,
    cq: Completion<E::Completion>,
    maps: [(*mut libc::c_void, usize); 2],
}

#[derive(Debug)]
struct Submission<E> {
    head: *const AtomicU32,
    tail: *const AtomicU32,
    flags: *const AtomicU32,
    mask: u32,
    entries: u32,
    sqes: *mut E,
    /// Our tail; published before every enter.
    local_tail: u32,
    /// Tail up to which the kernel has taken entries.
    submitted: u32,
}

#[derive(Debug)]
struct Completion<C> {
    head: *const AtomicU32,
    tail: *const AtomicU32,
    mask: u32,
    cqes: *const C,
    local_head: u32,
}

// SAFETY: a ring is moved to its worker's thread before its first use at most; the
// pointers are to mappings it owns.
unsafe impl<E: SubmissionEntry> Send for Ring<E> {}

/// Set-up flags in the order they are tried: everything, then less and less.
fn flag_ladder(options: &RingOptions, entry: u32) -> Vec<u32> {
    let mut base = entry | abi::SETUP_CQSIZE | abi::SETUP_CLAMP;
    if options.iopoll {
        base |= abi::SETUP_IOPOLL;
    }
    if options.sqpoll {
        // Task-run flags mean nothing where a kernel thread submits.
        base |= abi::SETUP_SQPOLL;
        return vec![
            base | abi::SETUP_SINGLE_ISSUER | abi::SETUP_NO_SQARRAY,
            base,
        ];
    }
    let deferred = base
        | abi::SETUP_SINGLE_ISSUER
        | abi::SETUP_DEFER_TASKRUN
        | abi::SETUP_COOP_TASKRUN
        | abi::SETUP_TASKRUN_FLAG;
    vec![
        deferred | abi::SETUP_NO_SQARRAY,
        deferred,
        base | abi::SETUP_COOP_TASKRUN | abi::SETUP_TASKRUN_FLAG,
        base,
    ]
}

impl<E: SubmissionEntry> Ring<E> {
    /// Sets up and maps a ring with the best flags the kernel takes.
    ///
    /// # Errors
    /// The error of `io_uring_setup(2)` or of the mappings.
    pub fn new(options: &RingOptions) -> io::Result<Self> {
        let mut last = io::Error::from_raw_os_error(libc::ENOSYS);
        for flags in flag_ladder(options, E::SETUP) {
            match Self::with_flags(options, flags) {
                Ok(ring) => return Ok(ring),
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    fn with_flags(options: &RingOptions, flags: u32) -> io::Result<Self> {
        let mut params = Params {
            cq_entries: options.cq_entries.max(2),
            flags,
            ..Params::default()
        };
        params.sq_thread_idle = 50;
        let entries = options.sq_entries.max(1);
        // SAFETY: `params` is a valid io_uring_params for the kernel to fill.
        let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, &mut params) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = fd as RawFd;
        Self::map(fd, &params).inspect_err(|_| {
            // SAFETY: the descriptor is ours and unused from here on.
            unsafe { libc::close(fd) };
        })
    }

    fn map(fd: RawFd, params: &Params) -> io::Result<Self> {
        if params.features & abi::FEAT_SINGLE_MMAP == 0 || params.features & abi::FEAT_EXT_ARG == 0
        {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        let sq_bytes = params.sq_off.array as usize + params.sq_entries as usize * 4;
        let cq_bytes =
            params.cq_off.cqes as usize + params.cq_entries as usize * size_of::<E::Completion>();
        let ring_bytes = sq_bytes.max(cq_bytes);
        let sqe_bytes = params.sq_entries as usize * size_of::<E>();
        let rings = map_ring(fd, ring_bytes, abi::OFF_SQ_RING)?;
        let sqes = map_ring(fd, sqe_bytes, abi::OFF_SQES)?;
        let at = |offset: u32| rings.cast::<u8>().wrapping_add(offset as usize);
        if params.flags & abi::SETUP_NO_SQARRAY == 0 {
            let array = at(params.sq_off.array).cast::<u32>();
            for index in 0..params.sq_entries {
                // SAFETY: the array has sq_entries elements inside the mapping.
                unsafe { array.add(index as usize).write(index) };
            }
        }
        // SAFETY: the kernel wrote both masks into the mapping before it returned.
        let mask = |offset: u32| unsafe { at(offset).cast::<u32>().read() };
        Ok(Self {
            fd,
            enter_fd: fd,
            enter_flags: 0,
            setup_flags: params.flags,
            features: params.features,
            sq: Submission {
                head: at(params.sq_off.head).cast(),
                tail: at(params.sq_off.tail).cast(),
                flags: at(params.sq_off.flags).cast(),
                mask: mask(params.sq_off.ring_mask),
                entries: params.sq_entries,
                sqes: sqes.cast(),
                local_tail: 0,
                submitted: 0,
            },
            cq: Completion {
                head: at(params.cq_off.head).cast(),
                tail: at(params.cq_off.tail).cast(),
                mask: mask(params.cq_off.ring_mask),
                cqes: at(params.cq_off.cqes).cast(),
                local_head: 0,
            },
            maps: [(rings, ring_bytes), (sqes, sqe_bytes)],
        })
    }

    /// Flags the kernel accepted.
    #[must_use]
    pub fn setup_flags(&self) -> u32 {
        self.setup_flags
    }

    /// `IORING_FEAT_*` bits.
    #[must_use]
    pub fn features(&self) -> u32 {
        self.features
    }

    /// The operations the kernel knows, by number.
    #[must_use]
    pub fn operations(&self) -> Vec<u8> {
        let mut probe = abi::OpcodeProbe::default();
        let argument = (&raw mut probe).cast::<libc::c_void>();
        if self
            .register(abi::REGISTER_PROBE, argument, abi::PROBE_OPS as u32)
            .is_err()
        {
            return Vec::new();
        }
        probe
            .ops
            .iter()
            .take(usize::from(probe.ops_len))
            .filter(|op| op.flags & 1 != 0)
            .map(|op| op.op)
            .collect()
    }

    /// Registers the ring's own descriptor, which saves a look-up per enter. Failure
    /// changes nothing.
    pub fn register_self(&mut self) {
        let mut update = abi::RsrcUpdate {
            offset: u32::MAX,
            resv: 0,
            data: self.fd as u64,
        };
        if self
            .register(abi::REGISTER_RING_FDS, (&raw mut update).cast(), 1)
            .is_ok()
        {
            self.enter_fd = update.offset as RawFd;
            self.enter_flags |= abi::ENTER_REGISTERED_RING;
        }
    }

    /// Registers files; entries then name them by index with [`abi::SQE_FIXED_FILE`].
    ///
    /// # Errors
    /// The error of `io_uring_register(2)`.
    pub fn register_files(&self, fds: &[RawFd]) -> io::Result<()> {
        self.register(
            abi::REGISTER_FILES,
            fds.as_ptr().cast_mut().cast(),
            fds.len() as u32,
        )
    }

    /// Registers (and thereby pins) buffers.
    ///
    /// # Errors
    /// The error of `io_uring_register(2)`: `ENOMEM` when over `RLIMIT_MEMLOCK`.
    pub fn register_buffers(&self, buffers: &[libc::iovec]) -> io::Result<()> {
        self.register(
            abi::REGISTER_BUFFERS,
            buffers.as_ptr().cast_mut().cast(),
            buffers.len() as u32,
        )
    }

    fn register(&self, opcode: u32, argument: *mut libc::c_void, count: u32) -> io::Result<()> {
        // SAFETY: every caller passes an argument of the layout its opcode asks for.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_uring_register,
                self.fd,
                opcode,
                argument,
                count,
            )
        };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    /// Number of entries written and not yet taken by the kernel.
    #[inline]
    #[must_use]
    pub fn pending(&self) -> u32 {
        self.sq.local_tail.wrapping_sub(self.sq.submitted)
    }

    /// True when no entry can be written before the next [`Ring::enter`].
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        if self.setup_flags & abi::SETUP_SQPOLL != 0 {
            // SAFETY: points into the ring's mapping.
            let head = unsafe { (*self.sq.head).load(Ordering::Acquire) };
            return self.sq.local_tail.wrapping_sub(head) >= self.sq.entries;
        }
        self.pending() >= self.sq.entries
    }

    /// Writes one entry. The ring must not be full.
    #[inline]
    pub fn write(&mut self, entry: E) {
        let index = (self.sq.local_tail & self.sq.mask) as usize;
        // SAFETY: the index is masked to the entries mapped; the kernel does not read an
        // entry before the tail is published.
        unsafe { self.sq.sqes.add(index).write(entry) };
        self.sq.local_tail = self.sq.local_tail.wrapping_add(1);
    }

    /// Writes an entry that is over after `time`, which the kernel reads when it takes it. The
    /// ring must not be full.
    pub fn write_timeout(&mut self, time: &abi::Timespec, user_data: u64) {
        let index = (self.sq.local_tail & self.sq.mask) as usize;
        let timeout = Sqe {
            opcode: abi::OP_TIMEOUT,
            fd: -1,
            addr: (&raw const *time) as u64,
            len: 1,
            user_data,
            ..Sqe::default()
        };
        // SAFETY: as in `write`; zeros are an entry, and every entry begins as this one.
        unsafe {
            let place = self.sq.sqes.add(index);
            place.write_bytes(0, 1);
            place.cast::<Sqe>().write(timeout);
        }
        self.sq.local_tail = self.sq.local_tail.wrapping_add(1);
    }

    /// Completions that can be taken without a system call.
    #[inline]
    #[must_use]
    pub fn ready(&self) -> u32 {
        // SAFETY: points into the ring's mapping.
        unsafe { (*self.cq.tail).load(Ordering::Acquire) }.wrapping_sub(self.cq.local_head)
    }

    /// True when the kernel has completions that it hands out only inside a system call.
    #[inline]
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.flags() & abi::SQ_TASKRUN != 0
    }

    /// Publishes what was written and enters the kernel once: takes the entries and waits
    /// for `wait_for` completions or `timeout_ns` ([`NO_TIMEOUT`]: for completions alone).
    /// Being interrupted or running into the timeout is not an error.
    ///
    /// # Errors
    /// The error of `io_uring_enter(2)`.
    #[inline(always)]
    pub fn enter(&mut self, wait_for: u32, timeout_ns: u64, get_events: bool) -> io::Result<()> {
        // SAFETY: points into the ring's mapping; the release store publishes the entries.
        unsafe { (*self.sq.tail).store(self.sq.local_tail, Ordering::Release) };
        let mut flags = self.enter_flags;
        let mut to_submit = self.pending();
        if self.setup_flags & abi::SETUP_SQPOLL != 0 {
            self.sq.submitted = self.sq.local_tail;
            to_submit = 0;
            fence(Ordering::SeqCst);
            if self.flags() & abi::SQ_NEED_WAKEUP != 0 {
                flags |= abi::ENTER_SQ_WAKEUP;
            } else if wait_for == 0 && !get_events {
                return Ok(());
            }
        }
        let waiting = wait_for > 0;
        if waiting || get_events || self.flags() & (abi::SQ_TASKRUN | abi::SQ_CQ_OVERFLOW) != 0 {
            flags |= abi::ENTER_GETEVENTS;
        } else if to_submit == 0 && flags & abi::ENTER_SQ_WAKEUP == 0 {
            return Ok(());
        }
        let time = abi::Timespec::of(timeout_ns);
        let argument = abi::GeteventsArg {
            sigmask: 0,
            sigmask_bytes: 0,
            min_wait_us: 0,
            time: (&raw const time) as u64,
        };
        let (argument_ptr, argument_bytes) = if waiting && timeout_ns != NO_TIMEOUT {
            flags |= abi::ENTER_EXT_ARG;
            (&raw const argument, size_of::<abi::GeteventsArg>())
        } else {
            (ptr::null(), 0)
        };
        let arguments = [
            self.enter_fd as usize,
            to_submit as usize,
            wait_for as usize,
            flags as usize,
            argument_ptr as usize,
            argument_bytes,
        ];
        // SAFETY: descriptors, counts and the argument are valid for the call's duration.
        let taken = unsafe { raw::call(libc::SYS_io_uring_enter, arguments) };
        self.entered(taken)
    }

    /// What `io_uring_enter(2)` answered: how many entries it took, or an error.
    #[inline(always)]
    fn entered(&mut self, taken: isize) -> io::Result<()> {
        if taken >= 0 {
            if self.setup_flags & abi::SETUP_SQPOLL == 0 {
                self.sq.submitted = self.sq.submitted.wrapping_add(taken as u32);
            }
            return Ok(());
        }
        match -taken as i32 {
            // Time is over, a signal came, or the kernel wants completions taken first:
            // the caller reaps and comes again.
            libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    #[inline]
    fn flags(&self) -> u32 {
        // SAFETY: points into the ring's mapping.
        unsafe { (*self.sq.flags).load(Ordering::Relaxed) }
    }

    /// Gives up to `max` completions to `take`; returns how many.
    #[inline]
    pub fn reap(&mut self, max: u32, mut take: impl FnMut(E::Completion)) -> u32 {
        let count = self.ready().min(max);
        let end = self.cq.local_head.wrapping_add(count);
        while self.cq.local_head != end {
            let index = (self.cq.local_head & self.cq.mask) as usize;
            // SAFETY: the entry lies between head and tail, so the kernel has written it
            // and will not touch it until the head moves.
            take(unsafe { self.cq.cqes.add(index).read() });
            self.cq.local_head = self.cq.local_head.wrapping_add(1);
        }
        // SAFETY: points into the ring's mapping; the entries were read before.
        unsafe { (*self.cq.head).store(end, Ordering::Release) };
        count
    }
}

impl<E: SubmissionEntry> Drop for Ring<E> {
    fn drop(&mut self) {
        for (start, bytes) in self.maps {
            // SAFETY: both mappings are ours.
            unsafe { libc::munmap(start, bytes) };
        }
        // SAFETY: the descriptor is ours.
        unsafe { libc::close(self.fd) };
    }
}

fn map_ring(fd: RawFd, bytes: usize, offset: i64) -> io::Result<*mut libc::c_void> {
    // SAFETY: maps the ring's own memory; no existing mapping is replaced.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_POPULATE,
            fd,
            offset,
        )
    };
    if start == libc::MAP_FAILED {
        Err(io::Error::last_os_error())
    } else {
        Ok(start)
    }
}
