//! I/O priorities: which I/O of a stream has which, and what the kernel lets us have.
//!
//! Knows `ioprio_set(2)` and the shares of a stream. Knows no backend: those that can hand
//! a priority over with an I/O take it from [`loadstone_io::backend::Io::priority`].

use std::io;

use crate::rows::WorkerRows;
use loadstone_base::ops::{AnyOp, Op};
use loadstone_base::rng::Rng;
use loadstone_base::run_error::RunError;
use loadstone_plan::{FileUse, Plan, PriorityShare, Stream};

/// Makes the draws of priorities independent of those of addresses.
const SEED: u64 = 0x7072_696f_7269_7479;

/// `IOPRIO_WHO_PROCESS` of `linux/ioprio.h`; process 0 is the thread itself.
const WHO_PROCESS: libc::c_int = 1;

/// One share of a stream's I/Os.
#[derive(Debug)]
struct PriorityRows {
    asked: PriorityShare,
    /// Even row by file of the stream.
    rows: Vec<u32>,
}

/// Chooses the priority of each I/O of a stream.
#[derive(Debug)]
pub struct Priorities {
    shares: Vec<PriorityRows>,
    rng: Rng,
}

impl Priorities {
    /// The shares of a stream; none when all its I/Os have the priority of its thread.
    #[must_use]
    pub fn new(stream: &Stream, rows: &WorkerRows) -> Option<Box<Self>> {
        let share = |asked: &PriorityShare| {
            let op = AnyOp::Io(asked.op.op().kind());
            let row = |file: &FileUse| rows.row_at(file.cell, op, asked.priority);
            PriorityRows {
                asked: *asked,
                rows: stream.files.iter().map(row).collect(),
            }
        };
        (!stream.priorities.is_empty()).then(|| {
            Box::new(Self {
                shares: stream.priorities.iter().map(share).collect(),
                rng: Rng::new(stream.seed ^ SEED),
            })
        })
    }

    /// Priority and row of an I/O on the stream's `file`; none: its thread's.
    pub fn choose(&mut self, op: Op, bytes: u32, file: u32) -> Option<(u16, u32)> {
        let mut drawn = None;
        for share in &self.shares {
            let asked = &share.asked;
            if asked.op.op() != op || asked.block_bytes.is_some_and(|size| size != bytes) {
                continue;
            }
            // One draw for all shares of an I/O: they exclude each other.
            let left = drawn.get_or_insert_with(|| self.rng.unit() * 100.0);
            if *left < asked.percent {
                return Some((asked.priority, share.rows[file as usize]));
            }
            *left -= asked.percent;
        }
        None
    }

    /// Even rows they are counted in.
    pub fn rows(&self) -> impl Iterator<Item = u32> + '_ {
        self.shares
            .iter()
            .flat_map(|share| share.rows.iter().copied())
    }

    /// Bytes a stream's shares need.
    #[must_use]
    pub fn memory_bytes(stream: &Stream) -> u64 {
        let each = size_of::<PriorityRows>() + stream.files.len() * size_of::<u32>();
        (stream.priorities.len() * each) as u64
    }
}

