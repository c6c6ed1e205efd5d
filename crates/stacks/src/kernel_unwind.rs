//! Kernel stacks of a processor that is stopped, from its registers and memory: by ORC tables or by frame pointers.
//!
//! Source: Linux arch/x86/kernel/unwind_orc.c, unwind_frame.c, arch/x86/entry/calling.h. x86-64 only.

use std::collections::HashMap;

use crate::kernel_symbols::KernelSymbols;
use crate::orc_tables::{OrcFrameType, OrcRegister, OrcTables};

/// Frames of a stack at most: as many as perf takes.
const MOST_FRAMES: usize = 127;

/// How far the next return address is looked for where the tables say nothing, in words.
const GUESSED_WORDS: u64 = 64;

/// Where the kernel's half of the address space begins.
const KERNEL_HALF: u64 = 1 << 63;

/// Places of registers in what the kernel saves of what it interrupts (`struct pt_regs`), in bytes.
mod saved {
    pub(super) const FRAME_POINTER: u64 = 32;
    pub(super) const INSTRUCTION: u64 = 128;
    pub(super) const CODE_SEGMENT: u64 = 136;
    pub(super) const STACK_POINTER: u64 = 152;
}

/// The same from where the processor itself began to push.
mod pushed {
    pub(super) const INSTRUCTION: u64 = 0;
    pub(super) const CODE_SEGMENT: u64 = 8;
    pub(super) const STACK_POINTER: u64 = 24;
}

/// The registers of an x86-64 processor that is stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoppedRegisters {
    /// `rax rbx rcx rdx rsi rdi rbp rsp r8` to `r15`
    pub general: [u64; 16],
    /// the next instruction
    pub instruction: u64,
    /// the base of `gs`
    pub gs_base: u64,
    /// the other base of `gs`, which `swapgs` brings
    pub other_gs_base: u64,
}

impl StoppedRegisters {
    /// The stack pointer.
    pub fn stack_pointer(&self) -> u64 {
        self.general[7]
    }

    fn frame_pointer(&self) -> u64 {
        self.general[6]
    }

    /// Whether the kernel runs.
    pub fn is_in_kernel(&self) -> bool {
        self.instruction >= KERNEL_HALF
    }

    /// Where the kernel's data of this processor lie.
    pub fn processor_data(&self) -> u64 {
        if self.gs_base >= KERNEL_HALF { self.gs_base } else { self.other_gs_base }
    }
}

/// The memory of a machine that is stopped, as its kernel addresses it.
pub trait KernelMemory {
    /// Bytes; none where nothing is mapped.
    fn read_bytes(&mut self, address: u64, length: usize) -> Option<Vec<u8>>;

    /// Eight bytes as a number.
    fn read_word(&mut self, address: u64) -> Option<u64> {
        Some(u64::from_le_bytes(*self.read_bytes(address, 8)?.first_chunk::<8>()?))
    }
}

/// Whether a stack is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackEnd {
    /// it ends where the kernel was entered, or where its task begins
    Whole,
    /// a caller was guessed: the next word of the stack that points into code
    Guessed,
    /// no further caller was found
    Cut,
}

/// A kernel's stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnwoundStack {
    /// The instruction and the return addresses, innermost first. What was interrupted has one more than its instruction, so that
    /// one less is in it, as with every caller.
    pub addresses: Vec<u64>,
    /// Whether that is all.
    pub end: StackEnd,
}

/// How a kernel's stacks are unwound.
#[derive(Debug)]
pub(crate) enum KernelUnwinder {
    /// by its tables
    Orc(OrcTables),
    /// by the frame pointers that each function saves
    FramePointers(FramePrologues),
}

impl KernelUnwinder {
    /// The stack of a processor that is in the kernel.
    pub(crate) fn unwind(
        &mut self,
        symbols: &KernelSymbols,
        registers: &StoppedRegisters,
        memory: &mut dyn KernelMemory,
    ) -> UnwoundStack {
        match self {
            KernelUnwinder::Orc(tables) => {
                let walk = OrcWalk {
                    instruction: registers.instruction,
                    stack: registers.stack_pointer(),
                    frame: registers.frame_pointer(),
                    registers: Some(registers),
                    is_exact: true,
                };
                walk.unwind(tables, symbols, memory)
            }
            KernelUnwinder::FramePointers(prologues) => {
                unwind_by_frame_pointers(prologues, symbols, registers, memory)
            }
        }
    }
}

/// Where a walk by tables has got to.
struct OrcWalk<'r> {
    instruction: u64,
    stack: u64,
    frame: u64,
    /// The other registers, where they are known.
    registers: Option<&'r StoppedRegisters>,
    /// Whether the instruction is the one to be executed next, and not the one after a call.
    is_exact: bool,
}

