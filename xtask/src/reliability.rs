//! The tables of `docs/reliability.md`: a row for each attack, decoder or sample of mutants, with date and commit, replaced when
//! it is carried out again.

use std::process::Command;

use anyhow::{Context, Result, bail};

const PAGE: &str = "docs/reliability.md";
/// Inputs of the decoders, a folder for each.
pub const CORPUS: &str = "fuzz/corpus";

/// A table of the page, known by the line under its head: rows follow that, up to the first line that is none.
#[derive(Debug, Clone, Copy)]
pub struct ReliabilityTable(&'static str);

/// What attacks tried, and what held.
pub const ATTACKS: ReliabilityTable = ReliabilityTable("|:--|:--|--:|--:|--:|:--|:--|");
/// What decoders were fuzzed with.
pub const DECODERS: ReliabilityTable = ReliabilityTable("|:--|--:|--:|--:|--:|--:|:--|:--|");
/// How many mutants the tests caught.
pub const MUTANTS: ReliabilityTable = ReliabilityTable("|:--|--:|--:|--:|--:|--:|--:|:--|:--|");

/// What held of packages that were installed into clean roots.
pub const PACKAGES: ReliabilityTable = ReliabilityTable("|:--|:--|--:|--:|--:|--:|:--:|:--|");

/// How often verdicts were wrong where the truth is known.
pub const SIMULATIONS: ReliabilityTable = ReliabilityTable("|:--|--:|--:|--:|--:|--:|:--:|:--:|");

impl ReliabilityTable {
    /// Puts cells into the row that begins with `name`, date and commit behind them; the rest of the page is people's.
    pub fn record_row(self, name: &str, cells: &[String], commit: &str) -> Result<()> {
        let page = std::fs::read_to_string(PAGE).with_context(|| format!("cannot read {PAGE}"))?;
        let date = capture_trimmed_stdout("date", &["--utc", "+%F"])?;
        let row = format!("| {name} | {} | {date} | {commit} |", cells.join(" | "));
        let page =
            self.replace_row(&page, name, &row).with_context(|| format!("{PAGE} has no table {self:?}"))?;
        std::fs::write(PAGE, page).with_context(|| format!("cannot write {PAGE}"))
    }

    /// The row that begins with `name`.
    pub fn find_row(self, name: &str) -> Result<Option<String>> {
        let page = std::fs::read_to_string(PAGE).with_context(|| format!("cannot read {PAGE}"))?;
        let rest = page.split_once(&format!("\n{}\n", self.0)).map_or("", |(_, rest)| rest);
        let mut rows = rest.lines().take_while(|line| line.starts_with('|'));
        Ok(rows.find(|line| line.starts_with(&format!("| {name} |"))).map(str::to_owned))
    }

    /// The page with `row` in place of the row of that name, or behind the last one.
    fn replace_row(self, page: &str, name: &str, row: &str) -> Option<String> {
        let rule = self.0;
        let (head, rest) = page.split_once(&format!("\n{rule}\n"))?;
        let table: Vec<&str> = rest.lines().take_while(|line| line.starts_with('|')).collect();
        let behind: Vec<&str> = rest.lines().skip(table.len()).collect();
        let own = format!("| {name} |");
        let mut rows: Vec<&str> =
            table.iter().map(|line| if line.starts_with(&own) { row } else { line }).collect();
        if !rows.contains(&row) {
            rows.push(row);
        }
        let lines = [&[rule], &*rows, &*behind].concat();
        Some(format!("{head}\n{}\n", lines.join("\n")))
    }
}

/// What is tested: the commit, and `-dirty` where files differ from it, pages and the corpus aside, to which tasks add.
pub fn tested_commit() -> Result<String> {
    let commit = capture_trimmed_stdout("git", &["rev-parse", "--short=7", "HEAD"])?;
    let [page, peers, corpus] = [PAGE, "docs/peers.md", CORPUS].map(|path| format!(":(exclude){path}"));
    let changed = capture_trimmed_stdout(
        "git",
        &["status", "--porcelain", "--untracked-files=no", "--", ".", &page, &peers, &corpus],
    )?;
    Ok(if changed.is_empty() { commit } else { format!("{commit}-dirty") })
}

/// What a program prints, without the blanks around it; it must succeed.
pub fn capture_trimmed_stdout(program: &str, arguments: &[&str]) -> Result<String> {
    let output =
        Command::new(program).args(arguments).output().with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        bail!("{program} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_added_once_and_replaced_after() {
        let (rule, other) = (ATTACKS.0, DECODERS.0);
        let page = format!("# R\n\n| head |\n{other}\n| z | 0 |\n\n| head |\n{rule}\n| a | 1 |\n\nText.\n");
        let with_b = ATTACKS.replace_row(&page, "b", "| b | 2 |").unwrap();
        assert_eq!(with_b, page.replace("| a | 1 |\n", "| a | 1 |\n| b | 2 |\n"));
        let again = ATTACKS.replace_row(&with_b, "a", "| a | 3 |").unwrap();
        assert_eq!(again, page.replace("| a | 1 |\n", "| a | 3 |\n| b | 2 |\n"));
        assert_eq!(ATTACKS.replace_row("# no table\n", "a", "| a |"), None);
    }
}
