//! The kernel's perf records, fed to the converter: the same for a live ring buffer and for perf.data.

use std::borrow::Cow;
use std::collections::HashMap;

use byteorder::{BigEndian, LittleEndian};
use linux_perf_event_reader::{
    AttrFlags, Endianness, EventRecord, Mmap2FileId, Mmap2Record, MmapRecord, PerfEventAttr, PerfEventType,
    RawData, RawEventRecord, RecordIdParseInfo, RecordParseInfo, RecordType, SampleFormat, SampleRecord,
    SamplingPolicy, SoftwareCounterType, get_record_id, get_record_identifier,
};
use perflab_model::Nanos;

use crate::stack_converter::{AddressSample, MARK_KERNEL, MARK_USER, StackConverter};
use crate::unwind::{CopiedStack, SampledRegisters};

/// The process number under which the kernel's own mappings are recorded.
const KERNEL: i32 = -1;

/// Executable, among a mapping's protections.
const PROT_EXEC: u32 = 4;

/// Bytes of a record's head: type, flags and size.
const HEAD: usize = 8;

/// Types from here on are perf's own and not the kernel's.
const PERFS_OWN: u32 = 64;

/// The one of perf's own that more bytes follow than its size says: as many as its first number.
const AUXTRACE: u32 = 71;

/// A mapping is recorded with the build id of its file.
const MISC_BUILD_ID: u16 = 1 << 14;

/// Where that id's length stands, and the most that it can be.
const BUILD_ID_LENGTH: usize = 32;

const LONGEST_BUILD_ID: u8 = 20;

/// How the records of one event are read.
#[derive(Debug, Clone, Copy)]
struct EventRecordLayout {
    info: RecordParseInfo,
    /// The layout of the counters that come with each sample, all bits of it.
    read_format: u64,
    /// The period of samples that do not carry it.
    period: u64,
    /// Whether its samples are asked for.
    is_wanted: bool,
    /// Whether it takes samples: a member of a group may only be counted whenever the leader takes one.
    samples_itself: bool,
    /// Whether what a thread starts is counted, too.
    is_inherited: bool,
}

/// How the events of records are told apart.
#[derive(Debug, Clone, Copy)]
enum EventIdentity {
    /// there is one
    Single,
    /// the id is at the same place in all
    Same(RecordIdParseInfo),
    /// samples begin with it, and other records end with it, where they have it
    Identifier { others_too: bool },
}

/// How the records of a recording are read: an event's all in one way.
#[derive(Debug)]
pub(crate) struct RecordLayouts {
    endian: Endianness,
    shapes: Vec<EventRecordLayout>,
    identity: EventIdentity,
    by_id: HashMap<u64, usize>,
}

/// An event, as it is asked to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestedEvent<'a> {
    pub(crate) attributes: &'a PerfEventAttr,
    pub(crate) read_format: u64,
    pub(crate) ids: &'a [u64],
    pub(crate) is_wanted: bool,
}

impl RecordLayouts {
    /// For these events, at least one; an error is a reason.
    pub(crate) fn for_events(events: &[RequestedEvent<'_>], endian: Endianness) -> Result<Self, String> {
        let shape = |event: &RequestedEvent<'_>| EventRecordLayout {
            info: RecordParseInfo::new(event.attributes, endian),
            read_format: event.read_format,
            period: match event.attributes.sampling_policy {
                SamplingPolicy::Period(period) => period.get(),
                _ => 1,
            },
            is_wanted: event.is_wanted,
            samples_itself: has_own_samples(event.attributes),
            is_inherited: event.attributes.flags.contains(AttrFlags::INHERIT),
        };
        let shapes: Vec<EventRecordLayout> = events.iter().map(shape).collect();
        let ids = events.iter().enumerate().flat_map(|(at, event)| event.ids.iter().map(move |id| (*id, at)));
        Ok(RecordLayouts {
            endian,
            identity: choose_identity(events, &shapes)?,
            by_id: ids.collect(),
            shapes,
        })
    }

    /// Whether any event was asked for with its stacks.
    fn has_chains(&self) -> bool {
        self.shapes.iter().any(|shape| shape.info.sample_format.contains(SampleFormat::CALLCHAIN))
    }

