//! The points of an ELF file that can be probed: functions by symbol, USDT probes by note.
//!
//! Addresses, as they were linked, are made into offsets in the file, which is what the kernel wants. A note of
//! `.note.stapsdt`, version 3, says where a USDT probe is, its semaphore, its provider and name, and where its
//! arguments are; what the arguments mean is in `usdt_condition`.
//!
//! Source: <https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation>

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use elf::ElfBytes;
use elf::abi::{EM_386, EM_AARCH64, EM_X86_64, PT_GNU_EH_FRAME, PT_INTERP, PT_LOAD, STT_FUNC, STT_GNU_IFUNC};
use elf::endian::AnyEndian;
use elf::note::Note as ElfNote;

use crate::little_endian::read_u64_at;
use crate::probes::error::ProbeError;
use crate::probes::function_code::{self, InstructionPoint, InstructionSet, ProgramCode};
use crate::probes::usdt_condition::ArgumentFilter;

/// One point, in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeSite {
    /// Bytes from the beginning of the file.
    pub offset: u64,
    /// The semaphore that the program looks at before it comes here, if there is one: its offset in the file.
    pub semaphore: Option<u64>,
    /// The kernel has to step over the instruction, which costs more than to emulate it.
    pub stepped: bool,
}

/// Where something is, in a file, that threads come by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbePoint {
    /// The file.
    pub path: PathBuf,
    /// All sites of it.
    pub sites: Vec<ProbeSite>,
    /// What must be so for a thread to count, and what is to be fetched for that at each of the sites.
    pub condition: Option<ProbeCondition>,
}

/// A condition as the kernel evaluates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeCondition {
    /// `arg2 == "f"`
    pub(crate) text: String,
    /// of each site: `arg2=+0(%r12):string`
    pub(crate) fetched: Vec<String>,
}

/// Where a function is entered, and where it is left: its return instructions and its jumps to other functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbedFunction {
    /// What every call passes once, before the stack pointer moves.
    pub begin: ProbeSite,
    /// With the stack pointer where it was at the begin.
    pub ends: Vec<ProbeSite>,
}

/// A function as the symbol table has it.
#[derive(Debug, Clone, Copy)]
struct ProgramSymbol {
    address: u64,
    /// 0: unknown
    size: u64,
    /// the loader calls it once, to choose the function that is meant
    chooses: bool,
}

/// What can be probed in a program or a library.
#[derive(Debug, Clone, Default)]
pub struct ProbedProgram {
    path: PathBuf,
    functions: BTreeMap<String, ProgramSymbol>,
    /// the first name of each address
    names: BTreeMap<u64, String>,
    bytes: Vec<u8>,
    loads: Vec<LoadSegment>,
    /// begin and end of every function that the unwind tables know, by begin
    parts: BTreeMap<u64, u64>,
    machine: Option<InstructionSet>,
    go: bool,
    /// by `provider:name`; inlined ones have several sites, each with its arguments
    probes: BTreeMap<String, Vec<(ProbeSite, String)>>,
    interpreter: Option<PathBuf>,
}

impl ProbedProgram {
    /// Reads a file's symbols and notes.
    ///
    /// # Errors
    /// It cannot be read, or is not an ELF file.
    pub fn read(path: &Path) -> Result<ProbedProgram, ProbeError> {
        let bytes = std::fs::read(path).map_err(|source| ProbeError::Read { path: path.into(), source })?;
        ProbedProgram::parse(path, &bytes)
    }

