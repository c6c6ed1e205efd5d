//! `perflab disk-server`: an emulated disk. Started by perflab, not by people.

use anyhow::Context as _;
use perflab_conduct::emulated;

use crate::arguments::DiskServer;
use crate::exit::Exit;

/// Serves until the file system is unmounted.
pub fn run(wanted: &DiskServer) -> anyhow::Result<Exit> {
    let DiskServer { model, image, place } = wanted;
    let served = emulated::serve(image, *model, place);
    served.with_context(|| format!("cannot serve {} in {}", image.display(), place.display()))?;
    Ok(Exit::Fine)
}
