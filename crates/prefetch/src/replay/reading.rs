//! What is read of a plan, disk by disk.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use perflab_model::io::{Device, PAGE};
use perflab_observe::io::{files, mounts};

use super::coming::{Coming, ask};
use super::here::Here;
use super::pace::Pace;
use super::{Replayed, traced};
use crate::plan::{Plan, Step};
use crate::trace::FileSystem;

/// Threads on disks that do several things at once.
const THREADS: usize = 4;
/// Files that a thread opens before it asks for any of them, at most: a disk that hears of many requests at once costs the
/// processor less than one that is woken for each.
const TOGETHER: usize = 16;

/// What is read, from all disks.
pub(super) struct Reading<'a> {
    pub plan: &'a Plan<'a>,
    pub steps: &'a [Step<'a>],
    pub metadata: bool,
    pub systems: &'a [Option<Here>],
    pub pace: Pace,
    pub stop: &'a AtomicBool,
}

impl Reading<'_> {
    /// What of it lies on one disk.
    pub(super) fn read(&self, disk: Device) -> Replayed {
        let mut done = Replayed::default();
        let ours = |here: &&Here| here.disk == disk;
        let systems = self.plan.start.systems.iter().zip(self.systems);
        let systems = systems.filter_map(|(system, here)| Some((system, here.as_ref().filter(ours)?)));
        let mut rotates = false;
        for (system, here) in systems {
            rotates |= here.rotates;
            if self.metadata {
                metadata(system, here, self.stop, &mut done);
            }
        }
        let here = |step: &Step<'_>| self.systems.get(step.file.system).and_then(Option::as_ref);
        let steps: Vec<&Step<'_>> =
            self.steps.iter().filter(|step| here(step).as_ref().is_some_and(ours)).collect();
        read(&steps, if rotates { 1 } else { THREADS }, &self.pace, self.stop, &mut done);
        done
    }
}

/// A file system's own blocks come through its device, in the order of the disk, and are waited for: every later step needs
/// them. Where the device cannot be opened, opening files by name reads most of them.
fn metadata(system: &FileSystem, here: &Here, stop: &AtomicBool, done: &mut Replayed) {
    if system.metadata.is_empty() {
        return;
    }
    let opened = mounts::node(here.device).and_then(|node| files::open(&node).ok());
    match opened {
        Some(node) => {
            let mut coming = Coming::new(1, stop);
            ask(&Rc::new(node), &system.metadata, &mut coming, &mut |_| true);
            coming.wait_for_all();
            done.metadata += system.metadata.pages();
        }
        None => done.by_name += 1,
    }
}

/// Reads steps by so many threads, and notes which of them could not be.
fn read(steps: &[&Step<'_>], threads: usize, pace: &Pace, stop: &AtomicBool, done: &mut Replayed) {
    let (together, next) = (steps.len().div_ceil(threads).clamp(1, TOGETHER), AtomicUsize::new(0));
    let parts: Vec<_> = steps.chunks(together).collect();
    let work = || {
        let (mut coming, mut met) = (Coming::new(threads, stop), Vec::new());
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| go_on(stop)) {
            met.extend(read_together(part, &mut coming, pace, stop));
        }
        coming.wait_for_all();
        met
    };
    let met = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        others.into_iter().filter_map(|other| other.join().ok()).flatten().chain(own).collect::<Vec<_>>()
    });
    for (turn, read) in met {
        if read {
            done.files.insert(turn)
        } else {
            done.skipped.insert(turn)
        };
    }
}

fn go_on(stop: &AtomicBool) -> bool {
    !stop.load(Ordering::Relaxed)
}

/// Opens all, asks for what is wanted of each, and waits for what was asked a window before: turns of the files, and whether
/// they were read. Those that a stop came before are neither.
fn read_together(
    part: &[&Step<'_>],
    coming: &mut Coming<'_>,
    pace: &Pace,
    stop: &AtomicBool,
) -> Vec<(u32, bool)> {
    let opened: Vec<_> = part.iter().map(|step| (step, traced(step))).collect();
    let mut met = Vec::new();
    for (step, file) in opened.into_iter().take_while(|_| go_on(stop)) {
        met.push((step.file.turn, file.is_ok()));
        let Ok(file) = file else { continue };
        ask(&Rc::new(file), &step.pages, coming, &mut |pages| {
            pace.wait(pages * PAGE, stop);
            go_on(stop)
        });
    }
    met
}
