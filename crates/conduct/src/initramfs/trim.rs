//! A program without what only debuggers read, and with another interpreter.

use std::path::Path;

use elf::ElfBytes;
use elf::abi::PT_INTERP;
use elf::endian::AnyEndian;

use super::InitramfsError;

/// Where an ELF header of 64 bits says where its sections are, how many, and which one names them.
const SECTIONS_AT: std::ops::Range<usize> = 0x28..0x30;
const SECTIONS: std::ops::Range<usize> = 0x3c..0x40;

/// The part of an ELF file that is loaded: what lies behind the last segment (names of sections, the notes for
/// debuggers: nine tenths of a debug build) is cut off. A guest's memory and its time to boot are dear.
pub(super) fn trim_elf(path: &Path, content: &[u8]) -> Result<Vec<u8>, InitramfsError> {
    let end = program_headers(path, content)?.iter().map(|segment| segment.p_offset + segment.p_filesz).max();
    let end = end.and_then(|end| usize::try_from(end).ok()).unwrap_or(content.len());
    let mut kept = content.get(..end).unwrap_or(content).to_vec();
    for field in [SECTIONS_AT, SECTIONS] {
        if let Some(field) = kept.get_mut(field) {
            field.fill(0);
        }
    }
    Ok(kept)
}

/// Names another interpreter, whose path must not be longer than the one that stands there. Says whether the
/// program has one.
pub(super) fn set_interpreter(
    path: &Path,
    content: &mut [u8],
    interpreter: &str,
) -> Result<bool, InitramfsError> {
    let segments = program_headers(path, content)?;
    let Some(segment) = segments.iter().find(|segment| segment.p_type == PT_INTERP) else { return Ok(false) };
    let place = segment.p_offset as usize..(segment.p_offset + segment.p_filesz) as usize;
    let place = content.get_mut(place).filter(|place| place.len() > interpreter.len());
    let place = place.ok_or_else(|| InitramfsError::NotAProgram {
        path: path.into(),
        reason: format!("its interpreter's path has no room for {interpreter}"),
    })?;
    place.fill(0);
    place[..interpreter.len()].copy_from_slice(interpreter.as_bytes());
    Ok(true)
}

/// Where perflab's build (crates/perflab/build.rs) tells the loader to look for libraries first,
const BUILT: &[u8] = b"/run/perflab/lib\0";
/// and the folder `lib` beside the program, in the loader's words (ld.so(8)), no longer than that.
const BESIDE: &[u8] = b"$ORIGIN/lib\0";

/// Lets perflab find its libraries beside itself, wherever that is.
pub(super) fn set_library_path_beside(content: &mut [u8]) {
    let found = content.windows(BUILT.len()).position(|bytes| bytes == BUILT);
    if let Some(place) = found.and_then(|at| content.get_mut(at..at + BESIDE.len())) {
        place.copy_from_slice(BESIDE);
    }
}

/// The path of the interpreter; none where the program is static.
pub(super) fn elf_interpreter(path: &Path, content: &[u8]) -> Result<Option<String>, InitramfsError> {
    let segments = program_headers(path, content)?;
    let segment = segments.iter().find(|segment| segment.p_type == PT_INTERP);
    let text = segment.and_then(|segment| {
        content.get(segment.p_offset as usize..(segment.p_offset + segment.p_filesz) as usize)
    });
    Ok(text.map(|text| String::from_utf8_lossy(text).trim_end_matches('\0').to_owned()))
}

fn program_headers(path: &Path, content: &[u8]) -> Result<Vec<elf::segment::ProgramHeader>, InitramfsError> {
    let bad = |reason: String| InitramfsError::NotAProgram { path: path.into(), reason };
    let file = ElfBytes::<AnyEndian>::minimal_parse(content).map_err(|error| bad(error.to_string()))?;
    let segments = file.segments().ok_or_else(|| bad("it has no segments".into()))?;
    Ok(segments.iter().collect())
}
