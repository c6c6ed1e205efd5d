//! `perflab io coverage`

use perflab_analyze::io;
use perflab_model::Bytes;
use perflab_present::chart::Scene;
use perflab_present::io::{Names, blocks_grid, classes, coverage_grid, places};

use crate::arguments::io::{Coverage, Drawn};
use crate::context::Context;
use crate::exit::Exit;
use crate::verbs::slab::output;

/// Holds a recording against a prefetch trace.
pub fn coverage(context: &Context, wanted: &Coverage) -> anyhow::Result<Exit> {
    let recording = super::counted(context, super::recording(context, &wanted.which)?);
    let known = crate::verbs::prefetch::known(&wanted.trace)?;
    let found = io::coverage(&recording, &known);
    context.print(&if wanted.blocks { blocks_grid(&found) } else { coverage_grid(&found) })?;
    output::plot(context, wanted.plot.as_ref(), || drawn(&found, wanted))?;
    say(context, &found, recording.told.lost);
    Ok(Exit::Fine)
}

fn drawn(found: &io::Coverage, wanted: &Coverage) -> Scene {
    let title = format!("Reads held against {}", wanted.trace.display());
    match wanted.drawn {
        Drawn::Places => places(found, &title, Names::Trace),
        Drawn::Classes => classes(found, &title, Names::Trace),
    }
}

/// The check of the analysis on itself.
fn say(context: &Context, found: &io::Coverage, lost: u64) {
    let sum: u64 = found.bytes.values().sum();
    let answers = &found.answers;
    context.say(match answers.contradiction(sum) {
        0 => format!(
            "the classes sum to the {} that disks delivered, but for {} asked for before and {} under way at the end",
            Bytes(answers.delivered),
            Bytes(answers.early),
            Bytes(answers.under_way)
        ),
        apart => format!(
            "warning: the classes sum to {}, and disks delivered {}: {} are not accounted for ({lost} events were lost)",
            Bytes(sum),
            Bytes(answers.delivered),
            Bytes(apart)
        ),
    });
}
