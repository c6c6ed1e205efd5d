//! `perflab slab timeline --growth`

use perflab_analyze::slab::{self, SlabGrowthOptions, SlabRecording};
use perflab_model::Bytes;
use perflab_present::slab as present;

use super::output;
use super::stored::StoredSlabRun;
use crate::arguments::slab::SlabTimelineArgs;
use crate::context::App;
use crate::exit::Exit;

/// Before, peak, retained and slope by cache; and how the caches add up to meminfo's Slab.
pub fn show_growth(
    context: &App,
    stored: &StoredSlabRun,
    recording: &SlabRecording,
    wanted: &SlabTimelineArgs,
) -> anyhow::Result<Exit> {
    let only = wanted.cache.as_deref().map(|name| recording.find_caches(name)).transpose()?;
    let result = slab::slab_growth(recording, &SlabGrowthOptions { only, ..SlabGrowthOptions::default() })?;
    output::print_result(context, &result, || {
        present::growth_grid(&result, super::show::grid_width(context, wanted.wide))
    })?;
    output::write_scene(context, wanted.plot.as_ref(), || present::growth_figure(&result))?;
    context.note(format!(
        "before: {} ticks until the first iteration began; after: {} ticks since the last one ended",
        result.baseline.ticks, result.end.ticks
    ));
    if let Ok(account) = slab::reconcile_with_meminfo(recording, stored.analysis_input().meminfo) {
        let size = Bytes(account.median.abs().round() as u64);
        let more = if account.median < 0.0 { "less" } else { "more" };
        context.note(format!(
            "meminfo's Slab is {size} {more} than the caches' slabs (median): large kmallocs, and the time between the \
             two readings"
        ));
    }
    output::note_row_counts(context, &recording.counts());
    Ok(Exit::Fine)
}
