//! The plan: a study, a catalogue and the host's facts become every case and slot, in order.
//!
//! Everything that can be refused is refused here, with the study's key, before anything is done. Expressions may
//! use host facts and the study's own `[values]`.
//!
//! The order of slots is randomised complete blocks, or one case after the other. Blocks are the answer to drift:
//! in simulation, running AAAA…BBBB under a 3 % drift gives 80 % false alarms, randomised blocks 5 %
//! (field-notes/statistics.md, section 1).

use std::collections::BTreeSet;
use std::path::PathBuf;

use indexmap::IndexMap;
use perflab_disk::scratch_disk::{DiskSite, resolve_disks};
use perflab_model::expression::{ExpressionError, ExpressionScope};
use perflab_model::placement::Placement;
use perflab_model::study::{
    BesideSpec, CountersSpec, EVENTS_MONITOR, Factor, FactorKind, FactorLevel, FactorSide, MonitorTiming,
    RunRules, SlotOrder, StudyList, TargetKey, TargetSpec, find_study_problems,
};
use perflab_model::{
    Case, Facts, HostInventory, PlannedBeside, PlannedDelay, PlannedLayout, PlannedParticipation,
    PlannedPlacement, PlannedTarget, PlannedTargetVariant, Problem, RunPlan, Scalar, Slot, Study,
    SyscallDelay, fact_table,
};
use perflab_settings::resolve_settings;
use perflab_workload::{Catalogue, definition_parts};
use rand::seq::SliceRandom;
use rand::{RngExt as _, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::case_expansion::{catalogue_name, factor_concerns};
use crate::inventory_targets::{group_levels, plan_target, settle_hosts};

/// What the command line chose among the study's possibilities.
#[derive(Debug, Clone, Default)]
pub struct PlanChoices {
    /// `--set factor=level`: only that level of that factor, or those of them that are named.
    pub set: Vec<(String, String)>,
    /// `--only WORKLOAD`: only that workload of the study.
    pub only: Option<String>,
    /// A seed drawn by the caller, for studies that give none.
    pub seed: u64,
    /// `--scratch DIR`: where scratch directories and images are made, instead of the temporary directory.
    pub scratch: Option<PathBuf>,
    /// The hosts that targets may be.
    pub inventory: HostInventory,
}

/// Plans a study. All problems at once, each with the key of the study that it is about.
pub fn plan_study(
    study: &Study,
    catalogue: &Catalogue,
    facts: &Facts,
    choices: &PlanChoices,
) -> Result<RunPlan, Vec<Problem>> {
    let study = settle_study(study, catalogue, facts, choices)?;
    let targets = count_targets(&study, &choices.inventory);
    if let Some(problem) = crate::case_expansion::plan_size_problem(&study, catalogue, targets) {
        return Err(vec![problem]);
    }
    let scope = expression_scope(&study, facts).map_err(|problem| vec![problem])?;
    let mut problems = crate::study_check::check_study(&study, catalogue, &scope);
    if !problems.is_empty() {
        return Err(problems);
    }
    let cases = crate::case_expansion::expand_cases(&study, catalogue, &scope, &mut problems);
    problems.extend(participation_problems(&study, &choices.inventory));
    let settings = resolve_settings(&study, &scope, FactorSide::Host);
    let settings = settings.map_err(|problem| problems.push(problem)).unwrap_or_default();
    // Workloads run on the targets where there are some, and there are their disks.
    let site = DiskSite { scope: &scope, scratch: choices.scratch.as_deref() };
    let site = Some(site).filter(|_| study.target.is_empty());
    let has_scratch = needs_scratch(&study, &cases, catalogue);
    let disks = resolve_disks(&study, &cases, has_scratch, site);
    let disks = disks.map_err(|problem| problems.push(problem)).unwrap_or_default();
    if !problems.is_empty() {
        return Err(problems);
    }
    let seed = study.run.seed.unwrap_or(choices.seed);
    let target_variants = plan_target_variants(&study, &cases, &choices.inventory);
    let groups = group_by_start(&cases, &study.run, &target_variants);
    let starts = study.run.boots.saturating_mul(u32::try_from(groups.len()).unwrap_or(u32::MAX).max(1));
    let slots = match study.run.order {
        SlotOrder::Duet => {
            order_duets(&pair_levels(&study, &cases).map_err(|problem| vec![problem])?, &study.run, seed)
        }
        _ => order_slots(&groups, &study.run, seed),
    };
    Ok(RunPlan {
        seed,
        order: order_name(study.run.order).into(),
        slots: assign_layouts(slots, starts, &study.run, seed),
        layouts: draw_layouts(starts, &study.run, seed),
        factors: level_names(&study),
        definitions: workload_digests(&study, catalogue),
        definition_parts: workload_parts(&study, catalogue),
        metrics: declared_metrics(&study, catalogue),
        exact: Vec::new(),
        series: printed_series(&study, catalogue),
        margins: study
            .metric
            .iter()
            .filter_map(|(name, choice)| Some((name.clone(), choice.margin_fraction()?)))
            .collect(),
        cases,
        settings,
        disks,
        targets: target_variants
            .first()
            .map_or_else(|| plan_targets(&study, &choices.inventory), |first| first.targets.clone()),
        target_variants,
        participation: plan_participation(&study),
        placements: plan_placements(&study),
        besides: plan_besides(&study),
        delays: plan_delays(&study),
    })
}

/// The study with its lists as this machine gives them, and without what `--set` and `--only` leave out.
pub fn settle_study(
    study: &Study,
    catalogue: &Catalogue,
    facts: &Facts,
    choices: &PlanChoices,
) -> Result<Study, Vec<Problem>> {
    let mut study = evaluate_lists(study, facts)?;
    resolve_monitors(&mut study);
    let mut problems = settle_hosts(&mut study, &choices.inventory);
    let mut kept: IndexMap<&str, Vec<&str>> = IndexMap::new();
    for (factor, level) in &choices.set {
        let is_group = study.factor.get(factor).is_some_and(Factor::varies_hosts);
        let hosts = group_levels(&choices.inventory, level).filter(|_| is_group);
        kept.entry(factor).or_default().extend(hosts.unwrap_or_else(|| vec![level]));
    }
    for (factor, levels) in kept {
        problems.extend(keep_levels(&mut study, factor, &levels));
    }
    if let Some(only) = &choices.only {
        problems.extend(keep_workload(&mut study, catalogue, only));
    }
    if problems.is_empty() { Ok(study) } else { Err(problems) }
}

/// Puts the monitors of the study's preset in its place, and those that read its counters beside them; a preset that there is not
/// stays, for whoever checks.
fn resolve_monitors(study: &mut Study) {
    let counting = study.counters.iter().flat_map(CountersSpec::monitors);
    let is_on = |name: &&str| study.monitors.get(*name) != Some(&MonitorTiming::Off);
    let counting: Vec<&str> = counting.filter(is_on).collect();
    let preset = study.monitors.preset.as_deref().map(perflab_observe::find_monitor_preset);
    match preset {
        Some(Some(preset)) => study.monitors.resolve(&preset.monitors()),
        Some(None) => {}
        None => study.monitors.resolve(&[]),
    }
    for (name, timing) in study.monitors.iter_mut() {
        if timing.interval().is_some() && perflab_observe::is_read_at_edges(name) {
            *timing = MonitorTiming::Edges;
        }
    }
    let counting = counting.into_iter().chain((!study.events.is_empty()).then_some(EVENTS_MONITOR));
    for name in counting.collect::<Vec<_>>() {
        study.monitors.entry(name.to_owned()).or_insert(MonitorTiming::Edges);
    }
}

/// The study with every list written out.
fn evaluate_lists(study: &Study, facts: &Facts) -> Result<Study, Vec<Problem>> {
    let mut settled = study.clone();
    let matrices = settled.workload.values().flat_map(|workload| workload.matrix.values());
    let has_expression = matrices.into_iter().any(|values| values.expression().is_some())
        || settled.factor.values().any(|factor| factor.levels.expression().is_some());
    if !has_expression {
        return Ok(settled);
    }
    let scope = expression_scope(study, facts).map_err(|problem| vec![problem])?;
    let mut problems = Vec::new();
    for (name, workload) in &mut settled.workload {
        for (parameter, values) in &mut workload.matrix {
            if let Err(error) = settle_list(values, &scope, |value| value) {
                problems.push(Problem::new(format!("workload.{name}.matrix.{parameter}"), error.to_string()));
            }
        }
    }
    for (name, factor) in &mut settled.factor {
        if let Err(error) = settle_list(&mut factor.levels, &scope, FactorLevel::from_scalar) {
            problems.push(Problem::new(format!("factor.{name}.levels"), error.to_string()));
        }
    }
    if problems.is_empty() {
        problems = find_study_problems(&settled);
    }
    if problems.is_empty() { Ok(settled) } else { Err(problems) }
}

/// Puts the elements that an expression gives into its place, each once: on a machine with one CPU, `[1, cpus]` is one value.
fn settle_list<T>(
    list: &mut StudyList<T>,
    scope: &ExpressionScope,
    make: impl Fn(Scalar) -> T,
) -> Result<(), ExpressionError> {
    let Some(expression) = list.expression() else { return Ok(()) };
    let mut values = scope.evaluate_list(expression)?;
    let mut seen = BTreeSet::new();
    values.retain(|value| seen.insert(value.to_string()));
    *list = values.into_iter().map(make).collect::<Vec<_>>().into();
    Ok(())
}

fn keep_levels(study: &mut Study, factor: &str, levels: &[&str]) -> Option<Problem> {
    let known: Vec<String> = study.factor.keys().cloned().collect();
    let Some(found) = study.factor.get_mut(factor) else {
        let hint = perflab_model::problem::suggest_name(factor, known.iter().map(String::as_str));
        return Some(
            Problem::new("factor", format!("`--set`: the study has no factor `{factor}`")).with_hint(hint),
        );
    };
    let names: Vec<String> = found.levels.iter().map(|level| level.name.clone()).collect();
    let unknown = levels.iter().find(|level| !names.iter().any(|name| name == *level));
    found.levels.retain(|candidate| levels.contains(&candidate.name.as_str()));
    unknown.map(|level| {
        let hint = perflab_model::problem::suggest_name(level, names.iter().map(String::as_str));
        let key = format!("factor.{factor}.levels");
        Problem::new(key, format!("`--set`: there is no level `{level}`")).with_hint(hint)
    })
}

fn keep_workload(study: &mut Study, catalogue: &Catalogue, only: &str) -> Option<Problem> {
    if !study.workload.contains_key(only) {
        let hint = perflab_model::problem::suggest_name(only, study.workload.keys().map(String::as_str));
        let message = format!("`--only`: the study has no workload `{only}`");
        return Some(Problem::new("workload", message).with_hint(hint));
    }
    let concerned = |study: &Study| -> Vec<String> {
        let factors =
            study.factor.iter().filter(|(name, factor)| is_concerning(name, factor, study, catalogue));
        factors.map(|(name, _)| name.clone()).collect()
    };
    let before = concerned(study);
    study.workload.retain(|name, _| name == only);
    let after = concerned(study);
    // A factor of another workload has nothing left to vary.
    study.factor.retain(|name, factor| {
        factor.workload.as_deref().is_none_or(|name| name == only)
            && (after.contains(name) || !before.contains(name))
    });
    None
}

/// Whether a workload of the study has what a factor varies.
fn is_concerning(name: &str, factor: &Factor, study: &Study, catalogue: &Catalogue) -> bool {
    factor.kind != FactorKind::Parameter
        || study.workload.iter().any(|(workload, spec)| {
            let definition = catalogue.get(catalogue_name(workload, spec));
            definition.is_none_or(|definition| factor_concerns(name, factor, workload, definition))
        })
}

/// How many targets a study has, which may be more than there could be names for.
fn count_targets(study: &Study, inventory: &HostInventory) -> usize {
    let count = |spec: &TargetSpec| match spec.host.as_deref().and_then(|host| inventory.members(host)) {
        Some(hosts) => hosts.len(),
        None => spec.count as usize,
    };
    study.target.values().map(count).fold(0, usize::saturating_add)
}

/// Every target of a study: of several alike and of a group, each.
fn plan_targets(study: &Study, inventory: &HostInventory) -> Vec<PlannedTarget> {
    study.target.iter().flat_map(|(name, spec)| plan_target(name, spec, inventory)).collect()
}

/// The targets at each combination of levels of the factors over their keys that a case has.
fn plan_target_variants(
    study: &Study,
    cases: &[Case],
    inventory: &HostInventory,
) -> Vec<PlannedTargetVariant> {
    let varied: Vec<_> =
        study.factor.iter().filter(|(_, factor)| factor.kind == FactorKind::Target).collect();
    let mut variants: Vec<PlannedTargetVariant> = Vec::new();
    if varied.is_empty() {
        return variants;
    }
    for case in cases {
        let of_case = |name: &String| Some((name.clone(), case.levels.get(name)?.clone()));
        let levels: IndexMap<String, String> = varied.iter().filter_map(|(name, _)| of_case(name)).collect();
        if variants.iter().any(|variant| variant.levels == levels) {
            continue;
        }
        let mut changed = study.clone();
        for (name, factor) in &varied {
            let level = factor.levels.iter().find(|level| levels.get(*name) == Some(&level.name));
            let Some((level, key)) = level.zip(factor.key.as_deref().map(TargetKey::new)) else { continue };
            for (_, spec) in changed.target.iter_mut().filter(|(target, _)| key.concerns(target)) {
                // What it cannot be was refused when the study was read.
                *spec = key.apply(spec, &level.value).unwrap_or_else(|_| spec.clone());
            }
        }
        variants.push(PlannedTargetVariant { levels, targets: plan_targets(&changed, inventory) });
    }
    variants
}

/// Whether a workload of these cases needs a scratch directory, or what runs beside them.
pub(crate) fn needs_scratch(study: &Study, cases: &[Case], catalogue: &Catalogue) -> bool {
    let used = cases.iter().filter_map(|case| catalogue.get(&case.uses));
    let beside = study.beside.keys().filter_map(|name| catalogue.get_beside(name));
    used.chain(beside).any(|definition| definition.needs.scratch)
}

/// How many targets take part at each level of the factors over targets.
fn plan_participation(study: &Study) -> Vec<PlannedParticipation> {
    let counted = study.factor.iter().filter(|(_, factor)| factor.kind == FactorKind::Targets);
    let levels = counted.flat_map(|(name, factor)| factor.levels.iter().map(move |level| (name, level)));
    let planned = |(factor, level): (&String, &FactorLevel)| {
        let Scalar::Int(number) = level.value else { return None };
        let targets = u32::try_from(number).ok()?;
        Some(PlannedParticipation { factor: factor.clone(), level: level.name.clone(), targets })
    };
    levels.filter_map(planned).collect()
}

/// Levels of more targets than the groups of the inventory give.
fn participation_problems(study: &Study, inventory: &HostInventory) -> Vec<Problem> {
    let all = count_targets(study, inventory);
    let counted = study.factor.iter().filter(|(_, factor)| factor.kind == FactorKind::Targets);
    let levels = counted.flat_map(|(name, factor)| {
        factor.levels.iter().enumerate().map(move |(index, level)| (name, index, level))
    });
    let is_more = |level: &FactorLevel| matches!(level.value, Scalar::Int(number) if number > all as i64);
    levels
        .filter(|(_, _, level)| is_more(level))
        .map(|(name, index, level)| {
            let key = format!("factor.{name}.levels[{index}]");
            let problem = Problem::new(key, format!("`{}` is no number of targets", level.value));
            problem.with_hint(format!("from 1 to {all}, which is how many the study has"))
        })
        .collect()
}

/// What runs beside cases: at the levels of a factor that name it, or, where no factor varies that, always.
fn plan_besides(study: &Study) -> Vec<PlannedBeside> {
    let varied: Vec<_> =
        study.factor.iter().filter(|(_, factor)| factor.kind == FactorKind::Beside).collect();
    if varied.is_empty() {
        return study.beside.keys().map(|name| PlannedBeside { name: name.clone(), at: None }).collect();
    }
    let levels =
        varied.into_iter().flat_map(|(name, factor)| factor.levels.iter().map(move |level| (name, level)));
    let planned = |(factor, level): (&String, &FactorLevel)| {
        let name = level.value.to_string();
        let at = Some((factor.clone(), level.name.clone()));
        study.beside.contains_key(&name).then_some(PlannedBeside { name, at })
    };
    levels.filter_map(planned).collect()
}

/// Where workloads run at each level of the factors over placements; at levels that leave it to the kernel, that is not planned.
fn plan_placements(study: &Study) -> Vec<PlannedPlacement> {
    let placing = study.factor.iter().filter(|(_, factor)| factor.kind == FactorKind::Placement);
    let levels = placing.flat_map(|(name, factor)| factor.levels.iter().map(move |level| (name, level)));
    let planned = |(factor, level): (&String, &FactorLevel)| {
        let placement: Placement = level.value.to_string().parse().ok()?;
        (!placement.is_free()).then(|| PlannedPlacement {
            factor: factor.clone(),
            level: level.name.clone(),
            placement,
        })
    };
    levels.filter_map(planned).collect()
}

/// How long system calls are delayed at each level of the factors over them, also by nothing.
fn plan_delays(study: &Study) -> Vec<PlannedDelay> {
    let delaying = study.factor.iter().filter(|(_, factor)| factor.kind == FactorKind::Syscall);
    let levels =
        delaying.flat_map(|(name, factor)| factor.levels.iter().map(move |level| (name, factor, level)));
    let planned = |(name, factor, level): (&String, &Factor, &FactorLevel)| {
        let call = factor.key.as_deref().unwrap_or(name);
        let delay = SyscallDelay::of_level(call, &level.value.to_string())?;
        Some(PlannedDelay { factor: name.clone(), level: level.name.clone(), delay })
    };
    levels.filter_map(planned).collect()
}

fn level_names(study: &Study) -> IndexMap<String, Vec<String>> {
    let names = |factor: &perflab_model::study::Factor| {
        factor.levels.iter().map(|level| level.name.clone()).collect()
    };
    study.factor.iter().map(|(name, factor)| (name.clone(), names(factor))).collect()
}

fn declared_metrics(study: &Study, catalogue: &Catalogue) -> IndexMap<String, Vec<perflab_model::Metric>> {
    let mut declared = IndexMap::new();
    for (name, workload) in &study.workload {
        let uses = crate::case_expansion::catalogue_name(name, workload);
        if let Some(definition) = catalogue.get(uses) {
            let beside = study.beside.keys().map(|name| BesideSpec::rate_metric(name));
            let delaying = study.factor.iter().filter(|(_, factor)| {
                factor.kind == FactorKind::Syscall && factor.workload.as_ref().is_none_or(|own| own == name)
            });
            let calls = delaying.map(|(name, factor)| factor.key.as_deref().unwrap_or(name));
            let delays =
                calls.flat_map(|call| [SyscallDelay::count_metric(call), SyscallDelay::added_metric(call)]);
            let all = definition.all_metrics().into_iter().chain(beside).chain(delays).collect();
            declared.insert(uses.to_owned(), crate::study_check::choose_primary_metrics(study, all));
        }
    }
    declared
}

/// The tables that the output of the study's workloads becomes.
fn printed_series(study: &Study, catalogue: &Catalogue) -> Vec<String> {
    let used =
        study.workload.iter().map(|(name, workload)| crate::case_expansion::catalogue_name(name, workload));
    let definitions = used.filter_map(|uses| catalogue.get(uses));
    let tables = definitions
        .flat_map(|definition| definition.series.iter().map(move |rule| definition.series_table(rule)));
    let unique: std::collections::BTreeSet<String> = tables.collect();
    unique.into_iter().collect()
}

/// What each workload does, as a digest.
fn workload_digests(study: &Study, catalogue: &Catalogue) -> IndexMap<String, String> {
    let used =
        study.workload.iter().map(|(name, workload)| crate::case_expansion::catalogue_name(name, workload));
    let found = used.filter_map(|uses| Some((uses.to_owned(), catalogue.get(uses)?.digest.clone())));
    found.collect()
}

/// What the digests are made of.
fn workload_parts(study: &Study, catalogue: &Catalogue) -> IndexMap<String, serde_json::Value> {
    let used =
        study.workload.iter().map(|(name, workload)| crate::case_expansion::catalogue_name(name, workload));
    used.filter_map(|uses| Some((uses.to_owned(), definition_parts(catalogue.source(uses)?)))).collect()
}

/// Host facts plus the study's values, which may need each other but not in a cycle.
pub fn expression_scope(study: &Study, facts: &Facts) -> Result<ExpressionScope, Problem> {
    let mut names = facts.expression_names();
    if study.run.order == SlotOrder::Duet
        && let Some(cpus) = half_cpus(facts)
    {
        names.insert("cpus".into(), Scalar::Int(cpus));
    }
    let mut scope = ExpressionScope::new(names);
    let values = study.values.iter().map(|(name, value)| (name.as_str(), value));
    match scope.define(values) {
        Ok(()) => Ok(scope),
        Err((name, error)) => Err(Problem::new(format!("values.{name}"), error.to_string())),
    }
}

/// How many CPUs each half of a machine has: as many whole cores as the other.
fn half_cpus(facts: &Facts) -> Option<i64> {
    let number = |key| match facts.value(key) {
        Some(Scalar::Int(number)) => Some(*number),
        _ => None,
    };
    let (cores, cpus) = (number(&fact_table::CPU_CORES)?, number(&fact_table::CPU_ONLINE)?);
    Some(if cores > 1 { cores / 2 * (cpus / cores) } else { cpus / 2 })
}

/// The order's name as stored.
fn order_name(order: SlotOrder) -> &'static str {
    match order {
        SlotOrder::Randomised => "randomised",
        SlotOrder::Sequential => "sequential",
        SlotOrder::Duet => RunPlan::DUET,
    }
}

