//! Is a stream's pattern one that can be generated?
//!
//! Knows shares, sizes and orders of addresses.

use super::Checked;
use loadstone_base::need;
use loadstone_plan::max_size;
use loadstone_plan::{FileChoice, OpPattern, RandomOrder, Row, Sizes, Stream, Zone};

pub(super) fn check_pattern(stream: &Stream, path: &str) -> Checked {
    let pattern = &stream.pattern;
    let sum = u64::from(pattern.read_percent)
        + u64::from(pattern.write_percent)
        + u64::from(pattern.trim_percent);
    need!(sum == 100, "{path}/pattern" => "read, write and trim add up to {sum}, must be 100");
    let orders = [
        ("read", pattern.read_percent, &pattern.read),
        ("write", pattern.write_percent, &pattern.write),
        ("trim", pattern.trim_percent, &pattern.trim),
    ];
    for (name, _, order) in orders.into_iter().filter(|(_, percent, _)| *percent > 0) {
        check_order(order, &format!("{path}/pattern/{name}"))?;
    }
    if let Some(strided) = &pattern.strided {
        let path = format!("{path}/pattern/strided");
        need!(strided.zone_bytes > 0, "{path}/zone_bytes" => "is 0, must be above 0");
        for (name, _, order) in orders.into_iter().filter(|(_, percent, _)| *percent > 0) {
            need!(
                !matches!(order.random, RandomOrder::Aged { .. }),
                path => "cannot be combined with regions of {name}s that come again"
            );
            let largest = max_size(&order.sizes);
            need!(
                u64::from(largest) <= strided.range_bytes,
                "{path}/range_bytes" =>
                    "is {}, below the largest {name} of {largest}", strided.range_bytes
            );
        }
    }
    if let Some(rows) = &pattern.rows {
        check_rows(stream, rows, &format!("{path}/pattern/rows"))?;
    }
    if let FileChoice::RoundRobin { every } | FileChoice::Random { every } = stream.file_choice {
        need!(every > 0, "{path}/file_choice/every" => "is 0, must be at least 1");
    }
    check_open_files(stream, path)
}

fn check_open_files(stream: &Stream, path: &str) -> Checked {
    let Some(open) = stream.open_files else {
        return Ok(());
    };
    let files = stream.files.len();
    need!(
        open > 0 && (open as usize) < files,
        "{path}/open_files" => "is {open}, must be at least 1 and less than the {files} files"
    );
    let in_turn = matches!(stream.file_choice, FileChoice::Sequential {});
    for (wrong, what) in [
        (in_turn, "files that are finished one by one"),
        (stream.pattern.rows.is_some(), "I/Os by rows"),
    ] {
        need!(!wrong, "{path}/open_files" => "cannot be combined with {what}");
    }
    Ok(())
}

/// Rows stand beside shares and sizes that say what they come to: buffers are made from these.
fn check_rows(stream: &Stream, rows: &[Row], path: &str) -> Checked {
    let pattern = &stream.pattern;
    for (at, row) in rows.iter().enumerate() {
        check_row(stream, row, &format!("{path}/{at}"))?;
    }
    let reads = rows.iter().any(|row| row.read_percent > 0);
    let writes = rows.iter().any(|row| row.read_percent < 100);
    need!(
        (reads, writes, false)
            == (
                pattern.read_percent > 0,
                pattern.write_percent > 0,
                pattern.trim_percent > 0,
            ),
        path => "do other operations than the pattern's shares say"
    );
    let paced = stream.pace.read.is_some() || stream.pace.write.is_some();
    let in_turn = matches!(stream.file_choice, FileChoice::Sequential {}) && stream.files.len() > 1;
    for (wrong, what) in [
        (pattern.strided.is_some(), "a moving window"),
        (pattern.trim_then_write, "trims that are written after"),
        (stream.verify.is_some(), "verification"),
        (in_turn, "files that are finished one by one"),
        (
            paced && rows.iter().any(|row| row.burst > 1),
            "bursts at a given rate",
        ),
    ] {
        need!(!wrong, path => "cannot be combined with {what}");
    }
    Ok(())
}

