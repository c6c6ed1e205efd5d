//! Where errors are said: once, on stderr, with the place in the file where there is one.

use std::io::{self, IsTerminal};

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue};
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report};
use perflab_model::{Problem, Problems};

use crate::arguments::Cli;

/// Whether the error is only that nobody reads our output any more (`perflab list | head`).
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    error.chain().any(io)
}

/// Prints an error and its causes.
pub fn print_failure(error: &anyhow::Error) {
    match error.downcast_ref::<Problems>() {
        Some(problems) => print_problems(problems),
        None => print_causes(error),
    }
}

fn print_causes(error: &anyhow::Error) {
    stderr_line!("error: {}", causes_text(error));
}

/// The error with its causes, each of which is said once.
fn causes_text(error: &anyhow::Error) -> String {
    let mut said = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        // A transparent error repeats its source, and others name it amid their words.
        if !said.contains(&text) {
            said = if said.is_empty() { text } else { format!("{said}: {text}") };
        }
    }
    said
}

/// For a person, the line of the file with a mark; for a pipe, one line a problem that editors can jump to.
fn print_problems(problems: &Problems) {
    if !io::stderr().is_terminal() {
        for line in problems.to_string().lines() {
            stderr_line!("error: {line}");
        }
        return;
    }
    let theme = match std::env::var_os("NO_COLOR") {
        Some(_) => GraphicalTheme::unicode_nocolor(),
        None => GraphicalTheme::unicode(),
    };
    let handler = GraphicalReportHandler::new_themed(theme);
    for problem in &problems.list {
        let report = problem_report(problems, problem);
        let mut text = String::new();
        if handler.render_report(&mut text, report.as_ref()).is_ok() {
            crate::stderr::write_stderr_coloured(&text);
        }
    }
}

fn problem_report(problems: &Problems, problem: &Problem) -> Report {
    let key = if problem.key.is_empty() { String::new() } else { format!("`{}`: ", problem.key) };
    let mut diagnostic = MietteDiagnostic::new(format!("{key}{}", problem.message));
    diagnostic.help = problem.hint.clone();
    if let Some(span) = &problem.span {
        diagnostic.labels = Some(vec![LabeledSpan::underline(span.clone())]);
    }
    Report::new(diagnostic).with_source_code(NamedSource::new(&problems.file, problems.text.clone()))
}

/// Prints help or a version where that was asked for, else what is wrong with the command line.
pub fn print_usage_error(asked: &mut clap::Error) -> std::process::ExitCode {
    suggest_verb(asked);
    let code = u8::try_from(asked.exit_code()).unwrap_or(2);
    match asked.print() {
        Err(error) if !asked.use_stderr() && error.kind() != io::ErrorKind::BrokenPipe => {
            stderr_line!("error: cannot write to stdout: {error}");
            crate::exit::Exit::Unexpected.into()
        }
        // Said to nobody: stderr is broken, or its reader has enough.
        _ => code.into(),
    }
}

/// What a slip is never taken for.
const NOT_SUGGESTED: &str = "rm";

/// Suggests a verb for one that is not there: the nearest that help shows. clap would suggest what is hidden, too.
fn suggest_verb(asked: &mut clap::Error) {
    let Some(ContextValue::String(wanted)) = asked.get(ContextKind::InvalidSubcommand).cloned() else {
        return;
    };
    let all = Cli::command();
    let mut verb = &all;
    for word in std::env::args().skip(1).take_while(|word| *word != wanted) {
        verb = verb.find_subcommand(word).unwrap_or(verb);
    }
    let shown = verb.get_subcommands().filter(|one| !one.is_hide_set()).map(clap::Command::get_name);
    let shown = shown.filter(|name| *name != NOT_SUGGESTED);
    match perflab_model::problem::nearest_name(&wanted, shown) {
        Some(near) => drop(asked.insert(ContextKind::SuggestedSubcommand, ContextValue::String(near.into()))),
        None => drop(asked.remove(ContextKind::SuggestedSubcommand)),
    }
}

#[cfg(test)]
mod tests {
    use super::causes_text;

    #[test]
    fn a_cause_is_said_once_wherever_the_words_before_name_it() {
        let error =
            anyhow::anyhow!("no room").context("cannot write /a: no room; free some").context("saving");
        assert_eq!(causes_text(&error), "saving: cannot write /a: no room; free some");
        assert_eq!(causes_text(&anyhow::anyhow!("no room").context("no room")), "no room");
    }
}
