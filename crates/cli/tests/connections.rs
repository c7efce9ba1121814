//! Streams that close their file and open it again: what they count, and what they refuse to open.

#[allow(dead_code, reason = "each test crate uses its own part of it")]
mod support;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use loadstone_plan::{plain, Backend, Batch, Connection, Plan, TargetKind};
use serde_json::Value;
use support::{engine, finish, of_type, start, EngineRun, Scratch};

const BYTES: u64 = 1 << 20;

fn ring() -> Backend {
    Backend::IoUring {
        registered_files: false,
        fixed_buffers: true,
        iopoll: false,
        sqpoll: false,
    }
}

/// Writes to a file, `ios` in each connection.
fn plan(backend: Backend, path: &Path, iodepth: u32, ios: u32) -> Plan {
    let mut stream = plain::stream();
    stream.iodepth = iodepth;
    stream.connection = Some(Connection { ios });
    stream.pattern.read_percent = 0;
    stream.pattern.write_percent = 100;
    stream.files[0].length_bytes = BYTES;
    let mut plan = plain::plan(backend, vec![stream]);
    plan.targets = vec![plain::target(
        path.to_str().unwrap(),
        TargetKind::File,
        BYTES,
    )];
    plan
}

fn with_ops(mut plan: Plan, ops: u64) -> Plan {
    let limits = &mut plan.streams[0].limits;
    (limits.ops, limits.runtime_ns, limits.time_based) = (ops, 0, false);
    plan
}

fn end(run: &EngineRun) -> &Value {
    of_type(&run.events, "stream_end").next().unwrap()
}

fn done(end: &Value, op: &str) -> u64 {
    end["file_ops"][op]["completed"].as_u64().unwrap()
}

/// In batches that are handed over and waited for together, as of sequential direct I/O.
#[test]
fn batches_end_with_their_connection() {
    for (low, ios, ops, closed) in [
        (8, 6, 60, 10),
        (2, 6, 60, 10),
        (2, 20, 60, 3),
        (1, 1, 10, 10),
    ] {
        let dir = Scratch::new();
        let path = dir.join("data");
        File::create(&path).unwrap().set_len(BYTES).unwrap();
        let mut plan = with_ops(plan(ring(), &path, 8, ios), ops);
        plan.streams[0].batch = Some(Batch {
            submit: 4,
            complete_min: 4,
            complete_max: 8,
            low,
        });
        let run = finish(start(engine(), &plan, &dir.0), |_| {});
        assert_eq!(run.code, 0, "{:?}", run.events);
        assert_eq!(end(&run)["completed"][1], ops);
        assert_eq!(done(end(&run), "connection"), closed, "{low} {ios}");
    }
}

#[test]
fn a_connection_has_as_many_ios_as_it_was_asked_for() {
    for backend in [ring(), Backend::Libaio {}, Backend::Psync {}] {
        for (iodepth, ios, ops, closed) in [
            (1, 1, 40, 40),
            (8, 1, 40, 40),
            (8, 3, 100, 33),
            (4, 50, 100, 2),
            (4, 200, 100, 0),
        ] {
            let dir = Scratch::new();
            let path = dir.join("data");
            File::create(&path).unwrap().set_len(BYTES).unwrap();
            let plan = with_ops(plan(backend.clone(), &path, iodepth, ios), ops);
            let run = finish(start(engine(), &plan, &dir.0), |_| {});
            let end = end(&run);
            assert_eq!(run.code, 0, "{:?}", run.events);
            assert_eq!(end["completed"][1], ops, "{end}");
            assert_eq!(done(end, "close"), closed, "{end}");
            assert_eq!(done(end, "connection"), closed, "{end}");
            assert_eq!(done(end, "open"), closed + 1, "{end}");
            // No more are in flight than one connection has.
            let deep = end["depth"].as_array().unwrap();
            let column = u64::from(iodepth.min(ios)).ilog2() as usize;
            let deeper: u64 = deep[column + 1..].iter().map(|n| n.as_u64().unwrap()).sum();
            assert_eq!(deeper, 0, "{end}");
        }
    }
}

/// What becomes of a run when something else gets the name of its file after a second.
fn replaced(backend: Backend, replace: impl Fn(&Path)) -> (EngineRun, Scratch) {
    let dir = Scratch::new();
    let path = dir.join("data");
    File::create(&path).unwrap().set_len(BYTES).unwrap();
    let mut plan = plan(backend, &path, 2, 5);
    plan.streams[0].limits.runtime_ns = 20 * plain::SECOND_NS;
    let mut is_replaced = false;
    let run = finish(start(engine(), &plan, &dir.0), |event| {
        if event["type"] == "tick" && !is_replaced {
            is_replaced = true;
            replace(&path);
        }
    });
    (run, dir)
}

fn ended_by_its_open(run: &EngineRun, says: &str) {
    assert_eq!(end(run)["reason"], "error", "{:?}", run.events);
    let error = of_type(&run.events, "io_error").next().unwrap();
    assert_eq!(error["op"], "open");
    assert!(error["message"].as_str().unwrap().contains(says), "{error}");
    assert_eq!(end(run)["file_ops"]["open"]["failed"], 1);
}

#[test]
fn a_stranger_with_the_name_of_the_target_is_not_written_to() {
    let content = vec![7_u8; BYTES as usize];
    for backend in [ring(), Backend::Libaio {}, Backend::Psync {}] {
        let (run, dir) = replaced(backend.clone(), |path| {
            fs::write(path.with_extension("new"), &content).unwrap();
            fs::rename(path.with_extension("new"), path).unwrap();
        });
        ended_by_its_open(&run, "is not what was checked");
        assert!(fs::read(dir.join("data")).unwrap() == content);

        let (run, dir) = replaced(backend, |path| {
            let own = path.with_extension("own");
            fs::write(&own, &content).unwrap();
            symlink(&own, path.with_extension("link")).unwrap();
            fs::rename(path.with_extension("link"), path).unwrap();
        });
        ended_by_its_open(&run, "is not what was checked");
        assert!(fs::read(dir.join("data.own")).unwrap() == content);
    }
}

#[test]
fn a_name_that_is_gone_or_leads_to_no_file_ends_the_stream_and_hangs_nobody() {
    let (run, _dir) = replaced(ring(), |path| fs::remove_file(path).unwrap());
    ended_by_its_open(&run, "cannot open");

    let (run, _dir) = replaced(ring(), |path| {
        let pipe = path.with_extension("pipe");
        assert!(Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success());
        fs::rename(&pipe, path).unwrap();
    });
    ended_by_its_open(&run, "is not a regular file");
}

#[test]
fn the_same_file_by_a_link_that_moved_is_still_the_target() {
    let dir = Scratch::new();
    let (file, link) = (dir.join("data"), dir.join("link"));
    File::create(&file).unwrap().set_len(BYTES).unwrap();
    symlink(&file, &link).unwrap();
    let plan = with_ops(plan(ring(), &link, 4, 10), 200);
    let run = finish(start(engine(), &plan, &dir.0), |_| {});
    assert_eq!((run.code, done(end(&run), "connection")), (0, 20));
}
