//! An error with its class, how it is printed, and exit codes.
//!
//! An error says its own class ([`Classify`]); here it gets its context on the way up, and is printed once, on stderr, with its
//! position in the file where there is one. Exit codes are part of the interface: documented in `--help` and the book.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report};
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::untrusted_text::escape_controls;
use perflab_model::{Problem, Problems};

/// What the process tells its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// all is well
    Fine,
    /// what ended it early: 1 to 4, and 6
    Class(ErrorClass),
    /// `--fail-if` found what it looks for, `guard` something worse
    Regression,
    /// `guard`, `noise` or `--fail-if` had nothing that it could judge: no pass
    NothingJudged,
    /// the code of a program that perflab ran in its own place
    Program(u8),
}

impl Exit {
    /// What should not happen.
    pub const UNEXPECTED: Exit = Exit::Class(ErrorClass::Unexpected);

    /// A workload failed, or the run was stopped.
    pub const WORKLOAD_FAILED: Exit = Exit::Class(ErrorClass::WorkloadFailed);

    /// Settings are not what they were; what they hold now was printed.
    pub const SETTINGS_LEFT: Exit = Exit::Class(ErrorClass::SettingsLeft);

    /// As processes have it.
    pub const fn code(self) -> u8 {
        match self {
            Exit::Fine => 0,
            Exit::Class(ErrorClass::Unexpected) => 1,
            Exit::Class(ErrorClass::Usage) => 2,
            Exit::Class(ErrorClass::Environment) => 3,
            Exit::Class(ErrorClass::WorkloadFailed) => 4,
            Exit::Regression => 5,
            Exit::Class(ErrorClass::SettingsLeft) => 6,
            Exit::NothingJudged => 7,
            Exit::Program(code) => code,
        }
    }
}

impl Exit {
    /// The class of what ended it; of an end that is none, that of what should not happen.
    pub const fn class(self) -> ErrorClass {
        match self {
            Exit::Class(class) => class,
            Exit::Fine | Exit::Regression | Exit::NothingJudged | Exit::Program(_) => ErrorClass::Unexpected,
        }
    }

    /// As `git bisect run` reads it: 0 is good, 1 bad, 125 tells nothing of the commit, and with 128 it stops, because the next
    /// commit would fail in the same way.
    pub const fn code_for_git_bisect(self) -> u8 {
        match self {
            Exit::Fine => 0,
            Exit::Regression => 1,
            Exit::NothingJudged
            | Exit::Class(ErrorClass::Unexpected | ErrorClass::WorkloadFailed)
            | Exit::Program(_) => 125,
            Exit::Class(ErrorClass::Usage | ErrorClass::Environment | ErrorClass::SettingsLeft) => 128,
        }
    }
}

/// Whether `guard --for git-bisect` was typed, whatever else of the command line is wrong: then no code but 1 may mean that the
/// commit is bad.
pub fn is_for_git_bisect() -> bool {
    let mut words = std::env::args_os().skip(1);
    words.any(|word| word == "guard") && words.any(|word| word == "git-bisect" || word == "--for=git-bisect")
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        if is_for_git_bisect() { exit.code_for_git_bisect().into() } else { exit.code().into() }
    }
}

/// A mistake of the user's that has no type of its own below.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {hint}")]
pub struct UsageError {
    /// what is wrong
    pub message: String,
    /// what to do
    pub hint: String,
}

impl UsageError {
    /// A usage error.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        UsageError { message: message.into(), hint: hint.into() }
    }
}

impl Classify for UsageError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }
}

/// A program that was to be measured and never came so far; what it printed has been shown.
#[derive(Debug, thiserror::Error)]
#[error("the program never started: {0}; nothing was learnt or measured")]
pub struct ProgramNeverStartedError(pub String);

impl Classify for ProgramNeverStartedError {
    fn class(&self) -> ErrorClass {
        ErrorClass::WorkloadFailed
    }
}

/// What no type tells: it should not happen, or is another program's fault.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnexpectedError(pub String);

impl Classify for UnexpectedError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Unexpected
    }
}

/// ^C, in the middle of what can be left as it is.
#[derive(Debug, thiserror::Error)]
#[error("stopped: what was moved stays moved, and the rest lies where it was")]
pub struct WorkStoppedError;

impl Classify for WorkStoppedError {
    fn class(&self) -> ErrorClass {
        ErrorClass::WorkloadFailed
    }
}

/// Nobody reads our standard output any more (`perflab list | head`): no failure.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads standard output any more")]
struct StdoutClosedError;

/// What ended a verb: an error, what it means to the caller, and what was being done.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    error: Box<dyn Error + Send + Sync>,
    /// what was being done, the innermost first
    contexts: Vec<Cow<'static, str>>,
    problems: Option<Problems>,
}

impl<E: Classify + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure {
            exit: Exit::Class(error.class()),
            problems: error.problems().cloned(),
            error: Box::new(error),
            contexts: Vec::new(),
        }
    }
}

