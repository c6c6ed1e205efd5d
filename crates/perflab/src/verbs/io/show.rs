//! `perflab io show`

use perflab_analyze::{reads_by_directory, reads_by_file, reads_over_disk, reads_over_time};
use perflab_present::io;

use crate::arguments::io::{IoGrouping, IoShowArgs};
use crate::context::App;
use crate::exit::Exit;

/// Prints what was read, in the way that was asked for.
pub fn show_reads(context: &App, wanted: &IoShowArgs) -> anyhow::Result<Exit> {
    let recording = super::count_reads_once(context, super::read_io_recording(context, &wanted.which)?);
    let grid = match wanted.by {
        IoGrouping::File => io::files_grid(&reads_by_file(&recording), wanted.top),
        IoGrouping::Directory => {
            io::folders_grid(&reads_by_directory(&reads_by_file(&recording)), wanted.top)
        }
        IoGrouping::Time => io::reads_over_time_grid(&reads_over_time(&recording, wanted.top)),
        IoGrouping::Disk => io::reads_over_disk_grid(&reads_over_disk(&recording, wanted.top)),
    };
    context.print_grid(&grid)?;
    Ok(Exit::Fine)
}
