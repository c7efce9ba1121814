//! What stands in the way of an operation is told, and nothing outside the tree is touched.

use std::os::unix::fs::MetadataExt;

use loadstone_plan::*;
use serde_json::json;

use crate::mounts::Mount;
use crate::plans::*;
use crate::support::{engine, finish, of_type, start};

const ENOENT: i32 = 2;
const EACCES: i32 = 13;
const ENOSPC: i32 = 28;
const ELOOP: i32 = 40;
const ESTALE: i32 = 116;

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
    writes(choosing(stream, ONCE)).limits.start_delay_ns = SECOND_NS;
    let outcome = after_hello(&plan, || {
        let directory = anchor.join("vdb.1_1.dir/vdb.2_1.dir");
        std::fs::rename(&directory, dir.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(&outside, &directory).unwrap();
    });
    let mut errors = outcome.of_type("io_error");
    assert!(
        errors.any(|event| event["op"] == "open" && event["errno"] == ELOOP),
        "{:?}",
        outcome.events
    );
    assert_eq!(
        std::fs::read(outside.join("vdb_f0001.file")).unwrap(),
        b"not the tree's"
    );
}

/// The files of the tree that the run found are others: what took their names is somebody's.
#[test]
fn what_is_moved_onto_a_name_during_a_run_is_neither_written_nor_removed() {
    let in_order = |random| transfer(random, FileStop::Whole {});
    let FileOperation::Transfer { random, stop, .. } = in_order(false) else {
        unreachable!()
    };
    let anew = FileOperation::Transfer {
        random,
        stop,
        delete_before: true,
    };
    let (copy, to) = (FileOperation::Copy { to: 1 }, FileOperation::Move { to: 1 });
    for (operation, taken, reads) in [
        (in_order(false), 0, 0),
        (in_order(true), 0, 0),
        (in_order(true), 0, 50),
        (anew, 0, 0),
        (FileOperation::Delete {}, 0, 100),
        (copy, 1, 100),
        (to, 0, 100),
        (to, 1, 100),
    ] {
        let dir = Scratch::new();
        let anchors = [dir.join("one"), dir.join("two")];
        anchors.iter().for_each(|anchor| drop(formatted(anchor)));
        let mut plan = plan(&anchors, 2, 2, 2, 10_000);
        let stream = choosing(add(&mut plan, 0, operation), ONCE);
        (stream.pattern.read_percent, stream.pattern.write_percent) = (reads, 100 - reads);
        (stream.errors.continue_read, stream.errors.continue_write) = (true, true);
        stream.limits.start_delay_ns = SECOND_NS;
        let (mine, name) = (dir.join("mine"), "vdb.1_1.dir/vdb.2_1.dir/vdb_f0001.file");
        let placed = anchors[taken].join(name);
        std::fs::write(&mine, "two years of work").unwrap();
        let outcome = after_hello(&plan, || std::fs::rename(&mine, &placed).unwrap());
        let kept = std::fs::read(&placed).ok();
        assert_eq!(
            kept.as_deref(),
            Some(&b"two years of work"[..]),
            "{operation:?}"
        );
        let mut errors = outcome.of_type("io_error");
        assert!(
            errors.any(|event| event["errno"] == ESTALE),
            "{operation:?}"
        );
        let left = outcome.of_type("tree");
        let foreign: Vec<_> = left.filter(|event| event["foreign"] == 1).collect();
        assert_eq!(foreign.len(), 1, "{operation:?}: {:?}", outcome.events);
        assert_eq!(foreign[0]["first"], name);
    }
}

/// What comes where the tree has no file is not replaced by a move, and is told.
#[test]
fn what_comes_to_a_free_name_during_a_run_is_kept_and_told() {
    let dir = Scratch::new();
    let anchors = [dir.join("one"), dir.join("two")];
    formatted(&anchors[0]);
    let mut made = plan(&anchors[1..], 2, 2, 2, 10_000);
    add(&mut made, 0, FileOperation::Mkdir {});
    assert_eq!(run(&made).code, 0);
    let mut plan = plan(&anchors, 2, 2, 2, 10_000);
    let stream = choosing(add(&mut plan, 0, FileOperation::Move { to: 1 }), ONCE);
    stream.errors.continue_read = true;
    stream.limits.start_delay_ns = SECOND_NS;
    let directory = anchors[1].join("vdb.1_1.dir/vdb.2_1.dir");
    // The second has a number that no file of this tree has.
    let names = ["vdb_f0001.file", "vdb_f0099.file"].map(|name| directory.join(name));
    let outcome = after_hello(&plan, || {
        for name in &names {
            std::fs::write(name, "mine").unwrap();
        }
    });
    for name in &names {
        assert_eq!(std::fs::read(name).unwrap(), b"mine");
    }
    let told = outcome.of_type("tree").find(|event| event["target"] == 1);
    assert_eq!(told.unwrap()["foreign"], 2, "{:?}", outcome.events);
}

#[test]
fn what_came_after_the_tree_was_looked_at_ends_the_run_before_it_begins() {
    for clear in [false, true] {
        let dir = Scratch::new();
        let anchor = dir.join("anchor");
        let mut plan = formatted(&anchor);
        let name = anchor.join("vdb.1_1.dir/vdb.2_1.dir/vdb_f0001.file");
        let changed = std::fs::metadata(&name).unwrap();
        let changed_ns = changed.ctime() as u64 * SECOND_NS + changed.ctime_nsec() as u64;
        plan.trees[0].vouched_ns = Some(changed_ns + SECOND_NS / 10);
        plan.trees[0].clear = clear;
        add(&mut plan, 0, FileOperation::Delete {});
        std::thread::sleep(std::time::Duration::from_millis(200));
        std::fs::write(dir.join("mine"), "mine").unwrap();
        std::fs::rename(dir.join("mine"), &name).unwrap();
        let outcome = run(&plan);
        assert_eq!(outcome.code, 3);
        let said = outcome.fatal();
        assert!(said.contains("came or was changed after"), "{said}");
        assert_eq!(std::fs::read(&name).unwrap(), b"mine");
    }
}

