//! Each operation does to the disk what it says.

use loadstone_plan::*;

use crate::mounts::Mount;
use crate::plans::*;

const EINVAL: i32 = 22;

#[test]
fn whole_files_are_read_and_written_from_their_start_to_their_end() {
    let dir = Scratch::new();
    let anchor = dir.join("anchor");
    let mut plan = formatted(&anchor);
    let whole = transfer(false, FileStop::Whole {});
    choosing(add(&mut plan, 0, whole), ONCE);
    writes(choosing(add(&mut plan, 1, whole), ONCE));
    let before = std::fs::read(anchor.join("vdb.1_2.dir/vdb.2_1.dir/vdb_f0002.file")).unwrap();
    let outcome = run(&plan);
    for (cell, op) in [(0, "read"), (1, "write")] {
        assert_eq!(outcome.reason(cell), "exhausted");
        let sum = outcome.sum(cell, op);
        assert_eq!((sum.ops, sum.bytes, sum.errors), (24, 80_000, 0), "{op}");
        for by_name in ["open", "close"] {
            assert_eq!(outcome.sum(cell, by_name).ops, 8);
        }
    }
    let after = std::fs::read(anchor.join("vdb.1_2.dir/vdb.2_1.dir/vdb_f0002.file")).unwrap();
    assert_eq!(after.len(), 10_000);
    assert_ne!(before, after);
    let end = outcome.of_type("stream_end").next().unwrap();
    assert_eq!(end["issued"], serde_json::json!([24, 0, 0, 0]));
    let opens = serde_json::json!({"issued": 8, "completed": 8, "failed": 0});
    assert_eq!(
        end["file_ops"],
        serde_json::json!({"open": opens, "close": opens})
    );
}

#[test]
fn sequential_writes_make_their_files_and_can_delete_them_before() {
    let dir = Scratch::new();
    let anchor = dir.join("anchor");
    let mut made = plan(&[&anchor], 1, 2, 3, 9000);
    add(&mut made, 0, FileOperation::Mkdir {});
    let whole = transfer(false, FileStop::Whole {});
    writes(choosing(add(&mut made, 1, whole), ONCE));
    let anew = FileOperation::Transfer {
        random: false,
        stop: FileStop::Whole {},
        delete_before: true,
    };
    writes(choosing(add(&mut made, 2, anew), ONCE));
    let outcome = run(&made);
    assert_eq!(sizes(&anchor), [9000; 6]);
    let done = |cell| ["create", "open", "delete", "close"].map(|op| outcome.sum(cell, op).ops);
    assert_eq!((done(1), done(2)), ([6, 6, 0, 6], [6, 6, 6, 6]));
}

#[test]
fn files_are_left_after_so_many_transfers_and_taken_up_there_again() {
    let dir = Scratch::new();
    let anchor = dir.join("anchor");
    let mut made = plan(&[&anchor], 1, 1, 2, 16_384);
    add(&mut made, 0, FileOperation::Mkdir {});
    let some = transfer(false, FileStop::Transfers { count: 1 });
    // Two files, a block each in turn: after six transfers both have three.
    writes(add(&mut made, 1, some)).limits.ops = 6;
    let outcome = run(&made);
    assert_eq!(sizes(&anchor), [3 * 4096; 2]);
    assert_eq!(outcome.reason(1), "ops");
    let done = ["write", "create", "open", "close"].map(|op| outcome.ops(op));
    assert_eq!(done, [6, 2, 6, 6]);
    // Half of each file at random.
    let mut read = plan(&[&anchor], 1, 1, 2, 16_384);
    let half = transfer(true, FileStop::Percent { percent: 50 });
    choosing(add(&mut read, 0, half), ONCE);
    let outcome = run(&read);
    // Half of 12,288 bytes is reached with the second block.
    assert_eq!((outcome.ops("read"), outcome.ops("open")), (4, 2));
}

