//! What `perf stat` prints for people, again and again: one row per counter. A counter that was not counted stays
//! missing.

use std::collections::BTreeSet;

use perflab_model::{CellRow, ColumnSpec, TableCell};

use crate::reading_parser::{LineOutcome, LineRole, ReadingParser, TextLine};

/// Events that are remembered as not counted.
const EVENTS: usize = 100;

/// The format, with the events that were not counted.
#[derive(Debug, Default)]
pub struct PerfStatParser {
    uncounted: BTreeSet<String>,
}

/// A counter's line without what perf derived from it: the value with its unit, and the event.
fn parse_counter_line(text: &str) -> Option<(Option<f64>, &str, &str)> {
    let text = text.split(" # ").next().unwrap_or(text);
    let text =
        text.rsplit_once('(').map_or(text, |(before, share)| if share.contains('%') { before } else { text });
    for missing in ["<not counted>", "<not supported>"] {
        if let Some(rest) = text.trim().strip_prefix(missing) {
            return rest.split_ascii_whitespace().last().map(|event| (None, "1", event));
        }
    }
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (value, unit, event) = match words[..] {
        [value, event] => (value, "1", event),
        [value, unit, event] => (value, unit, event),
        _ => return None,
    };
    let value = value.replace(',', "").parse::<f64>().ok().filter(|value| value.is_finite())?;
    Some((Some(value), if unit == "msec" { "ms" } else { unit }, event))
}

impl ReadingParser for PerfStatParser {
    fn series(&self) -> &'static str {
        "perf-time-stat"
    }

    fn source(&self) -> &'static str {
        "perf stat -a"
    }

    fn may_be_empty(&self) -> bool {
        true
    }

    fn is_headed(&self) -> bool {
        false
    }

    fn line_role(&self, text: &str) -> Result<LineRole, String> {
        let head = text.contains("Performance counter stats for");
        let derived = text.trim_start().starts_with('#') || text.contains("seconds time elapsed");
        Ok(if head || derived { LineRole::Comment } else { LineRole::Row })
    }

    fn parse_row(&mut self, line: TextLine<'_>, rows: &mut Vec<CellRow>) -> LineOutcome {
        let Some((value, unit, event)) = parse_counter_line(line.text).filter(|_| line.whole) else {
            return LineOutcome::Unusable("it is not `VALUE [UNIT] EVENT`".into());
        };
        let value_missing = value.is_none();
        let remark = if value_missing { "not counted" } else { "" };
        let value = value.map_or(TableCell::Missing, TableCell::Float);
        rows.push(vec![
            TableCell::Text(event.into()),
            value,
            TableCell::Text(unit.into()),
            TableCell::Text(remark.into()),
        ]);
        if value_missing && self.uncounted.len() < EVENTS {
            self.uncounted.insert(event.into());
        }
        LineOutcome::Used
    }

    fn columns(&self) -> Vec<ColumnSpec> {
        let value = ColumnSpec::float_gauge("value", "see column unit");
        vec![ColumnSpec::key("event"), value, ColumnSpec::key("unit"), ColumnSpec::key("flags")]
    }

    fn closing_note(&self) -> Option<String> {
        let events: Vec<&str> = self.uncounted.iter().map(String::as_str).collect();
        (!events.is_empty()).then(|| format!("not counted, at least at times: {}", events.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::{PerfStatParser, parse_counter_line};
    use crate::reading_parser::ReadingParser as _;

    #[test]
    fn counters_are_told_from_what_is_derived() {
        let text = "          8,004.66 msec cpu-clock                        #    4.000 CPUs utilized";
        assert_eq!(parse_counter_line(text), Some((Some(8004.66), "ms", "cpu-clock")));
        assert_eq!(
            parse_counter_line("     1,234      cycles    (50.01%)"),
            Some((Some(1234.0), "1", "cycles"))
        );
        assert_eq!(parse_counter_line("   <not counted>      cycles   "), Some((None, "1", "cycles")));
        assert_eq!(parse_counter_line("perf: command not found here"), None);
    }

    #[test]
    fn its_rows_are_those_of_all_cpus() {
        assert_eq!(PerfStatParser::default().source(), "perf stat -a");
    }
}
