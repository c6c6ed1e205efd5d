//! Noise on nested levels of unequal size: how much each level adds, by the analysis of variance.
//!
//! The mean square of each level is set equal to what it is expected to be, a sum of the variances of the level and of those
//! below, each with a coefficient that follows from the sizes of the groups; a negative variance counts as zero.
//!
//! Source: Searle, Casella and McCulloch, Variance Components (1992), section 5.3 (Henderson's first method, which for nested
//! levels is the usual analysis of variance); for equal sizes: Sokal and Rohlf, Biometry, chapter 10.

use std::collections::BTreeMap;

use crate::error::{StatsError, check_at_least, finite_or_overflow};

/// One level of a nested experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelComponent {
    /// Its groups.
    pub groups: usize,
    /// Groups beyond one in each group above: on so many differences the variance rests.
    pub freedom: usize,
    /// What the level itself adds, in the unit of the values squared; absent where it does not repeat within any group above:
    /// then the level above has it, too.
    pub variance: Option<f64>,
}

/// The variances of nested levels.
#[derive(Debug, Clone, PartialEq)]
pub struct NestedComponents {
    /// The levels, the highest first.
    pub levels: Vec<LevelComponent>,
    /// The values within the lowest groups.
    pub values: LevelComponent,
}

/// A group of one level.
#[derive(Debug, Clone, Copy, Default)]
struct GroupSum {
    values: usize,
    sum: f64,
}

impl GroupSum {
    fn mean(self) -> f64 {
        self.sum / self.values as f64
    }
}

impl NestedComponents {
    /// Of values with the group of each level that they belong to, the highest level first: `([boot, run], value)`. Numbers of
    /// groups count within the group above.
    ///
    /// # Errors
    /// Fewer than two values, one that is not finite, an overflow.
    pub fn from_paths<const LEVELS: usize>(values: &[([u32; LEVELS], f64)]) -> Result<Self, StatsError> {
        let plain: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
        check_at_least(&plain, 2)?;
        let centre = crate::descriptive::mean(&plain)?;
        let groups: Vec<BTreeMap<&[u32], GroupSum>> =
            (0..=LEVELS).map(|depth| sum_groups(values, depth, centre)).collect();
        let squares = |depth: usize| -> f64 {
            let of_group = |(path, group): (&&[u32], &GroupSum)| {
                let above = parent_of(&groups, path, depth - 1);
                group.values as f64 * (group.mean() - above.mean()).powi(2)
            };
            groups.get(depth).map_or(0.0, |level| level.iter().map(of_group).sum())
        };
        let lowest = LEVELS;
        let within: f64 = values
            .iter()
            .map(|(path, value)| (value - centre - parent_of(&groups, path, lowest).mean()).powi(2))
            .sum();
        let count = |depth: usize| groups.get(depth).map_or(0, BTreeMap::len);
        let freedom = values.len() - count(lowest);
        let residual = if freedom > 0 { Some(finite_or_overflow(within / freedom as f64)?) } else { None };
        let mut levels = Vec::new();
        // From the lowest level up; each needs the variances of those below.
        let mut known: Vec<(usize, f64)> = Vec::new();
        for depth in (1..=LEVELS).rev() {
            let freedom = count(depth) - count(depth - 1);
            let mut variance = None;
            if freedom > 0 {
                let coefficient = |below: usize| size_coefficient(&groups, depth, below) / freedom as f64;
                let below: f64 = known.iter().map(|(below, variance)| coefficient(*below) * variance).sum();
                let mean_square = squares(depth) / freedom as f64;
                let own = (mean_square - residual.unwrap_or(0.0) - below) / coefficient(depth);
                let own = finite_or_overflow(own.max(0.0))?;
                known.push((depth, own));
                variance = Some(own);
            }
            levels.push(LevelComponent { groups: count(depth), freedom, variance });
        }
        levels.reverse();
        let values = LevelComponent { groups: values.len(), freedom, variance: residual };
        Ok(NestedComponents { levels, values })
    }
}

fn sum_groups<const LEVELS: usize>(
    values: &[([u32; LEVELS], f64)],
    depth: usize,
    centre: f64,
) -> BTreeMap<&[u32], GroupSum> {
    let mut groups: BTreeMap<&[u32], GroupSum> = BTreeMap::new();
    for (path, value) in values {
        let group = groups.entry(path.get(..depth).unwrap_or_default()).or_default();
        (group.values, group.sum) = (group.values + 1, group.sum + value - centre);
    }
    groups
}

