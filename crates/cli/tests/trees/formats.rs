//! Trees are made, taken up again and cleared.

use loadstone_plan::*;

use crate::plans::*;
use crate::support::{engine, finish, of_type, start, EngineRun};

#[test]
fn a_format_makes_exactly_the_tree() {
    let dir = Scratch::new();
    let anchor = dir.join("anchor");
    let mut plan = plan(&[&anchor], 2, 2, 2, 10_000);
    add_format(&mut plan, 0, 3);
    let outcome = run(&plan);
    assert_eq!(outcome.code, 0, "{:?}", outcome.events);
    let mut expected = std::collections::BTreeMap::new();
    for one in 1..=2 {
        expected.insert(format!("vdb.1_{one}.dir"), None);
        for two in 1..=2 {
            expected.insert(format!("vdb.1_{one}.dir/vdb.2_{two}.dir"), None);
            for file in 1..=2 {
                let path = format!("vdb.1_{one}.dir/vdb.2_{two}.dir/vdb_f000{file}.file");
                expected.insert(path, Some(10_000));
            }
        }
    }
    assert_eq!(found(&anchor), expected);
    assert_eq!(outcome.ops("mkdir"), 6);
    // Each file is two blocks and a rest.
    for (op, ops) in [("create", 8), ("close", 8), ("write", 24), ("open", 8)] {
        assert_eq!(outcome.ops(op), ops, "{op}");
    }
    let bytes: u64 = (0..6).map(|cell| outcome.sum(cell, "write").bytes).sum();
    assert_eq!(bytes, 80_000);
    for stream in 0..6 {
        assert_eq!(outcome.reason(stream), "exhausted");
    }
    let made: u64 = outcome
        .of_type("stream_end")
        .map(|end| end["file_ops"]["create"]["completed"].as_u64().unwrap_or(0))
        .sum();
    assert_eq!(made, 8);
    // Written, not left as holes, and no two blocks alike.
    let path = anchor.join("vdb.1_1.dir/vdb.2_1.dir/vdb_f0001.file");
    let bytes = std::fs::read(path).unwrap();
    assert!(bytes
        .chunks(4096)
        .all(|block| block.iter().any(|&byte| byte != 0)));
    assert_ne!(bytes[..4096], bytes[4096..8192]);
}

#[test]
fn a_format_goes_on_where_one_was_left_and_leaves_full_files_alone() {
    let dir = Scratch::new();
    let anchor = dir.join("anchor");
    let made = formatted(&anchor);
    let file = |number: u32| anchor.join(format!("vdb.1_1.dir/vdb.2_1.dir/vdb_f000{number}.file"));
    let kept = std::fs::read(file(2)).unwrap();
    let before = std::fs::read(file(1)).unwrap();
    std::fs::File::options()
        .write(true)
        .open(file(1))
        .unwrap()
        .set_len(6000)
        .unwrap();
    std::fs::remove_file(anchor.join("vdb.1_2.dir/vdb.2_2.dir/vdb_f0001.file")).unwrap();
    let mut again = made;
    add_format(&mut again, 0, 1);
    let outcome = run(&again);
    assert_eq!(sizes(&anchor), [10_000; 8]);
    // One from its second block on, one whole.
    let done = ["mkdir", "create", "open", "write", "close"].map(|op| outcome.ops(op));
    assert_eq!(done, [0, 2, 2, 5, 2]);
    assert_eq!(std::fs::read(file(2)).unwrap(), kept);
    assert_eq!(std::fs::read(file(1)).unwrap()[..4096], before[..4096]);
}

#[test]
fn clear_removes_what_any_tree_left_and_nothing_else() {
    let dir = Scratch::new();
    let anchor = dir.join("anchor");
    let mut plan = formatted(&anchor);
    std::fs::create_dir_all(anchor.join("vdb.1_7.dir/vdb.2_9.dir")).unwrap();
    std::fs::write(anchor.join("vdb.1_7.dir/vdb_f0042.file"), "x").unwrap();
    std::fs::write(anchor.join("vdb.txt"), "kept").unwrap();
    std::fs::create_dir(anchor.join("vdb.3_1.dir")).unwrap();
    plan.trees[0].clear = true;
    add(&mut plan, 0, FileOperation::Mkdir {}).limits.ops = 1;
    let outcome = run(&plan);
    assert_eq!(outcome.code, 0, "{:?}", outcome.events);
    let left: Vec<String> = found(&anchor).into_keys().collect();
    assert_eq!(left, ["vdb.1_1.dir", "vdb.3_1.dir", "vdb.txt"]);
    let note = outcome.of_type("note").next().unwrap();
    let text = note["text"].as_str().unwrap();
    assert!(
        text.ends_with("removed 9 files and 8 directories of an earlier tree"),
        "{text}"
    );
    // What stands in the way is told, not removed.
    std::fs::write(anchor.join("vdb.1_1.dir/mine"), "kept").unwrap();
    let outcome = run(&plan);
    assert_eq!(outcome.code, 3);
    assert!(
        outcome.fatal().contains("vdb.1_1.dir: cannot be removed"),
        "{}",
        outcome.fatal()
    );
    assert!(anchor.join("vdb.1_1.dir/mine").exists());
}

