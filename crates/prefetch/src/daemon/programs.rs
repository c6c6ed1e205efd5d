//! The state of each program for each user, what its startups cost, and the threshold of learning.
//!
//! What the next startup of a program is for is decided from memory alone: no file is touched here.
//!
//! A startup is worth learning if it waited long enough for disks. Where the kernel accounts for delays, the time
//! waited decides; else bytes read and major page faults, which are always counted.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use perflab_model::{Bytes, Nanos};
use perflab_observe::taskstats::ThreadUsage;
use serde::{Deserialize, Serialize};

use crate::daemon::file_classifier::ExecutableId;

/// Starts of either kind whose cost is remembered.
const MAX_MEASURED_STARTUPS: usize = 8;

/// Starts that were read ahead and gained nothing, after which it is left.
const STARTUPS_BEFORE_GIVING_UP: usize = 3;

/// A program is not read ahead twice in this time: what it needs is in memory, or the machine has other troubles.
const REPEAT_INTERVAL: Duration = Duration::from_secs(1);

/// The state of a program.
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

/// Why a program is in its state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StateReason {
    /// no start of it was seen to its end
    #[default]
    Unseen,
    /// a trace of it was there
    TraceFound,
    /// it is to be watched, and no start reports what it waits for
    Unmeasured,
    /// its executable was replaced
    Replaced,
    /// a list or an option excludes it: which
    Excluded(String),
    /// what a start cost that was not read ahead, beside the threshold
    Cost(String),
    /// what a start cost that was read ahead, beside the threshold
    PrefetchedCost(String),
    /// starts that were read ahead cost no less than those that were not
    NothingGained,
    /// the exec was allowed before its tracing had begun
    AllowedUntraced,
    /// the start that was traced had everything in memory
    TracedWarm,
    /// a start was traced, and its trace cannot be made or kept: the error
    TraceFailed(String),
    /// its trace cannot be used: the error
    TraceUnusable(String),
    /// a start was traced
    Learnt,
    /// no start used what was read ahead for it
    TraceUnused,
    /// in the words of an earlier perflab
    #[serde(untagged)]
    Text(String),
}

impl std::fmt::Display for StateReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StateReason::Unseen => f.write_str("no start was seen to its end yet"),
            StateReason::TraceFound => f.write_str("a trace of it was there"),
            StateReason::Unmeasured => {
                f.write_str("it is to be watched, and nothing reports what it waits for")
            }
            StateReason::Replaced => f.write_str("its executable was replaced"),
            StateReason::PrefetchedCost(cost) => write!(f, "read ahead, {cost}"),
            StateReason::NothingGained => write!(
                f,
                "{STARTUPS_BEFORE_GIVING_UP} starts that were read ahead waited no less than those that were not"
            ),
            StateReason::AllowedUntraced => f.write_str("it was let through before its tracing had begun"),
            StateReason::TracedWarm => f.write_str("the start that was traced had everything in memory"),
            StateReason::TraceUnusable(error) => {
                write!(f, "its trace cannot be used, and is made anew at its next start: {error}")
            }
            StateReason::Learnt => f.write_str("learnt, and not started since"),
            StateReason::TraceUnused => {
                f.write_str("no start used what was read ahead for it: it is watched anew")
            }
            StateReason::Excluded(text)
            | StateReason::Cost(text)
            | StateReason::TraceFailed(text)
            | StateReason::Text(text) => f.write_str(text),
        }
    }
}

/// What a startup cost.
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
    /// its state
    #[serde(alias = "standing")]
    pub state: ProgramState,
    /// why it is in that state
    pub why: StateReason,
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
    recent: Option<Instant>,
}

impl ProgramRecord {
    /// A package was upgraded: what was known is about another program.
    fn reset_replaced(&mut self, file: ExecutableId) {
        self.file = file;
        self.without.clear();
        self.with.clear();
        let was = std::mem::take(&mut self.state);
        self.why = StateReason::Replaced;
        if matches!(was, ProgramState::Worth | ProgramState::Known | ProgramState::Incomplete) {
            self.state = ProgramState::Worth;
            self.stale = true;
        }
    }

