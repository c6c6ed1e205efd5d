//! What benchmarks reported: cases, their iterations, and the values of each.
//!
//! Repetitions of other tools map to the model like this: an *iteration* is one execution of a benchmark, however many
//! values it gave; a *boot* is whatever was repeated around executions (a whole configuration, a reboot). Values that
//! are not numbers are left out, counted and told.

use std::collections::{HashMap, HashSet};

use indexmap::{IndexMap, IndexSet};
use perflab_model::{
    Case, Metric, Nanos, Outcome, RunEvent, RunEventKind, RunPlan, Sample, Scalar, SharedStr, Slot,
};

/// From when to when, since 1970.
pub(crate) type TimeRange = (Nanos, Nanos);

/// A case of some [`BenchmarkResults`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ImportedCaseId(u32);

/// One execution of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ImportedExecutionId(u32);

/// A metric of some [`BenchmarkResults`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ImportedMetricId(u32);

/// Small, as there may be a million of them.
struct ImportedExecution {
    slot: Slot,
    /// index into the spans
    span: u32,
}

struct ImportedValue {
    execution: u32,
    metric: u32,
    value: f64,
    /// where it is not the execution's
    span: Option<Box<TimeRange>>,
}

/// Everything that the benchmarks of one run reported. What is asked for again is found by its hash: a file may name as many
/// cases, levels and metrics as it likes.
#[derive(Default)]
pub(crate) struct BenchmarkResults {
    cases: Vec<Case>,
    known: HashMap<String, u32>,
    counts: Vec<u32>,
    metrics: IndexSet<Metric>,
    /// The metrics of each workload,
    declared: IndexMap<String, Vec<Metric>>,
    /// and which of all metrics those are.
    declares: HashSet<(String, usize)>,
    factors: IndexMap<String, IndexSet<String>>,
    /// Metrics whose values are the same each time.
    exact: IndexSet<String>,
    executions: Vec<ImportedExecution>,
    /// The first execution of each case.
    firsts: HashMap<u32, u32>,
    /// When executions ran, each once for all that follow one another.
    spans: Vec<Option<TimeRange>>,
    /// Why executions failed.
    failures: HashMap<u32, String>,
    samples: Vec<ImportedValue>,
    /// Values that are no numbers, of each metric.
    not_numbers: IndexMap<u32, u64>,
}

