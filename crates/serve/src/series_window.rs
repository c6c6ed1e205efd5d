//! What a monitor recorded, as Arrow columns: of a range of time, and thinned to the lowest and highest value of each part of it, so
//! that no spike is lost and no client is sent a million rows.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_ipc::writer::StreamWriter;
use perflab_model::column::{ColumnKind, ColumnType};
use perflab_model::series::RowRuns;
use perflab_model::table::{CellColumn, StoredValue};
use perflab_model::{ColumnSpec, TableBuilder};
use perflab_present::chart::{bucket_size, find_extremes};

use crate::laboratory::WebLaboratory;
use crate::refusal::{RequestRefusal, unknown_name};
use crate::route::{RouteAnswer, RouteParameter, RouteParameterKind, RouteRequest};
use crate::run_document::RUN_PARAMETER;
use crate::run_lookup::find_run;

/// Rows of an answer for which nobody says how many.
const USUAL_POINTS: usize = 2000;

/// The most rows of an answer.
const MOST_POINTS: usize = 100_000;

/// The most rows that are looked at for one.
const MOST_LOOKED_AT: usize = 8_000_000;

pub(crate) const SERIES_PARAMETERS: &[RouteParameter] = &[
    RUN_PARAMETER,
    RouteParameter::required(
        "monitor",
        RouteParameterKind::Path,
        "a monitor of the run, as its document lists them",
    ),
    RouteParameter::optional(
        "from",
        RouteParameterKind::Number,
        "only rows from this time on: nanoseconds of CLOCK_MONOTONIC, as in time_ns",
    ),
    RouteParameter::optional("to", RouteParameterKind::Number, "only rows up to this time"),
    RouteParameter::optional(
        "points",
        RouteParameterKind::Number,
        "about as many rows, 2000 unless given, and at most 100,000. Where there are more, the range is cut into parts, and each subject has \
         two rows of each part, with the lowest and the highest value of every column in the order in which they came",
    ),
    RouteParameter::optional(
        "column",
        RouteParameterKind::Texts,
        "only this column, beside time and keys (repeatable)",
    ),
    RouteParameter::optional(
        "where",
        RouteParameterKind::Texts,
        "only rows with this key, KEY=VALUE, such as name=dentry (repeatable)",
    ),
];

/// `/api/v1/runs/{id}/series/{monitor}`
pub(crate) fn send_series(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    let run = find_run(laboratory, request.path_part("id"))?;
    let wanted = SeriesWindow::of_request(request)?;
    let rows = run.read_series_spans(request.path_part("monitor"))?;
    Ok(RouteAnswer::new(wanted.select(&rows)?.to_stream(&rows)?))
}

/// What is asked for of a series.
#[derive(Debug)]
struct SeriesWindow<'a> {
    from: u64,
    to: u64,
    points: usize,
    columns: Vec<&'a str>,
    keys: Vec<(&'a str, &'a str)>,
}

/// The rows of an answer.
struct SelectedRows {
    table: perflab_model::Table,
    /// Rows of the window before they were thinned.
    rows: usize,
    is_thinned: bool,
}