    fn next_purpose(&mut self) -> StartupPurpose {
        let again = self.recent.is_some_and(|recent| recent.elapsed() < REPEAT_INTERVAL);
        let purpose = match self.state {
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

    /// A startup that was not read ahead has ended, or was watched for long enough.
    pub fn record_plain(&mut self, used: ThreadUsage, worth: &LearnThreshold, delays: bool) {
        if worth.is_reached(used, delays) {
            push_startup(&mut self.without, MeasuredStartup { used, held: Nanos(0) });
        }
        if self.state != ProgramState::Watched {
            return;
        }
        self.why = StateReason::Cost(worth.explain(used, delays));
        if worth.is_reached(used, delays) {
            self.state = ProgramState::Worth;
        }
    }

    /// A startup that was read ahead has. One that opened nothing of that (`is_used` is false) is not a measure of what reading ahead gains.
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
        self.why = StateReason::PrefetchedCost(worth.explain(measured.used, delays));
        self.state = match self.state {
            ProgramState::Known | ProgramState::Incomplete if self.is_useless(delays) => {
                self.why = StateReason::NothingGained;
                ProgramState::Useless
            }
            ProgramState::Known | ProgramState::Incomplete if still => ProgramState::Incomplete,
            ProgramState::Known | ProgramState::Incomplete => ProgramState::Known,
            other => other,
        };
    }

    /// Nothing of what was learnt was used: it is watched as if it were new.
    pub(crate) fn reset_forgotten(&mut self) {
        (self.state, self.why) = (ProgramState::Watched, StateReason::TraceUnused);
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

/// Programs of users that are remembered. Of more, those of the user who has most of them go: that were not started for longest, and
/// are not worth it.
const MOST: usize = 20_000;

/// A program as one user starts it: what its startups read says nothing about those of others, and decides nothing of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProgramKey {
    /// the program
    pub path: PathBuf,
    /// the user, as files are opened
    pub user: u32,
}

/// What a startup is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartupPurpose {
    /// nothing
    Nothing,
    /// being watched
    Watch,
    /// being traced; what was known before is forgotten or added to
    Learn {
        /// forgotten: the executable is another one now
        anew: bool,
    },
    /// being read ahead
    ReadAhead {
        /// and traced, for what the trace lacks
        learn: bool,
    },
}

/// All of them.
#[derive(Debug, Default)]
pub struct KnownPrograms {
    all: HashMap<ProgramKey, ProgramRecord>,
    /// Whether startups report what they waited for; where none does, each program that is met is learnt.
    judges: bool,
    /// Programs that a thread is learning or reading ahead now.
    busy: HashSet<ProgramKey>,
    /// Those that had to go: what was learnt of them is to be forgotten, too.
    gone: Vec<ProgramKey>,
    /// Whether something is not saved yet.
    pub changed: bool,
}

impl KnownPrograms {
    /// From what was saved; `judges` says whether startups report what they waited for.
    pub fn new(all: HashMap<ProgramKey, ProgramRecord>, judges: bool) -> Self {
        KnownPrograms { all, judges, ..KnownPrograms::default() }
    }

    /// All of them.
    pub fn all(&self) -> &HashMap<ProgramKey, ProgramRecord> {
        &self.all
    }

    /// One of them.
    pub fn get(&self, key: &ProgramKey) -> Option<&ProgramRecord> {
        self.all.get(key)
    }

    /// Those that had to go since this was asked last.
    pub fn take_removed(&mut self) -> Vec<ProgramKey> {
        std::mem::take(&mut self.gone)
    }

    /// Whether the next start of some program is to be traced.
    pub fn wants_to_learn(&self) -> bool {
        self.all.values().any(|one| matches!(one.state, ProgramState::Worth | ProgramState::Incomplete))
    }

    /// A program that has no entry yet: where a trace of it lies, it is known.
    pub fn add_if_new(&mut self, key: &ProgramKey, file: ExecutableId, has_trace: bool) {
        if let Some(known) = self.all.get_mut(key) {
            if has_trace && known.state == ProgramState::Watched && known.file == file {
                (known.state, known.why) = (ProgramState::Known, StateReason::TraceFound);
            }
            return;
        }
        if self.all.len() >= MOST {
            self.make_room();
        }
        let (state, why) = match (has_trace, self.judges) {
            (true, _) => (ProgramState::Known, StateReason::TraceFound),
            (false, false) => (ProgramState::Worth, StateReason::Unmeasured),
            (false, true) => (ProgramState::Watched, StateReason::Unseen),
        };
        self.all.insert(key.clone(), ProgramRecord { file, state, why, ..ProgramRecord::default() });
        self.changed = true;
    }

