//! Consumers of a run's one stream of events: the trait, the loop that feeds them, the recorder, the stopping rule.
//!
//! The stopping rule ends a run when its deciding medians are as precise as the study asks, or when every row that decides is
//! decided by intervals that hold at every look: after complete blocks only.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use perflab_analyze::fairness::average_over_targets;
use perflab_analyze::stopping_rule::relative_precision;
use perflab_analyze::{AnalysisOptions, AnalyzeError, DecidingRows};
use perflab_archive::{Archive, RunDir, RunRecorder};
use perflab_model::StopRequest;
use perflab_model::study::{StoppingGoal, StoppingRule};
use perflab_model::{
    EndReason, IterationRecord, Manifest, Outcome, Overhead, Ratio, RunEvent, RunEventKind, RunRecord,
};

use crate::failure::Failure;
use perflab_model::quantity::format_share;

/// Takes every event, in order.
pub trait EventConsumer {
    /// One event. An error stops the run, cleanly.
    fn consume(&mut self, event: &RunEvent) -> Result<(), Failure>;

    /// No other event is there at the moment.
    fn pause(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// How long events gather before the next are looked at: they are written that much later.
const GATHERING: Duration = Duration::from_millis(2);

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
    let mut tell_all = |tell: &dyn Fn(&mut dyn EventConsumer) -> Result<(), Failure>| {
        for (consumer, broken) in consumers.iter_mut().zip(&mut broken).filter(|(_, broken)| !**broken) {
            if let Err(error) = tell(*consumer) {
                *broken = true;
                stop.request_stop();
                first.get_or_insert(error);
            }
        }
    };
    while let Ok(event) = events.recv() {
        // Those of an iteration come together.
        [event].into_iter().chain(events.try_iter()).for_each(|event| tell_all(&|one| one.consume(&event)));
        tell_all(&|one| one.pause());
        // Whoever sends to a sleeper need not wake it, so that short iterations follow each other undisturbed.
        std::thread::sleep(GATHERING);
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

    /// The directory of the run; `None` where none began.
    pub fn run_path(&self) -> Option<PathBuf> {
        self.recorder.as_ref().map(|recorder| recorder.path().to_owned())
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
        let RunEventKind::Ended { status, overhead } = event.what else { return Ok(recorder.hold(event)?) };
        recorder.write_held()?;
        let overhead = Overhead { bytes_written: recorder.bytes_written(), ..overhead };
        Ok(recorder.record(&RunEvent { what: RunEventKind::Ended { status, overhead }, ..*event })?)
    }

    fn pause(&mut self) -> Result<(), Failure> {
        Ok(self.recorder.as_mut().map_or(Ok(()), RunRecorder::write_held)?)
    }
}

/// Watches a run, to end it once its stopping rule is met.
#[derive(Debug)]
pub struct StoppingWatch {
    stopping_rule: Option<StoppingRule>,
    stop: StopRequest,
    any_primary: bool,
    /// Slots that ended in each block: in all targets, where there are several.
    ended: HashMap<u32, HashSet<u32>>,
    /// Blocks that are complete.
    blocks: u32,
    /// What was measured so far; nothing without a rule.
    run: RunRecord,
}

/// Up to so many blocks each is looked at; of more, one in as many as there are times these.
const BLOCKS_LOOKED_AT: u32 = 50;

impl StoppingWatch {
    /// Will ask `stop` for an early end, where the study says when.
    pub fn new(manifest: &Manifest, stop: &StopRequest) -> Self {
        let metrics = manifest.plan.metrics.values().flatten();
        StoppingWatch {
            stopping_rule: manifest.study.run.until,
            stop: stop.clone(),
            any_primary: metrics.clone().any(|metric| metric.primary),
            ended: HashMap::new(),
            blocks: 0,
            run: RunRecord::new(manifest.clone()),
        }
    }

    /// An iteration ended.
    fn end_iteration(&mut self, iteration: IterationRecord) {
        let Some(slot) = self.run.manifest.plan.slots.get(iteration.slot as usize) else { return };
        if slot.warmup {
            return;
        }
        if iteration.outcome != Outcome::Interrupted {
            self.ended.entry(slot.block).or_default().insert(iteration.slot);
        }
        self.run.iterations.push(iteration);
    }

    /// Everything of the slots so far has come: perhaps a block is complete.
    fn look_at_blocks(&mut self, until: StoppingRule) {
        let cases = self.run.manifest.plan.cases.len();
        let complete: Vec<u32> =
            self.ended.iter().filter(|(_, slots)| slots.len() == cases).map(|(block, _)| *block).collect();
        for block in complete {
            self.ended.remove(&block);
            self.blocks += 1;
            if block + 1 >= until.at_least && Self::is_look_due(block) && self.is_goal_reached(until.goal) {
                self.stop.request_end(EndReason::GoalReached);
            }
        }
    }

    /// Comparing takes the longer the more blocks there are, on the machine that is being measured.
    fn is_look_due(block: u32) -> bool {
        (block + 1).is_multiple_of((block + 1).div_ceil(BLOCKS_LOOKED_AT))
    }

    fn is_goal_reached(&self, goal: StoppingGoal) -> bool {
        match goal {
            StoppingGoal::Precision(precision) => {
                let known = self.precisions();
                !known.is_empty() && known.iter().all(|(.., found)| is_narrow_enough(*found, precision))
            }
            StoppingGoal::Decided => self.deciding_rows().is_ok_and(|deciding| deciding.are_decided()),
        }
    }

    /// How well each deciding median of a case is known: half its interval, relative to it; absent where there are too few
    /// values. An iteration of several targets is one value, as in every table.
    fn precisions(&self) -> Vec<(u32, String, Option<f64>)> {
        let mut values: BTreeMap<(u32, &str), Vec<f64>> = BTreeMap::new();
        let together = average_over_targets(&self.run.samples);
        for sample in together.iter().filter(|sample| sample.primary || !self.any_primary) {
            values.entry((sample.case, sample.metric.as_str())).or_default().push(sample.value);
        }
        let known = values.into_iter();
        known
            .map(|((case, metric), values)| (case, metric.to_owned(), relative_precision(&values, 0.95)))
            .collect()
    }

    /// The rows that `compare` would show of what decides.
    fn deciding_rows(&self) -> Result<DecidingRows, AnalyzeError> {
        let metrics = if self.any_primary { vec!["primary".into()] } else { Vec::new() };
        DecidingRows::of_run(&self.run, &AnalysisOptions { metrics, ..AnalysisOptions::default() })
    }

    /// What a finished run is not known well enough in, where the study says how well it should be.
    pub fn missed_goal(&self) -> Option<String> {
        let until = self.stopping_rule.filter(|_| self.stop.end_reason() != Some(EndReason::GoalReached))?;
        match until.goal {
            StoppingGoal::Precision(precision) => self.missed_precision(precision),
            StoppingGoal::Decided => self.open_rows(),
        }
    }

    fn missed_precision(&self, precision: f64) -> Option<String> {
        let label =
            |case| self.run.manifest.plan.case(case).map(perflab_model::Case::label).unwrap_or_default();
        let vague = self.precisions().into_iter().filter(|(.., found)| !is_narrow_enough(*found, precision));
        let vague = vague.map(|(case, metric, found)| match found {
            Some(found) => format!("{} {metric} is known to ± {}", label(case), format_share(found)),
            None => format!("{} {metric} has too few values", label(case)),
        });
        let (first, others) = first_and_others(vague.collect())?;
        Some(format!(
            "warning: the precision of {} % was not reached in {} blocks: {first}{others}; {}",
            Ratio(precision).percent(),
            self.blocks,
            self.end_advice()
        ))
    }

    /// What lets a run measure for longer.
    fn end_advice(&self) -> &'static str {
        match self.stop.end_reason() {
            Some(EndReason::TimeOver) => "give it more time, or measure on a quieter machine",
            _ => "raise `at most`, or measure on a quieter machine",
        }
    }

    fn open_rows(&self) -> Option<String> {
        let (blocks, advice) = (self.blocks, self.end_advice());
        let deciding = match self.deciding_rows() {
            Ok(deciding) => deciding,
            Err(error) => return Some(format!("warning: nothing was decided in {blocks} blocks: {error}")),
        };
        let open = deciding.open.iter().map(|row| {
            let verdict = row.verdict_word();
            format!("{} {} of {} is {verdict}", row.subject, row.metric, row.candidate_name)
        });
        let (first, others) = first_and_others(open.collect())?;
        Some(format!("warning: not decided in {blocks} blocks: {first}{others}; {advice}"))
    }
}

/// The first of a list, and how many more there are.
fn first_and_others(all: Vec<String>) -> Option<(String, String)> {
    let more = all.len().saturating_sub(1);
    let others = if more > 0 { format!(" ({more} more)") } else { String::new() };
    Some((all.into_iter().next()?, others))
}

fn is_narrow_enough(found: Option<f64>, precision: f64) -> bool {
    found.is_some_and(|found| found <= precision)
}

impl EventConsumer for StoppingWatch {
    fn consume(&mut self, event: &RunEvent) -> Result<(), Failure> {
        let Some(until) = self.stopping_rule else { return Ok(()) };
        match &event.what {
            RunEventKind::Sample(sample) => self.run.samples.push(sample.clone()),
            RunEventKind::IterationEnded { slot, outcome, start, end } => {
                let (slot, outcome) = (*slot, outcome.clone());
                let iteration =
                    IterationRecord { target: event.target, slot, outcome, start: *start, end: *end };
                self.end_iteration(iteration);
            }
            RunEventKind::Progress { .. } => self.look_at_blocks(until),
            _ => {}
        }
        Ok(())
    }
}
