//! `perflab slab record`: an ordinary run of a study that is written here.

use anyhow::Context as _;
use perflab_conduct::Choices;
use perflab_model::study::Source;
use perflab_model::{Manifest, Nanos, Status};

use crate::arguments::slab;
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::verbs::recording::{quoted, subject, time, write_definition};
use crate::verbs::run;

/// What root adds; said where it is missing.
pub(super) const WITHOUT_ROOT: &str = "\
without root only totals are recorded (Slab, SReclaimable and SUnreclaim of /proc/meminfo, /proc/vmstat).
As root, perflab also records: every cache's objects, slabs and bytes (/proc/slabinfo, mode 0400), and object
sizes, alignment, merged names and exact counts (/sys/kernel/slab). That is what efficiency, waste and growth by
cache are made of: `sudo perflab slab record …`";

/// Attributes change seldom, and exact counts walk lists under a lock: once a second is often enough.
const SLOW: &str = "1s";

/// Those lists are walked with interrupts off, and readings on a fast clock wait for it: in 500 s at 100 Hz on a loaded
/// machine with long lists, each of 31 lost ticks fell into the 0.3 s after an exact reading began.
const SLOWEST: &str = "10s";

/// Totals are read at most this often: they stand beside the sums of caches, not in their place.
const OFTEN: Nanos = Nanos(100_000_000);

/// More ticks than this take seconds to analyse: whoever wants that says `perflab slab show`.
const MOST_TICKS: u64 = 10_000;

/// Records, and says what to look at.
pub fn record(context: &Context, wanted: &slab::Record) -> anyhow::Result<Exit> {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("warning: {WITHOUT_ROOT}");
    }
    run::undo_leftovers(context);
    let folder = tempfile::tempdir().context("cannot make a folder for the command's definition")?;
    write_definition(&folder.path().join("command.toml"), &wanted.command, wanted.duration.as_deref())?;
    let mut catalogue = context.catalogue()?;
    catalogue.extend(folder.path())?;
    let manifest = manifest(context, &catalogue, wanted, is_root)?;
    let stop = run::stop_on_interrupt()?;
    let host = run::host(context, catalogue)?;
    if wanted.command.is_empty() && wanted.duration.is_none() {
        context.say("recording until ^C");
    }
    let (status, found) = run::carry_out(context, &host, &manifest, &Default::default(), &stop)?;
    context.say(format!("run: {} in {}", found.short(), context.archive_path().display()));
    let manifest = found.manifest()?;
    context.say(crate::verbs::show::own_cost(&manifest));
    let is_wanted = manifest.overhead.ticks < MOST_TICKS || wanted.plot.is_some();
    if is_root && is_wanted && found.monitors()?.iter().any(|monitor| monitor == "slabinfo") {
        super::show::after_record(context, &found, wanted.plot.as_deref())?;
    } else if wanted.plot.is_some() {
        context.say("--plot: there is no series of caches to draw");
    }
    Ok(exit(context, status, wanted, found.short()))
}

/// Stopping a recording that waits for ^C is how it ends, not a failure.
fn exit(context: &Context, status: Status, wanted: &slab::Record, run: &str) -> Exit {
    match status {
        Status::Finished => Exit::Fine,
        Status::Stopped if wanted.command.is_empty() => Exit::Fine,
        _ => {
            context.say(format!(
                "the command failed or was stopped; `perflab show {run} --output 0` prints what it said"
            ));
            Exit::WorkloadFailed
        }
    }
}

fn manifest(
    context: &Context,
    catalogue: &perflab_workload::Catalogue,
    wanted: &slab::Record,
    is_root: bool,
) -> anyhow::Result<Manifest> {
    let source = Source::new("slab record", study(wanted, is_root)?);
    let study = source.read()?;
    let facts = perflab_observe::facts(&context.root, None)?;
    let choices = Choices { set: Vec::new(), only: None, seed: 0 };
    let plan =
        perflab_conduct::plan(&study, catalogue, &facts, &choices).map_err(|found| source.problems(found))?;
    let label = wanted.label.clone();
    Ok(crate::manifest::manifest(&source, study, plan, facts, label, &context.root))
}

/// The study, as text: what a person could have written.
fn study(wanted: &slab::Record, is_root: bool) -> Result<String, Usage> {
    let every = time("--every", &wanted.every)?;
    let limit = match &wanted.duration {
        Some(text) if !wanted.command.is_empty() => time("--for", text)?,
        _ => "87600h".into(),
    };
    let quiet = match wanted.command.is_empty() {
        true => "0s".into(),
        false => time("--quiet-time", &wanted.quiet_time)?,
    };
    let title = quoted(&format!("Slab caches, {}", subject(&wanted.command)));
    let mut text = format!(
        "title = {title}\n\n[run]\niterations = 1\nwarmup = 0\norder = \"sequential\"\n\
         time-limit = \"{limit}\"\nquiet = \"{quiet}\"\n\n[workload.command]\n\n[monitors]\n"
    );
    let is_fast = Nanos::parse(&every).is_ok_and(|every| every < OFTEN);
    if is_root {
        let exact = if is_fast { SLOWEST } else { SLOW };
        text += &format!("slabinfo = \"{every}\"\nslab-caches = \"{SLOW}\"\nslab-exact = \"{exact}\"\n");
    }
    let totals = if is_fast { "100ms" } else { &every };
    Ok(text + &format!("meminfo = \"{totals}\"\nvmstat = \"{SLOW}\"\n"))
}
