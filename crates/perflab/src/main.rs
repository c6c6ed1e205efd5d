//! perflab: tells you what a change does to a Linux system.
//!
//! The one binary: the table of verbs is in `cli.rs`, each verb is its arguments and one call, and here alone a source of
//! events meets its consumers. Exit codes are in [`failure`].

#![warn(clippy::print_stderr, reason = "`stderr_line!` does not end what is done where nobody listens")]

#[macro_use]
mod stderr;
pub mod app;
mod archive_place;
mod cli;
mod durable_file;
mod failure;
mod file_runs;
mod gate_args;
mod help;
mod instruments;
pub mod internal;
mod inventory_file;
mod keep;
mod laboratory;
mod measure;
mod output_path;
mod quantities;
mod remote_copy;
mod see;
mod selection;
mod signals;
mod study_source;
mod verb;

use std::process::ExitCode;

use perflab_settings::SettingError;

use crate::app::App;
use crate::cli::TypedCommand;
use crate::failure::{Exit, Failure};

fn main() -> ExitCode {
    if perflab_guest::is_guest_init() {
        // In a guest that perflab booted, whatever words the kernel was given.
        perflab_guest::run_init();
    }
    if let Some(place) = perflab_guest::guest_agent_address() {
        return crate::internal::run_guest_agent(&place).into();
    }
    let typed = match TypedCommand::read() {
        Ok(typed) => typed,
        Err(asked) => return crate::failure::print_usage_error(&asked),
    };
    let ended = match failure::is_for_git_bisect() {
        // The code of a panic would mean that the commit is bad.
        true => std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run_verb(&typed)))
            .unwrap_or(Ok(Exit::UNEXPECTED)),
        false => run_verb(&typed),
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(failure) => {
            failure.print();
            failure.exit().into()
        }
    }
}

fn run_verb(typed: &TypedCommand) -> Result<Exit, Failure> {
    if typed.writes_temporary_files() {
        check_temporary_folder()?;
    }
    let app = App::new(&typed.global, cli::build_command)?;
    signals::remember_archive(app.archive_path());
    match app.remote.clone().filter(|_| typed.works_on_runs()) {
        Some(url) => remote_copy::run_on_copy(&app, &url, typed.verb, || typed.run(&app)),
        None => typed.run(&app),
    }
}

/// Refuses a folder for temporary files that somebody else may change, before any verb writes there: who may replace what lies in it
/// says what is unpacked where.
fn check_temporary_folder() -> Result<(), Failure> {
    if std::env::var_os("TMPDIR").is_none() {
        return Ok(());
    }
    match perflab_settings::temporary_folder() {
        // What needs it says so.
        Ok(_) | Err(SettingError::Folder { .. }) => Ok(()),
        Err(refused) => Err(refused.into()),
    }
}
