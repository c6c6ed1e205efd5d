//! Shares of several levels beside each other, with how each differs from the first.

use std::collections::BTreeSet;

use perflab_analyze::flame::{
    CategoryComparison, CategoryDifference, ComparedShareRow, ShareEstimate, ShareMeasure,
};
use perflab_analyze::{EstimationMethod, IntervalMeaning, ShiftEstimator};

use crate::flame::grids::{profile_share_cell, rule_coverage_text};
use crate::grid::{Grid, GridCell, GridColumn};
use perflab_model::quantity::format_signed;

/// A row for each category and measure, a column for each level and each difference.
#[must_use]
pub fn compared_share_grid(found: &CategoryComparison) -> Grid {
    let names: Vec<&str> = found.levels.iter().map(|level| level.name.as_str()).collect();
    let first = names.first().copied().unwrap_or_default();
    let differences = names.iter().skip(1).map(|name| format!("{name} - {first}"));
    let numbers: Vec<String> = names.iter().map(|name| (*name).to_owned()).chain(differences).collect();
    let columns = ["operation", "category", "of"].map(GridColumn::left);
    let mut grid = Grid::new(columns.into_iter().chain(numbers.iter().map(|title| GridColumn::right(title))));
    for row in &found.rows {
        let head: [GridCell; 3] = [
            row.operation.as_str().into(),
            row.category.as_deref().unwrap_or("all").into(),
            measure_text(row).into(),
        ];
        let levels = row.levels.iter().map(|level| level_cell(level, row));
        let differences = row.differences.iter().map(|difference| difference_cell(difference.as_ref(), row));
        grid.add_row(head.into_iter().chain(levels).chain(differences));
    }
    grid
}

fn measure_text(row: &ComparedShareRow) -> String {
    match row.measure {
        ShareMeasure::OfAll => "all samples".into(),
        ShareMeasure::OfOperation => "the operation".into(),
        ShareMeasure::PerOperation => format!("{} each", row.unit),
    }
}

fn level_cell(level: &ShareEstimate, row: &ComparedShareRow) -> GridCell {
    if row.measure != ShareMeasure::PerOperation {
        return profile_share_cell(level);
    }
    let Some(value) = level.value else { return GridCell::missing() };
    let interval = level.interval.map(|(low, high)| format!(" [{low:.1}, {high:.1}]"));
    GridCell::with_text(format!("{value:.1}{}", interval.unwrap_or_default()), value)
}

/// In points for shares, else in the row's unit; with `more` or `less` where it is more than chance.
fn difference_cell(difference: Option<&CategoryDifference>, row: &ComparedShareRow) -> GridCell {
    let Some(found) = difference else { return GridCell::missing() };
    let (scale, decimals) = if row.measure == ShareMeasure::PerOperation { (1.0, 1) } else { (100.0, 2) };
    let number = |value: f64| format_signed(scale * value, decimals);
    let interval =
        found.interval.map(|(low, high)| format!(" [{}, {}]", number(low), number(high))).unwrap_or_default();
    let word = match (found.differs, found.value > 0.0) {
        (false, _) => "",
        (true, true) => " more",
        (true, false) => " less",
    };
    GridCell::with_text(format!("{}{interval}{word}", number(found.value)), found.value)
}

/// What each level is, what the intervals are over, and what sets the levels apart besides the shares.
#[must_use]
pub fn compared_share_sentences(found: &CategoryComparison) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for level in &found.levels {
        let shares = &level.shares;
        let variant = shares.variant.as_deref().unwrap_or("no variant was recognised");
        let kernels = if level.kernels.is_empty() {
            String::new()
        } else {
            format!(", kernel {}", level.kernels.join(", "))
        };
        let interval = match shares.repetitions.count {
            0 | 1 => "no interval: it was not repeated".to_owned(),
            _ => format!("intervals over {}", shares.repetitions),
        };
        lines.push(format!("{}: {variant}{kernels}; {} samples; {interval}", level.name, shares.all.samples));
        lines.push(format!("{}: {}", level.name, rule_coverage_text(shares)));
    }
    lines.extend(variant_sentence(found));
    lines.extend(event_sentences(found));
    lines.extend(method_sentence(found));
    lines
}

