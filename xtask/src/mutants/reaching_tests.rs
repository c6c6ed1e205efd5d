//! Which test comes by which mutant: without a mutant on, every test runs once by itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::mutants::test_programs::{TestEnd, TestProgram};
use crate::mutants::worker_pool::work_through;

/// A test that needs longer is not among those that try mutants.
const LONGEST: Duration = Duration::from_secs(20);
/// Simulations that take longer than all other tests together: what they alone would notice counts as missed.
pub const LEFT_OUT: [&str; 8] = [
    "plan_power::",
    "flags::flags_are_rare_on_clean_samples",
    "tails::",
    "run_level::a_few_iterations_against_thousands_seldom_differ",
    "why_placebo::",
    "machines::",
    "pooled_noise::",
    "word_and_interval::",
];

/// A test, and what it comes by.
#[derive(Debug, Clone)]
pub struct ReachingTest {
    /// Index of its program.
    pub program: usize,
    pub name: String,
    pub milliseconds: u64,
    pub reached: BTreeSet<usize>,
}

/// Runs every test once; those that pass in time, and the names of the others. `kept` is a file in which
/// they are found again.
pub fn find_reaching_tests(
    programs: &[TestProgram],
    kept: &Path,
) -> Result<(Vec<ReachingTest>, Vec<String>)> {
    if let Ok(text) = fs::read_to_string(kept) {
        return Ok(read_kept_tests(&text, programs));
    }
    let mut tests = Vec::new();
    for (index, program) in programs.iter().enumerate() {
        let listed = program.list_tests()?.into_iter();
        tests.extend(
            listed.filter(|test| !LEFT_OUT.iter().any(|part| test.contains(part))).map(|test| (index, test)),
        );
    }
    println!("{} tests, each by itself", tests.len());
    // Those that pass in time, and the names of the others.
    let results = Mutex::new((Vec::new(), Vec::new()));
    work_through(tests.len(), |number| {
        if number.is_multiple_of(200) {
            println!("  test {number}");
        }
        let (program, name) = tests[number].clone();
        let file = kept.with_extension(format!("reached-{number}"));
        let _ = fs::remove_file(&file);
        let from = Instant::now();
        let end = programs[program].run_test(&name, None, Some(&file), LONGEST)?;
        let numbers = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(&file);
        let (found, unfit) = &mut *results.lock().unwrap_or_else(PoisonError::into_inner);
        if end == TestEnd::Passed {
            let milliseconds = u64::try_from(from.elapsed().as_millis()).unwrap_or(u64::MAX);
            let reached = numbers.lines().filter_map(|number| number.parse().ok()).collect();
            found.push(ReachingTest { program, name, milliseconds, reached });
        } else {
            unfit.push(name);
        }
        Ok(())
    })?;
    let (found, unfit) = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    keep_tests(&found, &unfit, programs, kept)?;
    Ok((found, unfit))
}

/// One line a test: program, name, milliseconds, mutants; those that are unfit have no program.
fn keep_tests(found: &[ReachingTest], unfit: &[String], programs: &[TestProgram], kept: &Path) -> Result<()> {
    let mut text = String::new();
    for test in found {
        let reached: Vec<String> = test.reached.iter().map(usize::to_string).collect();
        let program = programs[test.program].executable.display();
        text += &format!("{program}\t{}\t{}\t{}\n", test.name, test.milliseconds, reached.join(","));
    }
    for name in unfit {
        text += &format!("\t{name}\t0\t\n");
    }
    fs::write(kept, text).with_context(|| format!("cannot write {}", kept.display()))
}

fn read_kept_tests(text: &str, programs: &[TestProgram]) -> (Vec<ReachingTest>, Vec<String>) {
    let (mut found, mut unfit) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let &[program, name, milliseconds, reached] = cells.as_slice() else { continue };
        match programs.iter().position(|known| known.executable == Path::new(program)) {
            Some(program) => found.push(ReachingTest {
                program,
                name: name.into(),
                milliseconds: milliseconds.parse().unwrap_or(0),
                reached: reached.split(',').filter_map(|number| number.parse().ok()).collect(),
            }),
            None => unfit.push(name.into()),
        }
    }
    (found, unfit)
}
