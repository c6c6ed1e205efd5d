//! `[[metric]]`: which quantity, and the one rule that finds it in the output. Workloads and imported logs have the same
//! table; `docs/workload-file.md` is its reference.

use std::fmt;

use perflab_model::{Direction, Metric, Problem, Unit};
use serde::{Deserialize, Deserializer};

use crate::json_document::has_pointer_star;

/// A metric and how it is found.
#[derive(Debug, Clone)]
pub struct MetricRule {
    /// What is measured. A `*` in its name stands for what the output calls it.
    pub metric: Metric,
    /// Where to look.
    pub from: OutputStream,
    /// The line below which the rule holds, up to the next such line. Its groups `name` and `unit` say what is below; of a table
    /// it names the columns.
    pub head: Option<regex::Regex>,
    /// How to find it.
    pub rule: ExtractionRule,
    /// How a found text is a number.
    pub number: NumberRule,
    /// What becomes of the name that the output gives: the first that matches.
    pub renames: Vec<NameReplacement>,
    /// What to make of several finds.
    pub aggregate: MetricAggregate,
    /// The found number times this is the value in the metric's unit.
    pub scale: f64,
    /// Whether its absence is not an error: a metric that exists only under some parameters.
    pub optional: bool,
}

impl MetricRule {
    /// The metric under the name and unit that the output gives it.
    pub fn metric_of(&self, find: &MetricFind) -> Metric {
        let name = match &find.name {
            Some(name) => self.metric.name.replace('*', name),
            None => self.metric.name.clone(),
        };
        let unit = find.unit.as_deref().map_or_else(|| self.metric.unit.clone(), Unit::new);
        Metric { name, unit, ..self.metric.clone() }
    }
}

/// One find of a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricFind {
    /// What stands for the `*` of the metric's name.
    pub name: Option<String>,
    /// The unit that the output names.
    pub unit: Option<String>,
    /// In the metric's unit.
    pub value: f64,
}

/// How a metric is found.
#[derive(Debug, Clone)]
pub enum ExtractionRule {
    /// The group `value` of a regular expression, at every match; `^` and `$` match at lines. A group `name` names the
    /// metric, groups that begin with `number` must be numbers too.
    Regex(regex::Regex),
    /// JSON pointers (RFC 6901) into the first JSON document of the output; those that exist count. A part that is `*` stands for all
    /// members, and names the metric where its name has a `*`.
    Json(JsonRule),
    /// A column of a table, by its name in the head.
    Table(TableRule),
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

/// Which values of a JSON document count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonRule {
    /// JSON pointers (RFC 6901); those that exist count. A part `*` stands for every member and item, and names the metric.
    pub pointers: Vec<String>,
    /// Where below what the last `*` stands for its name is, in place of the member's own.
    pub name: Option<String>,
}

/// Which cells of a table count.
#[derive(Debug, Clone)]
pub struct TableRule {
    /// The column's name, or names of which the first counts that the head has.
    pub columns: Vec<String>,
    /// How a line is cut into cells.
    pub layout: TableLayout,
    /// The column that names the metric.
    pub name_column: Option<String>,
    /// The lines that are rows, each with a cell a column; unless given, those that have such a cell. A group `name` names the
    /// metric.
    pub rows: Option<regex::Regex>,
    /// The columns' names where no head names them.
    pub default_columns: Vec<String>,
}

/// How a line of a table is cut into cells.
#[derive(Debug, Clone)]
pub enum TableLayout {
    /// by this byte; cells may be quoted
    Separated(u8),
    /// into words; each match of this in the head is a column's name, as that may hold blanks
    Words(regex::Regex),
}

/// How a found text is a number.
#[derive(Debug, Clone, Default)]
pub struct NumberRule {
    /// How it is written.
    pub notation: NumberNotation,
    /// What stands where there is no value.
    pub missing: Option<String>,
    /// The least and the largest that it can be, as found.
    pub range: Option<(f64, f64)>,
}

/// How a number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumberNotation {
    /// digits, perhaps with commas between thousands
    #[default]
    Plain,
    /// `h:mm:ss` or `m:ss`, in seconds
    Clock,
}

/// What becomes of a name that matches.
#[derive(Debug, Clone)]
pub struct NameReplacement {
    /// What is looked for in it.
    pub regex: regex::Regex,
    /// What stands in place of the match.
    pub replacement: String,
}

