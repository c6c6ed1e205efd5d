//! The kernel's perf records, fed to the converter: the same for a live ring buffer and for perf.data.

use std::borrow::Cow;

use linux_perf_data::linux_perf_event_reader::{
    Endianness, EventRecord, Mmap2Record, MmapRecord, RawData, RawEventRecord, RecordParseInfo, RecordType,
    SampleRecord,
};
use perflab_model::Nanos;

use crate::Converter;
use crate::convert::{MARK_KERNEL, MARK_USER, RawSample};
use crate::registers::Registers;
use crate::unwind::Copied;

/// The process number under which the kernel's own mappings are told.
const KERNEL: i32 = -1;
/// Executable, among a mapping's protections.
const PROT_EXEC: u32 = 4;
/// Bytes of a record's head: type, flags and size.
const HEAD: usize = 8;
/// Types from here on are perf's own and not the kernel's.
const PERFS_OWN: u32 = 64;
/// The one of perf's own that more bytes follow than its size says: as many as its first number.
const AUXTRACE: u32 = 71;

/// Takes records in order of time.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// Whether stacks were asked for; else the address alone is the stack.
    has_chains: bool,
    /// The period of samples that do not carry it.
    period: u64,
    /// Records that the kernel had no room for.
    lost: u64,
    chain: Vec<u64>,
}

impl Records {
    /// For samples that were asked for so.
    pub(crate) fn new(has_chains: bool, period: u64) -> Self {
        Records { has_chains, period, lost: 0, chain: Vec::new() }
    }

    /// Whether it was said how samples were asked for.
    pub(crate) fn is_ready(&self) -> bool {
        self.period > 0
    }

    /// Records that the kernel had no room for.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Takes the kernel's records of several buffers in one order of time; gives those that cannot be read, by their
    /// place in their buffer and the reason.
    pub(crate) fn take_all(
        &mut self,
        converter: &mut Converter,
        buffers: &[&[u8]],
        info: RecordParseInfo,
    ) -> Vec<(usize, String)> {
        let mut order: Vec<(u64, usize, &[u8])> = Vec::new();
        for buffer in buffers {
            let mut last = 0;
            for (at, record) in Walk::of(buffer, info.endian) {
                // A record without a time happened when the one before it did.
                last = raw(record, info).and_then(|raw| raw.timestamp()).unwrap_or(last);
                order.push((last, at, record));
            }
        }
        order.sort_by_key(|(time, _, _)| *time);
        let mut unreadable = Vec::new();
        for (_, at, record) in order {
            match raw(record, info).map(|raw| raw.parse()) {
                Some(Ok(parsed)) => self.take(converter, &parsed),
                Some(Err(error)) => unreadable.push((at, error.to_string())),
                None => unreadable.push((at, "it is shorter than its head".into())),
            }
        }
        unreadable
    }

    /// Takes one record.
    pub(crate) fn take(&mut self, converter: &mut Converter, record: &EventRecord<'_>) {
        match record {
            EventRecord::Sample(sample) => self.sample(converter, sample),
            EventRecord::Comm(comm) => converter.named(comm.pid, comm.tid, &text(comm.name), comm.is_execve),
            EventRecord::Fork(fork) => converter.forked((fork.ppid, fork.pid), (fork.ptid, fork.tid)),
            EventRecord::Mmap(map) if map.pid == KERNEL => {
                kernel(converter, &text(map.path), map.page_offset)
            }
            EventRecord::Mmap2(map) if map.pid == KERNEL => {
                kernel(converter, &text(map.path), map.page_offset)
            }
            EventRecord::Mmap(map) => mmap(converter, map),
            EventRecord::Mmap2(map) => mmap2(converter, map),
            EventRecord::Lost(lost) => self.lost += lost.count,
            _ => {}
        }
    }

    fn sample(&mut self, converter: &mut Converter, sample: &SampleRecord<'_>) {
        let chain = &mut self.chain;
        chain.clear();
        match &sample.callchain {
            Some(found) => chain.extend((0..found.len()).map_while(|at| found.get(at))),
            None if self.has_chains => {}
            None => chain.extend(sample.ip.iter().flat_map(|ip| [mark(*ip), *ip])),
        }
        let raw = RawSample {
            at: sample.timestamp.map(Nanos),
            cpu: sample.cpu,
            pid: sample.pid,
            tid: sample.tid,
            period: sample.period.unwrap_or(self.period),
        };
        if let (Some(registers), false) = (registers(sample), chain.contains(&MARK_USER)) {
            let stack = memory(sample);
            chain.extend(converter.unwound(sample.pid, Copied { registers, stack: &stack }));
        }
        converter.sample(raw, chain);
    }
}

