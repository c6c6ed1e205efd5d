//! Facts and parts of the plan that differ between runs, the likely causes first.
//!
//! Facts are ranked by how likely they explain a change; none is blamed. Of plans it looks at manifests only: what a
//! case is (workload, definition, parameters, environment) and how the study carries it out.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use indexmap::IndexMap;
use perflab_model::fact_table::{self, FACT_RANKS, FactWeight, ranked_fact_spec};
use perflab_model::study::FactorKind;
use perflab_model::{Case, Facts, Manifest, RunRecord, Scalar, TargetRecord};
use serde::Serialize;
use serde_json::Value as Json;

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

/// As much of the larger one is a difference of a fact that drifts, where it explains anything.
const LEAST_DRIFT: f64 = 0.5;

/// Loads below this are an idle machine's.
const IDLE_LOAD: f64 = 1.0;

/// A fact's rank among causes, behind all of them where its difference is none that matters, and whether it matters.
fn rank_difference(difference: &perflab_model::facts::FactChange<'_>) -> (usize, bool) {
    let (spec, rank) = ranked_fact_spec(difference.key);
    let matters = match spec.weight {
        FactWeight::Often => true,
        FactWeight::WhenLarge => has_drifted_far(difference.ours, difference.theirs),
        FactWeight::Hardly => false,
    };
    (if matters { rank } else { FACT_RANKS + rank }, matters)
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
        // One that never came reported no facts.
        let is_silent = |target: &TargetRecord| target.kernel.is_empty() && target.facts.is_empty();
        if is_silent(ours) || is_silent(theirs) {
            continue;
        }
        let (mut a, mut b) = (ours.facts.clone(), theirs.facts.clone());
        for (facts, target) in [(&mut a, ours), (&mut b, theirs)] {
            if !target.kernel.is_empty() {
                facts.add(fact_table::KERNEL_RELEASE, target.kernel.as_str(), "target");
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

/// One thing that was planned differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanDifference {
    /// What: `gzip: command`, `target.guest.kernel`.
    pub key: String,
    /// Its value on the baseline, as text; absent where it has none.
    pub baseline: Option<String>,
    /// Its value on the candidate.
    pub candidate: Option<String>,
}

impl std::fmt::Display for PlanDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".into());
        write!(f, "{}: {} -> {}", self.key, text(&self.baseline), text(&self.candidate))
    }
}

/// Keys of a study that are no part of how it is carried out, or that are compared elsewhere.
const KEYS_COMPARED_ELSEWHERE: &[&str] =
    &["title", "description", "reference", "workload", "metric", "facts", "run.seed", "run.order"];

/// Cases that have one name and are not the same: what differs between the first run and any of the others, under the name
/// that the case is lined up with. Cases are twins by all factors but the `hidden` ones, which are compared.
pub(crate) fn edited_cases<'a>(
    first: &Manifest,
    others: impl IntoIterator<Item = &'a RunRecord>,
    hidden: &[String],
    lined_up_without: &[String],
) -> IndexMap<String, Vec<PlanDifference>> {
    let mut found: IndexMap<String, Vec<PlanDifference>> = IndexMap::new();
    let mut twins: HashMap<String, Vec<&Case>> = HashMap::new();
    for twin in &first.plan.cases {
        twins.entry(case_name(twin, hidden)).or_default().push(twin);
    }
    for run in others {
        let theirs = &run.manifest;
        let varied = varied_keys(first, theirs, hidden);
        for case in &theirs.plan.cases {
            let name = case_name(case, lined_up_without);
            for twin in twins.get(&case_name(case, hidden)).into_iter().flatten() {
                let mut differences = case_differences((first, twin), (theirs, case));
                differences.retain(|one| !varied.contains(&one.key));
                if !differences.is_empty() {
                    let known = found.entry(name.clone()).or_default();
                    differences.retain(|one| !known.contains(one));
                    known.extend(differences);
                }
            }
        }
    }
    found
}

/// How the study is carried out: what differs between two runs beside their cases; `hidden` factors are what is compared.
fn run_rule_differences(ours: &Manifest, theirs: &Manifest, hidden: &[String]) -> Vec<PlanDifference> {
    let (a, b) = (study_leaves(ours), study_leaves(theirs));
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let is_hidden = |key: &str| hidden.iter().any(|name| key.starts_with(&format!("factor.{name}.")));
    let mut found: Vec<PlanDifference> = keys
        .into_iter()
        .filter(|key| !is_hidden(key))
        .filter_map(|key| plan_difference(key.strip_prefix("run.").unwrap_or(key), a.get(key), b.get(key)))
        .collect();
    found.extend(plan_difference("order", Some(&ours.plan.order), Some(&theirs.plan.order)));
    found.extend(ours.plan.margins.iter().filter_map(|(metric, margin)| {
        plan_difference(&format!("margin of {metric}"), Some(margin), theirs.plan.margins.get(metric))
    }));
    // Where a case runs explains more than how it is recorded.
    found.sort_by_key(|one| !one.key.starts_with("target."));
    found
}

