//! This machine as an instrument: `perflab check`, `monitor`, `undo`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use perflab_conduct::execution_records::{EndedExecutions, end_abandoned_executions};
use perflab_disk::remove_dead_emulated_disks;
use perflab_model::{Facts, Scalar};
use perflab_observe::own_directories;
use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};
use perflab_present::facts::{fact_cell, machine_facts_grid};
use perflab_settings::{RecoveredRun, recover_killed_runs};
use perflab_startup::remove_abandoned_cgroups;
use serde_json::json;

use crate::app::App;
use crate::failure::{Exit, Failure};
use crate::signals;
use crate::verb::Verb;

/// `perflab monitor list`
pub fn list_monitors(context: &App) -> Result<Exit, Failure> {
    let mut grid = Grid::new(["monitor", "source", "records", "needs"].map(GridColumn::left));
    for kind in perflab_observe::all_monitors() {
        grid.add_row([kind.name, kind.source, kind.about, kind.needs].map(GridCell::from));
    }
    context.print_grid(&grid)?;
    Ok(Exit::Fine)
}

/// What killed runs left behind, put back: what their journals tell, then disks of which no journal tells any more.
pub fn put_back_leftovers(context: &App) -> Vec<RecoveredRun> {
    let boot = perflab_observe::read_boot_id(&context.root);
    let places = own_directories::state_directories();
    let reported = places.iter().flat_map(|place| recover_killed_runs(place, &boot));
    reported.chain(remove_dead_emulated_disks()).collect()
}

/// What killed imports left in the archive, removed.
pub fn remove_unfinished_imports(context: &App) -> Vec<PathBuf> {
    context.archive().map(|archive| archive.remove_abandoned_runs()).unwrap_or_default()
}

/// `perflab undo`
pub fn undo_settings(context: &App, args: &UndoArgs) -> Result<Exit, Failure> {
    // A signal while things are put back changes nothing of it.
    let stop = std::sync::Arc::default();
    signals::register_stop_signals(&stop)?;
    if args.after_signal.is_some() {
        signals::unblock_stop_signals()?;
    }
    let (places, boot) = (own_directories::state_directories(), perflab_observe::read_boot_id(&context.root));
    let looked = places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>();
    let EndedExecutions { ended, left_alone } =
        end_abandoned_executions(&places, &boot, args.after_signal.is_some());
    if ended > 0 {
        context.note(format!("ended {ended} processes of killed runs, which were still running"));
    }
    if !left_alone.is_empty() {
        let pids: Vec<String> = left_alone.iter().map(i32::to_string).collect();
        context.note(format!(
            "left alone: {}, marked by a perflab that is gone, whose runs are unknown in {}",
            pids.join(", "),
            looked.join(", ")
        ));
    }
    let mut half_made = remove_unfinished_imports(context);
    if args.after_signal.is_some() {
        half_made
            .extend(context.archive().map(|archive| archive.remove_own_half_made_runs()).unwrap_or_default());
    }
    half_made.iter().for_each(|path| context.note(format!("removed {}, left half-made", path.display())));
    let guests = perflab_guest::remove_abandoned_guests().unwrap_or_default();
    guests
        .iter()
        .for_each(|path| context.note(format!("removed {}, left by a killed guest", path.display())));
    let groups = remove_abandoned_cgroups();
    groups
        .iter()
        .for_each(|path| context.note(format!("removed {}, left by a killed start", path.display())));
    let found = put_back_leftovers(context);
    let none = if found.is_empty() { "no run left a setting behind; " } else { "" };
    context.note(format!("{none}looked for undo journals in {}", looked.join(", ")));
    if context.format == OutputFormat::Json {
        let of = |run: &RecoveredRun| json!({ "run": run.run, "undone": run.undone, "failed": run.failed });
        let runs: Vec<_> = found.iter().map(of).collect();
        let removed: Vec<_> =
            half_made.iter().chain(&guests).chain(&groups).map(|path| path.display().to_string()).collect();
        context.print_json(&json!({
            "ended": ended, "left_alone": left_alone, "removed": removed, "runs": runs, "folders": looked
        }))?;
    }
    let mut failed = false;
    for run in found {
        run.undone.iter().for_each(|setting| context.note(format!("{}: put back {setting}", run.run)));
        run.failed.iter().for_each(|setting| stderr_line!("warning: {}: not put back: {setting}", run.run));
        failed |= !run.failed.is_empty();
    }
    if let Some(signal) = args.after_signal {
        signals::die_of_signal(signal);
    }
    Ok(if failed { Exit::SETTINGS_LEFT } else { Exit::Fine })
}

