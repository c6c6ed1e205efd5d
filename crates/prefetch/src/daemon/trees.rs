//! What a program and its children used. The kernel tells of each thread when it ends; what ended is handed up to its parent,
//! as the kernel itself does with children that were waited for, until it arrives at a program that is watched. What still lives
//! when the watch is over is asked. A child that is given to another parent (a daemon that detaches) is not seen any more.

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use perflab_model::Nanos;
use perflab_observe::taskstats::{Exit, TaskStats, Used};

use super::programs::ProgramKey;

/// Starts that are watched at once; of more, nothing is known.
const MOST: usize = 4096;
/// Processes with sums; beyond it, some message was lost, and all begin again.
const SUMS: usize = 100_000;

/// A start that is watched.
#[derive(Debug, Clone)]
pub struct Watch {
    /// the process
    pub process: u32,
    /// the program, and who starts it
    pub program: ProgramKey,
    /// until when at most
    pub until: Instant,
    /// what the process had used before, under another program
    pub before: Used,
    /// what was done for it, as the thread says that does it
    pub help: Arc<Mutex<Given>>,
}

/// How a start was helped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Given {
    /// not at all
    #[default]
    Nothing,
    /// it had everything in memory: it says nothing about reading ahead
    Warm,
    /// what it waits for is being read ahead: where it goes on before that is done, the clock has let it through
    Reading {
        /// since when it waits
        since: Instant,
        /// under which number what it opens is seen, where it is
        observed: Option<u64>,
    },
    /// it was read ahead
    ReadAhead {
        /// how long it had to wait for that, or until it was let through
        held: Nanos,
        /// under which number what it opens is seen, where it is
        observed: Option<u64>,
    },
}

/// All starts that are watched.
#[derive(Debug, Default)]
pub struct Trees {
    sums: HashMap<u32, Used>,
    watched: HashMap<u32, Vec<Watch>>,
    count: usize,
}

impl Trees {
    /// Watches a start. Its children of before are not counted.
    pub fn watch(&mut self, mut watch: Watch) {
        if self.count < MOST {
            watch.before += self.sums.get(&watch.process).copied().unwrap_or_default();
            self.watched.entry(watch.process).or_default().push(watch);
            self.count += 1;
        }
    }

    /// A thread has ended: the starts that ended with it, and what they used.
    pub fn exit(&mut self, exit: Exit) -> Vec<(Watch, Used)> {
        if self.sums.len() > SUMS {
            self.sums.clear();
        }
        *self.sums.entry(exit.process).or_default() += exit.used;
        if !exit.last {
            return Vec::new();
        }
        let whole = self.sums.remove(&exit.process).unwrap_or_default();
        // Nobody watches what everything belongs to in the end.
        if exit.parent > 1 {
            *self.sums.entry(exit.parent).or_default() += whole;
        }
        let ended = self.watched.remove(&exit.process).unwrap_or_default();
        self.count -= ended.len();
        let used = |watch: Watch| {
            let own = whole - watch.before;
            (watch, own)
        };
        ended.into_iter().map(used).collect()
    }

    /// Starts that were watched for long enough, and what they used so far, `alive` tells of threads.
    pub fn due(&mut self, now: Instant, alive: &TaskStats) -> Vec<(Watch, Used)> {
        let mut due = Vec::new();
        self.watched.retain(|_, watches| {
            due.extend(watches.extract_if(.., |watch| watch.until <= now));
            !watches.is_empty()
        });
        self.count -= due.len();
        let used = |watch: Watch| {
            let own = self.of_tree(watch.process, alive, 0) - watch.before;
            (watch, own)
        };
        due.into_iter().map(used).collect()
    }

    /// The time at which the next watch is over.
    pub fn next(&self) -> Option<Instant> {
        self.watched.values().flatten().map(|watch| watch.until).min()
    }

    fn of_tree(&self, process: u32, alive: &TaskStats, depth: usize) -> Used {
        let mut used = self.sums.get(&process).copied().unwrap_or_default() + of_process(process, alive);
        if depth < 32 {
            children(process).for_each(|child| used += self.of_tree(child, alive, depth + 1));
        }
        used
    }
}

/// What the living threads of a process used so far.
pub fn of_process(process: u32, alive: &TaskStats) -> Used {
    let threads = threads(process).filter_map(|thread| alive.of_thread(thread));
    threads.fold(Used::default(), |sum, one| sum + one)
}

fn threads(process: u32) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn children(process: u32) -> impl Iterator<Item = u32> {
    let of = move |thread| {
        fs::read_to_string(format!("/proc/{process}/task/{thread}/children")).unwrap_or_default()
    };
    let all: Vec<u32> = threads(process).flat_map(|thread| numbers(&of(thread))).collect();
    all.into_iter()
}

fn numbers(text: &str) -> Vec<u32> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn used(read: u64) -> Used {
        Used { read, ..Used::default() }
    }

    fn exit(process: u32, parent: u32, last: bool, read: u64) -> Exit {
        Exit { thread: process, user: 0, process, parent, last, used: used(read) }
    }

    fn watch(process: u32) -> Watch {
        let until = Instant::now() + Duration::from_secs(60);
        let program = ProgramKey { path: "/p".into(), user: 0 };
        Watch { process, program, until, before: Used::default(), help: Arc::default() }
    }

    #[test]
    fn children_and_their_children_count() {
        let mut trees = Trees::default();
        trees.exit(exit(11, 10, true, 1000));
        trees.watch(watch(10));
        assert!(trees.exit(exit(13, 12, true, 1)).is_empty());
        assert!(trees.exit(exit(10, 5, false, 2)).is_empty(), "a thread of it");
        assert!(trees.exit(exit(12, 10, true, 4)).is_empty());
        assert!(trees.exit(exit(99, 98, true, 8)).is_empty(), "somebody else's");
        let ended = trees.exit(exit(10, 5, true, 16));
        assert_eq!(ended.iter().map(|(_, used)| used.read).collect::<Vec<_>>(), [23]);
        assert!(trees.exit(exit(10, 5, true, 16)).is_empty(), "the number may be used again");
    }

    #[test]
    fn a_process_can_be_two_programs_one_after_the_other() {
        let mut trees = Trees::default();
        trees.watch(watch(10));
        trees.watch(Watch { before: used(100), ..watch(10) });
        let ended = trees.exit(exit(10, 1, true, 130));
        assert_eq!(ended.iter().map(|(_, used)| used.read).collect::<Vec<_>>(), [130, 30]);
        assert_eq!(trees.count, 0);
    }

    #[test]
    fn what_still_lives_is_asked_when_its_time_is_over() {
        let Ok(alive) = TaskStats::open() else { return };
        let mut trees = Trees::default();
        trees.watch(Watch { until: Instant::now(), ..watch(std::process::id()) });
        trees.exit(exit(4_000_000, std::process::id(), true, 7));
        let due = trees.due(Instant::now(), &alive);
        assert!(due.first().is_some_and(|(_, used)| used.read >= 7), "{due:?}");
        assert_eq!((trees.next(), trees.count), (None, 0));
    }

    #[test]
    fn too_many_at_once_are_not_watched() {
        let mut trees = Trees::default();
        (0..MOST as u32 + 5).for_each(|process| trees.watch(watch(process + 2)));
        assert_eq!(trees.count, MOST);
    }
}
