//! lkp-tests' `stats.json` and `matrix.json`: every statistic of a run, or of each run of a result root.
//!
//! Statistics have dotted names whose first part is the program that reported them. Each run is a boot, as lkp boots
//! for each.

use std::path::Path;

use indexmap::IndexMap;
use perflab_formats::reading_parser::LineOutcome;
use perflab_model::Direction;
use serde_json::Value;

use crate::benchmark_results::ImportedExecutionId;
use crate::document_import::{count_unusable, open_document};
use crate::import_report::FileReport;
use crate::imported_run::{RunMetadata, imported_metric};
use crate::importer::{Importer, Recognition};
use crate::input_document::{DocumentError, InputDocument, finite_json_number};
use crate::input_lines::first_existing_file;
use crate::log_stream::LogStream;

/// Stats.json or matrix.json of lkp-tests, alone.
pub(crate) const IMPORTER: Importer = Importer {
    name: "lkp-stats",
    about: "stats.json or matrix.json of lkp-tests, alone",
    knows_boots: true,
    recognises: Recognition::File(|input| input.json_document().is_some_and(is_lkp_stats_document)),
    open: |path, options| open_document("lkp-stats", path, options, read_lkp_stats_document),
};

/// Parts of names of which more is better; they are looked at first.
const HIGHER: &[&str] =
    &["throughput", "iops", "bw", "bandwidth", "ops", "score", "tps", "qps", "files_per_sec", "MBps", "GBps"];

/// Parts of names of which less is better.
const LOWER: &[&str] = &["time", "latency", "lat", "elapsed_time", "elapsed", "stall", "usecs"];

/// Programs whose statistics are of the machine or of the kernel, and not of a benchmark.
const MONITORS: &[&str] = &[
    "boot-time",
    "cpuidle",
    "interrupts",
    "iostat",
    "kmsg",
    "dmesg",
    "last_state",
    "meminfo",
    "mpstat",
    "numa-meminfo",
    "numa-numastat",
    "numa-vmstat",
    "perf-profile",
    "perf-sched",
    "perf-stat",
    "proc-stat",
    "proc-vmstat",
    "sched_debug",
    "slabinfo",
    "softirqs",
    "time",
    "turbostat",
    "uptime",
    "vmstat",
    "buddyinfo",
    "diskstats",
    "pagetypeinfo",
    "zoneinfo",
    "stderr",
    "load_avg",
    "latency_stats",
    "nfsstat",
    "kernel_selftests_time",
];

/// The units of GNU time's figures.
const TIMES: &[&str] = &["elapsed_time", "system_time", "user_time"];

fn is_lkp_stats_document(document: &InputDocument) -> bool {
    let name = document.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let known = name.starts_with("stats.json") || name.starts_with("matrix.json");
    let object = document.json().and_then(Value::as_object);
    known && object.is_some_and(|object| object.keys().any(|key| key.contains('.')))
}

fn read_lkp_stats_document(
    document: &InputDocument,
    metadata: &mut RunMetadata,
    report: &mut FileReport,
) -> Result<Vec<LogStream>, DocumentError> {
    metadata.title = "lkp statistics".into();
    add_lkp_stats(document, 0, metadata, report);
    Ok(Vec::new())
}

/// Reads a file that lies in a result folder; nothing where it is not there. One that is damaged costs itself only.
pub(crate) fn read_lkp_stats_beside(folder: &Path, boot: u32, metadata: &mut RunMetadata) {
    let places =
        ["stats.json", "stats.json.gz", "matrix.json", "matrix.json.gz"].map(|name| folder.join(name));
    let Some(file) = first_existing_file(&places) else { return };
    let mut report = FileReport::new(file, "samples");
    match InputDocument::read_optional(file).map(|document| (document.json_error(), document)) {
        Ok((None, document)) => add_lkp_stats(&document, boot, metadata, &mut report),
        Ok((Some(fault), _)) => count_unusable(&mut report, fault.line.unwrap_or(0), fault.reason),
        Err(reason) => report.refused = Some(reason),
    }
    metadata.report.push(report);
}

/// Where lkp-tests keeps which files a matrix was made of.
const SOURCES: &str = "stats_source";

fn add_lkp_stats(document: &InputDocument, boot: u32, metadata: &mut RunMetadata, report: &mut FileReport) {
    // One execution a program a run.
    let mut executions: IndexMap<(String, u32), ImportedExecutionId> = IndexMap::new();
    for (name, value) in document.json().and_then(Value::as_object).into_iter().flatten() {
        if name == SOURCES {
            continue;
        }
        let Some((program, statistic)) = name.split_once('.') else {
            count_unusable(report, 0, format!("`{name}` names no program"));
            continue;
        };
        let single = std::slice::from_ref(value);
        let runs = value.as_array().map_or(single, Vec::as_slice);
        for (run, value) in (0..).zip(runs) {
            let Some(value) = finite_json_number(Some(value)) else {
                count_unusable(report, 0, format!("`{name}` is no number in run {run}: {value}"));
                continue;
            };
            let case = metadata.results.find_or_add_case(program, IndexMap::new());
            let results = &mut metadata.results;
            let key = (program.to_owned(), run);
            let execution =
                *executions.entry(key).or_insert_with(|| results.next_execution(case, boot + run, None));
            let (unit, direction) = lkp_stat_meaning(program, statistic);
            let primary = direction != Direction::Neither && !MONITORS.contains(&program);
            let id = results.find_or_add_metric(case, imported_metric(statistic, unit, direction, primary));
            results.add_sample(execution, id, value, None);
            report.count_row(0, LineOutcome::Used);
        }
    }
}

/// The unit where the name tells it, and which way is good.
fn lkp_stat_meaning(program: &str, statistic: &str) -> (&'static str, Direction) {
    let parts = || statistic.split(['.', '_', '-']).chain([statistic]);
    let unit = match statistic {
        _ if program == "time" && TIMES.contains(&statistic) => "s",
        _ if statistic.ends_with("files_per_sec") => "files/s",
        _ if statistic.ends_with('%') || statistic.contains("percent") => "%",
        _ => "1",
    };
    let has = |known: &[&str]| parts().any(|part| known.contains(&part));
    let direction = match (has(HIGHER), has(LOWER)) {
        _ if MONITORS.contains(&program) => Direction::Neither,
        (true, _) => Direction::Higher,
        (false, true) => Direction::Lower,
        (false, false) => Direction::Neither,
    };
    (unit, direction)
}
