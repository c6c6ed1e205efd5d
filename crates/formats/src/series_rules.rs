//! `[[series]]`: what an output says of moments within an execution, as rows of a table like a monitor's. `docs/workload-file.md` is its
//! reference.

use indexmap::IndexMap;
use perflab_model::column::{CellRow, ColumnSpec, TableCell};
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::{Nanos, Problem};
use serde::Deserialize;

use crate::finite_number::require_finite_number;
use crate::metric_extraction::{has_omission_line, shorten_first_line};
use crate::metric_rules::{OutputStream, compile_pattern};

/// Rows of one execution, at most.
const MOST_ROWS: usize = 100_000;

/// The group that says when a row was, and the one that says of what.
const TIME: &str = "time";
const KEY: &str = "key";

const SECOND: f64 = 1e9;

/// A series, and how its rows are found.
#[derive(Debug, Clone)]
pub struct SeriesRule {
    /// What its table's name ends with, behind the workload's.
    pub name: String,
    /// Where to look.
    pub from: OutputStream,
    /// Its groups are `time`, perhaps `key`, and a column each.
    pub regex: regex::Regex,
    /// The columns of a row: the key where there is one, then values in the order of the rule.
    pub columns: Vec<ColumnSpec>,
    /// The time between two rows of a key.
    pub interval: Nanos,
    /// A found time times this is in seconds.
    pub time_scale: f64,
    /// Whether its absence is no error.
    pub optional: bool,
}

/// One row, and when it was.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesPoint {
    /// Since the execution began.
    pub after: Nanos,
    /// Cells in the order of [`SeriesRule::columns`].
    pub row: CellRow,
}

/// Why an output gives no series.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SeriesReadError {
    /// The rule found nothing.
    #[error("series `{series}`: regex `{regex}` found nothing in {from} ({shown})")]
    NothingFound {
        /// the series
        series: String,
        /// its rule
        regex: String,
        /// where it looked
        from: OutputStream,
        /// the beginning of what was there
        shown: String,
    },
    /// What was found is no row.
    #[error("series `{series}`: line {line} of {from}: {reason}")]
    NoRow {
        /// the series
        series: String,
        /// the line, from 1
        line: usize,
        /// of which stream
        from: OutputStream,
        /// why
        reason: String,
    },
    /// A part of the output was not kept.
    #[error("series `{series}`: a part of {from} was not kept, and may have held rows")]
    NotWhole {
        /// the series
        series: String,
        /// where it looked
        from: OutputStream,
    },
    /// There are more rows than one execution has.
    #[error("series `{series}`: it has more than {MOST_ROWS} rows")]
    TooManyRows {
        /// the series
        series: String,
    },
}

impl Classify for SeriesReadError {
    fn class(&self) -> ErrorClass {
        match self {
            SeriesReadError::NothingFound { .. }
            | SeriesReadError::NoRow { .. }
            | SeriesReadError::NotWhole { .. }
            | SeriesReadError::TooManyRows { .. } => ErrorClass::WorkloadFailed,
        }
    }
}

/// The table as it is written; [`SeriesRuleDocument::into_rule`] makes a rule of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesRuleDocument {
    name: String,
    regex: String,
    /// units by group
    columns: IndexMap<String, String>,
    interval: Option<String>,
    time_scale: Option<f64>,
    #[serde(default)]
    from: OutputStream,
    #[serde(default)]
    optional: bool,
}

impl SeriesRuleDocument {
    /// The checked rule; `key` is `series[INDEX]`.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    pub fn into_rule(self, key: &str) -> Result<SeriesRule, Problem> {
        let is_name = |text: &str| {
            let fits = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || "-_".contains(sign);
            !text.is_empty() && text.chars().all(fits)
        };
        if !is_name(&self.name) {
            let problem =
                Problem::new(format!("{key}.name"), format!("`{}` is no name of a table", self.name));
            return Err(problem.with_hint("small letters, digits, - and _"));
        }
        let regex = compile_pattern(&self.regex, key, "regex")?;
        let groups: Vec<&str> = regex.capture_names().flatten().collect();
        if !groups.contains(&TIME) {
            let problem = Problem::new(format!("{key}.regex"), "captures nothing named `time`");
            return Err(
                problem.with_hint("write `(?<time>[0-9.]+)`: seconds since it began, or see `time_scale`")
            );
        }
        let mut columns: Vec<ColumnSpec> =
            groups.contains(&KEY).then(|| ColumnSpec::key(KEY)).into_iter().collect();
        for (name, unit) in &self.columns {
            let problem = |message: &str| Err(Problem::new(format!("{key}.columns.{name}"), message));
            if [TIME, KEY].contains(&name.as_str()) {
                return problem("is no column of values");
            }
            if !groups.contains(&name.as_str()) {
                return problem("is no group of `regex`");
            }
            columns.push(ColumnSpec::float_gauge(name, unit));
        }
        let is_known = |group: &&&str| [TIME, KEY].contains(*group) || self.columns.contains_key(**group);
        if let Some(group) = groups.iter().find(|group| !is_known(group)) {
            let problem = Problem::new(format!("{key}.columns"), format!("lacks the group `{group}`"));
            return Err(problem.with_hint(format!("write `{group} = \"UNIT\"`")));
        }
        if self.columns.is_empty() {
            let problem = Problem::new(format!("{key}.columns"), "there is no value in a row");
            return Err(problem.with_hint("name groups of `regex` with their units: `{ latency = \"ms\" }`"));
        }
        let time_scale = self.time_scale.unwrap_or(1.0);
        if !time_scale.is_finite() || time_scale <= 0.0 {
            return Err(Problem::new(format!("{key}.time_scale"), "must be a number above 0"));
        }
        let interval = Nanos::parse(self.interval.as_deref().unwrap_or("1s"));
        let interval =
            interval.map_err(|error| Problem::new(format!("{key}.interval"), error.to_string()))?;
        if interval.0 == 0 {
            return Err(Problem::new(format!("{key}.interval"), "must be above 0"));
        }
        Ok(SeriesRule {
            name: self.name,
            from: self.from,
            regex,
            columns,
            interval,
            time_scale,
            optional: self.optional,
        })
    }
}

