//! `perflab slab show`

use std::path::Path;

use perflab_analyze::slab::{self, ShowOptions};
use perflab_archive::RunDir;
use perflab_present::slab as present;
use perflab_present::table::Format;

use super::output;
use super::stored::{Stored, stored};
use crate::arguments::slab::{Method, Order, Show};
use crate::context::Context;
use crate::exit::Exit;

/// Bars of the picture.
pub(super) const BARS: usize = 15;

/// Totals and the worst caches of a run.
pub fn show(context: &Context, wanted: &Show) -> anyhow::Result<Exit> {
    let stored = stored(context, &wanted.run)?;
    if wanted.method == Method::Notebook {
        return super::notebook::show(context, &stored, wanted);
    }
    let recording = stored.recording()?;
    let result = slab::show(&recording, &ShowOptions::default());
    let order = order(wanted.by);
    output::print(context, &result, || present::show_grid(&result, order, wanted.top, width(context)))?;
    output::plot(context, wanted.plot.as_deref(), || present::show_figure(&result, order, BARS))?;
    output::say_counts(context, &result.rows);
    if context.format == Format::Table && !context.quiet {
        footnotes(context);
    }
    Ok(Exit::Fine)
}

/// What a recording ends with: the ten worst, and the picture that was asked for.
pub fn after_record(context: &Context, run: &RunDir, plot: Option<&Path>) -> anyhow::Result<()> {
    let recording = Stored::read(run)?.recording()?;
    let result = slab::show(&recording, &ShowOptions::default());
    output::print(context, &result, || present::show_grid(&result, slab::Order::Waste, 10, width(context)))?;
    output::plot(context, plot, || present::stack_figure(&slab::stack(&recording, super::timeline::LAYERS)))?;
    output::say_counts(context, &result.rows);
    Ok(())
}

fn footnotes(context: &Context) {
    let names: Vec<String> = present::names().map(|(ours, theirs)| format!("{ours} = {theirs}")).collect();
    context.say(format!("the notebook's names (in brackets the slabinfo tool's): {}", names.join("; ")));
}

/// What eighty columns have room for; files and pipes get everything.
pub fn width(context: &Context) -> present::Width {
    match context.width {
        Some(columns) if columns < 150 && context.format == Format::Table => present::Width::Narrow,
        _ => present::Width::Wide,
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
