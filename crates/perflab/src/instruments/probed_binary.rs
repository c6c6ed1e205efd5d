//! What of a binary can be probed, as it is named on the command line (`[NAME=]BEGIN[,END]`).
//!
//! Probe points are looked for in the program and in every library that it links or has mapped. Where no end is given,
//! it follows from the begin.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use optrace::ProbeMark;
use perflab_observe::probes::{
    ArgumentFilter, ProbeError, ProbePoint, ProbeSite, ProbedFunction, ProbedProgram,
};

use crate::failure::{Failure, UsageError};

/// A program with its libraries.
#[derive(Debug)]
pub struct ProgramBinaries {
    program: ProbedProgram,
    /// in the order in which they are looked through
    libraries: Vec<PathBuf>,
    /// whether that is the loader's order, so that the first one that has a function is the one that is called
    is_loader_order: bool,
    opened: HashMap<PathBuf, ProbedProgram>,
    /// bytes of code that lie in no file: what a JIT compiler made
    jitted: u64,
}

impl ProgramBinaries {
    /// A program that runs as this process, or that is going to be started.
    pub fn open(program: ProbedProgram, pid: Option<i32>) -> Self {
        match pid {
            Some(pid) => Self::for_process(program, pid),
            None => Self::for_start(program),
        }
    }

    /// A program by itself.
    fn program_alone(program: ProbedProgram) -> Self {
        Self { program, libraries: Vec::new(), is_loader_order: true, opened: HashMap::new(), jitted: 0 }
    }

    /// A program that is going to be started: with the libraries that its own loader finds, which is asked as ldd(1) does.
    fn for_start(program: ProbedProgram) -> Self {
        let libraries = program.interpreter().map(|interpreter| {
            let mut command = Command::new(interpreter);
            command.arg("--list").arg(program.path()).stdin(Stdio::null());
            let list = command.output().map(|output| output.stdout).unwrap_or_default();
            String::from_utf8_lossy(&list).lines().filter_map(parse_ldd_line).collect()
        });
        Self { libraries: libraries.unwrap_or_default(), ..Self::program_alone(program) }
    }

