//! `perflab prefetch daemon`

use std::io::Write as _;
use std::path::{Path, PathBuf};

use perflab_prefetch::daemon::{Lists, Settings, Worth};
use perflab_prefetch::{Store, store};

use super::replay::{mode, order, size};
use crate::arguments::prefetch::{Daemon, PrefetchGuard};
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::quantities::time;
use crate::verbs::run;

/// The unit that is shipped.
const UNIT: &str = include_str!("../../../../../contrib/perflab-prefetch.service");

/// Reads ahead for every program until it is told to end.
pub fn daemon(context: &Context, store: Store, wanted: &Daemon) -> anyhow::Result<Exit> {
    if wanted.print_unit {
        context.answer("unit", UNIT)?;
        return Ok(Exit::Fine);
    }
    let settings = settings(store, wanted)?;
    let stop = run::stop_on_interrupt()?;
    let quiet = context.quiet;
    // Whoever reads this may be gone, or full: no program waits for that, and the daemon does not end.
    let say = move |text: &str| {
        if !quiet {
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    };
    perflab_prefetch::daemon::run(settings, &stop.flag(), Box::new(say))?;
    Ok(Exit::Fine)
}

/// Guards execs from a daemon, until that one is gone.
pub fn guard(wanted: &PrefetchGuard) -> anyhow::Result<Exit> {
    perflab_prefetch::daemon::keep_guard(wanted.daemon)?;
    Ok(Exit::Fine)
}

fn settings(store: Store, wanted: &Daemon) -> Result<Settings, Usage> {
    let worth_read = size("--worth-read", Some(&wanted.worth_read))?.unwrap_or_default();
    let wait = time("--worth-wait", &wanted.worth_wait)?;
    Ok(Settings {
        // The very file, also after an update has replaced it.
        perflab: "/proc/self/exe".into(),
        store,
        socket: wanted.socket.clone(),
        on: wanted.on.iter().map(|place| place.canonicalize().unwrap_or_else(|_| place.clone())).collect(),
        lists: Lists { only: named("--only", &wanted.only)?, never: named("--never", &wanted.never)? },
        list: wanted.list.clone(),
        worth: Worth { wait, read: worth_read, faults: wanted.worth_faults },
        window: time("--for", &wanted.duration)?.into(),
        decide: time("--decide", &wanted.decide)?.into(),
        bound: time("--bound", &wanted.bound)?.into(),
        mode: mode(wanted.mode),
        order: wanted.order.map(order),
        policy: super::policy(wanted.policy),
        memory: size("--memory", wanted.memory.as_deref())?,
        rate: size("--io", wanted.io.as_deref())?,
    })
}

/// Programs as the kernel will name them: found as the shell finds them, without links; folders too. What is not there yet
/// must be named in full.
fn named(option: &str, all: &[PathBuf]) -> Result<Vec<PathBuf>, Usage> {
    let one = |path: &PathBuf| {
        let found = store::program(path.as_os_str()).ok().or_else(|| path.canonicalize().ok());
        let whole = || Path::new(path).is_absolute().then(|| path.clone());
        let wrong = || Usage::new(format!("{option}: there is no {}", path.display()), "name its whole path");
        found.or_else(whole).ok_or_else(wrong)
    };
    all.iter().map(one).collect()
}
