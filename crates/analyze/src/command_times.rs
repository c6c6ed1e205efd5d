//! How long the commands of a run took, and what they used: the figures of `perflab bench`, one set a case.

use perflab_model::expression::ExpressionScope;
use perflab_model::{Case, Outcome, RunRecord, Sample, Scalar};
use perflab_stats::{mean, median, sd};

/// The metric that is a command's wall-clock time.
const TIME: &str = "time";

/// One case of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandTimes {
    /// The command as it was run, where the study has one of its own; else the case's label.
    pub command: String,
    /// What people call it: the levels of the run's factors.
    pub name: String,
    /// Values of the factors and parameters other than the command itself.
    pub parameters: Vec<(String, String)>,
    /// Seconds of each iteration that went well, in their order.
    pub times: Vec<f64>,
    /// CPU seconds in user mode of an iteration, in the mean; absent where they were not recorded.
    pub user: Option<f64>,
    /// CPU seconds in the kernel of an iteration, in the mean.
    pub system: Option<f64>,
    /// Resident bytes of the largest process of each iteration, in the order of `times`.
    pub max_rss: Vec<f64>,
    /// Iterations that failed.
    pub failed: usize,
}

impl CommandTimes {
    /// The mean time, in seconds; absent where nothing went well.
    pub fn mean(&self) -> Option<f64> {
        mean(&self.times).ok()
    }

    /// The standard deviation of the times, in seconds; absent for fewer than two.
    pub fn sd(&self) -> Option<f64> {
        sd(&self.times).ok().filter(|_| self.times.len() > 1)
    }

    /// The median time, in seconds.
    pub fn median(&self) -> Option<f64> {
        median(&self.times).ok()
    }

    /// The shortest and the longest time, in seconds.
    pub fn range(&self) -> Option<(f64, f64)> {
        let low = self.times.iter().copied().reduce(f64::min)?;
        Some((low, self.times.iter().copied().reduce(f64::max)?))
    }
}

/// The times of all cases of a run, in its order of cases.
pub fn command_times(record: &RunRecord) -> Vec<CommandTimes> {
    let cases = (0_u32..).zip(&record.manifest.plan.cases);
    cases.map(|(number, case)| case_times(record, number, case)).collect()
}

fn case_times(record: &RunRecord, number: u32, case: &Case) -> CommandTimes {
    let samples: Vec<&Sample> = record.samples.iter().filter(|sample| sample.case == number).collect();
    let values = |metric: &str| -> Vec<f64> {
        samples.iter().filter(|sample| sample.metric == *metric).map(|sample| sample.value).collect()
    };
    let slots = &record.manifest.plan.slots;
    let failed = record.iterations.iter().filter(|iteration| {
        let slot = slots.get(iteration.slot as usize);
        !matches!(iteration.outcome, Outcome::Ok | Outcome::Interrupted)
            && slot.is_some_and(|slot| slot.case == number && !slot.warmup)
    });
    let levels: Vec<&str> = case.levels.values().map(String::as_str).collect();
    let command = run_command(record, case);
    let is_command = |name: &str| name == "command";
    CommandTimes {
        name: if levels.is_empty() { command.clone() } else { levels.join(", ") },
        command,
        parameters: case
            .levels
            .iter()
            .filter(|(name, _)| !is_command(name))
            .map(|(name, level)| (name.clone(), level.clone()))
            .collect(),
        times: values(TIME),
        user: mean(&values("user")).ok(),
        system: mean(&values("system")).ok(),
        max_rss: values("max-rss"),
        failed: failed.count(),
    }
}

/// The command of a case with its parameters filled in.
fn run_command(record: &RunRecord, case: &Case) -> String {
    let spec = record.manifest.study.workload.get(&case.workload);
    let Some(command) = spec.and_then(|spec| spec.command.as_ref()) else { return case.label() };
    let mut scope = ExpressionScope::default();
    for (name, value) in &case.parameters {
        scope.set(name, Scalar::Text(value.to_string()));
    }
    let words = command.templates().iter().map(|text| scope.render(text).unwrap_or_else(|_| text.clone()));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::RunBuilder;

    use super::*;

    #[test]
    fn figures_are_those_of_the_iterations_that_went_well() {
        let lab = RunBuilder::new("01A").with(|lab| lab.iterations = 3);
        let record = lab.build_run(|point| [1.0, 2.0, 6.0].get(point.iteration as usize).copied());
        let [only] = &command_times(&record)[..] else { panic!("one case") };
        assert_eq!((only.mean(), only.median(), only.range()), (Some(3.0), Some(2.0), Some((1.0, 6.0))));
        assert_eq!((only.failed, only.user), (0, None));
    }
}
