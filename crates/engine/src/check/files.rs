//! Do a stream's files and their targets fit what it does?
//!
//! Knows ranges, sizes and what each backend asks of a target.

use super::{need, within, Checked};
use crate::plan::{Backend, Plan, Stream, TargetKind};
use crate::stream::max_size;

pub(super) fn check_files(plan: &Plan, stream: &Stream, backend: &Backend, path: &str) -> Checked {
    let is_virtual = matches!(backend, Backend::Null {} | Backend::Sim { .. });
    let writes = stream.pattern.write_percent > 0 || stream.pattern.trim_percent > 0;
    let block = u64::from(largest_size(stream));
    for (index, file) in stream.files.iter().enumerate() {
        let at = |field: &str| format!("{path}/files/{index}/{field}");
        within(file.target, plan.targets.len(), &at("target"), "targets")?;
        within(file.cell, plan.cells.len(), &at("cell"), "cells")?;
        let target = &plan.targets[file.target as usize];
        need(
            file.length_bytes >= block,
            || at("length_bytes"),
            || {
                format!(
                    "is {}, smaller than the largest block of {block} bytes",
                    file.length_bytes
                )
            },
        )?;
        let end = file.offset_bytes.checked_add(file.length_bytes);
        need(
            end.is_some_and(|end| end <= i64::MAX as u64),
            || at("offset_bytes"),
            || "ends beyond 2^63".into(),
        )?;
        let bounded = matches!(target.kind, TargetKind::File | TargetKind::Block);
        need(
            !bounded || end.is_some_and(|end| end <= target.size_bytes),
            || at("length_bytes"),
            || {
                format!(
                    "ends at {}, the target has {} bytes",
                    end.unwrap_or(u64::MAX),
                    target.size_bytes
                )
            },
        )?;
        need(
            is_virtual || target.kind != TargetKind::Virtual,
            || at("target"),
            || "is virtual: only the null and sim backends can use it".into(),
        )?;
        need(
            is_virtual || !writes || !target.read_only,
            || at("target"),
            || {
                format!(
                    "{} is opened read-only and the stream writes or trims",
                    target.path
                )
            },
        )?;
        need(
            !matches!(backend, Backend::Mmap {}) || !target.direct,
            || at("target"),
            || {
                format!(
                    "{}: a mapping goes through the page cache, it cannot be direct",
                    target.path
                )
            },
        )?;
        if matches!(backend, Backend::IoUring { iopoll: true, .. }) {
            need(
                target.direct,
                || at("target"),
                || format!("{}: iopoll needs direct I/O", target.path),
            )?;
        }
        if target.direct {
            need(
                file.offset_bytes % 512 == 0,
                || at("offset_bytes"),
                || {
                    format!(
                        "is {}: direct I/O needs multiples of the logical block size",
                        file.offset_bytes
                    )
                },
            )?;
        }
    }
    Ok(())
}

fn largest_size(stream: &Stream) -> u32 {
    let pattern = &stream.pattern;
    [
        (pattern.read_percent, &pattern.read),
        (pattern.write_percent, &pattern.write),
        (pattern.trim_percent, &pattern.trim),
    ]
    .into_iter()
    .filter(|(percent, _)| *percent > 0)
    .map(|(_, order)| max_size(&order.sizes))
    .max()
    .unwrap_or(0)
}
