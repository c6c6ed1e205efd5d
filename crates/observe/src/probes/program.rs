//! The places of an ELF file that can be probed: functions by symbol, USDT probes by note. Owns the way from addresses, as
//! they were linked, to offsets in the file, which is what the kernel wants.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use elf::ElfBytes;
use elf::abi::{EM_386, EM_AARCH64, EM_X86_64, PT_GNU_EH_FRAME, PT_INTERP, PT_LOAD, STT_FUNC, STT_GNU_IFUNC};
use elf::endian::AnyEndian;
use elf::note::Note as ElfNote;

use super::attached::{PlaceCondition, ProbedPlace};
use super::function::{self, Code, Machine, Point};
use super::note::{KIND, Note};
use super::{ArgumentFilter, ProbeError};

/// One place, in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    /// Bytes from the beginning of the file.
    pub offset: u64,
    /// The semaphore that the program looks at before it comes here, if there is one: its offset in the file.
    pub semaphore: Option<u64>,
    /// The kernel has to step over the instruction, which costs more than to emulate it.
    pub stepped: bool,
}

/// Where a function is entered, and where it is left: its return instructions and its jumps to other functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// What every call passes once, before the stack pointer moves.
    pub begin: Site,
    /// With the stack pointer where it was at the begin.
    pub ends: Vec<Site>,
}

/// A function as the symbol table has it.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    address: u64,
    /// 0: unknown
    size: u64,
    /// the loader calls it once, to choose the function that is meant
    chooses: bool,
}

/// What can be probed in a program or a library.
#[derive(Debug, Clone, Default)]
pub struct Program {
    path: PathBuf,
    functions: BTreeMap<String, Symbol>,
    /// the first name of each address
    names: BTreeMap<u64, String>,
    bytes: Vec<u8>,
    loads: Vec<Load>,
    /// begin and end of every function that the unwind tables know, by begin
    parts: BTreeMap<u64, u64>,
    machine: Option<Machine>,
    go: bool,
    /// by `provider:name`; inlined ones have several sites, each with its arguments
    probes: BTreeMap<String, Vec<(Site, String)>>,
    interpreter: Option<PathBuf>,
}

impl Program {
    /// Reads a file's symbols and notes.
    ///
    /// # Errors
    /// It cannot be read, or is no ELF file.
    pub fn read(path: &Path) -> Result<Program, ProbeError> {
        let bytes = std::fs::read(path).map_err(|source| ProbeError::Read { path: path.into(), source })?;
        Program::parse(path, &bytes)
    }

