//! `perflab watch -- COMMAND`: all monitors around any load, and what the machine did meanwhile. With `--keep`, only the moments
//! around what is waited for.

use std::ffi::OsString;
use std::fs::File;

use clap::Args;
use perflab_analyze::{FEWEST_TICKS, MachineActivity, command_times, machine_activity};
use perflab_archive::RunDir;
use perflab_model::study::CounterGroups;
use perflab_model::{Nanos, fact_table};
use perflab_observe::all_monitors;
use perflab_present::command_times::command_times_grid;
use perflab_present::comparison::OutputFormat;
use perflab_present::machine_activity::machine_activity_grid;
use serde::Serialize;

use crate::app::App;
use crate::failure::{Exit, Failure, UsageError};
use crate::measure::command_study::{RecordedCommand, add_counters};
use crate::measure::flight_watch::{FlightArgs, WatchedSystem, record_flights};
use crate::selection::parse_label;
use crate::verb::Verb;

/// Monitors that cost too much, or say too much, to be among all of them unasked.
const NOT_UNASKED: &[&str] =
    &["slab-exact", "slab-caches", "kvm", "page-types", "blocked", "smaps", "task-numa", "gpu", "nfs"];

/// The shortest time between readings that a study may name.
const SHORTEST_INTERVAL: Nanos = Nanos(1_000_000);

/// Say what the machine does while a command runs: all monitors
#[derive(Debug, Args)]
#[command(after_long_help = WATCH)]
pub struct WatchArgs {
    /// The command; without one, the system is watched until ^C, or for --duration
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// Time between readings
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub every: Nanos,
    /// How long to watch the machine at rest, before the command and after it
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub quiet_time: Nanos,
    /// How long at most
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// Count these events of the command, too, by perf's names: `task-clock,{instructions,cycles}`; without a command, on each CPU
    #[arg(long, value_name = "EVENTS", value_parser = CounterGroups::parse_list)]
    pub counters: Option<CounterGroups>,
    /// A name for the run; runs that share a label are repetitions of one another
    #[arg(long, value_parser = parse_label)]
    pub label: Option<String>,
    #[command(flatten)]
    pub flight: FlightArgs,
}

const WATCH: &str = "\
Examples:
  perflab watch -- make -j4                what the machine did during a build
  perflab watch --duration 10s             what it does now
  perflab report @latest                   the same over time, as pictures
  perflab compare a b --monitor vmstat     two such runs, by what a monitor recorded
  perflab watch --keep 60s --when signal   the last minute, when you ask for it
  perflab watch --keep 60s --when 'meminfo.MemAvailable < 200MiB' --when kernel-log:any
                                           the minute before it happened, and 10 s after";

/// The document of `--format json`.
#[derive(Serialize)]
struct WatchDocument<'a> {
    version: u32,
    run: &'a str,
    activity: &'a [MachineActivity],
}

/// Watches, and says what happened.
pub fn watch_command(context: &App, args: &WatchArgs) -> Result<Exit, Failure> {
    if args.every < SHORTEST_INTERVAL {
        let message = format!("--every {} is too often", args.every);
        let hint = format!("{SHORTEST_INTERVAL} is the shortest time between readings; 100ms suits most");
        return Err(UsageError::new(message, hint).into());
    }
    let tables = monitor_table(context, args.every, &args.flight.needed_monitors());
    if let Some(keep) = args.flight.keep {
        let watched = WatchedSystem {
            command: &args.command,
            every: args.every,
            duration: args.duration,
            label: args.label.as_deref(),
            tables: &tables,
            counters: args.counters.as_ref(),
        };
        return record_flights(context, &watched, keep, &args.flight);
    }
    let recorded = RecordedCommand {
        verb: "watch",
        title: "What the machine does",
        command: &args.command,
        pid: None,
        duration: args.duration,
        quiet_time: args.quiet_time,
        label: args.label.as_deref(),
        tables: &tables,
    };
    let (status, found) = recorded.record(context, |study| {
        let groups = args.counters.as_ref();
        groups.into_iter().for_each(|groups| add_counters(study, groups, args.every, &args.command));
    })?;
    show_activity(context, args, &found)?;
    Ok(recorded.exit_of(context, status, &found))
}

/// All that can be read here, and what is needed.
fn monitor_table(context: &App, every: Nanos, needed: &[&str]) -> String {
    let every = every.to_study_text();
    let is_wanted = |name: &str| needed.contains(&name) || !NOT_UNASKED.contains(&name);
    let readable = all_monitors().iter().filter(|monitor| is_wanted(monitor.name));
    let readable = readable.filter(|monitor| {
        needed.contains(&monitor.name) || File::open(context.root.path(monitor.source)).is_ok()
    });
    let lines: String = readable.map(|monitor| format!("{} = \"{every}\"\n", monitor.name)).collect();
    format!("[monitors]\n{lines}")
}

fn show_activity(context: &App, args: &WatchArgs, found: &RunDir) -> Result<(), Failure> {
    let record = found.read_record()?;
    let monitors = found.list_monitors()?;
    let readings =
        |monitor: &String| Ok::<_, Failure>((found.read_series(monitor)?, found.read_edges(monitor)?));
    let monitors = monitors.iter().map(readings).collect::<Result<Vec<_>, _>>()?;
    let cpus = record.manifest.facts.integer(&fact_table::CPU_ONLINE).unwrap_or(1) as f64;
    let activity = machine_activity(&record, &monitors, cpus);
    if context.format == OutputFormat::Json {
        return context.print_json(&WatchDocument { version: 1, run: found.id(), activity: &activity });
    }
    if context.format == OutputFormat::Table && !args.command.is_empty() {
        let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
        let mut times = command_times(&record);
        times.iter_mut().for_each(|one| one.name = words.join(" "));
        context.print_grid(&command_times_grid(&times))?;
        context.print_text("")?;
    }
    context.print_grid(&machine_activity_grid(&activity))?;
    let took = record.iterations.first().map(|one| one.end.since(one.start));
    if took.is_some_and(|took| took < FEWEST_TICKS) {
        context.note(format!(
            "shares of the CPUs' time are told from {FEWEST_TICKS} on: the kernel counts them in ticks"
        ));
    }
    Ok(())
}

impl Verb for WatchArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        watch_command(app, self)
    }
}
