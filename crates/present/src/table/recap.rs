//! Owns the recap of a comparison in the four formats: gains, their geometric mean, and who is not a member. It refuses to
//! leave a missing member unsaid.

use perflab_analyze::Recap;
use perflab_analyze::recap::Gain;

use super::advice::wrapped;
use super::format::{Format, TableError};
use super::grid::{Cell, Column, Grid};
use super::words::short;

const TEXT_WIDTH: usize = 100;

/// The recap. `width` breaks the notes of a table; the table itself is as wide as it must be.
///
/// # Errors
/// A number that JSON or CSV cannot hold.
pub fn render_recap(recap: &Recap, format: Format, width: Option<usize>) -> Result<String, TableError> {
    if format == Format::Json {
        return Ok(serde_json::to_string_pretty(recap)? + "\n");
    }
    let people = format == Format::Table || format == Format::Markdown;
    let table = if people { for_people(recap) } else { for_programs(recap) };
    let mut text = table.render(format, None, false)?;
    if people {
        text.push('\n');
        for note in notes(recap) {
            let lines = wrapped(&format!("note: {note}"), width.unwrap_or(TEXT_WIDTH), "", "  ");
            text.extend(lines.into_iter().map(|line| line + "\n"));
        }
    }
    Ok(text)
}

fn for_people(recap: &Recap) -> Grid {
    let columns = [Column::left("gain (above 1 is better)"), Column::left("metric")];
    let sides = recap.candidates.iter().map(|name| Column::right(&short(name, &recap.candidates)));
    let mut grid = Grid::new(columns.into_iter().chain(sides));
    for member in &recap.members {
        let names = [Cell::from(member.subject.as_str()), Cell::from(member.metric.as_str())];
        grid.add(names.into_iter().chain(member.gains.iter().map(|gain| Cell::from(text(gain)))));
    }
    if !recap.overall.is_empty() {
        let members = format!("of {}", recap.members.len());
        let names = [Cell::from("geometric mean"), Cell::from(members)];
        grid.add(names.into_iter().chain(recap.overall.iter().map(|gain| Cell::from(text(gain)))));
    }
    grid
}

/// `1.250 [1.241, 1.259]`
fn text(gain: &Gain) -> String {
    let interval = gain.interval.map(|i| format!(" [{:.3}, {:.3}]", i.low, i.high)).unwrap_or_default();
    format!("{:.3}{interval}", gain.ratio)
}

fn for_programs(recap: &Recap) -> Grid {
    let titles = ["subject", "metric", "candidate", "gain", "low", "high"];
    let mut grid = Grid::new(titles.map(Column::left));
    let mut add = |subject: &str, metric: &str, gains: &[Gain]| {
        for (candidate, gain) in recap.candidates.iter().zip(gains) {
            let numbers = [Some(gain.ratio), gain.interval.map(|i| i.low), gain.interval.map(|i| i.high)];
            let names = [subject, metric, candidate].map(Cell::from);
            grid.add(names.into_iter().chain(numbers.map(Cell::from)));
        }
    };
    for member in &recap.members {
        add(&member.subject, &member.metric, &member.gains);
    }
    add("geometric mean", "", &recap.overall);
    grid
}

fn notes(recap: &Recap) -> Vec<String> {
    let whose = if recap.primary_only { "primary metrics" } else { "metrics" };
    let mut notes = vec![format!(
        "gain: candidate / baseline where more is better, baseline / candidate where less is; {whose} only; its interval is \
         that of the change"
    )];
    if recap.members.is_empty() {
        notes.push("no geometric mean: no metric has a gain on every side".into());
    }
    let left_out = |one: &perflab_analyze::recap::LeftOut| {
        format!("left out: {}, {} {}", one.subject, one.metric, one.reason)
    };
    notes.extend(recap.left_out.iter().map(left_out));
    notes
}
