//! A kernel that is sampled from outside, through registers and memory of its stopped processors: its symbols, its tasks' names,
//! its stacks.
//!
//! What is needed is in its own /proc/kallsyms ([`select_kallsyms`]): functions, and where a few of its variables lie.

use perflab_model::error_class::{Classify, ErrorClass};

use crate::kernel_symbols::{KernelSymbols, KernelSymbolsError};
use crate::kernel_unwind::{
    FramePrologues, KernelMemory, KernelUnwinder, StackEnd, StoppedRegisters, UnwoundStack,
};
use crate::orc_tables::{ENTRY_BYTES, OFFSET_BYTES, OrcFormat, OrcTables};

/// The variables: the first task, which task runs on a processor (until 6.1 and since 6.15; between), and the unwind tables.
const VARIABLES: [&str; 7] = [
    "init_task",
    "current_task",
    "pcpu_hot",
    "__start_orc_unwind_ip",
    "__stop_orc_unwind_ip",
    "__start_orc_unwind",
    "__stop_orc_unwind",
];

/// What the first task is called, once there are processors.
const FIRST_TASK: &[u8] = b"swapper/0\0";

/// Bytes of a task's name.
const NAME_BYTES: usize = 16;

/// A task's structure is no larger, in bytes.
const LARGEST_TASK: u64 = 16 << 10;

/// The unwind tables of a kernel are no larger, in bytes.
const LARGEST_TABLE: u64 = 64 << 20;

/// Kernel stacks lie at multiples of this, in bytes.
const STACK_BYTES: u64 = 16 << 10;

/// Functions whose beginnings are looked at, to see whether functions save frame pointers.
const LOOKED_AT: usize = 64;

/// One in so many must: without frame pointers it is one in a hundred, with them half (the others are of assembly, or parts).
const FEWEST_WITH_FRAME: usize = 5;

/// Why a kernel cannot be sampled from outside.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SampledKernelError {
    /// Its symbols are of no use.
    #[error("its /proc/kallsyms: {0}")]
    Symbols(#[from] KernelSymbolsError),
    /// Its functions save no frame pointers, and its unwind tables cannot be read.
    #[error(
        "its stacks cannot be unwound: of {looked_at} functions {with_frame} save a frame pointer, and {tables}; a kernel with \
         CONFIG_UNWINDER_FRAME_POINTER or CONFIG_UNWINDER_ORC can be sampled"
    )]
    NoUnwinder {
        /// functions that were looked at
        looked_at: usize,
        /// those that save one
        with_frame: usize,
        /// what is wrong with its tables
        tables: &'static str,
    },
}

impl Classify for SampledKernelError {
    fn class(&self) -> ErrorClass {
        match self {
            SampledKernelError::Symbols(error) => error.class(),
            SampledKernelError::NoUnwinder { .. } => ErrorClass::Environment,
        }
    }
}

/// The lines of /proc/kallsyms that are needed of a kernel that is sampled from outside.
pub fn select_kallsyms(kallsyms: &str) -> String {
    let mut selected = String::with_capacity(kallsyms.len());
    for line in kallsyms.lines() {
        let kind = line.split_once(' ').and_then(|(_, rest)| rest.bytes().next());
        if kind.is_some_and(|kind| b"tTwW".contains(&kind)) || variable_line(line).is_some() {
            selected.push_str(line);
            selected.push('\n');
        }
    }
    selected
}

/// The variable of a line, with its place.
fn variable_line(line: &str) -> Option<(usize, u64)> {
    let mut words = line.split_ascii_whitespace();
    let (address, _, name) = (words.next()?, words.next()?, words.next()?);
    let index = VARIABLES.iter().position(|one| *one == name)?;
    Some((index, u64::from_str_radix(address, 16).ok()?))
}

/// What one processor did when it was stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledStack {
    /// The task's name; empty where unknown.
    pub comm: String,
    /// The kernel's stack; none of a processor that runs a process.
    pub kernel: Option<UnwoundStack>,
}

/// The kernel.
#[derive(Debug)]
pub struct SampledKernel {
    symbols: KernelSymbols,
    unwinder: KernelUnwinder,
    /// Where the task that runs is, from a processor's data.
    current_task: Option<u64>,
    /// Where a task's name is in it.
    name_offset: Option<u64>,
}

