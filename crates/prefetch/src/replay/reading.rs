//! What is read of a plan, disk by disk.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use perflab_model::io::{DeviceNumber, PAGE};
use perflab_observe::io::{files, mounts};

use super::coming::{InFlightRequests, request_pages};
use super::here::MountedFileSystem;
use super::pace::RateLimit;
use super::{ReplayResult, open_traced};
use crate::plan::{ReplayPlan, ReplayStep};
use crate::trace::TracedFileSystem;

/// Threads on disks that do several things at once.
const THREADS: usize = 4;
/// Files that a thread opens before it asks for any of them, at most: a disk that hears of many requests at once costs the
/// processor less than one that is woken for each.
const TOGETHER: usize = 16;

/// What is read, from all disks.
pub(super) struct DiskReplay<'a> {
    pub plan: &'a ReplayPlan<'a>,
    pub steps: &'a [ReplayStep<'a>],
    pub metadata: bool,
    pub systems: &'a [Option<MountedFileSystem>],
    pub pace: RateLimit,
    pub stop: &'a AtomicBool,
}

impl DiskReplay<'_> {
    /// What of it lies on one disk.
    pub(super) fn read_disk(&self, disk: DeviceNumber) -> ReplayResult {
        let mut done = ReplayResult::default();
        let ours = |here: &&MountedFileSystem| here.disk == disk;
        let systems = self.plan.start.systems.iter().zip(self.systems);
        let systems = systems.filter_map(|(system, here)| Some((system, here.as_ref().filter(ours)?)));
        let mut rotates = false;
        for (system, here) in systems {
            rotates |= here.rotates;
            if self.metadata {
                read_metadata_blocks(system, here, self.stop, &mut done);
            }
        }
        let here = |step: &ReplayStep<'_>| self.systems.get(step.file.system).and_then(Option::as_ref);
        let steps: Vec<&ReplayStep<'_>> =
            self.steps.iter().filter(|step| here(step).as_ref().is_some_and(ours)).collect();
        read_steps(&steps, if rotates { 1 } else { THREADS }, &self.pace, self.stop, &mut done);
        done
    }
}

/// A file system's own blocks come through its device, in the order of the disk, and are waited for: every later step needs
/// them. Where the device cannot be opened, opening files by name reads most of them.
fn read_metadata_blocks(
    system: &TracedFileSystem,
    here: &MountedFileSystem,
    stop: &AtomicBool,
    done: &mut ReplayResult,
) {
    if system.metadata.is_empty() {
        return;
    }
    let opened = mounts::device_node(here.device).and_then(|node| files::open_unnoticed(&node).ok());
    match opened {
        Some(node) => {
            let mut coming = InFlightRequests::new(1, stop);
            request_pages(&Rc::new(node), &system.metadata, &mut coming, &mut |_| true);
            coming.wait_for_all();
            done.metadata += system.metadata.page_count();
        }
        None => done.by_name += 1,
    }
}

/// Reads steps by so many threads, and notes which of them could not be.
fn read_steps(
    steps: &[&ReplayStep<'_>],
    threads: usize,
    pace: &RateLimit,
    stop: &AtomicBool,
    done: &mut ReplayResult,
) {
    let (together, next) = (steps.len().div_ceil(threads).clamp(1, TOGETHER), AtomicUsize::new(0));
    let parts: Vec<_> = steps.chunks(together).collect();
    let work = || {
        let (mut coming, mut met) = (InFlightRequests::new(threads, stop), Vec::new());
        while let Some(part) =
            parts.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| is_not_stopped(stop))
        {
            met.extend(request_files(part, &mut coming, pace, stop));
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

fn is_not_stopped(stop: &AtomicBool) -> bool {
    !stop.load(Ordering::Relaxed)
}

/// Opens all, asks for what is wanted of each, and waits for what was asked a window before: turns of the files, and whether
/// they were read. Those that a stop came before are neither.
fn request_files(
    part: &[&ReplayStep<'_>],
    coming: &mut InFlightRequests<'_>,
    pace: &RateLimit,
    stop: &AtomicBool,
) -> Vec<(u32, bool)> {
    let opened: Vec<_> = part.iter().map(|step| (step, open_traced(step))).collect();
    let mut met = Vec::new();
    for (step, file) in opened.into_iter().take_while(|_| is_not_stopped(stop)) {
        met.push((step.file.turn, file.is_ok()));
        let Ok(file) = file else { continue };
        request_pages(&Rc::new(file), &step.pages, coming, &mut |pages| {
            pace.throttle(pages * PAGE, stop);
            is_not_stopped(stop)
        });
    }
    met
}