    /// The same of bytes.
    ///
    /// # Errors
    /// They are no ELF file.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Program, ProbeError> {
        let wrong =
            |reason: elf::ParseError| ProbeError::NotElf { path: path.into(), reason: reason.to_string() };
        let file = ElfBytes::<AnyEndian>::minimal_parse(bytes).map_err(wrong)?;
        let loads = loads(&file);
        let bits = if file.ehdr.class == elf::file::Class::ELF64 { 64 } else { 32 };
        let machine = match file.ehdr.e_machine {
            EM_X86_64 | EM_386 => Some(Machine::X86(bits)),
            EM_AARCH64 => Some(Machine::Arm64),
            _ => None,
        };
        let mut program = Program {
            path: path.into(),
            machine,
            bytes: bytes.to_vec(),
            parts: parts(&file, &loads, bytes),
            go: section(&file, ".note.go.buildid").is_some() || section(&file, ".gopclntab").is_some(),
            ..Program::default()
        };
        for table in [file.symbol_table(), file.dynamic_symbol_table()] {
            let Ok(Some((symbols, names))) = table else { continue };
            for symbol in symbols.iter().filter(|symbol| symbol.st_size > 0 || symbol.st_value > 0) {
                let function =
                    [STT_FUNC, STT_GNU_IFUNC].contains(&symbol.st_symtype()) && !symbol.is_undefined();
                let offset = offset(&loads, symbol.st_value).filter(|_| function);
                if let (Some(_), Ok(name)) = (offset, names.get(symbol.st_name as usize)) {
                    let chooses = symbol.st_symtype() == STT_GNU_IFUNC;
                    let found = Symbol { address: symbol.st_value, size: symbol.st_size, chooses };
                    program.functions.entry(name.into()).or_insert(found);
                    program.names.entry(symbol.st_value).or_insert_with(|| name.into());
                }
            }
        }
        program.loads = loads.clone();
        program.interpreter = interpreter(&file, bytes);
        for note in notes(&file) {
            if let Some(site) = site(&file, &loads, &note) {
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
    pub fn probes(&self) -> impl Iterator<Item = &str> {
        self.probes.keys().map(String::as_str)
    }

    /// Its functions, as the symbol table has them.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }

    /// Where functions begin that unwind tables know, whatever they are called: what there is in a stripped file.
    pub fn addresses(&self) -> impl Iterator<Item = u64> {
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

    /// Whether it has a function of that name, whatever is to be said about it.
    pub fn has_function(&self, name: &str) -> bool {
        self.functions.contains_key(name) || !self.called(name).is_empty()
    }

    /// Where the function begins and ends that begins at an address, as it was linked.
    ///
    /// # Errors
    /// No unwind table tells of one there, or its ends cannot be told.
    pub fn function_at(&self, address: u64) -> Result<Function, ProbeError> {
        let name = format!("{address:#x}");
        let end = self.parts.get(&address).copied().ok_or_else(|| {
            let near = self
                .parts
                .range(..=address)
                .next_back()
                .map_or(String::new(), |(begin, _)| format!(": the nearest begins at {begin:#x}"));
            self.not_safe(&name, format!("no unwind table tells of a function that begins there{near}"))
        })?;
        self.ends_of(&name, address, end)
    }

    /// The instruction at an address, as it was linked.
    ///
    /// # Errors
    /// None begins there: a probe in the middle of one would destroy it.
    pub fn site_at(&self, address: u64) -> Result<Site, ProbeError> {
        let name = format!("{address:#x}");
        let wrong = |reason: String| self.not_safe(&name, reason);
        let machine = self.machine.ok_or_else(|| wrong(UNKNOWN_MACHINE.into()))?;
        let part =
            self.part(address).ok_or_else(|| wrong("no unwind table tells of a function there".into()))?;
        let point = function::point_at(self, machine, part, address, self.go).map_err(wrong)?;
        self.site(point).ok_or_else(|| wrong(NOT_IN_FILE.into()))
    }

    /// Where a function begins and ends: by its symbol, by its name as it was written (C++, Rust), or by its last name,
    /// where that is one function only.
    ///
    /// # Errors
    /// There is none, or more than one, or its ends cannot be told.
    pub fn function(&self, name: &str) -> Result<Function, ProbeError> {
        let symbol = self.symbol(name)?;
        let wrong = |reason: &str| self.not_safe(name, reason.into());
        if symbol.chooses {
            return Err(wrong("the loader calls it once, to choose the function that is meant"));
        }
        let known = (symbol.size > 0).then(|| symbol.address + symbol.size);
        let end = known.or_else(|| self.parts.get(&symbol.address).copied());
        let end = end.ok_or_else(|| wrong("neither its symbol nor an unwind table says how long it is"))?;
        self.ends_of(name, symbol.address, end)
    }

    fn ends_of(&self, name: &str, begin: u64, end: u64) -> Result<Function, ProbeError> {
        let wrong = |reason: String| self.not_safe(name, reason);
        let machine = self.machine.ok_or_else(|| wrong(UNKNOWN_MACHINE.into()))?;
        let points = function::points(self, machine, (begin, end), self.go).map_err(wrong)?;
        let ends: Option<Vec<Site>> = points.ends.into_iter().map(|point| self.site(point)).collect();
        let both = self.site(points.begin).zip(ends).map(|(begin, ends)| Function { begin, ends });
        both.ok_or_else(|| wrong(NOT_IN_FILE.into()))
    }

    fn site(&self, point: Point) -> Option<Site> {
        let offset = offset(&self.loads, point.address)?;
        Some(Site { offset, semaphore: None, stepped: point.stepped })
    }

    fn not_safe(&self, name: &str, reason: String) -> ProbeError {
        ProbeError::Unsafe { path: self.path.clone(), name: name.into(), reason }
    }

    /// Where a function begins, whatever its ends are.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn entry(&self, name: &str) -> Result<Site, ProbeError> {
        if let Ok(function) = self.function(name) {
            return Ok(function.begin);
        }
        let offset = offset(&self.loads, self.symbol(name)?.address);
        let offset = offset.ok_or_else(|| self.none("function", name))?;
        Ok(Site { offset, semaphore: None, stepped: true })
    }

    /// Whether it is written in Go, whose stacks move and whose routines change threads.
    pub fn is_go(&self) -> bool {
        self.go
    }

    fn symbol(&self, name: &str) -> Result<Symbol, ProbeError> {
        if let Some(exact) = self.functions.get(name) {
            return Ok(*exact);
        }
        match self.called(name).as_slice() {
            [(_, one)] => Ok(*one),
            [] => Err(self.none("function", name)),
            several => {
                let names: Vec<String> =
                    several.iter().take(8).map(|(symbol, _)| demangled(symbol)).collect();
                let hint = format!("{} are called so, write one of: {}", several.len(), names.join(", "));
                let what = "single function";
                Err(ProbeError::NoPlace { path: self.path.clone(), what, name: name.into(), hint })
            }
        }
    }

    /// Symbols of functions that are called so as they were written, or, where there are none, by their last name.
    fn called(&self, name: &str) -> Vec<(&String, Symbol)> {
        let named = |fits: &dyn Fn(&str) -> bool| -> Vec<(&String, Symbol)> {
            let mut seen = std::collections::HashSet::new();
            let like = self.functions.iter().filter(|(symbol, _)| fits(symbol) && !symbol.contains(".cold"));
            like.filter(|(_, found)| seen.insert(found.address))
                .map(|(symbol, found)| (symbol, *found))
                .collect()
        };
        let written = named(&|symbol| {
            let text = demangled(symbol);
            text == name || text.strip_prefix(name).is_some_and(|rest| rest.starts_with(['(', '<']))
        });
        if written.is_empty() { named(&|symbol| plain(symbol) == name) } else { written }
    }

    /// Where a USDT probe `provider:name` is, for all that come there or for those that a filter of its arguments lets
    /// through.
    ///
    /// # Errors
    /// There is none, or its arguments cannot be read.
    pub fn probe(&self, name: &str, filter: Option<&ArgumentFilter>) -> Result<ProbedPlace, ProbeError> {
        let all = self.probes.get(name).ok_or_else(|| self.none("USDT probe", name))?;
        let fetched = |filter: &ArgumentFilter| {
            let fetched =
                all.iter().map(|(_, arguments)| filter.fetched(arguments)).collect::<Result<_, _>>();
            fetched.map(|fetched| PlaceCondition { text: filter.condition(), fetched })
        };
        let condition = filter.map(fetched).transpose().map_err(|reason| ProbeError::NoConditions {
            reason: format!("`{name}` of {}: {reason}", self.path.display()),
        })?;
        Ok(ProbedPlace {
            path: self.path.clone(),
            sites: all.iter().map(|(site, _)| *site).collect(),
            condition,
        })
    }

    fn none(&self, what: &'static str, name: &str) -> ProbeError {
        ProbeError::NoPlace { path: self.path.clone(), what, name: name.into(), hint: self.hint(what, name) }
    }

    /// What there is instead.
    fn hint(&self, what: &str, name: &str) -> String {
        let like = |name: &str| -> Vec<&str> {
            let part = name.rsplit(':').next().unwrap_or(name);
            self.functions().filter(|symbol| symbol.contains(part)).take(5).collect()
        };
        let probes: Vec<&str> = self.probes().collect();
        match what {
            "function" if self.functions.is_empty() => {
                "it has no symbols: it was stripped; an address as it was linked does as well (0x1234; --list prints \
                 where functions begin), or FILE:FUNCTION of a library that has some"
                    .into()
            }
            "function" if like(name).is_empty() => {
                let names = self.functions().map(plain_text).collect::<Vec<_>>();
                perflab_model::nearest::hint(name, names.iter().map(String::as_str))
            }
            "function" => format!("like it: {}", like(name).join(", ")),
            _ if probes.is_empty() => format!(
                "it has no USDT probes at all, and {} functions, which can be begins and ends too (--list names them)",
                self.functions.len()
            ),
            _ => format!("its USDT probes: {}", probes.join(", ")),
        }
    }
}

impl Code for Program {
    fn bytes(&self, address: u64) -> Option<&[u8]> {
        let (begin, length, offset) =
            self.loads.iter().find(|(begin, length, _)| address >= *begin && address - begin < *length)?;
        let from = usize::try_from(address - begin + offset).ok()?;
        let to = usize::try_from(offset.checked_add(*length)?).ok()?;
        self.bytes.get(from..to.min(self.bytes.len()))
    }

    fn name(&self, address: u64) -> Option<&str> {
        self.names.get(&address).map(String::as_str)
    }

    fn part(&self, address: u64) -> Option<(u64, u64)> {
        let (begin, end) = self.parts.range(..=address).next_back()?;
        (address < *end).then_some((*begin, *end))
    }
}

/// A name as it was written, without a hash.
fn demangled(symbol: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return format!("{name:#}");
    }
    let name = symbol.starts_with("_Z").then(|| cpp_demangle::Symbol::new(symbol).ok()).flatten();
    name.and_then(|name| name.demangle().ok()).unwrap_or_else(|| symbol.to_owned())
}

/// Begin and end of each function, of the sorted table in `.eh_frame_hdr`; nothing where its encoding is a rare one.
fn parts(file: &ElfBytes<'_, AnyEndian>, loads: &[Load], bytes: &[u8]) -> BTreeMap<u64, u64> {
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
        let length = both.and_then(|(_, frame)| word(offset(loads, frame)?.checked_add(12)?));
        if let (Some((begin, _)), Some(length)) = (both, length) {
            parts.insert(begin, begin.saturating_add(u64::from(length)));
        }
    }
    parts
}

