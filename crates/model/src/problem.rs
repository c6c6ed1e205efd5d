//! What is wrong with a file that a person wrote: which key, where, what to do, and the known name nearest to a
//! mistyped one.

use std::fmt;
use std::ops::Range;

/// A position in a text file, line and column from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPosition {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl TextPosition {
    /// The position of byte `offset` in `text`.
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
    /// A problem of `key`, without a position yet.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Problem { key: key.into(), message: message.into(), hint: None, span: None }
    }

    /// Adds what to do.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds its position.
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

/// The closest of `known` to `name`, if it is close enough to be a slip of the finger.
pub fn nearest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|candidate| (name_similarity(name, candidate), candidate));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.75).then_some(best.1)
}

/// From 0 to 1. In short names two letters that changed places weigh more than they should: `rnu` is a slip of `run`.
fn name_similarity(name: &str, candidate: &str) -> f64 {
    let one_slip = name.len().min(candidate.len()) > 2 && strsim::osa_distance(name, candidate) == 1;
    strsim::jaro_winkler(name, candidate).max(if one_slip { 0.9 } else { 0.0 })
}

/// Names that are listed whole; of more, a program's symbols say, only the nearest help.
const LISTED: usize = 40;

const NEAREST: usize = 10;

/// Characters of a name that are shown where it is one of very many.
const SHOWN: usize = 200;

/// A hint for an unknown name: the nearest one, or all of them; of very many the ten nearest, and how many more there are.
pub fn suggest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(near) = nearest_name(name, known.clone()) {
        return format!("did you mean `{near}`?");
    }
    let mut all: Vec<&str> = known.into_iter().collect();
    match all.len() {
        0 => "none is known here".into(),
        1..=LISTED => format!("known here: {}", all.join(", ")),
        many => {
            sort_by_similarity(name, &mut all);
            let cut = |name: &&str| match name.char_indices().nth(SHOWN) {
                Some((at, _)) => format!("{}…", name.get(..at).unwrap_or(name)),
                None => (*name).to_owned(),
            };
            let nearest: Vec<String> = all.iter().take(NEAREST).map(cut).collect();
            format!("the nearest: {}, and {} more", nearest.join(", "), many - NEAREST)
        }
    }
}

/// The names that are most like `name`, at most so many.
#[must_use]
pub fn nearest_names<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let mut all: Vec<&str> = known.into_iter().collect();
    sort_by_similarity(name, &mut all);
    all.truncate(most);
    all
}

fn sort_by_similarity(name: &str, all: &mut [&str]) {
    all.sort_by_cached_key(|candidate| std::cmp::Reverse((name_similarity(name, candidate) * 1e6) as u64));
}

/// serde's message without the names of Rust's types.
pub(crate) fn without_rust_types(message: &str) -> String {
    let types = [
        ("expected u32", "expected a whole number, 0 or more"),
        ("expected u64", "expected a whole number, 0 or more"),
        ("expected i64", "expected a whole number"),
        ("expected f64", "expected a number"),
        ("expected a string", "expected a text"),
        ("expected a map", "expected a table"),
        ("expected a sequence", "expected a list"),
        ("data did not match any variant of untagged enum Value", "expected a text, a number or a boolean"),
    ];
    types.iter().fold(message.replace('\n', ": "), |text, (rust, plain)| text.replace(rust, plain))
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

    #[test]
    fn slips_are_mended_and_strangers_get_the_list() {
        assert_eq!(nearest_name("iteratons", ["iterations", "order"]), Some("iterations"));
        assert_eq!(nearest_name("rnu", ["run", "list"]), Some("run"));
        assert_eq!(nearest_name("rm", ["run", "list"]), None);
        assert_eq!(suggest_name("zzz", ["a", "b"]), "known here: a, b");
        assert_eq!(suggest_name("zzz", []), "none is known here");
    }

    #[test]
    fn of_very_many_names_the_nearest_are_told_and_how_many_more() {
        let mut all: Vec<String> = (0..5000).map(|n| format!("function_{n:04}")).collect();
        all.push("zzy_and_more".into());
        all.push("z".repeat(100_000));
        let text = suggest_name("zzzy", all.iter().map(String::as_str));
        assert!(
            text.len() < 1000 && text.ends_with(", and 4992 more") && text.contains("zzy_and_more"),
            "{text}"
        );
    }
}
