//! `sadf -j`, sar's recordings as JSON: each group of statistics is a series, a row per subject (a CPU, a disk) and
//! tick.

use indexmap::IndexMap;
use perflab_formats::reading_parser::LineOutcome;
use perflab_model::fact_table;
use perflab_model::{ColumnSpec, Nanos, TableCell};
use serde_json::{Map, Value};

use crate::document_import::open_document;
use crate::dump_log::{FixedReadings, LoggedReading};
use crate::import_report::FileReport;
use crate::imported_run::RunMetadata;
use crate::importer::{Importer, Recognition};
use crate::input_document::{DocumentError, InputDocument, json_text};
use crate::log_stream::LogStream;

/// Output of sadf -j.
pub(crate) const IMPORTER: Importer = Importer {
    name: "sar",
    about: "output of sadf -j",
    knows_boots: false,
    recognises: Recognition::File(|input| input.json_document().is_some_and(is_sar_document)),
    open: |path, options| open_document("sar", path, options, read_sar_document),
};

/// Groups that are read: sar's name (within `network`, `power-management` or `psi` too), ours, unit of most columns.
const GROUPS: &[(&str, &str, &str)] = &[
    ("cpu-load", "sar-cpu", "%"),
    ("cpu-load-all", "sar-cpu", "%"),
    ("process-and-context-switch", "sar-tasks", "1/s"),
    ("swap-pages", "sar-swap", "pages/s"),
    ("paging", "sar-paging", "pages/s"),
    ("io", "sar-io", "1/s"),
    ("memory", "sar-memory", "KiB"),
    ("hugepages", "sar-hugepages", "KiB"),
    ("kernel", "sar-kernel", "1"),
    ("queue", "sar-queue", "1"),
    ("disk", "sar-disk", "1/s"),
    ("net-dev", "sar-net", "1/s"),
    ("net-edev", "sar-net-errors", "1/s"),
    ("net-sock", "sar-sockets", "1"),
    ("net-tcp", "sar-tcp", "1/s"),
    ("net-udp", "sar-udp", "1/s"),
    ("psi-cpu", "sar-psi-cpu", "%"),
    ("psi-io", "sar-psi-io", "%"),
    ("psi-mem", "sar-psi-memory", "%"),
    ("cpu-frequency", "sar-cpu-frequency", "MHz"),
];

/// Groups that hold groups.
const NESTED: [&str; 3] = ["network", "power-management", "psi"];

/// Members that name a row's subject.
const KEYS: [&str; 5] = ["cpu", "iface", "disk-device", "number", "filesystem"];

/// A group on its way to a series.
struct SarGroup {
    series: &'static str,
    unit: &'static str,
    columns: Vec<ColumnSpec>,
    ticks: Vec<LoggedReading>,
    rows: u64,
}

fn is_sar_document(document: &InputDocument) -> bool {
    document.member("sysstat").and_then(|sysstat| sysstat.get("hosts")).is_some()
}

fn read_sar_document(
    document: &InputDocument,
    metadata: &mut RunMetadata,
    report: &mut FileReport,
) -> Result<Vec<LogStream>, DocumentError> {
    let hosts = document.member("sysstat").and_then(|sysstat| sysstat.get("hosts")?.as_array());
    let Some([host]) = hosts.map(Vec::as_slice) else {
        return Err(DocumentError::new("it is not of exactly one host"));
    };
    add_host_facts(host, metadata);
    let (mut groups, mut unknown) = (IndexMap::<&str, SarGroup>::new(), Vec::<String>::new());
    let statistics = host.get("statistics").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (place, statistic) in statistics.iter().enumerate() {
        let Some(time) = statistic.get("timestamp").and_then(parse_sar_time) else {
            report.add_note(format!("statistics[{place}] have no time and are left out"));
            continue;
        };
        for (name, value) in
            statistic.as_object().into_iter().flatten().filter(|(name, _)| *name != "timestamp")
        {
            add_sar_statistics(name, value, time, &mut groups, &mut unknown);
        }
    }
    let file = report.file.clone();
    let mut streams = Vec::new();
    for group in groups.into_values() {
        streams
            .push(group.into_stream(&file, &unknown).map_err(|error| DocumentError::new(error.to_string()))?);
    }
    Ok(streams)
}

