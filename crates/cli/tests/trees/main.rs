//! File operations of the whole engine in real directories: what is on the disk afterwards
//! is what the samples say was done.

mod mounts;
mod plans;
mod refusals;

use std::io::{BufRead, Read};

use loadstone_engine::plan::*;
use mounts::Mount;
use plans::*;

const ENOSPC: i32 = 28;
const EINVAL: i32 = 22;

/// A formatted tree of 6 directories and 8 files of 10,000 bytes.
fn formatted(anchor: &std::path::Path) -> Plan {
    let mut made = plan(&[anchor], 2, 2, 2, 10_000);
    add_format(&mut made, 0, 2);
    let outcome = run(&made);
    assert_eq!(outcome.code, 0, "{:?}", outcome.events);
    plan(&[anchor], 2, 2, 2, 10_000)
}

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
    for (op, ops) in [("create", 8), ("close", 8), ("write", 24), ("open", 0)] {
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
    assert_eq!(done, [0, 2, 1, 5, 2]);
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
    assert_eq!((done(1), done(2)), ([6, 0, 0, 6], [6, 0, 6, 6]));
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
    assert_eq!(done, [6, 2, 4, 6]);
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
    assert_eq!(done(3), [4, 0, 4, 4, 12, 12, 8]);
    assert_eq!(done(4), [4, 4, 4, 4, 12, 12, 8]);
    let mut plan = plans::plan(&anchors, 1, 2, 2, 10_000);
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
fn streams_of_one_tree_help_each_other_to_the_end() {
    let dir = Scratch::new();
    let anchor = dir.join("anchor");
    let mut plan = plan(&[&anchor], 2, 3, 5, 5000);
    // All in one stage: who finds nothing waits for what the others make.
    for _ in 0..2 {
        add(&mut plan, 0, FileOperation::Mkdir {});
        choosing(
            add(&mut plan, 0, FileOperation::Create { fill: true }),
            RANDOM,
        );
    }
    add(&mut plan, 0, FileOperation::Delete {}).limits.ops = 40;
    let outcome = run(&plan);
    assert_eq!(outcome.code, 0, "{:?}", outcome.events);
    assert_eq!(outcome.ops("mkdir"), 12);
    assert_eq!(outcome.ops("delete"), 40);
    assert_eq!(outcome.ops("create"), 45 + 40);
    assert_eq!(sizes(&anchor), [5000; 45]);
    let reasons: Vec<String> = (0..5).map(|stream| outcome.reason(stream)).collect();
    assert_eq!(
        reasons,
        ["exhausted", "exhausted", "exhausted", "exhausted", "ops"]
    );
}

#[test]
fn a_stream_waits_also_for_those_who_help_its_helpers() {
    let dir = Scratch::new();
    let mut plan = plan(&[dir.join("anchor")], 1, 2, 2, 4096);
    // Reads need files, files need directories, and those come late.
    add(&mut plan, 0, transfer(true, FileStop::Whole {}))
        .limits
        .ops = 50;
    add(&mut plan, 0, FileOperation::Create { fill: true });
    let late = add(&mut plan, 0, FileOperation::Mkdir {});
    late.limits.start_delay_ns = SECOND * 5 / 4;
    let outcome = run(&plan);
    assert_eq!(
        (outcome.ops("read"), outcome.reason(0).as_str()),
        (50, "ops")
    );
    assert_eq!(
        (outcome.ops("create"), outcome.reason(1).as_str()),
        (4, "exhausted")
    );
    let notes: Vec<&str> = outcome
        .of_type("note")
        .map(|note| note["text"].as_str().unwrap())
        .collect();
    for waits in [
        "tree.0 waits: there is nothing to read",
        "tree.1 waits: there is nothing to create",
    ] {
        assert!(
            notes.iter().any(|note| note.starts_with(waits)),
            "{notes:?}"
        );
    }
    // Waiting for something to do is no latency.
    let sum = outcome.sum(0, "read");
    assert!(sum.lat_sum_ns < 1.25e9, "{}", sum.lat_sum_ns);
}

#[test]
fn streams_that_wait_for_each_other_in_vain_end() {
    let dir = Scratch::new();
    let mut plan = formatted(&dir.join("anchor"));
    // Nothing is to be made, directories are not empty, and nobody deletes files.
    for operation in [
        FileOperation::Mkdir {},
        FileOperation::Rmdir {},
        FileOperation::Create { fill: false },
    ] {
        add(&mut plan, 0, operation).limits.runtime_ns = 60 * SECOND;
    }
    let outcome = run(&plan);
    assert_eq!([0, 1, 2].map(|s| outcome.reason(s)), ["exhausted"; 3]);
    assert_eq!(
        outcome.ops("rmdir") + outcome.ops("mkdir") + outcome.ops("create"),
        0
    );
}

#[test]
fn several_streams_share_a_file_only_when_they_say_so() {
    let dir = Scratch::new();
    let anchor = dir.join("anchor");
    let mut made = plan(&[&anchor], 1, 1, 1, 65_536);
    add_format(&mut made, 0, 1);
    assert_eq!(run(&made).code, 0);
    for shared in [false, true] {
        let mut plan = plan(&[&anchor], 1, 1, 1, 65_536);
        for writer in [false, true] {
            let stop = FileStop::Transfers { count: 1_000_000 };
            let stream = add(&mut plan, 0, transfer(true, stop));
            stream.limits.runtime_ns = SECOND / 4;
            stream.tree.as_mut().unwrap().shared = shared;
            if writer {
                writes(stream);
            }
        }
        let outcome = run(&plan);
        assert_eq!(outcome.code, 0);
        let active = [outcome.ops("read"), outcome.ops("write")].map(|ops| ops > 0);
        let both = active == [true, true];
        assert_eq!(both, shared, "{active:?}");
        assert!(active.contains(&true));
    }
}

#[test]
fn every_arrival_is_served_and_none_before_its_time() {
    let dir = Scratch::new();
    let mut plan = formatted(&dir.join("anchor"));
    let stream = choosing(add(&mut plan, 0, FileOperation::Getattr {}), RANDOM);
    stream.limits.ops = 200;
    stream.limits.ramp_ns = SECOND / 4;
    stream.tree.as_mut().unwrap().rate = Some(per_second(400.0));
    // Two on one worker, and one of them paced in bytes.
    let stream = add(&mut plan, 0, transfer(true, FileStop::Whole {}));
    stream.worker = 0;
    stream.limits.ops = 200;
    let per_second = 400.0 * 4096.0;
    stream.tree.as_mut().unwrap().rate = Some(Rate {
        amount: RateAmount::Bytes { per_second },
        ..self::per_second(1.0)
    });
    plan.workers.truncate(1);
    let outcome = run(&plan);
    assert_eq!(outcome.code, 0, "{:?}", outcome.events);
    assert_eq!((outcome.ops("getattr"), outcome.ops("read")), (200, 200));
    for end in outcome.of_type("stream_end") {
        // Arrivals at 0, 2.5 ms, ... 497.5 ms.
        let lasted = end["ended_ns"].as_u64().unwrap() - end["started_ns"].as_u64().unwrap();
        assert!(lasted >= 497_500_000, "{lasted}");
        assert_eq!(end["reason"], "ops");
    }
    let ramp: u64 = outcome
        .of_type("tick")
        .flat_map(|tick| tick["rows"].as_array().unwrap())
        .filter(|row| row["op"] == "getattr" && row["ramp"] == true)
        .map(|row| row["ops"].as_u64().unwrap())
        .sum();
    // Those up to 250 ms, where the machine was not late.
    assert!((1..=101).contains(&ramp), "{ramp}");
}

#[test]
fn a_symbolic_link_in_the_tree_is_refused() {
    let dir = Scratch::new();
    let outside = dir.join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("vdb_f0001.file"), "not the tree's").unwrap();
    for (link, clear) in [("vdb.1_1.dir", false), ("vdb.1_1.dir", true)] {
        let anchor = dir.join("anchor");
        std::fs::create_dir_all(&anchor).unwrap();
        std::os::unix::fs::symlink(&outside, anchor.join(link)).unwrap();
        let mut plan = plan(&[&anchor], 1, 2, 1, 4096);
        plan.trees[0].clear = clear;
        add(&mut plan, 0, FileOperation::Delete {});
        let outcome = run(&plan);
        assert_eq!(outcome.code, 3);
        assert!(
            outcome.fatal().contains("no symbolic link is followed"),
            "{}",
            outcome.fatal()
        );
        assert_eq!(sizes(&outside), [14]);
        std::fs::remove_dir_all(&anchor).unwrap();
    }
}

