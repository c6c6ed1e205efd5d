//! Whether the times of operations are their own, or those of the probes that recorded them.
//!
//! The rule: where probes cost more than what they measure, the median says nothing, and only what is above ten times
//! their cost does.

use perflab_model::operation::{OperationColumns, TracedProbeCost};
use serde::Serialize;

use crate::operations::causes::OperationCause;
use crate::operations::operation_times::{OperationTimes, select_median};

/// So many times its cost is what is judged of something that costs more than it takes.
const TIMES: i64 = 10;

/// What probes cost in operations of one kind; it is taken off all times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperationProbeCost {
    /// Nanoseconds of an operation with its spans and the operations inside it, in the median.
    pub operation: i64,
    /// Nanoseconds of those that the operations inside it cost, in the mean.
    pub inside: i64,
    /// Whether the operations take longer than that, in the median: if not, only times above `judged_above` are judged.
    pub middle_judged: bool,
    /// Nanoseconds: times up to there are not judged; 0 where all are.
    pub judged_above: i64,
    /// Each span that occurred.
    pub spans: Vec<SpanProbeCost>,
    /// nanoseconds of each operation that was looked at
    #[serde(skip)]
    each: Vec<i64>,
}

/// What the probes of a span cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpanProbeCost {
    /// the span
    pub name: String,
    /// nanoseconds of one occurrence
    pub cost: i64,
    /// whether it takes longer than that, in the median: if not, only ten times as long a time is a cause
    pub judged: bool,
}

impl OperationProbeCost {
    /// Of a kind of operation; none where the program itself recorded it.
    pub(crate) fn new(operations: &OperationColumns, times: &OperationTimes, kind: u8) -> Option<Self> {
        let cost = |name: Option<&String>, span: bool| -> Option<&TracedProbeCost> {
            let costs = operations.summary.probe_costs.iter();
            costs.into_iter().find(|cost| cost.span == span && Some(&cost.name) == name)
        };
        let reported = cost(operations.kinds.get(usize::from(kind)), false)?;
        let inside = reported.inside_ns.round() as i64;
        let own = reported.own_ns.round() as i64 + inside;
        let mut each = vec![own; times.len()];
        let mut spans = Vec::new();
        for span in &operations.spans {
            let Some(cost) = cost(Some(&span.name), true) else { continue };
            for (row, count) in span.count.iter() {
                if let Some(each) = times.index_of_row(row).and_then(|at| each.get_mut(at)) {
                    *each += (count as f64 * cost.pair_ns).round() as i64;
                }
            }
            let once = |(row, time): (u32, i64)| {
                times.index_of_row(row)?;
                Some(time / span.count.get(row).unwrap_or(1).max(1))
            };
            let mut found: Vec<i64> = span.time.iter().filter_map(once).collect();
            if !found.is_empty() {
                let once = cost.pair_ns.round() as i64;
                spans.push(SpanProbeCost {
                    name: span.name.clone(),
                    cost: once,
                    judged: select_median(&mut found) >= once,
                });
            }
        }
        let operation = select_median(&mut each.clone());
        let middle_judged = select_median(&mut times.time.clone()) >= operation;
        let judged_above = if middle_judged { 0 } else { TIMES * operation };
        Some(Self { operation, inside, middle_judged, judged_above, spans, each })
    }

    /// Whether the operation at a place can stand out: what was taken off it is not most of it.
    pub(crate) fn is_beyond_probe_cost(&self, at: usize, time: i64) -> bool {
        let times = if self.middle_judged { 1 } else { TIMES };
        time > times * self.each.get(at).copied().unwrap_or(0)
    }

    /// Spans whose time is their probes' are no cause, but where they took ten times as long; that they occurred stays.
    pub(crate) fn remove_probe_spans(
        &self,
        operations: &OperationColumns,
        times: &OperationTimes,
        causes: &mut [OperationCause],
    ) {
        for span in self.spans.iter().filter(|span| !span.judged) {
            let column = operations.spans.iter().find(|column| column.name == span.name);
            let cause = causes.iter_mut().find(|cause| !cause.kernel && cause.name == span.name);
            let (Some(column), Some(cause)) = (column, cause) else { continue };
            for (at, time) in &mut cause.found {
                let row = times.rows.get(*at as usize).copied().unwrap_or(u32::MAX);
                if *time <= TIMES * span.cost * column.count.get(row).unwrap_or(1) {
                    *time = 0;
                }
            }
        }
    }
}
