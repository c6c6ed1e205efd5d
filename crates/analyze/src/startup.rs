//! Starts of applications: what each way of reading ahead made of them, and whether the five shapes of 2007 hold today.
//!
//! In 2007 eight tests of a kernel module on OpenOffice said what reading ahead gains. Their figures stand in [`THEN`]; a
//! shape holds here where the interval of a ratio of starts (Hodges and Lehmann) lies on its side of 1. Owns ways and
//! shapes; refuses to measure, and to draw.

mod shapes;
mod then;

use std::collections::BTreeMap;

use perflab_model::{Case, RunRecord, Value};
use perflab_stats::{Estimate, mean, median, median_with_interval, sd};
use serde::Serialize;

pub use shapes::{Shape, Standing};
pub use then::{THEN, Then};

/// Confidence of every interval.
const CONFIDENCE: f64 = 0.95;

/// How a start was made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Way {
    /// `none`, `sync`, `async`, `staged`
    pub prefetch: String,
    /// what was in memory: `3` nothing, `1` names and inodes, `warm` everything
    pub caches: String,
    /// whether the application read ahead by itself
    pub own: bool,
}

/// Every start of one way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Starts {
    /// Which way.
    pub way: Way,
    /// Seconds of each start, in the order in which they were made.
    pub walls: Vec<f64>,
    /// Their mean, s.
    pub mean: f64,
    /// Their standard deviation, s; 0 of one start.
    pub deviation: f64,
    /// Median of each other metric, by its name: `major-faults`, `requests`, `read` (bytes), `prefetch` (s), `cpu` (s), `delay` (s).
    pub others: BTreeMap<String, f64>,
    #[serde(skip)]
    wall: Option<Estimate>,
}

impl Starts {
    /// The median with its interval, s.
    pub fn wall(&self) -> Option<&Estimate> {
        self.wall.as_ref()
    }
}

/// One application's starts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Application {
    /// As the study calls it.
    pub name: String,
    /// Ways, cold ones first.
    pub starts: Vec<Starts>,
    /// What was seen in 2007, and whether it is here; empty where it is not the applications of the catalogue that were started.
    pub shapes: Vec<Shape>,
}

impl Application {
    pub(crate) fn of(&self, prefetch: &str, caches: &str, own: bool) -> Option<&Starts> {
        let is = |way: &Way| way.prefetch == prefetch && way.caches == caches && way.own == own;
        self.starts.iter().find(|starts| is(&starts.way))
    }

    /// Whether it was started so that it reads ahead by itself.
    pub(crate) fn reads_by_itself(&self) -> bool {
        self.starts.iter().any(|starts| starts.way.own)
    }
}

/// The workload of the catalogue that starts applications as the tests of 2007 did.
const AS_THEN: &str = "application-start";

/// The applications of a run that were started in different ways; none where nothing was read ahead.
pub fn applications(record: &RunRecord) -> Vec<Application> {
    let mut all: BTreeMap<(String, bool), BTreeMap<Way, Measured<'_>>> = BTreeMap::new();
    for sample in &record.samples {
        let Some((case, way)) =
            record.manifest.plan.case(sample.case).and_then(|case| Some((case, way(case)?)))
        else {
            continue;
        };
        let measured = all.entry((case.subject(), case.uses == AS_THEN)).or_default().entry(way).or_default();
        measured.entry(&sample.metric).or_default().push(sample.value);
    }
    let several = |ways: &BTreeMap<Way, Measured<'_>>| ways.keys().any(|way| way.prefetch != "none");
    let found = all.into_iter().filter(|(_, ways)| several(ways));
    found.map(|((name, as_then), ways)| application(name, as_then, ways)).collect()
}

/// What takes pages out of memory that no program maps, though nobody is short of it, by the facts of a run: pages that were
/// read ahead may be read twice then, and warm starts may read. It is the place where the kernel says so.
pub fn pages_out(record: &RunRecord) -> Option<&str> {
    let mut damon = record.manifest.facts.0.iter().filter(|(key, _)| key.starts_with("reclaim.damon."));
    let takes = |value: &str| value == "true" || value.split(' ').any(|action| action == "pageout");
    damon.find(|(_, fact)| takes(&fact.value.to_string())).map(|(_, fact)| fact.source.as_str())
}

/// Values by metric.
type Measured<'a> = BTreeMap<&'a str, Vec<f64>>;

fn way(case: &Case) -> Option<Way> {
    let text = |name: &str| case.parameters.get(name).map(ToString::to_string);
    let own = case.parameters.get("own").is_some_and(|own| *own == Value::Text("on".into()));
    Some(Way { prefetch: text("prefetch")?, caches: text("caches")?, own })
}

fn application(name: String, as_then: bool, ways: BTreeMap<Way, Measured<'_>>) -> Application {
    let mut starts: Vec<Starts> =
        ways.into_iter().filter_map(|(way, measured)| starts(way, &measured)).collect();
    starts.sort_by_key(|starts| rank(&starts.way));
    let mut application = Application { name, starts, shapes: Vec::new() };
    if as_then {
        application.shapes = shapes::shapes(&application);
    }
    application
}

/// As the tables of 2007: what was dropped, whether the application read ahead by itself, then how it was read ahead.
fn rank(way: &Way) -> (usize, bool, usize) {
    let place = |all: &[&str], one: &str| all.iter().position(|name| *name == one).unwrap_or(all.len());
    let caches = place(&["3", "1", "warm"], &way.caches);
    (caches, way.own, place(&["none", "async", "sync", "staged", "relaid", "arranged"], &way.prefetch))
}

fn starts(way: Way, measured: &Measured<'_>) -> Option<Starts> {
    let walls = measured.get("wall")?.clone();
    let mean = mean(&walls).ok()?;
    let deviation = sd(&walls).unwrap_or(0.0);
    let others = measured.iter().filter(|(name, _)| **name != "wall");
    let others = others.filter_map(|(name, values)| Some(((*name).to_owned(), median(values).ok()?)));
    let (others, wall) = (others.collect(), median_with_interval(&walls, CONFIDENCE).ok());
    Some(Starts { way, walls, mean, deviation, others, wall })
}

#[cfg(test)]
mod tests;