    /// A process: with the libraries that it has mapped.
    fn for_process(program: ProbedProgram, pid: i32) -> Self {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let mut libraries: Vec<PathBuf> = Vec::new();
        let mut jitted = 0;
        for (length, path) in maps.lines().filter_map(parse_code_mapping) {
            match path {
                "" => jitted += length,
                path if path.starts_with('/') => {
                    let path = path_from_here(pid, path);
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
        Self { libraries, is_loader_order: false, jitted, ..Self::program_alone(program) }
    }

    /// The program itself.
    pub fn program(&self) -> &ProbedProgram {
        &self.program
    }

    /// Whether a text names a file: a path, or a library by its name (`libc.so.6`, `libc.so`).
    pub fn is_file(text: &str) -> bool {
        text.contains('/') || text.contains(".so")
    }

    /// The file of that name.
    pub fn file_named(&mut self, name: &str) -> Result<&ProbedProgram, Failure> {
        if name.contains('/') {
            let path = std::fs::canonicalize(name)
                .map_err(|source| ProbeError::Read { path: name.into(), source })?;
            return Ok(self.open_library(&path)?);
        }
        let fits = |path: &&PathBuf| {
            let own = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            own == name || own.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
        };
        let found = self.libraries.iter().find(fits).cloned();
        let Some(found) = found else {
            let hint = format!("its libraries: {}; a path works, too", self.file_names());
            return Err(UsageError::new(
                format!("{} has no library `{name}`", self.program.path().display()),
                hint,
            )
            .into());
        };
        Ok(self.open_library(&found)?)
    }

    /// A function of the program, or else of one of its libraries.
    pub fn file_with_function(&mut self, name: &str) -> Result<&ProbedProgram, Failure> {
        if self.program.has_function(name) {
            return Ok(&self.program);
        }
        let libraries = self.libraries.clone();
        let mut found: Vec<PathBuf> = Vec::new();
        // As the symbol table has it, and only then as it may have been written.
        for has in [ProbedProgram::has_symbol, ProbedProgram::has_function] {
            for path in &libraries {
                if !found.is_empty() && self.is_loader_order {
                    break;
                }
                // What cannot be read has no function: a library that was deleted, or is none.
                if self.open_library(path).is_ok_and(|library| has(library, name)) {
                    found.push(path.clone());
                }
            }
            if !found.is_empty() {
                break;
            }
        }
        match found.as_slice() {
            [] => Err(self.not_found_error(self.program.function(name).err(), name)),
            [first, ..] if self.is_loader_order || found.len() == 1 => Ok(self.open_library(first)?),
            several => {
                let places: Vec<String> =
                    several.iter().map(|path| format!("{}:{name}", path.display())).collect();
                let message = format!("{} libraries of the process have a function `{name}`", several.len());
                Err(UsageError::new(message, format!("write one of {}", places.join(", "))).into())
            }
        }
    }

    /// A USDT probe of the program, or else of one of its libraries.
    pub fn file_with_probe(&mut self, name: &str) -> &ProbedProgram {
        if !self.program.probe_names().any(|probe| probe == name) {
            let libraries = self.libraries.clone();
            for path in &libraries {
                if self
                    .open_library(path)
                    .is_ok_and(|library| library.probe_names().any(|probe| probe == name))
                {
                    return self.opened.get(path).unwrap_or(&self.program);
                }
            }
        }
        &self.program
    }

    fn open_library(&mut self, path: &Path) -> Result<&ProbedProgram, ProbeError> {
        if path == self.program.path() {
            return Ok(&self.program);
        }
        if !self.opened.contains_key(path) {
            self.opened.insert(path.into(), ProbedProgram::read(path)?);
        }
        Ok(self.opened.get(path).unwrap_or(&self.program))
    }

    /// No file has it: what the program's own error says, and where else it was looked for.
    fn not_found_error(&self, error: Option<ProbeError>, name: &str) -> Failure {
        let Some(ProbeError::NoPlace { path, what, hint, .. }) = error else {
            return UsageError::new(format!("there is no function `{name}`"), "--list names the functions")
                .into();
        };
        let mut hint = hint;
        if !self.libraries.is_empty() {
            hint = format!("its libraries ({}) have none either; {hint}", self.file_names());
        }
        if self.jitted > 0 {
            hint += &format!(
                "; {} KiB of its code are in no file: JIT-compiled code cannot be probed, functions of its runtime can",
                self.jitted / 1024
            );
        }
        ProbeError::NoPlace { path, what, name: name.into(), hint }.into()
    }

    fn file_names(&self) -> String {
        let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        self.libraries.iter().filter_map(name).collect::<Vec<_>>().join(", ")
    }
}

/// Where a place was found.
#[derive(Debug)]
pub struct LocatedFunction {
    /// In this file.
    pub path: PathBuf,
    /// Its begin and its ends.
    pub function: ProbedFunction,
}

/// A place as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbePlaceText<'a> {
    /// Before the colon: a path or a library.
    pub file: Option<&'a str>,
    /// What of it.
    pub kind: ProbePlaceKind<'a>,
}

/// What a place is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbePlaceKind<'a> {
    /// A function by its name.
    Function(&'a str),
    /// An address as it was linked.
    Address(u64),
    /// A USDT probe, `provider:name`, with a filter of its arguments.
    Probe(&'a str, Option<ArgumentFilter>),
}

impl<'a> ProbePlaceText<'a> {
    /// `[FILE:]FUNCTION`, `[FILE:]0xADDRESS` or `[FILE:]PROVIDER:PROBE[FILTER]`.
    pub fn parse(text: &'a str) -> Result<Self, Failure> {
        let (bare, filter) = match text.split_once('[').filter(|_| text.ends_with(']')) {
            Some((bare, filter)) if find_single_colon(bare).is_some() => {
                (bare, Some(filter.trim_end_matches(']')))
            }
            _ => (text, None),
        };
        let (file, rest) = match find_single_colon(bare).and_then(|at| bare.split_at_checked(at)) {
            Some((file, rest)) if ProgramBinaries::is_file(file) => {
                (Some(file), rest.get(1..).unwrap_or_default())
            }
            _ => (None, bare),
        };
        let address = rest.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let what = match address {
            Some(address) => ProbePlaceKind::Address(address),
            None if find_single_colon(rest).is_some() => {
                let filter = filter.map(ArgumentFilter::parse).transpose();
                let wrong =
                    |reason| UsageError::new(format!("`{text}`: {reason}"), "for example [arg2==\"f\"]");
                ProbePlaceKind::Probe(rest, filter.map_err(wrong)?)
            }
            None if filter.is_some() => {
                let hint = "only a USDT probe PROVIDER:PROBE has arguments to filter by";
                return Err(UsageError::new(format!("`{text}` is no probe"), hint).into());
            }
            None => ProbePlaceKind::Function(rest),
        };
        Ok(Self { file, kind: what })
    }

    /// Where it begins and ends, where that is one thing: a function.
    pub fn find_function(&self, binaries: &mut ProgramBinaries) -> Result<Option<LocatedFunction>, Failure> {
        let (program, function) = match self.kind {
            ProbePlaceKind::Function(name) => {
                let program = self.file_with_function(binaries, name)?;
                (program, program.function(name)?)
            }
            ProbePlaceKind::Address(address) => {
                let program = self.named_file(binaries)?;
                (program, program.function_at(address)?)
            }
            ProbePlaceKind::Probe(..) => return Ok(None),
        };
        Ok(Some(LocatedFunction { path: program.path().into(), function }))
    }

    /// Where threads come there.
    pub fn find_probed_place(&self, binaries: &mut ProgramBinaries) -> Result<ProbePoint, Failure> {
        let place = |program: &ProbedProgram, site: ProbeSite| ProbePoint {
            path: program.path().into(),
            sites: vec![site],
            condition: None,
        };
        Ok(match &self.kind {
            ProbePlaceKind::Function(name) => {
                let program = self.file_with_function(binaries, name)?;
                place(program, program.entry_site(name)?)
            }
            ProbePlaceKind::Address(address) => {
                let program = self.named_file(binaries)?;
                place(program, program.site_at(*address)?)
            }
            ProbePlaceKind::Probe(name, filter) => {
                self.file_with_probe(binaries, name)?.probe_point(name, filter.as_ref())?
            }
        })
    }

    /// The file with a probe.
    pub fn file_with_probe<'b>(
        &self,
        binaries: &'b mut ProgramBinaries,
        name: &str,
    ) -> Result<&'b ProbedProgram, Failure> {
        match self.file {
            Some(file) => binaries.file_named(file),
            None => Ok(binaries.file_with_probe(name)),
        }
    }

    fn file_with_function<'b>(
        &self,
        binaries: &'b mut ProgramBinaries,
        name: &str,
    ) -> Result<&'b ProbedProgram, Failure> {
        match self.file {
            Some(file) => binaries.file_named(file),
            None => binaries.file_with_function(name),
        }
    }

    fn named_file<'b>(&self, binaries: &'b mut ProgramBinaries) -> Result<&'b ProbedProgram, Failure> {
        match self.file {
            Some(file) => binaries.file_named(file),
            None => Ok(binaries.program()),
        }
    }
}