/// Gives the calling thread a priority for its I/Os.
///
/// # Errors
/// `EPERM` without the right to a class, `EINVAL` for what this kernel does not know.
pub fn set(priority: u16) -> io::Result<()> {
    // SAFETY: plain numbers.
    let result = unsafe {
        libc::syscall(
            libc::SYS_ioprio_set,
            WHO_PROCESS,
            0,
            libc::c_int::from(priority),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Finds out whether the kernel lets this process have every priority of the Plan: else each
/// I/O would fail, or have another one. A thread of its own tries them and ends.
///
/// # Errors
/// [`RunError::Plan`] with the first that it may not have.
pub fn check_allowed(plan: &Plan) -> Result<(), RunError> {
    let of_workers = (plan.workers.iter().enumerate())
        .map(|(index, worker)| (format!("/workers/{index}/io_priority"), worker.io_priority));
    let of_shares = plan.streams.iter().enumerate().flat_map(|(index, stream)| {
        let share = move |(at, share): (usize, &PriorityShare)| {
            let path = format!("/streams/{index}/priorities/{at}/priority");
            (path, share.priority)
        };
        stream.priorities.iter().enumerate().map(share)
    });
    let wanted: Vec<_> = (of_workers.chain(of_shares))
        .filter(|&(_, priority)| priority != 0)
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let tried = std::thread::spawn(|| {
        wanted
            .into_iter()
            .find_map(|(path, priority)| set(priority).err().map(|error| (path, priority, error)))
    });
    match tried.join() {
        Ok(None) => Ok(()),
        Ok(Some((path, priority, error))) => Err(RunError::Plan {
            path,
            message: format!("I/O priority {}: {error}", describe(priority)),
            hint: hint(&error).into(),
        }),
        Err(_) => Err(RunError::broken("I/O priorities could not be tried", "")),
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM) => "the real-time class needs root, or CAP_SYS_NICE",
        Some(libc::EINVAL) => "this kernel does not know it: hints came with Linux 6.5",
        _ => "",
    }
}

/// Class, level and hint of a priority, as fio writes them.
fn describe(priority: u16) -> String {
    let (class, level, hint) = (priority >> 13, priority & 7, priority >> 3 & 1023);
    format!("{class}/{level}/{hint} (class/level/hint)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_plan::{plain, Backend, PriorityOp};

    fn plan(priorities: Vec<PriorityShare>) -> Plan {
        let stream = Stream {
            priorities,
            ..plain::stream()
        };
        plain::plan(Backend::Null {}, vec![stream])
    }

    fn reads(block_bytes: Option<u32>, percent: f64, priority: u16) -> PriorityShare {
        PriorityShare {
            op: PriorityOp::Read,
            block_bytes,
            percent,
            priority,
        }
    }

    fn shares(shares: Vec<PriorityShare>) -> Priorities {
        let plan = plan(shares);
        let rows = WorkerRows::new(&plan, &[0]);
        *Priorities::new(&plan.streams[0], &rows).unwrap()
    }

    #[test]
    fn each_share_gets_its_part_of_the_ios_of_its_size() {
        let mut priorities = shares(vec![
            reads(Some(4096), 25.0, 0x2001),
            reads(Some(4096), 75.0, 0x6002),
            reads(Some(512), 10.0, 0x2001),
        ]);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..10_000 {
            for bytes in [512, 4096, 8192] {
                let priority = priorities
                    .choose(Op::Read, bytes, 0)
                    .map(|(found, _)| found);
                *counts.entry((bytes, priority)).or_insert(0) += 1;
            }
        }
        let about = |bytes, priority, share: i32| {
            let count: i32 = counts.get(&(bytes, priority)).copied().unwrap_or(0);
            // Six deviations of a binomial are 300 at most.
            assert!((count - share * 100).abs() <= 300, "{counts:?}");
        };
        about(4096, Some(0x2001), 25);
        about(4096, Some(0x6002), 75);
        about(512, Some(0x2001), 10);
        about(512, None, 90);
        assert_eq!(counts.get(&(4096, None)), None);
        assert_eq!(counts[&(8192, None)], 10_000);
        assert_eq!(priorities.choose(Op::Write, 4096, 0), None);
    }

    #[test]
    fn each_priority_has_a_row_of_its_own_and_the_threads_has_the_plain_one() {
        let mut plan = plan(vec![reads(None, 50.0, 0x2000), reads(None, 50.0, 0x4004)]);
        plan.workers[0].io_priority = 0x4004;
        let rows = WorkerRows::new(&plan, &[0]);
        let read = AnyOp::Io(loadstone_base::ops::OpKind::Read);
        assert_eq!(rows.len(), 4);
        assert_eq!(rows.row_at(0, read, 0x4004), rows.row(0, read));
        let (real_time, ramp) = rows.meaning(rows.row_at(0, read, 0x2000) + 1);
        assert_eq!((real_time.priority, ramp), (0x2000, true));
        assert_eq!(rows.meaning(rows.row(0, read)).0.priority, 0x4004);
    }

    #[test]
    fn a_priority_the_kernel_does_not_know_is_found_before_the_run() {
        let mut plan = plan(Vec::new());
        check_allowed(&plan).unwrap();
        plan.workers[0].io_priority = 7 << 13;
        let fault = check_allowed(&plan).unwrap_err();
        assert!(fault
            .to_string()
            .starts_with("/workers/0/io_priority: I/O priority 7/0/0"));
    }
}