const UNKNOWN_MACHINE: &str = "its machine's instructions are not known here";
const NOT_IN_FILE: &str = "it does not lie in the file";

fn interpreter(file: &ElfBytes<'_, AnyEndian>, bytes: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let named = file.segments()?.iter().find(|segment| segment.p_type == PT_INTERP)?;
    let from = usize::try_from(named.p_offset).ok()?;
    let text = bytes.get(from..)?.get(..usize::try_from(named.p_filesz).ok()?)?;
    let text = text.split(|byte| *byte == 0).next()?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(text)))
}

fn plain_text(symbol: &str) -> String {
    plain(symbol).to_owned()
}

/// The last name of a mangled symbol (Rust's legacy `_ZN…17h<hash>E`, C++'s `_ZN…E…`, `_Z4name…`); a plain one as it is.
fn plain(symbol: &str) -> &str {
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

/// A stretch of the file that is loaded: address, length, offset.
type Load = (u64, u64, u64);

fn loads(file: &ElfBytes<'_, AnyEndian>) -> Vec<Load> {
    let segments = file.segments().into_iter().flat_map(|segments| segments.iter());
    let loads = segments.filter(|segment| segment.p_type == PT_LOAD);
    loads.map(|segment| (segment.p_vaddr, segment.p_filesz, segment.p_offset)).collect()
}

fn offset(loads: &[Load], address: u64) -> Option<u64> {
    let inside = |(begin, length, _): &&Load| address >= *begin && address - begin < *length;
    loads.iter().find(inside).map(|(begin, _, offset)| address - begin + offset)
}

fn section(file: &ElfBytes<'_, AnyEndian>, name: &str) -> Option<elf::section::SectionHeader> {
    file.section_header_by_name(name).ok().flatten()
}

fn notes(file: &ElfBytes<'_, AnyEndian>) -> Vec<Note> {
    let Some(section) = section(file, ".note.stapsdt") else { return Vec::new() };
    let Ok(notes) = file.section_data_as_notes(&section) else { return Vec::new() };
    let note = |note| match note {
        ElfNote::Unknown(any) if any.n_type == KIND => Note::parse(any.desc),
        _ => None,
    };
    notes.filter_map(note).collect()
}

fn site(file: &ElfBytes<'_, AnyEndian>, loads: &[Load], note: &Note) -> Option<Site> {
    let moved = section(file, ".stapsdt.base").map_or(0, |base| base.sh_addr.wrapping_sub(note.base));
    let semaphore = Some(note.semaphore).filter(|address| *address != 0);
    Some(Site {
        offset: offset(loads, note.address.wrapping_add(moved))?,
        semaphore: semaphore.and_then(|address| offset(loads, address.wrapping_add(moved))),
        stepped: false,
    })
}
