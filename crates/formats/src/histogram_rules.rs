//! `[[histogram]]`: where the buckets of a histogram are in an output, and which metrics follow from it. `docs/workload-file.md` is its
//! reference.

use std::fmt;

use perflab_model::{Direction, Metric, Problem, Unit};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::finite_number::require_finite_number;
use crate::hdr_log::decode_hdr_histogram;
use crate::json_document::{find_json_document, follow_json_pointer};
use crate::metric_extraction::{MetricParseError, MetricValue, has_omission_line, shorten_first_line};
use crate::metric_rules::{OutputStream, compile_pattern, deserialize_one_or_several};
use crate::value_histogram::{Percentile, ValueHistogram};

/// A histogram, how it is found, and what is asked of it.
#[derive(Debug, Clone)]
pub struct HistogramRule {
    /// What its metrics' names begin with.
    pub name: String,
    /// Where to look.
    pub from: OutputStream,
    /// How to find its buckets.
    pub source: HistogramSource,
    /// How to find out how many values there are in all, with those that have no bucket.
    pub total: Option<HistogramTotal>,
    /// A found value times this is the value in the unit.
    pub scale: f64,
    /// Whether its absence is no error.
    pub optional: bool,
    /// What is asked of it, each with its metric.
    pub statistics: Vec<(HistogramStatistic, Metric)>,
}

/// Where the buckets are.
#[derive(Debug, Clone)]
pub enum HistogramSource {
    /// The groups `value` and `count` of a regular expression, at every match; several counts, with blanks between them, are added.
    Regex(regex::Regex),
    /// JSON pointers to objects of counts by value, or to lists of pairs of a value and its count.
    Json(Vec<String>),
    /// The group `encoded` of a regular expression, at every match: histograms of HdrHistogram in base64, as its logs have them.
    Hdr(regex::Regex),
}

/// Where the number of all values is.
#[derive(Debug, Clone)]
pub enum HistogramTotal {
    /// The group `count` of a regular expression, at every match; all are added.
    Regex(regex::Regex),
    /// JSON pointers to numbers; all are added.
    Json(Vec<String>),
}

/// What is asked of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistogramStatistic {
    /// the value that so many per cent do not exceed
    Percentile(Percentile),
    /// the largest value
    Max,
    /// the mean of all values
    Mean,
}

impl fmt::Display for HistogramStatistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HistogramStatistic::Percentile(percentile) => percentile.fmt(f),
            HistogramStatistic::Max => f.write_str("max"),
            HistogramStatistic::Mean => f.write_str("mean"),
        }
    }
}

impl fmt::Display for HistogramSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HistogramSource::Regex(regex) => write!(f, "histogram regex `{regex}`"),
            HistogramSource::Json(pointers) => write!(f, "histogram json `{}`", pointers.join("`, `")),
            HistogramSource::Hdr(regex) => write!(f, "histogram hdr `{regex}`"),
        }
    }
}

/// The table as it is written; [`HistogramRuleDocument::into_rule`] makes a rule of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistogramRuleDocument {
    name: String,
    unit: String,
    direction: Direction,
    #[serde(default)]
    primary: Vec<String>,
    #[serde(default)]
    percentiles: Vec<f64>,
    #[serde(default)]
    max: bool,
    #[serde(default)]
    mean: bool,
    #[serde(default)]
    from: OutputStream,
    scale: Option<f64>,
    #[serde(default)]
    optional: bool,
    regex: Option<String>,
    #[serde(default, deserialize_with = "deserialize_one_or_several")]
    json: Vec<String>,
    hdr: Option<String>,
    #[serde(default, deserialize_with = "deserialize_one_or_several")]
    total: Vec<String>,
}

const ONE_SOURCE: &str = "write exactly one of `regex`, `json` and `hdr`";

