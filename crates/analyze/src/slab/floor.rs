//! Owns the noise floor in bytes: changes up to it are noise whatever the statistics say. It refuses a floor below one
//! slab, as no cache can hold less.

use std::collections::BTreeMap;

use super::compare::SlabSide;
use super::measured::{ALL_CACHES, CacheSamples};
use crate::comparison::{SideSummary, VerdictRow};

/// What the floor is, in the words of the notes.
pub(super) const NOISE_FLOOR_METHOD: &str = "noise floor of a cache: the larger of one slab and twice the noise in bytes, which is the pooled \
     standard deviation of the repetitions, or with one of them on a side, the robust standard deviation of the steps \
     from tick to tick";

/// What the floors are made of.
pub(super) struct NoiseFloors {
    /// Bytes of the largest slab of each cache.
    slab: BTreeMap<String, u64>,
    /// Noise of ticks of each cache, the largest of all runs.
    ticks: BTreeMap<String, f64>,
}

impl NoiseFloors {
    pub(super) fn from_samples(sides: &[&SlabSide], measured: &[Vec<CacheSamples>]) -> Self {
        let mut slab: BTreeMap<String, u64> = BTreeMap::new();
        let mut ticks: BTreeMap<String, f64> = BTreeMap::new();
        let runs = sides.iter().flat_map(|side| &side.runs).zip(measured.iter().flatten());
        for (run, measured) in runs {
            for cache in run.recording.caches() {
                let noise = ticks.entry(cache.label()).or_default();
                *noise = noise.max(measured.cache_noise(&cache.label()));
            }
            for row in run.recording.rows() {
                let Some(cache) = run.recording.caches().get(row.cache) else { continue };
                match slab.get_mut(&cache.name) {
                    Some(bytes) => *bytes = row.bytes_per_slab.max(*bytes),
                    None => drop(slab.insert(cache.name.clone(), row.bytes_per_slab)),
                }
            }
            let all = ticks.entry(ALL_CACHES.into()).or_default();
            *all = all.max(measured.cache_noise(ALL_CACHES));
        }
        NoiseFloors { slab, ticks }
    }

    pub(super) fn row_floor(&self, row: &VerdictRow) -> f64 {
        let name = row.metric.split('#').next().unwrap_or_default();
        let one_slab = self.slab.get(name).copied().unwrap_or(0) as f64;
        let noise = pooled_repetition_sd(row).or_else(|| self.ticks.get(&row.metric).copied()).unwrap_or(0.0);
        one_slab.max(2.0 * noise)
    }
}

/// Pooled standard deviation of the repetitions, where both sides have several.
fn pooled_repetition_sd(row: &VerdictRow) -> Option<f64> {
    let sd = |summary: Option<&SideSummary>| {
        let values: Vec<f64> = summary?.values.iter().map(|point| point.value).collect();
        perflab_stats::sd(&values).ok()
    };
    let (ours, theirs) = (sd(row.baseline.as_ref())?, sd(row.candidate.as_ref())?);
    Some(ours.powi(2).midpoint(theirs.powi(2)).sqrt())
}
