//! Which samples of all sides belong together, what the sides must share, and the factors that set them apart.
//!
//! Samples are aligned by case and metric; a metric that changed its unit is another metric. Sides that cannot be
//! compared are an error that names what each has.

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use indexmap::{Equivalent, IndexMap, IndexSet};
use perflab_model::study::StoppingRule;
use perflab_model::{
    Case, Direction, Metric, Nanos, Outcome, PlannedLayout, RunRecord, Sample, SharedStr, UNKNOWN_PARAMETER,
    Unit,
};

use crate::compare::comparison::{ComparedRun, SamplePoint, SampleValues};
use crate::compare::diagnostic::ComparisonDiagnostic;
use crate::compare::failures::FailureCount;
use crate::compare::options::{AnalysisOptions, ComparisonSide};
use crate::error::AnalyzeError;
use crate::method_description::MethodDescription;

/// A metric as it is lined up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct MetricKey {
    pub(crate) name: SharedStr,
    pub(crate) unit: Unit,
}

#[derive(Hash)]
struct MetricRef<'a> {
    name: &'a str,
    unit: &'a Unit,
}

impl Equivalent<MetricKey> for MetricRef<'_> {
    fn equivalent(&self, key: &MetricKey) -> bool {
        *self.name == *key.name && *self.unit == key.unit
    }
}

/// A case without what is compared.
#[derive(Debug, Clone)]
pub(crate) struct CaseIdentity {
    pub(crate) workload: String,
    pub(crate) point: IndexMap<String, String>,
}

impl CaseIdentity {
    fn has_unknown_parameter(&self) -> bool {
        self.point.values().any(|value| value == UNKNOWN_PARAMETER)
    }

    /// Whether it may be that case, but for what it does not tell.
    fn may_be(&self, other: &CaseIdentity) -> bool {
        let is_alike = |(name, value): (&String, &String)| {
            other.point.get(name).is_some_and(|other| value == UNKNOWN_PARAMETER || value == other)
        };
        self.workload == other.workload
            && self.point.len() == other.point.len()
            && self.point.iter().all(is_alike)
    }
}

/// What is the same on all sides: names get their number here, in the order in which they are first met.
#[derive(Debug, Default)]
pub(crate) struct SampleIndex {
    pub(crate) subjects: IndexMap<String, CaseIdentity>,
    pub(crate) metrics: IndexSet<MetricKey>,
    pub(crate) runs: Vec<ComparedRun>,
    machines: IndexSet<String>,
    boots: IndexSet<(String, u32)>,
    unknown_boots: BTreeSet<u32>,
    layouts: IndexSet<PlannedLayout>,
    iteration_layouts: HashMap<IterationKey, usize>,
}

/// Which cases belong to a side, and what their names leave out.
#[derive(Debug, Default)]
pub(crate) struct CaseSelection {
    /// Factor and level that a case must have.
    pub(crate) level: Option<(String, String)>,
    /// Factors that are not part of a case's name, because they are what is compared.
    pub(crate) hidden: Vec<String>,
}

/// All values of one metric in one case on one side, in order of time.
#[derive(Debug, Clone)]
pub(crate) struct MetricSamples {
    pub(crate) direction: Direction,
    /// Another direction that its values were given, too.
    pub(crate) other_direction: Option<Direction>,
    pub(crate) primary: bool,
    pub(crate) margin: Option<f64>,
    /// Whether its values are assumed to be the same each time.
    pub(crate) exact: bool,
    pub(crate) points: SampleValues,
    pub(crate) not_numbers: usize,
    pub(crate) warnings: Vec<ComparisonDiagnostic>,
}

/// Run, boot and iteration: what is repeated within a case.
pub(crate) type IterationKey = (u32, u32, u32);

/// Iterations of a case that were measured, warm-ups and those that the user stopped left out.
#[derive(Debug, Default, Clone)]
pub(crate) struct CaseIterations {
    /// How many there were; on several targets, one that all took part in.
    pub(crate) count: usize,
    /// Those that failed or ran out of time, on any target.
    pub(crate) failed: BTreeSet<IterationKey>,
    /// Why the first one did.
    pub(crate) reason: String,
    /// How often it failed in each boot of each run, by boot and run.
    pub(crate) by_run: BTreeMap<(u32, u32), FailureCount>,
}

