//! Startups of an application by prefetch mode and cache state, and whether the claims of 2007 hold today.
//!
//! In 2007 eight tests of a kernel module on OpenOffice said what reading ahead gains; their figures are
//! [`STARTUPS_OF_2007`](crate::STARTUPS_OF_2007). A claim holds here where the interval of a ratio of startups (Hodges
//! and Lehmann) lies on its side of 1.

use std::collections::BTreeMap;

use perflab_model::{Case, RunRecord, Scalar};
use perflab_stats::{IntervalEstimate, mean, median, median_with_interval, sd};
use serde::Serialize;

use crate::startup_2007::HistoricalClaim;

/// Confidence of every interval.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// How a start was made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct StartupMode {
    /// `none`, `sync`, `async`, `staged`
    pub prefetch: String,
    /// what was in memory: `3` nothing, `1` names and inodes, `warm` everything
    pub caches: String,
    /// whether the application read ahead by itself
    pub own: bool,
}

/// Every start of one way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StartupSamples {
    /// Which way.
    pub way: StartupMode,
    /// Seconds of each start, in the order in which they were made.
    pub walls: Vec<f64>,
    /// Their mean, s.
    pub mean: f64,
    /// Their standard deviation, s; 0 of one start.
    pub deviation: f64,
    /// Median of each other metric, by its name: `major-faults`, `requests`, `read` (bytes), `prefetch` (s), `cpu` (s), `delay` (s).
    pub others: BTreeMap<String, f64>,
    #[serde(skip)]
    wall: Option<IntervalEstimate>,
}

impl StartupSamples {
    /// The median with its interval, s.
    pub fn wall_time(&self) -> Option<&IntervalEstimate> {
        self.wall.as_ref()
    }
}

/// One application's startups.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StartupApplication {
    /// As the study calls it.
    pub name: String,
    /// Ways, cold ones first.
    pub starts: Vec<StartupSamples>,
    /// What was seen in 2007, and whether it is here; empty where it is not the applications of the catalogue that were started.
    pub shapes: Vec<HistoricalClaim>,
}

impl StartupApplication {
    pub(crate) fn find_samples(&self, prefetch: &str, caches: &str, own: bool) -> Option<&StartupSamples> {
        let is = |way: &StartupMode| way.prefetch == prefetch && way.caches == caches && way.own == own;
        self.starts.iter().find(|starts| is(&starts.way))
    }

    /// Whether it was started so that it reads ahead by itself.
    pub(crate) fn reads_ahead_itself(&self) -> bool {
        self.starts.iter().any(|starts| starts.way.own)
    }
}

/// The workload of the catalogue that starts applications as the tests of 2007 did.
const WORKLOAD_OF_2007: &str = "application-start";

/// The applications of a run that were started in several prefetch modes; none where nothing was read ahead.
pub fn startup_applications(record: &RunRecord) -> Vec<StartupApplication> {
    let mut all: BTreeMap<(String, bool), BTreeMap<StartupMode, StartupMeasurements<'_>>> = BTreeMap::new();
    for sample in &record.samples {
        let Some((case, way)) =
            record.manifest.plan.case(sample.case).and_then(|case| Some((case, startup_mode(case)?)))
        else {
            continue;
        };
        let measured = all
            .entry((case.label_without_levels(), case.uses == WORKLOAD_OF_2007))
            .or_default()
            .entry(way)
            .or_default();
        measured.entry(&sample.metric).or_default().push(sample.value);
    }
    let several =
        |ways: &BTreeMap<StartupMode, StartupMeasurements<'_>>| ways.keys().any(|way| way.prefetch != "none");
    let found = all.into_iter().filter(|(_, ways)| several(ways));
    found.map(|((name, as_then), ways)| build_application(name, as_then, ways)).collect()
}

/// What takes pages out of memory that no program maps, though nobody is short of it, by the facts of a run: pages that were
/// read ahead may be read twice then, and warm startups may read. It is the place where the kernel says so.
pub fn proactive_reclaim_source(record: &RunRecord) -> Option<&str> {
    let mut damon = record.manifest.facts.0.iter().filter(|(key, _)| key.starts_with("reclaim.damon."));
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
    as_then: bool,
    ways: BTreeMap<StartupMode, StartupMeasurements<'_>>,
) -> StartupApplication {
    let mut starts: Vec<StartupSamples> =
        ways.into_iter().filter_map(|(way, measured)| startup_samples(way, &measured)).collect();
    starts.sort_by_key(|starts| mode_rank(&starts.way));
    let mut application = StartupApplication { name, starts, shapes: Vec::new() };
    if as_then {
        application.shapes = crate::startup_2007::claims_of_2007(&application);
    }
    application
}

/// As the tables of 2007: what was dropped, whether the application read ahead by itself, then how it was read ahead.
fn mode_rank(way: &StartupMode) -> (usize, bool, usize) {
    let place = |all: &[&str], one: &str| all.iter().position(|name| *name == one).unwrap_or(all.len());
    let caches = place(&["3", "1", "warm"], &way.caches);
    (caches, way.own, place(&["none", "async", "sync", "staged", "relaid", "arranged"], &way.prefetch))
}

