//! The definitions: what a cache's slabs hold, how efficient that is, and where the rest went.
//!
//! For one cache at one time, with `S` its slab bytes (the counters are those of mm/slub.c, `get_slabinfo`, and of
//! /sys/kernel/slab):
//!
//! | name | formula | unit |
//! |---|---|---|
//! | `slab_bytes` S | slabs * pages_per_slab * page_size | bytes |
//! | `slot_bytes` P | total_objects * slab_size | bytes |
//! | `object_bytes` A | total_objects * object_size | bytes |
//! | `used_bytes` U | objects * object_size | bytes |
//! | packing | P / S | 1 |
//! | alignment | A / P | 1 |
//! | occupancy | U / A | 1; free objects on the nodes' partial lists only, so an upper bound of true use |
//! | overall | U / S = packing * alignment * occupancy | 1 |
//! | waste, tail | S - P | bytes |
//! | waste, align | P - A | bytes |
//! | waste, free | A - U | bytes |
//! | hidden bound | see [`HiddenObjectBound`] | bytes |
//!
//! Everything is a sum of integers first and a ratio when it is read. The same formulas over sums of S, P, A, U give
//! many caches and many ticks: a ratio of sums, integrated over time with the time that a tick stands for as weight
//! (sum U*dt / sum S*dt). The one mean of ratios, which people compare ours with, is called unweighted. The three
//! wastes add up to S - U exactly, for every row, however torn: they are signed.
//!
//! Objects that are free but counted as used, because a CPU keeps them at hand, have a bound only; the number itself is
//! known to a walk of the running kernel's lists. In mm/slub.c `count_partial` sees the nodes' lists only; the slab of
//! each CPU, its list of partial slabs (`slub_set_cpu_partial`: ceil(2 * cpu_partial / objs_per_slab) slabs) and, from
//! 6.18, its sheaves (`main`, `spare` and `rcu_free`) and each node's barn (`MAX_FULL_SHEAVES` = 10) count as used.

use perflab_model::RunRecord;
use perflab_model::fact_table;
use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

/// Sums of bytes over any set of rows: caches, ticks, or both.
///
/// Serialised as [`UsageFigures`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(into = "UsageFigures")]
pub struct SlabUsage {
    /// S: what the page allocator gave.
    pub slab_bytes: u128,
    /// P: all slots, as padded by the allocator.
    pub slot_bytes: u128,
    /// A: all slots at the size that the creator asked for; the padded size where that is unknown.
    pub object_bytes: u128,
    /// U: the slots in use, at the size asked for; at the padded size where that is unknown.
    pub used_bytes: u128,
    /// The part of P of caches whose object size is unknown, so that their alignment is.
    pub unknown_slot_bytes: u128,
    /// Most bytes that may be free although counted in U: objects in CPUs' slabs and sheaves.
    pub hidden_bytes: u128,
    /// The part of S for which there is no bound on hidden bytes.
    pub unbounded_slab_bytes: u128,
}

/// How much of the padded size was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum AlignmentRatio {
    /// Every cache's object size is known: A / P.
    Whole {
        /// A / P
        ratio: ExactRatio,
    },
    /// Some are: A / P of those only.
    Partly {
        /// of the caches whose object size is known
        ratio: ExactRatio,
        /// which share of P they are
        known: ExactRatio,
    },
    /// No object size is known; `used_bytes` and everything made of it are upper bounds.
    Not,
}

/// Where the bytes that hold no object in use went; the parts add up to S - U.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SlabWaste {
    /// S - P: the end of each slab, where no further object fits. Bytes.
    #[serde(serialize_with = "serialize_signed")]
    pub tail: i128,
    /// P - A: padding and the allocator's own data in each slot, used or not. Bytes; absent where no object size is
    /// known (it is then inside U), and of the known caches only where [`AlignmentRatio::Partly`].
    #[serde(serialize_with = "serialize_optional")]
    pub align: Option<i128>,
    /// A - U: slots without an object. Bytes.
    #[serde(serialize_with = "serialize_signed")]
    pub free: i128,
}

impl SlabWaste {
    /// All of it: S - U. Bytes.
    #[must_use]
    pub fn total(&self) -> i128 {
        self.tail.saturating_add(self.align.unwrap_or(0)).saturating_add(self.free)
    }
}

