//! What was measured in 2007, for comparison: K. Lichota's tests 2, 3 and 8 of a kernel module that read OpenOffice Writer
//! ahead, on an Athlon of 1.2 GHz with 256 MB and a disk of 7,200 turns a minute. Means and standard deviations.

use serde::Serialize;

/// One row of the tables of 2007.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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