impl HistogramRuleDocument {
    /// The checked rule; `key` is `histogram[INDEX]`.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    pub fn into_rule(self, key: &str) -> Result<HistogramRule, Problem> {
        let scale = self.scale.unwrap_or(1.0);
        if !scale.is_finite() || scale <= 0.0 {
            return Err(Problem::new(format!("{key}.scale"), "must be a number above 0"));
        }
        if self.name.is_empty() || self.name.contains('*') {
            let problem = Problem::new(format!("{key}.name"), "names no histogram");
            return Err(problem.with_hint("its metrics are called NAME-p99, NAME-max, …"));
        }
        let source = self.source(key)?;
        let total = self.total(key)?;
        let statistics = self.statistics(key)?;
        Ok(HistogramRule {
            name: self.name,
            from: self.from,
            source,
            total,
            scale,
            optional: self.optional,
            statistics,
        })
    }

    fn source(&self, key: &str) -> Result<HistogramSource, Problem> {
        let mut sources = Vec::new();
        sources.extend(self.regex.as_ref().map(|text| {
            let groups = ["value", "count"];
            compile_with_groups(text, &groups, key, "regex").map(HistogramSource::Regex)
        }));
        sources.extend((!self.json.is_empty()).then(|| {
            check_pointers(&self.json, key, "json")?;
            Ok(HistogramSource::Json(self.json.clone()))
        }));
        sources.extend(
            self.hdr
                .as_ref()
                .map(|text| compile_with_groups(text, &["encoded"], key, "hdr").map(HistogramSource::Hdr)),
        );
        match (sources.pop(), sources.is_empty()) {
            (Some(source), true) => source,
            (None, _) => Err(Problem::new(key, "has no rule that finds its buckets").with_hint(ONE_SOURCE)),
            (Some(_), false) => Err(Problem::new(key, "has more than one rule").with_hint(ONE_SOURCE)),
        }
    }

    /// A pointer where all begin with /, as paths do; else a regular expression.
    fn total(&self, key: &str) -> Result<Option<HistogramTotal>, Problem> {
        match self.total.as_slice() {
            [] => Ok(None),
            [text] if !text.starts_with('/') => {
                let regex = compile_with_groups(text, &["count"], key, "total")?;
                Ok(Some(HistogramTotal::Regex(regex)))
            }
            pointers => {
                check_pointers(pointers, key, "total")?;
                Ok(Some(HistogramTotal::Json(pointers.to_vec())))
            }
        }
    }

    fn statistics(&self, key: &str) -> Result<Vec<(HistogramStatistic, Metric)>, Problem> {
        let mut asked = Vec::new();
        for (place, percent) in self.percentiles.iter().enumerate() {
            let place = format!("{key}.percentiles[{place}]");
            let Some(percentile) = Percentile::new(*percent) else {
                let problem = Problem::new(place, format!("{percent} is no percentile"));
                return Err(problem.with_hint(
                    "above 0 and below 100, with at most nine digits behind the point; the largest is `max = true`",
                ));
            };
            let statistic = HistogramStatistic::Percentile(percentile);
            if asked.contains(&statistic) {
                return Err(Problem::new(place, format!("{percent} stands here twice")));
            }
            asked.push(statistic);
        }
        asked.extend(self.max.then_some(HistogramStatistic::Max));
        asked.extend(self.mean.then_some(HistogramStatistic::Mean));
        if asked.is_empty() {
            let problem = Problem::new(key, "nothing is asked of it");
            return Err(problem.with_hint("write `percentiles = [50, 99]`, `max = true` or `mean = true`"));
        }
        let names: Vec<String> = asked.iter().map(ToString::to_string).collect();
        if let Some(other) = self.primary.iter().find(|name| !names.contains(name)) {
            let problem = Problem::new(format!("{key}.primary"), format!("`{other}` is not asked of it"));
            return Err(
                problem.with_hint(perflab_model::suggest_name(other, names.iter().map(String::as_str)))
            );
        }
        let metric = |statistic: &HistogramStatistic| Metric {
            name: format!("{}-{statistic}", self.name),
            unit: Unit::new(&self.unit),
            direction: self.direction,
            primary: self.primary.contains(&statistic.to_string()),
        };
        Ok(asked.iter().map(|statistic| (*statistic, metric(statistic))).collect())
    }
}