    /// What a group's members were at, at a sample: each counter that is asked for without samples of its own.
    fn group_counts<'a>(
        &'a self,
        body: &'a [u8],
        at: usize,
        shape: &EventRecordLayout,
    ) -> impl Iterator<Item = (u64, u64)> + 'a {
        let values = parse_counter_group(body, at, shape).unwrap_or_default();
        values.into_iter().filter(|(id, _)| {
            let member = self.by_id.get(id).and_then(|at| self.shapes.get(*at));
            member.is_some_and(|member| member.is_wanted && !member.samples_itself)
        })
    }

    /// The shape of a record; that of the first event where its own is not known.
    fn layout_of(&self, kind: u32, body: &[u8]) -> Option<&EventRecordLayout> {
        let (kind, data) = (RecordType(kind), RawData::Single(body));
        let id = match (self.identity, self.endian) {
            (EventIdentity::Single, _) => None,
            (EventIdentity::Same(place), Endianness::LittleEndian) => {
                get_record_id::<LittleEndian>(kind, data, &place)
            }
            (EventIdentity::Same(place), Endianness::BigEndian) => {
                get_record_id::<BigEndian>(kind, data, &place)
            }
            (EventIdentity::Identifier { others_too }, Endianness::LittleEndian) => {
                get_record_identifier::<LittleEndian>(kind, data, others_too)
            }
            (EventIdentity::Identifier { others_too }, Endianness::BigEndian) => {
                get_record_identifier::<BigEndian>(kind, data, others_too)
            }
        };
        let at = id.and_then(|id| self.by_id.get(&id)).copied().unwrap_or(0);
        self.shapes.get(at)
    }
}

fn choose_identity(
    events: &[RequestedEvent<'_>],
    shapes: &[EventRecordLayout],
) -> Result<EventIdentity, String> {
    let (Some(first), Some(event)) = (shapes.first(), events.first()) else {
        return Err("it does not say what was recorded".into());
    };
    let place = first.info.id_parse_info;
    if shapes.len() == 1 {
        return Ok(EventIdentity::Single);
    }
    if shapes.iter().all(|shape| shape.info.id_parse_info == place) {
        return Ok(EventIdentity::Same(place));
    }
    let others_too = event.attributes.flags.contains(AttrFlags::SAMPLE_ID_ALL);
    let is_told = |event: &RequestedEvent<'_>| {
        event.attributes.sample_format.contains(SampleFormat::IDENTIFIER)
            && event.attributes.flags.contains(AttrFlags::SAMPLE_ID_ALL) == others_too
    };
    match events.iter().all(is_told) {
        true => Ok(EventIdentity::Identifier { others_too }),
        false => Err("its events cannot be told apart: their samples do not carry an identifier".into()),
    }
}

/// Whether an event gives samples: perf opens a dummy one beside, for mappings and names.
pub(crate) fn has_samples(attributes: &PerfEventAttr) -> bool {
    !matches!(attributes.type_, PerfEventType::Software(SoftwareCounterType::Dummy))
}

/// Whether an event takes samples, and is not only counted at those of its group's leader (`perf record -e '{a,b}:S'`).
pub(crate) fn has_own_samples(attributes: &PerfEventAttr) -> bool {
    has_samples(attributes) && !matches!(attributes.sampling_policy, SamplingPolicy::NoSampling)
}

/// Takes records in order of time.
#[derive(Debug, Default)]
pub(crate) struct PerfRecordReader {
    /// Whether stacks were asked for; else the address alone is the stack.
    has_chains: bool,
    /// Records that the kernel had no room for.
    lost: u64,
    /// Samples of events that were not asked for.
    pub(crate) others: u64,
    /// What the members of groups were at when they were last looked at, by counter and thread.
    counted: HashMap<(u64, Option<i32>), u64>,
    chain: Vec<u64>,
}

impl PerfRecordReader {
    /// For records of these shapes.
    pub(crate) fn new(shapes: &RecordLayouts) -> Self {
        PerfRecordReader { has_chains: shapes.has_chains(), ..PerfRecordReader::default() }
    }

    /// Records that the kernel had no room for.
    pub(crate) fn lost_records(&self) -> u64 {
        self.lost
    }