impl SeriesRule {
    /// Its rows in the text of the stream that [`SeriesRule::from`] names, in the order of time, of an execution of that length. A
    /// program counts from when it is ready and rounds: a row up to an interval beyond the end is of the end.
    ///
    /// # Errors
    /// There is none, though it is not optional; or one that is damaged.
    pub fn read(&self, text: &str, length: Nanos) -> Result<Vec<SeriesPoint>, SeriesReadError> {
        if has_omission_line(text) {
            return Err(SeriesReadError::NotWhole { series: self.name.clone(), from: self.from });
        }
        let mut points = Vec::new();
        for captures in self.regex.captures_iter(text) {
            let line = || {
                let start = captures.get(0).map_or(0, |found| found.start());
                1 + text.get(..start).unwrap_or_default().matches('\n').count()
            };
            let point = self.read_row(&captures, length).map_err(|reason| SeriesReadError::NoRow {
                series: self.name.clone(),
                line: line(),
                from: self.from,
                reason,
            })?;
            points.push(point);
            if points.len() > MOST_ROWS {
                return Err(SeriesReadError::TooManyRows { series: self.name.clone() });
            }
        }
        if points.is_empty() && !self.optional {
            return Err(SeriesReadError::NothingFound {
                series: self.name.clone(),
                regex: self.regex.to_string(),
                from: self.from,
                shown: shorten_first_line(text),
            });
        }
        points.sort_by_key(|point| point.after);
        Ok(points)
    }

