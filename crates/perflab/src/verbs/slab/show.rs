//! `perflab slab show`

use perflab_analyze::slab::{self, GrowthOptions, ShowOptions};
use perflab_archive::RunDir;
use perflab_present::slab as present;
use perflab_present::table::Format;
use serde::Serialize;

use super::output;
use super::stored::{Stored, stored};
use crate::arguments::slab::{Method, Order, Record, Show};
use crate::context::Context;
use crate::exit::Exit;

/// Rows of the table, and bars of the picture, where no other number is wanted.
const TOP: usize = 20;
pub(super) const BARS: usize = 15;

/// Totals and the worst caches of a run.
pub fn show(context: &Context, wanted: &Show) -> anyhow::Result<Exit> {
    let stored = stored(context, &wanted.run)?;
    if wanted.method == Method::Notebook {
        return super::notebook::show(context, &stored, wanted);
    }
    let recording = stored.recording()?;
    let mut result = slab::show(&recording, &ShowOptions::default());
    let order = order(wanted.by.unwrap_or_default());
    if context.format == Format::Json {
        // Everything, but what was asked for in so many words.
        result.caches =
            result.sorted(order).into_iter().take(wanted.top.unwrap_or(usize::MAX)).cloned().collect();
    }
    let width = width(context, wanted.wide);
    output::print(context, &result, || present::show_grid(&result, order, wanted.top.unwrap_or(TOP), width))?;
    output::plot(context, wanted.plot.as_ref(), || {
        present::show_figure(&result, order, wanted.top.unwrap_or(BARS))
    })?;
    output::say_counts(context, &result.rows);
    if context.format == Format::Table && !context.quiet {
        footnotes(context);
    }
    Ok(Exit::Fine)
}

/// What a recording ends with, as one document.
#[derive(Debug, Serialize)]
struct Ending<'a> {
    growth: &'a slab::Growth,
    show: &'a slab::Show,
}

/// What a recording ends with: where the memory went, the ten that waste most, and the picture that was asked for.
pub fn after_record(context: &Context, run: &RunDir, wanted: &Record) -> anyhow::Result<()> {
    let recording = Stored::read(run)?.recording()?;
    let result = slab::show(&recording, &ShowOptions::default());
    let growth = slab::growth(&recording, &GrowthOptions::default())?;
    let width = width(context, wanted.wide);
    output::print(context, &Ending { growth: &growth, show: &result }, || {
        present::growth_grid(&growth, width)
    })?;
    // Of two tables of CSV none can be read.
    if matches!(context.format, Format::Table | Format::Markdown) {
        context.write("")?;
        context.print(&present::show_grid(&result, slab::Order::Waste, 10, width))?;
    }
    output::plot(context, wanted.plot.as_ref(), || {
        present::stack_figure(&slab::stack(&recording, super::timeline::LAYERS))
    })?;
    output::say_counts(context, &result.rows);
    Ok(())
}

fn footnotes(context: &Context) {
    let names: Vec<String> = present::names().map(|(ours, theirs)| format!("{ours} = {theirs}")).collect();
    context.say(format!("the notebook's names (in brackets the slabinfo tool's): {}", names.join("; ")));
}

/// What eighty columns have room for, unless the terminal has more or all is wanted; programs get everything.
pub fn width(context: &Context, is_all_wanted: bool) -> present::Width {
    let has_room = context.width.is_some_and(|columns| columns >= 150);
    if is_all_wanted || has_room || context.format != Format::Table {
        present::Width::Wide
    } else {
        present::Width::Narrow
    }
}

/// The order that an option names.
pub fn order(order: Order) -> slab::Order {
    match order {
        Order::Wasted => slab::Order::Waste,
        Order::Efficiency => slab::Order::Efficiency,
        Order::Unweighted => slab::Order::Unweighted,
        Order::Bytes => slab::Order::Bytes,
        Order::Name => slab::Order::Name,
    }
}
