//! The Python package, by its own tests: against the program, on runs that are really recorded.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::laboratory::{find_test_python, skip_test};

fn package_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python").canonicalize().unwrap()
}

/// Python in the package's folder, with the package and the program; none where there is no environment for tests.
fn prepare_python(test: &str) -> Option<Command> {
    let Some(python) = find_test_python() else {
        skip_test(test, "no target/test-venv (cargo xtask test makes it)");
        return None;
    };
    // A link, by which Python knows that it is of an environment.
    let mut command = Command::new(std::path::absolute(&python).unwrap());
    command.current_dir(package_folder()).stdin(Stdio::null());
    command.env("PYTHONPATH", package_folder().join("src")).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("PERFLAB_PROGRAM", env!("CARGO_BIN_EXE_perflab"));
    command.env("PERFLAB_SQL_ENGINE", &python).env_remove("PERFLAB_ARCHIVE");
    Some(command)
}

/// Whether the environment for tests has it; one that was made before it was needed has not.
fn has_module(name: &str) -> bool {
    let mut import = Command::new(find_test_python().unwrap());
    import.args(["-c", &format!("import {name}")]).stderr(Stdio::null());
    import.status().unwrap().success()
}

fn run_to_success(mut command: Command) -> String {
    let said = command.output().unwrap();
    let [out, err] = [&said.stdout, &said.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(said.status.success(), "{command:?}\n{out}\n{err}");
    err
}

/// Runs the tests of the package whose files are named so.
fn run_tests(test: &str, pattern: &str) {
    let Some(mut python) = prepare_python(test) else { return };
    python.args(["-m", "unittest", "discover", "--start-directory", "tests", "--pattern", pattern]);
    let said = run_to_success(python);
    // Nothing is skipped for want of a module that the environment has.
    assert!(said.trim_end().ends_with("\nOK"), "{said}");
}

#[test]
fn the_tests_of_the_package_pass() {
    run_tests("python_package", "test_[!n]*.py");
}

#[test]
fn the_notebooks_run_again() {
    run_tests("python_notebooks", "test_notebooks.py");
}

#[test]
fn the_types_of_the_package_are_strict() {
    let Some(mut python) = prepare_python("python_types") else { return };
    if !has_module("mypy") {
        return skip_test("python_types", "no mypy in target/test-venv (cargo xtask test puts it there)");
    }
    let cache = tempfile::tempdir().unwrap();
    python.args(["-m", "mypy", "--cache-dir"]).arg(cache.path());
    run_to_success(python);
}
