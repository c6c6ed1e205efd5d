//! This machine as an instrument: `perflab check`, `undo`.

use clap::Args;
use perflab_conduct::execution_records::{EndedExecutions, end_abandoned_executions};
use perflab_model::Facts;
use perflab_model::fact_table::{FactSpec, all_fact_specs};
use perflab_observe::own_directories;
use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};
use perflab_present::facts::{fact_cell, machine_facts_grid};
use perflab_settings::RecoveredRun;
use perflab_startup::remove_abandoned_cgroups;
use serde_json::json;

use crate::app::App;
use crate::failure::{Exit, Failure};
use crate::laboratory::leftovers::{list_leftovers, put_back_leftovers, remove_unfinished_imports};
use crate::laboratory::tune::{count_tuned, find_noisy_presets};
use crate::signals;
use crate::verb::Verb;

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
    let tuned = count_tuned(&own_directories::state_directory(), context);
    if tuned > 0 {
        context.note(format!("{tuned} files are tuned, and stay so: `perflab tune --undo` puts them back"));
    }
    let none = if found.is_empty() { "no run left a setting behind; " } else { "" };
    context.note(format!("{none}looked for undo journals in {}", looked.join(", ")));
    if context.format == OutputFormat::Json {
        let of = |run: &RecoveredRun| json!({ "run": run.run, "undone": run.undone, "left": run.left, "failed": run.failed });
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
        for setting in &run.left {
            stderr_line!(
                "warning: {}: left as somebody else has set it: before the run it was {setting}",
                run.run
            );
        }
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
    let mut grid = Grid::new(["what", "found", "better", "why", "to do"].map(GridColumn::left));
    for finding in all_fact_specs().filter_map(|spec| disturbance_row(spec, &facts)) {
        grid.add_row(finding);
    }
    for noisy in find_noisy_presets(context) {
        let found = noisy.standing.in_force.unwrap_or_default();
        let remedy = match noisy.standing.obstacle {
            None => format!("perflab tune --apply {}", noisy.name),
            Some(obstacle) => obstacle,
        };
        grid.add_row([noisy.name.as_str(), &found, &noisy.level, &noisy.why, &remedy].map(GridCell::from));
    }
    context.print_grid(&grid)?;
    for (run, settings) in list_leftovers(context) {
        stderr_line!(
            "warning: run {run} was killed and has left its settings: {}; `perflab undo`, or the next run, puts them back",
            settings.join(", ")
        );
    }
    context.note("`perflab check --facts` prints everything that a run records of this machine");
    Ok(Exit::Fine)
}

/// What disturbs measurements, if this kind of fact has a value here that is not good.
fn disturbance_row(spec: &FactSpec, facts: &Facts) -> Option<[GridCell; 5]> {
    let (good, key) = (spec.good?, spec.key()?);
    let value = facts.value(&key)?;
    let row = || [key.as_str().into(), fact_cell(value), good.better.into(), good.why.into(), "".into()];
    (!good.holds_for(value)).then(row)
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
    use perflab_model::Scalar;

    use super::*;

    #[test]
    fn numbers_of_facts_have_the_digits_that_people_read() {
        let text = |value: Scalar| fact_cell(&value).text().to_owned();
        assert_eq!(text(Scalar::Float(0.10478584825978167)), "0.1048");
        assert_eq!(text(Scalar::Int(123_456_789)), "123456789");
    }
}
