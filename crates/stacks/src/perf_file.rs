//! A perf.data taken apart: its events, what it says of its machine, and its records in one piece.
//!
//! Each size in the file is held against the bytes that are there before anything is allocated for it, and what is
//! unpacked against the size of the file. A description that lies outside of the file is left out with a remark; it
//! does not fail the read.

use std::borrow::Cow;
use std::collections::HashMap;

use byteorder::{BigEndian, LittleEndian};
use linux_perf_event_reader::{Endianness, PerfEventAttr};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::perf_layout::PerfDataLayout;

/// The most that compressed records grow to: so many times the file, and no more than this.
const RATIO: u64 = 400;

const LARGEST: u64 = 4 << 30;

/// So much may be unpacked from the smallest file.
const SMALLEST: u64 = 64 << 20;

/// Where `read_format` stands in an event's attributes.
const READ_FORMAT: usize = 32;

/// Where a section lies, as its description holds it: offset and size.
const SECTION: usize = 16;

/// Parts of the description, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u64)]
pub(crate) enum PerfDataFeature {
    BuildIds = 2,
    HostName = 3,
    OsRelease = 4,
    PerfVersion = 5,
    Arch = 6,
    CommandLine = 11,
    EventDescriptions = 12,
    ClockData = 29,
    /// what Android's simpleperf tells of itself
    SimpleperfMeta = 129,
}

/// Records of perf's own that are looked into.
mod kind {

    pub(crate) const HEADER_ATTR: u32 = 64;

    pub(crate) const EVENT_UPDATE: u32 = 78;

    pub(crate) const HEADER_FEATURE: u32 = 80;

    pub(crate) const COMPRESSED: u32 = 81;

    pub(crate) const COMPRESSED2: u32 = 83;

    /// Types from here on are perf's own and not the kernel's.
    pub(crate) const PERFS_OWN: u32 = 64;
}

/// The update of an event that is its name.
const UPDATE_NAME: u64 = 2;

/// An event that was recorded.
#[derive(Debug, Clone)]
pub(crate) struct RecordedEvent {
    pub(crate) attributes: PerfEventAttr,
    /// How the counters that come with each sample are laid out, all bits of it.
    pub(crate) read_format: u64,
    pub(crate) name: Option<String>,
    /// By which records say that they are of it.
    pub(crate) ids: Vec<u64>,
}

/// A perf.data taken apart.
#[derive(Debug)]
pub(crate) struct PerfDataFile<'a> {
    pub(crate) endian: Endianness,
    pub(crate) events: Vec<RecordedEvent>,
    /// The kernel's records, with some of perf's own between them.
    pub(crate) records: Cow<'a, [u8]>,
    /// Where they begin in the file, where they lie there as they are.
    pub(crate) begin: Option<u64>,
    /// What could not be read: places in the file, and why.
    pub(crate) unreadable: Vec<(u64, String)>,
    features: HashMap<u64, &'a [u8]>,
}

impl<'a> PerfDataFile<'a> {
    /// Takes a whole file apart; an error is an offset and a reason.
    pub(crate) fn parse(bytes: &'a [u8], layout: &PerfDataLayout) -> Result<Self, (u64, String)> {
        let endian = if layout.is_big { Endianness::BigEndian } else { Endianness::LittleEndian };
        let mut file = PerfDataFile {
            endian,
            events: Vec::new(),
            records: Cow::Borrowed(&[]),
            begin: None,
            unreadable: Vec::new(),
            features: HashMap::new(),
        };
        let (begin, records) = layout.record_bytes(bytes);
        if layout.is_pipe {
            file.read_pipe_description(layout, bytes);
        } else {
            file.find_features(layout, bytes);
            file.events = read_attribute_section(layout, bytes);
        }
        file.assign_event_names();
        if file.events.is_empty() {
            return Err((0, "perf.data that cannot be read: it does not say what was recorded".into()));
        }
        (file.records, file.begin) = match file.unpack_records(layout, bytes) {
            Some(unpacked) => (unpacked.into(), None),
            None => (records.into(), Some(begin)),
        };
        Ok(file)
    }

