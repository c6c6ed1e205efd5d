//! `MONITOR.COLUMN > BOUND`, `MONITOR[ROW].COLUMN < BOUND`: a column of a monitor beyond a bound, reading by reading.
//!
//! A gauge is held against its value, a counter against its growth a second since the reading before, a derived column against
//! what is worked out of the same growths. The bound is in the unit of that value.

use std::collections::HashMap;

use perflab_formats::kernel::derived_column::Divisor;
use perflab_formats::kernel::{DerivedColumn, KERNEL_FILES, derived_columns, find_kernel_file};
use perflab_model::column::{ColumnKind, ColumnSpec};
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::quantity::is_count_unit;
use perflab_model::{Bytes, CellRow, Nanos, SeriesSchema, TableCell, Unit, suggest_name};

use crate::compare::case_condition::matches_pattern;

/// A text that is no condition, or that nothing here can meet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no condition: {reason}")]
pub struct TriggerError {
    /// The condition as it was written.
    pub text: String,
    /// What is wrong with it, and what to write.
    pub reason: String,
}

impl Classify for TriggerError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }
}

/// A column and its bound, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnBound {
    text: String,
    monitor: String,
    row: Option<String>,
    column: String,
    side: BoundSide,
    bound: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BoundSide {
    Over,
    AtLeast,
    Under,
    AtMost,
}

impl BoundSide {
    const WRITTEN: [(&'static str, BoundSide); 4] = [
        (">=", BoundSide::AtLeast),
        ("<=", BoundSide::AtMost),
        (">", BoundSide::Over),
        ("<", BoundSide::Under),
    ];

    fn is_met_by(self, value: f64, bound: f64) -> bool {
        match self {
            BoundSide::Over => value > bound,
            BoundSide::AtLeast => value >= bound,
            BoundSide::Under => value < bound,
            BoundSide::AtMost => value <= bound,
        }
    }

    /// Which of two values is further on this side.
    fn further(self, one: f64, other: f64) -> bool {
        match self {
            BoundSide::Over | BoundSide::AtLeast => one > other,
            BoundSide::Under | BoundSide::AtMost => one < other,
        }
    }
}

impl ColumnBound {
    /// Reads `vmstat.pgscan_direct > 1000/s`, `diskstats[vd*].io_ns >= 90%`. The monitor must be one; its columns are held against
    /// those that it has here by [`ColumnBound::resolve`].
    ///
    /// # Errors
    /// A text that is none, an unknown monitor with the nearest name.
    pub fn parse(text: &str) -> Result<Self, TriggerError> {
        let text = text.trim();
        let refuse = |reason: String| TriggerError { text: text.into(), reason };
        let shape =
            || refuse("write MONITOR.COLUMN or MONITOR[ROW].COLUMN, then > or <, then a bound".into());
        // A row's name may have anything in it.
        let behind_row = text.rfind("].").unwrap_or(0);
        let at = text.get(behind_row..).and_then(|rest| rest.find(['<', '>'])).ok_or_else(shape)?;
        let (column, rest) = text.split_at(behind_row + at);
        let written =
            BoundSide::WRITTEN.iter().find_map(|(sign, side)| Some((*side, rest.strip_prefix(sign)?)));
        let (side, bound) = written.ok_or_else(shape)?;
        let column = column.trim_end();
        let is_keyed =
            column.find('[').is_some_and(|bracket| column.find('.').is_none_or(|dot| bracket < dot));
        let (monitor, row, column) = if is_keyed {
            let (monitor, rest) = column.split_once('[').ok_or_else(shape)?;
            let (row, column) = rest.rsplit_once("].").ok_or_else(shape)?;
            (monitor, Some(row.to_owned()), column)
        } else {
            let (monitor, column) = column.split_once('.').ok_or_else(shape)?;
            (monitor, None, column)
        };
        let (monitor, bound) = (monitor.trim(), bound.trim());
        if monitor.is_empty() || column.is_empty() || bound.is_empty() || row.as_deref() == Some("") {
            return Err(shape());
        }
        if find_kernel_file(monitor).is_none() {
            let near = suggest_name(monitor, KERNEL_FILES.iter().map(|file| file.name));
            return Err(refuse(format!("`{monitor}` is no monitor; {near}")));
        }
        Ok(ColumnBound {
            text: text.into(),
            monitor: monitor.into(),
            row,
            column: column.into(),
            side,
            bound: bound.into(),
        })
    }

