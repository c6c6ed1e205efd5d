//! What a monitor read of an iteration: at its edges and on a clock in between, in the order of time, column by column.

use std::collections::{BTreeMap, BTreeSet};

use perflab_formats::kernel::events::tells_of_iterations;
use perflab_model::column::ColumnKind;
use perflab_model::series::{Series, SeriesSchema};
use perflab_model::table::CellColumn;
use perflab_model::{ColumnSpec, EdgeReadings, IterationEdge, IterationRecord, Nanos};

use crate::keyed_rows::{KeyedRows, describe_key, rows_by_key, rows_within, table_rows_by_key};

/// A number of a column, and when it was read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ColumnReading {
    /// The middle of the reading: when within it the kernel gave the number is not known.
    pub(crate) at: Nanos,
    /// How long it took; 0 where that is not known.
    pub(crate) took: Nanos,
    pub(crate) value: f64,
    pub(crate) is_tick: bool,
}

impl ColumnReading {
    /// The tick in a row of a series.
    pub(crate) fn tick(series: &Series, data: CellColumn<'_>, row: usize) -> Option<Self> {
        let took = series.took.get(row).copied().unwrap_or_default();
        let at = Nanos(series.at.get(row)?.0.saturating_add(took.0 / 2));
        Some(ColumnReading { at, took, value: data.number(row)?, is_tick: true })
    }
}

/// Rows of edges: of each slot, by key.
type EdgeRows = BTreeMap<u32, BTreeMap<String, BTreeMap<IterationEdge, usize>>>;

/// A monitor's ticks and edges over a whole run.
pub(crate) struct IterationReadings<'a> {
    series: &'a Series,
    ticks: KeyedRows,
    tick_columns: Vec<CellColumn<'a>>,
    edges: Option<&'a EdgeReadings>,
    edge_rows: EdgeRows,
    edge_columns: Vec<CellColumn<'a>>,
    /// Of a monitor that tells of each iteration by itself: the rows and columns that ever had a number. A row is there from when
    /// it first counted; before, it was nothing.
    numbers: BTreeSet<(String, usize)>,
    /// The place of each column among those of the ticks.
    tick_places: Vec<Option<usize>>,
}

impl<'a> IterationReadings<'a> {
    pub(crate) fn new(series: &'a Series, edges: Option<&'a EdgeReadings>) -> Self {
        let mut edge_rows = EdgeRows::new();
        if let Some(edges) = edges {
            for (key, rows) in table_rows_by_key(&edges.schema.columns, &edges.table, " ", describe_key) {
                for row in rows {
                    let Some(stamp) = edges.stamps.get(row) else { continue };
                    let of_slot = edge_rows.entry(stamp.slot).or_default();
                    of_slot.entry(key.clone()).or_default().insert(stamp.edge, row);
                }
            }
        }
        let schema = edges.map_or(&series.schema, |edges| &edges.schema);
        let edge_columns = edges.map(|edges| edges.table.cell_columns()).unwrap_or_default();
        let mut numbers = BTreeSet::new();
        if tells_of_iterations(&schema.monitor) {
            for (key, rows) in edge_rows.values().flatten() {
                for (place, column) in edge_columns.iter().enumerate() {
                    if rows.values().any(|row| column.number(*row).is_some()) {
                        numbers.insert((key.clone(), place));
                    }
                }
            }
        }
        let place =
            |column: &ColumnSpec| series.schema.columns.iter().position(|one| one.name == column.name);
        IterationReadings {
            series,
            ticks: rows_by_key(series, " ", describe_key),
            tick_columns: series.table.cell_columns(),
            edges,
            edge_rows,
            edge_columns,
            numbers,
            tick_places: schema.columns.iter().map(place).collect(),
        }
    }

