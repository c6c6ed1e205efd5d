//! The mean of values in nested groups of unequal size, by a model of random effects that is fitted by REML.
//!
//! A value is the mean, plus what each group that it lies in adds (boots, runs, iterations), plus its own noise, all normal
//! with a variance a level. The variances maximise the likelihood of what does not depend on the mean (restricted maximum
//! likelihood, REML: Patterson and Thompson, Biometrika 58, 1971), by Fisher's scoring; where groups are of equal size these are
//! the estimates of the analysis of variance. The mean is that of generalised least squares: groups count by what they know.
//!
//! Its standard error is Kenward and Roger's, which allows for variances, and so weights, that are estimated: of few groups
//! the plain one is too small. For a single mean their degrees of freedom are those of Satterthwaite, 2 φ² / Var φ with φ the
//! variance of the mean; no fewer than groups less one, which the means of the groups alone would have. A variance that is
//! estimated as zero keeps its error, so that no level vanishes by luck.
//!
//! Sources: Searle, Casella and McCulloch, Variance Components (1992), chapter 6; Kenward and Roger, "Small sample inference for
//! fixed effects from restricted maximum likelihood", Biometrics 53 (1997).

use std::collections::BTreeMap;

use crate::descriptive::mean;
use crate::error::{StatsError, check_at_least, finite_or_overflow};
use crate::student_t::{WelchTest, t_two_sided};

/// Variances of a model: of three levels, and of the values within the lowest groups, which comes last.
const COMPONENTS: usize = 4;

/// Fisher's scoring comes to its end in a dozen steps; those that do not are cut here.
const MOST_STEPS: usize = 100;

/// Steps of variances smaller than this share of the whole are the end.
const SMALLEST_STEP: f64 = 1e-11;

/// The noise within groups is at least this share of the variance of all values: without any, nothing has a likelihood.
const LEAST_NOISE: f64 = 1e-9;

/// A model of random effects, fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct RandomEffects {
    /// What each level adds, the highest first, in the unit of the values squared; absent where a level does not repeat within
    /// any group above: then the next level below that does has it, too.
    pub levels: Vec<Option<f64>>,
    /// The variance of values within the lowest groups, in the unit squared.
    pub values: f64,
    /// Minus twice the logarithm of the restricted likelihood, with its constant, as lme4 has it.
    pub criterion: f64,
    /// The mean.
    pub mean: NestedMean,
}

/// A mean over nested groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NestedMean {
    /// In the unit of the values.
    pub value: f64,
    /// Standard error, in the unit of the values.
    pub standard_error: f64,
    /// Degrees of freedom of it; no integer.
    pub freedom: f64,
}

impl NestedMean {
    /// Student's t-test of equal means, each with a variance of its own; degrees of freedom of Welch and Satterthwaite, (v + w)² /
    /// (v² / f + w² / g). `self` is the baseline.
    ///
    /// # Errors
    /// No error on either side, an overflow.
    pub fn compare(&self, candidate: &NestedMean) -> Result<WelchTest, StatsError> {
        let (v, w) = (self.standard_error.powi(2), candidate.standard_error.powi(2));
        let difference = finite_or_overflow(candidate.value - self.value)?;
        let sum = finite_or_overflow(v + w)?;
        if sum == 0.0 {
            return Err(StatsError::NoSpread);
        }
        // Shares, so that the squares neither overflow nor vanish.
        let (a, b) = (v / sum, w / sum);
        let freedom = finite_or_overflow((a * a / self.freedom + b * b / candidate.freedom).recip())?;
        let standard_error = sum.sqrt();
        let t = difference / standard_error;
        Ok(WelchTest { difference, standard_error, t, freedom, p: t_two_sided(t, freedom) })
    }
}

