//! An explanation in one line: its first suspect, where one can carry half of the change.

use perflab_model::Unit;

use crate::compare::row_suspect::RowSuspect;
use crate::why::explanation::Explanation;

/// The suspect that stands first, where it says most of the change; nothing of a metric that is not the time of an iteration, and where
/// what carries most is not known.
#[must_use]
pub fn find_first_suspect(found: &Explanation) -> Option<RowSuspect> {
    let change = found.change.map(|change| change.value);
    if let Some(line) = found.kernel_log.iter().find(|line| line.explains) {
        return Some(RowSuspect {
            cause: line.cause.clone(),
            series: None,
            before: line.baseline.iterations as f64,
            after: line.candidate.iterations as f64,
            series_unit: Unit::new("iterations"),
            carries: None,
            change,
            unit: found.unit.clone(),
        });
    }
    let whole = change?;
    let suspect = found.suspects.first().filter(|_| found.is_mostly_carried() && !found.places.is_empty())?;
    Some(RowSuspect {
        cause: suspect.cause.clone(),
        series: Some(suspect.series.clone()),
        before: suspect.before,
        after: suspect.after,
        series_unit: suspect.unit.clone(),
        carries: Some(suspect.account.share_of(whole.abs()) * whole),
        change,
        unit: found.unit.clone(),
    })
}
