//! Orders of the parent, which come by standard input.
//!
//! Knows that its end means the parent is gone, that a line `stop` asks for an orderly end,
//! `end-stage N` and `end-stream N` for the end of a part of the run, and `start-at NS` for the
//! start of one that waits for it.

use std::io::{self, BufRead};
use std::sync::Arc;

use loadstone_worker::control::{Control, Stop};

/// A line of standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Drain and end.
    Stop,
    /// Drain this stage and those before it; go on with the next one.
    EndStage(u32),
    /// Drain one stream.
    EndStream(u32),
    /// Start when the monotonic clock shows this.
    StartAt(u64),
}

impl Order {
    /// The order of a line; none when it is none.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        match line.trim().split_once(' ') {
            None if line.trim() == "stop" => Some(Self::Stop),
            Some(("end-stage", stage)) => stage.parse().ok().map(Self::EndStage),
            Some(("end-stream", stream)) => stream.parse().ok().map(Self::EndStream),
            Some(("start-at", time)) => time.parse().ok().map(Self::StartAt),
            _ => None,
        }
    }
}

/// Listens from now on.
///
/// # Errors
/// When the thread cannot be started.
pub fn listen(control: &Arc<Control>) -> io::Result<()> {
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
                    Some(Order::StartAt(time)) => control.start_at(time),
                    None => eprintln!(
                        "not an order: {line:?}, expected `stop`, `end-stage N`, `end-stream N` or \
                         `start-at NS`"
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
        assert_eq!(Order::parse("start-at 12"), Some(Order::StartAt(12)));
        for line in [
            "",
            "end-stage",
            "end-stage -1",
            "end-stage 1 2",
            "stop 1",
            "start-at -1",
            "start-at",
            "stopped",
        ] {
            assert_eq!(Order::parse(line), None, "{line:?}");
        }
    }
}
