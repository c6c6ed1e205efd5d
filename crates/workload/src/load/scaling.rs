//! Whether an operation of the kernel scales: one to many tasks that do it over and over, as will-it-scale does it
//! (A. Blanchard, <https://github.com/antonblanchard/will-it-scale>).
//!
//! The operations are those of its test cases, written anew; the page `docs/loads.md` holds them against the originals.

use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use crate::load::args::{BuiltinLoadArgs, LoadError, invalid_value_error};
use crate::load::scaling_case::{CASES, ScalingCase, prepare_files};
use crate::load::tasks::{TaskModel, TaskPlan};

pub(crate) fn measure_scaling(options: &mut BuiltinLoadArgs) -> Result<serde_json::Value, LoadError> {
    measure_cases(options, CASES)
}

/// Measures the one of these cases that is asked for.
pub(crate) fn measure_cases(
    options: &mut BuiltinLoadArgs,
    cases: &'static [ScalingCase],
) -> Result<serde_json::Value, LoadError> {
    let choices: Vec<(&str, &ScalingCase)> = cases.iter().map(|case| (case.name, case)).collect();
    let case = options.choice("case", &choices)?;
    let plan = TaskPlan::take(options)?;
    let default = std::env::temp_dir().display().to_string();
    let directory: String = options.value("directory", default)?;
    options.require_all_used()?;
    let folder = prepare_folder(Path::new(&directory), &plan)?;
    let counted = plan.measure(&|task| {
        let action = format!("do `{}`", case.name);
        (case.run)(task, folder.path()).map_err(LoadError::system_error(action)).map(|()| Vec::new())
    });
    let removed = folder.close().map_err(LoadError::system_error(format!("remove what is in {directory}")));
    let counted = counted?;
    removed?;
    let rates = counted.operations.iter().map(|count| *count as f64 / counted.seconds);
    Ok(json!({
        "case": case.name,
        "original": case.original,
        "tasks": plan.tasks,
        "seconds": counted.seconds,
        "operations_per_second": counted.rate(),
        "operations_per_second_per_task": counted.rate_per_task(),
        "fairness": counted.fairness(),
        "by_task": rates.collect::<Vec<f64>>(),
    }))
}

/// A folder of this load's own, with what the cases find in it.
fn prepare_folder(directory: &Path, plan: &TaskPlan) -> Result<TempDir, LoadError> {
    if !directory.is_dir() {
        return Err(invalid_value_error(
            "directory",
            &format!("{} is not a folder that exists", directory.display()),
        ));
    }
    let refused = || LoadError::system_error(format!("write in {}", directory.display()));
    let folder = tempfile::Builder::new().prefix("scaling-").tempdir_in(directory).map_err(refused())?;
    prepare_files(folder.path(), plan.tasks).map_err(refused())?;
    if plan.model == TaskModel::Threads {
        raise_open_file_limit();
    }
    Ok(folder)
}

/// As many open files as are allowed: threads share one table.
fn raise_open_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // The case that needs more says so itself.
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::load::tasks::MOST_TASKS;

    fn measure(arguments: &[&str], directory: &Path) -> Result<serde_json::Value, LoadError> {
        let fixed =
            ["--model", "threads", "--placement", "any", "--warm-up", "0", "--time", "5ms", "--directory"];
        let mut all: Vec<OsString> = vec!["scaling".into()];
        all.extend(arguments.iter().chain(&fixed).map(Into::into));
        all.push(directory.into());
        measure_scaling(&mut BuiltinLoadArgs::parse(&all)?)
    }

    #[test]
    fn every_case_counts_in_two_threads() {
        let folder = tempfile::tempdir().unwrap();
        for case in CASES {
            match measure(&["--case", case.name, "--tasks", "2"], folder.path()) {
                Ok(result) => {
                    assert!(result["operations_per_second"].as_f64().unwrap() > 0.0, "{result}");
                    assert_eq!(result["by_task"].as_array().unwrap().len(), 2, "{result}");
                    assert!(result["fairness"].as_f64().unwrap() <= 1.0, "{result}");
                }
                // Not every file system has leases.
                Err(error) => assert_eq!(case.name, "lease-own", "{}: {error}", case.name),
            }
            assert_eq!(folder.path().read_dir().unwrap().count(), 0, "{} leaves files", case.name);
        }
    }

    #[test]
    fn the_definition_offers_every_case() {
        let catalogue = crate::Catalogue::embedded();
        let choices = &catalogue.get("scaling").unwrap().parameters["case"].choices;
        let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        assert_eq!(choices, &names);
    }

    #[test]
    fn impossible_parameters_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = |arguments: &[&str]| measure(arguments, folder.path()).unwrap_err().to_string();
        assert_eq!(error(&["--tasks", "0"]), "--tasks: 0 is too few; at least 1");
        let many = (MOST_TASKS + 1).to_string();
        assert_eq!(error(&["--tasks", &many]), "--tasks: 4097 is too many; at most 4096");
        assert_eq!(error(&["--case", "open"]).split(':').nth(1), Some(" `open`"));
        let nowhere = measure(&[], &folder.path().join("nowhere")).unwrap_err().to_string();
        assert!(nowhere.starts_with("--directory: ") && nowhere.ends_with("is not a folder that exists"));
    }
}