    fn fields_of(&self, bytes: &'a [u8]) -> PerfDataFields<'a> {
        PerfDataFields { rest: bytes, is_big: self.endian == Endianness::BigEndian }
    }

    /// The parts of the description, from the list behind the records.
    fn find_features(&mut self, layout: &PerfDataLayout, bytes: &'a [u8]) {
        let Some(list) = layout.description_bytes(bytes) else { return };
        let mut list = self.fields_of(list);
        let is_there = |bit: &u64| layout.has_feature(bytes, *bit);
        for feature in (0..256).filter(is_there) {
            let (Some(offset), Some(size)) = (list.read_u64(), list.read_u64()) else { return };
            match file_section(bytes, offset, size) {
                Some(found) => drop(self.features.insert(feature, found)),
                None => self
                    .unreadable
                    .push((offset, format!("part {feature} of its description lies outside of the file"))),
            }
        }
    }

    /// Events and description as a pipe brings them: as records.
    fn read_pipe_description(&mut self, layout: &PerfDataLayout, bytes: &'a [u8]) {
        let mut names = HashMap::new();
        for (_, kind, record) in layout.walk_records(bytes) {
            let Some(body) = record.get(8..) else { continue };
            let mut fields = self.fields_of(body);
            match kind {
                kind::HEADER_ATTR => {
                    self.events.extend(parse_event_attributes(body, body.len(), self.endian).map(
                        |(event, own)| {
                            let ids = body.get(own..).unwrap_or_default();
                            RecordedEvent { ids: self.fields_of(ids).read_all_u64(), ..event }
                        },
                    ));
                }
                kind::HEADER_FEATURE => {
                    if let Some(feature) = fields.read_u64() {
                        self.features.insert(feature, fields.rest);
                    }
                }
                kind::EVENT_UPDATE => {
                    if let (Some(UPDATE_NAME), Some(id)) = (fields.read_u64(), fields.read_u64()) {
                        names.insert(id, text_until_nul(fields.rest));
                    }
                }
                kind if kind < kind::PERFS_OWN => {}
                _ => {}
            }
        }
        for event in &mut self.events {
            event.name = event.ids.iter().find_map(|id| names.get(id)).cloned().flatten();
        }
    }

    /// Takes names from the description, and from it the events where the file's own list of them is not there.
    fn assign_event_names(&mut self) {
        let described = self
            .feature(PerfDataFeature::EventDescriptions)
            .map(|bytes| self.parse_event_descriptions(bytes));
        let described = described.unwrap_or_default();
        if self.events.is_empty() {
            self.events = described;
            return;
        }
        let names = self.simpleperf_names();
        let is_as_many = described.len() == self.events.len();
        for (at, event) in self.events.iter_mut().enumerate() {
            let by_id =
                || described.iter().find(|one| one.ids.first().is_some_and(|id| event.ids.contains(id)));
            let same = by_id().or_else(|| described.get(at).filter(|_| is_as_many));
            let name = same.and_then(|one| one.name.clone()).or_else(|| names.get(at).cloned());
            event.name = name.or_else(|| event.name.take());
            if let Some(same) = same.filter(|_| event.ids.is_empty()) {
                event.ids.clone_from(&same.ids);
            }
        }
    }

    /// The events of the description, as far as it is whole.
    fn parse_event_descriptions(&self, bytes: &'a [u8]) -> Vec<RecordedEvent> {
        let mut fields = self.fields_of(bytes);
        let (Some(count), Some(size)) = (fields.read_u32(), fields.read_u32()) else { return Vec::new() };
        let mut next = || {
            let attributes = fields.take_bytes(size as usize)?;
            let count = fields.read_u32()?;
            let name = fields.read_text()?;
            let ids = fields.take_bytes((count as usize).checked_mul(8)?)?;
            let (event, _) = parse_event_attributes(attributes, attributes.len(), self.endian)?;
            Some(RecordedEvent { name: Some(name), ids: self.fields_of(ids).read_all_u64(), ..event })
        };
        (0..count).map_while(|_| next()).collect()
    }

    /// `event_type_info`, lines of `name,type,config`, among what simpleperf tells.
    fn simpleperf_names(&self) -> Vec<String> {
        let Some(meta) = self.feature(PerfDataFeature::SimpleperfMeta) else { return Vec::new() };
        let text = String::from_utf8_lossy(meta);
        let info = text.split('\0').skip_while(|key| *key != "event_type_info").nth(1);
        let name = |line: &str| Some(line.split_once(',')?.0.to_owned());
        info.unwrap_or_default().lines().filter_map(name).collect()
    }

    /// The records, where some of them are compressed; the rest comes first, in its order.
    fn unpack_records(&mut self, layout: &PerfDataLayout, bytes: &[u8]) -> Option<Vec<u8>> {
        if !layout
            .walk_records(bytes)
            .any(|(_, kind, _)| matches!(kind, kind::COMPRESSED | kind::COMPRESSED2))
        {
            return None;
        }
        let most = LARGEST.min(SMALLEST.max((bytes.len() as u64).saturating_mul(RATIO)));
        let (mut plain, mut packed) = (Vec::new(), RecordUnpacker::new(most));
        for (at, kind, record) in layout.walk_records(bytes) {
            let compressed = match (kind, record.get(8..)) {
                (kind::COMPRESSED, Some(body)) => body,
                (kind::COMPRESSED2, Some(body)) => self.fields_of(&[]).over(body).read_sized_bytes(),
                _ if kind < kind::PERFS_OWN => {
                    plain.extend_from_slice(record);
                    continue;
                }
                _ => continue,
            };
            if let Err(reason) = packed.unpack(compressed) {
                self.unreadable.push((at, format!("compressed records: {reason}")));
                break;
            }
        }
        plain.append(&mut packed.out);
        Some(plain)
    }

    fn feature(&self, feature: PerfDataFeature) -> Option<&'a [u8]> {
        self.features.get(&(feature as u64)).copied()
    }