/// Levels whose kernels have different allocators are told apart: their functions have different names.
fn variant_sentence(found: &CategoryComparison) -> Option<String> {
    let variants: BTreeSet<Option<&str>> =
        found.levels.iter().map(|level| level.shares.variant.as_deref()).collect();
    (variants.len() > 1).then(|| {
        let table = found.levels.first().map(|level| level.shares.rules.as_str()).unwrap_or_default();
        format!(
            "the levels' kernels differ in what table {table} is about: functions are lined up by its categories, not by \
             their names, and `slow` is the slow path that each of them has"
        )
    })
}

/// The event that was sampled, and what it hides; a warning where levels were sampled by different ones.
fn event_sentences(found: &CategoryComparison) -> Vec<String> {
    let events: BTreeSet<&str> = found.levels.iter().map(|level| level.event.as_str()).collect();
    let mut lines = Vec::new();
    if events.len() > 1 {
        let each = found.levels.iter().map(|level| format!("{} by {}", level.name, level.event));
        let each = each.collect::<Vec<_>>().join(", ");
        lines.push(format!("warning: levels were sampled by different events: {each}"));
    }
    let hidden: BTreeSet<(&str, &str)> = found
        .levels
        .iter()
        .filter_map(|level| Some((level.event.as_str(), level.hides.as_deref()?)))
        .collect();
    lines.extend(hidden.into_iter().map(|(event, hides)| format!("what {event} hides: {hides}")));
    lines
}

fn method_sentence(found: &CategoryComparison) -> Option<String> {
    let first = found.levels.first()?;
    let all = || found.rows.iter().flat_map(|row| row.differences.iter().flatten());
    if all().all(|difference| difference.interval.is_none()) {
        let text = "differences have no interval: repeat both sides for one";
        return all().next().map(|_| text.to_owned());
    }
    let of_all = found.rows.iter().filter(|row| row.measure == ShareMeasure::OfAll);
    let methods: BTreeSet<String> = of_all
        .flat_map(|row| row.differences.iter().flatten())
        .filter(|difference| difference.interval.is_some())
        .filter_map(|difference| difference.method.map(estimation_text))
        .collect();
    let bounds = match all().any(|difference| difference.covers != IntervalMeaning::Change) {
        true => "; they are of these runs: how much any two runs differ is not known",
        false => "",
    };
    let is_deciding = |row: &&ComparedShareRow| row.category.is_none() && row.measure == ShareMeasure::OfAll;
    let deciding =
        found.rows.iter().filter(is_deciding).flat_map(|row| row.differences.iter().flatten()).count();
    let is_open = |difference: &&CategoryDifference| {
        !difference.differs && difference.interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    };
    let undecided = match all().filter(is_open).count() {
        0 => String::new(),
        count => format!(
            "; {count} exclude 0 by themselves and not among so many: more repetitions would decide them"
        ),
    };
    Some(format!(
        "differences from {}, in points: 95 % intervals over {}{bounds}; `more` and `less` where q, the false discovery rate, is 5 % at \
         most: over the {} differences of whole operations of all samples, and over the other {}{undecided}",
        first.name,
        methods.into_iter().collect::<Vec<_>>().join("; "),
        deciding,
        all().count() - deciding
    ))
}

/// What was compared, and how.
fn estimation_text(method: EstimationMethod) -> String {
    let noun = method.level.noun();
    let counts = match method.paired {
        true => format!("{} pairs of {noun}", method.baseline),
        false => format!("{} and {} {noun}", method.baseline, method.candidate),
    };
    let how = match (method.by_means, method.random_effects, method.estimator) {
        (true, _, _) | (_, _, Some(ShiftEstimator::Means)) => "Student's t of means",
        (_, true, _) => "a model of random effects",
        (_, _, Some(ShiftEstimator::SignedRanks)) => "signed ranks",
        (_, _, Some(ShiftEstimator::JointRanks)) => "joint ranks",
        (_, _, Some(ShiftEstimator::RankSum) | None) => "ranks",
    };
    format!("{counts} ({how})")
}
