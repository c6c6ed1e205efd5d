//! One run on this host, from `Began` to `Ended`: whatever happens between, settings are undone.

use perflab_model::event::Phase;
use perflab_model::manifest::Overhead;
use perflab_model::{Manifest, Nanos, Slot, Status, What};
use perflab_observe::Sampler;

use super::Host;
use super::progress::Progress;
use super::station::{self, Station};
use super::stream::Stream;
use crate::{ConductError, Permissions, Stop};

/// A run being carried out.
pub(super) struct Session<'a> {
    station: Station<'a>,
    manifest: &'a Manifest,
    stream: Stream,
    stop: &'a Stop,
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
        stream.phase(Phase::Prepare)?;
        let station = Station::new(host, manifest, permissions, stream.clone(), stop, None).prepare()?;
        let cpu_before = perflab_observe::own_usage().cpu;
        stream.send(What::Began(Box::new(manifest.clone())))?;
        let begun = perflab_observe::monotonic_now();
        Ok(Session { station, manifest, stream, stop, begun, cpu_before })
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
        let left = self.end(status, sampler)?;
        station::ended(outcome.map(|_| status), left)
    }

    fn sampler(&self) -> Sampler {
        let wanted = self.manifest.study.monitors.iter().map(|(name, span)| (name.clone(), span.0)).collect();
        Sampler::start(wanted, self.station.host.root.clone(), self.stream.sink())
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
            if has_enough(self.manifest, index, self.stop, &self.stream)? {
                break;
            }
            self.enter(&mut phase, slot)?;
            let good = match self.slot(index, slot) {
                Err(error) if error.is_stop() => break,
                worked => worked?,
            };
            tally.failed += u32::from(!good);
            progress.step();
            self.stream.send(progress.event())?;
        }
        tally.stopped |= self.stop.asked();
        Ok(tally)
    }

    fn must_stop(&self) -> Result<bool, ConductError> {
        Ok(out_of_time(self.manifest, self.begun, &self.stream)? || self.stop.asked())
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
        self.station.ready(case)?;
        self.station.work(index, slot, case, &|| None)
    }

    /// The monitors watch the undoing too: an unmount gives back what the workload left in caches.
    fn end(self, status: Status, sampler: Sampler) -> Result<Vec<String>, ConductError> {
        // Told even if nobody listens: undoing comes first.
        let told = self.stream.phase(Phase::Undo);
        let left = self.station.undo()?;
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
        self.stream.send(What::Ended { status, overhead })?;
        Ok(left)
    }
}

/// Whether the run's total time limit is over; says so where it is.
pub(crate) fn out_of_time(manifest: &Manifest, begun: Nanos, stream: &Stream) -> Result<bool, ConductError> {
    let limit = manifest.study.run.total_time_limit.map(|span| span.0);
    let over = limit.filter(|limit| perflab_observe::monotonic_now().since(begun) > *limit);
    if let Some(limit) = over {
        stream.warn(
            format!("the run's total time limit of {limit} is over; the remaining iterations were left out"),
            "raise `run.total-time-limit`, or lower `run.iterations`",
        )?;
    }
    Ok(over.is_some())
}

/// Waits for the study's quiet time, unless somebody asks to stop.
pub(crate) fn rest(manifest: &Manifest, stop: &Stop) {
    let begun = perflab_observe::monotonic_now();
    while perflab_observe::monotonic_now().since(begun) < manifest.study.run.quiet.0 && !stop.asked() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Whether the block of slot `next` need not be begun: the precision that the study wants is reached.
pub(crate) fn has_enough(
    manifest: &Manifest,
    next: u32,
    stop: &Stop,
    stream: &Stream,
) -> Result<bool, ConductError> {
    let slot = |index: u32| manifest.plan.slots.get(index as usize);
    let (Some(slot), Some(before)) = (slot(next), next.checked_sub(1).and_then(slot)) else {
        return Ok(false);
    };
    if slot.block == before.block || slot.warmup || !stop.is_enough() {
        return Ok(false);
    }
    let (done, most) = (slot.block, manifest.study.run.most_iterations());
    let message = format!("the wanted precision was reached: {done} of at most {most} blocks were measured");
    stream.warn(
        message,
        "mind that intervals of a run that ends when they are narrow are a little too narrow",
    )?;
    Ok(true)
}
