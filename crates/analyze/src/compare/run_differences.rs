//! Facts and parts of the plan that differ between runs, the likely causes first.
//!
//! Facts are ranked by how likely they explain a change; none is blamed. Of plans it looks at manifests only: what a
//! case is (workload, definition, parameters, environment) and how the study carries it out.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use indexmap::{IndexMap, IndexSet};
use perflab_formats::kernel::kernel_config::list_config_options;
use perflab_formats::kernel::small_values::parse_scalar;
use perflab_formats::kernel::sysctl::parse_sysctl_list;
use perflab_model::fact_table::{
    self, FACT_RANKS, FactKey, FactVolatility, FactWeight, fact_reason, fact_spec, ranked_fact_spec,
};
use perflab_model::study::FactorKind;
use perflab_model::{Case, Fact, FactDocument, Facts, MachineDocument, Manifest, RunRecord, Scalar};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;

use crate::compare::definition_differences::definition_differences;
use crate::compare::side_values::{RunValues, SidePair, differing_keys};

/// A fact that is not the same in all runs of both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FactDifference {
    /// The fact's key.
    pub key: String,
    /// Name of the candidate side.
    pub candidate_name: String,
    /// Its value on the baseline, as text, or each value with its number of runs where they are several; absent where not known
    /// there.
    pub baseline: Option<String>,
    /// The same on the candidate.
    pub candidate: Option<String>,
    /// Whether it is of a kind that often changes results.
    pub important: bool,
    /// Why a difference of this kind explains a change, or hardly does.
    pub reason: &'static str,
}

/// A fact that is not the same in some runs, side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvironmentDifference {
    /// The fact's key, behind the name of the target where it is not of the machine that recorded: `guest: kernel.release`.
    pub key: String,
    /// Its value in each run.
    pub values: Vec<Option<Scalar>>,
    /// Where it was read.
    pub source: String,
    /// Whether it is of a kind that often changes results.
    pub important: bool,
    /// Why a difference of this kind explains a change, or hardly does.
    pub reason: &'static str,
}

/// The facts that are not the same in all runs, the likely causes first, without those that vary by themselves: of the machine
/// that recorded, and of targets that all runs have.
#[must_use]
pub fn environment_differences(runs: &[&RunRecord]) -> Vec<EnvironmentDifference> {
    let names: IndexSet<&str> =
        runs.iter().flat_map(|run| &run.manifest.targets).map(|target| target.name.as_str()).collect();
    let mut found: Vec<(usize, EnvironmentDifference)> = Vec::new();
    for name in names {
        let machines: Option<Vec<MachineFacts<'_>>> =
            runs.iter().map(|run| MachineFacts::of_target(run, name)).collect();
        found.extend(
            machines
                .into_iter()
                .flat_map(|machines| machine_fact_differences(machines, &format!("{name}: "))),
        );
    }
    let hosts = runs.iter().map(|run| MachineFacts::of_host(run)).collect();
    found.extend(machine_fact_differences(hosts, ""));
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, difference)| difference).collect()
}

fn machine_fact_differences(
    mut machines: Vec<MachineFacts<'_>>,
    prefix: &str,
) -> Vec<(usize, EnvironmentDifference)> {
    add_document_facts(&mut machines);
    let keys: BTreeSet<&str> = machines.iter().flat_map(|one| one.facts.iter()).map(|(key, _)| key).collect();
    let difference = |key: &str| {
        let facts: Vec<Option<&Fact>> = machines.iter().map(|one| one.facts.stored(key)).collect();
        let values: Vec<Option<Scalar>> =
            facts.iter().map(|fact| fact.map(|fact| fact.value.clone())).collect();
        let is_same = values.iter().all(|value| Some(value) == values.first());
        if is_same || fact_spec(key).volatility == FactVolatility::Varies {
            return None;
        }
        let (rank, important) = rank_difference(key, || true);
        let source = facts.iter().flatten().next().map(|fact| fact.source.clone()).unwrap_or_default();
        let (key, reason) = (format!("{prefix}{key}"), fact_reason(key));
        Some((rank, EnvironmentDifference { key, values, source, important, reason }))
    };
    keys.into_iter().filter_map(difference).collect()
}