impl RandomEffects {
    /// Of values with the group of each level that they belong to, the highest level first: `([boot, run], value)`. Numbers of
    /// groups count within the group above. At most three levels.
    ///
    /// # Errors
    /// Fewer than two groups of the highest level, no group with two values, a value that is not finite, no spread within groups,
    /// an overflow.
    pub fn from_paths<const LEVELS: usize>(values: &[([u32; LEVELS], f64)]) -> Result<Self, StatsError> {
        const { assert!(LEVELS > 0 && LEVELS < COMPONENTS, "one to three levels") };
        let plain: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
        check_at_least(&plain, 2)?;
        let centre = mean(&plain)?;
        let squares: f64 = plain.iter().map(|value| (value - centre).powi(2)).sum();
        let scale = finite_or_overflow((squares / (plain.len() - 1) as f64).sqrt())?;
        if scale == 0.0 {
            return Err(StatsError::NoSpread);
        }
        let groups = GroupTree::from_paths(values, centre, scale);
        let highest = groups.count_groups(1);
        if highest < 2 {
            return Err(StatsError::TooFew { needed: 2, got: highest });
        }
        let lowest = groups.leaves.len();
        if plain.len() == lowest {
            return Err(StatsError::TooFew { needed: lowest + 1, got: plain.len() });
        }
        if groups.leaves.iter().map(|leaf| leaf.squares).sum::<f64>() / (squares / scale.powi(2))
            < LEAST_NOISE
        {
            return Err(StatsError::NoSpread);
        }
        let mut repeats = [false; COMPONENTS];
        for (depth, repeats) in repeats.iter_mut().enumerate().take(LEVELS) {
            *repeats = groups.count_groups(depth + 1) > groups.count_groups(depth).max(1);
        }
        repeats[LEVELS] = true;
        let fit = RestrictedFit::maximise(&groups, repeats);
        let unit = scale * scale;
        let level = |at: usize| repeats[at].then(|| fit.variances[at] * unit);
        let freedom_left = (plain.len() - 1) as f64;
        let mean = fit.mean(highest);
        Ok(RandomEffects {
            levels: (0..LEVELS).map(level).collect(),
            values: finite_or_overflow(fit.variances[LEVELS] * unit)?,
            criterion: fit.criterion + freedom_left * (std::f64::consts::TAU.ln() + 2.0 * scale.ln()),
            mean: NestedMean {
                value: finite_or_overflow(centre + scale * mean.value)?,
                standard_error: finite_or_overflow(scale * mean.standard_error)?,
                freedom: mean.freedom,
            },
        })
    }
}

/// One of the lowest groups: its values, around their mean.
#[derive(Debug, Clone, Copy)]
struct LeafGroup<const LEVELS: usize> {
    path: [u32; LEVELS],
    values: f64,
    mean: f64,
    squares: f64,
}

/// The lowest groups in the order of their paths.
struct GroupTree<const LEVELS: usize> {
    leaves: Vec<LeafGroup<LEVELS>>,
}

impl<const LEVELS: usize> GroupTree<LEVELS> {
    fn from_paths(values: &[([u32; LEVELS], f64)], centre: f64, scale: f64) -> Self {
        let mut groups: BTreeMap<[u32; LEVELS], Vec<f64>> = BTreeMap::new();
        for (path, value) in values {
            groups.entry(*path).or_default().push((value - centre) / scale);
        }
        let leaf = |(path, values): ([u32; LEVELS], Vec<f64>)| {
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let squares = values.iter().map(|value| (value - mean).powi(2)).sum();
            LeafGroup { path, values: count, mean, squares }
        };
        GroupTree { leaves: groups.into_iter().map(leaf).collect() }
    }

    /// Groups of the first `depth` levels.
    fn count_groups(&self, depth: usize) -> usize {
        self.leaves.chunk_by(|one, next| one.path.get(..depth) == next.path.get(..depth)).count()
    }

    /// What the values below `depth` say under these variances.
    fn moments(&self, leaves: &[LeafGroup<LEVELS>], depth: usize, variances: &[f64; COMPONENTS]) -> Moments {
        let at = |component: usize| Jet::variable(variances[component], component);
        if let (true, [leaf]) = (depth == LEVELS, leaves) {
            let precision = at(LEVELS).recip();
            let total = leaf.values * leaf.mean;
            return Moments {
                log_determinant: at(LEVELS).ln() * leaf.values,
                ones: precision * leaf.values,
                product: precision * total,
                squares: precision * (leaf.squares + total * leaf.mean),
            };
        }
        let mut sum = Moments::default();
        let is_same = |one: &LeafGroup<LEVELS>, next: &LeafGroup<LEVELS>| {
            one.path.get(..=depth) == next.path.get(..=depth)
        };
        for group in leaves.chunk_by(is_same) {
            sum.add(self.moments(group, depth + 1, variances).with_shared(at(depth)));
        }
        sum
    }
}

