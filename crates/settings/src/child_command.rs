//! Commands that perflab runs for itself: a level's apply, mkfs, mount, and what reaches other machines (ssh, virsh).

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use perflab_model::{Nanos, StopRequest};
use perflab_workload::{Invocation, end_process_tree, end_with_perflab};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::Signal;

use crate::error::SettingError;

/// How long a level's apply or undo may take; docs/studies.md says so, too.
const LIMIT: Duration = Duration::from_secs(600);

/// How long what is ended may take to end by itself.
const GRACE: Duration = Duration::from_secs(1);

/// How much of its output is looked at.
const MOST: u64 = 16 << 20;

/// Runs argv to its end. Standard output comes back; a failure carries the last line of stderr.
pub fn run_command(argv: &[String]) -> Result<String, SettingError> {
    run_within_limit(argv, None, None)
}

/// Runs a level's apply, for so long as it may take; it is ended where `stop` is set in the meantime.
pub(crate) fn run_level_command(argv: &[String], stop: Option<&AtomicBool>) -> Result<(), SettingError> {
    run_within_limit(argv, Some(LIMIT), stop).map(drop)
}

/// Runs a level's undo, for so long as it may take. One that SIGTERM ended is run once more: who cancels a job of a cluster sends it
/// to each process there, also to the command that puts back what the job did.
pub(crate) fn run_undo_command(argv: &[String]) -> Result<(), SettingError> {
    let (program, arguments) = split_command(argv)?;
    let run = || wait_for_end(Command::new(program).args(arguments).stdin(Stdio::null()), Some(LIMIT), None);
    let ended = match run() {
        Ok(CommandEnd::Ended(output)) if output.status.signal() == Some(Signal::TERM.as_raw()) => run(),
        ended => ended,
    };
    judge_end(ended).map(drop).map_err(|failure| command_error(argv, failure))
}

/// Runs another machine's program to its end (ssh, virsh), as [`Command::output`] does; whoever wishes to stop does not wait for its
/// answer, and it is ended.
pub fn run_stoppable_command(command: &mut Command, stop: &StopRequest) -> io::Result<Output> {
    match wait_for_end(command, None, Some(&stop.flag()))? {
        CommandEnd::Ended(output) => Ok(output),
        CommandEnd::Stopped | CommandEnd::Late(_) => Err(io::Error::other("stopped before it had answered")),
    }
}

fn run_within_limit(
    argv: &[String],
    limit: Option<Duration>,
    stop: Option<&AtomicBool>,
) -> Result<String, SettingError> {
    let (program, arguments) = split_command(argv)?;
    run_to_end(Command::new(program).args(arguments), limit, stop)
        .map_err(|failure| command_error(argv, failure))
}

fn split_command(argv: &[String]) -> Result<(&String, &[String]), SettingError> {
    let nothing = || command_error(argv, CommandFailure::Failed("there is no command".into()));
    argv.split_first().ok_or_else(nothing)
}

fn command_error(argv: &[String], failure: CommandFailure) -> SettingError {
    let command = argv.join(" ");
    match failure {
        CommandFailure::Stopped => SettingError::Stopped { command },
        CommandFailure::Failed(reason) => SettingError::Command { command, reason },
    }
}

/// Runs a user's command that is about a run: a hook, a clean-up. What it leaves in the background is left there.
///
/// # Errors
/// Why it failed, with the last line of its stderr; or that it was stopped.
pub fn run_user_command(
    invocation: &Invocation,
    limit: Nanos,
    stop: Option<&AtomicBool>,
) -> Result<(), CommandFailure> {
    let Some((program, arguments)) = invocation.argv.split_first() else {
        return Err(CommandFailure::Failed("there is no command".into()));
    };
    let mut command = Command::new(program);
    command.args(arguments).envs(invocation.environment.iter().map(|(name, value)| (name, value)));
    if let Some(directory) = &invocation.directory {
        command.current_dir(directory);
    }
    run_to_end(&mut command, Some(limit.into()), stop).map(drop)
}

/// Why a command did not do what it was to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandFailure {
    /// It was stopped, as was asked.
    Stopped,
    /// How it ended, with the last line of its stderr.
    Failed(String),
}

/// What it printed to standard output.
fn run_to_end(
    command: &mut Command,
    limit: Option<Duration>,
    stop: Option<&AtomicBool>,
) -> Result<String, CommandFailure> {
    judge_end(wait_for_end(command.stdin(Stdio::null()), limit, stop))
}

