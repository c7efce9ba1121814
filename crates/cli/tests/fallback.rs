//! A ring that cannot be had: the run goes on by what the host has, and says so.

mod support;

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::Command;

use loadstone_plan::plain;
use loadstone_plan::*;
use support::{engine, finish, of_type, start, EngineRun, Scratch};

const DEPTH: u32 = 8;
const OPS: u64 = 4000;
/// What a plain stream covers.
const BYTES: u64 = 1 << 30;

/// The engine in a process where each of `calls` fails with an error number.
fn forbidding(calls: &[(libc::c_long, i32)]) -> Command {
    let filter = filter(calls);
    let mut command = engine();
    // SAFETY: makes two system calls; the filter is allocated before the fork.
    unsafe {
        command.pre_exec(move || {
            let program = libc::sock_fprog {
                len: filter.len() as u16,
                filter: filter.as_ptr().cast_mut(),
            };
            let new = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            let set = libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program);
            if new != 0 || set != 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
    command
}

/// A classic BPF program over `seccomp_data`, whose first word is the number of the call
/// (Linux Documentation/userspace-api/seccomp_filter.rst).
fn filter(calls: &[(libc::c_long, i32)]) -> Vec<libc::sock_filter> {
    let statement = |code: u32, jf: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf,
        k,
    };
    let answer = |value: u32| statement(libc::BPF_RET | libc::BPF_K, 0, value);
    let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for &(call, errno) in calls {
        let equals = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        program.push(statement(equals, 1, call as u32));
        program.push(answer(libc::SECCOMP_RET_ERRNO | errno as u32));
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    program
}

fn ring(iopoll: bool) -> Backend {
    Backend::IoUring {
        registered_files: true,
        fixed_buffers: true,
        iopoll,
        sqpoll: false,
    }
}

/// Reads of a file of zeros at a depth.
fn run(command: Command, backend: Backend) -> EngineRun {
    let dir = Scratch::new();
    let file = dir.join("data");
    File::create(&file).unwrap().set_len(BYTES).unwrap();
    let mut stream = plain::stream();
    stream.iodepth = DEPTH;
    stream.limits.ops = OPS;
    stream.limits.runtime_ns = 0;
    stream.limits.time_based = false;
    let polls = matches!(backend, Backend::IoUring { iopoll: true, .. });
    let mut plan = plain::plan(backend, vec![stream]);
    plan.targets = vec![plain::target(
        file.to_str().unwrap(),
        TargetKind::File,
        BYTES,
    )];
    plan.targets[0].direct = polls;
    finish(start(command, &plan, &dir.0), |_| {})
}

fn notes(run: &EngineRun) -> String {
    let texts = of_type(&run.events, "note").map(|event| event["text"].as_str().unwrap());
    texts.collect::<Vec<_>>().join("\n")
}

fn ran_whole(run: &EngineRun, backend: &str) {
    assert_eq!(run.code, 0, "{:?}", run.events);
    let end = of_type(&run.events, "stream_end").next().unwrap();
    assert_eq!(end["backend"], backend);
    assert_eq!(end["completed"][0], OPS);
}

#[test]
fn without_a_ring_libaio_does_the_same_ios() {
    for (errno, why) in [
        (libc::EPERM, "io_uring is forbidden"),
        (libc::ENOSYS, "has no io_uring"),
        (libc::ENOMEM, "RLIMIT_MEMLOCK"),
    ] {
        let run = run(
            forbidding(&[(libc::SYS_io_uring_setup, errno)]),
            ring(false),
        );
        ran_whole(&run, "libaio");
        assert!(notes(&run).contains(why), "{}", notes(&run));
        assert!(notes(&run).contains("libaio"), "{}", notes(&run));
    }
}

#[test]
fn without_a_ring_and_libaio_system_calls_do_them_at_depth_one() {
    let run = run(
        forbidding(&[
            (libc::SYS_io_uring_setup, libc::EPERM),
            (libc::SYS_io_setup, libc::ENOSYS),
        ]),
        ring(false),
    );
    ran_whole(&run, "psync");
    assert!(notes(&run).contains("psync at depth 1"), "{}", notes(&run));
}

#[test]
fn polling_has_no_replacement() {
    let run = run(
        forbidding(&[(libc::SYS_io_uring_setup, libc::EPERM)]),
        ring(true),
    );
    assert_eq!(run.code, 4, "{:?}", run.events);
    let fatal = of_type(&run.events, "fatal").next().unwrap();
    assert!(fatal["hint"].as_str().unwrap().contains("hipri"), "{fatal}");
}

#[test]
fn where_there_is_a_ring_it_runs() {
    let run = run(engine(), ring(false));
    if notes(&run).contains("I/O is done by") {
        eprintln!("skipped: this host has no io_uring ({})", notes(&run));
        return;
    }
    ran_whole(&run, "io_uring");
}
