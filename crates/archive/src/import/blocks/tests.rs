use std::path::{Path, PathBuf};

use perflab_model::Nanos;
use perflab_model::io::{DeviceNumber, IoEventKind, IoRecording};
use proptest::prelude::*;

use super::super::{BlockMapFile, FileReport, ImportOptions, Importer, import_as_run};
use super::{BlockAction, binary, build_recording, detect_block_trace, read_block_trace, text};
use crate::{Archive, ArchiveError};

fn recorded_trace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/blktrace").join(name)
}

fn write_trace_file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (home, path)
}

/// The same trace, read from the kernel's records and from what blkparse makes of them, is the same recording.
#[test]
fn records_are_understood_as_blkparse_does() {
    let (ours, _, took) = read_block_trace(Importer::Blktrace, &recorded_trace("cat.blktrace.1")).unwrap();
    let (theirs, ..) = read_block_trace(Importer::Blkparse, &recorded_trace("cat.blkparse")).unwrap();
    assert_eq!(took.len(), 2, "the files of both CPUs");
    assert!(took.iter().all(|took| took.rows_unusable == 0), "{took:?}");
    assert_eq!(ours.events.len(), theirs.events.len());
    // Of two events of one moment on two CPUs either may come first.
    let sorted = |mut recording: IoRecording| {
        recording.events.sort_by_key(|event| (event.at, event.first, event.kind));
        recording.events
    };
    assert_eq!(sorted(ours), sorted(theirs));
}

#[test]
fn packed_text_that_breaks_off_says_so() {
    let text = std::fs::read(recorded_trace("cat.blkparse")).unwrap();
    let packed = zstd::encode_all(text.as_slice(), 3).unwrap();
    let (_home, half) = write_trace_file("half.zst", &packed[..packed.len() - 30]);
    let (.., took) = read_block_trace(Importer::Blkparse, &half).unwrap();
    assert!(took[0].notes.iter().any(|note| note.contains("breaks off")), "{took:?}");
}

/// blkparse's own sums: 1,548 KiB read in 24 requests, all of them answered; three flushes are among its reads.
#[test]
fn sums_are_blkparses() {
    let (recording, ..) = read_block_trace(Importer::Blktrace, &recorded_trace("cat.blktrace.0")).unwrap();
    let reads = |kind: IoEventKind| {
        let of = recording.events.iter().filter(|event| event.kind == kind);
        let reads =
            of.filter(|event| event.name.as_deref().is_some_and(|flags| flags.starts_with(['R', 'F'])));
        reads.fold((0, 0), |(count, sectors), event| (count + 1, sectors + event.count))
    };
    assert_eq!(reads(IoEventKind::Issued), (24, 1548 * 2));
    assert_eq!(reads(IoEventKind::Completed), (24, 1548 * 2));
}

#[test]
fn kinds_are_told_by_their_first_bytes() {
    assert_eq!(detect_block_trace(&recorded_trace("cat.blktrace.0")), Some(Importer::Blktrace));
    assert_eq!(detect_block_trace(&recorded_trace("cat.blkparse")), Some(Importer::Blkparse));
    assert_eq!(detect_block_trace(&recorded_trace("PROVENANCE")), None);
}

#[test]
fn names_and_lines_of_every_shape_are_read() {
    let lines = "Input file sda.blktrace.0 added\n\
        \x20 8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]\n\
        \x20 8,0    3        2     0.000003000   697  D   W 223490 + 8 (    3000) [kjournald]\n\
        \x20 8,0    3        3     1.000000005     0  C   W 223490 + 8 [0]\n\
        \x20 8,0    3        4     1.000000006   697  A   R 12 + 8 <- (8,1) 4\n\
        \x20 9,0    3        5     1.000000007   698  Q   R 12 + 8 [a name [x]]\n\
        nonsense\nCPU3 (sda):\n Reads Queued: 0\n";
    let (_home, path) = write_trace_file("x", lines.as_bytes());
    let (recording, _, took) = read_block_trace(Importer::Blkparse, &path).unwrap();
    let seen: Vec<_> = recording.events.iter().map(|event| (event.at.0, event.kind, event.device)).collect();
    let (disk, raid) = (DeviceNumber::new(8, 0), DeviceNumber::new(9, 0));
    assert_eq!(
        seen,
        [
            (0, IoEventKind::Queued, disk),
            (3000, IoEventKind::Issued, disk),
            (1_000_000_005, IoEventKind::Completed, disk),
            (1_000_000_007, IoEventKind::Issued, raid),
        ],
        "where nothing is dispatched, what is queued stands for it"
    );
    assert_eq!(recording.told.names[&697], "kjournald");
    assert_eq!(recording.told.names[&698], "a name [x]");
    assert_eq!((took[0].rows_unusable, took[0].unusable[0].line), (1, 7));
    assert!(took[0].notes[0].contains("queueing"), "{took:?}");
}

