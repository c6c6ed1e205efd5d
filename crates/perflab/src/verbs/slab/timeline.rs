//! `perflab slab timeline`

use perflab_analyze::slab;
use perflab_present::slab as present;
use perflab_present::table::Format;

use super::stored::stored;
use super::{notebook, output};
use crate::arguments::slab::{Method, Picture, Timeline};
use crate::context::Context;
use crate::exit::Exit;

/// Rows that people read; programs get all.
pub(super) const ROWS: usize = 24;
/// Caches with a colour of their own.
pub(super) const LAYERS: usize = 7;

/// Bytes and efficiency over time.
pub fn timeline(context: &Context, wanted: &Timeline) -> anyhow::Result<Exit> {
    let stored = stored(context, &wanted.run)?;
    if wanted.method == Method::Notebook {
        return notebook::timeline(context, &stored, wanted);
    }
    let recording = stored.recording()?;
    if wanted.growth {
        return super::growth::growth(context, &stored, &recording, wanted);
    }
    let result = slab::timeline(&recording, wanted.cache.as_deref())?;
    let most = matches!(context.format, Format::Table | Format::Markdown).then_some(ROWS);
    output::print(context, &result, || present::timeline_grid(&result, most))?;
    output::say_rows(context, most, result.points.len());
    output::plot(context, wanted.plot.as_ref(), || {
        match (wanted.picture.unwrap_or_default(), &wanted.cache) {
            (Picture::Bytes, None) => present::stack_figure(&slab::stack(&recording, LAYERS)),
            (Picture::Waste, _) | (Picture::Bytes, Some(_)) => present::waste_figure(&result),
            (Picture::Efficiency, _) => present::efficiency_figure(&result),
        }
    })?;
    output::say_counts(context, &recording.counts());
    Ok(Exit::Fine)
}
