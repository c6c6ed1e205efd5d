//! Startups of an application by prefetch mode and cache state.

use std::collections::BTreeMap;

use perflab_model::fact_table;
use perflab_model::{Case, RunRecord, Scalar};
use perflab_stats::{IntervalEstimate, mean, median, median_with_interval, sd};

/// Confidence of every interval.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// How a start was made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StartupMode {
    /// `none`, `sync`, `async`, `staged`
    pub prefetch: String,
    /// what was in memory: `3` nothing, `1` names and inodes, `warm` everything
    pub caches: String,
    /// whether the application read ahead by itself
    pub own: bool,
}

/// Every start of one mode.
#[derive(Debug, Clone, PartialEq)]
pub struct StartupSamples {
    /// Which mode.
    pub mode: StartupMode,
    /// Seconds of each start, in the order in which they were made.
    pub walls: Vec<f64>,
    /// Their mean, s.
    pub mean: f64,
    /// Their standard deviation, s; 0 of one start.
    pub deviation: f64,
    /// Median of each other metric, by its name: `major-faults`, `requests`, `read` (bytes), `prefetch` (s), `cpu` (s), `delay` (s).
    pub others: BTreeMap<String, f64>,
    wall: Option<IntervalEstimate>,
}

impl StartupSamples {
    /// The median with its interval, s.
    pub fn wall_time(&self) -> Option<&IntervalEstimate> {
        self.wall.as_ref()
    }
}

/// One application's startups.
#[derive(Debug, Clone, PartialEq)]
pub struct StartupApplication {
    /// As the study calls it.
    pub name: String,
    /// Ways, cold ones first.
    pub starts: Vec<StartupSamples>,
    /// Whether the workload of the catalogue started it, as the tests of 2007 did.
    pub is_from_catalogue: bool,
}

impl StartupApplication {
    pub(crate) fn find_samples(&self, prefetch: &str, caches: &str, own: bool) -> Option<&StartupSamples> {
        let is = |mode: &StartupMode| mode.prefetch == prefetch && mode.caches == caches && mode.own == own;
        self.starts.iter().find(|starts| is(&starts.mode))
    }

    /// Whether it was started so that it reads ahead by itself.
    pub(crate) fn reads_ahead_itself(&self) -> bool {
        self.starts.iter().any(|starts| starts.mode.own)
    }
}

/// The workload of the catalogue that starts applications as the tests of 2007 did.
pub(crate) const WORKLOAD_OF_2007: &str = "application-start";

/// The applications of a run that were started in several prefetch modes; none where nothing was read ahead.
pub fn startup_applications(record: &RunRecord) -> Vec<StartupApplication> {
    let mut all: BTreeMap<(String, bool), BTreeMap<StartupMode, StartupMeasurements<'_>>> = BTreeMap::new();
    for sample in &record.samples {
        let Some((case, mode)) =
            record.manifest.plan.case(sample.case).and_then(|case| Some((case, startup_mode(case)?)))
        else {
            continue;
        };
        let measured = all
            .entry((case.label_without_levels(), case.uses == WORKLOAD_OF_2007))
            .or_default()
            .entry(mode)
            .or_default();
        measured.entry(&sample.metric).or_default().push(sample.value);
    }
    let several = |modes: &BTreeMap<StartupMode, StartupMeasurements<'_>>| {
        modes.keys().any(|mode| mode.prefetch != "none")
    };
    let found = all.into_iter().filter(|(_, modes)| several(modes));
    found
        .map(|((name, is_from_catalogue), modes)| build_application(name, is_from_catalogue, modes))
        .collect()
}

/// What takes pages out of memory that no program maps, though nobody is short of it, by the facts of a run: pages that were
/// read ahead may be read twice then, and warm startups may read. It is the place where the kernel says so.
pub fn proactive_reclaim_source(record: &RunRecord) -> Option<&str> {
    let mut damon = record.manifest.facts.iter().filter(|(key, _)| fact_table::RECLAIM_DAMON.matches(key));
    let takes = |value: &str| value == "true" || value.split(' ').any(|action| action == "pageout");
    damon.find(|(_, fact)| takes(&fact.value.to_string())).map(|(_, fact)| fact.source.as_str())
}

/// Values by metric.
type StartupMeasurements<'a> = BTreeMap<&'a str, Vec<f64>>;

