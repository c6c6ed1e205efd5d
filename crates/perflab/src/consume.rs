//! Consumers of a run's one stream of events: the recorder, the progress bar, and the watch over precision.

mod enough;
mod progress;
mod recorder;
mod targets;

pub use enough::Enough;
pub use progress::Progress;
pub use recorder::Recording;

use std::sync::mpsc::Receiver;

use perflab_conduct::Stop;
use perflab_model::Event;

/// Takes every event, in order.
pub trait Consumer {
    /// One event. An error stops the run, cleanly.
    fn take(&mut self, event: &Event) -> anyhow::Result<()>;
}

/// Feeds every event to every consumer until the source is done. A consumer that fails gets no
/// further event, and the run is asked to stop; the others go on, so that the end is seen.
/// Returns the first failure.
pub fn feed(
    events: &Receiver<Event>,
    consumers: &mut [&mut dyn Consumer],
    stop: &Stop,
) -> Option<anyhow::Error> {
    let mut broken = vec![false; consumers.len()];
    let mut first = None;
    for event in events {
        for (consumer, broken) in consumers.iter_mut().zip(&mut broken).filter(|(_, broken)| !**broken) {
            if let Err(error) = consumer.take(&event) {
                *broken = true;
                stop.ask();
                first.get_or_insert(error);
            }
        }
    }
    first
}
