//! `/proc/interrupts` and `/proc/softirqs`: tables whose first line names the CPUs that are online, and whose others count.

use perflab_model::{DeclaredColumn, RowSchema};

use crate::column::describe_mismatch;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};
use crate::reading_parser::MalformedLine;

/// Interrupts by source and CPU.
pub const INTERRUPTS: KernelFile = KernelFile {
    name: InterruptRow::NAME,
    source: "/proc/interrupts",
    about: "interrupts by source and CPU; only rows that change are stored",
    needs: "",
    without: "",
    provided_by: "",
    columns: InterruptRow::COLUMNS,
    layout: KernelFileLayout::Tree,
};

/// Software interrupts by kind and CPU.
pub const SOFTIRQS: KernelFile = KernelFile {
    name: SoftirqRow::NAME,
    source: "/proc/softirqs",
    about: "software interrupts by kind and CPU; only rows that change are stored",
    needs: "",
    without: "",
    provided_by: "",
    columns: SoftirqRow::COLUMNS,
    layout: KernelFileLayout::Tree,
};

/// A row a source and CPU.
#[derive(Debug, Clone, Copy)]
pub struct InterruptRow;

impl RowSchema for InterruptRow {
    const NAME: &'static str = "interrupts";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("interrupt"),
        DeclaredColumn::key("name"),
        DeclaredColumn::key("cpu"),
        DeclaredColumn::counter("count", "1"),
    ];
}

/// A row a kind and CPU.
#[derive(Debug, Clone, Copy)]
pub struct SoftirqRow;

impl RowSchema for SoftirqRow {
    const NAME: &'static str = "softirqs";
    const COLUMNS: &'static [DeclaredColumn] =
        &[DeclaredColumn::key("softirq"), DeclaredColumn::key("cpu"), DeclaredColumn::counter("count", "1")];
}

/// One line of such a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptLine<'t> {
    /// `24`, `LOC`, `NET_RX`
    pub label: &'t str,
    /// What it belongs to: `virtio0-input.0`, `Local timer interrupts`; empty where the kernel does not say.
    pub name: &'t str,
}

/// The CPUs of the first line.
///
/// # Errors
/// It names none.
pub fn parse_interrupt_cpus(text: &str) -> Result<Vec<&str>, MalformedLine> {
    let first = text.lines().next().unwrap_or_default();
    let cpu = |word: &'_ str| word.strip_prefix("CPU").is_some_and(|number| number.parse::<u32>().is_ok());
    let cpus: Vec<&str> = first.split_ascii_whitespace().collect();
    if cpus.is_empty() || !cpus.iter().all(|word| cpu(word)) {
        return Err(MalformedLine::new(1, "`CPU0 CPU1 …`", "the first line", first));
    }
    Ok(cpus)
}

/// The lines behind the first: each with its counts, one a CPU, appended to `counts`. Lines of fewer numbers than CPUs are
/// of all of them together (`ERR`), and have one.
///
/// # Errors
/// The first line that is not understood.
pub fn parse_interrupt_lines<'t>(
    text: &'t str,
    cpus: usize,
    counts: &mut Vec<u64>,
    mut take: impl FnMut(InterruptLine<'t>, usize),
) -> Result<(), MalformedLine> {
    for (index, line) in text.lines().enumerate().skip(1) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let malformed = || MalformedLine {
            line: index + 1,
            description: describe_mismatch("a label and counts", "a source of interrupts", line),
        };
        let (label, rest) = line.split_once(':').ok_or_else(malformed)?;
        let mut rest = rest.trim_ascii_start();
        let mut found = 0;
        while found < cpus {
            let end = rest.find(|byte: char| !byte.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, behind) = rest.split_at(end);
            // A name may begin with a digit: counts are followed by white space.
            let is_count = !digits.is_empty() && behind.chars().next().is_none_or(char::is_whitespace);
            let Some(count) = is_count.then(|| digits.parse().ok()).flatten() else { break };
            counts.push(count);
            found += 1;
            rest = behind.trim_ascii_start();
        }
        if found == 0 || (found < cpus && found != 1) {
            return Err(malformed());
        }
        take(InterruptLine { label: label.trim_ascii(), name: interrupt_name(rest) }, found);
    }
    Ok(())
}

/// The last part of `PCI-MSIX-0000:00:01.0   0-edge      virtio0-config`: parts stand two blanks or more apart.
fn interrupt_name(description: &str) -> &str {
    let description = description.trim_ascii_end();
    description.rsplit_once("  ").map_or(description, |(_, last)| last).trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What lines say, each with its counts.
    fn read(text: &str) -> Result<Vec<(String, String, Vec<u64>)>, MalformedLine> {
        let cpus = parse_interrupt_cpus(text)?.len();
        let (mut counts, mut lines) = (Vec::new(), Vec::new());
        parse_interrupt_lines(text, cpus, &mut counts, |line, found| {
            lines.push((line.label.to_owned(), line.name.to_owned(), found));
        })?;
        let mut counts = counts.into_iter();
        let with_counts = |(label, name, found)| (label, name, counts.by_ref().take(found).collect());
        Ok(lines.into_iter().map(with_counts).collect())
    }

    #[test]
    fn lines_have_a_name_and_a_count_a_cpu() {
        let text = "           CPU0       CPU2       \n 24:          1          0  IO-APIC   5-edge      ACPI:Ged\n \
                    27:   1  2     GICv3  27 Level     arch_timer\nLOC:     102849     106629   Local timer interrupts\nERR:          3\n";
        let row =
            |label: &str, name: &str, counts: &[u64]| (label.to_owned(), name.to_owned(), counts.to_vec());
        assert_eq!(
            read(text).unwrap(),
            [
                row("24", "ACPI:Ged", &[1, 0]),
                row("27", "arch_timer", &[1, 2]),
                row("LOC", "Local timer interrupts", &[102_849, 106_629]),
                row("ERR", "", &[3]),
            ]
        );
    }

    #[test]
    fn what_is_no_table_of_cpus_names_its_line() {
        assert_eq!(read("").unwrap_err().line, 1);
        assert_eq!(read("CPU0 x\n").unwrap_err().line, 1);
        assert_eq!(read("CPU0 CPU1 CPU2\nLOC: 1 2 timer\n").unwrap_err().line, 2);
        assert_eq!(read("CPU0\nLOC 1\n").unwrap_err().line, 2);
        assert_eq!(read("CPU0\nLOC: x\n").unwrap_err().line, 2);
    }
}