fn compile_with_groups(text: &str, groups: &[&str], key: &str, part: &str) -> Result<regex::Regex, Problem> {
    let regex = compile_pattern(text, key, part)?;
    let has = |group: &&&str| regex.capture_names().flatten().any(|name| name == **group);
    match groups.iter().find(|group| !has(group)) {
        None => Ok(regex),
        Some(group) => {
            let problem = Problem::new(format!("{key}.{part}"), format!("captures nothing named `{group}`"));
            Err(problem.with_hint(format!("write `(?<{group}>[0-9]+)`")))
        }
    }
}

fn check_pointers(pointers: &[String], key: &str, part: &str) -> Result<(), Problem> {
    match pointers.iter().find(|text| !text.starts_with('/')) {
        None => Ok(()),
        Some(text) => {
            let problem = Problem::new(format!("{key}.{part}"), format!("`{text}` is not a JSON pointer"));
            Err(problem.with_hint("begin with /"))
        }
    }
}

impl HistogramRule {
    /// What it gives, where there are enough values.
    pub fn metrics(&self) -> impl Iterator<Item = &Metric> {
        self.statistics.iter().map(|(_, metric)| metric)
    }

    /// The metrics of the histogram in the text of the stream that [`HistogramRule::from`] names. A percentile beyond which no value
    /// lies is left out: it would be the largest value under another name.
    ///
    /// # Errors
    /// There is none, though it is not optional; it is damaged; what is asked for lies beyond its buckets.
    pub fn measure(&self, text: &str) -> Result<Vec<MetricValue>, MetricParseError> {
        let histogram = self.read(text).map_err(|reason| MetricParseError::WrongFormat {
            metric: self.name.clone(),
            rule: self.source.to_string(),
            from: self.from,
            reason,
        })?;
        if histogram.count() == 0 {
            return match self.optional {
                true => Ok(Vec::new()),
                false => Err(MetricParseError::NothingFound {
                    metric: self.name.clone(),
                    rule: self.source.to_string(),
                    from: self.from,
                    shown: shorten_first_line(text),
                }),
            };
        }
        let mut values = Vec::new();
        for (statistic, metric) in &self.statistics {
            let value = match statistic {
                HistogramStatistic::Percentile(percentile)
                    if !percentile.is_carried_by(histogram.count()) =>
                {
                    continue;
                }
                HistogramStatistic::Percentile(percentile) => {
                    histogram.value_at_rank(percentile.nearest_rank(histogram.count()))
                }
                HistogramStatistic::Max => histogram.largest(),
                HistogramStatistic::Mean => histogram.mean(),
            };
            let value = value.ok_or_else(|| MetricParseError::BeyondBuckets {
                metric: metric.name.clone(),
                beyond: histogram.beyond(),
                count: histogram.count(),
            })?;
            values.push(MetricValue { metric: metric.clone(), value });
        }
        Ok(values)
    }

