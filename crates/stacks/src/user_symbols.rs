//! Names in programs, libraries and run-time code: ELF and DWARF (through blazesym) and `/tmp/perf-PID.map`.
//!
//! What has no symbol is no failure: the frame is shown as its module.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use blazesym::inspect::Inspector;
use blazesym::inspect::source::{Elf as InspectedElf, Source as Inspected};
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};

use crate::recorded_files::RecordedFiles;
use crate::watched_file::{BinaryFiles, read_jit_map_file};

/// A function that an address is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SymbolizedFunction {
    pub(crate) name: String,
    /// Whether its code is part of the function before it.
    pub(crate) inlined: bool,
}

/// Symbol tables of ELF files, each read once.
pub(crate) struct ElfSymbolizer {
    symbolizer: Symbolizer,
    inspector: Inspector,
    binaries: BinaryFiles,
}

impl Default for ElfSymbolizer {
    fn default() -> Self {
        ElfSymbolizer::with_debug_files_below(Path::new("/"))
    }
}

impl std::fmt::Debug for ElfSymbolizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ElfSymbolizer")
    }
}

impl ElfSymbolizer {
    /// One that looks for separate debug information below a root: `usr/lib/debug`, as distributions install it.
    pub(crate) fn with_debug_files_below(root: &Path) -> ElfSymbolizer {
        let folders = ["usr/lib/debug", "lib/debug"].map(|folder| root.join(folder));
        // blazesym tells of inlined functions only where it looks at lines of source too.
        let builder = Symbolizer::builder().enable_code_info(true).enable_inlined_fns(true);
        ElfSymbolizer {
            symbolizer: builder.set_debug_dirs(Some(folders)).build(),
            inspector: Inspector::new(),
            binaries: BinaryFiles::default(),
        }
    }

    /// The functions at an offset in a file, outermost first.
    pub(crate) fn functions_at_offset(&self, path: &Path, offset: u64) -> Vec<SymbolizedFunction> {
        self.find_functions(path, Input::FileOffset(offset))
    }

    /// The functions at an address as the file was linked, outermost first.
    pub(crate) fn functions_at_address(&self, path: &Path, address: u64) -> Vec<SymbolizedFunction> {
        self.find_functions(path, Input::VirtOffset(address))
    }

    fn find_functions(&self, path: &Path, input: Input<u64>) -> Vec<SymbolizedFunction> {
        let Some(path) = self.binaries.reopenable_path(path) else { return Vec::new() };
        let source = Source::Elf(Elf::new(&path));
        let Ok(Symbolized::Sym(symbol)) = self.symbolizer.symbolize_single(&source, input) else {
            return Vec::new();
        };
        let plain = self.plain_name(&path, &symbol.name, symbol.addr);
        let outer = SymbolizedFunction {
            name: plain.unwrap_or_else(|| symbol.name.clone().into_owned()),
            inlined: false,
        };
        let inner = symbol
            .inlined
            .iter()
            .map(|one| SymbolizedFunction { name: one.name.clone().into_owned(), inlined: true });
        std::iter::once(outer).chain(inner).collect()
    }
}

impl ElfSymbolizer {
    /// What a function of the C library is called by those who call it, where its symbol is one of the library's own
    /// for the same code.
    fn plain_name(&self, path: &Path, name: &str, address: u64) -> Option<String> {
        let source = Inspected::Elf(InspectedElf::new(path));
        let is_same = |name: &&str| {
            let found = self.inspector.lookup(&source, &[name]).unwrap_or_default();
            found.first().is_some_and(|found| found.iter().any(|symbol| symbol.addr == address))
        };
        plainer_names(name).into_iter().find(is_same).map(str::to_owned)
    }
}

/// Names that a symbol of the C library's own may stand for, the plainest first.
fn plainer_names(name: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = name;
    while let Some(shorter) =
        ["__GI_", "__libc_", "_IO_", "__"].iter().find_map(|prefix| rest.strip_prefix(prefix))
    {
        names.push(shorter);
        rest = shorter;
    }
    names.retain(|name| !name.is_empty());
    names.reverse();
    names
}

