//! `perflab io coverage`

use perflab_analyze::io;
use perflab_model::Bytes;
use perflab_present::io::{blocks_grid, coverage_grid};

use crate::arguments::io::Coverage;
use crate::context::Context;
use crate::exit::Exit;

/// Holds a recording against a prefetch trace.
pub fn coverage(context: &Context, wanted: &Coverage) -> anyhow::Result<Exit> {
    let recording = super::recording(context, &wanted.which)?;
    let known = crate::verbs::prefetch::known(&wanted.trace)?;
    let found = io::coverage(&recording, &known);
    context.print(&if wanted.blocks { blocks_grid(&found) } else { coverage_grid(&found) })?;
    let sum: u64 = found.bytes.values().sum();
    let apart = sum.abs_diff(found.delivered);
    context.say(match apart {
        0 => format!("the classes sum to the {} that disks delivered", Bytes(sum)),
        _ => format!(
            "warning: the classes sum to {}, disks delivered {}: requests were under way when tracing began or ended, \
             or {} events were lost",
            Bytes(sum),
            Bytes(found.delivered),
            recording.told.lost
        ),
    });
    Ok(Exit::Fine)
}
