//! What a unit of a dose costs: factors whose levels are numbers, as slopes within complete blocks.
//!
//! A dose of delay is what nobody can take away, and yet tells what less of it would be worth, where the response is a line: so do causal
//! profilers within one program (Curtsinger and Berger, "Coz: finding code that counts with causal profiling", SOSP 2015). Here it
//! is a whole program, and the dose whatever a study can vary. Any price at all is called one by Holm's p over all rows, so that the chance
//! of one where no dose does anything is at most 5 %.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use perflab_model::quantity::UnitScale;
use perflab_model::study::{Factor, FactorKind, LevelCombinations, Study, TomlSource};
use perflab_model::{Bytes, Case, Direction, Manifest, Metric, Nanos, Ratio, RunRecord, SyscallDelay, Unit};
use perflab_stats::{ConfidenceInterval, DoseSlope, dose_slope, holm, median};
use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::case_condition::check_conditions;
use crate::compare::verdict::fewest_repetitions;
use crate::{AnalysisOptions, AnalyzeError, ComparisonSide};

/// Version of the shape of the JSON.
pub const PRICE_FORMAT: u32 = 1;

/// A line is called none from this p-value on.
const BENT: f64 = 0.01;

/// The prices of the doses of runs that are repetitions of one another.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PriceList {
    /// the side's name
    pub side: String,
    /// confidence of the intervals
    pub confidence: f64,
    /// the dearest first; behind them those of which no price was found
    pub rows: Vec<PriceRow>,
    /// factors and metrics that have no row, with why
    pub left_out: Vec<String>,
}

/// What a dose costs a metric of a case.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PriceRow {
    /// the factor
    pub factor: String,
    /// what kind of factor it is
    pub kind: FactorKind,
    /// what it sets: the system call, the preset
    pub key: String,
    /// the case without the factor, and without other factors at their first levels
    pub subject: String,
    /// the metric
    pub metric: String,
    /// its unit
    pub unit: String,
    /// whether more of it is better
    pub higher_is_better: bool,
    /// the unit of a dose: `µs`; empty for plain numbers
    pub dose_unit: String,
    /// the doses that were asked for, ascending
    pub asked: Vec<f64>,
    /// the doses as they were taken: of system calls the mean delay of one, as measured
    pub taken: Vec<f64>,
    /// median of the metric at the level that the study gives first
    pub base: f64,
    /// the dose at that level
    pub base_dose: f64,
    /// complete blocks
    pub blocks: usize,
    /// what one unit of the dose adds to the metric, in its unit
    pub slope: PriceEstimate,
    /// the same as a share of `base`: 0.008 for 0.8 %
    pub share: PriceEstimate,
    /// p-value of no price
    pub p: f64,
    /// the same, adjusted over all rows (Holm)
    pub q: f64,
    /// what can be said
    pub verdict: PriceVerdict,
    /// of a system call: how often an iteration makes it
    pub calls: Option<f64>,
    /// of a system call and a time: which share of the calls' delay the metric waits for
    pub waited: Option<PriceEstimate>,
    /// of three doses or more: whether they lie on a line
    pub shape: Option<DoseShape>,
}

/// A number, and its interval where there are enough blocks for one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct PriceEstimate {
    /// the estimate
    pub value: f64,
    /// lower limit
    pub low: Option<f64>,
    /// upper limit
    pub high: Option<f64>,
}

impl PriceEstimate {
    fn new(value: f64, interval: Option<ConfidenceInterval>) -> Self {
        PriceEstimate { value, low: interval.map(|found| found.low), high: interval.map(|found| found.high) }
    }

    fn scaled(self, factor: f64) -> Self {
        let [low, high] = [self.low, self.high].map(|limit| limit.map(|limit| limit * factor));
        let (low, high) = if factor < 0.0 { (high, low) } else { (low, high) };
        PriceEstimate { value: self.value * factor, low, high }
    }

