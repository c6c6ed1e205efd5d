//! The plan: a study, a catalogue and the host's facts become every case and slot, in order.
//!
//! Everything that can be refused is refused here, with the study's key, before anything is done.

mod cases;
mod check;
mod combine;
mod order;
mod scope;
mod size;

pub use check::study_warnings;
pub use scope::expression_scope;

use indexmap::IndexMap;
use perflab_model::{Facts, Problem, RunPlan, Study};
use perflab_workload::Catalogue;

/// What the command line chose among the study's possibilities.
#[derive(Debug, Clone, Default)]
pub struct PlanChoices {
    /// `--set factor=level`: only that level of that factor, or those of them that are named.
    pub set: Vec<(String, String)>,
    /// `--only WORKLOAD`: only that workload of the study.
    pub only: Option<String>,
    /// A seed drawn by the caller, for studies that give none.
    pub seed: u64,
}

/// Plans a study. All problems at once, each with the key of the study that it is about.
pub fn plan_study(
    study: &Study,
    catalogue: &Catalogue,
    facts: &Facts,
    choices: &PlanChoices,
) -> Result<RunPlan, Vec<Problem>> {
    let study = narrow_study(study, choices)?;
    if let Some(problem) = size::plan_size_problem(&study, catalogue) {
        return Err(vec![problem]);
    }
    let scope = expression_scope(&study, facts).map_err(|problem| vec![problem])?;
    let mut problems = check::check_study(&study, catalogue, &scope);
    if !problems.is_empty() {
        return Err(problems);
    }
    let cases = cases::expand_cases(&study, catalogue, &scope, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let seed = study.run.seed.unwrap_or(choices.seed);
    Ok(RunPlan {
        seed,
        order: order::order_name(study.run.order).into(),
        slots: order::order_slots(cases.len() as u32, &study.run, seed),
        factors: level_names(&study),
        definitions: workload_digests(&study, catalogue),
        metrics: declared_metrics(&study, catalogue),
        margins: study
            .metric
            .iter()
            .filter_map(|(name, choice)| Some((name.clone(), choice.margin_fraction()?)))
            .collect(),
        cases,
    })
}

/// The study without what `--set` and `--only` leave out.
pub fn narrow_study(study: &Study, choices: &PlanChoices) -> Result<Study, Vec<Problem>> {
    let mut study = study.clone();
    let mut problems = Vec::new();
    let mut kept: IndexMap<&str, Vec<&str>> = IndexMap::new();
    for (factor, level) in &choices.set {
        kept.entry(factor).or_default().push(level);
    }
    for (factor, levels) in kept {
        problems.extend(keep_levels(&mut study, factor, &levels));
    }
    if let Some(only) = &choices.only {
        problems.extend(keep_workload(&mut study, only));
    }
    if problems.is_empty() { Ok(study) } else { Err(problems) }
}

fn keep_levels(study: &mut Study, factor: &str, levels: &[&str]) -> Option<Problem> {
    let known: Vec<String> = study.factor.keys().cloned().collect();
    let Some(found) = study.factor.get_mut(factor) else {
        let hint = perflab_model::nearest::suggest_name(factor, known.iter().map(String::as_str));
        return Some(
            Problem::new("factor", format!("`--set`: the study has no factor `{factor}`")).with_hint(hint),
        );
    };
    let names: Vec<String> = found.levels.iter().map(|level| level.name.clone()).collect();
    let unknown = levels.iter().find(|level| !names.iter().any(|name| name == *level));
    found.levels.retain(|candidate| levels.contains(&candidate.name.as_str()));
    unknown.map(|level| {
        let hint = perflab_model::nearest::suggest_name(level, names.iter().map(String::as_str));
        let key = format!("factor.{factor}.levels");
        Problem::new(key, format!("`--set`: there is no level `{level}`")).with_hint(hint)
    })
}

fn keep_workload(study: &mut Study, only: &str) -> Option<Problem> {
    if !study.workload.contains_key(only) {
        let hint = perflab_model::nearest::suggest_name(only, study.workload.keys().map(String::as_str));
        let message = format!("`--only`: the study has no workload `{only}`");
        return Some(Problem::new("workload", message).with_hint(hint));
    }
    study.workload.retain(|name, _| name == only);
    // A factor of another workload has nothing left to vary.
    study.factor.retain(|_, factor| factor.workload.as_deref().is_none_or(|name| name == only));
    None
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
        let uses = cases::catalogue_name(name, workload);
        if let Some(definition) = catalogue.get(uses) {
            declared.insert(uses.to_owned(), check::choose_primary_metrics(study, definition.metrics()));
        }
    }
    declared
}

/// What each workload does, as a digest.
fn workload_digests(study: &Study, catalogue: &Catalogue) -> IndexMap<String, String> {
    let used = study.workload.iter().map(|(name, workload)| cases::catalogue_name(name, workload));
    let found = used.filter_map(|uses| Some((uses.to_owned(), catalogue.get(uses)?.digest.clone())));
    found.collect()
}

#[cfg(test)]
mod tests;
