//! `--method notebook`: the figures of the 2019 notebook, beside ours, and in words why they differ.

use perflab_analyze::slab;
use perflab_analyze::slab::notebook::{self, Bins, Reason};
use perflab_present::slab::notebook as present;
use perflab_present::table::Format;

use super::output;
use super::stored::Stored;
use crate::arguments::slab::{Histogram, Show, Source, Timeline};
use crate::context::Context;
use crate::exit::{Exit, Usage};

/// Rows of the notebook's table, where no other number is wanted.
const LOWEST: usize = 30;

/// Its table of the least efficient caches.
pub fn show(context: &Context, stored: &Stored, wanted: &Show) -> anyhow::Result<Exit> {
    if wanted.wide {
        let hint = "leave --wide out";
        return Err(Usage::new("the notebook's table has the same columns on any terminal", hint).into());
    }
    let order = wanted.by.map_or(slab::Order::Unweighted, super::show::order);
    let result = notebook::table(&stored.input(), usize::MAX)?.ordered(order, wanted.top.unwrap_or(LOWEST));
    output::print(context, &result, || present::table_grid(&result))?;
    output::plot(context, wanted.plot.as_ref(), || present::table_figure(&result))?;
    if let Some(minutes) = notebook::minutes(&stored.input()) {
        context.say(format!("Test took: {minutes:.2} minutes"));
    }
    say(context, &result.reasons);
    for names in notebook::COLUMNS {
        let difference =
            if names.difference.is_empty() { String::new() } else { format!(" ({})", names.difference) };
        context.say(format!("column: {} is called {} there{difference}", names.ours, names.notebook));
    }
    Ok(Exit::Fine)
}

/// Its two means over time; of one cache, what the tool printed of it.
pub fn timeline(context: &Context, stored: &Stored, wanted: &Timeline) -> anyhow::Result<Exit> {
    if wanted.growth || wanted.picture.is_some() {
        return Err(Usage::new(
            "the notebook tells neither growth nor kinds of bytes",
            "leave --method notebook out, or --growth and --picture",
        )
        .into());
    }
    let most = matches!(context.format, Format::Table | Format::Markdown).then_some(super::timeline::ROWS);
    let input = stored.input();
    let plot = wanted.plot.as_ref();
    if let Some(name) = &wanted.cache {
        let result = notebook::cache(&input, name)?;
        output::print(context, &result, || present::cache_grid(&result, most))?;
        output::plot(context, plot, || present::cache_figure(&result))?;
        say(context, &result.reasons);
    } else {
        let result = notebook::timeline(&input)?;
        output::print(context, &result, || present::timeline_grid(&result, most))?;
        output::plot(context, plot, || present::timeline_figure(&result))?;
        say(context, &result.reasons);
    }
    Ok(Exit::Fine)
}

/// Its two histograms.
pub fn histogram(context: &Context, stored: &Stored, wanted: &Histogram) -> anyhow::Result<Exit> {
    if wanted.bins.is_some() {
        return Err(Usage::new("the notebook's histograms have bars of their own", "leave --bins out").into());
    }
    let input = stored.input();
    let plot = wanted.plot.as_ref();
    match wanted.of.unwrap_or_default() {
        Source::Tool => {
            let result = notebook::histogram(&input)?;
            output::print(context, &result, || {
                present::histogram_grid(&result.notebook, result.ours.as_ref())
            })?;
            output::plot(context, plot, || {
                present::histogram_figure(&result.notebook, "the slabinfo tool's %Ef")
            })?;
            say_outside(context, result.ours.as_ref());
            say(context, &result.reasons);
        }
        Source::Proc => {
            let result = notebook::proc_histogram(&input)?;
            output::print(context, &result, || {
                present::histogram_grid(&result.notebook, result.ours.as_ref())
            })?;
            output::plot(context, plot, || {
                present::histogram_figure(&result.notebook, "/proc/slabinfo (slots, used or free)")
            })?;
            let (rows, counted, moving) = (result.rows, result.counted, result.moving);
            context.say(format!("{rows} rows read, {counted} counted; {moving} caches move over time"));
            say_outside(context, result.ours.as_ref());
            say(context, &result.reasons);
        }
    }
    Ok(Exit::Fine)
}

/// What of ours the notebook's bins have no room for.
fn say_outside(context: &Context, ours: Option<&Bins>) {
    let Some(ours) = ours.filter(|ours| ours.below + ours.above > 0) else { return };
    let (Some(first), Some(last)) = (ours.edges.first(), ours.edges.last()) else { return };
    let inside: usize = ours.counts.iter().sum();
    let (below, above) = (ours.below, ours.above);
    context.say(format!(
        "ours: {inside} of {} rows lie in these bars, {below} below {first:.2} %, {above} above {last:.2} %",
        inside + below + above
    ));
}

fn say(context: &Context, reasons: &[Reason]) {
    reasons.iter().for_each(|reason| context.say(format!("why it differs from ours: {reason}")));
}
