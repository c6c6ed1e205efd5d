//! What GNU time wrote of a benchmark, short and with `-v`.

use perflab_model::{Direction, Metric, Unit};

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
            && let Ok(number) = value.parse::<f64>()
            && number.is_finite()
        {
            timed.values.push((lower_is_better(kept, unit), number * factor));
        }
    }
    timed
}

/// User, system and elapsed time in seconds of a line of the short form: `0.05user 0.12system 0:01.50elapsed 11%CPU …`.
///
/// # Errors
/// Which of them is missing or no time.
pub fn parse_short_gnu_time(line: &str) -> Result<[f64; 3], String> {
    let mut times = [0.0; 3];
    for (time, ending) in times.iter_mut().zip(["user", "system", "elapsed"]) {
        let word = line.split_ascii_whitespace().find_map(|word| word.strip_suffix(ending));
        let word = word.ok_or_else(|| format!("it has no time of `{ending}`"))?;
        *time = parse_clock_time(word)
            .ok_or_else(|| format!("`{}` is no number", word.chars().take(40).collect::<String>()))?;
    }
    Ok(times)
}

/// `3:08.17`, `1:02:03` in seconds.
fn parse_clock_time(text: &str) -> Option<f64> {
    let mut parts = text.split(':').map(|part| part.parse::<f64>().ok());
    parts.try_fold(0.0, |sum, part| Some(sum * 60.0 + part?)).filter(|time| time.is_finite())
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
        assert_eq!(parse_clock_time("1:02:03"), Some(3723.0));
        assert_eq!(parse_clock_time("soon"), None);
    }

    #[test]
    fn the_short_form_has_three_times() {
        let text = "0.05user 0.12system 1:02:03.50elapsed 11%CPU (0avgtext+0avgdata 1maxresident)k";
        assert_eq!(parse_short_gnu_time(text), Ok([0.05, 0.12, 3723.5]));
        assert_eq!(parse_short_gnu_time("0.05user 0:01elapsed"), Err("it has no time of `system`".into()));
        assert_eq!(parse_short_gnu_time("xuser 1system 1elapsed"), Err("`x` is no number".into()));
    }
}
