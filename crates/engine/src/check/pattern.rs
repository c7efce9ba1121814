//! Is a stream's pattern one that can be generated?
//!
//! Knows shares, sizes and orders of addresses.

use super::{need, Checked};
use crate::plan::{FileChoice, OpPattern, RandomOrder, Sizes, Stream};
use crate::stream::max_size;

pub(super) fn check_pattern(stream: &Stream, path: &str) -> Checked {
    let pattern = &stream.pattern;
    let sum = u64::from(pattern.read_percent)
        + u64::from(pattern.write_percent)
        + u64::from(pattern.trim_percent);
    need(
        sum == 100,
        || format!("{path}/pattern"),
        || format!("read, write and trim add up to {sum}, must be 100"),
    )?;
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
        need(
            strided.zone_bytes > 0,
            || format!("{path}/zone_bytes"),
            || "is 0, must be above 0".into(),
        )?;
        for (name, _, order) in orders.into_iter().filter(|(_, percent, _)| *percent > 0) {
            let largest = max_size(&order.sizes);
            need(
                u64::from(largest) <= strided.range_bytes,
                || format!("{path}/range_bytes"),
                || {
                    format!(
                        "is {}, below the largest {name} of {largest}",
                        strided.range_bytes
                    )
                },
            )?;
        }
    }
    if let FileChoice::RoundRobin { every } | FileChoice::Random { every } = stream.file_choice {
        need(
            every > 0,
            || format!("{path}/file_choice/every"),
            || "is 0, must be at least 1".into(),
        )?;
    }
    Ok(())
}

fn check_order(order: &OpPattern, path: &str) -> Checked {
    need(
        order.random_percent <= 100,
        || format!("{path}/random_percent"),
        || "is above 100".into(),
    )?;
    need(
        order.run_length > 0,
        || format!("{path}/run_length"),
        || "is 0, must be at least 1".into(),
    )?;
    need(
        order.align_bytes > 0,
        || format!("{path}/align_bytes"),
        || "is 0, must be at least 1".into(),
    )?;
    let sizes = format!("{path}/sizes");
    match &order.sizes {
        Sizes::Fixed { bytes } => need(*bytes > 0, || sizes, || "0 bytes".into())?,
        Sizes::Range {
            min_bytes,
            max_bytes,
            step_bytes,
        } => {
            need(
                *min_bytes > 0 && min_bytes <= max_bytes && *step_bytes > 0,
                || sizes,
                || format!("range {min_bytes} to {max_bytes} in steps of {step_bytes} is empty"),
            )?;
        }
        Sizes::Split { table } => {
            need(
                !table.is_empty(),
                || sizes.clone(),
                || "the table is empty".into(),
            )?;
            let good = table
                .iter()
                .all(|entry| entry.bytes > 0 && entry.weight > 0.0 && entry.weight.is_finite());
            need(
                good,
                || sizes,
                || "every entry needs bytes and weight above 0".into(),
            )?;
        }
    }
    need(
        max_size(&order.sizes) <= i32::MAX as u32,
        || format!("{path}/sizes"),
        || "a block is above 2 GiB".into(),
    )?;
    let random = format!("{path}/random");
    match &order.random {
        RandomOrder::Uniform { .. } => Ok(()),
        RandomOrder::Zipf { theta, .. } => need(
            theta.is_finite() && *theta > 0.0 && (theta - 1.0).abs() > 1e-9,
            || random,
            || format!("theta is {theta}, must be above 0 and not 1"),
        ),
        RandomOrder::Pareto { h, .. } => need(
            *h > 0.0 && *h < 1.0,
            || random,
            || format!("h is {h}, must be between 0 and 1"),
        ),
        RandomOrder::Normal {
            deviation_percent, ..
        } => need(
            deviation_percent.is_finite() && *deviation_percent > 0.0,
            || random,
            || format!("deviation_percent is {deviation_percent}, must be above 0"),
        ),
        RandomOrder::Zoned { zones } => {
            let sum: f64 = zones.iter().map(|zone| zone.access_percent).sum();
            let shares = zones
                .iter()
                .all(|zone| zone.access_percent >= 0.0 && zone.length_bytes > 0);
            need(
                shares && (sum - 100.0).abs() < 0.01,
                || random,
                || {
                    format!(
                        "access shares add up to {sum}, must be 100, and every zone needs a length"
                    )
                },
            )
        }
    }
}
