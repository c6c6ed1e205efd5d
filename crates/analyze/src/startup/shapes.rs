//! The five shapes of 2007, each held against the starts of one application.

use std::fmt;

use perflab_stats::{Estimate, hodges_lehmann_ratio};
use serde::{Serialize, Serializer};

use super::{Application, CONFIDENCE, Starts};

/// Whether a shape is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The interval lies on its side.
    Holds,
    /// It lies on the other side.
    Fails,
    /// It lies on both, or there are too few starts for one.
    Unclear,
    /// The run has not what it takes.
    Unmeasured,
}

/// One shape.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shape {
    /// What was seen in 2007.
    pub claim: &'static str,
    /// Its figures.
    pub then: &'static str,
    /// Whether it is seen here.
    pub standing: Standing,
    /// The figures here.
    pub now: String,
    /// Why it fails, or is not measured; empty where nothing needs to be said.
    pub why: &'static str,
}

impl Standing {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Standing::Holds => "holds",
            Standing::Fails => "does not hold",
            Standing::Unclear => "is unclear",
            Standing::Unmeasured => "is not measured",
        }
    }
}

impl Serialize for Standing {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.words())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "\u{201c}{}\u{201d} {}", self.claim, self.standing.words())?;
        let further = [self.now.as_str(), self.why].into_iter().filter(|text| !text.is_empty());
        match further.collect::<Vec<_>>().join("; ") {
            text if text.is_empty() => Ok(()),
            text => write!(to, ": {text}"),
        }
    }
}

pub(super) fn shapes(of: &Application) -> Vec<Shape> {
    vec![gain(of), own(of), order(of), metadata(of), faults(of), turns()]
}

fn gain(of: &Application) -> Shape {
    let (standing, now) = less(of.of("sync", "3", false), of.of("none", "3", false));
    Shape {
        claim: "reading ahead before nothing",
        then: "10.78 s against 12.99 s (tests 2 and 3)",
        standing,
        now,
        why: why(
            standing,
            "a start that is bound by its own work, or by few large files, has little to gain",
        ),
    }
}

fn own(of: &Application) -> Shape {
    let ahead = less(of.of("async", "3", false), of.of("none", "3", true));
    let own = less(of.of("none", "3", true), of.of("none", "3", false));
    let standing = match (ahead.0, own.0) {
        (Standing::Holds, Standing::Holds) => Standing::Holds,
        (Standing::Unmeasured, _) | (_, Standing::Unmeasured) => Standing::Unmeasured,
        (Standing::Fails, _) | (_, Standing::Fails) => Standing::Fails,
        _ => Standing::Unclear,
    };
    let now = match standing {
        Standing::Unmeasured => String::new(),
        _ => format!("ahead to own: {}; own to nothing: {}", ahead.1, own.1),
    };
    Shape {
        claim: "reading ahead before the application\u{2019}s own before nothing",
        then: "11.01 s, 12.74 s, 14.38 s (test 8)",
        standing,
        now,
        why: match standing {
            Standing::Unmeasured if !of.reads_by_itself() => "this application reads nothing ahead by itself",
            _ => why(
                standing,
                "today\u{2019}s own reads a few libraries whole, whose parts the kernel reads around anyway",
            ),
        },
    }
}

fn order(of: &Application) -> Shape {
    let (standing, now) = less(of.of("sync", "3", false), of.of("async", "3", false));
    let why = why(
        standing,
        "then files were read by number and metadata when they were met; with metadata first and files as they lie on the disk, \
         reading beside the program loses nothing to it",
    );
    Shape { claim: "sync before async", then: "10.78 s against 11.61 s (test 2)", standing, now, why }
}

fn metadata(of: &Application) -> Shape {
    let (standing, now) = less(of.of("none", "1", false), of.of("none", "3", false));
    Shape {
        claim: "metadata have their share",
        then: "drop 1 against drop 3: 9.29 s to 10.78 s sync, 14 % (test 2)",
        standing,
        now,
        why: why(
            standing,
            "few files, or a table of inodes that lies together, leave little to names and inodes",
        ),
    }
}

fn faults(of: &Application) -> Shape {
    let count = |prefetch| of.of(prefetch, "3", false).and_then(|starts| starts.others.get("major-faults"));
    let (standing, now) = match [count("none"), count("async"), count("sync")] {
        [Some(none), Some(beside), Some(sync)] => {
            let holds = sync <= beside && beside < none && *sync < 0.2 * none;
            let standing = if holds { Standing::Holds } else { Standing::Fails };
            (standing, format!("none {none:.0}, async {beside:.0}, sync {sync:.0}"))
        }
        _ => (Standing::Unmeasured, String::new()),
    };
    let why = why(
        standing,
        "what is only read, and not mapped, faults at no start; what the trace lacks faults at all",
    );
    Shape {
        claim: "major faults nearly vanish with sync, most of them with async",
        then: "1049, 220 to 400, 6 (tests 2 and 3)",
        standing,
        now,
        why,
    }
}

/// How many starts it takes is no question of time: it is how it works.
fn turns() -> Shape {
    Shape {
        claim: "the first start learns, the second traces, the third gains",
        then: "by design (test 8)",
        standing: Standing::Unmeasured,
        now: String::new(),
        why: "here the first start traces and the second gains, as the study asks for it; `perflab prefetch daemon` looks first, as \
              the module did",
    }
}

const LACKS: &str =
    "the run has not all the starts that it compares (caches 3 and 1, reading ahead none, async and sync)";

fn why(standing: Standing, reason: &'static str) -> &'static str {
    match standing {
        Standing::Fails => reason,
        Standing::Unmeasured => LACKS,
        Standing::Holds | Standing::Unclear => "",
    }
}

/// Whether one way takes less time than another, and the ratio of both in words.
fn less(one: Option<&Starts>, other: Option<&Starts>) -> (Standing, String) {
    let (Some(one), Some(other)) = (one, other) else { return (Standing::Unmeasured, String::new()) };
    let medians = |starts: &Starts| starts.wall().map_or(starts.mean, |wall| wall.value);
    let times = format!("{:.2} s to {:.2} s", medians(one), medians(other));
    match hodges_lehmann_ratio(&other.walls, &one.walls, CONFIDENCE) {
        Ok(ratio) => (standing(&ratio), format!("{times}, {}", words(&ratio))),
        Err(_) => (Standing::Unclear, times),
    }
}

fn standing(ratio: &Estimate) -> Standing {
    match &ratio.interval {
        Some(interval) if interval.high < 1.0 => Standing::Holds,
        Some(interval) if interval.low > 1.0 => Standing::Fails,
        _ => Standing::Unclear,
    }
}

fn words(ratio: &Estimate) -> String {
    let percent = |value: f64| format!("{:+.1}", (value - 1.0) * 100.0).replace('-', "\u{2212}");
    match &ratio.interval {
        Some(interval) => {
            format!("{} % [{}, {}]", percent(ratio.value), percent(interval.low), percent(interval.high))
        }
        None => format!("{} %, too few starts for an interval", percent(ratio.value)),
    }
}