/// Of the values y with covariance V: log |V|, 1'V⁻¹1, 1'V⁻¹y and y'V⁻¹y, with their derivatives by the variances.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    log_determinant: Jet,
    ones: Jet,
    product: Jet,
    squares: Jet,
}

impl Moments {
    /// Values of independent groups together.
    fn add(&mut self, other: Moments) {
        self.log_determinant = self.log_determinant + other.log_determinant;
        self.ones = self.ones + other.ones;
        self.product = self.product + other.product;
        self.squares = self.squares + other.squares;
    }

    /// The same with something added to all of them that has this variance: V + σ² 11' (Sherman and Morrison, 1950).
    fn with_shared(self, variance: Jet) -> Self {
        let spread = variance * self.ones + Jet::constant(1.0);
        let kept = spread.recip();
        Moments {
            log_determinant: self.log_determinant + spread.ln(),
            ones: self.ones * kept,
            product: self.product * kept,
            squares: self.squares - variance * self.product * self.product * kept,
        }
    }
}

/// The variances at which the restricted likelihood is highest, of values that were scaled to a variance of about one.
struct RestrictedFit {
    variances: [f64; COMPONENTS],
    /// Covariance of the variances, the inverse of Fisher's information; zero for levels that do not repeat.
    covariance: Square,
    criterion: f64,
    moments: Moments,
}

type Square = [[f64; COMPONENTS]; COMPONENTS];

/// Minus twice the logarithm of the restricted likelihood but for its constant: the part that the values are not in, and the
/// whole.
fn restricted_criterion(moments: &Moments) -> (Jet, Jet) {
    let determinants = moments.log_determinant + moments.ones.ln();
    let residual = moments.squares - moments.product * moments.product * moments.ones.recip();
    (determinants, determinants + residual)
}

impl RestrictedFit {
    fn maximise<const LEVELS: usize>(groups: &GroupTree<LEVELS>, repeats: [bool; COMPONENTS]) -> Self {
        let repeating = repeats.iter().filter(|repeats| **repeats).count() as f64;
        let mut variances = repeats.map(|repeats| if repeats { repeating.recip() } else { 0.0 });
        let evaluate = |variances: &[f64; COMPONENTS]| {
            let moments = groups.moments(&groups.leaves, 0, variances);
            let (determinants, whole) = restricted_criterion(&moments);
            (moments, determinants, whole)
        };
        let (mut moments, mut determinants, mut whole) = evaluate(&variances);
        for _ in 0..MOST_STEPS {
            // What is zero and would fall further stays.
            let free: [bool; COMPONENTS] =
                std::array::from_fn(|at| repeats[at] && (variances[at] > 0.0 || whole.first[at] < 0.0));
            // Half the second derivatives of the determinants are minus the information, that of the criterion's first minus
            // the score.
            let information = determinants.second.map(|row| row.map(|second| -second / 2.0));
            let Some(inverse) = invert_matrix(information, free) else { break };
            let step: [f64; COMPONENTS] = std::array::from_fn(|at| {
                inverse[at].iter().zip(whole.first).map(|(entry, first)| -entry * first / 2.0).sum()
            });
            let mut share = 1.0;
            let mut moved = false;
            while share > SMALLEST_STEP {
                let next: [f64; COMPONENTS] = std::array::from_fn(|at| {
                    let least = if at == LEVELS { LEAST_NOISE } else { 0.0 };
                    if free[at] { (variances[at] + share * step[at]).max(least) } else { variances[at] }
                });
                let found = evaluate(&next);
                let largest = next.iter().zip(&variances).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                if found.2.value <= whole.value {
                    (moments, determinants, whole) = found;
                    variances = next;
                    moved = largest > SMALLEST_STEP;
                    break;
                }
                share /= 2.0;
            }
            if !moved {
                break;
            }
        }
        let information = determinants.second.map(|row| row.map(|second| -second / 2.0));
        let covariance = invert_matrix(information, repeats).unwrap_or_default();
        RestrictedFit { variances, covariance, criterion: whole.value, moments }
    }

