//! Laws of random addresses: which of `n` blocks comes next.
//!
//! Knows exact discrete laws over block numbers, in constant memory. Knows no bytes but
//! for the zones, which are given in bytes. The uniform order without repeats lives in
//! `permutation.rs`.

use super::permutation::Permutation;
use loadstone_base::rng::Rng;
use loadstone_plan as plan;

/// A skewed law over the blocks of one file.
#[derive(Debug, Clone)]
pub(crate) struct Skewed {
    law: RankDistribution,
    place: HotSpot,
}

#[derive(Debug, Clone)]
enum RankDistribution {
    Zipf(Zipf),
    Pareto { n: f64, power: f64 },
    Normal { n: f64, deviation: f64 },
}

/// Where rank 0, the hottest block, lies.
#[derive(Debug, Clone)]
enum HotSpot {
    /// Ranks are spread over the range by a permutation.
    Scattered(Permutation),
    /// Rank 0 is here; higher ranks follow upwards and wrap round.
    Center { block: u64, n: u64 },
}

impl Skewed {
    /// The law of `order` over `n` blocks; none for the orders that are no such law.
    pub(crate) fn new(order: &plan::RandomOrder, n: u64, key: u64) -> Option<Self> {
        let (law, center) = match order {
            plan::RandomOrder::Zipf { theta, center } => {
                (RankDistribution::Zipf(Zipf::new(n, *theta)), *center)
            }
            plan::RandomOrder::Pareto { h, center } => {
                let h = h.clamp(1e-9, 1.0 - 1e-9);
                (
                    RankDistribution::Pareto {
                        n: n as f64,
                        power: h.ln() / (-h).ln_1p(),
                    },
                    *center,
                )
            }
            plan::RandomOrder::Normal {
                deviation_percent,
                center,
            } => (
                RankDistribution::Normal {
                    n: n as f64,
                    deviation: deviation_percent / 100.0,
                },
                *center,
            ),
            plan::RandomOrder::Uniform { .. }
            | plan::RandomOrder::Zoned { .. }
            | plan::RandomOrder::Reuse { .. }
            | plan::RandomOrder::Listed { .. }
            | plan::RandomOrder::Aged { .. } => return None,
        };
        let place = match center {
            None => HotSpot::Scattered(Permutation::new(n, key)),
            Some(share) => HotSpot::Center {
                block: ((share * n as f64) as u64).min(n - 1),
                n,
            },
        };
        Some(Self { law, place })
    }

    /// The next block.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        let rank = match &self.law {
            RankDistribution::Zipf(zipf) => zipf.draw(rng),
            RankDistribution::Pareto { n, power } => {
                (n * rng.unit().powf(*power)).min(n - 1.0) as u64
            }
            RankDistribution::Normal { n, deviation } => normal_rank(rng, *n, *deviation),
        };
        match &self.place {
            HotSpot::Scattered(order) => order.apply(rank.min(order.count() - 1)),
            HotSpot::Center { block, n } => {
                let at = block + rank.min(n - 1);
                if at >= *n {
                    at - n
                } else {
                    at
                }
            }
        }
    }
}

/// Distance from the mean on a ring of `n` blocks, normal and cut at half the ring (what
/// lies beyond is drawn again). Box–Muller.
fn normal_rank(rng: &mut Rng, n: f64, deviation: f64) -> u64 {
    loop {
        let radius = (-2.0 * rng.unit().ln()).sqrt();
        let share = deviation * radius * (std::f64::consts::TAU * rng.unit()).cos();
        if share.abs() < 0.5 {
            let blocks = (share * n).floor();
            return (if blocks < 0.0 { blocks + n } else { blocks }) as u64;
        }
    }
}

