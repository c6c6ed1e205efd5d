//! `orders`: each name under /sys/kernel/slab with the order of its slabs, `NAME ORDER` a line.
//!
//! The notebook that this file was made for took 0 for a name that is not in it. Here nothing depends on
//! it: `pagesperslab` of slabinfo is 2 to the same power.

use std::path::Path;

use perflab_model::{Cell, Row};

use super::column;
use super::feed::Feed;
use super::lines::{Line, Lines};
use super::took::{Read, Took};
use crate::ArchiveError;

/// Names of one file at most.
const NAMES: u64 = 100_000;
/// The kernel's own bound is lower (MAX_PAGE_ORDER).
const HIGHEST: i64 = 30;
/// Bytes of a line.
const LONGEST: usize = 1024;

/// The file as rows of `slab-caches`.
pub(crate) fn open(path: &Path, page: u64) -> Result<Feed, ArchiveError> {
    let mut lines = Lines::among(path);
    let (mut took, mut rows) = (Took::of(path, "slab-caches"), Vec::new());
    while let Some(line) = lines.next()? {
        let number = line.number;
        if number > NAMES {
            return Err(ArchiveError::foreign(path, Some(number), format!("it has more than {NAMES} lines")));
        }
        if !line.text.trim_ascii().is_empty() {
            let read = take(line, page, &mut rows);
            took.count(number, read);
        }
    }
    took.ended(&lines);
    took.ticks = 1;
    Ok(Feed::fixed("slab-caches", "/sys/kernel/slab/*/order", column::slab_caches(), rows, took))
}

fn take(line: Line<'_>, page: u64, rows: &mut Vec<Row>) -> Read {
    if line.text.len() > LONGEST {
        return Read::Unusable(format!("it is longer than {LONGEST} bytes"));
    }
    let Some((name, order)) = line.text.trim_ascii_end().rsplit_once([' ', '\t']) else {
        return Read::Unusable("it is not `NAME ORDER`".into());
    };
    let order = order.parse::<i64>().ok().filter(|order| (0..=HIGHEST).contains(order));
    let Some(order) = order else { return Read::Unusable("its order is no number from 0 to 30".into()) };
    rows.push(row(name.trim_ascii(), order, page));
    Read::Used
}

fn row(name: &str, order: i64, page: u64) -> Row {
    let cell = |column: &perflab_model::Column| match column.name.as_str() {
        "cache" => Cell::Text(name.into()),
        "directory" if name.starts_with(':') => Cell::Text(name.into()),
        "flags" => Cell::Text(String::new()),
        "order" => Cell::Int(order),
        "page_size" => i64::try_from(page).map_or(Cell::Missing, Cell::Int),
        _ => Cell::Missing,
    };
    column::slab_caches().iter().map(cell).collect()
}
