//! Tasks that wait without being able to be woken by a signal (state D), and where in the kernel: `/proc/PID/task/TID/stat`,
//! `wchan` and `stack`.

use perflab_model::column::{ColumnKind, ColumnType};
use perflab_model::{ColumnRef, DeclaredColumn, RowSchema};

use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};

/// The tasks.
pub const BLOCKED: KernelFile = KernelFile {
    name: BlockedRow::NAME,
    source: "/proc",
    about: "tasks that have been in state D for an interval or longer, with where in the kernel they wait",
    needs: "",
    without: "",
    provided_by: "",
    columns: BlockedRow::COLUMNS,
    layout: KernelFileLayout::Tree,
};

/// A row a task.
#[derive(Debug, Clone, Copy)]
pub struct BlockedRow;

const fn text(name: &'static str, meaning: &'static str) -> DeclaredColumn {
    DeclaredColumn::optional(name, ColumnType::Text, "1", ColumnKind::Value, meaning)
}

impl RowSchema for BlockedRow {
    const NAME: &'static str = "blocked";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("tid"),
        DeclaredColumn::key("comm"),
        DeclaredColumn::gauge("blocked_ns", "ns"),
        text("wchan", "the function in which it waits"),
        text("stack", "its stack in the kernel, outermost first, parted by semicolons; only root may see it"),
    ];
}

impl BlockedRow {
    /// The thread.
    pub const TID: ColumnRef<Self, str> = ColumnRef::named("tid");

    /// Its name.
    pub const COMM: ColumnRef<Self, str> = ColumnRef::named("comm");

    /// How long it has been waiting at least: from the first reading that saw it in this wait.
    pub const BLOCKED: ColumnRef<Self, i64> = ColumnRef::named("blocked_ns");

    /// The function in which it waits.
    pub const WCHAN: ColumnRef<Self, str> = ColumnRef::named("wchan");

    /// Its stack.
    pub const STACK: ColumnRef<Self, str> = ColumnRef::named("stack");
}

/// Functions of a `/proc/PID/stack`, outermost first: `[<0>] io_schedule+0x46/0x70` lines, innermost first, become
/// `entry_SYSCALL_64;…;io_schedule`.
pub fn fold_kernel_stack(text: &str) -> String {
    let function = |line: &str| {
        let symbol = line.split_once("] ").map_or(line, |(_, symbol)| symbol).trim();
        symbol.split_once('+').map_or(symbol, |(name, _)| name).to_owned()
    };
    let functions: Vec<String> = text.lines().rev().map(function).filter(|name| !name.is_empty()).collect();
    functions.join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_folded_outermost_first() {
        let text = "[<0>] io_schedule+0x46/0x70\n[<0>] folio_wait_bit+0x1/0x2\n[<0>] do_syscall_64+0x3/0x4\n";
        assert_eq!(fold_kernel_stack(text), "do_syscall_64;folio_wait_bit;io_schedule");
        assert_eq!(fold_kernel_stack(""), "");
    }
}
