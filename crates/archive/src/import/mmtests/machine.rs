//! What MMTests wrote down of the machine.

use std::path::Path;

use perflab_model::{Facts, Scalar};

use super::super::lines::InputLines;
use super::super::took::FileReport;
use super::folder::PackedFolder;

/// Lines of a file that are looked at.
const LINES: u64 = 2_000;
/// The files that are read.
pub(super) const FILES: &[&str] = &["kernel.version", "lscpu.txt", "tests-sysstate"];
/// Lines of lscpu, and the facts that they are.
const CPU: &[(&str, &str)] = &[
    ("Model name", "cpu.model"),
    ("Architecture", "cpu.architecture"),
    ("NUMA node(s)", "numa.nodes"),
    ("CPU(s)", "cpu.online"),
];

/// Adds the facts of one iteration's folder; gives the machine's name.
pub(super) fn read_machine_facts(
    folder: &PackedFolder,
    facts: &mut Facts,
    took: &mut Vec<FileReport>,
) -> Option<String> {
    let mut host = None;
    let mut lines = |name| folder.file(name).map_or_else(Vec::new, |file| read_first_lines(file, took));
    for line in lines("kernel.version").iter().take(1) {
        // Linux NAME RELEASE #1 SMP …
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if let ["Linux", name, release, ..] = words[..] {
            facts.add("kernel.release", release, "kernel.version");
            host = Some(name.to_owned());
        }
    }
    for line in lines("lscpu.txt") {
        let Some((name, value)) = line.split_once(':') else { continue };
        if let Some((_, key)) = CPU.iter().find(|(known, _)| *known == name.trim()) {
            facts.add(key, parse_fact_value(value.trim()), "lscpu.txt");
        }
    }
    let memory = lines("tests-sysstate").into_iter().find_map(|line| {
        line.strip_prefix("MemTotal:")?
            .trim()
            .strip_suffix("kB")?
            .trim()
            .parse::<i64>()
            .ok()?
            .checked_mul(1024)
    });
    memory.into_iter().for_each(|bytes| facts.add("memory.total", bytes, "tests-sysstate: MemTotal"));
    host
}

fn parse_fact_value(text: &str) -> Scalar {
    text.parse().map_or_else(|_| Scalar::from(text), Scalar::Int)
}

/// The first lines of a file; none where it cannot be read, which `took` is told.
fn read_first_lines(file: &Path, took: &mut Vec<FileReport>) -> Vec<String> {
    let mut lines = InputLines::open_optional(file);
    took.extend(lines.unreadable_reason().map(|reason| FileReport::unreadable(file, reason)));
    let mut found = Vec::new();
    while let Ok(Some(line)) = lines.next_line()
        && line.number <= LINES
    {
        found.push(line.text.to_owned());
    }
    found
}
