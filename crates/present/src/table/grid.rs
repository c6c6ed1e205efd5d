//! Owns a plain grid of cells and its four renderings: the table of every verb that lists something. It refuses
//! meaning: a cell has a text for people and a value for programs, and that is all.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};
use indexmap::IndexMap;
use perflab_model::untrusted_text::{visible, visible_line};
use serde_json::Value;

use super::advice::{glued, unglued, wrapped};
use super::format::{Format, TableError};
use super::stacked::packed;
use super::{colour, csv_rows, markdown};

/// Columns of the terminal between two of a table.
const GAP: usize = 2;

/// Which side a column is flush with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// texts
    Left,
    /// numbers
    Right,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its title, and its key in JSON and CSV.
    pub title: String,
    /// How its cells stand.
    pub align: Align,
}

impl Column {
    /// A column of texts.
    #[must_use]
    pub fn left(title: &str) -> Self {
        Column { title: title.into(), align: Align::Left }
    }

    /// A column of numbers.
    #[must_use]
    pub fn right(title: &str) -> Self {
        Column { title: title.into(), align: Align::Right }
    }
}

/// A cell: what people read, and what programs read.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    text: String,
    value: Value,
}

impl Cell {
    /// A cell that people read in another form than programs: `1.2 GiB` and 1288490188.
    pub fn shown(text: impl Into<String>, value: impl Into<Value>) -> Self {
        Cell { text: text.into(), value: value.into() }
    }

    /// A quantity: scaled for people with its unit, exact for programs.
    pub fn quantity(value: f64, unit: &str) -> Self {
        let shown = super::number::shown_unit(unit, value);
        Cell::shown(format!("{} {}", shown.text(value), shown.name).trim_end(), value)
    }

    /// Nothing: empty for people, null for programs.
    #[must_use]
    pub fn missing() -> Self {
        Cell { text: String::new(), value: Value::Null }
    }

    /// The text for people.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text in one line, with nothing that a terminal would obey.
    fn line(&self) -> String {
        visible_line(&self.text).into_owned()
    }

    /// The value as CSV holds it.
    fn plain(&self) -> String {
        match &self.value {
            Value::Null => String::new(),
            Value::String(text) => visible(text).into_owned(),
            other => other.to_string(),
        }
    }
}

macro_rules! cell_from {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Cell {
            fn from(value: $kind) -> Self {
                Cell { text: value.to_string(), value: Value::from(value) }
            }
        }
    )*};
}

cell_from!(&str, String, u32, u64, usize, i64, f64, bool);

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or_else(Cell::missing, Into::into)
    }
}

