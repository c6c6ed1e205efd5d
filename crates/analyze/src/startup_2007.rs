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

/// What was seen in 2007.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimOf2007 {
    /// A startup that is read ahead takes less time than one that is not.
    ReadingAhead,
    /// Reading ahead takes less time than what the application reads ahead by itself, and that less than nothing.
    OwnReadingAhead,
    /// Reading all before the start takes less time than reading beside it.
    SyncBeforeAsync,
    /// Names and inodes have a share of the gain.
    Metadata,
    /// Major faults nearly vanish with sync, most of them with async.
    MajorFaults,
    /// The first startup learns, the second traces, the third gains.
    StartupsNeeded,
}

/// One claim, and whether it holds here.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoricalClaim {
    /// What was seen in 2007.
    pub claim: ClaimOf2007,
    /// Whether it is seen here.
    pub status: ClaimStatus,
    /// The figures here.
    pub figures: ClaimFigures,
    /// Whether the application reads ahead by itself.
    pub reads_ahead_itself: bool,
}

/// What a claim is held against.
#[derive(Debug, Clone, PartialEq)]
pub enum ClaimFigures {
    /// Nothing was measured.
    None,
    /// One kind of startup against another.
    Startups(StartupRatio),
    /// Reading ahead against the application's own, and that against none.
    TwoSteps(StartupRatio, StartupRatio),
    /// Major faults of a startup.
    MajorFaults {
        /// With nothing read ahead.
        none: f64,
        /// Read beside the start.
        beside: f64,
        /// Read before the start.
        before: f64,
    },
}

/// One kind of startup against another.
#[derive(Debug, Clone, PartialEq)]
pub struct StartupRatio {
    /// Medians of both, in seconds.
    pub seconds: (f64, f64),
    /// Hodges and Lehmann's ratio of the first to the second; absent where it could not be computed.
    pub ratio: Option<f64>,
    /// Its interval; absent where there are too few startups.
    pub interval: Option<(f64, f64)>,
}

/// What was seen in 2007, and whether it is here; nothing where it is not the workload of the catalogue that started the
/// application.
pub fn claims_of_2007(of: &StartupApplication) -> Vec<HistoricalClaim> {
    if !of.is_from_catalogue {
        return Vec::new();
    }
    let claim = |claim, (status, figures)| HistoricalClaim {
        claim,
        status,
        figures,
        reads_ahead_itself: of.reads_ahead_itself(),
    };
    let compare = |one: (&str, &str), other: (&str, &str)| {
        compare_startups(of.find_samples(one.0, one.1, false), of.find_samples(other.0, other.1, false))
    };
    // How many startups it takes is not a question of time: it is how the mode works.
    let by_design = (ClaimStatus::Unmeasured, ClaimFigures::None);
    vec![
        claim(ClaimOf2007::ReadingAhead, compare(("sync", "3"), ("none", "3"))),
        claim(ClaimOf2007::OwnReadingAhead, compare_own_prefetch(of)),
        claim(ClaimOf2007::SyncBeforeAsync, compare(("sync", "3"), ("async", "3"))),
        claim(ClaimOf2007::Metadata, compare(("none", "1"), ("none", "3"))),
        claim(ClaimOf2007::MajorFaults, compare_major_faults(of)),
        claim(ClaimOf2007::StartupsNeeded, by_design),
    ]
}

fn compare_own_prefetch(of: &StartupApplication) -> (ClaimStatus, ClaimFigures) {
    let ahead = compare_startups(of.find_samples("async", "3", false), of.find_samples("none", "3", true));
    let own = compare_startups(of.find_samples("none", "3", true), of.find_samples("none", "3", false));
    let status = match (ahead.0, own.0) {
        (ClaimStatus::Holds, ClaimStatus::Holds) => ClaimStatus::Holds,
        (ClaimStatus::Unmeasured, _) | (_, ClaimStatus::Unmeasured) => ClaimStatus::Unmeasured,
        (ClaimStatus::Fails, _) | (_, ClaimStatus::Fails) => ClaimStatus::Fails,
        _ => ClaimStatus::Unclear,
    };
    match (ahead.1, own.1) {
        (ClaimFigures::Startups(ahead), ClaimFigures::Startups(own)) => {
            (status, ClaimFigures::TwoSteps(ahead, own))
        }
        _ => (status, ClaimFigures::None),
    }
}

