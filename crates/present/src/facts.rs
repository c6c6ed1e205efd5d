//! Facts of machines as tables, what differs between two runs, and the section Facts: those that differ between runs are seen
//! first, all on demand.

use std::collections::BTreeSet;

use perflab_analyze::{EnvironmentDifference, PlanDifference, environment_differences};
use perflab_model::fact_table::{FactUnit, FactVolatility, FactWeight, all_fact_groups, fact_spec};
use perflab_model::quantity::format_quantity;
use perflab_model::{Bytes, Facts, Nanos, RunRecord, Scalar};

use crate::grid::{Grid, GridCell, GridColumn};
use crate::run_viewer::run_display_name;
use crate::section::{ReportData, Section, SectionBlock, SectionError, no_conclusions};

/// What the machines said about themselves.
pub(crate) const SECTION: Section =
    Section { id: "facts", title: "Facts", conclusions: no_conclusions, blocks: facts_blocks };

fn facts_blocks(data: &ReportData) -> Result<Vec<SectionBlock>, SectionError> {
    let records: Vec<&RunRecord> = data.records().collect();
    let facts: Vec<&Facts> = records.iter().map(|record| &record.manifest.facts).collect();
    let names: Vec<String> = data.records().map(run_display_name).collect();
    let differing = environment_differences(&records);
    let differ: BTreeSet<&str> = differing.iter().map(|one| one.key.as_str()).collect();
    let keys: BTreeSet<&str> = facts.iter().flat_map(|facts| facts.iter()).map(|(key, _)| key).collect();
    let equal: Vec<&str> = keys.into_iter().filter(|key| !differ.contains(key)).collect();
    let mut blocks = Vec::new();
    if facts.len() > 1 {
        let (likely, others): (Vec<_>, Vec<_>) = differing.iter().partition(|one| one.important);
        blocks.push(SectionBlock::Hint(match (likely.len(), others.len()) {
            (0, 0) => "No fact differs between the runs.".into(),
            (likely, 0) => format!("{likely} facts differ between the runs, the likeliest causes first."),
            (likely, others) => format!(
                "{likely} facts that often explain a change differ between the runs, the likeliest causes first, \
                 and {others} that hardly do."
            ),
        }));
        if !likely.is_empty() {
            let grid = differing_facts_grid(&likely, &names);
            blocks.push(SectionBlock::Grid { caption: "Facts that differ".into(), grid });
        }
        if !others.is_empty() {
            let grid = differing_facts_grid(&others, &names);
            let caption = "Facts that differ and hardly explain a change".to_owned();
            blocks.push(SectionBlock::Fold {
                summary: caption.clone(),
                count: Some(others.len()),
                blocks: vec![SectionBlock::Grid { caption, grid }],
            });
        }
    }
    if !equal.is_empty() {
        let summary = if facts.len() > 1 { "Facts that are the same" } else { "All facts of this run" };
        let grid = facts_grid(&equal, &facts, &names);
        blocks.push(SectionBlock::Fold {
            summary: summary.into(),
            count: Some(equal.len()),
            blocks: vec![SectionBlock::Grid { caption: "Facts".into(), grid }],
        });
    }
    Ok(blocks)
}

/// A row a fact, a column a run; why it may explain a change.
fn differing_facts_grid(differing: &[&EnvironmentDifference], names: &[String]) -> Grid {
    let runs = names.iter().map(|name| GridColumn::left(name));
    let ends = ["why it matters", "read from"].map(GridColumn::left);
    let mut grid = Grid::new([GridColumn::left("fact")].into_iter().chain(runs).chain(ends));
    for one in differing {
        let bare = one.key.rsplit(": ").next().unwrap_or(&one.key);
        let value = |value: &Option<Scalar>| {
            GridCell::from(value.as_ref().map_or_else(|| "–".into(), |value| fact_value_text(bare, value)))
        };
        let ends = [GridCell::from(one.reason), one.source.as_str().into()];
        grid.add_row([one.key.as_str().into()].into_iter().chain(one.values.iter().map(value)).chain(ends));
    }
    grid
}

