//! Cases: each workload at each parameter point under each combination of levels.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use indexmap::IndexMap;
use perflab_model::expression::ExpressionScope;
use perflab_model::study::{Factor, FactorKind, FactorLevel, Study, WorkloadSpec};
use perflab_model::{Case, Problem, Scalar};
use perflab_workload::{Catalogue, WorkloadDefinition};

use super::combine::combinations;

/// The catalogue's name of a workload of the study.
pub(super) fn catalogue_name<'a>(name: &'a str, workload: &'a WorkloadSpec) -> &'a str {
    workload.uses.as_deref().unwrap_or(name)
}

/// Whether a factor varies anything for this workload.
pub(super) fn factor_concerns(
    name: &str,
    factor: &Factor,
    workload: &str,
    definition: &WorkloadDefinition,
) -> bool {
    let ours = factor.workload.as_deref().is_none_or(|wanted| wanted == workload);
    let parameter = factor.key.as_deref().unwrap_or(name);
    ours && (factor.kind != FactorKind::Parameter || definition.parameters.contains_key(parameter))
}

/// All cases in the study's order; a point that two expressions make alike is taken once.
pub(super) fn expand_cases(
    study: &Study,
    catalogue: &Catalogue,
    scope: &ExpressionScope,
    problems: &mut Vec<Problem>,
) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut known = CaseIndex::default();
    for (name, workload) in &study.workload {
        let Some(definition) = catalogue.get(catalogue_name(name, workload)) else { continue };
        let part = WorkloadExpansion { study, name, workload, definition, scope };
        for point in part.parameter_points() {
            for levels in part.level_combinations() {
                match part.expand_case(&point, &levels) {
                    Ok(case) if known.contains_or_expect(&case, &cases) => {}
                    Ok(case) => cases.push(case),
                    Err(found) => problems
                        .extend(found.into_iter().filter(|one| !problems.contains(one)).collect::<Vec<_>>()),
                }
            }
        }
    }
    cases
}

/// Where in a list of cases one may be found: comparing each with all others takes minutes for many.
#[derive(Default)]
struct CaseIndex(HashMap<u64, Vec<usize>>);

impl CaseIndex {
    /// Whether `cases` hold this one; where not, it is expected to be the next of them.
    fn contains_or_expect(&mut self, case: &Case, cases: &[Case]) -> bool {
        let mut hasher = DefaultHasher::new();
        serde_json::to_string(case).unwrap_or_default().hash(&mut hasher);
        let alike = self.0.entry(hasher.finish()).or_default();
        let found = alike.iter().any(|index| cases.get(*index) == Some(case));
        if !found {
            alike.push(cases.len());
        }
        found
    }
}

/// One workload of the study, being expanded.
struct WorkloadExpansion<'a> {
    study: &'a Study,
    name: &'a str,
    workload: &'a WorkloadSpec,
    definition: &'a WorkloadDefinition,
    scope: &'a ExpressionScope,
}

/// One value of a matrix parameter: (parameter, its place in the list, value).
type PickedValue<'a> = (&'a str, usize, &'a Scalar);
/// One level of a factor: (factor's name, factor, its place in the list, level).
type PickedLevel<'a> = (&'a str, &'a Factor, usize, &'a FactorLevel);

impl<'a> WorkloadExpansion<'a> {
    fn parameter_points(&self) -> Vec<Vec<PickedValue<'a>>> {
        let list = |(name, values): (&'a String, &'a Vec<Scalar>)| -> Vec<PickedValue<'a>> {
            values.iter().enumerate().map(|(index, value)| (name.as_str(), index, value)).collect()
        };
        combinations(&self.workload.matrix.iter().map(list).collect::<Vec<_>>())
    }

    fn level_combinations(&self) -> Vec<Vec<PickedLevel<'a>>> {
        let ours = self
            .study
            .factor
            .iter()
            .filter(|(name, factor)| factor_concerns(name, factor, self.name, self.definition));
        let list = |(name, factor): (&'a String, &'a Factor)| -> Vec<PickedLevel<'a>> {
            factor
                .levels
                .iter()
                .enumerate()
                .map(|(index, level)| (name.as_str(), factor, index, level))
                .collect()
        };
        combinations(&ours.map(list).collect::<Vec<_>>())
    }

    fn expand_case(
        &self,
        point: &[PickedValue<'a>],
        levels: &[PickedLevel<'a>],
    ) -> Result<Case, Vec<Problem>> {
        let mut given = self.workload.parameters.clone();
        given.extend(point.iter().map(|(name, _, value)| ((*name).to_owned(), (*value).clone())));
        given.extend(varied_parameters(levels).map(|(name, level)| (name.to_owned(), level.value.clone())));
        let place = |problem: Problem| self.locate_problem(problem, point, levels);
        let resolved = self.definition.resolve_parameters(&given, self.scope);
        let parameters = resolved.map_err(|found| found.into_iter().map(place).collect::<Vec<_>>())?;
        Ok(Case {
            workload: self.name.into(),
            uses: catalogue_name(self.name, self.workload).into(),
            point: point
                .iter()
                .filter_map(|(name, ..)| parameters.get_key_value(*name))
                .map(owned_entry)
                .collect(),
            environment: self.case_environment(levels),
            levels: levels
                .iter()
                .map(|(factor, _, _, level)| ((*factor).into(), level.name.clone()))
                .collect(),
            parameters,
        })
    }

    fn case_environment(&self, levels: &[PickedLevel<'_>]) -> IndexMap<String, String> {
        let mut environment = self.workload.environment.clone();
        let varied = levels.iter().filter(|(_, factor, ..)| factor.kind == FactorKind::Environment);
        environment.extend(varied.map(|(name, factor, _, level)| {
            let text = level.value.to_string();
            let key = factor.key.clone().unwrap_or_else(|| (*name).into());
            (key, self.scope.render(&text).unwrap_or(text))
        }));
        environment
    }

    /// A problem of a parameter, put where the study gives that parameter its value.
    fn locate_problem(
        &self,
        problem: Problem,
        point: &[PickedValue<'_>],
        levels: &[PickedLevel<'_>],
    ) -> Problem {
        let parameter = problem.key.clone();
        let turned = levels.iter().find(|turn| varied_parameter(turn) == Some(parameter.as_str()));
        let picked = point.iter().find(|(name, ..)| *name == parameter);
        let key = match (turned, picked) {
            (Some((factor, _, index, _)), _) => format!("factor.{factor}.levels[{index}]"),
            (None, Some((name, index, _))) => format!("workload.{}.matrix.{name}[{index}]", self.name),
            (None, None) => format!("workload.{}.parameters.{parameter}", self.name),
        };
        Problem { key, ..problem }
    }
}

fn varied_parameter<'a>((name, factor, ..): &PickedLevel<'a>) -> Option<&'a str> {
    (factor.kind == FactorKind::Parameter).then(|| factor.key.as_deref().unwrap_or(name))
}

fn varied_parameters<'b, 'a: 'b>(
    levels: &'b [PickedLevel<'a>],
) -> impl Iterator<Item = (&'a str, &'a FactorLevel)> + 'b {
    levels.iter().filter_map(|turn| Some((varied_parameter(turn)?, turn.3)))
}

fn owned_entry((name, value): (&String, &Scalar)) -> (String, Scalar) {
    (name.clone(), value.clone())
}
