//! `perflab prefetch daemon`

use std::io::Write as _;
use std::path::{Path, PathBuf};

use perflab_prefetch::daemon::{DaemonOptions, LearnThreshold, ProgramLists};
use perflab_prefetch::{TraceStore, trace_store};

use super::replay::{parse_size_option, read_order, replay_mode};
use crate::arguments::prefetch::{DaemonArgs, PrefetchGuardArgs};
use crate::context::App;
use crate::exit::{Exit, UsageError};
use crate::quantities::parse_time_option;
use crate::verbs::run;

/// The unit that is shipped.
const UNIT: &str = include_str!("../../../../../contrib/perflab-prefetch.service");

/// Reads ahead for every program until it is told to end.
pub fn run_prefetch_daemon(context: &App, store: TraceStore, wanted: &DaemonArgs) -> anyhow::Result<Exit> {
    if wanted.print_unit {
        context.print_value("unit", UNIT)?;
        return Ok(Exit::Fine);
    }
    let settings = daemon_settings(store, wanted)?;
    let stop = run::stop_on_interrupt()?;
    let quiet = context.quiet;
    // Whoever reads this may be gone, or full: no program waits for that, and the daemon does not end.
    let say = move |text: &str| {
        if !quiet {
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    };
    perflab_prefetch::daemon::run_daemon(settings, &stop.flag(), Box::new(say))?;
    Ok(Exit::Fine)
}

/// Guards execs from a daemon, until that one is gone.
pub fn guard_execs(wanted: &PrefetchGuardArgs) -> anyhow::Result<Exit> {
    perflab_prefetch::daemon::run_guard(wanted.daemon)?;
    Ok(Exit::Fine)
}

fn daemon_settings(store: TraceStore, wanted: &DaemonArgs) -> Result<DaemonOptions, UsageError> {
    let worth_read = parse_size_option("--worth-read", Some(&wanted.worth_read))?.unwrap_or_default();
    let wait = parse_time_option("--worth-wait", &wanted.worth_wait)?;
    Ok(DaemonOptions {
        // The very file, also after an update has replaced it.
        perflab: "/proc/self/exe".into(),
        store,
        socket: wanted.socket.clone(),
        on: wanted.on.iter().map(|place| place.canonicalize().unwrap_or_else(|_| place.clone())).collect(),
        lists: ProgramLists {
            only: resolve_programs("--only", &wanted.only)?,
            never: resolve_programs("--never", &wanted.never)?,
        },
        list: wanted.list.clone(),
        worth: LearnThreshold { wait, read: worth_read, faults: wanted.worth_faults },
        window: parse_time_option("--for", &wanted.duration)?.into(),
        decide: parse_time_option("--decide", &wanted.decide)?.into(),
        bound: parse_time_option("--bound", &wanted.bound)?.into(),
        mode: replay_mode(wanted.mode),
        order: wanted.order.map(read_order),
        policy: super::trace_policy(wanted.policy),
        memory: parse_size_option("--memory", wanted.memory.as_deref())?,
        rate: parse_size_option("--io", wanted.io.as_deref())?,
    })
}

/// Programs as the kernel will name them: found as the shell finds them, without links; folders too. What is not there yet
/// must be named in full.
fn resolve_programs(option: &str, all: &[PathBuf]) -> Result<Vec<PathBuf>, UsageError> {
    let one = |path: &PathBuf| {
        let found =
            trace_store::find_program_path(path.as_os_str()).ok().or_else(|| path.canonicalize().ok());
        let whole = || Path::new(path).is_absolute().then(|| path.clone());
        let wrong =
            || UsageError::new(format!("{option}: there is no {}", path.display()), "name its whole path");
        found.or_else(whole).ok_or_else(wrong)
    };
    all.iter().map(one).collect()
}
