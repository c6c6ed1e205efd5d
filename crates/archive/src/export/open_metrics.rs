//! OpenMetrics text: a gauge a metric, with its median, the limits of the interval and the number of values. The
//! workload, its point and levels are labels.

use std::io::{self, Write};

use indexmap::IndexMap;
use perflab_model::Sample;

use super::names::{case_coordinates, to_identifier};
use super::{ExportSheet, MetricSummary};

/// Units as OpenMetrics calls them, and what makes base units of ours.
const UNITS: &[(&str, &str, f64)] = &[
    ("s", "seconds", 1.0),
    ("ms", "seconds", 1e-3),
    ("us", "seconds", 1e-6),
    ("ns", "seconds", 1e-9),
    ("bytes", "bytes", 1.0),
    ("KiB", "bytes", 1024.0),
    ("%", "ratio", 0.01),
];

pub(super) fn write_open_metrics(sheet: &ExportSheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut families: IndexMap<(String, String), Vec<&MetricSummary<'_>>> = IndexMap::new();
    for summary in &sheet.summaries {
        families.entry(metric_family(summary.of)).or_default().push(summary);
    }
    for ((name, unit), summaries) in &families {
        writeln!(out, "# TYPE {name} gauge")?;
        if !unit.is_empty() {
            writeln!(out, "# UNIT {name} {unit}")?;
        }
        let of = summaries.first().map_or("", |summary| summary.of.metric.as_str());
        writeln!(out, "# HELP {name} {} of perflab.", escape_label_value(of))?;
        summaries.iter().try_for_each(|summary| write_metric_family(name, summary, sheet, out))?;
    }
    writeln!(out, "# EOF")
}

/// `perflab_time_seconds`, `seconds`
fn metric_family(sample: &Sample) -> (String, String) {
    let metric = to_identifier(&sample.metric);
    let unit = base_unit_scale(sample)
        .map_or_else(|| to_identifier(&sample.unit.0.replace('/', "_per_")), |(unit, _)| unit.into());
    match sample.unit.0.as_str() {
        "1" | "" => (format!("perflab_{metric}"), String::new()),
        _ => (format!("perflab_{metric}_{unit}"), unit),
    }
}

fn base_unit_scale(sample: &Sample) -> Option<(&'static str, f64)> {
    UNITS.iter().find(|(ours, ..)| sample.unit.0 == **ours).map(|(_, theirs, factor)| (*theirs, *factor))
}

fn write_metric_family(
    name: &str,
    summary: &MetricSummary<'_>,
    sheet: &ExportSheet<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let manifest = &sheet.record.manifest;
    let factor = base_unit_scale(summary.of).map_or(1.0, |(_, factor)| factor);
    let mut labels =
        vec![("run".to_owned(), manifest.id.clone()), ("workload".to_owned(), summary.case.workload.clone())];
    labels.extend(manifest.label.iter().map(|label| ("label".to_owned(), label.clone())));
    let own = case_coordinates(summary.case)
        .into_iter()
        .map(|(name, value)| (format!("at_{}", to_identifier(&name)), value));
    labels.extend(own);
    let (low, high) = summary.interval.unzip();
    for (statistic, value) in [("median", Some(summary.median)), ("low", low), ("high", high)] {
        let Some(value) = value else { continue };
        let all = labels.iter().cloned().chain([("statistic".to_owned(), statistic.to_owned())]);
        let text: Vec<String> =
            all.map(|(name, value)| format!("{name}=\"{}\"", escape_label_value(&value))).collect();
        writeln!(out, "{name}{{{}}} {}", text.join(","), value * factor)?;
    }
    Ok(())
}

fn escape_label_value(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
