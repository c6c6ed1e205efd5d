//! `perflab disk-server`: an emulated disk. Started by perflab, not by people.

use anyhow::Context as _;
use perflab_conduct::emulated;

use crate::arguments::DiskServer;
use crate::exit::Exit;

/// Serves until the file system is unmounted, or the run that it serves is killed.
pub fn run(wanted: &DiskServer) -> anyhow::Result<Exit> {
    let DiskServer { model, image, place, parent } = wanted;
    perflab_conduct::machine::launch::end_with(*parent).context("cannot end with the run that it serves")?;
    let served = emulated::serve(image, *model, place);
    served.with_context(|| format!("cannot serve {} in {}", image.display(), place.display()))?;
    Ok(Exit::Fine)
}
