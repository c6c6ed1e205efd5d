//! The files in which places are looked for: the program, and every library that it links or has mapped.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use perflab_observe::probes::{ArgumentFilter, Function, ProbeError, ProbedPlace, Program, Site};

use crate::exit::Usage;

/// A program with its libraries.
#[derive(Debug)]
pub struct Binaries {
    program: Program,
    /// in the order in which they are looked through
    libraries: Vec<PathBuf>,
    /// whether that is the loader's order, so that the first one that has a function is the one that is called
    in_order: bool,
    read: HashMap<PathBuf, Program>,
    /// bytes of code that lie in no file: what a JIT compiler made
    jitted: u64,
}

impl Binaries {
    /// A program that runs as this process, or that is going to be started.
    pub fn of(program: Program, pid: Option<i32>) -> Self {
        match pid {
            Some(pid) => Self::of_process(program, pid),
            None => Self::to_start(program),
        }
    }

    /// A program by itself.
    fn alone(program: Program) -> Self {
        Self { program, libraries: Vec::new(), in_order: true, read: HashMap::new(), jitted: 0 }
    }

    /// A program that is going to be started: with the libraries that its own loader finds, which is asked as ldd(1) does.
    fn to_start(program: Program) -> Self {
        let libraries = program.interpreter().map(|interpreter| {
            let mut command = Command::new(interpreter);
            command.arg("--list").arg(program.path()).stdin(Stdio::null());
            let list = command.output().map(|output| output.stdout).unwrap_or_default();
            String::from_utf8_lossy(&list).lines().filter_map(linked).collect()
        });
        Self { libraries: libraries.unwrap_or_default(), ..Self::alone(program) }
    }

    /// A process: with the libraries that it has mapped.
    fn of_process(program: Program, pid: i32) -> Self {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let mut libraries: Vec<PathBuf> = Vec::new();
        let mut jitted = 0;
        for (length, path) in maps.lines().filter_map(code) {
            match path {
                "" => jitted += length,
                path if path.starts_with('/') => {
                    let path = seen_from_here(pid, path);
                    if !libraries.contains(&path) && path != program.path() {
                        libraries.push(path);
                    }
                }
                _ => {}
            }
        }
        // The loader itself comes last: what it has under a library's name is its own.
        libraries.sort_by_key(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-"))
        });
        Self { libraries, in_order: false, jitted, ..Self::alone(program) }
    }

    /// The program itself.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Whether a text names a file: a path, or a library by its name (`libc.so.6`, `libc.so`).
    pub fn is_file(text: &str) -> bool {
        text.contains('/') || text.contains(".so")
    }

    /// The file of that name.
    pub fn file(&mut self, name: &str) -> anyhow::Result<&Program> {
        if name.contains('/') {
            let path = std::fs::canonicalize(name)
                .map_err(|source| ProbeError::Read { path: name.into(), source })?;
            return Ok(self.library(&path)?);
        }
        let fits = |path: &&PathBuf| {
            let own = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            own == name || own.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
        };
        let found = self.libraries.iter().find(fits).cloned();
        let Some(found) = found else {
            let hint = format!("its libraries: {}; a path does as well", self.names());
            return Err(Usage::new(
                format!("{} has no library `{name}`", self.program.path().display()),
                hint,
            )
            .into());
        };
        Ok(self.library(&found)?)
    }

    /// A function of the program, or else of one of its libraries.
    pub fn with_function(&mut self, name: &str) -> anyhow::Result<&Program> {
        if self.program.has_function(name) {
            return Ok(&self.program);
        }
        let libraries = self.libraries.clone();
        let mut found: Vec<PathBuf> = Vec::new();
        // As the symbol table has it, and only then as it may have been written.
        for has in [Program::has_symbol, Program::has_function] {
            for path in &libraries {
                if !found.is_empty() && self.in_order {
                    break;
                }
                // What cannot be read has no function: a library that was deleted, or is none.
                if self.library(path).is_ok_and(|library| has(library, name)) {
                    found.push(path.clone());
                }
            }
            if !found.is_empty() {
                break;
            }
        }
        match found.as_slice() {
            [] => Err(self.without(self.program.function(name).err(), name)),
            [first, ..] if self.in_order || found.len() == 1 => Ok(self.library(first)?),
            several => {
                let places: Vec<String> =
                    several.iter().map(|path| format!("{}:{name}", path.display())).collect();
                let message = format!("{} libraries of the process have a function `{name}`", several.len());
                Err(Usage::new(message, format!("write one of {}", places.join(", "))).into())
            }
        }
    }

    /// A USDT probe of the program, or else of one of its libraries.
    pub fn with_probe(&mut self, name: &str) -> &Program {
        if !self.program.probes().any(|probe| probe == name) {
            let libraries = self.libraries.clone();
            for path in &libraries {
                if self.library(path).is_ok_and(|library| library.probes().any(|probe| probe == name)) {
                    return self.read.get(path).unwrap_or(&self.program);
                }
            }
        }
        &self.program
    }

    fn library(&mut self, path: &Path) -> Result<&Program, ProbeError> {
        if path == self.program.path() {
            return Ok(&self.program);
        }
        if !self.read.contains_key(path) {
            self.read.insert(path.into(), Program::read(path)?);
        }
        Ok(self.read.get(path).unwrap_or(&self.program))
    }

    /// No file has it: what the program's own error says, and where else it was looked for.
    fn without(&self, error: Option<ProbeError>, name: &str) -> anyhow::Error {
        let Some(ProbeError::NoPlace { path, what, hint, .. }) = error else {
            return Usage::new(format!("there is no function `{name}`"), "--list names those that there are")
                .into();
        };
        let mut hint = hint;
        if !self.libraries.is_empty() {
            hint += &format!("; none of its libraries has it either ({})", self.names());
        }
        if self.jitted > 0 {
            hint += &format!(
                "; {} KiB of its code lie in no file: what a JIT compiler made cannot be probed, functions of its runtime can",
                self.jitted / 1024
            );
        }
        ProbeError::NoPlace { path, what, name: name.into(), hint }.into()
    }

    fn names(&self) -> String {
        let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        self.libraries.iter().filter_map(name).collect::<Vec<_>>().join(", ")
    }
}

