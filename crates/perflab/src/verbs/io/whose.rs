//! `perflab io where`: from files to sectors, and back.

use std::path::Path;

use perflab_analyze::{TraceContents, trace_coverage};
use perflab_model::Nanos;
use perflab_model::io_trace::{IoEvent, IoEventKind, IoRecording, SECTOR};
use perflab_observe::io::{MountTable, describe_file, match_sectors_to_files};
use perflab_observe::mounts;
use perflab_present::comparison::{Grid, GridCell, GridColumn};

use crate::arguments::io::BlockOwnerArgs;
use crate::context::App;
use crate::exit::{Exit, UsageError};

/// Prints where files lie, or whose sectors are.
pub fn print_block_owners(context: &App, wanted: &BlockOwnerArgs) -> anyhow::Result<Exit> {
    let grid = match &wanted.on {
        Some(place) => block_owner_grid(place, &wanted.what)?,
        None => extent_grid(&wanted.what)?,
    };
    context.print_grid(&grid)?;
    Ok(Exit::Fine)
}

fn extent_grid(files: &[String]) -> anyhow::Result<Grid> {
    let numbers = ["offset", "disk", "sector", "sectors"].map(GridColumn::right);
    let mut grid = Grid::new(std::iter::once(GridColumn::left("file")).chain(numbers));
    let all = MountTable::read();
    for name in files {
        let missing =
            || UsageError::new(format!("there is no {name}"), "name files, or sectors with --on PLACE");
        let path = std::fs::canonicalize(name).map_err(|_| missing())?;
        let file = describe_file(&path).ok_or_else(missing)?;
        let mut recording = IoRecording { files: vec![file], ..IoRecording::default() };
        let mount = all.find_by_path(&path);
        // Where the extents of a btrfs lie takes more than asking the file.
        mount.into_iter().for_each(|mount| perflab_observe::io::describe_file_system(&mut recording, mount));
        let below = mount.and_then(mounts::disk_below);
        for file in &recording.files {
            let (disk, start) = recording.told.disk_below(below.unwrap_or(file.device));
            for extent in &file.extents {
                let sector = (start + extent.physical) / SECTOR;
                let sectors = extent.length / SECTOR;
                let (name, disk) = (GridCell::from(name.as_str()), GridCell::from(disk.to_string()));
                grid.add_row([name, extent.logical.into(), disk, sector.into(), sectors.into()]);
            }
        }
    }
    Ok(grid)
}

fn block_owner_grid(place: &Path, sectors: &[String]) -> anyhow::Result<Grid> {
    let ranges = sectors.iter().map(|text| parse_sector_range(text)).collect::<Result<Vec<_>, _>>()?;
    let mount = MountTable::read();
    let disk = mount.find_by_path(place).and_then(mounts::disk_below).unwrap_or_default();
    let disk = mounts::partition_of_device(disk).map_or(disk, |partition| partition.disk);
    let event = |(first, count)| IoEvent {
        at: Nanos(0),
        pid: 0,
        kind: IoEventKind::Issued,
        device: disk,
        inode: 0,
        first,
        count,
        name: Some("R".into()),
    };
    let mut recording =
        IoRecording { events: ranges.into_iter().map(event).collect(), ..IoRecording::default() };
    match_sectors_to_files(&mut recording, place)?;
    let numbers = ["sector", "sectors", "inode", "offset"].map(GridColumn::right);
    let mut grid = Grid::new(numbers.into_iter().chain([GridColumn::left("of")]));
    for block in trace_coverage(&recording, &TraceContents::default()).blocks {
        let of = if block.name.is_empty() { "nobody that is known" } else { &block.name };
        let (inode, offset) = block
            .file
            .map_or((None, None), |(inode, page)| (Some(inode), Some(page * perflab_model::io_trace::PAGE)));
        grid.add_row([
            block.sector.into(),
            block.sectors.into(),
            inode.into(),
            offset.into(),
            GridCell::from(of),
        ]);
    }
    Ok(grid)
}

/// `2048+8`, or `2048` for one block of 4 KiB.
fn parse_sector_range(text: &str) -> Result<(u64, u64), UsageError> {
    let (first, count) = text.split_once('+').unwrap_or((text, "8"));
    let numbers = first.parse().ok().zip(count.parse().ok()).filter(|(_, count): &(u64, u64)| *count > 0);
    numbers.ok_or_else(|| UsageError::new(format!("`{text}` names no sectors"), "for example 2048 or 2048+8"))
}
