//! Plans of work in trees that are refused, each with the place of what is wrong.

use loadstone_engine::check::{check, refused};
use loadstone_plan::*;

use crate::plans::*;

/// A Plan that is accepted: reads, creates and a copy to a second tree.
fn good() -> Plan {
    let mut plan = plan(&["/one", "/two"], 2, 2, 2, 8192);
    let whole = transfer(true, FileStop::Whole {});
    add(&mut plan, 0, whole).limits.runtime_ns = SECOND_NS;
    add(&mut plan, 1, FileOperation::Create { fill: true });
    choosing(add(&mut plan, 2, FileOperation::Copy { to: 1 }), ONCE);
    plan
}

fn operation(plan: &mut Plan, stream: usize, operation: FileOperation) -> &mut TreeUse {
    let tree = plan.streams[stream].tree.as_mut().unwrap();
    tree.operation = operation;
    tree
}

/// A change of the good Plan, with the place that is told.
type RefusedChange = (&'static str, fn(&mut Plan));

fn refuses<const N: usize>(changes: [RefusedChange; N]) {
    assert_eq!(check(&good()), Ok(()));
    for (place, change) in changes {
        let (path, message) = refused(good(), change);
        assert_eq!(path, place, "{message}");
    }
}

fn one_size(bytes: u64, weight: f64) -> FileSizes {
    FileSizes::Table {
        table: vec![FileSize { bytes, weight }],
    }
}

fn tree_use(plan: &mut Plan, stream: usize) -> &mut TreeUse {
    plan.streams[stream].tree.as_mut().unwrap()
}

#[test]
fn trees_are_checked_with_their_targets() {
    refuses([
        ("/trees/0/target", |plan| plan.trees[0].target = 9),
        ("/trees/1/target", |plan| plan.trees[1].target = 0),
        ("/trees/1/target", |plan| {
            plan.targets[1].kind = TargetKind::File
        }),
        ("/targets/1/kind", |plan| {
            plan.trees.truncate(1);
            plan.streams.truncate(2);
            plan.workers.truncate(2);
        }),
        ("/targets/0/exclusive", |plan| {
            plan.targets[0].exclusive = true
        }),
        ("/targets/0/advice", |plan| {
            plan.targets[0].advice = Some(Advice::Random)
        }),
        ("/targets/0/unlink", |plan| plan.targets[0].unlink = true),
        ("/targets/0/read_only", |plan| {
            plan.targets[0].read_only = true
        }),
        ("/trees/0/depth", |plan| plan.trees[0].depth = 0),
        ("/trees/0/width", |plan| plan.trees[0].width = 0),
        ("/trees/0/files", |plan| plan.trees[0].files = 0),
        ("/trees/0/first_file", |plan| plan.trees[0].first_file = 2),
        ("/trees/0/width", |plan| plan.trees[0].width = u32::MAX),
        ("/trees/0/files", |plan| plan.trees[0].files = u32::MAX),
        ("/trees/0/depth", |plan| plan.trees[0].depth = u32::MAX),
    ]);
}

#[test]
fn sizes_in_a_tree_are_checked() {
    refuses([
        ("/trees/0/sizes/table", |plan| {
            plan.trees[0].sizes = FileSizes::Table { table: vec![] };
        }),
        ("/trees/0/sizes/table/0/weight", |plan| {
            plan.trees[0].sizes = one_size(1, 0.0);
        }),
        ("/trees/0/sizes/table/0/bytes", |plan| {
            plan.trees[0].sizes = one_size(1 << 48, 1.0);
        }),
        ("/trees/0/sizes/table/0/bytes", |plan| {
            plan.trees[0].sizes = one_size(1000, 1.0);
            plan.targets[0].direct = true;
        }),
        ("/trees/0/sizes/mean_bytes", |plan| {
            plan.trees[0].sizes = FileSizes::Around { mean_bytes: 0 };
        }),
        ("/trees/0/sizes/mean_bytes", |plan| {
            plan.trees[0].sizes = FileSizes::Around { mean_bytes: 1000 };
            plan.targets[0].direct = true;
        }),
    ]);
}

#[test]
fn what_has_no_effect_in_a_tree_is_refused() {
    refuses([
        ("/streams/0/tree", |plan| {
            plan.workers[0].backend = Backend::Psync {}
        }),
        ("/streams/0/tree", |plan| plan.streams[0].tree = None),
        ("/streams/0/iodepth", |plan| plan.streams[0].iodepth = 2),
        ("/streams/0/files/0/target", |plan| {
            plan.streams[0].files.push(FileUse {
                target: 0,
                cell: 0,
                offset_bytes: 0,
                length_bytes: 4096,
            });
        }),
        ("/streams/0/log_ios", |plan| plan.streams[0].log_ios = true),
        ("/streams/0/serialize_overlap", |plan| {
            plan.streams[0].serialize_overlap = true
        }),
        ("/streams/0/flush", |plan| {
            plan.streams[0].flush.at_end = true
        }),
        ("/streams/2/flush/on_close", |plan| {
            plan.streams[2].flush.on_close = true;
            operation(plan, 2, FileOperation::Move { to: 1 });
        }),
        ("/streams/0/limits/max_latency_ns", |plan| {
            plan.streams[0].limits.max_latency_ns[1] = 1;
        }),
    ]);
}

#[test]
fn what_only_work_in_blocks_has_is_refused_in_a_tree() {
    refuses([
        ("/streams/0/pace", |plan| {
            plan.streams[0].pace.think = Some(Think {
                pause_ns: 1,
                spin_ns: 0,
                every_ios: 1,
                count_issued: true,
                every_ns: 0,
            });
        }),
        ("/streams/0/batch", |plan| {
            plan.streams[0].batch = Some(Batch {
                submit: 1,
                complete_min: 1,
                complete_max: 1,
                low: 1,
            });
        }),
        ("/streams/0/pattern/trim_percent", |plan| {
            plan.streams[0].pattern.read_percent = 90;
            plan.streams[0].pattern.trim_percent = 10;
        }),
        ("/streams/1/limits/bytes", |plan| {
            plan.streams[1].limits.bytes = 1
        }),
        ("/streams/1/tree/shared", |plan| {
            tree_use(plan, 1).shared = true;
        }),
        ("/streams/1/tree/working_set_bytes", |plan| {
            operation(plan, 1, FileOperation::Mkdir {}).working_set_bytes = 1;
        }),
        ("/steady/0/streams/0", |plan| {
            plan.steady.push(Steady {
                streams: vec![0],
                metric: SteadyMetric::Ops,
                slope: false,
                limit: 1.0,
                percent: true,
                after_ns: 0,
                sample_ns: plan.interval_ns,
                samples: 5,
            });
        }),
    ]);
}

#[test]
fn operations_fit_their_pattern() {
    refuses([
        ("/streams/0/tree/tree", |plan| tree_use(plan, 0).tree = 2),
        ("/streams/0/tree/cell", |plan| tree_use(plan, 0).cell = 9),
        ("/streams/0/pattern", |plan| {
            plan.streams[0].pattern.read_percent = 50;
            plan.streams[0].pattern.write_percent = 50;
            operation(plan, 0, transfer(false, FileStop::Whole {}));
        }),
        ("/streams/0/tree/operation/delete_before", |plan| {
            let (random, stop, delete_before) = (false, FileStop::Whole {}, true);
            operation(
                plan,
                0,
                FileOperation::Transfer {
                    random,
                    stop,
                    delete_before,
                },
            );
        }),
        ("/streams/0/tree/operation/stop", |plan| {
            operation(plan, 0, transfer(true, FileStop::Percent { percent: 0 }));
        }),
        ("/streams/0/tree/operation", |plan| {
            for tree in &mut plan.trees {
                tree.sizes = one_size(0, 1.0);
            }
        }),
        ("/streams/1/pattern", |plan| {
            plan.streams[1].pattern.read_percent = 100;
            plan.streams[1].pattern.write_percent = 0;
        }),
    ]);
}

#[test]
fn operations_fit_their_trees() {
    refuses([
        ("/streams/2/tree/operation/to", |plan| {
            operation(plan, 2, FileOperation::Copy { to: 0 });
        }),
        ("/streams/2/tree/operation/to", |plan| {
            operation(plan, 2, FileOperation::Move { to: 2 });
        }),
        ("/streams/2/tree/operation/to", |plan| {
            plan.trees[1].seed = 9
        }),
        ("/streams/1/tree/operation", |plan| {
            plan.targets[0].create = false;
            plan.targets[0].read_only = true;
        }),
        ("/streams/0/pattern/read/sizes", |plan| {
            plan.targets[0].direct = true;
            plan.streams[0].pattern.read.sizes = Sizes::Fixed { bytes: 1000 };
        }),
        ("/streams/0/tree/select/midpoint_percent", |plan| {
            tree_use(plan, 0).select = FileSelect::Skewed {
                midpoint_percent: 50.0,
            };
        }),
        ("/streams/1/tree/rate/amount", |plan| {
            tree_use(plan, 1).rate = Some(Rate {
                amount: RateAmount::Bytes { per_second: 1e6 },
                process: RateProcess::Linear,
                profile: vec![],
                phase: 0.0,
                minimum: 0.0,
                min_window_ns: 0,
            });
        }),
    ]);
}

#[test]
fn a_stream_that_never_ends_is_refused_and_one_that_uses_up_its_tree_is_not() {
    refuses([("/streams/0/limits", |plan| {
        plan.streams[0].limits.runtime_ns = 0
    })]);
    let mut plan = plan(&["/one"], 1, 1, 1, 8192);
    for operation in [
        FileOperation::Mkdir {},
        FileOperation::Create { fill: true },
        FileOperation::Rmdir {},
        FileOperation::Delete {},
    ] {
        add(&mut plan, 0, operation).limits.ops = 7;
    }
    // What ends by its limits feeds nobody for ever.
    plan.streams[1].limits.ops = 0;
    assert_eq!(check(&plan), Ok(()));
    let (path, _) = refused(plan, |plan| plan.streams[3].limits.ops = 0);
    assert_eq!(path, "/streams/1/limits");
}

#[test]
fn a_copy_goes_to_a_tree_that_is_vouched_for_while_its_source_is_not() {
    // As two trees are that were formatted before: the one that is only read is not looked through.
    for to in [FileOperation::Copy { to: 1 }, FileOperation::Move { to: 1 }] {
        let mut plan = good();
        operation(&mut plan, 2, to);
        plan.trees[1].vouched_ns = Some(SECOND_NS);
        assert_eq!(check(&plan), Ok(()));
    }
}
