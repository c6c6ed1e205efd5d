//! The places of an ELF file that can be probed: functions by symbol, USDT probes by note. Owns the way from addresses, as
//! they were linked, to offsets in the file, which is what the kernel wants.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use elf::ElfBytes;
use elf::abi::{PT_LOAD, STT_FUNC, STT_GNU_IFUNC};
use elf::endian::AnyEndian;
use elf::note::Note as ElfNote;

use super::ProbeError;
use super::note::{KIND, Note};

/// One place, in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    /// Bytes from the beginning of the file.
    pub offset: u64,
    /// The semaphore that the program looks at before it comes here, if there is one: its offset in the file.
    pub semaphore: Option<u64>,
}

/// When a place is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A thread comes to it: a function's first instruction, or a USDT probe.
    Reached(Site),
    /// The function that begins here returns.
    Returned(Site),
}

/// What can be probed in a program or a library.
#[derive(Debug, Clone, Default)]
pub struct Program {
    path: PathBuf,
    functions: BTreeMap<String, u64>,
    /// by `provider:name`; inlined ones have several sites
    probes: BTreeMap<String, Vec<Site>>,
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
        let mut program = Program { path: path.into(), ..Program::default() };
        for table in [file.symbol_table(), file.dynamic_symbol_table()] {
            let Ok(Some((symbols, names))) = table else { continue };
            for symbol in symbols.iter().filter(|symbol| symbol.st_size > 0 || symbol.st_value > 0) {
                let function =
                    [STT_FUNC, STT_GNU_IFUNC].contains(&symbol.st_symtype()) && !symbol.is_undefined();
                let offset = offset(&loads, symbol.st_value).filter(|_| function);
                if let (Some(offset), Ok(name)) = (offset, names.get(symbol.st_name as usize)) {
                    program.functions.entry(name.into()).or_insert(offset);
                }
            }
        }
        for note in notes(&file) {
            if let Some(site) = site(&file, &loads, &note) {
                program.probes.entry(format!("{}:{}", note.provider, note.name)).or_default().push(site);
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

    /// Where a function begins: by its symbol, or by its name without what Rust and C++ put around it where that is one
    /// function only.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn function(&self, name: &str) -> Result<Site, ProbeError> {
        let exact = self.functions.get(name).copied();
        let plain = || {
            let mut like = self.functions.iter().filter(|(symbol, _)| plain(symbol) == name);
            like.next().filter(|_| like.next().is_none()).map(|(_, offset)| *offset)
        };
        let offset = exact.or_else(plain);
        offset.map(|offset| Site { offset, semaphore: None }).ok_or_else(|| self.none("function", name))
    }

    /// Where a USDT probe `provider:name` is.
    ///
    /// # Errors
    /// There is none.
    pub fn probe(&self, name: &str) -> Result<&[Site], ProbeError> {
        self.probes.get(name).map(Vec::as_slice).ok_or_else(|| self.none("USDT probe", name))
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
                "it has no symbols: it was stripped, or --program names a part that has some".into()
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
    })
}
