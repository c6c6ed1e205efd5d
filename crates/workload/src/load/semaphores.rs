//! Two tasks of a pair that let each other pass by semaphores: System V's, the C library's, or bare futexes.
//!
//! The load is that of sembench (C. Mason) and of MMTests' `ipcscale`: what waking one waiter costs, and whether pairs disturb
//! one another.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;
use serde_json::json;

use crate::load::args::{BuiltinLoadArgs, LoadError};
use crate::load::tasks::{MOST_TASKS, Task, TaskPlan};
use crate::system_calls::{LibrarySemaphore, SharedLines, SystemSemaphores};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SemaphoreKind {
    SystemV,
    Posix,
    Futex,
}

const KINDS: &[(&str, SemaphoreKind)] =
    &[("system-v", SemaphoreKind::SystemV), ("posix", SemaphoreKind::Posix), ("futex", SemaphoreKind::Futex)];

/// Semaphores, numbered from 0 on, that begin as zero.
enum SemaphoreSet<'a> {
    SystemV(Vec<SystemSemaphores>),
    Posix(Vec<LibrarySemaphore<'a>>),
    Futex(Vec<&'a AtomicU32>),
}

impl<'a> SemaphoreSet<'a> {
    /// As many sets as there are pairs, as System V's are locked by set.
    fn create(kind: SemaphoreKind, pairs: usize, lines: &'a SharedLines) -> io::Result<Self> {
        Ok(match kind {
            SemaphoreKind::SystemV => SemaphoreSet::SystemV(
                (0..pairs).map(|_| SystemSemaphores::create(2)).collect::<Result<_, _>>()?,
            ),
            SemaphoreKind::Posix => SemaphoreSet::Posix(
                (0..2 * pairs).map(|line| lines.make_semaphore(line)).collect::<Result<_, _>>()?,
            ),
            SemaphoreKind::Futex => {
                SemaphoreSet::Futex((0..2 * pairs).map(|line| lines.state(line)).collect())
            }
        })
    }

    fn post(&self, index: usize) -> io::Result<()> {
        match self {
            SemaphoreSet::SystemV(sets) => sets[index / 2].add((index % 2) as u16, 1),
            SemaphoreSet::Posix(semaphores) => semaphores[index].post(),
            SemaphoreSet::Futex(words) => {
                words[index].store(1, Ordering::SeqCst);
                futex::wake(words[index], futex::Flags::empty(), 1)?;
                Ok(())
            }
        }
    }

    fn wait(&self, index: usize) -> io::Result<()> {
        let waited = match self {
            SemaphoreSet::SystemV(sets) => sets[index / 2].add((index % 2) as u16, -1),
            SemaphoreSet::Posix(semaphores) => semaphores[index].wait(),
            SemaphoreSet::Futex(words) => {
                while words[index].swap(0, Ordering::SeqCst) == 0 {
                    // It may have been posted meanwhile: it is looked at again.
                    let _ = futex::wait(words[index], futex::Flags::empty(), 0, None);
                }
                Ok(())
            }
        };
        match waited {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.wait(index),
            waited => waited,
        }
    }
}

pub(crate) fn measure_semaphores(options: &mut BuiltinLoadArgs) -> Result<serde_json::Value, LoadError> {
    let kind = options.choice("kind", KINDS)?;
    let pairs = options.count_within("pairs", 1, 1..=MOST_TASKS / 2)?;
    let plan = TaskPlan::take_with_tasks(options, 2 * pairs)?;
    options.require_all_used()?;
    let lines = SharedLines::map(2 * pairs).map_err(LoadError::system_error("get shared memory"))?;
    let set =
        SemaphoreSet::create(kind, pairs, &lines).map_err(LoadError::system_error("make semaphores"))?;
    let counted = plan.measure(&|task| {
        pass_to_and_fro(task, &set).map_err(LoadError::system_error("use a semaphore")).map(|()| Vec::new())
    })?;
    Ok(json!({
        "pairs": pairs,
        "seconds": counted.seconds,
        "operations_per_second": counted.rate(),
        "operations_per_second_per_pair": counted.rate() / pairs as f64,
        "fairness": counted.fairness(),
    }))
}

/// Waits for the own semaphore and posts the other's; the first of each pair begins.
fn pass_to_and_fro(task: &Task<'_>, set: &SemaphoreSet<'_>) -> io::Result<()> {
    let (own, other) = (task.index, task.index ^ 1);
    task.begin();
    if own < other {
        set.post(other)?;
    }
    loop {
        set.wait(own)?;
        let goes_on = task.count(1);
        // The other may wait for the last time.
        set.post(other)?;
        if !goes_on {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn every_kind_lets_pairs_pass() {
        for (kind, _) in KINDS {
            let arguments =
                ["semaphores", "--kind", kind, "--pairs", "2", "--model", "threads", "--time", "10ms"];
            let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
            let result = measure_semaphores(&mut BuiltinLoadArgs::parse(&arguments).unwrap()).unwrap();
            assert!(result["operations_per_second"].as_f64().unwrap() > 0.0, "{kind}: {result}");
        }
    }
}
