//! Call stacks sampled while an iteration runs, and named after it: naming must not be part of what is measured.

use std::cell::RefCell;

use perflab_model::study::{ProfileScope, ProfileSpec};
use perflab_model::{Manifest, RunEventKind, Unit};
use perflab_observe::profile::{ProfileError, SamplingScope, StackSampler};
use perflab_stacks::LiveProfile;

use super::LocalMachine;
use super::stream::EventSender;
use crate::{ConductError, Refusal};

/// The sampler of a run: its names hold for all iterations.
pub(super) struct IterationProfiler {
    rules: ProfileSpec,
    live: RefCell<LiveProfile>,
}

impl IterationProfiler {
    /// The sampler that a study asks for, if any.
    pub(super) fn for_study(manifest: &Manifest) -> Result<Option<IterationProfiler>, ConductError> {
        let make = |rules: &ProfileSpec| {
            let live = LiveProfile::new(&rules.symbols).map_err(ProfileError::from)?;
            Ok(IterationProfiler { rules: rules.clone(), live: RefCell::new(live) })
        };
        manifest.study.profile.as_ref().map(make).transpose()
    }

    /// Begins to sample.
    pub(super) fn start(&self, host: &LocalMachine) -> Result<StackSampler, ConductError> {
        Ok(StackSampler::start(&host.root, profile_scope(&self.rules), self.rules.frequency.into())?)
    }

    /// Ends sampling, names the stacks and sends them.
    pub(super) fn finish(
        &self,
        recorder: StackSampler,
        slot: u32,
        stream: &EventSender,
    ) -> Result<(), ConductError> {
        let event = recorder.event();
        let (recording, cost) = recorder.stop()?;
        if recording.lost > 0 {
            let kept: usize = recording.buffers.iter().map(Vec::len).sum();
            let message = format!(
                "{} samples were lost at the end: memory was kept for {} MiB of them",
                recording.lost,
                kept >> 20
            );
            stream.send_warning(message, "sample less often, or for less time")?;
        }
        let (batch, mut about) = self.live.borrow_mut().convert(&recording, slot);
        about.event = event.name.into();
        about.unit = Unit::new(event.unit);
        about.hides = event.blind_spot();
        about.frequency = Some(self.rules.frequency.into());
        about.cost = cost;
        stream.send(RunEventKind::Stacks(Box::new(batch)))?;
        stream.send(RunEventKind::Profiled(Box::new(about)))
    }
}

fn profile_scope(rules: &ProfileSpec) -> SamplingScope {
    match (rules.pid, rules.scope) {
        (Some(pid), _) => SamplingScope::Process(pid),
        (None, ProfileScope::System) => SamplingScope::System,
        (None, ProfileScope::Workload) => SamplingScope::Children,
    }
}

/// Why the profile that a study asks for cannot be taken.
pub(super) fn check_profile(manifest: &Manifest, host: &LocalMachine) -> Option<Refusal> {
    let rules = manifest.study.profile.as_ref()?;
    let checked = perflab_observe::profile::check_stack_sampling(
        &host.root,
        profile_scope(rules),
        rules.frequency.into(),
    );
    checked.err().map(|error| Refusal { what: format!("[profile]: {error}"), hint: String::new() })
}
