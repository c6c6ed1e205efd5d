//! The section Slab memory: pictures and the worst caches, as static SVG and texts that need no JavaScript.
//!
//! A run without slab series has no such part. The pictures of the notebook of 2019 are drawn by `perflab slab --method notebook`.

use perflab_analyze::slab::{
    self, CacheOrder, CacheTable, CacheTableOptions, SlabFacts, SlabGrowthOptions, SlabInput, SlabRecording,
};
use perflab_model::RunData;
use perflab_model::series::RowRuns;

use crate::chart::scene::Scene;
use crate::run_viewer::run_display_name;
use crate::section::{ReportData, Section, SectionBlock, SectionError, no_conclusions};
use crate::slab::grids::{GridWidth, cache_grid, efficiency_histogram_chart, growth_chart, waste_chart};
use crate::slab::scenes::{slab_bytes_chart, waste_timeline_chart};

/// Where the kernel's object memory went.
pub(crate) const SECTION: Section =
    Section { id: "slab", title: "Slab memory", conclusions: no_conclusions, blocks: slab_blocks };

/// Caches of the table, and bars.
const WORST: usize = 15;

/// Caches with a layer of their own in the picture.
const LAYERS: usize = 7;

/// Bins of the histogram.
const BINS: usize = 20;

/// The parts of all runs that have slab series.
fn slab_blocks(data: &ReportData) -> Result<Vec<SectionBlock>, SectionError> {
    let mut parts = Vec::new();
    for run in &data.runs {
        let part = run_blocks(run.as_ref())?;
        parts.extend((!part.is_empty()).then(|| (run_display_name(run.record()), part)));
    }
    let several = parts.len() > 1;
    let with_heading = |(name, part): (String, Vec<SectionBlock>)| {
        several.then_some(SectionBlock::Heading(name)).into_iter().chain(part).collect::<Vec<_>>()
    };
    Ok(parts.into_iter().flat_map(with_heading).collect())
}

fn run_blocks(run: &dyn RunData) -> Result<Vec<SectionBlock>, SectionError> {
    let series = run.series()?;
    let of = |name: &str| series.iter().find(|spans| spans.series.schema.monitor == name);
    if ["slabinfo", "slab-caches", "slab-exact"].iter().all(|name| of(name).is_none()) {
        return Ok(Vec::new());
    }
    let monitors = ["slab-caches", "slab-exact", "meminfo", "slabinfo-tool"];
    let [caches, exact, meminfo, tool] = monitors.map(|name| of(name).map(RowRuns::to_series));
    let input = SlabInput {
        slabinfo: of("slabinfo"),
        caches: caches.as_ref(),
        exact: exact.as_ref(),
        meminfo: meminfo.as_ref(),
        tool: tool.as_ref(),
        system: SlabFacts::from_record(run.record()),
        record: Some(run.record()),
    };
    let recording = SlabRecording::read(&input)?;
    let show = slab::cache_table(&recording, &CacheTableOptions::default());
    let mut blocks = vec![SectionBlock::Text(slab_summary(&show))];
    blocks.extend(slab_figures(&recording, &show).into_iter().map(SectionBlock::Figure));
    blocks.push(SectionBlock::Heading("Worst caches, by bytes that hold no object".into()));
    blocks.push(SectionBlock::Grid {
        caption: "Worst caches by bytes wasted".into(),
        grid: cache_grid(&show, CacheOrder::Waste, WORST, GridWidth::Narrow),
    });
    blocks.push(SectionBlock::Fold {
        summary: "All columns of this table".into(),
        count: None,
        blocks: vec![SectionBlock::Grid {
            caption: "Worst caches, all columns".into(),
            grid: cache_grid(&show, CacheOrder::Waste, WORST, GridWidth::Wide),
        }],
    });
    Ok(blocks)
}

fn slab_summary(show: &CacheTable) -> String {
    let share =
        |value: Option<f64>| value.map_or_else(|| "unknown".into(), perflab_model::quantity::format_share);
    let counts = show.rows;
    format!(
        "Of all slab bytes, {} hold objects, integrated over time (mean of caches, each alike: {}). {} rows read, {} \
         used, {} flagged, {} unusable; {} of caches without slabs.",
        share(show.total.overall().value()),
        share(show.unweighted),
        counts.read,
        counts.used,
        counts.flagged,
        counts.unusable,
        counts.empty
    )
}

fn slab_figures(recording: &SlabRecording, show: &CacheTable) -> Vec<Scene> {
    let mut figures = vec![slab_bytes_chart(&slab::cache_stack(recording, LAYERS))];
    figures.extend(slab::usage_timeline(recording, None).ok().map(|all| waste_timeline_chart(&all)));
    figures.push(waste_chart(show, CacheOrder::Waste, WORST));
    let growth = slab::slab_growth(recording, &SlabGrowthOptions::default());
    figures.extend(growth.ok().map(|growth| growth_chart(&growth)));
    let all = show.total.overall().value();
    figures.push(efficiency_histogram_chart(&slab::efficiency_histogram(recording, BINS), all));
    figures
}