/// Where a symbol is in an ELF file, as it was linked.
pub(crate) fn symbol_address(path: &Path, symbol: &str) -> Option<u64> {
    let source = Inspected::Elf(InspectedElf::new(path));
    let inspector = Inspector::new();
    let found = inspector.lookup(&source, &[symbol]).ok()?;
    found.first()?.first().map(|symbol| symbol.addr)
}

/// Begin, size and name.
type JitRange = (u64, u64, String);

/// What run-time compilers say of their code: `/tmp/perf-PID.map`, lines of `start size name`.
#[derive(Debug, Default)]
pub(crate) struct JitMaps {
    maps: RefCell<HashMap<i32, Vec<JitRange>>>,
}

impl JitMaps {
    /// The function of process `pid` of a machine at an address.
    pub(crate) fn find_function(&self, files: &RecordedFiles, pid: i32, address: u64) -> Option<String> {
        let mut maps = self.maps.borrow_mut();
        let map = maps.entry(pid).or_insert_with(|| read_jit_map(files, pid));
        let last = map.partition_point(|(start, _, _)| *start <= address).checked_sub(1)?;
        let (start, size, name) = map.get(last)?;
        (address - start < *size).then(|| name.clone())
    }
}

fn read_jit_map(files: &RecordedFiles, pid: i32) -> Vec<JitRange> {
    let Some(path) = files.locate(&format!("/tmp/perf-{pid}.map")) else { return Vec::new() };
    // Who a process belongs to is known while it lives, and here.
    let process = files.copy_root().is_none().then(|| PathBuf::from(format!("/proc/{pid}")));
    let user = process.and_then(|process| process.metadata().ok()).map(|process| process.uid());
    let text = read_jit_map_file(&path, user).unwrap_or_default();
    let mut map: Vec<_> = String::from_utf8_lossy(&text).lines().filter_map(parse_jit_map_line).collect();
    // Code is replaced by newer code at the same place: the last line of a place holds.
    map.sort_by_key(|(start, _, _)| *start);
    map.reverse();
    map.dedup_by_key(|(start, _, _)| *start);
    map.reverse();
    map
}

fn parse_jit_map_line(line: &str) -> Option<JitRange> {
    let mut parts = line.splitn(3, ' ');
    let mut hex = || u64::from_str_radix(parts.next()?.trim_start_matches("0x"), 16).ok();
    let (start, size) = (hex()?, hex()?);
    Some((start, size, parts.next()?.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_plainest_name_comes_first() {
        assert_eq!(plainer_names("__GI___libc_read"), ["read", "__libc_read"]);
        assert_eq!(plainer_names("__read"), ["read"]);
        assert!(plainer_names("read").is_empty() && plainer_names("__").is_empty());
    }

    #[test]
    fn a_map_names_what_was_compiled_last() {
        let pid = i32::MAX - 7;
        let path = format!("/tmp/perf-{pid}.map");
        fs::write(&path, "1000 20 old one\n0x1000 0x20 Foo::bar (jit)\n2000 8 b\nrubbish\n").unwrap();
        let code = JitMaps::default();
        let found = [0x1000, 0x101f, 0x1020, 0x2007]
            .map(|address| code.find_function(&RecordedFiles::of_this_machine(), pid, address));
        fs::remove_file(path).unwrap();
        let name = |name: &str| Some(name.to_owned());
        assert_eq!(found, [name("Foo::bar (jit)"), name("Foo::bar (jit)"), None, name("b")]);
    }

    #[test]
    fn a_pipe_in_the_place_of_a_map_is_not_waited_for() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let pid = i32::MAX - 8;
        let path = format!("/tmp/perf-{pid}.map");
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
        let found = JitMaps::default().find_function(&RecordedFiles::of_this_machine(), pid, 0x1000);
        fs::remove_file(path).unwrap();
        assert_eq!(found, None);
    }

    #[test]
    fn a_file_that_is_not_there_has_no_symbols() {
        assert!(ElfSymbolizer::default().functions_at_offset(Path::new("/nowhere/at/all"), 16).is_empty());
        assert_eq!(symbol_address(Path::new("/nowhere/at/all"), "_stext"), None);
    }
}
