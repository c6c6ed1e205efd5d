//! Owns the table of caches: bytes, where they went, and who is worst. It refuses to cut the list: whoever prints it
//! does.

use std::collections::HashMap;

use perflab_model::Nanos;
use serde::Serialize;

use super::class::size_class;
use super::counts::RowCounts;
use super::line::{Clock, Running};
use super::mean::{Integral, Unweighted};
use super::ratio::unsigned;
use super::recording::{Cache, Recording};
use super::usage::Usage;

/// How to show caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShowOptions {
    /// kmalloc's families become one line a size class.
    pub fold_kmalloc: bool,
}

/// Which line comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// most bytes wasted on average
    #[default]
    Waste,
    /// lowest efficiency, integrated over time
    Efficiency,
    /// lowest unweighted mean of the ticks' efficiencies
    Unweighted,
    /// most slab bytes on average
    Bytes,
    /// by name
    Name,
}

/// All caches of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Show {
    /// First tick.
    pub from: Nanos,
    /// Last tick.
    pub to: Nanos,
    /// Ticks.
    pub ticks: usize,
    /// Bytes of a page.
    pub page_size: u64,
    /// Rows read, used, flagged.
    pub rows: RowCounts,
    /// All caches together, on average over time.
    pub total: Integral,
    /// All caches together at the last tick.
    pub end: Usage,
    /// Mean of the efficiencies of all rows, each row alike: no memory quantity, see [`Order::Unweighted`].
    pub unweighted: Option<f64>,
    /// Caches whose slabs the kernel can reclaim, on average over time.
    pub reclaimable: Integral,
    /// Caches whose slabs it cannot.
    pub unreclaimable: Integral,
    /// Caches of which that is not known.
    pub unknown: Integral,
    /// One line a cache (or class), most bytes wasted first.
    pub caches: Vec<CacheLine>,
}

/// One cache, one group of merged caches, or one size class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheLine {
    /// Its name in /proc/slabinfo (`name#2` for a repeated one), or the class.
    pub name: String,
    /// The caches folded into this line; one unless it is a class.
    pub caches: Vec<String>,
    /// All names that share its slabs: the group of merged caches.
    pub members: Vec<String>,
    /// Bytes asked for by the creator; null where unknown or not the same for all of a class.
    pub object_size: Option<u64>,
    /// Padded bytes of a slot; null where not the same.
    pub slab_size: Option<u64>,
    /// Slots of a slab; null where not the same.
    pub objs_per_slab: Option<u64>,
    /// Bytes of a slab; null where not the same.
    pub bytes_per_slab: Option<u64>,
    /// Whether its slabs count as reclaimable; null where unknown or mixed.
    pub reclaimable: Option<bool>,
    /// Ticks at which it was there.
    pub ticks: usize,
    /// Its rows with a mark of doubt.
    pub flagged: usize,
    /// On average over the whole run.
    pub mean: Integral,
    /// Mean of its efficiencies over its ticks with slabs.
    pub unweighted: Option<f64>,
    /// At the run's last tick: nothing where it is gone.
    pub end: Usage,
    /// Largest S, bytes.
    #[serde(serialize_with = "unsigned")]
    pub peak_bytes: u128,
    /// When that was first reached.
    pub peak_at: Nanos,
}

impl Show {
    /// The lines in another order; ties by name. Caches that never had a slab come last when sorted by efficiency.
    #[must_use]
    pub fn sorted(&self, order: Order) -> Vec<&CacheLine> {
        let mut lines: Vec<&CacheLine> = self.caches.iter().collect();
        let falling = |value: fn(&CacheLine) -> f64| {
            move |a: &&CacheLine, b: &&CacheLine| {
                value(b).total_cmp(&value(a)).then_with(|| a.name.cmp(&b.name))
            }
        };
        let efficiency = |line: &CacheLine| -line.mean.overall().value().unwrap_or(f64::INFINITY);
        match order {
            Order::Waste => lines.sort_by(falling(|line| line.mean.wasted())),
            Order::Bytes => lines.sort_by(falling(|line| line.mean.slab_bytes())),
            Order::Efficiency => lines.sort_by(falling(efficiency)),
            Order::Unweighted => lines.sort_by(falling(|line| -line.unweighted.unwrap_or(f64::INFINITY))),
            Order::Name => lines.sort_by(|a, b| a.name.cmp(&b.name)),
        }
        lines
    }
}

