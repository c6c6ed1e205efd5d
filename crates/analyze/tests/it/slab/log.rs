//! Reads the text logs of lkp's monitors as the notebook did: lines after `time:`, words by white space. For tests: the
//! importer of `perflab-archive` is the one that keeps its promises on bad input.

use std::io::Read;
use std::path::Path;

use perflab_model::series::{Series, Spans};
use perflab_model::{Cell, Column, Nanos, Row};

use super::table::{SLABINFO, ints, keyed, series};

fn text(path: &Path) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}

/// Every line with its time.
fn lines(text: &str) -> Vec<(Nanos, &str)> {
    let (mut now, mut found) = (Nanos(0), Vec::new());
    for line in text.lines() {
        match line.strip_prefix("time:") {
            Some(time) => now = Nanos(time.trim().parse::<u64>().unwrap() * 1_000_000_000),
            None => found.push((now, line)),
        }
    }
    found
}

fn number(word: &str) -> Cell {
    Cell::Int(word.parse().unwrap())
}

pub fn slabinfo(path: &Path) -> Spans {
    let text = text(path);
    let is_row = |line: &str| !line.starts_with("slabinfo -") && !line.starts_with('#');
    let row = |line: &str| -> Row {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut row = vec![Cell::Text(words[0].into())];
        row.extend([1, 2, 3, 4, 5, 13, 14].map(|place| number(words[place])));
        row
    };
    let rows = lines(&text).into_iter().filter(|(_, line)| is_row(line));
    Spans::of(&series("slabinfo", keyed(&SLABINFO), rows.map(|(at, line)| (at, row(line))).collect()))
}

pub fn tool(path: &Path) -> Series {
    let text = text(path);
    let mut columns = keyed(&["objects", "object_size"]);
    columns.push(Column::key("space"));
    columns.extend(ints(&[
        "slabs",
        "partial",
        "cpu",
        "objs_per_slab",
        "order",
        "free_percent",
        "efficiency_percent",
    ]));
    columns.push(Column::key("flags_tool"));
    let row = |line: &str| -> Row {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut row = vec![Cell::Text(words[0].into()), number(words[1]), number(words[2])];
        row.push(Cell::Text(words[3].into()));
        row.extend(words[4].split('/').map(number));
        row.extend(words[5..9].iter().map(|word| number(word)));
        row.push(Cell::Text(words.get(9).copied().unwrap_or_default().into()));
        row
    };
    let rows = lines(&text).into_iter().filter(|(_, line)| !line.starts_with("Name "));
    series("slabinfo-tool", columns, rows.map(|(at, line)| (at, row(line))).collect())
}

pub fn orders(path: &Path) -> Series {
    let text = text(path);
    let row = |line: &str| -> (Nanos, Row) {
        let (name, order) = line.split_once(' ').unwrap();
        (Nanos(0), vec![Cell::Text(name.into()), number(order)])
    };
    series("slab-caches", keyed(&["order"]), text.lines().map(row).collect())
}

pub fn meminfo(path: &Path) -> Series {
    let text = text(path);
    let names = ["Slab", "SReclaimable", "SUnreclaim"];
    let mut rows: Vec<(Nanos, Row)> = Vec::new();
    for (at, line) in lines(&text) {
        let (name, rest) = line.split_once(':').unwrap();
        let Some(place) = names.iter().position(|known| *known == name) else { continue };
        if rows.last().is_none_or(|(last, _)| *last != at) {
            rows.push((at, vec![Cell::Missing; names.len()]));
        }
        let kib: i64 = rest.split_whitespace().next().unwrap().parse().unwrap();
        rows.last_mut().unwrap().1[place] = Cell::Int(kib * 1024);
    }
    series("meminfo", ints(&names), rows)
}
