//! `perflab io import`: a block trace, with the files of the file system that was traced.

use std::path::Path;

use perflab_archive::import::{BlockMapFile, BlockTraceFileSystem, ImportOptions, Importer};
use perflab_model::Bytes;
use perflab_model::io_trace::IoRecording;
use perflab_observe::io::{match_sectors_to_files, require_disk_below};

use super::evidence::refuse_bzip2;
use crate::arguments::io::IoImportArgs;
use crate::context::App;
use crate::exit::{Exit, UsageError};
use crate::verbs::import::refuse_endless;

/// Makes a run of a trace.
pub fn import_io_trace(context: &App, wanted: &IoImportArgs) -> anyhow::Result<Exit> {
    refuse_endless(&wanted.path)?;
    refuse_bzip2(&wanted.path)?;
    let kind = Importer::detect_importer(&wanted.path)?;
    if !matches!(kind, Importer::Blktrace | Importer::Blkparse) {
        let message = format!("{} is no block trace", wanted.path.display());
        let hint = "a file of blktrace or the text of blkparse is one; `perflab import` takes other results";
        return Err(UsageError::new(message, hint).into());
    }
    if let Some(place) = &wanted.on {
        // Looked at first: a place that is none must not cost a run.
        require_disk_below(place)?;
    }
    let on =
        wanted.on.clone().map(|place| BlockTraceFileSystem { mount_point: place, find: find_files_on_disk });
    let block_map = wanted.map.as_deref().map(|map| block_map_from_args(map, wanted)).transpose()?;
    let options = ImportOptions {
        label: wanted.label.clone(),
        kind: Some(kind),
        on,
        block_map,
        ..ImportOptions::default()
    };
    crate::verbs::import::import_results(context, &[(kind, wanted.path.clone())], &options)
}

fn block_map_from_args(map: &Path, wanted: &IoImportArgs) -> Result<BlockMapFile, UsageError> {
    refuse_bzip2(map)?;
    refuse_endless(map)?;
    let is_size = |size: &Bytes| size.0.is_power_of_two() && (512..=65_536).contains(&size.0);
    let size = |text: &str| {
        let size = Bytes::parse(text).ok().filter(is_size);
        let hint = "a power of two from 512 to 64KiB, for example 4KiB";
        size.ok_or_else(|| UsageError::new(format!("--block-size: `{text}` is no size of blocks"), hint))
    };
    let block_size = wanted.block_size.as_deref().map(size).transpose()?;
    Ok(BlockMapFile { path: map.into(), partition_start: wanted.partition_start, block_size })
}

fn find_files_on_disk(recording: &mut IoRecording, place: &Path) {
    if let Err(error) = match_sectors_to_files(recording, place) {
        stderr_line!("warning: no file is named: {error}");
    }
}