impl SlabUsage {
    /// Adds another set of rows. Sums stop at the largest value: 2^128 bytes are no memory.
    pub fn add(&mut self, other: &SlabUsage) {
        for (sum, value) in self.sums_mut().into_iter().zip(other.sum_values()) {
            *sum = sum.saturating_add(value);
        }
    }

    /// Adds another set of rows that stands for `weight` units of time.
    pub fn add_weighted(&mut self, other: &SlabUsage, weight: u128) {
        for (sum, value) in self.sums_mut().into_iter().zip(other.sum_values()) {
            *sum = sum.saturating_add(saturating_product(value, weight));
        }
    }

    fn sums_mut(&mut self) -> [&mut u128; 7] {
        [
            &mut self.slab_bytes,
            &mut self.slot_bytes,
            &mut self.object_bytes,
            &mut self.used_bytes,
            &mut self.unknown_slot_bytes,
            &mut self.hidden_bytes,
            &mut self.unbounded_slab_bytes,
        ]
    }

    fn sum_values(&self) -> [u128; 7] {
        [
            self.slab_bytes,
            self.slot_bytes,
            self.object_bytes,
            self.used_bytes,
            self.unknown_slot_bytes,
            self.hidden_bytes,
            self.unbounded_slab_bytes,
        ]
    }

    /// P / S.
    #[must_use]
    pub fn packing(&self) -> ExactRatio {
        ExactRatio::new(self.slot_bytes, self.slab_bytes)
    }

    /// A / P, as far as it is known.
    #[must_use]
    pub fn alignment(&self) -> AlignmentRatio {
        let unknown = self.unknown_slot_bytes;
        // Where the size asked for is unknown, A counts the padded one: both lose the same bytes here.
        let known = self.slot_bytes.saturating_sub(unknown);
        let ratio = ExactRatio::new(self.object_bytes.saturating_sub(unknown), known);
        match (unknown, known) {
            (0, _) => AlignmentRatio::Whole { ratio },
            (_, 0) => AlignmentRatio::Not,
            _ => AlignmentRatio::Partly { ratio, known: ExactRatio::new(known, self.slot_bytes) },
        }
    }

    /// U / A.
    #[must_use]
    pub fn occupancy(&self) -> ExactRatio {
        ExactRatio::new(self.used_bytes, self.object_bytes)
    }

    /// U / S: the efficiency.
    #[must_use]
    pub fn overall(&self) -> ExactRatio {
        ExactRatio::new(self.used_bytes, self.slab_bytes)
    }

    /// (U - hidden bound) / S: the least that the efficiency can be. Absent where any cache has no bound.
    #[must_use]
    pub fn overall_at_least(&self) -> Option<ExactRatio> {
        let least = self.used_bytes.saturating_sub(self.hidden_bytes);
        (self.unbounded_slab_bytes == 0).then(|| ExactRatio::new(least, self.slab_bytes))
    }

    /// Tail, alignment and free objects, in bytes.
    #[must_use]
    pub fn waste(&self) -> SlabWaste {
        let known = !matches!(self.alignment(), AlignmentRatio::Not);
        SlabWaste {
            tail: signed_difference(self.slab_bytes, self.slot_bytes),
            align: known.then(|| signed_difference(self.slot_bytes, self.object_bytes)),
            free: signed_difference(self.object_bytes, self.used_bytes),
        }
    }

    /// S - U in bytes; negative for a torn row.
    #[must_use]
    pub fn wasted_bytes(&self) -> i128 {
        signed_difference(self.slab_bytes, self.used_bytes)
    }
}

/// The product, at most 2^128 - 1. Bytes and times of one run fit into 64 bits, whose product needs no check.
pub(crate) fn saturating_product(value: u128, weight: u128) -> u128 {
    match (u64::try_from(value), u64::try_from(weight)) {
        (Ok(value), Ok(weight)) => u128::from(value) * u128::from(weight),
        _ => value.saturating_mul(weight),
    }
}

/// Exact up to 2^127, which no sum of [`SlabUsage`] reaches.
fn signed_difference(a: u128, b: u128) -> i128 {
    let size = i128::try_from(a.abs_diff(b)).unwrap_or(i128::MAX);
    if a >= b { size } else { -size }
}

