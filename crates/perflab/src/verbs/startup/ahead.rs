//! Who reads ahead of a start: perflab in one of its modes, or another maker's program. Owns neither traces nor clocks.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use perflab_model::Nanos;
use perflab_prefetch::{Budget, Mode, Policy, Store, combine};
use rustix::process::{Pid, Signal};

use crate::arguments::startup::Ahead;
use crate::context::Context;
use crate::exit::NeverStarted;
use crate::verbs::prefetch::{Reading, Rules, half_of_free, prepare};

/// How a mode reads ahead by itself; none where it does not.
pub fn mode(choice: Ahead) -> Option<Mode> {
    match choice {
        Ahead::None | Ahead::Reader => None,
        Ahead::Sync => Some(Mode::Sync),
        Ahead::Async => Some(Mode::Async),
        Ahead::Staged => Some(Mode::Staged),
    }
}

/// What is known of a program, ready to be read ahead.
///
/// # Errors
/// Nothing is known, or cannot be read.
pub fn reading(context: &Context, store: &Store, program: &Path, mode: Mode) -> anyhow::Result<Reading> {
    let known = store.get(program)?;
    let start = combine(&known, Policy::Last).context("no start is remembered")?;
    let rules = Rules { mode, order: None, memory: half_of_free(context)?, budget: Budget { rate: None } };
    Ok(prepare(start, rules))
}

/// Another maker's reading ahead, until it has ended; what it leaves running is not waited for. What it prints is no part of
/// our document.
///
/// # Errors
/// It fails, or takes longer than `limit`.
pub fn read_with(reader: &str, limit: Nanos) -> anyhow::Result<()> {
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
                bail!(NeverStarted(format!("`{reader}`, which reads ahead, has not ended within {limit}")));
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    if !status.success() {
        bail!(NeverStarted(format!("`{reader}`, which reads ahead, failed: {status}")));
    }
    Ok(())
}