    /// The same of bytes.
    ///
    /// # Errors
    /// They are not ELF files.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<ProbedProgram, ProbeError> {
        let wrong =
            |reason: elf::ParseError| ProbeError::NotElf { path: path.into(), reason: reason.to_string() };
        let file = ElfBytes::<AnyEndian>::minimal_parse(bytes).map_err(wrong)?;
        let loads = read_load_segments(&file);
        let bits = if file.ehdr.class == elf::file::Class::ELF64 { 64 } else { 32 };
        let machine = match file.ehdr.e_machine {
            EM_X86_64 | EM_386 => Some(InstructionSet::X86(bits)),
            EM_AARCH64 => Some(InstructionSet::Arm64),
            _ => None,
        };
        let mut program = ProbedProgram {
            path: path.into(),
            machine,
            bytes: bytes.to_vec(),
            parts: read_function_parts(&file, &loads, bytes),
            go: find_section(&file, ".note.go.buildid").is_some()
                || find_section(&file, ".gopclntab").is_some(),
            ..ProbedProgram::default()
        };
        for table in [file.symbol_table(), file.dynamic_symbol_table()] {
            let Ok(Some((symbols, names))) = table else { continue };
            for symbol in symbols.iter().filter(|symbol| symbol.st_size > 0 || symbol.st_value > 0) {
                let function =
                    [STT_FUNC, STT_GNU_IFUNC].contains(&symbol.st_symtype()) && !symbol.is_undefined();
                let offset = file_offset(&loads, symbol.st_value).filter(|_| function);
                if let (Some(_), Ok(name)) = (offset, names.get(symbol.st_name as usize)) {
                    let chooses = symbol.st_symtype() == STT_GNU_IFUNC;
                    let found = ProgramSymbol { address: symbol.st_value, size: symbol.st_size, chooses };
                    program.functions.entry(name.into()).or_insert(found);
                    program.names.entry(symbol.st_value).or_insert_with(|| name.into());
                }
            }
        }
        program.loads = loads.clone();
        program.interpreter = read_interpreter(&file, bytes);
        for note in read_usdt_notes(&file) {
            if let Some(site) = site_of_note(&file, &loads, &note) {
                let sites = program.probes.entry(format!("{}:{}", note.provider, note.name)).or_default();
                sites.push((site, note.arguments));
            }
        }
        Ok(program)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its USDT probes, as `provider:name`.
    pub fn probe_names(&self) -> impl Iterator<Item = &str> {
        self.probes.keys().map(String::as_str)
    }

    /// Its functions, as the symbol table has them.
    pub fn function_names(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }

    /// Where functions begin that unwind tables know, whatever they are called: what there is in a stripped file.
    pub fn function_addresses(&self) -> impl Iterator<Item = u64> {
        self.parts.keys().copied()
    }

    /// What loads it and its libraries; none of a static program.
    pub fn interpreter(&self) -> Option<&Path> {
        self.interpreter.as_deref()
    }

    /// Whether its symbol table has a function of just that name.
    pub fn has_symbol(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// Whether it has a function of that name, whatever is wrong with it.
    pub fn has_function(&self, name: &str) -> bool {
        self.functions.contains_key(name) || !self.symbols_named(name).is_empty()
    }

    /// Where the function begins and ends that begins at an address, as it was linked.
    ///
    /// # Errors
    /// No unwind table has one there, or its ends are unknown.
    pub fn function_at(&self, address: u64) -> Result<ProbedFunction, ProbeError> {
        let name = format!("{address:#x}");
        let end = self.parts.get(&address).copied().ok_or_else(|| {
            let near = self
                .parts
                .range(..=address)
                .next_back()
                .map_or(String::new(), |(begin, _)| format!(": the nearest begins at {begin:#x}"));
            self.unsafe_function_error(
                &name,
                format!("no unwind table names a function that begins there{near}"),
            )
        })?;
        self.function_between(&name, address, end)
    }

    /// The instruction at an address, as it was linked.
    ///
    /// # Errors
    /// None begins there: a probe in the middle of one would destroy it.
    pub fn site_at(&self, address: u64) -> Result<ProbeSite, ProbeError> {
        let name = format!("{address:#x}");
        let wrong = |reason: String| self.unsafe_function_error(&name, reason);
        let machine = self.machine.ok_or_else(|| wrong(UNKNOWN_MACHINE.into()))?;
        let part = self
            .function_part(address)
            .ok_or_else(|| wrong("no unwind table names a function there".into()))?;
        let point = function_code::find_point_at(self, machine, part, address, self.go).map_err(wrong)?;
        self.site_of_point(point).ok_or_else(|| wrong(NOT_IN_FILE.into()))
    }

    /// Where a function begins and ends: by its symbol, by its name as it was written (C++, Rust), or by its last name,
    /// where that is one function only.
    ///
    /// # Errors
    /// There is none, or more than one, or its ends are unknown.
    pub fn function(&self, name: &str) -> Result<ProbedFunction, ProbeError> {
        let symbol = self.find_symbol(name)?;
        let wrong = |reason: &str| self.unsafe_function_error(name, reason.into());
        if symbol.chooses {
            return Err(wrong("the loader calls it once, to choose the function that is meant"));
        }
        let known = (symbol.size > 0).then(|| symbol.address + symbol.size);
        let end = known.or_else(|| self.parts.get(&symbol.address).copied());
        let end = end.ok_or_else(|| wrong("neither its symbol nor an unwind table says how long it is"))?;
        self.function_between(name, symbol.address, end)
    }

    fn function_between(&self, name: &str, begin: u64, end: u64) -> Result<ProbedFunction, ProbeError> {
        let wrong = |reason: String| self.unsafe_function_error(name, reason);
        let machine = self.machine.ok_or_else(|| wrong(UNKNOWN_MACHINE.into()))?;
        let points =
            function_code::find_function_points(self, machine, (begin, end), self.go).map_err(wrong)?;
        let ends: Option<Vec<ProbeSite>> =
            points.ends.into_iter().map(|point| self.site_of_point(point)).collect();
        let both =
            self.site_of_point(points.begin).zip(ends).map(|(begin, ends)| ProbedFunction { begin, ends });
        both.ok_or_else(|| wrong(NOT_IN_FILE.into()))
    }

    fn site_of_point(&self, point: InstructionPoint) -> Option<ProbeSite> {
        let offset = file_offset(&self.loads, point.address)?;
        Some(ProbeSite { offset, semaphore: None, stepped: point.stepped })
    }

    fn unsafe_function_error(&self, name: &str, reason: String) -> ProbeError {
        ProbeError::Unsafe { path: self.path.clone(), name: name.into(), reason }
    }

    /// Where a function begins, whatever its ends are.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn entry_site(&self, name: &str) -> Result<ProbeSite, ProbeError> {
        if let Ok(function) = self.function(name) {
            return Ok(function.begin);
        }
        let offset = file_offset(&self.loads, self.find_symbol(name)?.address);
        let offset = offset.ok_or_else(|| self.not_found_error("function", name))?;
        Ok(ProbeSite { offset, semaphore: None, stepped: true })
    }