/// One side, lined up: (subject, metric) -> values.
#[derive(Debug)]
pub(crate) struct AlignedSide {
    pub(crate) name: String,
    pub(crate) cells: HashMap<(usize, usize), MetricSamples>,
    /// What cases declare of which no iteration gave a value, though some failed: (subject, metric), without values.
    pub(crate) declared: HashMap<(usize, usize), MetricSamples>,
    pub(crate) iterations: BTreeMap<usize, CaseIterations>,
    pub(crate) subjects: IndexSet<usize>,
}

impl SampleIndex {
    /// Lines up one side.
    pub(crate) fn align_side(
        &mut self,
        side: &ComparisonSide,
        name: &str,
        selection: &CaseSelection,
        options: &AnalysisOptions,
    ) -> AlignedSide {
        let mut table = AlignedSide {
            name: name.into(),
            cells: HashMap::new(),
            declared: HashMap::new(),
            iterations: BTreeMap::new(),
            subjects: IndexSet::new(),
        };
        for run in &side.runs {
            let number = self.run_number(run, &side.name);
            let cases = run.manifest.plan.cases.iter();
            let subjects: Vec<Option<usize>> =
                cases.map(|case| self.subject_number(case, selection, options)).collect();
            table.subjects.extend(subjects.iter().flatten());
            self.add_samples(&mut table, run, number, &subjects, options);
            self.count_iterations(&mut table, run, number, &subjects, options);
            self.add_layouts(run, number, options);
        }
        for run in &side.runs {
            self.add_declared_metrics(&mut table, run, selection, options);
        }
        for cell in table.cells.values_mut() {
            let points = cell.points.to_mut();
            points.sort_by_key(|point| (point.at, point.run, point.iteration));
            points.shrink_to_fit();
        }
        table
    }

