//! What every format gives: a profile with its remarks; what events cannot see; errors that name the file and the line
//! or offset.

use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fmt, io};

use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::profile::{
    DEEPEST_STACK, ProfileSummary, SampleCounts, StackBatch, StackTreeBuilder, count_samples,
};
use perflab_model::{Facts, Nanos, StackSample};

/// Remarks that are kept; all are counted.
const KEPT: usize = 20;

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProfilePosition {
    /// a line, from 1
    Line(u64),
    /// bytes from the beginning
    Offset(u64),
    /// bytes from the beginning of what was compressed in the file
    Unpacked(u64),
}

impl fmt::Display for ProfilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProfilePosition::Line(line) => write!(f, "{line}"),
            ProfilePosition::Offset(offset) => write!(f, "byte {offset}"),
            ProfilePosition::Unpacked(offset) => write!(f, "byte {offset} of the unpacked records"),
        }
    }
}

/// Something in the file that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileRemark {
    /// Where.
    pub place: ProfilePosition,
    /// Why.
    pub reason: String,
}

/// Something a person should know, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileNote {
    /// What.
    pub message: String,
    /// What to do.
    pub advice: String,
}

/// A profile that was read from a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportedProfile {
    /// Frames, stacks and samples. Times count from 0, the first sample.
    pub batch: StackBatch,
    /// What the file says of itself.
    pub about: ProfileSummary,
    /// What it says of the machine: `profile.hostname` and the like.
    pub facts: Facts,
    /// When the first sample was taken, since 1970, where the file says.
    pub begun: Option<Nanos>,
    /// What could not be read: the first ones; `about.unreadable` counts all.
    pub remarks: Vec<ProfileRemark>,
    /// What was assumed or missing.
    pub notes: Vec<ProfileNote>,
}

impl ImportedProfile {
    /// What became of every sample.
    pub fn sample_parts(&self) -> SampleCounts {
        count_samples(&self.about, &self.batch.samples)
    }
}

/// A profile while it is being read.
#[derive(Debug, Default)]
pub(crate) struct ProfileBuilder {
    pub(crate) weaver: StackTreeBuilder,
    pub(crate) samples: Vec<StackSample>,
    pub(crate) about: ProfileSummary,
    pub(crate) facts: Facts,
    pub(crate) begun: Option<Nanos>,
    /// When the file was written.
    pub(crate) recorded: Option<SystemTime>,
    remarks: Vec<ProfileRemark>,
    notes: Vec<ProfileNote>,
}

impl ProfileBuilder {
    /// Counts something that could not be read.
    pub(crate) fn count_unreadable(&mut self, place: ProfilePosition, reason: impl Into<String>) {
        self.about.unreadable += 1;
        self.add_remark(place, reason);
    }

    /// Says something about a place, without counting a sample as unreadable.
    pub(crate) fn add_remark(&mut self, place: ProfilePosition, reason: impl Into<String>) {
        if self.remarks.len() < KEPT {
            self.remarks.push(ProfileRemark { place, reason: reason.into() });
        }
    }

    pub(crate) fn add_note(&mut self, message: impl Into<String>, advice: impl Into<String>) {
        self.notes.push(ProfileNote { message: message.into(), advice: advice.into() });
    }

    pub(crate) fn remarks(&self) -> &[ProfileRemark] {
        &self.remarks
    }

    /// The profile; times are made to count from the first sample.
    pub(crate) fn finish(mut self) -> ImportedProfile {
        let cut = self.weaver.frames_cut();
        if cut > 0 {
            let message =
                format!("{cut} frames lie deeper than {DEEPEST_STACK} in their stacks, and are left out");
            self.add_note(message, "nothing is to be done where the program recurses without end");
        }
        let first = self.samples.iter().filter_map(|sample| sample.at).min();
        for sample in &mut self.samples {
            sample.at = sample.at.map(|at| at.since(first.unwrap_or_default()));
        }
        ImportedProfile {
            batch: self.weaver.take_batch(0, self.samples),
            about: self.about,
            facts: self.facts,
            begun: self.begun,
            remarks: self.remarks,
            notes: self.notes,
        }
    }
}

/// Why a profile cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StacksError {
    /// The system refused.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// the file
        path: PathBuf,
        /// the system's reason
        source: io::Error,
    },
    /// It is not what it should be.
    #[error("{}{}: {reason}", path.display(), place.map(|place| format!(":{place}")).unwrap_or_default())]
    Format {
        /// the file
        path: PathBuf,
        /// where in it
        place: Option<ProfilePosition>,
        /// what is wrong, and what to do
        reason: String,
    },
}

impl Classify for StacksError {
    fn class(&self) -> ErrorClass {
        match self {
            StacksError::Io { .. } | StacksError::Format { .. } => ErrorClass::Usage,
        }
    }
}

impl StacksError {
    /// For `map_err`: an I/O error about `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| StacksError::Io { path: path.into(), source }
    }

    /// The file at `path` is not what it should be.
    pub(crate) fn bad_format(path: &Path, place: Option<ProfilePosition>, reason: impl Into<String>) -> Self {
        StacksError::Format { path: path.into(), place, reason: reason.into() }
    }
}

/// What a sampler by `event` cannot see, and how that misleads; `None` where it sees everything that runs.
pub fn hidden_from_event(event: &str, is_user_only: bool) -> Option<String> {
    if is_user_only || event.ends_with(":u") {
        return Some("the kernel: it was left out, so all time in it is missing".into());
    }
    if event.contains("cpu-clock") || event.contains("task-clock") {
        return Some(
            "what runs while interrupts are off: its time is missing, or lands where they are switched on again \
             (_raw_spin_unlock_irqrestore, _raw_spin_unlock_irq, __local_bh_enable_ip)"
                .into(),
        );
    }
    if event.starts_with("cycles") && !event.contains(":p") && !event.contains(":P") {
        return Some("the very instruction: samples land some instructions late".into());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::hidden_from_event;

    #[test]
    fn timers_are_blind_while_interrupts_are_off() {
        let hidden =
            ["cpu-clock", "cycles:u", "cycles"].map(|event| hidden_from_event(event, false).unwrap());
        insta::assert_snapshot!(hidden.join("\n"), @"
        what runs while interrupts are off: its time is missing, or lands where they are switched on again (_raw_spin_unlock_irqrestore, _raw_spin_unlock_irq, __local_bh_enable_ip)
        the kernel: it was left out, so all time in it is missing
        the very instruction: samples land some instructions late
        ");
        assert_eq!(hidden_from_event("cycles:P", false), None);
    }
}
