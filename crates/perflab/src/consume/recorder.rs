//! The recorder as a consumer: opens the run at `Began`, writes whatever comes after.

use perflab_archive::{Archive, RunDir, RunRecorder};
use perflab_model::{Overhead, RunEvent, RunEventKind};

use super::EventConsumer;

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
    pub fn finish(self) -> anyhow::Result<Option<RunDir>> {
        Ok(self.recorder.map(RunRecorder::finish).transpose()?)
    }

    fn open_recording(&mut self, event: &RunEvent) -> anyhow::Result<()> {
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
    fn consume(&mut self, event: &RunEvent) -> anyhow::Result<()> {
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
