//! Block reads held against a startup trace, block by block of 4 KiB, with the reason why each is not in it.
//!
//! Every block that a disk was asked for gets exactly one [`BlockStatus`], so the classes sum to the bytes that the
//! disk delivered; that is a check on the analysis itself, and [`DiskReadBytes`] are counted apart from them. A full
//! disk queue gives a request back, and it is sent again: that is one read, counted once.

use std::collections::{BTreeMap, HashMap, HashSet};

use perflab_model::io_trace::{
    DeviceNumber, FileClass, IoEvent, IoEventKind, IoRecording, PageRange, SECTOR, ThreadNames,
};
use perflab_model::{Nanos, PageSet};

use crate::block_owner::{BLOCK, BlockOwner, BlockOwners, OwnedSectors};

/// What a prefetch trace would have brought: pages of files, and sectors of disks.
#[derive(Debug, Clone, Default)]
pub struct TraceContents {
    /// pages by file
    pub files: HashMap<(DeviceNumber, u64), PageSet>,
    /// sectors by disk: partitions may put a file system's blocks off the disk's 4 KiB grid
    pub sectors: HashMap<DeviceNumber, PageSet>,
}

/// What a block that was read is to the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlockStatus {
    /// the trace has it
    Found,
    /// it was needed, and the trace lacks it
    Missing,
    /// the trace lacks it, and which pages were needed was not recorded
    NotInTrace,
    /// it came along with others, and nobody needed it
    ReadAround,
    /// a file system's own block that the trace lacks
    Metadata,
    /// it was read before the traced program was started
    Before,
    /// it belongs to no file that was seen
    Unknown,
}

/// All of them, with a name.
pub const BLOCK_STATUSES: [(BlockStatus, &str); 7] = [
    (BlockStatus::Found, "found"),
    (BlockStatus::Missing, "missing"),
    (BlockStatus::NotInTrace, "not in trace"),
    (BlockStatus::ReadAround, "read around"),
    (BlockStatus::Metadata, "metadata"),
    (BlockStatus::Before, "before"),
    (BlockStatus::Unknown, "unknown"),
];

impl BlockStatus {
    /// Its name.
    pub fn name(self) -> &'static str {
        BLOCK_STATUSES.iter().find(|(status, _)| *status == self).map_or("", |(_, name)| name)
    }
}

/// One request's part with one status: neighbouring blocks of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockRead {
    /// when it was asked for, since tracing began
    pub at: Nanos,
    /// the disk
    pub disk: DeviceNumber,
    /// first sector
    pub sector: u64,
    /// sectors
    pub sectors: u64,
    /// in whose name
    pub pid: i32,
    /// the program that this thread ran; its number, where nothing tells
    pub program: String,
    /// what it is to the trace
    pub status: BlockStatus,
    /// file it belongs to, and first page there
    pub file: Option<(u64, u64)>,
    /// path, or class of metadata
    pub name: String,
}

/// Everything that disks were asked to read, by status.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceCoverage {
    /// in the order of time
    pub blocks: Vec<BlockRead>,
    /// bytes by status, every status once
    pub bytes: BTreeMap<BlockStatus, u64>,
    /// the same bytes, counted from what disks answered
    pub answers: DiskReadBytes,
}

impl TraceContents {
    /// The pages of a list that another tool made, and under which device it names the file system of the recording's files,
    /// where these are of a map: that knows no number of its partition, so that is the one with most of its inodes.
    pub fn from_pages(recording: &IoRecording, ranges: &[PageRange]) -> (Self, Option<DeviceNumber>) {
        let mapped = recording.summary.block_map.and(recording.files.first()).map(|file| file.device);
        let inodes: HashSet<u64> = recording.files.iter().map(|file| file.inode).collect();
        let mut common: BTreeMap<DeviceNumber, HashSet<u64>> = BTreeMap::new();
        for range in ranges.iter().filter(|range| inodes.contains(&range.inode)) {
            common.entry(range.device).or_default().insert(range.inode);
        }
        let named =
            mapped.and(common.into_iter().max_by_key(|(_, inodes)| inodes.len()).map(|(device, _)| device));
        let mut files: HashMap<(DeviceNumber, u64), Vec<(u64, u64)>> = HashMap::new();
        for range in ranges {
            let device = match (named, mapped) {
                (Some(named), Some(mapped)) if range.device == named => mapped,
                // Of another file system: under the number of the mapped one it would be taken for its own.
                (_, Some(mapped)) if range.device == mapped => continue,
                _ => range.device,
            };
            files.entry((device, range.inode)).or_default().push((range.first, range.count));
        }
        let files = files.into_iter().map(|(file, pages)| (file, pages.into_iter().collect())).collect();
        (TraceContents { files, ..TraceContents::default() }, named)
    }
}

