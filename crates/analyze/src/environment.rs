//! Owns which facts differ between the sides and how likely each explains a change. It refuses to blame: it ranks.

use std::collections::BTreeSet;

use perflab_model::{Facts, RunRecord, TargetRecord, Value};
use serde::Serialize;

/// A fact that is not the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FactDifference {
    /// The fact's key.
    pub key: String,
    /// Name of the candidate side.
    pub candidate_name: String,
    /// Its value on the baseline, as text; absent where not known there.
    pub baseline: Option<String>,
    /// Its value on the candidate, as text; absent where not known there.
    pub candidate: Option<String>,
    /// Whether it is of a kind that often changes results.
    pub important: bool,
}

/// How likely a difference in a fact explains a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// It often does: rows are flagged.
    Often,
    /// It changes by itself from run to run, and does where it changed a lot.
    Drifts,
    /// It says when, where or from what a run was made, and hardly ever does.
    Hardly,
}

/// Every kind of fact, the likeliest cause first; of those that fit a key the longest counts.
#[rustfmt::skip]
const KINDS: &[(&str, Weight)] = &[
    ("kernel.release", Weight::Often), ("kernel.cmdline", Weight::Often), ("mitigations.", Weight::Often),
    ("cpu.model", Weight::Often), ("cpu.microcode", Weight::Often), ("cpu.", Weight::Often),
    ("hypervisor.", Weight::Often), ("kernel.", Weight::Often), ("thp.", Weight::Often), ("numa.", Weight::Often),
    ("memory.", Weight::Often), ("cgroup.", Weight::Often), ("sysctl.", Weight::Often),
    ("reclaim.", Weight::Often), ("clocksource", Weight::Often), ("distribution.", Weight::Often),
    ("disk.", Weight::Often), ("job.", Weight::Often), ("load.", Weight::Drifts), ("memory.available", Weight::Drifts), ("", Weight::Hardly),
    // Other processes mount and unmount, and loop devices come and go.
    ("disk.free.", Weight::Hardly), ("disk.loop", Weight::Hardly), ("disk.mount.", Weight::Hardly),
    ("disk.mount./.", Weight::Often),
    ("kernel.config.sha256", Weight::Hardly), ("job.run", Weight::Hardly), ("import.", Weight::Hardly),
];
/// As much of the larger one is a difference of a fact that drifts, where it explains anything.
const MUCH: f64 = 0.5;
/// Loads below this are an idle machine's.
const IDLE: f64 = 1.0;

/// A fact's place among [`KINDS`], behind all of them where its difference is none that matters, and whether it matters.
fn rank(difference: &perflab_model::facts::Difference<'_>) -> (usize, bool) {
    let fits = KINDS.iter().enumerate().filter(|(_, (prefix, _))| difference.key.starts_with(prefix));
    let Some((place, (_, weight))) = fits.max_by_key(|(_, (prefix, _))| prefix.len()) else {
        return (KINDS.len(), false);
    };
    let matters = match weight {
        Weight::Often => true,
        Weight::Drifts => drifted(difference.ours, difference.theirs),
        Weight::Hardly => false,
    };
    (if matters { place } else { KINDS.len() + place }, matters)
}

/// Whether a number changed by much of itself; one that is no number, or is not known on one side, did.
fn drifted(ours: Option<&Value>, theirs: Option<&Value>) -> bool {
    let number = |value: Option<&Value>| value?.to_string().parse::<f64>().ok();
    let (Some(ours), Some(theirs)) = (number(ours), number(theirs)) else { return true };
    let (less, more) = (ours.min(theirs), ours.max(theirs));
    more >= IDLE && more - less > MUCH * more
}

/// Facts that differ between the first run of the baseline and any run of a candidate, the likely causes first.
pub(crate) fn differences(
    baseline: &[RunRecord],
    name: &str,
    candidate: &[RunRecord],
) -> Vec<FactDifference> {
    let Some(first) = baseline.first() else { return Vec::new() };
    let mut found: Vec<(usize, FactDifference)> = Vec::new();
    for difference in candidate.iter().flat_map(|run| ranked(first, name, run)) {
        if !found.iter().any(|(_, known)| known.key == difference.1.key) {
            found.push(difference);
        }
    }
    sorted(found)
}

/// Facts that differ between two runs, the likely causes first.
pub(crate) fn between(baseline: &RunRecord, name: &str, candidate: &RunRecord) -> Vec<FactDifference> {
    sorted(ranked(baseline, name, candidate))
}

