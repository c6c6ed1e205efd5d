//! QEMU's gdb stub: all processors of a guest stopped, their registers and memory read, and let go again.
//!
//! The remote protocol of gdb: `$`, the text, `#` and a sum of two digits. Any byte stops a guest that runs, and connecting
//! does. QEMU does not let a guest go whose debugger hangs up: [`GdbStub`] does that when it is dropped.
//! Source: gdb's manual, appendix "Remote Serial Protocol"; QEMU 7.2, gdbstub/gdbstub.c, gdb-xml/i386-64bit.xml.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use data_encoding::HEXLOWER_PERMISSIVE;
use perflab_stacks::{KernelMemory, StoppedRegisters};

/// How long an answer is waited for: a starved QEMU takes its time.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes of memory in one answer: QEMU's packets hold 4096 digits.
const PIECE: u64 = 2048;

/// Pieces that are asked for at once when much is read.
const PIECES_AT_ONCE: usize = 64;

/// What interrupts a guest that runs.
const INTERRUPT: u8 = 3;

/// Places in the answer to `g`, in bytes.
mod place {
    pub(super) const INSTRUCTION: usize = 128;
    /// Behind the flags and six segments of four bytes, and the base of `fs`.
    pub(super) const GS_BASE: usize = 172;
    pub(super) const OTHER_GS_BASE: usize = 180;
}

/// A debugger's connection to a guest.
#[derive(Debug)]
pub(crate) struct GdbStub {
    stream: UnixStream,
    received: Vec<u8>,
    is_stopped: bool,
}

impl GdbStub {
    /// Connects; the guest is stopped.
    pub(crate) fn connect(socket: &Path) -> io::Result<GdbStub> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut stub = GdbStub { stream, received: Vec::new(), is_stopped: true };
        // Why it is stopped: an answer, whether or not connecting was heard before.
        stub.send(&["?".into()], false)?;
        while !stub.next_packet()?.starts_with(b"T05") {}
        Ok(stub)
    }

    /// Stops all processors, and gives the registers of `count` of them.
    pub(crate) fn stop(&mut self, count: u32) -> io::Result<Vec<StoppedRegisters>> {
        let requests: Vec<String> =
            (0..count).flat_map(|cpu| [select_processor(cpu), "g".to_owned()]).collect();
        let must_interrupt = !self.is_stopped;
        self.is_stopped = true;
        self.send(&requests, must_interrupt)?;
        let mut found = Vec::new();
        for _ in 0..count {
            self.next_answer()?;
            let answer = self.next_answer()?;
            found.push(parse_registers(&answer).ok_or_else(|| strange_answer_error(&answer))?);
        }
        Ok(found)
    }

    /// Lets the guest go on.
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        self.send(&["c".into()], false)?;
        self.is_stopped = false;
        Ok(())
    }

    /// Pieces of memory as the processors see them, in one exchange; what is not mapped is left out.
    pub(crate) fn read_pieces(&mut self, wanted: &[(u32, u64, usize)]) -> io::Result<Vec<MemoryPiece>> {
        let mut found = Vec::new();
        for some in wanted.chunks(PIECES_AT_ONCE) {
            let requests: Vec<String> = some
                .iter()
                .flat_map(|(cpu, at, length)| [select_processor(*cpu), format!("m{at:x},{length:x}")])
                .collect();
            self.send(&requests, false)?;
            for (_, at, _) in some {
                self.next_answer()?;
                let answer = self.next_answer()?;
                // An error is an `E` and two digits: what is not mapped.
                if let Ok(bytes) = HEXLOWER_PERMISSIVE.decode(&answer) {
                    found.push(MemoryPiece { at: *at, bytes });
                }
            }
        }
        Ok(found)
    }

    fn send(&mut self, requests: &[String], interrupts: bool) -> io::Result<()> {
        let mut bytes = Vec::new();
        if interrupts {
            bytes.push(INTERRUPT);
        }
        for request in requests {
            let sum = request.bytes().fold(0_u8, u8::wrapping_add);
            write!(bytes, "${request}#{sum:02x}")?;
        }
        self.stream.write_all(&bytes)
    }

    /// The next answer to a request. That the guest stopped is said by itself.
    fn next_answer(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let packet = self.next_packet()?;
            match packet.first() {
                Some(b'T' | b'S') => {}
                Some(b'W' | b'X') => {
                    return Err(io::Error::new(ErrorKind::ConnectionAborted, "the guest ended"));
                }
                _ => return Ok(packet),
            }
        }
    }

    fn next_packet(&mut self) -> io::Result<Vec<u8>> {
        let mut piece = [0; 16 << 10];
        loop {
            if let Some((packet, length)) = find_packet(&self.received) {
                self.received.drain(..length);
                return Ok(packet);
            }
            let count = match self.stream.read(&mut piece) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    let message = format!("QEMU's gdb stub gave no answer within {} s", PATIENCE.as_secs());
                    return Err(io::Error::new(ErrorKind::TimedOut, message));
                }
                other => other?,
            };
            if count == 0 {
                return Err(io::Error::new(ErrorKind::ConnectionAborted, "QEMU hung up"));
            }
            self.received.extend_from_slice(piece.get(..count).unwrap_or_default());
        }
    }
}

