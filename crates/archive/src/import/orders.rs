//! `orders`: each name under /sys/kernel/slab with the order of its slabs, `NAME ORDER` a line.
//!
//! The notebook that this file was made for took 0 for a name that is not in it. Here nothing depends on
//! it: `pagesperslab` of slabinfo is 2 to the same power.

use std::path::Path;

use perflab_model::{CellRow, TableCell};

use super::column;
use super::feed::LogStream;
use super::lines::{InputLines, LogLine};
use super::took::{FileReport, LineOutcome};
use crate::ArchiveError;

/// Names of one file at most.
const NAMES: u64 = 100_000;
/// The kernel's own bound is lower (MAX_PAGE_ORDER).
const HIGHEST: i64 = 30;
/// Bytes of a line.
const LONGEST: usize = 1024;

/// The file as rows of `slab-caches`.
pub(crate) fn open_orders(path: &Path, page: u64) -> Result<LogStream, ArchiveError> {
    let mut lines = InputLines::open_optional(path);
    let (mut took, mut rows) = (FileReport::new(path, "slab-caches"), Vec::new());
    while let Some(line) = lines.next_line()? {
        let number = line.number;
        if number > NAMES {
            return Err(ArchiveError::not_importable(
                path,
                Some(number),
                format!("it has more than {NAMES} lines"),
            ));
        }
        if !line.text.trim_ascii().is_empty() {
            let read = parse_orders_line(line, page, &mut rows);
            took.count_row(number, read);
        }
    }
    took.note_early_end(&lines);
    took.ticks = 1;
    Ok(LogStream::from_rows(
        "slab-caches",
        "/sys/kernel/slab/*/order",
        column::slab_cache_columns(),
        rows,
        took,
    ))
}

fn parse_orders_line(line: LogLine<'_>, page: u64, rows: &mut Vec<CellRow>) -> LineOutcome {
    if line.text.len() > LONGEST {
        return LineOutcome::Unusable(format!("it is longer than {LONGEST} bytes"));
    }
    let Some((name, order)) = line.text.trim_ascii_end().rsplit_once([' ', '\t']) else {
        return LineOutcome::Unusable("it is not `NAME ORDER`".into());
    };
    let order = order.parse::<i64>().ok().filter(|order| (0..=HIGHEST).contains(order));
    let Some(order) = order else {
        return LineOutcome::Unusable("its order is no number from 0 to 30".into());
    };
    rows.push(orders_row(name.trim_ascii(), order, page));
    LineOutcome::Used
}

fn orders_row(name: &str, order: i64, page: u64) -> CellRow {
    let cell = |column: &perflab_model::ColumnSpec| match column.name.as_str() {
        "cache" => TableCell::Text(name.into()),
        "directory" if name.starts_with(':') => TableCell::Text(name.into()),
        "flags" => TableCell::Text(String::new()),
        "order" => TableCell::Int(order),
        "page_size" => i64::try_from(page).map_or(TableCell::Missing, TableCell::Int),
        _ => TableCell::Missing,
    };
    column::slab_cache_columns().iter().map(cell).collect()
}
