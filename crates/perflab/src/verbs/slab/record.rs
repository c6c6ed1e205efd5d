//! `perflab slab record`: an ordinary run, with the monitors of object memory.

use perflab_model::Nanos;

use crate::arguments::slab;
use crate::context::App;
use crate::exit::Exit;
use crate::verbs::recording::{RecordedCommand, format_time_option};

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
pub fn record_slab(context: &App, wanted: &slab::SlabRecordArgs) -> anyhow::Result<Exit> {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        stderr_line!("warning: {WITHOUT_ROOT}");
    }
    let recorded = RecordedCommand {
        verb: "slab record",
        title: "Slab caches",
        command: &wanted.command,
        pid: None,
        duration: wanted.duration.as_deref(),
        quiet_time: &wanted.quiet_time,
        label: wanted.label.as_deref(),
        tables: &slab_monitors(&format_time_option("--every", &wanted.every)?, is_root),
    };
    let (status, found) = recorded.record(context, |_| ())?;
    let is_wanted = found.manifest()?.overhead.ticks < MOST_TICKS || wanted.plot.is_some();
    if is_root && is_wanted && found.list_monitors()?.iter().any(|monitor| monitor == "slabinfo") {
        super::show::summarise_recording(context, &found, wanted)?;
    } else if wanted.plot.is_some() {
        context.note("--plot: there is no series of caches to draw");
    }
    Ok(recorded.exit_of(context, status, &found))
}

fn slab_monitors(every: &str, is_root: bool) -> String {
    let is_fast = Nanos::parse(every).is_ok_and(|every| every < OFTEN);
    let mut text = String::from("[monitors]\n");
    if is_root {
        let exact = if is_fast { SLOWEST } else { SLOW };
        text += &format!("slabinfo = \"{every}\"\nslab-caches = \"{SLOW}\"\nslab-exact = \"{exact}\"\n");
    }
    let totals = if is_fast { "100ms" } else { every };
    text + &format!("meminfo = \"{totals}\"\nvmstat = \"{SLOW}\"\n")
}
