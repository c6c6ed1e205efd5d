//! Owns how long the notebook says the test took. It refuses the workload's own time, which the notebook does not know.

use super::super::input::SlabInput;

/// Last tick of `slabinfo` minus the first, in minutes ("Test took: 3.15 minutes"); nothing without rows.
#[must_use]
pub fn notebook_minutes(input: &SlabInput) -> Option<f64> {
    let ticks = &input.slabinfo?.ticks;
    let (first, last) = (ticks.iter().min()?, ticks.iter().max()?);
    Some(last.since(*first).seconds() / 60.0)
}
