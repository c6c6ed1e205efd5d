//! `/proc/slabinfo`, version 2: one row a cache of the slab allocator.
//!
//! `objsize` is the padded size of an object, `num_objs` the capacity; SLUB counts objects that are free in a CPU's
//! own slab as active, and reports `active_slabs` equal to `num_slabs` (mm/slub.c, `get_slabinfo`). Slab bytes are
//! `num_slabs * pagesperslab * page size` (fact `memory.page_size`). A name may stand on several rows of a tick,
//! and may hold spaces, so a line is read from its right end.

use perflab_model::{Cell, Row};

use super::column::{Declared, fill};
use super::kind::MonitorKind;
use super::line::{Malformed, lines};

pub(super) const KIND: MonitorKind = MonitorKind {
    name: "slabinfo",
    source: "/proc/slabinfo",
    about: "objects and slabs of every cache of the kernel's slab allocator",
    needs: "root",
    columns: COLUMNS,
    open: |opening| opening.one_file(parse),
};

const COLUMNS: &[Declared] = &[
    Declared::key("cache"),
    Declared::gauge("active_objs", "objects"),
    Declared::gauge("num_objs", "objects"),
    Declared::gauge("objsize", "bytes"),
    Declared::gauge("objperslab", "objects"),
    Declared::gauge("pagesperslab", "pages"),
    Declared::gauge("active_slabs", "slabs"),
    Declared::gauge("num_slabs", "slabs"),
];

const PER_OBJECT: usize = 5;

pub(super) fn parse(text: &str, rows: &mut Vec<Row>) -> Result<(), Malformed> {
    let first = text.lines().next().unwrap_or_default();
    if !first.starts_with("slabinfo - version: 2.") {
        return Err(Malformed::new(1, "`slabinfo - version: 2.`", "the first line", first));
    }
    for (number, line) in lines(text).skip(1).filter(|(_, line)| !line.starts_with('#')) {
        rows.push(cache(number, line)?);
    }
    Ok(())
}

fn cache(number: usize, line: &str) -> Result<Row, Malformed> {
    let parts = line
        .rsplit_once(" : slabdata")
        .and_then(|(left, right)| Some((left.rsplit_once(" : tunables")?.0, right)));
    let strange = || Malformed::new(number, "`NAME n n n n n : tunables … : slabdata`", "a cache", line);
    let (left, slabs) = parts.ok_or_else(strange)?;
    let (name, numbers) = last_words(left, PER_OBJECT).ok_or_else(strange)?;
    let mut row = Row::with_capacity(COLUMNS.len());
    row.push(Cell::Text(name.into()));
    let words = numbers.split_ascii_whitespace().chain(slabs.split_ascii_whitespace());
    fill(&mut row, COLUMNS.get(1..).unwrap_or_default(), words, number)?;
    Ok(row)
}

/// Everything before the last `count` words, and those words; nothing where no name is left.
fn last_words(text: &str, count: usize) -> Option<(&str, &str)> {
    let mut left = text.trim_end();
    for _ in 0..count {
        left = left.rsplit_once(|c: char| c.is_ascii_whitespace())?.0.trim_end();
    }
    (!left.is_empty()).then(|| (left, text.get(left.len()..).unwrap_or_default()))
}
