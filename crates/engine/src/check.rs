//! Is a Plan well-formed?
//!
//! Knows the rules between a Plan's fields. Opens nothing and allocates nothing but
//! messages.

mod connections;
mod files;
mod pattern;
mod priorities;
mod special_engines;
mod trees;
mod workers;

use connections::check_connection;
use files::check_files;
use pattern::check_pattern;
use priorities::check_priorities;
use trees::{check_endings, check_trees, check_use};
use workers::{check_waits, check_workers};

use loadstone_base::need;
use loadstone_base::plan_rule::Checked;
use loadstone_base::run_error::RunError;
use loadstone_plan::{
    DepthSearch, Plan, Rate, RateAmount, RateProcess, Steady, Stream, TargetKind, PLAN_VERSION,
};
use loadstone_verification::headers;
use loadstone_verification::verify::rules;

/// Most samples looked at for a steady state: a day of seconds.
const MAX_SAMPLES: u32 = 86_400;
/// Most I/Os a stream may have in flight.
const MAX_DEPTH: u32 = 1 << 20;

/// Longest pattern of a payload: every stream keeps one.
const MAX_PATTERN_BYTES: usize = 65_536;

/// Parses a Plan.
///
/// # Errors
/// [`RunError::Plan`] with the place in the text.
pub fn parse(text: &str) -> Result<Plan, RunError> {
    serde_json::from_str(text).map_err(|error| RunError::Plan {
        path: format!("line {}, column {}", error.line(), error.column()),
        message: error.to_string(),
        hint: "the Plan's schema: loadstone-engine schema".into(),
    })
}

/// Lengths of an interval that make sense: the sums of shorter ones cost more than they tell,
/// and ends of longer ones leave the clock's range.
const INTERVAL_NS: std::ops::RangeInclusive<u64> = 1_000_000..=3_600_000_000_000;
/// Longest wait for I/O in flight.
const MAX_GRACE_NS: u64 = 86_400_000_000_000;

/// Checks every rule; the first one broken is told.
///
/// # Errors
/// [`RunError::Plan`] with the JSON path of the field.
pub fn check(plan: &Plan) -> Checked {
    need!(
        plan.version == PLAN_VERSION,
        "/version" => "is {}, this engine reads {PLAN_VERSION}", plan.version
    );
    check_times(plan)?;
    need!(!plan.streams.is_empty(), "/streams" => "is empty: nothing to do");
    check_trees(plan)?;
    check_cells(plan)?;
    check_targets(plan)?;
    check_workers(plan)?;
    for (index, stream) in plan.streams.iter().enumerate() {
        let path = format!("/streams/{index}");
        match &stream.tree {
            Some(in_tree) => check_use(plan, stream, in_tree, &path)?,
            None => check_stream(plan, stream, &path)?,
        }
        rules::check(plan, stream, &format!("/streams/{index}"))?;
        headers::rules::check(plan, stream, &format!("/streams/{index}"))?;
        check_waits(plan, index as u32)?;
    }
    check_endings(plan)?;
    for (index, steady) in plan.steady.iter().enumerate() {
        check_steady(plan, steady, &format!("/steady/{index}"))?;
    }
    rules::check_journals(plan)
}

fn check_times(plan: &Plan) -> Checked {
    need!(
        INTERVAL_NS.contains(&plan.interval_ns),
        "/interval_ns" =>
            "is {}, must be from {} (1 ms) to {} (1 h)",
            plan.interval_ns, INTERVAL_NS.start(), INTERVAL_NS.end()
    );
    need!(
        plan.grace_ns <= MAX_GRACE_NS,
        "/grace_ns" => "is {}, must be at most {MAX_GRACE_NS} (1 day)", plan.grace_ns
    );
    Ok(())
}

fn check_cells(plan: &Plan) -> Checked {
    for (index, cell) in plan.cells.iter().enumerate() {
        within(
            cell.unit,
            plan.units.len(),
            &format!("/cells/{index}/unit"),
            "units",
        )?;
        if let Some(target) = cell.target {
            within(
                target,
                plan.targets.len(),
                &format!("/cells/{index}/target"),
                "targets",
            )?;
        }
    }
    Ok(())
}

