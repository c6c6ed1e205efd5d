//! What the archive holds, in numbers, as OpenMetrics: for a monitoring system that scrapes the laboratory.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use perflab_model::RunStatus;

use crate::laboratory::WebLaboratory;
use crate::refusal::RequestRefusal;
use crate::route::{RouteAnswer, RouteRequest};

/// The type of its text.
pub(crate) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `/metrics`
pub(crate) fn send_metrics(
    laboratory: &WebLaboratory,
    _: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    let entries = laboratory.list_runs()?;
    let statuses = [
        RunStatus::Running,
        RunStatus::Finished,
        RunStatus::Failed,
        RunStatus::Stopped,
        RunStatus::Interrupted,
    ];
    let mut counts: BTreeMap<&str, u64> = statuses.map(|status| (status.as_str(), 0)).into();
    counts.insert("damaged", 0);
    let (mut bytes, mut live) = (0_u64, String::new());
    for entry in &entries {
        let summary = entry.summary.as_ref();
        *counts.entry(summary.map_or("damaged", |run| run.status.as_str())).or_default() += 1;
        bytes = bytes.saturating_add(entry.bytes);
        if let Ok(run) = summary
            && run.status == RunStatus::Running
        {
            // Writing to a string cannot fail. An id of a running run is of letters and digits.
            let id: String = entry.id.chars().filter(char::is_ascii_alphanumeric).collect();
            let _ = writeln!(live, "perflab_run_iterations{{run=\"{id}\"}} {}", run.iterations);
        }
    }
    let mut text =
        String::from("# TYPE perflab_runs gauge\n# HELP perflab_runs Runs of the archive by status.\n");
    for (status, count) in counts {
        let _ = writeln!(text, "perflab_runs{{status=\"{status}\"}} {count}");
    }
    text += "# TYPE perflab_archive_bytes gauge\n# UNIT perflab_archive_bytes bytes\n\
             # HELP perflab_archive_bytes What the runs take on the disk.\n";
    let _ = writeln!(text, "perflab_archive_bytes {bytes}");
    text += "# TYPE perflab_run_iterations gauge\n\
             # HELP perflab_run_iterations Iterations that ended, of each run that is being recorded.\n";
    text += &live;
    text += "# EOF\n";
    Ok(RouteAnswer::new(text))
}