/// As much of the larger one is a difference of a fact that drifts, where it explains anything.
const LEAST_DRIFT: f64 = 0.5;

/// Loads below this are an idle machine's.
const IDLE_LOAD: f64 = 1.0;

/// A load average of so many seconds still holds a good part of what ended before it (it decays by e in its own length).
const LOAD_AVERAGES: &[(FactKey, u64)] =
    &[(fact_table::LOAD_1, 60), (fact_table::LOAD_5, 300), (fact_table::LOAD_15, 900)];

/// After so many of its lengths, less than a hundredth of a load is left in its average.
const LENGTHS_TO_DECAY: u64 = 5;

/// A fact's rank among causes, behind all of them where its difference is none that matters, and whether it matters; `is_large`
/// says so of facts that vary by themselves.
fn rank_difference(key: &str, is_large: impl Fn() -> bool) -> (usize, bool) {
    let (spec, rank) = ranked_fact_spec(key);
    let matters = match spec.weight {
        FactWeight::Often => true,
        FactWeight::WhenLarge => is_large(),
        FactWeight::Hardly => false,
    };
    (if matters { rank } else { FACT_RANKS + rank }, matters)
}

/// Whether a number changed by much of itself.
fn has_drifted_far(ours: f64, theirs: f64) -> bool {
    let (less, more) = (ours.min(theirs), ours.max(theirs));
    more >= IDLE_LOAD && more - less > LEAST_DRIFT * more
}

/// Facts that are not the same in all runs of both sides, the likely causes first.
pub(crate) fn fact_differences(
    baseline: &[RunRecord],
    name: &str,
    candidate: &[RunRecord],
) -> Vec<FactDifference> {
    let sides = [baseline, candidate];
    let compared = ComparedTimes::of_runs(sides);
    let mut found = target_fact_differences(sides, name, &compared);
    let hosts = sides.map(|runs| runs.iter().map(MachineFacts::of_host).collect());
    found.extend(compare_facts(hosts, "", name, &compared));
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, difference)| difference).collect()
}

/// When the runs of a comparison ran, in nanoseconds of the machine's clock: their own load is in the averages of those after them.
struct ComparedTimes(Vec<(u64, u64)>);

impl ComparedTimes {
    fn of_runs(sides: [&[RunRecord]; 2]) -> Self {
        Self(sides.into_iter().flatten().map(run_times).collect())
    }

    /// Whether the load average of a run may be that of a run that is compared with it.
    fn explain_load(&self, run: &RunRecord, key: &str) -> bool {
        let Some((_, seconds)) = LOAD_AVERAGES.iter().find(|(average, _)| average == key) else {
            return false;
        };
        let (start, _) = run_times(run);
        let reach = LENGTHS_TO_DECAY * seconds * 1_000_000_000;
        let is_before = |(began, ended): &(u64, u64)| *began < start && start < ended.saturating_add(reach);
        self.0.iter().any(is_before)
    }
}

/// When a run began, and when its last iteration ended.
fn run_times(run: &RunRecord) -> (u64, u64) {
    let anchor = run.manifest.anchor;
    let last = run.iterations.iter().map(|iteration| iteration.end.0).max().unwrap_or(anchor.monotonic.0);
    let start = anchor.realtime.0;
    (start, start.saturating_add(last.saturating_sub(anchor.monotonic.0)))
}

/// The facts of one machine of a run.
struct MachineFacts<'a> {
    run: &'a RunRecord,
    facts: Cow<'a, Facts>,
    /// Index into the run's targets; none for the machine that recorded.
    target: Option<u32>,
}

impl<'a> MachineFacts<'a> {
    fn of_host(run: &'a RunRecord) -> Self {
        MachineFacts { run, facts: Cow::Borrowed(&run.manifest.facts), target: None }
    }