    /// One user's programs never push out those of a user who has fewer.
    fn make_room(&mut self) {
        let mut counts: HashMap<u32, usize> = HashMap::new();
        self.all.keys().for_each(|key| *counts.entry(key.user).or_default() += 1);
        let Some(user) = counts.into_iter().max_by_key(|(_, count)| *count).map(|(user, _)| user) else {
            return;
        };
        let watched = |one: &ProgramRecord| one.state == ProgramState::Watched;
        let some_watched = self.all.iter().any(|(key, one)| key.user == user && watched(one));
        let may_go =
            |key: &ProgramKey, one: &ProgramRecord| key.user == user && (watched(one) || !some_watched);
        let candidates = self.all.iter().filter(|(key, one)| may_go(key, one));
        let mut times: Vec<u64> = candidates.map(|(_, one)| one.last).collect();
        times.sort_unstable();
        let middle = times.get(times.len() / 2).copied().unwrap_or(u64::MAX);
        let gone = self.all.extract_if(|key, one| may_go(key, one) && one.last <= middle);
        self.gone.extend(gone.filter(|(_, one)| !watched(one)).map(|(key, _)| key));
    }

    /// A program starts: for what, where it is not refused.
    pub fn begin_startup(
        &mut self,
        key: &ProgramKey,
        file: ExecutableId,
        when: u64,
        refused: Option<&str>,
    ) -> StartupPurpose {
        self.add_if_new(key, file, false);
        let Some(program) = self.all.get_mut(key) else { return StartupPurpose::Nothing };
        program.starts += 1;
        program.last = when;
        self.changed = true;
        if let Some(reason) = refused {
            program.why = StateReason::Excluded(reason.into());
            return StartupPurpose::Nothing;
        }
        if program.file != file {
            program.reset_replaced(file);
        }
        let purpose = program.next_purpose();
        let works = matches!(purpose, StartupPurpose::Learn { .. } | StartupPurpose::ReadAhead { .. });
        if works && !self.busy.insert(key.clone()) {
            return StartupPurpose::Watch;
        }
        purpose
    }

    /// The thread that worked for a program has ended.
    pub fn release(&mut self, key: &ProgramKey) {
        self.busy.remove(key);
        self.changed = true;
    }

    /// Does something with a program, which is saved.
    pub fn update(&mut self, key: &ProgramKey, change: impl FnOnce(&mut ProgramRecord)) {
        if let Some(program) = self.all.get_mut(key) {
            change(program);
            self.changed = true;
        }
    }
}

/// From where on a startup is worth learning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LearnThreshold {
    /// waiting for disks, summed over all threads
    pub wait: Nanos,
    /// bytes that were read from disks
    pub read: u64,
    /// major page faults
    pub faults: u64,
}

impl Default for LearnThreshold {
    /// What a person notices, and what a rotational disk needs about as long for.
    fn default() -> Self {
        LearnThreshold { wait: Nanos(100_000_000), read: 4 << 20, faults: 200 }
    }
}

impl LearnThreshold {
    /// Whether a startup was; `delays` says whether the kernel accounts for them.
    pub fn is_reached(&self, used: ThreadUsage, delays: bool) -> bool {
        match is_judged_by_delay(used, delays) {
            true => used.waited >= self.wait,
            false => used.read >= self.read || used.faults >= self.faults,
        }
    }

    /// What a startup waited for, against what would be worth it.
    pub fn explain(&self, used: ThreadUsage, delays: bool) -> String {
        match is_judged_by_delay(used, delays) {
            true => format!("it waited {} for disks; {} are worth it", used.waited, self.wait),
            false => format!(
                "it read {} with {} major faults; {} or {} are worth it",
                Bytes(used.read),
                used.faults,
                Bytes(self.read),
                self.faults
            ),
        }
    }

    /// By what starts are judged.
    pub fn measure_name(delays: bool) -> &'static str {
        match delays {
            true => "what they wait for disks",
            false => "bytes read and major faults (kernel.task_delayacct is 0)",
        }
    }
}

/// Whether it is judged by what it waited.
fn is_judged_by_delay(used: ThreadUsage, delays: bool) -> bool {
    delays && used.is_waiting_counted()
}

#[cfg(test)]
mod tests {
    use perflab_model::Nanos;
    use perflab_observe::taskstats::ThreadUsage;

    use super::*;
    use super::{LearnThreshold, MeasuredStartup};