impl fmt::Display for ExtractionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExtractionRule::Regex(regex) => write!(f, "regex `{regex}`"),
            ExtractionRule::Json(json) => write!(f, "json `{}`", json.pointers.join("`, `")),
            ExtractionRule::Table(TableRule { columns, layout, .. }) => {
                let kind = if let TableLayout::Separated(_) = layout { "csv column" } else { "column" };
                write!(f, "{kind} `{}`", columns.join("`, `"))
            }
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
    /// none: each find is a value of its own. For imported logs only: an execution that perflab runs has one value a metric
    Each,
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
    name_json: Option<String>,
    #[serde(default, deserialize_with = "deserialize_one_or_several")]
    csv: Vec<String>,
    #[serde(default, deserialize_with = "deserialize_one_or_several")]
    column: Vec<String>,
    key: Option<String>,
    separator: Option<String>,
    time: Option<WallTimeSource>,
    head: Option<String>,
    column_names: Option<String>,
    #[serde(default)]
    columns: Vec<String>,
    name_column: Option<String>,
    rows: Option<String>,
    #[serde(default)]
    rename: Vec<NameReplacementDocument>,
    #[serde(default)]
    notation: NumberNotation,
    missing: Option<String>,
    within: Option<[f64; 2]>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NameReplacementDocument {
    regex: String,
    to: String,
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
        self.check_table_keys(&rule, key)?;
        let head = compile_optional(self.head.as_deref(), key, "head")?;
        if head.is_some() && matches!(rule, ExtractionRule::Json(_) | ExtractionRule::Wall) {
            return Err(Problem::new(
                format!("{key}.head"),
                "is for lines: `regex`, `csv`, `column` or `key`",
            ));
        }
        self.check_name(&rule, head.as_ref(), key)?;
        let metric = Metric {
            name: self.name.clone(),
            unit: Unit(self.unit.as_str().into()),
            direction: self.direction,
            primary: self.primary,
        };
        Ok(MetricRule {
            metric,
            from: self.from,
            head,
            rule,
            number: self.number_rule(key)?,
            renames: self.name_replacements(key)?,
            aggregate: self.aggregate,
            scale,
            optional: self.optional,
        })
    }

    fn extraction_rule(&self, key: &str) -> Result<ExtractionRule, Problem> {
        let mut rules = Vec::new();
        rules.extend(self.regex.as_ref().map(|text| regex_rule(text, key)));
        rules.extend((!self.json.is_empty()).then(|| self.json_rule(key)));
        rules.extend((!self.csv.is_empty()).then(|| self.csv_rule(key)));
        rules.extend((!self.column.is_empty()).then(|| self.column_rule(key)));
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

    fn json_rule(&self, key: &str) -> Result<ExtractionRule, Problem> {
        let texts = self.json.iter().map(|text| ("json", text));
        let named = self.name_json.iter().map(|text| ("name_json", text));
        if let Some((part, text)) = texts.chain(named).find(|(_, text)| !text.starts_with('/')) {
            let message = format!("`{text}` is not a JSON pointer");
            return Err(Problem::new(format!("{key}.{part}"), message).with_hint("begin with /"));
        }
        let (pointers, name) = (self.json.clone(), self.name_json.clone());
        if name.is_some() && !pointers.iter().all(|pointer| has_pointer_star(pointer)) {
            let problem = Problem::new(
                format!("{key}.name_json"),
                "names what a `*` of `json` stands for, and there is none",
            );
            return Err(problem.with_hint("write, for example, `json = \"/jobs/*/iops\"`"));
        }
        Ok(ExtractionRule::Json(JsonRule { pointers, name }))
    }

    fn csv_rule(&self, key: &str) -> Result<ExtractionRule, Problem> {
        let separator = self.separator.as_deref().unwrap_or(",");
        match separator.as_bytes() {
            [separator] => self.table_rule(&self.csv, TableLayout::Separated(*separator), key),
            _ => Err(Problem::new(format!("{key}.separator"), "must be one character for `csv`")),
        }
    }

    fn column_rule(&self, key: &str) -> Result<ExtractionRule, Problem> {
        let names = self.column_names.as_deref().unwrap_or(r"\S+");
        let layout = TableLayout::Words(compile_pattern(names, key, "column_names")?);
        self.table_rule(&self.column, layout, key)
    }

    fn table_rule(
        &self,
        columns: &[String],
        layout: TableLayout,
        key: &str,
    ) -> Result<ExtractionRule, Problem> {
        Ok(ExtractionRule::Table(TableRule {
            columns: columns.to_vec(),
            layout,
            name_column: self.name_column.clone(),
            rows: compile_optional(self.rows.as_deref(), key, "rows")?,
            default_columns: self.columns.clone(),
        }))
    }

    /// Refuses keys of tables at a rule for something else.
    fn check_table_keys(&self, rule: &ExtractionRule, key: &str) -> Result<(), Problem> {
        let is_json = matches!(rule, ExtractionRule::Json(_));
        let (is_table, is_words) = match rule {
            ExtractionRule::Table(table) => (true, matches!(table.layout, TableLayout::Words(_))),
            _ => (false, false),
        };
        let given = [
            ("column_names", self.column_names.is_some(), is_words, "`column`"),
            ("columns", !self.columns.is_empty(), is_table, "`csv` or `column`"),
            ("name_column", self.name_column.is_some(), is_table, "`csv` or `column`"),
            ("rows", self.rows.is_some(), is_table, "`csv` or `column`"),
            ("name_json", self.name_json.is_some(), is_json, "`json`"),
        ];
        match given.into_iter().find(|(_, given, fits, _)| *given && !fits) {
            Some((name, _, _, of)) => {
                Err(Problem::new(format!("{key}.{name}"), format!("is for a rule with {of}")))
            }
            None => Ok(()),
        }
    }

    /// Refuses a `*` in the name for which nothing can stand, and a name in the output for which there is no `*`.
    fn check_name(
        &self,
        rule: &ExtractionRule,
        head: Option<&regex::Regex>,
        key: &str,
    ) -> Result<(), Problem> {
        let has_name = |regex: &regex::Regex| regex.capture_names().flatten().any(|name| name == "name");
        let of_rule = match rule {
            ExtractionRule::Regex(regex) => has_name(regex),
            ExtractionRule::Table(table) => {
                table.name_column.is_some() || table.rows.as_ref().is_some_and(has_name)
            }
            _ => false,
        };
        // A star of a pointer may name the metric, or stand for values that become one.
        if let ExtractionRule::Json(json) = rule
            && json.pointers.iter().any(|pointer| has_pointer_star(pointer))
            && self.name.matches('*').count() <= 1
        {
            return Ok(());
        }
        let is_named = of_rule || head.is_some_and(has_name);
        let problem = |message| Err(Problem::new(format!("{key}.name"), message).with_hint(NAMED));
        match (self.name.matches('*').count(), is_named) {
            (0, false) | (1, true) => Ok(()),
            (0, true) => problem("has no `*` for the name that the output gives"),
            (1, false) => problem("has a `*`, and nothing in the rule names the metric"),
            _ => problem("has more than one `*`"),
        }
    }

    fn number_rule(&self, key: &str) -> Result<NumberRule, Problem> {
        let is_wrong = |[least, most]: &[f64; 2]| !least.is_finite() || !most.is_finite() || least > most;
        if self.within.as_ref().is_some_and(is_wrong) {
            let problem = Problem::new(format!("{key}.within"), "is no range");
            return Err(problem.with_hint("write `within = [LEAST, MOST]`"));
        }
        Ok(NumberRule {
            notation: self.notation,
            missing: self.missing.clone(),
            range: self.within.map(|[least, most]| (least, most)),
        })
    }

    fn name_replacements(&self, key: &str) -> Result<Vec<NameReplacement>, Problem> {
        let compile = |(number, one): (usize, &NameReplacementDocument)| {
            let regex = compile_pattern(&one.regex, key, &format!("rename[{number}].regex"))?;
            Ok(NameReplacement { regex, replacement: one.to.clone() })
        };
        self.rename.iter().enumerate().map(compile).collect()
    }
}

