//! Are the I/O priorities of a Plan well-formed?
//!
//! Knows the rules between a stream's shares, and which backends can carry them. What the
//! kernel allows is found out in [`loadstone_worker::priority`].

use super::Checked;
use loadstone_base::need;
use loadstone_plan::{Backend, PriorityOp, PriorityShare, Stream};

pub(super) fn check_priorities(stream: &Stream, backend: &Backend, path: &str) -> Checked {
    need!(
        stream.priorities.is_empty() || backend.capabilities().priorities,
        "{path}/priorities" => "have no effect: {} takes no priority with an I/O", backend.name()
    );
    for (index, share) in stream.priorities.iter().enumerate() {
        let at = |field: &str| format!("{path}/priorities/{index}/{field}");
        let pattern = &stream.pattern;
        let does = match share.op {
            PriorityOp::Read => pattern.read_percent > 0,
            PriorityOp::Write => pattern.writes(),
        };
        need!(does, at("op") => "the stream has none of it");
        let same = |other: &&PriorityShare| {
            other.op == share.op
                && (other.block_bytes == share.block_bytes || other.block_bytes.is_none())
        };
        let sum: f64 = (stream.priorities.iter().filter(same))
            .map(|other| other.percent)
            .sum();
        need!(
            share.percent > 0.0 && sum <= 100.0,
            at("percent") =>
                "is {}, must be above 0, and all of one size at most 100", share.percent
        );
        need!(share.priority != 0, at("priority") => "is 0: leave the share out");
    }
    Ok(())
}
