//! `perflab io export --blkparse`

use std::fmt::Write as _;

use perflab_model::io_trace::{IoEventKind, ThreadNames};

use crate::arguments::io::IoExportArgs;
use crate::context::App;
use crate::exit::Exit;

/// Writes disk requests in the default format of blkparse: device, CPU, sequence, seconds, pid, action, flags, sectors.
pub fn export_blkparse(context: &App, wanted: &IoExportArgs) -> anyhow::Result<Exit> {
    let recording = super::read_io_recording(context, &wanted.which)?;
    let mut text = String::new();
    let programs = ThreadNames::from_recording(&recording);
    let mut sequence = 0;
    for event in &recording.events {
        let Some(action) = blkparse_action(event.kind) else { continue };
        sequence += 1;
        let at = event.at.since(recording.told.begun);
        let device = format!("{},{}", event.device.major(), event.device.minor());
        let flags = event.name.as_deref().unwrap_or_default();
        let (seconds, nanos) = (at.0 / 1_000_000_000, at.0 % 1_000_000_000);
        let pid = event.pid;
        let program = match event.kind {
            IoEventKind::Completed => "0".into(),
            _ => programs.name_at(pid, event.at).map_or_else(|| pid.to_string(), String::from),
        };
        // The CPU is not kept: it is always 0. A comm is not either, of a thread that had started a program: that stands for it.
        let _ = writeln!(
            text,
            "{device:>7} {:>2} {sequence:>8} {seconds:>5}.{nanos:09} {pid:>5} {action:>2} {flags:>3} {} + {} [{program}]",
            0, event.first, event.count,
        );
    }
    context.print_value("blkparse", &text)?;
    Ok(Exit::Fine)
}

fn blkparse_action(kind: IoEventKind) -> Option<&'static str> {
    match kind {
        IoEventKind::Queued => Some("Q"),
        IoEventKind::Issued => Some("D"),
        IoEventKind::Completed => Some("C"),
        _ => None,
    }
}
