//! A rate over time: straight lines between points, and the time at which so much of it
//! has come together.
//!
//! Knows shares and their integral. Knows no operation and no randomness: evenly spaced
//! and Poisson arrivals both follow a profile by the same change of time (the n-th
//! arrival of a varying rate comes when the rate's integral reaches the n-th arrival of
//! a constant one; Cinlar, Introduction to Stochastic Processes, 1975, section 4.7).

use loadstone_plan::RatePoint;

/// The profile of one rate; it is asked for ever later times.
#[derive(Debug, Clone)]
pub struct RateProfile {
    /// Time in nanoseconds and share; never empty.
    points: Vec<(f64, f64)>,
    /// The part the last answer was in: 0 before the first point, then after each.
    part: usize,
    /// Nanoseconds at full rate that came together before that part.
    before_ns: f64,
}

impl RateProfile {
    /// The profile of a Plan's rate.
    #[must_use]
    pub fn new(points: &[RatePoint]) -> Self {
        let mut points: Vec<_> = points
            .iter()
            .map(|point| (point.at_ns as f64, point.share))
            .collect();
        if points.is_empty() {
            points.push((0.0, 1.0));
        }
        Self {
            points,
            part: 0,
            before_ns: 0.0,
        }
    }

    /// When the integral of the share passes `full_ns` (so much time at full rate), in
    /// nanoseconds since the start; infinite when it never does. `full_ns` must not fall.
    pub fn time_of(&mut self, full_ns: f64) -> f64 {
        loop {
            let (start_ns, share) = self.start_of_part();
            let left_ns = (full_ns - self.before_ns).max(0.0);
            let Some(&(end_ns, end_share)) = self.points.get(self.part) else {
                return if share > 0.0 {
                    start_ns + left_ns / share
                } else {
                    f64::INFINITY
                };
            };
            let length_ns = end_ns - start_ns;
            // Before the first point the share is that of the first point.
            let share = if self.part == 0 { end_share } else { share };
            let whole_ns = length_ns * (share + end_share) / 2.0;
            if left_ns < whole_ns {
                // The positive root of slope/2 t^2 + share t = left, without cancellation.
                let slope = (end_share - share) / length_ns;
                let root = (share * share + 2.0 * slope * left_ns).max(0.0).sqrt();
                let time_ns = if left_ns > 0.0 {
                    2.0 * left_ns / (share + root)
                } else {
                    0.0
                };
                return start_ns + time_ns.min(length_ns);
            }
            self.before_ns += whole_ns;
            self.part += 1;
        }
    }

    fn start_of_part(&self) -> (f64, f64) {
        match self.part {
            0 => (0.0, self.points[0].1),
            part => self.points[part - 1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn profile(points: &[(u64, f64)]) -> RateProfile {
        let points: Vec<_> = points
            .iter()
            .map(|&(at_ns, share)| RatePoint { at_ns, share })
            .collect();
        RateProfile::new(&points)
    }

    #[test]
    fn without_points_time_is_time() {
        let mut profile = profile(&[]);
        for full_ns in [0.0, 1.0, 1e9 / 3.0, 1e15] {
            assert_eq!(profile.time_of(full_ns), full_ns);
        }
    }

    #[test]
    fn a_step_changes_the_pace_at_once() {
        // A quarter for 8 ns, then all.
        let mut profile = profile(&[(0, 0.25), (8, 0.25), (8, 1.0)]);
        assert_eq!(profile.time_of(1.0), 4.0);
        assert_eq!(profile.time_of(2.0), 8.0);
        assert_eq!(profile.time_of(5.0), 11.0);
    }

    #[test]
    fn a_ramp_from_nothing_is_a_parabola() {
        let mut profile = profile(&[(0, 0.0), (100, 1.0)]);
        assert_eq!(profile.time_of(0.0), 0.0);
        // t^2 / 200 = 2 gives t = 20; the whole ramp is worth 50.
        assert!((profile.time_of(2.0) - 20.0).abs() < 1e-9);
        assert!((profile.time_of(50.0) - 100.0).abs() < 1e-9);
        assert!((profile.time_of(60.0) - 110.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_starts_while_the_share_is_zero() {
        let mut pause = profile(&[(0, 0.0), (10, 0.0), (10, 1.0), (20, 1.0), (20, 0.0)]);
        assert_eq!(pause.time_of(0.0), 10.0);
        assert_eq!(pause.time_of(9.0), 19.0);
        assert_eq!(pause.time_of(10.0), f64::INFINITY);
        assert_eq!(pause.time_of(11.0), f64::INFINITY);
    }

    proptest! {
        #[test]
        fn the_integral_up_to_the_answer_is_what_was_asked_for(
            steps in proptest::collection::vec((0u64..1000, 0.0f64..2.0), 1..6),
            asked in proptest::collection::vec(0.0f64..2000.0, 1..20),
        ) {
            let mut at = 0;
            let mut points: Vec<(u64, f64)> = steps.iter().map(|&(step, share)| { at += step; (at, share) }).collect();
            points.push((at, 1.0));
            let mut profile = profile(&points);
            let mut asked = asked;
            asked.sort_by(f64::total_cmp);
            let share_at = |t: f64| {
                let next = points.iter().position(|&(at, _)| at as f64 > t);
                match next {
                    None => 1.0,
                    Some(0) => points[0].1,
                    Some(i) => {
                        let ((a, x), (b, y)) = (points[i - 1], points[i]);
                        x + (y - x) * (t - a as f64) / (b - a) as f64
                    }
                }
            };
            let mut last = 0.0;
            for full_ns in asked {
                let time_ns = profile.time_of(full_ns);
                prop_assert!(time_ns >= last);
                last = time_ns;
                // Midpoints are exact within a straight line; steps cost half a nanosecond's share.
                let whole = time_ns.floor();
                let mut sum: f64 = (0..whole as u64).map(|t| share_at(t as f64 + 0.5)).sum();
                sum += (time_ns - whole) * share_at(f64::midpoint(whole, time_ns));
                prop_assert!((sum - full_ns).abs() < 1e-6 * (1.0 + full_ns), "{} at {}: {}", full_ns, time_ns, sum);
            }
        }
    }
}
