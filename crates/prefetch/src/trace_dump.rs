//! What the prefetch module of 2007 remembered of a startup.
//!
//! Two formats: the text of `/proc/prefetch` (device, inode, first page, pages), and its file (`PFCH`, a version,
//! where the records begin, then the same four as numbers). Such a list of pages is compared with what disks were
//! asked for then; it is never replayed.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use perflab_model::io_trace::{DeviceNumber, PageRange};

use crate::error::PrefetchError;
use crate::trace_store::read_prefetch_file;

const MAGIC: &[u8] = b"PFCH";

/// The only major version there ever was; minor ones change nothing that is read here.
const VERSION: u16 = 1;

/// Magic, two halves of the version, where records begin.
const HEAD: usize = 10;

/// Bytes of a record where a `long` has 4 bytes, and where it has 8.
const RECORD: [usize; 2] = [16, 32];

/// Bytes of a text that are looked at for its first record.
const LOOKED_AT: u64 = 4096;

/// A dump.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageDump {
    /// its records, in its order; those without pages are left out
    pub ranges: Vec<PageRange>,
    /// records without pages: the module wrote one where a file began with a page that was not used
    pub empty: usize,
    /// lines that are neither records nor the two that head them, and the first of them
    pub unusable: Option<(usize, String)>,
}

/// Whether a file is such a dump.
pub fn is_page_dump(path: &Path) -> bool {
    // A pipe would be waited for.
    if !path.metadata().is_ok_and(|found| found.is_file()) {
        return false;
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LOOKED_AT).read_to_end(&mut head));
    let text = String::from_utf8_lossy(&head);
    read.is_ok() && (head.starts_with(MAGIC) || text.lines().any(|line| parse_dump_line(line).is_some()))
}

/// Reads a dump.
///
/// # Errors
/// A file that cannot be read, of another version, or cut within a record.
pub fn read_page_dump(path: &Path) -> Result<PageDump, PrefetchError> {
    let bytes = read_prefetch_file(path).map_err(PrefetchError::io_error("read", path))?;
    if !bytes.starts_with(MAGIC) {
        return Ok(parse_text_dump(&String::from_utf8_lossy(&bytes)));
    }
    parse_binary_dump(&bytes).map_err(|reason| PrefetchError::Dump { path: path.into(), reason })
}

fn parse_text_dump(text: &str) -> PageDump {
    let mut dump = PageDump::default();
    for line in text.lines() {
        match parse_dump_line(line) {
            Some(range) => dump.add_range(range),
            None if line.trim().is_empty() || line.trim_end().ends_with(" trace") => {}
            None => dump.unusable.get_or_insert_with(|| (0, line.into())).0 += 1,
        }
    }
    dump
}

/// `3:1 16308 0 7`, between which are tabs
fn parse_dump_line(line: &str) -> Option<PageRange> {
    let mut words = line.split_whitespace();
    let device = DeviceNumber::parse(words.next()?)?;
    let mut number = || words.next()?.parse().ok();
    Some(PageRange { device, inode: number()?, first: number()?, count: number()? })
}

fn parse_binary_dump(bytes: &[u8]) -> Result<PageDump, String> {
    let half =
        |at: usize| bytes.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map(u16::from_le_bytes);
    let (Some(version), Some(begin)) = (half(4), half(8)) else {
        return Err("it ends within its head".into());
    };
    if version != VERSION {
        return Err(format!("it is of version {version} of the format, and {VERSION} is understood"));
    }
    let begin = usize::from(begin);
    let records = bytes.get(begin..).filter(|_| begin >= HEAD);
    let records =
        records.ok_or_else(|| format!("its records begin at byte {begin}, where there are none"))?;
    let [short, long] = RECORD;
    // The inode of every second record is where the wide form has upper halves of small numbers.
    let is_wide = |record: &[u8]| [3, 5, 7].iter().all(|word| record_number(record, *word, 4) == 0);
    let size = match records.len() % long {
        0 if records.chunks_exact(long).all(is_wide) => long,
        _ => short,
    };
    if records.len() % size != 0 {
        return Err("it ends within a record".into());
    }
    let mut dump = PageDump::default();
    for record in records.chunks_exact(size) {
        let word = |at: usize| {
            if size == short { record_number(record, at, 4) } else { record_number(record, at, 8) }
        };
        let device = DeviceNumber(record_number(record, 0, 4) as u32);
        dump.add_range(PageRange { device, inode: word(1), first: word(2), count: word(3) });
    }
    Ok(dump)
}

