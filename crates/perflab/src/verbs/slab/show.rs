//! `perflab slab show`

use perflab_analyze::slab::{self, CacheTableOptions, SlabGrowthOptions};
use perflab_archive::RunDir;
use perflab_present::comparison::OutputFormat;
use perflab_present::slab as present;
use serde::Serialize;

use super::output;
use super::stored::{StoredSlabRun, read_stored_slab_run};
use crate::arguments::slab::{CacheOrderName, NotebookMethod, SlabRecordArgs, SlabShowArgs};
use crate::context::App;
use crate::exit::Exit;

/// Rows of the table, and bars of the picture, where no other number is wanted.
const TOP: usize = 20;
pub(super) const BARS: usize = 15;

/// Totals and the worst caches of a run.
pub fn show_slab_caches(context: &App, wanted: &SlabShowArgs) -> anyhow::Result<Exit> {
    let stored = read_stored_slab_run(context, &wanted.run)?;
    if wanted.method == NotebookMethod::Notebook {
        return super::notebook::show_notebook_table(context, &stored, wanted);
    }
    let recording = stored.read_recording()?;
    let mut result = slab::cache_table(&recording, &CacheTableOptions::default());
    let order = cache_order(wanted.by.unwrap_or_default());
    if context.format == OutputFormat::Json {
        // Everything, but what was asked for in so many words.
        result.caches =
            result.sorted_rows(order).into_iter().take(wanted.top.unwrap_or(usize::MAX)).cloned().collect();
    }
    let width = grid_width(context, wanted.wide);
    output::print_result(context, &result, || {
        present::show_grid(&result, order, wanted.top.unwrap_or(TOP), width)
    })?;
    output::write_scene(context, wanted.plot.as_ref(), || {
        present::show_figure(&result, order, wanted.top.unwrap_or(BARS))
    })?;
    output::note_row_counts(context, &result.rows);
    if context.format == OutputFormat::Table && !context.quiet {
        note_column_meanings(context);
    }
    Ok(Exit::Fine)
}

/// What a recording ends with, as one document.
#[derive(Debug, Serialize)]
struct SlabRecordSummary<'a> {
    growth: &'a slab::SlabGrowth,
    show: &'a slab::CacheTable,
}

/// What a recording ends with: where the memory went, the ten that waste most, and the picture that was asked for.
pub fn summarise_recording(context: &App, run: &RunDir, wanted: &SlabRecordArgs) -> anyhow::Result<()> {
    let recording = StoredSlabRun::read(run)?.read_recording()?;
    let result = slab::cache_table(&recording, &CacheTableOptions::default());
    let growth = slab::slab_growth(&recording, &SlabGrowthOptions::default())?;
    let width = grid_width(context, wanted.wide);
    output::print_result(context, &SlabRecordSummary { growth: &growth, show: &result }, || {
        present::growth_grid(&growth, width)
    })?;
    // Of two tables of CSV none can be read.
    if matches!(context.format, OutputFormat::Table | OutputFormat::Markdown) {
        context.print_text("")?;
        context.print_grid(&present::show_grid(&result, slab::CacheOrder::Waste, 10, width))?;
    }
    output::write_scene(context, wanted.plot.as_ref(), || {
        present::stack_figure(&slab::cache_stack(&recording, super::timeline::LAYERS))
    })?;
    output::note_row_counts(context, &result.rows);
    Ok(())
}

fn note_column_meanings(context: &App) {
    let names: Vec<String> =
        present::notebook_column_names().map(|(ours, theirs)| format!("{ours} = {theirs}")).collect();
    context.note(format!("the notebook's names (in brackets the slabinfo tool's): {}", names.join("; ")));
}

/// What eighty columns have room for, unless the terminal has more or all is wanted; programs get everything.
pub fn grid_width(context: &App, is_all_wanted: bool) -> present::GridWidth {
    let has_room = context.width.is_some_and(|columns| columns >= 150);
    if is_all_wanted || has_room || context.format != OutputFormat::Table {
        present::GridWidth::Wide
    } else {
        present::GridWidth::Narrow
    }
}

/// The order that an option names.
pub fn cache_order(order: CacheOrderName) -> slab::CacheOrder {
    match order {
        CacheOrderName::Wasted => slab::CacheOrder::Waste,
        CacheOrderName::Efficiency => slab::CacheOrder::Efficiency,
        CacheOrderName::Unweighted => slab::CacheOrder::Unweighted,
        CacheOrderName::Bytes => slab::CacheOrder::Bytes,
        CacheOrderName::Name => slab::CacheOrder::Name,
    }
}