fn add_host_facts(host: &Value, metadata: &mut RunMetadata) {
    for (theirs, ours) in [("release", fact_table::KERNEL_RELEASE), ("machine", fact_table::CPU_ARCHITECTURE)]
    {
        let value = json_text(host, theirs);
        if !value.is_empty() {
            metadata.facts.add(ours, value, "sysstat");
        }
    }
    if let Some(cpus) = host.get("number-of-cpus").and_then(Value::as_i64) {
        metadata.facts.add(fact_table::CPU_ONLINE, cpus, "sysstat: number-of-cpus");
    }
    let name = json_text(host, "nodename");
    if !name.is_empty() {
        metadata.target = name.into();
        metadata.title = format!("sar of {name}");
    }
}

/// `{"date": "2026-11-21", "time": "19:23:11", "utc": 1}`; a local time is taken as UTC.
fn parse_sar_time(value: &Value) -> Option<Nanos> {
    let time: jiff::civil::DateTime =
        format!("{}T{}", json_text(value, "date"), json_text(value, "time")).parse().ok()?;
    let second = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second();
    Some(Nanos(u64::try_from(second).ok()?.checked_mul(1_000_000_000)?))
}

fn add_sar_statistics<'a>(
    name: &'a str,
    value: &'a Value,
    time: Nanos,
    groups: &mut IndexMap<&'a str, SarGroup>,
    unknown: &mut Vec<String>,
) {
    if let Some(inner) = value.as_object().filter(|_| NESTED.contains(&name)) {
        inner.iter().for_each(|(name, value)| add_sar_statistics(name, value, time, groups, unknown));
        return;
    }
    let Some((_, series, unit)) = GROUPS.iter().find(|(known, ..)| *known == name) else {
        if !unknown.iter().any(|known| known == name) {
            unknown.push(name.into());
        }
        return;
    };
    let new = || SarGroup { series, unit, columns: Vec::new(), ticks: Vec::new(), rows: 0 };
    let group = groups.entry(name).or_insert_with(new);
    let rows: Vec<&Map<String, Value>> = match value {
        Value::Array(rows) => rows.iter().filter_map(Value::as_object).collect(),
        Value::Object(row) => vec![row],
        _ => Vec::new(),
    };
    group.push_rows(time, &rows);
}

impl SarGroup {
    fn push_rows(&mut self, time: Nanos, rows: &[&Map<String, Value>]) {
        let mut cells = Vec::new();
        for row in rows {
            for (name, value) in *row {
                if !self.columns.iter().any(|column| column.name == *name) {
                    self.columns.push(sar_column(name, value, self.unit));
                }
            }
            let cell = |column: &ColumnSpec| {
                row.get(&column.name).map_or(TableCell::Missing, |value| sar_cell(column, value))
            };
            cells.push(self.columns.iter().map(cell).collect());
        }
        self.rows += cells.len() as u64;
        self.ticks.push(LoggedReading { time: Some(time), rows: cells });
    }

    fn into_stream(
        mut self,
        file: &std::path::Path,
        unknown: &[String],
    ) -> Result<LogStream, crate::error::ImportError> {
        let width = self.columns.len();
        let rows = self.ticks.iter_mut().flat_map(|tick| &mut tick.rows);
        rows.for_each(|row| row.resize(width, TableCell::Missing));
        let mut report = FileReport::new(file, self.series);
        (0..self.rows).for_each(|_| report.count_row(0, LineOutcome::Used));
        if !unknown.is_empty() {
            report
                .add_note(format!("groups of statistics that perflab does not read: {}", unknown.join(", ")));
        }
        LogStream::from_source(Box::new(FixedReadings::new(
            self.series,
            "sadf -j",
            self.columns,
            self.ticks,
            report,
        )))
    }
}

fn sar_column(name: &str, value: &Value, usual: &str) -> ColumnSpec {
    if KEYS.contains(&name) || value.is_string() {
        return ColumnSpec::key(name);
    }
    let unit = match name {
        _ if name.contains("percent") => "%",
        "rkB" | "wkB" | "dkB" | "rxkB" | "txkB" | "pgpgin" | "pgpgout" => "KiB/s",
        "areq-sz" => "KiB",
        "avgrq-sz" => "sectors",
        "await" | "svctm" => "ms",
        "avgqu-sz" | "aqu-sz" => "requests",
        _ => usual,
    };
    ColumnSpec::float_gauge(name, unit)
}

fn sar_cell(column: &ColumnSpec, value: &Value) -> TableCell {
    let key = column.kind == perflab_model::column::ColumnKind::Key;
    match (key, value) {
        (true, Value::String(text)) => TableCell::Text(text.clone()),
        (true, other) => TableCell::Text(other.to_string()),
        (false, other) => {
            other.as_f64().filter(|value| value.is_finite()).map_or(TableCell::Missing, TableCell::Float)
        }
    }
}
