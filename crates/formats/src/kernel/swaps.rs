//! `/proc/swaps`: one row a swap device or file.

use perflab_model::{CellRow, DeclaredColumn, RowSchema, TableCell};

use crate::column::{describe_mismatch, parse_integer_cell};
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout, ReadingStart, RowLayout};
use crate::reading_parser::{LineOutcome, LineRole};

/// The file.
pub const SWAPS: KernelFile = KernelFile {
    name: SwapRow::NAME,
    source: "/proc/swaps",
    about: "swap devices and files: size and use",
    needs: "",
    without: "",
    provided_by: "CONFIG_SWAP",
    columns: SwapRow::COLUMNS,
    layout: KernelFileLayout::Rows(RowLayout {
        parts: &[],
        start: ReadingStart::Head { expected: "`Filename`", role: swaps_role },
        parse_row: parse_swaps_line,
    }),
};

/// A row a device or file.
#[derive(Debug, Clone, Copy)]
pub struct SwapRow;

impl RowSchema for SwapRow {
    const NAME: &'static str = "swaps";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("swap"),
        DeclaredColumn::key("type"),
        DeclaredColumn::gauge("size", "bytes"),
        DeclaredColumn::gauge("used", "bytes"),
    ];
}

fn swaps_role(line: &str) -> Result<LineRole, String> {
    let is_head = line.starts_with("Filename") && line.contains("Priority");
    Ok(if is_head { LineRole::Head } else { LineRole::Row })
}

/// `/dev/zram0  partition  1048572  0  100`: the name may hold blanks, which the kernel writes as `\040`.
fn parse_swaps_line(line: &str, rows: &mut Vec<CellRow>) -> LineOutcome {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [name, kind, size, used, ..] = words[..] else {
        return LineOutcome::Unusable(describe_mismatch("name, type, size and use", "a swap device", line));
    };
    let (Some(size), Some(used)) = (parse_integer_cell(size, 1024), parse_integer_cell(used, 1024)) else {
        return LineOutcome::Unusable(describe_mismatch("numbers of KiB", name, line));
    };
    rows.push(vec![TableCell::Text(name.into()), TableCell::Text(kind.into()), size, used]);
    LineOutcome::Used
}
