//! Who reads ahead of a start: perflab in one of its modes, or another maker's program. Owns neither traces nor clocks.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use perflab_model::Nanos;
use perflab_prefetch::{CombinePolicy, ReplayBudget, ReplayMode, TraceStore, combine_traces};
use rustix::process::{Pid, Signal};

use crate::arguments::startup::PrefetchModeName;
use crate::context::App;
use crate::exit::ProgramNeverStartedError;
use crate::verbs::prefetch::{ReplayRules, ReplaySession, default_memory_budget, prepare_replay};

/// How a mode reads ahead by itself; none where it does not.
pub fn own_replay_mode(choice: PrefetchModeName) -> Option<ReplayMode> {
    match choice {
        PrefetchModeName::None | PrefetchModeName::Reader => None,
        PrefetchModeName::Sync => Some(ReplayMode::Sync),
        PrefetchModeName::Async => Some(ReplayMode::Async),
        PrefetchModeName::Staged => Some(ReplayMode::Staged),
    }
}

/// What is known of a program, ready to be read ahead.
///
/// # Errors
/// Nothing is known, or cannot be read.
pub fn prepare_known_replay(
    context: &App,
    store: &TraceStore,
    program: &Path,
    mode: ReplayMode,
) -> anyhow::Result<ReplaySession> {
    let known = store.read_trace(program)?;
    let start = combine_traces(&known, CombinePolicy::Last).context("no start is remembered")?;
    let rules = ReplayRules {
        mode,
        order: None,
        memory: default_memory_budget(context)?,
        budget: ReplayBudget { rate: None },
    };
    Ok(prepare_replay(start, rules))
}

/// Another maker's reading ahead, until it has ended; what it leaves running is not waited for. What it prints is no part of
/// our document.
///
/// # Errors
/// It fails, or takes longer than `limit`.
pub fn run_external_reader(reader: &str, limit: Nanos) -> anyhow::Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-c", reader]).stdin(Stdio::null()).stdout(std::io::stderr()).process_group(0);
    let mut child = shell.spawn().context("run sh")?;
    let begun = perflab_observe::monotonic_now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if perflab_observe::monotonic_now().since(begun) > limit => {
                rustix::process::kill_process_group(Pid::from_child(&child), Signal::KILL)?;
                child.wait()?;
                bail!(ProgramNeverStartedError(format!(
                    "`{reader}`, which reads ahead, has not ended within {limit}"
                )));
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    if !status.success() {
        bail!(ProgramNeverStartedError(format!("`{reader}`, which reads ahead, failed: {status}")));
    }
    Ok(())
}
