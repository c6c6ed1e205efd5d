//! Owns what an analysis is made of: the series of one run and the few facts that the formulas need. It refuses to
//! read them: the caller brings them from the archive.

use std::collections::BTreeSet;

use perflab_model::series::{RowRuns, Series};
use perflab_model::{Nanos, RunRecord};

use super::columns::int_column;
use super::error::SlabError;
use super::phase::{IterationSpan, iteration_spans};

/// The series of one run, each optional; column names as in `docs/format.md`.
#[derive(Debug, Clone, Copy, Default)]
pub struct SlabInput<'a> {
    /// `slabinfo`: one row a cache a tick.
    pub slabinfo: Option<&'a RowRuns>,
    /// `slab-caches`: static attributes from /sys/kernel/slab.
    pub caches: Option<&'a Series>,
    /// `slab-exact`: exact counts from /sys/kernel/slab, on a slow clock.
    pub exact: Option<&'a Series>,
    /// `meminfo`, for the residual.
    pub meminfo: Option<&'a Series>,
    /// `slabinfo-tool`: what the kernel's slabinfo tool printed (imports only).
    pub tool: Option<&'a Series>,
    /// What the target is.
    pub system: SlabFacts,
    /// What happened when: marks on every timeline.
    pub record: Option<&'a RunRecord>,
}

/// Facts of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlabFacts {
    /// Bytes of a page (fact `memory.page_size`); a `page_size` in `slab-caches` comes before it.
    pub page_size: Option<u64>,
    /// CPUs online (fact `cpu.online`), for the bound on hidden objects.
    pub cpus: Option<u64>,
    /// NUMA nodes (fact `numa.nodes`), for the bound on objects in sheaves.
    pub nodes: Option<u64>,
}

impl SlabFacts {
    /// From the facts of a run.
    #[must_use]
    pub fn from_record(record: &RunRecord) -> Self {
        let fact = |key| record.manifest.facts.integer(key).and_then(|value| u64::try_from(value).ok());
        SlabFacts { page_size: fact("memory.page_size"), cpus: fact("cpu.online"), nodes: fact("numa.nodes") }
    }
}

impl SlabInput<'_> {
    /// Bytes of a page: what all scans say, else the fact.
    ///
    /// # Errors
    /// Nothing says it; scans disagree.
    pub fn page_size(&self) -> Result<u64, SlabError> {
        let scans = self.caches.map(|series| (series.at.len(), int_column(series, "page_size")));
        let sizes = scans.iter().flat_map(|(rows, sizes)| (0..*rows).filter_map(|row| sizes.count(row)));
        let known: BTreeSet<u64> = sizes.filter(|size| *size > 0).collect();
        match known.first() {
            None => self.system.page_size.filter(|size| *size > 0).ok_or(SlabError::NoPageSize),
            Some(one) if known.len() == 1 => Ok(*one),
            Some(_) => Err(SlabError::MixedPageSizes { sizes: known.into_iter().collect() }),
        }
    }

    /// The run's phases, in order of time; none without a record.
    #[must_use]
    pub fn iteration_spans(&self) -> Vec<IterationSpan> {
        self.record.map(iteration_spans).unwrap_or_default()
    }

    /// When the first iteration began and the last one ended.
    #[must_use]
    pub fn busy_span(&self) -> Option<(Nanos, Nanos)> {
        let phases = self.iteration_spans();
        Some((phases.iter().map(|phase| phase.start).min()?, phases.iter().map(|phase| phase.end).max()?))
    }
}
