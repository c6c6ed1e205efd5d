//! The run under `tests/data/recorded/` (see `record.py`) as the reader of archives would give it.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use perflab_model::column::{CellRow, ColumnSpec, TableCell};
use perflab_model::fact_table;
use perflab_model::plan::{RunPlan, Slot};
use perflab_model::run::RunWarning;
use perflab_model::run::{ClockAnchor, Overhead, RunStatus};
use perflab_model::series::{RowRuns, Series, SeriesGap, SeriesSchema};
use perflab_model::{
    Case, Direction, Fact, Facts, IterationRecord, Manifest, Nanos, Outcome, RunRecord, Sample, Scalar,
    Study, Unit,
};
use perflab_present::ReportRun;

const FACTORS: [(&str, [&str; 2]); 2] = [("pages", ["ordinary", "huge"]), ("placebo", ["off", "on"])];
const STUDY: &str = r#"title = "What do huge pages change for a memory sweep?"
description = "A sweep over memory, with ordinary pages and with transparent huge pages, beside a factor that changes nothing."

[run]
iterations = 12

[workload.sweep]
matrix = { size = [16, 64] }

[factor.pages]
kind = "parameter"
levels = ["ordinary", "huge"]

[factor.placebo]
kind = "environment"
levels = ["off", "on"]
"#;

fn data_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded")
}

fn read_csv_rows(name: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let mut reader = csv::Reader::from_path(data_folder().join(name)).unwrap();
    let header = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let rows = reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
    (header, rows)
}

fn parse_cell<T: std::str::FromStr>(row: &[String], at: usize) -> T {
    row[at].parse().ok().unwrap()
}

/// The recorded run, with its series.
pub fn recorded_run() -> ReportRun {
    let (_, slots) = read_csv_rows("slots.csv");
    ReportRun {
        record: recorded_record(&slots),
        series: recorded_series().iter().map(RowRuns::from_series).collect(),
        consoles: None,
        profiles: Vec::new(),
        operations: Vec::new(),
        io: Vec::new(),
    }
}

fn recorded_record(slots: &[Vec<String>]) -> RunRecord {
    RunRecord {
        manifest: recorded_manifest(slots),
        samples: read_csv_rows("samples.csv").1.iter().map(|row| recorded_sample(row)).collect(),
        iterations: (0..).zip(slots).map(|(slot, row)| recorded_iteration(slot, row)).collect(),
        gaps: vec![
            SeriesGap {
                monitor: "diskstats".into(),
                from: Nanos(3_000_000_000),
                to: Some(Nanos(4_500_000_000)),
                reason: "/proc/diskstats: not read while the recorder paused it".into(),
            },
            SeriesGap {
                monitor: "schedstat".into(),
                from: Nanos(0),
                to: None,
                reason: "/proc/schedstat: no such file or directory".into(),
            },
        ],
        clock_bounds: Vec::new(),
        overwritten: Vec::new(),
        triggers: Vec::new(),
        parts: Vec::new(),
        documents: Vec::new(),
        warnings: vec![RunWarning {
            message: "the machine was not idle at the beginning.".into(),
            advice: "Stop what else runs, or read the verdicts with care.".into(),
        }],
    }
}

fn recorded_sample(row: &[String]) -> Sample {
    Sample {
        boot: 0,
        target: None,
        case: parse_cell(row, 0),
        iteration: parse_cell(row, 1),
        metric: row[2].as_str().into(),
        value: parse_cell(row, 3),
        unit: Unit::new(&row[4]),
        direction: if row[5] == "higher" { Direction::Higher } else { Direction::Lower },
        primary: row[6] == "1",
        start: Nanos(parse_cell(row, 7)),
        end: Nanos(parse_cell(row, 8)),
    }
}

fn recorded_iteration(slot: u32, row: &[String]) -> IterationRecord {
    let outcome = if row[5].is_empty() { Outcome::Ok } else { Outcome::Failed { reason: row[5].clone() } };
    IterationRecord {
        target: None,
        slot,
        outcome,
        start: Nanos(parse_cell(row, 3)),
        end: Nanos(parse_cell(row, 4)),
    }
}

