//! The one converter: from samples with addresses to stacks with names, live or imported.
//!
//! A stack's order is kernel above user, inlined functions above the one that holds their code; an address without a
//! symbol is its module in brackets. Each chain of addresses is looked up once for each address space.

use std::collections::HashMap;
use std::path::PathBuf;

use foldhash::fast::FixedState;
use perflab_model::profile::{StackBatch, StackTreeBuilder, SymbolAnchor};
use perflab_model::{CommId, FrameId, FrameKind, Nanos, NodeId, StackFrame, StackSample};

use crate::address_space::{AddressMapping, AddressSpace, ProcessTable};
use crate::kernel_symbols::KernelSymbols;
use crate::recorded_files::RecordedFiles;
use crate::unwind::{CopiedStack, StackUnwinders};
use crate::user_symbols::{ElfSymbolizer, JitMaps, SymbolizedFunction};
use crate::watched_file::LivingFiles;

/// Marks between the addresses of a chain: what follows is of the kernel, of the process, of a guest.
const MARKS: u64 = u64::MAX - 4095;

pub(crate) const MARK_KERNEL: u64 = 128u64.wrapping_neg();

pub(crate) const MARK_USER: u64 = 512u64.wrapping_neg();

/// A sample with addresses.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AddressSample {
    pub(crate) at: Option<Nanos>,
    pub(crate) cpu: Option<u32>,
    pub(crate) pid: Option<i32>,
    pub(crate) tid: Option<i32>,
    /// What it weighs; 1 where the source has no periods.
    pub(crate) period: u64,
}

/// Where symbols are looked up.
#[derive(Debug, Default)]
pub struct SymbolSources {
    /// The kernel's; none where they are hidden or not those of the recorded kernel.
    pub kernel: Option<KernelSymbols>,
    /// How far the recorded kernel lay from that table.
    pub kernel_distance: u64,
    /// The recorded machine's programs and libraries; none where this is another machine, and there is no copy.
    pub files: Option<RecordedFiles>,
    /// Whether something says that both are of the recorded machine; else its kernel must lie at the same place.
    pub is_certain: bool,
}

type FixedHashMap<K, V> = HashMap<K, V, FixedState>;

/// Makes stacks of addresses, record by record, in order of time.
#[derive(Debug, Default)]
pub struct StackConverter {
    weaver: StackTreeBuilder,
    symbols: SymbolSources,
    tasks: ProcessTable,
    elves: ElfSymbolizer,
    run_time: JitMaps,
    /// Stacks by address space and addresses, innermost first.
    stacks: FixedHashMap<u32, FixedHashMap<Box<[u64]>, Option<NodeId>>>,
    /// Frames by address space (0 for the kernel) and address, outermost first.
    frames: FixedHashMap<(u32, u64), Box<[FrameId]>>,
    samples: Vec<StackSample>,
    unwinders: StackUnwinders,
    /// Where files of processes are that may still live; none for a recording of yesterday.
    living: Option<LivingFiles>,
}

impl StackConverter {
    /// A converter without processes; records tell of them.
    pub fn new(symbols: SymbolSources) -> Self {
        let copy = symbols.files.as_ref().and_then(RecordedFiles::copy_root);
        let elves = copy.map(ElfSymbolizer::with_debug_files_below).unwrap_or_default();
        StackConverter { symbols, elves, ..StackConverter::default() }
    }

    /// One for processes that were recorded just now.
    pub(crate) fn for_living_processes(symbols: SymbolSources) -> Self {
        StackConverter { living: Some(LivingFiles::default()), ..StackConverter::new(symbols) }
    }

    /// The recorded kernel's symbol `_text` was here. Where nothing else says that the tables are of the recorded
    /// machine, only the very same place does: kernels lie elsewhere after each boot.
    pub(crate) fn on_kernel_address(&mut self, text: u64) {
        let distance = self.symbols.kernel.as_ref().and_then(|kernel| kernel.distance_from(text));
        match distance {
            Some(distance) if self.symbols.is_certain || distance == 0 => {
                self.symbols.kernel_distance = distance
            }
            _ if self.symbols.is_certain => {}
            _ => {
                let copy = self.symbols.files.take().filter(|files| files.copy_root().is_some());
                self.symbols = SymbolSources { files: copy, ..SymbolSources::default() };
            }
        }
    }

    /// The recorded file at a path had this build id.
    pub(crate) fn on_build_id(&mut self, path: &str, build_id: &[u8]) {
        if let Some(files) = &mut self.symbols.files {
            files.set_build_id(path, build_id);
        }
    }

    /// The files of the recorded machine, where there are any.
    pub(crate) fn files(&self) -> Option<&RecordedFiles> {
        self.symbols.files.as_ref()
    }

    /// Which kernel symbols of `requested` are there.
    pub fn find_anchors(&self, requested: &[String]) -> Vec<SymbolAnchor> {
        self.symbols.kernel.as_ref().map(|kernel| kernel.find_anchors(requested)).unwrap_or_default()
    }

    /// When the first sample was taken.
    pub(crate) fn first_sample_time(&self) -> Option<Nanos> {
        self.samples.iter().filter_map(|sample| sample.at).min()
    }

