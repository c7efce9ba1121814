//! Do workers, stages and the streams of each fit together?
//!
//! Knows who runs when. Knows nothing of what a stream does.

use std::collections::BTreeSet;

use super::{within, Checked};
use loadstone_base::need;
use loadstone_plan::Plan;

/// Every worker has a stream, and every stage a worker.
pub(super) fn check_workers(plan: &Plan) -> Checked {
    for (index, stream) in plan.streams.iter().enumerate() {
        let path = format!("/streams/{index}/worker");
        within(stream.worker, plan.workers.len(), &path, "workers")?;
    }
    let streams = plan.streams_by_worker();
    for (index, worker) in plan.workers.iter().enumerate() {
        let path = |field: &str| format!("/workers/{index}/{field}");
        need!(
            (-20..=19).contains(&worker.nice),
            path("nice") => "is {}, must be -20 to 19", worker.nice
        );
        need!(
            worker.cpus.iter().all(|&cpu| cpu < libc::CPU_SETSIZE as u32),
            path("cpus") => "no such CPU"
        );
        need!(
            worker.force_async == 0 || worker.backend.capabilities().force_async,
            path("force_async") => "is {}, and the backend is no ring", worker.force_async
        );
        need!(!streams[index].is_empty(), "/workers/{index}" => "has no stream");
    }
    let stages: BTreeSet<u32> = plan.workers.iter().map(|worker| worker.stage).collect();
    let missing = (0..).zip(&stages).find(|(number, stage)| number != *stage);
    let number = missing.map_or(0, |(number, _)| number);
    need!(
        missing.is_none(),
        "/workers" => "stage {number} has no worker; stages count from 0 without gaps"
    );
    Ok(())
}

/// A stream waits for earlier ones of its stage; on virtual clocks, for those of its own.
pub(super) fn check_waits(plan: &Plan, index: u32) -> Checked {
    let worker = plan.streams[index as usize].worker;
    let this = &plan.workers[worker as usize];
    for (at, &other) in plan.streams[index as usize].wait_for.iter().enumerate() {
        let path = || format!("/streams/{index}/wait_for/{at}");
        need!(other < index, path() => "is {other}, must be a stream before this one, {index}");
        let others = plan.streams[other as usize].worker;
        let simulated = this.backend.capabilities().virtual_time;
        need!(
            plan.workers[others as usize].stage == this.stage && (!simulated || others == worker),
            path() => "is {other}, which does not run beside this one on the same clock"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{check, refused};
    use loadstone_plan::{plain, Backend, Plan, Stream};

    type Change = fn(&mut Plan);

    /// Two stages of one worker and one stream each.
    fn good() -> Plan {
        let later = Stream {
            worker: 1,
            ..plain::stream()
        };
        let mut plan = plain::plan(Backend::Null {}, vec![plain::stream(), later]);
        plan.workers.push(plain::worker(1, Backend::Null {}));
        plan
    }

    #[test]
    fn every_worker_has_a_stream_and_every_stage_a_worker() {
        assert_eq!(check(&good()), Ok(()));
        let cases: [(Change, &str, &str); 6] = [
            (
                |plan| plan.workers[1].force_async = 2,
                "/workers/1/force_async",
                "is 2, and the backend is no ring",
            ),
            (
                |plan| plan.streams[1].worker = 2,
                "/streams/1/worker",
                "is 2, there are 2 workers",
            ),
            (
                |plan| plan.streams[1].worker = 0,
                "/workers/1",
                "has no stream",
            ),
            (
                |plan| plan.workers[0].stage = 1,
                "/workers",
                "stage 0 has no worker",
            ),
            (
                |plan| plan.workers[1].stage = 2,
                "/workers",
                "stage 1 has no worker",
            ),
            (
                |plan| plan.workers[1].nice = 20,
                "/workers/1/nice",
                "is 20, must be -20 to 19",
            ),
        ];
        for (change, place, says) in cases {
            let (path, message) = refused(good(), change);
            assert_eq!(path, place);
            assert!(message.starts_with(says), "{message}");
        }
    }
}
