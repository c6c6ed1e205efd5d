//! `/proc/pagetypeinfo`: free blocks by order, and whole page blocks, of each migrate type in each zone. The kernel holds
//! the zone's lock while it counts, and says at most 100,000 of one kind: that is why it is read seldom.

use perflab_model::{CellRow, DeclaredColumn, RowSchema, TableCell};

use crate::column::{describe_mismatch, parse_integer_cell};
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout, ReadingStart, RowLayout};
use crate::reading_parser::LineOutcome;

/// The file.
pub const PAGE_TYPES: KernelFile = KernelFile {
    name: PageTypeRow::NAME,
    source: "/proc/pagetypeinfo",
    about: "free blocks by order and page blocks, by node, zone and migrate type; costly, every 10 s is enough",
    needs: "root",
    without: "buddy has the free blocks of all migrate types together",
    provided_by: "",
    columns: PageTypeRow::COLUMNS,
    layout: KernelFileLayout::Rows(RowLayout {
        parts: &[],
        start: ReadingStart::SubjectAgain(find_migrate_type),
        parse_row: parse_pagetypeinfo_line,
    }),
};

/// A row a node, zone and migrate type.
#[derive(Debug, Clone, Copy)]
pub struct PageTypeRow;

const fn blocks(name: &'static str) -> DeclaredColumn {
    DeclaredColumn::gauge(name, "blocks")
}

impl RowSchema for PageTypeRow {
    const NAME: &'static str = "page-types";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("node"),
        DeclaredColumn::key("zone"),
        DeclaredColumn::key("type"),
        blocks("page_blocks"),
        blocks("free_order_0"),
        blocks("free_order_1"),
        blocks("free_order_2"),
        blocks("free_order_3"),
        blocks("free_order_4"),
        blocks("free_order_5"),
        blocks("free_order_6"),
        blocks("free_order_7"),
        blocks("free_order_8"),
        blocks("free_order_9"),
        blocks("free_order_10"),
        blocks("free_order_11"),
        blocks("free_order_12"),
        blocks("free_order_13"),
    ];
}

/// Where the numbers of page blocks and of free blocks begin.
const PAGE_BLOCKS: usize = 3;

const FREE: usize = 4;

/// Lines that say what follows; the kernel writes them again for each node.
const HEADINGS: &[&str] = &["Page block order:", "Pages per block:", "Free pages count per", "Number of "];

/// Node, zone and type of a line of free blocks.
fn find_migrate_type(line: &str) -> Option<&str> {
    let zone = line.strip_prefix("Node ")?.split_once(", zone ")?.1;
    let kind = zone.split_once(", type ")?.1.split_ascii_whitespace().next()?;
    let end = line.rfind(", type ")? + line.get(line.rfind(", type ")?..)?.find(kind)? + kind.len();
    line.get(..end)
}

/// Free blocks: `Node 0, zone DMA, type Movable 0 0 1 …`; page blocks of all types: `Node 0, zone DMA 1 7 …`, in the order of
/// the types.
fn parse_pagetypeinfo_line(line: &str, rows: &mut Vec<CellRow>) -> LineOutcome {
    if HEADINGS.iter().any(|heading| line.starts_with(heading)) {
        return LineOutcome::Nothing;
    }
    let unusable = || LineOutcome::Unusable(describe_mismatch("`Node N, zone NAME`", "a zone", line));
    let Some((node, rest)) = line.strip_prefix("Node ").and_then(|rest| rest.split_once(", zone ")) else {
        return unusable();
    };
    let node = node.trim_ascii();
    let parsed = match rest.split_once(", type ") {
        Some((zone, rest)) => push_free_blocks([node, zone.trim_ascii()], rest, rows),
        None => set_page_blocks(node, rest, rows),
    };
    match parsed {
        Some(Ok(())) => LineOutcome::Used,
        Some(Err(reason)) => LineOutcome::Unusable(reason),
        None => unusable(),
    }
}

fn push_free_blocks(zone: [&str; 2], rest: &str, rows: &mut Vec<CellRow>) -> Option<Result<(), String>> {
    let mut words = rest.split_ascii_whitespace();
    let mut row = PageTypeRow::missing_row();
    for (cell, text) in row.iter_mut().zip(zone.into_iter().chain([words.next()?])) {
        *cell = TableCell::Text(text.into());
    }
    for (index, word) in (FREE..).zip(words) {
        // `>100000`: it was counted no further.
        let cell = match word.strip_prefix('>') {
            Some(number) => parse_integer_cell(number, 1),
            None => parse_integer_cell(word, 1),
        };
        match (cell, row.get_mut(index)) {
            (Some(parsed), Some(cell)) => *cell = parsed,
            (None, _) => return Some(Err(describe_mismatch("a number of blocks", "an order", word))),
            (Some(_), None) => break,
        }
    }
    rows.push(row);
    Some(Ok(()))
}

fn set_page_blocks(node: &str, rest: &str, rows: &mut [CellRow]) -> Option<Result<(), String>> {
    let mut words = rest.split_ascii_whitespace();
    let zone = words.next()?;
    let is_of_zone = |row: &&mut CellRow| {
        let text = |index: usize| row.get(index).and_then(text_of);
        text(0) == Some(node) && text(1) == Some(zone)
    };
    for (row, word) in rows.iter_mut().filter(is_of_zone).zip(words) {
        let Some(parsed) = parse_integer_cell(word, 1) else {
            return Some(Err(describe_mismatch("a number of blocks", zone, word)));
        };
        row.iter_mut().skip(PAGE_BLOCKS).take(1).for_each(|cell| *cell = parsed.clone());
    }
    Some(Ok(()))
}

fn text_of(cell: &TableCell) -> Option<&str> {
    if let TableCell::Text(text) = cell { Some(text) } else { None }
}
