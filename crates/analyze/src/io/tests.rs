//! A disk whose every sector is known beforehand: a file in two pieces, a folder, a file system's own blocks, nobody's.

use std::collections::BTreeMap;

use perflab_model::Nanos;
use perflab_model::io::{
    Device, Extent, FileClass, IoEvent, IoFile, IoKind, IoRecording, IoTold, MetadataClass, MetadataRange,
    PAGE, Partition, Runs,
};

use super::*;

/// The file system, its disk, and the kernel's file system of disks.
const SYSTEM: Device = Device(8 << 20 | 1);
const DISK: Device = Device(8 << 20);
const DISKS: Device = Device(3);
/// Where the partition begins, in sectors.
const START: u64 = 2048;

fn event(at: u64, kind: IoKind, device: Device, inode: u64, first: u64, count: u64, name: &str) -> IoEvent {
    let name = (!name.is_empty()).then(|| name.into());
    IoEvent { at: Nanos(at), pid: 7, kind, device, inode, first, count, name }
}

fn request(at: u64, kind: IoKind, first: u64, count: u64, flags: &str) -> IoEvent {
    event(at, kind, DISK, 0, START + first, count, flags)
}

fn file(inode: u64, class: FileClass, path: &str, extents: &[(u64, u64, u64)]) -> IoFile {
    let extent = |(logical, physical, length): &(u64, u64, u64)| Extent {
        logical: logical * PAGE,
        physical: physical * PAGE,
        length: length * PAGE,
    };
    IoFile {
        device: SYSTEM,
        inode,
        generation: None,
        class,
        path: Some(path.into()),
        size: 1 << 20,
        changed: 0,
        extents: extents.iter().map(extent).collect(),
    }
}

/// Pages 0..4 of a file lie at blocks 10..14, pages 4..8 at 100..104; a folder at 20; inodes at 30..32, of which one block
/// of a folder is told by itself; block 40 came as the disk's own; blocks 50 and 60 are nobody's.
fn recording(events: Vec<IoEvent>) -> IoRecording {
    let disk =
        IoFile { device: DISKS, inode: u64::from(SYSTEM.0), ..file(0, FileClass::Disk, "/dev/sda1", &[]) };
    let range = |block: u64, blocks: u64, class| MetadataRange {
        device: SYSTEM,
        physical: block * PAGE,
        length: blocks * PAGE,
        class,
    };
    IoRecording {
        events,
        files: vec![
            file(12, FileClass::File, "/lib/a", &[(0, 10, 4), (4, 100, 4)]),
            file(13, FileClass::Directory, "/lib", &[(0, 20, 4)]),
            disk,
        ],
        told: IoTold {
            metadata: vec![range(30, 2, MetadataClass::InodeTable), range(21, 1, MetadataClass::Directory)],
            partitions: vec![Partition { device: SYSTEM, disk: DISK, start: START * 512 }],
            ended: Nanos(1000),
            names: [(7, "cat".into())].into(),
            ..IoTold::default()
        },
    }
}

fn blocks(found: &Coverage) -> BTreeMap<(Status, String), u64> {
    let mut all = BTreeMap::new();
    for block in &found.blocks {
        *all.entry((block.status, block.name.clone())).or_default() += block.sectors;
    }
    all
}