/// Where the first colon is that stands alone: `::` is within a name.
fn find_single_colon(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let colon = |at: usize| bytes.get(at) == Some(&b':');
    (0..bytes.len()).find(|at| colon(*at) && !colon(at + 1) && !at.checked_sub(1).is_some_and(colon))
}

/// `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)`, links followed.
fn parse_ldd_line(line: &str) -> Option<PathBuf> {
    let (_, place) = line.trim().split_once(" => ")?;
    std::fs::canonicalize(place.rsplit_once(" (")?.0).ok()
}

/// Length and path of a mapping with code.
fn parse_code_mapping(line: &str) -> Option<(u64, &str)> {
    let mut parts = line.splitn(6, ' ');
    let (begin, end) = parts.next()?.split_once('-')?;
    if !parts.next()?.contains('x') {
        return None;
    }
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    Some((hex(end)?.saturating_sub(hex(begin)?), parts.nth(3).unwrap_or_default().trim()))
}

/// A file that a process has mapped, by a path that this process finds: in a container it is another one.
fn path_from_here(pid: i32, path: &str) -> PathBuf {
    use std::os::unix::fs::MetadataExt;
    let inside = PathBuf::from(format!("/proc/{pid}/root{path}"));
    let same = |file: &Path| std::fs::metadata(file).ok().map(|file| (file.dev(), file.ino()));
    if same(Path::new(path)) == same(&inside) { path.into() } else { inside }
}

/// Places of a program with what each means.
#[derive(Debug, Default)]
pub struct ProbeSites {
    /// Kinds of operation.
    pub operations: Vec<String>,
    /// Kinds of span.
    pub spans: Vec<String>,
    /// What each place means, by its number.
    pub marks: Vec<ProbeMark>,
    /// Each place, by its number.
    pub places: Vec<ProbePoint>,
    /// Whether the stack pointer is the same at a begin and its end, by number of the place.
    pub framed: Vec<bool>,
    /// Whether goroutines come there, whose stacks move and which change threads, by number of the place.
    pub go: Vec<bool>,
}

