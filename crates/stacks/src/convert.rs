//! The one converter: from samples with addresses to stacks with names, live or imported.
//!
//! Owns the order of a stack (kernel above user, inlined functions above the one that holds their code) and
//! what stands for an address without a symbol: its module in brackets. Each chain of addresses is
//! looked up once for each address space.

use std::collections::HashMap;
use std::path::PathBuf;

use foldhash::fast::FixedState;
use perflab_model::Nanos;
use perflab_model::profile::{
    Anchor, CommId, Frame, FrameId, FrameKind, NodeId, StackBatch, StackSample, Weaver,
};

use crate::files::LivingFiles;
use crate::kernel::KernelSymbols;
use crate::space::{Mapping, Space, Tasks};
use crate::unwind::{Copied, Unwinders};
use crate::user::{Elves, Found, RunTimeCode};

/// Marks between the addresses of a chain: what follows is of the kernel, of the process, of a guest.
const MARKS: u64 = u64::MAX - 4095;
pub(crate) const MARK_KERNEL: u64 = 128u64.wrapping_neg();
pub(crate) const MARK_USER: u64 = 512u64.wrapping_neg();

/// A sample with addresses.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RawSample {
    pub(crate) at: Option<Nanos>,
    pub(crate) cpu: Option<u32>,
    pub(crate) pid: Option<i32>,
    pub(crate) tid: Option<i32>,
    /// What it weighs; 1 where the source has no periods.
    pub(crate) period: u64,
}

/// Where symbols are looked up.
#[derive(Debug, Default)]
pub struct Symbols {
    /// The kernel's; none where they are hidden or not those of the recorded kernel.
    pub kernel: Option<KernelSymbols>,
    /// How far the recorded kernel lay from that table.
    pub kernel_distance: u64,
    /// Whether the files of this machine are those of the recorded one.
    pub is_local: bool,
    /// Whether something says that both are of the recorded machine; else its kernel must lie at the same place.
    pub is_certain: bool,
}

type Fast<K, V> = HashMap<K, V, FixedState>;

/// Makes stacks of addresses, record by record, in order of time.
#[derive(Debug, Default)]
pub struct Converter {
    weaver: Weaver,
    symbols: Symbols,
    tasks: Tasks,
    elves: Elves,
    run_time: RunTimeCode,
    /// Stacks by address space and addresses, innermost first.
    stacks: Fast<u32, Fast<Box<[u64]>, Option<NodeId>>>,
    /// Frames by address space (0 for the kernel) and address, outermost first.
    frames: Fast<(u32, u64), Box<[FrameId]>>,
    samples: Vec<StackSample>,
    unwinders: Unwinders,
    /// Where files of processes are that may still live; none for a recording of yesterday.
    living: Option<LivingFiles>,
}

impl Converter {
    /// A converter without processes; records tell of them.
    pub fn new(symbols: Symbols) -> Self {
        Converter { symbols, ..Converter::default() }
    }

    /// One for processes that were recorded just now.
    pub(crate) fn of_living(symbols: Symbols) -> Self {
        Converter { living: Some(LivingFiles::default()), ..Converter::new(symbols) }
    }

    /// The recorded kernel's symbol `_text` was here. Where nothing else says that the tables are of the recorded
    /// machine, only the very same place does: kernels lie elsewhere after each boot.
    pub(crate) fn kernel_at(&mut self, text: u64) {
        let distance = self.symbols.kernel.as_ref().and_then(|kernel| kernel.distance(text));
        match distance {
            Some(distance) if self.symbols.is_certain || distance == 0 => {
                self.symbols.kernel_distance = distance
            }
            _ if self.symbols.is_certain => {}
            _ => self.symbols = Symbols::default(),
        }
    }

    /// Which kernel symbols of `wanted` are there.
    pub fn anchors(&self, wanted: &[String]) -> Vec<Anchor> {
        self.symbols.kernel.as_ref().map(|kernel| kernel.anchors(wanted)).unwrap_or_default()
    }

    /// When the first sample was taken.
    pub(crate) fn first(&self) -> Option<Nanos> {
        self.samples.iter().filter_map(|sample| sample.at).min()
    }

    /// Something was mapped into a process as code.
    pub fn mapped(&mut self, pid: i32, start: u64, length: u64, offset: u64, path: &str) {
        let mapping = Mapping { start, end: start.saturating_add(length), offset, path: path.into() };
        self.tasks.mapped(pid, mapping);
    }

    /// A thread took a name, by exec or by itself.
    pub fn named(&mut self, pid: i32, tid: i32, name: &str, is_exec: bool) {
        let name = self.weaver.comm(name);
        self.tasks.named(pid, tid, name, is_exec);
    }

    /// A process or thread began: (parent, child) as processes, and as threads.
    pub(crate) fn forked(&mut self, processes: (i32, i32), threads: (i32, i32)) {
        self.tasks.forked(processes, threads);
    }