impl SampledKernel {
    /// Of the lines that [`select_kallsyms`] gives, the kernel's release, and its memory.
    ///
    /// # Errors
    /// [`SampledKernelError`]: there are no symbols, or stacks cannot be unwound.
    pub fn read(
        kallsyms: String,
        release: &str,
        memory: &mut dyn KernelMemory,
    ) -> Result<SampledKernel, SampledKernelError> {
        let mut places = [None; VARIABLES.len()];
        for (index, place) in kallsyms.lines().filter_map(variable_line) {
            if let Some(known) = places.get_mut(index) {
                *known = Some(place);
            }
        }
        let [init_task, current_task, hot, offsets, offsets_end, entries, entries_end] = places;
        let symbols = KernelSymbols::parse(kallsyms)?;
        let table = |begin: Option<u64>, end: Option<u64>, memory: &mut dyn KernelMemory| {
            let (begin, end) = begin.zip(end)?;
            let length = end.checked_sub(begin).filter(|length| *length <= LARGEST_TABLE)?;
            Some((begin, memory.read_bytes(begin, usize::try_from(length).ok()?)?))
        };
        let tables = match table(offsets, offsets_end, memory).zip(table(entries, entries_end, memory)) {
            None => Err("it has no ORC tables"),
            Some(((place, offsets), (_, entries))) => {
                let count = offsets.len() / OFFSET_BYTES;
                let entries = entries.get(..count * ENTRY_BYTES).unwrap_or_default().to_vec();
                OrcTables::parse(place, &offsets, entries, OrcFormat::of_release(release))
                    .ok_or("its ORC tables are not understood")
            }
        };
        let unwinder = match tables {
            Ok(tables) => KernelUnwinder::Orc(tables),
            Err(tables) => find_frame_pointers(&symbols, memory, tables)?,
        };
        let name_offset = init_task.and_then(|task| find_name_offset(task, memory));
        Ok(SampledKernel { symbols, unwinder, current_task: current_task.or(hot), name_offset })
    }

    /// How its stacks are unwound, for people.
    pub fn unwinds_by(&self) -> &'static str {
        match self.unwinder {
            KernelUnwinder::Orc(_) => "ORC tables",
            KernelUnwinder::FramePointers(_) => "frame pointers",
        }
    }

    /// The pieces of memory that a sample of a processor needs, so that they can be had in one read: the rest of its stack, up to
    /// `most` bytes, and which task it runs.
    pub fn needed_memory(&self, registers: &StoppedRegisters, most: u64) -> Vec<(u64, usize)> {
        let mut needed = Vec::new();
        if registers.is_in_kernel() {
            let begin = registers.stack_pointer() & !7;
            let end = (begin / STACK_BYTES).saturating_add(1).saturating_mul(STACK_BYTES);
            needed.push((begin, end.saturating_sub(begin).min(most) as usize));
        }
        needed.extend(self.task_pointer(registers).map(|place| (place, 8)));
        needed
    }

    fn task_pointer(&self, registers: &StoppedRegisters) -> Option<u64> {
        Some(registers.processor_data().wrapping_add(self.current_task?))
    }

    /// What a stopped processor does.
    pub fn sample(&mut self, registers: &StoppedRegisters, memory: &mut dyn KernelMemory) -> SampledStack {
        let comm = self.read_name(registers, memory).unwrap_or_default();
        let kernel = registers.is_in_kernel().then(|| self.unwinder.unwind(&self.symbols, registers, memory));
        SampledStack { comm, kernel }
    }

    /// Where the name of the task that runs is, and how long it is.
    pub fn task_name(
        &self,
        registers: &StoppedRegisters,
        memory: &mut dyn KernelMemory,
    ) -> Option<(u64, usize)> {
        let task = memory.read_word(self.task_pointer(registers)?)?;
        Some((task.wrapping_add(self.name_offset?), NAME_BYTES))
    }

    fn read_name(&self, registers: &StoppedRegisters, memory: &mut dyn KernelMemory) -> Option<String> {
        let (place, length) = self.task_name(registers, memory)?;
        let name = memory.read_bytes(place, length)?;
        let name = name.split(|byte| *byte == 0).next()?;
        Some(perflab_model::remove_control_characters(&String::from_utf8_lossy(name)))
    }
}

impl UnwoundStack {
    /// Whether a caller was guessed, or is missing.
    pub fn is_doubtful(&self) -> bool {
        self.end != StackEnd::Whole
    }
}

