//! Sizes of I/Os: fixed, a range, or a weighted table.
//!
//! Knows how a size is drawn. Knows no addresses: whether a size fits at a place is the
//! caller's question.

use loadstone_base::rng::{scale, Rng};
use loadstone_plan as plan;

/// A source of sizes in bytes.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "as in `plan::Sizes`")]
pub enum SizeSource {
    /// The same always.
    Fixed(u32),
    /// `min + k·step` for `k` in `0..count`.
    Range { min: u32, step: u32, count: u32 },
    /// Vose's alias table: one draw and one comparison for any number of entries.
    Split {
        bytes: Box<[u32]>,
        alias: Box<[Alias]>,
        min: u32,
    },
}

/// A column of the alias table.
#[derive(Debug, Clone, Copy)]
pub struct Alias {
    /// Keep the column's own entry when the low 32 random bits are below this.
    keep_below: u64,
    other: u32,
}

impl SizeSource {
    /// The source that a Plan describes.
    #[must_use]
    pub fn new(sizes: &plan::Sizes) -> Self {
        match sizes {
            plan::Sizes::Fixed { bytes } => Self::Fixed((*bytes).max(1)),
            plan::Sizes::Range {
                min_bytes,
                max_bytes,
                step_bytes,
            } => {
                let (min, step) = ((*min_bytes).max(1), (*step_bytes).max(1));
                let count = max_bytes.saturating_sub(min) / step + 1;
                if count == 1 {
                    Self::Fixed(min)
                } else {
                    Self::Range { min, step, count }
                }
            }
            plan::Sizes::Split { table } if table.len() <= 1 => {
                Self::Fixed(table.first().map_or(1, |entry| entry.bytes.max(1)))
            }
            plan::Sizes::Split { table } => Self::Split {
                bytes: table.iter().map(|entry| entry.bytes.max(1)).collect(),
                alias: alias_table(table.iter().map(|entry| entry.weight).collect()),
                min: table
                    .iter()
                    .map(|entry| entry.bytes.max(1))
                    .min()
                    .unwrap_or(1),
            },
        }
    }

    /// The smallest size that can come.
    #[must_use]
    pub fn min(&self) -> u32 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Range { min, .. } | Self::Split { min, .. } => *min,
        }
    }

    /// One size.
    #[inline(always)]
    pub fn draw(&self, rng: &mut Rng) -> u32 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Range { min, step, count } => min + step * rng.below(u64::from(*count)) as u32,
            Self::Split { bytes, alias, .. } => bytes[pick(alias, rng)],
        }
    }

    /// A size of at most `room` bytes, which must not be below the smallest. Draws
    /// again a few times, as fio does without end, then takes the smallest.
    #[cold]
    pub fn draw_fitting(&self, rng: &mut Rng, room: u64) -> u32 {
        for _ in 0..16 {
            let bytes = self.draw(rng);
            if u64::from(bytes) <= room {
                return bytes;
            }
        }
        self.min()
    }
}

/// The number of an entry, as often as its weight says.
#[inline(always)]
pub(crate) fn pick(alias: &[Alias], rng: &mut Rng) -> usize {
    let bits = rng.next_u64();
    let column = scale(bits & !0xffff_ffff, alias.len() as u64) as usize;
    let Alias { keep_below, other } = alias[column];
    if bits & 0xffff_ffff < keep_below {
        column
    } else {
        other as usize
    }
}

/// Vose 1991: every column holds at most two entries and the same weight.
pub(crate) fn alias_table(weights: Vec<f64>) -> Box<[Alias]> {
    let total: f64 = weights.iter().map(|weight| weight.max(0.0)).sum();
    let count = weights.len();
    let mut share = weights;
    for weight in &mut share {
        *weight = weight.max(0.0) / total * count as f64;
    }
    let full = |column: usize| Alias {
        keep_below: 1 << 32,
        other: column as u32,
    };
    let mut alias: Vec<Alias> = (0..count).map(full).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) =
        (0..count).partition(|&i| share[i] < 1.0);
    while let (Some(&low), Some(&high)) = (small.last(), large.last()) {
        small.pop();
        alias[low] = Alias {
            keep_below: (share[low] * 4_294_967_296.0) as u64,
            other: high as u32,
        };
        share[high] -= 1.0 - share[low];
        if share[high] < 1.0 {
            large.pop();
            small.push(high);
        }
    }
    // What is left differs from a full column by rounding only.
    alias.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_plan::SizeWeight;
    use std::collections::BTreeMap;

    fn count(sizes: &plan::Sizes, draws: u32) -> BTreeMap<u32, u32> {
        let (sizes, mut rng) = (SizeSource::new(sizes), Rng::new(9));
        let mut counts = BTreeMap::new();
        for _ in 0..draws {
            *counts.entry(sizes.draw(&mut rng)).or_default() += 1;
        }
        counts
    }

    #[test]
    fn a_range_gives_each_step_equally_often() {
        let counts = count(
            &plan::Sizes::Range {
                min_bytes: 4096,
                max_bytes: 16384,
                step_bytes: 4096,
            },
            40_000,
        );
        assert_eq!(
            counts.keys().copied().collect::<Vec<_>>(),
            [4096, 8192, 12288, 16384]
        );
        // Binomial, mean 10,000, deviation 87.
        assert!(
            counts.values().all(|c| (9_600..10_400).contains(c)),
            "{counts:?}"
        );
    }

    #[test]
    fn a_range_never_exceeds_its_maximum() {
        let counts = count(
            &plan::Sizes::Range {
                min_bytes: 3000,
                max_bytes: 8000,
                step_bytes: 3000,
            },
            1000,
        );
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [3000, 6000]);
    }

    #[test]
    fn a_split_follows_its_weights() {
        let weights = [(512, 1.0), (4096, 60.0), (8192, 29.0), (65536, 10.0)];
        let table = weights
            .iter()
            .map(|&(bytes, weight)| SizeWeight { bytes, weight })
            .collect();
        let counts = count(&plan::Sizes::Split { table }, 100_000);
        let statistic: f64 = weights
            .iter()
            .map(|(bytes, weight)| {
                let expected = weight * 1000.0;
                (f64::from(counts[bytes]) - expected).powi(2) / expected
            })
            .sum();
        assert!(
            statistic < 16.3,
            "chi-square with 3 degrees of freedom, p 0.001: {statistic}"
        );
    }

    #[test]
    fn a_fitting_draw_fits() {
        let sizes = SizeSource::new(&plan::Sizes::Range {
            min_bytes: 512,
            max_bytes: 1 << 20,
            step_bytes: 512,
        });
        let mut rng = Rng::new(4);
        for room in [512u64, 513, 4096, 70_000] {
            for _ in 0..50 {
                assert!(u64::from(sizes.draw_fitting(&mut rng, room)) <= room);
            }
        }
    }
}
