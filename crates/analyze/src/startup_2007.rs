//! The claims of 2007 and their published figures, held against the startups of one application.
//!
//! Eight tests of a kernel module on OpenOffice said what reading ahead gains. A claim holds here where the interval of a
//! ratio of startups (Hodges and Lehmann) lies on its side of 1.
//!
//! Measured in 2007 by K. Lichota's tests 2, 3 and 8 of a kernel module that read OpenOffice Writer ahead, on an Athlon
//! of 1.2 GHz with 256 MB and a disk of 7,200 turns a minute. Means and standard deviations.

use perflab_stats::{IntervalEstimate, hodges_lehmann_ratio};

use crate::startup::{CONFIDENCE, StartupApplication, StartupSamples};

/// Whether a shape is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimStatus {
    /// The interval lies on its side.
    Holds,
    /// It lies on the other side.
    Fails,
    /// It lies on both, or there are too few startups for one.
    Unclear,
    /// The run has not what it takes.
    Unmeasured,
}

/// One shape.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoricalClaim {
    /// What was seen in 2007.
    pub claim: &'static str,
    /// Its figures.
    pub then: &'static str,
    /// Whether it is seen here.
    pub status: ClaimStatus,
    /// The figures here.
    pub now: String,
    /// Why it fails, or is not measured; empty where nothing needs to be said.
    pub why: &'static str,
}

impl ClaimStatus {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            ClaimStatus::Holds => "holds",
            ClaimStatus::Fails => "does not hold",
            ClaimStatus::Unclear => "is unclear",
            ClaimStatus::Unmeasured => "is not measured",
        }
    }
}

/// What was seen in 2007, and whether it is here; nothing where it is not the workload of the catalogue that started the
/// application.
pub fn claims_of_2007(of: &StartupApplication) -> Vec<HistoricalClaim> {
    if !of.is_from_catalogue {
        return Vec::new();
    }
    vec![
        gain_claim(of),
        own_prefetch_claim(of),
        prefetch_order_claim(of),
        metadata_claim(of),
        page_fault_claim(of),
        startups_needed_claim(),
    ]
}

fn gain_claim(of: &StartupApplication) -> HistoricalClaim {
    let (status, now) =
        compare_startups(of.find_samples("sync", "3", false), of.find_samples("none", "3", false));
    HistoricalClaim {
        claim: "reading ahead before nothing",
        then: "10.78 s against 12.99 s (tests 2 and 3)",
        status,
        now,
        why: explain_status(
            status,
            "a start that is bound by its own work, or by few large files, has little to gain",
        ),
    }
}

fn own_prefetch_claim(of: &StartupApplication) -> HistoricalClaim {
    let ahead = compare_startups(of.find_samples("async", "3", false), of.find_samples("none", "3", true));
    let own = compare_startups(of.find_samples("none", "3", true), of.find_samples("none", "3", false));
    let status = match (ahead.0, own.0) {
        (ClaimStatus::Holds, ClaimStatus::Holds) => ClaimStatus::Holds,
        (ClaimStatus::Unmeasured, _) | (_, ClaimStatus::Unmeasured) => ClaimStatus::Unmeasured,
        (ClaimStatus::Fails, _) | (_, ClaimStatus::Fails) => ClaimStatus::Fails,
        _ => ClaimStatus::Unclear,
    };
    let now = match status {
        ClaimStatus::Unmeasured => String::new(),
        _ => format!("ahead to own: {}; own to nothing: {}", ahead.1, own.1),
    };
    HistoricalClaim {
        claim: "reading ahead before the application\u{2019}s own before nothing",
        then: "11.01 s, 12.74 s, 14.38 s (test 8)",
        status,
        now,
        why: match status {
            ClaimStatus::Unmeasured if !of.reads_ahead_itself() => {
                "this application reads nothing ahead by itself"
            }
            _ => explain_status(
                status,
                "today\u{2019}s own reads a few libraries whole, whose parts the kernel reads around anyway",
            ),
        },
    }
}

