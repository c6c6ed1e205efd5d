//! `/proc/buddyinfo`: free blocks of the page allocator by node, zone and order, and how much of the free memory is of
//! no use to a request of that order.

use perflab_model::{CellRow, DeclaredColumn, RowSchema, TableCell};

use crate::column::describe_mismatch;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout, ReadingStart, RowLayout};
use crate::reading_parser::LineOutcome;

/// The file.
pub const BUDDY: KernelFile = KernelFile {
    name: BuddyRow::NAME,
    source: "/proc/buddyinfo",
    about: "free blocks of the page allocator by node, zone and order, and how fragmented the free memory is",
    needs: "",
    without: "",
    provided_by: "",
    columns: BuddyRow::COLUMNS,
    layout: KernelFileLayout::Rows(RowLayout {
        parts: &[],
        start: ReadingStart::SubjectAgain(find_zone),
        parse_row: parse_buddyinfo_line,
    }),
};

/// A row a node, zone and order.
#[derive(Debug, Clone, Copy)]
pub struct BuddyRow;

impl RowSchema for BuddyRow {
    const NAME: &'static str = "buddy";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("node"),
        DeclaredColumn::key("zone"),
        DeclaredColumn::key("order"),
        DeclaredColumn::gauge("free_blocks", "blocks"),
        DeclaredColumn::float("unusable_index", "1"),
    ];
}

/// More orders than any kernel has (MAX_PAGE_ORDER is 10, and up to 13 where pages are of 64 KiB).
const ORDERS: usize = 32;

/// Node, zone and the numbers of `Node 0, zone   Normal     38   4148 …`.
fn split_zone_line(line: &str) -> Option<(&str, &str, impl Iterator<Item = &str>)> {
    let (node, rest) = line.strip_prefix("Node ")?.split_once(", zone ")?;
    let mut words = rest.split_ascii_whitespace();
    Some((node.trim_ascii(), words.next()?, words))
}

/// The text before the numbers: a line with a number, unlike those of `/proc/zoneinfo`.
fn find_zone(line: &str) -> Option<&str> {
    let (_, zone, mut numbers) = split_zone_line(line)?;
    numbers.next()?.parse::<u64>().ok()?;
    let end = line.find(zone)? + zone.len();
    line.get(..end)
}

fn parse_buddyinfo_line(line: &str, rows: &mut Vec<CellRow>) -> LineOutcome {
    let Some((node, zone, numbers)) = split_zone_line(line) else {
        return LineOutcome::Unusable(describe_mismatch("`Node N, zone NAME` and numbers", "a zone", line));
    };
    let mut blocks = [0_u64; ORDERS];
    let mut orders = 0;
    for word in numbers {
        let (Ok(number), Some(block)) = (word.parse(), blocks.get_mut(orders)) else {
            return LineOutcome::Unusable(describe_mismatch("a number of blocks", zone, word));
        };
        *block = number;
        orders += 1;
    }
    let Some(blocks) = blocks.get(..orders).filter(|blocks| !blocks.is_empty()) else {
        return LineOutcome::Unusable(describe_mismatch("numbers of blocks", zone, line));
    };
    for (order, free) in blocks.iter().enumerate() {
        rows.push(vec![
            TableCell::Text(node.into()),
            TableCell::Text(zone.into()),
            TableCell::Text(order.to_string()),
            i64::try_from(*free).map_or(TableCell::Missing, TableCell::Int),
            unusable_free_index(blocks, order).map_or(TableCell::Missing, TableCell::Float),
        ]);
    }
    LineOutcome::Used
}

/// The share of the free pages that lie in blocks too small for a request of `order`, from 0 to 1: the unusable free space
/// index of Gorman and Whitcroft, "Measuring the Impact of the Linux Memory Manager" (2005), as `unusable_free_index` of
/// mm/vmstat.c computes it in thousandths. Nothing where no page is free: the kernel then prints 1.000.
fn unusable_free_index(blocks: &[u64], order: usize) -> Option<f64> {
    let pages = |(order, blocks): (usize, &u64)| *blocks as f64 * (1_u64 << order) as f64;
    let free: f64 = blocks.iter().enumerate().map(pages).sum();
    let usable: f64 = blocks.iter().enumerate().skip(order).map(pages).sum();
    (free > 0.0).then(|| (free - usable) / free)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 pages in 4 single ones and a block of 4: half of them serve an order of 2, none one of 3.
    #[test]
    fn what_lies_in_smaller_blocks_is_of_no_use() {
        let index = |order| unusable_free_index(&[4, 0, 1, 0], order);
        assert_eq!([index(0), index(1), index(2), index(3)], [0.0, 0.5, 0.5, 1.0].map(Some));
        assert_eq!(unusable_free_index(&[0, 0], 1), None);
    }

    #[test]
    fn lines_of_zoneinfo_are_others() {
        assert_eq!(find_zone("Node 0, zone      DMA"), None);
        assert_eq!(find_zone("Node 0, zone      DMA      0      1"), Some("Node 0, zone      DMA"));
    }
}