/// Files in a directory keep their ctime when it is moved: 1,288 sectors of two were written over.
#[test]
fn a_directory_that_came_with_old_files_ends_the_run_before_it_begins() {
    for clear in [false, true] {
        let dir = Scratch::new();
        let anchor = dir.join("anchor");
        let mine = dir.join("mine/vdb.2_1.dir");
        std::fs::create_dir_all(&mine).unwrap();
        std::fs::write(mine.join("vdb_f0001.file"), "mine").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
        let mut plan = formatted(&anchor);
        let top = anchor.join("vdb.1_1.dir");
        let changed_ns = |path: &std::path::Path| {
            let found = std::fs::metadata(path).unwrap();
            found.ctime() as u64 * SECOND_NS + found.ctime_nsec() as u64
        };
        plan.trees[0].vouched_ns = Some(
            changed_ns(&top.join("vdb.2_1.dir/vdb_f0001.file")).max(changed_ns(&top))
                + SECOND_NS / 10,
        );
        plan.trees[0].clear = clear;
        add(&mut plan, 0, FileOperation::Delete {});
        std::thread::sleep(std::time::Duration::from_millis(200));
        std::fs::rename(&top, dir.join("aside")).unwrap();
        std::fs::rename(dir.join("mine"), &top).unwrap();
        let outcome = run(&plan);
        assert_eq!(outcome.code, 3);
        let said = outcome.fatal();
        assert!(said.contains("came or was changed after"), "{said}");
        let kept = std::fs::read(top.join("vdb.2_1.dir/vdb_f0001.file")).unwrap();
        assert_eq!(kept, b"mine");
    }
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
    // Root may do everything.
    let copy = dir.join("engine");
    std::fs::copy(engine().get_program(), &copy).unwrap();
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
    let events = finish(start(nobody, &plan, &out), |_| ()).events;
    let errors: Vec<_> = of_type(&events, "io_error").collect();
    assert!(
        errors.len() == 3 && errors.iter().all(|event| event["errno"] == EACCES),
        "{errors:?}"
    );
    let message = errors[2]["message"].as_str().unwrap();
    assert!(
        message.starts_with("mkdir of /") && message.contains("anchor/vdb.1_3.dir: "),
        "{message}"
    );
    let end = of_type(&events, "stream_end").next().unwrap();
    assert_eq!(
        end["file_ops"]["mkdir"],
        json!({"issued": 3, "completed": 0, "failed": 3})
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
    stream.limits.start_delay_ns = SECOND_NS;
    let outcome = after_hello(&plan, || {
        std::fs::remove_file(anchor.join("vdb.1_1.dir/vdb.2_1.dir/vdb_f0001.file")).unwrap();
    });
    let error = outcome.of_type("io_error").next().unwrap();
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("getattr of "), "{message}");
    assert_eq!(error["errno"], ENOENT);
    let end = outcome.of_type("stream_end").next().unwrap();
    assert_eq!(
        (&end["reason"], &end["file_ops"]["getattr"]),
        (
            &json!("exhausted"),
            &json!({"issued": 8, "completed": 7, "failed": 1})
        )
    );
}

/// A file system that stands still: what waits for it is told, and the run ends without it.
#[test]
fn an_operation_that_does_not_come_back_is_told_by_its_name() {
    let dir = Scratch::new();
    let Some(mount) = Mount::ext4(&dir.join("frozen"), 64 << 20) else {
        return eprintln!("skipped: no loop device can be mounted here (needs root)");
    };
    let mut plan = plan(&[mount.0.join("anchor")], 1, 1, 10_000, 4096);
    plan.grace_ns = SECOND_NS / 4;
    add(&mut plan, 0, FileOperation::Mkdir {});
    let stream = add(&mut plan, 1, FileOperation::Create { fill: false });
    stream.limits.runtime_ns = 3 * SECOND_NS;
    stream.tree.as_mut().unwrap().rate = Some(plain::rate(1000.0));
    let mut frozen = None;
    let outcome = heard(&plan, |event| {
        let mut rows = event["rows"].as_array().into_iter().flatten();
        if frozen.is_none() && rows.any(|row| row["op"] == "create") {
            frozen = Some(mount.freeze());
        }
        if event["type"] == "end" {
            // The run is over before the operation is.
            frozen = None;
        }
    });
    let end = outcome.of_type("end").next().unwrap();
    assert_eq!(end["reason"], "failed");
    // It stands in the open that makes the file.
    let hung = outcome.of_type("hung").next().unwrap();
    assert_eq!(
        (&hung["op"], &hung["offset"], &hung["bytes"]),
        (&json!("open"), &json!(0), &json!(0))
    );
    assert_eq!(outcome.reason(1), "hung");
    let mut notes = outcome.of_type("note");
    let waits = "the oldest: open in /";
    assert!(
        notes.any(|note| note["text"].as_str().unwrap().contains(waits)),
        "{:?}",
        outcome.events
    );
}

/// Runs a Plan whose streams begin after a second, and does something to its tree when the
/// engine has looked at it.
fn after_hello(plan: &Plan, mut action: impl FnMut()) -> TreeRun {
    heard(plan, |event| {
        if event["type"] == "hello" {
            action();
        }
    })
}