    /// All that the text says of it.
    fn read(&self, text: &str) -> Result<ValueHistogram, String> {
        let mut histogram = ValueHistogram::default();
        let mut add = |value: &str, counts: &str| {
            let number = require_finite_number(value)? * self.scale;
            for count in counts.split_ascii_whitespace() {
                histogram.add(number, parse_count(count)?).map_err(|error| error.to_string())?;
            }
            Ok::<(), String>(())
        };
        match &self.source {
            HistogramSource::Regex(_) | HistogramSource::Hdr(_) if has_omission_line(text) => {
                return Err("a part of what was printed was not kept, and may have held buckets".into());
            }
            HistogramSource::Regex(regex) => {
                for captures in regex.captures_iter(text) {
                    if let (Some(value), Some(counts)) = (captures.name("value"), captures.name("count")) {
                        add(value.as_str(), counts.as_str())?;
                    }
                }
            }
            HistogramSource::Hdr(_) => {}
            HistogramSource::Json(pointers) => {
                let document = find_json_document(text).map_err(|fault| fault.reason)?.document;
                let found = pointers.iter().flat_map(|pointer| follow_json_pointer(&document, pointer));
                for one in found {
                    for (value, count) in json_buckets(one.value)? {
                        add(&value, &count)?;
                    }
                }
            }
        }
        if let HistogramSource::Hdr(regex) = &self.source {
            for encoded in regex.captures_iter(text).filter_map(|captures| captures.name("encoded")) {
                let line = 1 + text.get(..encoded.start()).unwrap_or_default().matches('\n').count();
                let found = decode_hdr_histogram(encoded.as_str());
                let found = found.map_err(|error| format!("line {line}: {error}"))?;
                histogram.merge_scaled(&found, self.scale).map_err(|error| error.to_string())?;
            }
        }
        // One that is not there has no values without a bucket either.
        let is_absent = self.optional && histogram.count() == 0;
        if let Some(total) = self.total.as_ref().filter(|_| !is_absent) {
            let total = total.read(text)?;
            let beyond = total.checked_sub(histogram.count()).ok_or_else(|| {
                format!("its buckets hold {} values, and there are {total}", histogram.count())
            })?;
            histogram.add_beyond(beyond).map_err(|error| error.to_string())?;
        }
        Ok(histogram)
    }
}

impl HistogramTotal {
    fn read(&self, text: &str) -> Result<u64, String> {
        let mut counts = Vec::new();
        match self {
            HistogramTotal::Regex(regex) => {
                let groups = regex.captures_iter(text).filter_map(|captures| captures.name("count"));
                for group in groups {
                    counts.extend(group.as_str().split_ascii_whitespace().map(str::to_owned));
                }
            }
            HistogramTotal::Json(pointers) => {
                let document = find_json_document(text).map_err(|fault| fault.reason)?.document;
                let found = pointers.iter().flat_map(|pointer| follow_json_pointer(&document, pointer));
                counts.extend(found.map(|one| one.value.to_string()));
            }
        }
        if counts.is_empty() {
            return Err("the number of all its values is not there".into());
        }
        counts.iter().try_fold(0_u64, |sum, count| {
            sum.checked_add(parse_count(count)?).ok_or_else(|| "its counts are too many".to_owned())
        })
    }
}

/// A value and its count, as texts.
type JsonBucket = (String, String);

/// `{"12": 3, "13": 1}`, or `[[12, 3], [13, 1]]`.
fn json_buckets(value: &Json) -> Result<Vec<JsonBucket>, String> {
    match value {
        Json::Object(members) => {
            Ok(members.iter().map(|(value, count)| (value.clone(), count.to_string())).collect())
        }
        Json::Array(items) => {
            let pair = |item: &Json| match item.as_array().map(Vec::as_slice) {
                Some([value, count]) => Ok((value.to_string(), count.to_string())),
                _ => Err(format!("`{}` is no pair of a value and its count", shorten_json(item))),
            };
            items.iter().map(pair).collect()
        }
        other => {
            Err(format!("`{}` is no histogram: neither counts by value, nor pairs", shorten_json(other)))
        }
    }
}

fn shorten_json(value: &Json) -> String {
    value.to_string().chars().take(40).collect()
}