fn check_targets(plan: &Plan) -> Checked {
    for (index, target) in plan.targets.iter().enumerate() {
        let path = |field: &str| format!("/targets/{index}/{field}");
        need!(
            !target.path.is_empty() || target.kind == TargetKind::Virtual,
            path("path") => "is empty"
        );
        need!(!target.path.contains('\0'), path("path") => "contains a zero byte");
        need!(
            target.layout.is_none() || target.kind == TargetKind::File,
            path("layout") => "only a regular file can be laid out"
        );
        need!(
            !target.unlink || target.kind == TargetKind::File,
            path("unlink") => "only a regular file can be removed"
        );
        need!(
            target.namesake.is_some() == (target.kind == TargetKind::Nvme),
            path("namesake") =>
                "belongs to the character device of an NVMe namespace, and to nothing else"
        );
        need!(
            target.named.is_none() || target.kind == TargetKind::File,
            path("named") => "is for targets of kind file"
        );
    }
    Ok(())
}

fn check_steady(plan: &Plan, steady: &Steady, path: &str) -> Checked {
    need!(!steady.streams.is_empty(), "{path}/streams" => "is empty: nothing would ever end");
    for (at, &stream) in steady.streams.iter().enumerate() {
        let count = plan.streams.len();
        within(stream, count, &format!("{path}/streams/{at}"), "streams")?;
    }
    need!(
        steady.limit.is_finite() && steady.limit > 0.0,
        "{path}/limit" => "is {}, must be above 0", steady.limit
    );
    need!(
        (2..=MAX_SAMPLES).contains(&steady.samples),
        "{path}/samples" => "is {}, must be 2 to {MAX_SAMPLES}", steady.samples
    );
    need!(
        steady.sample_ns > 0 && steady.sample_ns % plan.interval_ns == 0,
        "{path}/sample_ns" =>
            "is {}, must be a multiple of interval_ns {}", steady.sample_ns, plan.interval_ns
    );
    Ok(())
}

fn within(index: u32, count: usize, path: &str, what: &str) -> Checked {
    need!((index as usize) < count, path => "is {index}, there are {count} {what}");
    Ok(())
}

fn check_stream(plan: &Plan, stream: &Stream, path: &str) -> Checked {
    let backend = &plan.workers[stream.worker as usize].backend;
    special_engines::check_calls(plan, stream, backend, path)?;
    need!(
        (1..=MAX_DEPTH).contains(&stream.iodepth),
        "{path}/iodepth" => "is {}, must be 1 to {MAX_DEPTH}", stream.iodepth
    );
    need!(
        backend.capabilities().max_iodepth.is_none_or(|most| stream.iodepth <= most),
        "{path}/iodepth" =>
            "is {}, must be 1: {} does one I/O at a time", stream.iodepth, backend.name()
    );
    need!(
        !backend.capabilities().trees,
        "{path}/tree" => "is missing, and worker {} has the backend files", stream.worker
    );
    need!(!stream.files.is_empty(), "{path}/files" => "is empty: a stream needs a file");
    check_pattern(stream, path)?;
    check_files(plan, stream, backend, path)?;
    check_batch(stream, path)?;
    check_pace(stream, path)?;
    check_payload(stream, path)?;
    need!(
        stream.flow.is_none_or(|flow| flow.weight > 0),
        "{path}/flow/weight" => "is 0, must be above 0"
    );
    if let Some(search) = &stream.search {
        check_search(stream, search, path)?;
    }
    check_priorities(stream, backend, path)?;
    if let Some(connection) = stream.connection {
        check_connection(plan, stream, connection, path)?;
    }
    let limits = &stream.limits;
    let ends =
        limits.runtime_ns > 0 || (!limits.time_based && (limits.bytes > 0 || limits.ops > 0));
    need!(ends, "{path}/limits" => "the stream would never end: give runtime_ns, bytes or ops");
    Ok(())
}

fn check_batch(stream: &Stream, path: &str) -> Checked {
    let Some(batch) = stream.batch else {
        return Ok(());
    };
    let at = |field: &str| format!("{path}/batch/{field}");
    need!(
        (1..=stream.iodepth).contains(&batch.submit),
        at("submit") => "is {}, must be 1 to iodepth {}", batch.submit, stream.iodepth
    );
    need!(
        (1..=stream.iodepth).contains(&batch.low),
        at("low") => "is {}, must be 1 to iodepth {}", batch.low, stream.iodepth
    );
    need!(
        batch.complete_max >= batch.complete_min.max(1),
        at("complete_max") =>
            "is {}, below complete_min {} or 1", batch.complete_max, batch.complete_min
    );
    Ok(())
}

