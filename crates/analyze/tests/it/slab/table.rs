//! Makes series for tests, as monitors and importers do: columns by name, one row a line.

use perflab_analyze::slab::{Input, Recording, System};
use perflab_model::series::{ColumnData, ColumnType, Series, Spans};
use perflab_model::{Cell, Column, Nanos, Row, SeriesSchema};

pub fn series(monitor: &str, columns: Vec<Column>, rows: Vec<(Nanos, Row)>) -> Series {
    let column = |number: usize, column: &Column| {
        let cells = rows.iter().map(|(_, row)| &row[number]);
        match column.stored {
            ColumnType::Int => ColumnData::Int(cells.map(int).collect()),
            ColumnType::Float => unreachable!("no float among slab columns"),
            ColumnType::Text => ColumnData::Text(cells.map(text).collect()),
        }
    };
    let data = columns.iter().enumerate().map(|(number, c)| column(number, c)).collect();
    let schema = SeriesSchema { monitor: monitor.into(), source: "test".into(), interval: Nanos(0), columns };
    Series { schema, at: rows.iter().map(|(at, _)| *at).collect(), columns: data }
}

fn int(cell: &Cell) -> Option<i64> {
    if let Cell::Int(value) = cell { Some(*value) } else { None }
}

fn text(cell: &Cell) -> Option<String> {
    if let Cell::Text(value) = cell { Some(value.clone()) } else { None }
}

pub fn ints(names: &[&str]) -> Vec<Column> {
    names.iter().map(|name| Column::gauge(name, "1")).collect()
}

pub fn keyed(names: &[&str]) -> Vec<Column> {
    std::iter::once(Column::key("cache")).chain(ints(names)).collect()
}

pub const SLABINFO: [&str; 7] =
    ["active_objs", "num_objs", "objsize", "objperslab", "pagesperslab", "active_slabs", "num_slabs"];

/// `(second, cache, active, total, objsize, objperslab, pagesperslab, slabs)`
pub type Line<'a> = (u64, &'a str, i64, i64, i64, i64, i64, i64);

pub fn slabinfo(lines: &[Line]) -> Spans {
    flagged(&lines.iter().map(|line| (*line, "")).collect::<Vec<_>>())
}

pub fn flagged(lines: &[(Line, &str)]) -> Spans {
    let mut columns = keyed(&SLABINFO);
    columns.push(Column::key("flags"));
    let row = |((second, name, active, total, size, objs, pages, slabs), flags): &(Line, &str)| {
        let numbers = [active, total, size, objs, pages, slabs, slabs].map(|number| Cell::Int(*number));
        let mut row = vec![Cell::Text((*name).into())];
        row.extend(numbers);
        row.push(Cell::Text((*flags).into()));
        (Nanos(second * 1_000_000_000), row)
    };
    Spans::of(&series("slabinfo", columns, lines.iter().map(row).collect()))
}

/// `(second, cache, object_size, slab_size, reclaimable, members)`; 0 for an attribute that the kernel did not give.
pub type Scan<'a> = (u64, &'a str, i64, i64, Option<i64>, &'a str);

pub fn caches(page_size: i64, scans: &[Scan]) -> Series {
    let mut columns = keyed(&["object_size", "slab_size", "page_size", "reclaim_account", "cpu_partial"]);
    columns.push(Column::key("aliases"));
    let known = |value: i64| if value == 0 { Cell::Missing } else { Cell::Int(value) };
    let row = |(second, name, object, slab, reclaim, members): &Scan| {
        let reclaim = reclaim.map_or(Cell::Missing, Cell::Int);
        let numbers = vec![known(*object), known(*slab), known(page_size), reclaim, Cell::Int(0)];
        let mut row = vec![Cell::Text((*name).into())];
        row.extend(numbers);
        row.push(Cell::Text((*members).into()));
        (Nanos(second * 1_000_000_000), row)
    };
    series("slab-caches", columns, scans.iter().map(row).collect())
}

pub fn four_kib() -> System {
    System { page_size: Some(4096), cpus: Some(2), nodes: Some(1) }
}

pub fn recording(slabinfo: &Spans, caches: Option<&Series>) -> Recording {
    let input = Input { slabinfo: Some(slabinfo), caches, system: four_kib(), ..Input::default() };
    Recording::read(&input).unwrap()
}
