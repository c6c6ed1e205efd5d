//! `perflab guard`

use perflab_analyze::history::FEWEST;
use perflab_analyze::{History, guard, history};
use perflab_present::history::guard_grid;
use perflab_present::table::Format;

use super::history::{options, records, runs, write_report};
use crate::arguments::history as arguments;
use crate::context::Context;
use crate::exit::Exit;

/// The newest run against its history.
pub fn run(context: &Context, wanted: &arguments::Guard) -> anyhow::Result<Exit> {
    let runs = runs(context, &wanted.of, true)?;
    let options = options(&wanted.of)?;
    let found = history(&records(&runs), &options)?;
    let judged = guard(&found, &options)?;
    if context.format == Format::Json {
        context.document(&judged)?;
    } else {
        context.print(&guard_grid(&found, &judged))?;
        judged.notes.iter().for_each(|note| context.say(format!("note: {note}")));
    }
    if !judged.lost.is_empty() {
        stderr_line!("warning: measured before, but not in the newest run: {}", judged.lost.join("; "));
    }
    write_report(context, &wanted.of, &runs, &found)?;
    let alarms = judged.alarms().len();
    if alarms > 0 {
        stderr_line!(
            "perflab: {alarms} got worse in run {}: measure it again beside the last good one",
            judged.run
        );
    }
    if alarms == 0 && judged.is_empty() {
        stderr_line!("perflab: nothing was judged in run {}: {}", judged.run, unjudged(&found, &wanted.of));
    }
    Ok(match alarms {
        0 if judged.is_empty() => Exit::NothingJudged,
        0 => Exit::Fine,
        _ => Exit::Regression,
    })
}

/// Why a history has nothing to hold the newest run against, and what to do.
fn unjudged(found: &History, of: &arguments::Of) -> String {
    let studies: Vec<&str> = found.runs.iter().map(|run| run.study.as_str()).collect();
    let (newest, before) = studies.split_last().map_or(("", &[][..]), |(newest, before)| (*newest, before));
    let same = before.iter().filter(|study| **study == newest).count();
    let others = if same < before.len() && of.study.is_none() {
        format!("; {same} of the {} runs before it are of its study", before.len())
    } else {
        String::new()
    };
    format!("no metric that decides has {FEWEST} earlier runs of the same case{others}")
}