/// Makes the table.
#[must_use]
pub fn show(recording: &Recording, options: &ShowOptions) -> Show {
    let ticks = recording.ticks();
    let clock = Clock { ticks, elapsed: recording.elapsed() };
    let weight = clock.elapsed.of(0..ticks.len());
    let (lines, line_of) = group(recording, options);
    let mut lines: Vec<Running> = lines.into_iter().map(|line| Running::new(line, weight)).collect();
    let mut unweighted = Unweighted::default();
    for row in recording.rows() {
        let usage = row.usage();
        unweighted.add(usage.overall(), row.times());
        let line = line_of.get(row.cache).and_then(|line| lines.get_mut(*line));
        if let Some(line) = line {
            line.add(row, &usage, &clock);
        }
    }
    let mut caches: Vec<CacheLine> = lines.into_iter().map(|line| line.finished(&clock)).collect();
    caches.sort_by(|a, b| b.mean.wasted().total_cmp(&a.mean.wasted()).then_with(|| a.name.cmp(&b.name)));
    let of = |wanted: &dyn Fn(&CacheLine) -> bool| together(&caches, weight, wanted);
    Show {
        from: ticks.first().copied().unwrap_or_default(),
        to: ticks.last().copied().unwrap_or_default(),
        ticks: ticks.len(),
        page_size: recording.page_size(),
        rows: recording.counts(),
        total: of(&|_| true),
        reclaimable: of(&|line| line.reclaimable == Some(true)),
        unreclaimable: of(&|line| line.reclaimable == Some(false)),
        unknown: of(&|line| line.reclaimable.is_none()),
        end: caches.iter().fold(Usage::default(), |mut sum, line| {
            sum.add(&line.end);
            sum
        }),
        unweighted: unweighted.mean(),
        caches,
    }
}

fn together(lines: &[CacheLine], weight: u128, wanted: &dyn Fn(&CacheLine) -> bool) -> Integral {
    let mut sum = Integral { weight, ..Integral::default() };
    lines.iter().filter(|line| wanted(line)).for_each(|line| sum.usage.add(&line.mean.usage));
    sum
}

/// The empty lines, and the line of each cache.
fn group(recording: &Recording, options: &ShowOptions) -> (Vec<CacheLine>, Vec<usize>) {
    let mut lines: Vec<CacheLine> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let line_of = recording.caches().iter().map(|cache| {
        let class = if options.fold_kmalloc { size_class(&cache.name) } else { None };
        let name = class.unwrap_or_else(|| cache.label());
        let line = *known.entry(name.clone()).or_insert(lines.len());
        match lines.get_mut(line) {
            Some(line) => line.join(cache),
            None => lines.push(CacheLine::of(name, cache)),
        }
        line
    });
    let line_of = line_of.collect();
    (lines, line_of)
}

impl CacheLine {
    fn of(name: String, cache: &Cache) -> Self {
        CacheLine {
            name,
            caches: vec![cache.label()],
            members: cache.members(),
            object_size: None,
            slab_size: None,
            objs_per_slab: None,
            bytes_per_slab: None,
            reclaimable: reclaimable(cache),
            ticks: 0,
            flagged: 0,
            mean: Integral::default(),
            unweighted: None,
            end: Usage::default(),
            peak_bytes: 0,
            peak_at: Nanos(0),
        }
    }

    fn join(&mut self, cache: &Cache) {
        self.caches.push(cache.label());
        self.members.extend(cache.members());
        if self.reclaimable != reclaimable(cache) {
            self.reclaimable = None;
        }
    }
}

fn reclaimable(cache: &Cache) -> Option<bool> {
    cache.attributes.as_ref()?.reclaimable
}
