//! What every format is made of: the run, a summary of each metric of each case, and names as each format allows them.

use indexmap::IndexMap;
use perflab_model::{Case, Direction, RunRecord, Sample};

/// The interval of the median of some values, where they allow one: its lower and upper limit.
pub type MedianIntervalFn<'a> = &'a dyn Fn(&[f64]) -> Option<(f64, f64)>;

/// One metric of one case.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricSummary<'a> {
    /// The case.
    pub case: &'a Case,
    /// Name, unit, direction and whether it decides.
    pub of: &'a Sample,
    /// How many values there are.
    pub count: usize,
    /// Their median.
    pub median: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// The least value.
    pub least: f64,
    /// The greatest value.
    pub greatest: f64,
}

/// A run and its summaries, in the order of the study's cases; metrics as they were first measured.
#[derive(Debug)]
pub struct ExportSheet<'a> {
    /// The run.
    pub record: &'a RunRecord,
    /// A summary of each metric of each case.
    pub summaries: Vec<MetricSummary<'a>>,
}

impl<'a> ExportSheet<'a> {
    /// Sums a run up.
    pub fn from_record(record: &'a RunRecord, interval: MedianIntervalFn<'_>) -> Self {
        let mut groups: IndexMap<(u32, &str, &str), (&Sample, Vec<f64>)> = IndexMap::new();
        for sample in &record.samples {
            let key = (sample.case, sample.metric.as_str(), sample.unit.0.as_str());
            groups.entry(key).or_insert_with(|| (sample, Vec::new())).1.push(sample.value);
        }
        // As the study has its cases, not as they happened to be drawn.
        groups.sort_by(|(one, _, _), _, (other, _, _), _| one.cmp(other));
        let summary = |(of, values): (&'a Sample, Vec<f64>)| {
            let case = record.manifest.plan.case(of.case)?;
            Some(summarise_metric(case, of, values, interval))
        };
        ExportSheet { record, summaries: groups.into_values().filter_map(summary).collect() }
    }

    /// The case of a sample.
    pub(crate) fn case_of_sample(&self, sample: &Sample) -> Option<&'a Case> {
        self.record.manifest.plan.case(sample.case)
    }
}

fn summarise_metric<'a>(
    case: &'a Case,
    of: &'a Sample,
    mut values: Vec<f64>,
    interval: MedianIntervalFn<'_>,
) -> MetricSummary<'a> {
    let limits = interval(&values);
    values.sort_by(f64::total_cmp);
    let at = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
    let middle = values.len() / 2;
    let median = if values.len() % 2 == 1 {
        at(middle)
    } else {
        f64::midpoint(at(middle.saturating_sub(1)), at(middle))
    };
    let (least, greatest) = (at(0), at(values.len().saturating_sub(1)));
    MetricSummary { case, of, count: values.len(), median, interval: limits, least, greatest }
}

/// Which way is good, as an arrow.
pub(crate) fn direction_arrow(direction: Direction) -> &'static str {
    match direction {
        Direction::Higher => "more",
        Direction::Lower => "less",
        Direction::Neither => "-",
    }
}

/// A name of letters, digits and underscores that does not begin with a digit: a metric or label of OpenMetrics.
pub(crate) fn to_identifier(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = text.chars().map(plain).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() { format!("_{name}") } else { name }
}

/// A word without blanks.
pub(crate) fn to_blankless_word(text: &str) -> String {
    text.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect()
}

/// Point and levels of a case as `name`, `value`.
pub(crate) fn case_coordinates(case: &Case) -> Vec<(String, String)> {
    let point = case.point.iter().map(|(name, value)| (name.clone(), value.to_string()));
    point.chain(case.levels.iter().map(|(name, level)| (name.clone(), level.clone()))).collect()
}

/// A text with the characters that XML gives a meaning written as entities; those that it forbids are left out.
pub(crate) fn clean_xml_text(text: &str) -> String {
    let allowed = |c: &char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    let mut out = String::new();
    for c in text.chars().filter(allowed) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            _ => out.push(c),
        }
    }
    out
}