    /// A text of the description; empty where it is not there.
    pub(crate) fn feature_text(&self, feature: PerfDataFeature) -> String {
        self.feature(feature).and_then(|bytes| self.fields_of(bytes).read_text()).unwrap_or_default()
    }

    /// The command that recorded it, by words.
    pub(crate) fn recording_command(&self) -> Vec<String> {
        let Some(bytes) = self.feature(PerfDataFeature::CommandLine) else { return Vec::new() };
        let mut fields = self.fields_of(bytes);
        let count = fields.read_u32().unwrap_or(0);
        (0..count).map_while(|_| fields.read_text()).collect()
    }

    /// The paths of binaries that had samples, and of the kernel (`[kernel.kallsyms]`), each with its build id padded with
    /// zeros to 20 bytes.
    pub(crate) fn build_ids(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        /// Process and build id, behind a record's head and before the path.
        const BEFORE_PATH: usize = 8 + 4 + 24;
        let mut rest = self.feature(PerfDataFeature::BuildIds).unwrap_or_default();
        std::iter::from_fn(move || {
            let size = self.fields_of(rest.get(6..8)?).read_u16()?;
            let (record, after) = rest.split_at_checked(usize::from(size).max(BEFORE_PATH))?;
            rest = after;
            let path = record.get(BEFORE_PATH..)?.split(|byte| *byte == 0).next()?;
            Some((path, record.get(12..32)?))
        })
    }