fn prefetch_order_claim(of: &StartupApplication) -> HistoricalClaim {
    let (status, now) =
        compare_startups(of.find_samples("sync", "3", false), of.find_samples("async", "3", false));
    let why = explain_status(
        status,
        "then files were read by number and metadata when they were met; with metadata first and files as they lie on the disk, \
         reading beside the program loses nothing to it",
    );
    HistoricalClaim { claim: "sync before async", then: "10.78 s against 11.61 s (test 2)", status, now, why }
}

fn metadata_claim(of: &StartupApplication) -> HistoricalClaim {
    let (status, now) =
        compare_startups(of.find_samples("none", "1", false), of.find_samples("none", "3", false));
    HistoricalClaim {
        claim: "metadata have their share",
        then: "drop 1 against drop 3: 9.29 s to 10.78 s sync, 14 % (test 2)",
        status,
        now,
        why: explain_status(
            status,
            "few files, or a table of inodes that lies together, leave little to names and inodes",
        ),
    }
}

fn page_fault_claim(of: &StartupApplication) -> HistoricalClaim {
    let count =
        |prefetch| of.find_samples(prefetch, "3", false).and_then(|starts| starts.others.get("major-faults"));
    let (status, now) = match [count("none"), count("async"), count("sync")] {
        [Some(none), Some(beside), Some(sync)] => {
            let holds = sync <= beside && beside < none && *sync < 0.2 * none;
            let status = if holds { ClaimStatus::Holds } else { ClaimStatus::Fails };
            (status, format!("none {none:.0}, async {beside:.0}, sync {sync:.0}"))
        }
        _ => (ClaimStatus::Unmeasured, String::new()),
    };
    let why = explain_status(
        status,
        "what is only read, and not mapped, faults at no start; what the trace lacks faults at all",
    );
    HistoricalClaim {
        claim: "major faults nearly vanish with sync, most of them with async",
        then: "1049, 220 to 400, 6 (tests 2 and 3)",
        status,
        now,
        why,
    }
}

/// How many startups it takes is not a question of time: it is how the mode works.
fn startups_needed_claim() -> HistoricalClaim {
    HistoricalClaim {
        claim: "the first start learns, the second traces, the third gains",
        then: "by design (test 8)",
        status: ClaimStatus::Unmeasured,
        now: String::new(),
        why: "here the first start traces and the second gains, as the study asks for it; `perflab prefetch daemon` looks first, as \
              the module did",
    }
}

const MISSING_STARTUPS: &str =
    "the run has not all the starts that it compares (caches 3 and 1, reading ahead none, async and sync)";

fn explain_status(status: ClaimStatus, reason: &'static str) -> &'static str {
    match status {
        ClaimStatus::Fails => reason,
        ClaimStatus::Unmeasured => MISSING_STARTUPS,
        ClaimStatus::Holds | ClaimStatus::Unclear => "",
    }
}

/// Whether one way takes less time than another, and the ratio of both in words.
fn compare_startups(one: Option<&StartupSamples>, other: Option<&StartupSamples>) -> (ClaimStatus, String) {
    let (Some(one), Some(other)) = (one, other) else { return (ClaimStatus::Unmeasured, String::new()) };
    let medians = |starts: &StartupSamples| starts.wall_time().map_or(starts.mean, |wall| wall.value);
    let times = format!("{:.2} s to {:.2} s", medians(one), medians(other));
    match hodges_lehmann_ratio(&other.walls, &one.walls, CONFIDENCE) {
        Ok(ratio) => (claim_status(&ratio), format!("{times}, {}", describe_ratio(&ratio))),
        Err(_) => (ClaimStatus::Unclear, times),
    }
}

fn claim_status(ratio: &IntervalEstimate) -> ClaimStatus {
    match &ratio.interval {
        Some(interval) if interval.high < 1.0 => ClaimStatus::Holds,
        Some(interval) if interval.low > 1.0 => ClaimStatus::Fails,
        _ => ClaimStatus::Unclear,
    }
}

fn describe_ratio(ratio: &IntervalEstimate) -> String {
    let percent = |value: f64| format!("{:+.1}", (value - 1.0) * 100.0).replace('-', "\u{2212}");
    match &ratio.interval {
        Some(interval) => {
            format!("{} % [{}, {}]", percent(ratio.value), percent(interval.low), percent(interval.high))
        }
        None => format!("{} %, too few starts for an interval", percent(ratio.value)),
    }
}

/// One row of the tables of 2007.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublishedStartup {
    /// The test's number.
    pub test: u8,
    /// How it was read ahead: `none`, `sync`, `async`.
    pub prefetch: &'static str,
    /// Whether the application read ahead by itself (pagein).
    pub own: bool,
    /// What was written to drop_caches.
    pub caches: &'static str,
    /// Mean seconds to the first document.
    pub mean: f64,
    /// Standard deviation, s.
    pub deviation: f64,
    /// Major faults, about.
    pub faults: f64,
    /// Hundredths of a second that the main thread waited for disks; none where not published.
    pub ticks: Option<f64>,
}

