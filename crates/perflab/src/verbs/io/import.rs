//! `perflab io import`: a block trace, with the files of the file system that was traced.

use std::path::Path;

use perflab_archive::import::{BlockMapFile, Kind, On, Options};
use perflab_model::Bytes;
use perflab_model::io::IoRecording;
use perflab_observe::io::{lies_on_a_disk, scan};

use super::evidence::refuse_packed;
use crate::arguments::io::Import;
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::verbs::import::refuse_endless;

/// Makes a run of a trace.
pub fn import(context: &Context, wanted: &Import) -> anyhow::Result<Exit> {
    refuse_endless(&wanted.path)?;
    refuse_packed(&wanted.path)?;
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
    let block_map = wanted.map.as_deref().map(|map| block_map(map, wanted)).transpose()?;
    let options =
        Options { label: wanted.label.clone(), kind: Some(kind), on, block_map, ..Options::default() };
    crate::verbs::import::kept(context, &[(kind, wanted.path.clone())], &options)
}

fn block_map(map: &Path, wanted: &Import) -> Result<BlockMapFile, Usage> {
    refuse_packed(map)?;
    refuse_endless(map)?;
    let is_size = |size: &Bytes| size.0.is_power_of_two() && (512..=65_536).contains(&size.0);
    let size = |text: &str| {
        let size = Bytes::parse(text).ok().filter(is_size);
        let hint = "a power of two from 512 to 64KiB, for example 4KiB";
        size.ok_or_else(|| Usage::new(format!("--block-size: `{text}` is no size of blocks"), hint))
    };
    let block_size = wanted.block_size.as_deref().map(size).transpose()?;
    Ok(BlockMapFile { path: map.into(), partition_start: wanted.partition_start, block_size })
}

fn find(recording: &mut IoRecording, place: &Path) {
    if let Err(error) = scan(recording, place) {
        stderr_line!("warning: no file is named: {error}");
    }
}