/// A [`SlabUsage`] with everything that can be read from it, as it stands in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct UsageFigures {
    /// S, bytes.
    #[serde(serialize_with = "serialize_unsigned")]
    pub slab_bytes: u128,
    /// U, bytes.
    #[serde(serialize_with = "serialize_unsigned")]
    pub used_bytes: u128,
    /// Tail, alignment and free objects, bytes.
    pub waste: SlabWaste,
    /// Most bytes of U that may be free, bytes.
    #[serde(serialize_with = "serialize_unsigned")]
    pub hidden_bytes: u128,
    /// P / S.
    pub packing: ExactRatio,
    /// A / P.
    pub alignment: AlignmentRatio,
    /// U / A.
    pub occupancy: ExactRatio,
    /// U / S.
    pub overall: ExactRatio,
    /// (U - hidden) / S; null where there is no bound for every cache.
    pub overall_at_least: Option<ExactRatio>,
}

impl From<SlabUsage> for UsageFigures {
    fn from(usage: SlabUsage) -> Self {
        UsageFigures {
            slab_bytes: usage.slab_bytes,
            used_bytes: usage.used_bytes,
            waste: usage.waste(),
            hidden_bytes: usage.hidden_bytes,
            packing: usage.packing(),
            alignment: usage.alignment(),
            occupancy: usage.occupancy(),
            overall: usage.overall(),
            overall_at_least: usage.overall_at_least(),
        }
    }
}

/// `part / whole`, both sums in the same unit (bytes, or bytes times nanoseconds where time was integrated).
///
/// In JSON `{"part": …, "whole": …, "value": …}`; `value` is null where `whole` is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ExactRatio {
    /// Numerator.
    pub part: u128,
    /// Denominator.
    pub whole: u128,
}

impl ExactRatio {
    /// `part / whole`.
    #[must_use]
    pub fn new(part: u128, whole: u128) -> Self {
        ExactRatio { part, whole }
    }

    /// As a fraction: 0.93 for 93 %. Nothing where the whole is zero: a cache without slabs has no efficiency.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        (self.whole > 0).then(|| nearest_float(self.part) / nearest_float(self.whole))
    }

    /// In per cent.
    #[must_use]
    pub fn percent(self) -> Option<f64> {
        Some(self.value()? * 100.0)
    }
}

/// The nearest float; of 64 bits, by the machine's own instruction.
fn nearest_float(value: u128) -> f64 {
    u64::try_from(value).map_or(value as f64, |value| value as f64)
}

impl serde::ser::Serialize for ExactRatio {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Ratio", 3)?;
        fields.serialize_field("part", &ExactInteger(self.part))?;
        fields.serialize_field("whole", &ExactInteger(self.whole))?;
        fields.serialize_field("value", &self.value())?;
        fields.end()
    }
}

/// An integer sum in JSON: a whole number up to 64 bits; beyond (only integrals over time), the nearest float.
struct ExactInteger(u128);

impl serde::ser::Serialize for ExactInteger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_unsigned(&self.0, serializer)
    }
}

/// See [`ExactInteger`].
pub(crate) fn serialize_unsigned<S: Serializer>(value: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    match u64::try_from(*value) {
        Ok(small) => serializer.serialize_u64(small),
        Err(_) => serializer.serialize_f64(*value as f64),
    }
}

/// See [`ExactInteger`].
pub(crate) fn serialize_signed<S: Serializer>(value: &i128, serializer: S) -> Result<S::Ok, S::Error> {
    match i64::try_from(*value) {
        Ok(small) => serializer.serialize_i64(small),
        Err(_) => serializer.serialize_f64(*value as f64),
    }
}

/// See [`ExactInteger`].
fn serialize_optional<S: Serializer>(value: &Option<i128>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serialize_signed(value, serializer),
        None => serializer.serialize_none(),
    }
}

/// Usage summed over ticks, each with the time that it stands for (see
/// [`Recording::weights`](crate::slab::recording::SlabRecording::tick_weights)).
///
/// Serialised as [`MeanUsage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(into = "MeanUsage")]
pub struct UsageIntegral {
    /// sum of usage * weight; bytes times half nanoseconds.
    pub usage: SlabUsage,
    /// sum of the weights of all ticks of the run, also of those without the cache: it then held 0 bytes.
    pub weight: u128,
}

