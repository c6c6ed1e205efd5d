//! What GNU time wrote of a benchmark with `-v`. Its short form is one line, which `[[metric]]` rules read.

use perflab_model::{Direction, Metric, Unit};

use crate::finite_number::{parse_clock_time, parse_finite_number};

/// What is kept of it: the line's name, the metric's, its unit, and what makes the one of the other.
const KEPT: &[(&str, &str, &str, f64)] = &[
    ("User time (seconds)", "user_time", "s", 1.0),
    ("System time (seconds)", "system_time", "s", 1.0),
    ("Maximum resident set size (kbytes)", "max_rss", "bytes", 1024.0),
];

const ELAPSED: &str = "Elapsed (wall clock) time (h:mm:ss or m:ss)";

const PAGE_SIZE: &str = "Page size (bytes)";

/// The figures of one file.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct GnuTimeReport {
    /// Metrics with their values.
    pub values: Vec<(Metric, f64)>,
    /// The page size of the machine in bytes.
    pub page_size: Option<u64>,
}

fn lower_is_better(name: &str, unit: &str) -> Metric {
    Metric { name: name.into(), unit: Unit::new(unit), direction: Direction::Lower, primary: false }
}

/// The figures of a text.
pub fn parse_gnu_time(text: &str) -> GnuTimeReport {
    let mut timed = GnuTimeReport::default();
    for (name, value) in text.lines().filter_map(|line| line.trim().rsplit_once(": ")) {
        let value = value.trim();
        if name == PAGE_SIZE {
            timed.page_size = value.parse().ok().filter(|size: &u64| size.is_power_of_two());
        } else if name == ELAPSED {
            timed.values.extend(parse_clock_time(value).map(|time| (lower_is_better("time", "s"), time)));
        } else if let Some((_, kept, unit, factor)) = KEPT.iter().find(|(known, ..)| *known == name)
            && let Some(number) = parse_finite_number(value)
        {
            timed.values.push((lower_is_better(kept, unit), number * factor));
        }
    }
    timed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_in_base_units() {
        let text = "\tUser time (seconds): 2.93\n\tElapsed (wall clock) time (h:mm:ss or m:ss): 3:08.17\n\
                    \tMaximum resident set size (kbytes): 3208\n\tPage size (bytes): 4096\n";
        let timed = parse_gnu_time(text);
        assert_eq!(timed.page_size, Some(4096));
        let values: Vec<(&str, f64)> =
            timed.values.iter().map(|(m, value)| (m.name.as_str(), *value)).collect();
        assert_eq!(values, [("user_time", 2.93), ("time", 188.17), ("max_rss", 3_284_992.0)]);
    }
}
