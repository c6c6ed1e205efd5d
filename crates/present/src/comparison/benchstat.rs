//! The tables of benchstat, with times in seconds with a prefix, as benchstat has them.

use perflab_analyze::benchstat::{BenchstatDelta, BenchstatMedian, BenchstatNote, BenchstatTable};

use crate::grid::{ColumnAlign, Grid, GridCell, GridColumn, GridError, OutputFormat};

const PREFIXES: [(f64, &str); 9] = [
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "µ"),
    (1e-9, "n"),
    (1e-12, "p"),
];

/// Seconds in units of time.
const TIMES: [(&str, f64); 5] = [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];

/// The tables, one a unit.
///
/// # Errors
/// A number that JSON or CSV cannot hold.
pub fn render_benchstat(tables: &[BenchstatTable], format: OutputFormat) -> Result<String, GridError> {
    let mut text = String::new();
    for table in tables {
        if !text.is_empty() {
            text.push('\n');
        }
        text += &benchstat_grid(table).render(format, None, false)?;
        if format == OutputFormat::Table {
            text.extend(
                benchstat_footnotes(table)
                    .into_iter()
                    .chain(table.notes.iter().map(describe_benchstat_note))
                    .map(|note| note + "\n"),
            );
        }
    }
    Ok(text)
}

/// The unit as benchstat writes it, and how many of it one of ours is.
fn benchstat_unit(unit: &str) -> (String, f64) {
    let (base, per) =
        unit.split_once('/').map_or((unit, String::new()), |(base, per)| (base, format!("/{per}")));
    match TIMES.iter().find(|(name, _)| *name == base) {
        Some((_, seconds)) => (format!("sec{per}"), *seconds),
        None => (unit.to_owned(), 1.0),
    }
}

fn benchstat_grid(table: &BenchstatTable) -> Grid {
    let (unit, scale) = benchstat_unit(&table.unit);
    let title = |name: String| GridColumn { title: name, align: ColumnAlign::Left };
    let mut columns = vec![title(String::new())];
    for (at, side) in table.sides.iter().enumerate() {
        columns.push(title(format!("{side} {unit}")));
        columns.extend((at > 0).then(|| title(format!("{side} vs base"))));
    }
    let mut grid = Grid::new(columns);
    for row in &table.rows {
        let mut cells = vec![GridCell::from(row.name.as_str())];
        for (at, centre) in row.cells.iter().enumerate() {
            cells.push(centre.map_or_else(GridCell::missing, |centre| centre_cell(centre, scale)));
            let change = at.checked_sub(1).map(|at| row.changes.get(at).copied().flatten());
            cells.extend(change.map(|change| change.map_or_else(GridCell::missing, delta_cell)));
        }
        grid.add_row(cells);
    }
    let mut cells = vec![GridCell::from("geomean")];
    let base = table.geometric.first().copied().flatten();
    for (at, mean) in table.geometric.iter().enumerate() {
        cells.push(mean.map_or_else(GridCell::missing, |mean| {
            GridCell::with_text(benchstat_number(mean * scale), mean)
        }));
        let change = base.zip(*mean).map(|(base, mean)| mean / base - 1.0);
        let text = |change: f64| GridCell::with_text(format!("{:+.2}%", change * 100.0), change);
        cells.extend((at > 0).then(|| change.map_or_else(GridCell::missing, text)));
    }
    grid.add_row(cells);
    grid
}

/// `13.46µ ± 2%`
fn centre_cell(centre: BenchstatMedian, scale: f64) -> GridCell {
    let width = match centre.width {
        Some(width) => format!("{:.0}%", width * 100.0),
        None => "∞ ¹".into(),
    };
    GridCell::with_text(format!("{} ± {width}", benchstat_number(centre.median * scale)), centre.median)
}

/// `-13.04% (p=0.000 n=10)`
fn delta_cell(delta: BenchstatDelta) -> GridCell {
    let n =
        if delta.n.0 == delta.n.1 { delta.n.0.to_string() } else { format!("{}+{}", delta.n.0, delta.n.1) };
    let change = delta.change.map_or("~".into(), |change| format!("{:+.2}%", change * 100.0));
    let mark = if delta.all_equal {
        " ³"
    } else if delta.n.0.min(delta.n.1) < 4 {
        " ²"
    } else {
        ""
    };
    GridCell::with_text(format!("{change} (p={:.3} n={n}){mark}", delta.p), delta.change)
}

fn describe_benchstat_note(note: &BenchstatNote) -> String {
    match note {
        BenchstatNote::GeomeanWithout { rows } => {
            format!("geomean: without {} (no median above zero on every side)", rows.join(", "))
        }
        BenchstatNote::OneBoot => {
            "one boot a side: perflab's own verdict would be unclear, the luck of a boot looks like a change"
                .into()
        }
    }
}

fn benchstat_footnotes(table: &BenchstatTable) -> Vec<String> {
    let cells = || table.rows.iter().flat_map(|row| row.cells.iter().flatten());
    let changes = || table.rows.iter().flat_map(|row| row.changes.iter().flatten());
    let few = cells().any(|cell| cell.width.is_none());
    let fewer = changes().any(|delta| !delta.all_equal && delta.n.0.min(delta.n.1) < 4);
    let equal = changes().any(|delta| delta.all_equal);
    let notes = [
        few.then_some("¹ need >= 6 samples for confidence interval at level 0.95"),
        fewer.then_some("² need >= 4 samples to detect a difference at alpha level 0.05"),
        equal.then_some("³ all samples are equal"),
    ];
    notes.into_iter().flatten().map(str::to_owned).collect()
}

/// Four digits and a prefix: `13.46µ`.
fn benchstat_number(value: f64) -> String {
    let size = value.abs();
    let fitting = PREFIXES.iter().find(|(factor, _)| size >= *factor * 0.99995);
    let (factor, prefix) = fitting.copied().unwrap_or((1.0, ""));
    let scaled = value / factor;
    let decimals = match scaled.abs() {
        x if x >= 999.95 => 0,
        x if x >= 99.995 => 1,
        x if x >= 9.9995 => 2,
        _ => 3,
    };
    format!("{scaled:.decimals$}{prefix}")
}