/// Where a place was found.
#[derive(Debug)]
pub struct FoundFunction {
    /// In this file.
    pub path: PathBuf,
    /// Its begin and its ends.
    pub function: Function,
}

/// A place as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceText<'a> {
    /// Before the colon: a path or a library.
    pub file: Option<&'a str>,
    /// What of it.
    pub what: PlaceKind<'a>,
}

/// What a place is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceKind<'a> {
    /// A function by its name.
    Function(&'a str),
    /// An address as it was linked.
    Address(u64),
    /// A USDT probe, `provider:name`, with a filter of its arguments.
    Probe(&'a str, Option<ArgumentFilter>),
}

impl<'a> PlaceText<'a> {
    /// `[FILE:]FUNCTION`, `[FILE:]0xADDRESS` or `[FILE:]PROVIDER:PROBE[FILTER]`.
    pub fn parse(text: &'a str) -> anyhow::Result<Self> {
        let (bare, filter) = match text.split_once('[').filter(|_| text.ends_with(']')) {
            Some((bare, filter)) if single_colon(bare).is_some() => {
                (bare, Some(filter.trim_end_matches(']')))
            }
            _ => (text, None),
        };
        let (file, rest) = match single_colon(bare).and_then(|at| bare.split_at_checked(at)) {
            Some((file, rest)) if Binaries::is_file(file) => (Some(file), rest.get(1..).unwrap_or_default()),
            _ => (None, bare),
        };
        let address = rest.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let what = match address {
            Some(address) => PlaceKind::Address(address),
            None if single_colon(rest).is_some() => {
                let filter = filter.map(ArgumentFilter::parse).transpose();
                let wrong = |reason| Usage::new(format!("`{text}`: {reason}"), "for example [arg2==\"f\"]");
                PlaceKind::Probe(rest, filter.map_err(wrong)?)
            }
            None if filter.is_some() => {
                let hint = "only a USDT probe PROVIDER:PROBE has arguments to filter by";
                return Err(Usage::new(format!("`{text}` is no probe"), hint).into());
            }
            None => PlaceKind::Function(rest),
        };
        Ok(Self { file, what })
    }

    /// Where it begins and ends, where that is one thing: a function.
    pub fn function(&self, binaries: &mut Binaries) -> anyhow::Result<Option<FoundFunction>> {
        let (program, function) = match self.what {
            PlaceKind::Function(name) => {
                let program = self.with_function(binaries, name)?;
                (program, program.function(name)?)
            }
            PlaceKind::Address(address) => {
                let program = self.of_file(binaries)?;
                (program, program.function_at(address)?)
            }
            PlaceKind::Probe(..) => return Ok(None),
        };
        Ok(Some(FoundFunction { path: program.path().into(), function }))
    }

    /// Where threads come there.
    pub fn reached(&self, binaries: &mut Binaries) -> anyhow::Result<ProbedPlace> {
        let place = |program: &Program, site: Site| ProbedPlace {
            path: program.path().into(),
            sites: vec![site],
            condition: None,
        };
        Ok(match &self.what {
            PlaceKind::Function(name) => {
                let program = self.with_function(binaries, name)?;
                place(program, program.entry(name)?)
            }
            PlaceKind::Address(address) => {
                let program = self.of_file(binaries)?;
                place(program, program.site_at(*address)?)
            }
            PlaceKind::Probe(name, filter) => {
                self.with_probe(binaries, name)?.probe(name, filter.as_ref())?
            }
        })
    }

    /// The file with a probe.
    pub fn with_probe<'b>(&self, binaries: &'b mut Binaries, name: &str) -> anyhow::Result<&'b Program> {
        match self.file {
            Some(file) => binaries.file(file),
            None => Ok(binaries.with_probe(name)),
        }
    }

    fn with_function<'b>(&self, binaries: &'b mut Binaries, name: &str) -> anyhow::Result<&'b Program> {
        match self.file {
            Some(file) => binaries.file(file),
            None => binaries.with_function(name),
        }
    }

    fn of_file<'b>(&self, binaries: &'b mut Binaries) -> anyhow::Result<&'b Program> {
        match self.file {
            Some(file) => binaries.file(file),
            None => Ok(binaries.program()),
        }
    }
}