    /// The largest size that the interval holds.
    #[must_use]
    pub fn largest(&self) -> Option<f64> {
        Some(self.low?.abs().max(self.high?.abs()))
    }
}

/// What can be said of a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PriceVerdict {
    /// there is one
    Priced,
    /// its interval excludes none, which may be chance over so many rows
    Unclear,
    /// none was found; the interval says how large it is at most
    None,
    /// nothing was delayed: no iteration made the system call
    NeverCalled,
    /// too few complete blocks for an interval
    TooFew,
}

/// Whether doses lie on a line.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DoseShape {
    /// p-value of a line
    pub p: f64,
    /// whether it is none: then the slope is no price of the first unit
    pub is_bent: bool,
    /// what a unit costs from each dose to the next, as a share of `base`
    pub steps: Vec<PriceEstimate>,
}

/// A factor whose levels are numbers.
#[derive(Debug, Clone, PartialEq)]
struct DoseScale {
    /// level name -> dose, ascending
    doses: Vec<(String, f64)>,
    unit: String,
    /// levels that are none: `none`
    others: Vec<String>,
}

impl DoseScale {
    /// Of texts by their levels' names.
    fn of_levels(levels: &[(String, String)]) -> Option<Self> {
        let nanos = |text: &str| Nanos::parse(text).ok().map(|time| time.0 as f64);
        let bytes = |text: &str| Bytes::parse(text).ok().map(|size| size.0 as f64);
        let ratio = |text: &str| Ratio::parse(text).ok().map(Ratio::percent);
        let plain = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        type Parser<'a> = &'a dyn Fn(&str) -> Option<f64>;
        let families: [(&str, Parser<'_>); 4] = [("", &plain), ("ns", &nanos), ("B", &bytes), ("%", &ratio)];
        let read = |(unit, parse): (&'static str, Parser<'_>)| {
            // Nothing is nothing in any unit.
            let number = |text: &str| parse(text).or_else(|| (text.trim() == "0").then_some(0.0));
            let found = levels.iter().map(|(name, text)| (name.clone(), number(text)));
            let (doses, others): (Vec<_>, Vec<_>) = found.partition(|(_, dose)| dose.is_some());
            let mut doses: Vec<(String, f64)> =
                doses.into_iter().filter_map(|(name, dose)| Some((name, dose?))).collect();
            doses.sort_by(|one, other| one.1.total_cmp(&other.1));
            doses.dedup_by(|one, other| one.1 == other.1);
            (unit, doses, others.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        let best =
            families.map(read).into_iter().max_by_key(|(unit, doses, _)| (doses.len(), unit.is_empty()));
        let (unit, mut doses, others) = best.filter(|(_, doses, _)| doses.len() >= 2)?;
        let largest = doses.iter().map(|(_, dose)| dose.abs()).fold(0.0, f64::max);
        let unit = if matches!(unit, "ns" | "B") {
            let scale = UnitScale::fitting(unit, largest);
            doses.iter_mut().for_each(|(_, dose)| *dose /= scale.divisor);
            scale.name
        } else {
            unit.to_owned()
        };
        Some(DoseScale { doses, unit, others })
    }
}

/// Kinds whose numbers are names.
fn is_dose_kind(kind: FactorKind) -> bool {
    !matches!(
        kind,
        FactorKind::DropCaches
            | FactorKind::Label
            | FactorKind::Placement
            | FactorKind::Monitors
            | FactorKind::Commands
    )
}

/// Refuses factors of a study, by their names, whose levels are not all numbers of one thing, each another.
///
/// # Errors
/// [`AnalyzeError::NoDose`], naming the levels.
pub fn check_doses(study: &Study, names: &[&str]) -> Result<(), AnalyzeError> {
    for name in names {
        let Some(factor) = study.factor.get(*name) else { continue };
        let levels: Vec<(String, String)> =
            factor.levels.iter().map(|level| (level.name.clone(), level.value.to_string())).collect();
        let scale = DoseScale::of_levels(&levels).filter(|_| is_dose_kind(factor.kind));
        if scale.is_none_or(|scale| scale.doses.len() < levels.len()) {
            let names: Vec<&str> = levels.iter().map(|(level, _)| level.as_str()).collect();
            let why =
                format!("{name}: its levels are no amounts of one thing, each another: {}", names.join(", "));
            return Err(AnalyzeError::NoDose { side: study.title.clone(), left_out: vec![why] });
        }
    }
    Ok(())
}

/// The fewest blocks with which one of so many prices can be told from chance, however large it is.
#[must_use]
pub fn fewest_blocks(prices: usize, confidence: f64) -> usize {
    fewest_repetitions(prices, confidence, true)
}

/// Whether a run was made by `perflab price`: its doses take turns although its study does not say so.
#[must_use]
pub fn is_price_run(manifest: &Manifest) -> bool {
    let written = TomlSource::new(manifest.study_file.as_str(), manifest.study_text.as_str());
    let as_written = written.parse_study().map(|study| study.run.combinations);
    manifest.study.run.combinations == LevelCombinations::OneAtATime
        && as_written.is_ok_and(|combinations| combinations != LevelCombinations::OneAtATime)
}

/// Values of one metric of a case without the factor: level -> block (run, boot, iteration) -> value.
struct DosedSamples {
    metric: Metric,
    cells: BTreeMap<String, BTreeMap<BlockKey, f64>>,
}

type BlockKey = (usize, u32, u32);

/// Prices every factor whose levels are numbers, of the metrics that decide, or of those that `options` choose.
///
/// # Errors
/// No run; conditions that no case meets; options out of range; no factor of numbers; none of the values that are needed.
pub fn list_prices(
    side: &ComparisonSide,
    factors: &[String],
    options: &AnalysisOptions,
) -> Result<PriceList, AnalyzeError> {
    options.validate()?;
    check_conditions(side.runs.iter(), &options.conditions)?;
    let first = side.runs.first().ok_or_else(|| AnalyzeError::NoRun { side: side.name.clone() })?;
    let study = &first.manifest.study;
    let known = &first.manifest.plan.factors;
    if let Some(factor) = factors.iter().find(|factor| !known.contains_key(*factor)) {
        let known = known.keys().cloned().collect();
        return Err(AnalyzeError::UnknownFactor { factor: factor.clone(), side: side.name.clone(), known });
    }
    check_repetitions(side)?;
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    for (name, levels) in known {
        if !factors.is_empty() && !factors.contains(name) {
            continue;
        }
        let factor = study.factor.get(name);
        let text = |level: &String| {
            let found = factor.and_then(|factor| factor.levels.iter().find(|one| one.name == *level));
            found.map_or_else(|| level.clone(), |found| found.value.to_string())
        };
        let levels: Vec<(String, String)> = levels.iter().map(|level| (level.clone(), text(level))).collect();
        let is_dose = factor.is_none_or(|factor| is_dose_kind(factor.kind));
        let Some(scale) = DoseScale::of_levels(&levels).filter(|_| is_dose) else {
            let names: Vec<&str> = levels.iter().map(|(level, _)| level.as_str()).collect();
            left_out.push(format!("{name}: its levels are no amounts of one thing: {}", names.join(", ")));
            continue;
        };
        if !scale.others.is_empty() {
            left_out.push(format!("{name}: of its levels {} is no number", scale.others.join(", ")));
        }
        let priced = DosedFactor { name, factor, scale: &scale, side, options };
        priced.add_rows(&mut rows, &mut left_out);
    }
    let is_included = |run: &RunRecord, case: u32| {
        run.manifest.plan.case(case).is_some_and(|case| options.includes_case(case))
    };
    let has_values = side.runs.iter().any(|run| run.samples.iter().any(|one| is_included(run, one.case)));
    let is_metric_unknown = left_out.is_empty() && !options.metrics.is_empty();
    if rows.is_empty() && (!has_values || is_metric_unknown) {
        let chosen = [&options.metrics[..], &options.workloads[..]].concat();
        let mut known: Vec<String> = side
            .runs
            .iter()
            .flat_map(|run| run.samples.iter().map(|sample| String::from(&sample.metric)))
            .collect();
        known.sort_unstable();
        known.dedup();
        return Err(AnalyzeError::NoSamples { side: side.name.clone(), filter: chosen.join(", "), known });
    }
    if rows.is_empty() {
        return Err(AnalyzeError::NoDose { side: side.name.clone(), left_out });
    }
    set_verdicts(&mut rows, options)?;
    rows.sort_by(|one, other| {
        let cost = |row: &PriceRow| if row.higher_is_better { -row.share.value } else { row.share.value };
        one.verdict.cmp(&other.verdict).then(cost(other).total_cmp(&cost(one)))
    });
    Ok(PriceList { side: side.name.clone(), confidence: options.confidence, rows, left_out })
}

/// A price is of one program under the same doses: runs of others are no repetitions, and their blocks mean nothing together.
fn check_repetitions(side: &ComparisonSide) -> Result<(), AnalyzeError> {
    let [first, others @ ..] = &side.runs[..] else { return Ok(()) };
    let own = &first.manifest;
    for other in others {
        let its = &other.manifest;
        let workloads = own.plan.definitions.iter();
        let changed = workloads
            .filter(|(name, digest)| its.plan.definitions.get(*name).is_some_and(|found| found != *digest));
        let changed = changed.map(|(name, _)| format!("workload `{name}`")).next();
        let doses = |manifest: &Manifest, name: &str| {
            (manifest.plan.factors.get(name).cloned(), manifest.study.factor.get(name).cloned())
        };
        let names = own.plan.factors.keys().chain(its.plan.factors.keys());
        let varied = names.into_iter().find(|name| doses(own, name) != doses(its, name));
        if let Some(what) = changed.or_else(|| varied.map(|name| format!("factor `{name}`"))) {
            let (one, other) = (own.id.clone(), its.id.clone());
            return Err(AnalyzeError::UnlikeRuns { one, other, what });
        }
    }
    Ok(())
}

fn set_verdicts(rows: &mut [PriceRow], options: &AnalysisOptions) -> Result<(), AnalyzeError> {
    let judged = |row: &PriceRow| !matches!(row.verdict, PriceVerdict::NeverCalled | PriceVerdict::TooFew);
    let p_values: Vec<f64> = rows.iter().filter(|row| judged(row)).map(|row| row.p).collect();
    let adjusted = holm(&p_values).map_err(|source| AnalyzeError::Statistic {
        subject: "all rows".into(),
        metric: "prices".into(),
        source,
    })?;
    for (row, q) in rows.iter_mut().filter(|row| judged(row)).zip(adjusted) {
        row.q = q;
        let excludes = row.slope.low.zip(row.slope.high).is_some_and(|(low, high)| low > 0.0 || high < 0.0);
        row.verdict = match (excludes, options.is_significant(q)) {
            (true, true) => PriceVerdict::Priced,
            (true, false) => PriceVerdict::Unclear,
            (false, _) => PriceVerdict::None,
        };
    }
    Ok(())
}

/// One factor of numbers in the runs of a side.
struct DosedFactor<'a> {
    name: &'a str,
    factor: Option<&'a Factor>,
    scale: &'a DoseScale,
    side: &'a ComparisonSide,
    options: &'a AnalysisOptions,
}

impl DosedFactor<'_> {
    /// The level that its study gives first.
    fn first_level(&self) -> Option<&String> {
        self.side.runs.first()?.manifest.plan.factors.get(self.name)?.first()
    }

    fn kind(&self) -> FactorKind {
        self.factor.map_or(FactorKind::Parameter, |factor| factor.kind)
    }

    fn key(&self) -> &str {
        self.factor.and_then(|factor| factor.key.as_deref()).unwrap_or(self.name)
    }

    /// The system call that it delays.
    fn call(&self) -> Option<&str> {
        (self.kind() == FactorKind::Syscall).then(|| self.key())
    }

    fn add_rows(&self, rows: &mut Vec<PriceRow>, left_out: &mut Vec<String>) {
        let found_before = (rows.len(), left_out.len());
        let mut subjects: IndexMap<String, IndexMap<String, DosedSamples>> = IndexMap::new();
        for (number, run) in self.side.runs.iter().enumerate() {
            self.collect(number, run, &mut subjects);
        }
        if subjects.is_empty() {
            left_out.push(format!("{}: no iteration has a value", self.name));
        }
        for (subject, metrics) in &subjects {
            for one in metrics.values().filter(|one| self.is_priced(&one.metric)) {
                match self.price(subject, one, metrics) {
                    Ok(row) => {
                        rows.push(row);
                        let lost =
                            self.scale.doses.iter().filter(|(level, _)| !one.cells.contains_key(level));
                        let lost: Vec<&str> = lost.map(|(level, _)| level.as_str()).collect();
                        if !lost.is_empty() {
                            left_out.push(format!(
                                "{}, {subject}, {}: no iteration has a value at {}",
                                self.name,
                                one.metric.name,
                                lost.join(", ")
                            ));
                        }
                    }
                    // A level of another factor alone has no doses of this one.
                    Err(_) if one.cells.len() < 2 => {}
                    Err(why) => {
                        left_out.push(format!("{}, {subject}, {}: {why}", self.name, one.metric.name))
                    }
                }
            }
        }
        let is_one_level =
            subjects.values().flat_map(IndexMap::values).any(|one| self.is_priced(&one.metric));
        if is_one_level && found_before == (rows.len(), left_out.len()) {
            left_out.push(format!("{}: only one of its levels has values", self.name));
        }
    }

    fn is_priced(&self, metric: &Metric) -> bool {
        match self.options.metrics.is_empty() {
            true => metric.primary,
            false => self.options.includes_metric_named(&metric.name, metric.primary),
        }
    }

    fn collect(
        &self,
        number: usize,
        run: &RunRecord,
        subjects: &mut IndexMap<String, IndexMap<String, DosedSamples>>,
    ) {
        let plan = &run.manifest.plan;
        let finite = run.samples.iter().filter(|sample| sample.value.is_finite());
        let mut counts: BTreeMap<(String, String, String, BlockKey), u32> = BTreeMap::new();
        for sample in finite {
            let Some(case) = plan.case(sample.case).filter(|case| self.options.includes_case(case)) else {
                continue;
            };
            let Some(level) = case.levels.get(self.name) else { continue };
            let subject = self.subject_of(case, run);
            let name = String::from(&sample.metric);
            let metric = || Metric {
                name: name.clone(),
                unit: sample.unit.clone(),
                direction: sample.direction,
                primary: sample.primary,
            };
            let one = subjects.entry(subject.clone()).or_default().entry(name.clone());
            let one = one.or_insert_with(|| DosedSamples { metric: metric(), cells: BTreeMap::new() });
            let block = (number, sample.boot, sample.iteration);
            let count = counts.entry((subject, name, level.clone(), block)).or_default();
            *count += 1;
            // Several targets or values of one iteration: their mean.
            let value = one.cells.entry(level.clone()).or_default().entry(block).or_insert(0.0);
            *value += (sample.value - *value) / f64::from(*count);
        }
    }

    /// The case without this factor, and without others at their first levels.
    fn subject_of(&self, case: &Case, run: &RunRecord) -> String {
        let is_first = |name: &str, level: &str| {
            run.manifest
                .plan
                .factors
                .get(name)
                .and_then(|levels| levels.first())
                .is_some_and(|first| first == level)
        };
        let others = case.levels.iter().filter(|(name, level)| *name != self.name && !is_first(name, level));
        others.fold(case.label_without_levels(), |text, (name, level)| format!("{text} {name}={level}"))
    }

    fn price(
        &self,
        subject: &str,
        one: &DosedSamples,
        metrics: &IndexMap<String, DosedSamples>,
    ) -> Result<PriceRow, String> {
        let doses: Vec<&(String, f64)> =
            self.scale.doses.iter().filter(|(level, _)| one.cells.contains_key(level)).collect();
        let levels: Vec<&String> = doses.iter().map(|(level, _)| level).collect();
        let blocks = self.complete_blocks(one, &levels)?;
        let asked: Vec<f64> = doses.iter().map(|(_, dose)| *dose).collect();
        let calls = self.calls(metrics);
        let taken = self.taken_doses(&levels, &asked, metrics);
        let fitted: DoseSlope =
            dose_slope(&taken, &blocks, self.options.confidence).map_err(|error| error.to_string())?;
        let without = levels.iter().position(|level| Some(*level) == self.first_level()).unwrap_or(0);
        let first: Vec<f64> = blocks.iter().filter_map(|block| block.get(without).copied()).collect();
        let base = median(&first).map_err(|error| error.to_string())?;
        let base_dose = asked.get(without).copied().unwrap_or_default();
        let slope = PriceEstimate::new(fitted.slope.value, fitted.slope.interval);
        let per_base = if base == 0.0 { 0.0 } else { base.abs().recip() };
        let shape = fitted.curvature.as_ref().map(|curvature| DoseShape {
            p: curvature.p,
            is_bent: curvature.p <= BENT,
            steps: curvature
                .steps
                .iter()
                .map(|step| PriceEstimate::new(step.value, step.interval).scaled(per_base))
                .collect(),
        });
        let verdict = match (calls, slope.low) {
            (Some(0.0), _) => PriceVerdict::NeverCalled,
            (_, None) => PriceVerdict::TooFew,
            _ => PriceVerdict::None,
        };
        let waited = calls
            .filter(|calls| *calls > 0.0)
            .zip(nanos_of_unit(&one.metric.unit))
            .zip(nanos_of_name(&self.scale.unit))
            .map(|((calls, metric), dose)| slope.scaled(metric / dose / calls));
        Ok(PriceRow {
            factor: self.name.to_owned(),
            kind: self.kind(),
            key: self.key().to_owned(),
            subject: subject.to_owned(),
            metric: one.metric.name.clone(),
            unit: one.metric.unit.to_string(),
            higher_is_better: one.metric.direction == Direction::Higher,
            dose_unit: self.scale.unit.clone(),
            asked,
            taken,
            base,
            base_dose,
            blocks: fitted.blocks,
            slope,
            share: slope.scaled(per_base),
            p: fitted.p,
            q: fitted.p,
            verdict,
            calls,
            waited,
            shape,
        })
    }

    /// The values of each block in which no level failed, in the order of the levels.
    fn complete_blocks(&self, one: &DosedSamples, levels: &[&String]) -> Result<Vec<Vec<f64>>, String> {
        if levels.len() < 2 {
            return Err("fewer than two doses have values".into());
        }
        let shuffled =
            |run: usize| self.side.runs.get(run).is_some_and(|run| run.manifest.plan.has_complete_blocks());
        let mut keys: Vec<&BlockKey> =
            levels.iter().filter_map(|level| one.cells.get(*level)).flat_map(BTreeMap::keys).collect();
        keys.sort_unstable();
        keys.dedup();
        if !keys.iter().any(|(run, ..)| shuffled(*run)) {
            return Err("doses did not take turns in blocks: leave `order` out of the study".into());
        }
        let values = |key: &BlockKey| -> Option<Vec<f64>> {
            levels.iter().map(|level| one.cells.get(*level)?.get(key).copied()).collect()
        };
        let blocks: Vec<Vec<f64>> =
            keys.into_iter().filter(|(run, ..)| shuffled(*run)).filter_map(values).collect();
        if blocks.is_empty() { Err("no block has a value at every dose".into()) } else { Ok(blocks) }
    }

    /// How often an iteration makes the system call that is delayed: the median over all doses.
    fn calls(&self, metrics: &IndexMap<String, DosedSamples>) -> Option<f64> {
        let counted = metrics.get(&SyscallDelay::count_metric(self.call()?).name)?;
        let all: Vec<f64> = counted.cells.values().flat_map(BTreeMap::values).copied().collect();
        median(&all).ok()
    }

    /// The mean delay of a call at each level, as measured; what was asked for where nothing was.
    fn taken_doses(
        &self,
        levels: &[&String],
        asked: &[f64],
        metrics: &IndexMap<String, DosedSamples>,
    ) -> Vec<f64> {
        let measure = || -> Option<Vec<f64>> {
            let call = self.call()?;
            let of = |metric: Metric, level: &String| -> Option<f64> {
                let cells = &metrics.get(&metric.name)?.cells;
                Some(cells.get(level)?.values().sum())
            };
            let dose_nanos = nanos_of_name(&self.scale.unit)?;
            let mean = |level: &&String| {
                let calls = of(SyscallDelay::count_metric(call), level).filter(|calls| *calls > 0.0)?;
                Some(of(SyscallDelay::added_metric(call), level)? / calls * 1e9 / dose_nanos)
            };
            levels.iter().map(mean).collect()
        };
        let ascends = |doses: &Vec<f64>| doses.windows(2).all(|pair| pair.first() < pair.last());
        measure().filter(ascends).unwrap_or_else(|| asked.to_vec())
    }
}

/// How many nanoseconds a unit of a metric is, where it is a time.
fn nanos_of_unit(unit: &Unit) -> Option<f64> {
    nanos_of_name(&unit.to_string())
}

fn nanos_of_name(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(levels: &[&str]) -> Option<DoseScale> {
        let levels: Vec<(String, String)> =
            levels.iter().map(|level| ((*level).to_owned(), (*level).to_owned())).collect();
        DoseScale::of_levels(&levels)
    }

    #[test]
    fn levels_are_doses_of_one_thing() {
        let found = |levels: &[&str]| {
            scale(levels).map(|found| {
                (found.unit, found.doses.into_iter().map(|(_, dose)| dose).collect::<Vec<_>>(), found.others)
            })
        };
        assert_eq!(found(&["0us", "20us", "50us"]), Some(("µs".into(), vec![0.0, 20.0, 50.0], vec![])));
        assert_eq!(found(&["0", "2ms"]), Some(("ms".into(), vec![0.0, 2.0], vec![])));
        assert_eq!(found(&["none", "80%", "50%"]), Some(("%".into(), vec![50.0, 80.0], vec!["none".into()])));
        assert_eq!(found(&["4", "1", "2"]), Some((String::new(), vec![1.0, 2.0, 4.0], vec![])));
        assert_eq!(found(&["64MiB", "128MiB"]), Some(("MiB".into(), vec![64.0, 128.0], vec![])));
        assert_eq!((scale(&["a", "b"]), scale(&["a", "2"])), (None, None));
    }

    /// n blocks of one sign: p = 2 · 2⁻ⁿ (Wilcoxon, "Individual comparisons by ranking methods", 1945).
    #[test]
    fn so_many_blocks_are_needed_for_so_many_prices() {
        for prices in 1..100 {
            let blocks = fewest_blocks(prices, 0.95);
            let p = |blocks: usize| 2.0 * 0.5_f64.powf(blocks as f64) * prices as f64;
            assert!(p(blocks) <= 0.05 && p(blocks - 1) > 0.05, "{prices} {blocks}");
        }
        assert_eq!([1, 5].map(|prices| fewest_blocks(prices, 0.95)), [6, 8]);
    }
}