impl<'a> SeriesWindow<'a> {
    fn of_request(request: &'a RouteRequest) -> Result<Self, RequestRefusal> {
        let (from, to) = (request.number("from")?.unwrap_or(0), request.number("to")?.unwrap_or(u64::MAX));
        if from > to {
            return Err(RequestRefusal::bad_request("`from` is later than `to`"));
        }
        let points = request.number("points")?.unwrap_or(USUAL_POINTS);
        if !(2..=MOST_POINTS).contains(&points) {
            return Err(RequestRefusal::bad_request(format!(
                "`points={points}` is not between 2 and {MOST_POINTS}"
            )));
        }
        let pair = |text: &'a str| {
            text.split_once('=').ok_or_else(|| {
                RequestRefusal::bad_request(format!("`where={text}`: write KEY=VALUE, such as name=dentry"))
            })
        };
        let keys = request.texts("where").map(pair).collect::<Result<_, _>>()?;
        Ok(SeriesWindow { from, to, points, columns: request.texts("column").collect(), keys })
    }

    /// The columns of the answer, by their number in the series.
    fn chosen_columns(&self, known: &[ColumnSpec]) -> Result<Vec<usize>, RequestRefusal> {
        let unknown = |what: &str, name: &str| {
            let names = known.iter().map(|column| column.name.as_str());
            unknown_name(what, name, names)
        };
        if let Some(name) = self.columns.iter().find(|name| known.iter().all(|column| column.name != **name))
        {
            return Err(unknown("column", name));
        }
        let is_key =
            |name: &str| known.iter().any(|column| column.name == name && column.kind == ColumnKind::Key);
        if let Some((name, _)) = self.keys.iter().find(|(name, _)| !is_key(name)) {
            return Err(unknown("where", name));
        }
        let is_chosen = |column: &ColumnSpec| {
            self.columns.is_empty()
                || column.kind == ColumnKind::Key
                || self.columns.contains(&column.name.as_str())
        };
        let chosen = known.iter().enumerate().filter(|(_, column)| is_chosen(column));
        Ok(chosen.map(|(index, _)| index).collect())
    }

    fn select(&self, rows: &RowRuns) -> Result<SelectedRows, RequestRefusal> {
        let specs = rows.series.table.columns();
        let chosen = self.chosen_columns(specs)?;
        let subjects = self.group_rows(rows)?;
        let all: usize = subjects.iter().map(Vec::len).sum();
        let is_thinned = all > self.points;
        let share = (self.points / subjects.len().max(1)).max(2);
        if is_thinned && subjects.len() * 2 > MOST_POINTS {
            return Err(RequestRefusal::bad_request(format!(
                "the series has {} subjects, of which each has two rows at least: choose some with `where`",
                subjects.len()
            )));
        }
        let mut builder = WindowBuilder::new(rows, &chosen);
        for subject in &subjects {
            if is_thinned {
                let part = bucket_size(subject.len(), share);
                subject.chunks(part).for_each(|part| builder.push_extremes(part));
            } else {
                subject.iter().for_each(|at| builder.push_row(*at));
            }
        }
        Ok(SelectedRows { table: builder.table.finish(), rows: all, is_thinned })
    }

    /// The rows of the window by their subject, each as the tick and the number of the stored row.
    fn group_rows(&self, rows: &RowRuns) -> Result<Vec<Vec<(usize, usize)>>, RequestRefusal> {
        let first = rows.ticks.partition_point(|tick| tick.0 < self.from);
        let end = rows.ticks.partition_point(|tick| tick.0 <= self.to);
        let table = &rows.series.table;
        let specs = table.columns();
        let keys: Vec<(&str, CellColumn<'_>)> = specs
            .iter()
            .zip(table.cell_columns())
            .filter(|(spec, _)| spec.kind == ColumnKind::Key)
            .map(|(spec, column)| (spec.name.as_str(), column))
            .collect();
        let mut numbers: HashMap<Vec<Option<String>>, usize> = HashMap::new();
        let mut subjects: Vec<Vec<(usize, usize)>> = Vec::new();
        let mut count = 0;
        for row in 0..table.row_count() {
            let ticks = rows.ticks_of_row(row);
            let ticks = ticks.start.max(first)..ticks.end.min(end);
            if ticks.is_empty() {
                continue;
            }
            let key = |(_, column): &(&str, CellColumn<'_>)| column.get(row).map(value_text);
            let is_wanted = self.keys.iter().all(|(name, value)| {
                let cell = keys.iter().find(|(known, _)| known == name).and_then(key);
                cell.as_deref() == Some(*value)
            });
            if !is_wanted {
                continue;
            }
            count += ticks.len();
            if count > MOST_LOOKED_AT {
                return Err(RequestRefusal::bad_request(format!(
                    "more than {MOST_LOOKED_AT} rows are in this window: choose less with `from`, `to` or `where`"
                )));
            }
            let next = subjects.len();
            let number = *numbers.entry(keys.iter().map(key).collect()).or_insert(next);
            if number == next {
                subjects.push(Vec::new());
            }
            if let Some(subject) = subjects.get_mut(number) {
                subject.extend(ticks.map(|tick| (tick, row)));
            }
        }
        subjects.iter_mut().for_each(|subject| subject.sort_unstable());
        Ok(subjects)
    }
}

fn value_text(value: StoredValue<'_>) -> String {
    match value {
        StoredValue::Int(number) => number.to_string(),
        StoredValue::Float(number) => number.to_string(),
        StoredValue::Text(text) => text.to_owned(),
        StoredValue::Flag(flag) => flag.to_string(),
    }
}

/// The table of an answer being filled.
struct WindowBuilder<'a> {
    rows: &'a RowRuns,
    /// Column of the series, and whether it is a number.
    columns: Vec<(CellColumn<'a>, bool)>,
    table: TableBuilder,
}

impl<'a> WindowBuilder<'a> {
    fn new(rows: &'a RowRuns, chosen: &[usize]) -> Self {
        let table = &rows.series.table;
        let specs = table.columns();
        let time = ColumnSpec {
            nullable: false,
            stored: ColumnType::Int,
            unit: perflab_model::Unit::new("ns"),
            meaning: "when the reading began".into(),
            ..ColumnSpec::key("time_ns")
        };
        let own = chosen.iter().filter_map(|index| specs.get(*index)).cloned();
        let columns = chosen.iter().filter_map(|index| {
            let is_number = specs.get(*index)?.kind != ColumnKind::Key;
            Some((table.cell_column(*index)?, is_number))
        });
        WindowBuilder {
            rows,
            columns: columns.collect(),
            table: TableBuilder::new(std::iter::once(time).chain(own).collect::<Vec<_>>().into()),
        }
    }

    fn set_time(&mut self, tick: usize) {
        let time = self.rows.ticks.get(tick).map_or(0, |tick| tick.0);
        self.table.set(0, StoredValue::Int(i64::try_from(time).unwrap_or(i64::MAX)));
    }

    fn push_row(&mut self, (tick, row): (usize, usize)) {
        self.set_time(tick);
        for (at, (column, _)) in self.columns.iter().enumerate() {
            column.get(row).into_iter().for_each(|value| self.table.set(at + 1, value));
        }
        self.table.end_row();
    }

    /// Two rows for a part, at its first and its last tick: the lowest and the highest value of each column, in the order in which
    /// they came. A part of two or fewer is as it is.
    fn push_extremes(&mut self, part: &[(usize, usize)]) {
        let [first, .., last] = part else { return part.iter().for_each(|at| self.push_row(*at)) };
        let ends = [*first, *last];
        let find = |(column, is_number): &(CellColumn<'a>, bool)| {
            let number = |(_, row): &(usize, usize)| column.number(*row);
            let found = find_extremes(part.iter().map(number)).filter(|_| *is_number);
            let row = |at: usize| part.get(at).map_or(0, |(_, row)| *row);
            found.map_or_else(|| ends.map(|(_, row)| row), |found| found.map(row))
        };
        let extremes: Vec<[usize; 2]> = self.columns.iter().map(find).collect();
        for (end, (tick, _)) in ends.into_iter().enumerate() {
            self.set_time(tick);
            for (at, ((column, _), rows)) in self.columns.iter().zip(&extremes).enumerate() {
                let value = rows.get(end).and_then(|row| column.get(*row));
                value.into_iter().for_each(|value| self.table.set(at + 1, value));
            }
            self.table.end_row();
        }
    }
}

impl SelectedRows {
    /// As a stream of Arrow's IPC, whose schema says what was thinned.
    fn to_stream(&self, rows: &RowRuns) -> Result<Vec<u8>, RequestRefusal> {
        let refuse = |error| RequestRefusal::unexpected(format!("cannot write the columns: {error}"));
        let schema = &rows.series.schema;
        let about = [
            ("perflab.monitor", schema.monitor.clone()),
            ("perflab.source", schema.source.clone()),
            ("perflab.interval_ns", schema.interval.0.to_string()),
            ("perflab.rows", self.rows.to_string()),
            ("perflab.thinned", self.is_thinned.to_string()),
        ];
        let about: HashMap<String, String> = about.map(|(key, text)| (key.to_owned(), text)).into();
        let batch = self.table.to_record_batch().map_err(refuse)?;
        let schema = Arc::new(batch.schema().as_ref().clone().with_metadata(about));
        let batch = batch.with_schema(Arc::clone(&schema)).map_err(refuse)?;
        let mut writer = StreamWriter::try_new(Vec::new(), &schema).map_err(refuse)?;
        writer.write(&batch).map_err(refuse)?;
        writer.into_inner().map_err(refuse)
    }
}
