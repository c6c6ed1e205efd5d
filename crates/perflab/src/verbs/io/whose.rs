//! `perflab io where`: from files to sectors, and back.

use std::path::Path;

use perflab_analyze::io::{Known, coverage};
use perflab_model::Nanos;
use perflab_model::io::{IoEvent, IoKind, IoRecording, SECTOR};
use perflab_observe::io::{Mounts, look, mounts, scan};
use perflab_present::table::{Cell, Column, Grid};

use crate::arguments::io::Where;
use crate::context::Context;
use crate::exit::{Exit, Usage};

/// Prints where files lie, or whose sectors are.
pub fn whose(context: &Context, wanted: &Where) -> anyhow::Result<Exit> {
    let grid = match &wanted.on {
        Some(place) => owners(place, &wanted.what)?,
        None => places(&wanted.what)?,
    };
    context.print(&grid)?;
    Ok(Exit::Fine)
}

fn places(files: &[String]) -> anyhow::Result<Grid> {
    let numbers = ["offset", "disk", "sector", "sectors"].map(Column::right);
    let mut grid = Grid::new(std::iter::once(Column::left("file")).chain(numbers));
    let all = Mounts::read();
    for name in files {
        let missing = || Usage::new(format!("there is no {name}"), "name files, or sectors with --on PLACE");
        let path = std::fs::canonicalize(name).map_err(|_| missing())?;
        let file = look(&path).ok_or_else(missing)?;
        let mut recording = IoRecording { files: vec![file], ..IoRecording::default() };
        let mount = all.under(&path);
        // Where the extents of a btrfs lie takes more than asking the file.
        mount.into_iter().for_each(|mount| perflab_observe::io::tell(&mut recording, mount));
        let below = mount.and_then(mounts::disk);
        for file in &recording.files {
            let (disk, start) = recording.told.disk(below.unwrap_or(file.device));
            for extent in &file.extents {
                let sector = (start + extent.physical) / SECTOR;
                let sectors = extent.length / SECTOR;
                let (name, disk) = (Cell::from(name.as_str()), Cell::from(disk.to_string()));
                grid.add([name, extent.logical.into(), disk, sector.into(), sectors.into()]);
            }
        }
    }
    Ok(grid)
}

fn owners(place: &Path, sectors: &[String]) -> anyhow::Result<Grid> {
    let ranges = sectors.iter().map(|text| range(text)).collect::<Result<Vec<_>, _>>()?;
    let mount = Mounts::read();
    let disk = mount.under(place).and_then(mounts::disk).unwrap_or_default();
    let disk = mounts::partition(disk).map_or(disk, |partition| partition.disk);
    let event = |(first, count)| IoEvent {
        at: Nanos(0),
        pid: 0,
        kind: IoKind::Issued,
        device: disk,
        inode: 0,
        first,
        count,
        name: Some("R".into()),
    };
    let mut recording =
        IoRecording { events: ranges.into_iter().map(event).collect(), ..IoRecording::default() };
    scan(&mut recording, place)?;
    let numbers = ["sector", "sectors", "inode", "offset"].map(Column::right);
    let mut grid = Grid::new(numbers.into_iter().chain([Column::left("of")]));
    for block in coverage(&recording, &Known::default()).blocks {
        let of = if block.name.is_empty() { "nobody that is known" } else { &block.name };
        let (inode, offset) = block
            .file
            .map_or((None, None), |(inode, page)| (Some(inode), Some(page * perflab_model::io::PAGE)));
        grid.add([block.sector.into(), block.sectors.into(), inode.into(), offset.into(), Cell::from(of)]);
    }
    Ok(grid)
}

/// `2048+8`, or `2048` for one block of 4 KiB.
fn range(text: &str) -> Result<(u64, u64), Usage> {
    let (first, count) = text.split_once('+').unwrap_or((text, "8"));
    let numbers = first.parse().ok().zip(count.parse().ok()).filter(|(_, count): &(u64, u64)| *count > 0);
    numbers.ok_or_else(|| Usage::new(format!("`{text}` names no sectors"), "for example 2048 or 2048+8"))
}