/// Which cases share a start of the targets, by their numbers: all of them, unless each has its own, or the targets vary.
fn group_by_start(cases: &[Case], rules: &RunRules, variants: &[PlannedTargetVariant]) -> Vec<Vec<u32>> {
    let numbered = (0_u32..).zip(cases);
    if rules.boot_each_case {
        return numbered.map(|(number, _)| vec![number]).collect();
    }
    let mut groups: IndexMap<Option<usize>, Vec<u32>> = IndexMap::new();
    for (number, case) in numbered {
        groups.entry(PlannedTargetVariant::find(variants, case)).or_default().push(number);
    }
    groups.into_values().collect()
}

/// All slots, in every boot anew: each of `groups` has a start of the targets of its own, by whose numbers boots are told apart.
/// The same seed gives the same order on every machine.
fn order_slots(groups: &[Vec<u32>], rules: &RunRules, seed: u64) -> Vec<Slot> {
    let starts = u32::try_from(groups.len()).unwrap_or(u32::MAX).max(1);
    let boot = |boot: u32| {
        let ordered = order_one_boot(groups, rules, seed.wrapping_add(u64::from(boot)));
        let number = move |start: u32| boot.saturating_mul(starts).saturating_add(start);
        let numbered = (0_u32..).zip(ordered);
        numbered.flat_map(move |(start, slots)| {
            slots.into_iter().map(move |slot| Slot { boot: number(start), ..slot })
        })
    };
    (0..rules.boots).flat_map(boot).collect()
}

