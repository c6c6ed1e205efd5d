//! What MMTests wrote down of the machine.

use std::path::Path;

use perflab_model::{Facts, Value};

use super::super::lines::Lines;
use super::super::took::Took;
use super::folder::Folder;

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
pub(super) fn read(folder: &Folder, facts: &mut Facts, took: &mut Vec<Took>) -> Option<String> {
    let mut host = None;
    let mut lines = |name| folder.file(name).map_or_else(Vec::new, |file| lines(file, took));
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
            facts.add(key, scalar(value.trim()), "lscpu.txt");
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

fn scalar(text: &str) -> Value {
    text.parse().map_or_else(|_| Value::from(text), Value::Int)
}

/// The first lines of a file; none where it cannot be read, which `took` is told.
fn lines(file: &Path, took: &mut Vec<Took>) -> Vec<String> {
    let mut lines = Lines::among(file);
    took.extend(lines.refused().map(|reason| Took::refused(file, reason)));
    let mut found = Vec::new();
    while let Ok(Some(line)) = lines.next()
        && line.number <= LINES
    {
        found.push(line.text.to_owned());
    }
    found
}
