//! `tests-timestamp`: when each benchmark of an iteration ran, how it ended, and what time it took.

use std::path::Path;

use perflab_model::Nanos;

use super::super::lines::{InputLines, LogLine};
use super::super::took::{FileReport, LineOutcome};
use crate::ArchiveError;

/// One benchmark of one iteration.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TestTimes {
    pub(super) name: String,
    pub(super) begin: Option<Nanos>,
    pub(super) end: Option<Nanos>,
    /// The status that it ended with.
    pub(super) status: Option<i64>,
    /// User, system and elapsed time in seconds.
    pub(super) times: Option<[f64; 3]>,
}

/// The benchmarks in the order in which they began.
#[derive(Debug, Default, PartialEq)]
pub(super) struct TestTimestamps(pub(super) Vec<TestTimes>);

impl TestTimestamps {
    pub(super) fn read(file: &Path) -> Result<(Self, FileReport), ArchiveError> {
        let mut lines = InputLines::open_optional(file);
        let (mut stamps, mut took) = (TestTimestamps::default(), FileReport::new(file, "samples"));
        while let Some(line) = lines.next_line()? {
            let number = line.number;
            if let Some(read) = stamps.take_line(line) {
                took.count_row(number, read);
            }
        }
        took.note_early_end(&lines);
        Ok((stamps, took))
    }

    pub(super) fn get(&self, name: &str) -> Option<&TestTimes> {
        self.0.iter().find(|test| test.name == name)
    }

    fn test_mut(&mut self, name: &str) -> Option<&mut TestTimes> {
        if self.get(name).is_none() {
            self.0.push(TestTimes { name: name.into(), ..TestTimes::default() });
        }
        self.0.iter_mut().find(|test| test.name == name)
    }

    fn take_line(&mut self, line: LogLine<'_>) -> Option<LineOutcome> {
        let (what, rest) = line.text.split_once(" :: ")?;
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let epoch = |word: &str| word.parse::<u32>().ok().map(|s| Nanos(u64::from(s) * 1_000_000_000));
        match (what, &words[..]) {
            ("test begin", [name, at, ..]) => {
                self.test_mut(name)?.begin = epoch(at);
                None
            }
            ("test end", [name, at, status @ ..]) => {
                let test = self.test_mut(name)?;
                test.end = epoch(at);
                test.status = status.first().and_then(|status| status.parse().ok());
                None
            }
            ("time", [name, user, "user", system, "system", elapsed, "elapsed"]) => {
                let times =
                    [user, system, elapsed].map(|word| word.parse::<f64>().ok().filter(|t| t.is_finite()));
                let [Some(user), Some(system), Some(elapsed)] = times else {
                    return Some(LineOutcome::Unusable("a time is no number".into()));
                };
                self.test_mut(name)?.times = Some([user, system, elapsed]);
                Some(LineOutcome::Used)
            }
            ("time", _) => {
                Some(LineOutcome::Unusable("it is not `time :: NAME U user S system E elapsed`".into()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_has_times_and_a_status() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tests-timestamp");
        let text = "start :: 5\ntest begin :: stream 6\ntest end :: stream 9 2\n\
                    time :: stream 1.5 user 0.25 system 3.00 elapsed\ntime :: dbench4 1.5 us\ntest begin :: dbench4 9\n";
        std::fs::write(&file, text).unwrap();
        let (stamps, took) = TestTimestamps::read(&file).unwrap();
        let stream = stamps.get("stream").unwrap();
        assert_eq!((stream.begin, stream.end), (Some(Nanos(6_000_000_000)), Some(Nanos(9_000_000_000))));
        assert_eq!((stream.status, stream.times), (Some(2), Some([1.5, 0.25, 3.0])));
        assert_eq!(stamps.get("dbench4").unwrap().end, None);
        assert_eq!(took.format_counts(), "2 rows read, 1 used, 0 flagged, 1 unusable");
        assert_eq!(took.unusable[0].line, 5);
    }
}