    /// The build id of the kernel, padded with zeros; empty where it is not there.
    pub(crate) fn kernel_build_id(&self) -> Vec<u8> {
        let kernel = self.build_ids().find(|(path, _)| path.starts_with(b"[kernel.kallsyms]"));
        kernel.map(|(_, id)| id.to_vec()).unwrap_or_default()
    }

    /// One instant by the wall's clock (since 1970) and by that of the records, in nanoseconds.
    pub(crate) fn clock_anchor(&self) -> Option<(u64, u64)> {
        let mut fields = self.fields_of(self.feature(PerfDataFeature::ClockData)?);
        (fields.read_u32()? == 1).then_some(())?;
        fields.read_u32()?;
        Some((fields.read_u64()?, fields.read_u64()?))
    }
}

/// The events of the list at the file's beginning, each with the place of its ids.
fn read_attribute_section(layout: &PerfDataLayout, bytes: &[u8]) -> Vec<RecordedEvent> {
    let endian = if layout.is_big { Endianness::BigEndian } else { Endianness::LittleEndian };
    let (entry, (offset, size)) = layout.attributes_location(bytes);
    let Some(entry) = usize::try_from(entry).ok().filter(|entry| *entry > SECTION) else { return Vec::new() };
    let list = file_section(bytes, offset, size).unwrap_or_default();
    let one = |entry: &[u8]| {
        // simpleperf's entries hold the place of the ids, perf's as well: it is behind the attributes' own bytes.
        let (event, own) = parse_event_attributes(entry, entry.len() - SECTION, endian)?;
        let mut place = PerfDataFields { rest: entry.get(own..)?, is_big: layout.is_big };
        let ids = file_section(bytes, place.read_u64()?, place.read_u64()?).unwrap_or_default();
        Some(RecordedEvent {
            ids: PerfDataFields { rest: ids, is_big: layout.is_big }.read_all_u64(),
            ..event
        })
    };
    list.chunks_exact(entry).filter_map(one).collect()
}

/// An event's attributes, and how many bytes they are, `most` at most.
fn parse_event_attributes(bytes: &[u8], most: usize, endian: Endianness) -> Option<(RecordedEvent, usize)> {
    let bytes = bytes.get(..most)?;
    let (attributes, own) = match endian {
        Endianness::LittleEndian => PerfEventAttr::parse::<_, LittleEndian>(bytes),
        Endianness::BigEndian => PerfEventAttr::parse::<_, BigEndian>(bytes),
    }
    .ok()?;
    let own = usize::try_from(own).ok().filter(|own| *own <= most)?;
    let is_big = endian == Endianness::BigEndian;
    let read_format = PerfDataFields { rest: bytes.get(READ_FORMAT..)?, is_big }.read_u64()?;
    Some((RecordedEvent { attributes, read_format, name: None, ids: Vec::new() }, own))
}

fn file_section(bytes: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    let begin = usize::try_from(offset).ok()?;
    bytes.get(begin..begin.checked_add(usize::try_from(size).ok()?)?)
}

fn text_until_nul(bytes: &[u8]) -> Option<String> {
    let text = bytes.split(|byte| *byte == 0).next()?;
    std::str::from_utf8(text).ok().map(str::to_owned)
}

/// Numbers and texts one behind the other.
#[derive(Debug, Clone, Copy)]
struct PerfDataFields<'a> {
    rest: &'a [u8],
    is_big: bool,
}