/// Whether this kernel's functions save frame pointers.
fn find_frame_pointers(
    symbols: &KernelSymbols,
    memory: &mut dyn KernelMemory,
    tables: &'static str,
) -> Result<KernelUnwinder, SampledKernelError> {
    let mut prologues = FramePrologues::default();
    let ranges = symbols.spread_ranges(LOOKED_AT);
    let with_frame = ranges.iter().filter(|range| prologues.find(**range, memory).is_some()).count();
    if with_frame * FEWEST_WITH_FRAME < ranges.len().max(1) {
        return Err(SampledKernelError::NoUnwinder { looked_at: ranges.len(), with_frame, tables });
    }
    Ok(KernelUnwinder::FramePointers(prologues))
}

/// Where a task's name is: where the first task has its own.
fn find_name_offset(init_task: u64, memory: &mut dyn KernelMemory) -> Option<u64> {
    const PIECE: u64 = 2048;
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < LARGEST_TASK {
        let more = memory.read_bytes(init_task + bytes.len() as u64, PIECE as usize)?;
        bytes.extend(more);
        let found = bytes.windows(FIRST_TASK.len()).position(|window| window == FIRST_TASK);
        if let Some(found) = found {
            return Some(found as u64);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_the_variables_are_selected() {
        let kallsyms = "\
0000000000000000 A fixed_percpu_data
000000000001fb80 A current_task
ffffffff81000000 T _stext
ffffffff81000100 D jiffies
ffffffff82000000 D init_task
ffffffffc0000000 t ext4_write\t[ext4]
";
        insta::assert_snapshot!(select_kallsyms(kallsyms), @r"
        000000000001fb80 A current_task
        ffffffff81000000 T _stext
        ffffffff82000000 D init_task
        ffffffffc0000000 t ext4_write	[ext4]
        ");
    }

    /// A memory of one piece.
    struct Piece(u64, Vec<u8>);

    impl KernelMemory for Piece {
        fn read_bytes(&mut self, address: u64, length: usize) -> Option<Vec<u8>> {
            let from = usize::try_from(address.checked_sub(self.0)?).ok()?;
            Some(self.1.get(from..from + length)?.to_vec())
        }
    }

    const KALLSYMS: &str = "\
0000000000000080 A current_task
ffffffff81000000 T _stext
ffffffff81000100 T work
ffffffff81001000 D init_task
";

    #[test]
    fn a_kernel_that_cannot_be_unwound_is_refused_with_what_it_lacks() {
        let mut memory = Piece(0xffffffff81000000, vec![0; 0x8000]);
        let refused = SampledKernel::read(KALLSYMS.into(), "6.1.0", &mut memory).unwrap_err();
        assert!(
            matches!(refused, SampledKernelError::NoUnwinder { looked_at: 2, with_frame: 0, .. }),
            "{refused}"
        );
        let hidden =
            SampledKernel::read("0000000000000000 T _stext\n".into(), "6.1.0", &mut memory).unwrap_err();
        assert_eq!(hidden, SampledKernelError::Symbols(KernelSymbolsError::Hidden));
    }

    #[test]
    fn the_task_that_runs_has_a_name_and_its_stack_an_end() {
        let mut bytes = vec![0; 0x8000];
        for start in [0, 0x100] {
            bytes[start..start + 4].copy_from_slice(&[0x55, 0x48, 0x89, 0xe5]);
        }
        // The first task has its name at 0x40; the one that runs is at 0x3000 and called by processor data at 0x4000 + 0x80.
        bytes[0x1040..0x104a].copy_from_slice(FIRST_TASK);
        bytes[0x3040..0x3045].copy_from_slice(b"a\x1bb\0c");
        let base = 0xffffffff81000000_u64;
        bytes[0x4080..0x4088].copy_from_slice(&(base + 0x3000).to_le_bytes());
        let mut memory = Piece(base, bytes);
        let mut kernel = SampledKernel::read(KALLSYMS.into(), "6.1.0", &mut memory).unwrap();
        let registers = StoppedRegisters {
            instruction: base + 0x180,
            gs_base: 0x7000,
            other_gs_base: base + 0x4000,
            ..StoppedRegisters::default()
        };
        let found = kernel.sample(&registers, &mut memory);
        assert_eq!(found.comm, "a\u{fffd}b");
        assert_eq!(found.kernel.unwrap().addresses, [base + 0x180]);
        let in_process = StoppedRegisters { instruction: 0x401000, ..registers };
        assert_eq!(kernel.sample(&in_process, &mut memory).kernel, None);
    }
}