fn check_pace(stream: &Stream, path: &str) -> Checked {
    for (name, rate) in [
        ("read", &stream.pace.read),
        ("write", &stream.pace.write),
        ("trim", &stream.pace.trim),
    ] {
        if let Some(rate) = rate {
            check_rate(rate, &format!("{path}/pace/{name}"))?;
        }
    }
    if let Some(think) = &stream.pace.think {
        need!(think.every_ios > 0, "{path}/pace/think/every_ios" => "is 0, must be at least 1");
        need!(
            think.every_ns == 0 || think.every_ios == 1,
            "{path}/pace/think/every_ios" => "has no effect beside every_ns: must be 1"
        );
    }
    Ok(())
}

fn check_payload(stream: &Stream, path: &str) -> Checked {
    need!(
        stream.payload.compress_percent <= 100,
        "{path}/payload/compress_percent" => "is above 100"
    );
    need!(stream.payload.dedupe_percent <= 100, "{path}/payload/dedupe_percent" => "is above 100");
    need!(
        stream.payload.dedupe_unit_bytes == 0 || stream.payload.dedupe_percent > 0,
        "{path}/payload/dedupe_unit_bytes" => "has no effect without a dedupe_percent above 0"
    );
    if let Some(set) = stream.payload.dedupe_set {
        need!(
            set.contents > 0 && stream.payload.dedupe_percent > 0,
            "{path}/payload/dedupe_set" => "needs contents, and a dedupe_percent above 0"
        );
    }
    if let loadstone_plan::Fill::Pattern { bytes } = &stream.payload.fill {
        need!(
            (1..=MAX_PATTERN_BYTES).contains(&bytes.len()),
            "{path}/payload/fill/bytes" =>
                "has {} bytes, must have 1 to {MAX_PATTERN_BYTES}", bytes.len()
        );
    }
    Ok(())
}

fn check_search(stream: &Stream, search: &DepthSearch, path: &str) -> Checked {
    let at = |field: &str| format!("{path}/search/{field}");
    need!(
        search.target_ns > 0 && search.window_ns > 0,
        at("target_ns") => "and window_ns must be above 0"
    );
    need!(
        search.percentile > 0.0 && search.percentile <= 100.0,
        at("percentile") => "is {}, must be above 0 and at most 100", search.percentile
    );
    let pace = &stream.pace;
    need!(
        pace.read.is_none() && pace.write.is_none() && pace.trim.is_none(),
        "{path}/search" => "needs a closed loop: of a given rate the depth is a result"
    );
    need!(
        search.keep_on || stream.limits.ramp_ns == 0,
        "{path}/limits/ramp_ns" => "has no effect: nothing counts before the depth is found"
    );
    Ok(())
}

fn check_rate(rate: &Rate, path: &str) -> Checked {
    let (RateAmount::Ops { per_second } | RateAmount::Bytes { per_second }) = rate.amount;
    need!(
        per_second.is_finite() && per_second > 0.0,
        "{path}/amount" => "is {per_second}, must be above 0"
    );
    need!(rate.minimum.is_finite() && rate.minimum >= 0.0, "{path}/minimum" => "is negative");
    need!(
        rate.minimum == 0.0 || rate.min_window_ns > 0,
        "{path}/min_window_ns" => "is 0, a minimum needs a window"
    );
    let late = rate.process == RateProcess::Linear && (0.0..1.0).contains(&rate.phase);
    need!(
        late || rate.phase == 0.0,
        "{path}/phase" => "is {}, must be 0, or below 1 for evenly spaced arrivals", rate.phase
    );
    for (index, point) in rate.profile.iter().enumerate() {
        need!(
            point.share.is_finite() && point.share >= 0.0,
            "{path}/profile/{index}/share" => "is {}, must be at least 0", point.share
        );
        need!(
            index == 0 || rate.profile[index - 1].at_ns <= point.at_ns,
            "{path}/profile/{index}/at_ns" => "is before the point before it"
        );
    }
    need!(
        rate.profile.is_empty() || rate.profile.iter().any(|point| point.share > 0.0),
        "{path}/profile" => "is 0 all the time: nothing would ever start"
    );
    Ok(())
}

/// Place and message of the refusal that a Plan meets for a change.
///
/// # Panics
/// When the changed Plan is not refused.
#[cfg(debug_assertions)]
#[must_use]
pub fn refused(mut plan: Plan, change: impl FnOnce(&mut Plan)) -> (String, String) {
    change(&mut plan);
    match check(&plan) {
        Err(RunError::Plan { path, message, .. }) => (path, message),
        other => panic!("{other:?}"),
    }
}