impl<'a> PerfDataFields<'a> {
    fn over(self, rest: &[u8]) -> PerfDataFields<'_> {
        PerfDataFields { rest, is_big: self.is_big }
    }

    fn take_bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(first)
    }

    fn read_u64(&mut self) -> Option<u64> {
        let bytes = self.take_bytes(8)?.try_into().ok()?;
        Some(if self.is_big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    fn read_u32(&mut self) -> Option<u32> {
        let bytes = self.take_bytes(4)?.try_into().ok()?;
        Some(if self.is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn read_u16(&mut self) -> Option<u16> {
        let bytes = self.take_bytes(2)?.try_into().ok()?;
        Some(if self.is_big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    /// All numbers that are there.
    fn read_all_u64(mut self) -> Vec<u64> {
        std::iter::from_fn(|| self.read_u64()).collect()
    }

    /// A length and a text, padded with zeros.
    fn read_text(&mut self) -> Option<String> {
        let length = self.read_u32()?;
        text_until_nul(self.take_bytes(length as usize)?)
    }

    /// A length and so many bytes; none where they are not there.
    fn read_sized_bytes(mut self) -> &'a [u8] {
        let length = self.read_u64().and_then(|length| usize::try_from(length).ok());
        length.and_then(|length| self.rest.get(..length)).unwrap_or_default()
    }
}

/// One stream of compressed records, which goes on from record to record.
struct RecordUnpacker {
    decoder: Option<Decoder<'static>>,
    out: Vec<u8>,
    most: u64,
}

impl RecordUnpacker {
    fn new(most: u64) -> Self {
        RecordUnpacker { decoder: None, out: Vec::new(), most }
    }

    fn unpack(&mut self, bytes: &[u8]) -> Result<(), String> {
        let decoder = match &mut self.decoder {
            Some(decoder) => decoder,
            none => none.insert(Decoder::new().map_err(|error| error.to_string())?),
        };
        let mut input = InBuffer::around(bytes);
        let mut piece = vec![0; 1 << 17];
        loop {
            let mut output = OutBuffer::around(piece.as_mut_slice());
            decoder.run(&mut input, &mut output).map_err(|error| error.to_string())?;
            let came = output.pos();
            self.out.extend_from_slice(piece.get(..came).unwrap_or_default());
            if self.out.len() as u64 > self.most {
                return Err(format!(
                    "they grow beyond {} MiB, which is more than {RATIO} times the file: no recording does",
                    self.most >> 20
                ));
            }
            if came < piece.len() && input.pos() == bytes.len() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unpacked_is_bounded() {
        let zeros = compress_zstd(&vec![0; 3 << 20]);
        let mut unpacker = RecordUnpacker::new(1 << 20);
        let reason = unpacker.unpack(&zeros).unwrap_err();
        assert!(reason.starts_with("they grow beyond 1 MiB"), "{reason}");
        assert!(unpacker.out.len() < 2 << 20);
        let mut unpacker = RecordUnpacker::new(4 << 20);
        let (first, second) = zeros.split_at(zeros.len() / 2);
        unpacker.unpack(first).unwrap();
        unpacker.unpack(second).unwrap();
        assert_eq!(unpacker.out.len(), 3 << 20);
        assert!(RecordUnpacker::new(1).unpack(b"no zstd at all").is_err());
    }

    fn compress_zstd(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = zstd::stream::raw::Encoder::new(3).unwrap();
        let mut packed = vec![0; bytes.len() + 1024];
        let mut output = OutBuffer::around(packed.as_mut_slice());
        encoder.run(&mut InBuffer::around(bytes), &mut output).unwrap();
        encoder.finish(&mut output, true).unwrap();
        let length = output.pos();
        packed.truncate(length);
        packed
    }

    #[test]
    fn sizes_beyond_the_file_are_not_believed() {
        let mut fields = PerfDataFields { rest: &[0xff, 0xff, 0xff, 0x7f, b'a'], is_big: false };
        assert_eq!(fields.read_text(), None);
        let mut fields = PerfDataFields { rest: &[0, 0, 0, 2, b'a', 0, b'b'], is_big: true };
        assert_eq!(fields.read_text().as_deref(), Some("a"));
        assert_eq!(fields.rest, b"b");
        assert_eq!(file_section(b"abc", u64::MAX, 2), None);
        assert_eq!(file_section(b"abc", 1, u64::MAX), None);
        assert_eq!(file_section(b"abc", 1, 2), Some(b"bc".as_slice()));
    }
}