    fn run_number(&mut self, run: &RunRecord, side: &str) -> u32 {
        let known = self.runs.iter().position(|known| known.id == run.manifest.id);
        let number = known.unwrap_or(self.runs.len());
        if known.is_none() {
            let run = ComparedRun::from_record(run, side);
            self.machines.insert(run.machine.clone());
            self.runs.push(run);
        }
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    fn subject_number(
        &mut self,
        case: &Case,
        selection: &CaseSelection,
        options: &AnalysisOptions,
    ) -> Option<usize> {
        let level = selection.level.as_ref();
        let has_level = level.is_none_or(|(factor, level)| case.levels.get(factor) == Some(level));
        if !has_level || !options.includes_case(case) {
            return None;
        }
        let visible: Vec<_> =
            case.levels.iter().filter(|(factor, _)| !selection.hidden.contains(factor)).collect();
        let name = visible
            .iter()
            .fold(case.label_without_levels(), |text, (factor, level)| format!("{text} {factor}={level}"));
        if let Some(number) = self.subjects.get_index_of(&name) {
            return Some(number);
        }
        let parameters = case.point.iter().map(|(name, value)| (name.clone(), value.to_string()));
        let levels = visible.into_iter().map(|(factor, level)| (factor.clone(), level.clone()));
        let subject =
            CaseIdentity { workload: case.workload.clone(), point: parameters.chain(levels).collect() };
        Some(self.subjects.insert_full(name, subject).0)
    }

    fn add_samples(
        &mut self,
        table: &mut AlignedSide,
        run: &RunRecord,
        number: u32,
        subjects: &[Option<usize>],
        options: &AnalysisOptions,
    ) {
        let alike = |one: &Sample, next: &Sample| {
            (one.case, one.boot) == (next.case, next.boot)
                && (&one.metric, &one.unit) == (&next.metric, &next.unit)
        };
        let mut boots = HashMap::new();
        // Values of one cell stand together more often than not: names are looked up once for all of them.
        for samples in crate::fairness::average_over_targets(&run.samples).chunk_by(alike) {
            let Some(sample) = samples.first() else { continue };
            let subject = subjects.get(sample.case as usize).copied().flatten();
            let Some(subject) = subject.filter(|_| options.includes_metric(sample)) else { continue };
            let metric = self.metric_number(sample);
            let boot =
                *boots.entry(sample.boot).or_insert_with(|| self.boot_number(run, sample.boot, options));
            let cell = table
                .cells
                .entry((subject, metric))
                .or_insert_with(|| MetricSamples::from_sample(sample, run));
            if sample.direction != cell.direction {
                cell.other_direction = Some(sample.direction);
            }
            let points = cell.points.to_mut();
            points.reserve(samples.len());
            let before = points.len();
            let numbers = samples.iter().filter(|sample| sample.value.is_finite());
            points.extend(numbers.map(|sample| SamplePoint { boot, ..sample_point(sample, run, number) }));
            cell.not_numbers += samples.len() - (points.len() - before);
        }
    }

    fn count_iterations(
        &mut self,
        table: &mut AlignedSide,
        run: &RunRecord,
        number: u32,
        subjects: &[Option<usize>],
        options: &AnalysisOptions,
    ) {
        let slots = &run.manifest.plan.slots;
        let mut counted = BTreeSet::new();
        // On one machine an iteration is recorded once.
        let has_targets = run.iterations.iter().any(|iteration| iteration.target.is_some());
        // A run that the user stopped did not fail.
        for iteration in run.iterations.iter().filter(|one| one.outcome != Outcome::Interrupted) {
            let Some(slot) = slots.get(iteration.slot as usize).filter(|slot| !slot.warmup) else { continue };
            let Some(subject) = subjects.get(slot.case as usize).copied().flatten() else { continue };
            let boot = self.boot_number(run, slot.boot, options);
            let iterations = table.iterations.entry(subject).or_default();
            let counts = iterations.by_run.entry((boot, number)).or_default();
            let is_new = !has_targets || counted.insert(iteration.slot);
            iterations.count += usize::from(is_new);
            counts.of += usize::from(is_new);
            let Some(reason) = iteration.outcome.failure_reason() else { continue };
            if iterations.failed.is_empty() {
                iterations.reason = reason;
            }
            counts.failed += usize::from(iterations.failed.insert((number, boot, slot.iteration)));
        }
    }

    /// Notes what cases without a single value would have measured: the metrics that decide, else all.
    fn add_declared_metrics(
        &mut self,
        table: &mut AlignedSide,
        run: &RunRecord,
        selection: &CaseSelection,
        options: &AnalysisOptions,
    ) {
        let with_values = table.subjects_with_values();
        for case in &run.manifest.plan.cases {
            let Some(subject) = self.subject_number(case, selection, options) else { continue };
            if with_values.contains(&subject) || !table.has_failures(subject) {
                continue;
            }
            let all = run.manifest.plan.metrics.get(&case.uses).map_or(&[][..], Vec::as_slice);
            let has_primary = all.iter().any(|metric| metric.primary);
            let chosen = all.iter().filter(|metric| metric.primary || !has_primary);
            for metric in chosen.filter(|metric| options.includes_metric_named(&metric.name, metric.primary))
            {
                let name = SharedStr::from(&metric.name);
                let number = self.metrics.insert_full(MetricKey { name, unit: metric.unit.clone() }).0;
                table
                    .declared
                    .entry((subject, number))
                    .or_insert_with(|| MetricSamples::declared(metric, run));
            }
        }
    }

    /// Notes under which layout each iteration ran; one with the same padding and seed is the same in all runs.
    fn add_layouts(&mut self, run: &RunRecord, number: u32, options: &AnalysisOptions) {
        let plan = &run.manifest.plan;
        for slot in plan.slots.iter().filter(|slot| !slot.warmup) {
            let Some(layout) = plan.slot_layout(slot) else { continue };
            let layout = self.layouts.insert_full(layout).0;
            let boot = self.boot_number(run, slot.boot, options);
            self.iteration_layouts.insert((number, boot, slot.iteration), layout);
        }
    }

    /// Gives failures of cases that do not tell a parameter to the one case with values that they can be of, on any side.
    pub(crate) fn join_unknown_parameters(&self, tables: &mut [AlignedSide]) {
        let with_values: BTreeSet<usize> =
            tables.iter().flat_map(AlignedSide::subjects_with_values).collect();
        let known = |subject: usize| self.subjects.get_index(subject).map(|(_, identity)| identity);
        for table in tables {
            let unknown: Vec<usize> = table
                .iterations
                .keys()
                .filter(|subject| known(**subject).is_some_and(CaseIdentity::has_unknown_parameter))
                .copied()
                .collect();
            for subject in unknown {
                let Some(identity) = known(subject) else { continue };
                let mut candidates = with_values
                    .iter()
                    .filter(|other| known(**other).is_some_and(|other| identity.may_be(other)));
                if let (Some(only), None) = (candidates.next(), candidates.next()) {
                    table.move_failures(subject, *only);
                }
            }
        }
    }

    fn metric_number(&mut self, sample: &Sample) -> usize {
        let requested = MetricRef { name: &sample.metric, unit: &sample.unit };
        let known = self.metrics.get_index_of(&requested);
        known.unwrap_or_else(|| {
            self.metrics.insert_full(MetricKey { name: sample.metric.clone(), unit: sample.unit.clone() }).0
        })
    }

    /// The number of a boot, as [`Manifest::boot_key`](perflab_model::Manifest::boot_key) tells them apart.
    fn boot_number(&mut self, run: &RunRecord, boot: u32, options: &AnalysisOptions) -> u32 {
        let manifest = &run.manifest;
        let number = self.boots.insert_full(manifest.boot_key(boot, options.boots_differ)).0;
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        if !options.boots_differ && !manifest.has_known_boots() {
            self.unknown_boots.insert(number);
        }
        number
    }

    /// The machine that a run was measured on, by its number over the whole comparison; none where that is unknown.
    pub(crate) fn machine_of(&self, run: u32) -> Option<u32> {
        let machine = &self.runs.get(run as usize)?.machine;
        let number = self.machines.get_index_of(machine).filter(|_| !machine.is_empty())?;
        u32::try_from(number).ok()
    }

    /// Whether it is the boot of runs of which nobody knows how many boots they are of.
    pub(crate) fn is_unknown_boot(&self, boot: u32) -> bool {
        self.unknown_boots.contains(&boot)
    }

    /// The layout that an iteration ran under, by its number over the whole comparison.
    fn layout_of(&self, point: &SamplePoint) -> Option<usize> {
        self.iteration_layouts.get(&point.iteration_key()).copied()
    }

    /// Whether a layout moves nothing.
    pub(crate) fn is_as_built(&self, layout: usize) -> bool {
        self.layouts.get_index(layout).is_some_and(|layout| layout.is_as_built())
    }

    /// Whether a run's iterations were in randomised complete blocks.
    pub(crate) fn has_blocks(&self, run: u32) -> bool {
        self.runs.get(run as usize).is_some_and(|run| perflab_model::plan::is_blocked_order(&run.order))
    }

    /// Whether a run was looked at after every block, to end once its levels were decided.
    pub(crate) fn is_looked_at(&self, run: u32) -> bool {
        let until = self.runs.get(run as usize).and_then(|run| run.until);
        self.has_blocks(run) && until.is_some_and(StoppingRule::is_decided)
    }
}

impl AlignedSide {
    /// Whether an iteration of the case failed.
    pub(crate) fn has_failures(&self, subject: usize) -> bool {
        self.iterations.get(&subject).is_some_and(|iterations| !iterations.failed.is_empty())
    }