/// What it printed to standard output, where it went well.
fn judge_end(ended: io::Result<CommandEnd>) -> Result<String, CommandFailure> {
    match ended.map_err(|error| CommandFailure::Failed(error.to_string()))? {
        CommandEnd::Ended(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        CommandEnd::Ended(Output { status, stderr, .. }) => {
            let output = String::from_utf8_lossy(&stderr);
            let last =
                output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
            Err(CommandFailure::Failed(format!("{status}: {last}")))
        }
        CommandEnd::Stopped => Err(CommandFailure::Stopped),
        CommandEnd::Late(limit) => {
            let limit = Nanos::from(limit);
            Err(CommandFailure::Failed(format!(
                "it went on for more than {limit}, and was ended; what is to stay belongs in the background (`&`)"
            )))
        }
    }
}

/// How a command ended: by itself, or ended with its children, as it took longer than this or was cancelled.
enum CommandEnd {
    Ended(Output),
    Late(Duration),
    Stopped,
}

/// What it says goes to memory, not to a pipe: a daemon that it leaves behind holds that open for as long as it lives, and is
/// neither waited for nor ended by it.
fn wait_for_end(
    command: &mut Command,
    limit: Option<Duration>,
    stop: Option<&AtomicBool>,
) -> io::Result<CommandEnd> {
    let (mut stdout, mut stderr) = (create_memory_file()?, create_memory_file()?);
    end_with_perflab(command);
    let mut child = command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?).spawn()?;
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            let (stdout, stderr) = (read_tail(&mut stdout), read_tail(&mut stderr));
            return Ok(CommandEnd::Ended(Output { status, stdout, stderr }));
        }
        let is_stopped = stop.is_some_and(|stop| stop.load(Ordering::SeqCst));
        let late = limit.filter(|limit| begun.elapsed() > *limit);
        if is_stopped || late.is_some() {
            end_process_tree(child.id(), GRACE);
            let _ = child.wait();
            return Ok(late.filter(|_| !is_stopped).map_or(CommandEnd::Stopped, CommandEnd::Late));
        }
        // A quick one is not held up, and a slow one is not looked at all the time.
        std::thread::sleep(
            (begun.elapsed() / 8).clamp(Duration::from_micros(200), Duration::from_millis(20)),
        );
    }
}

fn create_memory_file() -> io::Result<File> {
    Ok(File::from(memfd_create("perflab-command", MemfdFlags::CLOEXEC)?))
}

/// What was written so far, or the end of it.
fn read_tail(file: &mut File) -> Vec<u8> {
    let mut bytes = Vec::new();
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let begin = io::SeekFrom::Start(length.saturating_sub(MOST));
    let _ = file.seek(begin).and_then(|_| file.take(MOST).read_to_end(&mut bytes));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell_argv(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(String::from).to_vec()
    }

    #[test]
    fn a_daemon_that_is_left_behind_is_not_waited_for_and_may_go_on_talking() {
        let home = tempfile::tempdir().unwrap();
        let (go, talked) = (home.path().join("go"), home.path().join("talked"));
        let script = format!(
            "echo begun; (while [ ! -e {0} ]; do sleep 0.02; done; echo on && : >{1}) &",
            go.display(),
            talked.display()
        );
        // It goes on only when this has returned.
        assert_eq!(run_command(&shell_argv(&script)).unwrap(), "begun\n");
        std::fs::write(&go, "").unwrap();
        while !talked.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn an_undo_that_a_cancelled_job_ends_is_run_once_more() {
        let home = tempfile::tempdir().unwrap();
        let tried = home.path().join("tried").display().to_string();
        run_undo_command(&shell_argv(&format!("[ -e {tried} ] || {{ : >{tried}; kill -TERM $$; }}")))
            .unwrap();
        assert!(run_undo_command(&shell_argv("kill -TERM $$")).is_err());
        std::fs::remove_file(&tried).unwrap();
        assert!(
            run_undo_command(&shell_argv(&format!("[ -e {tried} ] || {{ : >{tried}; exit 1; }}"))).is_err()
        );
    }

    #[test]
    fn what_takes_too_long_or_is_not_wanted_any_more_is_ended_with_its_children() {
        let home = tempfile::tempdir().unwrap();
        let lock = home.path().join("lock");
        let script = format!("(flock 9; exec sleep 600) 9>{} & wait", lock.display());
        let late =
            run_within_limit(&shell_argv(&script), Some(Duration::from_millis(300)), None).unwrap_err();
        let SettingError::Command { reason, .. } = late else { panic!("{late}") };
        insta::assert_snapshot!(reason, @"it went on for more than 300 ms, and was ended; what is to stay belongs in the background (`&`)");
        // Whoever held it is gone, with all who inherited it.
        File::open(&lock).unwrap().lock().unwrap();
        let stop = AtomicBool::new(true);
        let stopped = run_within_limit(&shell_argv("sleep 600"), Some(LIMIT), Some(&stop)).unwrap_err();
        assert!(matches!(stopped, SettingError::Stopped { .. }), "{stopped:?}");
    }

    #[test]
    fn the_last_words_of_a_failure_are_told() {
        let output =
            run_command(&shell_argv("echo first >&2; echo last >&2; exit 3")).unwrap_err().to_string();
        assert!(output.ends_with("exit status: 3: last"), "{output}");
    }

    #[test]
    fn what_is_said_is_kept_and_a_wish_to_stop_ends_what_is_silent() {
        let stop = StopRequest::new();
        let talks = &mut Command::new("sh");
        let output =
            run_stoppable_command(talks.args(["-c", "echo yes; echo no >&2; exit 3"]), &stop).unwrap();
        assert_eq!(
            (output.status.code(), &output.stdout[..], &output.stderr[..]),
            (Some(3), &b"yes\n"[..], &b"no\n"[..])
        );
        let other = stop.clone();
        let asker = std::thread::spawn(move || other.request_stop());
        assert!(run_stoppable_command(Command::new("sleep").arg("1000"), &stop).is_err());
        asker.join().unwrap();
    }
}