    /// The monitor that it needs.
    #[must_use]
    pub fn monitor(&self) -> &str {
        &self.monitor
    }

    /// The column as the monitor has it here, and the bound in its unit.
    ///
    /// # Errors
    /// A column that it has not, with the nearest name; a bound in another unit; a row of a monitor that has but one; a column that
    /// needs the operations of a workload.
    pub fn resolve(&self, schema: &SeriesSchema) -> Result<BoundedColumn, TriggerError> {
        let refuse = |reason: String| TriggerError { text: self.text.clone(), reason };
        let keys: Vec<usize> = index_columns(schema, |column| column.kind == ColumnKind::Key);
        if self.row.is_some() && keys.is_empty() {
            let (monitor, column) = (&self.monitor, &self.column);
            return Err(refuse(format!("{monitor} has one row: write {monitor}.{column}")));
        }
        let (value, unit) = self.find_value(schema).map_err(refuse)?;
        let bound = parse_bound(&self.bound, &unit.0).ok_or_else(|| {
            let counts = if matches!(value, BoundedValue::Rate(_)) { " (it counts: its growth a second)" } else { "" };
            let (monitor, column, example) = (&self.monitor, &self.column, bound_example(&unit.0));
            refuse(format!(
                "`{}` is no value of {monitor}.{column}, which is in {unit}{counts}: write for example `{example}`",
                self.bound
            ))
        })?;
        let row = self.row.clone();
        Ok(BoundedColumn { side: self.side, bound, row, keys, value, unit, before: HashMap::new() })
    }

    fn find_value(&self, schema: &SeriesSchema) -> Result<(BoundedValue, Unit), String> {
        let position = |name: &str| schema.columns.iter().position(|column| column.name == name);
        let found = position(&self.column).and_then(|index| Some((index, schema.columns.get(index)?)));
        match found {
            Some((index, column)) if column.kind == ColumnKind::Counter => {
                return Ok((BoundedValue::Rate(index), column.unit.per_second()));
            }
            Some((index, column)) if column.kind == ColumnKind::Gauge => {
                return Ok((BoundedValue::Gauge(index), column.unit.clone()));
            }
            _ => {}
        }
        let derived = derived_columns(&self.monitor);
        if let Some(column) = derived.iter().find(|column| column.name == self.column) {
            if column.divisor == Divisor::Operations {
                return Err(
                    "it is worked out of a workload's operations, of which there are none here".into()
                );
            }
            let counters: Vec<(&str, usize)> =
                column.counters().filter_map(|name| Some((name, position(name)?))).collect();
            if !column.plus.iter().any(|name| position(name).is_some()) {
                return Err(format!("this kernel counts none of {}", column.plus.join(", ")));
            }
            return Ok((BoundedValue::Derived(column, counters), Unit::new(column.unit)));
        }
        let numbers =
            schema.columns.iter().filter(|column| is_number(column)).map(|column| column.name.as_str());
        let known: Vec<&str> = numbers.chain(derived.iter().map(|column| column.name)).collect();
        let near = suggest_name(&self.column, known.iter().copied());
        Err(format!(
            "{} has no column `{}` of numbers; {near} (`perflab monitor show {}` lists them)",
            self.monitor, self.column, self.monitor
        ))
    }
}

fn is_number(column: &ColumnSpec) -> bool {
    matches!(column.kind, ColumnKind::Counter | ColumnKind::Gauge)
}

fn index_columns(schema: &SeriesSchema, is_wanted: impl Fn(&ColumnSpec) -> bool) -> Vec<usize> {
    let columns = schema.columns.iter().enumerate();
    columns.filter(|(_, column)| is_wanted(column)).map(|(index, _)| index).collect()
}

/// What of a row is held against a bound, by the columns' indexes.
#[derive(Debug, Clone)]
enum BoundedValue {
    Gauge(usize),
    Rate(usize),
    Derived(&'static DerivedColumn, Vec<(&'static str, usize)>),
}

