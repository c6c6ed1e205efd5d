//! One start: caches, what they still hold, what else is going on, reading ahead, the start itself. What it measured is one
//! JSON document.

use std::path::Path;
use std::time::Duration;

use perflab_conduct::settings::{Knob, drop_caches};
use perflab_conduct::startup::{Cost, DiskReads, Held, Started};
use perflab_model::io::Device;
use perflab_model::{Bytes, Nanos};
use perflab_observe::io::Mounts;
use perflab_prefetch::{Mode, Policy, Store, combine};
use serde_json::json;

use super::ahead::{mode, read_with, reading};
use super::subject::Subject;
use crate::arguments::startup::{Ahead, Caches, StartOnce};
use crate::context::Context;
use crate::exit::Exit;
use crate::verbs::meanwhile::Meanwhile;
use crate::verbs::prefetch::{Reading, bring_together};

/// The system's own I/O after dropping caches is over by then, mostly; what goes on is measured here.
const SETTLE: Duration = Duration::from_millis(300);

/// Measures one start, while the kernel counts waiting for disks, where it may be told to.
pub fn once(context: &Context, wanted: &StartOnce) -> anyhow::Result<Exit> {
    let _counting = accounting(context);
    measure(context, wanted)
}

/// Lets the kernel count how long threads wait for disks, which it does not by itself since 5.14.
fn accounting(context: &Context) -> Option<Meanwhile> {
    let knob = Knob::File {
        name: "sysctl kernel.task_delayacct".into(),
        path: context.root.path("/proc/sys/kernel/task_delayacct"),
        value: "1".into(),
    };
    // Who may not is told nothing of waiting, and of everything else.
    rustix::process::geteuid().is_root().then(|| Meanwhile::set(context, &[knob]).ok())?
}

fn measure(context: &Context, wanted: &StartOnce) -> anyhow::Result<Exit> {
    let subject = Subject::of(wanted)?;
    subject.settle()?;
    let store = Store::locate(wanted.store.as_deref());
    let mode = mode(wanted.prefetch);
    let of_use = mode.is_some() || wanted.caches == Caches::Warm;
    if of_use && wanted.learn && store.get(&subject.trace).is_err() {
        subject.teach(context, &store, wanted.fine)?;
        if wanted.relayout {
            let mounts = Mounts::read();
            let disk = mounts.under(&subject.program).map(|mount| mount.place.as_path());
            bring_together(context, &store, &subject.trace, Policy::Last, disk)?;
            subject.teach(context, &store, wanted.fine)?;
        }
    }
    let known = |mode| reading(context, &store, &subject.trace, mode);
    let reading = mode.map(known).transpose()?;
    let warm = || drop(known(Mode::Sync).map(Reading::heat));
    let held = heat(context, wanted.caches, warm, || look(&store, &subject))?;
    say_held(&held, wanted.caches);
    let background = background(subject.disk);
    let begun = perflab_observe::monotonic_now();
    let reading = reading.map(Reading::before);
    if let Some(reader) = wanted.reader.as_ref().filter(|_| wanted.prefetch == Ahead::Reader) {
        read_with(reader, subject.limit)?;
    }
    let ahead = perflab_observe::monotonic_now().since(begun);
    let before = if wanted.prefetch == Ahead::None { Nanos(0) } else { ahead };
    let mut beside = None;
    let started = subject.start(|| beside = reading.map(Reading::beside))?;
    if let Some(beside) = beside {
        beside.stop();
    }
    let Some(wall) = started.wall else { return Ok(failed(&started)) };
    let document = measured(before, wall, &started.cost, background, &held);
    context.write(&without_null(document).to_string())?;
    Ok(Exit::Fine)
}

/// What a start took and cost, by the names of metrics.
fn measured(
    before: Nanos,
    wall: Nanos,
    cost: &Cost,
    background: Option<u64>,
    held: &Held,
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
fn look(store: &Store, subject: &Subject) -> Held {
    match store.get(&subject.trace).ok().and_then(|known| combine(&known, Policy::Last)) {
        Some(start) => Held::of(start.files.iter().map(|file| (Path::new(&file.path), Some(&file.pages)))),
        None => Held::of([(subject.program.as_path(), None)]),
    }
}

fn say_held(held: &Held, caches: Caches) {
    let (known, resident) = (Bytes(held.known), Bytes(held.resident));
    match &held.worst {
        Some((worst, most)) if caches != Caches::Warm => stderr_line!(
            "not all was cold: {resident} of the {known} that it reads were in memory, most of it ({}) of {}",
            Bytes(*most),
            worst.display()
        ),
        _ => stderr_line!("in memory before: {resident} of the {known} that it reads ({} files)", held.files),
    }
}

/// What is not known is not there: a metric that is null would be no number.
fn without_null(mut document: serde_json::Value) -> serde_json::Value {
    if let Some(all) = document.as_object_mut() {
        all.retain(|_, value| !value.is_null());
    }
    document
}

fn failed(started: &Started) -> Exit {
    stderr_text!("{}", started.output);
    stderr_line!("error: {}", started.failure.as_deref().unwrap_or("it never started"));
    Exit::WorkloadFailed
}

/// Brings caches to what is wanted, and looks. Another program may have dropped them, or pushed out what lay there, since the
/// start before: what a trace knows is made warm again. Looking brings inodes into memory, and pages that survive being dropped once
/// survive it twice: so pages go first, then it is looked, then everything goes.
fn heat(
    context: &Context,
    caches: Caches,
    warm: impl FnOnce(),
    look: impl FnOnce() -> Held,
) -> anyhow::Result<Held> {
    if caches == Caches::Warm {
        warm();
        return Ok(look());
    }
    drop_caches(&context.root, 1)?;
    let held = look();
    if caches == Caches::All {
        drop_caches(&context.root, 3)?;
    }
    Ok(held)
}

/// Bytes that the program's disk reads and writes while nothing is started: somebody else's.
fn background(disk: Option<Device>) -> Option<u64> {
    let before = disk.and_then(DiskReads::of);
    std::thread::sleep(SETTLE);
    let since = disk.and_then(DiskReads::of)?.since(before?);
    Some(since.bytes + since.written)
}