    /// Something was mapped into a process as code.
    pub fn on_map(&mut self, pid: i32, start: u64, length: u64, offset: u64, path: &str) {
        let mapping = AddressMapping { start, end: start.saturating_add(length), offset, path: path.into() };
        self.tasks.on_map(pid, mapping);
    }

    /// A thread took a name, by exec or by itself.
    pub fn on_name(&mut self, pid: i32, tid: i32, name: &str, is_exec: bool) {
        let name = self.weaver.intern_comm(name);
        self.tasks.on_name(pid, tid, name, is_exec);
    }

    /// A process or thread began: (parent, child) as processes, and as threads.
    pub(crate) fn on_fork(&mut self, processes: (i32, i32), threads: (i32, i32)) {
        self.tasks.on_fork(processes, threads);
    }

    /// Samples of a process are left out from now on, and those of its children until they exec.
    pub(crate) fn exclude_process(&mut self, pid: i32) {
        self.tasks.exclude_process(pid);
    }

    /// Takes a sample of which only an address in the kernel is known.
    pub fn add_kernel_sample(&mut self, address: u64) {
        self.add_sample(AddressSample { period: 1, ..AddressSample::default() }, &[MARK_KERNEL, address]);
    }

    /// Takes a sample; `chain` holds addresses and marks, innermost first.
    pub(crate) fn add_sample(&mut self, raw: AddressSample, chain: &[u64]) {
        let pid = raw.pid.unwrap_or(-1);
        if self.tasks.is_excluded(pid) {
            return;
        }
        let space = self.tasks.address_space(pid);
        let leaf = self.cached_stack(pid, &space, chain);
        let comm = self.comm_of(raw.tid);
        let (count, weight) = (1, raw.period);
        let AddressSample { at, cpu, pid, tid, .. } = raw;
        self.samples.push(StackSample { at, cpu, pid, tid, comm, leaf, count, weight });
    }

    /// Takes a sample of a task of which only the name is known.
    pub(crate) fn add_named_sample(&mut self, raw: AddressSample, comm: &str, chain: &[u64]) {
        let space = self.tasks.address_space(-1);
        let leaf = self.cached_stack(-1, &space, chain);
        let comm = self.weaver.intern_comm(comm);
        let (count, weight) = (1, raw.period);
        let AddressSample { at, cpu, pid, tid, .. } = raw;
        self.samples.push(StackSample { at, cpu, pid, tid, comm, leaf, count, weight });
    }