/// One step of it.
enum OrcStep {
    Caller,
    End,
    Lost,
}

impl OrcWalk<'_> {
    fn unwind(
        mut self,
        tables: &OrcTables,
        symbols: &KernelSymbols,
        memory: &mut dyn KernelMemory,
    ) -> UnwoundStack {
        let mut addresses = vec![self.instruction];
        let mut end = StackEnd::Whole;
        while addresses.len() < MOST_FRAMES {
            match self.step(tables, memory) {
                // The code that stands in for indirect jumps (retpolines) has no entries: it was called, and pushed nothing.
                OrcStep::End if addresses.len() == 1 && self.is_just_called(symbols, memory) => {}
                OrcStep::End => return UnwoundStack { addresses, end },
                OrcStep::Caller => {}
                OrcStep::Lost if self.guess_caller(symbols, memory) => end = StackEnd::Guessed,
                OrcStep::Lost => break,
            }
            if self.instruction < KERNEL_HALF {
                return UnwoundStack { addresses, end };
            }
            addresses.push(self.instruction + u64::from(self.is_exact));
        }
        UnwoundStack { addresses, end: StackEnd::Cut }
    }

    fn step(&mut self, tables: &OrcTables, memory: &mut dyn KernelMemory) -> OrcStep {
        let looked_up = self.instruction.wrapping_sub(u64::from(!self.is_exact));
        let Some(entry) = tables.find_entry(looked_up) else { return OrcStep::Lost };
        if entry.frame_type == OrcFrameType::EndOfStack {
            return OrcStep::End;
        }
        let general = |index: usize| self.registers.and_then(|all| all.general.get(index).copied());
        let offset = i64::from(entry.stack_offset);
        let base = match entry.stack {
            OrcRegister::StackPointer => Some(self.stack.wrapping_add_signed(offset)),
            OrcRegister::FramePointer => Some(self.frame.wrapping_add_signed(offset)),
            OrcRegister::AtStackPointer => {
                memory.read_word(self.stack).map(|base| base.wrapping_add_signed(offset))
            }
            OrcRegister::AtFramePointer => memory.read_word(self.frame.wrapping_add_signed(offset)),
            OrcRegister::R10 => general(10).map(|base| base.wrapping_add_signed(offset)),
            OrcRegister::R13 => general(13).map(|base| base.wrapping_add_signed(offset)),
            OrcRegister::Rdi => general(5).map(|base| base.wrapping_add_signed(offset)),
            OrcRegister::Rdx => general(3).map(|base| base.wrapping_add_signed(offset)),
            OrcRegister::Undefined | OrcRegister::PreviousStack => None,
        };
        let Some(base) = base else { return OrcStep::Lost };
        let mut word = |place: u64| memory.read_word(base.wrapping_add(place));
        let found = match entry.frame_type {
            OrcFrameType::Call => word(8_u64.wrapping_neg()).map(|instruction| (instruction, base, false)),
            OrcFrameType::Registers => {
                let is_user = word(saved::CODE_SEGMENT).is_none_or(|segment| segment & 3 != 0);
                if is_user {
                    return OrcStep::End;
                }
                let both = word(saved::INSTRUCTION).zip(word(saved::STACK_POINTER));
                both.map(|(instruction, stack)| (instruction, stack, true))
            }
            OrcFrameType::InterruptFrame => {
                let is_user = word(pushed::CODE_SEGMENT).is_none_or(|segment| segment & 3 != 0);
                if is_user {
                    return OrcStep::End;
                }
                let both = word(pushed::INSTRUCTION).zip(word(pushed::STACK_POINTER));
                both.map(|(instruction, stack)| (instruction, stack, true))
            }
            OrcFrameType::Undefined | OrcFrameType::EndOfStack => None,
        };
        let Some((instruction, stack, is_exact)) = found else { return OrcStep::Lost };
        let frame_offset = i64::from(entry.frame_offset);
        let frame = match entry.frame {
            OrcRegister::PreviousStack => memory.read_word(base.wrapping_add_signed(frame_offset)),
            OrcRegister::FramePointer => memory.read_word(self.frame.wrapping_add_signed(frame_offset)),
            _ if entry.frame_type == OrcFrameType::Registers => {
                memory.read_word(base.wrapping_add(saved::FRAME_POINTER))
            }
            _ => Some(self.frame),
        };
        (self.instruction, self.stack, self.is_exact) = (instruction, stack, is_exact);
        self.frame = frame.unwrap_or_default();
        self.registers = None;
        OrcStep::Caller
    }

    /// Goes to the caller, if the top of the stack is an address in code.
    fn is_just_called(&mut self, symbols: &KernelSymbols, memory: &mut dyn KernelMemory) -> bool {
        let Some(word) = memory.read_word(self.stack).filter(|word| *word >= KERNEL_HALF) else {
            return false;
        };
        let is_called = symbols.find_symbol(word).is_some();
        if is_called {
            (self.instruction, self.stack, self.is_exact) = (word, self.stack.wrapping_add(8), false);
            self.registers = None;
        }
        is_called
    }

    /// Code without entries: of modules, whose tables are elsewhere, and what was made at run time.
    fn guess_caller(&mut self, symbols: &KernelSymbols, memory: &mut dyn KernelMemory) -> bool {
        for index in 0..GUESSED_WORDS {
            let place = self.stack.wrapping_add(8 * index);
            let Some(word) = memory.read_word(place) else { return false };
            if word >= KERNEL_HALF && symbols.find_symbol(word).is_some() {
                (self.instruction, self.stack, self.is_exact) = (word, place.wrapping_add(8), false);
                self.registers = None;
                return true;
            }
        }
        false
    }
}