/// One record, and a message that tells when it all began, by a machine of the other byte order.
#[test]
fn traces_of_the_other_byte_order_are_read() {
    let record = |action: u32, device: u32, behind: &[u8]| {
        let words = [0x6561_7407_u32, 1, 0, 500, 0, 4096, 1024, action, 77, device, 0];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        bytes.extend([0, 0]);
        bytes.extend((behind.len() as u16).to_be_bytes());
        [&bytes, behind].concat()
    };
    let began = [7_u32.to_be_bytes(), 9_u32.to_be_bytes()].concat();
    let bytes = [
        record(1 << 26 | 1, 0, &began),
        record(1 << 26, 0, b"dd\0\0"),
        record((1 | 1 << 6) << 16 | 7, 8 << 20, b""),
    ];
    let (_home, path) = write_trace_file("big", &bytes.concat());
    let (recording, read, took) = read_block_trace(Importer::Blktrace, &path).unwrap();
    let event = &recording.events[0];
    assert_eq!((event.first, event.count, event.device, event.pid), (4096, 2, DeviceNumber::new(8, 0), 77));
    assert_eq!(event.name.as_deref(), Some("R"));
    assert_eq!((read.begun, recording.told.names[&77].as_str()), (Some(Nanos(7_000_000_009)), "dd"));
    assert_eq!((took[0].rows_used, took[0].rows_unusable), (1, 0));
}