    /// Takes the kernel's records of several buffers in one order of time; gives those that cannot be read, by their
    /// place in their buffer and the reason.
    pub(crate) fn read_buffers(
        &mut self,
        converter: &mut StackConverter,
        buffers: &[&[u8]],
        shapes: &RecordLayouts,
    ) -> Vec<(usize, String)> {
        let mut order: Vec<(u64, usize, &[u8])> = Vec::new();
        for buffer in buffers {
            let mut last = 0;
            for (at, record) in RecordWalk::new(buffer, shapes.endian) {
                // A record without a time happened when the one before it did.
                last = parse_raw_record(record, shapes).and_then(|(raw, _)| raw.timestamp()).unwrap_or(last);
                order.push((last, at, record));
            }
        }
        order.sort_by_key(|(time, _, _)| *time);
        let mut unreadable = Vec::new();
        for (_, at, record) in order {
            match parse_raw_record(record, shapes) {
                Some((raw, shape)) => {
                    if let Err(reason) = self.read_raw_record(converter, raw, shape, shapes) {
                        unreadable.push((at, reason));
                    }
                }
                None => unreadable.push((at, "it is shorter than its head".into())),
            }
        }
        unreadable
    }

    /// Takes a record by its bytes. What would lead the parser beyond them is refused before.
    fn read_raw_record(
        &mut self,
        converter: &mut StackConverter,
        raw: RawEventRecord<'_>,
        shape: &EventRecordLayout,
        shapes: &RecordLayouts,
    ) -> Result<(), String> {
        let RawData::Single(body) = raw.data else { return Err("it is in two pieces".into()) };
        let without: Vec<u8>;
        let mut members = Vec::new();
        let mut raw = raw;
        match raw.record_type {
            RecordType::SAMPLE => {
                let mut at = counters_offset(raw.parse_info.sample_format);
                if raw.parse_info.sample_format.contains(SampleFormat::READ) {
                    members.extend(shapes.group_counts(body, at, shape));
                }
                if !shape.is_wanted && members.is_empty() {
                    self.others += 1;
                    return Ok(());
                }
                if raw.parse_info.sample_format.contains(SampleFormat::READ) {
                    let length =
                        counters_length(body, at, shape).ok_or("its counters are longer than the record")?;
                    without =
                        [body.get(..at), body.get(at + length..)].map(Option::unwrap_or_default).concat();
                    raw.data = RawData::Single(&without);
                    raw.parse_info.sample_format.remove(SampleFormat::READ);
                    at += length;
                }
                let is_too_long = |count: u64| count > body.len() as u64 / 8;
                let has_chain = raw.parse_info.sample_format.contains(SampleFormat::CALLCHAIN);
                if has_chain
                    && body
                        .get(at..)
                        .and_then(|rest| read_u64(rest, shape.info.endian))
                        .is_some_and(is_too_long)
                {
                    return Err("its stack is longer than the record".into());
                }
            }
            RecordType::MMAP2
                if raw.misc & MISC_BUILD_ID != 0
                    && body.get(BUILD_ID_LENGTH).is_some_and(|length| *length > LONGEST_BUILD_ID) =>
            {
                return Err("its build id is longer than one can be".into());
            }
            _ => {}
        }
        let parsed = raw.parse().map_err(|error| error.to_string())?;
        let EventRecord::Sample(sample) = &parsed else {
            self.read_record(converter, &parsed);
            return Ok(());
        };
        if shape.is_wanted && shape.samples_itself {
            self.read_sample(converter, sample, sample.period.unwrap_or(shape.period));
        }
        // A counter that a thread's children inherit is one for each thread.
        let thread = sample.tid.filter(|_| shape.is_inherited);
        for (id, value) in members {
            let before = self.counted.insert((id, thread), value).unwrap_or(0);
            match value.checked_sub(before).unwrap_or(value) {
                0 => {}
                more => self.read_sample(converter, sample, more),
            }
        }
        Ok(())
    }

    /// Takes one record that is no sample.
    fn read_record(&mut self, converter: &mut StackConverter, record: &EventRecord<'_>) {
        match record {
            EventRecord::Comm(comm) => {
                converter.on_name(comm.pid, comm.tid, &raw_text(comm.name), comm.is_execve)
            }
            EventRecord::Fork(fork) => converter.on_fork((fork.ppid, fork.pid), (fork.ptid, fork.tid)),
            EventRecord::Mmap(map) if map.pid == KERNEL => {
                apply_kernel_map(converter, &raw_text(map.path), map.page_offset)
            }
            EventRecord::Mmap2(map) if map.pid == KERNEL => {
                apply_kernel_map(converter, &raw_text(map.path), map.page_offset)
            }
            EventRecord::Mmap(map) => apply_mmap(converter, map),
            EventRecord::Mmap2(map) => apply_mmap2(converter, map),
            EventRecord::Lost(lost) => self.lost = self.lost.saturating_add(lost.count),
            _ => {}
        }
    }

