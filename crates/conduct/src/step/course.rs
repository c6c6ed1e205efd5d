//! The whole run: the host's side of it, and the stream of events.

use std::sync::mpsc::Sender;

use perflab_model::event::{Phase, Standing};
use perflab_model::study::{FactorKind, Side};
use perflab_model::{Event, Manifest, Nanos, Overhead, Slot, Status, TargetRecord, What};
use perflab_observe::{Sampler, monotonic_now};

use super::boot::Boot;
use super::weft::Weft;
use crate::host::check;
use crate::host::progress::Progress;
use crate::host::session::rest;
use crate::host::station::{self, Station};
use crate::host::stream::Stream;
use crate::protocol::Enrolment;
use crate::{ConductError, Host, Permissions, Stop, Target};

/// The targets of a study, in step.
#[derive(Debug)]
pub struct InStep {
    /// The machine that conducts.
    pub host: Host,
}

impl Target for InStep {
    fn run(
        &self,
        manifest: &Manifest,
        permissions: &Permissions,
        sink: &Sender<Event>,
        stop: &Stop,
    ) -> Result<Status, ConductError> {
        let stream = Stream::new(sink.clone());
        stream.phase(Phase::Check)?;
        check::all(manifest, &self.host, permissions, Some(Side::Host))?;
        stream.phase(Phase::Prepare)?;
        let side = Some(Side::Host);
        let station = Station::new(&self.host, manifest, permissions, stream.clone(), stop, side);
        let course = Course {
            host: &self.host,
            manifest,
            stream,
            stop,
            station,
            earliest: monotonic_now(),
            early: Vec::new(),
            begun: None,
            tally: Tally::default(),
            cost: Overhead::default(),
            weft: Weft::default(),
        };
        course.run()
    }
}

/// The slots of each start of the targets, with their numbers: those of a boot, or of a case in it.
fn starts(manifest: &Manifest) -> Vec<Vec<(u32, Slot)>> {
    let each = manifest.study.run.boot_each_case;
    let numbered: Vec<(u32, Slot)> = (0_u32..).zip(manifest.plan.slots.iter().copied()).collect();
    let same = |a: &(u32, Slot), b: &(u32, Slot)| a.1.boot == b.1.boot && (!each || a.1.case == b.1.case);
    numbered.chunk_by(same).map(<[_]>::to_vec).collect()
}

/// How the slots went.
#[derive(Debug, Default)]
struct Tally {
    failed: u32,
    lost: u32,
}

/// What there is from the run's beginning on.
struct Begun {
    at: Nanos,
    cpu: Nanos,
    sampler: Sampler,
    progress: Progress,
    phase: Option<Phase>,
}

/// The run.
pub(super) struct Course<'a> {
    pub(super) host: &'a Host,
    pub(super) manifest: &'a Manifest,
    stream: Stream,
    pub(super) stop: &'a Stop,
    station: Station<'a>,
    /// Nothing that is told happened before.
    pub(super) earliest: Nanos,
    /// What was told before the run began.
    early: Vec<Event>,
    begun: Option<Begun>,
    tally: Tally,
    cost: Overhead,
    pub(super) weft: Weft,
}