#[test]
fn every_sector_has_one_owner_and_one_status() {
    let own = u64::from(SYSTEM.0);
    let recording = recording(vec![
        request(1, IoKind::Issued, 0, 8, "R"),
        event(2, IoKind::Exec, Device(0), 0, 0, 0, "/bin/cat"),
        event(3, IoKind::Added, SYSTEM, 12, 0, 8, ""),
        event(3, IoKind::Added, DISKS, own, 40, 1, ""),
        event(4, IoKind::Read, SYSTEM, 12, 1, 2, ""),
        // Pages 0..4, of which 1 and 2 are needed, and 1 is known; and half of what comes after on the disk.
        request(5, IoKind::Issued, 80, 36, "RA"),
        request(6, IoKind::Issued, 160, 32, "RM"),
        request(7, IoKind::Issued, 240, 16, "RM"),
        request(8, IoKind::Issued, 320, 8, "R"),
        request(9, IoKind::Issued, 400, 8, "RM"),
        request(10, IoKind::Issued, 480, 8, "R"),
        request(11, IoKind::Issued, 800, 8, "W"),
    ]);
    let known = Known { files: [((SYSTEM, 12), [(1, 1)].into_iter().collect())].into(), ..Known::default() };
    let found = coverage(&recording, &known);
    let of = |status, name: &str| ((status, name.to_owned()), 8_u64);
    let expected = [
        ((Status::Before, String::new()), 8),
        of(Status::Found, "/lib/a"),
        of(Status::Missing, "/lib/a"),
        ((Status::ReadAround, "/lib/a".into()), 16),
        ((Status::Metadata, "/lib".into()), 24),
        ((Status::Metadata, "directory".into()), 8),
        ((Status::Metadata, "inode table".into()), 16),
        ((Status::Metadata, "tree".into()), 16),
        ((Status::Unknown, String::new()), 12),
    ];
    assert_eq!(blocks(&found), expected.into());
    assert!(found.blocks.iter().all(|block| block.program == "cat"));
    let sum: u64 = found.bytes.values().sum();
    assert_eq!((sum, found.answers.asked), ((8 + 36 + 32 + 16 + 8 + 8 + 8) * 512, sum));
    let trace =
        Known { sectors: [(DISK, Runs::from_iter([((256 + 30) * 8, 16)]))].into(), ..Known::default() };
    assert_eq!(blocks(&coverage(&recording, &trace))[&(Status::Found, "inode table".into())], 16);
}

#[test]
fn answers_are_a_check_on_the_classes() {
    let recording = recording(vec![
        request(1, IoKind::Completed, 900, 8, "R"),
        request(2, IoKind::Issued, 80, 32, "R"),
        request(3, IoKind::Completed, 80, 8, "R"),
        request(4, IoKind::Completed, 88, 24, "R"),
        request(5, IoKind::Issued, 160, 8, "R"),
        // Given back by a disk that was full up, and sent again with what follows it.
        request(6, IoKind::Issued, 160, 12, "R"),
        request(7, IoKind::Completed, 160, 12, "R"),
        request(8, IoKind::Issued, 240, 8, "RM"),
        request(9, IoKind::Completed, 800, 8, "W"),
    ]);
    let found = coverage(&recording, &Known::default());
    let sectors = |count: u64| count * 512;
    let expected = Answers {
        asked: sectors(52),
        delivered: sectors(52),
        early: sectors(8),
        under_way: sectors(8),
        again: sectors(8),
    };
    assert_eq!(found.answers, expected);
    let sum = found.bytes.values().sum();
    assert_eq!(found.answers.contradiction(sum), 0);
    assert_eq!(found.answers.contradiction(sum - 4096), 4096);
    assert_eq!(found.bytes[&Status::Before], 0, "no start of a program was seen, so nothing was before it");
}

#[test]
fn requests_alone_tell_of_files_too() {
    let recording = recording(vec![
        request(5, IoKind::Issued, 96, 32, "R"),
        request(6, IoKind::Issued, 800, 8, "R"),
        request(7, IoKind::Issued, 240, 8, "RM"),
    ]);
    let files = by_file(&recording);
    let seen: Vec<_> =
        files.iter().map(|file| (file.name.as_str(), file.added.iter().collect::<Vec<_>>())).collect();
    assert_eq!(
        seen,
        [
            ("/lib/a", vec![(2, 3)]),
            ("no known file of 8:0", vec![(270, 2)]),
            ("inode table of 8:0", vec![(286, 1)]),
        ]
    );
}

#[test]
fn a_partition_off_the_grid_of_pages_widens_nothing() {
    // The disk of 2007 began its first partition at sector 63; a page of a file there lies across two of the disk's.
    let mut recording = recording(vec![event(5, IoKind::Issued, DISK, 0, 63 + 80, 32, "R")]);
    recording.told.partitions = vec![Partition { device: SYSTEM, disk: DISK, start: 63 * 512 }];
    let files = by_file(&recording);
    let seen: Vec<_> = files.iter().map(|file| (file.name.as_str(), file.read)).collect();
    assert_eq!(seen, [("/lib/a", 4 * PAGE)]);
    let alone = IoRecording { events: recording.events, ..IoRecording::default() };
    assert_eq!(by_file(&alone)[0].read, 32 * 512, "no map: nobody's, and still no more than was asked for");
}

