//! `perflab` alone: what can be measured on this machine, and what to type next. Nothing is written, and nothing takes long.

use std::fmt::Write as _;
use std::path::Path;

use clap::Args;
use perflab_archive::{Archive, PeekedRun};
use perflab_guest::{Accelerator, AcceleratorRequest};
use perflab_model::untrusted_text::escape_controls_in_line;
use perflab_observe::find_counter_refusal;
use perflab_present::comparison::OutputFormat;
use serde::Serialize;

use crate::app::App;
use crate::failure::{Exit, Failure};
use crate::verb::Verb;

/// Say what this machine can measure, and what to type next
#[derive(Debug, Args)]
pub struct FirstHourArgs {}

impl Verb for FirstHourArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        let archive = Archive::open(app.archive_path());
        let runs = archive.and_then(|archive| archive.peek_runs()).map_err(|error| error.to_string());
        let found = [
            ("user", describe_user(rustix::process::geteuid().is_root())),
            ("perf events", describe_perf_events(app)),
            ("guests", describe_guests()),
            ("runs", describe_runs(app.archive_path(), &runs)),
        ];
        let count = runs.as_ref().ok().map(Vec::len);
        let next = list_next_commands(&runs.unwrap_or_default());
        if app.format == OutputFormat::Json {
            let [user, perf_events, guests, _] = found.map(|(_, text)| text);
            let archive =
                std::path::absolute(app.archive_path()).unwrap_or_else(|_| app.archive_path().into());
            let archive = archive.to_string_lossy().into_owned();
            let next = next.into_iter().map(|(command, about)| NextCommand { command, about }).collect();
            let version = env!("CARGO_PKG_VERSION");
            let document =
                FirstHourDocument { version, user, perf_events, guests, archive, runs: count, next };
            app.print_json(&document)?;
            return Ok(Exit::Fine);
        }
        let mut page = String::from(concat!("perflab ", env!("CARGO_PKG_VERSION")));
        page += " tells you what a change does to a Linux system.\n\nOn this machine:\n";
        // Writing to a String cannot fail.
        for (what, text) in found {
            let _ = writeln!(page, "  {what:<12} {text}");
        }
        page += "\nWhat to type next:\n";
        for (command, about) in next {
            let _ = writeln!(page, "  {command:<34} {about}");
        }
        app.print_text(&page)?;
        Ok(Exit::Fine)
    }
}

/// The page as JSON.
#[derive(Serialize)]
struct FirstHourDocument {
    version: &'static str,
    user: String,
    perf_events: String,
    guests: String,
    /// The archive that verbs take here, as an absolute path.
    archive: String,
    /// How many runs it has; none where it cannot be read.
    runs: Option<usize>,
    next: Vec<NextCommand>,
}

#[derive(Serialize)]
struct NextCommand {
    command: &'static str,
    about: &'static str,
}

fn describe_user(is_root: bool) -> String {
    let text = match is_root {
        true => "root: settings of the system can be varied; they are put back",
        false => "not root: commands and parameters can be varied; settings of the system need root",
    };
    text.to_owned()
}

/// What is counted of a workload, and why not more.
fn describe_perf_events(app: &App) -> String {
    if let Some(reason) = find_counter_refusal(&app.root, "task-clock") {
        return format!("none: {}", escape_controls_in_line(&reason));
    }
    match find_counter_refusal(&app.root, "cycles") {
        None => "counters and profiles".to_owned(),
        Some(reason) => {
            format!(
                "profiles and the kernel's counters; none of the processor's: {}",
                escape_controls_in_line(&reason)
            )
        }
    }
}

/// What boots another kernel.
const EMULATOR: &str = concat!("qemu-system-", "x86_64");

fn describe_guests() -> String {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&paths).any(|folder| folder.join(EMULATOR).is_file()) {
        return format!("none: {EMULATOR} is not installed; only booting other kernels needs it");
    }
    match AcceleratorRequest::Best.choose() {
        Ok(chosen) if chosen.accelerator == Accelerator::Kvm => "fast: KVM".to_owned(),
        Ok(chosen) => format!("slow: {}", escape_controls_in_line(&chosen.because)),
        Err(error) => format!("none: {}", escape_controls_in_line(&error.to_string())),
    }
}

fn describe_runs(archive: &Path, runs: &Result<Vec<PeekedRun>, String>) -> String {
    let place = escape_controls_in_line(&archive.display().to_string()).into_owned();
    match runs {
        Err(reason) => escape_controls_in_line(reason).into_owned(),
        Ok(runs) => match runs.last() {
            None => format!("none yet; they go to {place}"),
            Some(latest) => {
                let name = latest.label.as_deref().or(latest.title.as_deref()).unwrap_or(&latest.short);
                format!("{} in {place}, the latest: {}", runs.len(), escape_controls_in_line(name))
            }
        },
    }
}

/// What gets somebody further who has these runs; the first is what most want.
fn list_next_commands(runs: &[PeekedRun]) -> Vec<(&'static str, &'static str)> {
    let mut next = Vec::new();
    let mut latest = runs.iter().rev().map(|run| &run.title);
    match (latest.next(), latest.next()) {
        (Some(last), Some(before)) if last == before => {
            next.push(("perflab compare @latest~1 @latest", "what changed between the last two runs"));
            next.push(("perflab report @latest~1 @latest", "the same as a page, with pictures"));
        }
        (Some(_), _) => {
            next.push(("perflab show @latest", "what the latest run measured"));
            next.push(("perflab report @latest", "the same as a page, with pictures"));
        }
        (None, _) => {
            next.push(("perflab run quickstart", "a first run: under a minute, nothing to set up"));
        }
    }
    next.push(("perflab bench 'COMMAND' 'OTHER'", "which of two commands is faster"));
    next.push(("perflab watch -- COMMAND", "what the system does while a command runs"));
    if runs.is_empty() {
        next.push(("perflab study list", "the studies that ship"));
    } else {
        next.push(("perflab study new mine.toml", "a study of your own, to start from"));
    }
    next.push(("perflab check", "what disturbs measurements here"));
    next.push(("perflab --help", "every verb"));
    next
}
