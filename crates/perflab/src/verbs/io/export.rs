//! `perflab io export --blkparse`

use std::fmt::Write as _;

use perflab_model::io::{IoEvent, IoKind};

use crate::arguments::io::Export;
use crate::context::Context;
use crate::exit::Exit;

/// Writes disk requests in the default format of blkparse: device, CPU, sequence, seconds, pid, action, flags, sectors.
pub fn export(context: &Context, wanted: &Export) -> anyhow::Result<Exit> {
    let recording = super::recording(context, &wanted.which)?;
    let mut text = String::new();
    let requests = recording.events.iter().filter_map(|event| Some((event, action(event.kind)?)));
    for (sequence, (event, action)) in requests.enumerate() {
        let at = event.at.since(recording.told.begun);
        let device = format!("{},{}", event.device.major(), event.device.minor());
        let flags = event.name.as_deref().unwrap_or_default();
        let (seconds, nanos) = (at.0 / 1_000_000_000, at.0 % 1_000_000_000);
        // The CPU is not kept: it is always 0. A comm is not either: the pid says who.
        let _ = writeln!(
            text,
            "{device:>7} {:>2} {:>8} {seconds:>5}.{nanos:09} {:>5} {action:>2} {flags:>3} {} + {} [{}]",
            0,
            sequence + 1,
            event.pid,
            event.first,
            event.count,
            if event.kind == IoKind::Completed { "0".into() } else { program(&recording.events, event) },
        );
    }
    context.write(&text)?;
    Ok(Exit::Fine)
}

fn action(kind: IoKind) -> Option<&'static str> {
    match kind {
        IoKind::Issued => Some("D"),
        IoKind::Completed => Some("C"),
        _ => None,
    }
}

/// The file name of the last program that the thread had started by then.
fn program(events: &[IoEvent], request: &IoEvent) -> String {
    let started = events.iter().take_while(|event| event.at <= request.at);
    let last = started.filter(|event| event.kind == IoKind::Exec && event.pid == request.pid).last();
    let name = last.and_then(|event| event.name.as_deref()?.rsplit('/').next());
    name.map_or_else(|| request.pid.to_string(), String::from)
}
