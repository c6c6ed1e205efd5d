//! One rule asked of the lines of an output: heads, tables, names and units that the output gives.
//!
//! An imported log is asked line by line, so that each line is accounted for; an execution's output is asked line by
//! line where the rule has a head or reads a table, and as a whole else ([`crate::metric_extraction`]).

use perflab_model::error_class::{Classify, ErrorClass};
use regex::{Captures, Match};

use crate::finite_number::{parse_clock_time, parse_finite_number, shorten_quotation};
use crate::metric_rules::{ExtractionRule, MetricFind, MetricRule, NumberNotation, TableLayout, TableRule};
use crate::reading_parser::TextLine;

/// Characters of a name that an output gives, at most.
const LONGEST_NAME: usize = 100;

/// Why what a rule found is no value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LineFindError {
    /// It is not a finite number.
    #[error("`{0}` is no number")]
    NotANumber(String),
    /// It cannot be.
    #[error("{value} is not within {least} and {most}")]
    OutOfRange {
        /// what was found
        value: f64,
        /// the least that the rule allows
        least: f64,
        /// the most
        most: f64,
    },
    /// The line ends in the middle of it.
    #[error("the line is cut off, so that `{0}` may lack digits")]
    CutOff(String),
    /// The row is not of this table.
    #[error("it has {found} values and its head {expected}: it is cut off or another's")]
    OtherCells {
        /// cells of the row
        found: usize,
        /// columns of the head
        expected: usize,
    },
    /// A quoted cell does not end.
    #[error("a quoted cell does not end")]
    OpenQuote,
    /// No metric can be called so.
    #[error("`{0}` is no name for a metric")]
    NoName(String),
}

impl Classify for LineFindError {
    fn class(&self) -> ErrorClass {
        match self {
            LineFindError::NotANumber(_)
            | LineFindError::OutOfRange { .. }
            | LineFindError::CutOff(_)
            | LineFindError::OtherCells { .. }
            | LineFindError::OpenQuote
            | LineFindError::NoName(_) => ErrorClass::WorkloadFailed,
        }
    }
}

/// What a head says of the lines below it.
#[derive(Debug, Default)]
struct SectionHead {
    name: Option<String>,
    unit: Option<String>,
    columns: Vec<String>,
}

/// A rule on its way through the lines of an output.
#[derive(Debug)]
pub struct LineFinder<'r> {
    rule: &'r MetricRule,
    /// None above the first head
    section: Option<SectionHead>,
}

impl<'r> LineFinder<'r> {
    /// At the beginning of an output.
    pub fn new(rule: &'r MetricRule) -> Self {
        let section = match &rule.rule {
            ExtractionRule::Table(table) if !table.default_columns.is_empty() => {
                Some(SectionHead { columns: table.default_columns.clone(), ..SectionHead::default() })
            }
            ExtractionRule::Table(_) => None,
            _ => rule.head.is_none().then(SectionHead::default),
        };
        LineFinder { rule, section }
    }

    /// What the next line gives, if anything: a value, whose digits must all be there.
    ///
    /// # Errors
    /// It should give one and does not.
    pub fn find(&mut self, line: TextLine<'_>) -> Option<Result<MetricFind, LineFindError>> {
        if self.begin_section(line.text) {
            return None;
        }
        let section = self.section.as_ref()?;
        match &self.rule.rule {
            ExtractionRule::Regex(regex) => {
                find_captured(self.rule, &regex.captures(line.text)?, Some(line), section)
            }
            ExtractionRule::Key { key, separator } => {
                let (name, value) = line.text.split_once(separator)?;
                (name.trim() == key)
                    .then(|| self.read_cell(value, (!line.whole).then_some(value), None, section))
                    .flatten()
            }
            ExtractionRule::Table(table) => self.find_in_row(table, line, section),
            ExtractionRule::Json(_) | ExtractionRule::Wall => None,
        }
    }

    /// Whether the line is a head; what it says holds from here on.
    fn begin_section(&mut self, text: &str) -> bool {
        let captures = match &self.rule.head {
            Some(head) => match head.captures(text) {
                Some(captures) => Some(captures),
                None => return false,
            },
            // The first line that holds something names the columns.
            None if self.section.is_none() && !text.trim().is_empty() => None,
            None => return false,
        };
        let group = |name| captures.as_ref().and_then(|found| Some(found.name(name)?.as_str().to_owned()));
        let columns = match &self.rule.rule {
            ExtractionRule::Table(table) => column_names(&table.layout, text),
            _ => Vec::new(),
        };
        self.section = Some(SectionHead { name: group("name"), unit: group("unit"), columns });
        true
    }