fn startup_samples(way: StartupMode, measured: &StartupMeasurements<'_>) -> Option<StartupSamples> {
    let walls = measured.get("wall")?.clone();
    let mean = mean(&walls).ok()?;
    let deviation = sd(&walls).unwrap_or(0.0);
    let others = measured.iter().filter(|(name, _)| **name != "wall");
    let others = others.filter_map(|(name, values)| Some(((*name).to_owned(), median(values).ok()?)));
    let (others, wall) = (others.collect(), median_with_interval(&walls, CONFIDENCE).ok());
    Some(StartupSamples { way, walls, mean, deviation, others, wall })
}

#[cfg(test)]
mod tests {
    use crate::startup_2007::{ClaimStatus, STARTUPS_OF_2007};
    use indexmap::IndexMap;
    use perflab_model::{Case, Direction, Nanos, Sample, Scalar, Unit};

    use super::*;
    use crate::build::{RunBuilder, primary_metric};

    /// Starts of an application: a median by way, with a spread of 2 %.
    fn startup_run(seconds: impl Fn(&str, &str) -> f64) -> RunRecord {
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

    fn status_of_claim(application: &StartupApplication, claim: &str) -> ClaimStatus {
        application.shapes.iter().find(|shape| shape.claim.starts_with(claim)).unwrap().standing
    }

    #[test]
    fn the_figures_of_2007_have_the_shapes_of_2007() {
        let then = |prefetch: &str, caches: &str| match (prefetch, caches) {
            ("none", "1") => 11.5,
            _ => {
                STARTUPS_OF_2007
                    .iter()
                    .find(|row| row.prefetch == prefetch && row.caches == caches)
                    .unwrap()
                    .mean
            }
        };
        let mut record = startup_run(then);
        let faults = |case, value| Sample {
            boot: 0,
            target: None,
            case,
            iteration: 0,
            metric: "major-faults".into(),
            value,
            unit: Unit::new("1"),
            direction: Direction::Lower,
            primary: false,
            start: Nanos(0),
            end: Nanos(1),
        };
        for (case, of) in record.manifest.plan.cases.clone().iter().enumerate() {
            let row = STARTUPS_OF_2007.iter().find(|row| row.prefetch == of.levels["prefetch"]).unwrap();
            record.samples.push(faults(case as u32, row.faults));
        }
        let found = startup_applications(&record);
        let [application] = &found[..] else { panic!("{found:?}") };
        for claim in ["reading ahead before nothing", "sync before async", "metadata", "major faults"] {
            assert_eq!(status_of_claim(application, claim), ClaimStatus::Holds, "{claim}");
        }
        assert_eq!(
            status_of_claim(application, "reading ahead before the application"),
            ClaimStatus::Unmeasured
        );
        let cold = application.find_samples("none", "3", false).unwrap();
        assert!((cold.wall_time().unwrap().value - 13.1).abs() < 0.2 && cold.deviation > 0.0, "{cold:?}");
    }

    #[test]
    fn a_shape_that_is_turned_round_fails_with_its_reason_and_one_that_is_none_is_unclear() {
        let found =
            startup_applications(&startup_run(|prefetch, _| if prefetch == "sync" { 5.0 } else { 4.5 }));
        assert_eq!(status_of_claim(&found[0], "sync before async"), ClaimStatus::Fails);
        let shape = found[0].shapes.iter().find(|shape| shape.claim == "sync before async").unwrap();
        assert!(shape.now.contains("+11.1 % [") && shape.why.contains("metadata first"), "{shape:?}");
        assert_eq!(status_of_claim(&found[0], "metadata"), ClaimStatus::Unclear);
    }

    #[test]
    fn a_shape_that_is_not_measured_says_what_lacks() {
        let why = |record: &RunRecord| {
            let found = startup_applications(record);
            let shape = found[0].shapes.iter().find(|shape| shape.claim.contains("own before")).unwrap();
            assert_eq!(shape.standing, ClaimStatus::Unmeasured);
            shape.why
        };
        let mut record = startup_run(|_, _| 1.0);
        assert!(why(&record).contains("reads nothing ahead by itself"));
        for case in &mut record.manifest.plan.cases {
            case.parameters.insert("own".into(), Scalar::Text("on".into()));
        }
        assert!(why(&record).contains("has not all the starts"));
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
            record.manifest.facts.add(&format!("reclaim.{key}"), value, key);
            proactive_reclaim_source(&record).map(str::to_owned)
        };
        let text = |actions: &str| Scalar::Text(actions.into());
        assert_eq!(found("damon.0", text("hugepage")), None);
        assert_eq!(found("damon.1", text("cold pageout")), Some("damon.1".into()));
        assert_eq!(found("damon.reclaim", Scalar::Bool(false)), None);
        assert_eq!(found("damon.reclaim", Scalar::Bool(true)), Some("damon.reclaim".into()));
        assert_eq!(found("lru_gen", Scalar::Bool(true)), None);
    }

    #[test]
    fn what_is_started_beside_the_catalogue_is_not_held_against_2007() {
        let mut record = startup_run(|_, _| 1.0);
        record.manifest.plan.cases.iter_mut().for_each(|case| case.uses = "start".into());
        let found = startup_applications(&record);
        assert!(found.len() == 1 && found[0].shapes.is_empty(), "{found:?}");
    }
}