    fn read_sample(&mut self, converter: &mut StackConverter, sample: &SampleRecord<'_>, period: u64) {
        let chain = &mut self.chain;
        chain.clear();
        match &sample.callchain {
            Some(found) => chain.extend((0..found.len()).map_while(|at| found.get(at))),
            None if self.has_chains => {}
            None => chain.extend(sample.ip.iter().flat_map(|ip| [context_marker(*ip), *ip])),
        }
        let raw = AddressSample {
            at: sample.timestamp.map(Nanos),
            cpu: sample.cpu,
            pid: sample.pid,
            tid: sample.tid,
            period,
        };
        if let (Some(registers), false) = (sampled_registers(sample), chain.contains(&MARK_USER)) {
            let stack = copied_stack_bytes(sample);
            chain.extend(converter.unwind(sample.pid, CopiedStack { registers, stack: &stack }));
        }
        converter.add_sample(raw, chain);
    }
}

/// Bytes of a sample before its counters: a word for each thing that comes first.
fn counters_offset(format: SampleFormat) -> usize {
    let first = SampleFormat::IDENTIFIER
        | SampleFormat::IP
        | SampleFormat::TID
        | SampleFormat::TIME
        | SampleFormat::ADDR
        | SampleFormat::ID
        | SampleFormat::STREAM_ID
        | SampleFormat::CPU
        | SampleFormat::PERIOD;
    format.intersection(first).bits().count_ones() as usize * 8
}

/// Bits of `read_format` that add a word: to all, and to each counter.
const ENABLED_AND_RUNNING: u64 = 0b11;

const ID: u64 = 0b100;

const ID_AND_LOST: u64 = 0b1_0100;

/// The bit with which a group's counters come together.
const GROUP: u64 = 0b1000;

/// The counters of a group in a sample, each by its id: `None` where there is no group, or no id.
fn parse_counter_group(body: &[u8], at: usize, shape: &EventRecordLayout) -> Option<Vec<(u64, u64)>> {
    if shape.read_format & (GROUP | ID) != GROUP | ID {
        return None;
    }
    let length = counters_length(body, at, shape)?;
    let words = |bits: u64| (shape.read_format & bits).count_ones() as usize;
    let (first, each) = (1 + words(ENABLED_AND_RUNNING), 1 + words(ID_AND_LOST));
    let all = body.get(at..at + length)?.get(first * 8..)?.chunks_exact(each * 8);
    let pair = |counter: &[u8]| {
        Some((read_u64(counter.get(8..)?, shape.info.endian)?, read_u64(counter, shape.info.endian)?))
    };
    all.map(pair).collect()
}

/// Bytes of the counters in a sample: one of them, or a group's (`perf record -e '{a,b}:S'`).
fn counters_length(body: &[u8], at: usize, shape: &EventRecordLayout) -> Option<usize> {
    let words = |bits: u64| u64::from((shape.read_format & bits).count_ones());
    let (times, each) = (words(ENABLED_AND_RUNNING), 1 + words(ID_AND_LOST));
    let words = match shape.read_format & GROUP {
        0 => times + each,
        _ => read_u64(body.get(at..)?, shape.info.endian)?.checked_mul(each)?.checked_add(1 + times)?,
    };
    let bytes = usize::try_from(words.checked_mul(8)?).ok()?;
    (bytes <= body.len().checked_sub(at)?).then_some(bytes)
}

/// The registers of the user's side, where they were asked for and there is one.
fn sampled_registers(sample: &SampleRecord<'_>) -> Option<SampledRegisters> {
    sample.user_regs.as_ref().and_then(SampledRegisters::from_sample)
}

