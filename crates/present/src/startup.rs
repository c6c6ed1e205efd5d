//! The section Startups and its conclusions: a table as in the tests of 2007 with theirs beside it, a dot for every
//! startup, and whether their claims hold.

use indexmap::IndexSet;
use perflab_analyze::startup::{StartupApplication, StartupMode, StartupSamples, startup_applications};
use perflab_analyze::{HistoricalClaim, PublishedStartup, STARTUPS_OF_2007};
use perflab_model::RunRecord;
use serde::Serialize;

use crate::chart::axes::AxisBand;
use crate::chart::dot_charts::{ChartDot, DotChart, LevelLine};
use crate::chart::scene::SceneSurface;
use crate::number::chart::AxisUnit;
use crate::number::report::format_quantity;
use crate::run_viewer;

/// What the section says of one application of a run.
#[derive(Debug, Serialize)]
pub(crate) struct StartupView {
    heading: String,
    rows: Vec<StartupModeRow>,
    figure: String,
    shapes: Vec<HistoricalClaim>,
}

/// One way of starting: here, and in 2007 where it was tried.
#[derive(Debug, Serialize)]
struct StartupModeRow {
    way: String,
    starts: usize,
    /// median with its interval, mean ± standard deviation
    wall: String,
    mean: String,
    ahead: String,
    cpu: String,
    faults: String,
    requests: String,
    read: String,
    then: String,
}

/// A view for each application of each run that was started in several prefetch modes.
pub(crate) fn startup_views<'a>(records: impl Iterator<Item = &'a RunRecord>) -> Vec<StartupView> {
    records
        .flat_map(|record| startup_applications(record).into_iter().map(|one| startup_view(record, &one)))
        .collect()
}

fn startup_view(record: &RunRecord, application: &StartupApplication) -> StartupView {
    StartupView {
        heading: format!("{}, {}", application.name, run_viewer::run_display_name(record)),
        rows: application.starts.iter().map(startup_mode_row).collect(),
        figure: startup_chart(application),
        shapes: application.shapes.clone(),
    }
}

fn startup_mode_row(starts: &StartupSamples) -> StartupModeRow {
    let other = |name: &str| starts.others.get(name).copied();
    let number = |name: &str| other(name).map_or_else(String::new, |value| format!("{value:.0}"));
    let wall = starts.wall_time().map_or_else(String::new, |wall| {
        let interval = wall.interval.as_ref();
        let interval = interval.map_or(String::new(), |ends| format!(" [{:.2}, {:.2}]", ends.low, ends.high));
        format!("{:.2}{interval}", wall.value)
    });
    StartupModeRow {
        way: mode_name(starts),
        starts: starts.walls.len(),
        wall,
        mean: format!("{:.2} \u{b1} {:.2}", starts.mean, starts.deviation),
        ahead: other("prefetch")
            .filter(|time| *time > 0.0)
            .map_or_else(String::new, |time| format!("{time:.2}")),
        cpu: other("cpu").map_or_else(String::new, |time| format!("{time:.2}")),
        faults: number("major-faults"),
        requests: number("requests"),
        read: other("read").map_or_else(String::new, |bytes| format_quantity(bytes, "bytes")),
        then: results_of_2007(starts),
    }
}

fn mode_name(starts: &StartupSamples) -> String {
    let way = &starts.way;
    format!("{}, {}", way.prefetch, cache_state_name(way))
}

/// The rows of 2007 for the same way.
fn results_of_2007(starts: &StartupSamples) -> String {
    let same = |row: &&PublishedStartup| {
        let way = &starts.way;
        (row.prefetch, row.caches, row.own) == (way.prefetch.as_str(), way.caches.as_str(), way.own)
    };
    let waited = |row: &PublishedStartup| {
        row.ticks.map_or_else(String::new, |ticks| format!(", waiting {:.2}", ticks / 100.0))
    };
    let text = |row: &PublishedStartup| {
        format!("{:.2} \u{b1} {:.2}{} (test {})", row.mean, row.deviation, waited(row), row.test)
    };
    STARTUPS_OF_2007.iter().filter(same).map(text).collect::<Vec<_>>().join("; ")
}

/// Ways stand beside one another as in the table; a colour for each way of reading ahead.
fn startup_chart(application: &StartupApplication) -> String {
    let ways = application.starts.iter().enumerate();
    let groups: IndexSet<&str> = ways.clone().map(|(_, starts)| starts.way.prefetch.as_str()).collect();
    let group = |starts: &StartupSamples| groups.get_index_of(starts.way.prefetch.as_str()).unwrap_or(0);
    let dots = ways.clone().flat_map(|(at, starts)| {
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
        title: format!("Every start of {}", application.name),
        note: "a dot a start, in the order in which they were made; the line is their median".into(),
        unit: AxisUnit::Plain("s".into()),
        x_title: "row of the table above, from 0".into(),
        dots: dots.collect(),
        levels: ways.filter_map(level).collect(),
        bands: cache_state_bands(&application.starts),
        groups: groups.iter().map(ToString::to_string).collect(),
        ..DotChart::default()
    }
    .render()
    .to_svg(SceneSurface::Inline)
}

/// What neighbours have in common: what was dropped, and whether the application read ahead by itself.
fn cache_state_bands(all: &[StartupSamples]) -> Vec<AxisBand> {
    let mut from = 0;
    let alike = all.chunk_by(|one, next| (&one.way.caches, one.way.own) == (&next.way.caches, next.way.own));
    alike
        .map(|alike| {
            let begin = from;
            from += alike.len();
            let name = alike.first().map(|one| cache_state_name(&one.way)).unwrap_or_default();
            AxisBand { from: begin as f64 - 0.5, to: from as f64 - 0.5, name }
        })
        .collect()
}

/// `drop 3`, `warm, its own`
fn cache_state_name(way: &StartupMode) -> String {
    let caches = if way.caches == "warm" { "warm".into() } else { format!("drop {}", way.caches) };
    if way.own { format!("{caches}, its own") } else { caches }
}