    /// The facts of a target with its kernel; none where it never came and so reported none.
    fn of_target(run: &'a RunRecord, name: &str) -> Option<Self> {
        let (index, target) = (0..).zip(&run.manifest.targets).find(|(_, target)| target.name == name)?;
        if target.kernel.is_empty() && target.facts.is_empty() {
            return None;
        }
        let mut facts = target.facts.clone();
        if !target.kernel.is_empty() {
            facts.add(fact_table::KERNEL_RELEASE, target.kernel.as_str(), "target");
        }
        Some(MachineFacts { run, facts: Cow::Owned(facts), target: Some(index) })
    }

    /// A document as the machine was first started.
    fn document(&self, name: &str) -> Option<&'a str> {
        let fits = |one: &&MachineDocument| one.target == self.target && one.document.name == name;
        self.run.documents.iter().find(fits).map(|one| one.document.text.as_str())
    }
}

/// Adds what the documents of machines hold to their facts, where all have a document and not all the same.
fn add_document_facts(machines: &mut [MachineFacts<'_>]) {
    add_facts_of_document(machines, FactDocument::SYSCTL, |text| {
        let tunable = |(name, value): (&str, String)| (fact_table::SYSCTL.key(name), value);
        parse_sysctl_list(text).into_iter().map(tunable).collect()
    });
    let options: BTreeSet<&str> = machines
        .iter()
        .filter_map(|machine| machine.document(FactDocument::KERNEL_CONFIG))
        .flat_map(list_config_options)
        .map(|(option, _)| option)
        .collect();
    add_facts_of_document(machines, FactDocument::KERNEL_CONFIG, |text| {
        // What a configuration does not mention, its kernel does not have.
        let mut values: BTreeMap<&str, &str> = options.iter().map(|option| (*option, "n")).collect();
        values.extend(list_config_options(text));
        let option =
            |(option, value): (&str, &str)| (fact_table::KERNEL_CONFIG.key(option), value.to_owned());
        values.into_iter().map(option).collect()
    });
}

fn add_facts_of_document(
    machines: &mut [MachineFacts<'_>],
    name: &str,
    parse: impl Fn(&str) -> Vec<(FactKey, String)>,
) {
    let texts: Option<Vec<&str>> = machines.iter().map(|machine| machine.document(name)).collect();
    let Some(texts) = texts.filter(|texts| texts.iter().any(|text| Some(text) != texts.first())) else {
        return;
    };
    for (machine, text) in machines.iter_mut().zip(texts) {
        let facts = machine.facts.to_mut();
        parse(text).into_iter().for_each(|(key, value)| facts.add(key, parse_scalar(&value), name));
    }
}

/// What differs in the targets, by name: what runs in a guest is explained by the guest first. Of targets that a study counts
/// (`guest1`, `guest2`) the first one speaks for all that say the same.
fn target_fact_differences(
    sides: [&[RunRecord]; 2],
    name: &str,
    compared: &ComparedTimes,
) -> Vec<(usize, FactDifference)> {
    let mut found: Vec<(usize, FactDifference)> = Vec::new();
    let mut known: BTreeSet<(String, Option<String>, Option<String>)> = BTreeSet::new();
    let targets = sides[0].iter().flat_map(|run| &run.manifest.targets);
    let names: IndexSet<&str> = targets.map(|target| target.name.as_str()).collect();
    for target in names {
        let facts = sides.map(|runs| {
            runs.iter().filter_map(|run| MachineFacts::of_target(run, target)).collect::<Vec<_>>()
        });
        if facts.iter().any(Vec::is_empty) {
            continue;
        }
        for (rank, fact) in compare_facts(facts, &format!("{target}: "), name, compared) {
            let bare = fact.key.rsplit(": ").next().unwrap_or_default().to_owned();
            if known.insert((bare, fact.baseline.clone(), fact.candidate.clone())) {
                found.push((rank, fact));
            }
        }
    }
    found
}

fn compare_facts(
    sides: [Vec<MachineFacts<'_>>; 2],
    prefix: &str,
    name: &str,
    compared: &ComparedTimes,
) -> Vec<(usize, FactDifference)> {
    let [mut all, theirs] = sides;
    let ours = all.len();
    all.extend(theirs);
    add_document_facts(&mut all);
    let (ours, theirs) = all.split_at(ours);
    let texts = |machine: &MachineFacts<'_>| -> RunValues {
        machine.facts.iter().map(|(key, fact)| (key.to_owned(), fact.value.to_string())).collect()
    };
    let values = [ours, theirs].map(|side| side.iter().map(texts).collect::<Vec<_>>());
    let sides = [ours, theirs];
    let difference = |(key, [ours, theirs]): (String, SidePair)| {
        let (rank, important) = rank_difference(&key, || have_drifted_apart(&sides, &key, compared));
        if fact_spec(&key).volatility == FactVolatility::Varies && !important {
            return None;
        }
        let fact = FactDifference {
            key: format!("{prefix}{key}"),
            candidate_name: name.into(),
            baseline: ours.to_text(),
            candidate: theirs.to_text(),
            important,
            reason: fact_reason(&key),
        };
        Some((rank, fact))
    };
    let [ours, theirs] = &values;
    differing_keys([ours, theirs], |_| true).into_iter().filter_map(difference).collect()
}

/// Whether the middles of a fact that varies by itself are far apart, of the runs whose load is not that of other runs that are
/// compared; a value that is no number, or that one side lacks, is.
fn have_drifted_apart(sides: &[&[MachineFacts<'_>]; 2], key: &str, compared: &ComparedTimes) -> bool {
    let judged = |side: &[MachineFacts<'_>]| -> Vec<Option<f64>> {
        let own = side.iter().filter(|machine| !compared.explain_load(machine.run, key));
        own.map(|machine| machine.facts.stored(key)?.value.to_string().parse().ok()).collect()
    };
    let [ours, theirs] = sides.map(judged);
    if ours.is_empty() || theirs.is_empty() {
        return false;
    }
    let middle = |values: &[Option<f64>]| -> Option<f64> {
        perflab_stats::median(&values.iter().copied().collect::<Option<Vec<f64>>>()?).ok()
    };
    middle(&ours).zip(middle(&theirs)).is_none_or(|(ours, theirs)| has_drifted_far(ours, theirs))
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

impl PlanDifference {
    fn from_sides((key, [ours, theirs]): (String, SidePair)) -> Self {
        Self { key, baseline: ours.to_text(), candidate: theirs.to_text() }
    }
}

impl std::fmt::Display for PlanDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".into());
        if self.baseline == self.candidate {
            // Both sides mix the same values.
            return write!(f, "{}: {} on both sides", self.key, text(&self.baseline));
        }
        write!(f, "{}: {} -> {}", self.key, text(&self.baseline), text(&self.candidate))
    }
}

/// Keys of a study that are no part of how it is carried out, or that are compared elsewhere.
const KEYS_COMPARED_ELSEWHERE: &[&str] =
    &["title", "description", "reference", "workload", "metric", "facts", "run.seed", "run.order"];

/// Cases of one name.
struct TwinCases {
    /// The name that they are lined up with.
    name: String,
    /// The parts of each, by side.
    parts: [Vec<RunValues>; 2],
}

/// Cases that have one name and are not the same in all runs of both sides, under the name that the case is lined up with. Cases
/// are twins by all factors but the `hidden` ones, which are compared.
pub(crate) fn edited_cases(
    sides: [&[RunRecord]; 2],
    hidden: &[String],
    lined_up_without: &[String],
) -> IndexMap<String, Vec<PlanDifference>> {
    let varied: BTreeSet<String> =
        sides.into_iter().flatten().flat_map(|run| varied_keys(run, hidden)).collect();
    let mut twins: IndexMap<String, TwinCases> = IndexMap::new();
    for (at, runs) in sides.into_iter().enumerate() {
        for (run, case) in
            runs.iter().flat_map(|run| run.manifest.plan.cases.iter().map(move |case| (run, case)))
        {
            let lined_up =
                || TwinCases { name: case_name(case, lined_up_without), parts: [Vec::new(), Vec::new()] };
            let twin = twins.entry(case_name(case, hidden)).or_insert_with(lined_up);
            let mut own = case_parts(&run.manifest, case);
            own.retain(|(key, _)| !varied.contains(key));
            if let Some(side) = twin.parts.get_mut(at) {
                side.push(own);
            }
        }
    }
    let all: Vec<&Manifest> = sides.into_iter().flatten().map(|run| &run.manifest).collect();
    let mut found: IndexMap<String, Vec<PlanDifference>> = IndexMap::new();
    for TwinCases { name, parts: [ours, theirs] } in twins.into_values() {
        // A case of one side only has no twin.
        if ours.is_empty() || theirs.is_empty() {
            continue;
        }
        let differences = spell_out_definitions(case_part_differences([&ours, &theirs]), &all);
        if !differences.is_empty() {
            let known = found.entry(name).or_default();
            known.extend(differences.into_iter().filter(|one| !known.contains(one)).collect::<Vec<_>>());
        }
    }
    found
}

/// How the study of a run is carried out, key by key: where a case runs before how it is recorded; `hidden` factors are what is
/// compared.
fn run_rules(run: &Manifest, hidden: &[String]) -> RunValues {
    let is_hidden = |key: &str| hidden.iter().any(|name| key.starts_with(&format!("factor.{name}.")));
    let mut found: RunValues = study_leaves(run).into_iter().filter(|(key, _)| !is_hidden(key)).collect();
    for (key, _) in &mut found {
        if let Some(bare) = key.strip_prefix("run.") {
            *key = bare.to_owned();
        }
    }
    found.push(("order".into(), run.plan.order.clone()));
    found.extend(
        run.plan.margins.iter().map(|(metric, margin)| (format!("{MARGIN_KEY}{metric}"), margin.to_string())),
    );
    found
}

/// Before the metric's name in the key of its margin.
const MARGIN_KEY: &str = "margin of ";

/// How the study is carried out: what is not the same in all runs of both sides beside their cases.
pub(crate) fn side_rule_differences(sides: [&[RunRecord]; 2], hidden: &[String]) -> Vec<PlanDifference> {
    // Sides may be of two studies; a side of several is a label that was used for more than one thing.
    let mixes = sides.iter().any(|runs| is_mixed(runs));
    let rules = |run: &RunRecord| {
        let study = mixes.then(|| ("study".to_owned(), run.manifest.study.title.clone()));
        run_rules(&run.manifest, hidden).into_iter().chain(study).collect()
    };
    let [ours, theirs] = sides.map(|runs| runs.iter().map(rules).collect::<Vec<RunValues>>());
    // A metric that one side lacks is told elsewhere.
    let found = differing_keys([&ours, &theirs], |key| !key.starts_with(MARGIN_KEY));
    let mut found: Vec<PlanDifference> = found.into_iter().map(PlanDifference::from_sides).collect();
    // Where a case runs explains more than how it is recorded.
    found.sort_by_key(|one| !one.key.starts_with("target."));
    found
}

/// Whether runs that perflab made are of studies with different titles; other tools' have the titles of their files.
fn is_mixed(runs: &[RunRecord]) -> bool {
    let own = runs.iter().filter(|run| run.manifest.facts.value(&fact_table::IMPORT_KIND).is_none());
    let titles: BTreeSet<&str> = own.map(|run| run.manifest.study.title.as_str()).collect();
    titles.len() > 1
}

/// Short enough to be read, long enough to differ.
const DIGEST_LENGTH: usize = 12;

/// The end of the key of a case's definition.
const DEFINITION_KEY: &str = ": definition";

/// What a case is, key by key: workload, definition, parameters, environment.
fn case_parts(run: &Manifest, case: &Case) -> RunValues {
    let name = &case.workload;
    let mut found = vec![(format!("{name}: workload"), case.uses.clone())];
    if let Some(digest) = run.plan.definitions.get(&case.uses) {
        found.push((format!("{name}{DEFINITION_KEY}"), digest.chars().take(DIGEST_LENGTH).collect()));
    }
    let parameters = case.parameters.iter().map(|(key, value)| (key.clone(), value.to_string()));
    let environment = case.environment.iter().map(|(key, value)| (format!("${key}"), value.clone()));
    let texts: BTreeMap<String, String> = parameters.chain(environment).collect();
    found.extend(texts.into_iter().map(|(key, value)| (format!("{name}: {key}"), value)));
    found
}

fn case_part_differences(sides: [&[RunValues]; 2]) -> Vec<PlanDifference> {
    // Runs of before definitions were kept, and imports, have none: unknown is not different.
    let found = differing_keys(sides, |key| !key.ends_with(DEFINITION_KEY));
    // Another workload has another definition.
    let is_other_workload = found.iter().any(|(key, _)| key.ends_with(": workload"));
    let tells = |key: &str| !(is_other_workload && key.ends_with(DEFINITION_KEY));
    found.into_iter().filter(|(key, _)| tells(key)).map(PlanDifference::from_sides).collect()
}

/// What differs between two cases of one name: workload, definition, parameters, environment.
pub(crate) fn case_differences(
    (our_run, ours): (&Manifest, &Case),
    (their_run, theirs): (&Manifest, &Case),
) -> Vec<PlanDifference> {
    let found = case_part_differences([&[case_parts(our_run, ours)], &[case_parts(their_run, theirs)]]);
    spell_out_definitions(found, &[our_run, their_run])
}

/// In place of the digests of two definitions, what differs in them, where the runs tell that.
fn spell_out_definitions(found: Vec<PlanDifference>, runs: &[&Manifest]) -> Vec<PlanDifference> {
    let spell_out = |one: PlanDifference| {
        let digests = one.baseline.as_deref().zip(one.candidate.as_deref());
        let Some((name, (ours, theirs))) = one.key.strip_suffix(DEFINITION_KEY).zip(digests) else {
            return vec![one];
        };
        let parts = definition_differences(runs, [ours, theirs]).into_iter();
        let parts: Vec<PlanDifference> = parts
            .map(|(key, [baseline, candidate])| PlanDifference {
                key: format!("{name}: {key}"),
                baseline,
                candidate,
            })
            .collect();
        if parts.is_empty() { vec![one] } else { parts }
    };
    found.into_iter().flat_map(spell_out).collect()
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

/// Keys that a compared factor sets in a run: that they differ is what is asked.
fn varied_keys(run: &RunRecord, hidden: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for name in hidden {
        let Some(factor) = run.manifest.study.factor.get(name) else { continue };
        let key = factor.key.as_ref().unwrap_or(name);
        let key = match factor.kind {
            FactorKind::Parameter => key.clone(),
            FactorKind::Environment => format!("${key}"),
            _ => continue,
        };
        found.extend(run.manifest.plan.cases.iter().map(|case| format!("{}: {key}", case.workload)));
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
    let sides = [std::slice::from_ref(ours), std::slice::from_ref(theirs)];
    let mut found: Vec<PlanDifference> = Vec::new();
    for difference in edited_cases(sides, &[], &[]).into_values().flatten() {
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
    found.extend(side_rule_differences(sides, &[]));
    let [ours, theirs] = sides;
    let facts = fact_differences(ours, "", theirs);
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
            let number = |value: Option<&Scalar>| value.unwrap().to_string().parse().unwrap();
            let (place, matters) = rank_difference(difference.key, || {
                has_drifted_far(number(difference.ours), number(difference.theirs))
            });
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
