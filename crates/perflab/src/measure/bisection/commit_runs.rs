//! Commits measured: a study whose one more factor is the commit, run as any other, and its values block by block.

use std::collections::{BTreeMap, BTreeSet};

use perflab_archive::RunDir;
use perflab_model::resource_use::ResourceMetric;
use perflab_model::study::{Factor, FactorKind, FactorLevel, LostTargetPolicy, SlotOrder, TomlSource};
use perflab_model::{Direction, Manifest, Outcome, RunRecord, Scalar, Study};
use perflab_workload::Catalogue;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::failure::{Failure, UsageError};
use crate::measure::bisection::commit_builds::TREE_VARIABLE;
use crate::measure::run::{self, RunArgs};

/// The factor whose levels are commits.
pub const FACTOR: &str = "commit";

/// The factor of kernels, in a study's text; its levels are exchanged for commits.
const KERNEL_FACTOR: &str =
    "[factor.commit]\nkind = \"target\"\nkey = \"kernel\"\nlevels = [\"linux-guest\", \"debian-cloud\"]\n";

/// The guest of a study that has no target.
const KERNEL_TARGET: &str = "[target.guest]\nkind = \"vm\"\n";

/// How labels of such runs begin: they are no part of a history.
pub const LABEL: &str = "bisect:";

/// A study that is run at commits.
#[derive(Debug)]
pub struct CommitStudy {
    /// Its text.
    pub source: TomlSource,
    study: Study,
    args: RunArgs,
    metric: Option<String>,
    /// Whether commits are kernels of the study's guests; else programs on this host or in its targets.
    of_kernels: bool,
}

/// A commit as a level of the study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitLevel {
    /// Its name in tables.
    pub name: String,
    /// Its folder, or its kernel.
    pub value: String,
}

/// What a run says of its commits.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitValues {
    /// The metric.
    pub metric: BisectedMetric,
    /// A row for each block in which each commit gave a value, a value a commit, in their order.
    pub blocks: Vec<Vec<f64>>,
    /// Commits that gave no value at all, by their place, and why.
    pub failed: Vec<(usize, String)>,
    /// How long one boot, or start, of a commit took.
    pub boot_seconds: f64,
    /// How long the run took besides.
    pub other_seconds: f64,
}

/// The metric that is bisected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BisectedMetric {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which way is good.
    pub direction: Direction,
}

impl CommitStudy {
    /// A study with the choices that the arguments make of it.
    ///
    /// # Errors
    /// What is wrong with the study; a factor `commit` of its own.
    pub fn new(
        source: TomlSource,
        args: RunArgs,
        metric: Option<String>,
        of_kernels: bool,
    ) -> Result<Self, Failure> {
        let source = if of_kernels { with_kernel_factor(&source) } else { source };
        let study = source.parse_study()?;
        run::note_study_warnings(&source, &study);
        if !of_kernels && study.factor.contains_key(FACTOR) {
            let message = format!("{}: it has a factor `{FACTOR}` already", source.file);
            return Err(UsageError::new(message, "rename it: bisect adds one of that name").into());
        }
        Ok(CommitStudy { source, study, args, metric, of_kernels })
    }

    /// The run that measures these commits in so many blocks.
    ///
    /// # Errors
    /// What is wrong with the study; more than one case a commit.
    pub fn plan(
        &self,
        context: &App,
        commits: &[CommitLevel],
        blocks: usize,
    ) -> Result<(Manifest, Catalogue), Failure> {
        let mut study = self.study.clone();
        let level = |commit: &CommitLevel| {
            FactorLevel::named(commit.name.clone(), Scalar::Text(commit.value.clone()))
        };
        let (kind, key) = match self.of_kernels {
            true => (FactorKind::Target, "kernel"),
            false => (FactorKind::Environment, TREE_VARIABLE),
        };
        study.factor.insert(
            FACTOR.into(),
            Factor {
                kind,
                key: Some(key.into()),
                workload: None,
                on: None,
                levels: commits.iter().map(level).collect::<Vec<_>>().into(),
            },
        );
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
        if study.target.is_empty() {
            study.run.iterations = blocks;
        } else {
            study.run.boots = blocks;
            // A kernel that dies tells of its commit, not of the run.
            study.run.on_lost_target = LostTargetPolicy::Continue;
        }
        study.run.until = None;
        study.run.order = SlotOrder::Randomised;
        study.run.layout = 1;
        study.run.seed = None;
        let planned = run::plan_manifest(context, &self.source, study, &self.args)?;
        self.check_single_case(&planned.0)?;
        Ok(planned)
    }

