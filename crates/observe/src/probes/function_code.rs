//! Where a function is entered and where it is left: its own return instructions, and its jumps to other functions.
//!
//! What the decoder cannot tell for certain is refused, with the reason. No return address is ever touched.

/// What is known about a program's code. Addresses are as they were linked.
pub(crate) trait ProgramCode {
    /// The bytes from an address to the end of the segment that is loaded.
    fn bytes_from(&self, address: u64) -> Option<&[u8]>;
    /// The name of a function that begins exactly there.
    fn function_name(&self, address: u64) -> Option<&str>;
    /// Begin and end of the function, or part of one, that holds an address: as the unwind tables say.
    fn function_part(&self, address: u64) -> Option<(u64, u64)>;
}

/// A point in a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InstructionPoint {
    pub address: u64,
    /// the kernel has to step over the instruction; it emulates others
    pub stepped: bool,
}

/// Where a function is entered and left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FunctionPoints {
    pub begin: InstructionPoint,
    pub ends: Vec<InstructionPoint>,
}

/// The machine that the code is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstructionSet {
    X86(u32),
    Arm64,
}

/// What an instruction does to the flow.
enum InstructionFlow {
    On,
    Return,
    Jump(u64),
    Branch(u64),
    /// to where a register or memory says: another function
    Away,
    Call(u64),
}

struct DecodedInstruction {
    address: u64,
    flow: InstructionFlow,
    stepped: bool,
    /// it marks a branch target and does nothing else
    landing: bool,
}

/// More parts than any compiler makes of a function.
const MOST_PARTS: usize = 64;

/// Decodes a function, and the parts of it that a compiler moved elsewhere.
pub(crate) fn find_function_points(
    code: &impl ProgramCode,
    machine: InstructionSet,
    (begin, end): (u64, u64),
    go: bool,
) -> Result<FunctionPoints, String> {
    let own = code.function_name(begin).unwrap_or_default().to_owned();
    let mut parts = vec![(begin, end)];
    let (mut steps, mut at) = (Vec::new(), 0);
    while let Some(part) = parts.get(at).copied() {
        let decoded = decode_instructions(code, machine, part, go)?;
        let within = |parts: &[(u64, u64)], to: u64| parts.iter().any(|(b, e)| (*b..*e).contains(&to));
        for step in &decoded {
            let to = match step.flow {
                InstructionFlow::Jump(to) | InstructionFlow::Branch(to) if !within(&parts, to) => to,
                _ => continue,
            };
            let another = code.function_name(to).is_some_and(|name| !is_moved_part(name, &own));
            if let Some(part) = code.function_part(to).filter(|part| !another && !within(&parts, part.0)) {
                parts.push(part);
            }
        }
        if parts.len() > MOST_PARTS {
            return Err(format!("it goes on in more than {MOST_PARTS} places"));
        }
        steps.extend(decoded);
        at += 1;
    }
    let starts: std::collections::HashSet<u64> = steps.iter().map(|step| step.address).collect();
    let (mut targets, mut ends) = (std::collections::HashSet::new(), Vec::new());
    for step in &steps {
        let end = match step.flow {
            InstructionFlow::Return | InstructionFlow::Away => true,
            InstructionFlow::Jump(to) | InstructionFlow::Branch(to)
                if parts.iter().any(|(b, e)| (*b..*e).contains(&to)) =>
            {
                if !starts.contains(&to) {
                    return Err(format!("it jumps into the middle of an instruction at {to:#x}"));
                }
                targets.insert(to);
                false
            }
            InstructionFlow::Jump(_) => true,
            InstructionFlow::Branch(to) => {
                let whom = code.function_name(to).unwrap_or("another function");
                return Err(format!(
                    "a conditional jump at {:#x} leaves it for {whom}: whether it is taken is not known",
                    step.address
                ));
            }
            InstructionFlow::On | InstructionFlow::Call(_) => false,
        };
        if end {
            ends.push(InstructionPoint { address: step.address, stepped: step.stepped });
        }
    }
    if ends.is_empty() {
        return Err("there is no return in it: it never ends, or not by returning".into());
    }
    let first = find_entry_point(code, &steps, &targets, go);
    if targets.contains(&first.address) {
        return Err(
            "it jumps back to its first instruction: a turn of its loop would look like a call".into()
        );
    }
    Ok(FunctionPoints { begin: first, ends })
}

