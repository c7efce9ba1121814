//! Orders of the parent, which come by standard input.
//!
//! Knows that its end means the parent is gone, that a line `stop` asks for an orderly end,
//! `end-stage N` and `end-stream N` for the end of a part of the run, `start-at NS` for the
//! start of one that waits for it, and `within NS` that the parent is gone, too, when no line comes
//! for so long. A parent that is stopped cannot say that whoever it works for is gone: a descriptor
//! of theirs tells. None of it is seen by a worker before it is an order to stop.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use loadstone_base::clock::boot_ns;
use loadstone_worker::control::{Control, Stop};

/// A line of standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdinCommand {
    /// Drain and end.
    Stop,
    /// Drain this stage and those before it; go on with the next one.
    EndStage(u32),
    /// Drain one stream.
    EndStream(u32),
    /// Start when the monotonic clock shows this.
    StartAt(u64),
    /// End when no line comes for so many nanoseconds.
    Within(u64),
}

impl StdinCommand {
    /// The order of a line; none when it is none.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        match line.trim().split_once(' ') {
            None if line.trim() == "stop" => Some(Self::Stop),
            Some(("end-stage", stage)) => stage.parse().ok().map(Self::EndStage),
            Some(("end-stream", stream)) => stream.parse().ok().map(Self::EndStream),
            Some(("start-at", time)) => time.parse().ok().map(Self::StartAt),
            Some(("within", time)) => time.parse().ok().map(Self::Within),
            _ => None,
        }
    }
}

/// When an engine that nobody speaks to any more must end.
#[derive(Debug, Default, Clone, Copy)]
struct DeadMansClock {
    /// How long it may be quiet; none: for ever.
    within_ns: Option<u64>,
    heard_ns: u64,
}

impl DeadMansClock {
    /// Time left; none when there is no limit.
    fn left(&self, now_ns: u64) -> Option<u64> {
        let until_ns = self.heard_ns.saturating_add(self.within_ns?);
        Some(until_ns.saturating_sub(now_ns))
    }

    /// True when it was quiet for too long: also when words wait that came too late to count.
    fn is_over(&self, now_ns: u64) -> bool {
        self.left(now_ns) == Some(0)
    }
}

/// Listens from now on. The end of one of `wanted_by`, descriptors, ends the run as that of standard
/// input does: they are closed by whoever the parent works for, also while the parent itself is stopped.
///
/// # Errors
/// When the thread cannot be started.
pub fn listen(control: &Arc<Control>, wanted_by: &[RawFd]) -> io::Result<()> {
    let (control, wanted_by) = (control.clone(), wanted_by.to_vec());
    std::thread::Builder::new()
        .name("orders".into())
        .stack_size(64 * 1024)
        .spawn(move || {
            let why = hear(&control, &wanted_by);
            // First, because it may be that nobody reads what is said.
            control.stop(Stop::Now);
            if let Some(why) = why {
                eprintln!("{why}");
            }
        })?;
    Ok(())
}

/// Obeys until nobody is there who wants the run; says why where standard input was open still.
fn hear(control: &Control, wanted_by: &[RawFd]) -> Option<String> {
    let mut clock = DeadMansClock::default();
    let mut rest = Vec::new();
    loop {
        let heard = wait(wanted_by, clock.left(boot_ns()));
        let now_ns = boot_ns();
        if clock.is_over(now_ns) {
            let quiet_s = (now_ns - clock.heard_ns) as f64 / 1e9;
            return Some(format!(
                "the run was ended: nothing was heard of who started it for {quiet_s:.1} s"
            ));
        }
        match heard {
            Heard::Nothing => continue,
            Heard::Gone => {
                return Some("the run was ended: who it was done for is gone".into());
            }
            Heard::Words => {}
        }
        let mut piece = [0u8; 4096];
        // SAFETY: no more is read than there is room for.
        let count =
            unsafe { libc::read(libc::STDIN_FILENO, piece.as_mut_ptr().cast(), piece.len()) };
        match usize::try_from(count) {
            Ok(0) => return None,
            Ok(count) => rest.extend_from_slice(&piece[..count]),
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return None,
        }
        clock.heard_ns = now_ns;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            obey(control, &mut clock, &String::from_utf8_lossy(&line));
        }
    }
}