    /// Whether an iteration of any case failed.
    fn has_any_failures(&self) -> bool {
        self.iterations.values().any(|iterations| !iterations.failed.is_empty())
    }

    /// Counts the failures of a case as those of another.
    fn move_failures(&mut self, from: usize, to: usize) {
        let Some(moved) = self.iterations.remove(&from) else { return };
        self.declared.retain(|(subject, _), _| *subject != from);
        self.subjects.shift_remove(&from);
        self.subjects.insert(to);
        let target = self.iterations.entry(to).or_default();
        if target.failed.is_empty() {
            target.reason = moved.reason;
        }
        target.count += moved.count;
        target.failed.extend(moved.failed);
        for (place, count) in moved.by_run {
            *target.by_run.entry(place).or_default() += count;
        }
    }

    /// Whether any case has a value.
    fn has_any_values(&self) -> bool {
        self.cells.values().any(MetricSamples::has_values)
    }

    /// The cases that have a value.
    fn subjects_with_values(&self) -> BTreeSet<usize> {
        self.cells.iter().filter(|(_, cell)| cell.has_values()).map(|((subject, _), _)| *subject).collect()
    }

    /// Whether a case that failed here has results there.
    fn fails_where_other_has_results(&self, other: &AlignedSide) -> bool {
        let with_values = other.subjects_with_values();
        let failed = self.iterations.iter().filter(|(_, iterations)| !iterations.failed.is_empty());
        failed.into_iter().any(|(subject, _)| with_values.contains(subject) || other.has_failures(*subject))
    }
}

impl MetricSamples {
    fn from_sample(sample: &Sample, run: &RunRecord) -> Self {
        MetricSamples {
            direction: sample.direction,
            other_direction: None,
            primary: sample.primary,
            margin: run.manifest.plan.margins.get(sample.metric.as_str()).copied(),
            exact: run.manifest.plan.exact.iter().any(|name| *name == sample.metric.as_str()),
            points: SampleValues::default(),
            not_numbers: 0,
            warnings: Vec::new(),
        }
    }

