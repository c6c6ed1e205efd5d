//! The shift function of a row: how far each decile moved, with a band that holds all of them at once.

use std::collections::BTreeMap;

use perflab_stats::{DecileBand, TwoLevelNoise, shift_band};

use crate::compare::change::{ChangeScale, RepetitionLevel};
use crate::compare::comparison::{ComparedRun, SamplePoint, SideSummary, VerdictRow};

/// Fewest values a side: a decile of fewer is the smallest value.
const FEWEST: usize = 10;

/// How far each decile of a row moved.
#[derive(Debug, Clone, PartialEq)]
pub struct RowShift {
    /// Whether shifts are fractions of the baseline's decile or in the row's unit.
    pub scale: ChangeScale,
    /// The deciles, their shifts as changes on the scale.
    pub deciles: [DecileBand; 9],
}

impl RowShift {
    /// That of a row, of a comparison of these runs, whose sides have ten values each; none where its values are exact, or nothing was
    /// estimated.
    #[must_use]
    pub fn from_row(row: &VerdictRow, runs: &[ComparedRun], confidence: f64) -> Option<Self> {
        let (method, scale) = (row.method?, row.change?.scale);
        let (ours, theirs) = (row.baseline.as_ref()?, row.candidate.as_ref()?);
        if ours.n.min(theirs.n) < FEWEST {
            return None;
        }
        let values = |side: &SideSummary| -> Vec<f64> {
            side.values.iter().map(|point| scale.on_scale(point.value)).collect()
        };
        let (x, y) = (values(ours), values(theirs));
        let dependence = row.between_runs.map_or(1.0, |runs| runs.widened.powi(2));
        // Runs of one machine share its luck, as those of one boot do.
        let machine_number = |run: u32| {
            let machine = runs.get(run as usize).map(|run| &run.machine);
            runs.iter().position(|known| Some(&known.machine) == machine).unwrap_or_default() as u32
        };
        let effective = |side: &SideSummary| {
            let size = match method.level {
                RepetitionLevel::Iteration => side.values.len() as f64,
                RepetitionLevel::Machine => {
                    effective_size(&side.values, scale, |point| (machine_number(point.run), 0))
                }
                RepetitionLevel::Run => effective_size(&side.values, scale, |point| (point.boot, point.run)),
                RepetitionLevel::Boot | RepetitionLevel::Layout => {
                    effective_size(&side.values, scale, |point| (point.boot, 0))
                }
            };
            size / dependence
        };
        let mut deciles = shift_band(&x, &y, (effective(ours), effective(theirs)), confidence).ok()?;
        for decile in &mut deciles {
            decile.shift = scale.change_of_shift(decile.shift);
            (decile.low, decile.high) =
                [decile.low, decile.high].map(|end| end.map(|end| scale.change_of_shift(end))).into();
            if scale == ChangeScale::Ratio {
                decile.baseline = decile.baseline.exp();
            }
        }
        Some(RowShift { scale, deciles })
    }
}

/// How many independent values some are worth: n / (1 + (n/k - 1) ρ) of k machines, boots or runs, told apart by `unit_of`, whose values
/// resemble one another by ρ (Kish, Survey Sampling, 1965, section 5.4). k at least, n at most.
pub(crate) fn effective_size(
    points: &[SamplePoint],
    scale: ChangeScale,
    unit_of: impl Fn(&SamplePoint) -> (u32, u32),
) -> f64 {
    let n = points.len() as f64;
    let mut groups: BTreeMap<(u32, u32), Vec<f64>> = BTreeMap::new();
    for point in points {
        groups.entry(unit_of(point)).or_default().push(scale.on_scale(point.value));
    }
    let slices: Vec<&[f64]> = groups.values().map(Vec::as_slice).collect();
    let k = slices.len() as f64;
    let Ok(noise) = TwoLevelNoise::from_boots(&slices) else { return k };
    let (between, within) = (noise.between.powi(2), noise.within.powi(2));
    // What few boots show of their own spread may be far too low: the upper end of its error, √(2 / (k - 1)).
    let between = (between + within * k / n) * (1.0 + (2.0 / (k - 1.0)).sqrt()) - within * k / n;
    let resemblance = between / (between + within);
    if resemblance.is_finite() { n / (1.0 + (n / k - 1.0) * resemblance) } else { k }
}
