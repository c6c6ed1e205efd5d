//! Whether a run has measured enough: as precisely as its stopping rule asks, or so that its verdicts are decided.
//!
//! Who looks for verdicts after every block gets intervals and tests that hold at every look, from the same comparison that
//! is shown at the end.

use perflab_model::RunRecord;
use perflab_stats::median_with_interval;

use crate::compare::comparison::VerdictRow;
use crate::compare::options::{AnalysisOptions, ComparisonSide};
use crate::compare::pipeline::{compare_levels, factor_levels};
use crate::error::AnalyzeError;

/// Half the width of the median's exact interval, relative to the median; absent where the sample is too small for an
/// interval, or the median is zero.
#[must_use]
pub fn relative_precision(values: &[f64], confidence: f64) -> Option<f64> {
    let found = median_with_interval(values, confidence).ok()?;
    let half = found.interval?.half_width();
    let size = found.value.abs();
    (size > 0.0).then_some(half / size)
}

/// The deciding rows of a run so far, each level of a factor against its first, and which of them are still open.
#[derive(Debug, Clone, PartialEq)]
pub struct DecidingRows {
    /// How many there are, a level without any value being one that is decided; 0 where nothing can be compared.
    pub rows: usize,
    /// Those that are neither better, worse nor the same.
    pub open: Vec<VerdictRow>,
}

impl DecidingRows {
    /// Compares the levels of every factor of which several were measured.
    ///
    /// # Errors
    /// Options out of range; levels without a metric in common; numbers that no statistic takes.
    pub fn of_run(run: &RunRecord, options: &AnalysisOptions) -> Result<Self, AnalyzeError> {
        let side = ComparisonSide { name: run.manifest.id.clone(), runs: vec![run.clone()] };
        let mut found = DecidingRows { rows: 0, open: Vec::new() };
        for factor in run.manifest.plan.factors.keys() {
            if factor_levels(&side, factor).is_err() {
                continue;
            }
            let comparison = match compare_levels(&side, factor, options) {
                Ok(comparison) => comparison,
                // What never gave a value in as many blocks as are looked at gives none in more of them.
                Err(AnalyzeError::NoSamples { .. }) => {
                    found.rows += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let deciding = comparison.deciding_rows();
            found.rows += deciding.len();
            found.open.extend(deciding.into_iter().filter(|row| !row.is_decided()).cloned());
        }
        Ok(found)
    }

    /// Whether nothing is open.
    #[must_use]
    pub fn are_decided(&self) -> bool {
        self.rows > 0 && self.open.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::relative_precision;

    #[test]
    fn small_samples_and_zeros_have_no_precision() {
        assert_eq!(relative_precision(&[1.0; 5], 0.95), None);
        assert_eq!(relative_precision(&[0.0; 10], 0.95), None);
        assert_eq!(relative_precision(&[2.0; 10], 0.95), Some(0.0));
        let values: Vec<f64> = (0..10).map(|i| 100.0 + f64::from(i)).collect();
        let found = relative_precision(&values, 0.95).unwrap();
        assert!((found - 3.5 / 104.5).abs() < 1e-12, "{found}");
    }
}
