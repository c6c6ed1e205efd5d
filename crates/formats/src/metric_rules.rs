//! `[[metric]]`: which quantity, and the one rule that finds it in the output.

use std::fmt;

use perflab_model::{Direction, Metric, Problem, Unit};
use serde::{Deserialize, Deserializer};

/// A metric and how it is found.
#[derive(Debug, Clone)]
pub struct MetricRule {
    /// What is measured.
    pub metric: Metric,
    /// Where to look.
    pub from: OutputStream,
    /// How to find it.
    pub rule: ExtractionRule,
    /// What to make of several finds.
    pub aggregate: MetricAggregate,
    /// The found number times this is the value in the metric's unit.
    pub scale: f64,
    /// Whether its absence is not an error: a metric that exists only under some parameters.
    pub optional: bool,
}

/// How a metric is found.
#[derive(Debug, Clone)]
pub enum ExtractionRule {
    /// The capture `value` of a regular expression, at every match; `^` and `$` match at lines.
    Regex(regex::Regex),
    /// JSON pointers (RFC 6901) into the first JSON document of the output; those that exist count.
    Json(Vec<String>),
    /// A column, by its name in the first line.
    Csv {
        /// the name
        column: String,
        /// the byte between columns
        separator: u8,
    },
    /// The value behind a key, at every line `key separator value`.
    Key {
        /// the key, without blanks around it
        key: String,
        /// the text between key and value
        separator: String,
    },
    /// Wall-clock of the whole execution, in seconds.
    Wall,
}

impl fmt::Display for ExtractionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExtractionRule::Regex(regex) => write!(f, "regex `{regex}`"),
            ExtractionRule::Json(pointers) => write!(f, "json `{}`", pointers.join("`, `")),
            ExtractionRule::Csv { column, .. } => write!(f, "csv column `{column}`"),
            ExtractionRule::Key { key, .. } => write!(f, "key `{key}`"),
            ExtractionRule::Wall => write!(f, "time = \"wall\""),
        }
    }
}

/// Where a rule looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// standard output
    #[default]
    Stdout,
    /// standard error
    Stderr,
}

impl fmt::Display for OutputStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OutputStream::Stdout => "stdout",
            OutputStream::Stderr => "stderr",
        })
    }
}

/// One value out of several finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricAggregate {
    /// the last one
    #[default]
    Last,
    /// the first one
    First,
    /// all added up
    Sum,
    /// arithmetic mean
    Mean,
    /// the smallest
    Min,
    /// the largest
    Max,
    /// the median
    Median,
}

/// The table as it is written; [`MetricRuleDocument::into_rule`] makes a rule of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricRuleDocument {
    name: String,
    unit: String,
    direction: Direction,
    #[serde(default)]
    primary: bool,
    #[serde(default)]
    from: OutputStream,
    #[serde(default)]
    aggregate: MetricAggregate,
    scale: Option<f64>,
    #[serde(default)]
    optional: bool,
    regex: Option<String>,
    #[serde(default, deserialize_with = "deserialize_one_or_several")]
    json: Vec<String>,
    csv: Option<String>,
    key: Option<String>,
    separator: Option<String>,
    time: Option<WallTimeSource>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WallTimeSource {
    Wall,
}

impl MetricRuleDocument {
    /// The checked rule; `key` is `metric[INDEX]`.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    pub fn into_rule(self, key: &str) -> Result<MetricRule, Problem> {
        let scale = self.scale.unwrap_or(1.0);
        if !scale.is_finite() || scale == 0.0 {
            return Err(Problem::new(format!("{key}.scale"), "must be a number other than 0"));
        }
        let rule = self.extraction_rule(key)?;
        let metric = Metric {
            name: self.name,
            unit: Unit(self.unit.into()),
            direction: self.direction,
            primary: self.primary,
        };
        Ok(MetricRule {
            metric,
            from: self.from,
            rule,
            aggregate: self.aggregate,
            scale,
            optional: self.optional,
        })
    }

    fn extraction_rule(&self, key: &str) -> Result<ExtractionRule, Problem> {
        let mut rules = Vec::new();
        rules.extend(self.regex.as_ref().map(|text| regex_rule(text, key)));
        rules.extend((!self.json.is_empty()).then(|| json_rule(&self.json, key)));
        rules.extend(self.csv.as_ref().map(|column| self.csv_rule(column, key)));
        rules.extend(self.key.as_ref().map(|name| {
            Ok(ExtractionRule::Key {
                key: name.clone(),
                separator: self.separator.clone().unwrap_or_else(|| ":".into()),
            })
        }));
        rules.extend(self.time.map(|WallTimeSource::Wall| Ok(ExtractionRule::Wall)));
        match (rules.pop(), rules.is_empty()) {
            (Some(rule), true) => rule,
            (None, _) => Err(Problem::new(key, "has no rule that finds it").with_hint(ONE_RULE)),
            (Some(_), false) => Err(Problem::new(key, "has more than one rule").with_hint(ONE_RULE)),
        }
    }

    fn csv_rule(&self, column: &str, key: &str) -> Result<ExtractionRule, Problem> {
        let separator = self.separator.as_deref().unwrap_or(",");
        match separator.as_bytes() {
            [separator] => Ok(ExtractionRule::Csv { column: column.into(), separator: *separator }),
            _ => Err(Problem::new(format!("{key}.separator"), "must be one character for `csv`")),
        }
    }
}

const ONE_RULE: &str = "write exactly one of `regex`, `json`, `csv`, `key` and `time = \"wall\"`";

fn regex_rule(text: &str, key: &str) -> Result<ExtractionRule, Problem> {
    let key = format!("{key}.regex");
    let built = regex::RegexBuilder::new(text).multi_line(true).build();
    let regex = built.map_err(|error| Problem::new(&key, error.to_string().replace('\n', " ")))?;
    if regex.capture_names().flatten().any(|name| name == "value") {
        return Ok(ExtractionRule::Regex(regex));
    }
    Err(Problem::new(key, "captures nothing named `value`").with_hint("write `(?<value>[0-9.]+)`"))
}

fn json_rule(texts: &[String], key: &str) -> Result<ExtractionRule, Problem> {
    match texts.iter().find(|text| !text.starts_with('/')) {
        Some(text) => Err(Problem::new(format!("{key}.json"), format!("`{text}` is not a JSON pointer"))
            .with_hint("begin with /")),
        None => Ok(ExtractionRule::Json(texts.to_vec())),
    }
}

fn deserialize_one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct OneOrSeveralVisitor;
    impl<'de> serde::de::Visitor<'de> for OneOrSeveralVisitor {
        type Value = Vec<String>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON pointer, or a list of them")
        }
        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<String>, E> {
            Ok(vec![text.into()])
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Vec<String>, A::Error> {
            let mut texts = Vec::new();
            while let Some(text) = list.next_element()? {
                texts.push(text);
            }
            Ok(texts)
        }
    }
    deserializer.deserialize_any(OneOrSeveralVisitor)
}
