//! A table for people, and its four renderings: terminal, JSON, CSV, Markdown.
//!
//! A cell is a text for people and a value for programs. Markdown escapes what would break a table; CSV rounds nothing
//! and quotes where needed.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};
use compact_str::{CompactString, ToCompactString as _};
use indexmap::IndexMap;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::named::Named;
use perflab_model::untrusted_text::{escape_controls, escape_controls_in_line};
use serde_json::Value;

use crate::terminal_text::{bold_text, glue_spaces, pack_texts, unglue_spaces, wrap_text};

/// Columns of the terminal between two of a table.
const GAP: usize = 2;

/// Which side a column is flush with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnAlign {
    /// texts
    Left,
    /// numbers
    Right,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GridColumn {
    /// Its title, and its key in JSON and CSV.
    pub title: String,
    /// How its cells stand.
    pub align: ColumnAlign,
}

impl GridColumn {
    /// A column of texts.
    #[must_use]
    pub fn left(title: &str) -> Self {
        GridColumn { title: title.into(), align: ColumnAlign::Left }
    }

    /// A column of numbers.
    #[must_use]
    pub fn right(title: &str) -> Self {
        GridColumn { title: title.into(), align: ColumnAlign::Right }
    }
}

/// A cell: what people read, and what programs read.
#[derive(Debug, Clone, PartialEq)]
pub struct GridCell {
    /// Most texts of a table are short enough to need no memory of their own.
    text: CompactString,
    value: CellValue,
}

/// What programs read of a cell.
#[derive(Debug, Clone, PartialEq)]
enum CellValue {
    /// its text
    Text,
    /// null
    Null,
    /// another value than the text
    Other(Box<Value>),
}

impl GridCell {
    /// A cell that people read in another form than programs: `1.2 GiB` and 1288490188.
    pub fn with_text(text: impl Into<CompactString>, value: impl Into<Value>) -> Self {
        GridCell { text: text.into(), value: CellValue::Other(Box::new(value.into())) }
    }

    /// A quantity: scaled for people with its unit, exact for programs.
    pub fn quantity(value: f64, unit: &str) -> Self {
        let shown = perflab_model::quantity::UnitScale::fitting(unit, value);
        GridCell::with_text(
            format!("{} {}", shown.format_number(value), shown.name.replace("\u{a0}", " ")).trim_end(),
            value,
        )
    }

    /// Nothing: empty for people, null for programs.
    #[must_use]
    pub fn missing() -> Self {
        GridCell { text: CompactString::default(), value: CellValue::Null }
    }

    /// The text for people.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text in one line, with nothing that a terminal would obey.
    fn one_line_text(&self) -> String {
        escape_controls_in_line(&self.text).into_owned()
    }

    /// The value as CSV holds it.
    fn csv_text(&self) -> String {
        match &self.value {
            CellValue::Text => escape_controls(&self.text).into_owned(),
            CellValue::Null => String::new(),
            CellValue::Other(value) => match value.as_ref() {
                Value::Null => String::new(),
                Value::String(text) => escape_controls(text).into_owned(),
                other => other.to_string(),
            },
        }
    }

    /// The value as JSON holds it.
    fn json_value(&self) -> Value {
        match &self.value {
            CellValue::Text => Value::String(self.text.to_string()),
            CellValue::Null => Value::Null,
            CellValue::Other(value) => value.as_ref().clone(),
        }
    }
}

macro_rules! cell_from {
    ($($kind:ty),*) => {$(
        impl From<$kind> for GridCell {
            fn from(value: $kind) -> Self {
                GridCell::with_text(value.to_compact_string(), value)
            }
        }
    )*};
}

cell_from!(u32, u64, usize, i64, f64, bool);

impl From<&str> for GridCell {
    fn from(text: &str) -> Self {
        GridCell { text: text.into(), value: CellValue::Text }
    }
}

impl From<String> for GridCell {
    fn from(text: String) -> Self {
        GridCell { text: text.into(), value: CellValue::Text }
    }
}

impl From<CompactString> for GridCell {
    fn from(text: CompactString) -> Self {
        GridCell { text, value: CellValue::Text }
    }
}

impl<T: Into<GridCell>> From<Option<T>> for GridCell {
    fn from(value: Option<T>) -> Self {
        value.map_or_else(GridCell::missing, Into::into)
    }
}

/// A grid as a page takes it: texts, and which columns are flush with the right.
#[derive(Debug, serde::Serialize)]
pub(crate) struct GridTexts {
    columns: Vec<GridTextColumn>,
    rows: Vec<Vec<String>>,
}

#[derive(Debug, serde::Serialize)]
struct GridTextColumn {
    title: String,
    number: bool,
}

/// Rows under columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    columns: Vec<GridColumn>,
    rows: Vec<Vec<GridCell>>,
}

