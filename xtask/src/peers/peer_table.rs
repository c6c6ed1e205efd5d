//! The tables of `docs/peers.md`: what was measured, where a peer is ahead first, and the commands of it.

use std::fmt::Write as _;

use crate::peers::peer_measurement::PeerRatio;
use crate::peers::peer_row::{PEER_ROWS, PeerRow};

/// The line of names and the line under it.
const HEAD: &str = "\
| row | work | peer | CPU time: perflab / peer | clock: perflab / peer | CPU, medians | clock, medians | pairs | load | date | perflab | machine, peer |
|:--|:--|:--|:--|:--|--:|--:|--:|--:|:--|:--|:--|";

/// Where the ratios stand.
const RATIO_CELLS: [usize; 2] = [3, 4];

/// Lines of the table, by the row's name, which is the first cell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PeerTable {
    lines: Vec<Vec<String>>,
}

impl PeerTable {
    /// Reads the lines of a table that was written before; those of rows that are no more are left out.
    pub fn parse(text: &str) -> Self {
        let cells = |line: &str| -> Vec<String> {
            line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        let is_row = |cells: &Vec<String>| PEER_ROWS.iter().any(|row| cells[0] == row.name);
        PeerTable {
            lines: text.lines().filter(|line| line.starts_with('|')).map(cells).filter(is_row).collect(),
        }
    }

    /// Puts a row into the table, in place of the one that it measures anew.
    pub fn record_row(&mut self, row: &PeerRow, cells: Vec<String>) {
        self.lines.retain(|line| line[0] != row.name);
        let names = [row.name, row.work, row.peer].map(str::to_owned);
        self.lines.push(names.into_iter().chain(cells).collect());
    }

    /// The table, with the rows first in which a peer is ahead, and a line that counts them.
    pub fn to_markdown(&self) -> String {
        let mut lines: Vec<&Vec<String>> = self.lines.iter().collect();
        lines.sort_by(|one, other| find_worst_ratio(other).total_cmp(&find_worst_ratio(one)));
        let ahead = lines.iter().filter(|line| list_ratios(line).any(PeerRatio::is_peer_ahead)).count();
        let mut text = format!("A peer is ahead in {ahead} of {} rows.\n\n{HEAD}\n", lines.len());
        for line in lines {
            let _ = writeln!(text, "| {} |", line.join(" | "));
        }
        let is_missing = |row: &&PeerRow| self.lines.iter().all(|line| line[0] != row.name);
        let missing: Vec<&str> = PEER_ROWS.iter().filter(is_missing).map(|row| row.name).collect();
        if !missing.is_empty() {
            let _ = writeln!(text, "\nNot measured yet: {}.", missing.join(", "));
        }
        text
    }
}

fn list_ratios(line: &[String]) -> impl Iterator<Item = PeerRatio> {
    RATIO_CELLS.into_iter().filter_map(|at| PeerRatio::parse_cell(line.get(at)?))
}

/// The ratio that is worse for perflab.
fn find_worst_ratio(line: &[String]) -> f64 {
    list_ratios(line).map(|ratio| ratio.value).fold(0.0, f64::max)
}

/// The commands of every row, for readers who type them themselves.
pub fn write_command_list() -> String {
    let mut text = String::new();
    for row in PEER_ROWS {
        let _ = writeln!(text, "- **{}**: {}, beside {}", row.name, row.work, row.peer);
        let _ = writeln!(text, "  ```text");
        for command in row.prepare.lines().map(|line| format!("(once) {line}")) {
            let _ = writeln!(text, "  {command}");
        }
        for command in [row.perflab, row.other] {
            let _ = writeln!(text, "  {command}");
        }
        let _ = writeln!(text, "  ```");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_with_ratios(name: &str, processor: &str, clock: &str) -> (PeerRow, Vec<String>) {
        let row = PEER_ROWS.iter().find(|row| row.name == name).copied().unwrap();
        (row, [processor, clock, "1 ms : 2 ms"].map(str::to_owned).to_vec())
    }

    #[test]
    fn a_peer_that_is_ahead_stands_first_and_rows_are_replaced() {
        let mut table = PeerTable::default();
        for (name, processor, clock) in [
            ("set-judy", "0.500 [0.400, 0.600]", "0.510 [0.400, 0.600]"),
            ("bench", "0.900 [0.800, 1.01]", "1.50 [1.40, 1.60]"),
            ("watch-1s", "3.00 [2.90, 3.10]", "-"),
            ("start", "9.00 [8.00, 10.0]", "9.00 [8.00, 10.0]"),
            ("start", "1.02 [0.950, 1.10]", "1.02 [0.950, 1.10]"),
        ] {
            let (row, cells) = row_with_ratios(name, processor, clock);
            table.record_row(&row, cells);
        }
        let text = table.to_markdown();
        let order: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("| "))
            .filter_map(|line| line.split(' ').nth(1))
            .collect();
        assert_eq!(order, ["row", "watch-1s", "bench", "start", "set-judy"]);
        assert_eq!(text.lines().next(), Some("A peer is ahead in 2 of 4 rows."));
        assert_eq!(PeerTable::parse(&text).to_markdown(), text);
        let last = text.lines().next_back().unwrap();
        let missing: Vec<&str> = last.trim_end_matches('.').split([' ', ',']).collect();
        let named = |name: &str| missing.contains(&name);
        assert!(PEER_ROWS.iter().all(|row| named(row.name) != order.contains(&row.name)), "{last}");
    }

    #[test]
    fn rows_that_are_no_more_are_left_out() {
        let table = PeerTable::parse("| gone | a | b | 1.00 [0.900, 1.10] |\n| bench | a | b | - |\ntext\n");
        assert_eq!(table.lines.len(), 1);
    }
}
