//! `--method notebook`: the figures of the notebook of 2019, beside ours, and why they differ.

use perflab_analyze::slab;
use perflab_analyze::slab::notebook::{self, NotebookDifference, NumpyHistogram};
use perflab_present::comparison::OutputFormat;
use perflab_present::slab::notebook::{
    self as present, NOTEBOOK_COLUMNS, NotebookDocument, describe_notebook_difference,
};

use crate::app::{self, App};
use crate::failure::{Exit, Failure, UsageError};
use crate::instruments::slab_args::{NotebookSource, SlabHistogramArgs, SlabShowArgs, SlabTimelineArgs};
use crate::instruments::stored_slab_run::StoredSlabRun;

/// Rows of the notebook's table, where no other number is requested.
const LOWEST: usize = 30;

/// Its table of the least efficient caches.
pub fn show_notebook_table(
    context: &App,
    stored: &StoredSlabRun,
    args: &SlabShowArgs,
) -> Result<Exit, Failure> {
    if args.wide {
        let hint = "leave --wide out";
        return Err(UsageError::new("the notebook's table has the same columns on any terminal", hint).into());
    }
    let order = args.by.unwrap_or(slab::CacheOrder::Unweighted);
    let result = notebook::notebook_table(&stored.analysis_input(), usize::MAX)?
        .sort_and_truncate(order, args.top.unwrap_or(LOWEST));
    app::print_result(context, &NotebookDocument::new(&result, &result.reasons), || {
        present::notebook_table_grid(&result)
    })?;
    app::write_scene(context, args.output.as_ref(), || present::notebook_table_chart(&result))?;
    if let Some(minutes) = notebook::notebook_minutes(&stored.analysis_input()) {
        context.note(format!("Test took: {minutes:.2} minutes"));
    }
    note_notebook_reasons(context, &result.reasons);
    for names in NOTEBOOK_COLUMNS {
        let difference =
            if names.difference.is_empty() { String::new() } else { format!(" ({})", names.difference) };
        context.note(format!("column: {} is called {} there{difference}", names.ours, names.notebook));
    }
    Ok(Exit::Fine)
}

/// Its two means over time; of one cache, what the tool printed of it.
pub fn show_notebook_timeline(
    context: &App,
    stored: &StoredSlabRun,
    args: &SlabTimelineArgs,
) -> Result<Exit, Failure> {
    if args.growth || args.picture.is_some() {
        return Err(UsageError::new(
            "the notebook shows neither growth nor kinds of bytes",
            "leave --method notebook out, or --growth and --picture",
        )
        .into());
    }
    let most = matches!(context.format, OutputFormat::Table | OutputFormat::Markdown)
        .then_some(crate::instruments::slab_args::ROWS);
    let input = stored.analysis_input();
    let plot = args.output.as_ref();
    if let Some(name) = &args.cache {
        let result = notebook::notebook_cache(&input, name)?;
        app::print_result(context, &NotebookDocument::new(&result, &result.reasons), || {
            present::notebook_cache_grid(&result, most)
        })?;
        app::write_scene(context, plot, || present::notebook_cache_chart(&result))?;
        note_notebook_reasons(context, &result.reasons);
    } else {
        let result = notebook::notebook_timeline(&input)?;
        app::print_result(context, &NotebookDocument::new(&result, &result.reasons), || {
            present::notebook_timeline_grid(&result, most)
        })?;
        app::write_scene(context, plot, || present::notebook_timeline_chart(&result))?;
        note_notebook_reasons(context, &result.reasons);
    }
    Ok(Exit::Fine)
}

/// Its two histograms.
pub fn show_notebook_histograms(
    context: &App,
    stored: &StoredSlabRun,
    args: &SlabHistogramArgs,
) -> Result<Exit, Failure> {
    if args.bins.is_some() {
        return Err(
            UsageError::new("the notebook's histograms have bars of their own", "leave --bins out").into()
        );
    }
    let input = stored.analysis_input();
    let plot = args.output.as_ref();
    match args.of.unwrap_or_default() {
        NotebookSource::Tool => {
            let result = notebook::notebook_tool_histogram(&input)?;
            app::print_result(context, &NotebookDocument::new(&result, &result.reasons), || {
                present::notebook_histogram_grid(&result.notebook, result.ours.as_ref())
            })?;
            app::write_scene(context, plot, || {
                present::notebook_histogram_chart(&result.notebook, "the slabinfo tool's %Ef")
            })?;
            note_outside_bins(context, result.ours.as_ref());
            note_notebook_reasons(context, &result.reasons);
        }
        NotebookSource::Proc => {
            let result = notebook::notebook_proc_histogram(&input)?;
            app::print_result(context, &NotebookDocument::new(&result, &result.reasons), || {
                present::notebook_histogram_grid(&result.notebook, result.ours.as_ref())
            })?;
            app::write_scene(context, plot, || {
                present::notebook_histogram_chart(&result.notebook, "/proc/slabinfo (slots, used or free)")
            })?;
            let (rows, counted, moving) = (result.rows, result.counted, result.moving);
            context.note(format!("{rows} rows read, {counted} counted; {moving} caches move over time"));
            note_outside_bins(context, result.ours.as_ref());
            note_notebook_reasons(context, &result.reasons);
        }
    }
    Ok(Exit::Fine)
}

/// What of ours the notebook's bins have no room for.
fn note_outside_bins(context: &App, ours: Option<&NumpyHistogram>) {
    let Some(ours) = ours.filter(|ours| ours.below + ours.above > 0) else { return };
    let (Some(first), Some(last)) = (ours.edges.first(), ours.edges.last()) else { return };
    let inside: usize = ours.counts.iter().sum();
    let (below, above) = (ours.below, ours.above);
    context.note(format!(
        "ours: {inside} of {} rows lie in these bars, {below} below {first:.2} %, {above} above {last:.2} %",
        inside + below + above
    ));
}

fn note_notebook_reasons(context: &App, reasons: &[NotebookDifference]) {
    for reason in reasons {
        context.note(format!("why it differs from ours: {}", describe_notebook_difference(reason)));
    }
}