/// Rows under columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Grid {
    /// An empty grid.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Grid { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row; cells that are missing at its end stay empty.
    pub fn add(&mut self, cells: impl IntoIterator<Item = Cell>) -> &mut Self {
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
    pub fn render(&self, format: Format, width: Option<usize>, colour: bool) -> Result<String, TableError> {
        match format {
            Format::Table => Ok(self.table(width, colour)),
            Format::Json => self.json(),
            Format::Csv => {
                let rows = self.rows.iter().map(|row| self.padded(row, Cell::plain));
                csv_rows::text(self.titles(), rows)
            }
            Format::Markdown => {
                let rows = self.rows.iter().map(|row| self.padded(row, Cell::line));
                Ok(markdown::table(&self.columns, rows))
            }
        }
    }

    /// The titles, and the texts of the rows for people.
    #[must_use]
    pub fn texts(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let rows = self.rows.iter().map(|row| self.padded(row, Cell::line));
        (self.titles(), rows.collect())
    }

    /// The table's lines, the titles first. Each row is one line where `width` is `None`; where it does not fit, texts and titles
    /// are broken between words, never a number or a name, and where that is not enough, each row stands below its name.
    pub(super) fn lines(&self, width: Option<usize>) -> Vec<String> {
        let whole = self.arranged(None);
        let Some(width) = width.filter(|width| whole.iter().any(|line| line.chars().count() > *width)) else {
            return whole;
        };
        let least = self.least_widths(width);
        let sum = least.iter().sum::<usize>() + GAP * least.len().saturating_sub(1);
        if sum > width { self.stacked(width) } else { self.arranged(Some((width, &least))) }
    }

    /// The rows under their titles; of a width, with what each column needs of it at least.
    fn arranged(&self, room: Option<(usize, &[usize])>) -> Vec<String> {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Disabled);
        if let Some((width, _)) = room {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            // The gap behind the last column is no part of a line.
            table.set_width(u16::try_from(width + GAP).unwrap_or(u16::MAX));
        }
        table.set_header(self.titles());
        table.add_rows(self.rows.iter().map(|row| self.padded(row, |cell| glued(&cell.line()))));
        for (at, (column, declared)) in table.column_iter_mut().zip(&self.columns).enumerate() {
            column.set_padding((0, 2));
            column.set_cell_alignment(match declared.align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
            if let Some(least) = room.and_then(|(_, least)| least.get(at)) {
                let least = u16::try_from(least + GAP).unwrap_or(u16::MAX);
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
            }
        }
        table.lines().map(|line| unglued(line.trim_end())).collect()
    }

    /// How narrow each column may become: the first one and numbers are kept whole, texts and titles are broken between words. A
    /// word of a text longer than a quarter of the line, a path for example, may be broken wherever that is.
    fn least_widths(&self, width: usize) -> Vec<usize> {
        let longest_word =
            |text: &str| glued(text).split(' ').map(|word| word.chars().count()).max().unwrap_or(0);
        let least = |(at, column): (usize, &Column)| {
            let cells = self.rows.iter().filter_map(|row| row.get(at)).map(Cell::line);
            let widest = match column.align {
                _ if at == 0 => cells.map(|text| text.chars().count()).max(),
                Align::Right => cells.map(|text| text.chars().count()).max(),
                Align::Left => cells.map(|text| longest_word(&text).min(width / 4)).max(),
            };
            widest.unwrap_or(0).max(longest_word(&column.title))
        };
        self.columns.iter().enumerate().map(least).collect()
    }

    /// Each row's first cell, and below it every other that holds something, with its title.
    fn stacked(&self, width: usize) -> Vec<String> {
        let mut titles = self.columns.iter().map(|column| column.title.as_str());
        let mut lines: Vec<String> = titles.next().map(String::from).into_iter().collect();
        let titles: Vec<&str> = titles.collect();
        for row in &self.rows {
            let mut cells = row.iter().map(Cell::line);
            lines.extend(wrapped(&cells.next().unwrap_or_default(), width, "", "  "));
            let named = titles.iter().zip(cells).filter(|(_, text)| !text.is_empty());
            let named: Vec<String> = named.map(|(title, text)| format!("{title} {text}")).collect();
            lines
                .extend(packed(&named, width).iter().flat_map(|line| wrapped(line, width, "    ", "      ")));
        }
        lines
    }

    fn table(&self, width: Option<usize>, colour: bool) -> String {
        let mut lines = self.lines(width);
        if let Some(first) = lines.first_mut() {
            *first = colour::bold(first, colour);
        }
        lines.into_iter().map(|line| line + "\n").collect()
    }

    /// The rows for programs: each title with its cell's value.
    #[must_use]
    pub fn records(&self) -> Vec<IndexMap<String, Value>> {
        let keys = || self.columns.iter().map(|column| column.title.clone());
        let values = |row: &Vec<Cell>| {
            let cells = row.iter().map(|cell| cell.value.clone()).chain(std::iter::repeat(Value::Null));
            keys().zip(cells).collect::<IndexMap<String, Value>>()
        };
        self.rows.iter().map(values).collect()
    }

    fn json(&self) -> Result<String, TableError> {
        Ok(serde_json::to_string_pretty(&self.records())? + "\n")
    }

    fn titles(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.title.clone()).collect()
    }

    /// As many texts as there are columns.
    fn padded(&self, row: &[Cell], text: impl Fn(&Cell) -> String) -> Vec<String> {
        let texts = row.iter().map(text).chain(std::iter::repeat(String::new()));
        texts.take(self.columns.len()).collect()
    }
}
