//! Owns which facts differ between the sides and how likely each explains a change. It refuses to blame: it ranks.

use std::collections::BTreeSet;

use perflab_model::{Facts, RunRecord, Scalar, TargetRecord};
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
enum FactWeight {
    /// It often does: rows are flagged.
    Often,
    /// It changes by itself from run to run, and does where it changed a lot.
    Drifts,
    /// It says when, where or from what a run was made, and hardly ever does.
    Hardly,
}

/// Every kind of fact, the likeliest cause first; of those that fit a key the longest counts.
#[rustfmt::skip]
const FACT_WEIGHTS: &[(&str, FactWeight)] = &[
    ("kernel.release", FactWeight::Often), ("kernel.cmdline", FactWeight::Often), ("mitigations.", FactWeight::Often),
    ("cpu.model", FactWeight::Often), ("cpu.microcode", FactWeight::Often), ("cpu.", FactWeight::Often),
    ("hypervisor.", FactWeight::Often), ("kernel.", FactWeight::Often), ("thp.", FactWeight::Often), ("numa.", FactWeight::Often),
    ("memory.", FactWeight::Often), ("cgroup.", FactWeight::Often), ("sysctl.", FactWeight::Often),
    ("reclaim.", FactWeight::Often), ("clocksource", FactWeight::Often), ("distribution.", FactWeight::Often),
    ("disk.", FactWeight::Often), ("job.", FactWeight::Often), ("load.", FactWeight::Drifts), ("memory.available", FactWeight::Drifts), ("", FactWeight::Hardly),
    // Other processes mount and unmount, and loop devices come and go.
    ("disk.free.", FactWeight::Hardly), ("disk.loop", FactWeight::Hardly), ("disk.mount.", FactWeight::Hardly),
    ("disk.mount./.", FactWeight::Often),
    ("kernel.config.sha256", FactWeight::Hardly), ("job.run", FactWeight::Hardly), ("import.", FactWeight::Hardly),
];
/// As much of the larger one is a difference of a fact that drifts, where it explains anything.
const LEAST_DRIFT: f64 = 0.5;
/// Loads below this are an idle machine's.
const IDLE_LOAD: f64 = 1.0;

/// A fact's place among [`FACT_WEIGHTS`], behind all of them where its difference is none that matters, and whether it matters.
fn rank_difference(difference: &perflab_model::facts::FactChange<'_>) -> (usize, bool) {
    let fits = FACT_WEIGHTS.iter().enumerate().filter(|(_, (prefix, _))| difference.key.starts_with(prefix));
    let Some((place, (_, weight))) = fits.max_by_key(|(_, (prefix, _))| prefix.len()) else {
        return (FACT_WEIGHTS.len(), false);
    };
    let matters = match weight {
        FactWeight::Often => true,
        FactWeight::Drifts => has_drifted_far(difference.ours, difference.theirs),
        FactWeight::Hardly => false,
    };
    (if matters { place } else { FACT_WEIGHTS.len() + place }, matters)
}

/// Whether a number changed by much of itself; one that is no number, or is not known on one side, did.
fn has_drifted_far(ours: Option<&Scalar>, theirs: Option<&Scalar>) -> bool {
    let number = |value: Option<&Scalar>| value?.to_string().parse::<f64>().ok();
    let (Some(ours), Some(theirs)) = (number(ours), number(theirs)) else { return true };
    let (less, more) = (ours.min(theirs), ours.max(theirs));
    more >= IDLE_LOAD && more - less > LEAST_DRIFT * more
}

/// Facts that differ between the first run of the baseline and any run of a candidate, the likely causes first.
pub(crate) fn fact_differences(
    baseline: &[RunRecord],
    name: &str,
    candidate: &[RunRecord],
) -> Vec<FactDifference> {
    let Some(first) = baseline.first() else { return Vec::new() };
    let mut found: Vec<(usize, FactDifference)> = Vec::new();
    for difference in candidate.iter().flat_map(|run| ranked_fact_differences(first, name, run)) {
        if !found.iter().any(|(_, known)| known.key == difference.1.key) {
            found.push(difference);
        }
    }
    sort_by_rank(found)
}

/// Facts that differ between two runs, the likely causes first.
pub(crate) fn facts_between(baseline: &RunRecord, name: &str, candidate: &RunRecord) -> Vec<FactDifference> {
    sort_by_rank(ranked_fact_differences(baseline, name, candidate))
}

fn sort_by_rank(mut found: Vec<(usize, FactDifference)>) -> Vec<FactDifference> {
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, difference)| difference).collect()
}

fn ranked_fact_differences(
    baseline: &RunRecord,
    name: &str,
    candidate: &RunRecord,
) -> Vec<(usize, FactDifference)> {
    let mut found = target_fact_differences(baseline, name, candidate);
    found.extend(compare_facts(&baseline.manifest.facts, &candidate.manifest.facts, "", name));
    found
}

/// What differs in the targets, by name: what runs in a guest is explained by the guest first. Of targets that a study counts
/// (`guest1`, `guest2`) the first one speaks for all that say the same.
fn target_fact_differences(
    baseline: &RunRecord,
    name: &str,
    candidate: &RunRecord,
) -> Vec<(usize, FactDifference)> {
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
        for (rank, fact) in compare_facts(&a, &b, &format!("{}: ", ours.name), name) {
            let bare = fact.key.rsplit(": ").next().unwrap_or_default().to_owned();
            if known.insert((bare, fact.baseline.clone(), fact.candidate.clone())) {
                found.push((rank, fact));
            }
        }
    }
    found
}

fn compare_facts(ours: &Facts, theirs: &Facts, prefix: &str, name: &str) -> Vec<(usize, FactDifference)> {
    let all = ours.all_changes_to(theirs).into_iter();
    let difference = |difference: perflab_model::facts::FactChange<'_>| {
        let (rank, important) = rank_difference(&difference);
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

    fn make_facts(all: &[(&str, &str)]) -> Facts {
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
        let (ours, theirs) = (make_facts(&ours), make_facts(&theirs));
        let mut found: Vec<(usize, bool, &str)> = Vec::new();
        for difference in ours.all_changes_to(&theirs) {
            let (place, matters) = rank_difference(&difference);
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
