//! `perflab guard`

use perflab_analyze::{guard, history};
use perflab_present::history::guard_grid;
use perflab_present::table::Format;

use super::history::{options, records, runs, write_report};
use crate::arguments::history as arguments;
use crate::context::Context;
use crate::exit::Exit;

/// The newest run against its history.
pub fn run(context: &Context, wanted: &arguments::Guard) -> anyhow::Result<Exit> {
    let runs = runs(context, &wanted.of)?;
    let options = options(&wanted.of)?;
    let found = history(&records(&runs), &options)?;
    let judged = guard(&found, &options)?;
    if context.format == Format::Json {
        context.write(&serde_json::to_string_pretty(&judged)?)?;
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
    Ok(if alarms > 0 { Exit::Regression } else { Exit::Fine })
}
