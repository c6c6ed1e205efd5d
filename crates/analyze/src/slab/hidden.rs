//! Owns the bound on objects that are free but counted as used, because a CPU keeps them at hand. It refuses a guess
//! of the number itself: only a walk of the running kernel's lists knows it.
//!
//! Sources: mm/slub.c. `count_partial` sees the nodes' lists only; the slab of each CPU, its list of partial slabs
//! (`slub_set_cpu_partial`: ceil(2 * cpu_partial / objs_per_slab) slabs) and, from 6.18, its sheaves (`main`, `spare`
//! and `rcu_free`) and each node's barn (`MAX_FULL_SHEAVES` = 10) count as used.

use super::input::SlabFacts;

/// Sheaves that a CPU holds at most.
const SHEAVES_PER_CPU: u64 = 3;
/// Full sheaves that a node's barn holds at most.
const SHEAVES_PER_NODE: u64 = 10;

/// What is known of one cache at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HiddenObjectBound {
    /// `cpu_slabs`: slabs that CPUs hold, counted.
    pub cpu_slabs: Option<u64>,
    /// Objects that the partial list of one CPU may hold; with the number of CPUs it stands in for `cpu_slabs`.
    pub cpu_partial: Option<u64>,
    /// Objects of one sheaf; nothing where the kernel has none.
    pub sheaf_capacity: Option<u64>,
}

impl HiddenObjectBound {
    /// Most objects that may be free although counted as used; nothing where there is no bound.
    ///
    /// `cpu_slabs * objs_per_slab`, or where slabs of CPUs were not counted
    /// `cpus * (1 + ceil(2 * cpu_partial / objs_per_slab)) * objs_per_slab`; plus
    /// `(3 * cpus + 10 * nodes) * sheaf_capacity`; at most `slabs * objs_per_slab`. Unit: objects.
    #[must_use]
    pub fn most_hidden_objects(&self, slabs: u64, objs_per_slab: u64, system: &SlabFacts) -> Option<u64> {
        if slabs == 0 {
            return Some(0);
        }
        let held = match self.cpu_slabs {
            Some(counted) => counted,
            None => self.slabs_held_by_cpus(objs_per_slab, system)?,
        };
        let in_slabs = held.min(slabs).saturating_mul(objs_per_slab);
        let all = in_slabs.saturating_add(self.objects_in_sheaves(system)?);
        Some(all.min(slabs.saturating_mul(objs_per_slab)))
    }

    fn slabs_held_by_cpus(&self, objs_per_slab: u64, system: &SlabFacts) -> Option<u64> {
        let listed = self.cpu_partial?.saturating_mul(2).div_ceil(objs_per_slab.max(1));
        Some(system.cpus?.saturating_mul(listed.saturating_add(1)))
    }

    fn objects_in_sheaves(&self, system: &SlabFacts) -> Option<u64> {
        let Some(capacity) = self.sheaf_capacity.filter(|capacity| *capacity > 0) else { return Some(0) };
        let on_cpus = system.cpus?.saturating_mul(SHEAVES_PER_CPU);
        let in_barns = system.nodes.unwrap_or(1).saturating_mul(SHEAVES_PER_NODE);
        Some(on_cpus.saturating_add(in_barns).saturating_mul(capacity))
    }
}
