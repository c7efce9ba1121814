//! Can a stream's file be closed and opened again between its I/Os?
//!
//! Knows what must stay open, and what counts I/Os in another way. Opens nothing.

use super::Checked;
use loadstone_base::need;
use loadstone_plan::{Backend, Connection, Plan, Stream};

pub(super) fn check_connection(
    plan: &Plan,
    stream: &Stream,
    connection: Connection,
    path: &str,
) -> Checked {
    let backend = &plan.workers[stream.worker as usize].backend;
    let at = || format!("{path}/connection");
    need!(connection.ios > 0, "{path}/connection/ios" => "is 0, must be at least 1");
    need!(
        backend.capabilities().reopens,
        at() => "has no effect: {} opens no file again", backend.name()
    );
    let registered = matches!(
        backend,
        Backend::IoUring {
            registered_files: true,
            ..
        }
    );
    let worker = stream.worker;
    need!(
        !registered,
        "/workers/{worker}/backend/registered_files" =>
            "is true: a registered file stays open, and {path} closes it"
    );
    need!(
        stream.files.len() == 1,
        at() => "needs one file, there are {}", stream.files.len()
    );
    for (used, field) in [
        (stream.search.is_some(), "search"),
        (stream.verify.is_some(), "verify"),
        (stream.headers.is_some(), "headers"),
        (stream.flush.on_close, "flush/on_close"),
    ] {
        need!(!used, "{path}/{field}" => "does not go together with a connection");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{check, refused};
    use loadstone_plan::{plain, Backend, Connection, Plan, Stream, TargetKind};

    type Change = fn(&mut Plan);

    fn good() -> Plan {
        let stream = Stream {
            connection: Some(Connection { ios: 3 }),
            ..plain::stream()
        };
        let mut plan = plain::plan(Backend::Psync {}, vec![stream]);
        plan.targets[0] = plain::target("/tmp/somewhere", TargetKind::File, 1 << 30);
        plan
    }

    fn ring(registered_files: bool) -> Backend {
        Backend::IoUring {
            registered_files,
            fixed_buffers: true,
            iopoll: false,
            sqpoll: false,
        }
    }

    #[test]
    fn what_must_stay_open_is_not_closed() {
        assert_eq!(check(&good()), Ok(()));
        let mut on_ring = good();
        on_ring.workers[0].backend = ring(false);
        assert_eq!(check(&on_ring), Ok(()));
        let cases: [(Change, &str, &str); 6] = [
            (
                |plan| plan.streams[0].connection = Some(Connection { ios: 0 }),
                "/streams/0/connection/ios",
                "at least 1",
            ),
            (
                |plan| plan.workers[0].backend = Backend::Mmap {},
                "/streams/0/connection",
                "mmap opens no file again",
            ),
            (
                |plan| plan.workers[0].backend = Backend::Null {},
                "/streams/0/connection",
                "null opens no file again",
            ),
            (
                |plan| plan.workers[0].backend = ring(true),
                "/workers/0/backend/registered_files",
                "stays open",
            ),
            (
                |plan| {
                    let file = plan.streams[0].files[0];
                    plan.streams[0].files.push(file);
                },
                "/streams/0/connection",
                "needs one file, there are 2",
            ),
            (
                |plan| plan.streams[0].flush.on_close = true,
                "/streams/0/flush/on_close",
                "does not go together",
            ),
        ];
        for (change, place, says) in cases {
            let (path, message) = refused(good(), change);
            assert!(path == place && message.contains(says), "{path}: {message}");
        }
    }
}