impl BenchmarkResults {
    /// Whether there is nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.executions.is_empty()
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.samples.len()
    }

    /// The case of that workload at that point, made where it is new.
    pub(crate) fn find_or_add_case(
        &mut self,
        workload: &str,
        point: IndexMap<String, Scalar>,
    ) -> ImportedCaseId {
        self.find_or_add_case_at(workload, point, &[])
    }

    /// The same, under these levels of factors.
    pub(crate) fn find_or_add_case_at(
        &mut self,
        workload: &str,
        point: IndexMap<String, Scalar>,
        levels: &[(&str, &str)],
    ) -> ImportedCaseId {
        let (workload, uses) = (workload.to_owned(), workload.to_owned());
        let (parameters, environment) = (point.clone(), IndexMap::new());
        for (factor, level) in levels {
            let known = self.factors.entry((*factor).to_owned()).or_default();
            if !known.contains(*level) {
                known.insert((*level).to_owned());
            }
        }
        let levels =
            levels.iter().map(|(factor, level)| ((*factor).to_owned(), (*level).to_owned())).collect();
        let case = Case { workload, uses, point, parameters, environment, levels };
        let new = u32::try_from(self.cases.len()).unwrap_or(u32::MAX);
        let number = *self.known.entry(case.label()).or_insert(new);
        if number == new {
            self.cases.push(case);
            self.counts.push(0);
        }
        ImportedCaseId(number)
    }

    /// Further parameters of a case, which do not tell it from others.
    pub(crate) fn add_parameters(&mut self, case: ImportedCaseId, parameters: IndexMap<String, Scalar>) {
        if let Some(case) = self.cases.get_mut(case.0 as usize) {
            case.parameters.extend(parameters);
        }
    }

    /// A metric of a case.
    pub(crate) fn find_or_add_metric(&mut self, case: ImportedCaseId, metric: Metric) -> ImportedMetricId {
        let workload = self.cases.get(case.0 as usize).map_or("", |case| &case.uses);
        let (place, _) = match self.metrics.get_index_of(&metric) {
            Some(place) => (place, false),
            None => self.metrics.insert_full(metric.clone()),
        };
        if self.declares.insert((workload.to_owned(), place)) {
            self.declared.entry(workload.to_owned()).or_default().push(metric);
        }
        ImportedMetricId(u32::try_from(place).unwrap_or(u32::MAX))
    }

    /// Says that the values of a metric are the same each time.
    pub(crate) fn mark_exact(&mut self, metric: &str) {
        if !self.exact.contains(metric) {
            self.exact.insert(metric.to_owned());
        }
    }

    /// The next execution of a case.
    pub(crate) fn next_execution(
        &mut self,
        case: ImportedCaseId,
        boot: u32,
        span: Option<TimeRange>,
    ) -> ImportedExecutionId {
        let iteration = self.counts.get_mut(case.0 as usize).map_or(0, |count| {
            *count += 1;
            *count - 1
        });
        let slot = Slot { case: case.0, iteration, block: iteration, warmup: false, boot, layout: None };
        if self.spans.last() != Some(&span) {
            self.spans.push(span);
        }
        let span = u32::try_from(self.spans.len() - 1).unwrap_or(u32::MAX);
        let place = u32::try_from(self.executions.len()).unwrap_or(u32::MAX);
        self.executions.push(ImportedExecution { slot, span });
        self.firsts.entry(case.0).or_insert(place);
        ImportedExecutionId(place)
    }

    /// The only execution of a case, made where there is none yet.
    pub(crate) fn only_execution(
        &mut self,
        case: ImportedCaseId,
        span: Option<TimeRange>,
    ) -> ImportedExecutionId {
        match self.firsts.get(&case.0) {
            Some(place) => ImportedExecutionId(*place),
            None => self.next_execution(case, 0, span),
        }
    }

    /// Says that an execution failed.
    pub(crate) fn mark_failed(&mut self, execution: ImportedExecutionId, reason: &str) {
        self.failures.insert(execution.0, reason.into());
    }

    /// One value of an execution; `span` where it is known more closely than the execution's.
    pub(crate) fn add_sample(
        &mut self,
        execution: ImportedExecutionId,
        metric: ImportedMetricId,
        value: f64,
        span: Option<TimeRange>,
    ) {
        let (execution, metric) = (execution.0, metric.0);
        if value.is_finite() {
            self.samples.push(ImportedValue { execution, metric, value, span: span.map(Box::new) });
        } else {
            *self.not_numbers.entry(metric).or_default() += 1;
        }
    }

    /// The plan that was carried out.
    pub(crate) fn to_plan(&self) -> RunPlan {
        RunPlan {
            order: "sequential".into(),
            cases: self.cases.clone(),
            factors: self
                .factors
                .iter()
                .map(|(name, levels)| (name.clone(), levels.iter().cloned().collect()))
                .collect(),
            slots: self.executions.iter().map(|execution| execution.slot).collect(),
            metrics: self.declared.clone(),
            exact: self.exact.iter().cloned().collect(),
            ..RunPlan::default()
        }
    }

    /// Workload and parameters of each case, for the study that it was.
    pub(crate) fn workloads(&self) -> impl Iterator<Item = (&str, &IndexMap<String, Scalar>)> {
        self.cases.iter().map(|case| (case.workload.as_str(), &case.parameters))
    }

    /// The earliest time that is known.
    pub(crate) fn first_time(&self) -> Option<Nanos> {
        let own = self.samples.iter().filter_map(|sample| sample.span.as_deref());
        self.spans.iter().flatten().chain(own).map(|(begin, _)| *begin).min()
    }

    /// When the last execution ended.
    pub(crate) fn last_time(&self) -> Option<Nanos> {
        self.spans.iter().flatten().map(|(_, end)| *end).max()
    }

    /// All of it as events at `at`, times counted from `anchor`; executions without a time get the `whole` run's.
    pub(crate) fn into_events(
        mut self,
        anchor: Nanos,
        at: Nanos,
        whole: TimeRange,
    ) -> impl Iterator<Item = RunEvent> {
        self.samples.sort_by_key(|sample| sample.execution);
        let left_out = self.left_out_warning();
        let BenchmarkResults { executions, spans, mut failures, samples, metrics, .. } = self;
        let metrics: Vec<(SharedStr, Metric)> =
            metrics.into_iter().map(|metric| (SharedStr::from(&metric.name), metric)).collect();
        let mut executions = executions.into_iter().zip(0..).peekable();
        let mut samples = samples.into_iter().peekable();
        let since = move |(begin, end): TimeRange| (begin.since(anchor), end.since(anchor));
        let spans: Vec<TimeRange> = spans.into_iter().map(|span| span.map_or(whole, since)).collect();
        let next = move || {
            let (execution, slot) = executions.peek()?;
            let (slot, span) = (*slot, spans.get(execution.span as usize).copied().unwrap_or(whole));
            if let Some(sample) = samples.next_if(|sample| sample.execution == slot) {
                let metric = metrics.get(sample.metric as usize)?;
                return Some(sample_event(
                    execution,
                    metric,
                    sample.value,
                    sample.span.map_or(span, |own| since(*own)),
                ));
            }
            executions.next()?;
            let (start, end) = span;
            let failed = failures.remove(&slot).map(|reason| Outcome::Failed { reason });
            Some(RunEventKind::IterationEnded { slot, outcome: failed.unwrap_or(Outcome::Ok), start, end })
        };
        std::iter::from_fn(next).chain(left_out).map(move |what| RunEvent::new(at, what))
    }

    /// Says how many values were left out, and of what.
    fn left_out_warning(&self) -> Option<RunEventKind> {
        let count = |(metric, count): (&u32, &u64)| {
            let metric = self.metrics.get_index(*metric as usize).map_or("", |metric| &metric.name);
            format!("{count} of {metric}")
        };
        let counts: Vec<String> = self.not_numbers.iter().map(count).collect();
        (!counts.is_empty()).then(|| RunEventKind::Warning {
            message: format!("values that are no numbers were left out: {}", counts.join(", ")),
            advice: "look at the file: the other tool wrote them so".into(),
        })
    }
}

fn sample_event(
    execution: &ImportedExecution,
    metric: &(SharedStr, Metric),
    value: f64,
    (start, end): TimeRange,
) -> RunEventKind {
    let (name, Metric { unit, direction, primary, .. }) = metric;
    let Slot { case, iteration, boot, .. } = execution.slot;
    RunEventKind::Sample(Sample {
        boot,
        target: None,
        case,
        iteration,
        metric: name.clone(),
        value,
        unit: unit.clone(),
        direction: *direction,
        primary: *primary,
        start,
        end,
    })
}
