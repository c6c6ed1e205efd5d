//! Which samples belong to which line of a picture: one picture a metric and case, one line a side or a level of a factor.
//!
//! Cases are lined up as a comparison lines them up, so that a picture shows what a table compares.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexSet;
use perflab_model::{Direction, Unit};
use perflab_stats::{
    EmpiricalDistribution, IntervalEstimate, StatsError, empirical_distribution, median, median_with_interval,
};

use crate::compare::alignment::{
    AlignedSide, CaseSelection, SampleIndex, check_runs_present, compared_factors, sampled_metrics,
};
use crate::compare::case_condition::check_conditions;
use crate::compare::change::{ChangeScale, RepetitionLevel};
use crate::compare::comparison::SamplePoint;
use crate::compare::options::{AnalysisOptions, ComparisonSide};
use crate::compare::pipeline::factor_levels;
use crate::compare::row_shift::effective_size;
use crate::compare::same_content::count_contents_once;
use crate::error::AnalyzeError;

/// A metric of a case, with a line for each side or level.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricLines {
    /// The case in one line, without what tells lines apart: `sweep threads=2`.
    pub subject: String,
    /// Matrix parameters and levels of the case, without what tells lines apart, as texts.
    pub point: Vec<(String, String)>,
    /// The metric's name.
    pub metric: String,
    /// Unit of its values.
    pub unit: Unit,
    /// Which way is good.
    pub direction: Direction,
    /// Whether the metric decides or explains.
    pub primary: bool,
    /// In the order of sides and levels; those without a value are left out.
    pub lines: Vec<SampleLine>,
}

/// The values of a line.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleLine {
    /// A side's name, a level, or both.
    pub name: String,
    /// At least one, in order of time.
    pub points: Vec<SamplePoint>,
    /// The machine of each run, by [`SamplePoint::run`], by its number; empty unless all of them are known.
    pub machines: BTreeMap<u32, u32>,
}

impl SampleLine {
    /// The values in order of time, in the metric's unit.
    #[must_use]
    pub fn values(&self) -> Vec<f64> {
        self.points.iter().map(|point| point.value).collect()
    }

    /// What is repeated at the highest level: machines, else boots, else runs, else iterations.
    #[must_use]
    pub fn repetition_level(&self) -> RepetitionLevel {
        let count =
            |level| self.points.iter().map(|point| self.unit_of(point, level)).collect::<BTreeSet<_>>().len();
        [RepetitionLevel::Machine, RepetitionLevel::Boot, RepetitionLevel::Run]
            .into_iter()
            .find(|level| count(*level) >= 2)
            .unwrap_or(RepetitionLevel::Iteration)
    }

    /// The number of the machine, boot or run that a value is of; 0 for machines that are unknown.
    fn unit_of(&self, point: &SamplePoint, level: RepetitionLevel) -> u32 {
        match level {
            RepetitionLevel::Machine => self.machines.get(&point.run).copied().unwrap_or_default(),
            RepetitionLevel::Boot => point.boot,
            RepetitionLevel::Run => point.run,
            RepetitionLevel::Layout | RepetitionLevel::Iteration => point.iteration,
        }
    }

    /// One value of each unit that is repeated: the medians of machines, boots or runs, or the values.
    fn unit_values(&self) -> Result<Vec<f64>, StatsError> {
        let level = self.repetition_level();
        if level == RepetitionLevel::Iteration {
            return Ok(self.values());
        }
        let mut groups: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for point in &self.points {
            groups.entry(self.unit_of(point, level)).or_default().push(point.value);
        }
        groups.values().map(|values| median(values)).collect()
    }

    /// The median of the units that are repeated, with its interval: by ranks, so that it needs six of them at 95 %.
    ///
    /// # Errors
    /// A confidence outside (0, 1).
    pub fn median(&self, confidence: f64) -> Result<IntervalEstimate, StatsError> {
        median_with_interval(&self.unit_values()?, confidence)
    }

    /// The distribution of the values with its band, which allows for values that share the luck of a machine, boot or run.
    ///
    /// # Errors
    /// A confidence outside (0, 1).
    pub fn distribution(&self, confidence: f64) -> Result<EmpiricalDistribution, StatsError> {
        let level = self.repetition_level();
        let effective = match level {
            RepetitionLevel::Iteration => self.points.len() as f64,
            _ => effective_size(&self.points, ChangeScale::Absolute, |point| (self.unit_of(point, level), 0)),
        };
        empirical_distribution(&self.values(), effective, confidence)
    }
}