/// A whole number, also with leading zeros.
fn parse_count(text: &str) -> Result<u64, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let count = is_number.then(|| text.parse().ok()).flatten();
    count.ok_or_else(|| format!("`{}` is no count", text.chars().take(40).collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_rule(rule: &str) -> Result<HistogramRule, Problem> {
        let text = format!("name = \"latency\"\nunit = \"us\"\ndirection = \"lower\"\n{rule}\n");
        toml::from_str::<HistogramRuleDocument>(&text).unwrap().into_rule("histogram[0]")
    }

    fn measure(rule: &str, text: &str) -> Result<Vec<(String, f64)>, MetricParseError> {
        let values = parse_rule(rule).unwrap().measure(text)?;
        Ok(values.into_iter().map(|one| (one.metric.name, one.value)).collect())
    }

    fn reason(rule: &str, text: &str) -> String {
        match measure(rule, text) {
            Err(MetricParseError::WrongFormat { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    }

    fn named(values: &[(&str, f64)]) -> Vec<(String, f64)> {
        values.iter().map(|(name, value)| (format!("latency-{name}"), *value)).collect()
    }

    const LINES: &str = "regex = '^(?<value>[0-9]{6}) (?<count>[0-9\\s]+?)$'";

    /// Two threads side by side, as cyclictest prints them.
    #[test]
    fn rows_of_lines_are_added_over_their_columns() {
        let rule = format!("{LINES}\npercentiles = [50, 90, 99]\nmax = true\nmean = true");
        let text = "# Histogram\n000004 000000\t000000\n000005 000003\t000004\n000009 000002\t000000\n000030 000000\t000001\n# Total: 5 5\n";
        let expected = named(&[("p50", 5.0), ("p90", 9.0), ("max", 30.0), ("mean", 8.3)]);
        assert_eq!(measure(&rule, text).unwrap(), expected);
    }

    #[test]
    fn json_is_counts_by_value_or_pairs_of_all_that_a_pointer_finds() {
        let rule = "json = \"/thread/*/histogram\"\npercentiles = [50]\nmax = true\nscale = 0.001";
        let text = "{\"thread\": {\"0\": {\"histogram\": {\"9\": 1, \"1000\": 5}}, \"1\": {\"histogram\": {\"20\": 5}}}}";
        assert_eq!(measure(rule, text).unwrap(), named(&[("p50", 0.02), ("max", 1.0)]));
        let rule = "json = \"/bins\"\npercentiles = [50]\nmax = true";
        assert_eq!(
            measure(rule, "{\"bins\": [[7.5, 3], [2, 1]]}").unwrap(),
            named(&[("p50", 7.5), ("max", 7.5)])
        );
    }

    /// Twice the first interval of jHiccup's log (see [`crate::hdr_log`]), the second of another tag.
    #[test]
    fn histograms_of_hdr_histogram_are_merged() {
        let encoded = "HISTFAAAAEV42pNpmSzMwMCgyAABTBDKT4GBgdnNYMcCBvsPEBEJISEuATEZMQ4uASkhIR4nrxg9v2lMaxhvMekILGZkKmcCAEf2CsI=";
        let log = format!("#[x]\n0.1,1.0,2.769,{encoded}\nTag=B,0.1,1.0,2.769,{encoded}\n");
        let rule =
            |regex: &str| format!("hdr = '{regex}'\nscale = 0.000001\nmax = true\npercentiles = [50, 99.9]");
        let both = measure(&rule(r"(?<encoded>HIST\S+)$"), &log).unwrap();
        let one = measure(&rule(r"^Tag=B,.*,(?<encoded>HIST\S+)$"), &log).unwrap();
        let max = |values: &[(String, f64)]| values.iter().find(|one| one.0 == "latency-max").unwrap().1;
        assert!((max(&both) - 2.769).abs() < 0.001 && max(&one) == max(&both), "{both:?}");
        // Of 741 values and the same again, one of 1,000 is beyond p99.9 in both only.
        assert_eq!((one.len(), both.len()), (2, 3));
        let cut = log.replace("CsI=\nTag", "CsI\nTag");
        let error = reason(&rule(r"(?<encoded>HIST\S+)$"), &cut);
        assert!(error.starts_with("line 2: "), "{error}");
    }

    #[test]
    fn what_is_asked_for_beyond_the_buckets_is_no_value() {
        let text = "1 97\n2 1\nall 100\n";
        let regex = "regex = '^(?<value>[0-9]+) (?<count>[0-9]+)$'\ntotal = '^all (?<count>[0-9]+)$'";
        assert_eq!(measure(&format!("{regex}\npercentiles = [97]"), text).unwrap(), named(&[("p97", 1.0)]));
        for asked in ["percentiles = [99]", "max = true", "mean = true"] {
            let error = measure(&format!("{regex}\n{asked}"), text).unwrap_err();
            assert!(
                matches!(error, MetricParseError::BeyondBuckets { beyond: 2, count: 100, .. }),
                "{error}"
            );
        }
        let optional = format!("{regex}\nmax = true\noptional = true");
        assert_eq!(measure(&optional, "all 100\n").unwrap(), []);
        assert_eq!(
            reason(&format!("{regex}\nmax = true"), "1 9\nall 8\n"),
            "its buckets hold 9 values, and there are 8"
        );
        assert_eq!(
            reason(&format!("{regex}\nmax = true"), "1 9\n"),
            "the number of all its values is not there"
        );
    }

    #[test]
    fn damaged_histograms_are_refused() {
        let json = "json = \"/h\"\nmax = true";
        for (text, expected) in [
            ("{\"h\": {\"-3\": 1}}", "the value -3 is below 0"),
            ("{\"h\": {\"3\": -1}}", "`-1` is no count"),
            ("{\"h\": {\"3\": 1.5}}", "`1.5` is no count"),
            ("{\"h\": {\"x\": 1}}", "`x` is no number"),
            ("{\"h\": [[1, 2, 3]]}", "`[1,2,3]` is no pair of a value and its count"),
            ("{\"h\": 7}", "`7` is no histogram: neither counts by value, nor pairs"),
            (
                "{\"h\": {\"3\": 18446744073709551615, \"4\": 1}}",
                "its counts add up to more than 18446744073709551615",
            ),
        ] {
            assert_eq!(reason(json, text), expected);
        }
        let cut = format!("000001 5\n{}\n000009 1\n", crate::metric_extraction::write_omission_line(7));
        assert_eq!(
            reason(&format!("{LINES}\nmax = true"), &cut),
            "a part of what was printed was not kept, and may have held buckets"
        );
        for text in ["{}", "{\"h\": {}}", "{\"h\": {\"3\": 0}}"] {
            let error = measure(json, text).unwrap_err();
            assert!(matches!(error, MetricParseError::NothingFound { .. }), "{error}");
            assert_eq!(measure(&format!("{json}\noptional = true"), text).unwrap(), []);
        }
    }

    #[test]
    fn rules_that_cannot_be_are_named_by_their_key() {
        let problem = |rule: &str| parse_rule(rule).unwrap_err().key;
        for (rule, key) in [
            ("max = true", ""),
            ("json = \"/a\"\nregex = '(?<value>.)(?<count>.)'\nmax = true", ""),
            ("json = \"/a\"", ""),
            ("json = \"/a\"\nhdr = '(?<encoded>.)'\nmax = true", ""),
            ("hdr = '(?<value>.)'\nmax = true", ".hdr"),
            ("json = \"a\"\nmax = true", ".json"),
            ("regex = '(?<value>.)'\nmax = true", ".regex"),
            ("json = \"/a\"\npercentiles = [50, 100]", ".percentiles[1]"),
            ("json = \"/a\"\npercentiles = [50, 50]", ".percentiles[1]"),
            ("json = \"/a\"\npercentiles = [50]\nprimary = [\"p99\"]", ".primary"),
            ("json = \"/a\"\nmax = true\ntotal = '[0-9]'", ".total"),
            ("json = \"/a\"\nmax = true\nscale = -1", ".scale"),
        ] {
            assert_eq!(problem(rule), format!("histogram[0]{key}"), "{rule}");
        }
    }
}