fn recorded_manifest(slots: &[Vec<String>]) -> Manifest {
    let slot = |row: &Vec<String>| Slot {
        boot: 0,
        case: parse_cell(row, 0),
        iteration: parse_cell(row, 1),
        block: parse_cell(row, 1),
        warmup: row[2] == "1",
        layout: None,
    };
    let factors = FACTORS.iter().map(|(name, levels)| ((*name).into(), levels.map(str::to_owned).to_vec()));
    Manifest {
        format: perflab_model::FORMAT_VERSION,
        writer: "perflab 0.1.0".into(),
        id: "01KAKM3Q9TV6W2YB4C8D5E7FGH".into(),
        label: None,
        study: STUDY.parse_study(),
        study_text: STUDY.into(),
        study_file: "sweep.toml".into(),
        brief: false,
        plan: RunPlan {
            seed: 20_261_121,
            order: "randomised".into(),
            cases: recorded_cases(),
            factors: factors.collect(),
            slots: slots.iter().map(slot).collect(),
            ..RunPlan::default()
        },
        facts: recorded_facts(),
        boot_id: "5d1c8f6e-0000-4000-8000-000000000000".into(),
        target: "host".into(),
        targets: Vec::new(),
        variants: Vec::new(),
        duet: None,
        continues: None,
        first_part: None,
        anchor: ClockAnchor { monotonic: Nanos(0), realtime: Nanos(1_795_275_500_000_000_000) },
        status: RunStatus::Failed,
        overhead: Overhead {
            cpu: Nanos(118_000_000),
            monitors_cpu: Nanos(61_000_000),
            wall: Nanos(11_300_000_000),
            peak_rss: 14 << 20,
            bytes_written: 402_113,
            ticks: 774,
            late_ticks: 3,
            lost_ticks: 0,
            guest_stops: None,
        },
    }
}

trait ParseStudy {
    fn parse_study(&self) -> Study;
}

impl ParseStudy for str {
    fn parse_study(&self) -> Study {
        toml::from_str(self).unwrap()
    }
}

fn recorded_document() -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(data_folder().join("run.json")).unwrap()).unwrap()
}

fn recorded_cases() -> Vec<Case> {
    let case = |case: &serde_json::Value| Case {
        workload: "sweep".into(),
        uses: "page-sweep".into(),
        point: IndexMap::from([("size".into(), Scalar::Int(case[0].as_i64().unwrap()))]),
        parameters: IndexMap::new(),
        environment: IndexMap::new(),
        levels: IndexMap::from([
            ("pages".into(), case[1].as_str().unwrap().into()),
            ("placebo".into(), case[2].as_str().unwrap().into()),
        ]),
    };
    recorded_document()["cases"].as_array().unwrap().iter().map(case).collect()
}

fn recorded_facts() -> Facts {
    let mut facts = Facts::default();
    for (key, value) in recorded_document()["facts"].as_object().unwrap() {
        let value = value.as_i64().map_or_else(|| value.as_str().unwrap_or("").into(), Scalar::Int);
        facts.extend([(key.clone(), Fact { value, source: "record.py".into() })]);
    }
    facts.add(
        fact_table::THP_ENABLED,
        "always [madvise] never",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    );
    facts
}

fn recorded_series() -> Vec<Series> {
    let names = ["vmstat", "meminfo", "stat", "slabinfo", "diskstats", "pressure", "loadavg"];
    names.into_iter().map(read_series_table).collect()
}

fn read_series_table(monitor: &str) -> Series {
    let (header, rows) = read_csv_rows(&format!("{monitor}.csv"));
    let columns: Vec<ColumnSpec> = header.iter().skip(1).map(|name| monitor_column(monitor, name)).collect();
    let cells = |row: &Vec<String>| {
        let words = row.iter().skip(1).zip(&columns);
        (Nanos(parse_cell(row, 0)), words.map(|(word, column)| table_cell(word, column)).collect())
    };
    let rows: Vec<(Nanos, CellRow)> = rows.iter().map(cells).collect();
    let schema = SeriesSchema {
        stored: perflab_model::series::StoredRows::Every,
        monitor: monitor.into(),
        source: format!("/proc/{monitor}"),
        interval: Nanos(100_000_000),
        columns,
    };
    Series::from_rows(schema, &rows)
}

fn table_cell(word: &str, column: &ColumnSpec) -> TableCell {
    use perflab_model::column::ColumnType;
    match column.stored {
        ColumnType::Float => word.parse().map_or(TableCell::Missing, TableCell::Float),
        ColumnType::Text => TableCell::Text(word.into()),
        _ => word.parse().map_or(TableCell::Missing, TableCell::Int),
    }
}

/// Kind and unit, as the monitors declare them.
fn monitor_column(monitor: &str, name: &str) -> ColumnSpec {
    match (monitor, name) {
        (_, "cache" | "cpu" | "device" | "resource") => ColumnSpec::key(name),
        ("vmstat", name) if name.starts_with("nr_") => ColumnSpec::gauge(name, "pages"),
        ("vmstat", name) => ColumnSpec::counter(name, "events"),
        ("meminfo", name) => ColumnSpec::gauge(name, "bytes"),
        ("stat", name) => ColumnSpec::counter(name, "ns"),
        ("slabinfo", "num_slabs") => ColumnSpec::gauge(name, "slabs"),
        ("slabinfo", name) => ColumnSpec::gauge(name, "objects"),
        ("diskstats", name) => {
            ColumnSpec::counter(name, if name.contains("sectors") { "sectors" } else { "requests" })
        }
        ("pressure", "avg10") => ColumnSpec::float_gauge(name, "%"),
        ("pressure", _) => ColumnSpec::counter(name, "us"),
        (_, "running" | "tasks") => ColumnSpec::gauge(name, "tasks"),
        _ => ColumnSpec::float_gauge(name, "1"),
    }
}