    /// Samples of a process are left out from now on, and those of its children until they exec.
    pub(crate) fn leave_out(&mut self, pid: i32) {
        self.tasks.leave_out(pid);
    }

    /// Takes a sample of which only an address in the kernel is known.
    pub fn kernel_sample(&mut self, address: u64) {
        self.sample(RawSample { period: 1, ..RawSample::default() }, &[MARK_KERNEL, address]);
    }

    /// Takes a sample; `chain` holds addresses and marks, innermost first.
    pub(crate) fn sample(&mut self, raw: RawSample, chain: &[u64]) {
        let pid = raw.pid.unwrap_or(-1);
        if self.tasks.is_left_out(pid) {
            return;
        }
        let space = self.tasks.space(pid);
        let leaf = self.stack(pid, &space, chain);
        let comm = self.comm(raw.tid);
        let (count, weight) = (1, raw.period);
        let RawSample { at, cpu, pid, tid, .. } = raw;
        self.samples.push(StackSample { at, cpu, pid, tid, comm, leaf, count, weight });
    }

    /// The user's part of a stack, from a copy of its memory: a mark and addresses, innermost first. Without the
    /// recorded machine's files it is the instruction alone.
    pub(crate) fn unwound(&mut self, pid: Option<i32>, copied: Copied<'_>) -> Vec<u64> {
        let space = self.tasks.space(pid.unwrap_or(-1));
        let addresses = match self.symbols.is_local {
            true => self.unwinders.stack(&space, copied),
            false => vec![copied.registers.instruction],
        };
        std::iter::once(MARK_USER).chain(addresses).collect()
    }

    /// Forgets all processes: what happened to them since was not recorded.
    pub(crate) fn forget_processes(&mut self) {
        self.tasks.forget();
        self.living.iter().for_each(LivingFiles::forget);
        self.stacks.clear();
        self.frames.retain(|(space, _), _| *space == 0);
    }

    /// Everything since the last batch, in order of time.
    pub fn batch(&mut self, slot: u32) -> StackBatch {
        let mut samples = std::mem::take(&mut self.samples);
        samples.sort_by_key(|sample| sample.at);
        self.weaver.batch(slot, samples)
    }

    pub(crate) fn into_parts(self) -> (Weaver, Vec<StackSample>) {
        (self.weaver, self.samples)
    }

    fn comm(&mut self, tid: Option<i32>) -> CommId {
        match tid {
            None => self.weaver.comm(""),
            Some(0) => self.weaver.comm("swapper"),
            Some(tid) => match self.tasks.name(tid) {
                Some(known) => known,
                None => self.weaver.comm(&format!(":{tid}")),
            },
        }
    }

    fn stack(&mut self, pid: i32, space: &Space, chain: &[u64]) -> Option<NodeId> {
        if let Some(known) = self.stacks.get(&space.id).and_then(|stacks| stacks.get(chain)) {
            return *known;
        }
        let node = self.woven(pid, space, chain);
        self.stacks.entry(space.id).or_default().insert(chain.into(), node);
        node
    }

    /// Outermost first: a chain is innermost first.
    fn woven(&mut self, pid: i32, space: &Space, chain: &[u64]) -> Option<NodeId> {
        let mut node = None;
        for (kind, address) in addresses(chain).into_iter().rev() {
            let frames = self.frames_at(pid, space, kind, address);
            for frame in frames {
                node = Some(self.weaver.node(node, frame));
            }
        }
        node
    }

    fn frames_at(&mut self, pid: i32, space: &Space, kind: FrameKind, address: u64) -> Vec<FrameId> {
        let key = (if kind == FrameKind::Kernel { 0 } else { space.id }, address);
        if let Some(known) = self.frames.get(&key) {
            return known.to_vec();
        }
        let frames = match kind {
            FrameKind::Kernel => self.kernel_frames(address),
            _ => self.user_frames(pid, space, address),
        };
        let frames: Vec<FrameId> = frames.into_iter().map(|frame| self.weaver.frame(frame)).collect();
        self.frames.insert(key, frames.clone().into());
        frames
    }

    fn kernel_frames(&self, address: u64) -> Vec<Frame> {
        let module = Some("[kernel.kallsyms]".to_owned());
        let unknown = || Frame { module: module.clone(), ..Frame::new("[kernel]", FrameKind::Kernel) };
        let Some(kernel) = &self.symbols.kernel else { return vec![unknown()] };
        let here = address.wrapping_sub(self.symbols.kernel_distance);
        let Some(symbol) = kernel.find(here) else { return vec![unknown()] };
        let frame = Frame {
            module: kernel.module(symbol).map(str::to_owned).or(module),
            start: Some(kernel.offset(symbol)),
            ..Frame::new(kernel.name(symbol), FrameKind::Kernel)
        };
        let inlined = kernel.inlined(here, &self.elves).into_iter().filter(|found| found.inlined);
        let inlined = inlined.map(|found| Frame {
            module: frame.module.clone(),
            inlined: true,
            ..Frame::new(&found.name, FrameKind::Kernel)
        });
        std::iter::once(frame.clone()).chain(inlined).collect()
    }

