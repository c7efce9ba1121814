//! Signals that end a run from outside, and who sent them.
//!
//! Knows what `sigaction(2)` tells of a signal. Knows no order of the parent, which come by
//! standard input, and that `SIGINT` is the parent's business.

use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

use loadstone_worker::control::{Control, Stop};

/// Signals that would kill the process and that somebody may send: an orderly end instead,
/// so that what was measured is told, and by whom it was ended.
const ENDING: [(libc::c_int, &str); 9] = [
    (libc::SIGTERM, "SIGTERM"),
    (libc::SIGHUP, "SIGHUP"),
    (libc::SIGQUIT, "SIGQUIT"),
    (libc::SIGXCPU, "SIGXCPU"),
    (libc::SIGUSR1, "SIGUSR1"),
    (libc::SIGUSR2, "SIGUSR2"),
    (libc::SIGALRM, "SIGALRM"),
    (libc::SIGVTALRM, "SIGVTALRM"),
    (libc::SIGPWR, "SIGPWR"),
];
/// The most a process's short name takes in `/proc/PID/comm`, its line end included.
const NAME_BYTES: usize = 16;

/// Where the handler leaves its order. Set once; the control is never freed.
static TO_STOP: AtomicPtr<Control> = AtomicPtr::new(ptr::null_mut());
/// The first of the signals; 0: none came. Set last.
static NUMBER: AtomicI32 = AtomicI32::new(0);
static TAKEN: AtomicI32 = AtomicI32::new(0);
/// Its sender; 0 when the kernel sent it.
static PID: AtomicI32 = AtomicI32::new(0);
static UID: AtomicU32 = AtomicU32::new(0);
static NAME: [AtomicU64; NAME_BYTES / 8] = [const { AtomicU64::new(0) }; NAME_BYTES / 8];

/// A signal and its sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Its name.
    pub signal: &'static str,
    /// Process and user that sent it; none when it was the kernel.
    pub sender: Option<(i32, u32)>,
    /// The sender's short name; empty when it was gone already.
    pub sender_name: String,
}

/// Takes the signals from now on.
pub fn listen(control: &Arc<Control>) {
    TO_STOP.store(Arc::into_raw(control.clone()).cast_mut(), Ordering::Release);
    for (number, _) in ENDING {
        // SAFETY: the handler touches atomics and makes system calls that are allowed there.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(number, &action, ptr::null_mut());
        }
    }
    // SAFETY: plain dispositions. Writing beyond the limit on file sizes is then an error of
    // that write and not the end of the process.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// The first signal that came, once it is known in full.
#[must_use]
pub fn received() -> Option<Received> {
    let number = NUMBER.load(Ordering::Acquire);
    let (_, signal) = ENDING.into_iter().find(|&(known, _)| known == number)?;
    let pid = PID.load(Ordering::Relaxed);
    let name: Vec<u8> = NAME
        .iter()
        .flat_map(|part| part.load(Ordering::Relaxed).to_ne_bytes())
        .take_while(|&byte| byte != 0 && byte != b'\n')
        .collect();
    Some(Received {
        signal,
        sender: (pid != 0).then(|| (pid, UID.load(Ordering::Relaxed))),
        sender_name: String::from_utf8_lossy(&name).into_owned(),
    })
}

extern "C" fn on_signal(number: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel gives a valid `siginfo_t` to a handler with `SA_SIGINFO`, and
    // `errno` of the thread is left as it was.
    unsafe {
        let errno = *libc::__errno_location();
        let first = TAKEN.swap(1, Ordering::Relaxed) == 0;
        if first {
            // Only what a process sent has one (sigaction(2): codes of 0 and below).
            if (*info).si_code <= 0 {
                let pid = (*info).si_pid();
                PID.store(pid, Ordering::Relaxed);
                UID.store((*info).si_uid(), Ordering::Relaxed);
                note_name(pid);
            }
            NUMBER.store(number, Ordering::Release);
        }
        if let Some(control) = TO_STOP.load(Ordering::Acquire).as_ref() {
            control.stop(Stop::Drain);
        }
        *libc::__errno_location() = errno;
    }
}

/// Reads the sender's name now: a moment later it may be gone.
///
/// # Safety
/// For a signal handler: only system calls, and memory on the stack.
unsafe fn note_name(pid: libc::pid_t) {
    let mut path = *b"/proc/\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let mut digits = [0u8; 10];
    let (mut left, mut count) = (pid.unsigned_abs(), 0);
    while left > 0 && count < digits.len() {
        digits[count] = b'0' + (left % 10) as u8;
        left /= 10;
        count += 1;
    }
    for at in 0..count {
        path[6 + at] = digits[count - 1 - at];
    }
    path[6 + count..][..5].copy_from_slice(b"/comm");
    let mut name = [0u8; NAME_BYTES];
    // SAFETY: the path ends with a zero byte, and no more is read than there is room for.
    unsafe {
        let file = libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return;
        }
        libc::read(file, name.as_mut_ptr().cast(), NAME_BYTES - 1);
        libc::close(file);
    }
    for (part, bytes) in NAME.iter().zip(name.chunks_exact(8)) {
        let mut word = [0u8; 8];
        word.copy_from_slice(bytes);
        part.store(u64::from_ne_bytes(word), Ordering::Relaxed);
    }
}
