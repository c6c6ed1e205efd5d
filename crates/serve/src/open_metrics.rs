//! What the archive holds and the server does, in numbers, as OpenMetrics: for a monitoring system that scrapes the laboratory.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use perflab_model::RunStatus;

use crate::boards::{BoardRowDocument, latest_board_rows};
use crate::laboratory::WebLaboratory;
use crate::refusal::RequestRefusal;
use crate::route::{RouteAnswer, RouteRequest};
use crate::run_list::{DAMAGED, RUN_STATUSES};

/// The type of its text.
pub(crate) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Rows of boards that have values here; a monitoring system keeps each for ever.
const MOST_ROWS: usize = 1000;

/// Runs that are being recorded and have values here.
const MOST_LIVE: usize = 100;

/// Characters of a label; longer ones end with `…`.
const MOST_LETTERS: usize = 200;

/// Families of metrics as they are written.
#[derive(Debug, Default)]
struct MetricsText(String);

/// A family of metrics.
#[derive(Debug, Clone, Copy)]
struct MetricFamily {
    name: &'static str,
    kind: &'static str,
    /// the end of the name, where it is one
    unit: &'static str,
    help: &'static str,
}

const fn gauge(name: &'static str, unit: &'static str, help: &'static str) -> MetricFamily {
    MetricFamily { name, kind: "gauge", unit, help }
}

const fn counter(name: &'static str, help: &'static str) -> MetricFamily {
    MetricFamily { name, kind: "counter", unit: "", help }
}

impl MetricsText {
    fn add(&mut self, family: MetricFamily, samples: impl IntoIterator<Item = (String, f64)>) {
        let MetricFamily { name, kind, unit, help } = family;
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.0, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.0, "# HELP {name} {help}");
        let ending = match kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        for (labels, value) in samples {
            let _ = writeln!(self.0, "{name}{ending}{labels} {value}");
        }
    }

    fn finish(self) -> String {
        self.0 + "# EOF\n"
    }
}

/// Labels with their values, escaped.
fn label_set(labels: &[(&str, &str)]) -> String {
    let label = |(name, value): &(&str, &str)| {
        let value: String = match value.char_indices().nth(MOST_LETTERS) {
            Some((end, _)) => format!("{}…", value.get(..end).unwrap_or_default()),
            None => (*value).to_owned(),
        };
        let value = value.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"");
        format!("{name}=\"{value}\"")
    };
    format!("{{{}}}", labels.iter().map(label).collect::<Vec<_>>().join(","))
}

/// What this process has in memory, in bytes; nothing where that cannot be read.
fn resident_bytes() -> Option<f64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: f64 = pages.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as f64)
}

fn add_server(text: &mut MetricsText, laboratory: &WebLaboratory) {
    let counts = &laboratory.counts;
    let version = label_set(&[("version", env!("CARGO_PKG_VERSION"))]);
    let family =
        MetricFamily { name: "perflab_serve", kind: "info", unit: "", help: "The server that answers." };
    text.add(family, [(version, 1.0)]);
    let alone = |value: f64| [(String::new(), value)];
    text.add(
        gauge("perflab_serve_start_time_seconds", "seconds", "When it began, since 1970."),
        alone(counts.begun),
    );
    text.add(
        gauge("perflab_serve_resident_memory_bytes", "bytes", "What it has in memory."),
        resident_bytes().map(|bytes| (String::new(), bytes)),
    );
    text.add(
        gauge("perflab_serve_clients", "", "Clients that are connected."),
        alone(counts.clients() as f64),
    );
    text.add(
        counter("perflab_serve_clients_sent_away", "Clients that rested when a new one needed their place."),
        alone(counts.sent_away() as f64),
    );
    text.add(
        counter("perflab_serve_answers", "Answers by the class of their status."),
        counts.answers().map(|(class, count)| (label_set(&[("code", class)]), count as f64)),
    );
}