fn check_row(stream: &Stream, row: &Row, path: &str) -> Checked {
    let good = row.weight > 0.0
        && row.weight.is_finite()
        && row.bytes > 0
        && row.read_percent <= 100
        && row.random_percent <= 100
        && row.align_bytes > 0
        && row.burst > 0;
    need!(
        good,
        path => "weight, bytes, align_bytes and burst must be above 0, shares at most 100"
    );
    let largest = [
        (row.read_percent > 0, &stream.pattern.read),
        (row.read_percent < 100, &stream.pattern.write),
    ]
    .into_iter()
    .filter(|(does, _)| *does)
    .map(|(_, order)| max_size(&order.sizes))
    .min();
    need!(
        largest.is_some_and(|largest| row.bytes <= largest),
        "{path}/bytes" => "is {}, above the sizes of its operations", row.bytes
    );
    for file in &stream.files {
        let end = file.offset_bytes.saturating_add(file.length_bytes);
        let fits = file
            .offset_bytes
            .checked_next_multiple_of(row.align_bytes)
            .and_then(|first| first.checked_add(u64::from(row.bytes)))
            .is_some_and(|first_end| first_end <= end);
        need!(fits, path => "has no place in a file of the stream");
    }
    Ok(())
}

fn check_order(order: &OpPattern, path: &str) -> Checked {
    need!(order.random_percent <= 100, "{path}/random_percent" => "is above 100");
    need!(order.run_length > 0, "{path}/run_length" => "is 0, must be at least 1");
    need!(order.align_bytes > 0, "{path}/align_bytes" => "is 0, must be at least 1");
    check_sizes(&order.sizes, format!("{path}/sizes"))?;
    check_random(order, format!("{path}/random"))
}

fn check_sizes(sizes: &Sizes, path: String) -> Checked {
    match sizes {
        Sizes::Fixed { bytes } => need!(*bytes > 0, path => "0 bytes"),
        Sizes::Range {
            min_bytes,
            max_bytes,
            step_bytes,
        } => {
            need!(
                *min_bytes > 0 && min_bytes <= max_bytes && *step_bytes > 0,
                path => "range {min_bytes} to {max_bytes} in steps of {step_bytes} is empty"
            );
        }
        Sizes::Split { table } => {
            need!(!table.is_empty(), path => "the table is empty");
            let good = table
                .iter()
                .all(|entry| entry.bytes > 0 && entry.weight > 0.0 && entry.weight.is_finite());
            need!(good, path => "every entry needs bytes and weight above 0");
        }
    }
    need!(max_size(sizes) <= i32::MAX as u32, path => "a block is above 2 GiB");
    Ok(())
}

fn check_random(order: &OpPattern, path: String) -> Checked {
    match &order.random {
        RandomOrder::Uniform { .. } => {}
        RandomOrder::Zipf { theta, .. } => need!(
            theta.is_finite() && *theta > 0.0 && (theta - 1.0).abs() > 1e-9,
            path => "theta is {theta}, must be above 0 and not 1"
        ),
        RandomOrder::Pareto { h, .. } => need!(
            *h > 0.0 && *h < 1.0,
            path => "h is {h}, must be between 0 and 1"
        ),
        RandomOrder::Normal {
            deviation_percent, ..
        } => need!(
            deviation_percent.is_finite() && *deviation_percent > 0.0,
            path => "deviation_percent is {deviation_percent}, must be above 0"
        ),
        RandomOrder::Reuse {
            leaf_bytes,
            least_leaves,
            climb_percent,
            step_leaves,
            again_percent,
        } => need!(
            *leaf_bytes >= order.align_bytes
                && *least_leaves > 0
                && *step_leaves > 0
                && *climb_percent <= 100
                && *again_percent <= 100,
            path => "a leaf holds a block or more, leaves are above 0 and shares at most 100"
        ),
        RandomOrder::Listed { blocks, .. } => need!(
            !blocks.is_empty(),
            path => "the list of blocks is empty"
        ),
        RandomOrder::Aged {
            again_blocks,
            region_blocks,
            ..
        } => need!(
            again_blocks.iter().all(|again| again <= region_blocks)
                && again_blocks.last() == Some(&0)
                && *region_blocks > 0,
            path => "a region has I/Os, repeats at most all of them, and of the last none"
        ),
        RandomOrder::Zoned { zones } => check_zones(zones, path)?,
    }
    Ok(())
}

fn check_zones(zones: &[Zone], path: String) -> Checked {
    let sum: f64 = zones.iter().map(|zone| zone.access_percent).sum();
    let shares = zones
        .iter()
        .all(|zone| zone.access_percent >= 0.0 && zone.length_bytes > 0);
    need!(
        shares && (sum - 100.0).abs() < 0.01,
        path => "access shares add up to {sum}, must be 100, and every zone needs a length"
    );
    Ok(())
}