/// The slots of each start in one boot. Groups are shuffled, so that no level always comes first, and so are the cases of each.
fn order_one_boot(groups: &[Vec<u32>], rules: &RunRules, seed: u64) -> Vec<Vec<Slot>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut groups: Vec<&Vec<u32>> = groups.iter().collect();
    if rules.order == SlotOrder::Randomised && groups.len() > 1 {
        groups.shuffle(&mut random);
    }
    let slots = |cases: &Vec<u32>| match rules.order {
        SlotOrder::Randomised if cases.len() > 1 => randomised_blocks(cases, rules, &mut random),
        _ => cases.iter().flat_map(|case| one_case_slots(*case, rules)).collect(),
    };
    groups.into_iter().map(slots).collect()
}

fn one_case_slots(case: u32, rules: &RunRules) -> impl Iterator<Item = Slot> + use<> {
    let slot = move |warmup| {
        move |iteration| Slot { case, iteration, block: iteration, warmup, boot: 0, layout: None }
    };
    (0..rules.warmup).map(slot(true)).chain((0..rules.max_iterations()).map(slot(false)))
}

fn randomised_blocks(cases: &[u32], rules: &RunRules, random: &mut ChaCha8Rng) -> Vec<Slot> {
    let warm = (0..rules.warmup).map(|block| (block, true));
    let blocks = warm.chain((0..rules.max_iterations()).map(|block| (block, false)));
    blocks.flat_map(|(block, warmup)| shuffled_block(cases, block, warmup, random)).collect()
}

