//! `cargo xtask long peers`: the same work by perflab and by those who do it too, in turns; the ratios with their intervals become
//! the table of `docs/peers.md`.
//!
//! Peers come from registries, by their own clients; one that cannot be had is named, and its row left as it is. What is
//! fetched, made and measured lies in `target/peers`. `perflab bench` measures, and `perflab_stats` gives the ratio.

mod peer_installation;
mod peer_measurement;
mod peer_row;
mod peer_source;
mod peer_table;
mod peer_workshop;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use peer_installation::install_peer;
use peer_measurement::PeerMeasurement;
use peer_row::{PEER_ROWS, PeerClock, PeerRow};
use peer_table::PeerTable;
use peer_workshop::PeerWorkshop;

use crate::{needs, page_block, reliability};

const PAGE: &str = "docs/peers.md";
/// The comments between which the table and the commands stand.
const TABLE: &str = "cargo xtask long peers";
const COMMANDS: &str = "cargo xtask long peers, commands";

/// What is typed behind `long peers`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct PeerOptions {
    only: Vec<String>,
    pairs: Option<u32>,
    /// the perflab that is measured; none: a release build
    binary: Option<PathBuf>,
    keep_page: bool,
}

impl PeerOptions {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut found = PeerOptions::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match word.as_str() {
                "--only" => found.only.push(value()?.clone()),
                "--pairs" => found.pairs = Some(value()?.parse().context("--pairs takes a number")?),
                "--binary" => found.binary = Some(PathBuf::from(value()?)),
                "--no-table" => found.keep_page = true,
                _ => {
                    bail!(
                        "`{word}` is not known; there are --only ROW, --pairs N, --binary PATH and --no-table"
                    )
                }
            }
        }
        if let Some(name) = found.only.iter().find(|name| PEER_ROWS.iter().all(|row| row.name != **name)) {
            let names: Vec<&str> = PEER_ROWS.iter().map(|row| row.name).collect();
            bail!("there is no row `{name}`; there are: {}", names.join(", "));
        }
        Ok(found)
    }

    fn choose_rows(&self) -> impl Iterator<Item = &'static PeerRow> {
        PEER_ROWS.iter().filter(|row| self.only.is_empty() || self.only.iter().any(|name| name == row.name))
    }
}

/// Measures all rows, or some; `false` where one could not be measured.
pub fn measure_peers(arguments: &[String]) -> Result<bool> {
    let options = PeerOptions::parse(arguments)?;
    let commit = reliability::tested_commit()?;
    let program = std::env::current_exe().context("cannot find this program")?;
    let target = program.parent().and_then(Path::parent).context("no target directory")?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => {
            needs::run_command(Command::new("cargo").args([
                "build",
                "--release",
                "--quiet",
                "--package",
                "perflab",
            ]))?;
            target.join("release/perflab")
        }
    };
    let workshop = PeerWorkshop::open(&target.join("peers"), &binary)?;
    let mut all_measured = true;
    for row in options.choose_rows() {
        println!("=== {}: {}, beside {}", row.name, row.work, row.peer);
        match measure_row(&workshop, row, options.pairs.unwrap_or(row.pairs), &commit) {
            Ok(cells) => {
                println!("{}", cells.join(" | "));
                if !options.keep_page {
                    write_page(row, cells)?;
                }
            }
            Err(error) => {
                println!("SKIP {}: {error:#}", row.name);
                all_measured = false;
            }
        }
    }
    Ok(all_measured)
}

/// The cells behind the name of a row, its work and its peer.
fn measure_row(workshop: &PeerWorkshop, row: &PeerRow, pairs: u32, commit: &str) -> Result<Vec<String>> {
    row.sources.iter().try_for_each(|source| install_peer(*source, workshop))?;
    let version = workshop.run_script(row, row.version)?;
    let version = version.lines().next().unwrap_or_default().trim().to_owned();
    println!("{version}");
    let before = read_load()?;
    let measured = PeerMeasurement::parse(&workshop.measure_row(row, pairs)?)?;
    let load = f64::midpoint(before, read_load()?);
    let [processor, clock] = [&measured.processor, &measured.clock];
    let [clock_ratio, clock_medians] = match row.clock {
        PeerClock::Both => [mark_peer_ahead(clock.ratio()?), clock.format_medians()?],
        PeerClock::Processor => ["-", "-"].map(str::to_owned),
    };
    let pairs = processor.peer.len().to_string();
    Ok(vec![
        mark_peer_ahead(processor.ratio()?),
        clock_ratio,
        processor.format_medians()?,
        clock_medians,
        pairs,
        format!("{load:.1}"),
        read_date()?,
        commit.to_owned(),
        format!("{}; {version}", describe_machine()?),
    ])
}

/// A ratio's cell, in bold where the peer takes less.
fn mark_peer_ahead(ratio: peer_measurement::PeerRatio) -> String {
    if ratio.is_peer_ahead() { format!("**{}**", ratio.to_cell()) } else { ratio.to_cell() }
}

fn write_page(row: &PeerRow, cells: Vec<String>) -> Result<()> {
    let page = std::fs::read_to_string(PAGE).with_context(|| format!("cannot read {PAGE}"))?;
    let mut table = PeerTable::parse(&page);
    table.record_row(row, cells);
    page_block::write_block(PAGE, TABLE, &table.to_markdown())?;
    page_block::write_block(PAGE, COMMANDS, &peer_table::write_command_list())
}

/// How many tasks wanted a processor in the last minute.
fn read_load() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").context("cannot read /proc/loadavg")?;
    let first = text.split_whitespace().next().unwrap_or_default();
    first.parse().with_context(|| format!("/proc/loadavg begins with `{first}`"))
}

fn read_date() -> Result<String> {
    reliability::capture_trimmed_stdout("date", &["--utc", "+%F"])
}

/// `2 x Intel(R) Xeon(R) Processor, Linux 6.18.5`
fn describe_machine() -> Result<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").context("cannot read /proc/cpuinfo")?;
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    Ok(format!("{}, Linux {}", describe_processors(&text), release.trim()))
}

fn describe_processors(cpuinfo: &str) -> String {
    let names: Vec<&str> = cpuinfo
        .lines()
        .filter_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map(|(_, name)| name.trim())
        .collect();
    format!("{} x {}", names.len(), names.first().copied().unwrap_or("unknown processor"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &[&str]) -> Result<PeerOptions> {
        PeerOptions::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn rows_are_chosen_by_name() {
        let chosen = parse_words(&["--only", "bench", "--pairs", "6", "--only", "start"]).unwrap();
        assert_eq!(chosen.choose_rows().map(|row| row.name).collect::<Vec<_>>(), ["start", "bench"]);
        assert_eq!(chosen.pairs, Some(6));
        assert_eq!(parse_words(&[]).unwrap().choose_rows().count(), PEER_ROWS.len());
        assert!(parse_words(&["--only", "nobody"]).is_err());
        assert!(parse_words(&["--pairs"]).is_err());
    }

    #[test]
    fn processors_are_counted() {
        let text = "processor\t: 0\nmodel name\t: A CPU\nprocessor\t: 1\nmodel name\t: A CPU\n";
        assert_eq!(describe_processors(text), "2 x A CPU");
    }
}
