//! From an output to measured values.
//!
//! A value is never made up: what is not a finite number is refused, and a rule that finds nothing is an error that
//! names the metric and the rule.

use indexmap::IndexMap;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::{Metric, Nanos};
use serde_json::Value as Json;

use crate::json_document::{find_json_document, follow_json_pointer, follow_named_json_pointer};
use crate::metric_lines::{LineFindError, LineFinder, find_match, make_find};
use crate::metric_rules::{
    ExtractionRule, JsonRule, MetricAggregate, MetricFind, MetricRule, OutputStream, TableLayout, TableRule,
};
use crate::reading_parser::{TextLine, text_lines};

/// One value of one metric, in the metric's unit.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricValue {
    /// What was measured.
    pub metric: Metric,
    /// A finite number.
    pub value: f64,
}

/// Why an output is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetricParseError {
    /// The rule found nothing.
    #[error("metric `{metric}`: {rule} found nothing in {from} ({shown})")]
    NothingFound {
        /// the metric
        metric: String,
        /// its rule
        rule: String,
        /// where it looked
        from: OutputStream,
        /// the beginning of what was there
        shown: String,
    },
    /// The output is not in the rule's format.
    #[error("metric `{metric}`: {rule}: {from} is not understood: {reason}")]
    WrongFormat {
        /// the metric
        metric: String,
        /// its rule
        rule: String,
        /// where it looked
        from: OutputStream,
        /// why
        reason: String,
    },
    /// What was found is not a finite number.
    #[error("metric `{metric}`: {rule} found `{text}`, which is not a finite number")]
    NotANumber {
        /// the metric
        metric: String,
        /// its rule
        rule: String,
        /// what was found
        text: String,
    },
    /// The output names its values in another unit than the metric has.
    #[error("metric `{metric}`: {rule}: the output is in `{found}` and the metric in `{unit}`")]
    OtherUnit {
        /// the metric
        metric: String,
        /// its rule
        rule: String,
        /// the unit that the output names
        found: String,
        /// the metric's
        unit: String,
    },
    /// What is asked of a histogram is a value that has no bucket.
    #[error(
        "metric `{metric}` lies beyond the buckets of its histogram, as {beyond} of {count} values do; let it have more"
    )]
    BeyondBuckets {
        /// the metric
        metric: String,
        /// values without a bucket
        beyond: u64,
        /// all values
        count: u64,
    },
    /// Two rules found the same metric.
    #[error("metric `{metric}` is found by two rules")]
    FoundTwice {
        /// the metric
        metric: String,
    },
}

impl Classify for MetricParseError {
    fn class(&self) -> ErrorClass {
        match self {
            MetricParseError::NothingFound { .. }
            | MetricParseError::WrongFormat { .. }
            | MetricParseError::NotANumber { .. }
            | MetricParseError::OtherUnit { .. }
            | MetricParseError::BeyondBuckets { .. }
            | MetricParseError::FoundTwice { .. } => ErrorClass::WorkloadFailed,
        }
    }
}

/// The line that stands in a text for what was printed there and not kept.
pub fn write_omission_line(bytes: u64) -> String {
    format!("[perflab: {bytes} bytes not kept]")
}

/// Whether a text lacks a part of what was printed.
pub fn has_omission_line(text: &str) -> bool {
    let begins = |line: &str| line.starts_with("[perflab: ") && line.ends_with(" bytes not kept]");
    text.lines().any(begins)
}

/// All metrics of one execution. `wall` is its length, for rules `time = "wall"`. Optional metrics that are not there are left
/// out.
///
/// # Errors
/// The first rule that fails.
pub fn extract_metrics(
    rules: &[MetricRule],
    stdout: &str,
    stderr: &str,
    wall: Nanos,
) -> Result<Vec<MetricValue>, MetricParseError> {
    let output = ExecutionOutput { stdout, stderr, wall };
    let mut values: Vec<MetricValue> = Vec::new();
    for rule in rules {
        for value in output.measure(rule)? {
            if values.iter().any(|known| known.metric.name == value.metric.name) {
                return Err(MetricParseError::FoundTwice { metric: value.metric.name });
            }
            values.push(value);
        }
    }
    Ok(values)
}