impl Drop for GdbStub {
    fn drop(&mut self) {
        // A guest that is gone needs nothing.
        let _ = self.send(&["D".into()], false);
    }
}

/// Some memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemoryPiece {
    at: u64,
    bytes: Vec<u8>,
}

impl MemoryPiece {
    fn get(&self, at: u64, length: usize) -> Option<&[u8]> {
        let begin = usize::try_from(at.checked_sub(self.at)?).ok()?;
        self.bytes.get(begin..begin.checked_add(length)?)
    }
}

/// The requests for some memory: pieces that neither cross a page nor are too long.
pub(crate) fn split_into_pieces(cpu: u32, at: u64, length: usize) -> Vec<(u32, u64, usize)> {
    let end = at.saturating_add(length as u64);
    let mut pieces = Vec::new();
    let mut begin = at;
    while begin < end {
        let next = (begin / PIECE + 1).saturating_mul(PIECE).min(end);
        pieces.push((cpu, begin, (next - begin) as usize));
        begin = next;
    }
    pieces
}

/// The memory of a guest that is stopped, as one processor sees it. What was read once is kept until the guest goes on.
#[derive(Debug)]
pub(crate) struct StoppedMemory<'s> {
    stub: &'s mut GdbStub,
    /// The processor whose page tables count.
    pub(crate) cpu: u32,
    pieces: Vec<MemoryPiece>,
    /// Why nothing more can be read.
    pub(crate) failure: Option<io::Error>,
}

impl<'s> StoppedMemory<'s> {
    pub(crate) fn new(stub: &'s mut GdbStub) -> Self {
        StoppedMemory { stub, cpu: 0, pieces: Vec::new(), failure: None }
    }

    /// Reads what will be needed in one exchange.
    pub(crate) fn prefetch(&mut self, wanted: &[(u32, u64, usize)]) {
        match self.stub.read_pieces(wanted) {
            Ok(found) => self.pieces.extend(found),
            Err(error) => self.failure = Some(error),
        }
    }

    fn find_known(&self, at: u64, length: usize) -> Option<&[u8]> {
        self.pieces.iter().find_map(|piece| piece.get(at, length))
    }
}

impl KernelMemory for StoppedMemory<'_> {
    fn read_bytes(&mut self, address: u64, length: usize) -> Option<Vec<u8>> {
        if let Some(known) = self.find_known(address, length) {
            return Some(known.to_vec());
        }
        if self.failure.is_some() {
            return None;
        }
        let first = address / PIECE * PIECE;
        let end = address.checked_add(length as u64)?;
        if length as u64 > PIECE {
            // A table: read as a whole, and not kept.
            let pieces = split_into_pieces(self.cpu, address, length);
            let found = self.stub.read_pieces(&pieces).map_err(|error| self.failure = Some(error)).ok()?;
            let bytes = found.into_iter().flat_map(|piece| piece.bytes).collect::<Vec<u8>>();
            return Some(bytes).filter(|bytes| bytes.len() == length);
        }
        let mut wanted = Vec::new();
        let mut at = first;
        while at < end {
            wanted.push((self.cpu, at, PIECE as usize));
            at = at.checked_add(PIECE)?;
        }
        self.prefetch(&wanted);
        if let Some(known) = self.find_known(address, length) {
            return Some(known.to_vec());
        }
        // Across two pieces.
        let split = (address / PIECE + 1) * PIECE;
        let left = usize::try_from(split.checked_sub(address)?).ok()?;
        let mut bytes = self.find_known(address, left)?.to_vec();
        bytes.extend_from_slice(self.find_known(split, length.checked_sub(left)?)?);
        Some(bytes)
    }
}

fn select_processor(cpu: u32) -> String {
    format!("Hg{:x}", cpu + 1)
}

