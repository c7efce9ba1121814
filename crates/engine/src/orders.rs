//! Orders from outside: standard input and signals.
//!
//! Knows that the end of standard input means the parent is gone, a line `stop` asks for
//! an orderly end, `end-stage N` and `end-stream N` for the end of a part of the run, that
//! `SIGTERM` asks for the same as `stop`, and that `SIGINT` is the parent's business.

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

/// A line of standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Drain and end.
    Stop,
    /// Drain this stage and those before it; go on with the next one.
    EndStage(u32),
    /// Drain one stream.
    EndStream(u32),
}

impl Order {
    fn parse(line: &str) -> Option<Self> {
        match line.trim().split_once(' ') {
            None if line.trim() == "stop" => Some(Self::Stop),
            Some(("end-stage", stage)) => stage.parse().ok().map(Self::EndStage),
            Some(("end-stream", stream)) => stream.parse().ok().map(Self::EndStream),
            _ => None,
        }
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
                let Ok(line) = line else { break };
                match Order::parse(&line) {
                    Some(Order::Stop) => control.stop(Stop::Drain),
                    Some(Order::EndStage(stage)) => control.end_stage(stage),
                    Some(Order::EndStream(stream)) => control.end_stream(stream),
                    None => eprintln!(
                        "not an order: {line:?}, expected `stop`, `end-stage N` or `end-stream N`"
                    ),
                }
            }
            control.stop(Stop::Now);
        })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_and_nothing_else_is() {
        assert_eq!(Order::parse("stop\n"), Some(Order::Stop));
        assert_eq!(Order::parse("end-stage 3"), Some(Order::EndStage(3)));
        assert_eq!(Order::parse("end-stream 0"), Some(Order::EndStream(0)));
        for line in [
            "",
            "end-stage",
            "end-stage -1",
            "end-stage 1 2",
            "stop 1",
            "stopped",
        ] {
            assert_eq!(Order::parse(line), None, "{line:?}");
        }
    }
}
