//! What is known of an imported run besides its logs, and the manifest that says it. Owns what is honest to claim: a
//! case and an iteration only where a benchmark's results are there, and no study that perflab could run again.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use perflab_model::manifest::Anchor;
use perflab_model::quantity::Span;
use perflab_model::study::{Order, RunRules, WorkloadUse};
use perflab_model::{
    Direction, FORMAT_VERSION, Facts, Manifest, Metric, Nanos, Overhead, Status, Study, Unit, Value,
};

use super::feed::Feed;
use super::results::Results;
use super::{Options, Took};
use crate::new_run_id;

/// A metric of an imported benchmark.
pub(crate) fn metric(name: &str, unit: &str, direction: Direction, primary: bool) -> Metric {
    Metric { name: name.into(), unit: Unit::new(unit), direction, primary }
}

/// What is known of a run besides its logs.
#[derive(Default)]
pub(crate) struct Story {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) reference: Option<String>,
    /// The machine's name.
    pub(crate) target: String,
    /// The other tool's own description of what it did.
    pub(crate) study_text: String,
    pub(crate) facts: Facts,
    pub(crate) results: Results,
    /// When it all began, since 1970, where no result says it of itself.
    pub(crate) begun: Option<Nanos>,
    /// Texts that are kept as they are: name, whether the benchmark wrote it, text.
    pub(crate) texts: Vec<(String, bool, String)>,
    /// A recording of disk requests, as a file that the run takes.
    pub(crate) recording: Option<PathBuf>,
    /// What was taken of files that are no logs.
    pub(crate) took: Vec<Took>,
    /// What a person should know: what, and what to do.
    pub(crate) notes: Vec<(String, String)>,
}

/// The manifest of an import that begins at `anchor`.
pub(crate) fn manifest(
    path: &Path,
    options: &Options,
    story: &Story,
    feeds: &[Feed],
    anchor: Nanos,
) -> Manifest {
    Manifest {
        format: FORMAT_VERSION,
        writer: concat!("perflab ", env!("CARGO_PKG_VERSION")).into(),
        id: options.id.clone().unwrap_or_else(new_run_id),
        label: options.label.clone(),
        study: study(story, feeds),
        study_text: story.study_text.clone(),
        study_file: path.to_string_lossy().into(),
        plan: story.results.plan(),
        facts: story.facts.clone(),
        boot_id: String::new(),
        target: story.target.clone(),
        targets: Vec::new(),
        anchor: Anchor { monotonic: Nanos(0), realtime: anchor },
        status: Status::Running,
        overhead: Overhead::default(),
    }
}

/// The study that it was: what ran, and what was recorded. Nothing of it can be run again by perflab.
fn study(story: &Story, feeds: &[Feed]) -> Study {
    let used = |(workload, parameters): (&str, &IndexMap<String, Value>)| {
        (workload.to_owned(), WorkloadUse { parameters: parameters.clone(), ..WorkloadUse::default() })
    };
    let monitor = |feed: &Feed| (feed.series().to_owned(), Span(feed.schema().interval));
    let logs = feeds.iter().filter(|feed| !feed.is_over());
    Study {
        title: story.title.clone(),
        description: Some(story.description.clone()),
        reference: story.reference.clone(),
        values: IndexMap::new(),
        run: RunRules { iterations: 1, warmup: 0, order: Order::Sequential, ..RunRules::default() },
        workload: story.results.workloads().map(used).collect(),
        factor: IndexMap::new(),
        monitors: logs.map(monitor).collect(),
        facts: None,
        metric: IndexMap::new(),
        profile: None,
        io: None,
        disk: None,
        target: IndexMap::new(),
    }
}