    /// The mean of `groups` groups of the highest level.
    fn mean(&self, groups: usize) -> NestedMean {
        let variance = self.moments.ones.recip();
        let over = |product: &dyn Fn(usize, usize) -> f64| -> f64 {
            let pairs = (0..COMPONENTS).flat_map(|i| (0..COMPONENTS).map(move |j| (i, j)));
            pairs.map(|(i, j)| self.covariance[i][j] * product(i, j)).sum()
        };
        // Kenward and Roger's 2 Φ {Σ Wᵢⱼ (Qᵢⱼ - Pᵢ Φ Pⱼ)} Φ is, for a mean, minus the sum of Wᵢⱼ times the second derivatives of Φ.
        let inflation = over(&|i, j| -variance.second[i][j]).max(0.0);
        let of_variance = over(&|i, j| variance.first[i] * variance.first[j]);
        let fewest = (groups - 1) as f64;
        NestedMean {
            value: self.moments.product.value * variance.value,
            standard_error: (variance.value + inflation).sqrt(),
            freedom: (2.0 * variance.value.powi(2) / of_variance).max(fewest),
        }
    }
}

/// The inverse of the rows and columns that count; zero elsewhere. `None` where it has none.
fn invert_matrix(mut matrix: Square, counts: [bool; COMPONENTS]) -> Option<Square> {
    let mut inverse = Square::default();
    for at in 0..COMPONENTS {
        for other in 0..COMPONENTS {
            if !counts[at] || !counts[other] {
                matrix[at][other] = if at == other { 1.0 } else { 0.0 };
            }
        }
        inverse[at][at] = 1.0;
    }
    // Information is positive definite: no pivot is needed.
    for at in 0..COMPONENTS {
        let pivot = matrix[at][at];
        if !(pivot > 0.0 && pivot.is_finite()) {
            return None;
        }
        for column in 0..COMPONENTS {
            matrix[at][column] /= pivot;
            inverse[at][column] /= pivot;
        }
        for row in (0..COMPONENTS).filter(|row| *row != at) {
            let factor = matrix[row][at];
            for column in 0..COMPONENTS {
                matrix[row][column] -= factor * matrix[at][column];
                inverse[row][column] -= factor * inverse[at][column];
            }
        }
    }
    for at in (0..COMPONENTS).filter(|at| !counts[*at]) {
        inverse[at][at] = 0.0;
    }
    Some(inverse)
}

/// A number with its first and second derivatives by the variances (forward differentiation: Griewank and Walther, Evaluating
/// Derivatives, 2008, section 13.2).
#[derive(Debug, Clone, Copy, Default)]
struct Jet {
    value: f64,
    first: [f64; COMPONENTS],
    second: Square,
}

impl Jet {
    fn constant(value: f64) -> Self {
        Jet { value, ..Jet::default() }
    }

    fn variable(value: f64, component: usize) -> Self {
        let mut jet = Jet::constant(value);
        jet.first[component] = 1.0;
        jet
    }

    /// A function of it, by its value and its first two derivatives there.
    fn map(self, value: f64, slope: f64, curvature: f64) -> Self {
        let second =
            |i: usize, j: usize| slope * self.second[i][j] + curvature * self.first[i] * self.first[j];
        Jet {
            value,
            first: self.first.map(|first| slope * first),
            second: std::array::from_fn(|i| std::array::from_fn(|j| second(i, j))),
        }
    }

    fn product(self, other: Jet) -> Self {
        let second = |i: usize, j: usize| {
            self.second[i][j] * other.value
                + self.value * other.second[i][j]
                + self.first[i] * other.first[j]
                + self.first[j] * other.first[i]
        };
        Jet {
            value: self.value * other.value,
            first: std::array::from_fn(|i| self.first[i] * other.value + self.value * other.first[i]),
            second: std::array::from_fn(|i| std::array::from_fn(|j| second(i, j))),
        }
    }