    /// What its columns are.
    pub(crate) fn schema(&self) -> &'a SeriesSchema {
        self.edges.map_or(&self.series.schema, |edges| &edges.schema)
    }

    /// The rows of an iteration: each key with its ticks within, and where its edges are.
    pub(crate) fn rows(&self, iteration: &IterationRecord) -> Vec<KeyReadings<'_, 'a>> {
        let at_edges = self.edge_rows.get(&iteration.slot);
        let keys: BTreeSet<&String> =
            self.ticks.keys().chain(at_edges.into_iter().flat_map(BTreeMap::keys)).collect();
        let keys = keys.into_iter().chain(self.numbers.iter().map(|(key, _)| key)).collect::<BTreeSet<_>>();
        // When its edges were read, by a row that is at both.
        let stamp = |row: &usize| Some(self.edges?.stamps.get(*row)?.at);
        let spans = at_edges.into_iter().flat_map(BTreeMap::values).find_map(|edges| {
            Some((stamp(edges.get(&IterationEdge::Begin)?)?, stamp(edges.get(&IterationEdge::End)?)?))
        });
        let spans = spans.filter(|_| !self.numbers.is_empty());
        let row = |key: &'_ String| {
            let ticks = self.ticks.get(key).map_or(&[][..], Vec::as_slice);
            let ticks = rows_within(ticks, self.series, (iteration.start, iteration.end));
            let edge = |edge| at_edges?.get(key)?.get(&edge).copied();
            let edges = [edge(IterationEdge::Begin), edge(IterationEdge::End)];
            (ticks, edges)
        };
        keys.into_iter()
            .map(|key| {
                let (ticks, edges) = row(key);
                KeyReadings { of: self, key, ticks, edges, spans }
            })
            .collect()
    }

    fn edge(&self, row: usize, column: usize) -> Option<ColumnReading> {
        let (stamp, data) = (self.edges?.stamps.get(row)?, self.edge_columns.get(column)?);
        let at = Nanos(stamp.at.0.saturating_add(stamp.took.0 / 2));
        Some(ColumnReading { at, took: stamp.took, value: data.number(row)?, is_tick: false })
    }
}

/// One subject of a monitor (a CPU, a device) in one iteration.
pub(crate) struct KeyReadings<'r, 'a> {
    of: &'r IterationReadings<'a>,
    /// `device=sda`; empty where the monitor has one row.
    pub(crate) key: &'r str,
    ticks: &'r [usize],
    edges: [Option<usize>; 2],
    /// Of a monitor that tells of each iteration by itself: when its edges were read.
    spans: Option<(Nanos, Nanos)>,
}

impl KeyReadings<'_, '_> {
    /// The readings of a column, by its number in the schema.
    pub(crate) fn readings(&self, column: usize) -> Vec<ColumnReading> {
        let edge = |row: Option<usize>| row.and_then(|row| self.of.edge(row, column));
        let data = self.of.tick_places.get(column).copied().flatten();
        let data = data.and_then(|place| self.of.tick_columns.get(place));
        let tick = |row: &usize| ColumnReading::tick(self.of.series, *data?, *row);
        let [begin, end] = self.edges;
        let ticks = self.ticks.iter().filter_map(tick);
        let (begin, end) = (edge(begin), edge(end));
        let Some((start, stop)) = self.spans else {
            return begin.into_iter().chain(ticks).chain(end).collect();
        };
        let is_counter =
            self.of.schema().columns.get(column).is_some_and(|one| one.kind == ColumnKind::Counter);
        if !is_counter {
            // What is said at its end is of the whole iteration.
            return end.into_iter().collect();
        }
        if !self.of.numbers.contains(&(self.key.to_owned(), column)) {
            return Vec::new();
        }
        let nothing = |at| ColumnReading { at, took: Nanos(0), value: 0.0, is_tick: false };
        let begin = begin.unwrap_or(nothing(start));
        [begin].into_iter().chain(ticks).chain([end.unwrap_or(nothing(stop))]).collect()
    }
}
