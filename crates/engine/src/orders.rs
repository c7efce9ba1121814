//! Orders from outside: standard input and signals.
//!
//! Knows that the end of standard input means the parent is gone, a line `stop` asks for
//! an orderly end, `SIGTERM` asks for the same, and `SIGINT` is the parent's business.

use std::io::{self, BufRead};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::Arc;

use crate::control::{Control, Stop};

/// Where the signal handler leaves its order. Set once; the control it points to is
/// never freed.
static TO_STOP: AtomicPtr<Control> = AtomicPtr::new(std::ptr::null_mut());

extern "C" fn on_terminate(_signal: libc::c_int) {
    // SAFETY: null or a control that lives as long as the process; `stop` is one atomic
    // instruction, which is allowed in a handler.
    if let Some(control) = unsafe { TO_STOP.load(Ordering::Acquire).as_ref() } {
        control.stop(Stop::Drain);
    }
}

/// Listens from now on.
///
/// # Errors
/// When the thread cannot be started.
pub fn listen(control: &Arc<Control>) -> io::Result<()> {
    TO_STOP.store(Arc::into_raw(control.clone()).cast_mut(), Ordering::Release);
    // SAFETY: the handler only touches an atomic; the other disposition is `ignore`.
    unsafe {
        libc::signal(
            libc::SIGTERM,
            on_terminate as *const () as libc::sighandler_t,
        );
        libc::signal(libc::SIGINT, libc::SIG_IGN);
    }
    let control = control.clone();
    std::thread::Builder::new()
        .name("orders".into())
        .stack_size(64 * 1024)
        .spawn(move || {
            for line in io::stdin().lock().lines() {
                match line {
                    Ok(line) if line.trim() == "stop" => control.stop(Stop::Drain),
                    Ok(_) => {}
                    Err(_) => break,
                }
            }
            control.stop(Stop::Now);
        })?;
    Ok(())
}