/// A link that comes while the run goes on leads nowhere either.
#[test]
fn a_link_that_appears_during_a_run_is_not_followed() {
    let dir = Scratch::new();
    let (anchor, outside) = (dir.join("anchor"), dir.join("outside"));
    let mut plan = formatted(&anchor);
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("vdb_f0001.file"), "not the tree's").unwrap();
    let stream = add(&mut plan, 0, transfer(false, FileStop::Whole {}));
    writes(choosing(stream, ONCE)).limits.start_delay_ns = SECOND;
    let text = after_hello(&plan, || {
        let directory = anchor.join("vdb.1_1.dir/vdb.2_1.dir");
        std::fs::rename(&directory, dir.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(&outside, &directory).unwrap();
    });
    assert!(
        text.contains("\"op\":\"open\"") && text.contains("\"errno\":40"),
        "{text}"
    );
    assert_eq!(
        std::fs::read(outside.join("vdb_f0001.file")).unwrap(),
        b"not the tree's"
    );
}

#[test]
fn a_full_file_system_is_an_event_and_the_end_of_the_stream() {
    let dir = Scratch::new();
    let mount = Mount::tmpfs(&dir.join("full"), "size=64k");
    let Some(mount) = mount else {
        return eprintln!("skipped: tmpfs cannot be mounted here (needs root)");
    };
    let mut plan = plan(&[mount.0.join("anchor")], 1, 1, 10, 10_000);
    add_format(&mut plan, 0, 1);
    let outcome = run(&plan);
    assert_eq!(outcome.code, 0);
    assert_eq!(outcome.reason(1), "error");
    let error = outcome
        .of_type("io_error")
        .find(|event| event["errno"] == ENOSPC);
    let error = error.unwrap();
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with("write of ") && message.contains(".file: "),
        "{message}"
    );
    assert!(message.contains("anchor/vdb.1_1.dir/vdb_f00"), "{message}");
    let (made, failed) = (outcome.ops("create"), outcome.sum(1, "create").errors);
    assert_eq!(failed, 1);
    let full = sizes(&mount.0)
        .into_iter()
        .filter(|&bytes| bytes == 10_000)
        .count();
    assert_eq!(full as u64, made);
    assert_eq!(outcome.ops("close"), made + 1);
}

