//! Names of kernel addresses, from a text of the form of /proc/kallsyms.
//!
//! Two boots of one kernel lie apart by a distance, which is found here; inlined functions come from a vmlinux with
//! debug information. Zeroed tables are refused: `kernel.kptr_restrict` gives them to those who must not see addresses.

use std::path::{Path, PathBuf};

use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::profile::SymbolAnchor;
use perflab_model::strip_compiler_suffixes;

use crate::user_symbols::{ElfSymbolizer, SymbolizedFunction};

/// Where the kernel's text begins.
const BEGIN: &str = "_stext";

/// What perf measures relocations by.
const TEXT: &str = "_text";

/// Above this no function of one symbol reaches: the table has a hole, as between the kernel and its modules.
const LONGEST: u64 = 1 << 20;

/// A function of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KernelSymbol {
    start: u64,
    name: (u32, u32),
    module: (u32, u32),
}

/// A symbol table of a kernel.
#[derive(Debug, Default)]
pub struct KernelSymbols {
    text: String,
    symbols: Vec<KernelSymbol>,
    begin: u64,
    text_start: Option<u64>,
    vmlinux: Option<(PathBuf, u64)>,
}

/// Why a kernel symbol table is of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelSymbolsError {
    /// It hides its addresses.
    #[error(
        "it shows zeros instead of addresses: `sysctl kernel.kptr_restrict=0` (or 1, as root) shows them, and so does CAP_SYSLOG"
    )]
    Hidden,
    /// It has no functions.
    #[error("there is no function in it")]
    Empty,
}

impl Classify for KernelSymbolsError {
    fn class(&self) -> ErrorClass {
        match self {
            KernelSymbolsError::Hidden | KernelSymbolsError::Empty => ErrorClass::Environment,
        }
    }
}

impl KernelSymbol {
    /// Where it begins.
    pub(crate) fn start(self) -> u64 {
        self.start
    }
}

impl KernelSymbols {
    /// Reads a text of the form of /proc/kallsyms.
    ///
    /// # Errors
    /// [`KernelSymbolsError`]: addresses are hidden, or there are no functions.
    pub fn parse(text: String) -> Result<Self, KernelSymbolsError> {
        let mut symbols = Vec::with_capacity(text.len() / 45);
        let (mut begin, mut text_start, mut hidden) = (None, None, false);
        let mut at = 0;
        for line in text.split('\n') {
            if let Some((symbol, name)) = parse_kallsyms_line(line, at) {
                hidden |= symbol.start == 0;
                match name {
                    BEGIN => begin = Some(symbol.start),
                    TEXT => text_start = Some(symbol.start),
                    _ => {}
                }
                symbols.push(symbol);
            }
            at += line.len() + 1;
        }
        symbols.sort_by_key(|symbol| symbol.start);
        let last = symbols.last().ok_or(KernelSymbolsError::Empty)?;
        if hidden && last.start == 0 {
            return Err(KernelSymbolsError::Hidden);
        }
        let begin = begin.or(text_start).unwrap_or(0);
        Ok(KernelSymbols { text, symbols, begin, text_start, vmlinux: None })
    }

    /// Looks for inlined functions in this file, an ELF file of the same kernel with debug information.
    #[must_use]
    pub fn with_vmlinux(self, path: &Path) -> Self {
        let linked = crate::user_symbols::symbol_address(path, BEGIN);
        let vmlinux = linked.map(|linked| (path.to_owned(), self.begin.wrapping_sub(linked)));
        KernelSymbols { vmlinux, ..self }
    }

    /// How far from here a kernel lay whose symbol `_text` was at `recorded`.
    pub(crate) fn distance_from(&self, recorded: u64) -> Option<u64> {
        self.text_start.map(|here| recorded.wrapping_sub(here))
    }

    fn text_range(&self, (begin, end): (u32, u32)) -> &str {
        self.text.get(begin as usize..end as usize).unwrap_or_default()
    }

    /// The name of the function in which an address of this machine lies.
    pub fn name_function(&self, address: u64) -> Option<&str> {
        self.find_symbol(address).map(|symbol| self.symbol_name(symbol))
    }

    /// The function at an address.
    pub(crate) fn find_symbol(&self, address: u64) -> Option<KernelSymbol> {
        let after = self.symbols.partition_point(|symbol| symbol.start <= address);
        // Several names of one place: the first in the table, as the sort keeps the order, but for those that only
        // say that the code may run before the kernel is where it was linked.
        let last = self.symbols.get(after.checked_sub(1)?)?;
        let first = self.symbols.partition_point(|symbol| symbol.start < last.start);
        let same = self.symbols.get(first..after)?;
        let is_plain = |symbol: &&KernelSymbol| !self.symbol_name(**symbol).starts_with("__pi_");
        let found = same.iter().find(is_plain).or(same.first()).copied();
        found.filter(|symbol| address - symbol.start < LONGEST)
    }

    /// From where to where a function's code is, if it lasts to the next one.
    pub(crate) fn range_of(&self, symbol: KernelSymbol) -> (u64, u64) {
        let after = self.symbols.partition_point(|other| other.start <= symbol.start);
        let next = self.symbols.get(after).map_or(u64::MAX, |next| next.start);
        (symbol.start, next.min(symbol.start.saturating_add(LONGEST)))
    }

    /// Where `count` functions are, spread over the kernel; modules' are left out.
    pub(crate) fn spread_ranges(&self, count: usize) -> Vec<(u64, u64)> {
        let own = self.symbols.iter().filter(|symbol| self.symbol_module(**symbol).is_none());
        let own: Vec<KernelSymbol> = own.copied().collect();
        let step = own.len().div_ceil(count.max(1)).max(1);
        own.into_iter().step_by(step).map(|symbol| self.range_of(symbol)).collect()
    }