/// Holds a recording against what a trace knows.
pub fn trace_coverage(recording: &IoRecording, known: &TraceContents) -> TraceCoverage {
    let held = CoverageInputs {
        map: BlockOwners::new(recording),
        needed: needed_pages(recording),
        tells_uses: recording.events.iter().any(|event| event.kind.is_page_use()),
        contents: known,
        begin: recording.events.iter().find(|event| event.kind == IoEventKind::Exec).map(|event| event.at),
        begun: recording.summary.begun,
        programs: ThreadNames::from_recording(recording),
    };
    let (reads, answers) = completed_reads(recording);
    let bytes = BLOCK_STATUSES.map(|(status, _)| (status, 0)).into();
    let mut found = TraceCoverage { bytes, answers, ..TraceCoverage::default() };
    for event in &reads {
        for piece in held
            .map
            .split_by_owner(event)
            .into_iter()
            .flat_map(|piece| held.split_by_trace(event.device, piece))
        {
            let block = held.classify_block(event, &piece);
            *found.bytes.entry(block.status).or_default() += block.sectors * SECTOR;
            append_block_read(&mut found.blocks, block);
        }
    }
    found
}

/// What a recording is held against.
struct CoverageInputs<'a> {
    map: BlockOwners<'a>,
    needed: HashMap<(DeviceNumber, u64), PageSet>,
    /// whether it was recorded which pages were needed
    tells_uses: bool,
    contents: &'a TraceContents,
    /// when the first program was started; none where none was seen, and then nothing is before it
    begin: Option<Nanos>,
    begun: Nanos,
    programs: ThreadNames<'a>,
}

impl CoverageInputs<'_> {
    fn classify_block(&self, event: &IoEvent, piece: &OwnedSectors<'_>) -> BlockRead {
        let status = match self.begin {
            Some(begin) if event.at < begin => BlockStatus::Before,
            _ => self.block_status(event.device, piece),
        };
        let (file, name) = match piece.owner {
            Some(BlockOwner::File(file, page)) => {
                (Some((file.inode, page)), file.path.clone().unwrap_or_default())
            }
            Some(BlockOwner::Metadata(class)) => (None, class.name().to_owned()),
            None => (None, String::new()),
        };
        let program = self.programs.name_at(event.pid, event.at);
        BlockRead {
            at: event.at.since(self.begun),
            disk: event.device,
            sector: piece.sector,
            sectors: piece.end - piece.sector,
            pid: event.pid,
            program: program.map_or_else(|| event.pid.to_string(), String::from),
            status,
            file,
            name,
        }
    }

    fn is_traced(&self, disk: DeviceNumber, sector: u64) -> bool {
        self.contents.sectors.get(&disk).is_some_and(|sectors| sectors.contains(sector))
    }

    /// A piece, parted where the trace begins or ends to know its sectors.
    fn split_by_trace<'a>(&self, disk: DeviceNumber, piece: OwnedSectors<'a>) -> Vec<OwnedSectors<'a>> {
        let mut parts: Vec<OwnedSectors<'a>> = Vec::new();
        let mut before = None;
        for sector in piece.sector..piece.end {
            let is_traced = self.is_traced(disk, sector);
            match parts.last_mut().filter(|_| before == Some(is_traced)) {
                Some(last) => last.end = sector + 1,
                None => parts.push(OwnedSectors { sector, end: sector + 1, ..piece }),
            }
            before = Some(is_traced);
        }
        parts
    }

    fn block_status(&self, disk: DeviceNumber, piece: &OwnedSectors<'_>) -> BlockStatus {
        let is_traced = self.is_traced(disk, piece.sector);
        match piece.owner {
            _ if is_traced => BlockStatus::Found,
            Some(BlockOwner::File(file, page)) => {
                let has = |all: &HashMap<(DeviceNumber, u64), PageSet>| {
                    all.get(&(file.device, file.inode)).is_some_and(|runs| runs.contains(page))
                };
                match () {
                    () if has(&self.contents.files) => BlockStatus::Found,
                    () if file.class == FileClass::Directory => BlockStatus::Metadata,
                    () if !self.tells_uses => BlockStatus::NotInTrace,
                    () if has(&self.needed) => BlockStatus::Missing,
                    () => BlockStatus::ReadAround,
                }
            }
            Some(BlockOwner::Metadata(_)) => BlockStatus::Metadata,
            None => BlockStatus::Unknown,
        }
    }
}

