//! Foreign bytes for everything in the engine that reads them: what fuzzing found once and what it
//! begins with, and bytes drawn from a seed.
//!
//! Knows no fuzzer: `make rust-fuzz` has one, guided by coverage. `LOADSTONE_SEED=n` draws one
//! case for each reader, `LOADSTONE_SEEDS=n` so many.

#[path = "../../fuzz/src/tried.rs"]
mod tried;

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;

use loadstone_base::rng::{mix, Rng};

const SEEDS: u64 = 300;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

/// By reader: what its corpus has.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let entries = std::fs::read_dir(folder.join(name)).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path| std::fs::read(path).unwrap();
    paths.into_iter().map(read).collect()
}

/// One of the corpus with some bytes changed and others behind it.
fn drawn(seed: u64, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut rng = Rng::new(mix(seed));
    let mut bytes = corpus[rng.below(corpus.len() as u64) as usize].clone();
    for _ in 0..rng.below(4) {
        if !bytes.is_empty() {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.next_u64() as u8;
        }
    }
    let most = 1 << rng.below(9);
    let behind = rng.below(most);
    bytes.extend((0..behind).map(|_| rng.next_u64() as u8));
    bytes
}

#[test]
fn nothing_that_was_found_once_is_found_again() {
    for (name, one) in tried::ALL {
        let files = corpus(name);
        assert!(!files.is_empty(), "{name} has no corpus");
        files.iter().for_each(|bytes| one(bytes));
        one(&[]);
    }
}

#[test]
fn every_reader_takes_or_refuses_whatever_it_is_given() {
    let (first, count) = match number("LOADSTONE_SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("LOADSTONE_SEEDS").unwrap_or(SEEDS)),
    };
    let mut failures = Vec::new();
    for (name, one) in tried::ALL {
        let files = corpus(name);
        let fails = |seed: &u64| {
            let bytes = drawn(*seed, &files);
            catch_unwind(AssertUnwindSafe(|| one(&bytes))).is_err()
        };
        let mut failed = (first..first + count).filter(fails);
        failures.extend(failed.next().map(|seed| (name, seed, 1 + failed.count())));
    }
    assert!(
        failures.is_empty(),
        "reader, first seed that it failed at, and how many: {failures:?}"
    );
}
