//! Parts of the engine beside libraries that have the same, in CPU time per call.
//!
//! `cargo run --release --manifest-path bench/libraries/Cargo.toml`. Rounds of the two sides
//! alternate and the medians of their thread CPU time are told, so that other load on the host
//! weighs on both. Knows no device: the rings do no-ops.

use std::hint::black_box;

use io_uring::{opcode, IoUring};
use loadstone_base::clock::{monotonic_ns, Calibration};
use loadstone_base::rng::{mix, Rng};
use loadstone_io::backend::ring::{abi::Sqe, Ring, RingOptions, NO_TIMEOUT};
use loadstone_worker::histogram::{bucket_of, BUCKETS};

const ROUNDS: usize = 15;
const CALLS: u64 = 2_000_000;
const BATCH: u32 = 32;

fn cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn per_call(calls: u64, work: &mut dyn FnMut(u64)) -> f64 {
    let before = cpu_ns();
    work(calls);
    (cpu_ns() - before) as f64 / calls as f64
}

fn beside(
    name: &str,
    library: &str,
    calls: u64,
    ours: &mut dyn FnMut(u64),
    theirs: &mut dyn FnMut(u64),
) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        a.push(per_call(calls, ours));
        b.push(per_call(calls, theirs));
    }
    let median = |found: &mut Vec<f64>| {
        found.sort_by(f64::total_cmp);
        found[found.len() / 2]
    };
    let (a, b) = (median(&mut a), median(&mut b));
    println!(
        "{name:<28} {a:8.2} ns   {library:<14} {b:8.2} ns   x{:.2}",
        b / a
    );
}

fn main() {
    histogram();
    random();
    clock();
    ring();
}

fn histogram() {
    let mut counts = vec![0u32; BUCKETS];
    let mut library = hdrhistogram::Histogram::<u32>::new_with_bounds(1, 1 << 44, 2).unwrap();
    beside(
        "histogram, one value",
        "hdrhistogram",
        CALLS,
        &mut |calls| {
            for n in 0..calls {
                counts[bucket_of(20_000 + (mix(n) & 0xffff))] += 1;
            }
            black_box(&counts);
        },
        &mut |calls| {
            for n in 0..calls {
                library.saturating_record(20_000 + (mix(n) & 0xffff));
            }
            black_box(&library);
        },
    );
    println!(
        "{:<28} {:8} KiB  {:<14} {:8} KiB",
        "histogram, memory",
        BUCKETS * 4 / 1024,
        "hdrhistogram",
        library.distinct_values() * 4 / 1024
    );
}

fn random() {
    let mut ours = Rng::new(1);
    let mut library = fastrand::Rng::with_seed(1);
    beside(
        "random number below n",
        "fastrand",
        CALLS,
        &mut |calls| {
            for _ in 0..calls {
                black_box(ours.below(262_144));
            }
        },
        &mut |calls| {
            for _ in 0..calls {
                black_box(library.u64(0..262_144));
            }
        },
    );
}

fn clock() {
    let ours = Calibration::start().finish();
    let library = quanta::Clock::new();
    println!("clock source: {}", ours.name());
    beside(
        "clock reading",
        "quanta",
        CALLS,
        &mut |calls| {
            for _ in 0..calls {
                black_box(ours.now_ns());
            }
        },
        &mut |calls| {
            for _ in 0..calls {
                black_box(library.now());
            }
        },
    );
    let drift = |read: &mut dyn FnMut() -> u64| {
        let (kernel, counted) = (monotonic_ns(), read());
        std::thread::sleep(std::time::Duration::from_secs(2));
        let passed = (monotonic_ns() - kernel) as f64;
        ((read() - counted) as f64 / passed - 1.0).abs() * 1e6
    };
    let start = library.now();
    println!(
        "{:<28} {:8.2} ppm  {:<14} {:8.2} ppm",
        "clock, off after 2 s",
        drift(&mut || ours.now_ns()),
        "quanta",
        drift(&mut || library.now().duration_since(start).as_nanos() as u64)
    );
}

fn ring() {
    let options = RingOptions {
        sq_entries: BATCH,
        cq_entries: 2 * BATCH,
        iopoll: false,
        sqpoll: false,
    };
    let Ok(mut ours) = Ring::<Sqe>::new(&options) else {
        println!("ring: io_uring is not available here");
        return;
    };
    ours.register_self();
    let mut library: IoUring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_coop_taskrun()
        .setup_cqsize(2 * BATCH)
        .build(BATCH)
        .expect("the kernel takes these flags");
    let entry = Sqe {
        user_data: 1,
        ..Sqe::default()
    };
    beside(
        "ring, a no-op in 32",
        "io-uring",
        u64::from(BATCH) * 2_000,
        &mut |calls| {
            for _ in 0..calls / u64::from(BATCH) {
                for _ in 0..BATCH {
                    ours.write(entry);
                }
                ours.enter(BATCH, NO_TIMEOUT, false).unwrap();
                black_box(ours.reap(BATCH, |cqe| {
                    black_box(cqe.user_data);
                }));
            }
        },
        &mut |calls| {
            for _ in 0..calls / u64::from(BATCH) {
                for _ in 0..BATCH {
                    let nop = opcode::Nop::new().build().user_data(1);
                    // SAFETY: a no-op refers to no memory.
                    unsafe { library.submission().push(&nop) }.unwrap();
                }
                library.submit_and_wait(BATCH as usize).unwrap();
                for cqe in library.completion() {
                    black_box(cqe.user_data());
                }
            }
        },
    );
}
