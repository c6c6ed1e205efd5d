//! The tables of `lkp compare`.

use perflab_analyze::lkp::{LkpNote, LkpRow, LkpTable};

use crate::grid::{Grid, GridCell, GridColumn, GridError, OutputFormat};
use crate::terminal_text::wrap_text;

const TEXT_WIDTH: usize = 100;

/// Means from here on have no decimals,
const LARGE: f64 = 1e3;

/// below this are printed with an exponent,
const SMALL: f64 = 1e-4;

/// and above this are printed with an exponent.
const LARGEST: f64 = 1e8;

/// Changes from here on, in percent, are printed with an exponent.
const LARGE_CHANGE: f64 = 1e5;

/// Deviations up to this, in percent, are left out.
const SMALL_SPREAD: f64 = 2.0;

/// The tables, one a candidate.
///
/// # Errors
/// A number that JSON or CSV cannot hold.
pub fn render_lkp(tables: &[LkpTable], format: OutputFormat) -> Result<String, GridError> {
    if format != OutputFormat::Table {
        return lkp_grid(tables).render(format, None, false);
    }
    let mut lines = Vec::new();
    for table in tables {
        lines.extend((!lines.is_empty()).then(String::new));
        lines.push(format!("{:>16} {:>27}", table.baseline, table.candidate));
        lines.push(format!("{} {}", "-".repeat(16), "-".repeat(27)));
        lines.push("         %stddev     %change         %stddev".into());
        lines.push("             \\          |                \\".into());
        lines.extend(table.rows.iter().map(lkp_row_line));
        lines.push(String::new());
        if table.left_out > 0 {
            lines.push(format!("rows that did not change, left out: {}", table.left_out));
        }
        lines.extend(
            table.notes.iter().flat_map(|note| {
                wrap_text(&format!("note: {}", describe_lkp_note(note)), TEXT_WIDTH, "", "  ")
            }),
        );
    }
    Ok(lines.into_iter().map(|line| line.trim_end().to_owned() + "\n").collect())
}

fn describe_lkp_note(note: &LkpNote) -> String {
    match note {
        LkpNote::ListedRows { limit } => format!(
            "listed: primary metrics, and whatever perflab's rank test sees changed (q below {:.2})",
            (limit * 100.0).round() / 100.0
        ),
        LkpNote::OverlappingRanges { rows } => format!(
            "{}: lkp would not list it: the ranges of both sides overlap too far, as they do with many samples",
            list_lkp_rows(rows)
        ),
        LkpNote::ZeroMeans { rows } => format!(
            "{}: its mean was 0; lkp would divide by 1e-100 and print 1e+102 % or more",
            list_lkp_rows(rows)
        ),
        LkpNote::SeparateRanges { rows } => format!(
            "{}: lkp would list it: the ranges do not overlap, which few samples do by chance",
            list_lkp_rows(rows)
        ),
    }
}

/// As many rows are listed in a note.
const MOST_ROWS: usize = 5;

fn list_lkp_rows(rows: &[String]) -> String {
    let first = rows.iter().take(MOST_ROWS).cloned().collect::<Vec<_>>().join(", ");
    let rest = rows.len().saturating_sub(MOST_ROWS);
    if rest > 0 { format!("{first} and {rest} more") } else { first }
}

fn lkp_row_line(row: &LkpRow) -> String {
    let change = match (row.change, row.baseline.zip(row.candidate)) {
        (Some(change), _) if row.absolute => format!("{change:+.1} "),
        (Some(change), _) if change.abs() >= LARGE_CHANGE => format!("{}%", lkp_exponent(change, 1, "+")),
        (Some(change), _) => format!("{change:+.1}%"),
        (None, Some(_)) => "n/a ".into(),
        (None, None) => "missing ".into(),
    };
    format!(
        "{}{change:>11} {}  {}",
        lkp_side_text(row.baseline, row.has_unit),
        lkp_side_text(row.candidate, row.has_unit),
        row.name
    )
}

/// `     14567 ±  3%`, the deviation cut to a whole number and left out up to 2 %, as lkp does.
fn lkp_side_text(side: Option<(f64, Option<f64>)>, has_unit: bool) -> String {
    let Some((mean, spread)) = side else { return format!("{:>10}{:6}", "n/a", "") };
    let spread = spread.filter(|spread| *spread > SMALL_SPREAD);
    let spread = spread.map_or("      ".into(), |spread| format!(" ±{:3.0}%", spread.floor()));
    format!("{:>10}{spread}", lkp_number(mean, has_unit))
}

/// A mean as lkp prints it: two decimals, above 1,000 none (what stands behind the point is cut off), above 10⁸ four digits.
/// Of what has a unit, which lkp's statistics have not, four digits below 1, too: times in seconds would be `0.00`.
fn lkp_number(mean: f64, has_unit: bool) -> String {
    match mean.abs() {
        0.0 => "0.00".into(),
        ..SMALL if has_unit => lkp_exponent(mean, 3, ""),
        size @ ..1.0 if has_unit => format!("{mean:.*}", (3.0 - size.log10().floor()) as usize),
        ..LARGE => format!("{mean:.2}"),
        ..=LARGEST => format!("{:.0}", mean.floor()),
        _ => lkp_exponent(mean, 3, ""),
    }
}

/// `1.235e+08`: zeros at the end of the digits are left out.
fn lkp_exponent(number: f64, decimals: usize, sign: &str) -> String {
    let text =
        if sign.is_empty() { format!("{number:.decimals$e}") } else { format!("{number:+.decimals$e}") };
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
    format!("{digits}e{sign}{power:0>2}")
}

fn lkp_grid(tables: &[LkpTable]) -> Grid {
    let titles =
        ["metric", "baseline", "candidate", "mean_baseline", "stddev_baseline_percent", "change_percent"];
    let titles = titles.into_iter().chain(["mean_candidate", "stddev_candidate_percent", "changed"]);
    let mut grid = Grid::new(titles.map(GridColumn::left));
    for (table, row) in tables.iter().flat_map(|table| table.rows.iter().map(move |row| (table, row))) {
        let names = [&row.name, &table.baseline, &table.candidate].map(|name| GridCell::from(name.as_str()));
        let spread = |side: Option<(f64, Option<f64>)>| GridCell::from(side.and_then(|side| side.1));
        let mean = |side: Option<(f64, Option<f64>)>| GridCell::from(side.map(|side| side.0));
        let numbers =
            [mean(row.baseline), spread(row.baseline), GridCell::from(row.change), mean(row.candidate)];
        grid.add_row(
            names.into_iter().chain(numbers).chain([spread(row.candidate), GridCell::from(row.changed)]),
        );
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::lkp_number;

    #[test]
    fn small_times_have_digits_and_lkps_own_figures_are_lkps() {
        assert_eq!(["0.02134", "1.2e-06"], [0.021_34, 1.2e-6].map(|mean| lkp_number(mean, true)));
        assert_eq!(
            ["0.02", "0.00", "12.35"],
            [0.021_34, 1.2e-6, 12.345_6].map(|mean| lkp_number(mean, false))
        );
        assert_eq!(["0.5000", "12.35", "0.00"], [0.5, 12.345_6, 0.0].map(|mean| lkp_number(mean, true)));
    }
}
