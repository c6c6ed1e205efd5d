//! From an output to measured values.
//!
//! A value is never made up: what is not a finite number is refused, and a rule that finds nothing is an error that
//! names the metric and the rule.

use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::{Metric, Nanos};
use serde_json::Value as Json;

use crate::metric_rules::{ExtractionRule, MetricAggregate, MetricRule, OutputStream};

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
}

impl Classify for MetricParseError {
    fn class(&self) -> ErrorClass {
        match self {
            MetricParseError::NothingFound { .. }
            | MetricParseError::WrongFormat { .. }
            | MetricParseError::NotANumber { .. } => ErrorClass::WorkloadFailed,
        }
    }
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
    rules.iter().filter_map(|rule| output.measure(rule).transpose()).collect()
}

/// What one execution left behind.
struct ExecutionOutput<'a> {
    stdout: &'a str,
    stderr: &'a str,
    wall: Nanos,
}

impl ExecutionOutput<'_> {
    fn measure(&self, rule: &MetricRule) -> Result<Option<MetricValue>, MetricParseError> {
        let numbers = self.find_numbers(rule)?;
        let Some(number) = aggregate_numbers(&numbers, rule.aggregate) else {
            return if rule.optional { Ok(None) } else { Err(self.nothing_found_error(rule)) };
        };
        let value = number * rule.scale;
        if !value.is_finite() {
            return Err(not_a_number_error(rule, &value.to_string()));
        }
        Ok(Some(MetricValue { metric: rule.metric.clone(), value }))
    }

    fn find_numbers(&self, rule: &MetricRule) -> Result<Vec<f64>, MetricParseError> {
        if let ExtractionRule::Wall = rule.rule {
            return Ok(vec![self.wall.seconds()]);
        }
        let texts = find_texts(&rule.rule, self.stream_text(rule.from)).map_err(|reason| {
            MetricParseError::WrongFormat {
                metric: rule.metric.name.clone(),
                rule: rule.rule.to_string(),
                from: rule.from,
                reason,
            }
        })?;
        texts
            .iter()
            .map(|text| parse_finite_number(text).ok_or_else(|| not_a_number_error(rule, text)))
            .collect()
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

/// A finite number, with or without commas between thousands.
pub fn parse_finite_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let parsed = text.parse::<f64>().or_else(|_| text.replace(',', "").parse::<f64>());
    parsed.ok().filter(|number| number.is_finite())
}

fn not_a_number_error(rule: &MetricRule, text: &str) -> MetricParseError {
    let text = text.chars().take(60).collect();
    MetricParseError::NotANumber { metric: rule.metric.name.clone(), rule: rule.rule.to_string(), text }
}

/// The first line with something in it, short enough for a message.
fn shorten_first_line(text: &str) -> String {
    match text.lines().map(str::trim).find(|line| !line.is_empty()) {
        None => "it is empty".into(),
        Some(line) => format!("it begins `{}`", line.chars().take(60).collect::<String>()),
    }
}

/// All finds in order; an error where the output is not in the rule's format.
fn find_texts(rule: &ExtractionRule, text: &str) -> Result<Vec<String>, String> {
    match rule {
        ExtractionRule::Regex(regex) => Ok(find_captures(regex, text)),
        ExtractionRule::Json(pointers) => find_in_json(pointers, text),
        ExtractionRule::Csv { column, separator } => find_in_csv(column, *separator, text),
        ExtractionRule::Key { key, separator } => Ok(find_key_values(key, separator, text)),
        ExtractionRule::Wall => Ok(Vec::new()),
    }
}

fn find_captures(regex: &regex::Regex, text: &str) -> Vec<String> {
    let found = regex.captures_iter(text).filter_map(|captures| captures.name("value"));
    found.map(|value| value.as_str().to_owned()).collect()
}

/// The first JSON document, whatever comes before and behind it: some tools greet first.
fn find_in_json(pointers: &[String], text: &str) -> Result<Vec<String>, String> {
    let document = find_json_document(text)?;
    let found = pointers.iter().filter_map(|pointer| document.pointer(pointer));
    Ok(found
        .map(|value| match value {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        })
        .collect())
}

/// The first JSON document of a text.
///
/// # Errors
/// Why there is none.
pub fn find_json_document(text: &str) -> Result<Json, String> {
    // A greeting may hold brackets of its own, so every line that begins like JSON gets its chance.
    let mut offset = 0;
    let mut reason = "it holds no JSON".to_owned();
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with(['{', '[']) {
            let rest = text.get(offset..).unwrap_or_default();
            match serde_json::Deserializer::from_str(rest).into_iter::<Json>().next() {
                Some(Ok(document)) => return Ok(document),
                Some(Err(error)) => reason = error.to_string(),
                None => {}
            }
        }
        offset += line.len();
    }
    Err(reason)
}

fn find_in_csv(column: &str, separator: u8, text: &str) -> Result<Vec<String>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|error| error.to_string())?;
    let Some(index) = headers.iter().position(|name| name == column) else { return Ok(Vec::new()) };
    let rows: Result<Vec<csv::StringRecord>, _> = reader.records().collect();
    let rows = rows.map_err(|error| error.to_string())?;
    Ok(rows.iter().filter_map(|row| row.get(index)).map(str::to_owned).collect())
}

fn find_key_values(key: &str, separator: &str, text: &str) -> Vec<String> {
    let pairs = text.lines().filter_map(|line| line.split_once(separator));
    pairs.filter(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned()).collect()
}

/// None where nothing was found.
fn aggregate_numbers(numbers: &[f64], aggregate: MetricAggregate) -> Option<f64> {
    let count = numbers.len() as f64;
    match aggregate {
        MetricAggregate::Last => numbers.last().copied(),
        MetricAggregate::First => numbers.first().copied(),
        MetricAggregate::Sum => (!numbers.is_empty()).then(|| numbers.iter().sum()),
        MetricAggregate::Mean => (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / count),
        MetricAggregate::Min => numbers.iter().copied().reduce(f64::min),
        MetricAggregate::Max => numbers.iter().copied().reduce(f64::max),
        MetricAggregate::Median => median(numbers),
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
    fn numbers_are_finite_or_refused() {
        for text in ["NaN", "inf", "-inf", "1e999", "fast", ""] {
            let error = parse_single_value("key = \"rate\"", &format!("rate: {text}")).unwrap_err();
            assert!(error.ends_with(&format!("found `{text}`, which is not a finite number")), "{error}");
        }
        assert!(
            parse_single_value("key = \"rate\"\nscale = 1e300", "rate: 1e300").unwrap_err().contains("`inf`")
        );
        assert!(parse_single_value("json = \"/a\"", "{\"a\": null}").unwrap_err().contains("`null`"));
    }
}
