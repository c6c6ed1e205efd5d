//! Ends a run when its deciding medians are as precise as the study wants: after complete blocks only, and never because a
//! difference is significant.

use std::collections::HashMap;

use perflab_analyze::enough::precision;
use perflab_conduct::Stop;
use perflab_model::study::Until;
use perflab_model::{Event, Manifest, Outcome, Sample, What};

use super::Consumer;

/// Watches the samples of a run.
#[derive(Debug)]
pub struct Enough {
    until: Option<Until>,
    stop: Stop,
    slots: Vec<(u32, bool)>,
    cases: usize,
    any_primary: bool,
    /// Iterations that ended in each block.
    ended: HashMap<u32, usize>,
    /// Values by case and metric, primary or not.
    values: HashMap<(u32, String), (bool, Vec<f64>)>,
}

impl Enough {
    /// Will ask `stop` for an early end, where the study says when.
    pub fn new(manifest: &Manifest, stop: &Stop) -> Self {
        let metrics = manifest.plan.metrics.values().flatten();
        Enough {
            until: manifest.study.run.until,
            stop: stop.clone(),
            slots: manifest.plan.slots.iter().map(|slot| (slot.block, slot.warmup)).collect(),
            cases: manifest.plan.cases.len(),
            any_primary: metrics.clone().any(|metric| metric.primary),
            ended: HashMap::new(),
            values: HashMap::new(),
        }
    }

    fn sample(&mut self, sample: &Sample) {
        let known = self.values.entry((sample.case, sample.metric.clone()));
        known.or_insert_with(|| (sample.primary, Vec::new())).1.push(sample.value);
    }

    /// An iteration ended: perhaps the last one of its block.
    fn iteration(&mut self, slot: u32, until: Until) {
        let Some((block, false)) = self.slots.get(slot as usize).copied() else { return };
        let ended = self.ended.entry(block).or_default();
        *ended += 1;
        if *ended == self.cases && block + 1 >= until.at_least && self.is_precise(until) {
            self.stop.enough();
        }
    }

    fn is_precise(&self, until: Until) -> bool {
        let mut deciding =
            self.values.values().filter(|(primary, _)| *primary || !self.any_primary).peekable();
        deciding.peek().is_some()
            && deciding
                .all(|(_, values)| precision(values, 0.95).is_some_and(|found| found <= until.precision))
    }
}

impl Consumer for Enough {
    fn take(&mut self, event: &Event) -> anyhow::Result<()> {
        let Some(until) = self.until else { return Ok(()) };
        match &event.what {
            What::Sample(sample) => self.sample(sample),
            What::IterationEnded { slot, outcome: Outcome::Ok | Outcome::Failed { .. }, .. } => {
                self.iteration(*slot, until);
            }
            _ => {}
        }
        Ok(())
    }
}
