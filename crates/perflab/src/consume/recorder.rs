//! The recorder as a consumer: opens the run at `Began`, writes whatever comes after.

use perflab_archive::{Archive, Recorder, RunDir};
use perflab_model::{Event, Overhead, What};

use super::Consumer;

/// A recording, before and after its run has begun.
#[derive(Debug)]
pub struct Recording {
    archive: Archive,
    /// Phases that came before the run began; written once it has.
    early: Vec<Event>,
    recorder: Option<Recorder>,
}

impl Recording {
    /// Will record into `archive`.
    pub fn new(archive: Archive) -> Self {
        Recording { archive, early: Vec::new(), recorder: None }
    }

    /// Makes tables of what was recorded. `None` where no run began.
    pub fn finish(self) -> anyhow::Result<Option<RunDir>> {
        Ok(self.recorder.map(Recorder::finish).transpose()?)
    }

    fn open(&mut self, event: &Event) -> anyhow::Result<()> {
        if let What::Began(manifest) = &event.what {
            let mut recorder = self.archive.begin(manifest)?;
            for early in self.early.drain(..) {
                recorder.record(&early)?;
            }
            self.recorder = Some(recorder);
        }
        Ok(())
    }
}

impl Consumer for Recording {
    fn take(&mut self, event: &Event) -> anyhow::Result<()> {
        if matches!(event.what, What::Standing(_)) {
            return Ok(()); // for those who watch
        }
        if self.recorder.is_none() {
            self.open(event)?;
        }
        let Some(recorder) = &mut self.recorder else {
            self.early.push(event.clone());
            return Ok(());
        };
        let What::Ended { status, overhead } = event.what else { return Ok(recorder.record(event)?) };
        let overhead = Overhead { bytes_written: recorder.bytes_written(), ..overhead };
        Ok(recorder.record(&Event { what: What::Ended { status, overhead }, ..*event })?)
    }
}