/// The metrics of sides, line by line. With `by`, a line is a level of that factor, on each side; else it is a side. Without a choice of
/// metrics in the options, those of a case that decide; all where none does.
///
/// # Errors
/// No run; a factor that was not varied, naming those that were; conditions, metrics and workloads that nothing meets, naming what
/// there is.
pub fn metric_lines(
    sides: &[ComparisonSide],
    by: Option<&str>,
    options: &AnalysisOptions,
) -> Result<Vec<MetricLines>, AnalyzeError> {
    let given: Vec<&ComparisonSide> = sides.iter().collect();
    check_runs_present(&given)?;
    check_conditions(sides.iter().flat_map(|side| &side.runs), &options.conditions)?;
    let (first, rest) = match sides.split_first() {
        Some(sides) => sides,
        None => return Ok(Vec::new()),
    };
    let (counted, _) = count_contents_once(first, rest);
    let sides: Vec<&ComparisonSide> = counted.iter().map(AsRef::as_ref).collect();
    let mut index = SampleIndex::default();
    let mut hidden: Vec<String> = compared_factors(&sides).into_iter().map(|factor| factor.name).collect();
    hidden.extend(by.map(str::to_owned));
    let mut tables: Vec<AlignedSide> = Vec::new();
    for side in &sides {
        let Some(factor) = by else {
            let selection = CaseSelection { level: None, hidden: hidden.clone() };
            tables.push(index.align_side(side, &side.name, &selection, options));
            continue;
        };
        for level in side_levels(side, factor)? {
            let name = if sides.len() > 1 { format!("{} {level}", side.name) } else { level.clone() };
            let selection = CaseSelection { level: Some((factor.into(), level)), hidden: hidden.clone() };
            tables.push(index.align_side(side, &name, &selection, options));
        }
    }
    let found = collect_lines(&index, &tables, options);
    if found.is_empty() {
        let side = sides.iter().map(|side| side.name.as_str()).collect::<Vec<_>>().join("`, `");
        let filter: Vec<&str> =
            options.metrics.iter().chain(&options.workloads).map(String::as_str).collect();
        return Err(AnalyzeError::NoSamples {
            side,
            filter: filter.join(", "),
            known: sampled_metrics(&sides),
        });
    }
    Ok(found)
}

/// The levels of a factor on a side, in the order of the study; one alone is a line, too.
fn side_levels(side: &ComparisonSide, factor: &str) -> Result<Vec<String>, AnalyzeError> {
    match factor_levels(side, factor) {
        Err(AnalyzeError::OneLevel { level, .. }) => Ok(vec![level]),
        other => other,
    }
}

fn collect_lines(index: &SampleIndex, tables: &[AlignedSide], options: &AnalysisOptions) -> Vec<MetricLines> {
    let has_values =
        |(_, cell): &(&(usize, usize), &crate::compare::alignment::MetricSamples)| cell.has_values();
    let cells = tables.iter().flat_map(|table| table.cells.iter()).filter(has_values);
    let primary: BTreeSet<(usize, usize)> =
        cells.clone().filter(|(_, cell)| cell.primary).map(|(key, _)| *key).collect();
    let deciding: BTreeSet<usize> = primary.iter().map(|(subject, _)| *subject).collect();
    let is_wanted = |key: &(usize, usize)| {
        !options.metrics.is_empty() || primary.contains(key) || !deciding.contains(&key.0)
    };
    // Cases as they are met, metrics that decide first.
    let mut keys: Vec<(usize, usize)> = cells.map(|(key, _)| *key).filter(is_wanted).collect();
    keys.sort_unstable_by_key(|key| (key.0, !primary.contains(key), key.1));
    let keys: IndexSet<(usize, usize)> = keys.into_iter().collect();
    keys.into_iter().filter_map(|key| lines_of_metric(index, tables, key)).collect()
}

