//! One program: where it stands, what its starts cost, and how it moves on.

use std::time::{Duration, Instant};

use perflab_model::Nanos;
use perflab_observe::taskstats::Used;
use serde::{Deserialize, Serialize};

use super::programs::Purpose;
use super::scout::Identity;
use super::worth::Worth;

/// Starts of either kind whose cost is remembered.
const MEASURED: usize = 8;
/// Starts that were read ahead and gained nothing, after which it is left.
const PATIENCE: usize = 3;
/// A program is not read ahead twice in this time: what it needs is in memory, or the machine has other troubles.
const AGAIN: Duration = Duration::from_secs(1);

/// Where a program stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// no start has waited long enough yet
    #[default]
    Watched,
    /// one has: the next is traced
    Worth,
    /// read ahead
    Known,
    /// read ahead, but waits for something that is not in its trace: the next start is traced too
    Incomplete,
    /// reading ahead brought nothing
    Useless,
}

/// What a start cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// by its threads and its children's
    pub used: Used,
    /// how long the exec waited while files were read ahead
    pub held: Nanos,
}

/// What was read ahead for a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ahead {
    /// starts for which something was
    pub starts: u64,
    /// starts that had everything in memory already
    pub warm: u64,
    /// bytes of files and of file systems' own blocks that were asked for
    pub bytes: u64,
    /// bytes of files that were asked for, for starts that were seen to open files
    #[serde(default)]
    pub judged: u64,
    /// of them, those of files that the starts opened
    #[serde(default)]
    pub used: u64,
    /// files that had changed, were gone, or that the user could not open
    pub skipped: u64,
    /// execs that were let through before everything had come
    pub overdue: u64,
}

/// A program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// its executable
    pub file: Identity,
    /// where it stands
    pub standing: Standing,
    /// why it stands there
    pub why: String,
    /// starts that were seen
    pub starts: u64,
    /// the last of them, in seconds since 1970
    pub last: u64,
    /// starts that were traced and remembered
    pub learned: u64,
    /// the latest starts that were worth reading ahead, and were not
    pub without: Vec<Measured>,
    /// the latest starts that were read ahead
    pub with: Vec<Measured>,
    /// what was read ahead
    pub ahead: Ahead,
    /// whether what was learnt is about an executable that was replaced since
    #[serde(default)]
    pub stale: bool,
    /// when it was read ahead last
    #[serde(skip)]
    pub(super) recent: Option<Instant>,
}

impl Program {
    /// A package was upgraded: what was known is about another program.
    pub(super) fn replaced(&mut self, file: Identity) {
        self.file = file;
        self.without.clear();
        self.with.clear();
        let was = std::mem::take(&mut self.standing);
        self.why = "its executable was replaced".into();
        if matches!(was, Standing::Worth | Standing::Known | Standing::Incomplete) {
            self.standing = Standing::Worth;
            self.stale = true;
        }
    }

    pub(super) fn purpose(&mut self) -> Purpose {
        let again = self.recent.is_some_and(|recent| recent.elapsed() < AGAIN);
        let purpose = match self.standing {
            Standing::Watched => Purpose::Watch,
            Standing::Useless => Purpose::Nothing,
            Standing::Worth => Purpose::Learn { anew: self.stale },
            Standing::Known | Standing::Incomplete if again => Purpose::Nothing,
            Standing::Known => Purpose::ReadAhead { learn: false },
            Standing::Incomplete => Purpose::ReadAhead { learn: true },
        };
        if matches!(purpose, Purpose::ReadAhead { .. }) {
            self.recent = Some(Instant::now());
        }
        purpose
    }

    /// A start that was not read ahead has ended, or was watched for long enough.
    pub fn went_without(&mut self, used: Used, worth: &Worth, delays: bool) {
        if worth.is(used, delays) {
            push(&mut self.without, Measured { used, held: Nanos(0) });
        }
        if self.standing != Standing::Watched {
            return;
        }
        self.why = worth.told(used, delays);
        if worth.is(used, delays) {
            self.standing = Standing::Worth;
        }
    }

    /// A start that was read ahead has. One that opened nothing of that (`is_used` is false) is no measure of what reading ahead gains.
    pub fn went_with(&mut self, measured: Measured, is_used: bool, worth: &Worth, delays: bool) {
        if is_used {
            push(&mut self.with, measured);
        }
        let still = worth.is(measured.used, delays);
        self.why = format!("read ahead, {}", worth.told(measured.used, delays));
        self.standing = match self.standing {
            Standing::Known | Standing::Incomplete if self.gains_nothing(delays) => {
                self.why =
                    format!("{PATIENCE} starts that were read ahead waited no less than those that were not");
                Standing::Useless
            }
            Standing::Known | Standing::Incomplete if still => Standing::Incomplete,
            Standing::Known | Standing::Incomplete => Standing::Known,
            other => other,
        };
    }

    /// Nothing of what was learnt was used: it is watched as if it were new.
    pub(super) fn forgotten(&mut self, why: String) {
        (self.standing, self.why) = (Standing::Watched, why);
        self.without.clear();
        self.with.clear();
    }

    /// The cost of the middle start of either kind, in what decides: time where it is known, else bytes. Of those without, only such
    /// as were counted: what one is held against must not be too small.
    pub fn gain(&self, delays: bool) -> [Option<u64>; 2] {
        let cost = |one: &Measured| match delays {
            true => one.used.waited.0.saturating_add(one.held.0),
            false => one.used.read,
        };
        let counted = |one: &&Measured| !delays || one.used.is_waiting_counted();
        let without = self.without.iter().filter(counted).map(cost).collect();
        [median(without), median(self.with.iter().map(cost).collect())]
    }

    fn gains_nothing(&self, delays: bool) -> bool {
        let [without, with] = self.gain(delays);
        let none = without.zip(with).is_some_and(|(without, with)| with > without / 10 * 9);
        self.with.len() >= PATIENCE && none
    }
}

fn push(starts: &mut Vec<Measured>, start: Measured) {
    starts.push(start);
    let surplus = starts.len().saturating_sub(MEASURED);
    starts.drain(..surplus);
}

fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}