    /// One value a commit and block is bisected.
    fn check_single_case(&self, manifest: &Manifest) -> Result<(), Failure> {
        let plan = &manifest.plan;
        let cases: BTreeSet<String> = plan.cases.iter().map(|case| case.label_without(FACTOR)).collect();
        if cases.len() > 1 {
            let listed: Vec<&str> = cases.iter().map(String::as_str).take(8).collect();
            let message = format!("{} has {} cases: {}", self.source.file, cases.len(), listed.join("; "));
            return Err(UsageError::new(message, "choose one: --only WORKLOAD, --set FACTOR=LEVEL").into());
        }
        let Some(metric) = &self.metric else { return Ok(()) };
        Ok(check_metric_known(manifest, metric, &self.source.file)?)
    }

    fn unknown_metric<'a>(&self, metric: &str, known: impl Iterator<Item = &'a str> + Clone) -> UsageError {
        unknown_metric(&self.source.file, metric, known)
    }

    /// What a run says of its commits.
    ///
    /// # Errors
    /// It cannot be read, or has no such metric.
    pub fn read_values(&self, run: &RunDir, commits: &[CommitLevel]) -> Result<CommitValues, Failure> {
        let record = run.read_record()?;
        let metric = self.find_metric(&record)?;
        let is_of = |case: u32, commit: &CommitLevel| {
            record.manifest.plan.case(case).and_then(|case| case.levels.get(FACTOR)) == Some(&commit.name)
        };
        let by_boot = !self.study.target.is_empty();
        // Of each commit: values by block. Each boot has a number of its own; the commit's first one is of the first block.
        let values = commits.iter().map(|commit| {
            let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
            let slots = record.manifest.plan.slots.iter().filter(|slot| is_of(slot.case, commit));
            let boots: BTreeSet<u32> = slots.map(|slot| slot.boot).collect();
            let block_of_boot = |boot: u32| boots.range(..boot).count() as u32;
            let own = record.samples.iter().filter(|sample| sample.metric.as_str() == metric.name);
            for sample in own.filter(|sample| is_of(sample.case, commit)) {
                let block = if by_boot { block_of_boot(sample.boot) } else { sample.iteration };
                blocks.entry(block).or_default().push(sample.value);
            }
            blocks
        });
        let values: Vec<BTreeMap<u32, Vec<f64>>> = values.collect();
        let numbers: BTreeSet<u32> = values.iter().flat_map(BTreeMap::keys).copied().collect();
        let block_of = |number: &u32| -> Option<Vec<f64>> {
            values.iter().map(|blocks| perflab_stats::median(blocks.get(number)?).ok()).collect()
        };
        let failed =
            commits.iter().enumerate().filter(|(at, _)| values.get(*at).is_none_or(BTreeMap::is_empty));
        let failed = failed.map(|(at, commit)| (at, failure_reason(&record, |case| is_of(case, commit))));
        let (boot_seconds, other_seconds) = split_time(&record, commits.len(), numbers.len(), by_boot);
        Ok(CommitValues {
            blocks: numbers.iter().filter_map(block_of).collect(),
            failed: failed.collect(),
            boot_seconds,
            other_seconds,
            metric,
        })
    }

    /// The metric that was named, else the first that decides.
    fn find_metric(&self, record: &RunRecord) -> Result<BisectedMetric, Failure> {
        let mut samples = record.samples.iter();
        let found = match &self.metric {
            Some(name) => samples.find(|sample| sample.metric.as_str() == name),
            None => samples.find(|sample| sample.primary),
        };
        if let Some(sample) = found {
            return Ok(BisectedMetric {
                name: sample.metric.to_string(),
                unit: sample.unit.to_string(),
                direction: sample.direction,
            });
        }
        let known: BTreeSet<&str> = record.samples.iter().map(|sample| sample.metric.as_str()).collect();
        match (&self.metric, known.is_empty()) {
            (Some(name), false) => Err(self.unknown_metric(name, known.iter().copied()).into()),
            (None, false) => {
                let known: Vec<&str> = known.into_iter().collect();
                let message = format!("{} has no metric that decides", self.source.file);
                Err(UsageError::new(message, format!("name one by --metric: {}", known.join(", "))).into())
            }
            // Nothing was measured at all: who failed is known.
            (_, true) => Ok(BisectedMetric {
                name: self.metric.clone().unwrap_or_default(),
                unit: String::new(),
                direction: Direction::Neither,
            }),
        }
    }
}

