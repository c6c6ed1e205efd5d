//! The profile of a run, and which of its iterations repeat each other.
//!
//! Intervals are over the highest level that repeats: boots where there are two, else runs, else iterations. Iterations of one boot
//! share its luck, as in every comparison.

use std::collections::BTreeMap;

use perflab_model::profile::{IterationProfile, Profile};
use perflab_model::{Manifest, NodeId};
use serde::Serialize;

use crate::compare::change::RepetitionLevel;

/// A boot, told apart from those of other runs.
pub type BootKey = (String, u32);

/// A profile, and what of it counts.
#[derive(Debug, Clone)]
pub struct ProfiledRun<'a> {
    /// One case of a run.
    pub profile: &'a Profile,
    /// Only these slots; all where left out.
    pub slots: Option<Vec<u32>>,
    /// The boot of each slot.
    pub boots: BTreeMap<u32, BootKey>,
}

impl<'a> ProfiledRun<'a> {
    /// All of a profile that is not known to be of any boot.
    pub fn new(profile: &'a Profile) -> Self {
        ProfiledRun { profile, slots: None, boots: BTreeMap::new() }
    }

    /// The measured iterations of a profile of a run; warm-ups do not count unless there is nothing else.
    pub fn from_manifest(profile: &'a Profile, manifest: &Manifest) -> Self {
        let slots = measured_slots(profile, manifest);
        ProfiledRun { profile, slots, boots: slot_boots(profile, manifest) }
    }

    /// The iterations that count.
    pub fn pieces(&self) -> impl Iterator<Item = &'a IterationProfile> + '_ {
        self.profile.iterations.iter().filter(|piece| self.counts(piece.summary.slot))
    }

    /// Whether a slot counts.
    pub fn counts(&self, slot: u32) -> bool {
        self.slots.as_ref().is_none_or(|slots| slots.contains(&slot))
    }

    /// The name of the function in which a node is.
    pub(crate) fn function_name(&self, node: NodeId) -> &'a str {
        let frame = self.profile.node(node).and_then(|node| self.profile.frame(node.frame));
        frame.map_or("", |frame| &frame.name)
    }
}

/// Slots of a profile that were measured; `None` where all of them were warm-ups.
pub fn measured_slots(profile: &Profile, manifest: &Manifest) -> Option<Vec<u32>> {
    let is_warm_up = |slot: u32| manifest.plan.slots.get(slot as usize).is_some_and(|slot| slot.warmup);
    let slots = profile.iterations.iter().map(|piece| piece.summary.slot);
    let slots: Vec<u32> = slots.filter(|slot| !is_warm_up(*slot)).collect();
    (!slots.is_empty()).then_some(slots)
}

/// The boot of each slot of a profile.
pub fn slot_boots(profile: &Profile, manifest: &Manifest) -> BTreeMap<u32, BootKey> {
    let slots = profile.iterations.iter().map(|piece| piece.summary.slot);
    let boot = |slot: u32| manifest.plan.slots.get(slot as usize).map_or(0, |slot| slot.boot);
    slots.map(|slot| (slot, manifest.boot_key(boot(slot), false))).collect()
}

/// What intervals are over, and how many there are of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RepetitionCount {
    /// boots, runs or iterations
    pub level: RepetitionLevel,
    /// how many
    pub count: usize,
}

impl std::fmt::Display for RepetitionCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.count, self.level.noun().strip_suffix('s')) {
            (1, Some(one)) => write!(f, "1 {one}"),
            (count, _) => write!(f, "{count} {}", self.level.noun()),
        }
    }
}

/// Which unit of repetition each of several iterations belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RepetitionUnits {
    level: RepetitionLevel,
    /// By iteration.
    units: Vec<usize>,
}

impl RepetitionUnits {
    /// Those of the iterations that count, run after run.
    pub(crate) fn from_runs(runs: &[ProfiledRun<'_>]) -> Self {
        let place = |(number, run): (usize, &ProfiledRun<'_>)| {
            let boot = |slot: u32| run.boots.get(&slot).cloned();
            run.pieces().map(|piece| (number, boot(piece.summary.slot))).collect::<Vec<_>>()
        };
        let places: Vec<(usize, Option<BootKey>)> = runs.iter().enumerate().flat_map(place).collect();
        let boots: Vec<_> = places.iter().map(|(_, boot)| boot.clone()).collect();
        let of_runs: Vec<_> = places.iter().map(|(run, _)| *run).collect();
        let levels = [
            (RepetitionLevel::Boot, number_distinct(&boots)),
            (RepetitionLevel::Run, number_distinct(&of_runs)),
        ];
        let iterations = || (RepetitionLevel::Iteration, (0..places.len()).collect());
        let repeats = |units: &[usize]| units.iter().any(|unit| *unit > 0);
        let (level, units) = levels.into_iter().find(|(_, units)| repeats(units)).unwrap_or_else(iterations);
        RepetitionUnits { level, units }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> RepetitionCount {
        let count = self.units.iter().max().map_or(0, |last| last + 1);
        RepetitionCount { level: self.level, count }
    }

    /// The unit of each iteration that counts, run after run.
    pub(crate) fn of_iterations(&self) -> &[usize] {
        &self.units
    }

    /// One ratio for each unit, of the sums over its iterations: in a median of them, what is rare would be nothing. Iterations whose
    /// denominator is 0 do not count.
    pub(crate) fn pooled_ratios(&self, of_iterations: &[(u64, u64)]) -> Vec<f64> {
        let mut by_unit: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        for (unit, (part, all)) in self.units.iter().zip(of_iterations).filter(|(_, (_, all))| *all > 0) {
            let sum = by_unit.entry(*unit).or_default();
            *sum = (sum.0.saturating_add(*part), sum.1.saturating_add(*all));
        }
        by_unit.values().map(|(part, all)| *part as f64 / *all as f64).collect()
    }
}

/// Numbers in the order in which things are first met.
fn number_distinct<T: PartialEq>(all: &[T]) -> Vec<usize> {
    let mut met: Vec<&T> = Vec::new();
    let mut number = |one| {
        met.iter().position(|known| *known == one).unwrap_or_else(|| {
            met.push(one);
            met.len() - 1
        })
    };
    all.iter().map(&mut number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rare_in_the_iterations_of_a_boot_is_part_of_its_ratio() {
        let units = RepetitionUnits { level: RepetitionLevel::Boot, units: vec![0, 0, 0, 1, 1, 1] };
        let counts = [(0, 10), (3, 10), (0, 10), (6, 20), (0, 10), (0, 0)];
        assert_eq!(units.pooled_ratios(&counts), [0.1, 0.2]);
    }
}
