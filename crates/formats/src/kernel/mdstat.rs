//! `/proc/mdstat`: software RAID, a row an array (drivers/md/md.c).

use perflab_model::column::{ColumnKind, ColumnType};
use perflab_model::{CellRow, ColumnRef, DeclaredColumn, RowSchema, TableCell};

use crate::column::describe_mismatch;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout, ReadingStart, RowLayout};
use crate::reading_parser::{LineOutcome, LineRole};

/// The file.
pub const MDSTAT: KernelFile = KernelFile {
    name: MdstatRow::NAME,
    source: "/proc/mdstat",
    about: "software RAID: disks that work, progress and speed of a resync",
    needs: "",
    without: "",
    provided_by: "CONFIG_BLK_DEV_MD",
    columns: MdstatRow::COLUMNS,
    layout: KernelFileLayout::Rows(RowLayout {
        parts: &[],
        start: ReadingStart::Head { expected: "`Personalities :`", role: mdstat_role },
        parse_row: parse_mdstat_line,
    }),
};

/// A row an array.
#[derive(Debug, Clone, Copy)]
pub struct MdstatRow;

impl RowSchema for MdstatRow {
    const NAME: &'static str = "mdstat";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("array"),
        DeclaredColumn::optional(
            "state",
            ColumnType::Text,
            "1",
            ColumnKind::Value,
            "active, inactive, and the level",
        ),
        DeclaredColumn::gauge("size", "bytes"),
        DeclaredColumn::gauge("disks", "1"),
        DeclaredColumn::gauge("disks_working", "1"),
        DeclaredColumn::float("sync_percent", "percent"),
        DeclaredColumn::gauge("sync_speed", "bytes/s"),
    ];
}

impl MdstatRow {
    const ARRAY: ColumnRef<Self, str> = ColumnRef::named("array");
    const STATE: ColumnRef<Self, str> = ColumnRef::named("state");
    const SIZE: ColumnRef<Self, i64> = ColumnRef::named("size");
    const DISKS: ColumnRef<Self, i64> = ColumnRef::named("disks");
    const WORKING: ColumnRef<Self, i64> = ColumnRef::named("disks_working");
    const SYNC: ColumnRef<Self, f64> = ColumnRef::named("sync_percent");
    const SPEED: ColumnRef<Self, i64> = ColumnRef::named("sync_speed");
}

fn mdstat_role(line: &str) -> Result<LineRole, String> {
    Ok(match line {
        _ if line.starts_with("Personalities :") => LineRole::Head,
        _ if line.starts_with("unused devices:") => LineRole::Comment,
        _ => LineRole::Row,
    })
}

/// `md0 : active raid1 sdb1[1] sda1[0]`, then lines that begin with blanks.
fn parse_mdstat_line(line: &str, rows: &mut Vec<CellRow>) -> LineOutcome {
    if !line.starts_with(char::is_whitespace) {
        let Some((array, rest)) = line.split_once(" : ") else {
            return LineOutcome::Unusable(describe_mismatch("`NAME : STATE`", "an array", line));
        };
        let mut row: CellRow = vec![TableCell::Missing; MdstatRow::COLUMNS.len()];
        MdstatRow::ARRAY.set(&mut row, array);
        let state: Vec<&str> = rest.split_ascii_whitespace().take_while(|word| !word.contains('[')).collect();
        MdstatRow::STATE.set(&mut row, state.join(" ").as_str());
        rows.push(row);
        return LineOutcome::Used;
    }
    let Some(row) = rows.last_mut() else {
        return LineOutcome::Unusable(describe_mismatch("`NAME : STATE`", "an array", line));
    };
    set_array_numbers(row, line)
}

fn set_array_numbers(row: &mut CellRow, line: &str) -> LineOutcome {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    if let [blocks, "blocks", ..] = words[..] {
        let bytes = blocks.parse::<i64>().ok().and_then(|blocks| blocks.checked_mul(1024));
        MdstatRow::SIZE.set(row, bytes);
        if let Some((all, working)) = words.iter().find_map(|word| split_disk_counts(word)) {
            MdstatRow::DISKS.set(row, all.parse().ok());
            MdstatRow::WORKING.set(row, working.parse().ok());
        }
        return LineOutcome::Used;
    }
    let percent = words.iter().find_map(|word| word.strip_suffix('%')?.parse::<f64>().ok());
    let Some(percent) = percent.filter(|percent| percent.is_finite()) else { return LineOutcome::Nothing };
    MdstatRow::SYNC.set(row, percent);
    let speed =
        words.iter().find_map(|word| word.strip_prefix("speed=")?.strip_suffix("K/sec")?.parse::<i64>().ok());
    MdstatRow::SPEED.set(row, speed.and_then(|speed| speed.checked_mul(1024)));
    LineOutcome::Used
}

/// `[2/1]`: disks in all, and those that work.
fn split_disk_counts(word: &str) -> Option<(&str, &str)> {
    word.strip_prefix('[')?.strip_suffix(']')?.split_once('/')
}
