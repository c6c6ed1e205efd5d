//! What kernels printed on one side of a comparison only, below its verdicts.

use perflab_analyze::{Comparison, KernelLogComparison, KernelLogCount, KernelLogRow};
use perflab_model::quantity::format_probability;

use crate::grid::{Grid, GridCell, GridColumn};

/// More lines than these are counted, not shown; JSON has all.
const MOST_LINES: usize = 12;

/// Letters of a line at most.
const LONGEST_LINE: usize = 72;

/// The heading, a table, and what to be careful about; nothing where nobody printed anything worth telling.
pub(crate) struct KernelLogTable {
    pub(crate) heading: String,
    pub(crate) grid: Grid,
    pub(crate) notes: Vec<String>,
}

impl KernelLogTable {
    /// The table of a comparison.
    pub(crate) fn new(comparison: &Comparison) -> Option<Self> {
        let found = comparison.kernel_log.as_ref().filter(|found| !found.is_empty())?;
        let mut grid = Grid::new(kernel_log_columns(found));
        let shared = found.troubles.iter().filter(|row| !row.is_one_sided());
        let lines = found.lines.iter().filter(|row| !row.is_dump || row.trouble.is_some());
        let mut rows: Vec<&KernelLogRow> = lines.chain(shared).collect();
        let left_out = found.lines.len().saturating_sub(rows.len().min(MOST_LINES));
        rows.truncate(MOST_LINES);
        for row in rows {
            let trouble = row.trouble.map(|trouble| trouble.to_string()).unwrap_or_default();
            let counts = row.sides.iter().map(count_cell);
            let p = row.p.iter().map(|p| match p {
                Some(p) => GridCell::with_text(format_probability(*p), *p),
                None => GridCell::missing(),
            });
            let head = [trouble.into(), shorten_line(&row.line).into()];
            grid.add_row(head.into_iter().chain(counts).chain(p));
        }
        let mut notes = Vec::new();
        if left_out > 0 {
            notes.push(format!("{left_out} further lines of the kernel's log, most of them of dumps, are on one side only: --format json has all"));
        }
        if !found.unread.is_empty() {
            notes.push(format!(
                "runs of {} did not keep the kernel's log, or could not read it: what is missing there may have been printed",
                found.unread.join(", ")
            ));
        }
        notes.push(
            "kernel log: measured iterations in which the line came, numbers and addresses left out (N, X); + lines between iterations; p: \
             Fisher's exact test of as many iterations with it as in the baseline"
                .into(),
        );
        let heading =
            format!("kernel log: what {} and {} do not share", found.sides.first()?, rest_of_sides(found));
        Some(KernelLogTable { heading, grid, notes })
    }
}

fn rest_of_sides(found: &KernelLogComparison) -> String {
    found.sides.iter().skip(1).cloned().collect::<Vec<_>>().join(", ")
}

fn kernel_log_columns(found: &KernelLogComparison) -> Vec<GridColumn> {
    let mut columns = ["trouble", "line"].map(GridColumn::left).to_vec();
    columns.extend(found.sides.iter().map(|side| GridColumn::right(side)));
    let several = found.sides.len() > 2;
    let p = found.sides.iter().skip(1).map(|side| if several { format!("p {side}") } else { "p".into() });
    columns.extend(p.map(|title| GridColumn::right(&title)));
    columns
}

fn count_cell(count: &KernelLogCount) -> GridCell {
    let elsewhere = if count.elsewhere > 0 { format!(" +{}", count.elsewhere) } else { String::new() };
    GridCell::with_text(format!("{} of {}{elsewhere}", count.iterations, count.of), count.iterations as u64)
}

fn shorten_line(line: &str) -> String {
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}
