//! `perflab slab timeline --growth`

use perflab_analyze::slab::{self, GrowthOptions, Recording};
use perflab_model::Bytes;
use perflab_present::slab as present;

use super::output;
use super::stored::Stored;
use crate::arguments::slab::Timeline;
use crate::context::Context;
use crate::exit::Exit;

/// Before, peak, retained and slope by cache; and how the caches add up to meminfo's Slab.
pub fn growth(
    context: &Context,
    stored: &Stored,
    recording: &Recording,
    wanted: &Timeline,
) -> anyhow::Result<Exit> {
    let only = wanted.cache.as_deref().map(|name| recording.find(name)).transpose()?;
    let result = slab::growth(recording, &GrowthOptions { only, ..GrowthOptions::default() })?;
    output::print(context, &result, || {
        present::growth_grid(&result, super::show::width(context, wanted.wide))
    })?;
    output::plot(context, wanted.plot.as_ref(), || present::growth_figure(&result))?;
    context.say(format!(
        "before: {} ticks until the first iteration began; after: {} ticks since the last one ended",
        result.baseline.ticks, result.end.ticks
    ));
    if let Ok(account) = slab::reconcile(recording, stored.input().meminfo) {
        let size = Bytes(account.median.abs().round() as u64);
        let more = if account.median < 0.0 { "less" } else { "more" };
        context.say(format!(
            "meminfo's Slab is {size} {more} than the caches' slabs (median): large kmallocs, and the time between the \
             two readings"
        ));
    }
    output::say_counts(context, &recording.counts());
    Ok(Exit::Fine)
}
