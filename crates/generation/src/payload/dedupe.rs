//! Which content a write repeats.
//!
//! Knows shares and seeds: equal seeds make equal bytes. Knows no bytes.

use loadstone_base::rng::{mix, Rng};
use loadstone_plan::{DedupeSet, Payload};

/// Earlier contents that `dedupe_percent` repeats from.
const WORKING_SET: usize = 1024;

/// Which content a write, or a unit of it, repeats.
#[derive(Debug)]
pub(super) struct Dedupe {
    percent: u64,
    /// None: the whole write.
    pub(super) unit_bytes: Option<usize>,
    rng: Rng,
    /// The contents to repeat from; none: earlier ones.
    set: Option<DedupeSet>,
    /// Seeds of earlier contents, the oldest replaced first.
    seeds: Vec<u64>,
    oldest: usize,
}

impl Dedupe {
    pub(super) fn new(payload: &Payload, seed: u64) -> Self {
        let set = payload.dedupe_set;
        let earlier = if set.is_some() { 0 } else { WORKING_SET };
        Self {
            percent: u64::from(payload.dedupe_percent),
            unit_bytes: (payload.dedupe_unit_bytes > 0)
                .then_some(payload.dedupe_unit_bytes as usize),
            rng: Rng::new(seed),
            set,
            seeds: Vec::with_capacity(earlier),
            oldest: 0,
        }
    }

    pub(super) fn next_seed(&mut self) -> u64 {
        let repeats = self.rng.below(100) < self.percent;
        if let Some(set) = self.set {
            return if repeats {
                mix(set.seed ^ self.rng.below(set.contents))
            } else {
                self.rng.next_u64()
            };
        }
        if repeats && !self.seeds.is_empty() {
            return self.seeds[self.rng.below(self.seeds.len() as u64) as usize];
        }
        let seed = self.rng.next_u64();
        if self.seeds.len() < WORKING_SET {
            self.seeds.push(seed);
        } else {
            self.seeds[self.oldest] = seed;
            self.oldest = (self.oldest + 1) % WORKING_SET;
        }
        seed
    }
}
