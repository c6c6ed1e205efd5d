//! `perflab completions`: the script by which a shell completes perflab's command line; and `perflab complete`, which the script asks.
//!
//! Whoever presses TAB wants no messages: what cannot be read is left out, and nothing is ever written.

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use clap::Args;
use clap_complete::CompletionCandidate;
use clap_complete::engine::complete;
use perflab_model::named::Named;

use crate::app::{App, named_parser};
use crate::failure::{Exit, Failure};
use crate::help::completed_values::add_completed_values;
use crate::output_path::write_to_stdout;
use crate::verb::Verb;

/// A shell that perflab's command line is completed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletedShell {
    /// GNU Bash, 4 or later
    Bash,
    /// Z shell
    Zsh,
    /// fish
    Fish,
}

impl Named for CompletedShell {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (CompletedShell::Bash, "bash", "GNU Bash"),
        (CompletedShell::Zsh, "zsh", "the Z shell"),
        (CompletedShell::Fish, "fish", "fish"),
    ];
}

impl CompletedShell {
    /// What the shell reads once.
    const fn script(self) -> &'static str {
        match self {
            CompletedShell::Bash => include_str!("perflab.bash"),
            CompletedShell::Zsh => include_str!("perflab.zsh"),
            CompletedShell::Fish => include_str!("perflab.fish"),
        }
    }
}

/// Print the script by which a shell completes perflab's words
#[derive(Debug, Args)]
#[command(after_help = "\
Completed are verbs, options and what they take: studies, workloads, settings, monitors, events;
of the archive runs, labels, factors and their levels, cases and metrics. The packages install
these scripts. Without one, for you alone:

  perflab completions bash >~/.local/share/bash-completion/completions/perflab
  perflab completions zsh >~/.zfunc/_perflab  with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc
  perflab completions fish >~/.config/fish/completions/perflab.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_parser = named_parser::<CompletedShell>())]
    pub shell: CompletedShell,
}

impl Verb for CompletionsArgs {
    fn run(&self, _: &App) -> Result<Exit, Failure> {
        write_to_stdout(self.shell.script().as_bytes())?;
        Ok(Exit::Fine)
    }
}

/// Print what may stand at the cursor, one a line
#[derive(Debug, Args)]
pub struct CompleteArgs {
    /// The shell that asks
    #[arg(value_parser = named_parser::<CompletedShell>())]
    shell: CompletedShell,
    /// The words up to the cursor; of bash before them the line, and what of it is replaced, as it splits words its own way
    #[arg(last = true)]
    words: Vec<OsString>,
}

impl Verb for CompleteArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        // Nobody is told what went wrong: the next key is pressed already.
        std::panic::set_hook(Box::new(|_| ()));
        let found = catch_unwind(AssertUnwindSafe(|| self.candidate_lines(app))).unwrap_or_default();
        write_to_stdout(found.as_bytes())?;
        Ok(Exit::Fine)
    }
}

impl CompleteArgs {
    fn candidate_lines(&self, app: &App) -> String {
        let words: Vec<String> = self.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let cursor = match (self.shell, words.as_slice()) {
            (CompletedShell::Bash, [line, replaced, raw @ ..]) => CursorWords::of_bash(line, replaced, raw),
            _ => CursorWords { words, ..CursorWords::default() },
        };
        let lines = list_candidates(app, &cursor.words);
        let lines = lines.iter().filter_map(|candidate| {
            let value = candidate.get_value().to_str()?;
            let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
            let help = help.lines().next().unwrap_or_default().replace('\t', " ");
            match self.shell {
                _ if value.contains(char::is_control) => None,
                CompletedShell::Bash => cursor.finish_in_bash(value),
                CompletedShell::Zsh | CompletedShell::Fish => Some(format!("{value}\t{help}")),
            }
        });
        lines.map(|line| line + "\n").collect()
    }
}

/// What may stand at the last of the words, in the order in which it is shown.
fn list_candidates(app: &App, words: &[String]) -> Vec<CompletionCandidate> {
    let Some((last, before)) = words.split_last() else { return Vec::new() };
    let mut command = add_completed_values((app.command_line)(), app, before);
    let here = std::env::current_dir().ok();
    let typed = words.iter().map(OsString::from).collect();
    let mut found = complete(&mut command, typed, words.len() - 1, here.as_deref()).unwrap_or_default();
    let is_option =
        |candidate: &CompletionCandidate| candidate.get_value().as_encoded_bytes().starts_with(b"-");
    // Options are many; who wants one types its dash.
    if last.is_empty() && found.iter().any(|candidate| !is_option(candidate)) {
        found.retain(|candidate| !is_option(candidate));
    }
    found
}