    fn read_row(&self, captures: &regex::Captures<'_>, length: Nanos) -> Result<SeriesPoint, String> {
        let group = |name: &str| captures.name(name).map(|found| found.as_str());
        let time = require_finite_number(group(TIME).ok_or("it has no time")?)? * self.time_scale;
        let last = length.0.saturating_add(self.interval.0) as f64 / SECOND;
        if !(0.0..=last).contains(&time) {
            return Err(format!("the time {time} s is not within the execution, of {length}"));
        }
        let after = Nanos((time * SECOND) as u64).min(length);
        let cell = |column: &ColumnSpec| match (column.name.as_str(), group(&column.name)) {
            (KEY, text) => Ok(TableCell::Text(text.unwrap_or_default().to_owned())),
            (_, Some(text)) => require_finite_number(text).map(TableCell::Float),
            (_, None) => Ok(TableCell::Missing),
        };
        let row: Result<CellRow, String> = self.columns.iter().map(cell).collect();
        Ok(SeriesPoint { after, row: row? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_rule(rule: &str) -> Result<SeriesRule, Problem> {
        toml::from_str::<SeriesRuleDocument>(&format!("name = \"progress\"\n{rule}\n"))
            .unwrap()
            .into_rule("series[0]")
    }

    const DBENCH: &str = "regex = '^ *\\d+ +\\d+ +(?<throughput>[0-9.]+) MB/sec +execute +(?<time>\\d+) sec +latency (?<latency>[0-9.]+) ms'\n\
                          columns = { latency = \"ms\", throughput = \"MB/s\" }";

    /// As dbench 4.0 prints it.
    const OUTPUT: &str = "releasing clients\n   1     44944   140.31 MB/sec  execute   1 sec  latency 50.217 ms\n   \
                          1     71704   143.34 MB/sec  execute   2 sec  latency 28.214 ms\n   1  cleanup   3 sec\n";

    #[test]
    fn rows_have_their_time_and_their_columns_in_the_order_of_the_rule() {
        let rule = parse_rule(DBENCH).unwrap();
        let names: Vec<(&str, String)> =
            rule.columns.iter().map(|column| (column.name.as_str(), column.unit.to_string())).collect();
        assert_eq!(names, [("latency", "ms".into()), ("throughput", "MB/s".into())]);
        let floats = |values: [f64; 2]| values.map(TableCell::Float).to_vec();
        let expected = [
            SeriesPoint { after: Nanos(1_000_000_000), row: floats([50.217, 140.31]) },
            // The second ended a little later than the execution by our clock.
            SeriesPoint { after: Nanos(1_900_000_000), row: floats([28.214, 143.34]) },
        ];
        assert_eq!(rule.read(OUTPUT, Nanos(1_900_000_000)).unwrap(), expected);
    }

    #[test]
    fn rows_of_several_keys_are_put_in_the_order_of_time() {
        let rule = "regex = '^(?<key>\\w+) at (?<time>\\S+) ms: (?<rate>\\S+)(?: (?<errors>\\d+))?$'\n\
                    columns = { rate = \"1/s\", errors = \"1\" }\ntime_scale = 0.001\ninterval = \"100ms\"";
        let found = parse_rule(rule)
            .unwrap()
            .read("a at 200 ms: 5\nb at 100 ms: 1e3 7\n", Nanos(1_000_000_000))
            .unwrap();
        let text = |text: &str| TableCell::Text(text.into());
        let expected = [
            SeriesPoint {
                after: Nanos(100_000_000),
                row: vec![text("b"), TableCell::Float(1000.0), TableCell::Float(7.0)],
            },
            SeriesPoint {
                after: Nanos(200_000_000),
                row: vec![text("a"), TableCell::Float(5.0), TableCell::Missing],
            },
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn damaged_rows_are_named_with_their_line() {
        let rule = parse_rule(DBENCH).unwrap();
        let second = Nanos(1_000_000_000);
        let error = rule.read(OUTPUT, Nanos(500_000_000)).unwrap_err();
        assert!(matches!(error, SeriesReadError::NoRow { line: 3, .. }), "{error}");
        let error = rule.read(&OUTPUT.replace("50.217", "5.0.2"), Nanos(2 * second.0)).unwrap_err();
        assert!(matches!(error, SeriesReadError::NoRow { line: 2, .. }), "{error}");
        let cut = format!("{OUTPUT}{}\n", crate::metric_extraction::write_omission_line(3));
        let error = rule.read(&cut, second).unwrap_err();
        assert!(matches!(error, SeriesReadError::NotWhole { .. }), "{error}");
        let error = rule.read("Segmentation fault\n", second).unwrap_err();
        assert!(matches!(error, SeriesReadError::NothingFound { .. }), "{error}");
        let optional = parse_rule(&format!("{DBENCH}\noptional = true")).unwrap();
        assert_eq!(optional.read("Segmentation fault\n", second), Ok(Vec::new()));
        let many = "t 1 v 2\n".repeat(MOST_ROWS + 1);
        let rule = parse_rule("regex = 't (?<time>.) v (?<v>.)'\ncolumns = { v = \"1\" }").unwrap();
        assert!(matches!(rule.read(&many, second), Err(SeriesReadError::TooManyRows { .. })));
    }

    #[test]
    fn rules_that_cannot_be_are_named_by_their_key() {
        let problem = |rule: &str| parse_rule(rule).unwrap_err().key;
        for (rule, key) in [
            ("regex = '(?<v>.)'\ncolumns = { v = \"1\" }", "regex"),
            ("regex = '('\ncolumns = { v = \"1\" }", "regex"),
            ("regex = '(?<time>.)'\ncolumns = {}", "columns"),
            ("regex = '(?<time>.)(?<v>.)'\ncolumns = { w = \"1\" }", "columns.w"),
            ("regex = '(?<time>.)(?<v>.)'\ncolumns = { time = \"s\", v = \"1\" }", "columns.time"),
            ("regex = '(?<time>.)(?<v>.)(?<w>.)'\ncolumns = { v = \"1\" }", "columns"),
            ("regex = '(?<time>.)(?<v>.)'\ncolumns = { v = \"1\" }\ntime_scale = 0", "time_scale"),
            ("regex = '(?<time>.)(?<v>.)'\ncolumns = { v = \"1\" }\ninterval = \"soon\"", "interval"),
            ("regex = '(?<time>.)(?<v>.)'\ncolumns = { v = \"1\" }\ninterval = \"0s\"", "interval"),
        ] {
            assert_eq!(problem(rule), format!("series[0].{key}"), "{rule}");
        }
        let named = "name = \"a.b\"\nregex = '(?<time>.)(?<v>.)'\ncolumns = { v = \"1\" }";
        let named = toml::from_str::<SeriesRuleDocument>(named).unwrap();
        assert_eq!(named.into_rule("series[0]").unwrap_err().key, "series[0].name");
    }
}