fn sorted(mut found: Vec<(usize, FactDifference)>) -> Vec<FactDifference> {
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, difference)| difference).collect()
}

fn ranked(baseline: &RunRecord, name: &str, candidate: &RunRecord) -> Vec<(usize, FactDifference)> {
    let mut found = of_targets(baseline, name, candidate);
    found.extend(of_facts(&baseline.manifest.facts, &candidate.manifest.facts, "", name));
    found
}

/// What differs in the targets, by name: what runs in a guest is explained by the guest first. Of targets that a study counts
/// (`guest1`, `guest2`) the first one speaks for all that say the same.
fn of_targets(baseline: &RunRecord, name: &str, candidate: &RunRecord) -> Vec<(usize, FactDifference)> {
    let mut found: Vec<(usize, FactDifference)> = Vec::new();
    let mut known: BTreeSet<(String, Option<String>, Option<String>)> = BTreeSet::new();
    for ours in &baseline.manifest.targets {
        let Some(theirs) = candidate.manifest.targets.iter().find(|target| target.name == ours.name) else {
            continue;
        };
        // One that never came said nothing of itself.
        let is_silent = |target: &TargetRecord| target.kernel.is_empty() && target.facts.0.is_empty();
        if is_silent(ours) || is_silent(theirs) {
            continue;
        }
        let (mut a, mut b) = (ours.facts.clone(), theirs.facts.clone());
        for (facts, target) in [(&mut a, ours), (&mut b, theirs)] {
            if !target.kernel.is_empty() {
                facts.add("kernel.release", target.kernel.as_str(), "target");
            }
        }
        for (rank, fact) in of_facts(&a, &b, &format!("{}: ", ours.name), name) {
            let bare = fact.key.rsplit(": ").next().unwrap_or_default().to_owned();
            if known.insert((bare, fact.baseline.clone(), fact.candidate.clone())) {
                found.push((rank, fact));
            }
        }
    }
    found
}

fn of_facts(ours: &Facts, theirs: &Facts, prefix: &str, name: &str) -> Vec<(usize, FactDifference)> {
    let all = ours.all_differences(theirs).into_iter();
    let difference = |difference: perflab_model::facts::Difference<'_>| {
        let (rank, important) = rank(&difference);
        if difference.is_volatile() && !important {
            return None;
        }
        let fact = FactDifference {
            key: format!("{prefix}{}", difference.key),
            candidate_name: name.into(),
            baseline: difference.ours.map(ToString::to_string),
            candidate: difference.theirs.map(ToString::to_string),
            important,
        };
        Some((rank, fact))
    };
    all.filter_map(difference).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(all: &[(&str, &str)]) -> Facts {
        let mut facts = Facts::default();
        all.iter().for_each(|(key, value)| facts.add(key, *value, "test"));
        facts
    }

    #[test]
    fn likely_causes_come_first_and_what_drifts_counts_where_it_drifted_far() {
        let ours = [
            ("import.path", "a"),
            ("load.1", "0.2"),
            ("load.5", "0.5"),
            ("memory.available", "900"),
            ("sysctl.vm.swappiness", "60"),
            ("mitigations.retbleed", "Mitigation"),
            ("kernel.config.sha256", "1"),
            ("kernel.release", "6.1"),
            ("disk.vda.scheduler", "none"),
            ("unheard.of", "1"),
        ];
        let theirs = [
            ("import.path", "b"),
            ("load.1", "0.7"),
            ("load.5", "7.5"),
            ("memory.available", "800"),
            ("sysctl.vm.swappiness", "10"),
            ("mitigations.retbleed", "Vulnerable"),
            ("kernel.config.sha256", "2"),
            ("kernel.release", "6.2"),
            ("disk.vda.scheduler", "bfq"),
            ("unheard.of", "2"),
        ];
        let (ours, theirs) = (facts(&ours), facts(&theirs));
        let mut found: Vec<(usize, bool, &str)> = Vec::new();
        for difference in ours.all_differences(&theirs) {
            let (place, matters) = rank(&difference);
            found.push((place, matters, difference.key));
        }
        found.sort_unstable();
        let keys =
            |matters: bool| found.iter().filter(|one| one.1 == matters).map(|one| one.2).collect::<Vec<_>>();
        let likely = [
            "kernel.release",
            "mitigations.retbleed",
            "sysctl.vm.swappiness",
            "disk.vda.scheduler",
            "load.5",
        ];
        assert_eq!(keys(true), likely);
        let others = ["load.1", "memory.available", "unheard.of", "kernel.config.sha256", "import.path"];
        assert_eq!(keys(false), others);
    }
}