fn needed_pages(recording: &IoRecording) -> HashMap<(DeviceNumber, u64), PageSet> {
    let mut all: HashMap<(DeviceNumber, u64), Vec<(u64, u64)>> = HashMap::new();
    for event in recording.events.iter().filter(|event| event.kind.is_page_use()) {
        all.entry((event.device, event.inode)).or_default().push((event.first, event.count));
    }
    all.into_iter().map(|(file, runs)| (file, runs.into_iter().collect())).collect()
}

/// Neighbours of one request, file and status are one line.
fn append_block_read(all: &mut Vec<BlockRead>, next: BlockRead) {
    let joins = |last: &BlockRead| {
        let pages = last.sectors.div_ceil(BLOCK);
        last.at == next.at
            && last.status == next.status
            && last.name == next.name
            && last.sector + last.sectors == next.sector
            && last.file.map(|(inode, page)| (inode, page + pages)) == next.file
    };
    match all.last_mut().filter(|last| joins(last)) {
        Some(last) => last.sectors += next.sectors,
        None => all.push(next),
    }
}

/// Bytes of reads as disks were asked for them and answered: counted from the answers, apart from the classes of coverage, so
/// that one is a check on the other. `asked + early == delivered + under_way` holds where no event was lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskReadBytes {
    /// bytes that disks were asked for
    pub requested: u64,
    /// bytes that they delivered
    pub completed: u64,
    /// of these, asked for before tracing began
    pub before_start: u64,
    /// asked for, and not delivered when tracing ended
    pub in_flight: u64,
    /// sent again before they were delivered, and counted once
    pub resubmitted: u64,
}

impl DiskReadBytes {
    /// By how many bytes the sum of the classes and the answers contradict each other: 0 unless events were lost.
    #[must_use]
    pub fn contradiction(&self, sum: u64) -> u64 {
        (sum + self.before_start).abs_diff(self.completed + self.in_flight)
    }
}

/// Every read once, and how they were answered.
fn completed_reads(recording: &IoRecording) -> (Vec<IoEvent>, DiskReadBytes) {
    let mut progress = ReadProgress::default();
    for event in &recording.events {
        match event.kind {
            IoEventKind::Issued if event.is_read_request() => progress.add_issued(event),
            IoEventKind::Completed if event.is_read_request() => progress.add_completed(event),
            _ => {}
        }
    }
    progress.answers.in_flight = progress.waiting.values().sum::<u64>() * SECTOR;
    (progress.reads, progress.answers)
}

/// What goes to disks and comes back.
#[derive(Default)]
struct ReadProgress {
    reads: Vec<IoEvent>,
    answers: DiskReadBytes,
    /// by disk and first sector, how many sectors are waited for
    waiting: HashMap<(DeviceNumber, u64), u64>,
}

impl ReadProgress {
    fn add_issued(&mut self, event: &IoEvent) {
        let known = self.waiting.get(&(event.device, event.first)).copied().unwrap_or(0);
        self.answers.resubmitted += known.min(event.count) * SECTOR;
        // Sent again, it may have grown by others that follow it on the disk.
        let new = event.count.saturating_sub(known);
        if new > 0 {
            self.waiting.insert((event.device, event.first), event.count);
            self.answers.requested += new * SECTOR;
            self.reads.push(IoEvent { first: event.first + known, count: new, ..event.clone() });
        }
    }