/// A column of a monitor of this machine, and its bound.
#[derive(Debug, Clone)]
pub struct BoundedColumn {
    side: BoundSide,
    bound: f64,
    row: Option<String>,
    keys: Vec<usize>,
    value: BoundedValue,
    unit: Unit,
    /// The counters of each row at the last reading.
    before: HashMap<String, (Nanos, Vec<Option<f64>>)>,
}

/// The value of a reading that is furthest on the side of the bound.
#[derive(Debug, Clone, PartialEq)]
pub struct FurthestReading {
    /// The row; none of a monitor with one row.
    pub row: Option<String>,
    /// The value.
    pub value: f64,
    /// Whether it is beyond the bound.
    pub is_beyond: bool,
}

impl BoundedColumn {
    /// The unit of its values.
    #[must_use]
    pub fn unit(&self) -> &Unit {
        &self.unit
    }

    /// Reads a whole tick; nothing where no row has a value, as at the first reading of a counter.
    pub fn read_tick(&mut self, at: Nanos, rows: &[CellRow]) -> Option<FurthestReading> {
        let mut furthest: Option<(f64, String)> = None;
        let mut current = HashMap::with_capacity(self.before.len());
        for row in rows {
            let key = self.row_key(row);
            if self.row.as_ref().is_some_and(|wanted| !matches_pattern(wanted, &key)) {
                continue;
            }
            let value = match &self.value {
                BoundedValue::Gauge(index) => row_number(row, *index),
                BoundedValue::Rate(index) => {
                    let now = vec![row_number(row, *index)];
                    let value =
                        self.growth_since(&key, at, &now, |growth, seconds| Some(growth(0)? / seconds));
                    current.insert(key.clone(), (at, now));
                    value
                }
                BoundedValue::Derived(column, counters) => {
                    let now: Vec<Option<f64>> =
                        counters.iter().map(|(_, index)| row_number(row, *index)).collect();
                    let value = self.growth_since(&key, at, &now, |growth, seconds| {
                        let of = |name: &str| growth(counters.iter().position(|(known, _)| *known == name)?);
                        column.value(of, seconds, None)
                    });
                    current.insert(key.clone(), (at, now));
                    value
                }
            };
            if let Some(value) = value
                && furthest.as_ref().is_none_or(|(known, _)| self.side.further(value, *known))
            {
                furthest = Some((value, key));
            }
        }
        self.before = current;
        let (value, key) = furthest?;
        let row = (!self.keys.is_empty()).then_some(key);
        Some(FurthestReading { row, value, is_beyond: self.side.is_met_by(value, self.bound) })
    }

    /// What is worked out of the growth of a row's counters since its last reading; none that went back.
    fn growth_since(
        &self,
        key: &str,
        at: Nanos,
        now: &[Option<f64>],
        work_out: impl Fn(&dyn Fn(usize) -> Option<f64>, f64) -> Option<f64>,
    ) -> Option<f64> {
        let (then, before) = self.before.get(key)?;
        let seconds = at.since(*then).seconds();
        let growth = |index: usize| {
            let grown = (*now.get(index)?)? - (*before.get(index)?)?;
            (grown >= 0.0).then_some(grown)
        };
        if seconds > 0.0 { work_out(&growth, seconds) } else { None }
    }

