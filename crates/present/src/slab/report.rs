//! Owns what a report says of a run with slab series: figures and the worst caches, as static SVG and texts, so that
//! they are there without JavaScript. It refuses to fail: a run whose slabs cannot be analysed has no such part.

use perflab_analyze::slab::{
    self, GrowthOptions, Input, Order, Recording, Show, ShowOptions, System, notebook,
};
use perflab_model::series::Spans;
use serde::Serialize;

use super::{
    efficiency_figure, growth_figure, histogram_figure, mean_figure, show_figure, stack_figure, waste_figure,
};
use crate::chart::{Scene, Surface};
use crate::report::RunInput;
use crate::table::Grid;

/// Caches of the table, and bars.
const WORST: usize = 15;
/// Rows of the notebook's table.
const LOWEST: usize = 30;
/// The cache that the notebook follows.
const ONE: &str = "dentry";
/// Bins of our histogram.
const BINS: usize = 20;

/// The slab part of one run.
#[derive(Debug, Serialize)]
pub(crate) struct SlabSection {
    run: String,
    summary: String,
    figures: Vec<String>,
    worst: TableView,
    lowest: TableView,
    notebook: Vec<String>,
}

/// A table as texts.
#[derive(Debug, Serialize)]
struct TableView {
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl TableView {
    fn of(grid: &Grid) -> Self {
        let (titles, rows) = grid.texts();
        TableView { titles, rows }
    }
}

/// One section for each run that has slab series.
pub(crate) fn sections(runs: &[RunInput]) -> Vec<SlabSection> {
    runs.iter().filter_map(section).collect()
}

fn section(run: &RunInput) -> Option<SlabSection> {
    let of = |name: &str| run.series.iter().find(|spans| spans.series.schema.monitor == name);
    let monitors = ["slab-caches", "slab-exact", "meminfo", "slabinfo-tool"];
    let [caches, exact, meminfo, tool] = monitors.map(|name| of(name).map(Spans::whole));
    let input = Input {
        slabinfo: of("slabinfo"),
        caches: caches.as_ref(),
        exact: exact.as_ref(),
        meminfo: meminfo.as_ref(),
        tool: tool.as_ref(),
        system: System::of(&run.record),
        record: Some(&run.record),
    };
    let recording = Recording::read(&input).ok()?;
    let show = slab::show(&recording, &ShowOptions::default());
    Some(SlabSection {
        run: run.record.manifest.label.clone().unwrap_or_else(|| run.record.manifest.id.clone()),
        summary: summary(&show),
        figures: figures(&recording, &show),
        worst: TableView::of(&super::show_grid(&show, Order::Waste, WORST, super::Width::Wide)),
        lowest: TableView::of(&super::show_grid(&show, Order::Unweighted, LOWEST, super::Width::Narrow)),
        notebook: notebook_figures(&input, &recording),
    })
}

fn summary(show: &Show) -> String {
    let share = |value: Option<f64>| value.map_or_else(|| "unknown".into(), |value| format!("{value:.2} %"));
    let counts = show.rows;
    format!(
        "Of all slab bytes, {} hold objects, integrated over time (mean of caches, each alike: {}). {} rows read, {} \
         used, {} flagged, {} unusable; {} of caches without slabs.",
        share(show.total.overall().percent()),
        share(show.unweighted.map(|value| value * 100.0)),
        counts.read,
        counts.used,
        counts.flagged,
        counts.unusable,
        counts.empty
    )
}

fn svg(scene: &Scene) -> String {
    scene.svg(Surface::Inline)
}

fn figures(recording: &Recording, show: &Show) -> Vec<String> {
    let mut figures = vec![svg(&stack_figure(&slab::stack(recording, 7)))];
    figures.extend(slab::timeline(recording, None).ok().map(|all| svg(&waste_figure(&all))));
    figures.push(svg(&show_figure(show, Order::Waste, WORST)));
    let growth = slab::growth(recording, &GrowthOptions::default());
    figures.extend(growth.ok().map(|growth| svg(&growth_figure(&growth))));
    let all = show.total.overall().value();
    figures.push(svg(&histogram_figure(&slab::histogram(recording, BINS), all)));
    figures
}

/// The five pictures of the notebook: from what the slabinfo tool printed where that was imported, else the same
/// questions put to our rows.
fn notebook_figures(input: &Input<'_>, recording: &Recording) -> Vec<String> {
    use super::notebook as theirs;
    let mut figures = Vec::new();
    match notebook::histogram(input) {
        Ok(found) => {
            figures.push(svg(&theirs::histogram_figure(&found.notebook, "the slabinfo tool's %Ef")));
            let means = |all| [false, true].map(|weighted| svg(&theirs::mean_figure(&all, weighted)));
            figures.extend(notebook::timeline(input).map(means).into_iter().flatten());
            figures.extend(notebook::cache(input, ONE).ok().map(|one| svg(&theirs::cache_figure(&one))));
        }
        Err(_) => {
            figures.push(svg(&super::rows_figure(&slab::histogram(recording, 60))));
            let means = |all| [false, true].map(|weighted| svg(&mean_figure(&all, weighted)));
            figures.extend(slab::timeline(recording, None).map(means).into_iter().flatten());
            figures
                .extend(slab::timeline(recording, Some(ONE)).ok().map(|one| svg(&efficiency_figure(&one))));
        }
    }
    let packing = notebook::proc_histogram(input).ok();
    let name = "/proc/slabinfo (slots, used or free)";
    figures.extend(packing.map(|found| svg(&theirs::histogram_figure(&found.notebook, name))));
    figures
}