    /// Whether it is written in Go, whose stacks move and whose routines change threads.
    pub fn is_go(&self) -> bool {
        self.go
    }

    fn find_symbol(&self, name: &str) -> Result<ProgramSymbol, ProbeError> {
        if let Some(exact) = self.functions.get(name) {
            return Ok(*exact);
        }
        match self.symbols_named(name).as_slice() {
            [(_, one)] => Ok(*one),
            [] => Err(self.not_found_error("function", name)),
            several => {
                let names: Vec<String> =
                    several.iter().take(8).map(|(symbol, _)| demangle_name(symbol)).collect();
                let hint = format!("{} are called so, write one of: {}", several.len(), names.join(", "));
                let what = "single function";
                Err(ProbeError::NoPlace { path: self.path.clone(), what, name: name.into(), hint })
            }
        }
    }

    /// Symbols of functions that are called so as they were written, or, where there are none, by their last name.
    fn symbols_named(&self, name: &str) -> Vec<(&String, ProgramSymbol)> {
        let named = |fits: &dyn Fn(&str) -> bool| -> Vec<(&String, ProgramSymbol)> {
            let mut seen = std::collections::HashSet::new();
            let like = self.functions.iter().filter(|(symbol, _)| fits(symbol) && !symbol.contains(".cold"));
            like.filter(|(_, found)| seen.insert(found.address))
                .map(|(symbol, found)| (symbol, *found))
                .collect()
        };
        let written = named(&|symbol| {
            let text = demangle_name(symbol);
            text == name || text.strip_prefix(name).is_some_and(|rest| rest.starts_with(['(', '<']))
        });
        if written.is_empty() { named(&|symbol| demangled_last_name(symbol) == name) } else { written }
    }

    /// Where a USDT probe `provider:name` is, for all that come there or for those that a filter of its arguments lets
    /// through.
    ///
    /// # Errors
    /// There is none, or its arguments cannot be read.
    pub fn probe_point(&self, name: &str, filter: Option<&ArgumentFilter>) -> Result<ProbePoint, ProbeError> {
        let all = self.probes.get(name).ok_or_else(|| self.not_found_error("USDT probe", name))?;
        let fetched = |filter: &ArgumentFilter| {
            let fetched =
                all.iter().map(|(_, arguments)| filter.fetch_arguments(arguments)).collect::<Result<_, _>>();
            fetched.map(|fetched| ProbeCondition { text: filter.condition(), fetched })
        };
        let condition = filter.map(fetched).transpose().map_err(|reason| ProbeError::NoConditions {
            reason: format!("`{name}` of {}: {reason}", self.path.display()),
        })?;
        Ok(ProbePoint {
            path: self.path.clone(),
            sites: all.iter().map(|(site, _)| *site).collect(),
            condition,
        })
    }

