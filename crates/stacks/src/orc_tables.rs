//! The kernel's own unwind tables (ORC): for each piece of its code, where the caller's stack and frame pointers are.
//!
//! Source: Linux arch/x86/include/asm/orc_types.h, arch/x86/kernel/unwind_orc.c. A table of offsets of code (`.orc_unwind_ip`,
//! each from its own place) stands beside a table of entries of six bytes (`.orc_unwind`). Linux 6.4 numbers the types anew.

/// Bytes of an entry.
pub(crate) const ENTRY_BYTES: usize = 6;

/// Bytes of an offset.
pub(crate) const OFFSET_BYTES: usize = 4;

/// The register that a pointer is found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrcRegister {
    /// it is not known
    Undefined,
    /// the stack pointer of the caller
    PreviousStack,
    Rdx,
    Rdi,
    FramePointer,
    StackPointer,
    R10,
    R13,
    /// what the frame pointer points to
    AtFramePointer,
    /// what the stack pointer points to
    AtStackPointer,
}

impl OrcRegister {
    fn from_number(number: u8) -> Self {
        match number {
            1 => OrcRegister::PreviousStack,
            2 => OrcRegister::Rdx,
            3 => OrcRegister::Rdi,
            4 => OrcRegister::FramePointer,
            5 => OrcRegister::StackPointer,
            6 => OrcRegister::R10,
            7 => OrcRegister::R13,
            8 => OrcRegister::AtFramePointer,
            9 => OrcRegister::AtStackPointer,
            _ => OrcRegister::Undefined,
        }
    }
}

/// What lies at the pointer that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrcFrameType {
    /// the code before knows no caller
    Undefined,
    /// the outermost frame
    EndOfStack,
    /// a return address
    Call,
    /// all registers of what was interrupted
    Registers,
    /// only what the processor pushed
    InterruptFrame,
}

/// How to find the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrcEntry {
    pub(crate) stack: OrcRegister,
    pub(crate) stack_offset: i16,
    pub(crate) frame: OrcRegister,
    pub(crate) frame_offset: i16,
    pub(crate) frame_type: OrcFrameType,
}

/// Which numbers the types have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrcFormat {
    /// a bit says that it is the end
    Before6_4,
    Since6_4,
}

impl OrcFormat {
    /// By the kernel's release: `6.1.0-56-cloud-amd64`.
    pub(crate) fn of_release(release: &str) -> Self {
        let mut numbers = release.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        if version >= (6, 4) { OrcFormat::Since6_4 } else { OrcFormat::Before6_4 }
    }
}

/// Both tables.
#[derive(Debug)]
pub(crate) struct OrcTables {
    /// Where each piece of code begins, ascending.
    starts: Vec<u64>,
    entries: Vec<u8>,
    format: OrcFormat,
}

impl OrcTables {
    /// Of what lies between the symbols; the offsets begin at `offsets_at`. None where they do not fit together.
    pub(crate) fn parse(
        offsets_at: u64,
        offsets: &[u8],
        entries: Vec<u8>,
        format: OrcFormat,
    ) -> Option<OrcTables> {
        let (offsets, rest) = offsets.as_chunks::<OFFSET_BYTES>();
        let fits = rest.is_empty() && !offsets.is_empty() && entries.len() == offsets.len() * ENTRY_BYTES;
        let place = |(index, offset): (usize, &[u8; OFFSET_BYTES])| {
            let at = offsets_at.wrapping_add((index * OFFSET_BYTES) as u64);
            at.wrapping_add_signed(i64::from(i32::from_le_bytes(*offset)))
        };
        let starts: Vec<u64> = offsets.iter().enumerate().map(place).collect();
        (fits && starts.is_sorted()).then_some(OrcTables { starts, entries, format })
    }

    /// What holds at an address; none outside of the tables.
    pub(crate) fn find_entry(&self, address: u64) -> Option<OrcEntry> {
        let index = self.starts.partition_point(|start| *start <= address).checked_sub(1)?;
        // The last entry only says where the code ends.
        self.starts.get(index + 1)?;
        let bytes = self.entries.get(index * ENTRY_BYTES..)?.first_chunk::<ENTRY_BYTES>()?;
        let [a, b, c, d, registers, kind] = *bytes;
        let frame_type = match self.format {
            OrcFormat::Before6_4 => match kind & 3 {
                // The bit is the third, or the fourth where signals have one (6.3): no other is set in the code that matters.
                _ if kind & 0b1100 != 0 && registers & 0xf == 0 => OrcFrameType::EndOfStack,
                0 => OrcFrameType::Call,
                1 => OrcFrameType::Registers,
                2 => OrcFrameType::InterruptFrame,
                _ => OrcFrameType::Undefined,
            },
            OrcFormat::Since6_4 => match kind & 7 {
                1 => OrcFrameType::EndOfStack,
                2 => OrcFrameType::Call,
                3 => OrcFrameType::Registers,
                4 => OrcFrameType::InterruptFrame,
                _ => OrcFrameType::Undefined,
            },
        };
        Some(OrcEntry {
            stack: OrcRegister::from_number(registers & 0xf),
            stack_offset: i16::from_le_bytes([a, b]),
            frame: OrcRegister::from_number(registers >> 4),
            frame_offset: i16::from_le_bytes([c, d]),
            frame_type,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_the_code_that_they_describe() {
        // Offsets are relative to their own places: 0x1000, 0x1010 and 0x1020, seen from 0x2000.
        let offsets: Vec<u8> =
            [-0x1000_i32, -0xff4, -0xfe8].iter().flat_map(|offset| offset.to_le_bytes()).collect();
        let entry = |stack_offset: i16, frame_offset: i16, registers: u8, kind: u8| {
            let ([a, b], [c, d]) = (stack_offset.to_le_bytes(), frame_offset.to_le_bytes());
            [a, b, c, d, registers, kind]
        };
        let entries = [entry(16, -16, 0x15, 0), entry(0, 0, 0x05, 1), entry(0, 0, 0, 4)].concat();
        let tables = OrcTables::parse(0x2000, &offsets, entries.clone(), OrcFormat::Before6_4).unwrap();
        let found = tables.find_entry(0x100f).unwrap();
        assert_eq!((found.stack, found.stack_offset), (OrcRegister::StackPointer, 16));
        assert_eq!((found.frame, found.frame_offset), (OrcRegister::PreviousStack, -16));
        assert_eq!(found.frame_type, OrcFrameType::Call);
        assert_eq!(tables.find_entry(0x1010).unwrap().frame_type, OrcFrameType::Registers);
        assert_eq!((tables.find_entry(0xfff), tables.find_entry(0x1020)), (None, None));
        assert!(OrcTables::parse(0x2000, &offsets[1..], entries, OrcFormat::Before6_4).is_none());
    }

    #[test]
    fn types_were_numbered_anew_in_6_4() {
        let formats =
            ["6.1.0-56-cloud-amd64", "6.3.9", "6.4.0-rc1", "6.18.44", "7.0-rc1"].map(OrcFormat::of_release);
        let (old, new) = (OrcFormat::Before6_4, OrcFormat::Since6_4);
        assert_eq!(formats, [old, old, new, new, new]);
    }
}
