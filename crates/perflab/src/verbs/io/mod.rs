//! `perflab io`

mod coverage;
mod evidence;
mod export;
mod import;
mod record;
mod sections;
mod show;
mod whose;

use perflab_analyze::remove_stacked_requests;
use perflab_model::io_trace::IoRecording;

use crate::arguments::io::{IoSelection, IoVerb};
use crate::context::App;
use crate::exit::{Exit, UsageError};

pub use sections::io_sections;

/// Carries out a verb.
pub fn run_io_verb(context: &App, verb: &IoVerb) -> anyhow::Result<Exit> {
    match verb {
        IoVerb::Record(wanted) => record::record_io(context, wanted),
        IoVerb::Show(wanted) => show::show_reads(context, wanted),
        IoVerb::Coverage(wanted) => coverage::show_coverage(context, wanted),
        IoVerb::Export(wanted) => export::export_blkparse(context, wanted),
        IoVerb::Import(wanted) => import::import_io_trace(context, wanted),
        IoVerb::Where(wanted) => whose::print_block_owners(context, wanted),
    }
}

/// A recording in which each read stands once, where disks lie upon one another.
fn count_reads_once(context: &App, recording: IoRecording) -> IoRecording {
    for unplaced in &recording.told.unplaced {
        context.note(format!(
            "warning: where files on {} lie on the disk below is not known, so that its reads belong to no known file: {}",
            unplaced.device, unplaced.reason
        ));
    }
    let (recording, caused) = remove_stacked_requests(recording);
    if caused > 0 {
        let upper: Vec<String> = recording.told.stacks.iter().map(|stack| stack.device.to_string()).collect();
        context.note(format!(
            "{} that {} read from the disk below are left out: they stand there already as reads of the upper disk",
            perflab_model::Bytes(caused),
            upper.join(", ")
        ));
    }
    recording
}

/// The recording that the options name.
fn read_io_recording(context: &App, which: &IoSelection) -> anyhow::Result<IoRecording> {
    let all = crate::sides::select_run(&context.archive()?, &which.run)?.read_io_recordings()?;
    let slots: Vec<String> = all.iter().map(|(slot, _)| slot.to_string()).collect();
    let found = all.into_iter().find(|(slot, _)| which.slot.is_none_or(|wanted| wanted == *slot));
    let missing =
        || UsageError::new("I/O was not traced in this slot", format!("it was in {}", slots.join(", ")));
    Ok(found.map(|(_, recording)| recording).ok_or_else(missing)?)
}