/// The instruction at an address of a function; an error where none begins there.
pub(crate) fn find_point_at(
    code: &impl ProgramCode,
    machine: InstructionSet,
    part: (u64, u64),
    address: u64,
    go: bool,
) -> Result<InstructionPoint, String> {
    let steps = decode_instructions(code, machine, part, go)?;
    let step = steps.iter().find(|step| step.address == address);
    let step = step.ok_or_else(|| format!("no instruction begins at {address:#x}"))?;
    Ok(InstructionPoint { address, stepped: step.stepped })
}

/// Whether a symbol is a part of a function that a compiler moved away: `f.cold`, `f.cold.3`.
fn is_moved_part(name: &str, own: &str) -> bool {
    name.contains(".cold") && (own.is_empty() || name.starts_with(own.split(".part").next().unwrap_or(own)))
}

/// The first instruction that every call passes once, before the stack pointer moves.
fn find_entry_point(
    code: &impl ProgramCode,
    steps: &[DecodedInstruction],
    targets: &std::collections::HashSet<u64>,
    go: bool,
) -> InstructionPoint {
    let point = |step: &DecodedInstruction| InstructionPoint { address: step.address, stepped: step.stepped };
    // A Go function asks first whether its stack suffices; if not, it grows it and begins anew.
    let grows = |to: u64| {
        // Arguments are put by, and then it is called, before anything else happens.
        let behind = steps.iter().skip_while(|step| step.address < to).take(24);
        let first = behind.map(|step| &step.flow).find(|flow| !matches!(flow, InstructionFlow::On));
        matches!(first, Some(InstructionFlow::Call(to)) if code.function_name(*to).is_some_and(|name| name.starts_with("runtime.morestack")))
    };
    let asked =
        steps.iter().take(12).rposition(|step| matches!(step.flow, InstructionFlow::Branch(to) if grows(to)));
    if let Some(step) = asked.filter(|_| go).and_then(|at| steps.get(at + 1)) {
        return point(step);
    }
    match steps {
        // What only marks a branch target must be stepped over; the instruction behind it is often emulated.
        [landing, next, ..] if landing.landing && !next.stepped && !targets.contains(&next.address) => {
            point(next)
        }
        [first, ..] => point(first),
        [] => InstructionPoint { address: 0, stepped: true },
    }
}

fn decode_instructions(
    code: &impl ProgramCode,
    machine: InstructionSet,
    (begin, end): (u64, u64),
    go: bool,
) -> Result<Vec<DecodedInstruction>, String> {
    let length = usize::try_from(end.saturating_sub(begin)).unwrap_or(0);
    let bytes = code.bytes_from(begin).and_then(|bytes| bytes.get(..length));
    let bytes = bytes.filter(|bytes| !bytes.is_empty());
    let bytes = bytes.ok_or_else(|| format!("its {length} bytes at {begin:#x} are not in the file"))?;
    match machine {
        InstructionSet::X86(bits) => x86::decode_x86_instructions(code, bytes, begin, bits, go),
        InstructionSet::Arm64 => Ok(arm64::decode_arm64_instructions(bytes, begin)),
    }
}

mod x86 {
    use iced_x86::{
        Code as Opcode, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
    };

    use super::{DecodedInstruction, InstructionFlow, ProgramCode};

    pub(crate) fn decode_x86_instructions(
        code: &impl ProgramCode,
        bytes: &[u8],
        begin: u64,
        bits: u32,
        go: bool,
    ) -> Result<Vec<DecodedInstruction>, String> {
        let end = begin + bytes.len() as u64;
        let mut before: Vec<Instruction> = Vec::new();
        let mut steps = Vec::new();
        for instruction in Decoder::with_ip(bits, bytes, begin, DecoderOptions::NONE) {
            if instruction.is_invalid() {
                return Err(format!("the bytes at {:#x} are no instruction that is known", instruction.ip()));
            }
            let near = instruction.op0_kind() == OpKind::NearBranch64
                || instruction.op0_kind() == OpKind::NearBranch32;
            let to = instruction.near_branch_target();
            let flow = match instruction.flow_control() {
                FlowControl::Return => InstructionFlow::Return,
                FlowControl::UnconditionalBranch if near => InstructionFlow::Jump(to),
                FlowControl::ConditionalBranch => InstructionFlow::Branch(to),
                FlowControl::IndirectBranch
                    if !is_switch_jump(code, &instruction, &before, begin..end, go) =>
                {
                    InstructionFlow::Away
                }
                FlowControl::Call if near => InstructionFlow::Call(to),
                _ => InstructionFlow::On,
            };
            steps.push(DecodedInstruction {
                address: instruction.ip(),
                flow,
                stepped: !is_emulated_by_kernel(&instruction),
                landing: matches!(instruction.mnemonic(), Mnemonic::Endbr64 | Mnemonic::Endbr32),
            });
            before.push(instruction);
        }
        Ok(steps)
    }

