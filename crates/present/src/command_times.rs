//! The times of commands: a table for people, and the document that hyperfine writes.

use perflab_analyze::CommandTimes;
use serde_json::{Value, json};

use crate::grid::{Grid, GridCell, GridColumn};

/// A row for each command.
pub fn command_times_grid(all: &[CommandTimes]) -> Grid {
    let has_failed = all.iter().any(|one| one.failed > 0);
    // The peak of a small program is not known.
    let has_rss = all.iter().any(|one| !one.max_rss.is_empty());
    let columns = ["mean", "sd", "min", "max", "user", "system"].into_iter();
    let columns = columns.chain(has_rss.then_some("max RSS")).chain(["runs"]);
    let columns = columns.chain(has_failed.then_some("failed")).map(GridColumn::right);
    let mut grid = Grid::new([GridColumn::left("command")].into_iter().chain(columns));
    for one in all {
        let seconds =
            |value: Option<f64>| value.map_or_else(GridCell::missing, |value| GridCell::quantity(value, "s"));
        let range = one.range();
        let rss = one.max_rss.iter().copied().reduce(f64::max);
        let mut row = vec![
            GridCell::from(one.name.as_str()),
            seconds(one.mean()),
            seconds(one.sd()),
            seconds(range.map(|(low, _)| low)),
            seconds(range.map(|(_, high)| high)),
            seconds(one.user),
            seconds(one.system),
        ];
        row.extend(
            has_rss.then(|| rss.map_or_else(GridCell::missing, |bytes| GridCell::quantity(bytes, "bytes"))),
        );
        row.push(one.times.len().into());
        row.extend(has_failed.then(|| one.failed.into()));
        grid.add_row(row);
    }
    grid
}

/// The document that `hyperfine --export-json` writes, of these times. Exit codes are left out: what was allowed to fail
/// is not told apart. So are commands of which no run went well, of which hyperfine writes nothing either. Source: hyperfine 1.19, `src/benchmark/benchmark_result.rs`.
pub fn hyperfine_document(all: &[CommandTimes]) -> Value {
    let result = |one: &CommandTimes| {
        let (min, max) = one.range().unzip();
        let mut document = json!({
            "command": if one.parameters.is_empty() { &one.name } else { &one.command },
            "mean": one.mean(),
            "stddev": one.sd(),
            "median": one.median(),
            "user": one.user,
            "system": one.system,
            "min": min,
            "max": max,
            "times": one.times,
        });
        if let (Some(table), true) = (document.as_object_mut(), one.max_rss.len() == one.times.len()) {
            // Whole bytes, as hyperfine writes them.
            let bytes: Vec<u64> = one.max_rss.iter().map(|bytes| *bytes as u64).collect();
            table.insert("memory_usage_byte".into(), bytes.into());
        }
        if let (Some(table), false) = (document.as_object_mut(), one.parameters.is_empty()) {
            let parameters: serde_json::Map<String, Value> =
                one.parameters.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
            table.insert("parameters".into(), parameters.into());
        }
        document
    };
    let measured = all.iter().filter(|one| !one.times.is_empty());
    json!({ "results": measured.map(result).collect::<Vec<_>>() })
}
