//! The kernel's perf records, fed to the converter: the same for a live ring buffer and for perf.data.

use linux_perf_data::linux_perf_event_reader::{EventRecord, Mmap2Record, MmapRecord, RawData, SampleRecord};
use perflab_model::Nanos;

use crate::Converter;
use crate::convert::{MARK_KERNEL, MARK_USER, RawSample};

/// The process number under which the kernel's own mappings are told.
const KERNEL: i32 = -1;
/// Executable, among a mapping's protections.
const PROT_EXEC: u32 = 4;

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

    /// Records that the kernel had no room for.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
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
        converter.sample(raw, chain);
    }
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
