//! Owns what was planned differently on two sides: what a case is (its workload, definition, parameters, environment), and
//! how the study carries it out. It refuses results: it looks at manifests only.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use indexmap::IndexMap;
use perflab_model::study::FactorKind;
use perflab_model::{Case, Manifest, RunRecord};
use serde_json::Value as Json;

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
pub(crate) fn run_rule_differences(
    ours: &Manifest,
    theirs: &Manifest,
    hidden: &[String],
) -> Vec<PlanDifference> {
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
pub(crate) fn case_name(case: &Case, hidden: &[String]) -> String {
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
    let facts = crate::environment::facts_between(ours, "", theirs);
    let (mattering, others): (Vec<_>, Vec<_>) = facts.into_iter().partition(|fact| fact.important);
    let fact = |fact: crate::FactDifference| PlanDifference {
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
