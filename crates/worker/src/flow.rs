//! I/Os shared out between streams by weight: fio's `flow`.
//!
//! Knows one counter for each flow that all its streams look at before an I/O: a stream
//! waits while it has had more than its share, and what it may be ahead of it. Streams without a
//! flow never come here.
//! A stream counts from its start to the moment it issues no more; then its weight and
//! its I/Os leave, so that those that remain share among themselves.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use loadstone_plan as plan;

/// Shortest time until a stream that waits looks again; the tool, not a disk, is waited for.
const MIN_NAP_NS: u64 = 10_000;

/// A stream is never ahead by more than this part of its own I/Os: where I/Os are few, tens of
/// them are a great share.
const AHEAD_PART: u64 = 64;

/// All flows of a run, by their numbers.
#[derive(Debug, Default)]
pub struct Flows(Mutex<HashMap<u32, Arc<FlowState>>>);

/// What the streams of one flow have in common.
#[derive(Debug, Default)]
struct FlowState {
    issued: AtomicU64,
    weight: AtomicU64,
}

/// One stream's part in a flow.
#[derive(Debug)]
pub struct FlowShare {
    flow: Arc<FlowState>,
    weight: u64,
    issued: u64,
    joined: bool,
    nap_ns: u64,
    ahead: u64,
}

impl Flows {
    /// The part of one stream. One that starts with its stage joins at once: a stream must
    /// not be alone, and free to do all it can, while the others' threads wake up.
    #[must_use]
    pub fn share(&self, plan: &plan::Flow, start_delay_ns: u64) -> FlowShare {
        let mut flows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut share = FlowShare {
            flow: flows.entry(plan.id).or_default().clone(),
            weight: u64::from(plan.weight),
            issued: 0,
            joined: false,
            nap_ns: plan.sleep_ns.max(MIN_NAP_NS),
            ahead: u64::from(plan.ahead),
        };
        if start_delay_ns == 0 {
            share.join();
        }
        share
    }
}

impl FlowShare {
    /// The stream starts.
    pub fn join(&mut self) {
        if !std::mem::replace(&mut self.joined, true) {
            self.flow.weight.fetch_add(self.weight, Ordering::Relaxed);
        }
    }

    /// The stream issues no more.
    pub fn leave(&mut self) {
        if std::mem::replace(&mut self.joined, false) {
            self.flow.weight.fetch_sub(self.weight, Ordering::Relaxed);
            self.flow.issued.fetch_sub(self.issued, Ordering::Relaxed);
        }
    }

    /// None when it may issue, else for how long to wait.
    #[must_use]
    pub fn must_wait_ns(&self) -> Option<u64> {
        let weight = self.flow.weight.load(Ordering::Relaxed);
        let issued = self.flow.issued.load(Ordering::Relaxed);
        let counts = self.issued - self.ahead.min(self.issued / AHEAD_PART);
        let over =
            u128::from(counts) * u128::from(weight) > u128::from(issued) * u128::from(self.weight);
        over.then_some(self.nap_ns)
    }

    /// It issued one.
    pub fn took(&mut self) {
        self.issued += 1;
        self.flow.issued.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(weights: &[u32], ahead: u32) -> (Flows, Vec<FlowShare>) {
        let flows = Flows::default();
        let of = |&weight| {
            let (id, sleep_ns) = (3, 0);
            let flow = plan::Flow {
                id,
                weight,
                sleep_ns,
                ahead,
            };
            flows.share(&flow, 0)
        };
        let made = weights.iter().map(of).collect();
        (flows, made)
    }

    /// Every stream issues whenever it may.
    fn turns(shares: &mut [FlowShare], count: u64) -> Vec<u64> {
        let before: Vec<u64> = shares.iter().map(|share| share.issued).collect();
        for turn in 0..count {
            let at = turn as usize % shares.len();
            if shares[at].must_wait_ns().is_none() {
                shares[at].took();
            }
        }
        let after = shares.iter().map(|share| share.issued);
        after.zip(before).map(|(now, then)| now - then).collect()
    }

    #[test]
    fn ios_follow_the_weights() {
        let (_flows, mut shares) = shares(&[1, 5, 10], 0);
        let counts = turns(&mut shares, 48_000);
        assert!(counts[0] > 500, "{counts:?}");
        assert!(counts[1].abs_diff(5 * counts[0]) <= 10, "{counts:?}");
        assert!(counts[2].abs_diff(10 * counts[0]) <= 10, "{counts:?}");
    }

    #[test]
    fn those_who_stay_share_what_one_leaves() {
        let (_flows, mut shares) = shares(&[1, 2, 3], 0);
        turns(&mut shares, 6_000);
        shares[2].leave();
        let counts = turns(&mut shares[..2], 6_000);
        assert!(
            counts[0] > 1_000 && counts[1].abs_diff(2 * counts[0]) <= 4,
            "{counts:?}"
        );
    }

    #[test]
    fn one_that_may_be_ahead_is_so_by_a_64th_of_its_own_ios_and_no_more_than_told() {
        let (_flows, mut shares) = shares(&[1, 1], 32);
        // The first I/Os are exact.
        assert_eq!(turns(&mut shares[..1], 100)[0], 1);
        // One more than the other is a half above its part of both.
        for (each, ahead) in [(640, 10), (12_800, 32), (128_000, 32)] {
            turns(&mut shares, 2 * each);
            turns(&mut shares[..1], 1_000);
            let apart = shares[0].issued - shares[1].issued;
            assert!(apart.abs_diff(2 * ahead) <= 2, "{apart} after {each}");
            assert_eq!(shares[1].must_wait_ns(), None);
        }
    }

    #[test]
    fn flows_of_other_numbers_are_apart() {
        let (flows, mut shares) = shares(&[1, 1], 0);
        shares[0].took();
        assert_eq!(shares[0].must_wait_ns(), Some(MIN_NAP_NS));
        let (id, weight, sleep_ns, ahead) = (4, 1, 70_000, 0);
        let flow = plan::Flow {
            id,
            weight,
            sleep_ns,
            ahead,
        };
        let mut other = flows.share(&flow, 1);
        other.join();
        other.took();
        assert_eq!(other.must_wait_ns(), None);
    }
}
