//! MMTests' tables, column by column as `compare-mmtests.pl` prints them, so that a mail looks as its readers expect.
//!
//! What is not there is `n/a`, and the notes say why.

use perflab_analyze::mmtests::{MmtestsPlainTable, MmtestsRatioTable, MmtestsRow, MmtestsTable};
use perflab_analyze::mmtests_notes::{MmtestsNote, MmtestsOmission};
use perflab_model::Direction;

use crate::grid::{Grid, GridCell, GridColumn, GridError, OutputFormat};
use crate::terminal_text::wrap_text;

/// Width of a value.
const VALUE: usize = 18;

/// Width of a change with its brackets, and of what stands instead in a ratio table's last lines.
const CHANGE: usize = 11;

const FILLER: usize = 17;

/// Where notes are broken.
const TEXT_WIDTH: usize = 100;

/// The main tables; `significance` adds the rows that say which means are marked, and how far apart the bands are.
///
/// # Errors
/// A number that JSON or CSV cannot hold.
pub fn render_mmtests(
    tables: &[MmtestsTable],
    significance: bool,
    format: OutputFormat,
) -> Result<String, GridError> {
    if format == OutputFormat::Table {
        let bodies =
            tables.iter().map(|table| (&table.benchmark, stat_lines(table, significance), &table.notes));
        return Ok(stack_tables(bodies.collect()));
    }
    let titles = ["benchmark", "statistic", "operation", "side", "value", "change_percent", "marked"];
    let mut grid = right_aligned_grid(&titles);
    for table in tables {
        for row in &table.rows {
            for (side, cell) in table.sides.iter().zip(&row.cells) {
                let names = [&table.benchmark, &row.statistic, &row.operation, side]
                    .map(|name| GridCell::from(name.as_str()));
                let value = GridCell::from(cell.map(|cell| cell.value));
                let change = GridCell::from(cell.and_then(|cell| cell.change));
                grid.add_row(names.into_iter().chain([
                    value,
                    change,
                    GridCell::from(cell.is_some_and(|cell| cell.star)),
                ]));
            }
        }
    }
    grid.render(format, None, false)
}

/// The ratio tables.
///
/// # Errors
/// A number that JSON or CSV cannot hold.
pub fn render_mmtests_ratios(
    tables: &[MmtestsRatioTable],
    format: OutputFormat,
) -> Result<String, GridError> {
    if format == OutputFormat::Table {
        let bodies = tables.iter().map(|table| (&table.benchmark, ratio_lines(table), &table.notes));
        return Ok(stack_tables(bodies.collect()));
    }
    let mut grid =
        right_aligned_grid(&["benchmark", "operation", "side", "ratio", "change_percent", "distance"]);
    for table in tables {
        for row in &table.rows {
            for (side, cell) in table.sides.iter().zip(&row.cells) {
                let names =
                    [&table.benchmark, &row.operation, side].map(|name| GridCell::from(name.as_str()));
                let numbers = [cell.map(|c| c.ratio), cell.map(|c| c.change), cell.and_then(|c| c.distance)];
                grid.add_row(names.into_iter().chain(numbers.map(GridCell::from)));
            }
        }
        for (side, mean) in table.sides.iter().zip(&table.geometric) {
            let names = [table.benchmark.as_str(), "Gmean", side].map(GridCell::from);
            grid.add_row(names.into_iter().chain([GridCell::from(*mean)]));
        }
    }
    grid.render(format, None, false)
}

/// Tables without changes: durations and monitors, a table a benchmark.
///
/// # Errors
/// A number that JSON or CSV cannot hold.
pub fn render_mmtests_monitor(
    tables: &[MmtestsPlainTable],
    format: OutputFormat,
) -> Result<String, GridError> {
    if format == OutputFormat::Table {
        let bodies = tables.iter().map(|table| (&table.benchmark, plain_lines(table), &table.notes));
        return Ok(stack_tables(bodies.collect()));
    }
    let mut grid = right_aligned_grid(&["benchmark", "statistic", "operation", "side", "value"]);
    for table in tables {
        for row in &table.rows {
            for (side, value) in table.sides.iter().zip(&row.cells) {
                let names = [&table.benchmark, &row.statistic, &row.operation, side]
                    .map(|name| GridCell::from(name.as_str()));
                grid.add_row(names.into_iter().chain([GridCell::from(*value)]));
            }
        }
    }
    grid.render(format, None, false)
}

fn plain_lines(table: &MmtestsPlainTable) -> Vec<String> {
    let statistic = longest_width(table.rows.iter().map(|row| row.statistic.as_str()));
    let width = statistic + 1 + longest_width(table.rows.iter().map(|row| row.operation.as_str()));
    let mut lines = side_header_lines(&table.sides, width, VALUE);
    for row in &table.rows {
        let text = |value: &Option<f64>| value.map_or("n/a".into(), |value| format!("{value:.2}"));
        let cells = row.cells.iter().map(|value| format!("{:>VALUE$}", text(value)));
        let head = format!("{:<statistic$} {}", row.statistic, row.operation);
        lines.push(format!("{head:<width$}{}", cells.collect::<String>()));
    }
    lines
}

