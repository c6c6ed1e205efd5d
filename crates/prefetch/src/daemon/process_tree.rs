//! What a program and its descendants used.
//!
//! The kernel reports each thread when it ends; its usage is handed up to its parent, as the kernel itself does
//! with children that were waited for, until it arrives at a program that is watched. What still lives when the
//! watch is over is asked. A child that is given to another parent (a daemon that detaches) is not seen any more.

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use perflab_model::Nanos;
use perflab_observe::taskstats::{TaskstatsSocket, ThreadExit, ThreadUsage};

use crate::daemon::programs::ProgramKey;

/// Starts that are watched at once; of more, nothing is known.
const MOST: usize = 4096;

/// Processes with sums; beyond it, some message was lost, and all begin again.
const SUMS: usize = 100_000;

/// A startup that is watched.
#[derive(Debug, Clone)]
pub struct WatchedStartup {
    /// the process
    pub process: u32,
    /// the program, and who starts it
    pub program: ProgramKey,
    /// until when at most
    pub until: Instant,
    /// what the process had used before, under another program
    pub before: ThreadUsage,
    /// what was done for it, as the thread says that does it
    pub help: Arc<Mutex<PrefetchHelp>>,
}

/// How a startup was helped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PrefetchHelp {
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
pub struct ProcessTrees {
    sums: HashMap<u32, ThreadUsage>,
    watched: HashMap<u32, Vec<WatchedStartup>>,
    count: usize,
}

impl ProcessTrees {
    /// Watches a startup. Its children of before are not counted.
    pub fn watch(&mut self, mut watch: WatchedStartup) {
        if self.count < MOST {
            watch.before += self.sums.get(&watch.process).copied().unwrap_or_default();
            self.watched.entry(watch.process).or_default().push(watch);
            self.count += 1;
        }
    }

    /// A thread has ended: the starts that ended with it, and what they used.
    pub fn record_exit(&mut self, exit: ThreadExit) -> Vec<(WatchedStartup, ThreadUsage)> {
        if self.sums.len() > SUMS {
            self.sums.clear();
        }
        *self.sums.entry(exit.process).or_default() += exit.used;
        if !exit.last {
            return Vec::new();
        }
        let whole = self.sums.remove(&exit.process).unwrap_or_default();
        // The ancestor of all processes is not watched.
        if exit.parent > 1 {
            *self.sums.entry(exit.parent).or_default() += whole;
        }
        let ended = self.watched.remove(&exit.process).unwrap_or_default();
        self.count -= ended.len();
        let used = |watch: WatchedStartup| {
            let own = whole - watch.before;
            (watch, own)
        };
        ended.into_iter().map(used).collect()
    }

    /// Starts that were watched for long enough, and what they used so far, `alive` returns threads.
    pub fn take_due(&mut self, now: Instant, alive: &TaskstatsSocket) -> Vec<(WatchedStartup, ThreadUsage)> {
        let mut due = Vec::new();
        self.watched.retain(|_, watches| {
            due.extend(watches.extract_if(.., |watch| watch.until <= now));
            !watches.is_empty()
        });
        self.count -= due.len();
        let used = |watch: WatchedStartup| {
            let own = self.tree_usage(watch.process, alive, 0) - watch.before;
            (watch, own)
        };
        due.into_iter().map(used).collect()
    }

    /// The time at which the next watch is over.
    pub fn next_due(&self) -> Option<Instant> {
        self.watched.values().flatten().map(|watch| watch.until).min()
    }

    fn tree_usage(&self, process: u32, alive: &TaskstatsSocket, depth: usize) -> ThreadUsage {
        let mut used = self.sums.get(&process).copied().unwrap_or_default() + process_usage(process, alive);
        if depth < 32 {
            process_children(process).for_each(|child| used += self.tree_usage(child, alive, depth + 1));
        }
        used
    }
}

/// What the living threads of a process used so far.
pub fn process_usage(process: u32, alive: &TaskstatsSocket) -> ThreadUsage {
    let threads = process_threads(process).filter_map(|thread| alive.thread_usage(thread));
    threads.fold(ThreadUsage::default(), |sum, one| sum + one)
}

fn process_threads(process: u32) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn process_children(process: u32) -> impl Iterator<Item = u32> {
    let of = move |thread| {
        fs::read_to_string(format!("/proc/{process}/task/{thread}/children")).unwrap_or_default()
    };
    let all: Vec<u32> = process_threads(process).flat_map(|thread| parse_numbers(&of(thread))).collect();
    all.into_iter()
}

fn parse_numbers(text: &str) -> Vec<u32> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn usage_with_reads(read: u64) -> ThreadUsage {
        ThreadUsage { read, ..ThreadUsage::default() }
    }

    fn thread_exit(process: u32, parent: u32, last: bool, read: u64) -> ThreadExit {
        ThreadExit { thread: process, user: 0, process, parent, last, used: usage_with_reads(read) }
    }

    fn watched_startup(process: u32) -> WatchedStartup {
        let until = Instant::now() + Duration::from_secs(60);
        let program = ProgramKey { path: "/p".into(), user: 0 };
        WatchedStartup { process, program, until, before: ThreadUsage::default(), help: Arc::default() }
    }

    #[test]
    fn children_and_their_children_count() {
        let mut trees = ProcessTrees::default();
        trees.record_exit(thread_exit(11, 10, true, 1000));
        trees.watch(watched_startup(10));
        assert!(trees.record_exit(thread_exit(13, 12, true, 1)).is_empty());
        assert!(trees.record_exit(thread_exit(10, 5, false, 2)).is_empty(), "a thread of it");
        assert!(trees.record_exit(thread_exit(12, 10, true, 4)).is_empty());
        assert!(trees.record_exit(thread_exit(99, 98, true, 8)).is_empty(), "somebody else's");
        let ended = trees.record_exit(thread_exit(10, 5, true, 16));
        assert_eq!(ended.iter().map(|(_, used)| used.read).collect::<Vec<_>>(), [23]);
        assert!(trees.record_exit(thread_exit(10, 5, true, 16)).is_empty(), "the number may be used again");
    }

    #[test]
    fn a_process_can_be_two_programs_one_after_the_other() {
        let mut trees = ProcessTrees::default();
        trees.watch(watched_startup(10));
        trees.watch(WatchedStartup { before: usage_with_reads(100), ..watched_startup(10) });
        let ended = trees.record_exit(thread_exit(10, 1, true, 130));
        assert_eq!(ended.iter().map(|(_, used)| used.read).collect::<Vec<_>>(), [130, 30]);
        assert_eq!(trees.count, 0);
    }

    #[test]
    fn what_still_lives_is_asked_when_its_time_is_over() {
        let Ok(alive) = TaskstatsSocket::open() else { return };
        let mut trees = ProcessTrees::default();
        trees.watch(WatchedStartup { until: Instant::now(), ..watched_startup(std::process::id()) });
        trees.record_exit(thread_exit(4_000_000, std::process::id(), true, 7));
        let due = trees.take_due(Instant::now(), &alive);
        assert!(due.first().is_some_and(|(_, used)| used.read >= 7), "{due:?}");
        assert_eq!((trees.next_due(), trees.count), (None, 0));
    }

    #[test]
    fn too_many_at_once_are_not_watched() {
        let mut trees = ProcessTrees::default();
        (0..MOST as u32 + 5).for_each(|process| trees.watch(watched_startup(process + 2)));
        assert_eq!(trees.count, MOST);
    }
}