#[test]
fn a_stop_in_the_middle_of_a_file_leaves_a_tree_that_the_next_run_takes_up() {
    let dir = Scratch::new();
    let anchor = dir.join("anchor");
    for hard in [false, true] {
        let mut plan = plan(&[&anchor], 1, 1, 3, 256 << 20);
        plan.trees[0].clear = true;
        add_format(&mut plan, 0, 1);
        let out = Scratch::new();
        let mut child = start(engine(), &plan, &out.0);
        let first = anchor.join("vdb.1_1.dir/vdb_f0001.file");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while std::fs::metadata(&first).map_or(0, |meta| meta.len()) < (1 << 20) {
            assert!(std::time::Instant::now() < deadline, "nothing was written");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        if hard {
            child.kill().unwrap();
            child.wait().unwrap();
        } else {
            use std::io::Write;
            let stdin = child.stdin.as_mut().unwrap();
            stdin.write_all(b"stop\n").unwrap();
            let EngineRun { code, events } = finish(child, |_| ());
            assert_eq!(code, 0, "{events:?}");
            let mut ends = of_type(&events, "stream_end");
            assert!(ends.any(|end| end["reason"] == "stopped"), "{events:?}");
            assert_eq!(of_type(&events, "hung").count(), 0, "{events:?}");
        }
        let left = std::fs::metadata(&first).unwrap().len();
        // Only the bytes that are there are read.
        let mut read = crate::plans::plan(&[&anchor], 1, 1, 3, 256 << 20);
        choosing(add(&mut read, 0, transfer(false, FileStop::Whole {})), ONCE);
        read.trees[0].total_bytes = 1;
        let outcome = run(&read);
        let bytes: u64 = (0..1).map(|cell| outcome.sum(cell, "read").bytes).sum();
        assert_eq!((bytes, outcome.sum(0, "read").errors), (left, 0));
    }
}

#[test]
fn the_first_files_of_a_tree_are_those_that_come_to_the_total() {
    let dir = Scratch::new();
    let anchor = dir.join("anchor");
    let mut made = plan(&[&anchor], 2, 2, 2, 10_000);
    made.trees[0].total_bytes = 45_000;
    made.trees[0].first_file = 0;
    made.trees[0].everywhere = true;
    add_format(&mut made, 0, 2);
    let used = choosing(add(&mut made, 2, FileOperation::Getattr {}), ONCE);
    used.tree.as_mut().unwrap().working_set_bytes = 20_001;
    let outcome = run(&made);
    let files: Vec<String> = found(&anchor)
        .into_iter()
        .filter_map(|(path, size)| size.map(|_| path))
        .collect();
    assert_eq!(
        files,
        [
            "vdb.1_1.dir/vdb.2_1.dir/vdb_f0000.file",
            "vdb.1_1.dir/vdb_f0000.file",
            "vdb.1_1.dir/vdb_f0001.file",
            "vdb.1_2.dir/vdb_f0000.file",
            "vdb.1_2.dir/vdb_f0001.file",
        ]
    );
    assert_eq!(outcome.ops("getattr"), 3);
}

/// A Plan of one host among several that use a tree of 20 files.
fn plan_of_part(anchor: &std::path::Path, index: u32, count: u32) -> Plan {
    let mut plan = plan(&[anchor], 2, 2, 5, 8192);
    plan.trees[0].part = FilePart { index, count };
    plan
}

#[test]
fn several_engines_make_one_tree_and_each_uses_files_of_its_own() {
    let dir = Scratch::new();
    let anchor = dir.join("anchor");
    std::fs::create_dir(&anchor).unwrap();
    let count = 3;
    let part = |index: u32| plan_of_part(&anchor, index, count);
    let at_once = |plans: Vec<Plan>| -> Vec<TreeRun> {
        std::thread::scope(|scope| {
            let running: Vec<_> = (plans.iter())
                .map(|plan| scope.spawn(|| run(plan)))
                .collect();
            running.into_iter().map(|one| one.join().unwrap()).collect()
        })
    };
    let formats = at_once(
        (0..count)
            .map(|index| {
                let mut plan = part(index);
                add_format(&mut plan, 0, 2);
                plan
            })
            .collect(),
    );
    let done = |op: &str| -> Vec<u64> { formats.iter().map(|one| one.ops(op)).collect() };
    assert!(formats.iter().all(|one| one.code == 0));
    assert_eq!(done("create"), [7, 7, 6]);
    // Each makes those that it does not find.
    let directories = done("mkdir");
    assert!(
        directories.iter().all(|&made| made <= 6) && directories.iter().sum::<u64>() >= 6,
        "{directories:?}"
    );
    assert_eq!(sizes(&anchor), [8192; 20]);
    // Deletes: what one removes is missing, and what the others have is there.
    let mut plan = part(1);
    add(&mut plan, 0, FileOperation::Delete {})
        .tree
        .as_mut()
        .unwrap()
        .select = ONCE;
    let outcome = run(&plan);
    assert_eq!((outcome.code, outcome.ops("delete")), (0, 7));
    assert_eq!(sizes(&anchor), [8192; 13]);
}

#[test]
fn a_host_too_many_for_the_files_of_a_tree_says_so_before_anything_happens() {
    let dir = Scratch::new();
    let anchor = dir.join("anchor");
    std::fs::create_dir(&anchor).unwrap();
    let mut plan = plan_of_part(&anchor, 20, 21);
    add(&mut plan, 0, FileOperation::Getattr {}).limits.ops = 1;
    let outcome = run(&plan);
    assert_eq!(outcome.code, 3);
    assert!(
        outcome
            .fatal()
            .contains("has 20 files to use, divided among 21 hosts"),
        "{}",
        outcome.fatal()
    );
}
