//! What a step of a GitHub workflow found, on the page of its run: `--format github` adds the table to the file that the workflow names.

use std::fs::OpenOptions;
use std::io::Write as _;

use perflab_present::comparison::OutputFormat;

use crate::app::App;
use crate::failure::{Failure, UsageError};

/// The file to which a step adds Markdown.
const FILE: &str = "GITHUB_STEP_SUMMARY";

/// The summary of a step that is larger is not shown at all.
/// <https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands#step-isolation-and-limits>
const MOST_BYTES: usize = 1 << 20;

/// Adds what `markdown` gives to the summary of the step, in a workflow's run and with the format for it.
///
/// # Errors
/// The file cannot be written.
pub fn append_step_summary(
    context: &App,
    markdown: impl FnOnce() -> Result<String, Failure>,
) -> Result<(), Failure> {
    let file = std::env::var_os(FILE).filter(|file| !file.is_empty());
    let Some(file) = file.filter(|_| context.format == OutputFormat::Github) else { return Ok(()) };
    let text = shorten(markdown()?);
    let written = OpenOptions::new().append(true).create(true).open(&file);
    written.and_then(|mut opened| opened.write_all(text.as_bytes())).map_err(|error| {
        let hint = format!("{FILE} names it: unset it, or name a file that can be written");
        UsageError::new(format!("cannot write {}: {error}", file.display()), hint).into()
    })
}

/// Whole lines of a text that is too long, and a line that says so.
fn shorten(text: String) -> String {
    const REST: &str =
        "\n_Cut off: the summary of a step has room for 1 MiB. `perflab compare` prints all._\n";
    if text.len() < MOST_BYTES {
        return text + "\n";
    }
    let mut kept = String::new();
    for line in text.lines() {
        if kept.len() + line.len() + REST.len() + 2 > MOST_BYTES {
            break;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    kept + REST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_between_lines_and_says_so() {
        assert_eq!(shorten("a\nb".into()), "a\nb\n");
        let long = shorten("| a row of twenty |\n".repeat(100_000));
        assert!(long.len() < MOST_BYTES && long.contains("Cut off"));
        assert!(long.lines().next_back().is_some_and(|line| line.starts_with("_Cut off")));
    }
}
