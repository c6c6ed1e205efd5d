//! The run under `tests/data/recorded/` (see `record.py`) as the reader of archives would give it.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use perflab_model::manifest::{Anchor, Overhead, Status};
use perflab_model::plan::{Plan, Slot};
use perflab_model::record::Advice;
use perflab_model::series::{Column, ColumnData, Gap, Series, SeriesSchema, Spans};
use perflab_model::{
    Case, Direction, Facts, Iteration, Manifest, Nanos, Outcome, RunRecord, Sample, Study, Unit, Value,
};
use perflab_present::report::RunInput;

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

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded")
}

fn rows(name: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let mut reader = csv::Reader::from_path(folder().join(name)).unwrap();
    let header = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let rows = reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
    (header, rows)
}

fn number<T: std::str::FromStr>(row: &[String], at: usize) -> T {
    row[at].parse().ok().unwrap()
}

/// The recorded run, with its series.
pub fn run() -> RunInput {
    let (_, slots) = rows("slots.csv");
    RunInput { record: record(&slots), series: series().iter().map(Spans::of).collect(), consoles: None }
}

fn record(slots: &[Vec<String>]) -> RunRecord {
    RunRecord {
        manifest: manifest(slots),
        samples: rows("samples.csv").1.iter().map(|row| sample(row)).collect(),
        iterations: (0..).zip(slots).map(|(slot, row)| iteration(slot, row)).collect(),
        gaps: vec![
            Gap {
                monitor: "diskstats".into(),
                from: Nanos(3_000_000_000),
                to: Some(Nanos(4_500_000_000)),
                reason: "/proc/diskstats: not read while the recorder paused it".into(),
            },
            Gap {
                monitor: "schedstat".into(),
                from: Nanos(0),
                to: None,
                reason: "/proc/schedstat: no such file or directory".into(),
            },
        ],
        clock_bounds: Vec::new(),
        warnings: vec![Advice {
            message: "the machine was not idle at the beginning.".into(),
            advice: "Stop what else runs, or read the verdicts with care.".into(),
        }],
    }
}

fn sample(row: &[String]) -> Sample {
    Sample {
        boot: 0,
        target: None,
        case: number(row, 0),
        iteration: number(row, 1),
        metric: row[2].as_str().into(),
        value: number(row, 3),
        unit: Unit::new(&row[4]),
        direction: if row[5] == "higher" { Direction::Higher } else { Direction::Lower },
        primary: row[6] == "1",
        start: Nanos(number(row, 7)),
        end: Nanos(number(row, 8)),
    }
}

fn iteration(slot: u32, row: &[String]) -> Iteration {
    let outcome = if row[5].is_empty() { Outcome::Ok } else { Outcome::Failed { reason: row[5].clone() } };
    Iteration { target: None, slot, outcome, start: Nanos(number(row, 3)), end: Nanos(number(row, 4)) }
}

fn manifest(slots: &[Vec<String>]) -> Manifest {
    let slot = |row: &Vec<String>| Slot {
        boot: 0,
        case: number(row, 0),
        iteration: number(row, 1),
        block: number(row, 1),
        warmup: row[2] == "1",
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
        plan: Plan {
            seed: 20_261_121,
            order: "randomised".into(),
            cases: cases(),
            factors: factors.collect(),
            slots: slots.iter().map(slot).collect(),
            ..Plan::default()
        },
        facts: facts(),
        boot_id: "5d1c8f6e-0000-4000-8000-000000000000".into(),
        target: "host".into(),
        targets: Vec::new(),
        anchor: Anchor { monotonic: Nanos(0), realtime: Nanos(1_795_275_500_000_000_000) },
        status: Status::Failed,
        overhead: Overhead {
            cpu: Nanos(118_000_000),
            monitors_cpu: Nanos(61_000_000),
            wall: Nanos(11_300_000_000),
            peak_rss: 14 << 20,
            bytes_written: 402_113,
            ticks: 774,
            late_ticks: 3,
            lost_ticks: 0,
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

fn document() -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(folder().join("run.json")).unwrap()).unwrap()
}

fn cases() -> Vec<Case> {
    let case = |case: &serde_json::Value| Case {
        workload: "sweep".into(),
        uses: "page-sweep".into(),
        point: IndexMap::from([("size".into(), Value::Int(case[0].as_i64().unwrap()))]),
        parameters: IndexMap::new(),
        environment: IndexMap::new(),
        levels: IndexMap::from([
            ("pages".into(), case[1].as_str().unwrap().into()),
            ("placebo".into(), case[2].as_str().unwrap().into()),
        ]),
    };
    document()["cases"].as_array().unwrap().iter().map(case).collect()
}

fn facts() -> Facts {
    let mut facts = Facts::default();
    for (key, value) in document()["facts"].as_object().unwrap() {
        let value = value.as_i64().map_or_else(|| value.as_str().unwrap_or("").into(), Value::Int);
        facts.add(key, value, "record.py");
    }
    facts.add("thp.enabled", "always [madvise] never", "/sys/kernel/mm/transparent_hugepage/enabled");
    facts
}

fn series() -> Vec<Series> {
    let names = ["vmstat", "meminfo", "stat", "slabinfo", "diskstats", "pressure", "loadavg"];
    names.into_iter().map(table).collect()
}

fn table(monitor: &str) -> Series {
    let (header, rows) = rows(&format!("{monitor}.csv"));
    let at = rows.iter().map(|row| Nanos(number(row, 0))).collect();
    let columns: Vec<Column> = header.iter().skip(1).map(|name| column(monitor, name)).collect();
    let cells = |(i, column): (usize, &Column)| cells(&rows, i + 1, column);
    let columns_data = columns.iter().enumerate().map(cells).collect();
    let schema = SeriesSchema {
        monitor: monitor.into(),
        source: format!("/proc/{monitor}"),
        interval: Nanos(100_000_000),
        columns,
    };
    Series { schema, at, columns: columns_data }
}

fn cells(rows: &[Vec<String>], at: usize, column: &Column) -> ColumnData {
    use perflab_model::series::ColumnType;
    match column.stored {
        ColumnType::Int => ColumnData::Int(rows.iter().map(|row| row[at].parse().ok()).collect()),
        ColumnType::Float => ColumnData::Float(rows.iter().map(|row| row[at].parse().ok()).collect()),
        ColumnType::Text => ColumnData::Text(rows.iter().map(|row| Some(row[at].clone())).collect()),
    }
}

/// Kind and unit, as the monitors declare them.
fn column(monitor: &str, name: &str) -> Column {
    match (monitor, name) {
        (_, "cache" | "cpu" | "device" | "resource") => Column::key(name),
        ("vmstat", name) if name.starts_with("nr_") => Column::gauge(name, "pages"),
        ("vmstat", name) => Column::counter(name, "events"),
        ("meminfo", name) => Column::gauge(name, "bytes"),
        ("stat", name) => Column::counter(name, "ns"),
        ("slabinfo", "num_slabs") => Column::gauge(name, "slabs"),
        ("slabinfo", name) => Column::gauge(name, "objects"),
        ("diskstats", name) => {
            Column::counter(name, if name.contains("sectors") { "sectors" } else { "requests" })
        }
        ("pressure", "avg10") => Column::float_gauge(name, "%"),
        ("pressure", _) => Column::counter(name, "us"),
        (_, "running" | "tasks") => Column::gauge(name, "tasks"),
        _ => Column::float_gauge(name, "1"),
    }
}
