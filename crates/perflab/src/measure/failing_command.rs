//! Ends the run of a command that fails each time, from its first iteration on: nothing else would, for as long as its rule allows.

use std::collections::BTreeSet;

use perflab_model::{EndReason, Manifest, Outcome, RunEvent, RunEventKind, StopRequest};

use crate::failure::Failure;
use crate::measure::event_consumers::EventConsumer;

/// So many failures in a row, and each case once: a command that fails every other time begins like this in one run of 32.
const FAILURES: u32 = 5;

/// Watches the first iterations of a run. One that ends well ends the watch: failures are results beside it.
#[derive(Debug)]
pub struct FailingCommandWatch {
    is_watching: bool,
    stop: StopRequest,
    /// the case of each slot
    cases: Vec<u32>,
    untried: BTreeSet<u32>,
    failed: u32,
}

impl FailingCommandWatch {
    /// Will ask `stop` for an end, where the run is of `perflab bench` or `perflab run --`: whoever wrote a study knows how long it takes.
    pub fn new(manifest: &Manifest, stop: &StopRequest) -> Self {
        let cases: Vec<u32> = manifest.plan.slots.iter().map(|slot| slot.case).collect();
        FailingCommandWatch {
            is_watching: matches!(manifest.study_file.as_str(), "bench" | "run"),
            stop: stop.clone(),
            untried: cases.iter().copied().collect(),
            cases,
            failed: 0,
        }
    }

    fn end_iteration(&mut self, slot: u32, outcome: &Outcome) {
        match outcome {
            Outcome::Ok => self.is_watching = false,
            Outcome::Interrupted => {}
            Outcome::Failed { .. } | Outcome::TimedOut { .. } => {
                self.failed += 1;
                if let Some(case) = self.cases.get(slot as usize) {
                    self.untried.remove(case);
                }
                if self.failed >= FAILURES && self.untried.is_empty() {
                    self.stop.request_end(EndReason::AlwaysFails);
                    self.is_watching = false;
                }
            }
        }
    }
}

impl EventConsumer for FailingCommandWatch {
    fn consume(&mut self, event: &RunEvent) -> Result<(), Failure> {
        if let (true, RunEventKind::IterationEnded { slot, outcome, .. }) = (self.is_watching, &event.what) {
            self.end_iteration(*slot, outcome);
        }
        Ok(())
    }
}