    fn row_key(&self, row: &CellRow) -> String {
        let text = |index: &usize| match row.get(*index) {
            Some(TableCell::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        self.keys.iter().filter_map(text).collect::<Vec<_>>().join(" ")
    }
}

fn row_number(row: &CellRow, index: usize) -> Option<f64> {
    match row.get(index)? {
        TableCell::Int(number) => Some(*number as f64),
        TableCell::Float(number) => Some(*number),
        TableCell::Text(_) | TableCell::Missing => None,
    }
}

/// Units of times and sizes, in nanoseconds and bytes.
const TIMES: &[(&str, f64)] = &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
const SIZES: &[(&str, f64)] =
    &[("bytes", 1.0), ("B", 1.0), ("kB", 1e3), ("KiB", 1024.0), ("MiB", 1_048_576.0)];

fn find_unit(units: &[(&str, f64)], name: &str) -> Option<f64> {
    units.iter().find(|(known, _)| *known == name).map(|(_, size)| *size)
}

/// A bound in the unit of what it bounds: a time, a size, per cent, a count with or without its name; each a second where the unit
/// is. Only nothing needs no unit.
fn parse_bound(text: &str, unit: &str) -> Option<f64> {
    let (sign, size) = text.strip_prefix('-').map_or((1.0, text), |size| (-1.0, size));
    let end = size.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(size.len());
    let (number, written) = size.split_at(end);
    let parsed: f64 = number.parse().ok()?;
    let written = written.trim();
    if parsed == 0.0 && written.is_empty() {
        return Some(0.0);
    }
    let parts = |unit: &'static str, text: &str| -> (String, bool) {
        text.strip_suffix(unit).map_or((text.to_owned(), false), |base| (base.trim().to_owned(), true))
    };
    let ((base, is_rate), (written_base, is_written_rate)) = (parts("/s", unit), parts("/s", written));
    let time = find_unit(TIMES, &base);
    // Time a second is a share of it.
    if is_rate && written == "%" {
        return Some(sign * parsed / 100.0 * 1e9 / time?);
    }
    if is_rate != is_written_rate {
        return None;
    }
    let quantity = format!("{number}{written_base}");
    let value = if let Some(one) = time {
        Nanos::parse(&quantity).ok()?.0 as f64 / one
    } else if let Some(one) = find_unit(SIZES, &base) {
        Bytes::parse(&quantity).ok()?.0 as f64 / one
    } else if written_base == base || (written_base.is_empty() && is_count_unit(&base)) {
        parsed
    } else {
        return None;
    };
    Some(sign * value)
}

/// A bound of that unit.
fn bound_example(unit: &str) -> String {
    let (base, per) = unit.strip_suffix("/s").map_or((unit, ""), |base| (base, "/s"));
    if find_unit(TIMES, base).is_some() {
        return if per.is_empty() { "10ms".into() } else { "50%".into() };
    }
    if find_unit(SIZES, base).is_some() {
        return format!("200MiB{per}");
    }
    if is_count_unit(base) { format!("1000{per}") } else { format!("50{base}{per}") }
}

#[cfg(test)]
mod tests {
    use perflab_model::series::StoredRows;

    use super::*;

    fn schema(monitor: &str, columns: Vec<ColumnSpec>) -> SeriesSchema {
        SeriesSchema {
            monitor: monitor.into(),
            source: "/proc".into(),
            interval: Nanos(100),
            columns,
            stored: StoredRows::Every,
        }
    }

    fn vmstat() -> SeriesSchema {
        let counters = ["pgscan_direct", "pgsteal_direct", "pgscan_kswapd"];
        let counters = counters.map(|name| ColumnSpec::counter(name, "pages"));
        schema("vmstat", counters.into_iter().chain([ColumnSpec::gauge("nr_dirty", "pages")]).collect())
    }

