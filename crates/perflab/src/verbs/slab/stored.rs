//! The slab series of a stored run, read for analysis.

use perflab_analyze::slab::{Input, Recording, System};
use perflab_archive::RunDir;
use perflab_model::series::{Series, Spans};
use perflab_model::{Outcome, RunRecord};

use crate::context::Context;

/// A run's record and those of its series that tell of slabs.
#[derive(Debug)]
pub struct Stored {
    /// what was done
    pub record: RunRecord,
    slabinfo: Option<Spans>,
    series: Vec<Series>,
}

/// The long one, of which each row is held once for all ticks at which it stood.
const SLABINFO: &str = "slabinfo";

const MONITORS: [&str; 4] = ["slab-caches", "slab-exact", "slabinfo-tool", "meminfo"];

impl Stored {
    /// Reads them.
    pub fn read(run: &RunDir) -> anyhow::Result<Self> {
        let there = run.monitors()?;
        let slabinfo =
            there.iter().any(|monitor| monitor == SLABINFO).then(|| run.spans(SLABINFO)).transpose()?;
        let wanted = MONITORS.iter().filter(|name| there.iter().any(|monitor| monitor == *name));
        let series = wanted.map(|name| run.series(name)).collect::<Result<Vec<_>, _>>()?;
        Ok(Stored { record: run.record()?, slabinfo, series })
    }

    /// Says which iterations did not end well: their slabs are those of something else than was wanted.
    pub fn say_failures(&self, context: &Context) {
        let id = self.record.manifest.id.as_str();
        let bad = self.record.iterations.iter().filter(|iteration| iteration.outcome != Outcome::Ok);
        let bad: Vec<_> = bad.collect();
        let Some(first) = bad.first() else { return };
        let why = match &first.outcome {
            Outcome::Failed { reason } => reason.clone(),
            Outcome::TimedOut { limit } => format!("stopped after {limit}"),
            _ => "stopped by the user".into(),
        };
        let (count, all, slot) = (bad.len(), self.record.iterations.len(), first.slot);
        context.say(format!(
            "warning: {count} of {all} iterations of run {id} did not end well (slot {slot}: {why}); `perflab show {id} --output {slot}` prints what was said"
        ));
    }

    /// What the analysis is made of.
    pub fn input(&self) -> Input<'_> {
        let of = |name: &str| self.series.iter().find(|series| series.schema.monitor == name);
        Input {
            slabinfo: self.slabinfo.as_ref(),
            caches: of("slab-caches"),
            exact: of("slab-exact"),
            meminfo: of("meminfo"),
            tool: of("slabinfo-tool"),
            system: System::of(&self.record),
            record: Some(&self.record),
        }
    }

    /// The rows, each with its attributes.
    pub fn recording(&self) -> anyhow::Result<Recording> {
        Ok(Recording::read(&self.input())?)
    }
}

/// The run that a selector names, read.
pub fn stored(context: &Context, run: &str) -> anyhow::Result<Stored> {
    let stored = Stored::read(&crate::sides::one(&context.archive()?, run)?)?;
    stored.say_failures(context);
    Ok(stored)
}
