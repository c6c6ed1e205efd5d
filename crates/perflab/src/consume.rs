//! Consumers of a run's one stream of events: the recorder, the progress bar, and the watch over precision.

mod enough;
mod progress;
mod recorder;
mod targets;

pub use enough::PrecisionWatch;
pub use progress::ProgressReporter;
pub use recorder::RecorderConsumer;

use std::sync::mpsc::Receiver;

use perflab_conduct::StopRequest;
use perflab_model::RunEvent;

/// Takes every event, in order.
pub trait EventConsumer {
    /// One event. An error stops the run, cleanly.
    fn consume(&mut self, event: &RunEvent) -> anyhow::Result<()>;
}

/// Feeds every event to every consumer until the source is done. A consumer that fails gets no
/// further event, and the run is asked to stop; the others go on, so that the end is seen.
/// Returns the first failure.
pub fn feed_consumers(
    events: &Receiver<RunEvent>,
    consumers: &mut [&mut dyn EventConsumer],
    stop: &StopRequest,
) -> Option<anyhow::Error> {
    let mut broken = vec![false; consumers.len()];
    let mut first = None;
    for event in events {
        for (consumer, broken) in consumers.iter_mut().zip(&mut broken).filter(|(_, broken)| !**broken) {
            if let Err(error) = consumer.consume(&event) {
                *broken = true;
                stop.request_stop();
                first.get_or_insert(error);
            }
        }
    }
    first
}