    /// A metric that a case declares.
    fn declared(metric: &Metric, run: &RunRecord) -> Self {
        let plan = &run.manifest.plan;
        MetricSamples {
            direction: metric.direction,
            other_direction: None,
            primary: metric.primary,
            margin: plan.margins.get(&metric.name).copied(),
            exact: plan.exact.contains(&metric.name),
            points: SampleValues::default(),
            not_numbers: 0,
            warnings: Vec::new(),
        }
    }

    /// The metric without its values.
    pub(crate) fn without_values(&self) -> Self {
        MetricSamples { points: SampleValues::default(), not_numbers: 0, warnings: Vec::new(), ..*self }
    }

    /// Whether there is anything to compare.
    pub(crate) fn has_values(&self) -> bool {
        !self.points.is_empty()
    }

    /// The values in order of time.
    pub(crate) fn values(&self) -> Vec<f64> {
        self.points.iter().map(|point| point.value).collect()
    }

    /// How many boots gave a value.
    pub(crate) fn boots(&self) -> usize {
        self.consecutive_by_boot()
            .filter_map(|points| Some(points.first()?.boot))
            .collect::<BTreeSet<u32>>()
            .len()
    }

    /// The values of each boot, in order of time; copied only where another boot stands among them.
    pub(crate) fn by_boot(&self) -> BTreeMap<u32, Cow<'_, [SamplePoint]>> {
        let mut boots: BTreeMap<u32, Cow<'_, [SamplePoint]>> = BTreeMap::new();
        for points in self.consecutive_by_boot() {
            let Some(first) = points.first() else { continue };
            match boots.entry(first.boot) {
                Entry::Vacant(boot) => drop(boot.insert(Cow::Borrowed(points))),
                Entry::Occupied(mut boot) => boot.get_mut().to_mut().extend(points),
            }
        }
        boots
    }

    /// The machine of each run; empty unless all of them are known.
    pub(crate) fn machines(&self, index: &SampleIndex) -> BTreeMap<u32, u32> {
        let runs: BTreeSet<u32> = self.points.iter().map(|point| point.run).collect();
        let known: Option<_> = runs.into_iter().map(|run| Some((run, index.machine_of(run)?))).collect();
        known.unwrap_or_default()
    }