/// The same for all runs of a candidate, against the first run of the baseline.
pub(crate) fn side_rule_differences(
    baseline: &[RunRecord],
    candidate: &[RunRecord],
    hidden: &[String],
) -> Vec<PlanDifference> {
    let Some(first) = baseline.first() else { return Vec::new() };
    let mut found: Vec<PlanDifference> = Vec::new();
    for run in candidate {
        let all = run_rule_differences(&first.manifest, &run.manifest, hidden);
        found.extend(all.into_iter().filter(|one| !found.contains(one)).collect::<Vec<_>>());
    }
    found
}

/// What differs between two cases of one name: workload, definition, parameters, environment.
pub(crate) fn case_differences(
    (our_run, ours): (&Manifest, &Case),
    (their_run, theirs): (&Manifest, &Case),
) -> Vec<PlanDifference> {
    let name = &ours.workload;
    let mut found = Vec::new();
    found.extend(plan_difference(&format!("{name}: workload"), Some(&ours.uses), Some(&theirs.uses)));
    let definition = |run: &Manifest, case: &Case| run.plan.definitions.get(&case.uses).cloned();
    // Runs of before definitions were kept, and imports, have none: unknown is not different.
    if let (Some(a), Some(b)) = (definition(our_run, ours), definition(their_run, theirs))
        && ours.uses == theirs.uses
    {
        let short = |digest: String| digest.chars().take(12).collect::<String>();
        found.extend(plan_difference(&format!("{name}: definition"), Some(&short(a)), Some(&short(b))));
    }
    let texts = |case: &Case| -> BTreeMap<String, String> {
        let parameters = case.parameters.iter().map(|(key, value)| (key.clone(), value.to_string()));
        let environment = case.environment.iter().map(|(key, value)| (format!("${key}"), value.clone()));
        parameters.chain(environment).collect()
    };
    let (a, b) = (texts(ours), texts(theirs));
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    found.extend(
        keys.into_iter().filter_map(|key| plan_difference(&format!("{name}: {key}"), a.get(key), b.get(key))),
    );
    found
}

/// Memory that differs by less than this is the same: kernels reserve more or less of it.
const SAME_MEMORY: f64 = 0.02;

/// What makes two machines out of the facts of two runs: the model and the microcode of the CPUs, the size of memory, the
/// options of the kernel. A fact that is not known on both sides tells nothing, and a kernel of another release has another
/// digest of its options anyway.
pub(crate) fn machine_differences(ours: &Facts, theirs: &Facts) -> Vec<PlanDifference> {
    let same_release = ours.value(&fact_table::KERNEL_RELEASE) == theirs.value(&fact_table::KERNEL_RELEASE);
    let is_machine = |key: &str| {
        [fact_table::CPU_MODEL, fact_table::CPU_MICROCODE, fact_table::MEMORY_TOTAL]
            .iter()
            .any(|one| one == key)
            || (fact_table::KERNEL_CONFIG.matches(key)
                && (same_release || fact_table::KERNEL_CONFIG_SHA256 != *key))
    };
    let close = |a: &Scalar, b: &Scalar| {
        a.as_number().zip(b.as_number()).is_some_and(|(a, b)| (a - b).abs() <= SAME_MEMORY * a.max(b))
    };
    let difference = |change: perflab_model::facts::FactChange<'_>| {
        let (a, b) = (change.ours?, change.theirs?);
        let same = !is_machine(change.key) || (fact_table::MEMORY_TOTAL == *change.key && close(a, b));
        (!same).then(|| PlanDifference {
            key: change.key.to_owned(),
            baseline: Some(a.to_string()),
            candidate: Some(b.to_string()),
        })
    };
    ours.all_changes_to(theirs).into_iter().filter_map(difference).collect()
}

/// Keys that a compared factor sets: that they differ is what is asked.
fn varied_keys(ours: &Manifest, theirs: &Manifest, hidden: &[String]) -> BTreeSet<String> {
    let factors = [ours, theirs].into_iter().flat_map(|run| hidden.iter().map(move |name| (run, name)));
    let mut found = BTreeSet::new();
    for (run, name) in factors {
        let Some(factor) = run.study.factor.get(name) else { continue };
        let key = factor.key.as_ref().unwrap_or(name);
        let key = match factor.kind {
            FactorKind::Parameter => key.clone(),
            FactorKind::Environment => format!("${key}"),
            _ => continue,
        };
        found.extend(run.plan.cases.iter().map(|case| format!("{}: {key}", case.workload)));
    }
    found
}