/// Where the first colon is that stands alone: `::` is within a name.
fn single_colon(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let colon = |at: usize| bytes.get(at) == Some(&b':');
    (0..bytes.len()).find(|at| colon(*at) && !colon(at + 1) && !at.checked_sub(1).is_some_and(colon))
}

/// `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)`, links followed.
fn linked(line: &str) -> Option<PathBuf> {
    let (_, place) = line.trim().split_once(" => ")?;
    std::fs::canonicalize(place.rsplit_once(" (")?.0).ok()
}

/// Length and path of a mapping with code.
fn code(line: &str) -> Option<(u64, &str)> {
    let mut parts = line.splitn(6, ' ');
    let (begin, end) = parts.next()?.split_once('-')?;
    if !parts.next()?.contains('x') {
        return None;
    }
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    Some((hex(end)?.saturating_sub(hex(begin)?), parts.nth(3).unwrap_or_default().trim()))
}

/// A file that a process has mapped, by a path that this process finds: in a container it is another one.
fn seen_from_here(pid: i32, path: &str) -> PathBuf {
    use std::os::unix::fs::MetadataExt;
    let inside = PathBuf::from(format!("/proc/{pid}/root{path}"));
    let same = |file: &Path| std::fs::metadata(file).ok().map(|file| (file.dev(), file.ino()));
    if same(Path::new(path)) == same(&inside) { path.into() } else { inside }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Option<&str>, PlaceKind<'_>) {
        let place = PlaceText::parse(text).unwrap();
        (place.file, place.what)
    }

    #[test]
    fn a_place_is_a_function_an_address_or_a_probe_of_a_file() {
        use PlaceKind::{Address, Function, Probe};
        let filter = ArgumentFilter::parse("arg2==\"f\"").ok();
        let cases = [
            ("insert", None, Function("insert")),
            ("a::b::insert", None, Function("a::b::insert")),
            ("libc.so.6:malloc", Some("libc.so.6"), Function("malloc")),
            ("./x:a::b", Some("./x"), Function("a::b")),
            ("./x:0x1234", Some("./x"), Address(0x1234)),
            ("0x12", None, Address(0x12)),
            ("tree:add_begin", None, Probe("tree:add_begin", None)),
            (
                "/usr/lib/libpython3.so:python:line",
                Some("/usr/lib/libpython3.so"),
                Probe("python:line", None),
            ),
            ("python:function__entry[arg2==\"f\"]", None, Probe("python:function__entry", filter)),
            ("operator[]", None, Function("operator[]")),
        ];
        for (text, file, what) in cases {
            assert_eq!(parsed(text), (file, what), "{text}");
        }
        assert!(PlaceText::parse("python:x[arg2]").unwrap_err().to_string().contains("is no comparison"));
    }

    #[test]
    fn code_without_a_file_is_told_from_libraries() {
        let maps = "7f00-7f10 r-xp 00000000 fe:00 12   /lib/libc.so.6\n7f20-7f40 rwxp 00000000 00:00 0 \n7f50-7f60 rw-p 0 0:0 0\n";
        assert_eq!(maps.lines().filter_map(code).collect::<Vec<_>>(), [(0x10, "/lib/libc.so.6"), (0x20, "")]);
    }
}