/// The cases that run at once, by their numbers: those that differ in one factor of two levels.
fn pair_levels(study: &Study, cases: &[Case]) -> Result<Vec<[u32; 2]>, Problem> {
    let mut groups: IndexMap<String, Vec<u32>> = IndexMap::new();
    for (number, case) in (0_u32..).zip(cases) {
        groups.entry(case.label_without_levels()).or_default().push(number);
    }
    let pair = |(label, numbers): (String, Vec<u32>)| {
        <[u32; 2]>::try_from(numbers).map_err(|numbers| {
            let names: Vec<&str> = study.factor.keys().map(String::as_str).collect();
            let message = format!("`duet` runs two levels at once, and `{label}` has {}", numbers.len());
            let name = names.join(" or ");
            let hint = format!("pick two with `--set {name}=LEVEL --set {name}=LEVEL`, or leave `order` out");
            Problem::new("run.order", message).with_hint(hint)
        })
    };
    groups.into_iter().map(pair).collect()
}

/// Blocks of pairs that run at once, the first of each on the first half of the CPUs. Which level that is, is drawn for one block,
/// and the other in the next, so that either half has each level as often.
fn order_duets(pairs: &[[u32; 2]], rules: &RunRules, seed: u64) -> Vec<Slot> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut sides: Vec<[u32; 2]> = pairs.to_vec();
    let warm = (0..rules.warmup).map(|block| (block, true));
    let blocks = warm.chain((0..rules.max_iterations()).map(|block| (block, false)));
    let mut slots = Vec::new();
    for (number, (block, warmup)) in blocks.enumerate() {
        for pair in &mut sides {
            if number % 2 == 0 {
                pair.shuffle(&mut random);
            } else {
                pair.swap(0, 1);
            }
        }
        let mut ordered = sides.clone();
        ordered.shuffle(&mut random);
        let slot = |case: u32| Slot { case, iteration: block, block, warmup, boot: 0, layout: None };
        slots.extend(ordered.into_iter().flatten().map(slot));
    }
    slots
}