/// Zipf's law: rank `k` (from 1) with probability proportional to `k^-theta`, exactly, by
/// rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates
/// from monotone discrete distributions", ACM TOMACS 1996). Constant time and memory for
/// any `n`; written with `expm1`/`ln_1p` so that `theta` near 1 loses no precision.
#[derive(Debug, Clone)]
struct Zipf {
    n: f64,
    theta: f64,
    /// Area under the hat left of the first rank and of the last.
    area_first: f64,
    area_last: f64,
    /// Distance to the rank within which a point is accepted without another look.
    squeeze: f64,
}

impl Zipf {
    fn new(n: u64, theta: f64) -> Self {
        let mut zipf = Self {
            n: n as f64,
            theta,
            area_first: 0.0,
            area_last: 0.0,
            squeeze: 0.0,
        };
        zipf.area_first = zipf.area(1.5) - 1.0;
        zipf.area_last = zipf.area(zipf.n + 0.5);
        zipf.squeeze = 2.0 - zipf.area_inverse(zipf.area(2.5) - zipf.weight(2.0));
        zipf
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// Integral of the weight from 1 to `x`.
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        let t = (1.0 - self.theta) * log;
        log * if t.abs() > 1e-8 {
            t.exp_m1() / t
        } else {
            1.0 + t / 2.0
        }
    }

    /// Inverse of `area`.
    fn area_inverse(&self, y: f64) -> f64 {
        let t = (y * (1.0 - self.theta)).max(-1.0);
        (y * if t.abs() > 1e-8 {
            t.ln_1p() / t
        } else {
            1.0 - t / 2.0
        })
        .exp()
    }

    /// A rank from 0.
    fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let y = self.area_last + rng.unit() * (self.area_first - self.area_last);
            let x = self.area_inverse(y);
            let rank = (x + 0.5).floor().clamp(1.0, self.n);
            if rank - x <= self.squeeze || y >= self.area(rank + 0.5) - self.weight(rank) {
                return rank as u64 - 1;
            }
        }
    }
}

/// Zones with their own share of the accesses, uniform inside.
#[derive(Debug, Clone)]
pub(crate) struct Zones {
    /// Cumulative shares.
    shares: Box<[f64]>,
    /// First block of each zone, and one more: the end of the last.
    bounds: Box<[u64]>,
}

impl Zones {
    pub(crate) fn new(zones: &[plan::Zone], align_bytes: u64) -> Self {
        let mut total = 0.0;
        let mut end_bytes = 0u64;
        let (mut shares, mut bounds) = (Vec::new(), vec![0]);
        for zone in zones {
            total += zone.access_percent.max(0.0);
            end_bytes = end_bytes.saturating_add(zone.length_bytes);
            shares.push(total);
            bounds.push(end_bytes.div_ceil(align_bytes));
        }
        Self {
            shares: shares.into(),
            bounds: bounds.into(),
        }
    }

    /// The next block of a range of `blocks`; zones beyond it end with it.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng, blocks: u64) -> u64 {
        let Some(total) = self.shares.last() else {
            return rng.below(blocks);
        };
        let at = rng.unit() * total;
        let zone = self
            .shares
            .partition_point(|&share| share <= at)
            .min(self.shares.len() - 1);
        let first = self.bounds[zone].min(blocks - 1);
        let end = self.bounds[zone + 1].clamp(first + 1, blocks);
        first + rng.below(end - first)
    }
}

/// Blocks in a fixed order, over and over.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    blocks: Box<[u64]>,
    at: usize,
    /// Added to every number.
    base: u64,
    /// Added to it each time the list begins again.
    step: u64,
}

impl Listed {
    pub(crate) fn new(blocks: &[u64], advance: bool) -> Self {
        Self {
            blocks: blocks.into(),
            at: 0,
            base: 0,
            step: if advance { blocks.len() as u64 } else { 0 },
        }
    }

