//! Owns the recap of a comparison in the four formats: gains, their geometric mean, and who is not a member. It refuses to
//! leave a missing member unsaid.

use perflab_analyze::ComparisonRecap;
use perflab_analyze::recap::RecapGain;

use super::advice::wrap_text;
use super::format::{GridError, OutputFormat};
use super::grid::{Grid, GridCell, GridColumn};
use super::words::shorten_name;

const TEXT_WIDTH: usize = 100;

/// The recap. `width` breaks the notes of a table; the table itself is as wide as it must be.
///
/// # Errors
/// A number that JSON or CSV cannot hold.
pub fn render_gains(
    recap: &ComparisonRecap,
    format: OutputFormat,
    width: Option<usize>,
) -> Result<String, GridError> {
    if format == OutputFormat::Json {
        return Ok(serde_json::to_string_pretty(recap)? + "\n");
    }
    let people = format == OutputFormat::Table || format == OutputFormat::Markdown;
    let table = if people { gain_grid(recap) } else { gain_record_grid(recap) };
    let mut text = table.render(format, None, false)?;
    if people {
        text.push('\n');
        for note in gain_notes(recap) {
            let lines = wrap_text(&format!("note: {note}"), width.unwrap_or(TEXT_WIDTH), "", "  ");
            text.extend(lines.into_iter().map(|line| line + "\n"));
        }
    }
    Ok(text)
}

fn gain_grid(recap: &ComparisonRecap) -> Grid {
    let columns = [GridColumn::left("gain (above 1 is better)"), GridColumn::left("metric")];
    let sides = recap.candidates.iter().map(|name| GridColumn::right(&shorten_name(name, &recap.candidates)));
    let mut grid = Grid::new(columns.into_iter().chain(sides));
    for member in &recap.members {
        let names = [GridCell::from(member.subject.as_str()), GridCell::from(member.metric.as_str())];
        grid.add_row(
            names.into_iter().chain(member.gains.iter().map(|gain| GridCell::from(gain_text(gain)))),
        );
    }
    if !recap.overall.is_empty() {
        let members = format!("of {}", recap.members.len());
        let names = [GridCell::from("geometric mean"), GridCell::from(members)];
        grid.add_row(
            names.into_iter().chain(recap.overall.iter().map(|gain| GridCell::from(gain_text(gain)))),
        );
    }
    grid
}

/// `1.250 [1.241, 1.259]`
fn gain_text(gain: &RecapGain) -> String {
    let interval = gain.interval.map(|i| format!(" [{:.3}, {:.3}]", i.low, i.high)).unwrap_or_default();
    format!("{:.3}{interval}", gain.ratio)
}

fn gain_record_grid(recap: &ComparisonRecap) -> Grid {
    let titles = ["subject", "metric", "candidate", "gain", "low", "high"];
    let mut grid = Grid::new(titles.map(GridColumn::left));
    let mut add = |subject: &str, metric: &str, gains: &[RecapGain]| {
        for (candidate, gain) in recap.candidates.iter().zip(gains) {
            let numbers = [Some(gain.ratio), gain.interval.map(|i| i.low), gain.interval.map(|i| i.high)];
            let names = [subject, metric, candidate].map(GridCell::from);
            grid.add_row(names.into_iter().chain(numbers.map(GridCell::from)));
        }
    };
    for member in &recap.members {
        add(&member.subject, &member.metric, &member.gains);
    }
    add("geometric mean", "", &recap.overall);
    grid
}

fn gain_notes(recap: &ComparisonRecap) -> Vec<String> {
    let whose = if recap.primary_only { "primary metrics" } else { "metrics" };
    let mut notes = vec![format!(
        "gain: candidate / baseline where more is better, baseline / candidate where less is; {whose} only; its interval is \
         that of the change"
    )];
    if recap.members.is_empty() {
        notes.push("no geometric mean: no metric has a gain on every side".into());
    }
    let left_out = |one: &perflab_analyze::recap::RecapOmission| {
        format!("left out: {}, {} {}", one.subject, one.metric, one.reason)
    };
    notes.extend(recap.left_out.iter().map(left_out));
    notes
}