/// The words up to the cursor, and what the shell has of the last of them.
#[derive(Debug, Default, PartialEq, Eq)]
struct CursorWords {
    words: Vec<String>,
    /// Of bash, how much of the last word stands before what bash replaces.
    kept: String,
    /// Whether the last word began with a quote, behind which nothing is escaped.
    is_quoted: bool,
}

impl CursorWords {
    /// bash splits words at `=`, `:` and `@`, too: those with nothing between them on the line are joined again. `replaced` is what
    /// bash puts something else in the place of.
    fn of_bash(line: &str, replaced: &str, raw: &[String]) -> Self {
        let mut joined: Vec<String> = Vec::new();
        let mut rest = line;
        for word in raw {
            let trimmed = rest.trim_start();
            let is_apart = trimmed.len() < rest.len() || rest.is_empty() && line.ends_with(' ');
            match joined.last_mut().filter(|_| !is_apart) {
                Some(last) => last.push_str(word),
                None => joined.push(word.clone()),
            }
            rest = trimmed.strip_prefix(word.as_str()).unwrap_or_default();
        }
        let last = joined.pop().unwrap_or_default();
        let is_quoted = last.starts_with(['\'', '"']);
        let kept = last.strip_suffix(replaced).filter(|_| !is_quoted).unwrap_or_default().to_owned();
        let unquoted = if is_quoted { last.chars().skip(1).collect() } else { unescape_word(&last) };
        let mut words: Vec<String> = joined.iter().map(|word| unquote_word(word)).collect();
        words.push(unquoted);
        CursorWords { words, kept, is_quoted }
    }

    /// What bash puts in the place of the part of the word that it knows.
    fn finish_in_bash(&self, value: &str) -> Option<String> {
        let escaped = if self.is_quoted { value.to_owned() } else { escape_word(value) };
        Some(escaped.strip_prefix(&self.kept)?.to_owned())
    }
}

/// A whole word without its quotes.
fn unquote_word(word: &str) -> String {
    shlex::split(word).and_then(|mut words| words.pop()).unwrap_or_else(|| word.to_owned())
}

/// The beginning of a word without its backslashes.
fn unescape_word(word: &str) -> String {
    let mut letters = word.chars();
    let mut plain = String::new();
    while let Some(letter) = letters.next() {
        plain.push(if letter == '\\' { letters.next().unwrap_or(letter) } else { letter });
    }
    plain
}

/// A word as it is typed without quotes.
fn escape_word(value: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./,:=@%+~^".contains(letter);
    value.chars().fold(String::new(), |mut word, letter| {
        if !is_plain(letter) {
            word.push('\\');
        }
        word.push(letter);
        word
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_bash(line: &str, replaced: &str, raw: &[&str]) -> (Vec<String>, String) {
        let raw: Vec<String> = raw.iter().map(|word| (*word).to_owned()).collect();
        let read = CursorWords::of_bash(line, replaced, &raw);
        (read.words, read.kept)
    }

    #[test]
    fn words_that_bash_splits_are_joined() {
        let read = |line: &str, replaced: &str, raw: &[&str]| {
            let (words, kept) = read_bash(line, replaced, raw);
            (words.last().unwrap().clone(), kept, words.len())
        };
        let wanted = |last: &str, kept: &str| (last.to_owned(), kept.to_owned(), 3);
        // As bash 5 has them.
        assert_eq!(read("perflab show @lat", "@lat", &["perflab", "show", "@", "lat"]), wanted("@lat", ""));
        assert_eq!(
            read("perflab compare --by=pa", "pa", &["perflab", "compare", "--by", "=", "pa"]),
            wanted("--by=pa", "--by=")
        );
        assert_eq!(
            read("perflab compare --by=", "", &["perflab", "compare", "--by", "="]),
            wanted("--by=", "--by=")
        );
        assert_eq!(read("perflab compare ", "", &["perflab", "compare", ""]), wanted("", ""));
        assert_eq!(
            read("perflab show my\\ la", "my\\ la", &["perflab", "show", "my\\ la"]),
            wanted("my la", "")
        );
        assert_eq!(read("perflab show 'my la", "my la", &["perflab", "show", "'my la"]), wanted("my la", ""));
    }

    #[test]
    fn bash_is_given_the_rest_of_a_word() {
        let words = |kept: &str, is_quoted| CursorWords { words: Vec::new(), kept: kept.into(), is_quoted };
        assert_eq!(words("--by=", false).finish_in_bash("--by=pages").as_deref(), Some("pages"));
        assert_eq!(words("", false).finish_in_bash("my label; rm").as_deref(), Some("my\\ label\\;\\ rm"));
        assert_eq!(words("", true).finish_in_bash("my label").as_deref(), Some("my label"));
        assert_eq!(words("x=", false).finish_in_bash("y"), None);
    }
}
