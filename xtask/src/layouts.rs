//! `cargo xtask long layouts`: the shipped study `layout` with one seed after the other; how often code that only moves is the same,
//! and code that is 3 % slower is found, becomes a table of `docs/statistics.md`.
//!
//! Runs lie in `target/layouts`; a seed whose run is there is not run again.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::{page_block, reliability};

const PAGE: &str = "docs/statistics.md";

/// Seeds from 1 on, unless something else is said.
const SEEDS: usize = 10;
/// Of ten seeds, in how many a change that only moves code must be the same, and one that does more work be found.
const WANTED: [usize; 2] = [9, 8];

/// What `compare` says of a level of the study.
struct LayoutVerdict {
    verdict: String,
    /// the change, its 95 % interval, and the change between the programs as built, in per cent
    change: f64,
    interval: [f64; 2],
    as_built: f64,
}

/// Runs the seeds, and writes the table; `false` where fewer verdicts are right than are wanted.
pub fn count_layout_verdicts(arguments: &[String]) -> Result<bool> {
    let seeds = match arguments {
        [] => SEEDS,
        [option, seeds] if option == "--seeds" => {
            seeds.parse().with_context(|| format!("--seeds {seeds}"))?
        }
        _ => bail!("there is --seeds N"),
    };
    let commit = reliability::tested_commit()?;
    let built = Command::new("cargo").args(["build", "--quiet", "--package", "perflab"]).status()?;
    if !built.success() {
        bail!("perflab cannot be built");
    }
    let program = std::env::current_exe().context("cannot find this program")?;
    let target = program.parent().and_then(Path::parent).context("no target directory")?;
    let study = LayoutStudy { perflab: target.join("debug/perflab"), home: target.join("layouts") };
    std::fs::create_dir_all(&study.home)?;
    let mut rows = String::new();
    let mut right = [0; 2];
    for seed in 1..=seeds {
        let [moved, slower] = study.judge_seed(seed)?;
        right[0] += usize::from(moved.verdict == "same");
        right[1] += usize::from(slower.verdict == "worse");
        let row = format!("| {seed} | {} | {} |", moved.to_cells(), slower.to_cells());
        println!("{row}");
        writeln!(rows, "{row}")?;
    }
    let text = format!(
        "| seed | code that only moves | 30 layouts | as built | code with 3 % more work | 30 layouts | as built |\n\
         |--:|:--|:--|--:|:--|:--|--:|\n{rows}\n\
         Of {seeds} seeds, code that only moves is *same* in {}, and 3 % more work is *worse* in {} (commit {commit}).",
        right[0], right[1],
    );
    println!("{text}");
    page_block::write_block(PAGE, "cargo xtask long layouts", &text)?;
    Ok(right.iter().zip(WANTED).all(|(right, wanted)| right * SEEDS >= wanted * seeds))
}

/// Where the study is run.
struct LayoutStudy {
    perflab: PathBuf,
    home: PathBuf,
}

impl LayoutStudy {
    fn perflab(&self, words: &[&str]) -> Result<Output> {
        Command::new(&self.perflab)
            .env("PERFLAB_ARCHIVE", self.home.join("archive"))
            .current_dir(&self.home)
            .args(words)
            .output()
            .context("cannot run perflab")
    }

    /// Whether the run of a label is there, and whole.
    fn has_finished(&self, label: &str) -> Result<bool> {
        let said = self.perflab(&["list", "--label", label, "--format", "json"])?;
        let listed: Value = serde_json::from_slice(&said.stdout).unwrap_or_default();
        Ok(listed.as_array().is_some_and(|runs| runs.iter().any(|run| run["status"] == "finished")))
    }

    /// The verdicts of one seed: of code that moved, and of code that is slower.
    fn judge_seed(&self, seed: usize) -> Result<[LayoutVerdict; 2]> {
        let (seed, label) = (seed.to_string(), format!("layout-{seed}"));
        if !self.has_finished(&label)? {
            let _ = self.perflab(&["rm", &label])?;
            let ran = self.perflab(&[
                "run",
                "layout",
                "--seed",
                &seed,
                "--label",
                &label,
                "--no-report",
                "--quiet",
            ])?;
            if !ran.status.success() {
                bail!("seed {seed}: {}", String::from_utf8_lossy(&ran.stderr));
            }
        }
        let said = self.perflab(&["compare", &label, "--by", "change", "--format", "json", "--quiet"])?;
        let found: Value = serde_json::from_slice(&said.stdout)
            .with_context(|| format!("seed {seed}: {}", String::from_utf8_lossy(&said.stderr)))?;
        let verdict = |level: &str| -> Result<LayoutVerdict> {
            let rows = found["rows"].as_array().into_iter().flatten();
            let row = rows.into_iter().find(|row| row["candidate_name"] == level);
            row.and_then(LayoutVerdict::from_row)
                .with_context(|| format!("seed {seed}: no verdict of `{level}`"))
        };
        Ok([verdict("moved")?, verdict("slower")?])
    }
}

impl LayoutVerdict {
    fn from_row(row: &Value) -> Option<Self> {
        let (change, percent) = (&row["change"], |value: &Value| Some(100.0 * value.as_f64()?));
        Some(LayoutVerdict {
            verdict: row["verdict"].as_str()?.to_owned(),
            change: percent(&change["value"])?,
            interval: [percent(&change["interval"]["low"])?, percent(&change["interval"]["high"])?],
            as_built: percent(&row["layout"]["as_built"])?,
        })
    }

    fn to_cells(&self) -> String {
        let [low, high] = self.interval;
        format!("{} | {:+.2} % [{low:+.2}, {high:+.2}] | {:+.2} %", self.verdict, self.change, self.as_built)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_read_from_a_row_of_a_comparison() {
        let row = serde_json::json!({
            "verdict": "same",
            "change": { "value": 0.0019, "interval": { "low": -0.0014, "high": 0.0054 } },
            "layout": { "as_built": 0.01326 },
        });
        let found = LayoutVerdict::from_row(&row).map(|verdict| verdict.to_cells());
        assert_eq!(found.as_deref(), Some("same | +0.19 % [-0.14, +0.54] | +1.33 %"));
        assert!(LayoutVerdict::from_row(&serde_json::json!({ "verdict": "same" })).is_none());
    }
}
