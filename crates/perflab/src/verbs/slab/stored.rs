//! The slab series of a stored run, read for analysis.

use perflab_analyze::slab::{Input, Recording, System};
use perflab_archive::RunDir;
use perflab_model::RunRecord;
use perflab_model::series::Series;

/// A run's record and those of its series that tell of slabs.
#[derive(Debug)]
pub struct Stored {
    /// what was done
    pub record: RunRecord,
    series: Vec<Series>,
}

const MONITORS: [&str; 5] = ["slabinfo", "slab-caches", "slab-exact", "slabinfo-tool", "meminfo"];

impl Stored {
    /// Reads them.
    pub fn read(run: &RunDir) -> anyhow::Result<Self> {
        let there = run.monitors()?;
        let wanted = MONITORS.iter().filter(|name| there.iter().any(|monitor| monitor == *name));
        let series = wanted.map(|name| run.series(name)).collect::<Result<Vec<_>, _>>()?;
        Ok(Stored { record: run.record()?, series })
    }

    /// What the analysis is made of.
    pub fn input(&self) -> Input<'_> {
        let of = |name: &str| self.series.iter().find(|series| series.schema.monitor == name);
        Input {
            slabinfo: of("slabinfo"),
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
pub fn stored(context: &crate::context::Context, run: &str) -> anyhow::Result<Stored> {
    Stored::read(&crate::sides::one(&context.archive()?, run)?)
}