fn add_archive(text: &mut MetricsText, laboratory: &WebLaboratory) -> Result<(), RequestRefusal> {
    let entries = laboratory.list_runs()?;
    let mut counts: BTreeMap<&str, u64> = RUN_STATUSES.map(|status| (status.as_str(), 0)).into();
    counts.insert(DAMAGED, 0);
    let (mut bytes, mut live) = (0_u64, Vec::new());
    for entry in entries.iter().rev() {
        let summary = entry.summary.as_ref();
        *counts.entry(summary.map_or(DAMAGED, |run| run.status.as_str())).or_default() += 1;
        bytes = bytes.saturating_add(entry.bytes);
        if let Ok(run) = summary
            && run.status == RunStatus::Running
            && live.len() < MOST_LIVE
        {
            let labels = label_set(&[("run", &entry.id), ("study", run.title.as_str())]);
            live.push((labels, run.iterations as f64, run.planned as f64));
        }
    }
    text.add(
        gauge("perflab_runs", "", "Runs of the archive by status."),
        counts.into_iter().map(|(status, count)| (label_set(&[("status", status)]), count as f64)),
    );
    text.add(
        gauge("perflab_archive_bytes", "bytes", "What the runs take on the disk."),
        [(String::new(), bytes as f64)],
    );
    text.add(
        gauge(
            "perflab_run_iterations",
            "",
            "Iterations that ended, of each run that is being recorded: the newest 100.",
        ),
        live.iter().map(|(labels, done, _)| (labels.clone(), *done)),
    );
    text.add(
        gauge("perflab_run_planned_iterations", "", "Iterations that were planned, of the same."),
        live.iter().map(|(labels, _, planned)| (labels.clone(), *planned)),
    );
    Ok(())
}

fn add_boards(text: &mut MetricsText, laboratory: &WebLaboratory) -> Result<(), RequestRefusal> {
    let found = latest_board_rows(laboratory)?;
    let rows: Vec<(String, &BoardRowDocument)> = found
        .iter()
        .take(MOST_ROWS)
        .map(|(study, row)| {
            let of = &row.row;
            let labels = [
                ("study", study.as_str()),
                ("case", &of.case),
                ("metric", &of.metric),
                ("unit", &of.unit),
                ("machine", &of.machine),
            ];
            (label_set(&labels), row)
        })
        .collect();
    let mut add = |family: MetricFamily, value: fn(&BoardRowDocument) -> f64| {
        text.add(family, rows.iter().map(|(labels, row)| (labels.clone(), value(row))));
    };
    add(
        gauge(
            "perflab_metric_value",
            "",
            "Each metric that decides, of each case and machine: the median of the newest run that has it, in the unit of the label.",
        ),
        |row| row.row.value,
    );
    add(gauge("perflab_metric_time_seconds", "seconds", "When that run began, since 1970."), |row| {
        row.row.newest_at.0 as f64 / 1e9
    });
    add(gauge("perflab_metric_runs", "", "Runs that have it, of the latest 200 of the study."), |row| {
        row.row.runs as f64
    });
    add(
        gauge(
            "perflab_metric_open_step",
            "",
            "1 where its last step is for the worse and nobody has acknowledged it, else 0.",
        ),
        |row| f64::from(u8::from(row.is_open())),
    );
    let left_out = found.len().saturating_sub(MOST_ROWS) as f64;
    text.add(
        gauge(
            "perflab_metrics_left_out",
            "",
            "Metrics that have no value here, as there are more than 1000.",
        ),
        [(String::new(), left_out)],
    );
    Ok(())
}

/// `/metrics`
pub(crate) fn send_metrics(
    laboratory: &WebLaboratory,
    _: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    let mut text = MetricsText::default();
    add_server(&mut text, laboratory);
    add_archive(&mut text, laboratory)?;
    add_boards(&mut text, laboratory)?;
    Ok(RouteAnswer::new(text.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_cut() {
        let long = "é".repeat(MOST_LETTERS + 1);
        let labels = label_set(&[("a", "x\"\\\ny"), ("b", &long)]);
        assert_eq!(labels, format!("{{a=\"x\\\"\\\\\\ny\",b=\"{}…\"}}", "é".repeat(MOST_LETTERS)));
    }
}
