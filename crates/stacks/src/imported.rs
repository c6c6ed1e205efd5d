//! What every format gives: a profile, and what is to be said about it.

use std::fmt;

use perflab_model::profile::{
    DEEPEST_STACK, ProfileSummary, SampleCounts, StackBatch, StackSample, StackTreeBuilder, count_samples,
};
use perflab_model::{Facts, Nanos};

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