/// A row a key, a column a run.
fn facts_grid(keys: &[&str], facts: &[&Facts], names: &[String]) -> Grid {
    let runs = names.iter().map(|name| GridColumn::left(name));
    let mut grid =
        Grid::new([GridColumn::left("fact")].into_iter().chain(runs).chain([GridColumn::left("read from")]));
    for key in keys {
        let value = |facts: &&Facts| {
            facts.stored(key).map_or_else(|| "–".into(), |fact| fact_value_text(key, &fact.value))
        };
        let source = facts.iter().find_map(|facts| facts.stored(key)).map(|fact| fact.source.clone());
        let values = facts.iter().map(value).map(GridCell::from);
        grid.add_row([GridCell::from(*key)].into_iter().chain(values).chain([source.into()]));
    }
    grid
}

/// Facts as a table: key, value, source.
#[must_use]
pub fn machine_facts_grid(facts: &Facts) -> Grid {
    let mut grid = Grid::new(["fact", "value", "source"].map(GridColumn::left));
    for (key, fact) in facts.iter() {
        grid.add_row([key.into(), fact_cell(&fact.value), fact.source.as_str().into()]);
    }
    grid
}

/// A fact's value: numbers with a point in as many digits as people read.
#[must_use]
pub fn fact_cell(value: &Scalar) -> GridCell {
    match value {
        Scalar::Float(number) => {
            GridCell::with_text(GridCell::quantity(*number, "").text(), value.to_string())
        }
        other => GridCell::from(other.to_string()),
    }
}

/// Every kind of fact, the likeliest cause of a change first: a row a kind, those of one rank with one reason.
#[must_use]
pub fn fact_kinds_grid() -> Grid {
    let heads = ["rank", "fact", "what it says", "unit", "explains a change", "why"];
    let mut grid = Grid::new(heads.map(GridColumn::left));
    for (rank, group) in all_fact_groups().iter().enumerate() {
        for spec in group.specs.iter().filter(|spec| !spec.about.is_empty()) {
            let keys = spec.key_patterns().join(", ");
            let unit = match spec.unit {
                FactUnit::Plain => "",
                FactUnit::Bytes => "B",
                FactUnit::Nanoseconds => "ns",
                FactUnit::Hertz => "Hz",
            };
            let weight = match (spec.weight, spec.volatility) {
                (FactWeight::Often, _) => "often",
                (FactWeight::WhenLarge, _) => "if it is far apart",
                (FactWeight::Hardly, FactVolatility::Varies) => "never: it varies by itself",
                (FactWeight::Hardly, FactVolatility::Holds) => "hardly",
            };
            let (rank, about) = ((rank + 1).to_string(), spec.about.trim().replace('`', ""));
            grid.add_row([rank.as_str(), &keys, &about, unit, weight, group.reason].map(GridCell::from));
        }
    }
    grid
}

/// What differs between two runs: a row a difference.
#[must_use]
pub fn run_difference_grid(names: [&str; 2], found: &[PlanDifference]) -> Grid {
    let [first, second] = names;
    let mut grid = Grid::new(["what", first, second, "explains a change"].map(GridColumn::left));
    for one in found {
        let text = |value: &Option<String>| GridCell::from(value.as_deref().unwrap_or("-"));
        let weight = GridCell::from(difference_weight(&one.key));
        grid.add_row([one.key.as_str().into(), text(&one.baseline), text(&one.candidate), weight]);
    }
    grid
}

/// How often a difference of a fact explains a change; empty of what was planned differently, which always may. A fact that
/// varies by itself is among differences only where it is far apart.
fn difference_weight(key: &str) -> &'static str {
    let Some(fact) = key.strip_prefix("fact ") else { return "" };
    match fact_spec(fact.rsplit(": ").next().unwrap_or(fact)).weight {
        FactWeight::Often | FactWeight::WhenLarge => "often",
        FactWeight::Hardly => "hardly",
    }
}

/// Sizes, times and frequencies are stored in whole base units; people read them scaled.
pub(crate) fn fact_value_text(key: &str, value: &Scalar) -> String {
    let Scalar::Int(number) = value else { return value.to_string() };
    let scaled = match fact_spec(key).unit {
        FactUnit::Bytes if *number >= 1024 => Bytes(number.unsigned_abs()).to_string(),
        FactUnit::Nanoseconds if *number >= 1000 => Nanos(number.unsigned_abs()).to_string(),
        FactUnit::Hertz if *number >= 1000 => format_quantity(*number as f64, "Hz"),
        _ => return number.to_string(),
    };
    format!("{scaled} ({number})")
}
