//! The table of `docs/reliability.md`: a row for each attack, with date and commit, replaced when it is carried out again.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Attack, AttackCounts};

const PAGE: &str = "docs/reliability.md";
/// The line under the table's head: rows follow it, up to the first line that is none.
const RULE: &str = "|:--|:--|--:|--:|--:|:--|:--|";

/// Puts the counts into the attack's row; the rest of the page is people's.
pub fn record_counts(attack: &Attack, counts: &AttackCounts, commit: &str) -> Result<()> {
    let page = std::fs::read_to_string(PAGE).with_context(|| format!("cannot read {PAGE}"))?;
    let date = capture_trimmed_stdout("date", &["--utc", "+%F"])?;
    let row = format!(
        "| {} | {} | {} | {} | {} | {date} | {commit} |",
        attack.name,
        attack.tries,
        counts.tried,
        counts.held,
        counts.failed_attempts()
    );
    let page = replace_page_row(&page, attack.name, &row)
        .with_context(|| format!("{PAGE} has no table of attacks"))?;
    std::fs::write(PAGE, page).with_context(|| format!("cannot write {PAGE}"))
}

/// What is attacked: the commit, and `-dirty` where files differ from it, this page aside, to which each attack adds.
pub fn attacked_commit() -> Result<String> {
    let commit = capture_trimmed_stdout("git", &["rev-parse", "--short=7", "HEAD"])?;
    let exclude = format!(":(exclude){PAGE}");
    let changed = capture_trimmed_stdout(
        "git",
        &["status", "--porcelain", "--untracked-files=no", "--", ".", &exclude],
    )?;
    Ok(if changed.is_empty() { commit } else { format!("{commit}-dirty") })
}

fn capture_trimmed_stdout(program: &str, arguments: &[&str]) -> Result<String> {
    let output =
        Command::new(program).args(arguments).output().with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        bail!("{program} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The page with `row` in place of the row of that name, or behind the last one.
fn replace_page_row(page: &str, name: &str, row: &str) -> Option<String> {
    let (head, rest) = page.split_once(&format!("{RULE}\n"))?;
    let table: Vec<&str> = rest.lines().take_while(|line| line.starts_with('|')).collect();
    let behind: Vec<&str> = rest.lines().skip(table.len()).collect();
    let own = format!("| {name} |");
    let mut rows: Vec<&str> =
        table.iter().map(|line| if line.starts_with(&own) { row } else { line }).collect();
    if !rows.contains(&row) {
        rows.push(row);
    }
    let lines = [&[RULE], &*rows, &*behind].concat();
    Some(format!("{head}{}\n", lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_added_once_and_replaced_after() {
        let page = format!("# R\n\n| head |\n{RULE}\n| a | 1 |\n\nText.\n");
        let with_b = replace_page_row(&page, "b", "| b | 2 |").unwrap();
        assert_eq!(with_b, format!("# R\n\n| head |\n{RULE}\n| a | 1 |\n| b | 2 |\n\nText.\n"));
        let again = replace_page_row(&with_b, "a", "| a | 3 |").unwrap();
        assert_eq!(again, format!("# R\n\n| head |\n{RULE}\n| a | 3 |\n| b | 2 |\n\nText.\n"));
        assert_eq!(replace_page_row("# no table\n", "a", "| a |"), None);
    }
}
