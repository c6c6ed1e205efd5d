//! A trace as a pack of ureadahead's: its inode groups, its files, and its blocks in the order of the disk.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use perflab_model::io_trace::PAGE;
use perflab_prefetch::{ProgramTraces, TracedFile};

/// Room for a name, with what ends it.
const NAME: usize = 256;

/// The command that replays the trace; none where nobody says where ureadahead is.
pub fn ureadahead_command(
    home: &Path,
    disk: &Path,
    rotates: bool,
    known: &ProgramTraces,
) -> anyhow::Result<Option<String>> {
    let Some(program) = std::env::var_os("UREADAHEAD") else {
        eprintln!("ureadahead is left out: UREADAHEAD does not say where it is");
        return Ok(None);
    };
    let pack = home.join("pack");
    std::fs::write(&pack, ureadahead_pack(disk, rotates, known)?)?;
    Ok(Some(format!("{} --quiet {}", program.display(), pack.display())))
}

fn ureadahead_pack(disk: &Path, rotates: bool, known: &ProgramTraces) -> anyhow::Result<Vec<u8>> {
    let device = std::fs::metadata(disk)?.dev();
    let start = known.starts.last().context("no start is known")?;
    let place = disk.parent().context("a disk lies in no folder")?;
    // A pack is of one device; groups of another one's inodes are not there.
    let ours =
        |file: &&TracedFile| Path::new(&start.systems[file.system].place) == place && file.path.len() < NAME;
    let files: Vec<&TracedFile> = start.files.iter().filter(ours).collect();
    ensure!(2 * files.len() > start.files.len(), "{} of {} files lie there", files.len(), start.files.len());
    let inodes = inodes_per_group(disk)?;
    let group = |file: &TracedFile| i32::try_from((file.inode - 1) / inodes);
    let groups: BTreeSet<i32> = files.iter().map(|file| group(file)).collect::<Result<_, _>>()?;
    // Its name and version, whether the disk turns, its number, and when the pack was made.
    let mut pack = b"ura\x02".to_vec();
    pack.extend([u8::from(rotates), 0, 0, 0]);
    let mut number = |number: u64| pack.extend(number.to_le_bytes());
    number(device);
    number(start.when);
    number(groups.len() as u64);
    pack.extend(groups.iter().flat_map(|group| group.to_le_bytes()));
    pack.extend((files.len() as u64).to_le_bytes());
    for file in &files {
        // A number of four bytes, and four to get the next one even.
        pack.extend(u64::from(group(file)?.cast_unsigned()).to_le_bytes());
        pack.extend(file.inode.to_le_bytes());
        let mut name = [0; NAME];
        name[..file.path.len()].copy_from_slice(file.path.as_bytes());
        pack.extend(name);
    }
    let blocks = pack_blocks(&files);
    pack.extend((blocks.len() as u64).to_le_bytes());
    pack.extend(blocks.iter().flatten().flat_map(|number| number.to_le_bytes()));
    Ok(pack)
}

/// Of each piece its file, offset, length, and place on the disk, by place.
fn pack_blocks(files: &[&TracedFile]) -> Vec<[u64; 4]> {
    let pieces = |(index, file): (usize, &&TracedFile)| {
        let pieces = file.extents_of(&file.pages).into_iter();
        let block = move |(mark, count): (perflab_prefetch::startup_trace::TracedExtent, u64)| {
            [index as u64, mark.page * PAGE, count * PAGE, mark.place.unwrap_or(0)]
        };
        pieces.map(block).collect::<Vec<_>>()
    };
    let mut blocks: Vec<[u64; 4]> = files.iter().enumerate().flat_map(pieces).collect();
    blocks.sort_by_key(|block| block[3]);
    blocks
}

fn inodes_per_group(disk: &Path) -> anyhow::Result<u64> {
    let device = Command::new("findmnt").args(["-n", "-o", "SOURCE", "--target"]).arg(disk).output()?;
    let device = String::from_utf8(device.stdout)?;
    let said = Command::new("dumpe2fs").args(["-h", device.trim()]).output()?;
    let said = String::from_utf8(said.stdout)?;
    let inodes = said.lines().find_map(|line| line.strip_prefix("Inodes per group:"));
    Ok(inodes.context("dumpe2fs does not say how many inodes a group has")?.trim().parse()?)
}
