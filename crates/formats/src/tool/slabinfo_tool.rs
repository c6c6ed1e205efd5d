//! The output of the kernel's slabinfo tool (tools/mm/slabinfo.c), with the text of its sizes kept: they are decimal
//! and truncated, so bytes cannot be had from them.

use perflab_model::column::stored_columns;
use perflab_model::{CellRow, ColumnRef, ColumnSpec, DeclaredColumn, RowSchema, TableCell};

use crate::reading_parser::{LineOutcome, LineRole, ReadingParser, TextLine};

/// A row a cache a reading.
#[derive(Debug, Clone, Copy)]
pub struct SlabinfoToolRow;

impl RowSchema for SlabinfoToolRow {
    const NAME: &'static str = "slabinfo-tool";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("cache"),
        DeclaredColumn::gauge("objects", "objects"),
        DeclaredColumn::gauge("object_size", "bytes"),
        DeclaredColumn::key("space"),
        DeclaredColumn::gauge("slabs", "slabs"),
        DeclaredColumn::gauge("partial", "slabs"),
        DeclaredColumn::gauge("cpu", "slabs"),
        DeclaredColumn::gauge("objs_per_slab", "objects"),
        DeclaredColumn::gauge("order", "1"),
        DeclaredColumn::gauge("free_percent", "%"),
        DeclaredColumn::gauge("efficiency_percent", "%"),
        DeclaredColumn::key("flags_tool"),
    ];
}

impl SlabinfoToolRow {
    /// The cache.
    pub const CACHE: ColumnRef<Self, str> = ColumnRef::named("cache");

    /// Objects in use.
    pub const OBJECTS: ColumnRef<Self, i64> = ColumnRef::named("objects");

    /// Bytes that the creator of the cache asked for.
    pub const OBJECT_SIZE: ColumnRef<Self, i64> = ColumnRef::named("object_size");

    /// Bytes of its slabs, as the tool prints them: `1.2M`.
    pub const SPACE: ColumnRef<Self, str> = ColumnRef::named("space");

    /// Slabs that no CPU holds.
    pub const SLABS: ColumnRef<Self, i64> = ColumnRef::named("slabs");

    /// Objects of a slab.
    pub const OBJS_PER_SLAB: ColumnRef<Self, i64> = ColumnRef::named("objs_per_slab");

    /// Binary logarithm of the pages of a slab.
    pub const ORDER: ColumnRef<Self, i64> = ColumnRef::named("order");

    /// Slabs that CPUs hold.
    pub const CPU: ColumnRef<Self, i64> = ColumnRef::named("cpu");

    /// Bytes asked for, of those of its slabs.
    pub const EFFICIENCY_PERCENT: ColumnRef<Self, i64> = ColumnRef::named("efficiency_percent");

    /// Letters of its attributes: `a` for reclaimable.
    pub const FLAGS: ColumnRef<Self, str> = ColumnRef::named("flags_tool");
}

/// The format.
#[derive(Debug, Default)]
pub struct SlabinfoToolParser;

impl ReadingParser for SlabinfoToolParser {
    fn series(&self) -> &'static str {
        SlabinfoToolRow::NAME
    }

    fn source(&self) -> &'static str {
        "slabinfo (the kernel's tool)"
    }

    fn line_role(&self, text: &str) -> Result<LineRole, String> {
        if !is_slabinfo_tool_head(text) {
            return Ok(LineRole::Row);
        }
        match text.split_ascii_whitespace().nth(3) {
            Some("Space") => Ok(LineRole::Head),
            other => Err(format!(
                "the fourth column is `{}` and not `Space`: options of the slabinfo tool that change its \
                 columns (-L, -D, -B with -L) are not read",
                other.unwrap_or_default()
            )),
        }
    }

    fn parse_row(&mut self, line: TextLine<'_>, rows: &mut Vec<CellRow>) -> LineOutcome {
        match parse_slabinfo_tool_line(line) {
            Ok(row) => {
                let read = row_outcome(&row);
                rows.push(row);
                read
            }
            Err(reason) => LineOutcome::Unusable(reason),
        }
    }

    fn columns(&self) -> Vec<ColumnSpec> {
        stored_columns(SlabinfoToolRow::COLUMNS)
    }
}