/// The group of a level that a group or a value belongs to.
fn parent_of(groups: &[BTreeMap<&[u32], GroupSum>], path: &[u32], depth: usize) -> GroupSum {
    let found = groups.get(depth).zip(path.get(..depth)).and_then(|(level, path)| level.get(path));
    found.copied().unwrap_or_default()
}

/// Σ n² (1 / n of the group at `depth` - 1 / n of the one above it), over the groups of the level `below`: how often the variance of
/// that level is expected in the sum of squares of this one.
fn size_coefficient(groups: &[BTreeMap<&[u32], GroupSum>], depth: usize, below: usize) -> f64 {
    let of_group = |(path, group): (&&[u32], &GroupSum)| {
        let own = parent_of(groups, path, depth).values as f64;
        let above = parent_of(groups, path, depth - 1).values as f64;
        (group.values as f64).powi(2) * (own.recip() - above.recip())
    };
    groups.get(below).map_or(0.0, |level| level.iter().map(of_group).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Glycogen in rats' livers: 3 treatments, 2 rats each, 3 preparations of each liver, 2 readings (Sokal and Rohlf,
    /// Biometry, chapter 10): mean squares 778.78, 265.89, 49.50, 21.17.
    #[test]
    fn glycogen_of_rats() {
        let readings: [[[i32; 6]; 2]; 3] = [
            [[131, 130, 131, 125, 136, 142], [150, 148, 140, 143, 160, 150]],
            [[157, 145, 154, 142, 147, 153], [151, 155, 147, 147, 162, 152]],
            [[134, 125, 138, 138, 135, 136], [138, 140, 139, 138, 134, 127]],
        ];
        let mut values = Vec::new();
        for (treatment, rats) in (0..).zip(readings) {
            for (rat, readings) in (0..).zip(rats) {
                let reading = |(number, value): (u32, i32)| ([treatment, rat, number / 2], f64::from(value));
                values.extend((0..).zip(readings).map(reading));
            }
        }
        let found = NestedComponents::from_paths(&values).unwrap();
        let freedom: Vec<usize> = found.levels.iter().map(|level| level.freedom).collect();
        assert_eq!((freedom, found.values.freedom), (vec![2, 3, 12], 18));
        let variances: Vec<f64> =
            found.levels.iter().chain([&found.values]).filter_map(|level| level.variance).collect();
        for (variance, published) in variances.iter().zip([42.74, 36.06, 14.17, 21.17]) {
            assert!((variance - published).abs() < 0.005, "{variances:?}");
        }
    }

    /// Conceptions by semen of six bulls, unequally many samples each (Snedecor and Cochran, Statistical Methods): mean squares
    /// 664.4 and 248.3, of a usual size of 5.67.
    #[test]
    fn conceptions_of_bulls() {
        let bulls: [&[f64]; 6] = [
            &[46.0, 31.0, 37.0, 62.0, 30.0],
            &[70.0, 59.0],
            &[52.0, 44.0, 57.0, 40.0, 67.0, 64.0, 70.0],
            &[47.0, 21.0, 70.0, 46.0, 14.0],
            &[42.0, 64.0, 50.0, 69.0, 77.0, 81.0, 87.0],
            &[35.0, 68.0, 59.0, 38.0, 57.0, 76.0, 57.0, 29.0, 60.0],
        ];
        let mut values = Vec::new();
        for (bull, samples) in (0..).zip(bulls) {
            values.extend(samples.iter().map(|value| ([bull], *value)));
        }
        let found = NestedComponents::from_paths(&values).unwrap();
        assert!((found.values.variance.unwrap() - 248.3).abs() < 0.05);
        assert!((found.levels[0].variance.unwrap() - (664.4 - 248.3) / 5.67).abs() < 0.05);
    }

    #[test]
    fn a_level_that_does_not_repeat_leaves_its_share_to_the_next() {
        // Two boots of one run of two iterations each.
        let values = [([0, 0], 1.0), ([0, 0], 3.0), ([1, 0], 5.0), ([1, 0], 7.0)];
        let found = NestedComponents::from_paths(&values).unwrap();
        assert_eq!(found.levels[1].variance, None);
        assert_eq!(found.values.variance, Some(2.0));
        // MS of boots: 2 · 2 · (4² / 4) = 16; (16 - 2) / 2.
        assert_eq!(found.levels[0].variance, Some(7.0));
        // One value a run: the runs have the noise of the values.
        let found = NestedComponents::from_paths(&[([0, 0], 1.0), ([0, 1], 3.0)]).unwrap();
        assert_eq!((found.values.variance, found.levels[1].variance), (None, Some(2.0)));
    }
}