impl Failure {
    /// What writing to standard output failed with: nothing to report where its reader has enough.
    pub fn of_stdout(error: io::Error) -> Self {
        if error.kind() != io::ErrorKind::BrokenPipe {
            return UnexpectedError(format!("cannot write to standard output: {error}")).into();
        }
        Failure { exit: Exit::Fine, error: Box::new(StdoutClosedError), contexts: Vec::new(), problems: None }
    }

    /// The same with what was being done.
    pub fn context(mut self, doing: impl Into<Cow<'static, str>>) -> Self {
        self.contexts.push(doing.into());
        self
    }

    /// How the process ends.
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// Prints it on stderr; mistakes in a file in their places.
    pub fn print(&self) {
        match &self.problems {
            Some(problems) => print_problems(problems),
            None if self.exit == Exit::Fine => {}
            None => stderr_line!("error: {self}"),
        }
    }
}

/// What was being done, and the error with its causes, each of which is printed once.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outermost: &(dyn Error + 'static) = &*self.error;
        let causes = std::iter::successors(Some(outermost), |error| (*error).source());
        let contexts = self.contexts.iter().rev().map(ToString::to_string);
        let mut message = String::new();
        for text in contexts.chain(causes.map(ToString::to_string)) {
            // A transparent error repeats its source, and others name it in their own text.
            if !message.contains(&text) {
                message = if message.is_empty() { text } else { format!("{message}: {text}") };
            }
        }
        f.write_str(&message)
    }
}

/// Says what was being done when something failed.
pub trait FailureContext<T> {
    /// With what was being done.
    ///
    /// # Errors
    /// What there was, with its context.
    fn context(self, doing: impl Into<Cow<'static, str>>) -> Result<T, Failure>;

    /// The same, put together only where it is needed.
    ///
    /// # Errors
    /// What there was, with its context.
    fn with_context<C: Into<Cow<'static, str>>>(self, doing: impl FnOnce() -> C) -> Result<T, Failure>;
}

impl<T, E: Into<Failure>> FailureContext<T> for Result<T, E> {
    fn context(self, doing: impl Into<Cow<'static, str>>) -> Result<T, Failure> {
        self.map_err(|error| error.into().context(doing))
    }

    fn with_context<C: Into<Cow<'static, str>>>(self, doing: impl FnOnce() -> C) -> Result<T, Failure> {
        self.map_err(|error| error.into().context(doing()))
    }
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
pub fn print_usage_error(asked: &clap::Error) -> ExitCode {
    let code = match u8::try_from(asked.exit_code()).unwrap_or(2) {
        code if code != 0 && is_for_git_bisect() => Exit::Class(ErrorClass::Usage).code_for_git_bisect(),
        code => code,
    };
    let plain = asked.to_string();
    if let (true, Cow::Owned(visible)) = (asked.use_stderr(), escape_controls(&plain)) {
        // What was typed is quoted, and may have been made by others.
        stderr_line!("{}", visible.trim_end());
        return code.into();
    }
    match asked.print() {
        Err(error) if !asked.use_stderr() && error.kind() != io::ErrorKind::BrokenPipe => {
            stderr_line!("error: cannot write to standard output: {error}");
            Exit::UNEXPECTED.into()
        }
        // Nobody hears it: stderr is broken, or its reader has enough.
        _ => code.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_printed_once_wherever_the_text_before_names_it() {
        let error = Failure::from(UnexpectedError("no room".into()));
        let error = error.context("cannot write /a: no room; free some").context("saving");
        assert_eq!(error.to_string(), "saving: cannot write /a: no room; free some");
        let error = Failure::from(UnexpectedError("no room".into())).context("no room");
        assert_eq!(error.to_string(), "no room");
    }

    #[test]
    fn an_error_keeps_its_class_through_every_context() {
        let failed: Result<(), UsageError> = Err(UsageError::new("no such run", "name another"));
        let failure = failed.context("comparing").with_context(|| "again").unwrap_err();
        assert_eq!(failure.exit().code(), 2);
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(Failure::from(denied).exit().code(), 3);
        assert_eq!(Failure::of_stdout(io::ErrorKind::BrokenPipe.into()).exit(), Exit::Fine);
        assert_eq!(Failure::of_stdout(io::ErrorKind::Other.into()).exit().code(), 1);
    }

    #[test]
    fn exit_codes_are_those_of_the_help() {
        let classes = [
            ErrorClass::Unexpected,
            ErrorClass::Usage,
            ErrorClass::Environment,
            ErrorClass::WorkloadFailed,
            ErrorClass::SettingsLeft,
        ];
        assert_eq!(classes.map(|class| Exit::Class(class).code()), [1, 2, 3, 4, 6]);
        let others = [Exit::Fine, Exit::Regression, Exit::NothingJudged, Exit::Program(9)];
        assert_eq!(others.map(Exit::code), [0, 5, 7, 9]);
        assert_eq!(others.map(Exit::code_for_git_bisect), [0, 1, 125, 125]);
        assert_eq!(classes.map(|class| Exit::Class(class).code_for_git_bisect()), [125, 128, 128, 125, 128]);
    }
}
