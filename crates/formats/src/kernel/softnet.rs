//! `/proc/net/softnet_stat`: what each CPU took off the network, in hexadecimal numbers without a heading (net/core/net-procfs.c).
//! Lines name their CPU since 5.10; before that they are of the CPUs that are online, in their order.

use perflab_model::{CellRow, DeclaredColumn, RowSchema, TableCell};

use crate::column::describe_mismatch;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout, ReadingStart, RowLayout};
use crate::reading_parser::LineOutcome;

/// The file.
pub const SOFTNET: KernelFile = KernelFile {
    name: SoftnetRow::NAME,
    source: "/proc/net/softnet_stat",
    about: "packets that each CPU took in: processed, dropped for want of room, left over for want of time",
    needs: "",
    without: "",
    provided_by: "",
    columns: SoftnetRow::COLUMNS,
    layout: KernelFileLayout::Rows(RowLayout {
        parts: &[],
        start: ReadingStart::SubjectAgain(find_cpu),
        parse_row: parse_softnet_line,
    }),
};

/// A row a CPU.
#[derive(Debug, Clone, Copy)]
pub struct SoftnetRow;

impl RowSchema for SoftnetRow {
    const NAME: &'static str = "softnet";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("cpu"),
        DeclaredColumn::counter("processed", "packets"),
        DeclaredColumn::counter("dropped", "packets"),
        DeclaredColumn::counter("time_squeeze", "1"),
        DeclaredColumn::counter("received_rps", "1"),
        DeclaredColumn::counter("flow_limit_count", "packets"),
        DeclaredColumn::gauge("backlog_len", "packets"),
    ];
}

/// Words of a line, by the columns behind the CPU; the CPU's own is [`CPU`].
const WORDS: [usize; 6] = [0, 1, 2, 9, 10, 11];

const CPU: usize = 12;

/// Words that every kernel gives, each of eight digits.
const FEWEST: usize = 9;

fn softnet_words(line: &str) -> Option<Vec<u64>> {
    let words = line.split_ascii_whitespace().map(|word| {
        let is_of_eight = word.len() == 8;
        is_of_eight.then(|| u64::from_str_radix(word, 16).ok()).flatten()
    });
    words.collect::<Option<Vec<u64>>>().filter(|words| words.len() >= FEWEST)
}

/// The word that names the CPU, or the first of an older kernel.
fn find_cpu(line: &str) -> Option<&str> {
    let words = softnet_words(line)?;
    let index = if words.len() > CPU { CPU } else { 0 };
    line.split_ascii_whitespace().nth(index)
}

fn parse_softnet_line(line: &str, rows: &mut Vec<CellRow>) -> LineOutcome {
    let Some(words) = softnet_words(line) else {
        return LineOutcome::Unusable(describe_mismatch("9 hexadecimal numbers or more", "a CPU", line));
    };
    let cpu = words.get(CPU).copied().unwrap_or(rows.len() as u64);
    let numbers = WORDS.iter().map(|index| words.get(*index).copied());
    let cell = |number: Option<u64>| {
        number.and_then(|number| i64::try_from(number).ok()).map_or(TableCell::Missing, TableCell::Int)
    };
    rows.push([TableCell::Text(format!("cpu{cpu}"))].into_iter().chain(numbers.map(cell)).collect());
    LineOutcome::Used
}