impl Grid {
    /// An empty grid.
    pub fn new(columns: impl IntoIterator<Item = GridColumn>) -> Self {
        Grid { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// A grid of these rows; cells that are missing at the end of one stay empty.
    pub fn with_rows(columns: impl IntoIterator<Item = GridColumn>, rows: Vec<Vec<GridCell>>) -> Self {
        Grid { columns: columns.into_iter().collect(), rows }
    }

    /// Adds a row; cells that are missing at its end stay empty.
    pub fn add_row(&mut self, cells: impl IntoIterator<Item = GridCell>) -> &mut Self {
        self.rows.push(cells.into_iter().collect());
        self
    }

    /// Whether it has no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The grid in a format. `width` is the terminal's, in columns: wider tables are broken between words, or have each row
    /// below its name; `None` breaks nothing. `colour` makes the titles of a table bold.
    ///
    /// # Errors
    /// A value that JSON or CSV cannot hold.
    pub fn render(
        &self,
        format: OutputFormat,
        width: Option<usize>,
        colour: bool,
    ) -> Result<String, GridError> {
        match format {
            OutputFormat::Table
            | OutputFormat::Short
            | OutputFormat::Mail
            | OutputFormat::Github
            | OutputFormat::Junit
            | OutputFormat::Ktap => Ok(self.terminal_table(width, colour)),
            OutputFormat::Json => self.to_json(),
            OutputFormat::Csv => {
                let rows = self.rows.iter().map(|row| self.pad_cells(row, GridCell::csv_text));
                write_csv(self.titles(), rows)
            }
            OutputFormat::Markdown => {
                let rows = self.rows.iter().map(|row| self.pad_cells(row, GridCell::one_line_text));
                Ok(write_markdown(&self.columns, rows))
            }
        }
    }

    /// The titles, and the texts of the rows for people. A column without any text is left out.
    pub(crate) fn texts(&self) -> GridTexts {
        let rows: Vec<Vec<String>> =
            self.rows.iter().map(|row| self.pad_cells(row, GridCell::one_line_text)).collect();
        let holds =
            |at: usize| at == 0 || rows.iter().any(|row| row.get(at).is_some_and(|text| !text.is_empty()));
        let kept: Vec<bool> = (0..self.columns.len()).map(holds).collect();
        let column = |(column, _): (&GridColumn, &bool)| GridTextColumn {
            title: column.title.clone(),
            number: column.align == ColumnAlign::Right,
        };
        let columns = self.columns.iter().zip(&kept).filter(|(_, kept)| **kept).map(column).collect();
        let row = |row: Vec<String>| {
            row.into_iter().zip(&kept).filter(|(_, kept)| **kept).map(|(text, _)| text).collect()
        };
        GridTexts { columns, rows: rows.into_iter().map(row).collect() }
    }

    /// The table's lines, the titles first. Each row is one line where `width` is `None`; where it does not fit, texts and titles
    /// are broken between words, never a number or a name, and where that is not enough, each row stands below its name.
    pub(crate) fn lines(&self, width: Option<usize>) -> Vec<String> {
        let whole = self.layout_lines(None);
        let Some(width) = width.filter(|width| whole.iter().any(|line| line.chars().count() > *width)) else {
            return whole;
        };
        let least = self.minimum_widths(width);
        let sum = least.iter().sum::<usize>() + GAP * least.len().saturating_sub(1);
        if sum > width { self.stacked_lines(width) } else { self.layout_lines(Some((width, &least))) }
    }

    /// The rows under their titles, nothing broken, where every character is as wide as the next and means nothing to a terminal:
    /// what thousands of rows of a list are.
    fn plain_table(&self) -> Option<String> {
        let titles = self.columns.iter().map(|column| column.title.as_str());
        let mut widths: Vec<usize> = titles.clone().map(str::len).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                if !cell.text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
                    return None;
                }
                *width = cell.text.len().max(*width);
            }
        }
        if !titles.clone().all(str::is_ascii) {
            return None;
        }
        let line = widths.iter().sum::<usize>() + GAP * widths.len();
        let mut table = String::with_capacity((line + 1) * (self.rows.len() + 1));
        self.push_line(&mut table, &widths, titles);
        for row in &self.rows {
            self.push_line(&mut table, &widths, row.iter().map(GridCell::text));
        }
        Some(table)
    }

    /// Adds a line of a table whose columns have these widths.
    fn push_line<'t>(&self, table: &mut String, widths: &[usize], texts: impl Iterator<Item = &'t str>) {
        let push_spaces = |table: &mut String, count: usize| table.extend(std::iter::repeat_n(' ', count));
        for ((text, width), column) in texts.zip(widths).zip(&self.columns) {
            let spaces = width - text.len();
            let (before, behind) = match column.align {
                ColumnAlign::Left => (0, spaces),
                ColumnAlign::Right => (spaces, 0),
            };
            push_spaces(table, before);
            table.push_str(text);
            push_spaces(table, behind + GAP);
        }
        table.truncate(table.trim_end_matches(' ').len());
        table.push('\n');
    }

    /// The rows under their titles; of a width, with what each column needs of it at least.
    fn layout_lines(&self, room: Option<(usize, &[usize])>) -> Vec<String> {
        if let Some(table) = room.is_none().then(|| self.plain_table()).flatten() {
            return table.lines().map(String::from).collect();
        }
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Disabled);
        if let Some((width, _)) = room {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            // The gap behind the last column is no part of a line.
            table.set_width(u16::try_from(width + GAP).unwrap_or(u16::MAX));
        }
        table.set_header(self.titles());
        table.add_rows(
            self.rows.iter().map(|row| self.pad_cells(row, |cell| glue_spaces(&cell.one_line_text()))),
        );
        for (at, (column, declared)) in table.column_iter_mut().zip(&self.columns).enumerate() {
            column.set_padding((0, 2));
            column.set_cell_alignment(match declared.align {
                ColumnAlign::Left => CellAlignment::Left,
                ColumnAlign::Right => CellAlignment::Right,
            });
            if let Some(least) = room.and_then(|(_, least)| least.get(at)) {
                let least = u16::try_from(least + GAP).unwrap_or(u16::MAX);
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
            }
        }
        table.lines().map(|line| unglue_spaces(line.trim_end())).collect()
    }

    /// How narrow each column may become: the first one and numbers are kept whole, texts and titles are broken between words. A
    /// word of a text longer than a quarter of the line, a path for example, may be broken wherever that is.
    fn minimum_widths(&self, width: usize) -> Vec<usize> {
        let longest_word =
            |text: &str| glue_spaces(text).split(' ').map(|word| word.chars().count()).max().unwrap_or(0);
        let least = |(at, column): (usize, &GridColumn)| {
            let cells = self.rows.iter().filter_map(|row| row.get(at)).map(GridCell::one_line_text);
            let widest = match column.align {
                _ if at == 0 => cells.map(|text| text.chars().count()).max(),
                ColumnAlign::Right => cells.map(|text| text.chars().count()).max(),
                ColumnAlign::Left => cells.map(|text| longest_word(&text).min(width / 4)).max(),
            };
            widest.unwrap_or(0).max(longest_word(&column.title))
        };
        self.columns.iter().enumerate().map(least).collect()
    }

    /// Each row's first cell, and below it every other that holds something, with its title.
    fn stacked_lines(&self, width: usize) -> Vec<String> {
        let mut titles = self.columns.iter().map(|column| column.title.as_str());
        let mut lines: Vec<String> = titles.next().map(String::from).into_iter().collect();
        let titles: Vec<&str> = titles.collect();
        for row in &self.rows {
            let mut cells = row.iter().map(GridCell::one_line_text);
            lines.extend(wrap_text(&cells.next().unwrap_or_default(), width, "", "  "));
            let named = titles.iter().zip(cells).filter(|(_, text)| !text.is_empty());
            let named: Vec<String> = named.map(|(title, text)| format!("{title} {text}")).collect();
            lines.extend(
                pack_texts(&named, width).iter().flat_map(|line| wrap_text(line, width, "    ", "      ")),
            );
        }
        lines
    }

    fn terminal_table(&self, width: Option<usize>, colour: bool) -> String {
        if let Some(table) = (width.is_none() && !colour).then(|| self.plain_table()).flatten() {
            return table;
        }
        let mut lines = self.lines(width);
        if let Some(first) = lines.first_mut() {
            *first = bold_text(first, colour);
        }
        let mut text = String::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
        for line in &lines {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// The rows for programs: each title with its cell's value.
    #[must_use]
    pub fn records(&self) -> Vec<IndexMap<String, Value>> {
        let keys = || self.columns.iter().map(|column| column.title.clone());
        let values = |row: &Vec<GridCell>| {
            let cells = row.iter().map(GridCell::json_value).chain(std::iter::repeat(Value::Null));
            keys().zip(cells).collect::<IndexMap<String, Value>>()
        };
        self.rows.iter().map(values).collect()
    }

    fn to_json(&self) -> Result<String, GridError> {
        Ok(serde_json::to_string_pretty(&self.records())? + "\n")
    }

    fn titles(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.title.clone()).collect()
    }

    /// As many texts as there are columns.
    fn pad_cells(&self, row: &[GridCell], text: impl Fn(&GridCell) -> String) -> Vec<String> {
        let texts = row.iter().map(text).chain(std::iter::repeat(String::new()));
        texts.take(self.columns.len()).collect()
    }
}

