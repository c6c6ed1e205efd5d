//! A program with its loader and libraries, startable in any folder: without debug sections, with another
//! interpreter.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use elf::ElfBytes;
use elf::abi::PT_INTERP;
use elf::endian::AnyEndian;

use crate::error::InitramfsError;
use crate::program_path::find_program_file;

/// What a program needs to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramClosure {
    /// The program, links followed.
    pub program: PathBuf,
    /// Its interpreter: the dynamic loader. None where it is static.
    pub interpreter: Option<PathBuf>,
    /// Libraries by the name under which they are loaded, and where this host has them.
    pub libraries: BTreeMap<String, PathBuf>,
}

/// What the program of that name or path needs. The libraries are those that its own loader finds, which is asked
/// (`ld.so --list`, as ldd(1) does) so that every rule of search is the loader's.
///
/// # Errors
/// There is no such program, it is none, or a library is missing.
pub fn find_closure(program: &str) -> Result<ProgramClosure, InitramfsError> {
    let path = resolve_program(program)?;
    let content = fs::read(&path).map_err(InitramfsError::file_error(&path))?;
    let Some(interpreter) = elf_interpreter(&path, &content)? else {
        return Ok(ProgramClosure { program: path, interpreter: None, libraries: BTreeMap::new() });
    };
    let libraries = list_libraries(&interpreter, &path)?;
    Ok(ProgramClosure { program: path, interpreter: Some(interpreter.into()), libraries })
}

/// Where a program is found, links not followed: the name by which others call it.
pub(crate) fn find_program(program: &str) -> Result<PathBuf, InitramfsError> {
    let missing = || InitramfsError::NoProgram { program: program.into() };
    if program.contains('/') {
        return std::path::absolute(program).ok().filter(|path| path.is_file()).ok_or_else(missing);
    }
    find_program_file(program).ok_or_else(missing)
}

/// The file that would be run.
pub(crate) fn resolve_program(program: &str) -> Result<PathBuf, InitramfsError> {
    let place = find_program(program)?;
    fs::canonicalize(&place).map_err(InitramfsError::file_error(&place))
}

fn list_libraries(interpreter: &str, program: &Path) -> Result<BTreeMap<String, PathBuf>, InitramfsError> {
    let bad = |reason: String| InitramfsError::Libraries { path: program.into(), reason };
    let output = Command::new(interpreter).arg("--list").arg(program).stdin(Stdio::null()).output();
    let output = output.map_err(|error| bad(format!("{interpreter}: {error}")))?;
    if !output.status.success() {
        return Err(bad(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let list = String::from_utf8_lossy(&output.stdout);
    let missing = list.lines().find(|line| line.ends_with("not found"));
    missing.map_or(Ok(()), |line| Err(bad(line.trim().into())))?;
    Ok(list.lines().filter_map(parse_library_line).collect())
}

/// `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)`
fn parse_library_line(line: &str) -> Option<(String, PathBuf)> {
    let (name, place) = line.trim().split_once(" => ")?;
    let (path, _) = place.rsplit_once(" (")?;
    Some((name.into(), path.into()))
}

/// Where an ELF header of 64 bits says where its sections are, how many, and which one names them.
const SECTIONS_AT: std::ops::Range<usize> = 0x28..0x30;

const SECTIONS: std::ops::Range<usize> = 0x3c..0x40;

/// The part of an ELF file that is loaded: what lies behind the last segment (names of sections, the notes for
/// debuggers: nine tenths of a debug build) is cut off. A guest's memory and its time to boot are dear.
pub(crate) fn trim_elf(path: &Path, content: &[u8]) -> Result<Vec<u8>, InitramfsError> {
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

/// Names another interpreter, whose path must not be longer than the present one. Says whether the
/// program has one.
pub(crate) fn set_interpreter(
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

/// Where perflab's build (crates/perflab/build.rs) makes the loader look for libraries first,
const BUILT: &[u8] = b"/run/perflab/lib\0";

/// and the folder `lib` beside the program, in the loader's notation (ld.so(8)), no longer than that.
const BESIDE: &[u8] = b"$ORIGIN/lib\0";

/// Lets perflab find its libraries beside itself, wherever that is.
pub(crate) fn set_library_path_beside(content: &mut [u8]) {
    let found = content.windows(BUILT.len()).position(|bytes| bytes == BUILT);
    if let Some(place) = found.and_then(|at| content.get_mut(at..at + BESIDE.len())) {
        place.copy_from_slice(BESIDE);
    }
}

/// The path of the interpreter; none where the program is static.
pub(crate) fn elf_interpreter(path: &Path, content: &[u8]) -> Result<Option<String>, InitramfsError> {
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