fn startup_mode(case: &Case) -> Option<StartupMode> {
    let text = |name: &str| case.parameters.get(name).map(ToString::to_string);
    let own = case.parameters.get("own").is_some_and(|own| *own == Scalar::Text("on".into()));
    Some(StartupMode { prefetch: text("prefetch")?, caches: text("caches")?, own })
}

fn build_application(
    name: String,
    is_from_catalogue: bool,
    modes: BTreeMap<StartupMode, StartupMeasurements<'_>>,
) -> StartupApplication {
    let mut starts: Vec<StartupSamples> =
        modes.into_iter().filter_map(|(mode, measured)| startup_samples(mode, &measured)).collect();
    starts.sort_by_key(|starts| mode_rank(&starts.mode));
    StartupApplication { name, starts, is_from_catalogue }
}

/// As the tables of 2007: what was dropped, whether the application read ahead by itself, then how it was read ahead.
fn mode_rank(mode: &StartupMode) -> (usize, bool, usize) {
    let place = |all: &[&str], one: &str| all.iter().position(|name| *name == one).unwrap_or(all.len());
    let caches = place(&["3", "1", "warm"], &mode.caches);
    (caches, mode.own, place(&["none", "async", "sync", "staged", "relaid", "arranged"], &mode.prefetch))
}

fn startup_samples(mode: StartupMode, measured: &StartupMeasurements<'_>) -> Option<StartupSamples> {
    let walls = measured.get("wall")?.clone();
    let mean = mean(&walls).ok()?;
    let deviation = sd(&walls).unwrap_or(0.0);
    let others = measured.iter().filter(|(name, _)| **name != "wall");
    let others = others.filter_map(|(name, values)| Some(((*name).to_owned(), median(values).ok()?)));
    let (others, wall) = (others.collect(), median_with_interval(&walls, CONFIDENCE).ok());
    Some(StartupSamples { mode, walls, mean, deviation, others, wall })
}

#[cfg(test)]
pub(crate) mod tests {
    use indexmap::IndexMap;
    use perflab_model::{Case, Direction, Scalar};

    use super::*;
    use fixtures::run_builder::{RunBuilder, primary_metric};

    /// Starts of an application: a median by mode, with a spread of 2 %.
    pub(crate) fn startup_run(seconds: impl Fn(&str, &str) -> f64) -> RunRecord {
        let lab = RunBuilder::new("run").with(|lab| {
            lab.factors = vec![("prefetch", vec!["none", "sync", "async"]), ("caches", vec!["3", "1"])];
            lab.metrics = vec![primary_metric("wall", "s", Direction::Lower)];
            lab.iterations = 8;
        });
        let mut record = lab.build_run(|spot| {
            Some(
                seconds(spot.level("prefetch"), spot.level("caches"))
                    * (1.0 + f64::from(spot.iteration) / 400.0),
            )
        });
        for case in &mut record.manifest.plan.cases {
            *case = Case {
                uses: WORKLOAD_OF_2007.into(),
                parameters: case_parameters(&case.levels),
                ..case.clone()
            };
        }
        record
    }

    fn case_parameters(levels: &IndexMap<String, String>) -> IndexMap<String, Scalar> {
        levels.iter().map(|(name, level)| (name.clone(), Scalar::Text(level.clone()))).collect()
    }

    #[test]
    fn a_run_without_reading_ahead_has_no_such_section() {
        let mut record = startup_run(|_, _| 1.0);
        record.manifest.plan.cases.iter_mut().for_each(|case| {
            case.parameters.insert("prefetch".into(), Scalar::Text("none".into()));
        });
        assert!(startup_applications(&record).is_empty());
    }

    #[test]
    fn what_pages_out_is_known_by_its_fact() {
        let mut record = startup_run(|_, _| 1.0);
        let mut found = |key: &str, value: Scalar| {
            record.manifest.facts = perflab_model::Facts::default();
            let fact = perflab_model::Fact { value, source: key.into() };
            record.manifest.facts.extend([(format!("reclaim.{key}"), fact)]);
            proactive_reclaim_source(&record).map(str::to_owned)
        };
        let text = |actions: &str| Scalar::Text(actions.into());
        assert_eq!(found("damon.0", text("hugepage")), None);
        assert_eq!(found("damon.1", text("cold pageout")), Some("damon.1".into()));
        assert_eq!(found("damon.reclaim", Scalar::Bool(false)), None);
        assert_eq!(found("damon.reclaim", Scalar::Bool(true)), Some("damon.reclaim".into()));
        assert_eq!(found("lru_gen", Scalar::Bool(true)), None);
    }
}
