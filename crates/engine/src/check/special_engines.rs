//! Does a stream ask only for what its backend does?
//!
//! Knows the columns of a backend's row that are about operations, and what the exchange of
//! extents asks for besides.

use super::{within, Checked};
use loadstone_base::need;
use loadstone_plan::{Backend, Plan, Stream, TargetKind};

/// Refuses what the backend cannot do.
pub(super) fn check_calls(plan: &Plan, stream: &Stream, backend: &Backend, path: &str) -> Checked {
    let can = backend.capabilities();
    let name = can.name;
    for (index, file) in stream.files.iter().enumerate() {
        let at = || format!("{path}/files/{index}/target");
        within(file.target, plan.targets.len(), &at(), "targets")?;
        let target = &plan.targets[file.target as usize];
        need!(
            target.named.is_some() == can.named_targets,
            at() => "{}: operations by name, and only they, need named", target.path
        );
        let writable = !can.reads_need_write_access || !target.read_only;
        need!(writable, at() => "{} is opened read-only, which allocates nothing", target.path);
    }
    let pattern = &stream.pattern;
    for (does, percent, what) in [
        (can.reads, pattern.read_percent, "reads"),
        (can.writes, pattern.write_percent, "writes"),
        (can.trims, pattern.trim_percent, "trims"),
    ] {
        need!(does || percent == 0, "{path}/pattern" => "{name} does no {what}");
    }
    let Backend::MoveExtents { donor, .. } = backend else {
        return Ok(());
    };
    let at = || format!("/workers/{}/backend/donor", stream.worker);
    within(*donor, plan.targets.len(), &at(), "targets")?;
    let donor = &plan.targets[*donor as usize];
    let good = donor.kind == TargetKind::File && !donor.read_only && donor.named.is_none();
    need!(good, at() => "{} is no file that is open for writing", donor.path);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{check, refused};
    use loadstone_plan::{plain, Backend, NameOperation, Named, Pattern, Plan, Stream, TargetKind};

    fn plan(backend: Backend, named: Option<Named>) -> Plan {
        let pattern = Pattern {
            read_percent: 0,
            write_percent: 100,
            ..plain::stream().pattern
        };
        let stream = Stream {
            pattern,
            ..plain::stream()
        };
        let mut plan = plain::plan(backend, vec![stream]);
        plan.targets[0] = plain::target("/tmp/somewhere", TargetKind::File, 1 << 30);
        plan.targets[0].named = named;
        plan
    }

    #[test]
    fn a_backend_with_calls_of_its_own_refuses_what_it_cannot_do() {
        let create = Backend::Names {
            operation: NameOperation::Create,
        };
        let extents = Backend::MoveExtents {
            donor: 0,
            in_place: false,
        };
        assert_eq!(check(&plan(create.clone(), Some(Named::AsFound))), Ok(()));
        assert_eq!(check(&plan(Backend::Falloc {}, None)), Ok(()));
        assert_eq!(check(&plan(extents.clone(), None)), Ok(()));
        type Change = fn(&mut Plan);
        let cases: [(Plan, Change, &str); 5] = [
            (
                plan(create.clone(), Some(Named::AsFound)),
                |plan| plan.targets[0].named = None,
                "/streams/0/files/0/target",
            ),
            (
                plan(create, Some(Named::File)),
                |plan| plan.streams[0].iodepth = 2,
                "/streams/0/iodepth",
            ),
            (
                plan(Backend::Falloc {}, None),
                |plan| plan.targets[0].read_only = true,
                "/streams/0/files/0/target",
            ),
            (
                plan(extents.clone(), None),
                |plan| {
                    plan.streams[0].pattern.write_percent = 50;
                    plan.streams[0].pattern.read_percent = 50;
                },
                "/streams/0/pattern",
            ),
            (
                plan(extents, None),
                |plan| plan.targets[0].kind = TargetKind::Block,
                "/workers/0/backend/donor",
            ),
        ];
        for (good, change, place) in cases {
            assert_eq!(refused(good, change).0, place);
        }
    }
}