impl ProbeSites {
    /// Finds everything.
    pub fn find(
        binaries: &mut ProgramBinaries,
        operations: &[String],
        spans: &[String],
    ) -> Result<ProbeSites, Failure> {
        let mut places = ProbeSites::default();
        for text in operations {
            let kind = places.operations.len() as u8;
            let name = places.add_named_pair(binaries, text, ProbeMark::Begin(kind), ProbeMark::End(kind))?;
            places.operations.push(name);
        }
        for text in spans {
            let kind = places.spans.len() as u8;
            let name =
                places.add_named_pair(binaries, text, ProbeMark::Enter(kind), ProbeMark::Leave(kind))?;
            places.spans.push(name);
        }
        Ok(places)
    }

    /// Every name with its begin and its end: operations first.
    pub fn begin_end_pairs(&self) -> impl Iterator<Item = (&String, &ProbePoint, &ProbePoint)> {
        let pairs = self.places.as_chunks::<2>().0;
        self.operations.iter().chain(&self.spans).zip(pairs).map(|(name, [begin, end])| (name, begin, end))
    }

    /// The files in which they are.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = self.places.iter().map(|place| place.path.clone()).collect();
        files.sort();
        files.dedup();
        files
    }

    fn add_named_pair(
        &mut self,
        binaries: &mut ProgramBinaries,
        text: &str,
        begins: ProbeMark,
        ends: ProbeMark,
    ) -> Result<String, Failure> {
        let (name, begin_text, end_text) = split_pair_text(text);
        let begin = ProbePlaceText::parse(begin_text)?;
        let function = if end_text.is_none() { begin.find_function(binaries)? } else { None };
        let framed = function.is_some();
        let (begin_place, end_place) = match (function, end_text) {
            (Some(found), _) => {
                let place = |sites| ProbePoint { path: found.path.clone(), sites, condition: None };
                (place(vec![found.function.begin]), place(found.function.ends))
            }
            (None, Some(end)) => {
                (begin.find_probed_place(binaries)?, ProbePlaceText::parse(end)?.find_probed_place(binaries)?)
            }
            (None, None) => {
                let ProbePlaceKind::Probe(probe, filter) = &begin.kind else {
                    return Err(UsageError::new(
                        format!("`{text}` is no place"),
                        "see `trace attach --help`",
                    )
                    .into());
                };
                let program = begin.file_with_probe(binaries, probe)?;
                let end = find_end_probe(program, probe)?;
                (program.probe_point(probe, filter.as_ref())?, program.probe_point(&end, filter.as_ref())?)
            }
        };
        self.marks.extend([begins, ends]);
        let go = |place: &ProbePoint| binaries.program().is_go() && place.path == binaries.program().path();
        self.go.extend([go(&begin_place), go(&end_place)]);
        self.places.extend([begin_place, end_place]);
        self.framed.extend([framed, framed]);
        Ok(name.unwrap_or_else(|| probe_stem(begin_text)).to_owned())
    }
}

/// `[NAME=]BEGIN[,END]`, at an equals sign and a comma that are no part of a place: not in brackets, and not of `operator=`.
fn split_pair_text(text: &str) -> (Option<&str>, &str, Option<&str>) {
    let named = text.split_once('=').filter(|(name, rest)| {
        !name.contains(['[', '(', '<', ':', '"']) && !name.ends_with("operator") && !rest.starts_with('=')
    });
    let (name, places) = named.map_or((None, text), |(name, places)| (Some(name), places));
    let (mut depth, mut quoted) = (0_i32, false);
    let comma = places.char_indices().find(|(_, letter)| {
        match letter {
            '"' => quoted = !quoted,
            '(' | '[' | '<' if !quoted => depth += 1,
            ')' | ']' | '>' if !quoted => depth -= 1,
            _ => {}
        }
        *letter == ',' && depth <= 0 && !quoted
    });
    let both = comma.and_then(|(at, _)| Some((places.get(..at)?, places.get(at + 1..)?)));
    both.map_or((name, places, None), |(begin, end)| (name, begin, Some(end)))
}

const PAIRS: [(&str, &[&str]); 3] =
    [("begin", &["end", ""]), ("entry", &["return", "exit"]), ("start", &["done", "end", "stop"])];

