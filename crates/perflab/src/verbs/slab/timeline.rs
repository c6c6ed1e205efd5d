//! `perflab slab timeline`

use perflab_analyze::slab;
use perflab_present::comparison::OutputFormat;
use perflab_present::slab as present;

use super::stored::read_stored_slab_run;
use super::{notebook, output};
use crate::arguments::slab::{NotebookMethod, SlabSceneKind, SlabTimelineArgs};
use crate::context::App;
use crate::exit::Exit;

/// Rows that people read; programs get all.
pub(super) const ROWS: usize = 24;
/// Caches with a colour of their own.
pub(super) const LAYERS: usize = 7;

/// Bytes and efficiency over time.
pub fn show_timeline(context: &App, wanted: &SlabTimelineArgs) -> anyhow::Result<Exit> {
    let stored = read_stored_slab_run(context, &wanted.run)?;
    if wanted.method == NotebookMethod::Notebook {
        return notebook::show_notebook_timeline(context, &stored, wanted);
    }
    let recording = stored.read_recording()?;
    if wanted.growth {
        return super::growth::show_growth(context, &stored, &recording, wanted);
    }
    let result = slab::usage_timeline(&recording, wanted.cache.as_deref())?;
    let most = matches!(context.format, OutputFormat::Table | OutputFormat::Markdown).then_some(ROWS);
    output::print_result(context, &result, || present::timeline_grid(&result, most))?;
    output::note_omitted_rows(context, most, result.points.len());
    output::write_scene(context, wanted.plot.as_ref(), || {
        match (wanted.picture.unwrap_or_default(), &wanted.cache) {
            (SlabSceneKind::Bytes, None) => present::stack_figure(&slab::cache_stack(&recording, LAYERS)),
            (SlabSceneKind::Waste, _) | (SlabSceneKind::Bytes, Some(_)) => {
                present::waste_timeline_chart(&result)
            }
            (SlabSceneKind::Efficiency, _) => present::efficiency_timeline_chart(&result),
        }
    })?;
    output::note_row_counts(context, &recording.counts());
    Ok(Exit::Fine)
}