#[test]
fn operations_by_name_do_what_they_say() {
    let dir = Scratch::new();
    let anchor = dir.join("anchor");
    let mut plan = formatted(&anchor);
    let file = anchor.join("vdb.1_1.dir/vdb.2_1.dir/vdb_f0001.file");
    let old = std::time::SystemTime::UNIX_EPOCH;
    let handle = std::fs::File::options().write(true).open(&file).unwrap();
    handle
        .set_times(std::fs::FileTimes::new().set_modified(old))
        .unwrap();
    for operation in [
        FileOperation::Getattr {},
        FileOperation::Access {},
        FileOperation::Setattr {},
        FileOperation::Open {},
    ] {
        choosing(add(&mut plan, 0, operation), ONCE);
    }
    add(&mut plan, 1, FileOperation::Delete {}).limits.ops = 3;
    add(&mut plan, 2, FileOperation::Delete {});
    add(&mut plan, 3, FileOperation::Rmdir {});
    let outcome = run(&plan);
    assert_eq!(outcome.code, 0, "{:?}", outcome.events);
    for (cell, op, ops) in [
        (0, "getattr", 8),
        (1, "access", 8),
        (2, "setattr", 8),
        (3, "open", 8),
        (3, "close", 8),
        (4, "delete", 3),
        (5, "delete", 5),
        (6, "rmdir", 6),
    ] {
        let sum = outcome.sum(cell, op);
        assert_eq!((sum.ops, sum.bytes, sum.errors), (ops, 0, 0), "{op}");
        assert!(sum.lat_sum_ns > 0.0, "{op}");
    }
    assert_eq!(
        [4, 5, 6].map(|s| outcome.reason(s)),
        ["ops", "exhausted", "exhausted"]
    );
    assert_eq!(found(&anchor).len(), 0);
    assert!(handle.metadata().unwrap().modified().unwrap() > old);
}

#[test]
fn copies_and_moves_keep_the_bytes_and_the_place() {
    let dir = Scratch::new();
    let anchors = [dir.join("one"), dir.join("two")];
    let mut plan = plan(&anchors, 1, 2, 2, 10_000);
    add_format(&mut plan, 0, 1);
    add(&mut plan, 0, FileOperation::Mkdir {})
        .tree
        .as_mut()
        .unwrap()
        .tree = 1;
    choosing(add(&mut plan, 2, FileOperation::Copy { to: 1 }), ONCE);
    choosing(add(&mut plan, 3, FileOperation::Copy { to: 1 }), ONCE);
    let outcome = run(&plan);
    assert_eq!(outcome.code, 0, "{:?}", outcome.events);
    let path = "vdb.1_2.dir/vdb_f0002.file";
    let bytes = std::fs::read(anchors[0].join(path)).unwrap();
    assert_eq!(std::fs::read(anchors[1].join(path)).unwrap(), bytes);
    assert_eq!(sizes(&anchors[1]), [10_000; 4]);
    let done = |cell| {
        ["copy", "delete", "create", "open", "read", "write", "close"]
            .map(|op| outcome.sum(cell, op).ops)
    };
    // The second time what is there goes first.
    assert_eq!(done(3), [4, 0, 4, 8, 12, 12, 8]);
    assert_eq!(done(4), [4, 4, 4, 8, 12, 12, 8]);
    let mut plan = crate::plans::plan(&anchors, 1, 2, 2, 10_000);
    add(&mut plan, 0, FileOperation::Move { to: 1 });
    let outcome = run(&plan);
    assert_eq!(
        (outcome.ops("move"), outcome.reason(0).as_str()),
        (4, "exhausted")
    );
    assert!(sizes(&anchors[0]).is_empty());
    assert_eq!(std::fs::read(anchors[1].join(path)).unwrap(), bytes);
}

