//! Owns the look at each sample by itself: drift, two modes, outliers. It refuses to repair: nothing is removed or
//! straightened. Boots are looked at one by one, since steps between them are not drift.

use std::thread;

use perflab_stats::{drift_correlation, find_outlying_values, find_two_modes};

use crate::at_once;
use crate::comparison::SamplePoint;
use crate::seen::{AlignedSide, MetricSamples, SampleIndex};
use crate::warning::{ComparisonDiagnostic, DiagnosticLocation};

/// Drift is worth a warning below this p.
const DRIFT_P: f64 = 0.01;

/// Fills in the warnings of every cell of a side, by as many threads as there are processors.
pub(crate) fn check_samples(table: &mut AlignedSide, index: &SampleIndex, default_margin: f64) {
    let name = table.name.as_str();
    let mut cells: Vec<_> = table.cells.iter_mut().collect();
    let look = |cells: &mut [(&(usize, usize), &mut MetricSamples)]| {
        for (key, cell) in cells {
            let place = || diagnostic_location(name, **key, index);
            cell.warnings = check_sample(cell, &place, cell.margin.unwrap_or(default_margin));
        }
    };
    let part = at_once::chunk_length(cells.len());
    thread::scope(|scope| {
        for part in cells.chunks_mut(part) {
            scope.spawn(|| look(part));
        }
    });
}

fn diagnostic_location(
    side: &str,
    (subject, metric): (usize, usize),
    index: &SampleIndex,
) -> DiagnosticLocation {
    DiagnosticLocation {
        side: side.into(),
        subject: index.subjects.get_index(subject).map_or_else(String::new, |(name, _)| name.clone()),
        metric: index.metrics.get_index(metric).map_or_else(String::new, |key| String::from(&key.name)),
    }
}

fn check_sample(
    cell: &MetricSamples,
    place: &dyn Fn() -> DiagnosticLocation,
    margin: f64,
) -> Vec<ComparisonDiagnostic> {
    let boots = cell.by_boot();
    let mut found = Vec::new();
    if cell.not_numbers > 0 {
        found.push(ComparisonDiagnostic::NotNumbers { place: place(), values: cell.not_numbers });
    }
    for points in boots.values() {
        let values: Vec<f64> = points.iter().map(|point| point.value).collect();
        found.extend(drift_diagnostic(&values, boots.len(), place));
        found.extend(modes_diagnostic(&values, margin, place));
        found.extend(outliers_diagnostic(points, &values, place));
    }
    found
}

/// With several boots, one of them drifts by chance more often.
fn drift_diagnostic(
    values: &[f64],
    boots: usize,
    place: &dyn Fn() -> DiagnosticLocation,
) -> Option<ComparisonDiagnostic> {
    let found = drift_correlation(values).ok()?;
    let p = (found.p * boots as f64).min(1.0);
    (p < DRIFT_P).then(|| ComparisonDiagnostic::Drift { place: place(), rho: found.rho, p })
}

/// Groups closer than the margin do not matter: steps of a coarse clock, for example.
fn modes_diagnostic(
    values: &[f64],
    margin: f64,
    place: &dyn Fn() -> DiagnosticLocation,
) -> Option<ComparisonDiagnostic> {
    let modes = find_two_modes(values).ok()??;
    let matters = modes.high - modes.low > margin * modes.low.abs();
    let high_share = modes.high_share;
    matters.then(|| ComparisonDiagnostic::Modes {
        place: place(),
        low: modes.low,
        high: modes.high,
        high_share,
    })
}

/// Iterations whose values lie far from the rest; not looked for among so few values that anything would.
fn outliers_diagnostic(
    points: &[SamplePoint],
    values: &[f64],
    place: &dyn Fn() -> DiagnosticLocation,
) -> Option<ComparisonDiagnostic> {
    if values.len() < 5 {
        return None;
    }
    let found = find_outlying_values(values).ok()?;
    let iterations: Vec<u32> =
        found.iter().filter_map(|outlier| Some(points.get(outlier.index)?.iteration)).collect();
    (!iterations.is_empty()).then(|| ComparisonDiagnostic::Outliers { place: place(), iterations })
}
