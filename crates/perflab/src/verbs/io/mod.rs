//! `perflab io`

mod coverage;
mod evidence;
mod export;
mod import;
mod record;
mod sections;
mod show;
mod whose;

use perflab_analyze::io::count_once;
use perflab_model::io::IoRecording;

use crate::arguments::io::{IoVerb, Which};
use crate::context::Context;
use crate::exit::{Exit, Usage};

pub use sections::sections;

/// Carries out a verb.
pub fn run(context: &Context, verb: &IoVerb) -> anyhow::Result<Exit> {
    match verb {
        IoVerb::Record(wanted) => record::record(context, wanted),
        IoVerb::Show(wanted) => show::show(context, wanted),
        IoVerb::Coverage(wanted) => coverage::coverage(context, wanted),
        IoVerb::Export(wanted) => export::export(context, wanted),
        IoVerb::Import(wanted) => import::import(context, wanted),
        IoVerb::Where(wanted) => whose::whose(context, wanted),
    }
}

/// A recording in which each read stands once, where disks lie upon one another.
fn counted(context: &Context, recording: IoRecording) -> IoRecording {
    for unplaced in &recording.told.unplaced {
        context.say(format!(
            "warning: where files on {} lie on the disk below is not known, so that its reads belong to no known file: {}",
            unplaced.device, unplaced.reason
        ));
    }
    let (recording, caused) = count_once(recording);
    if caused > 0 {
        let upper: Vec<String> = recording.told.stacks.iter().map(|stack| stack.device.to_string()).collect();
        context.say(format!(
            "{} that {} read from the disk below are left out: they stand there already as reads of the upper disk",
            perflab_model::Bytes(caused),
            upper.join(", ")
        ));
    }
    recording
}

/// The recording that the options name.
fn recording(context: &Context, which: &Which) -> anyhow::Result<IoRecording> {
    let all = crate::sides::one(&context.archive()?, &which.run)?.io()?;
    let slots: Vec<String> = all.iter().map(|(slot, _)| slot.to_string()).collect();
    let found = all.into_iter().find(|(slot, _)| which.slot.is_none_or(|wanted| wanted == *slot));
    let missing = || Usage::new("I/O was not traced in this slot", format!("it was in {}", slots.join(", ")));
    Ok(found.map(|(_, recording)| recording).ok_or_else(missing)?)
}
