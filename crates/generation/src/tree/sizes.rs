//! Sizes of a tree's files: from the number of a file alone, so that none is kept.
//!
//! Knows how a size is drawn. Knows no file.

use crate::pattern::{alias_table, pick, Alias};
use loadstone_base::rng::{mix, Rng};
use loadstone_plan::{FileSizes, Tree};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Sizes of the files of one tree.
#[derive(Debug, Clone)]
pub struct TreeFileSizes {
    seed: u64,
    kind: SizeRule,
}

#[derive(Debug, Clone)]
enum SizeRule {
    Same(u64),
    Table {
        bytes: Box<[u64]>,
        alias: Box<[Alias]>,
    },
    /// Half to one and a half times the mean, rounded.
    Around(u64),
}

impl TreeFileSizes {
    /// The sizes of a well-formed tree.
    #[must_use]
    pub fn new(tree: &Tree) -> Self {
        let kind = match &tree.sizes {
            FileSizes::Table { table } if table.len() == 1 => SizeRule::Same(table[0].bytes),
            FileSizes::Table { table } => SizeRule::Table {
                bytes: table.iter().map(|entry| entry.bytes).collect(),
                alias: alias_table(table.iter().map(|entry| entry.weight).collect()),
            },
            FileSizes::Around { mean_bytes } => SizeRule::Around(*mean_bytes),
        };
        Self {
            seed: mix(tree.seed),
            kind,
        }
    }

    /// Size of a file.
    #[must_use]
    pub fn of(&self, file: u32) -> u64 {
        let mut rng = Rng::new(self.seed ^ u64::from(file));
        match &self.kind {
            SizeRule::Same(bytes) => *bytes,
            SizeRule::Table { bytes, alias } => bytes[pick(alias, &mut rng)],
            SizeRule::Around(mean) => rounded(mean / 2 + rng.below(*mean), *mean),
        }
    }

    /// The size all files have; none when they differ.
    #[must_use]
    pub fn same(&self) -> Option<u64> {
        match self.kind {
            SizeRule::Same(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// How many of the first `count` files come to `total_bytes`; 0: all.
    #[must_use]
    pub fn first_files(&self, total_bytes: u64, count: u32) -> u32 {
        if total_bytes == 0 {
            return count;
        }
        if let SizeRule::Same(bytes) = self.kind {
            let files = total_bytes.div_ceil(bytes.max(1));
            return u32::try_from(files).unwrap_or(u32::MAX).min(count);
        }
        let mut sum = 0u64;
        let short = |&file: &u32| {
            let goes_on = sum < total_bytes;
            sum = sum.saturating_add(self.of(file));
            goes_on
        };
        (0..count).take_while(short).count() as u32
    }

    /// Bytes of the first `count` files.
    #[must_use]
    pub fn total_bytes(&self, count: u32) -> u64 {
        match self.kind {
            SizeRule::Same(bytes) => bytes.saturating_mul(u64::from(count)),
            _ => (0..count).fold(0, |sum, file| sum.saturating_add(self.of(file))),
        }
    }
}

/// To the unit that fits the size or the mean; sizes of less than a KiB as they are.
fn rounded(bytes: u64, mean: u64) -> u64 {
    let unit = if bytes >= 10 * MIB {
        MIB
    } else if mean >= MIB {
        100 * KIB
    } else if mean >= 100 * KIB {
        10 * KIB
    } else if mean >= KIB {
        KIB
    } else {
        1
    };
    (bytes + unit / 2) / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::names::tests::tree;
    use loadstone_plan::FileSize;

    fn sizes(sizes: FileSizes, seed: u64) -> TreeFileSizes {
        TreeFileSizes::new(&Tree {
            sizes,
            seed,
            ..tree(1, 1, 1, false)
        })
    }

    fn table(entries: &[(u64, f64)]) -> FileSizes {
        let entry = |&(bytes, weight): &(u64, f64)| FileSize { bytes, weight };
        FileSizes::Table {
            table: entries.iter().map(entry).collect(),
        }
    }

    #[test]
    fn a_table_is_drawn_by_its_weights_and_by_nothing_but_seed_and_number() {
        let drawn = sizes(table(&[(1000, 1.0), (2000, 3.0)]), 5);
        let large = (0..10_000).filter(|&file| drawn.of(file) == 2000).count();
        // Binomial, mean 7500, deviation 43.
        assert!((7300..7700).contains(&large), "{large}");
        let again = sizes(table(&[(1000, 1.0), (2000, 3.0)]), 5);
        assert!((0..100).all(|file| drawn.of(file) == again.of(file)));
        let other = sizes(table(&[(1000, 1.0), (2000, 3.0)]), 6);
        assert!((0..100).any(|file| drawn.of(file) != other.of(file)));
    }

    #[test]
    fn sizes_around_a_mean_are_rounded_and_have_it() {
        for (mean, unit) in [
            (100, 1),
            (8 * KIB, KIB),
            (400 * KIB, 10 * KIB),
            (4 * MIB, 100 * KIB),
            (64 * MIB, MIB),
        ] {
            let drawn = sizes(FileSizes::Around { mean_bytes: mean }, 1);
            let count = 20_000;
            let mut sum = 0;
            for bytes in (0..count).map(|file| drawn.of(file)) {
                assert_eq!(bytes % unit, 0);
                assert!(bytes + unit / 2 >= mean / 2 && bytes <= mean / 2 + mean + unit / 2);
                sum += bytes;
            }
            let (found, mean) = (sum as f64 / f64::from(count), mean as f64);
            // Uniform over the mean's width: five standard errors, and what rounding does.
            let most = 5.0 * mean / 12f64.sqrt() / f64::from(count).sqrt() + unit as f64 * 0.1;
            assert!((found - mean).abs() < most, "{found} {mean}");
        }
    }

    #[test]
    fn the_first_files_come_to_the_total() {
        let same = sizes(table(&[(1000, 1.0)]), 1);
        assert_eq!(same.first_files(0, 7), 7);
        assert_eq!(same.first_files(2500, 7), 3);
        assert_eq!(same.first_files(3000, 7), 3);
        assert_eq!(same.first_files(u64::MAX, 7), 7);
        let drawn = sizes(table(&[(1000, 1.0), (2000, 3.0)]), 5);
        for total in [1, 999, 5000, 123_456] {
            let count = drawn.first_files(total, 1000);
            assert!(drawn.total_bytes(count) >= total && drawn.total_bytes(count - 1) < total);
        }
    }
}