/// `--format`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputFormat {
    /// columns for a terminal
    #[default]
    Table,
    /// every number, for programs
    Json,
    /// one line a row, for spreadsheets
    Csv,
    /// a table for an issue or a page
    Markdown,
    /// one line a row, of a comparison: for a commit message; any other table is the one for a terminal
    Short,
    /// plain text of 72 columns, of a comparison: for a mailing list; any other table is the one for a terminal
    Mail,
    /// annotations of a workflow, of verdicts
    Github,
    /// XML of tests, of verdicts
    Junit,
    /// the kernel's lines of tests, of verdicts
    Ktap,
}

impl OutputFormat {
    /// Whether its cells are the values that programs read, not the texts for people.
    #[must_use]
    pub fn is_for_programs(self) -> bool {
        matches!(self, OutputFormat::Json | OutputFormat::Csv)
    }

    /// Whether it is one of verdicts for continuous integration, which no other table has.
    #[must_use]
    pub fn is_for_ci(self) -> bool {
        matches!(self, OutputFormat::Github | OutputFormat::Junit | OutputFormat::Ktap)
    }
}

impl Named for OutputFormat {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (OutputFormat::Table, "table", "for people"),
        (OutputFormat::Json, "json", "every number, versioned"),
        (OutputFormat::Csv, "csv", "for spreadsheets"),
        (OutputFormat::Markdown, "markdown", "for mails and issues"),
        (OutputFormat::Short, "short", "one line a row, for a commit message"),
        (OutputFormat::Mail, "mail", "a comparison in 72 columns, and how to measure it again"),
        (OutputFormat::Github, "github", "verdicts as annotations of a workflow"),
        (OutputFormat::Junit, "junit", "verdicts as tests, for CI servers"),
        (OutputFormat::Ktap, "ktap", "verdicts as tests, for kernel CI"),
    ];
}