/// The number of `size` bytes at this position, counted in such numbers.
fn record_number(record: &[u8], at: usize, size: usize) -> u64 {
    let bytes = record.get(at * size..(at + 1) * size).unwrap_or_default();
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

impl PageDump {
    fn add_range(&mut self, range: PageRange) {
        if range.count == 0 {
            self.empty += 1;
        } else {
            self.ranges.push(range);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const DISK: DeviceNumber = DeviceNumber(3 << 20 | 1);

    fn page_range(inode: u64, first: u64, count: u64) -> PageRange {
        PageRange { device: DISK, inode, first, count }
    }

    fn binary_dump(wide: bool, records: &[[u64; 3]]) -> Vec<u8> {
        let mut bytes = b"PFCH\x01\0\x02\0\x0c\0--".to_vec();
        for record in records {
            bytes.extend(DISK.0.to_le_bytes());
            bytes.extend(wide.then_some([0; 4]).into_iter().flatten());
            let size = if wide { 8 } else { 4 };
            record.iter().for_each(|number| bytes.extend(number.to_le_bytes().iter().take(size)));
        }
        bytes
    }

    /// The same dump as text, and as the file of a 32-bit and of a 64-bit kernel.
    #[test]
    fn every_form_of_a_dump_is_the_same_dump() {
        let text = "OpenOffice trace\nprefetch trace\n3:1\t16308\t0\t7\n3:1\t16308\t0\t0\n3:1\t12\t5\t1\n\n";
        let records = [[16308, 0, 7], [16308, 0, 0], [12, 5, 1]];
        let expected = PageDump {
            ranges: vec![page_range(16308, 0, 7), page_range(12, 5, 1)],
            empty: 1,
            unusable: None,
        };
        assert_eq!(parse_text_dump(text), expected);
        assert_eq!(parse_binary_dump(&binary_dump(false, &records)), Ok(expected.clone()));
        assert_eq!(parse_binary_dump(&binary_dump(true, &records)), Ok(expected));
        // Of an even number of records, either form could be meant by length alone.
        let two = [[7, 0, 1], [9, 0, 1]];
        for wide in [false, true] {
            assert_eq!(
                parse_binary_dump(&binary_dump(wide, &two)).unwrap().ranges,
                [page_range(7, 0, 1), page_range(9, 0, 1)]
            );
        }
    }

    #[test]
    fn what_is_wrong_with_a_dump_is_said() {
        let whole = binary_dump(false, &[[7, 0, 1], [9, 0, 1]]);
        let error = |bytes: &[u8]| parse_binary_dump(bytes).unwrap_err();
        assert_eq!(error(&whole[..9]), "it ends within its head");
        assert_eq!(error(&whole[..30]), "it ends within a record");
        assert_eq!(error(b"PFCH\x02\0\0\0\x0a\0"), "it is of version 2 of the format, and 1 is understood");
        assert_eq!(error(b"PFCH\x01\0\0\0\x09\0"), "its records begin at byte 9, where there are none");
        assert_eq!(error(b"PFCH\x01\0\0\0\xff\xff"), "its records begin at byte 65535, where there are none");
        let text = parse_text_dump("3:1 5 0 1\nnonsense\n3:1 5 x 1\n");
        assert_eq!((text.ranges.len(), text.unusable), (1, Some((2, "nonsense".into()))));
        assert_eq!(
            parse_dump_line("3:1 5 0 18446744073709551615").unwrap().count,
            u64::MAX,
            "Runs refuse it later"
        );
    }

    #[test]
    fn dumps_are_told_from_other_files() {
        let home = tempfile::tempdir().unwrap();
        let is = |text: &[u8]| {
            let path = home.path().join("x");
            fs::write(&path, text).unwrap();
            is_page_dump(&path)
        };
        assert!(is(b"OpenOffice trace\n3:1\t1\t2\t3\n") && is(b"PFCH"));
        assert!(!is(b"3,1 0 1 0.1 5 Q R 1 + 8 [x]\n") && !is(b""));
        assert!(
            !is_page_dump(home.path())
                && !is_page_dump(Path::new("/dev/zero"))
                && !is_page_dump(Path::new("/nowhere"))
        );
    }
}
