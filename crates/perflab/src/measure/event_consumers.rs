//! Consumers of a run's one stream of events: the trait, the loop that feeds them, the recorder, the stopping rule.
//!
//! The stopping rule ends a run when its deciding medians are as precise as the study asks: after complete blocks only,
//! and never because a difference is significant.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::mpsc::Receiver;

use perflab_analyze::fairness::average_over_targets;
use perflab_analyze::stopping_rule::relative_precision;
use perflab_archive::{Archive, RunDir, RunRecorder};
use perflab_model::StopRequest;
use perflab_model::study::StoppingRule;
use perflab_model::{Manifest, Outcome, Overhead, RunEvent, RunEventKind, Sample};

use crate::failure::Failure;
use perflab_model::quantity::format_share;

/// Takes every event, in order.
pub trait EventConsumer {
    /// One event. An error stops the run, cleanly.
    fn consume(&mut self, event: &RunEvent) -> Result<(), Failure>;
}

/// Feeds every event to every consumer until the source is done. A consumer that fails gets no
/// further event, and the run is asked to stop; the others go on, so that the end is seen.
/// Returns the first failure.
pub fn feed_consumers(
    events: &Receiver<RunEvent>,
    consumers: &mut [&mut dyn EventConsumer],
    stop: &StopRequest,
) -> Option<Failure> {
    let mut broken = vec![false; consumers.len()];
    let mut first = None;
    for event in events {
        for (consumer, broken) in consumers.iter_mut().zip(&mut broken).filter(|(_, broken)| !**broken) {
            if let Err(error) = consumer.consume(&event) {
                *broken = true;
                stop.request_stop();
                first.get_or_insert(error);
            }
        }
    }
    first
}

/// A recording, before and after its run has begun.
#[derive(Debug)]
pub struct RecorderConsumer {
    archive: Archive,
    /// Phases that came before the run began; written once it has.
    early_events: Vec<RunEvent>,
    recorder: Option<RunRecorder>,
}

impl RecorderConsumer {
    /// Will record into `archive`.
    pub fn new(archive: Archive) -> Self {
        RecorderConsumer { archive, early_events: Vec::new(), recorder: None }
    }

    /// Makes tables of what was recorded. `None` where no run began.
    pub fn finish(self) -> Result<Option<RunDir>, Failure> {
        Ok(self.recorder.map(RunRecorder::finish).transpose()?)
    }

    fn open_recording(&mut self, event: &RunEvent) -> Result<(), Failure> {
        if let RunEventKind::Began(manifest) = &event.what {
            let mut recorder = self.archive.begin_run(manifest)?;
            for early in self.early_events.drain(..) {
                recorder.record(&early)?;
            }
            self.recorder = Some(recorder);
        }
        Ok(())
    }
}

impl EventConsumer for RecorderConsumer {
    fn consume(&mut self, event: &RunEvent) -> Result<(), Failure> {
        if matches!(event.what, RunEventKind::Standing(_)) {
            return Ok(()); // for those who watch
        }
        if self.recorder.is_none() {
            self.open_recording(event)?;
        }
        let Some(recorder) = &mut self.recorder else {
            self.early_events.push(event.clone());
            return Ok(());
        };
        let RunEventKind::Ended { status, overhead } = event.what else { return Ok(recorder.record(event)?) };
        let overhead = Overhead { bytes_written: recorder.bytes_written(), ..overhead };
        Ok(recorder.record(&RunEvent { what: RunEventKind::Ended { status, overhead }, ..*event })?)
    }
}

/// Watches the samples of a run.
#[derive(Debug)]
pub struct PrecisionWatch {
    stopping_rule: Option<StoppingRule>,
    stop: StopRequest,
    slots: Vec<(u32, bool)>,
    cases: usize,
    any_primary: bool,
    /// Slots that ended in each block: in all targets, where there are several.
    ended: HashMap<u32, HashSet<u32>>,
    samples: Vec<Sample>,
}

