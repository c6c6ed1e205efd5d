//! `perflab io show`

use perflab_analyze::io::{by_directory, by_file, over_disk, over_time};
use perflab_present::io;

use crate::arguments::io::{By, Show};
use crate::context::Context;
use crate::exit::Exit;

/// Prints what was read, in the way that was asked for.
pub fn show(context: &Context, wanted: &Show) -> anyhow::Result<Exit> {
    let recording = super::counted(context, super::recording(context, &wanted.which)?);
    let grid = match wanted.by {
        By::File => io::files_grid(&by_file(&recording), wanted.top),
        By::Directory => io::folders_grid(&by_directory(&by_file(&recording)), wanted.top),
        By::Time => io::time_grid(&over_time(&recording, wanted.top)),
        By::Disk => io::disk_grid(&over_disk(&recording, wanted.top)),
    };
    context.print(&grid)?;
    Ok(Exit::Fine)
}
