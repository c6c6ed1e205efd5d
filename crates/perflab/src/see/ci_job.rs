//! Verdicts in a job of continuous integration: its formats on standard output, and the table on the page of a GitHub workflow's run.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use perflab_model::untrusted_text::escape_controls_in_line;
use perflab_present::ci_tests::CiTests;
use perflab_present::comparison::OutputFormat;
use rustix::fs::OFlags;

use crate::app::App;
use crate::failure::Failure;

/// Names the file to which a step of a GitHub workflow adds Markdown.
const SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// The summary of a step that is larger is not shown at all.
/// <https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands#step-isolation-and-limits>
const MOST_BYTES: usize = 1 << 20;

/// Says that a text was cut.
const CUT: &str = "\n_Cut off: the summary of a step has room for 1 MiB; `--format table` prints all._\n";

/// Prints tests where the format is one for continuous integration, and in GitHub's adds `markdown` to the summary of the step; `false`
/// where it is another format.
///
/// # Errors
/// Standard output cannot be written. A summary that cannot is a warning: what was found is not lost over it.
pub fn print_ci_tests(
    context: &App,
    tests: impl FnOnce() -> CiTests,
    markdown: impl FnOnce() -> Result<String, Failure>,
) -> Result<bool, Failure> {
    if !context.format.is_for_ci() {
        return Ok(false);
    }
    let tests = tests();
    context.print_text(&tests.render(context.format).unwrap_or_default())?;
    if context.format != OutputFormat::Github {
        for warning in tests.warnings() {
            stderr_line!("warning: {}", escape_controls_in_line(warning));
        }
        return Ok(true);
    }
    let Some(file) = std::env::var_os(SUMMARY).filter(|file| !file.is_empty()) else { return Ok(true) };
    if let Err(error) = append_markdown(Path::new(&file), markdown()?) {
        let file = file.to_string_lossy();
        let file = escape_controls_in_line(&file);
        stderr_line!("warning: the table is not in the summary of the step: cannot write {file}: {error}");
    }
    Ok(true)
}

fn append_markdown(file: &Path, markdown: String) -> io::Result<()> {
    // A pipe that nobody reads is an error, not a wait without end.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut opened = OpenOptions::new().append(true).create(true).custom_flags(flags).open(file)?;
    let there = usize::try_from(opened.metadata()?.len()).unwrap_or(usize::MAX);
    // A paragraph of its own, whatever was written before.
    let before = if there > 0 { "\n\n" } else { "" };
    let room = MOST_BYTES.saturating_sub(there.saturating_add(before.len()));
    let text = keep_whole_lines(markdown, room);
    if text.is_empty() {
        return Err(io::Error::other("it has no room left of its 1 MiB"));
    }
    opened.write_all((before.to_owned() + &text).as_bytes())
}

/// A text, or as many whole lines of it as there is room for with a line that says so; nothing where there is no room for that.
fn keep_whole_lines(text: String, room: usize) -> String {
    if text.len() < room {
        return text + "\n";
    }
    if room < CUT.len() {
        return String::new();
    }
    let mut kept = String::new();
    for line in text.lines() {
        if kept.len() + line.len() + CUT.len() + 1 > room {
            break;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    kept + CUT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_between_lines_and_says_so() {
        assert_eq!(keep_whole_lines("a\nb".into(), 5), "a\nb\n");
        let rows = || "| a row of twenty |\n".repeat(100_000);
        let long = keep_whole_lines(rows(), MOST_BYTES);
        assert!(long.len() < MOST_BYTES && long.contains("Cut off"));
        assert!(long.lines().next_back().is_some_and(|line| line.starts_with("_Cut off")));
        assert!(keep_whole_lines(rows(), 200).len() <= 200 && keep_whole_lines(rows(), 20).is_empty());
    }

    #[test]
    fn a_summary_is_never_longer_than_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("summary.md");
        std::fs::write(&file, "x".repeat(MOST_BYTES - 200)).unwrap();
        append_markdown(&file, "| a row of twenty |\n".repeat(100)).unwrap();
        let length = std::fs::metadata(&file).unwrap().len() as usize;
        assert!(length <= MOST_BYTES && length > MOST_BYTES - 200);
        assert!(append_markdown(&file, "more".repeat(100)).is_err());
    }

    #[test]
    fn a_pipe_that_nobody_reads_is_no_summary() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        assert!(append_markdown(&pipe, "a table".into()).is_err());
    }
}
