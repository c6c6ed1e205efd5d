//! All rows together: one gain per case and metric, and their geometric mean.
//!
//! Not a member is what has no ratio on every side, no direction, or values that are zero or negative; each is named.

use indexmap::IndexMap;
use perflab_model::Direction;
use perflab_stats::{geometric_mean, mean};
use serde::Serialize;

use crate::compare::change::{ChangeInterval, ChangeScale, IntervalMeaning};
use crate::compare::comparison::{Comparison, VerdictRow};

/// Quantile of the normal distribution at 97.5 %, for the error of a logarithm from the width of its interval.
const Z: f64 = 1.959_963_984_540_054;

/// What all rows say together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparisonRecap {
    /// Names of the candidates, in the order of the comparison.
    pub candidates: Vec<String>,
    /// The members, in the order of the rows.
    pub members: Vec<RecapMember>,
    /// The geometric mean of each candidate's gains; empty without a member.
    pub overall: Vec<RecapGain>,
    /// Rows that are no members; who writes JSON adds them with their reasons in words.
    #[serde(skip)]
    pub left_out: Vec<RecapOmission>,
    /// Whether only primary metrics were asked.
    pub primary_only: bool,
}

/// One metric of one case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecapMember {
    /// The case.
    pub subject: String,
    /// The metric.
    pub metric: String,
    /// Which way is good.
    pub direction: Direction,
    /// The gain of each candidate.
    pub gains: Vec<RecapGain>,
}

/// How many times as good as the baseline: above 1 is better, whatever the direction of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RecapGain {
    /// candidate / baseline where more is better, else baseline / candidate.
    pub ratio: f64,
    /// At the comparison's confidence; absent where a member has none.
    pub interval: Option<ChangeInterval>,
    /// What the interval is of; of a mean, the least that is said of a member.
    #[serde(skip_serializing_if = "IntervalMeaning::is_change")]
    pub covers: IntervalMeaning,
}

/// A row that is no member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecapOmission {
    /// The case.
    pub subject: String,
    /// The metric.
    pub metric: String,
    /// Why.
    pub reason: RecapOmissionReason,
}

/// Why a row has no gain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecapOmissionReason {
    /// The metric has no better or worse.
    NoDirection,
    /// A side has no value.
    NoValue {
        /// Name of the candidate; none where it is the baseline.
        candidate: Option<String>,
    },
    /// It was not measured on every side.
    NotEverywhere,
    /// Values are not above zero.
    NotAboveZero,
}

/// The recap of a comparison: of its primary metrics, where it has any.
#[must_use]
pub fn recap_comparison(comparison: &Comparison) -> ComparisonRecap {
    let primary_only = comparison.rows.iter().any(|row| row.primary);
    let mut groups: IndexMap<(&str, &str, &str), Vec<&VerdictRow>> = IndexMap::new();
    for row in comparison.rows.iter().filter(|row| row.primary || !primary_only) {
        groups.entry((&row.subject, &row.metric, &row.unit.0)).or_default().push(row);
    }
    let (mut members, mut left_out) = (Vec::new(), Vec::new());
    for ((subject, metric, _), rows) in groups {
        match member_gains(&rows, comparison.candidates.len()) {
            Ok((direction, gains)) => {
                members.push(RecapMember {
                    subject: subject.into(),
                    metric: metric.into(),
                    direction,
                    gains,
                });
            }
            Err(reason) => {
                left_out.push(RecapOmission { subject: subject.into(), metric: metric.into(), reason })
            }
        }
    }
    let overall = (0..comparison.candidates.len()).filter_map(|at| overall_gain(&members, at)).collect();
    ComparisonRecap { candidates: comparison.candidates.clone(), members, overall, left_out, primary_only }
}

/// The gain of every candidate, or why there is none.
fn member_gains(
    rows: &[&VerdictRow],
    candidates: usize,
) -> Result<(Direction, Vec<RecapGain>), RecapOmissionReason> {
    let direction = rows.first().map_or(Direction::Neither, |row| row.direction);
    if direction == Direction::Neither {
        return Err(RecapOmissionReason::NoDirection);
    }
    if let Some(row) = rows.iter().find(|row| row.change.is_none()) {
        let candidate = row.baseline.is_some().then(|| row.candidate_name.clone());
        return Err(RecapOmissionReason::NoValue { candidate });
    }
    if rows.len() < candidates {
        return Err(RecapOmissionReason::NotEverywhere);
    }
    let found: Option<Vec<RecapGain>> = rows.iter().map(|row| row_gain(row, direction)).collect();
    found.map(|gains| (direction, gains)).ok_or(RecapOmissionReason::NotAboveZero)
}

fn row_gain(row: &VerdictRow, direction: Direction) -> Option<RecapGain> {
    let change = row.change.filter(|change| change.scale == ChangeScale::Ratio)?;
    let up = RecapGain {
        ratio: 1.0 + change.value,
        interval: change.interval.map(|i| ChangeInterval {
            low: 1.0 + i.low,
            high: 1.0 + i.high,
            level: i.level,
        }),
        covers: change.covers,
    };
    Some(if direction == Direction::Higher { up } else { up.inverted() })
}

impl RecapGain {
    fn inverted(self) -> Self {
        let turned =
            |i: ChangeInterval| ChangeInterval { low: i.high.recip(), high: i.low.recip(), level: i.level };
        RecapGain { ratio: self.ratio.recip(), interval: self.interval.map(turned), ..self }
    }
}

/// exp of the mean logarithm, with the error √(Σ se²)/K of independent members, each se being half the width of its
/// interval over the normal quantile. Members of one run share its luck: then the interval is too narrow.
fn overall_gain(members: &[RecapMember], at: usize) -> Option<RecapGain> {
    let gains: Vec<RecapGain> = members.iter().filter_map(|member| member.gains.get(at).copied()).collect();
    let ratio = geometric_mean(&gains.iter().map(|gain| gain.ratio).collect::<Vec<_>>()).ok()?;
    let squares: Option<Vec<f64>> =
        gains.iter().map(|gain| Some(log_standard_error(gain)?.powi(2))).collect();
    let interval = squares.and_then(|squares| {
        let half = Z * (mean(&squares).ok()? / squares.len() as f64).sqrt();
        let level = gains.first()?.interval?.level.min(0.95);
        Some(ChangeInterval { low: ratio * (-half).exp(), high: ratio * half.exp(), level })
    });
    let covers = gains.iter().map(|gain| gain.covers).max().unwrap_or_default();
    Some(RecapGain { ratio, interval, covers })
}

fn log_standard_error(gain: &RecapGain) -> Option<f64> {
    let interval = gain.interval?;
    let width = interval.high.ln() - interval.low.ln();
    width.is_finite().then_some(width / (2.0 * Z))
}