fn shuffled_block(cases: &[u32], block: u32, warmup: bool, random: &mut ChaCha8Rng) -> Vec<Slot> {
    let slot = |case: &u32| Slot { case: *case, iteration: block, block, warmup, boot: 0, layout: None };
    let mut slots: Vec<Slot> = cases.iter().map(slot).collect();
    slots.shuffle(random);
    slots
}

/// What layouts and the order of them are drawn from, beside the run's seed, which also orders the cases.
const LAYOUT_STREAM: u64 = 1;

/// The layouts of a run, those of each boot together: as built, and others that the seed draws. None where there is only one.
fn draw_layouts(starts: u32, rules: &RunRules, seed: u64) -> Vec<PlannedLayout> {
    if rules.layout <= 1 {
        return Vec::new();
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(LAYOUT_STREAM);
    let mut draw = |number: u32| match number % rules.layout {
        0 => PlannedLayout::AS_BUILT,
        _ => PlannedLayout {
            padding: random.random_range(0..PlannedLayout::LARGEST_PADDING / PlannedLayout::PADDING_STEP)
                * PlannedLayout::PADDING_STEP,
            seed: random.random_range(1..=u32::MAX),
        },
    };
    (0..starts.saturating_mul(rules.layout)).map(&mut draw).collect()
}

/// Gives each block its layout: all of a boot in random order, then all of them again.
fn assign_layouts(mut slots: Vec<Slot>, starts: u32, rules: &RunRules, seed: u64) -> Vec<Slot> {
    if rules.layout <= 1 {
        return slots;
    }
    let blocks = rules.max_iterations().max(rules.warmup);
    for boot in 0..starts {
        let mut random = ChaCha8Rng::seed_from_u64(seed.wrapping_add(u64::from(boot)));
        random.set_stream(LAYOUT_STREAM);
        let mut round: Vec<u32> = (0..rules.layout).map(|layout| boot * rules.layout + layout).collect();
        let mut order = Vec::new();
        while order.len() < blocks as usize {
            round.shuffle(&mut random);
            order.extend_from_slice(&round);
        }
        for slot in slots.iter_mut().filter(|slot| slot.boot == boot) {
            slot.layout = order.get(slot.block as usize).copied();
        }
    }
    slots
}

#[cfg(test)]
mod tests {
    use perflab_model::fact_table;
    use perflab_model::study::TomlSource;
    use perflab_model::{Facts, PlannedSetting, Scalar, Setting};
    use perflab_workload::Catalogue;

    use super::*;

    fn two_cpu_facts() -> Facts {
        let mut facts = Facts::default();
        facts.add(fact_table::CPU_ONLINE, 4_i64, "test");
        facts.add(fact_table::MEMORY_TOTAL, 8_i64 << 30, "test");
        facts
    }

    fn plan_text(text: &str, choices: &PlanChoices) -> Result<RunPlan, String> {
        let source = TomlSource::new("s.toml", text);
        let study = source.parse_study().map_err(|problems| problems.to_string())?;
        plan_study(&study, &Catalogue::embedded(), &two_cpu_facts(), choices)
            .map_err(|found| source.place_problems(found).to_string())
    }

    const STUDY: &str = r#"title = "t"
[workload.memory-bandwidth]
matrix = { threads = [1, 2, "cpus / 2"] }
[workload.context-switches]
[factor.pages]
kind = "parameter"
levels = ["ordinary", "huge"]
[factor.kernel]
kind = "label"
levels = ["old", "new"]
"#;

    fn choose_new_kernel() -> PlanChoices {
        PlanChoices { set: vec![("kernel".into(), "new".into())], seed: 1, ..PlanChoices::default() }
    }

    #[test]
    fn cases_are_points_times_the_levels_that_concern_them() {
        let plan = plan_text(STUDY, &choose_new_kernel()).unwrap();
        let labels: Vec<String> = plan.cases.iter().map(perflab_model::Case::label).collect();
        assert_eq!(
            labels,
            [
                "memory-bandwidth threads=1 pages=ordinary kernel=new",
                "memory-bandwidth threads=1 pages=huge kernel=new",
                "memory-bandwidth threads=2 pages=ordinary kernel=new",
                "memory-bandwidth threads=2 pages=huge kernel=new",
                "context-switches kernel=new",
            ],
            "`cpus / 2` is 2 here, so that point is taken once; pages do not concern context switches"
        );
        assert_eq!(plan.cases[3].parameters["threads"], Scalar::Int(2));
        assert_eq!(plan.factors["pages"], ["ordinary", "huge"]);
        assert_eq!(plan.slots.len(), 5 * 11);
    }

    #[test]
    fn a_disk_has_its_size_and_its_folder_and_a_targets_are_left_to_it() {
        let disks = |rest: &str, scratch: Option<&str>| {
            let text = format!("title = \"t\"\n[workload.small-files]\n{rest}");
            let choices = PlanChoices { scratch: scratch.map(Into::into), ..PlanChoices::default() };
            plan_text(&text, &choices).unwrap().disks
        };
        let image = "[disk]\nkind = \"image\"\nsize = \"memory / 8\"\n";
        let found = disks(image, Some("/fast"));
        assert_eq!(found[0].folder.as_deref(), Some(std::path::Path::new("/fast")));
        assert_eq!(found[0].disk.size, Some(Scalar::Int(1 << 30)));
        let own = disks("", Some("/fast"));
        assert_eq!((own.len(), own[0].disk.clone()), (1, perflab_model::study::ScratchDisk::directory()));
        assert!(disks("", None)[0].folder.as_ref().is_some_and(|folder| folder.is_dir()));
        let remote = disks(&format!("{image}[target.guest]\nkind = \"process\"\n"), Some("/fast"));
        assert_eq!((&remote[0].folder, remote[0].disk.size.clone()), (&None, Some("memory / 8".into())));
    }

    #[test]
    fn who_takes_part_is_planned_by_level() {
        let text = "title = \"t\"\n[workload.context-switches]\n[target.guest]\nkind = \"process\"\ncount = 3\n\
                    [factor.guests]\nkind = \"targets\"\nlevels = [1, 3]\n";
        let plan = plan_text(text, &PlanChoices::default()).unwrap();
        let counts: Vec<Option<u32>> =
            plan.cases.iter().map(|case| Some(plan.case_participation(case)?.targets)).collect();
        assert_eq!(counts, [Some(1), Some(3)]);
    }

    #[test]
    fn each_level_of_a_targets_key_has_its_own_start_in_every_boot() {
        let text = "title = \"t\"\nrun = { boots = 3, iterations = 2, warmup = 0 }\n[workload.context-switches]\n\
                    [workload.memory-bandwidth]\n[target.guest]\nkind = \"vm\"\nkernel = \"debian-cloud\"\ncount = 2\nappend = [\"quiet\"]\n\
                    [factor.words]\nkind = \"target\"\nkey = \"append\"\nlevels = [\"\", \"nokaslr\"]\n";
        let plan = plan_text(text, &PlanChoices { seed: 7, ..PlanChoices::default() }).unwrap();
        let appended: Vec<(&str, usize, &[String])> = plan
            .target_variants
            .iter()
            .map(|one| (&*one.levels["words"], one.targets.len(), &*one.targets[1].spec.append))
            .collect();
        let [quiet, both] = [vec!["quiet".to_owned()], vec!["quiet".to_owned(), "nokaslr".to_owned()]];
        assert_eq!(appended, [("", 2, &*quiet), ("nokaslr", 2, &*both)]);
        let starts: Vec<&[Slot]> = plan.slots.chunk_by(|a, b| a.boot == b.boot).collect();
        assert_eq!(starts.len(), 3 * 2);
        let variant = |slot: &Slot| plan.case_target_variant(&plan.cases[slot.case as usize]).unwrap();
        for boot in starts.chunks(2) {
            let mut variants: Vec<usize> = boot.iter().map(|start| variant(&start[0])).collect();
            variants.sort_unstable();
            assert_eq!(variants, [0, 1]);
            // Two workloads, two iterations, in one start.
            assert!(boot.iter().all(
                |start| start.len() == 4 && start.iter().all(|slot| variant(slot) == variant(&start[0]))
            ));
        }
        let kernels = text.replace("kernel = \"debian-cloud\"\n", "").replace("append\"\n", "kernel\"\n");
        let plan = plan_text(&kernels, &PlanChoices::default()).unwrap();
        assert_eq!(plan.target_variants[1].targets[0].spec.kernel.as_deref(), Some("nokaslr"));
        // It concerns one of the two workloads: the other one runs on the targets as they are.
        let restricted = text.replace("levels = [\"\"", "workload = \"memory-bandwidth\"\nlevels = [\"a\"");
        let plan = plan_text(&restricted, &PlanChoices::default()).unwrap();
        let variants: Vec<&PlannedTargetVariant> = plan
            .cases
            .iter()
            .map(|case| &plan.target_variants[plan.case_target_variant(case).unwrap()])
            .collect();
        assert_eq!(variants.iter().map(|one| one.levels.len()).collect::<Vec<_>>(), [0, 1, 1]);
        assert_eq!(variants[1].targets[0].spec.append, ["quiet", "a"]);
        let refused =
            |from: &str, to: &str| plan_text(&text.replace(from, to), &PlanChoices::default()).unwrap_err();
        insta::assert_snapshot!([
            refused("key = \"append\"\n", ""),
            refused("key = \"append\"", "key = \"apend\""),
            refused("key = \"append\"", "key = \"other.append\""),
            refused("key = \"append\"", "key = \"cpus\""),
            refused("iterations = 2", "until = \"precision 1%, at most 9\""),
            refused("kernel = \"debian-cloud\"\n", ""),
        ].join("\n"), @r#"
s.toml:10:9: `factor.words`: a factor of kind `target` needs a `key`; add `key = "kernel"`
s.toml:13:11: `factor.words.levels[0]`: a target has no key `apend` that varies; did you mean `append`?
s.toml:13:15: `factor.words.levels[1]`: a target has no key `apend` that varies; did you mean `append`?
s.toml:12:1: `factor.words.key`: the study has no such target; add `[target.guest]`, or name one: key = "guest.kernel"
s.toml:13:11: `factor.words.levels[0]`: `cpus` cannot be that: invalid type: string "", expected a whole number, 0 or more; see `[target]` in docs/guests.md
s.toml:13:15: `factor.words.levels[1]`: `cpus` cannot be that: invalid type: string "nokaslr", expected a whole number, 0 or more; see `[target]` in docs/guests.md
s.toml:2:20: `run.until`: looks at iterations, and with `boots` a boot is what counts; give a number of `iterations`, and more `boots`
s.toml:10:9: `factor.words`: starts targets anew, which does not go with `until`; give a number of `iterations`, and `boots`
s.toml:5:9: `target.guest`: needs `kernel`; add `kernel = "debian-cloud"` (`perflab kernel list`), or a file
"#);
    }

    #[test]
    fn what_levels_set_is_worked_out_once_and_a_targets_values_are_left_to_it() {
        let text = "title = \"t\"\n[workload.context-switches]\n[target.guest]\nkind = \"process\"\ncount = 2\n\
                    [factor.host]\nkind = \"sysctl\"\nkey = \"vm.swappiness\"\nlevels = [\"{{ cpus * 2 }}\", 1]\n\
                    [factor.guest]\nkind = \"file\"\non = \"guest\"\nkey = \"/proc/sys/vm/dirty_ratio\"\nlevels = [\"{{ cpus * 3 }}\"]\n\
                    [factor.caches]\nkind = \"drop-caches\"\nlevels = [0, 3]\n";
        let plan = plan_text(text, &PlanChoices::default()).unwrap();
        let names: Vec<(&str, u32)> =
            plan.targets.iter().map(|target| (target.name.as_str(), target.spec.count)).collect();
        assert_eq!(names, [("guest1", 1), ("guest2", 1)]);
        let set = |one: &PlannedSetting| match &one.setting {
            Setting::File { path, value, .. } => format!("{} {}={value}", one.factor, path.display()),
            Setting::DropCaches(which) => format!("{} {which}", one.factor),
            Setting::Commands { .. } | Setting::Preset(_) => panic!("{one:?}"),
        };
        let all: Vec<String> = plan.settings.iter().map(set).collect();
        assert_eq!(
            all,
            [
                "host /proc/sys/vm/swappiness=8",
                "host /proc/sys/vm/swappiness=1",
                "guest /proc/sys/vm/dirty_ratio={{ cpus * 3 }}",
                "caches 3",
            ],
            "dropping none is no setting"
        );
        let of_case = |case: usize, side| -> Vec<String> {
            plan.case_settings(&plan.cases[case], side).map(set).collect()
        };
        assert_eq!(of_case(1, Some(FactorSide::Host)), [&*all[0], &*all[3]]);
        assert_eq!(of_case(1, Some(FactorSide::Guest)), [&*all[2]]);
        assert_eq!(of_case(2, None), [&*all[1], &*all[2]]);
    }

    #[test]
    fn a_label_must_be_said() {
        let said = plan_text(STUDY, &PlanChoices::default()).unwrap_err();
        insta::assert_snapshot!(said, @"s.toml:8:9: `factor.kernel`: perflab cannot change `kernel` itself, and does not know which level is in force; say which one it is: --set kernel=old|new");
    }

    #[test]
    fn set_and_only_narrow_the_study() {
        let mut choices = choose_new_kernel();
        choices.set.push(("pages".into(), "huge".into()));
        choices.only = Some("memory-bandwidth".into());
        let plan = plan_text(STUDY, &choices).unwrap();
        assert_eq!(plan.cases.len(), 2);
        choices.set.push(("pages".into(), "ordinary".into()));
        let plan = plan_text(STUDY, &choices).unwrap();
        assert_eq!(
            (plan.cases.len(), plan.factors["pages"].clone()),
            (4, vec!["ordinary".into(), "huge".into()])
        );
        choices.only = Some("memory-bandwith".into());
        insta::assert_snapshot!(plan_text(STUDY, &choices).unwrap_err(), @"s.toml:2:2: `workload`: `--only`: the study has no workload `memory-bandwith`; did you mean `memory-bandwidth`?");
        choices.set = vec![("pages".into(), "huge".into()), ("pages".into(), "hug".into())];
        insta::assert_snapshot!(plan_text(STUDY, &choices).unwrap_err(), @"
        s.toml:7:1: `factor.pages.levels`: `--set`: there is no level `hug`; did you mean `huge`?
        s.toml:2:2: `workload`: `--only`: the study has no workload `memory-bandwith`; did you mean `memory-bandwidth`?
        ");
    }

    fn planning_error(from: &str, to: &str) -> String {
        let text = STUDY.replace(from, to);
        assert_ne!(text, STUDY, "the replacement must change something");
        plan_text(&text, &choose_new_kernel()).unwrap_err()
    }

    #[test]
    fn unknown_names_get_their_place_and_the_nearest_name() {
        let said = planning_error("[workload.context-switches]", "[workload.contextswitches]");
        insta::assert_snapshot!(said, @"s.toml:4:11: `workload.contextswitches`: the catalogue has no workload `contextswitches`; did you mean `context-switches`?");
        let said = planning_error("threads = [1", "treads = [1");
        insta::assert_snapshot!(said, @r#"
s.toml:3:22: `workload.memory-bandwidth.matrix.treads[0]`: workload `memory-bandwidth` has no parameter `treads`; did you mean `threads`?
s.toml:3:25: `workload.memory-bandwidth.matrix.treads[1]`: workload `memory-bandwidth` has no parameter `treads`; did you mean `threads`?
s.toml:3:28: `workload.memory-bandwidth.matrix.treads[2]`: workload `memory-bandwidth` has no parameter `treads`; did you mean `threads`?
"#);
        let said = planning_error("\"ordinary\", \"huge\"", "\"ordinary\", \"giant\"");
        insta::assert_snapshot!(said, @"s.toml:7:23: `factor.pages.levels[1]`: `giant` is not a choice; allowed: default, ordinary, huge");
    }

    #[test]
    fn values_outside_their_range_point_at_the_list_item() {
        let said = planning_error("[1, 2, \"cpus / 2\"]", "[1, 0]");
        insta::assert_snapshot!(said, @"s.toml:3:26: `workload.memory-bandwidth.matrix.threads[1]`: 0 is out of range; allowed: at least 1");
    }

    #[test]
    fn a_failing_expression_and_a_cycle_are_named() {
        let said = planning_error("cpus / 2", "cpus / 0");
        insta::assert_snapshot!(said, @r#"s.toml:3:29: `workload.memory-bandwidth.matrix.threads[2]`: `cpus / 0`: unable to calculate 4 / 0; write a whole number or an expression such as "2 * cpus""#);
        let said = planning_error("title = \"t\"", "title = \"t\"\nvalues = { a = \"b\", b = \"a\" }");
        insta::assert_snapshot!(said, @"s.toml:2:12: `values.a`: the values a -> b -> a need each other in a cycle");
    }

    #[test]
    fn monitors_metrics_and_facts_must_exist() {
        let said = planning_error(
            "title = \"t\"",
            "title = \"t\"\nfacts = [\"cpus\"]\nmonitors = { vmstats = \"1s\", meminfo = \"1us\" }\nmetric = { triat = {} }",
        );
        insta::assert_snapshot!(said, @"
        s.toml:3:14: `monitors.vmstats`: there is no monitor `vmstats`; did you mean `vmstat`?
        s.toml:3:30: `monitors.meminfo`: is read too often; 1ms is the shortest interval; 100ms suits most
        s.toml:2:10: `facts[0]`: there is no family of facts `cpus`; did you mean `cpu`?
        s.toml:4:12: `metric.triat`: no workload here measures `triat`; did you mean `triad`?
        ");
    }

    #[test]
    fn a_metric_that_a_study_makes_primary_decides_alone_and_a_margin_chooses_nothing() {
        let primary_of = |table: &str| {
            let plan = plan_text(&format!("{STUDY}[metric.copy]\n{table}"), &choose_new_kernel()).unwrap();
            let metrics = plan.metrics["memory-bandwidth"].iter().filter(|metric| metric.primary);
            let names = metrics.map(|metric| metric.name.clone()).collect::<Vec<_>>();
            (names, plan.margins.get("copy").copied())
        };
        let declared = primary_of("").0;
        assert_eq!(declared, ["triad"]);
        assert_eq!(primary_of("margin = \"1%\"\n"), (declared, Some(0.01)));
        assert_eq!(primary_of("primary = true\n"), (vec!["copy".to_owned()], None));
    }

    #[test]
    fn a_plan_that_is_too_large_is_refused_by_count() {
        let refused = |rest: &str| {
            let choices = PlanChoices { seed: 1, ..PlanChoices::default() };
            plan_text(&format!("title = \"t\"\n{rest}"), &choices).unwrap_err()
        };
        let numbers = (1..=1000).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
        let matrix = |parameters: &[&str]| {
            let lists: Vec<String> = parameters.iter().map(|name| format!("{name} = [{numbers}]")).collect();
            format!("[workload.w]\nuse = \"drv_rand_ops\"\nmatrix = {{ {} }}", lists.join(", "))
        };
        let factors: String = (0..13)
            .map(|number| format!("\n[factor.f{number}]\nkind = \"environment\"\nlevels = [{numbers}]"))
            .collect();
        insta::assert_snapshot!(
            [
                refused("run = { iterations = 4000000000 }\n[workload.context-switches]"),
                refused("run = { until = \"precision 1%, at most 4000000000\" }\n[workload.context-switches]"),
                refused(&format!("run = {{ iterations = 1, warmup = 0 }}\n{}", matrix(&["elements", "seed"]))),
                refused(&format!("{}{factors}", matrix(&["elements"]))),
                refused(&format!("run = {{ iterations = 1200 }}\n{}", matrix(&["elements"]))),
            ]
            .join("\n"),
            @r"
        s.toml:2:9: `run.iterations`: the study has too many slots: 1 case x 4000000001 iterations with warm-ups = 4000000001; a study has at most 1000000 slots: lower one of these numbers, or split it
        s.toml:2:9: `run.until`: the study has too many slots: 1 case x 4000000001 iterations with warm-ups = 4000000001; a study has at most 1000000 slots: lower one of these numbers, or split it
        s.toml:5:4918: `workload.w.matrix.seed`: `w` has too many cases: 1000 x 1000 = 1000000; a study has at most 100000 cases: leave values or levels out, or split it
        s.toml:43:1: `factor.f12.levels`: `w` has too many cases: 1000 x 1000 x 1000 x 1000 x 1000 x 1000 x 1000 x 1000 x 1000 x 1000 x 1000 x 1000 x 1000 x 1000, more than 10^38; a study has at most 100000 cases: leave values or levels out, or split it
        s.toml:2:9: `run.iterations`: the study has too many slots: 1000 cases x 1201 iterations with warm-ups = 1201000; a study has at most 1000000 slots: lower one of these numbers, or split it
        "
        );
    }

    fn order_cases(cases: u32, rules: &RunRules, seed: u64) -> Vec<Slot> {
        let each = |case| vec![case];
        let groups =
            if rules.boot_each_case { (0..cases).map(each).collect() } else { vec![(0..cases).collect()] };
        order_slots(&groups, rules, seed)
    }

    fn run_rules(order: SlotOrder) -> RunRules {
        RunRules { iterations: 20, warmup: 1, order, ..RunRules::default() }
    }

    #[test]
    fn every_block_holds_every_case_once() {
        let slots = order_cases(5, &run_rules(SlotOrder::Randomised), 7);
        assert_eq!(slots.len(), 21 * 5);
        for block in slots.chunks(5) {
            let mut cases: Vec<u32> = block.iter().map(|slot| slot.case).collect();
            cases.sort_unstable();
            assert_eq!(cases, [0, 1, 2, 3, 4]);
            assert!(block.iter().all(|slot| (slot.block, slot.warmup) == (block[0].block, block[0].warmup)));
        }
    }

    #[test]
    fn a_seed_fixes_the_order_and_another_changes_it() {
        let rules = run_rules(SlotOrder::Randomised);
        assert_eq!(order_cases(5, &rules, 7), order_cases(5, &rules, 7));
        assert_ne!(order_cases(5, &rules, 7), order_cases(5, &rules, 8));
    }

    #[test]
    fn each_case_by_itself_in_every_boot_and_in_another_order_each_time() {
        let rules = RunRules { boot_each_case: true, boots: 4, ..run_rules(SlotOrder::Randomised) };
        let slots = order_cases(3, &rules, 7);
        assert_eq!(slots.len(), 4 * 3 * 21);
        let starts: Vec<(u32, u32)> = slots.chunks(21).map(|one| (one[0].boot, one[0].case)).collect();
        assert!(starts.iter().map(|(boot, _)| *boot).eq(0..12), "each start is a boot of its own");
        for (start, chunk) in starts.iter().zip(slots.chunks(21)) {
            assert!(chunk.iter().all(|slot| (slot.boot, slot.case) == *start));
        }
        let boots: Vec<Vec<u32>> =
            starts.chunks(3).map(|boot| boot.iter().map(|one| one.1).collect()).collect();
        assert!(boots.iter().all(|cases| cases.iter().sum::<u32>() == 3));
        assert!(boots.iter().any(|cases| *cases != boots[0]), "{boots:?}");
    }

    #[test]
    fn layouts_are_the_seeds_and_every_case_meets_each_equally_often() {
        let rules = RunRules { layout: 4, iterations: 12, boots: 2, ..run_rules(SlotOrder::Randomised) };
        let layouts = draw_layouts(2, &rules, 7);
        assert_eq!(layouts, draw_layouts(2, &rules, 7));
        assert_ne!(layouts, draw_layouts(2, &rules, 8));
        let built: Vec<usize> = (0..8).filter(|index| layouts[*index].is_as_built()).collect();
        assert_eq!((layouts.len(), built), (8, vec![0, 4]));
        assert!(layouts.iter().all(|layout| layout.padding < 4096 && layout.padding % 16 == 0));
        let slots = assign_layouts(order_cases(3, &rules, 7), 2, &rules, 7);
        for (boot, layout) in (0..8).map(|layout| (layout / 4, layout)) {
            for case in 0..3 {
                let is_there =
                    |slot: &&Slot| !slot.warmup && (slot.case, slot.layout) == (case, Some(layout));
                let found: Vec<u32> = slots.iter().filter(is_there).map(|slot| slot.boot).collect();
                assert_eq!(found, [boot; 3]);
            }
        }
        for block in slots.chunks(3) {
            assert!(block.iter().all(|slot| slot.layout == block[0].layout), "{block:?}");
        }
        let of = |slots: &[Slot]| slots.iter().map(|slot| slot.layout).collect::<Vec<_>>();
        assert_ne!(of(&slots), of(&assign_layouts(order_cases(3, &rules, 8), 2, &rules, 8)));
        let unvaried = run_rules(SlotOrder::Randomised);
        assert!(draw_layouts(1, &unvaried, 7).is_empty());
        assert!(order_cases(3, &unvaried, 7).iter().all(|slot| slot.layout.is_none()));
    }

    #[test]
    fn a_sequential_order_finishes_a_case_before_the_next() {
        let slots = order_cases(2, &run_rules(SlotOrder::Sequential), 0);
        assert!(slots[..21].iter().all(|slot| slot.case == 0));
        assert!(slots[0].warmup && !slots[1].warmup && slots[21].warmup);
    }
}