fn compare_major_faults(of: &StartupApplication) -> (ClaimStatus, ClaimFigures) {
    let count = |prefetch| {
        of.find_samples(prefetch, "3", false).and_then(|starts| starts.others.get("major-faults")).copied()
    };
    let [Some(none), Some(beside), Some(before)] = [count("none"), count("async"), count("sync")] else {
        return (ClaimStatus::Unmeasured, ClaimFigures::None);
    };
    let holds = before <= beside && beside < none && before < 0.2 * none;
    let status = if holds { ClaimStatus::Holds } else { ClaimStatus::Fails };
    (status, ClaimFigures::MajorFaults { none, beside, before })
}

/// Whether one kind of startup takes less time than another, and the ratio of both.
fn compare_startups(
    one: Option<&StartupSamples>,
    other: Option<&StartupSamples>,
) -> (ClaimStatus, ClaimFigures) {
    let (Some(one), Some(other)) = (one, other) else {
        return (ClaimStatus::Unmeasured, ClaimFigures::None);
    };
    let median = |starts: &StartupSamples| starts.wall_time().map_or(starts.mean, |wall| wall.value);
    let ratio = hodges_lehmann_ratio(&other.walls, &one.walls, CONFIDENCE).ok();
    let status = ratio.as_ref().map_or(ClaimStatus::Unclear, claim_status);
    let interval = ratio.as_ref().and_then(|ratio| ratio.interval.as_ref());
    let found = StartupRatio {
        seconds: (median(one), median(other)),
        ratio: ratio.as_ref().map(|ratio| ratio.value),
        interval: interval.map(|interval| (interval.low, interval.high)),
    };
    (status, ClaimFigures::Startups(found))
}

fn claim_status(ratio: &IntervalEstimate) -> ClaimStatus {
    match &ratio.interval {
        Some(interval) if interval.high < 1.0 => ClaimStatus::Holds,
        Some(interval) if interval.low > 1.0 => ClaimStatus::Fails,
        _ => ClaimStatus::Unclear,
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

    fn find_claim(application: &StartupApplication, claim: ClaimOf2007) -> HistoricalClaim {
        claims_of_2007(application).into_iter().find(|one| one.claim == claim).unwrap()
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
        for claim in [
            ClaimOf2007::ReadingAhead,
            ClaimOf2007::SyncBeforeAsync,
            ClaimOf2007::Metadata,
            ClaimOf2007::MajorFaults,
        ] {
            assert_eq!(find_claim(application, claim).status, ClaimStatus::Holds, "{claim:?}");
        }
        assert_eq!(find_claim(application, ClaimOf2007::OwnReadingAhead).status, ClaimStatus::Unmeasured);
        let cold = application.find_samples("none", "3", false).unwrap();
        assert!((cold.wall_time().unwrap().value - 13.1).abs() < 0.2 && cold.deviation > 0.0, "{cold:?}");
    }

    #[test]
    fn a_claim_that_is_turned_round_fails_with_its_figures_and_one_that_is_none_is_unclear() {
        let found =
            startup_applications(&startup_run(|prefetch, _| if prefetch == "sync" { 5.0 } else { 4.5 }));
        let turned = find_claim(&found[0], ClaimOf2007::SyncBeforeAsync);
        let ClaimFigures::Startups(StartupRatio { ratio: Some(ratio), interval: Some(_), .. }) =
            &turned.figures
        else {
            panic!("{turned:?}")
        };
        assert_eq!(turned.status, ClaimStatus::Fails);
        assert!((ratio - 1.111).abs() < 0.001, "{ratio}");
        assert_eq!(find_claim(&found[0], ClaimOf2007::Metadata).status, ClaimStatus::Unclear);
    }

    #[test]
    fn a_claim_without_its_startups_is_not_measured() {
        let own =
            |record: &RunRecord| find_claim(&startup_applications(record)[0], ClaimOf2007::OwnReadingAhead);
        let mut record = startup_run(|_, _| 1.0);
        assert_eq!((own(&record).status, own(&record).reads_ahead_itself), (ClaimStatus::Unmeasured, false));
        for case in &mut record.manifest.plan.cases {
            case.parameters.insert("own".into(), Scalar::Text("on".into()));
        }
        assert_eq!((own(&record).status, own(&record).reads_ahead_itself), (ClaimStatus::Unmeasured, true));
    }

    #[test]
    fn what_is_started_beside_the_catalogue_is_not_held_against_2007() {
        let mut record = startup_run(|_, _| 1.0);
        record.manifest.plan.cases.iter_mut().for_each(|case| case.uses = "start".into());
        let found = startup_applications(&record);
        assert!(found.len() == 1 && claims_of_2007(&found[0]).is_empty(), "{found:?}");
    }
}
