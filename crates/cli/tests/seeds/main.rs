//! Thousands of small Plans on a simulated device: whatever is asked for and whatever the
//! device does, the counters balance.
//!
//! Every number from 0 on makes one Plan (`plans`), which the real worker loop runs on
//! virtual time while a witness (`witness`) between it and the device writes down what
//! went by. The laws (`laws`) hold the engine's counters against the witness. A seed that
//! breaks one is named; `LOADSTONE_SEED=n` runs it alone, `LOADSTONE_SEEDS=n` so many.

mod laws;
mod plans;
mod witness;

use std::collections::BTreeMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

const SEEDS: u64 = 10_000;
/// Every so many seeds run twice.
const TWICE: u64 = 16;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

/// Runs one seed; the names of the laws that had something to say about it.
fn one(seed: u64) -> Vec<&'static str> {
    let plan = plans::of(seed);
    loadstone_engine::check::check(&plan).unwrap_or_else(|fault| panic!("{fault}"));
    let outcome = witness::run(&plan);
    if seed % TWICE == 0 {
        assert!(
            outcome == witness::run(&plan),
            "the same Plan ran another way"
        );
    }
    laws::hold(&plan, &outcome)
}

#[test]
fn the_books_balance_whatever_is_asked_and_whatever_happens() {
    let (first, count) = match number("LOADSTONE_SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("LOADSTONE_SEEDS").unwrap_or(SEEDS)),
    };
    let next = AtomicU64::new(first);
    let failures = Mutex::new(Vec::new());
    let applied = Mutex::new(BTreeMap::<&str, u64>::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= first + count {
                    break;
                }
                match catch_unwind(AssertUnwindSafe(|| one(seed))) {
                    Ok(names) => {
                        let mut applied = applied.lock().unwrap();
                        for name in names {
                            *applied.entry(name).or_default() += 1;
                        }
                    }
                    Err(_) => failures.lock().unwrap().push(seed),
                }
            });
        }
    });
    let applied = applied.into_inner().unwrap();
    println!("{count} seeds; laws that applied: {applied:?}");
    let failures = failures.into_inner().unwrap();
    assert!(
        failures.is_empty(),
        "{} of {count} seeds broke a law (see above), such as LOADSTONE_SEED={}",
        failures.len(),
        failures[0]
    );
    if count == SEEDS {
        // A law that never applies proves nothing.
        for name in laws::NAMES {
            let times = applied.get(name).copied().unwrap_or(0);
            assert!(times >= 100, "{name} applied to {times} seeds only");
        }
    }
}
