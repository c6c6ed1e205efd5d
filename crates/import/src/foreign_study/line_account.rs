//! What became of each line of a file that a study is made from.

use std::ops::RangeInclusive;

use serde::Serialize;

/// A study made from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvertedStudy {
    /// The study, with comments.
    pub text: String,
    /// What became of each line of the file.
    pub account: LineAccount,
}

/// What became of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "fate", content = "about", rename_all = "kebab-case")]
pub enum LineFate {
    /// Nothing stands there, or a comment.
    Empty,
    /// The study says it; with what it says.
    Translated(String),
    /// It has no meaning in a study; with the reason.
    NoMeaning(String),
    /// It may have meant something, and the study lacks it; with the reason.
    NotUnderstood(String),
}

/// The fates of all lines of a file, the first line's first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LineAccount {
    lines: Vec<LineFate>,
    /// Lines of which something was left out: whatever else stands on them does not make that good.
    #[serde(skip)]
    left_out: std::collections::BTreeSet<usize>,
}

/// How many lines had which fate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FateCounts {
    /// Lines of the file.
    pub lines: usize,
    /// Of these, comments and lines without anything.
    pub empty: usize,
    /// Lines that the study says.
    pub translated: usize,
    /// Lines that have no meaning in a study.
    pub no_meaning: usize,
    /// Lines that the study lacks.
    pub not_understood: usize,
}

impl LineAccount {
    /// Of this text, in which no line is understood so far.
    pub(super) fn of_text(text: &str) -> Self {
        let is_empty = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
        let fate = |line| match is_empty(line) {
            true => LineFate::Empty,
            false => LineFate::NotUnderstood("it belongs to nothing that could be read".into()),
        };
        LineAccount { lines: text.lines().map(fate).collect(), ..LineAccount::default() }
    }

    /// Gives lines, counted from 1, a fate; those that are empty stay so.
    pub(super) fn set(&mut self, lines: RangeInclusive<usize>, fate: &LineFate) {
        for line in lines {
            let Some(known) = line.checked_sub(1).and_then(|at| self.lines.get_mut(at)) else { continue };
            if *known != LineFate::Empty && !self.left_out.contains(&line) {
                *known = fate.clone();
                if matches!(fate, LineFate::NotUnderstood(_)) {
                    self.left_out.insert(line);
                }
            }
        }
    }

    /// The lines with their numbers, from 1.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &LineFate)> {
        (1..).zip(&self.lines)
    }

    /// Lines that follow one another and have the same fate, joined.
    #[must_use]
    pub fn join_lines(&self) -> Vec<(RangeInclusive<usize>, &LineFate)> {
        let mut joined: Vec<(RangeInclusive<usize>, &LineFate)> = Vec::new();
        for (line, fate) in self.iter() {
            match joined.last_mut() {
                Some((lines, known)) if *known == fate => *lines = *lines.start()..=line,
                _ => joined.push((line..=line, fate)),
            }
        }
        joined
    }

    /// How many lines had which fate.
    #[must_use]
    pub fn count(&self) -> FateCounts {
        let mut counts = FateCounts { lines: self.lines.len(), ..FateCounts::default() };
        for fate in &self.lines {
            match fate {
                LineFate::Empty => counts.empty += 1,
                LineFate::Translated(_) => counts.translated += 1,
                LineFate::NoMeaning(_) => counts.no_meaning += 1,
                LineFate::NotUnderstood(_) => counts.not_understood += 1,
            }
        }
        counts
    }
}
