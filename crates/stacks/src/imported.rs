//! What every format gives: a profile, and what is to be said about it.

use std::fmt;

use perflab_model::profile::{DEEPEST_STACK, Parts, Profiled, StackBatch, StackSample, Weaver, parts};
use perflab_model::{Facts, Nanos};

/// Remarks that are kept; all are counted.
const KEPT: usize = 20;

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// a line, from 1
    Line(u64),
    /// bytes from the beginning
    Offset(u64),
    /// bytes from the beginning of what was compressed in the file
    Unpacked(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "{line}"),
            Place::Offset(offset) => write!(f, "byte {offset}"),
            Place::Unpacked(offset) => write!(f, "byte {offset} of the unpacked records"),
        }
    }
}

/// Something in the file that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Where.
    pub place: Place,
    /// Why.
    pub reason: String,
}

/// Something a person should know, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What.
    pub message: String,
    /// What to do.
    pub advice: String,
}

/// A profile that was read from a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Imported {
    /// Frames, stacks and samples. Times count from 0, the first sample.
    pub batch: StackBatch,
    /// What the file says of itself.
    pub about: Profiled,
    /// What it says of the machine: `profile.hostname` and the like.
    pub facts: Facts,
    /// When the first sample was taken, since 1970, where the file says.
    pub begun: Option<Nanos>,
    /// What could not be read: the first ones; `about.unreadable` counts all.
    pub remarks: Vec<Remark>,
    /// What was assumed or missing.
    pub notes: Vec<Note>,
}

impl Imported {
    /// What became of every sample.
    pub fn parts(&self) -> Parts {
        parts(&self.about, &self.batch.samples)
    }
}

/// A profile while it is being read.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) weaver: Weaver,
    pub(crate) samples: Vec<StackSample>,
    pub(crate) about: Profiled,
    pub(crate) facts: Facts,
    pub(crate) begun: Option<Nanos>,
    remarks: Vec<Remark>,
    notes: Vec<Note>,
}

impl Reading {
    /// Counts something that could not be read.
    pub(crate) fn unreadable(&mut self, place: Place, reason: impl Into<String>) {
        self.about.unreadable += 1;
        self.remark(place, reason);
    }

    /// Says something about a place, without counting a sample as unreadable.
    pub(crate) fn remark(&mut self, place: Place, reason: impl Into<String>) {
        if self.remarks.len() < KEPT {
            self.remarks.push(Remark { place, reason: reason.into() });
        }
    }

    pub(crate) fn note(&mut self, message: impl Into<String>, advice: impl Into<String>) {
        self.notes.push(Note { message: message.into(), advice: advice.into() });
    }

    pub(crate) fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// The profile; times are made to count from the first sample.
    pub(crate) fn finish(mut self) -> Imported {
        let cut = self.weaver.frames_cut();
        if cut > 0 {
            let message =
                format!("{cut} frames lie deeper than {DEEPEST_STACK} in their stacks, and are left out");
            self.note(message, "nothing is to be done where the program recurses without end");
        }
        let first = self.samples.iter().filter_map(|sample| sample.at).min();
        for sample in &mut self.samples {
            sample.at = sample.at.map(|at| at.since(first.unwrap_or_default()));
        }
        Imported {
            batch: self.weaver.batch(0, self.samples),
            about: self.about,
            facts: self.facts,
            begun: self.begun,
            remarks: self.remarks,
            notes: self.notes,
        }
    }
}