impl PrecisionWatch {
    /// Will ask `stop` for an early end, where the study says when.
    pub fn new(manifest: &Manifest, stop: &StopRequest) -> Self {
        let metrics = manifest.plan.metrics.values().flatten();
        PrecisionWatch {
            stopping_rule: manifest.study.run.until,
            stop: stop.clone(),
            slots: manifest.plan.slots.iter().map(|slot| (slot.block, slot.warmup)).collect(),
            cases: manifest.plan.cases.len(),
            any_primary: metrics.clone().any(|metric| metric.primary),
            ended: HashMap::new(),
            samples: Vec::new(),
        }
    }

    /// An iteration ended.
    fn end_iteration(&mut self, slot: u32) {
        if let Some((block, false)) = self.slots.get(slot as usize).copied() {
            self.ended.entry(block).or_default().insert(slot);
        }
    }

    /// Everything of the slots so far has come: perhaps a block is complete.
    fn check_precision(&mut self, until: StoppingRule) {
        let cases = self.cases;
        let complete: Vec<u32> =
            self.ended.iter().filter(|(_, slots)| slots.len() == cases).map(|(block, _)| *block).collect();
        for block in complete {
            self.ended.remove(&block);
            if block + 1 >= until.at_least && self.is_precise(until) {
                self.stop.request_end();
            }
        }
    }

    fn is_precise(&self, until: StoppingRule) -> bool {
        let known = self.precisions();
        !known.is_empty() && known.iter().all(|(.., found)| is_narrow_enough(*found, until))
    }

    /// How well each deciding median of a case is known: half its interval, relative to it; absent where there are too few
    /// values. An iteration of several targets is one value, as in every table.
    fn precisions(&self) -> Vec<(u32, String, Option<f64>)> {
        let mut values: BTreeMap<(u32, &str), Vec<f64>> = BTreeMap::new();
        let together = average_over_targets(&self.samples);
        for sample in together.iter().filter(|sample| sample.primary || !self.any_primary) {
            values.entry((sample.case, sample.metric.as_str())).or_default().push(sample.value);
        }
        let known = values.into_iter();
        known
            .map(|((case, metric), values)| (case, metric.to_owned(), relative_precision(&values, 0.95)))
            .collect()
    }

    /// What a finished run is not known well enough in, where the study says how well it should be.
    pub fn missed_precision(&self, manifest: &Manifest) -> Option<String> {
        let until = self.stopping_rule.filter(|_| !self.stop.is_end_requested())?;
        let label = |case| manifest.plan.case(case).map(perflab_model::Case::label).unwrap_or_default();
        let vague = self.precisions().into_iter().filter(|(.., found)| !is_narrow_enough(*found, until));
        let vague = vague.map(|(case, metric, found)| match found {
            Some(found) => format!("{} {metric} is known to ± {}", label(case), format_share(found)),
            None => format!("{} {metric} has too few values", label(case)),
        });
        let vague: Vec<String> = vague.collect();
        let first = vague.first()?;
        let others = if vague.len() > 1 { format!(" ({} more)", vague.len() - 1) } else { String::new() };
        Some(format!(
            "warning: the precision of {} % was not reached in {} blocks: {first}{others}; raise `at most` in the study, \
             or measure on a quieter machine",
            until.precision_percent(),
            until.at_most
        ))
    }
}

fn is_narrow_enough(found: Option<f64>, until: StoppingRule) -> bool {
    found.is_some_and(|found| found <= until.precision)
}

impl EventConsumer for PrecisionWatch {
    fn consume(&mut self, event: &RunEvent) -> Result<(), Failure> {
        let Some(until) = self.stopping_rule else { return Ok(()) };
        match &event.what {
            RunEventKind::Sample(sample) => self.samples.push(sample.clone()),
            RunEventKind::IterationEnded { slot, outcome: Outcome::Ok | Outcome::Failed { .. }, .. } => {
                self.end_iteration(*slot);
            }
            RunEventKind::Progress { .. } => self.check_precision(until),
            _ => {}
        }
        Ok(())
    }
}