/// What one execution left behind.
struct ExecutionOutput<'a> {
    stdout: &'a str,
    stderr: &'a str,
    wall: Nanos,
}

impl ExecutionOutput<'_> {
    /// One value a name.
    fn measure(&self, rule: &MetricRule) -> Result<Vec<MetricValue>, MetricParseError> {
        let finds = self.find_values(rule)?;
        if finds.is_empty() && !rule.optional {
            return Err(self.nothing_found_error(rule));
        }
        let other =
            finds.iter().filter_map(|find| find.unit.as_ref()).find(|unit| **unit != *rule.metric.unit.0);
        if let Some(found) = other {
            let (metric, unit) = (rule.metric.name.clone(), rule.metric.unit.to_string());
            let rule = rule.rule.to_string();
            return Err(MetricParseError::OtherUnit { metric, rule, found: found.clone(), unit });
        }
        let mut named: IndexMap<String, (Metric, Vec<f64>)> = IndexMap::new();
        for find in &finds {
            let metric = rule.metric_of(find);
            named.entry(metric.name.clone()).or_insert_with(|| (metric, Vec::new())).1.push(find.value);
        }
        let value = |(metric, numbers): (Metric, Vec<f64>)| {
            let value = rule.aggregate.of(&numbers)?;
            Some(match value.is_finite() {
                true => Ok(MetricValue { metric, value }),
                false => Err(not_a_number_error(rule, &value.to_string())),
            })
        };
        named.into_values().filter_map(value).collect()
    }

    fn find_values(&self, rule: &MetricRule) -> Result<Vec<MetricFind>, MetricParseError> {
        let text = self.stream_text(rule.from);
        let wrong = |reason: String| MetricParseError::WrongFormat {
            metric: rule.metric.name.clone(),
            rule: rule.rule.to_string(),
            from: rule.from,
            reason,
        };
        let finds: Vec<Result<MetricFind, LineFindError>> = match &rule.rule {
            ExtractionRule::Wall => vec![make_find(rule, &self.wall.seconds().to_string(), None, None)],
            ExtractionRule::Json(pointers) => {
                let found = find_in_json(pointers, text).map_err(wrong)?;
                let found = found.into_iter().filter(|(_, text)| !rule.is_missing(text));
                found.map(|(name, text)| make_find(rule, &text, name, None)).collect()
            }
            ExtractionRule::Regex(regex) if rule.head.is_none() => {
                regex.captures_iter(text).filter_map(|captures| find_match(rule, &captures)).collect()
            }
            ExtractionRule::Table(table) if reads_whole_csv(rule, table) => {
                find_in_csv(rule, table, text).map_err(wrong)?
            }
            ExtractionRule::Regex(_) | ExtractionRule::Table(_) | ExtractionRule::Key { .. } => {
                let mut finder = LineFinder::new(rule);
                // A program that ends without a line end has said all that it had to say.
                let lines = text_lines(text).map(|line| TextLine { whole: true, ..line });
                lines.filter_map(|line| finder.find(line)).collect()
            }
        };
        let failed = |error| match error {
            LineFindError::NotANumber(text) => not_a_number_error(rule, &text),
            error => wrong(error.to_string()),
        };
        finds.into_iter().map(|find| find.map_err(failed)).collect()
    }

    fn stream_text(&self, from: OutputStream) -> &str {
        match from {
            OutputStream::Stdout => self.stdout,
            OutputStream::Stderr => self.stderr,
        }
    }

    fn nothing_found_error(&self, rule: &MetricRule) -> MetricParseError {
        MetricParseError::NothingFound {
            metric: rule.metric.name.clone(),
            rule: rule.rule.to_string(),
            from: rule.from,
            shown: shorten_first_line(self.stream_text(rule.from)),
        }
    }
}

fn not_a_number_error(rule: &MetricRule, text: &str) -> MetricParseError {
    let text = text.chars().take(60).collect();
    MetricParseError::NotANumber { metric: rule.metric.name.clone(), rule: rule.rule.to_string(), text }
}