const ONE_RULE: &str = "write exactly one of `regex`, `json`, `csv`, `column`, `key` and `time = \"wall\"`";

const NAMED: &str = "a group `(?<name>…)` of `regex`, `rows` or `head`, `name_column`, or a `*` in `json`, gives what stands for `*`";

pub(crate) fn compile_pattern(text: &str, key: &str, part: &str) -> Result<regex::Regex, Problem> {
    let built = regex::RegexBuilder::new(text).multi_line(true).build();
    built.map_err(|error| Problem::new(format!("{key}.{part}"), error.to_string().replace('\n', " ")))
}

fn compile_optional(text: Option<&str>, key: &str, part: &str) -> Result<Option<regex::Regex>, Problem> {
    text.map(|text| compile_pattern(text, key, part)).transpose()
}

fn regex_rule(text: &str, key: &str) -> Result<ExtractionRule, Problem> {
    let regex = compile_pattern(text, key, "regex")?;
    if regex.capture_names().flatten().any(|name| name == "value") {
        return Ok(ExtractionRule::Regex(regex));
    }
    Err(Problem::new(format!("{key}.regex"), "captures nothing named `value`")
        .with_hint("write `(?<value>[0-9.]+)`"))
}

pub(crate) fn deserialize_one_or_several<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    struct OneOrSeveralVisitor;
    impl<'de> serde::de::Visitor<'de> for OneOrSeveralVisitor {
        type Value = Vec<String>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text, or a list of texts")
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
