//! How latencies are distributed: the part of statements that took at most so long.

/// Points of a distribution, by latency, from (0, 0) on; straight lines in between.
#[derive(Debug, Clone, Default)]
pub(crate) struct Distribution {
    /// Seconds, and the part of the statements that took at most so long.
    points: Vec<(f64, f64)>,
}

impl Distribution {
    /// From buckets, by latency: where each ends, in seconds, and how many are in it. The part between
    /// two of them is taken to be spread evenly.
    pub(crate) fn of_buckets(buckets: &[(f64, f64, u64)]) -> Self {
        let all: f64 = buckets.iter().map(|(_, _, count)| as_f64(*count)).sum();
        let mut points = vec![(0.0, 0.0)];
        let mut below = 0.0;
        for (from_s, to_s, count) in buckets {
            points.push((*from_s, below / all));
            below += as_f64(*count);
            points.push((*to_s, below / all));
        }
        Self { points }
    }

    /// From percentiles: the part, and its latency in seconds.
    pub(crate) fn of_percentiles(percentiles: &[(f64, f64)]) -> Self {
        let mut points = vec![(0.0, 0.0)];
        points.extend(percentiles.iter().map(|(part, value_s)| (*value_s, *part)));
        points.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        Self { points }
    }

    /// What this part of the statements took at most, in seconds. NaN of nothing.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        let found = self.points.windows(2).find_map(|pair| match pair {
            [from, to] if to.1 >= part => Some(between(part, (from.1, from.0), (to.1, to.0))),
            _ => None,
        });
        found.unwrap_or_else(|| self.points.last().map_or(f64::NAN, |(value_s, _)| *value_s))
    }

    /// The part of the statements that took longer.
    pub(crate) fn above(&self, value_s: f64) -> f64 {
        let found = self.points.windows(2).find_map(|pair| match pair {
            [from, to] if to.0 >= value_s => Some(1.0 - between(value_s, *from, *to)),
            _ => None,
        });
        found.unwrap_or(0.0)
    }
}

/// The most work a second of any mixture over time of these ways, each with the part of the statements
/// that are too slow in it and its work a second, in which no more than `part` are.
pub(crate) fn best_mixture(ways: &[(f64, f64)], part: f64) -> f64 {
    let alone = ways.iter().filter(|(slow, _)| *slow <= part).map(|(_, per_s)| *per_s);
    let pairs = ways.iter().flat_map(|below| ways.iter().map(move |above| (*below, *above)));
    let mixed = pairs
        .filter(|(below, above)| below.0 <= part && above.0 > part)
        .map(|(below, above)| between(part, below, above));
    alone.chain(mixed).fold(0.0, f64::max)
}

fn between(x: f64, from: (f64, f64), to: (f64, f64)) -> f64 {
    let along = if to.0 > from.0 { (x - from.0) / (to.0 - from.0) } else { 1.0 };
    from.1 + (to.1 - from.1) * along.clamp(0.0, 1.0)
}

fn as_f64(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn buckets_give_quantiles_and_what_is_above_a_latency() {
        let all = Distribution::of_buckets(&[(0.001, 0.002, 90), (0.004, 0.006, 10)]);
        assert!(near(all.quantile(0.45), 0.0015), "{}", all.quantile(0.45));
        assert!(near(all.quantile(0.95), 0.005));
        assert!(near(all.above(0.003), 0.1));
        assert!(near(all.above(0.005), 0.05));
        assert!(near(all.above(1.0), 0.0));
        assert!(Distribution::default().quantile(0.99).is_nan());
    }

    #[test]
    fn percentiles_give_the_same() {
        let all = Distribution::of_percentiles(&[(0.5, 0.001), (0.9, 0.002), (1.0, 0.010)]);
        assert!(near(all.quantile(0.95), 0.006));
        assert!(near(all.above(0.002), 0.1));
    }

    #[test]
    fn the_best_mixture_is_between_a_way_that_is_within_and_one_that_is_not() {
        let ways = [(0.0, 0.0), (0.02, 10.0), (0.05, 40.0), (0.5, 50.0)];
        assert!(near(best_mixture(&ways, 0.01), 8.0), "a fifth of the time at 40");
        assert!(near(best_mixture(&ways, 0.6), 50.0));
        assert!(near(best_mixture(&[(0.02, 10.0)], 0.01), 0.0));
    }
}