const fn published_row(
    (test, caches): (u8, &'static str),
    (prefetch, own): (&'static str, bool),
    (mean, deviation): (f64, f64),
    (faults, ticks): (f64, Option<f64>),
) -> PublishedStartup {
    PublishedStartup { test, prefetch, own, caches, mean, deviation, faults, ticks }
}

/// The tables. Dropping with 2 is left out: it took pages along with inodes then, and takes neither where pages are
/// cached since.
pub const STARTUPS_OF_2007: [PublishedStartup; 9] = [
    published_row((3, "3"), ("none", false), (12.99, 0.22), (1049.0, Some(773.0))),
    published_row((2, "3"), ("async", false), (11.61, 0.15), (310.0, Some(663.0))),
    published_row((2, "3"), ("sync", false), (10.78, 0.13), (6.0, Some(569.0))),
    published_row((2, "1"), ("async", false), (10.16, 0.04), (245.0, Some(548.0))),
    published_row((2, "1"), ("sync", false), (9.29, 0.03), (6.0, Some(464.0))),
    published_row((8, "3"), ("none", false), (14.38, 0.05), (937.0, Some(915.0))),
    published_row((8, "3"), ("none", true), (12.74, 0.07), (535.0, Some(648.0))),
    published_row((8, "3"), ("async", true), (11.07, 0.11), (0.0, Some(494.0))),
    published_row((8, "3"), ("async", false), (11.01, 0.11), (0.0, Some(595.0))),
];

#[cfg(test)]
mod tests {
    use perflab_model::{Direction, Nanos, RunRecord, Sample, Scalar, Unit};

    use super::*;
    use crate::startup::startup_applications;
    use crate::startup::tests::startup_run;

    fn status_of_claim(application: &StartupApplication, claim: &str) -> ClaimStatus {
        claims_of_2007(application).into_iter().find(|shape| shape.claim.starts_with(claim)).unwrap().status
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
        let shape =
            claims_of_2007(&found[0]).into_iter().find(|shape| shape.claim == "sync before async").unwrap();
        assert!(shape.now.contains("+11.1 % [") && shape.why.contains("metadata first"), "{shape:?}");
        assert_eq!(status_of_claim(&found[0], "metadata"), ClaimStatus::Unclear);
    }

    #[test]
    fn a_shape_that_is_not_measured_says_what_lacks() {
        let why = |record: &RunRecord| {
            let found = startup_applications(record);
            let shape = claims_of_2007(&found[0])
                .into_iter()
                .find(|shape| shape.claim.contains("own before"))
                .unwrap();
            assert_eq!(shape.status, ClaimStatus::Unmeasured);
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
    fn what_is_started_beside_the_catalogue_is_not_held_against_2007() {
        let mut record = startup_run(|_, _| 1.0);
        record.manifest.plan.cases.iter_mut().for_each(|case| case.uses = "start".into());
        let found = startup_applications(&record);
        assert!(found.len() == 1 && claims_of_2007(&found[0]).is_empty(), "{found:?}");
    }
}
