//! One run on this host, from `Began` to `Ended`: whatever happens between, settings are undone.

use std::path::PathBuf;

use perflab_model::event::Phase;
use perflab_model::expression::Scope;
use perflab_model::manifest::Overhead;
use perflab_model::{Case, Manifest, Nanos, Slot, Status, What};
use perflab_observe::Sampler;

use super::progress::Progress;
use super::stream::Stream;
use super::{Host, check, iteration};
use crate::settings::{Bench, Knob, UndoJournal, knobs};
use crate::{ConductError, Permissions, Stop, disk, plan};

/// A run being carried out.
pub(super) struct Session<'a> {
    pub(super) host: &'a Host,
    pub(super) manifest: &'a Manifest,
    pub(super) stream: Stream,
    pub(super) stop: &'a Stop,
    pub(super) scope: Scope,
    pub(super) scratch: Option<PathBuf>,
    permissions: &'a Permissions,
    bench: Bench,
    begun: Nanos,
    cpu_before: Nanos,
}

/// How the slots went.
#[derive(Debug, Default)]
struct Tally {
    failed: u32,
    stopped: bool,
}

impl<'a> Session<'a> {
    /// Prepares the scratch directory, and says `Began`.
    pub(super) fn begin(
        host: &'a Host,
        manifest: &'a Manifest,
        permissions: &'a Permissions,
        stream: Stream,
        stop: &'a Stop,
    ) -> Result<Self, ConductError> {
        let journal = UndoJournal::new(&host.state, &manifest.id, &manifest.boot_id);
        let mut bench = Bench::new(journal);
        let scope = plan::scope(&manifest.study, &manifest.facts).unwrap_or_default();
        stream.phase(Phase::Prepare)?;
        let scratch = match Self::prepare(host, manifest, permissions, &scope, bench.journal()) {
            Ok(scratch) => scratch,
            Err(error) => {
                bench.undo();
                return Err(error);
            }
        };
        let cpu_before = perflab_observe::own_usage().cpu;
        stream.send(What::Began(Box::new(manifest.clone())))?;
        let begun = perflab_observe::monotonic_now();
        Ok(Session { host, manifest, stream, stop, scope, scratch, permissions, bench, begun, cpu_before })
    }

    fn prepare(
        host: &Host,
        manifest: &Manifest,
        permissions: &Permissions,
        scope: &Scope,
        journal: &mut UndoJournal,
    ) -> Result<Option<PathBuf>, ConductError> {
        let wanted =
            check::definitions(manifest, &host.catalogue).iter().any(|definition| definition.needs.scratch);
        let disk = manifest.study.disk.as_ref();
        if disk::varies(&manifest.study) {
            return Ok(None); // each iteration makes its own
        }
        (wanted || disk.is_some())
            .then(|| disk::prepare(disk, &manifest.id, scope, permissions, journal))
            .transpose()
    }

    /// Runs every slot, undoes every setting, and says `Ended`.
    pub(super) fn run(mut self) -> Result<Status, ConductError> {
        let sampler = self.sampler();
        rest(self.manifest, self.stop);
        let outcome = self.slots();
        let status = match &outcome {
            Ok(tally) if tally.stopped => Status::Stopped,
            Ok(tally) if tally.failed > 0 => Status::Failed,
            Ok(_) => Status::Finished,
            Err(_) => Status::Failed,
        };
        self.end(status, sampler)?;
        outcome.map(|_| status)
    }

    fn sampler(&self) -> Sampler {
        let wanted = self.manifest.study.monitors.iter().map(|(name, span)| (name.clone(), span.0)).collect();
        Sampler::start(wanted, self.host.root.clone(), self.stream.sink())
    }

    fn slots(&mut self) -> Result<Tally, ConductError> {
        let slots = &self.manifest.plan.slots;
        let mut tally = Tally::default();
        let mut progress = Progress::new(slots.len() as u32);
        self.stream.phase(Phase::Apply)?;
        let mut phase = None;
        for (index, slot) in (0_u32..).zip(slots) {
            if self.must_stop()? {
                tally.stopped = true;
                break;
            }
            self.enter(&mut phase, slot)?;
            let good = self.slot(index, slot)?;
            tally.failed += u32::from(!good);
            progress.step();
            self.stream.send(progress.event())?;
        }
        tally.stopped |= self.stop.asked();
        Ok(tally)
    }