    /// A function's name.
    pub(crate) fn symbol_name(&self, symbol: KernelSymbol) -> &str {
        self.text_range(symbol.name)
    }

    /// The module that a function is in; `None` for the kernel itself.
    pub(crate) fn symbol_module(&self, symbol: KernelSymbol) -> Option<&str> {
        Some(self.text_range(symbol.module)).filter(|module| !module.is_empty())
    }

    /// Where a function begins, from `_stext`.
    pub(crate) fn symbol_offset(&self, symbol: KernelSymbol) -> i64 {
        symbol.start.wrapping_sub(self.begin).cast_signed()
    }

    /// The functions whose code was put into another at this address, outermost first; the other one first of all.
    pub(crate) fn inlined_functions(&self, address: u64, elves: &ElfSymbolizer) -> Vec<SymbolizedFunction> {
        let Some((path, distance)) = &self.vmlinux else { return Vec::new() };
        elves.functions_at_address(path, address.wrapping_sub(*distance))
    }

    /// Which of `requested` (normalised names) are there, and where. A clone's place does not stand for its function's.
    pub fn find_anchors(&self, requested: &[String]) -> Vec<SymbolAnchor> {
        let requested: std::collections::HashSet<&str> = requested.iter().map(String::as_str).collect();
        if requested.is_empty() {
            return Vec::new();
        }
        let anchor = |symbol: &KernelSymbol| {
            let raw = self.symbol_name(*symbol);
            let name = Some(strip_compiler_suffixes(raw))
                .filter(|name| requested.contains(name) && !raw.contains(".cold"))?;
            Some(SymbolAnchor { name: name.into(), start: self.symbol_offset(*symbol) })
        };
        let mut found: Vec<SymbolAnchor> = self.symbols.iter().filter_map(anchor).collect();
        found.sort_by(|a, b| (&a.name, a.start).cmp(&(&b.name, b.start)));
        found.dedup_by(|a, b| a.name == b.name);
        found
    }
}

/// A line `ffffffff81000000 T name [module]`, if it names code.
fn parse_kallsyms_line(line: &str, at: usize) -> Option<(KernelSymbol, &str)> {
    let (start, rest) = line.split_once(' ')?;
    let kind = rest.as_bytes().first()?;
    if !b"tTwW".contains(kind) {
        return None;
    }
    let (name, module) = match rest.get(2..)?.split_once('\t') {
        Some((name, module)) => (name, module),
        None => (rest.get(2..)?, ""),
    };
    let place = |piece: &str| {
        let begin = at + (piece.as_ptr() as usize - line.as_ptr() as usize);
        Some((u32::try_from(begin).ok()?, u32::try_from(begin + piece.len()).ok()?))
    };
    let module = if module.is_empty() { (0, 0) } else { place(module)? };
    Some((KernelSymbol { start: u64::from_str_radix(start, 16).ok()?, name: place(name)?, module }, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
0000000000000010 A fixed_percpu_data
ffffffff81000000 T _text
ffffffff81000100 T _stext
ffffffff81000200 T kfree
ffffffff81000200 T kfree_alias
ffffffff81000240 T __pi___memset
ffffffff81000240 T __memset
ffffffff81000260 T __pi_alone
ffffffff81000280 t __slab_alloc.isra.0
ffffffff81000300 D data
ffffffff81000400 t __slab_alloc.isra.0.cold
ffffffffc0000000 t ext4_write\t[ext4]
";

    fn make_table() -> KernelSymbols {
        KernelSymbols::parse(TABLE.into()).unwrap()
    }

    fn name_at(table: &KernelSymbols, address: u64) -> Option<(&str, Option<&str>)> {
        table.find_symbol(address).map(|symbol| (table.symbol_name(symbol), table.symbol_module(symbol)))
    }

    #[test]
    fn addresses_find_the_function_that_they_are_in() {
        let table = make_table();
        assert_eq!(name_at(&table, 0xffffffff81000200), Some(("kfree", None)));
        assert_eq!(name_at(&table, 0xffffffff8100023f), Some(("kfree", None)));
        assert_eq!(name_at(&table, 0xffffffff81000250), Some(("__memset", None)), "an alias that is plain");
        assert_eq!(name_at(&table, 0xffffffff81000260), Some(("__pi_alone", None)));
        assert_eq!(name_at(&table, 0xffffffff81000310), Some(("__slab_alloc.isra.0", None)));
        assert_eq!(name_at(&table, 0xffffffffc0000010), Some(("ext4_write", Some("[ext4]"))));
        assert_eq!(name_at(&table, 0xffffffffb0000000), None, "a hole");
        assert_eq!(name_at(&table, 0xffffffff80ffffff), None);
        let kfree = table.find_symbol(0xffffffff81000210).unwrap();
        assert_eq!(table.symbol_offset(kfree), 0x100);
        assert_eq!(table.distance_from(0xffffffff82000000), Some(0x1000000));
    }

    #[test]
    fn anchors_are_functions_and_not_their_cold_parts() {
        let requested = ["__slab_alloc", "kfree", "slob_alloc"].map(String::from);
        let found = make_table().find_anchors(&requested);
        let found: Vec<_> = found.iter().map(|anchor| (anchor.name.as_str(), anchor.start)).collect();
        assert_eq!(found, [("__slab_alloc", 0x180), ("kfree", 0x100)]);
    }

    #[test]
    fn hidden_and_empty_tables_are_refused() {
        let hidden = "0000000000000000 T _stext\n0000000000000000 T kfree\n";
        assert_eq!(KernelSymbols::parse(hidden.into()).unwrap_err(), KernelSymbolsError::Hidden);
        assert_eq!(KernelSymbols::parse("\n".into()).unwrap_err(), KernelSymbolsError::Empty);
    }
}
