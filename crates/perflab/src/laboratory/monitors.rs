//! `perflab monitor list`, `show` and `cost`: what can be read of the kernel, what this machine has of it, what it costs.

use std::fs::File;
use std::time::Duration;

use clap::{Args, Subcommand};
use perflab_formats::kernel::{DerivedColumn, KernelFile, KernelFileLayout, derived_columns};
use perflab_model::study::{CountersSpec, EVENTS_MONITOR, EventSpec};
use perflab_model::{ColumnSpec, Nanos};
use perflab_observe::monitor_cost::measure_reading_costs;
use perflab_observe::{
    MONITOR_PRESETS, all_monitors, find_counter_refusal, find_event_refusal, find_monitor,
    list_counter_events, open_monitor,
};
use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};
use serde_json::json;

use crate::app::App;
use crate::failure::{Exit, Failure};
use crate::verb::Verb;

/// `perflab monitor list`
fn list_monitors(context: &App) -> Result<Exit, Failure> {
    let columns = ["monitor", "source", "records", "edges", "presets", "needs", "here"];
    let mut grid = Grid::new(columns.map(GridColumn::left));
    for file in all_monitors() {
        let edges = if file.counts() { "yes" } else { "" };
        let presets = MONITOR_PRESETS.iter().filter(|preset| preset.monitors().contains(&file.name));
        let presets = presets.map(|preset| preset.name).collect::<Vec<_>>().join(", ");
        let here = describe_presence(context, file);
        let row = [file.name, file.source, file.about, edges, &presets, file.needs, &here];
        grid.add_row(row.map(GridCell::from));
    }
    context.print_grid(&grid)?;
    Ok(Exit::Fine)
}

/// Whether what a monitor reads is what a study names.
fn is_of_study(monitor: &str) -> bool {
    CountersSpec::is_monitor(monitor) || monitor == EVENTS_MONITOR
}

/// Whether this machine has what a monitor reads, and lets it be read; else why not.
fn describe_presence(context: &App, file: &'static KernelFile) -> String {
    let refused = match file.layout {
        _ if CountersSpec::is_monitor(file.name) => find_counter_refusal(&context.root, "task-clock"),
        _ if file.name == EVENTS_MONITOR => {
            let event = Some("raw_syscalls:sys_enter".to_owned());
            find_event_refusal(&context.root, &EventSpec { event, ..EventSpec::default() })
        }
        // Opening these reads hundreds of files, or one that is costly.
        KernelFileLayout::Tree | KernelFileLayout::Judged(_) => {
            let path = context.root.path(file.source);
            let opened = if path.is_dir() { path.read_dir().map(drop) } else { File::open(&path).map(drop) };
            opened.err().map(|error| format!("{}: {error}", file.source))
        }
        _ => open_monitor(file, &context.root, Nanos(1_000_000_000)).err().map(|error| error.to_string()),
    };
    refused.map_or_else(|| "yes".into(), |reason| format!("no: {reason}"))
}

/// `perflab monitor show NAME`
fn show_monitor(context: &App, name: &str) -> Result<Exit, Failure> {
    let file = find_monitor(name)?;
    let opened = open_monitor(file, &context.root, Nanos(1_000_000_000));
    let columns = match &opened {
        Ok(monitor) => monitor.schema().columns.clone(),
        Err(_) => perflab_model::column::stored_columns(file.columns),
    };
    let derived = derived_columns(file.name);
    let here = match is_of_study(file.name) {
        true => describe_presence(context, file),
        false => opened.as_ref().err().map_or_else(|| "yes".to_owned(), ToString::to_string),
    };
    if context.format == OutputFormat::Json {
        return print_monitor_json(context, file, &here, &columns, derived);
    }
    let files: Vec<&str> = file.parts().iter().map(|(_, path)| *path).collect();
    context.note_line(&format!("{}: {}", file.name, file.about));
    context.note_line(&format!("read from: {}", files.join(", ")));
    context.note_line(&format!("here: {here}"));
    let conditions =
        [("needs", file.needs), ("without that", file.without), ("the kernel has it with", file.provided_by)];
    for (what, text) in conditions {
        if !text.is_empty() {
            context.note_line(&format!("{what}: {text}"));
        }
    }
    let edges = if file.counts() { "yes" } else { "only where asked for" };
    context.note_line(&format!("read when iterations begin and end: {edges}"));
    let mut grid = Grid::new(["column", "unit", "kind", "meaning"].map(GridColumn::left));
    for column in &columns {
        let row = [column.name.as_str(), &column.unit.0, column.kind.name(), &column.meaning];
        grid.add_row(row.map(GridCell::from));
    }
    for column in derived {
        let meaning = format!("{}: {}", column.meaning, column.formula());
        grid.add_row([column.name.into(), column.unit.into(), "derived".into(), meaning.into()]);
    }
    context.print_grid(&grid)?;
    if CountersSpec::is_monitor(file.name) {
        context.print_text("")?;
        print_counter_events(context)?;
    }
    Ok(Exit::Fine)
}