    fn recip(self) -> Self {
        let inverse = self.value.recip();
        self.map(inverse, -inverse * inverse, 2.0 * inverse.powi(3))
    }

    fn ln(self) -> Self {
        let inverse = self.value.recip();
        self.map(self.value.ln(), inverse, -inverse * inverse)
    }
}

impl std::ops::Add for Jet {
    type Output = Jet;

    fn add(self, other: Jet) -> Jet {
        Jet {
            value: self.value + other.value,
            first: std::array::from_fn(|i| self.first[i] + other.first[i]),
            second: std::array::from_fn(|i| std::array::from_fn(|j| self.second[i][j] + other.second[i][j])),
        }
    }
}

impl std::ops::Sub for Jet {
    type Output = Jet;

    fn sub(self, other: Jet) -> Jet {
        self + other * -1.0
    }
}

impl std::ops::Mul<f64> for Jet {
    type Output = Jet;

    fn mul(self, factor: f64) -> Jet {
        self.map(self.value * factor, factor, 0.0)
    }
}

impl std::ops::Mul for Jet {
    type Output = Jet;

    fn mul(self, other: Jet) -> Jet {
        self.product(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "{found} {expected}");
    }

    /// Yields of dyestuff, 6 batches of 5 (Davies, 1947; lme4's Dyestuff): variances 1764.05 and 2451.25, mean 1527.5 ± 19.383,
    /// criterion 319.6543 (Bates, Maechler, Bolker and Walker, lme4).
    #[test]
    fn yields_of_dyestuff() {
        let batches: [[i32; 5]; 6] = [
            [1545, 1440, 1440, 1520, 1580],
            [1540, 1555, 1490, 1560, 1495],
            [1595, 1550, 1605, 1510, 1560],
            [1445, 1440, 1595, 1465, 1545],
            [1595, 1630, 1515, 1635, 1625],
            [1520, 1455, 1450, 1480, 1445],
        ];
        let of_batch = |(batch, yields): (u32, [i32; 5])| yields.map(|value| ([batch], f64::from(value)));
        let values: Vec<([u32; 1], f64)> = (0..).zip(batches).flat_map(of_batch).collect();
        let found = RandomEffects::from_paths(&values).unwrap();
        assert_near(found.levels[0].unwrap(), 1764.05, 0.01);
        assert_near(found.values, 2451.25, 0.01);
        assert_near(found.criterion, 319.6543, 5e-5);
        assert_near(found.mean.value, 1527.5, 1e-9);
        assert_near(found.mean.standard_error, 19.3834, 5e-5);
        // Of groups of equal size the mean is that of six means: five degrees of freedom, and nothing is inflated.
        assert_near(found.mean.freedom, 5.0, 1e-6);
    }

    /// Strengths of paste, 10 batches, 3 casks each, 2 assays (Davies and Goldsmith, 1972; lme4's Pastes). By REML: variances 1.657,
    /// 8.434 and 0.678 (lme4); mean 60.0533 ± 0.67689, criterion 246.990746 (tests of MixedModels.jl, whose search ends a little
    /// before the optimum). The analysis of variance says the same: mean squares 27.489, 17.545 and 0.678.
    #[test]
    fn strengths_of_paste() {
        let strengths = [
            62.8, 62.6, 60.1, 62.3, 62.7, 63.1, 60.0, 61.4, 57.5, 56.9, 61.1, 58.9, 58.7, 57.5, 63.9, 63.1,
            65.4, 63.7, 57.1, 56.4, 56.9, 58.6, 64.7, 64.5, 55.1, 55.1, 54.7, 54.2, 58.8, 57.5, 63.4, 64.9,
            59.3, 58.1, 60.5, 60.0, 62.5, 62.6, 61.0, 58.7, 56.9, 57.7, 59.2, 59.4, 65.2, 66.0, 64.8, 64.1,
            54.8, 54.8, 64.0, 64.0, 57.7, 56.8, 58.3, 59.3, 59.2, 59.2, 58.9, 56.6,
        ];
        let values: Vec<([u32; 2], f64)> =
            (0..).zip(strengths).map(|(at, value): (u32, f64)| ([at / 6, at / 2 % 3], value)).collect();
        let found = RandomEffects::from_paths(&values).unwrap();
        let variances = [found.levels[0].unwrap(), found.levels[1].unwrap(), found.values];
        for (variance, published) in variances.into_iter().zip([1.657, 8.434, 0.678]) {
            assert_near(variance, published, 5e-4);
        }
        assert_near(variances[0], (27.489 - 17.545) / 6.0, 2e-4);
        assert_near(variances[1], (17.545 - 0.678) / 2.0, 5e-4);
        assert_near(found.criterion, 246.990_745_868, 1e-6);
        assert_near(found.mean.value, 60.053_333_333, 1e-8);
        assert_near(found.mean.standard_error, 0.676_886_84, 2e-5);
        assert_near(found.mean.freedom, 9.0, 1e-6);
    }

