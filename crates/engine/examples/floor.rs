//! What the kernel takes for an I/O, whoever asks: the floor under any load generator.
//!
//!     cargo run --release --package loadstone-engine-core --example floor -- /dev/null write
//!
//! Does 4 KiB I/Os one address after the other with the engine's own backends, without a
//! pattern, a clock or a record of latencies, and prints CPU time per I/O: medians of
//! rounds by turns. Beside it what a system call costs that does nothing, and a ring
//! operation that does nothing.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use loadstone_base::clock::Clock;
use loadstone_io::backend::psync::Psync;
use loadstone_io::backend::ring::abi::Sqe;
use loadstone_io::backend::ring::{Ring, RingOptions};
use loadstone_io::backend::uring::{Uring, UringOptions};
use loadstone_io::backend::{Io, IoBackend, Op, OpenFile, Outcome};
use loadstone_io::memory::Mapping;
use loadstone_io::usage::Usage;
use loadstone_plan::TargetKind;
use loadstone_worker::state::BATCH;

const BLOCK_BYTES: u32 = 4096;
/// Addresses go round in so many bytes.
const SPAN_BYTES: u64 = 4 << 30;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(500);
/// Steps between two looks at the time.
const STEPS: u32 = 64;

const OPTIONS: UringOptions = UringOptions {
    registered_files: true,
    fixed_buffers: true,
    iopoll: false,
    sqpoll: false,
    whole_batches: false,
    has_room: false,
};

/// A way to spend time: makes a number of I/Os and says how many.
type FloorStep<'a> = Box<dyn FnMut() -> io::Result<u32> + 'a>;

/// What is read or written, of the command line.
fn path_and_op() -> io::Result<(String, Op)> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [path, op] if op == "read" => Ok((path.clone(), Op::Read)),
        [path, op] if op == "write" && path.starts_with("/dev/null") => {
            Ok((path.clone(), Op::Write))
        }
        [_, op] if op == "write" => Err(io::Error::other(
            "writes go to /dev/null only: this checks nothing",
        )),
        _ => Err(io::Error::other("expected a path, then read or write")),
    }
}

fn main() -> io::Result<()> {
    let (path, op) = path_and_op()?;
    let file = OpenOptions::new()
        .read(op == Op::Read)
        .write(op == Op::Write)
        .open(&path)?;
    let files = [OpenFile {
        fd: file.as_raw_fd(),
        direct: false,
        kind: TargetKind::Char,
        size_bytes: SPAN_BYTES,
    }];
    let buffers = Mapping::new((BATCH * BLOCK_BYTES) as usize, false)?;
    let clock = Clock::monotonic();
    let mut uring = Uring::new(clock, OPTIONS, &files, BATCH, &buffers, &mut Vec::new())?;
    let mut psync = Psync::new(clock, &files, 1);
    let mut empty = empty_ring()?;
    let (mut at_ring, mut at_call) = (0, 0);
    let name = op.name();
    let mut ways: Vec<(String, FloorStep<'_>)> = vec![
        (
            "a system call that does nothing".into(),
            Box::new(|| Ok(enter_kernel())),
        ),
        (
            format!("a ring operation that does nothing, {BATCH} at a time"),
            Box::new(|| nothing(&mut empty)),
        ),
        (
            format!("{name} through the ring, {BATCH} at a time"),
            Box::new(|| batch(&mut uring, BATCH, op, &buffers, &mut at_ring)),
        ),
        (
            format!("{name} by a system call"),
            Box::new(|| batch(&mut psync, 1, op, &buffers, &mut at_call)),
        ),
    ];
    let mut costs = vec![Vec::new(); ways.len()];
    for _ in 0..ROUNDS {
        for ((_, step), costs) in ways.iter_mut().zip(&mut costs) {
            costs.push(cost_ns(step)?);
        }
    }
    println!("{path}: CPU time per I/O in ns, user and system, median (least to most)");
    for ((name, _), costs) in ways.iter().zip(&mut costs) {
        print(name, costs);
    }
    Ok(())
}

fn print(name: &str, costs: &mut [f64]) {
    costs.sort_by(f64::total_cmp);
    let (least, median, most) = (costs[0], costs[ROUNDS / 2], costs[ROUNDS - 1]);
    println!("{median:6.0} ({least:.0} to {most:.0})  {name}");
}

/// Processor time of the process per I/O over one round.
fn cost_ns(step: &mut FloorStep<'_>) -> io::Result<f64> {
    let (before, end) = (Usage::now(), Instant::now() + ROUND);
    let mut ios = 0;
    while Instant::now() < end {
        for _ in 0..STEPS {
            ios += u64::from(step()?);
        }
    }
    let used = Usage::now().since(&before);
    Ok((used.cpu_user_ns + used.cpu_system_ns) as f64 / ios as f64)
}

/// One hand-over of `count` I/Os, reaped.
fn batch<B: IoBackend>(
    backend: &mut B,
    count: u32,
    op: Op,
    buffers: &Mapping,
    at: &mut u64,
) -> io::Result<u32> {
    for slot in 0..count {
        backend.push(Io {
            slot,
            op,
            file: 0,
            offset: *at,
            len: BLOCK_BYTES,
            buffer: buffers.start().wrapping_add((slot * BLOCK_BYTES) as usize),
            priority: 0,
        });
        *at = (*at + u64::from(BLOCK_BYTES)) % SPAN_BYTES;
    }
    backend.flush(count, u64::MAX)?;
    let mut moved = true;
    let reaped = backend.reap(count, &mut |done| {
        moved &= done.outcome == Outcome::moved(BLOCK_BYTES)
    });
    if reaped == count && moved {
        Ok(count)
    } else {
        Err(io::Error::other("an I/O did not move its 4 KiB"))
    }
}

fn empty_ring() -> io::Result<Ring> {
    let mut ring = Ring::new(&RingOptions {
        sq_entries: BATCH,
        cq_entries: 2 * BATCH,
        iopoll: false,
        sqpoll: false,
    })?;
    ring.register_self();
    Ok(ring)
}

/// A system call that does nothing.
fn enter_kernel() -> u32 {
    // SAFETY: it has no arguments and cannot fail.
    unsafe { libc::getppid() };
    1
}

/// A batch of operation 0, which does nothing.
fn nothing(ring: &mut Ring) -> io::Result<u32> {
    for _ in 0..BATCH {
        ring.write(Sqe::default());
    }
    ring.enter(0, 0, false)?;
    Ok(ring.reap(BATCH, |_| {}))
}
