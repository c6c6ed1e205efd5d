//! Every case of a study: each workload at each parameter point under each combination of levels.
//!
//! How many there would be is counted before any is built, so that a study that is too large is refused and does
//! not fill memory.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use indexmap::IndexMap;
use perflab_model::expression::ExpressionScope;
use perflab_model::study::{
    Factor, FactorKind, FactorLevel, LevelCombinations, Study, StudyList, WorkloadSpec,
};
use perflab_model::{Case, Problem, Scalar};
use perflab_workload::{Catalogue, WorkloadDefinition};

/// The catalogue's name of a workload of the study.
pub(crate) fn catalogue_name<'a>(name: &'a str, workload: &'a WorkloadSpec) -> &'a str {
    workload.uses.as_deref().unwrap_or(name)
}

/// Whether a factor varies anything for this workload.
pub(crate) fn factor_concerns(
    name: &str,
    factor: &Factor,
    workload: &str,
    definition: &WorkloadDefinition,
) -> bool {
    let ours = factor.workload.as_deref().is_none_or(|expected| expected == workload);
    let parameter = factor.key.as_deref().unwrap_or(name);
    ours && (factor.kind != FactorKind::Parameter || definition.parameters.contains_key(parameter))
}

/// All cases in the study's order; a point that two expressions make alike is taken once.
pub(crate) fn expand_cases(
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

/// One value of a matrix parameter: (parameter, its index in the list, value).
type PickedValue<'a> = (&'a str, usize, &'a Scalar);

/// One level of a factor: (factor's name, factor, its index in the list, level).
type PickedLevel<'a> = (&'a str, &'a Factor, usize, &'a FactorLevel);

