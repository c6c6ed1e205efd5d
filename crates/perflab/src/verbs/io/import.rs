//! `perflab io import`: a block trace, with the files of the file system that was traced.

use std::path::Path;

use perflab_archive::import::{Kind, On, Options};
use perflab_model::io::IoRecording;
use perflab_observe::io::{lies_on_a_disk, scan};

use crate::arguments::io::Import;
use crate::context::Context;
use crate::exit::{Exit, Usage};

/// Makes a run of a trace.
pub fn import(context: &Context, wanted: &Import) -> anyhow::Result<Exit> {
    crate::verbs::import::refuse_endless(&wanted.path)?;
    let kind = Kind::guess(&wanted.path)?;
    if !matches!(kind, Kind::Blktrace | Kind::Blkparse) {
        let message = format!("{} is no block trace", wanted.path.display());
        let hint = "a file of blktrace or the text of blkparse is one; `perflab import` takes other results";
        return Err(Usage::new(message, hint).into());
    }
    if let Some(place) = &wanted.on {
        // Looked at first: a place that is none must not cost a run.
        lies_on_a_disk(place)?;
    }
    let on = wanted.on.clone().map(|place| On { place, find });
    let options = Options { label: wanted.label.clone(), kind: Some(kind), on, ..Options::default() };
    crate::verbs::import::kept(context, &[(kind, wanted.path.clone())], &options)
}

fn find(recording: &mut IoRecording, place: &Path) {
    if let Err(error) = scan(recording, place) {
        stderr_line!("warning: no file is named: {error}");
    }
}
