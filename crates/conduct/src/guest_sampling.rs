//! Guests sampled from outside: made ready once their symbols are here, from the start of each iteration to its end.
//!
//! Samples are kept on this host's clock, and become stacks of the iteration as those that a target takes itself.

use std::collections::HashMap;

use perflab_guest::{GuestError, ProcessorRecording, ProcessorSampler, RunningProcessorSampler};
use perflab_model::study::ProfileSpec;
use perflab_model::{GuestStops, Nanos, ProfileSummary, RunEvent, RunEventKind, StackBatch, StopRequest};
use perflab_stacks::{KernelSymbols, ProcessorProfile, SampledKernelError};

use crate::targets::TargetSession;

/// No kernel has more symbols, in bytes of their text.
const MOST_SYMBOLS: usize = 64 << 20;

/// What samples from outside count.
const EVENT: &str = "vcpu-clock";

/// The guests of a launch that are sampled.
#[derive(Debug, Default)]
pub(crate) struct GuestSamplings {
    symbols: HashMap<usize, String>,
    guests: HashMap<usize, GuestSampling>,
}

/// A guest.
#[derive(Debug)]
struct GuestSampling {
    sampler: SamplerState,
    profile: ProcessorProfile,
    frequency: u32,
    unwinds_by: &'static str,
    recorded: Option<ProcessorRecording>,
}

#[derive(Debug)]
enum SamplerState {
    Ready(ProcessorSampler),
    Samples(RunningProcessorSampler),
    /// It failed once, and is not tried again.
    Gone,
}

/// What was recorded of an iteration, but for the stacks.
#[derive(Debug)]
pub(crate) struct SampledIteration {
    pub(crate) stops: GuestStops,
    pub(crate) failure: Option<String>,
}

impl GuestSamplings {
    /// Takes a part of a target's symbols.
    ///
    /// # Errors
    /// It sends more than any kernel has, or twice; the reason is for people.
    pub(crate) fn take_symbols(&mut self, target: usize, text: &str) -> Result<(), String> {
        if self.guests.contains_key(&target) {
            return Err("it sent its symbols twice".into());
        }
        let known = self.symbols.entry(target).or_default();
        if known.len() + text.len() > MOST_SYMBOLS {
            return Err("it sent more symbols than any kernel has".into());
        }
        known.push_str(text);
        Ok(())
    }

    /// Makes a target's sampler ready: its symbols are whole.
    ///
    /// # Errors
    /// It is no guest that can be sampled.
    pub(crate) fn attach(
        &mut self,
        target: usize,
        session: &TargetSession,
        rules: &ProfileSpec,
        stop: &StopRequest,
    ) -> Result<(), GuestError> {
        let text = self.symbols.remove(&target).unwrap_or_default();
        let Some(guest) = session.handle.as_ref().and_then(|handle| handle.sampled_guest()) else {
            let reason = "it is no guest that perflab started".into();
            return Err(GuestError::Monitor { name: session.name.clone(), reason });
        };
        let symbols = KernelSymbols::parse(text.clone()).map_err(|source| GuestError::NotSampled {
            name: session.name.clone(),
            source: SampledKernelError::from(source),
        })?;
        let release = session.hello.as_ref().map_or("", |hello| hello.kernel.as_str());
        let sampler = ProcessorSampler::attach(&guest, text, release, stop)?;
        let guest = GuestSampling {
            profile: ProcessorProfile::new(symbols, &rules.symbols),
            frequency: rules.sampling_frequency(),
            unwinds_by: sampler.unwinds_by(),
            sampler: SamplerState::Ready(sampler),
            recorded: None,
        };
        self.guests.insert(target, guest);
        Ok(())
    }

    /// Begins to sample a target, if it is sampled.
    ///
    /// # Errors
    /// No thread can be had.
    pub(crate) fn begin_iteration(&mut self, target: usize) -> Result<(), GuestError> {
        let Some(guest) = self.guests.get_mut(&target) else { return Ok(()) };
        if let SamplerState::Ready(sampler) = std::mem::replace(&mut guest.sampler, SamplerState::Gone) {
            guest.sampler = SamplerState::Samples(sampler.start(guest.frequency)?);
        }
        Ok(())
    }

