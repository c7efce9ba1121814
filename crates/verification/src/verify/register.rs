//! All damage of a run, counted and put together.
//!
//! Knows which two findings are one event: a write that went elsewhere leaves old content
//! at one place and wrong content at another. Keeps a bounded number of findings; beyond
//! that it counts. Does not know which stream found what.

use std::collections::HashSet;

use super::damage::{Damage, DamageKind, KINDS};
use super::expect::distance;

/// Findings kept for putting together.
pub const KEPT: usize = 16_384;

/// Damage found so far.
#[derive(Debug, Default)]
pub struct Register {
    counts: [u64; KINDS],
    kept: Vec<Damage>,
    /// Of targets without a table: target and offset, at most [`KEPT`].
    places: HashSet<(u32, u64)>,
}

impl Register {
    /// Takes in a finding; returns it with what is known from others.
    pub fn add(&mut self, damage: Damage) -> Damage {
        let damage = self.understood(damage);
        if damage.kind == DamageKind::MisdirectedWrite {
            let origin = self.kept.iter_mut().find(|other| {
                matches!(other.kind, DamageKind::LostWrite | DamageKind::TornWrite)
                    && is_stray_of(&damage, other)
            });
            if let Some(origin) = origin {
                self.counts[origin.kind as usize] -= 1;
                self.counts[DamageKind::MisdirectedWrite as usize] += 1;
                origin.kind = DamageKind::MisdirectedWrite;
                origin.strayed_to = Some((damage.target, damage.offset));
            }
        }
        self.counts[damage.kind as usize] += 1;
        if self.kept.len() < KEPT {
            self.kept.push(damage);
        }
        damage
    }

    /// A finding with what is known from others, without counting it.
    #[must_use]
    pub fn understood(&self, mut damage: Damage) -> Damage {
        if matches!(damage.kind, DamageKind::LostWrite | DamageKind::TornWrite) {
            let stray = self.kept.iter().find(|other| is_stray_of(other, &damage));
            if let Some(stray) = stray {
                damage.kind = DamageKind::MisdirectedWrite;
                damage.strayed_to = Some((stray.target, stray.offset));
            }
        }
        damage
    }

    /// Notes a place of which no table says whether damage was found there; false when it
    /// was.
    pub fn mark(&mut self, target: u32, offset: u64) -> bool {
        let place = (target, offset);
        if self.places.len() < KEPT {
            return self.places.insert(place);
        }
        !self.places.contains(&place)
    }

    /// Number of findings of a kind.
    #[must_use]
    pub fn count(&self, kind: DamageKind) -> u64 {
        self.counts[kind as usize]
    }

    /// Number of findings.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Findings kept, at most [`KEPT`], as they are understood now.
    #[must_use]
    pub fn findings(&self) -> &[Damage] {
        &self.kept
    }
}

/// True when `stray` holds a content that is missing at `origin`.
fn is_stray_of(stray: &Damage, origin: &Damage) -> bool {
    let Some(found) = stray.found else {
        return false;
    };
    let missing = &origin.expected;
    stray.kind == DamageKind::MisdirectedWrite
        && stray.strayed_to.is_none()
        && !found.other_run
        && (found.target, found.offset) == (origin.target, origin.offset)
        && u32::from(distance(found.generation, missing.newest)) <= missing.span
}
