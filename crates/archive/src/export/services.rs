//! Results for services: JUnit, KCIDB, Bencher, OpenMetrics.
//!
//! - JUnit's XML: a suite per workload, a test per iteration. An iteration without a result failed; values are
//!   properties of the suite, as the format has no place for numbers of a test.
//! - KernelCI's database, schema 5.3: one checkout and build (of the kernel that ran), and a test for each metric
//!   of each case.
//! - Bencher Metric Format: benchmark, measure, value with the limits of its interval.
//! - OpenMetrics text: a gauge per metric, with its median, the limits of the interval and the number of values.
//!   The workload, its point and levels are labels.

use std::io::{self, Write};

use indexmap::IndexMap;
use perflab_model::fact_table;
use perflab_model::{Case, IterationRecord, Outcome, Sample};
use serde_json::{Map, Value, json};

use crate::export::exporter::{ExportSheet, MetricSummary, case_coordinates, clean_xml_text, to_identifier};
use crate::export::json::failure_reason;

/// An iteration with its case and number.
type JunitIteration<'a> = (&'a IterationRecord, &'a Case, u32);

pub(crate) fn write_junit(sheet: &ExportSheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    let plan = &sheet.record.manifest.plan;
    let mut suites: IndexMap<&str, Vec<JunitIteration<'_>>> = IndexMap::new();
    for iteration in &sheet.record.iterations {
        let Some(slot) = plan.slots.get(iteration.slot as usize).filter(|slot| !slot.warmup) else {
            continue;
        };
        let Some(case) = plan.case(slot.case) else { continue };
        suites.entry(&case.workload).or_default().push((iteration, case, slot.iteration));
    }
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    let all: usize = suites.values().map(Vec::len).sum();
    let name = clean_xml_text(&sheet.record.manifest.study.title);
    let failed: usize = suites.values().map(|tried| count_junit_failures(tried)).sum();
    writeln!(out, "<testsuites name=\"{name}\" tests=\"{all}\" failures=\"{failed}\">")?;
    suites.iter().try_for_each(|(workload, tried)| write_junit_suite(workload, tried, sheet, out))?;
    writeln!(out, "</testsuites>")
}

fn count_junit_failures(tried: &[JunitIteration<'_>]) -> usize {
    tried.iter().filter(|(iteration, ..)| iteration.outcome != Outcome::Ok).count()
}

fn iteration_seconds(iteration: &IterationRecord) -> f64 {
    iteration.end.since(iteration.start).seconds()
}

fn write_junit_suite(
    workload: &str,
    tried: &[JunitIteration<'_>],
    sheet: &ExportSheet<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let time: f64 = tried.iter().map(|(iteration, ..)| iteration_seconds(iteration)).sum();
    let (count, failed) = (tried.len(), count_junit_failures(tried));
    writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{count}\" failures=\"{failed}\" errors=\"0\" skipped=\"0\" time=\"{time:.6}\">",
        clean_xml_text(workload)
    )?;
    writeln!(out, "    <properties>")?;
    for summary in sheet.summaries.iter().filter(|summary| summary.case.workload == workload) {
        let name = clean_xml_text(&format!(
            "{} {} [{}] median of {}",
            summary.case.label(),
            summary.of.metric,
            summary.of.unit,
            summary.count
        ));
        writeln!(out, "      <property name=\"{name}\" value=\"{}\"/>", summary.median)?;
    }
    writeln!(out, "    </properties>")?;
    tried.iter().try_for_each(|tried| write_junit_test(tried, out))?;
    writeln!(out, "  </testsuite>")
}

fn write_junit_test((iteration, case, number): &JunitIteration<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (class, name) =
        (clean_xml_text(&case.workload), clean_xml_text(&format!("{} iteration {number}", case.label())));
    write!(
        out,
        "    <testcase classname=\"{class}\" name=\"{name}\" time=\"{:.6}\"",
        iteration_seconds(iteration)
    )?;
    match failure_reason(&iteration.outcome) {
        None => writeln!(out, "/>"),
        Some(reason) => writeln!(out, "><failure message=\"{}\"/></testcase>", clean_xml_text(&reason)),
    }
}

const ORIGIN: &str = "perflab";

pub(crate) fn write_kcidb(sheet: &ExportSheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    let manifest = &sheet.record.manifest;
    let id = format!("{ORIGIN}:{}", manifest.id.to_lowercase());
    let fact = |key| manifest.facts.value(key).map(ToString::to_string);
    let mut build = json!({ "id": id, "origin": ORIGIN, "checkout_id": id, "misc": { "run": manifest.id } });
    if let Some(architecture) = fact(&fact_table::CPU_ARCHITECTURE).or_else(|| fact(&fact_table::KERNEL_ARCH))
    {
        build["architecture"] = to_identifier(&architecture).into();
    }
    let mut checkout = json!({ "id": id, "origin": ORIGIN });
    if let Some(release) = fact(&fact_table::KERNEL_RELEASE) {
        checkout["misc"] = json!({ "kernel_release": release });
    }
    let tests: Vec<Value> = sheet
        .summaries
        .iter()
        .enumerate()
        .map(|(place, summary)| kcidb_test(&id, place, summary, sheet))
        .collect();
    let report = json!({
        "version": { "major": 5, "minor": 3 },
        "checkouts": [checkout],
        "builds": [build],
        "tests": tests,
    });
    serde_json::to_writer_pretty(&mut *out, &report)?;
    writeln!(out)
}

fn kcidb_test(id: &str, place: usize, summary: &MetricSummary<'_>, sheet: &ExportSheet<'_>) -> Value {
    let part = |text: &str| {
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect::<String>()
    };
    let (workload, metric) = (part(&summary.case.workload), part(&summary.of.metric));
    let began = i64::try_from(sheet.record.manifest.anchor.realtime.0 / 1_000_000_000).unwrap_or(0);
    let began = jiff::Timestamp::from_second(began).unwrap_or_default();
    let mut test = json!({
        "id": format!("{id}.{place}"),
        "origin": ORIGIN,
        "build_id": id,
        "path": format!("perflab.{workload}.{metric}"),
        "comment": format!("{}: median of {} values", summary.case.label(), summary.count),
        "status": "PASS",
        "start_time": began.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "number": { "value": summary.median, "unit": summary.of.unit.0 },
        "misc": { "count": summary.count, "direction": summary.of.direction.name() },
    });
    if let Some((low, high)) = summary.interval {
        test["misc"]["interval"] = json!([low, high]);
    }
    test
}

pub(crate) fn write_bencher(sheet: &ExportSheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut benchmarks: Map<String, Value> = Map::new();
    for summary in &sheet.summaries {
        let mut measure = json!({ "value": summary.median });
        if let Some((low, high)) = summary.interval {
            measure["lower_value"] = low.into();
            measure["upper_value"] = high.into();
        }
        let name = format!("{} ({})", summary.of.metric, summary.of.unit);
        let measures = benchmarks.entry(summary.case.label()).or_insert_with(|| json!({}));
        measures
            .as_object_mut()
            .into_iter()
            .for_each(|measures| drop(measures.insert(name.clone(), measure.clone())));
    }
    serde_json::to_writer_pretty(&mut *out, &benchmarks)?;
    writeln!(out)
}

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

pub(crate) fn write_open_metrics(sheet: &ExportSheet<'_>, out: &mut dyn Write) -> io::Result<()> {
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
