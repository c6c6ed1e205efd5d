//! Reads the text logs of lkp's monitors as the notebook did: lines after `time:`, words by white space. For tests: the
//! importer of `perflab-archive` is the one that keeps its promises on bad input.

use std::io::Read;
use std::path::Path;

use perflab_model::series::{RowRuns, Series};
use perflab_model::{CellRow, ColumnSpec, Nanos, TableCell};

use super::table::{SLABINFO, int_columns, keyed_columns, make_series};

fn read_gzipped_log(path: &Path) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}

/// Every line with its time.
fn timed_lines(text: &str) -> Vec<(Nanos, &str)> {
    let (mut now, mut found) = (Nanos(0), Vec::new());
    for line in text.lines() {
        match line.strip_prefix("time:") {
            Some(time) => now = Nanos(time.trim().parse::<u64>().unwrap() * 1_000_000_000),
            None => found.push((now, line)),
        }
    }
    found
}

fn int_cell(word: &str) -> TableCell {
    TableCell::Int(word.parse().unwrap())
}

pub fn read_slabinfo_log(path: &Path) -> RowRuns {
    let text = read_gzipped_log(path);
    let is_row = |line: &str| !line.starts_with("slabinfo -") && !line.starts_with('#');
    let row = |line: &str| -> CellRow {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut row = vec![TableCell::Text(words[0].into())];
        row.extend([1, 2, 3, 4, 5, 13, 14].map(|place| int_cell(words[place])));
        row
    };
    let rows = timed_lines(&text).into_iter().filter(|(_, line)| is_row(line));
    RowRuns::from_series(&make_series(
        "slabinfo",
        keyed_columns(&SLABINFO),
        rows.map(|(at, line)| (at, row(line))).collect(),
    ))
}

pub fn read_tool_log(path: &Path) -> Series {
    let text = read_gzipped_log(path);
    let mut columns = keyed_columns(&["objects", "object_size"]);
    columns.push(ColumnSpec::key("space"));
    columns.extend(int_columns(&[
        "slabs",
        "partial",
        "cpu",
        "objs_per_slab",
        "order",
        "free_percent",
        "efficiency_percent",
    ]));
    columns.push(ColumnSpec::key("flags_tool"));
    let row = |line: &str| -> CellRow {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut row = vec![TableCell::Text(words[0].into()), int_cell(words[1]), int_cell(words[2])];
        row.push(TableCell::Text(words[3].into()));
        row.extend(words[4].split('/').map(int_cell));
        row.extend(words[5..9].iter().map(|word| int_cell(word)));
        row.push(TableCell::Text(words.get(9).copied().unwrap_or_default().into()));
        row
    };
    let rows = timed_lines(&text).into_iter().filter(|(_, line)| !line.starts_with("Name "));
    make_series("slabinfo-tool", columns, rows.map(|(at, line)| (at, row(line))).collect())
}

pub fn read_orders_log(path: &Path) -> Series {
    let text = read_gzipped_log(path);
    let row = |line: &str| -> (Nanos, CellRow) {
        let (name, order) = line.split_once(' ').unwrap();
        (Nanos(0), vec![TableCell::Text(name.into()), int_cell(order)])
    };
    make_series("slab-caches", keyed_columns(&["order"]), text.lines().map(row).collect())
}

pub fn read_meminfo_log(path: &Path) -> Series {
    let text = read_gzipped_log(path);
    let names = ["Slab", "SReclaimable", "SUnreclaim"];
    let mut rows: Vec<(Nanos, CellRow)> = Vec::new();
    for (at, line) in timed_lines(&text) {
        let (name, rest) = line.split_once(':').unwrap();
        let Some(place) = names.iter().position(|known| *known == name) else { continue };
        if rows.last().is_none_or(|(last, _)| *last != at) {
            rows.push((at, vec![TableCell::Missing; names.len()]));
        }
        let kib: i64 = rest.split_whitespace().next().unwrap().parse().unwrap();
        rows.last_mut().unwrap().1[place] = TableCell::Int(kib * 1024);
    }
    make_series("meminfo", int_columns(&names), rows)
}
