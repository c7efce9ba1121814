//! The tables of a run and all damage found in it.
//!
//! Knows which targets of a Plan are verified and in which range. Shared by all workers
//! and by all stages, so that a later stage can check what an earlier one wrote.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::damage::{Damage, Kind};
use super::expect::Table;
use super::register::Register;
use crate::clock::unix_ns;
use crate::plan::{Backend, Plan, Stream, Target, TargetKind, VerifyExpect, Worker};

/// Tables by target, and the register.
#[derive(Debug, Default)]
pub struct Books {
    tables: Vec<Option<Table>>,
    /// By target: the first that is the same file.
    same: Vec<u32>,
    /// Writes to targets without a table.
    sequences: Vec<AtomicU64>,
    /// Makes the stamps of this run differ from those of a run of the same Plan before.
    salt: u64,
    register: Mutex<Register>,
}

impl Books {
    /// The books of a Plan. Tables take memory as blocks are touched.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let tables = (0..plan.targets.len() as u32).map(|target| {
            range(plan, target).map(|(start, length, block)| Table::new(start, length, block))
        });
        let tables = if is_verified(plan) {
            tables.collect()
        } else {
            Vec::new()
        };
        let simulated = |worker: &Worker| matches!(worker.backend, Backend::Sim { .. });
        Self {
            tables,
            same: if is_verified(plan) {
                (0..plan.targets.len() as u32)
                    .map(|target| first_of(plan, target))
                    .collect()
            } else {
                Vec::new()
            },
            sequences: plan.targets.iter().map(|_| AtomicU64::new(0)).collect(),
            salt: if plan.workers.iter().all(simulated) {
                0
            } else {
                unix_ns()
            },
            register: Mutex::default(),
        }
    }

    /// The number under which a target is stamped: one file opened in several ways is
    /// several targets, and still one file.
    #[inline]
    #[must_use]
    pub fn first(&self, target: u32) -> u32 {
        self.same.get(target as usize).copied().unwrap_or(target)
    }

    /// The table of a target.
    #[inline]
    #[must_use]
    pub fn table(&self, target: u32) -> Option<&Table> {
        self.tables.get(self.first(target) as usize)?.as_ref()
    }

    /// Number of the next write to a target.
    #[must_use]
    pub fn next_sequence(&self, target: u32) -> u64 {
        match self.table(target) {
            Some(table) => table.next_sequence(),
            None => self.sequences[self.first(target) as usize].fetch_add(1, Ordering::Relaxed) + 1,
        }
    }

    /// Identity of this run, from the Plan's.
    #[must_use]
    pub fn run(&self, run: u64) -> u64 {
        run ^ self.salt
    }

    /// Takes in a finding; see [`Register::add`].
    pub fn add(&self, damage: Damage) -> Damage {
        self.register
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .add(damage)
    }

    /// Number of findings by kind, in the order of [`Kind::ALL`].
    #[must_use]
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let register = self.register.lock().unwrap_or_else(PoisonError::into_inner);
        Kind::ALL
            .iter()
            .map(|&kind| (kind.name(), register.count(kind)))
            .collect()
    }
}

/// The first target that is the same file.
#[must_use]
pub fn first_of(plan: &Plan, target: u32) -> u32 {
    let this = &plan.targets[target as usize];
    let same = |other: &Target| {
        let known = other.identity.is_some() && other.identity == this.identity;
        this.kind != TargetKind::Virtual && (other.path == this.path || known)
    };
    let first = plan.targets.iter().position(same);
    first.map_or(target, |first| first as u32)
}

/// True when any stream verifies.
#[must_use]
pub fn is_verified(plan: &Plan) -> bool {
    plan.streams.iter().any(|stream| stream.verify.is_some())
}

/// Bytes the tables of a Plan need when all blocks are touched.
#[must_use]
pub fn memory_bytes(plan: &Plan) -> u64 {
    if !is_verified(plan) {
        return 0;
    }
    (0..plan.targets.len() as u32)
        .filter_map(|target| range(plan, target))
        .map(|(_, length, block)| Table::memory_bytes(length, block))
        .sum()
}

/// Start, length and verify block of the part of a target for which a table is kept.
fn range(plan: &Plan, target: u32) -> Option<(u64, u64, u32)> {
    if first_of(plan, target) != target {
        return None;
    }
    let mut range: Option<(u64, u64, u32)> = None;
    for stream in plan.streams.iter().filter(|stream| keeps_table(stream)) {
        let Some(verify) = stream.verify else {
            continue;
        };
        for file in stream
            .files
            .iter()
            .filter(|file| first_of(plan, file.target) == target)
        {
            let (start, end) = (file.offset_bytes, file.offset_bytes + file.length_bytes);
            range = Some(match range {
                None => (start, end, verify.block_bytes),
                Some((first, last, block)) => (first.min(start), last.max(end), block),
            });
        }
    }
    range.map(|(start, end, block)| (start, end - start, block))
}

fn keeps_table(stream: &Stream) -> bool {
    stream
        .verify
        .is_some_and(|verify| verify.expect == VerifyExpect::Table)
}
