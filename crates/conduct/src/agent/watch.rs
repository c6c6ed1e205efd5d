//! The monitors of an agent: their rows go to the host as they come.

use std::sync::mpsc::channel;
use std::thread::{JoinHandle, spawn};

use perflab_model::Manifest;
use perflab_observe::{Root, Sampler, SamplerOverhead};

use super::voice::FramedReportWriter;

/// Running monitors.
pub(super) struct AgentMonitors {
    sampler: Sampler,
    teller: JoinHandle<()>,
}

impl AgentMonitors {
    pub(super) fn start(manifest: &Manifest, root: &Root, voice: &FramedReportWriter) -> Self {
        let (sink, events) = channel();
        let wanted = manifest.study.monitors.iter().map(|(name, span)| (name.clone(), span.0)).collect();
        let sampler = Sampler::start(wanted, root.clone(), sink);
        let voice = voice.clone();
        // Ends with the sampler, or when nobody listens: the stream's end is noticed elsewhere.
        let tell =
            move || events.into_iter().try_for_each(|event| voice.write_event(event)).unwrap_or_default();
        AgentMonitors { sampler, teller: spawn(tell) }
    }

    /// Stops them, and waits until their last row is told.
    pub(super) fn stop(self) -> SamplerOverhead {
        let cost = self.sampler.stop();
        let _ = self.teller.join();
        cost
    }
}