    /// The values of each machine, in order of time; those of runs of unknown machines are left out.
    pub(crate) fn by_machine(&self, index: &SampleIndex) -> BTreeMap<u32, Vec<f64>> {
        let mut machines: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for points in self.points.chunk_by(|one, next| one.run == next.run) {
            let machine = points.first().and_then(|point| index.machine_of(point.run));
            if let Some(machine) = machine {
                machines.entry(machine).or_default().extend(points.iter().map(|point| point.value));
            }
        }
        machines
    }

    /// The values of each run in each of its boots, in order of time, by run and boot.
    pub(crate) fn by_run(&self) -> BTreeMap<(u32, u32), Vec<f64>> {
        let mut runs: BTreeMap<(u32, u32), Vec<f64>> = BTreeMap::new();
        for point in self.points.iter() {
            runs.entry((point.run, point.boot)).or_default().push(point.value);
        }
        runs
    }

    /// The values of each layout, by run, boot and iteration; empty where layouts were not varied.
    pub(crate) fn by_layout(&self, index: &SampleIndex) -> BTreeMap<usize, Vec<f64>> {
        let mut layouts = BTreeMap::new();
        if index.layouts.is_empty() {
            return layouts;
        }
        let mut points: Vec<&SamplePoint> = self.points.iter().collect();
        points.sort_by_key(|point| point.iteration_key());
        for point in points {
            if let Some(layout) = index.layout_of(point) {
                layouts.entry(layout).or_insert_with(Vec::new).push(point.value);
            }
        }
        layouts
    }

    /// Values of one boot that follow one another.
    fn consecutive_by_boot(&self) -> impl Iterator<Item = &[SamplePoint]> {
        self.points.chunk_by(|one, next| one.boot == next.boot)
    }
}

/// A sample in its place, on the clock of the wall; its boot has no number yet.
fn sample_point(sample: &Sample, run: &RunRecord, number: u32) -> SamplePoint {
    let anchor = run.manifest.anchor;
    let at = Nanos(anchor.realtime.0.saturating_add(sample.start.0).saturating_sub(anchor.monotonic.0));
    SamplePoint { value: sample.value, at, run: number, boot: 0, iteration: sample.iteration }
}

/// As many names are listed in an error.
const MOST_NAMES: usize = 5;

/// A factor with one level a side.
#[derive(Debug)]
pub(crate) struct ComparedFactor {
    pub(crate) name: String,
    /// Side and its level, if the side has the factor.
    levels: Vec<(String, Option<String>)>,
}

impl ComparedFactor {
    pub(crate) fn describe(&self) -> MethodDescription {
        MethodDescription::ComparedFactor { factor: self.name.clone(), levels: self.levels.clone() }
    }
}

/// Every side has a run.
pub(crate) fn check_runs_present(sides: &[&ComparisonSide]) -> Result<(), AnalyzeError> {
    match sides.iter().find(|side| side.runs.is_empty()) {
        Some(side) => Err(AnalyzeError::NoRun { side: side.name.clone() }),
        None => Ok(()),
    }
}

/// Factors with at most one level a side, not the same everywhere.
pub(crate) fn compared_factors(sides: &[&ComparisonSide]) -> Vec<ComparedFactor> {
    let cases = || sides.iter().flat_map(|side| &side.runs).flat_map(|run| &run.manifest.plan.cases);
    let names: IndexSet<&String> = cases().flat_map(|case| case.levels.keys()).collect();
    names.into_iter().filter_map(|name| compared_factor(name, sides)).collect()
}

fn compared_factor(name: &str, sides: &[&ComparisonSide]) -> Option<ComparedFactor> {
    let mut levels = Vec::new();
    for side in sides {
        let cases = side.runs.iter().flat_map(|run| &run.manifest.plan.cases);
        let mut used: BTreeSet<&String> = cases.filter_map(|case| case.levels.get(name)).collect();
        if used.len() > 1 {
            return None;
        }
        levels.push((side.name.clone(), used.pop_first().cloned()));
    }
    let differ = levels.windows(2).any(|pair| pair.first().map(|a| &a.1) != pair.last().map(|b| &b.1));
    differ.then(|| ComparedFactor { name: name.into(), levels })
}