#[test]
fn damaged_and_foreign_files_are_named_and_leave_no_run() {
    let good = std::fs::read(recorded_trace("cat.blktrace.0")).unwrap();
    let home = tempfile::tempdir().unwrap();
    let archive = Archive::open(home.path()).unwrap();
    let import = |bytes: &[u8], kind| {
        let (_home, path) = write_trace_file("trace", bytes);
        import_as_run(&archive, &path, &ImportOptions { kind: Some(kind), ..ImportOptions::default() })
    };
    let refused = |bytes: &[u8], kind| match import(bytes, kind) {
        Err(error @ ArchiveError::Foreign { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let version = [&[9], &good[1..]].concat();
    assert!(
        refused(&version, Importer::Blktrace).contains("version 9"),
        "{}",
        refused(&version, Importer::Blktrace)
    );
    assert!(refused(b"something else", Importer::Blktrace).contains("magic number"));
    assert!(refused(&good[..40], Importer::Blktrace).contains("ends within a record"));
    assert!(refused(b"  8,0 words\n", Importer::Blkparse).contains("default format"));
    assert!(archive.list_runs().unwrap().is_empty());
    let cut = import(&good[..good.len() - 10], Importer::Blktrace).unwrap();
    assert!(cut.file_reports[0].unusable[0].reason.contains("are left out"), "{:?}", cut.file_reports);
    assert_eq!(cut.run.read_io_recordings().unwrap().len(), 1);
}

/// A trace of 2007's kind, with a map of `PATH (ino N):` or of `-t`'s form, and what the import says of the map.
fn import_with_map(map: &str, file: BlockMapFile) -> Result<(IoRecording, FileReport), ArchiveError> {
    let place = |name: &str| recorded_trace("../blktrace-2007").join(name);
    let (mut recording, ..) = read_block_trace(Importer::Blktrace, &place("partition.blktrace.0")).unwrap();
    let took = super::map::add_block_map(&mut recording, &BlockMapFile { path: place(map), ..file })?;
    Ok((recording, took))
}

#[test]
fn a_map_gives_a_trace_its_files_and_where_their_file_system_begins() {
    let (recording, took) = import_with_map("partition.map", BlockMapFile::default()).unwrap();
    let disk = DeviceNumber::new(7, 0);
    let told = &recording.told;
    assert_eq!(told.disk_below(disk), (disk, 63 * 512), "a partition of 2007 begins at sector 63: {took:?}");
    assert_eq!(told.block_map.map(|map| map.block_size), Some(4096));
    assert!(took.notes[0].contains("sector 63 of 7:0") && took.notes[0].contains("100.0 %"), "{took:?}");
    assert_eq!((took.rows_used, took.rows_unusable), (22, 0));
    let big = recording.files.iter().find(|file| file.path.as_deref() == Some("/lib/big")).unwrap();
    assert_eq!((big.inode, big.extents.len(), big.disk_offset_of_page(131)), (13, 6, Some((128 + 3) << 12)));
    assert!(recording.files.iter().any(|file| file.path.as_deref() == Some("Inode 2")));
    assert_eq!(told.metadata.len(), 3, "blocks that say where others lie");
    // The other form lists extents in the order of the disk, and names the same.
    let (times, took) = import_with_map("partition.times", BlockMapFile::default()).unwrap();
    assert_eq!((took.rows_used, took.rows_unusable), (22, 0));
    let sorted = |recording: &IoRecording| {
        let files = recording.files.iter();
        let named = files.map(|file| {
            let mut extents: Vec<_> =
                file.extents.iter().map(|extent| (extent.physical, extent.logical)).collect();
            extents.sort_unstable();
            (file.inode, extents)
        });
        named.collect::<Vec<_>>()
    };
    assert_eq!(sorted(&times), sorted(&recording));
}

#[test]
fn a_map_of_another_trace_is_refused_and_a_start_that_was_said_is_believed() {
    let home = tempfile::tempdir().unwrap();
    let other = |text: &str| {
        let path = home.path().join("map");
        std::fs::write(&path, text).unwrap();
        let file = BlockMapFile { path, ..BlockMapFile::default() };
        let (mut recording, ..) =
            read_block_trace(Importer::Blktrace, &recorded_trace("../blktrace-2007/partition.blktrace.0"))
                .unwrap();
        super::map::add_block_map(&mut recording, &file).map(drop)
    };
    let said = other("/a (ino 5):\n  900000+77 0\n  1000000+99 77\n").unwrap_err().to_string();
    assert!(said.contains("another trace") && said.contains("--partition-start"), "{said}");
    let said = other("something else\n").unwrap_err().to_string();
    assert!(said.contains("PATH (ino N):"), "{said}");
    let start = |start| BlockMapFile { partition_start: Some(start), ..BlockMapFile::default() };
    let (recording, took) = import_with_map("partition.map", start(2048)).unwrap();
    assert_eq!(recording.told.disk_below(DeviceNumber::new(7, 0)).1, 2048 * 512);
    assert!(took.notes[0].contains("as was said") && !took.notes[0].contains("100.0 %"), "{took:?}");
    assert!(import_with_map("partition.map", start(u64::MAX)).is_err(), "no disk has such a sector");
}

#[test]
fn sectors_that_no_disk_has_are_no_requests() {
    let lines = "  8,0 0 1 0.000000000 7 D R 18446744073709551615 + 8 [x]\n  8,0 0 2 0.000000001 7 D R 8 + 4294967296 [x]\n\
                 \x20 8,0 0 3 0.000000002 7 D R 8 + 8 [x]\n";
    let (_home, path) = write_trace_file("x", lines.as_bytes());
    let (recording, _, took) = read_block_trace(Importer::Blkparse, &path).unwrap();
    assert_eq!((recording.events.len(), took[0].rows_unusable), (1, 2));
}

static TRACE: std::sync::LazyLock<IoRecording> = std::sync::LazyLock::new(|| {
    let trace = recorded_trace("../blktrace-2007/partition.blktrace.0");
    read_block_trace(Importer::Blktrace, &trace).unwrap().0
});

proptest! {
    #[test]
    fn no_text_makes_a_map_fall(lines in proptest::collection::vec("[ 0-9+:()a-zI-]{0,40}|Inode [0-9]{1,20}:| [0-9]{1,20}[+][0-9]{1,20} -?[0-9]{1,20}( INO [0-9]{1,20} /x)?", 0..20)) {
        let (_home, path) = write_trace_file("x", lines.join("\n").as_bytes());
        for partition_start in [None, Some(0), Some(u64::MAX)] {
            let mut recording = TRACE.clone();
            let file = BlockMapFile { path: path.clone(), partition_start, block_size: None };
            let _ = super::map::add_block_map(&mut recording, &file);
        }
    }


    #[test]
    fn no_bytes_make_a_reader_fall(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let good = std::fs::read(recorded_trace("cat.blktrace.1")).unwrap();
        let (_home, path) = write_trace_file("x", &[&good[..48], &bytes].concat());
        let (mut all, _) = binary::read_blktrace(&path).unwrap();
        let _ = build_recording(&mut all, |_| ());
        let (_home, path) = write_trace_file("y", &bytes);
        let _ = binary::read_blktrace(&path);
        let (all, _) = text::read_blkparse(&path).unwrap();
        prop_assert!(all.seen.iter().all(|seen| seen.action <= BlockAction::Completed));
    }
}
