//! The tables of benchstat, with times in seconds with a prefix, as benchstat has them.

use perflab_analyze::benchstat::{
    BenchstatDelta, BenchstatMedian, BenchstatNote, BenchstatTable, BenchstatWidth,
};
use perflab_model::go_unit::{is_binary_unit, tidy_unit};

use crate::grid::{ColumnAlign, Grid, GridCell, GridColumn, GridError, OutputFormat};

/// Factors with their prefixes, the largest first: of the metric system, and of bytes.
const DECIMAL: &[(f64, &str)] =
    &[(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")];

const BINARY: &[(f64, &str)] =
    &[(1_099_511_627_776.0, "Ti"), (1_073_741_824.0, "Gi"), (1_048_576.0, "Mi"), (1024.0, "Ki"), (1.0, "")];

/// Digits behind the point at most.
const MOST_DECIMALS: usize = 10;

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
        None => tidy_unit(unit),
    }
}

/// How the values of a row are written: by one factor, with one prefix and as many digits.
#[derive(Debug, Clone, Copy)]
struct BenchstatScale {
    factor: f64,
    prefix: &'static str,
    decimals: usize,
}

impl BenchstatScale {
    /// At least four digits of the value closest to zero. Bytes have no prefix below one, and values from 1000 to 1023 the
    /// smaller one.
    fn of_values(values: impl Iterator<Item = f64>, binary: bool) -> Self {
        let least = values.map(f64::abs).filter(|value| *value > 0.0).reduce(f64::min);
        let Some(least) = least else { return BenchstatScale { factor: 1.0, prefix: "", decimals: 3 } };
        let prefixes = if binary { BINARY } else { DECIMAL };
        let fitting = prefixes.iter().find(|(factor, _)| least / factor >= 0.999_95).or(prefixes.last());
        let (factor, prefix) = fitting.copied().unwrap_or((1.0, ""));
        let scaled = least / factor;
        let decimals = match scaled {
            x if x >= 99.995 => 1,
            x if x >= 9.9995 => 2,
            x if x >= 0.999_95 => 3,
            x => (3..MOST_DECIMALS)
                .find(|decimals| x >= 9.9995 * 10_f64.powi(2 - *decimals as i32))
                .unwrap_or(MOST_DECIMALS),
        };
        BenchstatScale { factor, prefix, decimals }
    }

    /// `13.46µ`
    fn format(self, value: f64) -> String {
        format!("{:.*}{}", self.decimals, value / self.factor, self.prefix)
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
    let binary = is_binary_unit(&unit);
    for row in &table.rows {
        let centres = row.cells.iter().flatten().map(|cell| cell.median * scale);
        let printed = BenchstatScale::of_values(centres, binary);
        let mut cells = vec![GridCell::from(row.name.as_str())];
        for (at, centre) in row.cells.iter().enumerate() {
            cells.push(centre.map_or_else(GridCell::missing, |centre| centre_cell(centre, scale, printed)));
            let change = at.checked_sub(1).map(|at| row.changes.get(at).copied().flatten());
            cells.extend(change.map(|change| change.map_or_else(GridCell::missing, delta_cell)));
        }
        grid.add_row(cells);
    }
    let mut cells = vec![GridCell::from("geomean")];
    let base = table.geometric.first().copied().flatten();
    let means = table.geometric.iter().flatten().map(|mean| mean * scale);
    let printed = BenchstatScale::of_values(means, binary);
    for (at, mean) in table.geometric.iter().enumerate() {
        cells.push(
            mean.map_or_else(GridCell::missing, |mean| {
                GridCell::with_text(printed.format(mean * scale), mean)
            }),
        );
        let change = base.zip(*mean).map(|(base, mean)| mean / base - 1.0);
        let text = |change: f64| GridCell::with_text(format!("{:+.2}%", change * 100.0), change);
        cells.extend((at > 0).then(|| change.map_or_else(GridCell::missing, text)));
    }
    grid.add_row(cells);
    grid
}

/// `13.46µ ± 2%`
fn centre_cell(centre: BenchstatMedian, scale: f64, printed: BenchstatScale) -> GridCell {
    let width = match centre.width {
        BenchstatWidth::Share(width) => format!("{:.0}%", width * 100.0),
        BenchstatWidth::OtherSign => "?".into(),
        BenchstatWidth::Unbounded => "∞ ¹".into(),
    };
    let width = if centre.differing.is_some() { width + " ⁴" } else { width };
    GridCell::with_text(format!("{} ± {width}", printed.format(centre.median * scale)), centre.median)
}

/// `-13.04% (p=0.000 n=10)`
fn delta_cell(delta: BenchstatDelta) -> GridCell {
    let n =
        if delta.n.0 == delta.n.1 { delta.n.0.to_string() } else { format!("{}+{}", delta.n.0, delta.n.1) };
    let percent = |change: f64| match change == 0.0 {
        true => "0.00%".into(),
        false => format!("{:+.2}%", change * 100.0),
    };
    let unknown = if delta.is_significant { "?" } else { "~" };
    let change = delta.change.map_or(unknown.into(), percent);
    if delta.exact {
        return GridCell::with_text(format!("{change} (n={n})"), delta.change);
    }
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
    let few = cells().any(|cell| cell.width == BenchstatWidth::Unbounded);
    let fewer = changes().any(|delta| !delta.exact && !delta.all_equal && delta.n.0.min(delta.n.1) < 4);
    let equal = changes().any(|delta| delta.all_equal);
    let notes = [
        few.then_some("¹ need >= 6 samples for confidence interval at level 0.95"),
        fewer.then_some("² need >= 4 samples to detect a difference at alpha level 0.05"),
        equal.then_some("³ all samples are equal"),
    ];
    let differing = cells().filter_map(|cell| cell.differing).map(|(least, most)| {
        format!("⁴ exact distribution expected, but values range from {least} to {most}")
    });
    notes.into_iter().flatten().map(str::to_owned).chain(differing).collect()
}
