//! `perflab disk-server`: an emulated disk. Started by perflab, not by people.

use anyhow::Context as _;
use perflab_conduct::disk;

use crate::arguments::DiskServerArgs;
use crate::exit::Exit;

/// Serves until the file system is unmounted, or the run that it serves is killed.
pub fn run_disk_server(wanted: &DiskServerArgs) -> anyhow::Result<Exit> {
    let DiskServerArgs { model, image, place, parent } = wanted;
    perflab_conduct::guest::child_process::end_with_parent(*parent)
        .context("cannot end with the run that it serves")?;
    let served = disk::serve_disk(image, *model, place);
    served.with_context(|| format!("cannot serve {} in {}", image.display(), place.display()))?;
    Ok(Exit::Fine)
}