    /// The next block of a range of `blocks`; what lies beyond begins again from its start.
    #[inline]
    pub(crate) fn draw(&mut self, blocks: u64) -> u64 {
        let block = self.base.wrapping_add(self.blocks[self.at]) % blocks;
        self.at += 1;
        if self.at == self.blocks.len() {
            self.at = 0;
            self.base = self.base.wrapping_add(self.step);
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_plan::RandomOrder;

    #[test]
    fn listed_blocks_come_in_their_order_and_move_on_where_asked() {
        let draw = |advance, blocks| {
            let mut order = Listed::new(&[2, 0, 1], advance);
            (0..8).map(|_| order.draw(blocks)).collect::<Vec<_>>()
        };
        assert_eq!(draw(false, 100), [2, 0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(draw(true, 100), [2, 0, 1, 5, 3, 4, 8, 6]);
        assert_eq!(draw(true, 6), [2, 0, 1, 5, 3, 4, 2, 0]);
    }

    const DRAWS: u32 = 400_000;

    fn counts(order: &RandomOrder, n: u64) -> Vec<u32> {
        let (law, mut rng) = (Skewed::new(order, n, 3).unwrap(), Rng::new(11));
        let mut counts = vec![0; n as usize];
        for _ in 0..DRAWS {
            counts[law.draw(&mut rng) as usize] += 1;
        }
        counts
    }

    /// Compares counts with probabilities: Pearson's statistic in deviations from its
    /// mean, classes with few expected counts put together.
    fn deviations(counts: &[u32], probability: impl Fn(usize) -> f64) -> f64 {
        let (mut statistic, mut classes) = (0.0, -1.0);
        let (mut seen, mut expected) = (0.0, 0.0);
        for (i, &count) in counts.iter().enumerate() {
            seen += f64::from(count);
            expected += probability(i) * f64::from(DRAWS);
            if expected >= 20.0 {
                statistic += (seen - expected) * (seen - expected) / expected;
                classes += 1.0;
                (seen, expected) = (0.0, 0.0);
            }
        }
        (statistic - classes) / f64::sqrt(2.0 * classes)
    }

    #[test]
    fn zipf_follows_the_power_law_exactly() {
        for theta in [0.3, 0.8, 0.99, 1.0, 1.2, 2.5] {
            for n in [1u64, 2, 10, 5000] {
                let counts = counts(
                    &RandomOrder::Zipf {
                        theta,
                        center: Some(0.0),
                    },
                    n,
                );
                let sum: f64 = (1..=n).map(|k| (k as f64).powf(-theta)).sum();
                if n == 1 {
                    assert_eq!(counts, [DRAWS]);
                    continue;
                }
                let d = deviations(&counts, |i| ((i + 1) as f64).powf(-theta) / sum);
                assert!(d < 4.0, "theta {theta} n {n}: {d} deviations");
            }
        }
    }

    #[test]
    fn zipf_over_a_huge_range_has_the_analytic_share_of_the_first_rank() {
        // For theta 1.2 and n to infinity, rank 1 has 1/zeta(1.2) = 1/5.59158.
        let law = Skewed::new(
            &RandomOrder::Zipf {
                theta: 1.2,
                center: Some(0.0),
            },
            1 << 45,
            0,
        );
        let (law, mut rng) = (law.unwrap(), Rng::new(5));
        let first = (0..DRAWS).filter(|_| law.draw(&mut rng) == 0).count();
        // The cut at 2^45 takes 5/5.59 * 2^-9 of the mass away: 0.179... * 1.0018.
        let expected = f64::from(DRAWS) / (5.591_58 - 5.0 * f64::powf(2.0, -9.0));
        assert!(
            (first as f64 - expected).abs() < 4.0 * expected.sqrt(),
            "{first} {expected}"
        );
    }

    #[test]
    fn pareto_is_self_similar() {
        for h in [0.1, 0.2, 0.4] {
            let n = 1000u64;
            let counts = counts(
                &RandomOrder::Pareto {
                    h,
                    center: Some(0.0),
                },
                n,
            );
            let power = f64::ln(1.0 - h) / f64::ln(h);
            let below = |i: usize| (i as f64 / n as f64).powf(power);
            let d = deviations(&counts, |i| below(i + 1) - below(i));
            assert!(d < 4.0, "h {h}: {d} deviations");
            let hot: u32 = counts[..(h * n as f64) as usize].iter().sum();
            let share = f64::from(hot) / f64::from(DRAWS);
            assert!(
                (share - (1.0 - h)).abs() < 0.003,
                "{h} of the blocks get {share}"
            );
        }
    }

    /// Standard normal distribution function (Abramowitz and Stegun 26.2.17, error < 1e-7).
    fn phi(x: f64) -> f64 {
        let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
        let poly = t
            * (0.319_381_53
                + t * (-0.356_563_782
                    + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
        let tail = (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt() * poly;
        if x >= 0.0 {
            1.0 - tail
        } else {
            tail
        }
    }

    #[test]
    fn normal_has_its_mean_and_deviation() {
        for (deviation_percent, center) in [(5.0, 0.5), (20.0, 0.5), (60.0, 0.5), (10.0, 0.0)] {
            let n = 1000u64;
            let order = RandomOrder::Normal {
                deviation_percent,
                center: Some(center),
            };
            let mut counts = counts(&order, n);
            // Turn the ring so that the mean is in the middle.
            counts.rotate_left(((center + 0.5) * n as f64) as usize % n as usize);
            let edge = |i: usize| phi((i as f64 / n as f64 - 0.5) * 100.0 / deviation_percent);
            let mass = edge(n as usize) - edge(0);
            let d = deviations(&counts, |i| (edge(i + 1) - edge(i)) / mass);
            assert!(d < 4.0, "{deviation_percent} % at {center}: {d} deviations");
        }
    }

    #[test]
    fn without_a_center_the_ranks_are_scattered_but_keep_their_law() {
        let order = RandomOrder::Zipf {
            theta: 1.1,
            center: None,
        };
        let scattered = counts(&order, 500);
        let hottest = scattered
            .iter()
            .position(|c| c == scattered.iter().max().unwrap())
            .unwrap();
        let neighbours = &scattered[hottest.saturating_sub(1)..(hottest + 2).min(500)];
        assert!(
            neighbours.iter().filter(|&&c| c > DRAWS / 30).count() == 1,
            "{neighbours:?}"
        );
        let mut ranked = scattered.clone();
        ranked.sort_unstable_by(|a, b| b.cmp(a));
        let sum: f64 = (1..=500).map(|k| f64::from(k).powf(-1.1)).sum();
        for k in [0usize, 1, 2, 3, 7, 20] {
            let expected = f64::from(DRAWS) * ((k + 1) as f64).powf(-1.1) / sum;
            assert!(
                (f64::from(ranked[k]) - expected).abs() < 5.0 * expected.sqrt(),
                "rank {k}"
            );
        }
    }

    #[test]
    fn zones_get_their_shares_and_are_uniform_inside() {
        let zone = |access_percent, length_bytes| plan::Zone {
            access_percent,
            length_bytes,
        };
        let zones = Zones::new(
            &[
                zone(60.0, 4096 * 10),
                zone(0.0, 4096 * 30),
                zone(40.0, 4096 * 60),
            ],
            4096,
        );
        let mut rng = Rng::new(1);
        let mut counts = [0u32; 100];
        for _ in 0..DRAWS {
            counts[zones.draw(&mut rng, 100) as usize] += 1;
        }
        let d = deviations(&counts, |i| match i {
            0..10 => 0.06,
            10..40 => 0.0,
            _ => 0.4 / 60.0,
        });
        assert!(d < 4.0, "{d} deviations");
        assert_eq!(counts[10..40].iter().sum::<u32>(), 0);
        // A range that ends inside the second zone: all of the third's falls on its end.
        assert!((0..1000).all(|_| zones.draw(&mut rng, 20) < 20));
    }
}