    fn add_completed(&mut self, event: &IoEvent) {
        let asked = self.waiting.remove(&(event.device, event.first)).unwrap_or(0);
        self.answers.completed += event.count * SECTOR;
        self.answers.before_start += event.count.saturating_sub(asked) * SECTOR;
        // A disk may answer in parts.
        if asked > event.count {
            self.waiting.insert((event.device, event.first + event.count), asked - event.count);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use perflab_model::io_trace::{
        DeviceNumber, DiskPartition, FileClass, FileExtent, IoEvent, IoEventKind, IoFile, IoRecording,
        IoTraceSummary, MetadataClass, MetadataRange, PAGE,
    };
    use perflab_model::{Nanos, PageSet};

    use crate::*;

    // A disk whose every sector is known beforehand: a file in two pieces, a folder, a file system's own blocks, nobody's.

    /// The file system, its disk, and the kernel's file system of disks.
    const SYSTEM: DeviceNumber = DeviceNumber(8 << 20 | 1);

    const DISK: DeviceNumber = DeviceNumber(8 << 20);

    const DISKS: DeviceNumber = DeviceNumber(3);

    /// Where the partition begins, in sectors.
    const START: u64 = 2048;

    fn make_event(
        at: u64,
        kind: IoEventKind,
        device: DeviceNumber,
        inode: u64,
        first: u64,
        count: u64,
        name: &str,
    ) -> IoEvent {
        let name = (!name.is_empty()).then(|| name.into());
        IoEvent { at: Nanos(at), pid: 7, kind, device, inode, first, count, name }
    }

    fn make_request(at: u64, kind: IoEventKind, first: u64, count: u64, flags: &str) -> IoEvent {
        make_event(at, kind, DISK, 0, START + first, count, flags)
    }

    fn make_file(inode: u64, class: FileClass, path: &str, extents: &[(u64, u64, u64)]) -> IoFile {
        let extent = |(logical, physical, length): &(u64, u64, u64)| FileExtent {
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
    /// of a folder is listed by itself; block 40 came as the disk's own; blocks 50 and 60 are nobody's.
    fn make_recording(events: Vec<IoEvent>) -> IoRecording {
        let disk = IoFile {
            device: DISKS,
            inode: u64::from(SYSTEM.0),
            ..make_file(0, FileClass::Disk, "/dev/sda1", &[])
        };
        let range = |block: u64, blocks: u64, class| MetadataRange {
            device: SYSTEM,
            physical: block * PAGE,
            length: blocks * PAGE,
            class,
        };
        IoRecording {
            events,
            files: vec![
                make_file(12, FileClass::File, "/lib/a", &[(0, 10, 4), (4, 100, 4)]),
                make_file(13, FileClass::Directory, "/lib", &[(0, 20, 4)]),
                disk,
            ],
            summary: IoTraceSummary {
                metadata: vec![
                    range(30, 2, MetadataClass::InodeTable),
                    range(21, 1, MetadataClass::Directory),
                ],
                partitions: vec![DiskPartition { device: SYSTEM, disk: DISK, start: START * 512 }],
                ended: Nanos(1000),
                names: [(7, "cat".into())].into(),
                ..IoTraceSummary::default()
            },
        }
    }

    fn blocks_by_status(found: &TraceCoverage) -> BTreeMap<(BlockStatus, String), u64> {
        let mut all = BTreeMap::new();
        for block in &found.blocks {
            *all.entry((block.status, block.name.clone())).or_default() += block.sectors;
        }
        all
    }

    #[test]
    fn every_sector_has_one_owner_and_one_status() {
        let own = u64::from(SYSTEM.0);
        let recording = make_recording(vec![
            make_request(1, IoEventKind::Issued, 0, 8, "R"),
            make_event(2, IoEventKind::Exec, DeviceNumber(0), 0, 0, 0, "/bin/cat"),
            make_event(3, IoEventKind::Added, SYSTEM, 12, 0, 8, ""),
            make_event(3, IoEventKind::Added, DISKS, own, 40, 1, ""),
            make_event(4, IoEventKind::Read, SYSTEM, 12, 1, 2, ""),
            // Pages 0..4, of which 1 and 2 are needed, and 1 is known; and half of what comes after on the disk.
            make_request(5, IoEventKind::Issued, 80, 36, "RA"),
            make_request(6, IoEventKind::Issued, 160, 32, "RM"),
            make_request(7, IoEventKind::Issued, 240, 16, "RM"),
            make_request(8, IoEventKind::Issued, 320, 8, "R"),
            make_request(9, IoEventKind::Issued, 400, 8, "RM"),
            make_request(10, IoEventKind::Issued, 480, 8, "R"),
            make_request(11, IoEventKind::Issued, 800, 8, "W"),
        ]);
        let known = TraceContents {
            files: [((SYSTEM, 12), [(1, 1)].into_iter().collect())].into(),
            ..TraceContents::default()
        };
        let found = trace_coverage(&recording, &known);
        let of = |status, name: &str| ((status, name.to_owned()), 8_u64);
        let expected = [
            ((BlockStatus::Before, String::new()), 8),
            of(BlockStatus::Found, "/lib/a"),
            of(BlockStatus::Missing, "/lib/a"),
            ((BlockStatus::ReadAround, "/lib/a".into()), 16),
            ((BlockStatus::Metadata, "/lib".into()), 24),
            ((BlockStatus::Metadata, "directory".into()), 8),
            ((BlockStatus::Metadata, "inode table".into()), 16),
            ((BlockStatus::Metadata, "tree".into()), 16),
            ((BlockStatus::Unknown, String::new()), 12),
        ];
        assert_eq!(blocks_by_status(&found), expected.into());
        assert!(found.blocks.iter().all(|block| block.program == "cat"));
        let sum: u64 = found.bytes.values().sum();
        assert_eq!((sum, found.answers.requested), ((8 + 36 + 32 + 16 + 8 + 8 + 8) * 512, sum));
        let trace = TraceContents {
            sectors: [(DISK, PageSet::from_iter([((256 + 30) * 8, 16)]))].into(),
            ..TraceContents::default()
        };
        assert_eq!(
            blocks_by_status(&trace_coverage(&recording, &trace))
                [&(BlockStatus::Found, "inode table".into())],
            16
        );
    }

    #[test]
    fn answers_are_a_check_on_the_classes() {
        let recording = make_recording(vec![
            make_request(1, IoEventKind::Completed, 900, 8, "R"),
            make_request(2, IoEventKind::Issued, 80, 32, "R"),
            make_request(3, IoEventKind::Completed, 80, 8, "R"),
            make_request(4, IoEventKind::Completed, 88, 24, "R"),
            make_request(5, IoEventKind::Issued, 160, 8, "R"),
            // Given back by a disk that was full up, and sent again with what follows it.
            make_request(6, IoEventKind::Issued, 160, 12, "R"),
            make_request(7, IoEventKind::Completed, 160, 12, "R"),
            make_request(8, IoEventKind::Issued, 240, 8, "RM"),
            make_request(9, IoEventKind::Completed, 800, 8, "W"),
        ]);
        let found = trace_coverage(&recording, &TraceContents::default());
        let sectors = |count: u64| count * 512;
        let expected = DiskReadBytes {
            requested: sectors(52),
            completed: sectors(52),
            before_start: sectors(8),
            in_flight: sectors(8),
            resubmitted: sectors(8),
        };
        assert_eq!(found.answers, expected);
        let sum = found.bytes.values().sum();
        assert_eq!(found.answers.contradiction(sum), 0);
        assert_eq!(found.answers.contradiction(sum - 4096), 4096);
        assert_eq!(
            found.bytes[&BlockStatus::Before],
            0,
            "no start of a program was seen, so nothing was before it"
        );
    }

    #[test]
    fn requests_alone_tell_of_files_too() {
        let recording = make_recording(vec![
            make_request(5, IoEventKind::Issued, 96, 32, "R"),
            make_request(6, IoEventKind::Issued, 800, 8, "R"),
            make_request(7, IoEventKind::Issued, 240, 8, "RM"),
        ]);
        let files = reads_by_file(&recording);
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
        let mut recording =
            make_recording(vec![make_event(5, IoEventKind::Issued, DISK, 0, 63 + 80, 32, "R")]);
        recording.summary.partitions = vec![DiskPartition { device: SYSTEM, disk: DISK, start: 63 * 512 }];
        let files = reads_by_file(&recording);
        let seen: Vec<_> = files.iter().map(|file| (file.name.as_str(), file.read)).collect();
        assert_eq!(seen, [("/lib/a", 4 * PAGE)]);
        let alone = IoRecording { events: recording.events, ..IoRecording::default() };
        assert_eq!(
            reads_by_file(&alone)[0].read,
            32 * 512,
            "no map: nobody's, and still no more than was asked for"
        );
    }

    /// Who owns a sector, found anew without extents: files by their extents, over ranges of metadata, the narrower first.
    fn expected_owner(recording: &IoRecording, start: u64, sector: u64) -> String {
        let Some(byte) = sector.checked_sub(start).map(|sector| sector * 512) else { return String::new() };
        let holds = |from: u64, length: u64| (from..from + length).contains(&byte);
        let of = |file: &&IoFile| file.extents.iter().any(|extent| holds(extent.physical, extent.length));
        let ranges = recording.summary.metadata.iter().filter(|range| holds(range.physical, range.length));
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
            let events = requests.iter().map(|(first, count)| make_event(5, IoEventKind::Issued, DISK, 0, *first, *count, "R"));
            let mut recording = make_recording(events.collect());
            recording.summary.partitions = vec![DiskPartition { device: SYSTEM, disk: DISK, start: start * 512 }];
            let mut expected: BTreeMap<String, u64> = BTreeMap::new();
            for sector in requests.iter().flat_map(|(first, count)| *first..first + count) {
                let name = match expected_owner(&recording, start, sector) {
                    name if name.is_empty() => "no known file of 8:0".into(),
                    name if name.starts_with('/') => name,
                    class => format!("{class} of 8:0"),
                };
                *expected.entry(name).or_default() += 512;
            }
            let files = reads_by_file(&recording);
            let mut found: BTreeMap<String, u64> = BTreeMap::new();
            files.iter().for_each(|file| *found.entry(file.name.clone()).or_default() += file.read);
            proptest::prop_assert_eq!(&found, &expected);
            let asked: u64 = requests.iter().map(|(_, count)| count * 512).sum();
            proptest::prop_assert_eq!(found.values().sum::<u64>(), asked);
            let folders: u64 = reads_by_directory(&files).iter().map(|folder| folder.read).sum();
            proptest::prop_assert_eq!(folders, asked);
            let disk: u64 = reads_over_disk(&recording, 7).iter().map(|place| place.bytes).sum();
            proptest::prop_assert_eq!(disk, asked);
        }
    }

    #[test]
    fn a_read_of_a_stacked_disk_is_counted_once() {
        let upper = DeviceNumber::new(7, 0);
        let on_upper = |kind| make_event(1, kind, upper, 0, 0, 16, "R");
        let events = vec![
            on_upper(IoEventKind::Issued),
            make_event(2, IoEventKind::Issued, DISK, 0, 90, 40, "R"),
            make_event(3, IoEventKind::Completed, DISK, 0, 90, 40, "R"),
            make_event(3, IoEventKind::Issued, DISK, 0, 0, 0, "FF"),
            on_upper(IoEventKind::Completed),
        ];
        let mut recording = IoRecording { events, ..IoRecording::default() };
        let range = |first, sectors| perflab_model::io_trace::SectorRange { disk: DISK, first, sectors };
        let stack = perflab_model::io_trace::StackedDisk {
            device: upper,
            below: vec![range(120, 100), range(100, 8)],
        };
        recording.summary.stacks = vec![stack];
        let (once, caused) = remove_stacked_requests(recording.clone());
        assert_eq!(caused, 18 * 512, "sectors 100..108 and 120..130");
        let reads: Vec<_> =
            once.events.iter().map(|event| (event.device, event.first, event.count)).collect();
        let parts = [(DISK, 90, 10), (DISK, 108, 12)];
        let expected =
            [[(upper, 0, 16)].as_slice(), &parts, &parts, &[(DISK, 0, 0), (upper, 0, 16)]].concat();
        assert_eq!(reads, expected);
        let found = trace_coverage(&once, &TraceContents::default());
        assert_eq!(found.answers.contradiction(found.bytes.values().sum()), 0);
        recording.events.retain(|event| event.device != upper);
        let passed_on = remove_stacked_requests(recording.clone());
        assert_eq!(passed_on, (recording, 0), "an upper disk without requests of its own takes nothing away");
    }
}
