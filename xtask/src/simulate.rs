//! `cargo xtask long simulate`: the simulated tables of the docs, made again from a seed.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{page_block, reliability};

const STATISTICS: &str = "docs/statistics.md";

/// A simulation whose output stands on a page between two lines.
struct Simulation {
    page: &'static str,
    /// What `--table` and the lines on the page call it.
    name: &'static str,
    package: &'static str,
    example: &'static str,
}

const TRUTH: Simulation =
    Simulation { page: STATISTICS, name: "truth", package: "perflab-analyze", example: "truth_table" };
const DECIDED: Simulation =
    Simulation { page: STATISTICS, name: "decided", package: "perflab-analyze", example: "decided_table" };
const GUARD: Simulation =
    Simulation { page: STATISTICS, name: "guard", package: "perflab-stats", example: "guard_table" };
const BISECT: Simulation =
    Simulation { page: STATISTICS, name: "bisect", package: "perflab-analyze", example: "bisect_table" };
const SHIFT: Simulation = Simulation {
    page: "docs/decisions/location-shift.md",
    name: "shift",
    package: "perflab-analyze",
    example: "shift_table",
};

/// Runs that the guard's flat series live for.
const GUARD_LIFE: &str = "500";

/// Simulates every cell, and writes the tables into the page; `false` where a cell breaks what the page promises.
pub fn simulate_tables(arguments: &[String]) -> Result<bool> {
    let (mut seed, mut repetitions, mut table) = ("2026".to_owned(), 2_000_u32, None);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{argument} needs a value"))?.clone();
        match argument.as_str() {
            "--seed" => seed = value,
            "--repetitions" => {
                repetitions = value.parse().with_context(|| format!("`{value}` is no number"))?;
            }
            "--table" => table = Some(value),
            other => bail!("`{other}` is not known; there are --seed N, --repetitions N and --table NAME"),
        }
    }
    let is_chosen = |simulation: &Simulation| table.as_deref().is_none_or(|name| name == simulation.name);
    if ![TRUTH, GUARD, DECIDED, BISECT, SHIFT].iter().any(is_chosen) {
        bail!("there is no such table; there are `truth`, `guard`, `decided`, `bisect` and `shift`");
    }
    let commit = reliability::tested_commit()?;
    let mut holds = true;
    if is_chosen(&GUARD) {
        holds &= simulate_guard_table(&seed, repetitions)?;
    }
    if is_chosen(&DECIDED) {
        holds &= simulate_decided_table(&seed, repetitions, &commit)?;
    }
    if is_chosen(&BISECT) {
        holds &= simulate_bisect_table(&seed, repetitions)?;
    }
    if is_chosen(&SHIFT) {
        // An experiment is a few values: five times as many as other tables have take seconds.
        SHIFT.write(&SHIFT.run(&[&seed, &(5 * repetitions).to_string()])?)?;
    }
    if is_chosen(&TRUTH) {
        holds &= simulate_truth_table(&seed, repetitions, &commit)?;
    }
    Ok(holds)
}

/// Half as many series as other tables have experiments: each has a life of hundreds of runs.
fn simulate_guard_table(seed: &str, repetitions: u32) -> Result<bool> {
    let tables = GUARD.run(&[seed, &(repetitions / 2).to_string(), GUARD_LIFE])?;
    let worst = tables.lines().find_map(read_worst_line);
    let (worst, _) = worst.with_context(|| format!("the simulation names no worst cell:\n{tables}"))?;
    GUARD.write(&tables)?;
    Ok(read_number(worst)? <= 5.0)
}

/// Half as many histories as other tables have experiments; at most one walk in twenty ends at a wrong commit, and a fixed number of
/// boots a commit takes more of them.
fn simulate_bisect_table(seed: &str, repetitions: u32) -> Result<bool> {
    let tables = BISECT.run(&[seed, &(repetitions / 2).to_string()])?;
    let read = tables.lines().find_map(read_bisect_line);
    let [wrong, boots, fixed] =
        read.with_context(|| format!("the simulation has no last line:\n{tables}"))?;
    BISECT.write(&tables)?;
    Ok(read_number(wrong)? <= 5.0 && read_number(boots)? < read_number(fixed)?)
}

/// Half as many experiments as other tables have: each is looked at dozens of times.
fn simulate_decided_table(seed: &str, repetitions: u32, commit: &str) -> Result<bool> {
    let row = format!("until decided, seed {seed}");
    DECIDED.record_rates(&row, seed, repetitions / 2, commit)
}

fn simulate_truth_table(seed: &str, repetitions: u32, commit: &str) -> Result<bool> {
    TRUTH.record_rates(&format!("seed {seed}"), seed, repetitions, commit)
}

impl Simulation {
    /// What the example prints.
    fn run(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new("cargo")
            .args(["run", "--release", "--quiet", "-p", self.package, "--example", self.example, "--"])
            .args(arguments)
            .stderr(std::process::Stdio::inherit())
            .output()
            .context("cannot run cargo")?;
        if !output.status.success() {
            bail!("the simulation ended with {}", output.status);
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Simulates, puts the tables into the page, and their worst cells into the row of this name; `false` where they are worse
    /// than the page promises.
    fn record_rates(&self, row: &str, seed: &str, repetitions: u32, commit: &str) -> Result<bool> {
        let repetitions = repetitions.to_string();
        let tables = self.run(&[seed, &repetitions])?;
        let worst: Vec<(&str, &str)> = tables.lines().filter_map(read_worst_line).collect();
        let [(worst_alarm, mean_alarm), (least_coverage, mean_coverage)] = worst[..] else {
            bail!("the simulation did not say what its worst cells are:\n{tables}");
        };
        self.write(&tables)?;
        let cells =
            [&*repetitions, worst_alarm, mean_alarm, least_coverage, mean_coverage].map(str::to_owned);
        reliability::SIMULATIONS.record_row(row, &cells, commit)?;
        Ok(read_number(worst_alarm)? <= 6.5
            && read_number(mean_alarm)? <= 5.0
            && read_number(least_coverage)? >= 92.0
            && read_number(mean_coverage)? >= 94.0)
    }

    /// Puts the tables into the page.
    fn write(&self, tables: &str) -> Result<()> {
        let task = format!("cargo xtask long simulate --table {}", self.name);
        page_block::write_block(self.page, &task, tables)
    }
}

fn read_number(text: &str) -> Result<f64> {
    text.parse().with_context(|| format!("`{text}` is no number"))
}

/// `Worst cell 4.2 %, mean 1.3 %.`
fn read_worst_line(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("Worst cell ")?.strip_suffix(" %.")?.split_once(" %, mean ")
}

/// `Wrong in 0.6 % with 549 boots, confirmation included; a fixed number takes 2682.`
fn read_bisect_line(line: &str) -> Option<[&str; 3]> {
    let (wrong, rest) = line.strip_prefix("Wrong in ")?.split_once(" % with ")?;
    let (boots, rest) = rest.split_once(" boots, confirmation included; a fixed number takes ")?;
    Some([wrong, boots, rest.strip_suffix('.')?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_cells_are_read_from_what_the_simulation_says() {
        assert_eq!(read_worst_line("Worst cell 4.2 %, mean 1.3 %."), Some(("4.2", "1.3")));
        assert_eq!(read_worst_line("| normal | 1.0 |"), None);
        let line = "Wrong in 0.6 % with 549 boots, confirmation included; a fixed number takes 2682.";
        assert_eq!(read_bisect_line(line), Some(["0.6", "549", "2682"]));
    }
}
