//! A program and every file that it needs to start.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{InitramfsError, trim};

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
    let Some(interpreter) = trim::elf_interpreter(&path, &content)? else {
        return Ok(ProgramClosure { program: path, interpreter: None, libraries: BTreeMap::new() });
    };
    let libraries = list_libraries(&interpreter, &path)?;
    Ok(ProgramClosure { program: path, interpreter: Some(interpreter.into()), libraries })
}

/// Where a program is found, links not followed: the name by which others call it.
pub(super) fn find_program(program: &str) -> Result<PathBuf, InitramfsError> {
    let missing = || InitramfsError::NoProgram { program: program.into() };
    if program.contains('/') {
        return std::path::absolute(program).ok().filter(|path| path.is_file()).ok_or_else(missing);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut places = std::env::split_paths(&path).chain(system).map(|folder| folder.join(program));
    places.find(|file| file.is_file()).ok_or_else(missing)
}

/// The file that would be run.
pub(super) fn resolve_program(program: &str) -> Result<PathBuf, InitramfsError> {
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
