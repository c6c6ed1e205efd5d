//! An explanation in one line: its first suspect, where one can carry half of the change.

use perflab_model::Unit;

use crate::compare::row_suspect::RowSuspect;
use crate::why::explanation::Explanation;

/// What nobody asked for is said more rarely by chance: a table's line may be wrong once in a hundred changes, not once in twenty.
const LARGEST_P: f64 = 0.01;

/// The suspect that stands first, where it can carry half of the change; nothing of a metric that is not the time of an iteration, and where
/// the verdict stands on failures.
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
            at_most: None,
            change,
            unit: found.unit.clone(),
        });
    }
    // Where failures decide, there is no change of the metric to explain.
    if found.failures.as_ref().is_some_and(|failures| failures.decides) {
        return None;
    }
    let whole = change?;
    let suspect = found.suspects.first().filter(|suspect| {
        suspect.difference.adjusted_p <= LARGEST_P && found.is_mostly_carried() && !found.places.is_empty()
    })?;
    Some(RowSuspect {
        cause: suspect.cause.clone(),
        series: Some(suspect.series.clone()),
        before: suspect.before,
        after: suspect.after,
        series_unit: suspect.unit.clone(),
        carries: suspect.account.carries.map(|_| suspect.account.share_of(whole.abs()) * whole),
        at_most: suspect
            .account
            .at_most
            .filter(|_| suspect.account.carries.is_none())
            .map(|most| most * whole.signum()),
        change,
        unit: found.unit.clone(),
    })
}