/// The first packet among what was received, and how much of that it takes, with whatever stands before it.
fn find_packet(received: &[u8]) -> Option<(Vec<u8>, usize)> {
    let begin = received.iter().position(|byte| *byte == b'$')? + 1;
    let length = received.get(begin..)?.iter().position(|byte| *byte == b'#')?;
    let end = begin + length;
    // Two digits of the sum, which a socket does not need.
    (received.len() >= end + 3).then(|| (received.get(begin..end).unwrap_or_default().to_vec(), end + 3))
}

fn parse_registers(answer: &[u8]) -> Option<StoppedRegisters> {
    let bytes = HEXLOWER_PERMISSIVE.decode(answer).ok()?;
    let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk::<8>()?));
    let mut registers = StoppedRegisters {
        instruction: word(place::INSTRUCTION)?,
        gs_base: word(place::GS_BASE)?,
        other_gs_base: word(place::OTHER_GS_BASE)?,
        ..StoppedRegisters::default()
    };
    for (index, register) in registers.general.iter_mut().enumerate() {
        *register = word(8 * index)?;
    }
    Some(registers)
}

fn strange_answer_error(answer: &[u8]) -> io::Error {
    let begin = String::from_utf8_lossy(answer.get(..answer.len().min(40)).unwrap_or_default()).into_owned();
    io::Error::new(ErrorKind::InvalidData, format!("QEMU's gdb stub gave no registers, but {begin:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_found_behind_acknowledgements_and_once_they_are_whole() {
        assert_eq!(find_packet(b"+$OK#9a+"), Some((b"OK".to_vec(), 7)));
        assert_eq!((find_packet(b"+$OK#9"), find_packet(b"++"), find_packet(b"$O")), (None, None, None));
    }

    #[test]
    fn registers_stand_where_qemu_puts_them() {
        let mut bytes = vec![0_u8; 600];
        bytes[6 * 8] = 0xbb;
        bytes[7 * 8] = 0x55;
        bytes[128..136].copy_from_slice(&0xffffffff81000123_u64.to_le_bytes());
        bytes[172] = 7;
        bytes[180] = 8;
        let found = parse_registers(HEXLOWER_PERMISSIVE.encode(&bytes).as_bytes()).unwrap();
        assert_eq!((found.general[6], found.stack_pointer()), (0xbb, 0x55));
        assert_eq!((found.instruction, found.gs_base, found.other_gs_base), (0xffffffff81000123, 7, 8));
        assert!(parse_registers(b"E14").is_none() && parse_registers(b"0011").is_none());
    }

    #[test]
    fn pieces_cross_no_page() {
        assert_eq!(
            split_into_pieces(1, 0x17f8, 0x1010),
            [(1, 0x17f8, 8), (1, 0x1800, 0x800), (1, 0x2000, 0x800), (1, 0x2800, 8)]
        );
        assert!(split_into_pieces(0, 8, 0).is_empty());
    }

    /// A stub that answers as it is told, and its other end.
    fn stub_with(answers: &[u8]) -> (GdbStub, UnixStream) {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(answers).unwrap();
        (GdbStub { stream: ours, received: Vec::new(), is_stopped: false }, theirs)
    }

    #[test]
    fn a_guest_that_ends_and_a_stub_that_hangs_up_are_errors() {
        let (mut stub, _theirs) = stub_with(b"$W00#b7");
        assert_eq!(stub.stop(1).unwrap_err().kind(), ErrorKind::ConnectionAborted);
        let (mut stub, theirs) = stub_with(b"+$T02thread:01;#04+$OK#9a+$12");
        drop(theirs);
        assert!(stub.stop(1).is_err());
        let (mut stub, _theirs) = stub_with(b"+$T02thread:01;#04+$OK#9a+$1234#ca");
        assert_eq!(stub.stop(1).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn memory_that_is_not_mapped_is_left_out() {
        let (mut stub, _theirs) = stub_with(b"+$OK#9a+$E14#aa+$OK#9a+$0102#c3");
        let found = stub.read_pieces(&[(0, 0x1000, 2), (0, 0x2000, 2)]).unwrap();
        assert_eq!(found, [MemoryPiece { at: 0x2000, bytes: vec![1, 2] }]);
    }

    #[test]
    fn whoever_hangs_up_lets_the_guest_go() {
        let (stub, mut theirs) = stub_with(b"");
        drop(stub);
        let mut said = String::new();
        theirs.read_to_string(&mut said).unwrap();
        assert_eq!(said, "$D#44");
    }
}