    /// Whether the kernel emulates it: no-operations, pushes of registers, and relative jumps and calls.
    fn is_emulated_by_kernel(instruction: &Instruction) -> bool {
        match instruction.mnemonic() {
            Mnemonic::Nop => true,
            Mnemonic::Push => {
                matches!(instruction.code(), Opcode::Push_r64 | Opcode::Push_r32 | Opcode::Push_r16)
            }
            _ => match instruction.flow_control() {
                FlowControl::UnconditionalBranch | FlowControl::Call => true,
                FlowControl::ConditionalBranch => instruction.is_jcc_short_or_near(),
                _ => false,
            },
        }
    }

    /// Whether an indirect jump is a `switch`: then it stays in the function.
    fn is_switch_jump(
        code: &impl ProgramCode,
        jump: &Instruction,
        before: &[Instruction],
        own: std::ops::Range<u64>,
        go: bool,
    ) -> bool {
        if go || jump.has_segment_prefix() && jump.segment_prefix() == Register::DS {
            return true;
        }
        match jump.op0_kind() {
            OpKind::Memory
                if jump.memory_index() != Register::None && jump.memory_base() == Register::None =>
            {
                let table = code.bytes_from(jump.memory_displacement64());
                table
                    .and_then(|bytes| crate::little_endian::read_u64_at(bytes, 0))
                    .is_some_and(|to| own.contains(&to))
            }
            // Offsets of a table are added to its address.
            OpKind::Register => before.iter().rev().take(6).any(|one| {
                one.mnemonic() == Mnemonic::Add && one.op0_register().full_register() == jump.op0_register()
            }),
            _ => false,
        }
    }
}

mod arm64 {
    use super::{DecodedInstruction, InstructionFlow};

    /// A signed field of a word, times four.
    fn signed_word_offset(word: u32, low: u32, bits: u32) -> i64 {
        let field = i64::from(word >> low) & ((1 << bits) - 1);
        (field << (64 - bits) >> (64 - bits)) * 4
    }

    pub(crate) fn decode_arm64_instructions(bytes: &[u8], begin: u64) -> Vec<DecodedInstruction> {
        let words: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let step = |(at, word): (usize, &u32)| {
            let (word, address) = (*word, begin + at as u64 * 4);
            let to = |low, bits| address.wrapping_add_signed(signed_word_offset(word, low, bits));
            let register = word >> 5 & 31;
            // `add Xn, …` in front of `br Xn`: a table.
            let added = |word: &u32| word & 0x7f20_0000 == 0x0b00_0000 && word & 31 == register;
            let table = words.get(at.saturating_sub(4)..at).is_some_and(|before| before.iter().any(added));
            let flow = match word {
                _ if word & 0xffff_fc1f == 0xd65f_0000 || word & 0xffff_fbff == 0xd65f_0bff => {
                    InstructionFlow::Return
                }
                _ if word & 0xfc00_0000 == 0x1400_0000 => InstructionFlow::Jump(to(0, 26)),
                _ if word & 0xfc00_0000 == 0x9400_0000 => InstructionFlow::Call(to(0, 26)),
                _ if word & 0xff00_0000 == 0x5400_0000 || word & 0x7e00_0000 == 0x3400_0000 => {
                    InstructionFlow::Branch(to(5, 19))
                }
                _ if word & 0x7e00_0000 == 0x3600_0000 => InstructionFlow::Branch(to(5, 14)),
                _ if word & 0xfedf_f000 == 0xd61f_0000 && !table => InstructionFlow::Away,
                _ => InstructionFlow::On,
            };
            // `bti` and `paciasp` are hints: no-operations, which the kernel simulates as it does branches.
            let hint = word & 0xffff_f01f == 0xd503_201f;
            DecodedInstruction {
                address,
                stepped: !hint && matches!(flow, InstructionFlow::On),
                flow,
                landing: false,
            }
        };
        words.iter().enumerate().map(step).collect()
    }
}