    /// The user's part of a stack, from a copy of its memory: a mark and addresses, innermost first. Without the
    /// recorded machine's files it is the instruction alone.
    pub(crate) fn unwind(&mut self, pid: Option<i32>, copied: CopiedStack<'_>) -> Vec<u64> {
        let space = self.tasks.address_space(pid.unwrap_or(-1));
        let addresses = match &self.symbols.files {
            Some(files) => self.unwinders.unwind_stack(&space, files, copied),
            None => vec![copied.registers.instruction],
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
    pub fn take_batch(&mut self, slot: u32) -> StackBatch {
        let mut samples = std::mem::take(&mut self.samples);
        samples.sort_by_key(|sample| sample.at);
        self.weaver.take_batch(slot, samples)
    }

    pub(crate) fn into_parts(self) -> (StackTreeBuilder, Vec<StackSample>) {
        (self.weaver, self.samples)
    }

    fn comm_of(&mut self, tid: Option<i32>) -> CommId {
        match tid {
            None => self.weaver.intern_comm(""),
            Some(0) => self.weaver.intern_comm("swapper"),
            Some(tid) => match self.tasks.thread_name(tid) {
                Some(known) => known,
                None => self.weaver.intern_comm(&format!(":{tid}")),
            },
        }
    }

    fn cached_stack(&mut self, pid: i32, space: &AddressSpace, chain: &[u64]) -> Option<NodeId> {
        if let Some(known) = self.stacks.get(&space.id).and_then(|stacks| stacks.get(chain)) {
            return *known;
        }
        let node = self.intern_stack(pid, space, chain);
        self.stacks.entry(space.id).or_default().insert(chain.into(), node);
        node
    }

    /// Outermost first: a chain is innermost first.
    fn intern_stack(&mut self, pid: i32, space: &AddressSpace, chain: &[u64]) -> Option<NodeId> {
        let mut node = None;
        for (kind, address) in classify_addresses(chain).into_iter().rev() {
            let frames = self.cached_frames(pid, space, kind, address);
            for frame in frames {
                node = Some(self.weaver.intern_node(node, frame));
            }
        }
        node
    }

    fn cached_frames(
        &mut self,
        pid: i32,
        space: &AddressSpace,
        kind: FrameKind,
        address: u64,
    ) -> Vec<FrameId> {
        let key = (if kind == FrameKind::Kernel { 0 } else { space.id }, address);
        if let Some(known) = self.frames.get(&key) {
            return known.to_vec();
        }
        let frames = match kind {
            FrameKind::Kernel => self.kernel_frames(address),
            _ => self.user_frames(pid, space, address),
        };
        let frames: Vec<FrameId> = frames.into_iter().map(|frame| self.weaver.intern_frame(frame)).collect();
        self.frames.insert(key, frames.clone().into());
        frames
    }

    fn kernel_frames(&self, address: u64) -> Vec<StackFrame> {
        let module = Some("[kernel.kallsyms]".to_owned());
        let unknown =
            || StackFrame { module: module.clone(), ..StackFrame::new("[kernel]", FrameKind::Kernel) };
        let Some(kernel) = &self.symbols.kernel else { return vec![unknown()] };
        let here = address.wrapping_sub(self.symbols.kernel_distance);
        let Some(symbol) = kernel.find_symbol(here) else { return vec![unknown()] };
        let frame = StackFrame {
            module: kernel.symbol_module(symbol).map(str::to_owned).or(module),
            start: Some(kernel.symbol_offset(symbol)),
            ..StackFrame::new(kernel.symbol_name(symbol), FrameKind::Kernel)
        };
        let inlined = kernel.inlined_functions(here, &self.elves).into_iter().filter(|found| found.inlined);
        let inlined = inlined.map(|found| StackFrame {
            module: frame.module.clone(),
            inlined: true,
            ..StackFrame::new(&found.name, FrameKind::Kernel)
        });
        std::iter::once(frame.clone()).chain(inlined).collect()
    }

    fn user_frames(&self, pid: i32, space: &AddressSpace, address: u64) -> Vec<StackFrame> {
        let mapping = space.find_mapping(address);
        let module = mapping.map(|mapping| mapping.path.to_string());
        let in_file = mapping.filter(|mapping| mapping.is_file()).and_then(|file| {
            let path = self.binary_path(pid, file)?;
            Some(self.elves.functions_at_offset(&path, (address - file.start).wrapping_add(file.offset)))
        });
        let found =
            in_file.filter(|found| !found.is_empty()).unwrap_or_else(|| self.jit_frames(pid, address));
        if found.is_empty() {
            let name = module.as_deref().map_or("[unknown]".into(), module_in_brackets);
            return vec![StackFrame { module, ..StackFrame::new(&name, FrameKind::User) }];
        }
        let frame = |one: SymbolizedFunction| StackFrame {
            module: module.clone(),
            inlined: one.inlined,
            ..StackFrame::new(&one.name, FrameKind::User)
        };
        found.into_iter().map(frame).collect()
    }

    /// Where the binary of a mapping is, if it is still the recorded one.
    fn binary_path(&self, pid: i32, mapping: &AddressMapping) -> Option<PathBuf> {
        let files = self.symbols.files.as_ref()?;
        match &self.living {
            Some(living) => Some(living.path_of_mapping(pid, mapping)),
            None => files.locate_binary(&mapping.path),
        }
    }

    fn jit_frames(&self, pid: i32, address: u64) -> Vec<SymbolizedFunction> {
        self.symbols
            .files
            .as_ref()
            .and_then(|files| self.run_time.find_function(files, pid, address))
            .map(|name| SymbolizedFunction { name, inlined: false })
            .into_iter()
            .collect()
    }
}

/// A module's name as that of a function without one.
fn module_in_brackets(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    if name.starts_with('[') { name.into() } else { format!("[{name}]") }
}

/// The addresses of a chain, innermost first, each with where it is. A caller's address is that of the
/// instruction after the call, which may be of the next function: one before it is of the right one.
fn classify_addresses(chain: &[u64]) -> Vec<(FrameKind, u64)> {
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

    fn converter_without_files() -> StackConverter {
        let kernel = KernelSymbols::parse(TABLE.into()).ok();
        StackConverter::new(SymbolSources { kernel, kernel_distance: 0x1000, files: None, is_certain: true })
    }

    fn describe_batch(batch: &StackBatch) -> Vec<String> {
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
        let mut converter = converter_without_files();
        converter.on_name(40, 40, "my task", true);
        converter.on_map(40, 0x5000, 0x1000, 0, "/usr/bin/tool");
        let raw = AddressSample { pid: Some(40), tid: Some(40), period: 7, ..AddressSample::default() };
        let kernel = [MARK_KERNEL, 0xffffffff81001210, 0xffffffff81001300, MARK_USER, 0x5010, 0x9999];
        converter.add_sample(raw, &kernel);
        converter.add_sample(raw, &kernel);
        converter.add_sample(raw, &[MARK_KERNEL]);
        converter.add_sample(
            AddressSample { pid: Some(-1), tid: Some(-1), ..raw },
            &[MARK_KERNEL, 0xffffffff81001100],
        );
        let batch = converter.take_batch(3);
        let stack = "my task;[unknown];[tool];kfree;kfree";
        assert_eq!(describe_batch(&batch), [stack, stack, "my task", ":-1;do_syscall_64"]);
        assert_eq!((batch.slot, batch.samples[0].weight), (3, 7));
        assert_eq!(batch.frames[2].start, Some(0x200));
        assert!(batch.samples[3].is_of_dying_task());
        assert_eq!(converter.take_batch(4), StackBatch { slot: 4, ..StackBatch::default() });
    }
}
