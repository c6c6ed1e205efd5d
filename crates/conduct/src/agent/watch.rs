//! The monitors of an agent: their rows go to the host as they come.

use std::sync::mpsc::channel;
use std::thread::{JoinHandle, spawn};

use perflab_model::Manifest;
use perflab_observe::{Root, Sampler, SamplerCost};

use super::voice::Voice;

/// Running monitors.
pub(super) struct Watch {
    sampler: Sampler,
    teller: JoinHandle<()>,
}

impl Watch {
    pub(super) fn begin(manifest: &Manifest, root: &Root, voice: &Voice) -> Self {
        let (sink, events) = channel();
        let wanted = manifest.study.monitors.iter().map(|(name, span)| (name.clone(), span.0)).collect();
        let sampler = Sampler::start(wanted, root.clone(), sink);
        let voice = voice.clone();
        // Ends with the sampler, or when nobody listens: the stream's end is noticed elsewhere.
        let tell = move || events.into_iter().try_for_each(|event| voice.tell(event)).unwrap_or_default();
        Watch { sampler, teller: spawn(tell) }
    }

    /// Stops them, and waits until their last row is told.
    pub(super) fn end(self) -> SamplerCost {
        let cost = self.sampler.stop();
        let _ = self.teller.join();
        cost
    }
}
