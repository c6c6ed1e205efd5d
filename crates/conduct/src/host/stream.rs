//! The sending end of the one stream, with the clock that stamps it.

use std::sync::mpsc::Sender;

use perflab_model::event::RunPhase;
use perflab_model::{RunEvent, RunEventKind};

use crate::ConductError;

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
