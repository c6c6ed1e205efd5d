//! The section Startups and its conclusions: a table of prefetch modes, a dot for every startup.
//!
//! What was measured in 2007 stands beside it where the study names that work as its reference.

use indexmap::IndexSet;
use perflab_analyze::startup::{
    StartupApplication, StartupMode, StartupSamples, proactive_reclaim_source, startup_applications,
};
use perflab_analyze::{HistoricalClaim, PublishedStartup, STARTUPS_OF_2007, claims_of_2007};
use perflab_model::RunRecord;
use perflab_model::quantity::format_quantity;

use crate::chart::axes::AxisBand;
use crate::chart::axis_unit::AxisUnit;
use crate::chart::dot_charts::{ChartDot, DotChart, LevelLine};
use crate::chart::scene::Scene;
use crate::grid::{Grid, GridCell, GridColumn};
use crate::run_viewer;
use crate::section::{ReportData, Section, SectionBlock, SectionError, fold_parts};

/// How long applications take to be there, by prefetch mode.
pub(crate) const SECTION: Section =
    Section { id: "startup", title: "Startups", conclusions: startup_conclusions, blocks: startup_blocks };

/// The work of 2007; a study that reproduces it names it as its reference.
const WORK_OF_2007: &str = "https://github.com/sudkannan/prefetch";

/// What disturbed startups.
fn startup_conclusions(data: &ReportData) -> Result<Vec<String>, SectionError> {
    let started = data.records().filter(|record| !startup_applications(record).is_empty());
    Ok(started.filter_map(proactive_reclaim_source).map(reclaim_warning).collect())
}

fn reclaim_warning(place: &str) -> String {
    format!(
        "Disturbed: the kernel takes pages that nobody maps out of memory, though there is room (DAMON, {place}): \
         some of what was read ahead may have been read twice, and warm starts may have read."
    )
}

/// A part for each application of each run that was started in several prefetch modes.
fn startup_blocks(data: &ReportData) -> Result<Vec<SectionBlock>, SectionError> {
    let part = |record: &RunRecord, one: &StartupApplication| {
        let heading = format!("{}, {}", one.name, run_viewer::run_display_name(record));
        (Some(heading), application_blocks(record, one))
    };
    let mut parts = Vec::new();
    for record in data.records() {
        parts.extend(startup_applications(record).iter().map(|one| part(record, one)));
    }
    Ok(fold_parts("applications", parts))
}

fn application_blocks(record: &RunRecord, application: &StartupApplication) -> Vec<SectionBlock> {
    let reproduces_2007 = record.manifest.study.reference.as_deref() == Some(WORK_OF_2007);
    let mut blocks = vec![
        SectionBlock::Grid {
            caption: format!("Startups of {}", application.name),
            grid: mode_grid(application, reproduces_2007),
        },
        SectionBlock::Figure(startup_chart(application)),
    ];
    let claims = if reproduces_2007 { claims_of_2007(application) } else { Vec::new() };
    if !claims.is_empty() {
        blocks.push(SectionBlock::Fold {
            summary: "What was seen in 2007, and whether it holds here".into(),
            count: Some(claims.len()),
            blocks: vec![SectionBlock::Grid { caption: "Claims of 2007".into(), grid: claims_grid(&claims) }],
        });
    }
    blocks
}

/// A row a mode: medians with their intervals, and what a startup cost.
fn mode_grid(application: &StartupApplication, reproduces_2007: bool) -> Grid {
    let numbers = ["starts", "median [95 %], s", "mean ± sd, s", "ahead, s", "CPU, s", "major faults"];
    let columns = [GridColumn::left("read ahead, dropped")].into_iter().chain(numbers.map(GridColumn::right));
    let reads = ["requests from then on", "read from then on"].map(GridColumn::right);
    let mut grid = Grid::new(columns.chain(reads).chain([GridColumn::left("OpenOffice, 2007, s")]));
    for starts in &application.starts {
        let other = |name: &str| starts.others.get(name).copied();
        let number = |name: &str| other(name).map(|value| GridCell::with_text(format!("{value:.0}"), value));
        let time = |value: Option<f64>| value.map(|time| GridCell::with_text(format!("{time:.2}"), time));
        let wall = starts.wall_time().map(|wall| {
            let interval = wall.interval.as_ref();
            let interval =
                interval.map_or(String::new(), |ends| format!(" [{:.2}, {:.2}]", ends.low, ends.high));
            GridCell::with_text(format!("{:.2}{interval}", wall.value), wall.value)
        });
        let then = if reproduces_2007 { results_of_2007(starts) } else { String::new() };
        grid.add_row([
            mode_name(starts).into(),
            starts.walls.len().into(),
            wall.into(),
            GridCell::with_text(format!("{:.2} \u{b1} {:.2}", starts.mean, starts.deviation), starts.mean),
            time(other("prefetch").filter(|time| *time > 0.0)).into(),
            time(other("cpu")).into(),
            number("major-faults").into(),
            number("requests").into(),
            other("read").map(|bytes| GridCell::with_text(format_quantity(bytes, "bytes"), bytes)).into(),
            then.into(),
        ]);
    }
    grid
}