fn obey(control: &Control, clock: &mut DeadMansClock, line: &str) {
    match StdinCommand::parse(line) {
        Some(StdinCommand::Stop) => control.stop(Stop::Drain),
        Some(StdinCommand::EndStage(stage)) => control.end_stage(stage),
        Some(StdinCommand::EndStream(stream)) => control.end_stream(stream),
        Some(StdinCommand::StartAt(time)) => control.start_at(time),
        Some(StdinCommand::Within(time)) => clock.within_ns = Some(time),
        None => eprintln!(
            "not an order: {line:?}, expected `stop`, `end-stage N`, `end-stream N`, `start-at NS` or \
             `within NS`"
        ),
    }
}

enum Heard {
    Nothing,
    Words,
    Gone,
}

/// Waits for a word, for the end of one of `wanted_by`, or so long.
fn wait(wanted_by: &[RawFd], most_ns: Option<u64>) -> Heard {
    // One more, so that it is over when the wait is.
    let most_ms = most_ns.map_or(-1, |ns| {
        i32::try_from(ns / 1_000_000 + 1).unwrap_or(i32::MAX)
    });
    let polled = |fd, events| libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    // What can be read of `wanted_by` is the parent's.
    let mut ends = vec![polled(libc::STDIN_FILENO, libc::POLLIN)];
    ends.extend(wanted_by.iter().map(|&fd| polled(fd, libc::POLLRDHUP)));
    // SAFETY: the array is valid for the call.
    if unsafe { libc::poll(ends.as_mut_ptr(), ends.len() as libc::nfds_t, most_ms) } <= 0 {
        return Heard::Nothing;
    }
    let is_gone =
        |end: &libc::pollfd| end.revents & (libc::POLLHUP | libc::POLLRDHUP | libc::POLLERR) != 0;
    if ends[1..].iter().any(is_gone) {
        return Heard::Gone;
    }
    if ends[0].revents == 0 {
        return Heard::Nothing;
    }
    Heard::Words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_and_nothing_else_is() {
        assert_eq!(StdinCommand::parse("stop\n"), Some(StdinCommand::Stop));
        assert_eq!(
            StdinCommand::parse("end-stage 3"),
            Some(StdinCommand::EndStage(3))
        );
        assert_eq!(
            StdinCommand::parse("end-stream 0"),
            Some(StdinCommand::EndStream(0))
        );
        assert_eq!(
            StdinCommand::parse("start-at 12"),
            Some(StdinCommand::StartAt(12))
        );
        assert_eq!(
            StdinCommand::parse("within 9"),
            Some(StdinCommand::Within(9))
        );
        for line in [
            "",
            "end-stage",
            "end-stage -1",
            "end-stage 1 2",
            "stop 1",
            "start-at -1",
            "start-at",
            "within -1",
            "stopped",
        ] {
            assert_eq!(StdinCommand::parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn the_clock_runs_out_only_when_there_is_a_limit_and_words_that_wait_are_too_late() {
        let mut clock = DeadMansClock::default();
        assert_eq!(
            (clock.left(u64::MAX), clock.is_over(u64::MAX)),
            (None, false)
        );
        (clock.within_ns, clock.heard_ns) = (Some(10), 5);
        assert_eq!((clock.left(14), clock.is_over(14)), (Some(1), false));
        assert_eq!((clock.left(15), clock.is_over(15)), (Some(0), true));
        clock.within_ns = Some(u64::MAX);
        assert!(!clock.is_over(u64::MAX - 1));
    }
}