    fn find_in_row(
        &self,
        table: &TableRule,
        line: TextLine<'_>,
        section: &SectionHead,
    ) -> Option<Result<MetricFind, LineFindError>> {
        let captures = match &table.rows {
            Some(rows) => Some(rows.captures(line.text)?),
            None => None,
        };
        let columns = &section.columns;
        let place = table.columns.iter().find_map(|name| columns.iter().position(|column| column == name))?;
        let cells = match row_cells(&table.layout, line.text) {
            Ok(cells) => cells,
            Err(error) => return Some(Err(error)),
        };
        if cells.len() != columns.len() && table.rows.is_some() {
            return Some(Err(LineFindError::OtherCells { found: cells.len(), expected: columns.len() }));
        }
        let cell = cells.get(place)?;
        let name = captures.and_then(|found| Some(found.name("name")?.as_str().to_owned()));
        let named = || {
            let place = columns.iter().position(|column| Some(column) == table.name_column.as_ref())?;
            cells.get(place).cloned()
        };
        // The last cell of a row that was cut may be half of one, and with it those that are missing.
        let cut = (!line.whole).then_some(line.text);
        self.read_cell(cell, cut, name.or_else(named), section)
    }

    fn read_cell(
        &self,
        cell: &str,
        cut: Option<&str>,
        name: Option<String>,
        section: &SectionHead,
    ) -> Option<Result<MetricFind, LineFindError>> {
        if self.rule.is_missing(cell) {
            return None;
        }
        if cut.is_some() {
            return Some(Err(LineFindError::CutOff(shorten_quotation(cell))));
        }
        Some(make_find(self.rule, cell, name.or_else(|| section.name.clone()), section.unit.clone()))
    }
}

impl MetricRule {
    /// Whether a text stands for no value.
    pub(crate) fn is_missing(&self, text: &str) -> bool {
        self.number.missing.as_deref() == Some(text.trim())
    }

    /// The number of a found text, in the metric's unit.
    pub(crate) fn parse_number(&self, text: &str) -> Result<f64, LineFindError> {
        let number = match self.number.notation {
            NumberNotation::Plain => parse_finite_number(text),
            NumberNotation::Clock => parse_clock_time(text),
        };
        let number = number.ok_or_else(|| LineFindError::NotANumber(shorten_quotation(text)))?;
        if let Some((least, most)) = self.number.range
            && !(least..=most).contains(&number)
        {
            return Err(LineFindError::OutOfRange { value: number, least, most });
        }
        let value = scale_number(number, self.scale);
        value.is_finite().then_some(value).ok_or_else(|| LineFindError::NotANumber(value.to_string()))
    }

    /// The name that the output gives, as it becomes part of the metric's.
    fn rename(&self, name: &str) -> Result<String, LineFindError> {
        let name = name.trim();
        let replaced = self.renames.iter().find(|one| one.regex.is_match(name));
        let name = replaced.map_or(name.into(), |one| one.regex.replace(name, one.replacement.as_str()));
        let is_name =
            !name.is_empty() && name.chars().count() <= LONGEST_NAME && !name.contains(char::is_control);
        if is_name { Ok(name.into_owned()) } else { Err(LineFindError::NoName(shorten_quotation(&name))) }
    }
}

/// Divides where the factor is one of a whole number: 0.001 has no exact float, and 1000 has.
fn scale_number(number: f64, scale: f64) -> f64 {
    let divisor = scale.recip().round();
    if scale.abs() < 1.0 && divisor.recip() == scale { number / divisor } else { number * scale }
}

/// What a match gives; of a line that was cut, only if the numbers end before it does.
pub(crate) fn find_match(
    rule: &MetricRule,
    captures: &Captures<'_>,
) -> Option<Result<MetricFind, LineFindError>> {
    find_captured(rule, captures, None, &SectionHead::default())
}

fn find_captured(
    rule: &MetricRule,
    captures: &Captures<'_>,
    line: Option<TextLine<'_>>,
    section: &SectionHead,
) -> Option<Result<MetricFind, LineFindError>> {
    let value = captures.name("value")?;
    if rule.is_missing(value.as_str()) {
        return None;
    }
    let ExtractionRule::Regex(regex) = &rule.rule else { return None };
    let others = regex.capture_names().flatten().filter(|name| name.starts_with("number"));
    let others: Vec<Match<'_>> = others.filter_map(|name| captures.name(name)).collect();
    let is_cut = |found: &&Match<'_>| line.is_some_and(|line| !line.whole && found.end() == line.text.len());
    if let Some(cut) = others.iter().chain([&value]).find(is_cut) {
        return Some(Err(LineFindError::CutOff(shorten_quotation(cut.as_str()))));
    }
    let odd = others.iter().find(|found| parse_finite_number(found.as_str()).is_none());
    if let Some(odd) = odd {
        return Some(Err(LineFindError::NotANumber(shorten_quotation(odd.as_str()))));
    }
    let group = |name| Some(captures.name(name)?.as_str().to_owned());
    let name = group("name").or_else(|| section.name.clone());
    Some(make_find(rule, value.as_str(), name, group("unit").or_else(|| section.unit.clone())))
}