    const WORTH: LearnThreshold = LearnThreshold { wait: Nanos(100), read: 1000, faults: 10 };

    fn editor_key() -> ProgramKey {
        ProgramKey { path: "/usr/bin/editor".into(), user: 7 }
    }

    fn executable_id(inode: u64) -> ExecutableId {
        ExecutableId { inode, ..ExecutableId::default() }
    }

    fn usage_with_reads(read: u64) -> ThreadUsage {
        ThreadUsage { read, ..ThreadUsage::default() }
    }

    fn known_editor() -> KnownPrograms {
        let mut programs = KnownPrograms::new(HashMap::new(), true);
        programs.add_if_new(&editor_key(), executable_id(1), false);
        programs
    }

    fn start_editor(programs: &mut KnownPrograms, inode: u64) -> StartupPurpose {
        let purpose = programs.begin_startup(&editor_key(), executable_id(inode), 7, None);
        programs.release(&editor_key());
        programs.update(&editor_key(), |one| one.recent = None);
        purpose
    }

    fn editor_state(programs: &KnownPrograms) -> ProgramState {
        programs.get(&editor_key()).unwrap().state
    }

    #[test]
    fn the_first_start_is_watched_the_second_learnt_the_third_read_ahead() {
        let mut programs = known_editor();
        assert_eq!(start_editor(&mut programs, 1), StartupPurpose::Watch);
        programs.update(&editor_key(), |one| one.record_plain(usage_with_reads(999), &WORTH, false));
        assert_eq!(start_editor(&mut programs, 1), StartupPurpose::Watch, "it did not read enough");
        programs.update(&editor_key(), |one| one.record_plain(usage_with_reads(1000), &WORTH, false));
        assert_eq!(start_editor(&mut programs, 1), StartupPurpose::Learn { anew: false });
        programs.update(&editor_key(), |one| one.state = ProgramState::Known);
        assert_eq!(start_editor(&mut programs, 1), StartupPurpose::ReadAhead { learn: false });
        let left = |read_still| MeasuredStartup { used: usage_with_reads(read_still), held: Nanos(5) };
        programs.update(&editor_key(), |one| one.record_prefetched(left(0), true, &WORTH, false));
        assert_eq!(programs.get(&editor_key()).unwrap().median_costs(false), [Some(1000), Some(0)]);
        assert_eq!(editor_state(&programs), ProgramState::Known);
        programs.update(&editor_key(), |one| one.record_prefetched(left(0), false, &WORTH, false));
        assert_eq!(programs.get(&editor_key()).unwrap().with.len(), 1, "what used nothing gained nothing");
    }

    #[test]
    fn a_trace_that_lacks_something_is_added_to_and_one_that_gains_nothing_left() {
        let mut programs = known_editor();
        programs.update(&editor_key(), |one| {
            one.state = ProgramState::Known;
            one.without = vec![MeasuredStartup { used: usage_with_reads(5000), held: Nanos(0) }];
            one.record_prefetched(
                MeasuredStartup { used: usage_with_reads(4800), held: Nanos(0) },
                true,
                &WORTH,
                false,
            );
        });
        assert_eq!(start_editor(&mut programs, 1), StartupPurpose::ReadAhead { learn: true });
        for _ in 0..2 {
            programs.update(&editor_key(), |one| {
                one.record_prefetched(
                    MeasuredStartup { used: usage_with_reads(4800), held: Nanos(0) },
                    true,
                    &WORTH,
                    false,
                );
            });
        }
        assert_eq!(editor_state(&programs), ProgramState::Useless);
        assert_eq!(start_editor(&mut programs, 1), StartupPurpose::Nothing);
        assert_eq!(start_editor(&mut programs, 2), StartupPurpose::Watch, "another executable begins anew");
    }

    #[test]
    fn a_replaced_executable_is_learnt_anew() {
        let mut programs = known_editor();
        programs.update(&editor_key(), |one| one.state = ProgramState::Known);
        assert_eq!(start_editor(&mut programs, 2), StartupPurpose::Learn { anew: true });
        assert_eq!(
            start_editor(&mut programs, 2),
            StartupPurpose::Learn { anew: true },
            "it was in memory then, and nothing was learnt"
        );
    }