/// Whose a sector is, said anew without any stretch: files by their extents, over ranges of metadata, the narrower first.
fn owner_of(recording: &IoRecording, start: u64, sector: u64) -> String {
    let Some(byte) = sector.checked_sub(start).map(|sector| sector * 512) else { return String::new() };
    let holds = |from: u64, length: u64| (from..from + length).contains(&byte);
    let of = |file: &&IoFile| file.extents.iter().any(|extent| holds(extent.physical, extent.length));
    let ranges = recording.told.metadata.iter().filter(|range| holds(range.physical, range.length));
    let narrow = ranges.min_by_key(|range| range.length).map(|range| range.class.name().to_owned());
    let file = recording.files.iter().find(of).and_then(|file| file.path.clone());
    match narrow {
        Some(class) if class == MetadataClass::Directory.name() => class,
        narrow => file.or(narrow).unwrap_or_default(),
    }
}

proptest::proptest! {
    /// Files, own blocks and what is unknown sum to the requests, each sector by sector, wherever a partition begins.
    #[test]
    fn bytes_by_file_are_those_of_the_requests(
        start in 0_u64..200,
        requests in proptest::collection::vec((0_u64..1100, 1_u64..300), 1..20),
    ) {
        let events = requests.iter().map(|(first, count)| event(5, IoKind::Issued, DISK, 0, *first, *count, "R"));
        let mut recording = recording(events.collect());
        recording.told.partitions = vec![Partition { device: SYSTEM, disk: DISK, start: start * 512 }];
        let mut expected: BTreeMap<String, u64> = BTreeMap::new();
        for sector in requests.iter().flat_map(|(first, count)| *first..first + count) {
            let name = match owner_of(&recording, start, sector) {
                name if name.is_empty() => "no known file of 8:0".into(),
                name if name.starts_with('/') => name,
                class => format!("{class} of 8:0"),
            };
            *expected.entry(name).or_default() += 512;
        }
        let files = by_file(&recording);
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        files.iter().for_each(|file| *found.entry(file.name.clone()).or_default() += file.read);
        proptest::prop_assert_eq!(&found, &expected);
        let asked: u64 = requests.iter().map(|(_, count)| count * 512).sum();
        proptest::prop_assert_eq!(found.values().sum::<u64>(), asked);
        let folders: u64 = by_directory(&files).iter().map(|folder| folder.read).sum();
        proptest::prop_assert_eq!(folders, asked);
        let disk: u64 = over_disk(&recording, 7).iter().map(|place| place.bytes).sum();
        proptest::prop_assert_eq!(disk, asked);
    }
}

#[test]
fn a_read_of_a_stacked_disk_is_counted_once() {
    let upper = Device::new(7, 0);
    let on_upper = |kind| event(1, kind, upper, 0, 0, 16, "R");
    let events = vec![
        on_upper(IoKind::Issued),
        event(2, IoKind::Issued, DISK, 0, 90, 40, "R"),
        event(3, IoKind::Completed, DISK, 0, 90, 40, "R"),
        event(3, IoKind::Issued, DISK, 0, 0, 0, "FF"),
        on_upper(IoKind::Completed),
    ];
    let mut recording = IoRecording { events, ..IoRecording::default() };
    let range = |first, sectors| perflab_model::io::SectorRange { disk: DISK, first, sectors };
    let stack = perflab_model::io::Stack { device: upper, below: vec![range(120, 100), range(100, 8)] };
    recording.told.stacks = vec![stack];
    let (once, caused) = count_once(recording.clone());
    assert_eq!(caused, 18 * 512, "sectors 100..108 and 120..130");
    let reads: Vec<_> = once.events.iter().map(|event| (event.device, event.first, event.count)).collect();
    let parts = [(DISK, 90, 10), (DISK, 108, 12)];
    let expected = [[(upper, 0, 16)].as_slice(), &parts, &parts, &[(DISK, 0, 0), (upper, 0, 16)]].concat();
    assert_eq!(reads, expected);
    let found = coverage(&once, &Known::default());
    assert_eq!(found.answers.contradiction(found.bytes.values().sum()), 0);
    recording.events.retain(|event| event.device != upper);
    let passed_on = count_once(recording.clone());
    assert_eq!(passed_on, (recording, 0), "an upper disk without requests of its own takes nothing away");
}
