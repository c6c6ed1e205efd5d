//! `/proc/zoneinfo`: a row a zone, with its watermarks, sizes, lists and the pages that its CPUs hold.
//!
//! Numbers of the whole node, which stand in the text of its first zone, are those of `node-vmstat`.

use perflab_model::{CellRow, DeclaredColumn, RowSchema, TableCell};

use crate::column::{describe_mismatch, parse_cell};
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout, ReadingStart, RowLayout};
use crate::reading_parser::LineOutcome;

/// The file.
pub const ZONES: KernelFile = KernelFile {
    name: ZoneRow::NAME,
    source: "/proc/zoneinfo",
    about: "memory zones: free pages, watermarks, sizes, LRU lists, pages held by CPUs, where allocations came from",
    needs: "",
    without: "",
    provided_by: "",
    columns: ZoneRow::COLUMNS,
    layout: KernelFileLayout::Rows(RowLayout {
        parts: &[],
        start: ReadingStart::SubjectAgain(find_zone),
        parse_row: parse_zoneinfo_line,
    }),
};

/// A row a node and zone.
#[derive(Debug, Clone, Copy)]
pub struct ZoneRow;

const fn pages(name: &'static str) -> DeclaredColumn {
    DeclaredColumn::gauge(name, "pages")
}

const fn allocated_pages(name: &'static str) -> DeclaredColumn {
    DeclaredColumn::counter(name, "pages")
}

impl RowSchema for ZoneRow {
    const NAME: &'static str = "zones";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("node"),
        DeclaredColumn::key("zone"),
        pages("free"),
        pages("boost"),
        pages("min"),
        pages("low"),
        pages("high"),
        pages("promo"),
        pages("spanned"),
        pages("present"),
        pages("managed"),
        pages("cma"),
        pages("nr_free_pages"),
        pages("nr_free_pages_blocks"),
        pages("nr_zone_inactive_anon"),
        pages("nr_zone_active_anon"),
        pages("nr_zone_inactive_file"),
        pages("nr_zone_active_file"),
        pages("nr_zone_unevictable"),
        pages("nr_zone_write_pending"),
        pages("nr_mlock"),
        pages("nr_bounce"),
        pages("nr_zspages"),
        pages("nr_free_cma"),
        allocated_pages("numa_hit"),
        allocated_pages("numa_miss"),
        allocated_pages("numa_foreign"),
        allocated_pages("numa_interleave"),
        allocated_pages("numa_local"),
        allocated_pages("numa_other"),
        // Of all CPUs together.
        pages("pcp_count"),
        pages("pcp_high"),
    ];
}

/// Names that stand in the text in other words: with the column, and whether CPUs are added up.
const RENAMED: &[(&str, &str)] = &[("pages free", "free"), ("count", "pcp_count"), ("high", "pcp_high")];

/// `Node 0, zone      DMA` with nothing behind it.
fn find_zone(line: &str) -> Option<&str> {
    let (_, rest) = line.strip_prefix("Node ")?.split_once(", zone ")?;
    (rest.split_ascii_whitespace().count() == 1).then_some(line.trim_ascii_end())
}

fn parse_zoneinfo_line(line: &str, rows: &mut Vec<CellRow>) -> LineOutcome {
    if let Some(zone) = find_zone(line) {
        let mut row = ZoneRow::missing_row();
        let (node, zone) = zone.trim_start_matches("Node ").split_once(", zone").unwrap_or_default();
        for (cell, text) in row.iter_mut().zip([node, zone]) {
            *cell = TableCell::Text(text.trim_ascii().into());
        }
        rows.push(row);
        return LineOutcome::Used;
    }
    let Some(row) = rows.last_mut() else {
        return LineOutcome::Unusable(describe_mismatch("`Node N, zone NAME`", "a zone", line));
    };
    set_zone_number(row, line).unwrap_or(LineOutcome::Nothing)
}

/// Puts the number of a line into its column; nothing where it has none.
fn set_zone_number(row: &mut CellRow, line: &str) -> Option<LineOutcome> {
    let line = line.trim_ascii();
    let (name, word) = line.rsplit_once([' ', '\t'])?;
    let (name, of_cpu) = match name.trim_ascii_end().strip_suffix(':') {
        Some(name) => (name, true),
        None => (name.trim_ascii_end(), false),
    };
    let renamed = RENAMED.iter().find(|(text, column)| *text == name && of_cpu == column.starts_with("pcp_"));
    let name = match renamed {
        Some((_, column)) => column,
        None if of_cpu => return None,
        None => name,
    };
    let index = ZoneRow::COLUMNS.iter().position(|column| column.name == name).filter(|index| *index > 1)?;
    let Some(parsed) = parse_cell(ZoneRow::COLUMNS.get(index)?, word) else {
        return Some(LineOutcome::Unusable(describe_mismatch("a number", name, word)));
    };
    let cell = row.get_mut(index)?;
    *cell = match (&*cell, parsed) {
        (TableCell::Int(sum), TableCell::Int(more)) if of_cpu => {
            sum.checked_add(more).map_or(TableCell::Missing, TableCell::Int)
        }
        (_, parsed) => parsed,
    };
    Some(LineOutcome::Used)
}