impl Course<'_> {
    fn run(mut self) -> Result<Status, ConductError> {
        let worked = self.boots();
        let Some(begun) = self.begun.take() else {
            // Nothing was told yet; what was changed for the first start is changed back.
            self.station.abandon();
            return worked.and(Err(ConductError::NobodyListens));
        };
        let worked = match worked {
            Err(error) if error.is_stop() => Ok(()),
            worked => worked,
        };
        let status = match &worked {
            Ok(()) if self.stop.asked() => Status::Stopped,
            Ok(()) if self.tally.failed == 0 && self.tally.lost == 0 => Status::Finished,
            _ => Status::Failed,
        };
        let left = self.end(status, begun)?;
        station::ended(worked.map(|()| status), left)
    }

    fn boots(&mut self) -> Result<(), ConductError> {
        let starts = starts(self.manifest);
        let last = starts.len().saturating_sub(1);
        for (number, slots) in starts.into_iter().enumerate() {
            if self.manifest.study.run.boot_each_case
                && let Some((_, slot)) = slots.first()
            {
                self.settle(slot.case)?;
            }
            Boot::begin(self, slots, number == last)?.run()?;
            if self.stop.asked() {
                break;
            }
        }
        Ok(())
    }

    /// Brings the host's settings to what the case wants.
    fn settle(&mut self, case: u32) -> Result<(), ConductError> {
        let Some(case) = self.manifest.plan.case(case) else { return Ok(()) };
        for change in self.station.settle(case)? {
            self.say(change)?;
        }
        Ok(())
    }

    fn end(self, status: Status, begun: Begun) -> Result<Vec<String>, ConductError> {
        let left = self.station.undo()?;
        let watched = begun.sampler.stop();
        let usage = perflab_observe::own_usage();
        self.stream.phase(Phase::Finish)?;
        let overhead = Overhead {
            cpu: Nanos(usage.cpu.since(begun.cpu).0.saturating_add(self.cost.cpu.0)),
            monitors_cpu: Nanos(watched.cpu.0.saturating_add(self.cost.monitors_cpu.0)),
            wall: monotonic_now().since(begun.at),
            peak_rss: usage.peak_rss.max(self.cost.peak_rss),
            bytes_written: 0, // the recorder's to say
            ticks: watched.ticks.saturating_add(self.cost.ticks),
            late_ticks: watched.late.saturating_add(self.cost.late_ticks),
            lost_ticks: watched.lost.saturating_add(self.cost.lost_ticks),
        };
        self.stream.send(What::Ended { status, overhead })?;
        Ok(left)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Says `Began`, with the targets as they are, and what was told before.
    pub(super) fn begin(&mut self, targets: Vec<TargetRecord>) -> Result<(), ConductError> {
        let cpu = perflab_observe::own_usage().cpu;
        self.stream.send(What::Began(Box::new(Manifest { targets, ..self.manifest.clone() })))?;
        for event in std::mem::take(&mut self.early) {
            self.stream.pass(event)?;
        }
        let wanted = self.manifest.study.monitors.iter().map(|(name, span)| (name.clone(), span.0)).collect();
        self.begun = Some(Begun {
            at: monotonic_now(),
            cpu,
            sampler: Sampler::start(wanted, self.host.root.clone(), self.stream.sink()),
            progress: Progress::new(self.manifest.plan.slots.len() as u32),
            phase: None,
        });
        self.rest();
        self.phase(Phase::Apply)
    }

    /// The factor over targets and its level in a slot, if the study has one.
    pub(super) fn company(&self, slot: &Slot) -> Option<(&str, &str)> {
        let levels = &self.manifest.plan.case(slot.case)?.levels;
        let counts = |name: &str| {
            let factor = self.manifest.study.factor.get(name);
            factor.is_some_and(|factor| factor.kind == FactorKind::Targets)
        };
        levels.iter().map(|(name, level)| (name.as_str(), level.as_str())).find(|(name, _)| counts(name))
    }

    /// Which of `count` targets take part in a slot: as many as its level of a factor over targets says.
    pub(super) fn part(&self, slot: &Slot, count: usize) -> Vec<usize> {
        let number: Option<usize> = self.company(slot).and_then(|(_, level)| level.parse().ok());
        (0..number.unwrap_or(count).min(count)).collect()
    }

    /// What an agent has to know. Its id is its own, as its scratch directory is; one that shares our kernel need not
    /// watch what we watch.
    pub(super) fn enrolment(&self, name: &str, kind: &str) -> Enrolment {
        let mut manifest = self.manifest.clone();
        manifest.id = format!("{}-{name}", manifest.id);
        manifest.study_text = String::new();
        manifest.plan.slots = Vec::new();
        if kind == "process" {
            manifest.study.monitors.clear();
        }
        let used = |name: &String| self.host.catalogue.source(name);
        let sources = self.manifest.plan.metrics.keys().filter_map(used);
        let definitions = sources.map(|source| (source.file.clone(), source.text.clone())).collect();
        Enrolment { manifest, definitions }
    }

    pub(super) fn slot(&self, index: u32) -> Option<Slot> {
        self.manifest.plan.slots.get(index as usize).copied()
    }

    /// Whether the run's time is over.
    pub(super) fn must_stop(&self) -> Result<bool, ConductError> {
        let begun = self.begun.as_ref().map_or(Nanos(u64::MAX), |begun| begun.at);
        crate::host::session::out_of_time(self.manifest, begun, &self.stream)
    }

    /// Whether the block of this slot need not be begun.
    pub(super) fn has_enough(&self, next: u32) -> Result<bool, ConductError> {
        crate::host::session::has_enough(self.manifest, next, self.stop, &self.stream)
    }

    /// A slot is about to be made ready: its phase, and the host's settings for it.
    pub(super) fn enter(&mut self, slot: &Slot) -> Result<(), ConductError> {
        let wanted = if slot.warmup { Phase::Warmup } else { Phase::Iterate };
        if self.begun.as_mut().is_some_and(|begun| begun.phase.replace(wanted) != Some(wanted)) {
            self.phase(wanted)?;
        }
        let case = self.manifest.plan.case(slot.case);
        case.map_or(Ok(()), |case| self.station.ready(case))
    }

    /// A slot is over.
    pub(super) fn closed(
        &mut self,
        events: Vec<Event>,
        good: bool,
        names: &[String],
    ) -> Result<(), ConductError> {
        self.tally.failed += u32::from(!good);
        events.into_iter().try_for_each(|event| self.woven(event, names))?;
        let Some(begun) = &mut self.begun else { return Ok(()) };
        begun.progress.step();
        let event = begun.progress.event();
        self.stream.send(event)
    }

    /// Tells an event of a target, its stacks in the numbers of the run.
    fn woven(&mut self, event: Event, names: &[String]) -> Result<(), ConductError> {
        let Event { at, target: Some(target), what: What::Stacks(batch) } = event else {
            return self.tell(event);
        };
        let (index, before) = (target as usize, self.weft.is_torn(target as usize));
        let name = names.get(index).map_or("", String::as_str);
        if let Some(batch) = self.weft.join(index, name, *batch) {
            self.tell(Event { at, target: Some(target), what: What::Stacks(Box::new(batch)) })?;
        }
        if self.weft.is_torn(index) && !before {
            let message =
                format!("the profile of {name} refers to stacks that it never told, and is cut off");
            return self
                .told(index, What::Warning { message, advice: "the other targets' are whole".into() });
        }
        Ok(())
    }

    /// Shows where the targets are; whether anybody looks does not matter.
    pub(super) fn standing(&self, all: Vec<Standing>) -> Result<(), ConductError> {
        self.stream.send(What::Standing(all))
    }

    /// A target is out for good.
    pub(super) fn lost(&mut self, target: usize, name: &str, reason: &str) -> Result<(), ConductError> {
        self.tally.lost += 1;
        let reason = crate::inert::inert(reason);
        let (message, advice) = (format!("target {name} was lost: {reason}"), "see what it said".into());
        self.told(target, What::TargetLost { reason })?;
        self.told(target, What::Warning { message, advice })
    }

    /// What a target said beside its stream.
    pub(super) fn words(&mut self, target: usize, words: String) -> Result<(), ConductError> {
        if words.is_empty() {
            return Ok(());
        }
        let text = crate::inert::inert(&words);
        self.told(target, What::Output { slot: None, name: "agent".into(), text })
    }

    pub(super) fn add_cost(&mut self, cost: Overhead) {
        self.cost.cpu.0 = self.cost.cpu.0.saturating_add(cost.cpu.0);
        self.cost.monitors_cpu.0 = self.cost.monitors_cpu.0.saturating_add(cost.monitors_cpu.0);
        self.cost.peak_rss = self.cost.peak_rss.max(cost.peak_rss);
        self.cost.ticks = self.cost.ticks.saturating_add(cost.ticks);
        self.cost.late_ticks = self.cost.late_ticks.saturating_add(cost.late_ticks);
        self.cost.lost_ticks = self.cost.lost_ticks.saturating_add(cost.lost_ticks);
    }

    pub(super) fn rest(&self) {
        rest(self.manifest, self.stop);
    }

    pub(super) fn phase(&mut self, phase: Phase) -> Result<(), ConductError> {
        self.say(What::Phase(phase))
    }

    /// Says something of this machine.
    pub(super) fn say(&mut self, what: What) -> Result<(), ConductError> {
        self.tell(Event::new(monotonic_now(), what))
    }

    /// Says something of a target.
    pub(super) fn told(&mut self, target: usize, what: What) -> Result<(), ConductError> {
        self.tell(Event { at: monotonic_now(), target: u32::try_from(target).ok(), what })
    }

    /// Passes an event on, or keeps it until the run has begun.
    pub(super) fn tell(&mut self, event: Event) -> Result<(), ConductError> {
        if self.begun.is_none() {
            self.early.push(event);
            return Ok(());
        }
        self.stream.pass(event)
    }
}
