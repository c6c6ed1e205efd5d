//! Functions of the kernel by their addresses (/proc/kallsyms).

use crate::root::Root;

/// Functions by where they begin.
#[derive(Debug, Default)]
pub(crate) struct KernelSymbols(Vec<(u64, String)>);

impl KernelSymbols {
    /// Reads them; none where the kernel does not say where they are (`kernel.kptr_restrict`).
    pub(crate) fn read(root: &Root) -> Self {
        KernelSymbols::parse(&root.read("/proc/kallsyms").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address > 0)?;
            let is_code = ["t", "T", "w", "W"].contains(&words.next()?);
            is_code.then_some((address, words.next()?.to_owned()))
        };
        let mut symbols: Vec<(u64, String)> = text.lines().filter_map(line).collect();
        symbols.sort_unstable();
        KernelSymbols(symbols)
    }

    /// The function in which an address lies.
    pub(crate) fn find(&self, address: u64) -> Option<&str> {
        let behind = self.0.partition_point(|(begin, _)| *begin <= address);
        self.0.get(behind.checked_sub(1)?).map(|(_, name)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_lies_in_the_function_that_begins_before_it() {
        let text = "ffffffff81000000 T _stext\nffffffff81000100 t one\nffffffff81000180 d data\n\
                    ffffffff81000200 T two\t[module]\n0000000000000000 T hidden\n";
        let symbols = KernelSymbols::parse(text);
        assert_eq!(symbols.find(0xffff_ffff_8100_0190), Some("one"));
        assert_eq!(symbols.find(0xffff_ffff_8100_0200), Some("two"));
        assert_eq!(symbols.find(1), None);
    }
}
