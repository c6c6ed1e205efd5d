//! What is known of an imported run besides its logs, and the manifest that says it. Owns what is honest to claim: a
//! case and an iteration only where a benchmark's results are there, and no study that perflab could run again.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use perflab_model::manifest::ClockAnchor;
use perflab_model::quantity::DurationText;
use perflab_model::study::{RunRules, SlotOrder, WorkloadSpec};
use perflab_model::{
    Direction, FORMAT_VERSION, Facts, Manifest, Metric, Nanos, Overhead, RunStatus, Scalar, Study, Unit,
};

use super::feed::LogStream;
use super::results::BenchmarkResults;
use super::{FileReport, ImportOptions};
use crate::new_run_id;

/// A metric of an imported benchmark.
pub(crate) fn imported_metric(name: &str, unit: &str, direction: Direction, primary: bool) -> Metric {
    Metric { name: name.into(), unit: Unit::new(unit), direction, primary }
}

/// What is known of a run besides its logs.
#[derive(Default)]
pub(crate) struct RunMetadata {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) reference: Option<String>,
    /// The machine's name.
    pub(crate) target: String,
    /// The other tool's own description of what it did.
    pub(crate) study_text: String,
    pub(crate) facts: Facts,
    pub(crate) results: BenchmarkResults,
    /// When it all began, since 1970, where no result says it of itself.
    pub(crate) begun: Option<Nanos>,
    /// Texts that are kept as they are: name, whether the benchmark wrote it, text.
    pub(crate) texts: Vec<(String, bool, String)>,
    /// A recording of disk requests, as a file that the run takes.
    pub(crate) recording: Option<PathBuf>,
    /// What was taken of files that are no logs.
    pub(crate) took: Vec<FileReport>,
    /// What a person should know: what, and what to do.
    pub(crate) notes: Vec<(String, String)>,
}

/// The manifest of an import that begins at `anchor`.
pub(crate) fn import_manifest(
    path: &Path,
    options: &ImportOptions,
    story: &RunMetadata,
    feeds: &[LogStream],
    anchor: Nanos,
) -> Manifest {
    Manifest {
        format: FORMAT_VERSION,
        writer: concat!("perflab ", env!("CARGO_PKG_VERSION")).into(),
        id: options.id.clone().unwrap_or_else(new_run_id),
        label: options.label.clone(),
        study: import_study(story, feeds),
        study_text: story.study_text.clone(),
        study_file: path.to_string_lossy().into(),
        plan: story.results.to_plan(),
        facts: story.facts.clone(),
        boot_id: String::new(),
        target: story.target.clone(),
        targets: Vec::new(),
        anchor: ClockAnchor { monotonic: Nanos(0), realtime: anchor },
        status: RunStatus::Running,
        overhead: Overhead::default(),
    }
}

/// The study that it was: what ran, and what was recorded. Nothing of it can be run again by perflab.
fn import_study(story: &RunMetadata, feeds: &[LogStream]) -> Study {
    let used = |(workload, parameters): (&str, &IndexMap<String, Scalar>)| {
        (workload.to_owned(), WorkloadSpec { parameters: parameters.clone(), ..WorkloadSpec::default() })
    };
    let monitor =
        |feed: &LogStream| (feed.series_name().to_owned(), DurationText(feed.series_schema().interval));
    let logs = feeds.iter().filter(|feed| !feed.is_finished());
    Study {
        title: story.title.clone(),
        description: Some(story.description.clone()),
        reference: story.reference.clone(),
        values: IndexMap::new(),
        run: RunRules { iterations: 1, warmup: 0, order: SlotOrder::Sequential, ..RunRules::default() },
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