/// The events that there are by name, and whether they are counted here.
fn print_counter_events(context: &App) -> Result<(), Failure> {
    let mut grid = Grid::new(["event", "here"].map(GridColumn::left));
    for name in list_counter_events(&context.root) {
        let refusal = find_counter_refusal(&context.root, &name);
        let here = refusal.map_or_else(|| "yes".into(), |reason| format!("no: {reason}"));
        grid.add_row([name.as_str(), &here].map(GridCell::from));
    }
    context.print_grid(&grid)?;
    context.note("tracepoints are events too: GROUP:NAME, as in sched:sched_migrate_task");
    Ok(())
}

fn print_monitor_json(
    context: &App,
    file: &KernelFile,
    here: &str,
    columns: &[ColumnSpec],
    derived: &[DerivedColumn],
) -> Result<Exit, Failure> {
    let derived: Vec<_> = derived
        .iter()
        .map(|column| {
            let (name, unit, meaning) = (column.name, column.unit, column.meaning);
            json!({ "name": name, "unit": unit, "meaning": meaning, "formula": column.formula() })
        })
        .collect();
    context.print_json(&json!({
        "version": 1,
        "monitor": file.name,
        "records": file.about,
        "files": file.parts().iter().map(|(_, path)| *path).collect::<Vec<_>>(),
        "needs": file.needs,
        "provided_by": file.provided_by,
        "here": here,
        "edges": file.counts(),
        "columns": columns,
        "derived": derived,
    }))?;
    Ok(Exit::Fine)
}

/// Readings of which the median is told,
const ROUNDS: usize = 15;

/// and the time before each: what the kernel walks has left the CPU's caches by then, as in a run.
const PAUSE: Duration = Duration::from_millis(20);

/// `perflab monitor cost`
fn print_costs(context: &App) -> Result<Exit, Failure> {
    // What counters and events cost depends on what is counted.
    let files = all_monitors().iter().filter(|file| !is_of_study(file.name));
    let names: Vec<&str> = files.map(|file| file.name).collect();
    let line_length =
        |event: &perflab_model::RunEvent| serde_json::to_vec(event).map_or(0, |line| line.len() as u64 + 1);
    let costs = measure_reading_costs(&names, &context.root, (ROUNDS, PAUSE), line_length);
    let right = [
        "cpu_per_reading",
        "duration",
        "rows",
        "cpu_at_1_hz",
        "cpu_at_10_hz",
        "bytes_per_second_at_1_hz",
        "bytes_per_second_at_10_hz",
    ];
    let mut grid = Grid::new([GridColumn::left("monitor")].into_iter().chain(right.map(GridColumn::right)));
    let mut absent = Vec::new();
    let second = Nanos(1_000_000_000);
    for (name, cost) in names.iter().zip(costs) {
        match cost {
            Ok(cost) => {
                let share = cost.share(second) * 100.0;
                let bytes = cost.bytes as f64;
                grid.add_row([
                    (*name).into(),
                    GridCell::quantity(cost.cpu.0 as f64, "ns"),
                    GridCell::quantity(cost.took.0 as f64, "ns"),
                    cost.rows.into(),
                    GridCell::quantity(share, "%"),
                    GridCell::quantity(share * 10.0, "%"),
                    GridCell::quantity(bytes, "bytes/s"),
                    GridCell::quantity(bytes * 10.0, "bytes/s"),
                ]);
            }
            Err(error) => absent.push(format!("{name}: {error}")),
        }
    }
    context.print_grid(&grid)?;
    absent.iter().for_each(|line| context.note(line));
    context.note("bytes are those of the journal while a run lives; its tables are smaller");
    Ok(Exit::Fine)
}

/// List the monitors and what they record
#[derive(Debug, Args)]
pub struct MonitorArgs {
    #[command(subcommand)]
    pub verb: MonitorVerb,
}

impl Verb for MonitorArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        match &self.verb {
            MonitorVerb::List => list_monitors(app),
            MonitorVerb::Show(args) => show_monitor(app, &args.name),
            MonitorVerb::Cost => print_costs(app),
        }
    }
}

/// What there is to ask of monitors.
#[derive(Debug, Subcommand)]
pub enum MonitorVerb {
    /// List the monitors: what each reads, records and needs, and what is here
    List,
    /// Show one monitor: its columns, and those worked out of them
    Show(ShowMonitorArgs),
    /// Measure what a reading of each costs on this machine
    Cost,
}

/// `perflab monitor show`
#[derive(Debug, Args)]
pub struct ShowMonitorArgs {
    /// The monitor
    pub name: String,
}