fn lines_of_metric(index: &SampleIndex, tables: &[AlignedSide], key: (usize, usize)) -> Option<MetricLines> {
    let (subject, identity) = index.subjects.get_index(key.0)?;
    let metric = index.metrics.get_index(key.1)?;
    let cells = || tables.iter().filter_map(|table| Some((table, table.cells.get(&key)?)));
    let with_values = cells().filter(|(_, cell)| cell.has_values());
    let lines: Vec<SampleLine> = with_values
        .map(|(table, cell)| SampleLine {
            name: table.name.clone(),
            points: cell.points.to_vec(),
            machines: cell.machines(index),
        })
        .collect();
    let (_, first) = cells().next()?;
    Some(MetricLines {
        subject: subject.clone(),
        point: identity.point.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        metric: String::from(&metric.name),
        unit: metric.unit.clone(),
        direction: first.direction,
        primary: first.primary,
        lines,
    })
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::{RunBuilder, explanatory_metric, primary_metric};
    use perflab_model::{RunRecord, fact_table};

    use super::*;

    fn build_run(id: &str) -> RunRecord {
        RunBuilder::new(id)
            .with(|lab| {
                lab.factors = vec![("build", vec!["old", "new"]), ("pages", vec!["huge", "small"])];
                lab.metrics = vec![
                    primary_metric("time", "s", Direction::Lower),
                    explanatory_metric("latency-p99", "s", Direction::Lower),
                ];
            })
            .build_run(|at| {
                Some(f64::from(at.iteration) + if at.level("build") == "new" { 10.0 } else { 0.0 })
            })
    }

    fn side(name: &str) -> ComparisonSide {
        ComparisonSide { name: name.into(), runs: vec![build_run(name)] }
    }

    fn names<'a>(found: &'a [MetricLines]) -> Vec<(&'a str, &'a str, Vec<&'a str>)> {
        let of = |one: &'a MetricLines| {
            let lines = one.lines.iter().map(|line| line.name.as_str());
            (one.subject.as_str(), one.metric.as_str(), lines.collect())
        };
        found.iter().map(of).collect()
    }

    #[test]
    fn a_line_is_a_level_or_a_side() {
        let options = AnalysisOptions::default();
        let found = metric_lines(&[side("r")], Some("build"), &options).unwrap();
        let (huge, small) = ("sweep pages=huge", "sweep pages=small");
        assert_eq!(names(&found), [(huge, "time", vec!["old", "new"]), (small, "time", vec!["old", "new"])]);
        assert_eq!(found[0].lines[1].median(0.95).unwrap().value, 14.5);
        let conditions = vec!["pages=huge".parse().unwrap()];
        let options = AnalysisOptions { conditions, metrics: vec!["lat*".into()], ..options };
        let found = metric_lines(&[side("a"), side("b")], Some("build"), &options).unwrap();
        assert_eq!(names(&found), [(huge, "latency-p99", vec!["a old", "a new", "b old", "b new"])]);
        let found = metric_lines(&[side("a"), side("b")], None, &options).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].lines.len(), 2);
    }

    #[test]
    fn what_there_is_not_is_refused_by_name() {
        let refused = |options: &AnalysisOptions, by| metric_lines(&[side("r")], by, options).unwrap_err();
        let options = AnalysisOptions { metrics: vec!["nothing".into()], ..AnalysisOptions::default() };
        assert!(
            matches!(refused(&options, Some("build")), AnalyzeError::NoSamples { known, .. } if !known.is_empty())
        );
        let unknown = refused(&AnalysisOptions::default(), Some("size"));
        assert!(matches!(unknown, AnalyzeError::UnknownFactor { known, .. } if known.len() == 2));
        let empty = ComparisonSide { name: "e".into(), runs: Vec::new() };
        assert!(metric_lines(&[empty], None, &AnalysisOptions::default()).is_err());
        assert_eq!(metric_lines(&[], None, &AnalysisOptions::default()), Ok(Vec::new()));
    }

    #[test]
    fn repetitions_are_boots_where_there_are_several() {
        let run = RunBuilder::new("r").with(|lab| lab.boots = 3).build_run(|at| Some(f64::from(at.boot)));
        let side = ComparisonSide { name: "r".into(), runs: vec![run] };
        let found = metric_lines(&[side], None, &AnalysisOptions::default()).unwrap();
        let line = &found[0].lines[0];
        assert_eq!(line.repetition_level(), RepetitionLevel::Boot);
        assert!(line.median(0.95).unwrap().interval.is_none());
        // Three boots that differ are worth no more than three values.
        assert!(line.distribution(0.95).unwrap().reach > 0.7);
    }

    #[test]
    fn repetitions_are_machines_where_all_are_known() {
        let runs = |known: usize| -> Vec<RunRecord> {
            let run = |number: usize| {
                let mut run = RunBuilder::new(&format!("r{number}"))
                    .with(|lab| lab.boot_id = format!("boot {number}"))
                    .build_run(|_| Some((number / 2) as f64));
                if number < known {
                    let machine = format!("machine {}", number / 2);
                    run.manifest.facts.add(fact_table::MACHINE_ID, machine.as_str(), "/etc/machine-id");
                }
                run
            };
            (0..12).map(run).collect()
        };
        let line = |known| {
            let side = ComparisonSide { name: "r".into(), runs: runs(known) };
            metric_lines(&[side], None, &AnalysisOptions::default()).unwrap().remove(0).lines.remove(0)
        };
        let (machines, boots) = (line(12), line(11));
        assert_eq!(machines.repetition_level(), RepetitionLevel::Machine);
        assert_eq!(boots.repetition_level(), RepetitionLevel::Boot);
        // Two boots of a machine do not make its value count twice.
        assert_eq!(machines.median(0.95).unwrap().value, 2.5);
        let reach = |line: &SampleLine| line.distribution(0.95).unwrap().reach;
        assert!(reach(&machines) > 1.3 * reach(&boots), "{} {}", reach(&machines), reach(&boots));
    }
}
