//! The section Slab memory: figures and the worst caches, as static SVG and texts that need no JavaScript.
//!
//! A run whose slabs cannot be analysed has no such section.

use perflab_analyze::slab::{
    self, CacheOrder, CacheTable, CacheTableOptions, SlabFacts, SlabGrowthOptions, SlabInput, SlabRecording,
};
use perflab_model::series::RowRuns;
use serde::Serialize;

use crate::chart::scene::{Scene, SceneSurface};
use crate::grid::Grid;
use crate::section::ReportRun;
use crate::slab::grids::{
    efficiency_histogram_chart as histogram_figure, growth_chart as growth_figure, waste_chart as show_figure,
};
use crate::slab::scenes::{
    efficiency_timeline_chart, mean_efficiency_chart, slab_bytes_chart as stack_figure, waste_timeline_chart,
};

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
    worst: GridView,
    lowest: GridView,
    notebook: Vec<String>,
}

/// A table as texts.
#[derive(Debug, Serialize)]
struct GridView {
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl GridView {
    fn from_grid(grid: &Grid) -> Self {
        let (titles, rows) = grid.rows_as_text();
        GridView { titles, rows }
    }
}

/// One section for each run that has slab series.
pub(crate) fn slab_sections(runs: &[ReportRun]) -> Vec<SlabSection> {
    runs.iter().filter_map(slab_section).collect()
}

fn slab_section(run: &ReportRun) -> Option<SlabSection> {
    let of = |name: &str| run.series.iter().find(|spans| spans.series.schema.monitor == name);
    let monitors = ["slab-caches", "slab-exact", "meminfo", "slabinfo-tool"];
    let [caches, exact, meminfo, tool] = monitors.map(|name| of(name).map(RowRuns::to_series));
    let input = SlabInput {
        slabinfo: of("slabinfo"),
        caches: caches.as_ref(),
        exact: exact.as_ref(),
        meminfo: meminfo.as_ref(),
        tool: tool.as_ref(),
        system: SlabFacts::from_record(&run.record),
        record: Some(&run.record),
    };
    let recording = SlabRecording::read(&input).ok()?;
    let show = slab::cache_table(&recording, &CacheTableOptions::default());
    Some(SlabSection {
        run: run.record.manifest.label.clone().unwrap_or_else(|| run.record.manifest.id.clone()),
        summary: slab_summary(&show),
        figures: slab_figures(&recording, &show),
        worst: GridView::from_grid(&crate::slab::grids::cache_grid(
            &show,
            CacheOrder::Waste,
            WORST,
            crate::slab::grids::GridWidth::Wide,
        )),
        lowest: GridView::from_grid(&crate::slab::grids::cache_grid(
            &show,
            CacheOrder::Unweighted,
            LOWEST,
            crate::slab::grids::GridWidth::Narrow,
        )),
        notebook: notebook_figures(&input, &recording),
    })
}

fn slab_summary(show: &CacheTable) -> String {
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

fn inline_svg(scene: &Scene) -> String {
    scene.to_svg(SceneSurface::Inline)
}

fn slab_figures(recording: &SlabRecording, show: &CacheTable) -> Vec<String> {
    let mut figures = vec![inline_svg(&stack_figure(&slab::cache_stack(recording, 7)))];
    figures.extend(
        slab::usage_timeline(recording, None).ok().map(|all| inline_svg(&waste_timeline_chart(&all))),
    );
    figures.push(inline_svg(&show_figure(show, CacheOrder::Waste, WORST)));
    let growth = slab::slab_growth(recording, &SlabGrowthOptions::default());
    figures.extend(growth.ok().map(|growth| inline_svg(&growth_figure(&growth))));
    let all = show.total.overall().value();
    figures.push(inline_svg(&histogram_figure(&slab::efficiency_histogram(recording, BINS), all)));
    figures
}

/// The five pictures of the notebook: from what the slabinfo tool printed where that was imported, else the same
/// questions put to our rows.
fn notebook_figures(input: &SlabInput<'_>, recording: &SlabRecording) -> Vec<String> {
    use crate::slab::notebook as theirs;
    let mut figures = Vec::new();
    match perflab_analyze::notebook_tool_histogram(input) {
        Ok(found) => {
            figures.push(inline_svg(&theirs::notebook_histogram_chart(
                &found.notebook,
                "the slabinfo tool's %Ef",
            )));
            let means =
                |all| [false, true].map(|weighted| inline_svg(&theirs::notebook_mean_chart(&all, weighted)));
            figures.extend(perflab_analyze::notebook_timeline(input).map(means).into_iter().flatten());
            figures.extend(
                perflab_analyze::notebook_cache(input, ONE)
                    .ok()
                    .map(|one| inline_svg(&theirs::notebook_cache_chart(&one))),
            );
        }
        Err(_) => {
            figures.push(inline_svg(&crate::slab::grids::row_histogram_chart(&slab::efficiency_histogram(
                recording, 60,
            ))));
            let means =
                |all| [false, true].map(|weighted| inline_svg(&mean_efficiency_chart(&all, weighted)));
            figures.extend(slab::usage_timeline(recording, None).map(means).into_iter().flatten());
            figures.extend(
                slab::usage_timeline(recording, Some(ONE))
                    .ok()
                    .map(|one| inline_svg(&efficiency_timeline_chart(&one))),
            );
        }
    }
    let packing = perflab_analyze::notebook_proc_histogram(input).ok();
    let name = "/proc/slabinfo (slots, used or free)";
    figures.extend(packing.map(|found| inline_svg(&theirs::notebook_histogram_chart(&found.notebook, name))));
    figures
}