fn unknown_metric<'a>(study: &str, metric: &str, known: impl Iterator<Item = &'a str> + Clone) -> UsageError {
    let hint = perflab_model::problem::suggest_name(metric, known);
    UsageError::new(format!("{study} has no metric `{metric}`"), hint)
}

/// Refuses a metric that a study does not have; what a program names itself is known once it has run.
///
/// # Errors
/// It is unknown.
pub fn check_metric_known(manifest: &Manifest, metric: &str, study: &str) -> Result<(), UsageError> {
    let metrics = manifest.plan.metrics.values().flatten();
    let known: BTreeSet<&str> = metrics.map(|metric| metric.name.as_str()).collect();
    let names_itself = known.iter().any(|name| name.contains('*'));
    match known.contains(metric) || ResourceMetric::is_name(metric) || names_itself {
        true => Ok(()),
        false => Err(unknown_metric(study, metric, known.iter().copied())),
    }
}

/// The study with kernels as levels, and a guest to boot them where it has no target. Guests need a kernel, so that the text as it is
/// may be refused.
fn with_kernel_factor(source: &TomlSource) -> TomlSource {
    let has_target = source.parse_study().map_or(true, |study| !study.target.is_empty());
    let target = if has_target { "" } else { KERNEL_TARGET };
    TomlSource::new(source.file.clone(), format!("{}\n{KERNEL_FACTOR}{target}", source.text))
}

/// Why the iterations of some cases failed: the first reason.
pub fn failure_reason(record: &RunRecord, is_own: impl Fn(u32) -> bool) -> String {
    let failed = record.iterations.iter().find_map(|iteration| {
        let slot = record.manifest.plan.slots.get(iteration.slot as usize)?;
        let reason = is_own(slot.case).then(|| iteration.outcome.failure_reason())?;
        reason.map(|reason| reason.to_string())
    });
    let mut reason = failed.unwrap_or_else(|| "gave no value".into()).replace('\n', "; ");
    reason.truncate(reason.floor_char_boundary(400));
    format!("does not run: {reason}")
}

/// Seconds of one boot or start, and those of the run besides.
fn split_time(record: &RunRecord, commits: usize, blocks: usize, by_boot: bool) -> (f64, f64) {
    let ended = |outcome: &Outcome| outcome.failure_reason().is_none();
    let spent: f64 = record
        .iterations
        .iter()
        .filter(|iteration| ended(&iteration.outcome))
        .map(|iteration| iteration.end.since(iteration.start).seconds())
        .sum();
    let boots = (commits * blocks).max(1) as f64;
    let wall = record.manifest.overhead.wall.seconds();
    // A boot is what starts anew.
    let spent = if by_boot { wall } else { spent };
    (spent / boots, (wall - spent).max(0.0))
}
