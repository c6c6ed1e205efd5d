//! The working thread: one run after the other, one order after the other.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use perflab_model::study::{Side, Source};
use perflab_model::{Event, Facts, Manifest, Overhead, Slot, Status, What};
use perflab_workload::Catalogue;

use super::voice::Voice;
use super::wait;
use super::watch::Watch;
use crate::barrier::Point;
use crate::host::check;
use crate::host::station::{self, Station};
use crate::host::stream::Stream;
use crate::protocol::{Enrolment, Order, Report};
use crate::{ConductError, Host, Permissions, Stop};

/// Frames, stacks and samples in a message, a good hundred bytes each: far below what a frame may hold.
const BATCH: usize = 8192;

/// What the working thread has to do, and how it tells.
pub(super) struct Duty<'g> {
    pub(super) voice: Voice,
    pub(super) todo: Receiver<Order>,
    pub(super) stop: Stop,
    /// Nobody is there any more: no further order is carried out.
    pub(super) gone: &'g AtomicBool,
}

impl Duty<'_> {
    /// Carries out orders until there are no more.
    pub(super) fn work(&self, mut host: Host) -> io::Result<()> {
        while let Ok(order) = self.todo.recv() {
            match order {
                Order::Rehearse { at } => self.rehearse(at)?,
                Order::Enrol(enrolment) => {
                    if let Err(refused) = self.enrolled(&mut host, *enrolment) {
                        self.voice.say(&Report::Refused(reasons(&refused)))?;
                    }
                }
                // Without a run there is nothing to do, and all of it is done.
                _ => {}
            }
        }
        Ok(())
    }

    fn rehearse(&self, at: perflab_model::Nanos) -> io::Result<()> {
        match wait::until(at, &self.stop.flag()) {
            Some(woken) => self.voice.say(&Report::Woke { at: woken.at }),
            None => Ok(()),
        }
    }

    /// One run, until it is left or nobody is there any more. Whatever happens, everything is undone.
    fn enrolled(&self, host: &mut Host, enrolment: Enrolment) -> Result<(), ConductError> {
        let sources: Vec<Source> =
            enrolment.definitions.into_iter().map(|(file, text)| Source::new(file, text)).collect();
        host.catalogue = Catalogue::of(&sources).map_err(|error| refusal(error.to_string()))?;
        let mut manifest = enrolment.manifest;
        // Expressions are about the machine that the workload runs on.
        manifest.facts = perflab_observe::facts(&host.root, manifest.study.facts.as_deref())?;
        manifest.boot_id = perflab_observe::boot_id(&host.root);
        let permissions = Permissions::default();
        check::all(&manifest, host, &permissions, Some(Side::Guest))?;
        let (sink, told) = channel();
        let (stream, side) = (Stream::new(sink), Some(Side::Guest));
        let station = Station::new(host, &manifest, &permissions, stream, &self.stop, side).prepare()?;
        let watch = Watch::begin(&manifest, &host.root, &self.voice);
        Run { duty: self, manifest: &manifest, told }.carry_out(station, watch)
    }
}

/// A run that is being carried out.
struct Run<'a> {
    duty: &'a Duty<'a>,
    manifest: &'a Manifest,
    told: Receiver<Event>,
}

impl Run<'_> {
    fn carry_out(&self, mut station: Station<'_>, watch: Watch) -> Result<(), ConductError> {
        let before = perflab_observe::own_usage().cpu;
        self.facts(&self.manifest.facts);
        self.reached(Point::First);
        let worked = self.orders(&mut station);
        let undone = station.undo();
        if worked.as_ref().is_ok_and(|left| *left) {
            self.reached(Point::Last);
            // Any other order than to leave can only be one that was meant for before.
            while self.next().is_some_and(|order| order != Order::Leave) {}
        }
        let cost = watch.end();
        let usage = perflab_observe::own_usage();
        let overhead = Overhead {
            cpu: usage.cpu.since(before),
            monitors_cpu: cost.cpu,
            peak_rss: usage.peak_rss,
            ticks: cost.ticks,
            late_ticks: cost.late,
            lost_ticks: cost.lost,
            ..Overhead::default()
        };
        self.tell(What::Ended { status: Status::Finished, overhead });
        if worked? {
            self.reached(Point::End);
        }
        station::ended(Ok(()), undone?)
    }

    /// Carries out slots; `true` when it is told to undo, `false` when nobody is there any more.
    fn orders(&self, station: &mut Station<'_>) -> Result<bool, ConductError> {
        let mut ready: Option<(u32, Slot)> = None;
        while let Some(order) = self.next() {
            match order {
                Order::Undo => return Ok(true),
                Order::Ready { index, slot } => {
                    self.duty.stop.withdraw();
                    if let Some(case) = self.manifest.plan.case(slot.case) {
                        station.ready(case)?;
                    }
                    ready = Some((index, slot));
                    self.reached(Point::Before(index));
                }
                Order::Start { index, at } => {
                    if let Some((_, slot)) = ready.take().filter(|(ready, _)| *ready == index) {
                        self.iterate(station, index, slot, at)?;
                        self.reached(Point::After(index));
                    }
                }
                _ => {}
            }
        }
        Ok(false)
    }

    fn iterate(
        &self,
        station: &mut Station<'_>,
        index: u32,
        slot: Slot,
        at: perflab_model::Nanos,
    ) -> Result<(), ConductError> {
        let Some(case) = self.manifest.plan.case(slot.case) else { return Ok(()) };
        let flag = self.duty.stop.flag();
        station.work(index, &slot, case, &|| wait::until(at, &flag).map(|woken| woken.urgent)).map(drop)
    }

    fn next(&self) -> Option<Order> {
        self.duty.todo.recv().ok().filter(|_| !self.duty.gone.load(Ordering::SeqCst))
    }

    fn facts(&self, facts: &Facts) {
        self.tell(What::Facts(facts.clone()));
    }

    fn tell(&self, what: What) {
        self.send(Event::new(perflab_observe::monotonic_now(), what));
    }

    /// Whoever does not listen any more is noticed by the listening thread.
    fn send(&self, event: Event) {
        let Event { at, target, what } = event;
        let What::Stacks(batch) = what else {
            let _ = self.duty.voice.tell(Event { at, target, what });
            return;
        };
        for part in batch.split(BATCH) {
            let _ = self.duty.voice.tell(Event { at, target, what: What::Stacks(Box::new(part)) });
        }
    }

    /// Says so, after everything that happened on the way.
    fn reached(&self, point: Point) {
        self.told.try_iter().for_each(|event| self.send(event));
        let _ = self.duty.voice.say(&Report::Reached(point));
    }
}

fn refusal(what: String) -> ConductError {
    ConductError::Refused(vec![crate::Refusal { what, hint: String::new() }])
}

/// What went wrong, each in one line with its causes.
fn reasons(error: &ConductError) -> Vec<String> {
    if let ConductError::Refused(list) = error {
        return list.iter().map(ToString::to_string).collect();
    }
    vec![error.with_causes()]
}