/// `perflab check`
pub fn check_machine(context: &App, args: &CheckArgs) -> Result<Exit, Failure> {
    let facts = perflab_observe::collect_facts(&context.root, None)?;
    if args.facts {
        context.print_grid(&machine_facts_grid(&facts))?;
        return Ok(Exit::Fine);
    }
    let mut grid = Grid::new(["what", "found", "better", "why"].map(GridColumn::left));
    for finding in FINDINGS.iter().filter_map(|rule| rule.apply(&facts)) {
        grid.add_row(finding);
    }
    context.print_grid(&grid)?;
    context.note("`perflab check --facts` prints everything that a run records of this machine");
    Ok(Exit::Fine)
}

/// Something that disturbs measurements, and how to see it in the facts.
struct DisturbanceRule {
    fact: &'static str,
    bad: fn(&Scalar) -> bool,
    better: &'static str,
    why: &'static str,
}

impl DisturbanceRule {
    fn apply(&self, facts: &Facts) -> Option<[GridCell; 4]> {
        let value = facts.value(self.fact)?;
        (self.bad)(value).then(|| [self.fact.into(), fact_cell(value), self.better.into(), self.why.into()])
    }
}

const FINDINGS: &[DisturbanceRule] = &[
    DisturbanceRule {
        fact: "cpu.governor",
        bad: |value| value.to_string() != "performance",
        better: "performance",
        why: "the clock follows the load, so the first iterations are slower",
    },
    DisturbanceRule {
        fact: "load.1",
        bad: |value| value.as_number().is_some_and(|load| load > 0.5),
        better: "below 0.5",
        why: "something else is running",
    },
    DisturbanceRule {
        fact: "clocksource.current",
        bad: |value| !matches!(value.to_string().as_str(), "tsc" | "kvm-clock" | "arch_sys_counter"),
        better: "tsc",
        why: "reading the clock takes a slow system call",
    },
    DisturbanceRule {
        fact: "load.steal_percent",
        bad: |value| value.as_number().is_some_and(|steal| steal > 0.1),
        better: "below 0.1",
        why: "the hypervisor gives CPU time of this machine to others",
    },
    DisturbanceRule {
        fact: "kernel.config.KASAN",
        bad: |value| value.to_string() == "y",
        better: "n",
        why: "a debug kernel: its costs are not those of a production kernel",
    },
    DisturbanceRule {
        fact: "hypervisor.present",
        bad: |value| *value == Scalar::Bool(true),
        better: "bare metal",
        why: "neighbours and steal time are part of what is measured",
    },
    DisturbanceRule {
        fact: "kernel.tainted",
        bad: |value| value.as_number().is_some_and(|taint| taint != 0.0),
        better: "0",
        why: "out-of-tree modules or warnings: this is not a clean kernel",
    },
];

/// List the monitors and what they record
#[derive(Debug, Args)]
pub struct MonitorArgs {
    #[command(subcommand)]
    pub verb: MonitorVerb,
}

impl Verb for MonitorArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        match self.verb {
            MonitorVerb::List => list_monitors(app),
        }
    }
}

/// What there is to ask of monitors.
#[derive(Debug, Subcommand)]
pub enum MonitorVerb {
    /// List the monitors: what each reads, records and needs
    List,
}

/// Check this machine for measuring: facts, and what disturbs
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Print every fact that a run records
    #[arg(long)]
    pub facts: bool,
}

impl Verb for CheckArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        check_machine(app, self)
    }
}

/// Put back settings that a killed run left behind
#[derive(Debug, clap::Args)]
pub struct UndoArgs {
    /// The process was another perflab until this signal ended it: its processes are ended, and then it dies of the signal
    #[arg(long, hide = true)]
    pub after_signal: Option<i32>,
}

impl Verb for UndoArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        undo_settings(app, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_facts_have_the_digits_that_people_read() {
        let text = |value: Scalar| fact_cell(&value).text().to_owned();
        assert_eq!(text(Scalar::Float(0.10478584825978167)), "0.1048");
        assert_eq!(text(Scalar::Int(123_456_789)), "123456789");
    }
}