    fn diskstats() -> SeriesSchema {
        let columns = vec![
            ColumnSpec::key("device"),
            ColumnSpec::counter("read_ios", "1"),
            ColumnSpec::counter("read_ns", "ns"),
            ColumnSpec::counter("read_bytes", "bytes"),
        ];
        schema("diskstats", columns)
    }

    fn meminfo() -> SeriesSchema {
        schema("meminfo", vec![ColumnSpec::gauge("MemAvailable", "bytes")])
    }

    fn resolve(text: &str, schema: &SeriesSchema) -> Result<BoundedColumn, String> {
        let bound = ColumnBound::parse(text).map_err(|error| error.reason)?;
        bound.resolve(schema).map_err(|error| error.reason)
    }

    #[test]
    fn bounds_are_in_the_unit_of_the_value() {
        for (text, unit, bound) in [
            ("1000/s", "pages/s", Some(1000.0)),
            ("1000 pages/s", "pages/s", Some(1000.0)),
            ("1000", "pages/s", None),
            ("0", "pages/s", Some(0.0)),
            ("5/s", "1/s", Some(5.0)),
            ("5", "1", Some(5.0)),
            ("5/s", "1", None),
            ("200MiB", "bytes", Some(209_715_200.0)),
            ("200", "bytes", None),
            ("2MiB/s", "bytes/s", Some(2_097_152.0)),
            ("2MiB", "bytes/s", None),
            ("10ms", "ns", Some(1e7)),
            ("10ms", "pages", None),
            ("90%", "ns/s", Some(9e8)),
            ("900ms/s", "ns/s", Some(9e8)),
            ("12.5%", "%", Some(12.5)),
            ("12.5", "%", None),
            ("-5", "1", Some(-5.0)),
            ("5 objects", "pages", None),
            ("", "1", None),
            ("1e3", "1", None),
            ("many", "1", None),
        ] {
            assert_eq!(parse_bound(text, unit), bound, "{text} in {unit}");
            let example = bound_example(unit);
            assert!(parse_bound(&example, unit).is_some(), "{example} in {unit}");
        }
    }

