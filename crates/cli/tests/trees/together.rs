//! Several streams of one tree: who waits for whom, who shares, and who is when due.

use loadstone_plan::*;

use crate::plans::*;

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
    late.limits.start_delay_ns = SECOND_NS * 5 / 4;
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
        add(&mut plan, 0, operation).limits.runtime_ns = 60 * SECOND_NS;
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
            stream.limits.runtime_ns = SECOND_NS / 4;
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
    stream.limits.ramp_ns = SECOND_NS / 4;
    stream.tree.as_mut().unwrap().rate = Some(plain::rate(400.0));
    // Two on one worker, and one of them paced in bytes.
    let stream = add(&mut plan, 0, transfer(true, FileStop::Whole {}));
    stream.worker = 0;
    stream.limits.ops = 200;
    let per_second = 400.0 * 4096.0;
    stream.tree.as_mut().unwrap().rate = Some(Rate {
        amount: RateAmount::Bytes { per_second },
        ..plain::rate(1.0)
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