#[test]
fn what_is_not_allowed_is_an_event() {
    let dir = Scratch::in_directory(&std::env::temp_dir());
    let (anchor, out) = (dir.join("anchor"), dir.join("out"));
    let mode = std::os::unix::fs::PermissionsExt::from_mode;
    for (path, bits) in [(&anchor, 0o555), (&out, 0o777)] {
        std::fs::create_dir(path).unwrap();
        std::fs::set_permissions(path, mode(bits)).unwrap();
    }
    let engine = std::path::Path::new(env!("CARGO_BIN_EXE_loadstone-engine"));
    // Root may do everything.
    let copy = dir.join("engine");
    std::fs::copy(engine, &copy).unwrap();
    let mut nobody = std::process::Command::new("setpriv");
    nobody.args(["--reuid=65534", "--clear-groups"]);
    let works = nobody.arg("true").status();
    if !works.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: no other user can be taken on here (needs root and setpriv)");
    }
    let mut nobody = std::process::Command::new("setpriv");
    nobody.args(["--reuid=65534", "--clear-groups"]).arg(&copy);
    let mut plan = plan(&[&anchor], 1, 3, 1, 4096);
    let stream = add(&mut plan, 0, FileOperation::Mkdir {});
    stream.errors.continue_write = true;
    stream.limits.ops = 3;
    let mut child = start_by(nobody, &plan, &out);
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("\"errno\":13").count(), 3, "{text}");
    assert!(
        text.contains("mkdir of /") && text.contains("anchor/vdb.1_3.dir: "),
        "{text}"
    );
    assert!(
        text.contains("{\"issued\":3,\"completed\":0,\"failed\":3}"),
        "{text}"
    );
    assert_eq!(found(&anchor).len(), 0);
}

