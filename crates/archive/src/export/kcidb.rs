//! KernelCI's database, schema 5.3: one checkout and build (of the kernel that ran), and a test for each metric of each case.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::names::to_identifier;
use super::{ExportSheet, MetricSummary};

const ORIGIN: &str = "perflab";

pub(super) fn write_kcidb(sheet: &ExportSheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    let manifest = &sheet.record.manifest;
    let id = format!("{ORIGIN}:{}", manifest.id.to_lowercase());
    let fact = |key: &str| manifest.facts.value(key).map(ToString::to_string);
    let mut build = json!({ "id": id, "origin": ORIGIN, "checkout_id": id, "misc": { "run": manifest.id } });
    if let Some(architecture) = fact("cpu.architecture").or_else(|| fact("cpu.arch")) {
        build["architecture"] = to_identifier(&architecture).into();
    }
    let mut checkout = json!({ "id": id, "origin": ORIGIN });
    if let Some(release) = fact("kernel.release") {
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
