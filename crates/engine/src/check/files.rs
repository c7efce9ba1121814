//! Do a stream's files and their targets fit what it does?
//!
//! Knows ranges, sizes and what each backend asks of a target.

use super::{within, Checked};
use loadstone_base::need;
use loadstone_plan::max_size;
use loadstone_plan::{Backend, Direct, FileUse, OpenSync, Plan, Stream, Target, TargetKind};

pub(super) fn check_files(plan: &Plan, stream: &Stream, backend: &Backend, path: &str) -> Checked {
    let is_virtual = backend.capabilities().virtual_targets;
    let rehearses = stream.headers.as_ref().is_some_and(|headers| headers.only);
    let writes =
        !rehearses && (stream.pattern.write_percent > 0 || stream.pattern.trim_percent > 0);
    let block = u64::from(largest_size(stream));
    for (index, file) in stream.files.iter().enumerate() {
        let at = |field: &str| format!("{path}/files/{index}/{field}");
        within(file.target, plan.targets.len(), &at("target"), "targets")?;
        within(file.cell, plan.cells.len(), &at("cell"), "cells")?;
        let target = &plan.targets[file.target as usize];
        check_part(file, target, block, &at)?;
        need!(
            is_virtual || target.kind != TargetKind::Virtual,
            at("target") => "is virtual, and {} needs a real one", backend.name()
        );
        need!(
            is_virtual || !writes || !target.read_only,
            at("target") => "{} is opened read-only and the stream writes or trims", target.path
        );
        need!(
            backend.capabilities().direct != Direct::Never || !target.direct,
            at("target") =>
                "{}: {} goes through the page cache, it cannot be direct",
                target.path, backend.name()
        );
        check_passthrough(stream, backend, target, writes, at("target"))?;
        need!(
            target.direct || !backend.is_polled(),
            at("target") => "{}: iopoll needs direct I/O", target.path
        );
    }
    Ok(())
}

/// Checks that the part of a target that a stream uses holds its blocks, and is there.
fn check_part(file: &FileUse, target: &Target, block: u64, at: &dyn Fn(&str) -> String) -> Checked {
    need!(
        file.length_bytes >= block,
        at("length_bytes") =>
            "is {}, smaller than the largest block of {block} bytes", file.length_bytes
    );
    let end = file.offset_bytes.checked_add(file.length_bytes);
    need!(
        end.is_some_and(|end| end <= i64::MAX as u64),
        at("offset_bytes") => "ends beyond 2^63"
    );
    let bounded = matches!(
        target.kind,
        TargetKind::File | TargetKind::Block | TargetKind::Nvme
    );
    need!(
        !bounded || end.is_some_and(|end| end <= target.size_bytes),
        at("length_bytes") =>
            "ends at {}, the target has {} bytes", end.unwrap_or(u64::MAX), target.size_bytes
    );
    need!(
        !target.direct || file.offset_bytes % 512 == 0,
        at("offset_bytes") =>
            "is {}: direct I/O needs multiples of the logical block size", file.offset_bytes
    );
    Ok(())
}

/// A namespace's character device takes commands and nothing else, and nothing else takes
/// them; who writes there keeps the block device's users out.
fn check_passthrough(
    stream: &Stream,
    backend: &Backend,
    target: &Target,
    writes: bool,
    at: String,
) -> Checked {
    let commands = backend.capabilities().nvme_targets;
    let is_virtual = backend.capabilities().virtual_targets;
    let path = &target.path;
    let kind = target.kind == TargetKind::Nvme;
    need!(
        !commands || kind || is_virtual,
        at => "{path} is not of kind nvme: io_uring_cmd gives commands to namespaces only"
    );
    need!(
        commands || !kind || is_virtual,
        at => "{path} takes NVMe commands: its backend is io_uring_cmd, not {}", backend.name()
    );
    if !commands {
        return Ok(());
    }
    need!(
        target.direct
            && target.sync == OpenSync::None
            && !target.invalidate
            && target.advice.is_none(),
        at =>
            "{path}: NVMe commands know no page cache: \
             it is direct, without sync, invalidate and advice"
    );
    need!(
        target.exclusive || !writes,
        at => "{path} is written without being exclusive: nobody else may use its block device"
    );
    let flush = &stream.flush;
    let flushes = flush.fsync_every > 0 || flush.fdatasync_every > 0 || flush.at_end;
    need!(
        !(flushes && backend.is_polled()),
        at =>
            "{path}: a flush carries no data to poll for, and kernels break at that: use no iopoll"
    );
    need!(
        !flush.on_close,
        at => "{path}: there is no fsync at the close of a namespace's character device"
    );
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

#[cfg(test)]
mod tests {
    use super::super::{check, refused};
    use loadstone_plan::{plain, Backend, Namesake, OpenSync, Plan, TargetKind};

    type Change = fn(&mut Plan);

    const PATH: &str = "/dev/ng0n1";

    /// Commands that write to a namespace.
    fn good() -> Plan {
        let commands = |iopoll| Backend::IoUringCmd {
            registered_files: true,
            fixed_buffers: true,
            iopoll,
            sqpoll: false,
        };
        let mut stream = plain::stream();
        stream.pattern.read_percent = 0;
        stream.pattern.write_percent = 100;
        let mut plan = plain::plan(commands(false), vec![stream]);
        let target = &mut plan.targets[0];
        *target = plain::target(PATH, TargetKind::Nvme, 1 << 30);
        target.direct = true;
        target.exclusive = true;
        target.namesake = Some(Namesake {
            path: "/dev/nvme0n1".into(),
            identity: None,
        });
        plan
    }

    fn polls_and_flushes(plan: &mut Plan) {
        plan.streams[0].flush.fsync_every = 1;
        let Backend::IoUringCmd { iopoll, .. } = &mut plan.workers[0].backend else {
            unreachable!()
        };
        *iopoll = true;
    }

    #[test]
    fn commands_and_namespaces_belong_together() {
        assert_eq!(check(&good()), Ok(()));
        let cases: [(Change, &str); 9] = [
            (
                |plan| plan.workers[0].backend = Backend::Psync {},
                "its backend is io_uring_cmd, not psync",
            ),
            (
                |plan| {
                    plan.targets[0].kind = TargetKind::Block;
                    plan.targets[0].namesake = None;
                },
                "is not of kind nvme",
            ),
            (
                |plan| plan.targets[0].exclusive = false,
                "without being exclusive",
            ),
            (
                |plan| plan.targets[0].namesake = None,
                "and to nothing else",
            ),
            (|plan| plan.targets[0].direct = false, "no page cache"),
            (
                |plan| plan.targets[0].sync = OpenSync::Dsync,
                "no page cache",
            ),
            (
                |plan| plan.streams[0].flush.on_close = true,
                "no fsync at the close",
            ),
            (
                |plan| plan.streams[0].files[0].length_bytes += 4096,
                "the target has 1073741824 bytes",
            ),
            (polls_and_flushes, "carries no data to poll for"),
        ];
        for (change, says) in cases {
            let (_, message) = refused(good(), change);
            assert!(message.contains(says), "{message}");
        }
    }

    #[test]
    fn who_only_reads_needs_not_be_exclusive() {
        let mut plan = good();
        plan.targets[0].exclusive = false;
        plan.targets[0].read_only = true;
        let pattern = &mut plan.streams[0].pattern;
        (pattern.read_percent, pattern.write_percent) = (100, 0);
        assert_eq!(check(&plan), Ok(()));
    }
}