#[test]
fn what_somebody_else_removes_is_an_event_and_the_run_goes_on_when_it_may() {
    let dir = Scratch::new();
    let anchor = dir.join("anchor");
    let mut plan = formatted(&anchor);
    let stream = choosing(add(&mut plan, 0, FileOperation::Getattr {}), ONCE);
    stream.errors.continue_read = true;
    stream.limits.start_delay_ns = SECOND;
    let text = after_hello(&plan, || {
        std::fs::remove_file(anchor.join("vdb.1_1.dir/vdb.2_1.dir/vdb_f0001.file")).unwrap();
    });
    assert!(
        text.contains("getattr of ") && text.contains("\"errno\":2"),
        "{text}"
    );
    let counts = "\"getattr\":{\"issued\":8,\"completed\":7,\"failed\":1}";
    assert!(
        text.contains(counts) && text.contains("\"exhausted\""),
        "{text}"
    );
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
        let mut child = start(&plan, &out.0);
        let first = anchor.join("vdb.1_1.dir/vdb_f0001.file");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while std::fs::metadata(&first).map_or(0, |meta| meta.len()) < (1 << 20) {
            assert!(std::time::Instant::now() < deadline, "nothing was written");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let stdin = child.stdin.take();
        if hard {
            child.kill().unwrap();
        } else {
            use std::io::Write;
            stdin.as_ref().unwrap().write_all(b"stop\n").unwrap();
        }
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        if !hard {
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{text}");
            assert!(text.contains("\"reason\":\"stopped\""), "{text}");
            assert!(!text.contains("\"hung\""), "{text}");
        }
        let left = std::fs::metadata(&first).unwrap().len();
        // Only the bytes that are there are read.
        let mut read = plans::plan(&[&anchor], 1, 1, 3, 256 << 20);
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
    let peak = |outcome: &Outcome| {
        let end = outcome.of_type("end").next().unwrap();
        end["rss_peak_bytes"].as_u64().unwrap()
    };
    let before = peak(&outcome);
    let small = outcome.of_type("hello").next().unwrap()["memory_bytes"]
        .as_u64()
        .unwrap();
    // Four million files are 32 MiB.
    let mut large = plan(&[dir.join("large")], 1, 4, 1 << 20, 10_240);
    add(&mut large, 0, FileOperation::Mkdir {});
    let outcome = run(&large);
    let needed = outcome.of_type("hello").next().unwrap()["memory_bytes"]
        .as_u64()
        .unwrap();
    assert!(
        needed > small + (31 << 20) && needed < small + (33 << 20),
        "{needed}"
    );
    assert!(peak(&outcome) - before < 33 << 20);
    large.memory_limit_bytes = needed - 1;
    assert_eq!(run(&large).code, 2);
}

/// A file system that stands still: what waits for it is told, and the run ends without it.
#[test]
fn an_operation_that_does_not_come_back_is_told_by_its_name() {
    let dir = Scratch::new();
    let Some(mount) = Mount::ext4(&dir.join("frozen"), 64 << 20) else {
        return eprintln!("skipped: no loop device can be mounted here (needs root)");
    };
    let mut plan = plan(&[mount.0.join("anchor")], 1, 1, 10_000, 4096);
    plan.grace_ns = SECOND / 4;
    add(&mut plan, 0, FileOperation::Mkdir {});
    let stream = add(&mut plan, 1, FileOperation::Create { fill: false });
    stream.limits.runtime_ns = 3 * SECOND;
    stream.tree.as_mut().unwrap().rate = Some(per_second(1000.0));
    let out = Scratch::new();
    let mut child = start(&plan, &out.0);
    let stdin = child.stdin.take();
    let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let mut frozen = None;
    let mut text = String::new();
    for line in lines.map(Result::unwrap) {
        if frozen.is_none() && line.contains("\"op\":\"create\"") {
            frozen = Some(mount.freeze());
        }
        let ended = line.contains("\"type\":\"end\"");
        text += &(line + "\n");
        if ended {
            // The run is over before the operation is.
            drop(frozen.take());
        }
    }
    drop(stdin);
    child.wait().unwrap();
    assert!(text.contains("\"reason\":\"failed\""), "{text}");
    let hung = "\"op\":\"create\",\"offset\":0,\"bytes\":0,\"age_ns\"";
    assert!(
        text.contains(hung) && text.contains("\"reason\":\"hung\""),
        "{text}"
    );
    assert!(text.contains("the oldest is a create in /"), "{text}");
}

fn per_second(per_second: f64) -> Rate {
    Rate {
        amount: RateAmount::Ops { per_second },
        process: RateProcess::Linear,
        profile: vec![],
        phase: 0.0,
        minimum: 0.0,
        min_window_ns: 0,
    }
}

/// Runs a Plan whose streams begin after a second, and does something to its tree when the
/// engine has looked at it. Gives the events as text.
fn after_hello(plan: &Plan, action: impl FnOnce()) -> String {
    let out = Scratch::new();
    let mut child = start(plan, &out.0);
    let stdin = child.stdin.take();
    let mut events = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("\"hello\"") {
        assert!(events.read_line(&mut text).unwrap() > 0, "{text}");
    }
    action();
    events.read_to_string(&mut text).unwrap();
    drop(stdin);
    child.wait().unwrap();
    text
}
