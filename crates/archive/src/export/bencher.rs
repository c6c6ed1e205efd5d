//! Bencher Metric Format: benchmark, measure, value with the limits of its interval.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::ExportSheet;

pub(super) fn write_bencher(sheet: &ExportSheet<'_>, out: &mut dyn Write) -> io::Result<()> {
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
