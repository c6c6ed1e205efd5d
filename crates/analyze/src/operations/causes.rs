//! What happened in each operation and how much of its time that was.
//!
//! Two things are worked out here that a trace does not say and that are needed to weigh causes: what a page fault
//! costs, and in which span a thread was off the CPU.

use std::collections::BTreeMap;

use perflab_model::operation::OperationColumns;

use crate::operations::operation_times::{OperationClock, OperationTimes, select_median};

/// Another thread ran on this one's CPU.
pub const PREEMPTED: &str = "preempted";

/// The thread waited: for a lock, a disk, a timer; `waiting in SPAN` where that span is the longest, and as long.
pub const WAITING: &str = "waiting";

/// A page was not there when touched: `page fault in SPAN` where it lies in one.
pub const PAGE_FAULT: &str = "page fault";

/// Fewest faults from which their cost is estimated.
const FEWEST: usize = 8;

/// One cause: where it occurred, and the nanoseconds that it took there.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationCause {
    /// the span's name, or one of the kernel's causes
    pub name: String,
    /// whether the kernel reported it and not the program
    pub kernel: bool,
    /// place among the operations that are looked at, and nanoseconds; in order
    pub(crate) found: Vec<(u32, i64)>,
}

impl OperationCause {
    pub(crate) fn time_at(&self, at: usize) -> Option<i64> {
        let place = self.found.binary_search_by_key(&(at as u32), |(at, _)| *at).ok()?;
        self.found.get(place).map(|(_, time)| *time)
    }
}

/// All causes of a trace that occurred at all: spans first, then the kernel's.
pub(crate) fn find_causes(
    operations: &OperationColumns,
    times: &OperationTimes,
    clock: OperationClock,
) -> Vec<OperationCause> {
    let places = |pairs: &mut dyn Iterator<Item = (u32, i64)>| -> Vec<(u32, i64)> {
        pairs.filter_map(|(row, value)| Some((times.index_of_row(row)? as u32, value))).collect()
    };
    let mut spans: Vec<OperationCause> = operations
        .spans
        .iter()
        .map(|span| OperationCause {
            name: span.name.clone(),
            kernel: false,
            found: places(&mut span.time.iter()),
        })
        .collect();
    let [preempted, waited] =
        [&operations.preempted, &operations.waited].map(|away| places(&mut away.iter()));
    let mut away: BTreeMap<u32, i64> = BTreeMap::new();
    preempted.iter().chain(&waited).for_each(|(at, time)| *away.entry(*at).or_default() += time);
    let mut waiting = vec![Vec::new(); spans.len() + 1];
    for (at, time) in &waited {
        let span = charge_largest_span(&mut spans, *at, *time).unwrap_or(spans.len());
        if let Some(found) = waiting.get_mut(span) {
            found.push((*at, *time));
        }
    }
    for (at, time) in &preempted {
        charge_largest_span(&mut spans, *at, *time);
    }
    let faults = page_fault_times(&mut spans, &places(&mut operations.faults.iter()), times, &away);
    let kernel = |name: String, found| OperationCause { name, kernel: true, found };
    let named = |what: &str, found: Vec<Vec<(u32, i64)>>| -> Vec<OperationCause> {
        let name = |at: usize| spans.get(at).map_or(what.into(), |span| format!("{what} in {}", span.name));
        found.into_iter().enumerate().map(|(at, found)| kernel(name(at), found)).collect()
    };
    let (faults, waiting) = (named(PAGE_FAULT, faults), named(WAITING, waiting));
    let mut all = spans;
    all.extend(faults);
    if clock == OperationClock::Wall {
        all.push(kernel(PREEMPTED.into(), preempted));
        all.extend(waiting);
    }
    all.retain(|cause| !cause.found.is_empty());
    all
}

/// Off the CPU was the span that has most of the time: the trace says that it was, and not where. Which span that was.
fn charge_largest_span(spans: &mut [OperationCause], at: u32, time: i64) -> Option<usize> {
    let held = spans.iter_mut().enumerate().filter_map(|(index, span)| {
        let place = span.found.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        span.found.get_mut(place).map(|(_, ns)| (ns, index))
    });
    // A span that is shorter than the absence was not the one.
    let (largest, index) = held.max().filter(|(ns, _)| **ns >= time)?;
    *largest -= time;
    Some(index)
}

/// The time of page faults, estimated: what an operation with faults takes above the usual one, and its spans above
/// theirs without, by the fault, in the median. It is taken off the spans in which it lies; for each span, and last for the operation
/// itself, the faults in it.
fn page_fault_times(
    spans: &mut [OperationCause],
    faults: &[(u32, i64)],
    times: &OperationTimes,
    away: &BTreeMap<u32, i64>,
) -> Vec<Vec<(u32, i64)>> {
    let faulted: BTreeMap<u32, i64> = faults.iter().copied().collect();
    let without: Vec<i64> = spans
        .iter()
        .map(|span| {
            let clean = span.found.iter().filter(|(at, _)| !faulted.contains_key(at));
            select_median(&mut clean.map(|(_, time)| *time).collect::<Vec<_>>())
        })
        .collect();
    let above = |at: u32, spans: &[OperationCause]| -> i64 {
        let usual = spans
            .iter()
            .zip(&without)
            .map(|(span, usual)| span.time_at(at as usize).map_or(0, |time| time.min(*usual)));
        times.excess_time(at as usize) - usual.sum::<i64>()
    };
    let alone = faults.iter().filter(|(at, _)| !away.contains_key(at));
    let mut each: Vec<i64> = alone.map(|(at, count)| above(*at, spans).max(0) / count.max(&1)).collect();
    let cost =
        if each.len() < FEWEST { each.iter().copied().min().unwrap_or(0) } else { select_median(&mut each) };
    let mut found = vec![Vec::new(); spans.len() + 1];
    for (at, count) in faults {
        let time = (cost * count).min(times.excess_time(*at as usize));
        let mut left = time;
        let mut most = (0, spans.len());
        for (index, (span, usual)) in spans.iter_mut().zip(&without).enumerate() {
            let Ok(place) = span.found.binary_search_by_key(at, |(at, _)| *at) else { continue };
            if let Some((_, ns)) = span.found.get_mut(place) {
                let taken = (*ns - usual).clamp(0, left);
                (*ns, left) = (*ns - taken, left - taken);
                if taken > most.0 {
                    most = (taken, index);
                }
            }
        }
        // What no span holds lies in the operation itself.
        let place = if left > most.0 { spans.len() } else { most.1 };
        if let Some(found) = found.get_mut(place) {
            found.push((*at, time));
        }
    }
    found
}
