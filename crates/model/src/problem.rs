//! What is wrong with a file that a person wrote: where it stands, which key, and what to do.

use std::fmt;
use std::ops::Range;

/// A place in a text file, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPosition {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl TextPosition {
    /// The place of byte `offset` in `text`.
    pub fn from_offset(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(line_start..).unwrap_or("").chars().count() + 1;
        TextPosition { line: before.matches('\n').count() + 1, column }
    }
}

/// One problem of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The dotted key, `workload[0].parameters.threads`; empty where the file is not even TOML.
    pub key: String,
    /// What is wrong, a lower-case fragment.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Which bytes of the text, where that is known.
    pub span: Option<Range<usize>>,
}

impl Problem {
    /// A problem of `key`, without a place yet.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Problem { key: key.into(), message: message.into(), hint: None, span: None }
    }

    /// Adds what to do.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds where it stands.
    #[must_use]
    pub fn with_span(mut self, span: Option<Range<usize>>) -> Self {
        self.span = span;
        self
    }
}

/// All problems of one file, with the text for showing them in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// The file as the user named it.
    pub file: String,
    /// Its text.
    pub text: String,
    /// At least one.
    pub list: Vec<Problem>,
}

impl std::error::Error for Problems {}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            self.write_problem(problem, f)?;
        }
        Ok(())
    }
}

impl Problems {
    fn write_problem(&self, problem: &Problem, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(span) = &problem.span {
            let place = TextPosition::from_offset(&self.text, span.start);
            write!(f, ":{}:{}", place.line, place.column)?;
        }
        write!(f, ": ")?;
        if !problem.key.is_empty() {
            write!(f, "`{}`: ", problem.key)?;
        }
        write!(f, "{}", problem.message)?;
        match &problem.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_file_line_column_key_and_remedy() {
        let problem =
            Problem::new("run.iterations", "must be at least 1").with_hint("write 10").with_span(Some(6..7));
        let problems =
            Problems { file: "s.toml".into(), text: "[run]\niterations=0".into(), list: vec![problem] };
        assert_eq!(problems.to_string(), "s.toml:2:1: `run.iterations`: must be at least 1; write 10");
    }
}
