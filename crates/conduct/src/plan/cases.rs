//! Cases: each workload at each parameter point under each combination of levels.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use indexmap::IndexMap;
use perflab_model::expression::Scope;
use perflab_model::study::{Factor, FactorKind, Level, Study, WorkloadUse};
use perflab_model::{Case, Problem, Value};
use perflab_workload::{Catalogue, Definition};

use super::combine::combinations;

/// The catalogue's name of a workload of the study.
pub(super) fn uses<'a>(name: &'a str, workload: &'a WorkloadUse) -> &'a str {
    workload.uses.as_deref().unwrap_or(name)
}

/// Whether a factor varies anything for this workload.
pub(super) fn concerns(name: &str, factor: &Factor, workload: &str, definition: &Definition) -> bool {
    let ours = factor.workload.as_deref().is_none_or(|wanted| wanted == workload);
    let parameter = factor.key.as_deref().unwrap_or(name);
    ours && (factor.kind != FactorKind::Parameter || definition.parameters.contains_key(parameter))
}

/// All cases in the study's order; a point that two expressions make alike is taken once.
pub(super) fn expand(
    study: &Study,
    catalogue: &Catalogue,
    scope: &Scope,
    problems: &mut Vec<Problem>,
) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut known = KnownCases::default();
    for (name, workload) in &study.workload {
        let Some(definition) = catalogue.get(uses(name, workload)) else { continue };
        let part = Part { study, name, workload, definition, scope };
        for point in part.points() {
            for levels in part.levels() {
                match part.case(&point, &levels) {
                    Ok(case) if known.contains(&case, &cases) => {}
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
struct KnownCases(HashMap<u64, Vec<usize>>);

impl KnownCases {
    /// Whether `cases` hold this one; where not, it is expected to be the next of them.
    fn contains(&mut self, case: &Case, cases: &[Case]) -> bool {
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
struct Part<'a> {
    study: &'a Study,
    name: &'a str,
    workload: &'a WorkloadUse,
    definition: &'a Definition,
    scope: &'a Scope,
}

/// One value of a matrix parameter: (parameter, its place in the list, value).
type Pick<'a> = (&'a str, usize, &'a Value);
/// One level of a factor: (factor's name, factor, its place in the list, level).
type Turn<'a> = (&'a str, &'a Factor, usize, &'a Level);

impl<'a> Part<'a> {
    fn points(&self) -> Vec<Vec<Pick<'a>>> {
        let list = |(name, values): (&'a String, &'a Vec<Value>)| -> Vec<Pick<'a>> {
            values.iter().enumerate().map(|(index, value)| (name.as_str(), index, value)).collect()
        };
        combinations(&self.workload.matrix.iter().map(list).collect::<Vec<_>>())
    }

    fn levels(&self) -> Vec<Vec<Turn<'a>>> {
        let ours = self
            .study
            .factor
            .iter()
            .filter(|(name, factor)| concerns(name, factor, self.name, self.definition));
        let list = |(name, factor): (&'a String, &'a Factor)| -> Vec<Turn<'a>> {
            factor
                .levels
                .iter()
                .enumerate()
                .map(|(index, level)| (name.as_str(), factor, index, level))
                .collect()
        };
        combinations(&ours.map(list).collect::<Vec<_>>())
    }

    fn case(&self, point: &[Pick<'a>], levels: &[Turn<'a>]) -> Result<Case, Vec<Problem>> {
        let mut given = self.workload.parameters.clone();
        given.extend(point.iter().map(|(name, _, value)| ((*name).to_owned(), (*value).clone())));
        given.extend(parameters(levels).map(|(name, level)| (name.to_owned(), level.value.clone())));
        let place = |problem: Problem| self.placed(problem, point, levels);
        let resolved = self.definition.resolve(&given, self.scope);
        let parameters = resolved.map_err(|found| found.into_iter().map(place).collect::<Vec<_>>())?;
        Ok(Case {
            workload: self.name.into(),
            uses: uses(self.name, self.workload).into(),
            point: point.iter().filter_map(|(name, ..)| parameters.get_key_value(*name)).map(owned).collect(),
            environment: self.environment(levels),
            levels: levels
                .iter()
                .map(|(factor, _, _, level)| ((*factor).into(), level.name.clone()))
                .collect(),
            parameters,
        })
    }

    fn environment(&self, levels: &[Turn<'_>]) -> IndexMap<String, String> {
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
    fn placed(&self, problem: Problem, point: &[Pick<'_>], levels: &[Turn<'_>]) -> Problem {
        let parameter = problem.key.clone();
        let turned = levels.iter().find(|turn| parameter_of(turn) == Some(parameter.as_str()));
        let picked = point.iter().find(|(name, ..)| *name == parameter);
        let key = match (turned, picked) {
            (Some((factor, _, index, _)), _) => format!("factor.{factor}.levels[{index}]"),
            (None, Some((name, index, _))) => format!("workload.{}.matrix.{name}[{index}]", self.name),
            (None, None) => format!("workload.{}.parameters.{parameter}", self.name),
        };
        Problem { key, ..problem }
    }
}

fn parameter_of<'a>((name, factor, ..): &Turn<'a>) -> Option<&'a str> {
    (factor.kind == FactorKind::Parameter).then(|| factor.key.as_deref().unwrap_or(name))
}

fn parameters<'b, 'a: 'b>(levels: &'b [Turn<'a>]) -> impl Iterator<Item = (&'a str, &'a Level)> + 'b {
    levels.iter().filter_map(|turn| Some((parameter_of(turn)?, turn.3)))
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}
