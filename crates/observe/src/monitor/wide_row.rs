//! One wide row whose columns are the names of the first reading: of several files, each with a prefix.

use perflab_formats::column::DiscoveredColumn;
use perflab_formats::kernel::kernel_folder::parse_discovered_cell;
use perflab_model::{CellRow, ColumnSpec, TableCell};

/// Columns of one table at most.
const MOST: usize = 4_000;

/// The columns behind the keys.
#[derive(Debug, Default)]
pub(crate) struct WideColumns {
    found: Vec<DiscoveredColumn>,
    is_settled: bool,
}

impl WideColumns {
    /// From now on a name that is new has no column.
    pub(crate) fn settle(&mut self) {
        self.is_settled = true;
    }

    /// The columns so far.
    pub(crate) fn columns(&self) -> impl Iterator<Item = ColumnSpec> {
        self.found.iter().map(|found| found.column.clone())
    }

    /// Begins a row behind these keys.
    pub(crate) fn begin_row(&self, keys: impl IntoIterator<Item = TableCell>) -> WideRow {
        let mut cells: CellRow = keys.into_iter().collect();
        let begin = cells.len();
        cells.resize(begin + self.found.len(), TableCell::Missing);
        WideRow { cells, begin, expected: 0, has_value: false }
    }

    /// Where the column of `prefix` and `name` stands: names come in the order of the first reading, nearly always.
    fn place(
        &mut self,
        expected: usize,
        prefix: &str,
        name: &str,
        discover: impl FnOnce(&str) -> DiscoveredColumn,
    ) -> Option<usize> {
        let is_of = |column: &DiscoveredColumn| column.column.name.strip_prefix(prefix) == Some(name);
        if self.found.get(expected).is_some_and(is_of) {
            return Some(expected);
        }
        let known = self.found.iter().position(is_of);
        if known.is_some() || self.is_settled || self.found.len() >= MOST {
            return known;
        }
        self.found.push(discover(&format!("{prefix}{name}")));
        Some(self.found.len() - 1)
    }
}

/// A row that is being filled.
#[derive(Debug)]
pub(crate) struct WideRow {
    cells: CellRow,
    begin: usize,
    expected: usize,
    has_value: bool,
}

impl WideRow {
    /// Puts the number that stands in `rest` into the column of that name.
    pub(crate) fn set(
        &mut self,
        columns: &mut WideColumns,
        prefix: &str,
        name: &str,
        rest: &str,
        discover: impl FnOnce(&str) -> DiscoveredColumn,
    ) {
        let Some(place) = columns.place(self.expected, prefix, name, discover) else { return };
        self.expected = place + 1;
        let Some(column) = columns.found.get(place) else { return };
        if self.cells.len() <= self.begin + place {
            self.cells.resize(self.begin + place + 1, TableCell::Missing);
        }
        if let Some(cell) = self.cells.get_mut(self.begin + place) {
            // Several numbers of one name are of its parts: the devices of a group, the lines of a protocol.
            *cell = match (&*cell, parse_discovered_cell(column, rest)) {
                (TableCell::Int(sum), TableCell::Int(more)) => {
                    sum.checked_add(more).map_or(TableCell::Missing, TableCell::Int)
                }
                (_, parsed) => parsed,
            };
            self.has_value = true;
        }
    }

    /// The row, as wide as the columns; nothing where it has no number.
    pub(crate) fn finish(mut self, columns: &WideColumns) -> Option<CellRow> {
        self.cells.resize(self.begin + columns.found.len(), TableCell::Missing);
        self.has_value.then_some(self.cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(name: &str) -> DiscoveredColumn {
        DiscoveredColumn { column: ColumnSpec::counter(name, "1"), scale: 1, suffix: "" }
    }

    #[test]
    fn names_find_their_columns_in_any_order_and_parts_are_added() {
        let mut columns = WideColumns::default();
        let mut row = columns.begin_row([]);
        row.set(&mut columns, "io_", "rbytes", "1", counter);
        row.set(&mut columns, "io_", "wbytes", "2", counter);
        row.set(&mut columns, "io_", "rbytes", "10", counter);
        assert_eq!(row.finish(&columns), Some(vec![TableCell::Int(11), TableCell::Int(2)]));
        columns.settle();
        let mut later = columns.begin_row([TableCell::Text("a".into())]);
        later.set(&mut columns, "io_", "wbytes", "3", counter);
        later.set(&mut columns, "io_", "new", "3", counter);
        let expected = vec![TableCell::Text("a".into()), TableCell::Missing, TableCell::Int(3)];
        assert_eq!(later.finish(&columns), Some(expected));
        assert_eq!(columns.begin_row([]).finish(&columns), None);
    }
}
