//! `perflab io record`: an ordinary run, with its I/O traced.

use perflab_analyze::io::{by_directory, by_file};
use perflab_model::Bytes;
use perflab_model::io::{IoKind, IoRecording, PAGE, SECTOR};

use crate::arguments::io::Record;
use crate::context::Context;
use crate::exit::Exit;
use crate::verbs::recording::Recorded;

/// Directories that are shown at the end.
const SHOWN: usize = 10;

/// Records, and says what to look at.
pub fn record(context: &Context, wanted: &Record) -> anyhow::Result<Exit> {
    let is_tree = !wanted.system && !wanted.command.is_empty();
    let recorded = Recorded {
        verb: "io record",
        title: "I/O",
        command: &wanted.command,
        process: None,
        duration: wanted.duration.as_deref(),
        quiet: "0s",
        label: wanted.label.as_deref(),
        tables: if is_tree { "[io]\nscope = \"workload\"\n" } else { "[io]\nscope = \"system\"\n" },
    };
    let (status, found) = recorded.carry_out(context, |_| ())?;
    for (_, recording) in found.io()? {
        let recording = super::counted(context, recording);
        say(context, &recording);
        let folders = by_directory(&by_file(&recording));
        context.print(&perflab_present::io::folders_grid(&folders, SHOWN))?;
    }
    context.say(format!("`perflab io show {}` has every file, `--by time` and `--by disk`", found.short()));
    Ok(recorded.exit(context, status, &found))
}

/// What was seen, and what it cost to see it.
fn say(context: &Context, recording: &IoRecording) {
    let sum = |kind: IoKind| {
        let all = recording.events.iter().filter(|event| event.kind == kind);
        all.map(|event| event.count).sum::<u64>()
    };
    let requests = recording.events.iter().filter(|event| event.is_disk_read());
    let (count, sectors) = requests.fold((0, 0), |(count, sum), event| (count + 1, sum + event.count));
    let told = &recording.told;
    context.say(format!(
        "{} events, {} lost: {} came into the page cache; {count} requests read {}; reading the trace took {} of CPU",
        recording.events.len(),
        told.lost,
        Bytes(sum(IoKind::Added) * PAGE),
        Bytes(sectors * SECTOR),
        told.cost,
    ));
    for missing in &told.missing {
        context.say(format!("warning: this kernel lacks {missing}"));
    }
}
