//! One start: caches, what they still hold, what else is going on, reading ahead, the start itself. What it measured is one
//! JSON document.

use std::path::Path;
use std::time::Duration;

use perflab_conduct::drop_caches;
use perflab_conduct::settings::Setting;
use perflab_conduct::startup::{CachedFiles, DiskTraffic, StartupCost, StartupResult};
use perflab_model::io_trace::DeviceNumber;
use perflab_model::{Bytes, Nanos};
use perflab_observe::io::MountTable;
use perflab_prefetch::{CombinePolicy, ReplayMode, TraceStore, combine_traces};
use serde_json::json;

use super::ahead::{own_replay_mode, prepare_known_replay, run_external_reader};
use super::subject::StartupCommand;
use crate::arguments::startup::{CacheStateName, PrefetchModeName, StartOnceArgs};
use crate::context::App;
use crate::exit::Exit;
use crate::verbs::meanwhile::TemporarySettings;
use crate::verbs::prefetch::{ReplaySession, relayout_program};

/// The system's own I/O after dropping caches is over by then, mostly; what goes on is measured here.
const SETTLE: Duration = Duration::from_millis(300);

/// Measures one start, while the kernel counts waiting for disks, where it may be told to.
pub fn measure_one_startup(context: &App, wanted: &StartOnceArgs) -> anyhow::Result<Exit> {
    let _counting = enable_delay_accounting(context);
    measure_and_print_startup(context, wanted)
}

/// Lets the kernel count how long threads wait for disks, which it does not by itself since 5.14.
fn enable_delay_accounting(context: &App) -> Option<TemporarySettings> {
    let knob = Setting::File {
        name: "sysctl kernel.task_delayacct".into(),
        path: context.root.path("/proc/sys/kernel/task_delayacct"),
        value: "1".into(),
    };
    // Who may not is told nothing of waiting, and of everything else.
    rustix::process::geteuid().is_root().then(|| TemporarySettings::apply(context, &[knob]).ok())?
}

fn measure_and_print_startup(context: &App, wanted: &StartOnceArgs) -> anyhow::Result<Exit> {
    let subject = StartupCommand::from_args(wanted)?;
    subject.make_first_start()?;
    let store = TraceStore::locate(wanted.store.as_deref());
    let mode = own_replay_mode(wanted.prefetch);
    let of_use = mode.is_some() || wanted.caches == CacheStateName::Warm;
    if of_use && wanted.learn && store.read_trace(&subject.trace).is_err() {
        subject.learn_trace(context, &store, wanted.fine)?;
        if wanted.relayout {
            let mounts = MountTable::read();
            let disk = mounts.find_by_path(&subject.program).map(|mount| mount.mount_point.as_path());
            relayout_program(context, &store, &subject.trace, CombinePolicy::Last, disk)?;
            subject.learn_trace(context, &store, wanted.fine)?;
        }
    }
    let known = |mode| prepare_known_replay(context, &store, &subject.trace, mode);
    let reading = mode.map(known).transpose()?;
    let warm = || drop(known(ReplayMode::Sync).map(ReplaySession::read_all_before_start));
    let held = set_cache_state(context, wanted.caches, warm, || resident_startup_pages(&store, &subject))?;
    note_resident_pages(&held, wanted.caches);
    let background = background_disk_bytes(subject.disk);
    let begun = perflab_observe::monotonic_now();
    let reading = reading.map(ReplaySession::read_before_start);
    if let Some(reader) = wanted.reader.as_ref().filter(|_| wanted.prefetch == PrefetchModeName::Reader) {
        run_external_reader(reader, subject.limit)?;
    }
    let ahead = perflab_observe::monotonic_now().since(begun);
    let before = if wanted.prefetch == PrefetchModeName::None { Nanos(0) } else { ahead };
    let mut beside = None;
    let started = subject.start(|| beside = reading.map(ReplaySession::read_beside))?;
    if let Some(beside) = beside {
        beside.stop();
    }
    let Some(wall) = started.wall else { return Ok(fail_startup(&started)) };
    let document = startup_metrics(before, wall, &started.cost, background, &held);
    context.print_text(&without_null_values(document).to_string())?;
    Ok(Exit::Fine)
}

/// What a start took and cost, by the names of metrics.
fn startup_metrics(
    before: Nanos,
    wall: Nanos,
    cost: &StartupCost,
    background: Option<u64>,
    held: &CachedFiles,
) -> serde_json::Value {
    json!({
        "wall": before.seconds() + wall.seconds(),
        "prefetch": before.seconds(),
        "major-faults": cost.major_faults,
        "cpu": cost.cpu.map(Nanos::seconds),
        "delay": cost.delay_ticks.map(|ticks| ticks as f64 / 100.0),
        "requests": cost.reads.map(|reads| reads.requests),
        "read": cost.reads.map(|reads| reads.bytes),
        "background": background,
        "resident-before": held.resident,
    })
}

/// What is in memory of the files that the program's trace knows; of its own file, where there is no trace.
fn resident_startup_pages(store: &TraceStore, subject: &StartupCommand) -> CachedFiles {
    match store.read_trace(&subject.trace).ok().and_then(|known| combine_traces(&known, CombinePolicy::Last))
    {
        Some(start) => {
            CachedFiles::of_files(start.files.iter().map(|file| (Path::new(&file.path), Some(&file.pages))))
        }
        None => CachedFiles::of_files([(subject.program.as_path(), None)]),
    }
}

fn note_resident_pages(held: &CachedFiles, caches: CacheStateName) {
    let (known, resident) = (Bytes(held.known), Bytes(held.resident));
    match &held.worst {
        Some((worst, most)) if caches != CacheStateName::Warm => stderr_line!(
            "not all was cold: {resident} of the {known} that it reads were in memory, most of it ({}) of {}",
            Bytes(*most),
            worst.display()
        ),
        _ => stderr_line!("in memory before: {resident} of the {known} that it reads ({} files)", held.files),
    }
}

/// What is not known is not there: a metric that is null would be no number.
fn without_null_values(mut document: serde_json::Value) -> serde_json::Value {
    if let Some(all) = document.as_object_mut() {
        all.retain(|_, value| !value.is_null());
    }
    document
}

fn fail_startup(started: &StartupResult) -> Exit {
    stderr_text!("{}", started.output);
    stderr_line!("error: {}", started.failure.as_deref().unwrap_or("it never started"));
    Exit::WorkloadFailed
}

/// Brings caches to what is wanted, and looks. Another program may have dropped them, or pushed out what lay there, since the
/// start before: what a trace knows is made warm again. Looking brings inodes into memory, and pages that survive being dropped once
/// survive it twice: so pages go first, then it is looked, then everything goes.
fn set_cache_state(
    context: &App,
    caches: CacheStateName,
    warm: impl FnOnce(),
    look: impl FnOnce() -> CachedFiles,
) -> anyhow::Result<CachedFiles> {
    if caches == CacheStateName::Warm {
        warm();
        return Ok(look());
    }
    drop_caches(&context.root, 1)?;
    let held = look();
    if caches == CacheStateName::All {
        drop_caches(&context.root, 3)?;
    }
    Ok(held)
}

/// Bytes that the program's disk reads and writes while nothing is started: somebody else's.
fn background_disk_bytes(disk: Option<DeviceNumber>) -> Option<u64> {
    let before = disk.and_then(DiskTraffic::of_disk);
    std::thread::sleep(SETTLE);
    let since = disk.and_then(DiskTraffic::of_disk)?.since(before?);
    Some(since.bytes + since.written)
}
