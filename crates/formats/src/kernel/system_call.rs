//! Names of system calls by their numbers.
//!
//! The table has those of x86-64 (arch/x86/entry/syscalls/syscall_64.tbl) and of processors that came later, which share theirs
//! (include/uapi/asm-generic/unistd.h), as of Linux 6.18.

const TABLE: &str = include_str!("system_calls.tsv");

/// Name and number of each on a processor (`x86_64`); of one whose table we do not have, none.
fn system_calls(processor: &str) -> impl Iterator<Item = (&'static str, i64)> {
    let column = match processor {
        "x86_64" => Some(1),
        "aarch64" | "riscv64" | "loongarch64" => Some(2),
        _ => None,
    };
    TABLE.lines().filter_map(move |line| {
        let mut cells = line.split('\t');
        let name = cells.next()?;
        Some((name, cells.nth(column? - 1)?.parse().ok()?))
    })
}

/// What a system call is called on a processor, by its name for Rust (`x86_64`).
pub fn name_system_call(processor: &str, number: i64) -> Option<&'static str> {
    system_calls(processor).find(|(_, known)| *known == number).map(|(name, _)| name)
}

/// The number of a system call on a processor.
pub fn number_system_call(processor: &str, name: &str) -> Option<i64> {
    system_calls(processor).find(|(known, _)| *known == name).map(|(_, number)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_name_and_two_numbers_and_none_is_there_twice() {
        let mut names = std::collections::BTreeSet::new();
        for line in TABLE.lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            assert!(cells.len() == 3 && names.insert(cells[0]), "{line}");
            assert!(cells[1..].iter().all(|cell| *cell == "-" || cell.parse::<u16>().is_ok()), "{line}");
        }
        for column in [1, 2] {
            let numbers = TABLE.lines().filter_map(|line| line.split('\t').nth(column)?.parse::<u16>().ok());
            let numbers: Vec<u16> = numbers.collect();
            assert_eq!(numbers.iter().collect::<std::collections::BTreeSet<_>>().len(), numbers.len());
        }
    }

    #[test]
    fn a_number_has_the_name_that_has_this_number() {
        for (processor, number) in [("x86_64", 1), ("aarch64", 64), ("riscv64", 64)] {
            assert_eq!(number_system_call(processor, "write"), Some(number));
            assert_eq!(name_system_call(processor, number), Some("write"));
        }
        assert_eq!((number_system_call("x86_64", "nothing"), name_system_call("x86_64", -1)), (None, None));
        assert_eq!(
            (number_system_call("s390x", "write"), number_system_call("aarch64", "open")),
            (None, None)
        );
    }
}
