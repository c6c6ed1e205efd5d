//! One program: where it stands, what its starts cost, and how it moves on.

use std::time::{Duration, Instant};

use perflab_model::Nanos;
use perflab_observe::taskstats::ThreadUsage;
use serde::{Deserialize, Serialize};

use super::programs::StartupPurpose;
use super::scout::ExecutableId;
use super::worth::LearnThreshold;

/// Starts of either kind whose cost is remembered.
const MAX_MEASURED_STARTUPS: usize = 8;
/// Starts that were read ahead and gained nothing, after which it is left.
const STARTUPS_BEFORE_GIVING_UP: usize = 3;
/// A program is not read ahead twice in this time: what it needs is in memory, or the machine has other troubles.
const REPEAT_INTERVAL: Duration = Duration::from_secs(1);

/// Where a program stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramState {
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
pub struct MeasuredStartup {
    /// by its threads and its children's
    pub used: ThreadUsage,
    /// how long the exec waited while files were read ahead
    pub held: Nanos,
}

/// What was read ahead for a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadAheadTotals {
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
pub struct ProgramRecord {
    /// its executable
    pub file: ExecutableId,
    /// where it stands
    pub standing: ProgramState,
    /// why it stands there
    pub why: String,
    /// starts that were seen
    pub starts: u64,
    /// the last of them, in seconds since 1970
    pub last: u64,
    /// starts that were traced and remembered
    pub learned: u64,
    /// the latest starts that were worth reading ahead, and were not
    pub without: Vec<MeasuredStartup>,
    /// the latest starts that were read ahead
    pub with: Vec<MeasuredStartup>,
    /// what was read ahead
    pub ahead: ReadAheadTotals,
    /// whether what was learnt is about an executable that was replaced since
    #[serde(default)]
    pub stale: bool,
    /// when it was read ahead last
    #[serde(skip)]
    pub(super) recent: Option<Instant>,
}

impl ProgramRecord {
    /// A package was upgraded: what was known is about another program.
    pub(super) fn reset_replaced(&mut self, file: ExecutableId) {
        self.file = file;
        self.without.clear();
        self.with.clear();
        let was = std::mem::take(&mut self.standing);
        self.why = "its executable was replaced".into();
        if matches!(was, ProgramState::Worth | ProgramState::Known | ProgramState::Incomplete) {
            self.standing = ProgramState::Worth;
            self.stale = true;
        }
    }

    pub(super) fn next_purpose(&mut self) -> StartupPurpose {
        let again = self.recent.is_some_and(|recent| recent.elapsed() < REPEAT_INTERVAL);
        let purpose = match self.standing {
            ProgramState::Watched => StartupPurpose::Watch,
            ProgramState::Useless => StartupPurpose::Nothing,
            ProgramState::Worth => StartupPurpose::Learn { anew: self.stale },
            ProgramState::Known | ProgramState::Incomplete if again => StartupPurpose::Nothing,
            ProgramState::Known => StartupPurpose::ReadAhead { learn: false },
            ProgramState::Incomplete => StartupPurpose::ReadAhead { learn: true },
        };
        if matches!(purpose, StartupPurpose::ReadAhead { .. }) {
            self.recent = Some(Instant::now());
        }
        purpose
    }

    /// A start that was not read ahead has ended, or was watched for long enough.
    pub fn record_plain(&mut self, used: ThreadUsage, worth: &LearnThreshold, delays: bool) {
        if worth.is_reached(used, delays) {
            push_startup(&mut self.without, MeasuredStartup { used, held: Nanos(0) });
        }
        if self.standing != ProgramState::Watched {
            return;
        }
        self.why = worth.explain(used, delays);
        if worth.is_reached(used, delays) {
            self.standing = ProgramState::Worth;
        }
    }

    /// A start that was read ahead has. One that opened nothing of that (`is_used` is false) is no measure of what reading ahead gains.
    pub fn record_prefetched(
        &mut self,
        measured: MeasuredStartup,
        is_used: bool,
        worth: &LearnThreshold,
        delays: bool,
    ) {
        if is_used {
            push_startup(&mut self.with, measured);
        }
        let still = worth.is_reached(measured.used, delays);
        self.why = format!("read ahead, {}", worth.explain(measured.used, delays));
        self.standing = match self.standing {
            ProgramState::Known | ProgramState::Incomplete if self.is_useless(delays) => {
                self.why = format!(
                    "{STARTUPS_BEFORE_GIVING_UP} starts that were read ahead waited no less than those that were not"
                );
                ProgramState::Useless
            }
            ProgramState::Known | ProgramState::Incomplete if still => ProgramState::Incomplete,
            ProgramState::Known | ProgramState::Incomplete => ProgramState::Known,
            other => other,
        };
    }

    /// Nothing of what was learnt was used: it is watched as if it were new.
    pub(super) fn reset_forgotten(&mut self, why: String) {
        (self.standing, self.why) = (ProgramState::Watched, why);
        self.without.clear();
        self.with.clear();
    }

    /// The cost of the middle start of either kind, in what decides: time where it is known, else bytes. Of those without, only such
    /// as were counted: what one is held against must not be too small.
    pub fn median_costs(&self, delays: bool) -> [Option<u64>; 2] {
        let cost = |one: &MeasuredStartup| match delays {
            true => one.used.waited.0.saturating_add(one.held.0),
            false => one.used.read,
        };
        let counted = |one: &&MeasuredStartup| !delays || one.used.is_waiting_counted();
        let without = self.without.iter().filter(counted).map(cost).collect();
        [median_of(without), median_of(self.with.iter().map(cost).collect())]
    }

    fn is_useless(&self, delays: bool) -> bool {
        let [without, with] = self.median_costs(delays);
        let none = without.zip(with).is_some_and(|(without, with)| with > without / 10 * 9);
        self.with.len() >= STARTUPS_BEFORE_GIVING_UP && none
    }
}

fn push_startup(starts: &mut Vec<MeasuredStartup>, start: MeasuredStartup) {
    starts.push(start);
    let surplus = starts.len().saturating_sub(MAX_MEASURED_STARTUPS);
    starts.drain(..surplus);
}

fn median_of(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}
