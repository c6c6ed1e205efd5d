//! What a run is given: this machine, permissions, a stop request, the event sender with the clock that stamps
//! events.

use std::path::PathBuf;
use std::sync::mpsc::Sender;

use perflab_model::event::RunPhase;
use perflab_model::study::{CountersSpec, EVENTS_MONITOR, MonitorTiming};
use perflab_model::{Manifest, Nanos, RunEvent, RunEventKind, StopRequest};
use perflab_observe::{MonitorSwitch, MonitoredMachine, Root, RunCounters, RunTracepoints};
use perflab_settings::LazyTemporaryFolder;
use perflab_workload::Catalogue;

use crate::error::ConductError;

/// What the user allowed on the command line, beyond what the study says.
#[derive(Debug, Clone, Default)]
pub struct RunPermissions {
    /// `--apply`: a partition may be formatted.
    pub apply: bool,
    /// `--install`: missing workloads may be installed.
    pub install: bool,
    /// `--wait`: hosts that another study has are waited for, at most so long.
    pub wait: Option<Nanos>,
}

/// Stamps and sends events.
#[derive(Debug, Clone)]
pub(crate) struct EventSender {
    sink: Sender<RunEvent>,
}

impl EventSender {
    pub(crate) fn new(sink: Sender<RunEvent>) -> Self {
        EventSender { sink }
    }

    /// Sends one event, stamped now. An error means that its consumer is gone.
    pub(crate) fn send(&self, what: RunEventKind) -> Result<(), ConductError> {
        let event = RunEvent::new(perflab_observe::monotonic_now(), what);
        self.sink.send(event).map_err(|_| ConductError::NobodyListens)
    }

    /// Sends an event that has its stamp.
    pub(crate) fn forward(&self, event: RunEvent) -> Result<(), ConductError> {
        self.sink.send(event).map_err(|_| ConductError::NobodyListens)
    }

    pub(crate) fn send_phase(&self, phase: RunPhase) -> Result<(), ConductError> {
        self.send(RunEventKind::Phase(phase))
    }

    pub(crate) fn send_warning(
        &self,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Result<(), ConductError> {
        self.send(RunEventKind::Warning { message: message.into(), advice: advice.into() })
    }

    /// The raw end, for the sampler's thread.
    pub(crate) fn sink(&self) -> Sender<RunEvent> {
        self.sink.clone()
    }
}

/// The machine that perflab runs on.
#[derive(Debug)]
pub struct LocalMachine {
    /// Root of /proc and /sys; `/` but in tests.
    pub root: Root,
    /// Where undo journals lie.
    pub state: PathBuf,
    /// The perflab binary, for built-in loads.
    pub perflab: PathBuf,
    /// Definitions of the plan's workloads.
    pub catalogue: Catalogue,
    /// Whether commands get perflab's own standard input and language: for who records one as it is, and compares nothing.
    pub runs_as_typed: bool,
    /// Where tracers write until the recorder takes it: there until the host is dropped.
    pub traces: LazyTemporaryFolder,
    /// How long its monitors are read on after the last iteration, where that is not the study's quiet time: for who waits for
    /// that end.
    pub quiet_after: Option<Nanos>,
    /// Whether its monitors are read right now.
    pub monitors: MonitorSwitch,
    /// What is counted: of what, the study says.
    pub counters: RunCounters,
    /// Which tracepoints are counted: the study says.
    pub events: RunTracepoints,
}

impl LocalMachine {
    /// The monitors of the study that are read on this machine, with their timings.
    pub(crate) fn watched_monitors<'a>(
        &self,
        manifest: &'a Manifest,
    ) -> impl Iterator<Item = (&'a String, &'a MonitorTiming)> {
        let (counts, has_events) = (self.counters.counts_workload(), !self.events.is_empty());
        manifest
            .study
            .monitors
            .iter()
            .filter(move |(name, _)| counts || *name != CountersSpec::WORKLOAD_MONITOR)
            .filter(move |(name, _)| has_events || *name != EVENTS_MONITOR)
    }

    /// What its monitors are opened with.
    pub(crate) fn monitored(&self) -> MonitoredMachine {
        MonitoredMachine {
            root: self.root.clone(),
            counters: self.counters.clone(),
            events: self.events.clone(),
        }
    }
}

/// All that a run is given.
#[derive(Debug, Clone)]
pub(crate) struct RunContext<'a> {
    pub(crate) machine: &'a LocalMachine,
    pub(crate) manifest: &'a Manifest,
    pub(crate) stop: &'a StopRequest,
    pub(crate) stream: EventSender,
}