    #[test]
    fn a_column_is_a_monitors_name_a_row_and_a_name() {
        let parts = |text: &str| {
            let bound = ColumnBound::parse(text).ok()?;
            Some((bound.monitor, bound.row, bound.column, bound.side, bound.bound))
        };
        let found = |monitor: &str, row: Option<&str>, column: &str, side, bound: &str| {
            Some((monitor.to_owned(), row.map(String::from), column.to_owned(), side, bound.to_owned()))
        };
        assert_eq!(
            parts(" vmstat.pgscan_direct > 1000/s "),
            found("vmstat", None, "pgscan_direct", BoundSide::Over, "1000/s")
        );
        assert_eq!(
            parts("diskstats[vda].read_ios>=5/s"),
            found("diskstats", Some("vda"), "read_ios", BoundSide::AtLeast, "5/s")
        );
        assert_eq!(
            parts("cgroup[a.b[1].c>d].usage <= 5MiB"),
            found("cgroup", Some("a.b[1].c>d"), "usage", BoundSide::AtMost, "5MiB")
        );
        for text in [
            "vmstat",
            "vmstat > 5",
            "vmstat.x",
            "vmstat. > 5",
            ".x > 5",
            "vmstat.x >",
            "diskstats[].x > 5",
            "diskstats[a.x > 5",
        ] {
            assert_eq!(parts(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_not_there_is_refused_with_what_was_meant() {
        insta::assert_snapshot!(resolve("vmstta.nr_dirty > 5", &vmstat()).unwrap_err(), @"`vmstta` is no monitor; did you mean `vmstat`?");
        insta::assert_snapshot!(resolve("vmstat.nr_drity > 5", &vmstat()).unwrap_err(), @"vmstat has no column `nr_drity` of numbers; did you mean `nr_dirty`? (`perflab monitor show vmstat` lists them)");
        insta::assert_snapshot!(resolve("vmstat.pgscan_direct > 1000", &vmstat()).unwrap_err(), @"`1000` is no value of vmstat.pgscan_direct, which is in pages/s (it counts: its growth a second): write for example `1000/s`");
        insta::assert_snapshot!(resolve("meminfo.MemAvailable < 200", &meminfo()).unwrap_err(), @"`200` is no value of meminfo.MemAvailable, which is in bytes: write for example `200MiB`");
        insta::assert_snapshot!(resolve("vmstat[a].nr_dirty > 5", &vmstat()).unwrap_err(), @"vmstat has one row: write vmstat.nr_dirty");
        insta::assert_snapshot!(resolve("vmstat.faults_per_operation > 5", &vmstat()).unwrap_err(), @"it is worked out of a workload's operations, of which there are none here");
        assert!(resolve("diskstats.device > 5", &diskstats()).is_err(), "a key is no number");
    }

    fn reading(row: Option<&str>, value: f64, is_beyond: bool) -> Option<FurthestReading> {
        Some(FurthestReading { row: row.map(String::from), value, is_beyond })
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_gauge_is_its_value_and_a_counter_its_growth_a_second() {
        let row = |scanned: i64, dirty: i64| {
            vec![TableCell::Int(scanned), TableCell::Int(0), TableCell::Int(0), TableCell::Int(dirty)]
        };
        let mut gauge = resolve("vmstat.nr_dirty < 10", &vmstat()).unwrap();
        assert_eq!(gauge.read_tick(Nanos(0), &[row(0, 10)]), reading(None, 10.0, false));
        assert_eq!(gauge.read_tick(Nanos(1), &[row(0, 9)]), reading(None, 9.0, true));
        let mut rate = resolve("vmstat.pgscan_direct > 1000/s", &vmstat()).unwrap();
        assert_eq!(rate.read_tick(Nanos(0), &[row(5000, 0)]), None, "there is no growth yet");
        assert_eq!(rate.read_tick(Nanos(SECOND / 2), &[row(5500, 0)]), reading(None, 1000.0, false));
        assert_eq!(rate.read_tick(Nanos(SECOND), &[row(6001, 0)]), reading(None, 1002.0, true));
        assert_eq!(rate.read_tick(Nanos(2 * SECOND), &[row(3, 0)]), None, "it was reset");
        assert_eq!(rate.read_tick(Nanos(3 * SECOND), &[row(3, 0)]), reading(None, 0.0, false));
    }

    #[test]
    fn of_several_rows_the_furthest_that_is_wanted_counts() {
        let row = |device: &str, reads: i64, time: i64| {
            vec![
                TableCell::Text(device.into()),
                TableCell::Int(reads),
                TableCell::Int(time),
                TableCell::Missing,
            ]
        };
        let ticks = [
            vec![row("sda", 0, 0), row("vda", 0, 0), row("vdb", 0, 0)],
            vec![row("sda", 90, 0), row("vda", 2, 30), row("vdb", 4, 20)],
        ];
        let last = |text: &str| {
            let mut column = resolve(text, &diskstats()).unwrap();
            ticks.iter().zip([0, SECOND]).map(|(rows, at)| column.read_tick(Nanos(at), rows)).last().unwrap()
        };
        assert_eq!(last("diskstats.read_ios > 50/s"), reading(Some("sda"), 90.0, true));
        assert_eq!(last("diskstats[vd*].read_ios > 50/s"), reading(Some("vdb"), 4.0, false));
        assert_eq!(last("diskstats[vda].read_ios < 50/s"), reading(Some("vda"), 2.0, true));
        assert_eq!(last("diskstats[vd*].r_await > 10ns"), reading(Some("vda"), 15.0, true));
        assert_eq!(last("diskstats.read_bytes > 1MiB/s"), None, "this kernel has no such values");
    }
}