    fn user_frames(&self, pid: i32, space: &Space, address: u64) -> Vec<Frame> {
        let mapping = space.find(address);
        let module = mapping.map(|mapping| mapping.path.to_string());
        let found = match mapping {
            Some(file) if self.symbols.is_local && file.is_file() => {
                let path = match &self.living {
                    Some(living) => living.find(pid, file),
                    None => PathBuf::from(&*file.path),
                };
                self.elves.at_offset(&path, (address - file.start).wrapping_add(file.offset))
            }
            _ => Vec::new(),
        };
        let found =
            if found.is_empty() && self.symbols.is_local { self.run_time(pid, address) } else { found };
        if found.is_empty() {
            let name = module.as_deref().map_or("[unknown]".into(), bracketed);
            return vec![Frame { module, ..Frame::new(&name, FrameKind::User) }];
        }
        let frame = |one: Found| Frame {
            module: module.clone(),
            inlined: one.inlined,
            ..Frame::new(&one.name, FrameKind::User)
        };
        found.into_iter().map(frame).collect()
    }

    fn run_time(&self, pid: i32, address: u64) -> Vec<Found> {
        self.run_time.find(pid, address).map(|name| Found { name, inlined: false }).into_iter().collect()
    }
}

/// A module's name as that of a function without one.
fn bracketed(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    if name.starts_with('[') { name.into() } else { format!("[{name}]") }
}

/// The addresses of a chain, innermost first, each with where it is. A caller's address is that of the
/// instruction after the call, which may be of the next function: one before it is of the right one.
fn addresses(chain: &[u64]) -> Vec<(FrameKind, u64)> {
    let mut kind = FrameKind::User;
    let mut found = Vec::with_capacity(chain.len());
    let mut is_begin = true;
    for address in chain {
        match *address {
            MARK_KERNEL => kind = FrameKind::Kernel,
            MARK_USER => kind = FrameKind::User,
            MARKS.. => kind = FrameKind::Unknown,
            _ if kind == FrameKind::Unknown => {}
            address => found.push((kind, if is_begin { address } else { address.saturating_sub(1) })),
        }
        is_begin = *address >= MARKS;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
ffffffff81000000 T _stext
ffffffff81000100 T do_syscall_64
ffffffff81000200 T kfree.part.0
ffffffff81000300 T after
";

    fn converter(is_local: bool) -> Converter {
        let kernel = KernelSymbols::parse(TABLE.into()).ok();
        Converter::new(Symbols { kernel, kernel_distance: 0x1000, is_local, is_certain: true })
    }

    fn told(batch: &StackBatch) -> Vec<String> {
        let name = |id: NodeId| batch.frames[batch.nodes[id.0 as usize].frame.0 as usize].name.clone();
        let line = |one: &StackSample| {
            let chain = std::iter::successors(one.leaf, |leaf| batch.nodes[leaf.0 as usize].parent);
            let mut names: Vec<String> = chain.map(name).collect();
            names.push(batch.comms[one.comm.0 as usize].clone());
            names.reverse();
            names.join(";")
        };
        batch.samples.iter().map(line).collect()
    }

    #[test]
    fn chains_become_stacks_with_the_kernel_above_the_process() {
        let mut converter = converter(false);
        converter.named(40, 40, "my task", true);
        converter.mapped(40, 0x5000, 0x1000, 0, "/usr/bin/tool");
        let raw = RawSample { pid: Some(40), tid: Some(40), period: 7, ..RawSample::default() };
        let kernel = [MARK_KERNEL, 0xffffffff81001210, 0xffffffff81001300, MARK_USER, 0x5010, 0x9999];
        converter.sample(raw, &kernel);
        converter.sample(raw, &kernel);
        converter.sample(raw, &[MARK_KERNEL]);
        converter
            .sample(RawSample { pid: Some(-1), tid: Some(-1), ..raw }, &[MARK_KERNEL, 0xffffffff81001100]);
        let batch = converter.batch(3);
        let stack = "my task;[unknown];[tool];kfree;kfree";
        assert_eq!(told(&batch), [stack, stack, "my task", ":-1;do_syscall_64"]);
        assert_eq!((batch.slot, batch.samples[0].weight), (3, 7));
        assert_eq!(batch.frames[2].start, Some(0x200));
        assert!(batch.samples[3].is_dead());
        assert_eq!(converter.batch(4), StackBatch { slot: 4, ..StackBatch::default() });
    }
}