    fn must_stop(&self) -> Result<bool, ConductError> {
        let limit = self.manifest.study.run.total_time_limit.map(|span| span.0);
        let over = limit.filter(|limit| perflab_observe::monotonic_now().since(self.begun) > *limit);
        if let Some(limit) = over {
            self.stream.warn(
                format!(
                    "the run's total time limit of {limit} is over; the remaining iterations were left out"
                ),
                "raise `run.total-time-limit`, or lower `run.iterations`",
            )?;
        }
        Ok(over.is_some() || self.stop.asked())
    }

    fn enter(&self, phase: &mut Option<Phase>, slot: &Slot) -> Result<(), ConductError> {
        let wanted = if slot.warmup { Phase::Warmup } else { Phase::Iterate };
        if phase.replace(wanted) != Some(wanted) {
            self.stream.phase(wanted)?;
        }
        Ok(())
    }

    /// One slot: its settings, its caches, its iteration. `false` where the iteration failed.
    fn slot(&mut self, index: u32, slot: &Slot) -> Result<bool, ConductError> {
        let Some(case) = self.manifest.plan.case(slot.case) else { return Ok(false) };
        let wanted = knobs(&self.manifest.study, case, &self.scope, &self.host.root).unwrap_or_default();
        for change in self.bench.set(&wanted)? {
            let what = What::SettingApplied { setting: change.setting, from: change.from, to: change.to };
            self.stream.send(what)?;
        }
        for knob in &wanted {
            if let Knob::DropCaches(which) = knob {
                drop_caches(&self.host.root, *which)?;
            }
        }
        if !disk::varies(&self.manifest.study) {
            return iteration::run(self, index, slot, case);
        }
        let mark = self.bench.journal().mark();
        self.scratch = Some(self.fresh_disk(case)?);
        let good = iteration::run(self, index, slot, case);
        self.bench.journal().undo_since(mark)?;
        good
    }

    /// The case's own disk, made for one iteration.
    fn fresh_disk(&mut self, case: &Case) -> Result<PathBuf, ConductError> {
        let disk = disk::wanted(&self.manifest.study, case);
        let id = &self.manifest.id;
        disk::prepare(disk.as_ref(), id, &self.scope, self.permissions, self.bench.journal())
    }

    /// The monitors watch the undoing too: an unmount gives back what the workload left in caches.
    fn end(self, status: Status, sampler: Sampler) -> Result<(), ConductError> {
        // Told even if nobody listens: undoing comes first.
        let told = self.stream.phase(Phase::Undo);
        let (undone, failed) = self.bench.undo();
        for setting in undone {
            self.stream.send(What::SettingUndone { setting, to: "as before".into() })?;
        }
        for error in failed {
            self.stream.warn(
                format!("a setting could not be undone: {error}"),
                "perflab tries again at its next start",
            )?;
        }
        told?;
        rest(self.manifest, self.stop);
        let cost = sampler.stop();
        let usage = perflab_observe::own_usage();
        self.stream.phase(Phase::Finish)?;
        let overhead = Overhead {
            cpu: usage.cpu.since(self.cpu_before),
            monitors_cpu: cost.cpu,
            wall: perflab_observe::monotonic_now().since(self.begun),
            peak_rss: usage.peak_rss,
            bytes_written: 0, // the recorder's to say
            ticks: cost.ticks,
            late_ticks: cost.late,
            lost_ticks: cost.lost,
        };
        self.stream.send(What::Ended { status, overhead })
    }
}

/// Waits for the study's quiet time, unless somebody asks to stop.
fn rest(manifest: &Manifest, stop: &Stop) {
    let begun = perflab_observe::monotonic_now();
    while perflab_observe::monotonic_now().since(begun) < manifest.study.run.quiet.0 && !stop.asked() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Dirty pages cannot be dropped, so they are written first.
fn drop_caches(root: &perflab_observe::Root, which: u8) -> Result<(), ConductError> {
    rustix::fs::sync();
    let path = root.path("/proc/sys/vm/drop_caches");
    std::fs::write(&path, which.to_string()).map_err(|source| ConductError::Setting {
        action: "write",
        path,
        source,
    })
}
