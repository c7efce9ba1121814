//! What stands in the way of an operation is told, and nothing outside the tree is touched.

use std::io::{BufRead, Read};

use loadstone_engine::plan::*;

use crate::mounts::Mount;
use crate::plans::*;

const ENOSPC: i32 = 28;

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
    stream.limits.start_delay_ns = SECOND_NS;
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
    // It stands in the open that makes the file.
    let hung = "\"op\":\"open\",\"offset\":0,\"bytes\":0,\"age_ns\"";
    assert!(
        text.contains(hung) && text.contains("\"reason\":\"hung\""),
        "{text}"
    );
    assert!(text.contains("the oldest: open in /"), "{text}");
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