/// The copy of the user's stack: as much of it as was there to be copied.
fn copied_stack_bytes<'a>(sample: &SampleRecord<'a>) -> Cow<'a, [u8]> {
    let Some((copy, filled)) = sample.user_stack else { return Cow::Borrowed(&[]) };
    let filled = usize::try_from(filled).unwrap_or(usize::MAX).min(copy.len());
    match copy {
        RawData::Single(bytes) => Cow::Borrowed(bytes.get(..filled).unwrap_or_default()),
        RawData::Split(..) => copy.as_slice().get(..filled).map(<[u8]>::to_vec).unwrap_or_default().into(),
    }
}

/// The kernel's records of a buffer, each with its place; it ends where a size makes no sense.
struct RecordWalk<'a> {
    buffer: &'a [u8],
    at: usize,
    endian: Endianness,
}

impl<'a> RecordWalk<'a> {
    fn new(buffer: &'a [u8], endian: Endianness) -> Self {
        RecordWalk { buffer, at: 0, endian }
    }
}

impl<'a> Iterator for RecordWalk<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.buffer.get(self.at..)?;
            let (kind, size) = (record_type(rest, self.endian)?, record_size(rest, self.endian)?);
            let record = rest.get(..size).filter(|_| size >= HEAD)?;
            let at = self.at;
            let more = if kind == AUXTRACE { read_u64(record.get(HEAD..)?, self.endian)? } else { 0 };
            self.at = at.checked_add(size)?.checked_add(usize::try_from(more).ok()?)?;
            if kind < PERFS_OWN {
                return Some((at, record));
            }
        }
    }
}

fn record_type(record: &[u8], endian: Endianness) -> Option<u32> {
    let bytes = record.get(..4)?.try_into().ok()?;
    Some(if endian == Endianness::LittleEndian {
        u32::from_le_bytes(bytes)
    } else {
        u32::from_be_bytes(bytes)
    })
}

fn read_u16(record: &[u8], at: usize, endian: Endianness) -> Option<u16> {
    let bytes = record.get(at..at + 2)?.try_into().ok()?;
    Some(if endian == Endianness::LittleEndian {
        u16::from_le_bytes(bytes)
    } else {
        u16::from_be_bytes(bytes)
    })
}

fn record_size(record: &[u8], endian: Endianness) -> Option<usize> {
    read_u16(record, 6, endian).map(usize::from)
}

fn read_u64(bytes: &[u8], endian: Endianness) -> Option<u64> {
    let bytes = bytes.get(..8)?.try_into().ok()?;
    Some(if endian == Endianness::LittleEndian {
        u64::from_le_bytes(bytes)
    } else {
        u64::from_be_bytes(bytes)
    })
}

/// A record by its bytes, and its shape.
fn parse_raw_record<'a, 's>(
    record: &'a [u8],
    shapes: &'s RecordLayouts,
) -> Option<(RawEventRecord<'a>, &'s EventRecordLayout)> {
    let (kind, misc) = (record_type(record, shapes.endian)?, read_u16(record, 4, shapes.endian)?);
    let body = record.get(HEAD..)?;
    let shape = shapes.layout_of(kind, body)?;
    Some((RawEventRecord::new(RecordType(kind), misc, RawData::Single(body), shape.info), shape))
}

/// perf tells of the kernel as `[kernel.kallsyms]_text`, with the address of that symbol for an offset.
fn apply_kernel_map(converter: &mut StackConverter, path: &str, offset: u64) {
    if path == "[kernel.kallsyms]_text" {
        converter.on_kernel_address(offset);
    }
}

fn apply_mmap(converter: &mut StackConverter, map: &MmapRecord<'_>) {
    if map.is_executable {
        converter.on_map(map.pid, map.address, map.length, map.page_offset, &raw_text(map.path));
    }
}

fn apply_mmap2(converter: &mut StackConverter, map: &Mmap2Record<'_>) {
    if map.protection & PROT_EXEC != 0 {
        if let Mmap2FileId::BuildId(id) = &map.file_id {
            converter.on_build_id(&raw_text(map.path), id);
        }
        converter.on_map(map.pid, map.address, map.length, map.page_offset, &raw_text(map.path));
    }
}

/// The mark of a lone address: kernels lie in the upper half on every architecture that perf knows.
fn context_marker(address: u64) -> u64 {
    if address >> 63 == 1 { MARK_KERNEL } else { MARK_USER }
}

/// Bytes are names of files and tasks: anything is allowed in them.
fn raw_text(data: RawData<'_>) -> String {
    String::from_utf8_lossy(&data.as_slice()).into_owned()
}