/// A probe's name without its provider and its `_begin`; the text that it is filtered by, where that is one.
fn probe_stem(begin: &str) -> &str {
    let (begin, filter) = match begin.split_once('[') {
        Some((begin, filter)) if begin.contains(':') && !begin.contains("operator") => (begin, Some(filter)),
        _ => (begin, None),
    };
    let mut quoted = filter.unwrap_or_default().split('"').skip(1).step_by(2);
    if let (Some(text), None) = (quoted.next().filter(|text| !text.is_empty()), quoted.next()) {
        return text;
    }
    let name = begin.rsplit(':').next().unwrap_or(begin);
    let without = PAIRS.iter().find_map(|(word, _)| {
        let stem = name.strip_suffix(word)?;
        stem.ends_with(['_', '-']).then(|| stem.trim_end_matches(['_', '-']))
    });
    without.filter(|stem| !stem.is_empty()).unwrap_or(name)
}

/// The USDT probe that ends what another one begins.
fn find_end_probe(program: &ProbedProgram, begin: &str) -> Result<String, Failure> {
    // A probe that is not there is reported as such.
    program.probe_point(begin, None)?;
    let ends = PAIRS.iter().filter_map(|(word, ends)| Some((begin.strip_suffix(word)?, ends)));
    let named = ends.flat_map(|(stem, ends)| ends.iter().map(move |end| format!("{stem}{end}")));
    let known = named.map(|name| name.trim_end_matches(['_', '-']).to_owned());
    let found = known.into_iter().find(|name| program.probe_names().any(|probe| probe == name));
    Ok(found.ok_or_else(|| {
        let probes: Vec<&str> = program.probe_names().collect();
        UsageError::new(
            format!("nothing says where `{begin}` ends"),
            format!("write {begin},END with one of {}", probes.join(", ")),
        )
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use super::{probe_stem, split_pair_text};

    fn parse_place(text: &str) -> (Option<&str>, ProbePlaceKind<'_>) {
        let place = ProbePlaceText::parse(text).unwrap();
        (place.file, place.kind)
    }

    #[test]
    fn a_place_is_a_function_an_address_or_a_probe_of_a_file() {
        use ProbePlaceKind::{Address, Function, Probe};
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
            assert_eq!(parse_place(text), (file, what), "{text}");
        }
        insta::assert_snapshot!(ProbePlaceText::parse("python:x[arg2]").unwrap_err(), @r#"`python:x[arg2]`: `arg2` is no comparison: write argN=="TEXT", argN~"TEXT*" or argN>NUMBER; for example [arg2=="f"]"#);
    }

    #[test]
    fn code_without_a_file_is_told_from_libraries() {
        let maps = "7f00-7f10 r-xp 00000000 fe:00 12   /lib/libc.so.6\n7f20-7f40 rwxp 00000000 00:00 0 \n7f50-7f60 rw-p 0 0:0 0\n";
        assert_eq!(
            maps.lines().filter_map(parse_code_mapping).collect::<Vec<_>>(),
            [(0x10, "/lib/libc.so.6"), (0x20, "")]
        );
    }

    #[test]
    fn names_are_what_is_common_to_begin_and_end() {
        let named =
            ["slablist:reaped_begin", "x:query-start", "malloc", "a::b::insert", "begin"].map(probe_stem);
        assert_eq!(named, ["reaped", "query", "malloc", "insert", "begin"]);
        let filtered =
            ["python:function__entry[arg2==\"f\"]", "python:function__entry[arg3>5]", "libc.so.6:malloc"];
        assert_eq!(filtered.map(probe_stem), ["f", "function", "malloc"]);
    }

    #[test]
    fn a_name_and_an_end_are_told_from_what_belongs_to_a_place() {
        let cases = [
            ("insert", (None, "insert", None)),
            ("op=insert", (Some("op"), "insert", None)),
            ("x=a:b,a:c", (Some("x"), "a:b", Some("a:c"))),
            ("p:entry[arg2==\"a,b\"],p:return", (None, "p:entry[arg2==\"a,b\"]", Some("p:return"))),
            ("f=p:entry[arg2==\"f\"]", (Some("f"), "p:entry[arg2==\"f\"]", None)),
            ("tree::put(int, long)", (None, "tree::put(int, long)", None)),
            ("map<int, long>::get", (None, "map<int, long>::get", None)),
            ("tree::operator==(tree const&)", (None, "tree::operator==(tree const&)", None)),
        ];
        for (text, requested) in cases {
            assert_eq!(split_pair_text(text), requested, "{text}");
        }
    }
}