impl<'a> WorkloadExpansion<'a> {
    fn parameter_points(&self) -> Vec<Vec<PickedValue<'a>>> {
        let list = |(name, values): (&'a String, &'a StudyList<Scalar>)| -> Vec<PickedValue<'a>> {
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
        let lists = ours.map(list).collect::<Vec<_>>();
        match self.study.run.combinations {
            LevelCombinations::All => combinations(&lists),
            LevelCombinations::OneAtATime => one_at_a_time(&lists),
        }
    }

    fn expand_case(
        &self,
        point: &[PickedValue<'a>],
        levels: &[PickedLevel<'a>],
    ) -> Result<Case, Vec<Problem>> {
        let mut requested = self.workload.parameters.clone();
        requested.extend(point.iter().map(|(name, _, value)| ((*name).to_owned(), (*value).clone())));
        requested
            .extend(varied_parameters(levels).map(|(name, level)| (name.to_owned(), level.value.clone())));
        let values = self
            .study
            .values
            .keys()
            .filter(|name| self.workload.command.is_some() && !requested.contains_key(*name));
        let values: Vec<(String, Scalar)> = values
            .filter(|name| self.definition.parameters.contains_key(*name))
            .filter_map(|name| Some((name.clone(), self.scope.get(name)?.clone())))
            .collect();
        requested.extend(values);
        let place = |problem: Problem| self.locate_problem(problem, point, levels);
        let resolved = self.definition.resolve_parameters(&requested, self.scope);
        let parameters = resolved.map_err(|found| found.into_iter().map(place).collect::<Vec<_>>())?;
        Ok(Case {
            workload: self.name.into(),
            uses: catalogue_name(self.name, self.workload).into(),
            point: point
                .iter()
                .filter_map(|(name, ..)| parameters.get_key_value(*name))
                .map(owned_entry)
                .collect(),
            environment: self.case_environment(levels)?,
            levels: levels
                .iter()
                .map(|(factor, _, _, level)| ((*factor).into(), level.name.clone()))
                .collect(),
            parameters,
        })
    }

    fn case_environment(&self, levels: &[PickedLevel<'_>]) -> Result<IndexMap<String, String>, Vec<Problem>> {
        let mut environment = self.workload.environment.clone();
        for (name, factor, index, level) in levels {
            if factor.kind == FactorKind::Environment {
                let place = || format!("factor.{name}.levels[{index}]");
                let value = self.scope.render(&level.value.to_string());
                let value = value.map_err(|error| vec![Problem::new(place(), error.to_string())])?;
                environment.insert(factor.key.clone().unwrap_or_else(|| (*name).into()), value);
            }
        }
        Ok(environment)
    }

    /// A problem of a parameter, put where the study gives that parameter its value.
    fn locate_problem(
        &self,
        problem: Problem,
        point: &[PickedValue<'_>],
        levels: &[PickedLevel<'_>],
    ) -> Problem {
        let parameter = problem.key.clone();
        let turned = levels.iter().find(|choice| varied_parameter(choice) == Some(parameter.as_str()));
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
    levels.iter().filter_map(|choice| Some((varied_parameter(choice)?, choice.3)))
}

fn owned_entry((name, value): (&String, &Scalar)) -> (String, Scalar) {
    (name.clone(), value.clone())
}

/// The cartesian product, the last list turning fastest. No list at all gives one empty combination.
fn combinations<T: Clone>(lists: &[Vec<T>]) -> Vec<Vec<T>> {
    lists.iter().fold(vec![Vec::new()], |begun, list| {
        let extend = |start: &Vec<T>| {
            let start = start.clone();
            list.iter()
                .map(move |item| start.iter().cloned().chain([item.clone()]).collect())
                .collect::<Vec<_>>()
        };
        begun.iter().flat_map(extend).collect()
    })
}

/// The first of all lists, and each other item with the first of all other lists.
fn one_at_a_time<T: Clone>(lists: &[Vec<T>]) -> Vec<Vec<T>> {
    let first: Vec<T> = lists.iter().filter_map(|list| list.first().cloned()).collect();
    let single =
        lists.iter().enumerate().flat_map(|(at, list)| list.iter().skip(1).map(move |item| (at, item)));
    let replaced = single.map(|(at, item)| {
        let mut turned = first.clone();
        turned.iter_mut().skip(at).take(1).for_each(|place| *place = item.clone());
        turned
    });
    std::iter::once(first.clone()).chain(replaced).collect()
}

/// Slots of a study at most, each target's counted: with iterations of a second, eleven days.
const MOST_SLOTS: u128 = 1_000_000;

/// Cases at most: each is kept with all of its parameters, in memory and in the manifest.
const MOST_CASES: u128 = 100_000;

/// Why the plan of this study, which has so many targets, would be too large, with the numbers that multiply to it.
pub(crate) fn plan_size_problem(study: &Study, catalogue: &Catalogue, targets: usize) -> Option<Problem> {
    let workloads: Vec<WorkloadSize> =
        study.workload.keys().filter_map(|name| WorkloadSize::of_workload(name, study, catalogue)).collect();
    let cases = workloads.iter().fold(0_u128, |sum, workload| sum.saturating_add(workload.case_count()));
    let largest = workloads.iter().max_by_key(|workload| workload.case_count())?;
    if cases > MOST_CASES {
        let message = format!("`{}` has too many cases: {}", largest.name, largest.product_text());
        let hint = format!("a study has at most {MOST_CASES} cases: leave values or levels out, or split it");
        return Some(Problem::new(largest.longest_list_key(), message).with_hint(hint));
    }
    let rules = &study.run;
    let iterations = u128::from(rules.max_iterations()) + u128::from(rules.warmup);
    let key = if rules.until.is_some() { "run.until" } else { "run.iterations" };
    let repeated = [
        ("iterations with warm-ups", key, iterations),
        ("boots", "run.boots", u128::from(rules.boots)),
        ("targets", "target", targets.max(1) as u128),
    ];
    let slots = repeated.iter().fold(cases, |product, (_, _, number)| product.saturating_mul(*number));
    if slots <= MOST_SLOTS {
        return None;
    }
    let product = repeated.iter().filter(|(_, _, number)| *number > 1);
    let product: String = product.map(|(noun, _, number)| format!(" x {number} {noun}")).collect();
    let noun = if cases == 1 { "case" } else { "cases" };
    let message = format!("the study has too many slots: {cases} {noun}{product} = {slots}");
    let hint = format!("a study has at most {MOST_SLOTS} slots: lower one of these numbers, or split it");
    let most_repeated = repeated.iter().max_by_key(|(_, _, number)| *number);
    let key = most_repeated.filter(|(_, _, number)| *number > cases).map(|(_, key, _)| (*key).to_owned());
    Some(Problem::new(key.unwrap_or_else(|| largest.longest_list_key()), message).with_hint(hint))
}

/// What multiplies to the cases of one workload.
struct WorkloadSize {
    name: String,
    /// how many cases there are where levels are turned one at a time
    points: Option<u128>,
    /// a key of the study, and how many values it has
    lists: Vec<(String, usize)>,
}

impl WorkloadSize {
    fn of_workload(name: &str, study: &Study, catalogue: &Catalogue) -> Option<Self> {
        let workload = study.workload.get(name)?;
        let definition = catalogue.get(catalogue_name(name, workload))?;
        let matrix = workload.matrix.iter().map(|(parameter, values): (&String, &StudyList<Scalar>)| {
            (format!("workload.{name}.matrix.{parameter}"), values.len())
        });
        let is_ours = |(factor, found): &(&String, &Factor)| factor_concerns(factor, found, name, definition);
        let factors = study.factor.iter().filter(is_ours);
        let levels = factors.map(|(factor, found)| (format!("factor.{factor}.levels"), found.levels.len()));
        let is_single = study.run.combinations == LevelCombinations::OneAtATime;
        let levels: Vec<(String, usize)> = levels.collect();
        let alone = levels.iter().map(|(_, length)| *length as u128 - u128::from(*length > 0));
        let alone = alone.fold(1, u128::saturating_add);
        let lists: Vec<(String, usize)> = matrix.collect();
        let points = lists.iter().fold(alone, |product, (_, length)| product.saturating_mul(*length as u128));
        let lists = lists.into_iter().chain(levels).collect();
        Some(WorkloadSize { name: name.to_owned(), points: is_single.then_some(points), lists })
    }

    fn case_count(&self) -> u128 {
        if let Some(points) = self.points {
            return points;
        }
        self.lists.iter().fold(1, |product, (_, length)| product.saturating_mul(*length as u128))
    }

    /// `1000 x 1000 = 1000000`
    fn product_text(&self) -> String {
        let lengths: Vec<String> = self.lists.iter().map(|(_, length)| length.to_string()).collect();
        let product = self.case_count();
        match lengths.len() {
            1 => product.to_string(),
            _ if self.points.is_some() => product.to_string(),
            _ if product == u128::MAX => format!("{}, more than 10^38", lengths.join(" x ")),
            _ => format!("{} = {product}", lengths.join(" x ")),
        }
    }

    /// The key of the list with most values.
    fn longest_list_key(&self) -> String {
        let longest = self.lists.iter().max_by_key(|(_, length)| *length);
        longest.map_or_else(|| format!("workload.{}", self.name), |(key, _)| key.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::{combinations, one_at_a_time};

    #[test]
    fn one_at_a_time_differs_from_the_first_in_one() {
        let all = one_at_a_time(&[vec!['a', 'b', 'c'], vec!['1', '2']]);
        let all: Vec<String> = all.into_iter().map(String::from_iter).collect();
        assert_eq!(all, ["a1", "b1", "c1", "a2"]);
        assert_eq!(one_at_a_time::<u8>(&[]), [Vec::<u8>::new()]);
    }

    #[test]
    fn the_last_list_turns_fastest() {
        let all = combinations(&[vec!['a', 'b'], vec!['1', '2']]);
        let all: Vec<String> = all.into_iter().map(String::from_iter).collect();
        assert_eq!(all, ["a1", "a2", "b1", "b2"]);
        assert_eq!(combinations::<u8>(&[]), [Vec::<u8>::new()]);
    }
}
