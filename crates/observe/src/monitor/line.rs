//! Lines of a text of the kernel, and what is said of one that is not understood.

/// A line that a parser does not understand; its file's name is added by whoever read the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MalformedLine {
    /// From 1.
    pub line: usize,
    /// What was expected and what stood there.
    pub description: String,
}

impl MalformedLine {
    /// `wanted` was expected for `subject`, and `found` stood there (shown shortened).
    pub(super) fn new(line: usize, wanted: &str, subject: &str, found: &str) -> Self {
        let found: String = found.chars().take(60).collect();
        MalformedLine { line, description: format!("{wanted} was expected for {subject}, found `{found}`") }
    }
}

/// The lines of `text` that hold something, each with its number from 1.
pub(super) fn numbered_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .filter(|(_, line)| !line.trim().is_empty())
}