/// Every side has results, and each candidate shares a metric and a case with the baseline. Iterations that failed are results:
/// a side on which all did is compared by them.
pub(crate) fn check_sides_overlap(
    index: &SampleIndex,
    ours: &AlignedSide,
    theirs: &[AlignedSide],
    sides: &[&ComparisonSide],
    options: &AnalysisOptions,
) -> Result<(), AnalyzeError> {
    let filter: Vec<&str> = options.metrics.iter().chain(&options.workloads).map(String::as_str).collect();
    let tables = || std::iter::once(ours).chain(theirs);
    // Metrics that nobody has are a mistake, whatever failed.
    let has_metric = options.metrics.is_empty()
        || tables().any(|table| table.has_any_values() || !table.declared.is_empty());
    for table in tables() {
        let has_results = table.has_any_values() || (has_metric && table.has_any_failures());
        if !has_results {
            let (side, filter, known) = (table.name.clone(), filter.join(", "), sampled_metrics(sides));
            return Err(AnalyzeError::NoSamples { side, filter, known });
        }
    }
    theirs.iter().try_for_each(|candidate| check_case_in_common(index, ours, candidate))
}

/// Workloads and metrics that any side has samples of, for whoever chose none of them.
pub(crate) fn sampled_metrics(sides: &[&ComparisonSide]) -> Vec<String> {
    let mut names = IndexSet::new();
    let without_choice = AnalysisOptions::default();
    for run in sides.iter().flat_map(|side| &side.runs) {
        for sample in run.samples.iter().filter(|sample| without_choice.includes_metric(sample)) {
            let workload = run.manifest.plan.case(sample.case).map(|case| case.workload.as_str());
            names.insert(format!("{} {}", workload.unwrap_or_default(), sample.metric));
        }
    }
    shorten_names(&names)
}

fn check_case_in_common(
    index: &SampleIndex,
    ours: &AlignedSide,
    theirs: &AlignedSide,
) -> Result<(), AnalyzeError> {
    let has_failed_case =
        ours.fails_where_other_has_results(theirs) || theirs.fails_where_other_has_results(ours);
    if has_failed_case || ours.cells.keys().any(|key| theirs.cells.contains_key(key)) {
        return Ok(());
    }
    let (baseline, candidate) = (ours.name.clone(), theirs.name.clone());
    let (a, b) = (metric_names(index, ours), metric_names(index, theirs));
    if a.is_disjoint(&b) {
        let (baseline_metrics, candidate_metrics) = (shorten_names(&a), shorten_names(&b));
        return Err(AnalyzeError::NoCommonMetric {
            baseline,
            candidate,
            baseline_metrics,
            candidate_metrics,
        });
    }
    let (baseline_cases, candidate_cases) = (case_names(index, ours), case_names(index, theirs));
    Err(AnalyzeError::NoCommonCase { baseline, candidate, baseline_cases, candidate_cases })
}

fn metric_names(index: &SampleIndex, table: &AlignedSide) -> IndexSet<String> {
    let numbers: BTreeSet<usize> = table.cells.keys().map(|(_, metric)| *metric).collect();
    let keys = numbers.into_iter().filter_map(|number| index.metrics.get_index(number));
    keys.map(|key| format!("{} [{}]", key.name, key.unit)).collect()
}

fn case_names(index: &SampleIndex, table: &AlignedSide) -> Vec<String> {
    let numbers: BTreeSet<usize> = table.cells.keys().map(|(subject, _)| *subject).collect();
    let names = numbers.into_iter().filter_map(|number| Some(index.subjects.get_index(number)?.0.clone()));
    shorten_names(&names.collect())
}

fn shorten_names(names: &IndexSet<String>) -> Vec<String> {
    let first = names.iter().take(MOST_NAMES).cloned();
    let more = names.len().saturating_sub(MOST_NAMES);
    first.chain((more > 0).then(|| format!("{more} more"))).collect()
}
