//! The sending end of the one stream, with the clock that stamps it.

use std::sync::mpsc::Sender;

use perflab_model::event::Phase;
use perflab_model::{Event, What};

use crate::ConductError;

/// Stamps and sends events.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    sink: Sender<Event>,
}

impl Stream {
    pub(crate) fn new(sink: Sender<Event>) -> Self {
        Stream { sink }
    }

    /// Sends one event, stamped now. An error means that its consumer is gone.
    pub(crate) fn send(&self, what: What) -> Result<(), ConductError> {
        let event = Event::new(perflab_observe::monotonic_now(), what);
        self.sink.send(event).map_err(|_| ConductError::NobodyListens)
    }

    /// Sends an event that has its stamp.
    pub(crate) fn pass(&self, event: Event) -> Result<(), ConductError> {
        self.sink.send(event).map_err(|_| ConductError::NobodyListens)
    }

    pub(crate) fn phase(&self, phase: Phase) -> Result<(), ConductError> {
        self.send(What::Phase(phase))
    }

    pub(crate) fn warn(
        &self,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Result<(), ConductError> {
        self.send(What::Warning { message: message.into(), advice: advice.into() })
    }

    /// The raw end, for the sampler's thread.
    pub(crate) fn sink(&self) -> Sender<Event> {
        self.sink.clone()
    }
}