    #[test]
    fn one_thread_works_for_a_program_and_not_again_at_once() {
        let mut programs = known_editor();
        programs.update(&editor_key(), |one| one.state = ProgramState::Known);
        let mut start = || programs.begin_startup(&editor_key(), executable_id(1), 7, None);
        assert_eq!(start(), StartupPurpose::ReadAhead { learn: false });
        assert_eq!(start(), StartupPurpose::Nothing);
        assert_eq!(programs.get(&editor_key()).unwrap().starts, 2);
        let mut programs = known_editor();
        programs.update(&editor_key(), |one| one.state = ProgramState::Worth);
        let mut start = || programs.begin_startup(&editor_key(), executable_id(1), 7, None);
        assert_eq!(start(), StartupPurpose::Learn { anew: false });
        assert_eq!(start(), StartupPurpose::Watch);
    }

    #[test]
    fn what_is_refused_says_why() {
        let mut programs = known_editor();
        let purpose = programs.begin_startup(&editor_key(), executable_id(1), 7, Some("it is on a list"));
        assert_eq!(purpose, StartupPurpose::Nothing);
        assert_eq!(programs.get(&editor_key()).unwrap().why, StateReason::Excluded("it is on a list".into()));
        assert_eq!(
            programs.begin_startup(&ProgramKey { path: "/other".into(), user: 7 }, executable_id(1), 7, None),
            StartupPurpose::Watch
        );
    }

    #[test]
    fn of_too_many_those_go_that_nobody_misses() {
        let mut programs = KnownPrograms::new(HashMap::new(), true);
        let key = |number: u64, user| ProgramKey { path: format!("/{number}").into(), user };
        for number in 0..MOST as u64 + 1 {
            // The first has a trace, and another user one program.
            let key = key(number, u32::from(number == 2));
            programs.add_if_new(&key, executable_id(number), number == 0);
            programs.begin_startup(&key, executable_id(number), number, None);
        }
        assert!(programs.all().len() <= MOST);
        assert!(programs.get(&key(0, 0)).is_some(), "it has a trace");
        assert!(programs.get(&key(1, 0)).is_none());
        assert!(programs.get(&key(2, 1)).is_some(), "its user has one");
        assert!(programs.get(&key(MOST as u64, 0)).is_some());
        assert!(programs.take_removed().is_empty(), "nothing was learnt of those that went");
    }

    #[test]
    fn of_too_many_that_were_learnt_those_go_that_were_not_started_for_longest() {
        let mut programs = KnownPrograms::new(HashMap::new(), true);
        let key = |number: u64| ProgramKey { path: format!("/{number}").into(), user: 0 };
        for number in 0..MOST as u64 + 1 {
            programs.add_if_new(&key(number), executable_id(number), true);
            programs.update(&key(number), |one| one.last = number);
        }
        assert!(programs.all().len() <= MOST);
        assert!(programs.get(&key(0)).is_none() && programs.get(&key(MOST as u64)).is_some());
        assert!(programs.take_removed().contains(&key(0)));
    }

    #[test]
    fn what_one_user_starts_says_nothing_of_another() {
        let mut programs = known_editor();
        programs.update(&editor_key(), |one| one.state = ProgramState::Known);
        let root = ProgramKey { user: 0, ..editor_key() };
        assert_eq!(programs.begin_startup(&root, executable_id(1), 7, None), StartupPurpose::Watch);
        assert_eq!(start_editor(&mut programs, 1), StartupPurpose::ReadAhead { learn: false });
        assert_eq!(programs.get(&root).unwrap().starts, 1);
    }

    #[test]
    fn waiting_decides_where_it_is_known() {
        let worth = LearnThreshold::default();
        let used = |waited, read, faults| ThreadUsage { waited: Nanos(waited), read, faults };
        assert!(worth.is_reached(used(100_000_000, 0, 0), true));
        assert!(!worth.is_reached(used(99_999_999, 1 << 30, 9999), true));
        assert!(worth.is_reached(used(0, 4 << 20, 0), false) && worth.is_reached(used(0, 0, 200), false));
        assert!(!worth.is_reached(used(u64::MAX, 4095, 199), false));
        let explained = "it read 4 KiB with 3 major faults; 4 MiB or 200 are worth it";
        assert_eq!(worth.explain(used(0, 4096, 3), false), explained);
        assert!(worth.is_reached(used(0, 4 << 20, 0), true), "who read that much did wait: nobody counted");
        assert!(!worth.is_reached(used(0, 4096, 3), true) && !worth.is_reached(used(0, 0, 0), true));
        assert_eq!(worth.explain(used(0, 4096, 3), true), explained);
    }
}
