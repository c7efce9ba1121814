//! Does a stream fit a backend that does something else than reads and writes?
//!
//! Knows what operations by name, allocation, splicing and the exchange of extents ask for.

use super::{need, within, Checked};
use crate::plan::{Backend, Plan, Stream, TargetKind};

/// Refuses what a backend of these cannot do; of others only targets that are used by name.
pub(super) fn check_calls(plan: &Plan, stream: &Stream, backend: &Backend, path: &str) -> Checked {
    let by_name = matches!(backend, Backend::Names { .. });
    for (index, file) in stream.files.iter().enumerate() {
        let at = || format!("{path}/files/{index}/target");
        within(file.target, plan.targets.len(), &at(), "targets")?;
        let target = &plan.targets[file.target as usize];
        need(target.named.is_some() == by_name, at, || {
            format!(
                "{}: operations by name, and only they, need named",
                target.path
            )
        })?;
        let writable = !matches!(backend, Backend::Falloc {}) || !target.read_only;
        need(writable, at, || {
            format!(
                "{} is opened read-only, which allocates nothing",
                target.path
            )
        })?;
    }
    let keeps_content = !matches!(
        backend,
        Backend::Names { .. } | Backend::Falloc {} | Backend::MoveExtents { .. }
    );
    if keeps_content && !matches!(backend, Backend::Splice {}) {
        return Ok(());
    }
    let name = backend.name();
    need(
        stream.iodepth == 1,
        || format!("{path}/iodepth"),
        || {
            format!(
                "is {}, must be 1: {name} does one I/O at a time",
                stream.iodepth
            )
        },
    )?;
    need(
        keeps_content || stream.verify.is_none(),
        || format!("{path}/verify"),
        || format!("{name} writes no content that could be verified"),
    )?;
    let pattern = &stream.pattern;
    let only = |good: bool, what: &str| {
        need(
            good,
            || format!("{path}/pattern"),
            || format!("{name} {what}"),
        )
    };
    match backend {
        Backend::Names { .. } => only(pattern.trim_percent == 0, "does no trims"),
        Backend::MoveExtents { donor, .. } => {
            only(pattern.write_percent == 100, "does writes and nothing else")?;
            let at = || format!("/workers/{}/backend/donor", stream.worker);
            within(*donor, plan.targets.len(), &at(), "targets")?;
            let donor = &plan.targets[*donor as usize];
            let good = donor.kind == TargetKind::File && !donor.read_only && donor.named.is_none();
            need(good, at, || {
                format!("{} is no file that is open for writing", donor.path)
            })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use crate::plan::{plain, Backend, NameOperation, Named, Pattern, Plan, Stream, TargetKind};

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
            assert_eq!(plain::refused(good, change).0, place);
        }
    }
}
