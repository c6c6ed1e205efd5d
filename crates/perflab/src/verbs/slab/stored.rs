//! The slab series of a stored run, read for analysis.

use perflab_analyze::slab::{Input, Recording, System};
use perflab_archive::RunDir;
use perflab_model::RunRecord;
use perflab_model::series::{Series, Spans};

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
pub fn stored(context: &crate::context::Context, run: &str) -> anyhow::Result<Stored> {
    Stored::read(&crate::sides::one(&context.archive()?, run)?)
}
