//! Owns what an analysis is made of: the series of one run and the few facts that the formulas need. It refuses to
//! read them: the caller brings them from the archive.

use std::collections::BTreeSet;

use perflab_model::series::{Series, Spans};
use perflab_model::{Nanos, RunRecord};

use super::columns::ints;
use super::error::SlabError;
use super::phase::{Phase, phases};

/// The series of one run, each optional; column names as in `docs/format.md`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Input<'a> {
    /// `slabinfo`: one row a cache a tick.
    pub slabinfo: Option<&'a Spans>,
    /// `slab-caches`: static attributes from /sys/kernel/slab.
    pub caches: Option<&'a Series>,
    /// `slab-exact`: exact counts from /sys/kernel/slab, on a slow clock.
    pub exact: Option<&'a Series>,
    /// `meminfo`, for the residual.
    pub meminfo: Option<&'a Series>,
    /// `slabinfo-tool`: what the kernel's slabinfo tool printed (imports only).
    pub tool: Option<&'a Series>,
    /// What the target is.
    pub system: System,
    /// What happened when: marks on every timeline.
    pub record: Option<&'a RunRecord>,
}

/// Facts of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct System {
    /// Bytes of a page (fact `memory.page_size`); a `page_size` in `slab-caches` comes before it.
    pub page_size: Option<u64>,
    /// CPUs online (fact `cpu.online`), for the bound on hidden objects.
    pub cpus: Option<u64>,
    /// NUMA nodes (fact `numa.nodes`), for the bound on objects in sheaves.
    pub nodes: Option<u64>,
}

impl System {
    /// From the facts of a run.
    #[must_use]
    pub fn of(record: &RunRecord) -> Self {
        let fact = |key| record.manifest.facts.integer(key).and_then(|value| u64::try_from(value).ok());
        System { page_size: fact("memory.page_size"), cpus: fact("cpu.online"), nodes: fact("numa.nodes") }
    }
}

impl Input<'_> {
    /// Bytes of a page: what all scans say, else the fact.
    ///
    /// # Errors
    /// Nothing says it; scans disagree.
    pub fn page_size(&self) -> Result<u64, SlabError> {
        let scans = self.caches.map(|series| (series.at.len(), ints(series, "page_size")));
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
    pub fn phases(&self) -> Vec<Phase> {
        self.record.map(phases).unwrap_or_default()
    }

    /// When the first iteration began and the last one ended.
    #[must_use]
    pub fn busy(&self) -> Option<(Nanos, Nanos)> {
        let phases = self.phases();
        Some((phases.iter().map(|phase| phase.start).min()?, phases.iter().map(|phase| phase.end).max()?))
    }
}