#[test]
fn direct_transfers_are_aligned_and_the_memory_of_a_tree_is_told_and_bounded() {
    let dir = Scratch::new();
    let anchor = dir.join("anchor");
    let mut made = plan(&[&anchor], 1, 2, 2, 10_240);
    made.targets[0].direct = true;
    add_format(&mut made, 0, 1);
    let outcome = run(&made);
    if outcome
        .of_type("io_error")
        .any(|event| event["errno"] == EINVAL)
    {
        return eprintln!("skipped: no direct I/O in {}", dir.0.display());
    }
    assert_eq!(sizes(&anchor), [10_240; 4]);
    let peak = |outcome: &TreeRun| {
        let end = outcome.of_type("end").next().unwrap();
        end["rss_peak_bytes"].as_u64().unwrap()
    };
    let before = peak(&outcome);
    let small = outcome.of_type("hello").next().unwrap()["memory_bytes"]
        .as_u64()
        .unwrap();
    // Four million files are 64 MiB.
    let mut large = plan(&[dir.join("large")], 1, 4, 1 << 20, 10_240);
    add(&mut large, 0, FileOperation::Mkdir {});
    let outcome = run(&large);
    let needed = outcome.of_type("hello").next().unwrap()["memory_bytes"]
        .as_u64()
        .unwrap();
    assert!(
        needed > small + (63 << 20) && needed < small + (65 << 20),
        "{needed}"
    );
    assert!(peak(&outcome) - before < 65 << 20);
    large.memory_limit_bytes = needed - 1;
    assert_eq!(run(&large).code, 2);
}

#[test]
fn a_flush_is_a_part_of_each_close() {
    let dir = Scratch::new();
    let anchor = dir.join("anchor");
    let mut made = plan(&[&anchor], 1, 1, 5, 10_000);
    add(&mut made, 0, FileOperation::Mkdir {});
    let create = add(&mut made, 1, FileOperation::Create { fill: true });
    create.flush.on_close = true;
    let whole = transfer(false, FileStop::Whole {});
    let write = writes(choosing(add(&mut made, 2, whole), ONCE));
    write.flush.on_close = true;
    choosing(add(&mut made, 3, FileOperation::Open {}), ONCE);
    let outcome = run(&made);
    assert_eq!(outcome.code, 0, "{:?}", outcome.events);
    let done = |cell| ["sync", "close"].map(|op| outcome.sum(cell, op));
    for cell in [1, 2] {
        let [sync, close] = done(cell);
        assert_eq!((sync.ops, close.ops), (5, 5));
        assert!(sync.bytes == 0 && sync.lat_sum_ns < close.lat_sum_ns);
    }
    // Who did not ask for it has none.
    assert_eq!(done(3).map(|sum| sum.ops), [0, 5]);
}

#[test]
fn an_open_drops_what_is_cached_of_the_file() {
    let dir = Scratch::new();
    let Some(mount) = Mount::ext4(&dir.join("cached"), 64 << 20) else {
        return eprintln!("skipped: no loop device can be mounted here (needs root)");
    };
    let anchor = mount.0.join("anchor");
    formatted(&anchor);
    let file = anchor.join("vdb.1_1.dir/vdb.2_1.dir/vdb_f0001.file");
    let cached = resident_pages(&file);
    assert!(cached > 0);
    let mut opens = plan(&[&anchor], 2, 2, 2, 10_000);
    choosing(add(&mut opens, 0, FileOperation::Open {}), ONCE);
    run(&opens);
    assert_eq!(resident_pages(&file), cached);
    opens.targets[0].invalidate = true;
    let outcome = run(&opens);
    assert_eq!((outcome.code, outcome.ops("open")), (0, 8));
    assert_eq!(resident_pages(&file), 0);
}

/// Pages of a file that are in memory.
fn resident_pages(path: &std::path::Path) -> usize {
    let mut fincore = std::process::Command::new("fincore");
    let told = fincore
        .args(["--noheadings", "--output", "PAGES"])
        .arg(path);
    let told = String::from_utf8(told.output().unwrap().stdout).unwrap();
    told.trim().parse().unwrap()
}
