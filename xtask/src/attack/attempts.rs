//! What an attack is, where it is carried out, and the counts of its attempts.

use std::path::PathBuf;

use anyhow::Result;

/// Failures that are kept in words; all are counted.
const FIRST_FAILURES: usize = 10;

/// One kind of attack.
pub struct Attack {
    /// What `--only` calls it.
    pub name: &'static str,
    /// What it tries, in a few words: a cell of the table.
    pub tries: &'static str,
    /// How many attempts with `--brief`: of all attacks together, under 20 minutes.
    pub brief: u32,
    /// How many attempts without: of all attacks together, under 3 hours.
    pub full: u32,
    /// Carries out so many attempts. An error means that attacking itself failed, not that perflab did.
    pub carry_out: fn(&AttackEnvironment, u32) -> Result<AttackCounts>,
}

/// Where an attack is carried out.
pub struct AttackEnvironment {
    /// The perflab under attack: a copy, so that a build in the meantime does not change it.
    pub perflab: PathBuf,
    /// A copy of this program, which stands in for others.
    pub xtask: PathBuf,
    /// A folder of the attack's own, removed after it.
    pub folder: PathBuf,
}

/// What came of an attack.
#[derive(Debug, Default)]
pub struct AttackCounts {
    /// Attempts.
    pub tried: u32,
    /// Those that perflab stood.
    pub held: u32,
    /// The first that it did not, in words.
    pub failures: Vec<String>,
}

impl AttackCounts {
    /// Counts one attempt; `failure` says what went wrong, if something did.
    pub fn count_attempt(&mut self, failure: Option<String>) {
        self.tried += 1;
        match failure {
            None => self.held += 1,
            Some(failure) => {
                if self.failures.len() < FIRST_FAILURES {
                    self.failures.push(failure);
                }
            }
        }
    }

    /// Attempts that perflab did not stand.
    pub fn failed_attempts(&self) -> u32 {
        self.tried - self.held
    }
}
