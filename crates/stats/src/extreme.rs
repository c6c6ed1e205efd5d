//! Owns two further labels for values far from the rest: Tukey's fences and Rosner's test. It refuses to remove them, as
//! `outliers` does, which is the default.

use crate::StatsError;
use crate::centre::{mean, quantile_of_sorted};
use crate::sample::{check_at_least, check_open_fraction, finite_or_overflow, sorted_sample};
use crate::spread::sd;
use crate::student::t_quantile_above;

/// A fence around the middle half of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TukeyFences {
    /// Q1 minus `reach` inter-quartile ranges, in the unit of the values.
    pub low: f64,
    /// Q3 plus as many.
    pub high: f64,
}

impl TukeyFences {
    /// Tukey's fences with type 7 quartiles: `reach` 1.5 for values that are mildly far, 3 for those that are severely.
    /// Source: Tukey, Exploratory Data Analysis (1977), section 2D.
    ///
    /// # Errors
    /// An empty sample, a value that is not finite, a reach that is not above zero, an overflow.
    pub fn from_values(values: &[f64], reach: f64) -> Result<Self, StatsError> {
        let sorted = sorted_sample(values)?;
        crate::sample::check_above_zero("reach", reach)?;
        let [low, high] = [0.25, 0.75].map(|fraction| quantile_of_sorted(&sorted, fraction));
        let width = finite_or_overflow((high - low) * reach)?;
        Ok(Self { low: finite_or_overflow(low - width)?, high: finite_or_overflow(high + width)? })
    }

    /// Whether a value lies beyond either fence.
    #[must_use]
    pub fn excludes(&self, value: f64) -> bool {
        value < self.low || value > self.high
    }
}

/// Indexes of the outliers that Rosner's generalised ESD test finds among at most `most`, the farthest first; normal
/// values without outliers have one found with probability `level`. Source: Rosner, "Percentage points for a generalized
/// ESD many-outlier procedure", Technometrics 25 (1983), whose critical values are good from about 25 values on.
///
/// # Errors
/// Fewer than `most` + 3 values, a value that is not finite, a level outside (0, 1), an overflow.
pub fn find_rosner_outliers(values: &[f64], most: usize, level: f64) -> Result<Vec<usize>, StatsError> {
    let values = check_at_least(values, most.saturating_add(3))?;
    check_open_fraction("level", level)?;
    let mut left: Vec<(usize, f64)> = values.iter().copied().enumerate().collect();
    let (mut taken, mut found) = (Vec::with_capacity(most), 0);
    for _ in 0..most {
        let rest: Vec<f64> = left.iter().map(|(_, value)| *value).collect();
        let (centre, spread) = (mean(&rest)?, sd(&rest)?);
        let distances = rest.iter().map(|value| (value - centre).abs()).enumerate();
        let far = distances.reduce(|far, next| if next.1 > far.1 { next } else { far });
        let Some((at, distance)) = far.filter(|_| spread > 0.0) else { break };
        taken.push(left.remove(at).0);
        if distance / spread > rosner_critical_value(rest.len(), level) {
            found = taken.len();
        }
    }
    taken.truncate(found);
    Ok(taken)
}

/// Rosner's λ for n values left: (n - 1) t / √((n - 2 + t²) n), t at 1 - level / 2n with n - 2 degrees of freedom.
fn rosner_critical_value(n: usize, level: f64) -> f64 {
    let n = n as f64;
    let t = t_quantile_above(level / (2.0 * n), n - 2.0);
    (n - 1.0) * t / ((n - 2.0 + t * t) * n).sqrt()
}
