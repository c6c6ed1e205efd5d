//! Owns the look at each sample by itself: drift, two modes, outliers. It refuses to repair: nothing is removed or
//! straightened. Boots are looked at one by one, since steps between them are not drift.

use std::thread;

use perflab_stats::{drift, outliers, two_modes};

use crate::at_once;
use crate::comparison::Point;
use crate::seen::{Cell, Index, Table};
use crate::warning::{Place, Warning};

/// Drift is worth a warning below this p.
const DRIFT_P: f64 = 0.01;

/// Fills in the warnings of every cell of a side, by as many threads as there are processors.
pub(crate) fn diagnose(table: &mut Table, index: &Index, default_margin: f64) {
    let name = table.name.as_str();
    let mut cells: Vec<_> = table.cells.iter_mut().collect();
    let look = |cells: &mut [(&(usize, usize), &mut Cell)]| {
        for (key, cell) in cells {
            let place = || place(name, **key, index);
            cell.warnings = findings(cell, &place, cell.margin.unwrap_or(default_margin));
        }
    };
    let part = at_once::part(cells.len());
    thread::scope(|scope| {
        for part in cells.chunks_mut(part) {
            scope.spawn(|| look(part));
        }
    });
}

fn place(side: &str, (subject, metric): (usize, usize), index: &Index) -> Place {
    Place {
        side: side.into(),
        subject: index.subjects.get_index(subject).map_or_else(String::new, |(name, _)| name.clone()),
        metric: index.metrics.get_index(metric).map_or_else(String::new, |key| String::from(&key.name)),
    }
}

fn findings(cell: &Cell, place: &dyn Fn() -> Place, margin: f64) -> Vec<Warning> {
    let boots = cell.by_boot();
    let mut found = Vec::new();
    if cell.not_numbers > 0 {
        found.push(Warning::NotNumbers { place: place(), values: cell.not_numbers });
    }
    for points in boots.values() {
        let values: Vec<f64> = points.iter().map(|point| point.value).collect();
        found.extend(drifting(&values, boots.len(), place));
        found.extend(split(&values, margin, place));
        found.extend(far_off(points, &values, place));
    }
    found
}

/// With several boots, one of them drifts by chance more often.
fn drifting(values: &[f64], boots: usize, place: &dyn Fn() -> Place) -> Option<Warning> {
    let found = drift(values).ok()?;
    let p = (found.p * boots as f64).min(1.0);
    (p < DRIFT_P).then(|| Warning::Drift { place: place(), rho: found.rho, p })
}

/// Groups closer than the margin do not matter: steps of a coarse clock, for example.
fn split(values: &[f64], margin: f64, place: &dyn Fn() -> Place) -> Option<Warning> {
    let modes = two_modes(values).ok()??;
    let matters = modes.high - modes.low > margin * modes.low.abs();
    let high_share = modes.high_share;
    matters.then(|| Warning::Modes { place: place(), low: modes.low, high: modes.high, high_share })
}

/// Iterations whose values lie far from the rest; not looked for among so few values that anything would.
fn far_off(points: &[Point], values: &[f64], place: &dyn Fn() -> Place) -> Option<Warning> {
    if values.len() < 5 {
        return None;
    }
    let found = outliers(values).ok()?;
    let iterations: Vec<u32> =
        found.iter().filter_map(|outlier| Some(points.get(outlier.index)?.iteration)).collect();
    (!iterations.is_empty()).then(|| Warning::Outliers { place: place(), iterations })
}