    /// Two sides, each a mean of equal groups: Welch's test of the groups' means.
    #[test]
    fn sides_of_equal_groups_are_compared_as_by_welch() {
        let sides = [
            [[10.0, 11.0, 12.0], [13.0, 15.0, 14.0], [9.0, 8.0, 8.5]],
            [[20.0, 21.0, 19.0], [26.0, 25.0, 24.0], [16.0, 15.0, 18.0]],
        ];
        let means = sides.map(|groups| groups.map(|values| values.iter().sum::<f64>() / 3.0));
        let fits = sides.map(|groups| {
            let of_group = |(group, values): (u32, [f64; 3])| values.map(|value| ([group], value));
            let values: Vec<([u32; 1], f64)> = (0..).zip(groups).flat_map(of_group).collect();
            RandomEffects::from_paths(&values).unwrap().mean
        });
        let (found, expected) =
            (fits[0].compare(&fits[1]).unwrap(), crate::student_t::welch(&means[0], &means[1]).unwrap());
        for (found, expected) in [
            (found.difference, expected.difference),
            (found.standard_error, expected.standard_error),
            (found.freedom, expected.freedom),
            (found.p, expected.p),
        ] {
            assert_near(found, expected, 1e-6 * expected.abs());
        }
    }

    #[test]
    fn a_level_that_does_not_repeat_has_no_variance() {
        // A run a boot: the runs' share is that of the boots.
        let values: Vec<([u32; 2], f64)> = [[1.0, 1.5], [4.0, 4.2], [2.0, 2.6]]
            .iter()
            .zip(0..)
            .flat_map(|(pair, boot)| pair.map(|value| ([boot, 0], value)))
            .collect();
        let found = RandomEffects::from_paths(&values).unwrap();
        assert!(found.levels[0].is_some_and(|variance| variance > 1.0));
        assert_eq!(found.levels[1], None);
    }

    #[test]
    fn bad_input_is_told() {
        let one_group = [([0], 1.0), ([0], 2.0)];
        assert_eq!(RandomEffects::from_paths(&one_group), Err(StatsError::TooFew { needed: 2, got: 1 }));
        let one_value_each = [([0], 1.0), ([1], 2.0)];
        assert_eq!(RandomEffects::from_paths(&one_value_each), Err(StatsError::TooFew { needed: 3, got: 2 }));
        let constant = [([0], 1.0), ([0], 1.0), ([1], 1.0)];
        assert_eq!(RandomEffects::from_paths(&constant), Err(StatsError::NoSpread));
        let equal_within = [([0], 1.0), ([0], 1.0), ([1], 2.0), ([1], 2.0)];
        assert_eq!(RandomEffects::from_paths(&equal_within), Err(StatsError::NoSpread));
        assert!(matches!(
            RandomEffects::from_paths(&[([0], f64::NAN), ([1], 2.0)]),
            Err(StatsError::NotFinite { .. })
        ));
        assert!(RandomEffects::from_paths(&[([0], 1e300), ([0], -1e300), ([1], 1e300)]).is_err());
        let none = NestedMean { value: 1.0, standard_error: 0.0, freedom: 1.0 };
        assert_eq!(none.compare(&none), Err(StatsError::NoSpread));
    }
}