/// The study's keys and values, one a line: `target.guest.kernel` -> `debian`.
fn study_leaves(run: &Manifest) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    if let Ok(Json::Object(study)) = serde_json::to_value(&run.study) {
        study.iter().for_each(|(key, value)| collect_leaves(key, value, &mut found));
    }
    found
}

fn collect_leaves(key: &str, value: &Json, found: &mut BTreeMap<String, String>) {
    if KEYS_COMPARED_ELSEWHERE.contains(&key) {
        return;
    }
    match value {
        Json::Null => {}
        Json::Object(table) => {
            table.iter().for_each(|(name, value)| collect_leaves(&format!("{key}.{name}"), value, found));
        }
        Json::String(text) => drop(found.insert(key.into(), readable_time(text))),
        other => drop(found.insert(key.into(), other.to_string())),
    }
}

/// A time as people read it: studies are stored with nanoseconds.
fn readable_time(text: &str) -> String {
    let nanos = text.strip_suffix("ns").and_then(|number| number.parse().ok());
    nanos.map_or_else(|| text.to_owned(), |nanos| perflab_model::Nanos(nanos).to_string())
}

fn plan_difference<T: PartialEq + ToString>(
    key: &str,
    ours: Option<&T>,
    theirs: Option<&T>,
) -> Option<PlanDifference> {
    (ours != theirs).then(|| PlanDifference {
        key: key.into(),
        baseline: ours.map(ToString::to_string),
        candidate: theirs.map(ToString::to_string),
    })
}

/// The case as it is lined up: without the factors that are compared.
fn case_name(case: &Case, hidden: &[String]) -> String {
    let levels = case.levels.iter().filter(|(factor, _)| !hidden.contains(factor));
    levels.fold(case.label_without_levels(), |text, (factor, level)| format!("{text} {factor}={level}"))
}

/// Everything that differs between two runs, the likeliest causes of a change first: what the cases do, how the study carries
/// them out, the facts that matter (a guest's before its host's), then what nearly always differs.
#[must_use]
pub fn run_differences(ours: &RunRecord, theirs: &RunRecord) -> Vec<PlanDifference> {
    let (a, b) = (&ours.manifest, &theirs.manifest);
    let mut found: Vec<PlanDifference> = Vec::new();
    for difference in edited_cases(a, [theirs], &[], &[]).into_values().flatten() {
        if !found.contains(&difference) {
            found.push(difference);
        }
    }
    let labels = |run: &Manifest| run.plan.cases.iter().map(Case::label).collect::<BTreeSet<_>>();
    let only = |cases: &BTreeSet<String>, others: &BTreeSet<String>| {
        let missing: Vec<&str> = cases.difference(others).map(String::as_str).collect();
        (!missing.is_empty()).then(|| missing.join("; "))
    };
    let (ours_cases, theirs_cases) = (labels(a), labels(b));
    found.extend(plan_difference(
        "cases on one side",
        only(&ours_cases, &theirs_cases).as_ref(),
        only(&theirs_cases, &ours_cases).as_ref(),
    ));
    found.extend(plan_difference("study", Some(&a.study.title), Some(&b.study.title)));
    found.extend(run_rule_differences(a, b, &[]));
    let facts = facts_between(ours, "", theirs);
    let (mattering, others): (Vec<_>, Vec<_>) = facts.into_iter().partition(|fact| fact.important);
    let fact = |fact: FactDifference| PlanDifference {
        key: format!("fact {}", fact.key),
        baseline: fact.baseline,
        candidate: fact.candidate,
    };
    found.extend(mattering.into_iter().map(fact));
    found.extend(plan_difference("boot", Some(&a.boot_id), Some(&b.boot_id)));
    found.extend(plan_difference("status", Some(&a.status), Some(&b.status)));
    found.extend(plan_difference("writer", Some(&a.writer), Some(&b.writer)));
    found.extend(others.into_iter().map(fact));
    found.extend(plan_difference("seed", Some(&a.plan.seed), Some(&b.plan.seed)));
    found
}

#[cfg(test)]
mod tests {
    use perflab_model::Fact;

    use super::*;

    fn make_facts(all: &[(&str, &str)]) -> Facts {
        let fact = |value: &str| Fact { value: value.into(), source: "test".into() };
        all.iter().map(|(key, value)| ((*key).to_owned(), fact(value))).collect()
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