/// The first line with something in it, short enough for a message.
pub(crate) fn shorten_first_line(text: &str) -> String {
    match text.lines().map(str::trim).find(|line| !line.is_empty()) {
        None => "it is empty".into(),
        Some(line) => format!("it begins `{}`", line.chars().take(60).collect::<String>()),
    }
}

/// What the pointers find in the first JSON document, whatever comes before and behind it: some tools greet first. With it what
/// stood for their stars.
fn find_in_json(rule: &JsonRule, text: &str) -> Result<Vec<(Option<String>, String)>, String> {
    let document = find_json_document(text).map_err(|fault| fault.reason)?.document;
    let follow = |pointer: &String| match &rule.name {
        Some(name) => follow_named_json_pointer(&document, pointer, name),
        None => follow_json_pointer(&document, pointer),
    };
    let found = rule.pointers.iter().flat_map(follow);
    Ok(found
        .map(|one| match one.value {
            Json::String(text) => (one.name, text.clone()),
            other => (one.name, other.to_string()),
        })
        .collect())
}

/// Whether the output is one CSV file, whose first line names the columns and whose cells may hold line ends.
fn reads_whole_csv(rule: &MetricRule, table: &TableRule) -> bool {
    let is_plain = rule.head.is_none() && table.rows.is_none() && table.default_columns.is_empty();
    is_plain && matches!(table.layout, TableLayout::Separated(_))
}

fn find_in_csv(
    rule: &MetricRule,
    table: &TableRule,
    text: &str,
) -> Result<Vec<Result<MetricFind, LineFindError>>, String> {
    let TableLayout::Separated(separator) = table.layout else { return Ok(Vec::new()) };
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|error| error.to_string())?;
    let position = |column: &String| headers.iter().position(|name| name == column);
    let Some(value) = table.columns.iter().find_map(position) else { return Ok(Vec::new()) };
    let name = table.name_column.as_ref().and_then(position);
    let rows: Result<Vec<csv::StringRecord>, _> = reader.records().collect();
    let rows = rows.map_err(|error| error.to_string())?;
    let find = |row: &csv::StringRecord| {
        let text = row.get(value).filter(|text| !rule.is_missing(text))?;
        let name = name.and_then(|place| row.get(place)).map(str::to_owned);
        Some(make_find(rule, text, name, None))
    };
    Ok(rows.iter().filter_map(find).collect())
}

impl MetricAggregate {
    /// One value of several; none of none.
    pub fn of(self, numbers: &[f64]) -> Option<f64> {
        let count = numbers.len() as f64;
        match self {
            MetricAggregate::Last | MetricAggregate::Each => numbers.last().copied(),
            MetricAggregate::First => numbers.first().copied(),
            MetricAggregate::Sum => (!numbers.is_empty()).then(|| numbers.iter().sum()),
            MetricAggregate::Mean => (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / count),
            MetricAggregate::Min => numbers.iter().copied().reduce(f64::min),
            MetricAggregate::Max => numbers.iter().copied().reduce(f64::max),
            MetricAggregate::Median => median(numbers),
        }
    }
}