    fn not_found_error(&self, what: &'static str, name: &str) -> ProbeError {
        ProbeError::NoPlace {
            path: self.path.clone(),
            what,
            name: name.into(),
            hint: self.suggest_names(what, name),
        }
    }

    /// What there is instead.
    fn suggest_names(&self, what: &str, name: &str) -> String {
        let like = |name: &str| -> Vec<&str> {
            let part = name.rsplit(':').next().unwrap_or(name);
            self.function_names().filter(|symbol| symbol.contains(part)).take(5).collect()
        };
        let probes: Vec<&str> = self.probe_names().collect();
        match what {
            "function" if self.functions.is_empty() => {
                "it has no symbols: it was stripped; an address as it was linked does as well (0x1234; --list prints \
                 where functions begin), or FILE:FUNCTION of a library that has some"
                    .into()
            }
            "function" if like(name).is_empty() => {
                let names = self.function_names().map(last_name_or_symbol).collect::<Vec<_>>();
                perflab_model::problem::suggest_name(name, names.iter().map(String::as_str))
            }
            "function" => format!("like it: {}", like(name).join(", ")),
            _ if probes.is_empty() => format!(
                "it has no USDT probes at all, but {} functions, which can be begins and ends too (--list names them)",
                self.functions.len()
            ),
            _ => format!("its USDT probes: {}", probes.join(", ")),
        }
    }
}

impl ProgramCode for ProbedProgram {
    fn bytes_from(&self, address: u64) -> Option<&[u8]> {
        let (begin, length, offset) =
            self.loads.iter().find(|(begin, length, _)| address >= *begin && address - begin < *length)?;
        let from = usize::try_from(address - begin + offset).ok()?;
        let to = usize::try_from(offset.checked_add(*length)?).ok()?;
        self.bytes.get(from..to.min(self.bytes.len()))
    }

    fn function_name(&self, address: u64) -> Option<&str> {
        self.names.get(&address).map(String::as_str)
    }

    fn function_part(&self, address: u64) -> Option<(u64, u64)> {
        let (begin, end) = self.parts.range(..=address).next_back()?;
        (address < *end).then_some((*begin, *end))
    }
}

/// A name as it was written, without a hash.
fn demangle_name(symbol: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return format!("{name:#}");
    }
    let name = symbol.starts_with("_Z").then(|| cpp_demangle::Symbol::new(symbol).ok()).flatten();
    name.and_then(|name| name.demangle().ok()).unwrap_or_else(|| symbol.to_owned())
}

/// Begin and end of each function, of the sorted table in `.eh_frame_hdr`; nothing where its encoding is a rare one.
fn read_function_parts(
    file: &ElfBytes<'_, AnyEndian>,
    loads: &[LoadSegment],
    bytes: &[u8],
) -> BTreeMap<u64, u64> {
    let mut parts = BTreeMap::new();
    let header = file.segments().and_then(|all| all.iter().find(|one| one.p_type == PT_GNU_EH_FRAME));
    let Some(header) = header else { return parts };
    let word = |at: u64| {
        let at = usize::try_from(at).ok()?;
        bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
    };
    // Version 1, the frame's address beside itself, the count as it is, and pairs that are relative to the header.
    let known = bytes
        .get(usize::try_from(header.p_offset).unwrap_or(usize::MAX)..)
        .is_some_and(|bytes| bytes.starts_with(&[1, 0x1b, 0x03, 0x3b]));
    let count = word(header.p_offset.saturating_add(8)).filter(|_| known).unwrap_or(0);
    let count = u64::from(count).min(header.p_filesz / 8);
    for entry in 0..count {
        let at = header.p_offset + 12 + entry * 8;
        let address = |at: u64| Some(header.p_vaddr.wrapping_add_signed(i64::from(word(at)? as i32)));
        let both = address(at).zip(address(at + 4));
        let length = both.and_then(|(_, frame)| word(file_offset(loads, frame)?.checked_add(12)?));
        if let (Some((begin, _)), Some(length)) = (both, length) {
            parts.insert(begin, begin.saturating_add(u64::from(length)));
        }
    }
    parts
}

const UNKNOWN_MACHINE: &str = "its machine's instructions are not known here";

const NOT_IN_FILE: &str = "it does not lie in the file";

