//! Facts of machines as tables, what differs between two runs, and the section Facts: those that differ between runs are seen
//! first, all on demand.

use std::collections::BTreeSet;

use perflab_analyze::PlanDifference;
use perflab_model::fact_table::{FactUnit, FactVolatility, FactWeight, all_fact_groups, fact_spec};
use perflab_model::quantity::format_quantity;
use perflab_model::{Bytes, Facts, Nanos, Scalar};

use crate::grid::{Grid, GridCell, GridColumn};
use crate::run_viewer::run_display_name;
use crate::section::{ReportData, Section, SectionBlock, SectionError, no_conclusions};

/// What the machines said about themselves.
pub(crate) const SECTION: Section =
    Section { id: "facts", title: "Facts", conclusions: no_conclusions, blocks: facts_blocks };

fn facts_blocks(data: &ReportData) -> Result<Vec<SectionBlock>, SectionError> {
    let facts: Vec<&Facts> = data.records().map(|record| &record.manifest.facts).collect();
    let names: Vec<String> = data.records().map(run_display_name).collect();
    let keys: BTreeSet<&str> = facts.iter().flat_map(|facts| facts.iter()).map(|(key, _)| key).collect();
    let differ = differing_keys(&facts);
    let (differing, equal) = keys.into_iter().partition::<Vec<&str>, _>(|key| differ.contains(key));
    let mut blocks = Vec::new();
    if facts.len() > 1 {
        let all = differing.len() + equal.len();
        blocks.push(SectionBlock::Hint(match differing.len() {
            0 => format!("All {all} facts are the same in all runs."),
            some => format!("{some} of {all} facts differ between the runs."),
        }));
        if !differing.is_empty() {
            let grid = facts_grid(&differing, &facts, &names);
            blocks.push(SectionBlock::Grid { caption: "Facts that differ".into(), grid });
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
    let mut grid = Grid::new(["what", first, second].map(GridColumn::left));
    for one in found {
        let text = |value: &Option<String>| GridCell::from(value.as_deref().unwrap_or("-"));
        grid.add_row([one.key.as_str().into(), text(&one.baseline), text(&one.candidate)]);
    }
    grid
}

/// Keys that differ from the first run's, without those that vary by themselves.
fn differing_keys<'a>(facts: &[&'a Facts]) -> BTreeSet<&'a str> {
    let Some((first, others)) = facts.split_first() else { return BTreeSet::new() };
    others.iter().flat_map(|other| first.changes_to(other)).map(|difference| difference.key).collect()
}

/// Sizes, times and frequencies are stored in whole base units; people read them scaled.
fn fact_value_text(key: &str, value: &Scalar) -> String {
    let Scalar::Int(number) = value else { return value.to_string() };
    let scaled = match fact_spec(key).unit {
        FactUnit::Bytes if *number >= 1024 => Bytes(number.unsigned_abs()).to_string(),
        FactUnit::Nanoseconds if *number >= 1000 => Nanos(number.unsigned_abs()).to_string(),
        FactUnit::Hertz if *number >= 1000 => format_quantity(*number as f64, "Hz"),
        _ => return number.to_string(),
    };
    format!("{scaled} ({number})")
}
