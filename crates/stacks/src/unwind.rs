//! User stacks from copies of a thread's memory and registers, as `perf record --call-graph dwarf` takes them.
//!
//! The files of an address space tell how their functions are left (ELF's unwind tables, read by framehop). Nothing is
//! guessed: where a table is missing or the copy ends, the stack ends, and what was found is shown. Registers have the
//! numbers that perf gives them on this architecture.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use elf::ElfBytes;
use elf::abi::PT_LOAD;
use elf::endian::AnyEndian;
use framehop::{
    CacheNative, ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module, UnwindRegsNative, Unwinder,
    UnwinderNative,
};
use linux_perf_event_reader::Regs;

use crate::address_space::{AddressMapping, AddressSpace};
use crate::recorded_files::RecordedFiles;
use crate::watched_file::read_binary_file;

/// Deeper than any stack of which the kernel copies the memory.
const DEEPEST: usize = 1024;

type SharedBytes = Arc<[u8]>;

/// A thread's registers, and the memory above its stack pointer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopiedStack<'a> {
    pub(crate) registers: SampledRegisters,
    pub(crate) stack: &'a [u8],
}

impl CopiedStack<'_> {
    fn read_word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.registers.stack)?).ok()?;
        let bytes = self.stack.get(at..at.checked_add(8)?)?.try_into().ok()?;
        Some(u64::from_ne_bytes(bytes))
    }
}

/// Unwinders by address space, and the files that they stand on.
#[derive(Default)]
pub(crate) struct StackUnwinders {
    spaces: HashMap<u32, UnwinderNative<SharedBytes, MayAllocateDuringUnwind>>,
    files: HashMap<Rc<str>, Option<Rc<UnwindTables>>>,
    cache: CacheNative<MayAllocateDuringUnwind>,
}

impl std::fmt::Debug for StackUnwinders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Unwinders of {} address spaces", self.spaces.len())
    }
}

impl StackUnwinders {
    /// The addresses of a stack, innermost first: at least that of the instruction that was run.
    pub(crate) fn unwind_stack(
        &mut self,
        space: &AddressSpace,
        files: &RecordedFiles,
        copied: CopiedStack<'_>,
    ) -> Vec<u64> {
        if !self.spaces.contains_key(&space.id) {
            let unwinder = self.unwinder_of(space, files);
            self.spaces.insert(space.id, unwinder);
        }
        let Some(unwinder) = self.spaces.get(&space.id) else { return vec![copied.registers.instruction] };
        let mut read = |address| copied.read_word(address).ok_or(());
        let registers = &copied.registers;
        let mut frames =
            unwinder.iter_frames(registers.instruction, registers.to_native(), &mut self.cache, &mut read);
        let next = || frames.next().ok().flatten().map(|frame| frame.address());
        std::iter::from_fn(next).take(DEEPEST).collect()
    }

    fn unwinder_of(
        &mut self,
        space: &AddressSpace,
        files: &RecordedFiles,
    ) -> UnwinderNative<SharedBytes, MayAllocateDuringUnwind> {
        let mut unwinder = UnwinderNative::new();
        for mapping in space.file_mappings() {
            let tables = self
                .files
                .entry(Rc::clone(&mapping.path))
                .or_insert_with(|| UnwindTables::read(&files.locate_binary(&mapping.path)?));
            if let Some(module) = tables.as_ref().and_then(|tables| tables.unwind_module(mapping)) {
                unwinder.add_module(module);
            }
        }
        unwinder
    }
}

/// What a file says of leaving its functions.
#[derive(Debug)]
struct UnwindTables {
    /// Where pieces of the file lie: places in the file, and the address of the first.
    segments: Vec<(Range<u64>, u64)>,
    sections: HashMap<&'static str, (Range<u64>, SharedBytes)>,
}

const SECTIONS: [&str; 5] = [".text", ".eh_frame", ".eh_frame_hdr", ".got", ".debug_frame"];

impl UnwindTables {
    fn read(path: &Path) -> Option<Rc<UnwindTables>> {
        let bytes = read_binary_file(path).ok()?;
        let file = ElfBytes::<AnyEndian>::minimal_parse(&bytes).ok()?;
        let loaded = file.segments()?.into_iter().filter(|one| one.p_type == PT_LOAD);
        let segments =
            loaded.map(|one| (one.p_offset..one.p_offset.saturating_add(one.p_filesz), one.p_vaddr));
        let section = |name: &'static str| {
            let head = file.section_header_by_name(name).ok()??;
            let (bytes, _) = file.section_data(&head).ok()?;
            Some((name, (head.sh_addr..head.sh_addr.saturating_add(head.sh_size), bytes.into())))
        };
        let sections = SECTIONS.into_iter().filter_map(section).collect();
        Some(Rc::new(UnwindTables { segments: segments.collect(), sections }))
    }

    /// The file as it lies in memory by this mapping.
    fn unwind_module(&self, mapping: &AddressMapping) -> Option<Module<SharedBytes>> {
        let (range, address) = self.segments.iter().find(|(range, _)| range.contains(&mapping.offset))?;
        let linked = address.checked_add(mapping.offset - range.start)?;
        let base = mapping.start.checked_sub(linked)?;
        Some(Module::new(mapping.path.to_string(), mapping.start..mapping.end, base, self.section_info()))
    }

    fn section_info(&self) -> ExplicitModuleSectionInfo<SharedBytes> {
        let range = |name| self.sections.get(name).map(|(range, _)| range.clone());
        let bytes = |name| self.sections.get(name).map(|(_, bytes)| Arc::clone(bytes));
        ExplicitModuleSectionInfo {
            text_svma: range(".text"),
            text: bytes(".text"),
            got_svma: range(".got"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: bytes(".eh_frame"),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: bytes(".eh_frame_hdr"),
            debug_frame: bytes(".debug_frame"),
            ..ExplicitModuleSectionInfo::default()
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod numbers {

    pub(crate) const FRAME: u64 = 6;

    pub(crate) const STACK: u64 = 7;

    pub(crate) const INSTRUCTION: u64 = 8;

    /// There is none: it stands for the frame pointer, and is not used.
    pub(crate) const LINK: u64 = FRAME;
}

#[cfg(target_arch = "aarch64")]
mod numbers {

    pub(crate) const FRAME: u64 = 29;

    pub(crate) const LINK: u64 = 30;

    pub(crate) const STACK: u64 = 31;

    pub(crate) const INSTRUCTION: u64 = 32;
}

/// What a sample holds of a thread's registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampledRegisters {
    pub(crate) instruction: u64,
    pub(crate) stack: u64,
    frame: u64,
    /// The address to return to, where the architecture has it in a register.
    link: u64,
}

impl SampledRegisters {
    /// Those of a sample; `None` where one that is needed was not asked for.
    pub(crate) fn from_sample(sampled: &Regs<'_>) -> Option<SampledRegisters> {
        Some(SampledRegisters {
            instruction: sampled.get(numbers::INSTRUCTION)?,
            stack: sampled.get(numbers::STACK)?,
            frame: sampled.get(numbers::FRAME)?,
            link: sampled.get(numbers::LINK)?,
        })
    }

    #[cfg(target_arch = "x86_64")]
    fn to_native(self) -> UnwindRegsNative {
        UnwindRegsNative::new(self.instruction, self.stack, self.frame)
    }

    #[cfg(target_arch = "aarch64")]
    fn to_native(self) -> UnwindRegsNative {
        UnwindRegsNative::new(self.link, self.stack, self.frame)
    }
}
