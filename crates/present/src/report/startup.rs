//! Starts of applications, as the page's template reads them: a table as in the tests of 2007 with theirs beside it, a dot
//! for every start, and whether their shapes hold. What holds is `analyze::startup`'s to say.

use indexmap::IndexSet;
use perflab_analyze::startup::{Application, Shape, Starts, THEN, Then, Way, applications};
use perflab_model::RunRecord;
use serde::Serialize;

use super::number::quantity;
use super::run;
use crate::chart::{Dot, Dots, Level, Span, Surface, Unit};

/// What is said of one application of a run.
#[derive(Debug, Serialize)]
pub(super) struct View {
    heading: String,
    rows: Vec<Row>,
    figure: String,
    shapes: Vec<Shape>,
}

/// One way of starting: here, and in 2007 where it was tried.
#[derive(Debug, Serialize)]
struct Row {
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

/// A view for each application of each run that was started in different ways.
pub(super) fn views<'a>(records: impl Iterator<Item = &'a RunRecord>) -> Vec<View> {
    records.flat_map(|record| applications(record).into_iter().map(|one| view(record, &one))).collect()
}

fn view(record: &RunRecord, application: &Application) -> View {
    View {
        heading: format!("{}, {}", application.name, run::name(record)),
        rows: application.starts.iter().map(row).collect(),
        figure: every_start(application),
        shapes: application.shapes.clone(),
    }
}

fn row(starts: &Starts) -> Row {
    let other = |name: &str| starts.others.get(name).copied();
    let number = |name: &str| other(name).map_or_else(String::new, |value| format!("{value:.0}"));
    let wall = starts.wall().map_or_else(String::new, |wall| {
        let interval = wall.interval.as_ref();
        let interval = interval.map_or(String::new(), |ends| format!(" [{:.2}, {:.2}]", ends.low, ends.high));
        format!("{:.2}{interval}", wall.value)
    });
    Row {
        way: way(starts),
        starts: starts.walls.len(),
        wall,
        mean: format!("{:.2} \u{b1} {:.2}", starts.mean, starts.deviation),
        ahead: other("prefetch")
            .filter(|time| *time > 0.0)
            .map_or_else(String::new, |time| format!("{time:.2}")),
        cpu: other("cpu").map_or_else(String::new, |time| format!("{time:.2}")),
        faults: number("major-faults"),
        requests: number("requests"),
        read: other("read").map_or_else(String::new, |bytes| quantity(bytes, "bytes")),
        then: then(starts),
    }
}

fn way(starts: &Starts) -> String {
    let way = &starts.way;
    format!("{}, {}", way.prefetch, common(way))
}

/// The rows of 2007 for the same way.
fn then(starts: &Starts) -> String {
    let same = |row: &&Then| {
        let way = &starts.way;
        (row.prefetch, row.caches, row.own) == (way.prefetch.as_str(), way.caches.as_str(), way.own)
    };
    let waited =
        |row: &Then| row.ticks.map_or_else(String::new, |ticks| format!(", waiting {:.2}", ticks / 100.0));
    let text = |row: &Then| {
        format!("{:.2} \u{b1} {:.2}{} (test {})", row.mean, row.deviation, waited(row), row.test)
    };
    THEN.iter().filter(same).map(text).collect::<Vec<_>>().join("; ")
}

/// Ways stand beside one another as in the table; a colour for each way of reading ahead.
fn every_start(application: &Application) -> String {
    let ways = application.starts.iter().enumerate();
    let groups: IndexSet<&str> = ways.clone().map(|(_, starts)| starts.way.prefetch.as_str()).collect();
    let group = |starts: &Starts| groups.get_index_of(starts.way.prefetch.as_str()).unwrap_or(0);
    let dots = ways.clone().flat_map(|(at, starts)| {
        let (count, group) = (starts.walls.len().max(1) as f64, group(starts));
        let each = starts.walls.iter().enumerate();
        each.map(move |(start, wall)| Dot {
            x: at as f64 + (start as f64 / count - 0.5) * 0.6,
            y: *wall,
            interval: None,
            group,
            name: format!("{}, start {}: {wall:.3} s", way(starts), start + 1),
        })
    });
    let level = |(at, starts): (usize, &Starts)| {
        let value = starts.wall().map(|wall| wall.value)?;
        Some(Level { from: at as f64 - 0.4, to: at as f64 + 0.4, value })
    };
    Dots {
        title: format!("Every start of {}", application.name),
        note: "a dot a start, in the order in which they were made; the line is their median".into(),
        unit: Unit::Plain("s".into()),
        across: "row of the table above, from 0".into(),
        dots: dots.collect(),
        levels: ways.filter_map(level).collect(),
        spans: stretches(&application.starts),
        groups: groups.iter().map(ToString::to_string).collect(),
        ..Dots::default()
    }
    .scene()
    .svg(Surface::Inline)
}

/// What neighbours have in common: what was dropped, and whether the application read ahead by itself.
fn stretches(all: &[Starts]) -> Vec<Span> {
    let mut from = 0;
    let alike = all.chunk_by(|one, next| (&one.way.caches, one.way.own) == (&next.way.caches, next.way.own));
    alike
        .map(|alike| {
            let begin = from;
            from += alike.len();
            let name = alike.first().map(|one| common(&one.way)).unwrap_or_default();
            Span { from: begin as f64 - 0.5, to: from as f64 - 0.5, name }
        })
        .collect()
}

/// `drop 3`, `warm, its own`
fn common(way: &Way) -> String {
    let caches = if way.caches == "warm" { "warm".into() } else { format!("drop {}", way.caches) };
    if way.own { format!("{caches}, its own") } else { caches }
}
