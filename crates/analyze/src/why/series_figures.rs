//! The table behind a suspect's figures: the metric and the quantity, unit by unit, as they were weighed.

use perflab_model::Unit;
use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::comparison::{Comparison, VerdictRow};
use crate::compare::options::{AnalysisOptions, ComparisonSide};
use crate::error::AnalyzeError;
use crate::why::evidence_table::EvidenceTable;
use crate::why::recorded_study::quote_word;

/// A quantity of each unit beside the metric.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SeriesFigures {
    /// the metric; of work a second, the time for as much work as the baseline does
    pub metric: String,
    /// unit of its values
    pub unit: Unit,
    /// the quantity
    pub series: String,
    /// unit of its values
    pub series_unit: Unit,
    /// whether the rows are pairs; else each is a unit of one side
    pub paired: bool,
    /// the units in their order
    pub rows: Vec<FigureRow>,
}

/// A pair, or a unit of one side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct FigureRow {
    /// the metric on the baseline
    pub baseline: Option<f64>,
    /// the metric on the candidate
    pub candidate: Option<f64>,
    /// the quantity on the baseline
    pub baseline_series: Option<f64>,
    /// the quantity on the candidate
    pub candidate_series: Option<f64>,
}

/// The figures of a quantity that [`explain_row`](crate::why::explain_row) weighs in the same sides.
///
/// # Errors
/// A row of which the runs have no values, and a quantity that they do not have, with the names of those that they have.
pub fn figures_of_series(
    comparison: &Comparison,
    row: &VerdictRow,
    sides: &[ComparisonSide],
    options: &AnalysisOptions,
    series: &str,
) -> Result<SeriesFigures, AnalyzeError> {
    let table = EvidenceTable::gather(comparison, row, sides, options)?;
    let Some(quantity) = table.quantities.iter().find(|quantity| quantity.name == series) else {
        return Err(AnalyzeError::NoSamples {
            side: row.candidate_name.clone(),
            filter: series.to_owned(),
            known: table.quantities.into_iter().map(|quantity| quantity.name).collect(),
        });
    };
    let baseline = table.baseline.min(table.response.len());
    let sides_of = |values: &[f64]| -> (Vec<Option<f64>>, Vec<Option<f64>>) {
        let known = |values: &[f64]| values.iter().map(|value| value.is_finite().then_some(*value)).collect();
        let (ours, theirs) = values.split_at(baseline.min(values.len()));
        (known(ours), known(theirs))
    };
    let ((ours, theirs), (our_series, their_series)) =
        (sides_of(&table.response), sides_of(&quantity.values));
    let of_pair = |(((baseline, candidate), baseline_series), candidate_series)| FigureRow {
        baseline,
        candidate,
        baseline_series,
        candidate_series,
    };
    let rows = if table.paired {
        ours.into_iter().zip(theirs).zip(our_series).zip(their_series).map(of_pair).collect()
    } else {
        let of_baseline = ours.into_iter().zip(our_series).map(|(value, of)| (((value, None), of), None));
        let of_candidate =
            theirs.into_iter().zip(their_series).map(|(value, of)| (((None, value), None), of));
        of_baseline.chain(of_candidate).map(of_pair).collect()
    };
    Ok(SeriesFigures {
        metric: row.metric.clone(),
        unit: table.unit.clone(),
        series: quantity.name.clone(),
        series_unit: quantity.unit.clone(),
        paired: table.paired,
        rows,
    })
}

/// The command that prints the figures of a series.
pub(crate) fn command_of_series(series: &str, comparison: &Comparison, row: &VerdictRow) -> String {
    let mut words = vec![format!("perflab why {}", sides_as_typed(comparison, row))];
    let others = comparison.deciding_rows();
    let differs = |is_other: &dyn Fn(&VerdictRow) -> bool| others.iter().any(|one| is_other(one));
    if differs(&|one| one.metric != row.metric) || !row.primary {
        words.push(format!("--metric {}", quote_word(&row.metric)));
    }
    if differs(&|one| one.workload != row.workload) {
        words.push(format!("--workload {}", quote_word(&row.workload)));
    }
    for (key, value) in &row.point {
        if differs(&|one| one.workload == row.workload && one.point.get(key) != Some(value)) {
            words.push(format!("--where {}", quote_word(&format!("{key}={value}"))));
        }
    }
    words.push(format!("--series {}", quote_word(series)));
    words.join(" ")
}

/// The command that prints a comparison, with the kernel's log.
pub(crate) fn command_of_comparison(comparison: &Comparison, row: &VerdictRow) -> String {
    format!("perflab compare {}", sides_as_typed(comparison, row))
}

fn sides_as_typed(comparison: &Comparison, row: &VerdictRow) -> String {
    let Some(factor) = &comparison.by else {
        return format!("{} {}", quote_word(&comparison.baseline), quote_word(&row.candidate_name));
    };
    let run = comparison.runs.first().map_or("@latest", |run| run.short.as_str());
    let versus = match comparison.candidates.len() {
        0 | 1 => String::new(),
        _ => format!(" --versus {}", quote_word(&row.candidate_name)),
    };
    format!("{run} --by {}{versus}", quote_word(factor))
}