/// Why a table could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GridError {
    /// A value that JSON cannot hold.
    #[error("cannot write the table as JSON")]
    Json(#[from] serde_json::Error),
    /// A row that CSV cannot hold.
    #[error("cannot write the table as CSV")]
    Csv(#[from] csv::Error),
    /// The CSV writer did not finish.
    #[error("cannot finish the table as CSV: {0}")]
    Unfinished(String),
}

impl Classify for GridError {
    fn class(&self) -> ErrorClass {
        match self {
            GridError::Json(_) | GridError::Csv(_) | GridError::Unfinished(_) => ErrorClass::Unexpected,
        }
    }
}

/// The rows as a table of GitHub's Markdown.
fn write_markdown(columns: &[GridColumn], rows: impl Iterator<Item = Vec<String>>) -> String {
    let titles: Vec<String> = columns.iter().map(|column| column.title.clone()).collect();
    let rules: Vec<String> = columns.iter().map(|column| align_rule(column.align).to_owned()).collect();
    let rule = format!("|{}|\n", rules.join("|"));
    let rows: String = rows.map(|row| markdown_line(&row)).collect();
    markdown_line(&titles) + &rule + &rows
}

fn align_rule(align: ColumnAlign) -> &'static str {
    match align {
        ColumnAlign::Left => ":--",
        ColumnAlign::Right => "--:",
    }
}

fn markdown_line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| escape_markdown(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Text that stands for itself in a cell.
pub(crate) fn escape_markdown(text: &str) -> String {
    let special = |c| matches!(c, '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '~' | '\\');
    text.chars().fold(String::new(), |mut done, c| {
        if special(c) {
            done.push('\\');
        }
        done.push(if c == '\n' { ' ' } else { c });
        done
    })
}

/// The rows as CSV text with one line of titles.
pub(crate) fn write_csv(
    titles: Vec<String>,
    rows: impl Iterator<Item = Vec<String>>,
) -> Result<String, GridError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(titles)?;
    for row in rows {
        writer.write_record(row)?;
    }
    let bytes = writer.into_inner().map_err(|error| GridError::Unfinished(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| GridError::Unfinished(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_rows_are_laid_out_as_all_others() {
        let mut grid =
            Grid::new([GridColumn::left("run"), GridColumn::right("n"), GridColumn::left("study")]);
        grid.add_row(["01ABC".into(), 5_u64.into(), "a study with words, 5 % of them".into()]);
        grid.add_row(["01ABCDEFG".into(), GridCell::missing(), GridCell::missing()]);
        grid.add_row(["".into(), 123_456_u64.into()]);
        let by_comfy_table = grid.layout_lines(Some((1_000, &[0, 0, 0])));
        assert_eq!(grid.layout_lines(None), by_comfy_table);
        assert_eq!(grid.plain_table().unwrap().lines().collect::<Vec<_>>(), by_comfy_table);
        grid.add_row(["\u{b5}".into()]);
        assert_eq!(grid.plain_table(), None);
        assert_eq!(grid.layout_lines(None).len(), 5);
    }
}