fn right_aligned_grid(titles: &[&str]) -> Grid {
    Grid::new(titles.iter().map(|title| GridColumn::left(title)))
}

/// Tables one below the other; several are distinguished by their names.
fn stack_tables(tables: Vec<(&String, Vec<String>, &Vec<MmtestsNote>)>) -> String {
    let many = tables.len() > 1;
    let mut lines = Vec::new();
    for (name, body, notes) in tables {
        if many {
            lines.extend((!lines.is_empty()).then(String::new));
            lines.push(name.clone());
        }
        lines.extend(body);
        lines.extend((!notes.is_empty()).then(String::new));
        lines.extend(notes.iter().flat_map(|note| {
            wrap_text(&format!("note: {}", describe_mmtests_note(note)), TEXT_WIDTH, "", "  ")
        }));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// As many names are listed in a note.
const MOST_NAMES: usize = 6;

fn list_mmtests_names(names: &[String]) -> String {
    let first = names.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(MOST_NAMES);
    if more > 0 { format!("{first} and {more} more") } else { first }
}

fn direction_word(better: Direction) -> &'static str {
    if better == Direction::Lower { "lower" } else { "higher" }
}

fn describe_mmtests_note(note: &MmtestsNote) -> String {
    match note {
        MmtestsNote::StarMeaning { limit, one_boot } => {
            let limit = format!("{limit:.3}").replace("0.050", "0.05");
            let boots = match one_boot {
                true => "; one boot a side: a star tells these two boots apart, the luck of a boot included",
                false => "",
            };
            format!("* on the row of the mean: more than chance, q of perflab's rank test below {limit}{boots}")
        }
        MmtestsNote::OtherDirection { operations, theirs, benchmark } => format!(
            "{}: MMTests takes {} for better in all of {benchmark}, and would print these changes with the other sign and \
             the other kind of mean",
            list_mmtests_names(operations),
            direction_word(*theirs),
        ),
        MmtestsNote::NoDirection { operations, signs } => format!(
            "{}: no better or worse is known; signs as if {} were better",
            operations.join(", "),
            direction_word(*signs)
        ),
        MmtestsNote::UnreadMetrics { metrics } => format!(
            "{}: left out, as MMTests reads no such metric; shown without --style mmtests",
            list_mmtests_names(metrics)
        ),
        MmtestsNote::PreparedLists { operations } => format!(
            "{}: what another test needed; MMTests pools it with the test of that name",
            list_mmtests_names(operations)
        ),
        MmtestsNote::LostPackets => {
            "udpstream: MMTests prints what was sent for what was received and for what was lost, and of an iteration that \
             lost more than a tenth nothing further"
                .into()
        }
        MmtestsNote::Omission { operations, reason } => {
            format!("{}: {}", list_mmtests_names(operations), describe_omission(reason))
        }
        MmtestsNote::OwnStar { operation, side, distance } => format!(
            "{operation} ({side}): MMTests would not mark it: its bands of ± 1.96 standard deviations touch ({distance:+.2}s), \
             however many samples there are"
        ),
        MmtestsNote::TheirStar { operation, side, distance, values } => format!(
            "{operation} ({side}): MMTests would mark it ({distance:+.2}s); {values} values do not suffice"
        ),
        MmtestsNote::TurnedRatios { operations } => format!(
            "{}: turned round (baseline / candidate), so that all ratios mean the same; MMTests would not",
            operations.join(", ")
        ),
        MmtestsNote::GeomeanWithout { side, members, operations, missing } => format!(
            "{side}: Gmean over {members} of {operations} operations, without {} (no value, or none above zero); MMTests would \
             count each of them as 1.00",
            missing.join(", ")
        ),
        MmtestsNote::MeanDuration { iterations } => {
            format!("the mean of {iterations} iterations; MMTests would print the shortest")
        }
        MmtestsNote::VmstatToolTable => {
            "MMTests prints one column (--sub-heading), counts the first row too, which is of the time since the machine was \
             started, and prints memory in MiB; here it is bytes"
                .into()
        }
        MmtestsNote::IostatTable => {
            "MMTests reads the columns of sysstat before 12: with newer ones it prints w_await for the queue size, among others"
                .into()
        }
        MmtestsNote::MpstatTable => "MMTests prints nothing of mpstat but pictures by node".into(),
        MmtestsNote::PerfTimeStatTable => "MMTests calls the clock of the CPU `msec`".into(),
        MmtestsNote::VmstatTable => {
            "MMTests prints one column (--sub-heading), as growth from reading to reading also where it is a level (nr_…), with \
             a first growth of 0 and without the last reading"
                .into()
        }
    }
}

fn describe_omission(reason: &MmtestsOmission) -> String {
    match reason {
        MmtestsOmission::NoValue { side } => {
            format!("{side} has no value; MMTests would print 0.00 (0.00%) and a ratio of 1.00")
        }
        MmtestsOmission::NoHarmonicMean { side, zeros, values } => format!(
            "{side} has {zeros} of {values} values that are not above zero, so no harmonic mean and no ratio; MMTests would drop \
             the whole column, or take the loss for no change"
        ),
        MmtestsOmission::NoChange { side, zeros, values } => format!(
            "{side} has {zeros} of {values} values that are not above zero, from which there is no change; MMTests would print \
             -99.00% for a zero"
        ),
        MmtestsOmission::OneValue { side } => {
            format!("{side} has one value, so no deviation and no star; MMTests would print a Stddev of 0")
        }
        MmtestsOmission::FailedIterations { side, failed } => {
            format!("{side} lost {failed} iterations that failed; MMTests would not say so")
        }
        MmtestsOmission::BestOnly { values } => {
            format!("the mean of {values} values; MMTests would print one of them, the first in its order")
        }
    }
}

fn stat_lines(table: &MmtestsTable, significance: bool) -> Vec<String> {
    let statistic = longest_width(table.rows.iter().map(|row| row.statistic.as_str()));
    let operation = longest_width(table.rows.iter().map(|row| row.operation.as_str()));
    let line = |row: &MmtestsRow| {
        let head = format!("{:<statistic$} {:<operation$}", row.statistic, row.operation);
        let cells = row.cells.iter().map(|cell| match cell {
            Some(cell) => {
                let value = cell.value;
                let decimals = table.decimals;
                format!("{value:VALUE$.decimals$}{}", mmtests_change_text(cell.change, cell.star))
            }
            None => format!("{:>VALUE$}{}", "n/a", mmtests_change_text(None, false)),
        });
        head + &cells.collect::<String>()
    };
    let mut lines = side_header_lines(&table.sides, statistic + 1 + operation, VALUE + CHANGE);
    lines.extend(table.rows.iter().map(line));
    if significance {
        lines.extend(table.significant.iter().map(|row| line(row) + &" ".repeat(VALUE)));
    }
    lines
}

/// ` (  12.50%)`, or ` *  12.50%*` where it is marked.
fn mmtests_change_text(change: Option<f64>, star: bool) -> String {
    let text = change.map_or_else(|| "    n/a ".into(), |change| format!("{change:7.2}%"));
    if star { format!(" *{text}*") } else { format!(" ({text})") }
}

fn ratio_lines(table: &MmtestsRatioTable) -> Vec<String> {
    let width = "Ratio ".len() + longest_width(table.rows.iter().map(|row| row.operation.as_str()));
    let decimals = table.decimals;
    let mut lines = side_header_lines(&table.sides, width, VALUE + CHANGE);
    for row in &table.rows {
        let cells = row.cells.iter().map(|cell| match cell {
            Some(cell) => {
                let distance = cell.distance.map_or_else(|| "n/a".into(), |s| format!("{s:+.2}s"));
                format!("{:VALUE$.decimals$} ({:.2}%) ({distance})", cell.ratio, cell.change)
            }
            None => format!("{:>VALUE$} (n/a) (n/a)", "n/a"),
        });
        lines.push(format!("{:<width$}{}", format!("Ratio {}", row.operation), cells.collect::<String>()));
    }
    let summary = |title: &str, values: Vec<Option<f64>>| {
        let cell = |value: Option<f64>| {
            let text = value.map_or_else(|| "n/a".into(), |value| format!("{value:.decimals$}"));
            format!("{text:>VALUE$}{}", " ".repeat(FILLER))
        };
        let title = format!("{title} {}", table.direction);
        format!("{title:<width$}{}", values.into_iter().map(cell).collect::<String>())
    };
    for (index, title) in ["Dmean", "Dmin ", "Dmax "].into_iter().enumerate() {
        let values = table.distances.iter().map(|all| all.and_then(|all| all.get(index).copied()));
        lines.push(summary(title, values.collect()));
    }
    lines.push(summary("Gmean", table.geometric.clone()));
    lines
}

/// The names of the sides on two lines.
fn side_header_lines(sides: &[String], width: usize, column: usize) -> Vec<String> {
    let names: Vec<(&str, &str)> = sides.iter().map(|side| split_side_name(side)).collect();
    let line = |part: fn(&(&str, &str)) -> String| {
        let cells = names.iter().map(|pair| format!("{:>column$}", part(pair)));
        format!("{:width$}{}", "", cells.collect::<String>())
    };
    vec![line(|pair| pair.0.into()), line(|pair| pair.1.into())]
}

/// `5.6.0-rc3-patched` is 5.6.0-rc3 and patched.
fn split_side_name(name: &str) -> (&str, &str) {
    let Some(first) = name.find('-') else { return (name, "") };
    let rest = name.get(first + 1..).unwrap_or_default();
    let is_candidate =
        rest.strip_prefix("rc").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let end = if is_candidate { rest.find('-').map_or(name.len(), |at| first + 1 + at) } else { first };
    (name.get(..end).unwrap_or(name), name.get(end + 1..).unwrap_or_default())
}

fn longest_width<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}
