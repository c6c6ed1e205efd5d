//! `/proc/locks`: how many locks of files are held and waited for, by kind (proc_locks(5)).

use perflab_model::{CellRow, DeclaredColumn, RowSchema, TableCell};

use crate::column::describe_mismatch;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout, ReadingStart, RowLayout};
use crate::reading_parser::LineOutcome;

/// The file.
pub const LOCKS: KernelFile = KernelFile {
    name: LockRow::NAME,
    source: "/proc/locks",
    about: "locks of files by kind: held, and waited for",
    needs: "",
    without: "",
    provided_by: "CONFIG_FILE_LOCKING",
    columns: LockRow::COLUMNS,
    layout: KernelFileLayout::Rows(RowLayout {
        parts: &[],
        start: ReadingStart::SubjectAgain(find_lock),
        parse_row: parse_locks_line,
    }),
};

/// A row a kind and access.
#[derive(Debug, Clone, Copy)]
pub struct LockRow;

impl RowSchema for LockRow {
    const NAME: &'static str = "locks";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("kind"),
        DeclaredColumn::key("access"),
        DeclaredColumn::gauge("held", "1"),
        DeclaredColumn::gauge("waiting", "1"),
    ];
}

/// Kinds that the kernel prints.
const KINDS: &[&str] = &["POSIX", "FLOCK", "LEASE", "OFDLCK", "DELEG", "LAYOUT", "ACCESS", "BROKEN"];

/// Whether it waits, its kind and its access, of `1: -> FLOCK  ADVISORY  WRITE 18254 fe:00:5489033 0 EOF`.
fn split_lock(line: &str) -> Option<(bool, &str, &str)> {
    let mut words = line.split_ascii_whitespace();
    words.next()?.strip_suffix(':')?.parse::<u64>().ok()?;
    let mut kind = words.next()?;
    let waits = kind == "->";
    if waits {
        kind = words.next()?;
    }
    let _advisory = words.next()?;
    Some((waits, kind, words.next()?)).filter(|(_, kind, _)| KINDS.contains(kind))
}

/// The number of the lock, which begins with 1.
fn find_lock(line: &str) -> Option<&str> {
    split_lock(line).filter(|(waits, ..)| !waits)?;
    line.split_once(':').map(|(number, _)| number)
}

fn parse_locks_line(line: &str, rows: &mut Vec<CellRow>) -> LineOutcome {
    let Some((waits, kind, access)) = split_lock(line) else {
        return LineOutcome::Unusable(describe_mismatch("a number, a kind and an access", "a lock", line));
    };
    let is_of = |row: &CellRow, index: usize, text: &str| matches!(row.get(index), Some(TableCell::Text(found)) if found == text);
    let known = rows.iter().position(|row| is_of(row, 0, kind) && is_of(row, 1, access));
    let index = known.unwrap_or_else(|| {
        let keys = [kind, access].map(|text| TableCell::Text(text.into()));
        rows.push(keys.into_iter().chain([TableCell::Int(0), TableCell::Int(0)]).collect());
        rows.len() - 1
    });
    let cell = rows.get_mut(index).and_then(|row| row.get_mut(if waits { 3 } else { 2 }));
    if let Some(TableCell::Int(number)) = cell {
        *number = number.saturating_add(1);
    }
    LineOutcome::Used
}
