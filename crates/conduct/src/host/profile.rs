//! Call stacks sampled while an iteration runs, and named after it: naming must not be part of what is measured.

use std::cell::RefCell;

use perflab_model::study::{ProfileScope, Profiling};
use perflab_model::{Manifest, Unit, What};
use perflab_observe::profile::{ProfileError, Recorder, Scope};
use perflab_stacks::Live;

use super::Host;
use super::stream::Stream;
use crate::{ConductError, Refusal};

/// The sampler of a run: its names hold for all iterations.
pub(super) struct Profiler {
    rules: Profiling,
    live: RefCell<Live>,
}

impl Profiler {
    /// The sampler that a study asks for, if any.
    pub(super) fn wanted(manifest: &Manifest) -> Result<Option<Profiler>, ConductError> {
        let make = |rules: &Profiling| {
            let live = Live::new(&rules.symbols).map_err(ProfileError::from)?;
            Ok(Profiler { rules: rules.clone(), live: RefCell::new(live) })
        };
        manifest.study.profile.as_ref().map(make).transpose()
    }

    /// Begins to sample.
    pub(super) fn start(&self, host: &Host) -> Result<Recorder, ConductError> {
        Ok(Recorder::start(&host.root, scope(&self.rules), self.rules.frequency.into())?)
    }

    /// Ends sampling, names the stacks and sends them.
    pub(super) fn finish(&self, recorder: Recorder, slot: u32, stream: &Stream) -> Result<(), ConductError> {
        let event = recorder.event();
        let (recording, cost) = recorder.stop()?;
        if recording.lost > 0 {
            let kept: usize = recording.buffers.iter().map(Vec::len).sum();
            let message = format!(
                "{} samples were lost at the end: memory was kept for {} MiB of them",
                recording.lost,
                kept >> 20
            );
            stream.warn(message, "sample less often, or for less time")?;
        }
        let (batch, mut about) = self.live.borrow_mut().take(&recording, slot);
        about.event = event.name.into();
        about.unit = Unit::new(event.unit);
        about.hides = event.hides();
        about.frequency = Some(self.rules.frequency.into());
        about.cost = cost;
        stream.send(What::Stacks(Box::new(batch)))?;
        stream.send(What::Profiled(Box::new(about)))
    }
}

fn scope(rules: &Profiling) -> Scope {
    match (rules.pid, rules.scope) {
        (Some(pid), _) => Scope::Process(pid),
        (None, ProfileScope::System) => Scope::System,
        (None, ProfileScope::Workload) => Scope::Children,
    }
}

/// Why the profile that a study asks for cannot be taken.
pub(super) fn refusal(manifest: &Manifest, host: &Host) -> Option<Refusal> {
    let rules = manifest.study.profile.as_ref()?;
    let checked = perflab_observe::profile::check(&host.root, scope(rules), rules.frequency.into());
    checked.err().map(|error| Refusal { what: format!("[profile]: {error}"), hint: String::new() })
}