fn read_interpreter(file: &ElfBytes<'_, AnyEndian>, bytes: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let named = file.segments()?.iter().find(|segment| segment.p_type == PT_INTERP)?;
    let from = usize::try_from(named.p_offset).ok()?;
    let text = bytes.get(from..)?.get(..usize::try_from(named.p_filesz).ok()?)?;
    let text = text.split(|byte| *byte == 0).next()?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(text)))
}

fn last_name_or_symbol(symbol: &str) -> String {
    demangled_last_name(symbol).to_owned()
}

/// The last name of a mangled symbol (Rust's legacy `_ZN…17h<hash>E`, C++'s `_ZN…E…`, `_Z4name…`); a plain one as it is.
fn demangled_last_name(symbol: &str) -> &str {
    let Some(rest) = symbol.strip_prefix("_ZN").or_else(|| symbol.strip_prefix("_Z")) else { return symbol };
    let (mut rest, mut last) = (rest, symbol);
    while let Some(digits) = rest.find(|letter: char| !letter.is_ascii_digit()).filter(|digits| *digits > 0) {
        let (length, behind) = rest.split_at(digits);
        let Some(name) = length.parse().ok().and_then(|length: usize| behind.get(..length)) else { break };
        if name.len() == 17 && name.starts_with('h') {
            break;
        }
        (last, rest) = (name, behind.get(name.len()..).unwrap_or_default());
    }
    last
}

/// A segment of the file that is loaded: address, length, offset.
type LoadSegment = (u64, u64, u64);

fn read_load_segments(file: &ElfBytes<'_, AnyEndian>) -> Vec<LoadSegment> {
    let segments = file.segments().into_iter().flat_map(|segments| segments.iter());
    let loads = segments.filter(|segment| segment.p_type == PT_LOAD);
    loads.map(|segment| (segment.p_vaddr, segment.p_filesz, segment.p_offset)).collect()
}

fn file_offset(loads: &[LoadSegment], address: u64) -> Option<u64> {
    let inside = |(begin, length, _): &&LoadSegment| address >= *begin && address - begin < *length;
    loads.iter().find(inside).map(|(begin, _, offset)| address - begin + offset)
}

fn find_section(file: &ElfBytes<'_, AnyEndian>, name: &str) -> Option<elf::section::SectionHeader> {
    file.section_header_by_name(name).ok().flatten()
}

fn read_usdt_notes(file: &ElfBytes<'_, AnyEndian>) -> Vec<UsdtNote> {
    let Some(section) = find_section(file, ".note.stapsdt") else { return Vec::new() };
    let Ok(notes) = file.section_data_as_notes(&section) else { return Vec::new() };
    let note = |note| match note {
        ElfNote::Unknown(any) if any.n_type == KIND => UsdtNote::parse(any.desc),
        _ => None,
    };
    notes.filter_map(note).collect()
}

fn site_of_note(file: &ElfBytes<'_, AnyEndian>, loads: &[LoadSegment], note: &UsdtNote) -> Option<ProbeSite> {
    let moved = find_section(file, ".stapsdt.base").map_or(0, |base| base.sh_addr.wrapping_sub(note.base));
    let semaphore = Some(note.semaphore).filter(|address| *address != 0);
    Some(ProbeSite {
        offset: file_offset(loads, note.address.wrapping_add(moved))?,
        semaphore: semaphore.and_then(|address| file_offset(loads, address.wrapping_add(moved))),
        stepped: false,
    })
}

/// The type of such notes.
pub(crate) const KIND: u64 = 3;

/// A USDT probe as its note describes it: addresses as they were linked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsdtNote {
    pub address: u64,
    /// where `.stapsdt.base` was when the note was written: prelinking moves it, and the addresses with it
    pub base: u64,
    /// 0: none
    pub semaphore: u64,
    pub provider: String,
    pub name: String,
    /// `8@%rbp -4@%eax`
    pub arguments: String,
}

impl UsdtNote {
    /// From a note's description, of a 64-bit little-endian file.
    pub(crate) fn parse(description: &[u8]) -> Option<UsdtNote> {
        let word = |at: usize| read_u64_at(description, at * 8);
        let mut texts = description.get(24..)?.split(|byte| *byte == 0);
        let mut text = || Some(String::from_utf8_lossy(texts.next()?).into_owned());
        let (provider, name) = (text()?, text()?);
        let named = !provider.is_empty() && !name.is_empty();
        let arguments = text().unwrap_or_default();
        named.then_some(UsdtNote {
            address: word(0)?,
            base: word(1)?,
            semaphore: word(2)?,
            provider,
            name,
            arguments,
        })
    }
}
