//! `perflab guard`

use perflab_analyze::FEWEST_HISTORY_RUNS;
use perflab_analyze::{MetricHistories, check_newest_run, metric_histories};
use perflab_present::comparison::OutputFormat;
use perflab_present::history::guard_grid;

use super::history::{history_options, history_records, read_history_runs, write_history_report};
use crate::arguments::history as arguments;
use crate::context::App;
use crate::exit::Exit;

/// The newest run against its history.
pub fn guard_newest_run(context: &App, wanted: &arguments::GuardArgs) -> anyhow::Result<Exit> {
    let runs = read_history_runs(context, &wanted.of, true)?;
    let options = history_options(&wanted.of)?;
    let found = metric_histories(&history_records(&runs), &options)?;
    let judged = check_newest_run(&found, &options)?;
    if context.format == OutputFormat::Json {
        context.print_json(&judged)?;
    } else {
        context.print_grid(&guard_grid(&found, &judged))?;
        judged.notes.iter().for_each(|note| context.note(format!("note: {note}")));
    }
    if !judged.lost.is_empty() {
        stderr_line!("warning: measured before, but not in the newest run: {}", judged.lost.join("; "));
    }
    write_history_report(context, &wanted.of, &runs, &found)?;
    let alarms = judged.alarms().len();
    if alarms > 0 {
        stderr_line!(
            "perflab: {alarms} got worse in run {}: measure it again beside the last good one",
            judged.run
        );
    }
    if alarms == 0 && judged.is_empty() {
        stderr_line!(
            "perflab: nothing was judged in run {}: {}",
            judged.run,
            unjudged_reason(&found, &wanted.of)
        );
    }
    Ok(match alarms {
        0 if judged.is_empty() => Exit::NothingJudged,
        0 => Exit::Fine,
        _ => Exit::Regression,
    })
}

/// Why a history has nothing to hold the newest run against, and what to do.
fn unjudged_reason(found: &MetricHistories, of: &arguments::HistorySelection) -> String {
    let studies: Vec<&str> = found.runs.iter().map(|run| run.study.as_str()).collect();
    let (newest, before) = studies.split_last().map_or(("", &[][..]), |(newest, before)| (*newest, before));
    let same = before.iter().filter(|study| **study == newest).count();
    let others = if same < before.len() && of.study.is_none() {
        format!("; {same} of the {} runs before it are of its study", before.len())
    } else {
        String::new()
    };
    format!("no metric that decides has {FEWEST_HISTORY_RUNS} earlier runs of the same case{others}")
}
