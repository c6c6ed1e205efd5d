//! How large a plan would be, counted before anything of it is built.

use perflab_model::study::{Factor, Study};
use perflab_model::{Problem, Scalar};
use perflab_workload::Catalogue;

use super::cases::{catalogue_name, factor_concerns};

/// Slots of a study at most, each target's counted: with iterations of a second, eleven days.
const MOST_SLOTS: u128 = 1_000_000;

/// Cases at most: each is kept with all of its parameters, in memory and in the manifest.
const MOST_CASES: u128 = 100_000;

/// Why the plan of this study would be too large, with the numbers that multiply to it.
pub(super) fn plan_size_problem(study: &Study, catalogue: &Catalogue) -> Option<Problem> {
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
        ("targets", "target", u128::from(study.target_count().max(1))),
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
    /// a key of the study, and how many values stand there
    lists: Vec<(String, usize)>,
}

impl WorkloadSize {
    fn of_workload(name: &str, study: &Study, catalogue: &Catalogue) -> Option<Self> {
        let workload = study.workload.get(name)?;
        let definition = catalogue.get(catalogue_name(name, workload))?;
        let matrix = workload.matrix.iter().map(|(parameter, values): (&String, &Vec<Scalar>)| {
            (format!("workload.{name}.matrix.{parameter}"), values.len())
        });
        let is_ours = |(factor, found): &(&String, &Factor)| factor_concerns(factor, found, name, definition);
        let factors = study.factor.iter().filter(is_ours);
        let levels = factors.map(|(factor, found)| (format!("factor.{factor}.levels"), found.levels.len()));
        Some(WorkloadSize { name: name.to_owned(), lists: matrix.chain(levels).collect() })
    }

    fn case_count(&self) -> u128 {
        self.lists.iter().fold(1, |product, (_, length)| product.saturating_mul(*length as u128))
    }

    /// `1000 x 1000 = 1000000`
    fn product_text(&self) -> String {
        let lengths: Vec<String> = self.lists.iter().map(|(_, length)| length.to_string()).collect();
        let product = self.case_count();
        match lengths.len() {
            1 => product.to_string(),
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
