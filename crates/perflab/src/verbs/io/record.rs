//! `perflab io record`: an ordinary run, with its I/O traced.

use perflab_analyze::{reads_by_directory, reads_by_file};
use perflab_model::Bytes;
use perflab_model::io_trace::{IoEventKind, IoRecording, PAGE, SECTOR};

use crate::arguments::io::IoRecordArgs;
use crate::context::App;
use crate::exit::Exit;
use crate::verbs::recording::RecordedCommand;

/// Directories that are shown at the end.
const SHOWN: usize = 10;

/// Records, and says what to look at.
pub fn record_io(context: &App, wanted: &IoRecordArgs) -> anyhow::Result<Exit> {
    let is_tree = !wanted.system && !wanted.command.is_empty();
    let recorded = RecordedCommand {
        verb: "io record",
        title: "I/O",
        command: &wanted.command,
        pid: None,
        duration: wanted.duration.as_deref(),
        quiet_time: "0s",
        label: wanted.label.as_deref(),
        tables: if is_tree { "[io]\nscope = \"workload\"\n" } else { "[io]\nscope = \"system\"\n" },
    };
    let (status, found) = recorded.record(context, |_| ())?;
    for (_, recording) in found.read_io_recordings()? {
        let recording = super::count_reads_once(context, recording);
        note_io_recording(context, &recording);
        let folders = reads_by_directory(&reads_by_file(&recording));
        context.print_grid(&perflab_present::io::folders_grid(&folders, SHOWN))?;
    }
    context
        .note(format!("`perflab io show {}` has every file, `--by time` and `--by disk`", found.short_id()));
    Ok(recorded.exit_of(context, status, &found))
}

/// What was seen, and what it cost to see it.
fn note_io_recording(context: &App, recording: &IoRecording) {
    let sum = |kind: IoEventKind| {
        let all = recording.events.iter().filter(|event| event.kind == kind);
        all.map(|event| event.count).sum::<u64>()
    };
    let requests = recording.events.iter().filter(|event| event.is_disk_read());
    let (count, sectors) = requests.fold((0, 0), |(count, sum), event| (count + 1, sum + event.count));
    let told = &recording.told;
    context.note(format!(
        "{} events, {} lost: {} came into the page cache; {count} requests read {}; reading the trace took {} of CPU",
        recording.events.len(),
        told.lost,
        Bytes(sum(IoEventKind::Added) * PAGE),
        Bytes(sectors * SECTOR),
        told.cost,
    ));
    for missing in &told.missing {
        context.note(format!("warning: this kernel lacks {missing}"));
    }
}
