//! `cargo xtask long simulate`: the table of truth of docs/statistics.md, made again from a seed.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::reliability;

const PAGE: &str = "docs/statistics.md";
const BEGIN: &str = "<!-- begin: cargo xtask long simulate -->";
const END: &str = "<!-- end: cargo xtask long simulate -->";

/// Simulates every cell, and writes the tables into the page; `false` where a cell breaks what the page promises.
pub fn simulate_truth_table(arguments: &[String]) -> Result<bool> {
    let (mut seed, mut repetitions) = ("2026".to_owned(), "2000".to_owned());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{argument} needs a number"))?.clone();
        match argument.as_str() {
            "--seed" => seed = value,
            "--repetitions" => repetitions = value,
            other => bail!("`{other}` is not known; there are --seed N and --repetitions N"),
        }
    }
    let commit = reliability::tested_commit()?;
    let output = Command::new("cargo")
        .args(["run", "--release", "--quiet", "-p", "perflab-analyze", "--example", "truth_table", "--"])
        .args([&seed, &repetitions])
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("the simulation ended with {}", output.status);
    }
    let tables = String::from_utf8(output.stdout)?;
    let worst: Vec<(&str, &str)> = tables.lines().filter_map(read_worst_line).collect();
    let [(worst_alarm, mean_alarm), (least_coverage, mean_coverage)] = worst[..] else {
        bail!("the simulation did not say what its worst cells are:\n{tables}");
    };
    let page = std::fs::read_to_string(PAGE).with_context(|| format!("cannot read {PAGE}"))?;
    let (before, rest) = page.split_once(BEGIN).with_context(|| format!("{PAGE} has no line {BEGIN}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("{PAGE} has no line {END}"))?;
    std::fs::write(PAGE, format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", tables.trim()))?;
    let cells = [&*repetitions, worst_alarm, mean_alarm, least_coverage, mean_coverage].map(str::to_owned);
    reliability::SIMULATIONS.record_row(&format!("seed {seed}"), &cells, &commit)?;
    let number = |text: &str| text.parse::<f64>().with_context(|| format!("`{text}` is no number"));
    Ok(number(worst_alarm)? <= 6.5
        && number(mean_alarm)? <= 5.0
        && number(least_coverage)? >= 92.0
        && number(mean_coverage)? >= 94.0)
}

/// `Worst cell 4.2 %, mean 1.3 %.`
fn read_worst_line(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("Worst cell ")?.strip_suffix(" %.")?.split_once(" %, mean ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_cells_are_read_from_what_the_simulation_says() {
        assert_eq!(read_worst_line("Worst cell 4.2 %, mean 1.3 %."), Some(("4.2", "1.3")));
        assert_eq!(read_worst_line("| normal | 1.0 |"), None);
    }
}
