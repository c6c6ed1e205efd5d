//! What is known of an imported run besides its logs, and the manifest that says it. Owns what is honest to claim: a
//! case and an iteration only where a benchmark's results are there, and no study that perflab could run again.

use std::path::Path;

use indexmap::IndexMap;
use perflab_model::manifest::Anchor;
use perflab_model::quantity::Span;
use perflab_model::study::{Order, RunRules, WorkloadUse};
use perflab_model::{
    Case, Direction, FORMAT_VERSION, Facts, Manifest, Metric, Nanos, Overhead, Plan, Slot, Status, Study,
    Unit, Value,
};

use super::feed::Feed;
use super::{Options, Took};
use crate::new_run_id;

/// A benchmark that ran while the logs were written: one execution.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Benchmark {
    /// Its name in perflab's catalogue.
    pub(crate) workload: String,
    /// How it was called.
    pub(crate) parameters: IndexMap<String, Value>,
    /// What came out.
    pub(crate) values: Vec<(Metric, f64)>,
    /// From when to when, since 1970, where the files say.
    pub(crate) span: Option<(Nanos, Nanos)>,
}

/// A metric of an imported benchmark.
pub(crate) fn metric(name: &str, unit: &str, direction: Direction, primary: bool) -> Metric {
    Metric { name: name.into(), unit: Unit::new(unit), direction, primary }
}

/// What is known of a run besides its logs.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) reference: Option<String>,
    /// The machine's name.
    pub(crate) target: String,
    /// The other tool's own description of what it did.
    pub(crate) study_text: String,
    pub(crate) facts: Facts,
    pub(crate) benchmark: Option<Benchmark>,
    /// Texts that are kept as they are: name, whether the benchmark wrote it, text.
    pub(crate) texts: Vec<(String, bool, String)>,
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
        id: new_run_id(),
        label: options.label.clone(),
        study: study(story, feeds),
        study_text: story.study_text.clone(),
        study_file: path.to_string_lossy().into(),
        plan: plan(story.benchmark.as_ref()),
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
    let used = |benchmark: &Benchmark| {
        let parameters = benchmark.parameters.clone();
        (benchmark.workload.clone(), WorkloadUse { parameters, ..WorkloadUse::default() })
    };
    let monitor = |feed: &Feed| (feed.series().to_owned(), Span(feed.schema().interval));
    let logs = feeds.iter().filter(|feed| !feed.is_over());
    Study {
        title: story.title.clone(),
        description: Some(story.description.clone()),
        reference: story.reference.clone(),
        values: IndexMap::new(),
        run: RunRules { iterations: 1, warmup: 0, order: Order::Sequential, ..RunRules::default() },
        workload: story.benchmark.iter().map(used).collect(),
        factor: IndexMap::new(),
        monitors: logs.map(monitor).collect(),
        facts: None,
        metric: IndexMap::new(),
        disk: None,
        target: IndexMap::new(),
    }
}

/// One case with one iteration where a benchmark's results are there; else none: nothing was run that is known.
fn plan(benchmark: Option<&Benchmark>) -> Plan {
    let order = "sequential".into();
    let Some(benchmark) = benchmark else { return Plan { order, ..Plan::default() } };
    let case = Case {
        workload: benchmark.workload.clone(),
        uses: benchmark.workload.clone(),
        point: IndexMap::new(),
        parameters: benchmark.parameters.clone(),
        environment: IndexMap::new(),
        levels: IndexMap::new(),
    };
    let metrics = benchmark.values.iter().map(|(metric, _)| metric.clone()).collect();
    Plan {
        order,
        cases: vec![case],
        slots: vec![Slot { case: 0, iteration: 0, block: 0, warmup: false, boot: 0 }],
        metrics: IndexMap::from([(benchmark.workload.clone(), metrics)]),
        ..Plan::default()
    }
}