impl UsageIntegral {
    /// Adds what was used at a tick of that weight; the weight itself is counted once a tick, by the owner.
    pub(crate) fn add(&mut self, usage: &SlabUsage, weight: u128) {
        self.usage.add_weighted(usage, weight);
    }

    fn mean_of(&self, sum: u128) -> f64 {
        if self.weight == 0 { 0.0 } else { sum as f64 / self.weight as f64 }
    }

    fn signed_mean_of(&self, sum: i128) -> f64 {
        if self.weight == 0 { 0.0 } else { sum as f64 / self.weight as f64 }
    }

    /// Mean of S over time, bytes.
    #[must_use]
    pub fn slab_bytes(&self) -> f64 {
        self.mean_of(self.usage.slab_bytes)
    }

    /// Mean of S - U over time, bytes.
    #[must_use]
    pub fn wasted_bytes(&self) -> f64 {
        self.signed_mean_of(self.usage.wasted_bytes())
    }

    /// sum U*dt / sum S*dt.
    #[must_use]
    pub fn overall(&self) -> ExactRatio {
        self.usage.overall()
    }
}

/// An [`UsageIntegral`] as bytes on average and ratios of sums, as it stands in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeanUsage {
    /// Mean of S, bytes.
    pub slab_bytes: f64,
    /// Mean of U, bytes.
    pub used_bytes: f64,
    /// Mean of S - P, bytes.
    pub tail_bytes: f64,
    /// Mean of P - A, bytes; null where no object size is known.
    pub align_bytes: Option<f64>,
    /// Mean of A - U, bytes.
    pub free_bytes: f64,
    /// Mean of the bound on hidden free objects, bytes.
    pub hidden_bytes: f64,
    /// sum P*dt / sum S*dt.
    pub packing: ExactRatio,
    /// sum A*dt / sum P*dt.
    pub alignment: AlignmentRatio,
    /// sum U*dt / sum A*dt.
    pub occupancy: ExactRatio,
    /// sum U*dt / sum S*dt.
    pub overall: ExactRatio,
    /// sum (U - hidden)*dt / sum S*dt; null without a bound for every row.
    pub overall_at_least: Option<ExactRatio>,
}

impl From<UsageIntegral> for MeanUsage {
    fn from(integral: UsageIntegral) -> Self {
        let (usage, waste) = (integral.usage, integral.usage.waste());
        MeanUsage {
            slab_bytes: integral.mean_of(usage.slab_bytes),
            used_bytes: integral.mean_of(usage.used_bytes),
            tail_bytes: integral.signed_mean_of(waste.tail),
            align_bytes: waste.align.map(|align| integral.signed_mean_of(align)),
            free_bytes: integral.signed_mean_of(waste.free),
            hidden_bytes: integral.mean_of(usage.hidden_bytes),
            packing: usage.packing(),
            alignment: usage.alignment(),
            occupancy: usage.occupancy(),
            overall: usage.overall(),
            overall_at_least: usage.overall_at_least(),
        }
    }
}

/// An unweighted mean of ratios: what a cache of 16 KB says counts as much as one of 260 MB. Beside ours, for
/// comparison with tools that show it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct UnweightedMean {
    sum: f64,
    count: u64,
}

impl UnweightedMean {
    /// Adds a ratio so many times.
    pub(crate) fn add(&mut self, ratio: ExactRatio, times: usize) {
        if let Some(value) = ratio.value() {
            self.sum += value * times as f64;
            self.count += times as u64;
        }
    }

    pub(crate) fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

/// Sheaves that a CPU holds at most.
const SHEAVES_PER_CPU: u64 = 3;

/// Full sheaves that a node's barn holds at most.
const SHEAVES_PER_NODE: u64 = 10;

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
        SlabFacts {
            page_size: fact(&fact_table::MEMORY_PAGE_SIZE),
            cpus: fact(&fact_table::CPU_ONLINE),
            nodes: fact(&fact_table::NUMA_NODES),
        }
    }
}

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