/// The registers of the user's side, where they were asked for and there is one.
fn registers(sample: &SampleRecord<'_>) -> Option<Registers> {
    sample.user_regs.as_ref().and_then(Registers::of)
}

/// The copy of the user's stack: as much of it as was there to be copied.
fn memory<'a>(sample: &SampleRecord<'a>) -> Cow<'a, [u8]> {
    let Some((copy, filled)) = sample.user_stack else { return Cow::Borrowed(&[]) };
    let filled = usize::try_from(filled).unwrap_or(usize::MAX).min(copy.len());
    match copy {
        RawData::Single(bytes) => Cow::Borrowed(bytes.get(..filled).unwrap_or_default()),
        RawData::Split(..) => copy.as_slice().get(..filled).map(<[u8]>::to_vec).unwrap_or_default().into(),
    }
}

/// The kernel's records of a buffer, each with its place; it ends where a size makes no sense.
struct Walk<'a> {
    buffer: &'a [u8],
    at: usize,
    endian: Endianness,
}

impl<'a> Walk<'a> {
    fn of(buffer: &'a [u8], endian: Endianness) -> Self {
        Walk { buffer, at: 0, endian }
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.buffer.get(self.at..)?;
            let (kind, size) = (kind(rest, self.endian)?, size(rest, self.endian)?);
            let record = rest.get(..size).filter(|_| size >= HEAD)?;
            let at = self.at;
            let more = if kind == AUXTRACE { number(record.get(HEAD..)?, self.endian)? } else { 0 };
            self.at = at.checked_add(size)?.checked_add(usize::try_from(more).ok()?)?;
            if kind < PERFS_OWN {
                return Some((at, record));
            }
        }
    }
}

fn kind(record: &[u8], endian: Endianness) -> Option<u32> {
    let bytes = record.get(..4)?.try_into().ok()?;
    Some(if endian == Endianness::LittleEndian {
        u32::from_le_bytes(bytes)
    } else {
        u32::from_be_bytes(bytes)
    })
}

fn half(record: &[u8], at: usize, endian: Endianness) -> Option<u16> {
    let bytes = record.get(at..at + 2)?.try_into().ok()?;
    Some(if endian == Endianness::LittleEndian {
        u16::from_le_bytes(bytes)
    } else {
        u16::from_be_bytes(bytes)
    })
}

fn size(record: &[u8], endian: Endianness) -> Option<usize> {
    half(record, 6, endian).map(usize::from)
}

fn number(bytes: &[u8], endian: Endianness) -> Option<u64> {
    let bytes = bytes.get(..8)?.try_into().ok()?;
    Some(if endian == Endianness::LittleEndian {
        u64::from_le_bytes(bytes)
    } else {
        u64::from_be_bytes(bytes)
    })
}

/// A record by its bytes.
fn raw(record: &[u8], info: RecordParseInfo) -> Option<RawEventRecord<'_>> {
    let (kind, misc) = (kind(record, info.endian)?, half(record, 4, info.endian)?);
    Some(RawEventRecord::new(RecordType(kind), misc, RawData::Single(record.get(HEAD..)?), info))
}

/// perf tells of the kernel as `[kernel.kallsyms]_text`, with the address of that symbol for an offset.
fn kernel(converter: &mut Converter, path: &str, offset: u64) {
    if path == "[kernel.kallsyms]_text" {
        converter.kernel_at(offset);
    }
}

fn mmap(converter: &mut Converter, map: &MmapRecord<'_>) {
    if map.is_executable {
        converter.mapped(map.pid, map.address, map.length, map.page_offset, &text(map.path));
    }
}

fn mmap2(converter: &mut Converter, map: &Mmap2Record<'_>) {
    if map.protection & PROT_EXEC != 0 {
        converter.mapped(map.pid, map.address, map.length, map.page_offset, &text(map.path));
    }
}

/// The mark of a lone address: kernels lie in the upper half on every architecture that perf knows.
fn mark(address: u64) -> u64 {
    if address >> 63 == 1 { MARK_KERNEL } else { MARK_USER }
}

/// Bytes are names of files and tasks: anything is allowed in them.
fn text(data: RawData<'_>) -> String {
    String::from_utf8_lossy(&data.as_slice()).into_owned()
}