/// The middle one, or the mean of the two in the middle.
pub fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    sorted.get(sorted.len() / 2 - 1).map(|lower| (lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric_rules::MetricRuleDocument;

    fn parse_rule(rule: &str) -> MetricRule {
        let text = format!("name = \"m\"\nunit = \"s\"\ndirection = \"lower\"\n{rule}\n");
        let document: MetricRuleDocument = toml::from_str(&text).unwrap();
        document.into_rule("metric[0]").unwrap()
    }

    fn parse_single_value(text: &str, output: &str) -> Result<f64, String> {
        let rules = [parse_rule(text)];
        let measured = extract_metrics(&rules, output, "on stderr 9", Nanos(2_500_000_000));
        measured.map(|all| all[0].value).map_err(|error| error.to_string())
    }

    #[test]
    fn several_finds_become_one() {
        let output = "v 1\nv 2\nv 9\nv 4\n";
        for (aggregate, expected) in [
            ("last", 4.0),
            ("first", 1.0),
            ("sum", 16.0),
            ("mean", 4.0),
            ("min", 1.0),
            ("max", 9.0),
            ("median", 3.0),
        ] {
            let text = format!("regex = '^v (?<value>\\d+)'\naggregate = \"{aggregate}\"");
            assert_eq!(parse_single_value(&text, output), Ok(expected), "{aggregate}");
        }
    }

    #[test]
    fn every_kind_of_rule_finds() {
        assert_eq!(
            parse_single_value(
                "json = \"/a/0/b\"\nscale = 0.5",
                "hello\n[not json\n{\"a\": [{\"b\": 4}]}\nbye"
            ),
            Ok(2.0)
        );
        assert_eq!(parse_single_value("json = \"/a\"", "{\"a\": \"1e3\"}"), Ok(1000.0));
        assert_eq!(parse_single_value("csv = \"b\"\nseparator = \";\"", "a;b\n1;2\n3;4\n"), Ok(4.0));
        assert_eq!(parse_single_value("key = \"rate\"", "other: 1\n  rate : 1,234.5\n"), Ok(1234.5));
        assert_eq!(parse_single_value("time = \"wall\"", ""), Ok(2.5));
        assert_eq!(parse_single_value("from = \"stderr\"\nregex = 'stderr (?<value>.)'", ""), Ok(9.0));
    }

    #[test]
    fn what_is_not_there_is_an_error_unless_it_may_be() {
        let error = parse_single_value("key = \"rate\"", "Segmentation fault\n").unwrap_err();
        assert_eq!(error, "metric `m`: key `rate` found nothing in stdout (it begins `Segmentation fault`)");
        assert_eq!(
            parse_single_value("csv = \"b\"", "").unwrap_err(),
            "metric `m`: csv column `b` found nothing in stdout (it is empty)"
        );
        let error = parse_single_value("json = \"/a\"", "{\"a\": 1").unwrap_err();
        assert!(error.starts_with("metric `m`: json `/a`: stdout is not understood: EOF"), "{error}");
        assert_eq!(
            extract_metrics(&[parse_rule("key = \"rate\"\noptional = true")], "", "", Nanos(1)),
            Ok(Vec::new())
        );
    }

    #[test]
    fn names_and_units_are_those_of_the_output() {
        let text = "unit = \"MB/s\"\ndirection = \"higher\"\nname = \"*-rate\"\naggregate = \"mean\"\n\
                    head = '^Function.*Rate (?<unit>\\S+)'\nregex = '^(?<name>\\w+): (?<value>\\S+)'\n";
        let rule = toml::from_str::<MetricRuleDocument>(text).unwrap().into_rule("metric[0]").unwrap();
        let extract = |output: &str| extract_metrics(std::slice::from_ref(&rule), output, "", Nanos(1));
        let values = extract("Copy: 1\nFunction Rate MB/s\nCopy: 2\nAdd: 5\nCopy: 4").unwrap();
        let values: Vec<(&str, f64)> =
            values.iter().map(|value| (value.metric.name.as_str(), value.value)).collect();
        assert_eq!(values, [("Copy-rate", 3.0), ("Add-rate", 5.0)]);
        let error = extract("Function Rate GB/s\nCopy: 2\n").unwrap_err();
        assert!(matches!(error, MetricParseError::OtherUnit { .. }), "{error}");
        let both = [rule.clone(), rule];
        let error = extract_metrics(&both, "Function Rate MB/s\nCopy: 2\n", "", Nanos(1)).unwrap_err();
        assert_eq!(error, MetricParseError::FoundTwice { metric: "Copy-rate".into() });
        let text =
            "unit = \"1/s\"\ndirection = \"higher\"\nname = \"*\"\ncsv = \"rps\"\nname_column = \"test\"\n";
        let rule = toml::from_str::<MetricRuleDocument>(text).unwrap().into_rule("metric[0]").unwrap();
        let values = extract_metrics(&[rule], "test,rps\nSET,1\nGET,2\n", "", Nanos(1)).unwrap();
        let values: Vec<(&str, f64)> =
            values.iter().map(|value| (value.metric.name.as_str(), value.value)).collect();
        assert_eq!(values, [("SET", 1.0), ("GET", 2.0)]);
    }

    #[test]
    fn a_star_in_a_pointer_names_the_metric_or_is_aggregated() {
        let output = "{\"thread\": {\"0\": {\"max\": 4}, \"1\": {\"max\": 9}}}";
        let extract = |name: &str, aggregate: &str| {
            let text = format!(
                "name = \"{name}\"\nunit = \"us\"\ndirection = \"lower\"\njson = \"/thread/*/max\"\n{aggregate}"
            );
            let rule = toml::from_str::<MetricRuleDocument>(&text).unwrap().into_rule("metric[0]").unwrap();
            let values = extract_metrics(&[rule], output, "", Nanos(1)).unwrap();
            values.into_iter().map(|one| (one.metric.name, one.value)).collect::<Vec<_>>()
        };
        assert_eq!(extract("cpu-*-worst", ""), [("cpu-0-worst".into(), 4.0), ("cpu-1-worst".into(), 9.0)]);
        assert_eq!(extract("worst", "aggregate = \"max\""), [("worst".into(), 9.0)]);
    }

    #[test]
    fn an_omission_is_known_again() {
        assert!(has_omission_line(&format!("a\n{}\nb", write_omission_line(12))));
        assert!(!has_omission_line("a\nperflab: 12 bytes not kept\n"));
    }

    #[test]
    fn items_are_named_by_what_they_say() {
        let output =
            r#"{"jobs": [{"n": "a", "iops": 1}, {"n": "b", "iops": 2, "x": 0}, {"n": "a", "iops": 4}]}"#;
        let extract = |rule: &str| -> Result<Vec<(String, f64)>, String> {
            let text = format!("unit = \"1\"\ndirection = \"neither\"\n{rule}");
            let document = toml::from_str::<MetricRuleDocument>(&text).map_err(|error| error.to_string())?;
            let rule = document
                .into_rule("metric[0]")
                .map_err(|problem| format!("{}: {}", problem.key, problem.message))?;
            let values = extract_metrics(&[rule], output, "", Nanos(1)).map_err(|error| error.to_string())?;
            Ok(values.into_iter().map(|value| (value.metric.name, value.value)).collect())
        };
        let named = |pairs: &[(&str, f64)]| {
            Ok(pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect())
        };
        let sum = "aggregate = \"sum\"";
        assert_eq!(
            extract(&format!("name = \"all\"\njson = \"/jobs/*/iops\"\n{sum}")),
            named(&[("all", 7.0)])
        );
        let by_name = "name = \"*-iops\"\njson = \"/jobs/*/iops\"\nname_json = \"/n\"";
        assert_eq!(extract(&format!("{by_name}\n{sum}")), named(&[("a-iops", 5.0), ("b-iops", 2.0)]));
        let unnamed = "name = \"*\"\njson = \"/jobs/*/x\"\nname_json = \"/iops\"";
        assert_eq!(extract(unnamed), named(&[("1", 0.0)]));
        let key = |rule: &str| -> String {
            let text = format!("unit = \"1\"\ndirection = \"neither\"\n{rule}");
            let document = toml::from_str::<MetricRuleDocument>(&text).unwrap();
            document.into_rule("metric[0]").unwrap_err().key
        };
        for rule in [
            "name = \"m\"\njson = \"/jobs/0/iops\"\nname_json = \"/n\"",
            "name = \"*\"\njson = \"/jobs/*/iops\"\nname_json = \"n\"",
            "name = \"*\"\nkey = \"a\"\nname_json = \"/n\"",
        ] {
            assert_eq!(key(rule), "metric[0].name_json", "{rule}");
        }
    }

    #[test]
    fn numbers_are_finite_or_refused() {
        for text in ["NaN", "inf", "-inf", "1e999", "fast", ""] {
            let error = parse_single_value("key = \"rate\"", &format!("rate: {text}")).unwrap_err();
            assert!(error.ends_with(&format!("found `{text}`, which is not a finite number")), "{error}");
        }
        assert_eq!(
            parse_single_value("key = \"rate\"\nscale = 1e300", "rate: 1e300").unwrap_err(),
            "metric `m`: key `rate` found `inf`, which is not a finite number"
        );
        assert_eq!(
            parse_single_value("json = \"/a\"", "{\"a\": null}").unwrap_err(),
            "metric `m`: json `/a` found `null`, which is not a finite number"
        );
    }
}