/// A find of that text.
pub(crate) fn make_find(
    rule: &MetricRule,
    text: &str,
    name: Option<String>,
    unit: Option<String>,
) -> Result<MetricFind, LineFindError> {
    let value = rule.parse_number(text)?;
    let name = match name.filter(|_| rule.metric.name.contains('*')) {
        Some(name) => Some(rule.rename(&name)?),
        None if rule.metric.name.contains('*') => return Err(LineFindError::NoName(String::new())),
        None => None,
    };
    Ok(MetricFind { name, unit, value })
}

/// The names of the columns in a head.
fn column_names(layout: &TableLayout, head: &str) -> Vec<String> {
    match layout {
        TableLayout::Separated(_) => row_cells(layout, head).unwrap_or_default(),
        TableLayout::Words(name) => name.find_iter(head).map(|found| found.as_str().to_owned()).collect(),
    }
}

fn row_cells(layout: &TableLayout, row: &str) -> Result<Vec<String>, LineFindError> {
    match layout {
        TableLayout::Words(_) => Ok(row.split_ascii_whitespace().map(str::to_owned).collect()),
        TableLayout::Separated(separator) => {
            if row.matches('"').count() % 2 == 1 {
                return Err(LineFindError::OpenQuote);
            }
            let mut reader = csv::ReaderBuilder::new()
                .delimiter(*separator)
                .has_headers(false)
                .flexible(true)
                .trim(csv::Trim::All)
                .from_reader(row.as_bytes());
            let first = reader.records().next().and_then(Result::ok);
            Ok(first.iter().flatten().map(str::to_owned).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric_rules::MetricRuleDocument;
    use crate::reading_parser::text_lines;

    fn parse_rule(rule: &str) -> MetricRule {
        let text = format!("unit = \"ms\"\ndirection = \"lower\"\n{rule}\n");
        toml::from_str::<MetricRuleDocument>(&text).unwrap().into_rule("metric[0]").unwrap()
    }

    /// Name, unit and value of each find, or the error.
    fn finds(rule: &str, text: &str) -> Vec<Result<(String, String, f64), String>> {
        let rule = parse_rule(rule);
        let mut finder = LineFinder::new(&rule);
        let found = text_lines(text).filter_map(|line| finder.find(line));
        let shown = |find: MetricFind| {
            let metric = rule.metric_of(&find);
            (metric.name, metric.unit.to_string(), find.value)
        };
        found.map(|find| find.map(shown).map_err(|error| error.to_string())).collect()
    }

    fn found(name: &str, unit: &str, value: f64) -> Result<(String, String, f64), String> {
        Ok((name.into(), unit.into(), value))
    }

    #[test]
    fn a_head_names_what_is_below_it() {
        let rule = "name = \"*-latency\"\nhead = '^== (?<name>\\S+)(?: in (?<unit>\\S+))?'\nregex = '^avg (?<value>\\S+)'";
        let text = "avg 9\n== SET\nother 1\navg 2\n== GET in us\navg 3\navg 4\n";
        let expected = [
            found("SET-latency", "ms", 2.0),
            found("GET-latency", "us", 3.0),
            found("GET-latency", "us", 4.0),
        ];
        assert_eq!(finds(rule, text), expected);
    }

    #[test]
    fn a_table_of_words_has_the_columns_of_its_head() {
        let rule = "name = \"latency\"\ncolumn = [\"Avg. Latency\", \"Latency\"]\nhead = '^Type\\s'\nrows = '^Totals\\s'\n\
                    column_names = '(?:Avg\\.|p[0-9.]+) Latency|\\S+'\nmissing = \"---\"";
        let new = "Totals 1\nType Ops/sec Avg. Latency p99 Latency KB/sec\nSets 1 2 3 4\nTotals 1 2.5 3 4\n";
        assert_eq!(finds(rule, new), [found("latency", "ms", 2.5)]);
        assert_eq!(finds(rule, "Type  Ops/sec  Latency\nTotals 1 3.5\n"), [found("latency", "ms", 3.5)]);
        assert_eq!(finds(rule, "Type  Ops/sec  Latency\nTotals 1 ---\n"), []);
        let torn = finds(rule, "Type Ops/sec Latency\nTotals 1\nTotals 1 2\nTotals 1 3");
        let reasons: Vec<bool> = torn.iter().map(Result::is_ok).collect();
        assert_eq!(reasons, [false, true, false]);
    }

    #[test]
    fn a_csv_may_do_without_its_head_and_names_its_metrics() {
        let rule = "name = \"*-rate\"\ncsv = \"rps\"\nhead = '^\"test\"'\nrows = '^\"'\ncolumns = [\"test\", \"rps\"]\n\
                    name_column = \"test\"\nrename = [{ regex = ' \\(needed.*', to = \"-prepare\" }, { regex = ' \\(.*', to = \"\" }]";
        let old = "hello\n\"SET\",\"5\"\n\"LPUSH (needed to benchmark LRANGE)\",\"6\"\n\"LRANGE_100 (first 100 elements)\",\"7\"\n";
        let expected = [
            found("SET-rate", "ms", 5.0),
            found("LPUSH-prepare-rate", "ms", 6.0),
            found("LRANGE_100-rate", "ms", 7.0),
        ];
        assert_eq!(finds(rule, old), expected);
        let new = "\"test\",\"avg\",\"rps\"\n\"SET\",\"1\",\"5\"\n\"GET\",\"1\"\n\"GET\",\"1\",\"6\n";
        let torn = finds(rule, new);
        assert_eq!(torn[0], found("SET-rate", "ms", 5.0));
        assert!(torn[1].is_err() && torn[2].is_err(), "{torn:?}");
    }

    #[test]
    fn numbers_are_bounded_clocked_and_whole() {
        let rule = "name = \"t\"\nregex = 'in (?<value>\\S+) ms, (?<number_most>\\S+)'\nwithin = [0, 100]";
        assert_eq!(finds(rule, "in 5 ms, 6\n"), [found("t", "ms", 5.0)]);
        for line in ["in 500 ms, 6\n", "in -1 ms, 6\n", "in 5 ms, x\n", "in 5 ms, 6"] {
            assert!(finds(rule, line)[0].is_err(), "{line}");
        }
        let rule = "name = \"t\"\nregex = '(?<value>\\S+)elapsed'\nnotation = \"clock\"";
        assert_eq!(finds(rule, "0.05user 0:01.50elapsed 11%CPU"), [found("t", "ms", 1.5)]);
    }

    #[test]
    fn a_thousandth_is_exact() {
        assert_eq!(scale_number(25_316.46, 0.001), 25_316.46 / 1000.0);
        assert_eq!(
            (scale_number(3.0, 0.5), scale_number(3.0, 0.3), scale_number(3.0, 2.0)),
            (1.5, 3.0 * 0.3, 6.0)
        );
    }

    #[test]
    fn a_name_that_commands_a_terminal_is_none() {
        let rule = "name = \"op-*\"\nregex = '^(?<name>\\S+) (?<value>\\d+)'";
        assert_eq!(finds(rule, "Close 4\n"), [found("op-Close", "ms", 4.0)]);
        assert!(finds(rule, "\u{1b}[31m 4\n")[0].is_err());
    }

    #[test]
    fn a_star_needs_a_name_and_a_name_a_star() {
        let problem = |rule: &str| {
            let text = format!("unit = \"ms\"\ndirection = \"lower\"\n{rule}\n");
            toml::from_str::<MetricRuleDocument>(&text).unwrap().into_rule("metric[0]").unwrap_err().key
        };
        for (rule, key) in [
            ("name = \"op-*\"\nregex = '(?<value>.)'", "name"),
            ("name = \"op\"\nregex = '(?<name>.)(?<value>.)'", "name"),
            ("name = \"*-*\"\nregex = '(?<name>.)(?<value>.)'", "name"),
            ("name = \"op\"\nregex = '(?<value>.)'\nrows = 'x'", "rows"),
            ("name = \"op\"\ncsv = \"a\"\ncolumn_names = 'x'", "column_names"),
            ("name = \"op\"\njson = \"/a\"\nhead = 'x'", "head"),
            ("name = \"op\"\nkey = \"a\"\nwithin = [2, 1]", "within"),
            ("name = \"op\"\nkey = \"a\"\nrename = [{ regex = '(', to = \"\" }]", "rename[0].regex"),
        ] {
            assert_eq!(problem(rule), format!("metric[0].{key}"), "{rule}");
        }
    }
}