/// Whether this is the tool's line of column names.
pub fn is_slabinfo_tool_head(text: &str) -> bool {
    text.strip_prefix("Name ").is_some_and(|rest| rest.trim_ascii_start().starts_with("Objects"))
}

/// `NAME objects size space slabs/partial/cpu o/s order %free %efficiency [flags]`: the word with two
/// slashes is the mark from which the others are counted.
fn parse_slabinfo_tool_line(line: TextLine<'_>) -> Result<CellRow, String> {
    let text = line.text;
    let mark =
        text.find('/').and_then(|at| split_around(text, at)).ok_or("it has no word of the form n/n/n")?;
    let (left, slabs, right) = mark;
    const FEW: &str = "it has fewer than a name and three words before n/n/n";
    let (left, space) = split_last_word(left).ok_or(FEW)?;
    let (left, size) = split_last_word(left).ok_or(FEW)?;
    let (name, objects) = split_last_word(left).ok_or(FEW)?;
    if name.is_empty() {
        return Err("it has no name".into());
    }
    let mut row = CellRow::with_capacity(SlabinfoToolRow::COLUMNS.len());
    row.extend([
        TableCell::Text(name.into()),
        parse_int_cell(objects),
        parse_int_cell(size),
        TableCell::Text(space.into()),
    ]);
    row.extend(parse_three_counts(slabs));
    let mut words = right.split_ascii_whitespace().peekable();
    for _ in 0..4 {
        let word = words.next().filter(|_| line.whole || words.peek().is_some());
        row.push(word.map_or(TableCell::Missing, parse_int_cell));
    }
    row.push(TableCell::Text(words.next().unwrap_or_default().into()));
    Ok(row)
}

/// The last word of a text, and what stands before it.
fn split_last_word(text: &str) -> Option<(&str, &str)> {
    let space = text.bytes().rposition(|byte| byte == b' ' || byte == b'\t')?;
    Some((text.get(..space)?.trim_ascii_end(), text.get(space + 1..)?))
}

/// What stands before, at and behind the word that holds byte `at`.
fn split_around(text: &str, at: usize) -> Option<(&str, &str, &str)> {
    let begin = text.get(..at)?.rfind([' ', '\t']).map_or(0, |space| space + 1);
    let rest = text.get(begin..)?;
    let end = rest.find([' ', '\t']).unwrap_or(rest.len());
    let (word, right) = rest.split_at_checked(end)?;
    (word.matches('/').count() == 2).then_some((text.get(..begin)?.trim_ascii_end(), word, right))
}

/// `12/0/40`
fn parse_three_counts(text: &str) -> [TableCell; 3] {
    let mut words = text.split('/');
    [0, 1, 2].map(|_| words.next().map_or(TableCell::Missing, parse_int_cell))
}

fn parse_int_cell(word: &str) -> TableCell {
    word.parse().map_or(TableCell::Missing, TableCell::Int)
}

/// Efficiency beyond 100 %: objects and slabs were read at two moments (the tool opens a file for each).
fn row_outcome(row: &CellRow) -> LineOutcome {
    let name = || SlabinfoToolRow::CACHE.get(row).unwrap_or_default();
    if row.contains(&TableCell::Missing) {
        return LineOutcome::Flagged(format!("malformed: {}: a number is missing", name()));
    }
    match SlabinfoToolRow::EFFICIENCY_PERCENT.get(row) {
        Some(percent) if percent > 100 => {
            LineOutcome::Flagged(format!("torn: {}: an efficiency of {percent} %", name()))
        }
        _ => LineOutcome::Used,
    }
}