fn claims_grid(claims: &[HistoricalClaim]) -> Grid {
    let mut grid = Grid::new(["seen in 2007", "then", "today", "here", "why"].map(GridColumn::left));
    for claim in claims {
        grid.add_row([
            claim.claim.into(),
            claim.then.into(),
            claim.status.text().into(),
            claim.now.as_str().into(),
            claim.why.into(),
        ]);
    }
    grid
}

fn mode_name(starts: &StartupSamples) -> String {
    let mode = &starts.mode;
    format!("{}, {}", mode.prefetch, cache_state_name(mode))
}

/// The rows of 2007 for the same mode.
fn results_of_2007(starts: &StartupSamples) -> String {
    let same = |row: &&PublishedStartup| {
        let mode = &starts.mode;
        (row.prefetch, row.caches, row.own) == (mode.prefetch.as_str(), mode.caches.as_str(), mode.own)
    };
    let waited = |row: &PublishedStartup| {
        row.ticks.map_or_else(String::new, |ticks| format!(", waiting {:.2}", ticks / 100.0))
    };
    let text = |row: &PublishedStartup| {
        format!("{:.2} \u{b1} {:.2}{} (test {})", row.mean, row.deviation, waited(row), row.test)
    };
    STARTUPS_OF_2007.iter().filter(same).map(text).collect::<Vec<_>>().join("; ")
}

/// Modes stand beside one another as in the table; a colour for each mode of reading ahead.
fn startup_chart(application: &StartupApplication) -> Scene {
    let modes = application.starts.iter().enumerate();
    let groups: IndexSet<&str> = modes.clone().map(|(_, starts)| starts.mode.prefetch.as_str()).collect();
    let group = |starts: &StartupSamples| groups.get_index_of(starts.mode.prefetch.as_str()).unwrap_or(0);
    let dots = modes.clone().flat_map(|(at, starts)| {
        let (count, group) = (starts.walls.len().max(1) as f64, group(starts));
        let each = starts.walls.iter().enumerate();
        each.map(move |(start, wall)| ChartDot {
            x: at as f64 + (start as f64 / count - 0.5) * 0.6,
            y: *wall,
            interval: None,
            group,
            name: format!("{}, start {}: {wall:.3} s", mode_name(starts), start + 1),
        })
    });
    let level = |(at, starts): (usize, &StartupSamples)| {
        let value = starts.wall_time().map(|wall| wall.value)?;
        Some(LevelLine { from: at as f64 - 0.4, to: at as f64 + 0.4, value })
    };
    DotChart {
        title: format!("Every startup of {}", application.name),
        note: "a dot a startup, in the order in which they were made; the line is their median".into(),
        unit: AxisUnit::Plain("s".into()),
        x_title: "read ahead, dropped: the rows of the table above".into(),
        x_labels: application.starts.iter().map(mode_name).collect(),
        dots: dots.collect(),
        levels: modes.filter_map(level).collect(),
        bands: cache_state_bands(&application.starts),
        groups: groups.iter().map(ToString::to_string).collect(),
        ..DotChart::default()
    }
    .render()
}

/// What neighbours have in common: what was dropped, and whether the application read ahead by itself.
fn cache_state_bands(all: &[StartupSamples]) -> Vec<AxisBand> {
    let mut from = 0;
    let alike =
        all.chunk_by(|one, next| (&one.mode.caches, one.mode.own) == (&next.mode.caches, next.mode.own));
    alike
        .map(|alike| {
            let begin = from;
            from += alike.len();
            let name = alike.first().map(|one| cache_state_name(&one.mode)).unwrap_or_default();
            AxisBand { from: begin as f64 - 0.5, to: from as f64 - 0.5, name }
        })
        .collect()
}

/// `drop 3`, `warm, its own`
fn cache_state_name(mode: &StartupMode) -> String {
    let caches = if mode.caches == "warm" { "warm".into() } else { format!("drop {}", mode.caches) };
    if mode.own { format!("{caches}, its own") } else { caches }
}