/// `push %rbp`
const PUSH: u8 = 0x55;

/// `mov %rsp,%rbp`
const MOVE: [u8; 3] = [0x48, 0x89, 0xe5];

/// How far the two may be from a function's start: where the frame is only needed in rare cases, they are behind the usual ones.
const PROLOGUE_BYTES: u64 = 1024;

/// Where functions save the frame pointer, by the place of the function; those of assembly mostly do not.
#[derive(Debug, Default)]
pub(crate) struct FramePrologues(HashMap<u64, Option<usize>>);

impl FramePrologues {
    /// Where a function pushes the frame pointer.
    pub(crate) fn find(&mut self, (start, end): (u64, u64), memory: &mut dyn KernelMemory) -> Option<usize> {
        if let Some(known) = self.0.get(&start) {
            return *known;
        }
        let code = memory.read_bytes(start, end.saturating_sub(start).min(PROLOGUE_BYTES) as usize)?;
        let is_push = |at: &usize| {
            let rest = code.get(*at..).unwrap_or_default();
            rest.split_first().is_some_and(|(first, rest)| *first == PUSH && rest.starts_with(&MOVE))
        };
        let found = (0..code.len()).find(is_push);
        self.0.insert(start, found);
        found
    }
}

fn unwind_by_frame_pointers(
    prologues: &mut FramePrologues,
    symbols: &KernelSymbols,
    registers: &StoppedRegisters,
    memory: &mut dyn KernelMemory,
) -> UnwoundStack {
    let mut addresses = vec![registers.instruction];
    // The innermost function may not have its frame yet, or never get one: its caller is where the stack ends.
    if let Some(function) = symbols.find_symbol(registers.instruction) {
        let inside = registers.instruction.wrapping_sub(function.start());
        let return_at = match prologues.find(symbols.range_of(function), memory) {
            None => Some(registers.stack_pointer()),
            Some(push) if inside <= push as u64 => Some(registers.stack_pointer()),
            Some(push) if inside <= push as u64 + MOVE.len() as u64 => Some(registers.stack_pointer() + 8),
            Some(_) => None,
        };
        let caller = return_at.and_then(|at| memory.read_word(at));
        addresses.extend(caller.filter(|caller| symbols.find_symbol(*caller).is_some()));
    }
    let mut frame = registers.frame_pointer();
    while addresses.len() < MOST_FRAMES {
        if frame == 0 {
            return UnwoundStack { addresses, end: StackEnd::Whole };
        }
        if frame < KERNEL_HALF {
            // A process' own: the kernel was just entered, and nothing called it.
            let end = if addresses.len() > 2 { StackEnd::Cut } else { StackEnd::Whole };
            return UnwoundStack { addresses, end };
        }
        if frame & 1 == 1 {
            // The registers of what was interrupted, marked so by the kernel's entry.
            let all = frame - 1;
            let mut word = |place: u64| memory.read_word(all.wrapping_add(place));
            let Some(segment) = word(saved::CODE_SEGMENT) else { break };
            if segment & 3 != 0 {
                return UnwoundStack { addresses, end: StackEnd::Whole };
            }
            let Some(instruction) = word(saved::INSTRUCTION) else { break };
            let Some(outer) = word(saved::FRAME_POINTER) else { break };
            addresses.push(instruction.wrapping_add(1));
            frame = outer;
            continue;
        }
        let Some((outer, caller)) = memory.read_word(frame).zip(memory.read_word(frame + 8)) else { break };
        if caller < KERNEL_HALF || symbols.find_symbol(caller).is_none() {
            // The outermost frame of a task of the kernel's returns to nowhere.
            let end = if outer == 0 { StackEnd::Whole } else { StackEnd::Cut };
            return UnwoundStack { addresses, end };
        }
        addresses.push(caller);
        if outer == frame {
            break;
        }
        frame = outer;
    }
    UnwoundStack { addresses, end: StackEnd::Cut }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const TABLE: &str = "\
ffffffff81000000 T _stext
ffffffff81000100 T outer
ffffffff81000200 T middle
ffffffff81000300 T inner
ffffffff81000400 T assembly
ffffffff81000500 T _etext
";

    /// Words by their places.
    struct Words(BTreeMap<u64, u64>);

    impl KernelMemory for Words {
        fn read_bytes(&mut self, address: u64, length: usize) -> Option<Vec<u8>> {
            let words = (address..address + length as u64).step_by(8).map(|place| self.0.get(&place));
            Some(words.collect::<Option<Vec<_>>>()?.into_iter().flat_map(|word| word.to_le_bytes()).collect())
        }
    }

    const STACK: u64 = 0xffff_8880_0000_1000;

    /// `push %rbp; mov %rsp,%rbp` at the beginning of `inner`, none in `assembly`; `inner` was called by `middle`, and that by `outer`.
    fn frames() -> Words {
        let code = (0xffffffff81000300_u64..0xffffffff81000500).step_by(8).map(|place| (place, 0));
        let words = [
            (0xffffffff81000300, u64::from_le_bytes([PUSH, 0x48, 0x89, 0xe5, 0, 0, 0, 0])),
            (STACK, STACK + 0x20),
            (STACK + 8, 0xffffffff81000210),
            (STACK + 0x20, 0),
            (STACK + 0x28, 0xffffffff81000110),
        ];
        Words(code.chain(words).collect())
    }

    fn unwind_at(instruction: u64, stack: u64, frame: u64) -> UnwoundStack {
        let symbols = KernelSymbols::parse(TABLE.into()).unwrap();
        let mut registers = StoppedRegisters { instruction, ..StoppedRegisters::default() };
        (registers.general[7], registers.general[6]) = (stack, frame);
        let mut unwinder = KernelUnwinder::FramePointers(FramePrologues::default());
        unwinder.unwind(&symbols, &registers, &mut frames())
    }

    #[test]
    fn callers_are_whole_before_within_and_after_a_functions_prologue() {
        let callers = [0xffffffff81000210, 0xffffffff81000110];
        let before = unwind_at(0xffffffff81000300, STACK + 8, STACK + 0x20);
        let within = unwind_at(0xffffffff81000301, STACK, STACK + 0x20);
        let after = unwind_at(0xffffffff81000320, STACK - 0x40, STACK);
        let frameless = unwind_at(0xffffffff81000420, STACK + 8, STACK + 0x20);
        for stack in [&before, &within, &after, &frameless] {
            assert_eq!(
                (&stack.addresses[1..], stack.end),
                (callers.as_slice(), StackEnd::Whole),
                "{stack:x?}"
            );
        }
    }

    #[test]
    fn what_was_interrupted_comes_after_the_interrupt() {
        let mut memory = frames();
        let saved_at = STACK + 0x100;
        memory.0.extend([
            (saved_at + saved::CODE_SEGMENT, 0x10),
            (saved_at + saved::INSTRUCTION, 0xffffffff81000230),
            (saved_at + saved::FRAME_POINTER, STACK + 0x20),
        ]);
        let symbols = KernelSymbols::parse(TABLE.into()).unwrap();
        let mut registers =
            StoppedRegisters { instruction: 0xffffffff81000320, ..StoppedRegisters::default() };
        registers.general[6] = saved_at | 1;
        let mut unwinder = KernelUnwinder::FramePointers(FramePrologues::default());
        let found = unwinder.unwind(&symbols, &registers, &mut memory);
        assert_eq!(found.addresses, [0xffffffff81000320, 0xffffffff81000231, 0xffffffff81000110]);
        memory.0.insert(saved_at + saved::CODE_SEGMENT, 0x33);
        let entered = unwinder.unwind(&symbols, &registers, &mut memory);
        assert_eq!((entered.addresses.len(), entered.end), (1, StackEnd::Whole));
    }

    #[test]
    fn a_chain_that_leads_nowhere_is_cut() {
        assert_eq!(unwind_at(0xffffffff81000320, STACK, STACK + 0x800).end, StackEnd::Cut);
    }
}
