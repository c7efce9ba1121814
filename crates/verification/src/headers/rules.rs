//! Rules a Plan must keep so that verification by headers means something.
//!
//! Knows which fields depend on each other. Opens nothing.

use loadstone_base::need;
use loadstone_base::plan_rule::Checked;
use loadstone_plan::{HeaderSum, Keeps, Plan, Sizes, Stream};

use super::content::{has_headers, head_bytes};

/// Checks the headers of one stream; `path` is its JSON path.
///
/// # Errors
/// [`loadstone_base::run_error::RunError::Plan`] with the JSON path of the field.
pub fn check(plan: &Plan, stream: &Stream, path: &str) -> Checked {
    let Some(headers) = &stream.headers else {
        return Ok(());
    };
    let at = |field: &str| format!("{path}/headers/{field}");
    need!(
        stream.verify.is_none(),
        "{path}/headers" => "excludes verify: a block has stamps or headers"
    );
    let backend = &plan.workers[stream.worker as usize].backend;
    need!(
        backend.capabilities().keeps_data != Keeps::Nothing && !backend.capabilities().trees,
        "{path}/headers" => "needs a backend that keeps data"
    );
    let sum = headers.sum;
    let by_pattern = matches!(sum, HeaderSum::Pattern | HeaderSum::PatternHdr);
    let pattern = headers.pattern.as_ref();
    need!(pattern.is_some() || !by_pattern, at("pattern") => "is missing: nothing else is checked");
    need!(
        pattern.is_none_or(|pattern| !pattern.bytes.is_empty()),
        at("pattern/bytes") => "is empty"
    );
    let block = match headers.interval_bytes {
        0 => smallest(&stream.pattern.write.sizes),
        interval => interval,
    };
    let head = head_bytes(headers) as u32;
    need!(
        !has_headers(sum) || block > head,
        at("interval_bytes") => "blocks of {block} bytes are too small, the header alone has {head}"
    );
    need!(
        !has_headers(sum) || headers.offset_bytes == 0 || headers.offset_bytes + head <= block,
        at("offset_bytes") =>
            "is {}, the header of {head} bytes must end within {block}", headers.offset_bytes
    );
    need!(
        !has_headers(sum) || headers.offset_bytes == 0 || headers.offset_bytes >= head,
        at("offset_bytes") =>
            "is {}, must be 0 or at least {head}: \
             the header of {head} bytes would overlap what it changes places with",
            headers.offset_bytes
    );
    let limits = &stream.limits;
    need!(
        !headers.read_back || limits.bytes > 0 || limits.ops > 0,
        "{path}/limits/bytes" => "is 0: a pass of which all is read back must end"
    );
    Ok(())
}

fn smallest(sizes: &Sizes) -> u32 {
    match sizes {
        Sizes::Fixed { bytes } => *bytes,
        Sizes::Range { min_bytes, .. } => *min_bytes,
        Sizes::Split { table } => table.iter().map(|entry| entry.bytes).min().unwrap_or(0),
    }
}