    /// Ends sampling a target, where it is sampled.
    pub(crate) fn end_iteration(&mut self, target: usize) {
        if let Some(guest) = self.guests.get_mut(&target) {
            guest.end_iteration();
        }
    }

    /// A target is gone.
    pub(crate) fn forget(&mut self, target: usize) {
        self.end_iteration(target);
        if let Some(guest) = self.guests.get_mut(&target) {
            guest.sampler = SamplerState::Gone;
        }
    }

    /// Puts what was recorded of a target before the end of its iteration, among all events of a slot.
    pub(crate) fn add_stacks(
        &mut self,
        target: usize,
        events: &mut Vec<RunEvent>,
    ) -> Option<SampledIteration> {
        self.end_iteration(target);
        let guest = self.guests.get_mut(&target)?;
        let recording = guest.recorded.take()?;
        let number = u32::try_from(target).ok();
        let (place, slot, start, end) =
            events.iter().enumerate().find_map(|(place, event)| match event.what {
                RunEventKind::IterationEnded { slot, start, end, .. } if event.target == number => {
                    Some((place, slot, start, end))
                }
                _ => None,
            })?;
        let (batch, about, stops) = guest.name_recording(&recording, (start, end), slot);
        let event = |what| RunEvent { at: recording.ended, target: number, what };
        let new = [RunEventKind::Stacks(Box::new(batch)), RunEventKind::Profiled(Box::new(about))];
        events.splice(place..place, new.map(event));
        Some(SampledIteration { stops, failure: recording.failure })
    }
}

impl GuestSampling {
    fn end_iteration(&mut self) {
        let running = match std::mem::replace(&mut self.sampler, SamplerState::Gone) {
            SamplerState::Samples(running) => running,
            other => {
                self.sampler = other;
                return;
            }
        };
        self.recorded = Some(match running.stop() {
            Ok((sampler, recording)) => {
                if recording.failure.is_none() {
                    self.sampler = SamplerState::Ready(sampler);
                }
                recording
            }
            Err(error) => {
                ProcessorRecording { failure: Some(error.to_string()), ..ProcessorRecording::default() }
            }
        });
    }

    fn name_recording(
        &mut self,
        recording: &ProcessorRecording,
        (start, end): (Nanos, Nanos),
        slot: u32,
    ) -> (StackBatch, ProfileSummary, GuestStops) {
        let within = |at: Nanos| (start..=end).contains(&at);
        let lengths = recording.stops.iter().filter(|(at, _)| within(*at)).map(|(_, length)| length.0);
        let (stops, stopped) = lengths.fold((0_u64, 0_u64), |(count, sum), length| (count + 1, sum + length));
        let sampled = end.since(start.max(recording.begun));
        let stops = GuestStops { stops, stopped: Nanos(stopped), sampled };
        let weight = Nanos(sampled.0.saturating_sub(stopped).checked_div(stops.stops).unwrap_or(0));
        let first = recording.samples.partition_point(|sample| sample.at < start);
        let after = recording.samples.partition_point(|sample| sample.at <= end);
        let samples = recording.samples.get(first..after).unwrap_or_default();
        let doubtful = samples
            .iter()
            .filter(|sample| sample.stack.kernel.as_ref().is_some_and(|stack| stack.is_doubtful()))
            .count();
        let (batch, mut about) = self.profile.convert(samples, weight, slot);
        about.source = "QEMU".into();
        about.event = EVENT.into();
        about.frequency = Some(self.frequency.into());
        about.lost = recording.lost;
        about.cost = recording.cost;
        about.guest_stops = Some(stops);
        about.hides = Some(format!(
            "which function of a process runs; kernel stacks are unwound by {}, and {doubtful} of {} have a caller that was \
             guessed, or end before the kernel's entry; the guest was stopped {:.0} times a second",
            self.unwinds_by,
            samples.iter().filter(|sample| sample.stack.kernel.is_some()).count(),
            stops.stops as f64 / sampled.seconds().max(1e-9)
        ));
        (batch, about, stops)
    }
}
