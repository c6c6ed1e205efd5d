//! One mutant, tried by the tests that come by it.

use std::sync::RwLock;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::mutants::code_mutant::CodeMutant;
use crate::mutants::reaching_tests::ReachingTest;
use crate::mutants::test_programs::{TestEnd, TestProgram};

/// A test that runs longer is one that the mutant made endless.
const ENDLESS: Duration = Duration::from_secs(60);
/// As long as this tests are tried with one mutant, quick ones first.
const LONGEST: Duration = Duration::from_secs(60);

/// What became of a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MutantOutcome {
    /// A test failed: this one.
    Caught(String),
    /// A test did not end: this one.
    Endless(String),
    /// So many tests came by it, and none failed.
    Missed(usize),
    /// It does not compile.
    Unviable,
}

impl MutantOutcome {
    /// The outcome in one line, as it is kept.
    pub fn to_line(&self) -> String {
        match self {
            MutantOutcome::Caught(test) => format!("caught by {test}"),
            MutantOutcome::Endless(test) => format!("endless in {test}"),
            MutantOutcome::Missed(tests) => format!("missed by {tests}"),
            MutantOutcome::Unviable => "unviable".to_owned(),
        }
    }

    /// What such a line says.
    pub fn from_line(line: &str) -> Result<Self> {
        if let Some(test) = line.strip_prefix("caught by ") {
            return Ok(MutantOutcome::Caught(test.into()));
        }
        if let Some(test) = line.strip_prefix("endless in ") {
            return Ok(MutantOutcome::Endless(test.into()));
        }
        match line.strip_prefix("missed by ") {
            Some(tests) => Ok(MutantOutcome::Missed(tests.parse()?)),
            None if line == "unviable" => Ok(MutantOutcome::Unviable),
            None => bail!("`{line}` is no outcome of a mutant"),
        }
    }
}

/// Runs the tests that come by the mutant, those of its own package first, until one notices.
///
/// A test that fails is run again while no other test runs, with the mutant and without it: one that fails now and then notices
/// nothing.
pub fn try_mutant(
    number: usize,
    mutant: &CodeMutant,
    programs: &[TestProgram],
    tests: &[ReachingTest],
    others: &RwLock<()>,
) -> Result<MutantOutcome> {
    let mut reaching: Vec<&ReachingTest> =
        tests.iter().filter(|test| test.reached.contains(&number)).collect();
    reaching.sort_by_key(|test| (programs[test.program].package != mutant.package, test.milliseconds));
    let from = Instant::now();
    for test in &reaching {
        if from.elapsed() > LONGEST {
            break;
        }
        let run = |mutant| programs[test.program].run_test(&test.name, mutant, None, ENDLESS);
        let end = {
            let _shared = others.read();
            run(Some(number))?
        };
        if end == TestEnd::Passed {
            continue;
        }
        let _alone = others.write();
        let again = if end == TestEnd::Failed { run(Some(number))? } else { end };
        if again != TestEnd::Passed && run(None)? == TestEnd::Passed {
            let name = format!("{} {}", programs[test.program].package, test.name);
            let ends = again == TestEnd::Failed;
            return Ok(if ends { MutantOutcome::Caught(name) } else { MutantOutcome::Endless(name) });
        }
    }
    Ok(MutantOutcome::Missed(reaching.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_read_as_it_is_kept() {
        let outcomes = [
            MutantOutcome::Caught("p a::b".into()),
            MutantOutcome::Endless("p a".into()),
            MutantOutcome::Missed(3),
            MutantOutcome::Unviable,
        ];
        for outcome in outcomes {
            assert_eq!(MutantOutcome::from_line(&outcome.to_line()).unwrap(), outcome);
        }
        assert!(MutantOutcome::from_line("lost").is_err());
    }
}
