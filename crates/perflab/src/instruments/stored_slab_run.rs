//! A stored run as the slab instrument reads it.

use perflab_analyze::slab::{SlabFacts, SlabInput, SlabRecording};
use perflab_archive::RunDir;
use perflab_model::series::{RowRuns, Series};
use perflab_model::{Outcome, RunRecord};

use crate::app::App;
use crate::failure::Failure;

/// A run's record and those of its series that tell of slabs.
#[derive(Debug)]
pub struct StoredSlabRun {
    /// what was done
    pub record: RunRecord,
    slabinfo: Option<RowRuns>,
    series: Vec<Series>,
}

/// The long one, of which each row is held once for all ticks at which it stood.
const SLABINFO: &str = "slabinfo";

const MONITORS: [&str; 4] = ["slab-caches", "slab-exact", "slabinfo-tool", "meminfo"];

impl StoredSlabRun {
    /// Reads them.
    pub fn read(run: &RunDir) -> Result<Self, Failure> {
        let there = run.list_monitors()?;
        let slabinfo = there
            .iter()
            .any(|monitor| monitor == SLABINFO)
            .then(|| run.read_series_spans(SLABINFO))
            .transpose()?;
        let requested = MONITORS.iter().filter(|name| there.iter().any(|monitor| monitor == *name));
        let series = requested.map(|name| run.read_series(name)).collect::<Result<Vec<_>, _>>()?;
        Ok(StoredSlabRun { record: run.read_record()?, slabinfo, series })
    }

    /// Says which iterations did not end well: their slabs are those of something else than was asked for.
    pub fn note_failures(&self, context: &App) {
        let id = self.record.manifest.id.as_str();
        let bad = self.record.iterations.iter().filter(|iteration| iteration.outcome != Outcome::Ok);
        let bad: Vec<_> = bad.collect();
        let Some(first) = bad.first() else { return };
        let why = first.outcome.failure_reason().unwrap_or_default();
        let (count, all, slot) = (bad.len(), self.record.iterations.len(), first.slot);
        context.note(format!(
            "warning: {count} of {all} iterations of run {id} did not end well (slot {slot}: {why}); `perflab show {id} --output {slot}` prints its output"
        ));
    }

    /// What the analysis is made of.
    pub fn analysis_input(&self) -> SlabInput<'_> {
        let of = |name: &str| self.series.iter().find(|series| series.schema.monitor == name);
        SlabInput {
            slabinfo: self.slabinfo.as_ref(),
            caches: of("slab-caches"),
            exact: of("slab-exact"),
            meminfo: of("meminfo"),
            tool: of("slabinfo-tool"),
            system: SlabFacts::from_record(&self.record),
            record: Some(&self.record),
        }
    }

    /// The rows, each with its attributes.
    pub fn read_recording(&self) -> Result<SlabRecording, Failure> {
        Ok(SlabRecording::read(&self.analysis_input())?)
    }
}

/// The run that a selector names, read.
pub fn read_stored_slab_run(context: &App, run: &str) -> Result<StoredSlabRun, Failure> {
    let stored = StoredSlabRun::read(&crate::selection::select_run(&context.archive()?, run)?)?;
    stored.note_failures(context);
    Ok(stored)
}
