//! `time-KEY-ITERATION`: what GNU time wrote of each execution. All there is for builds and batch jobs, and what
//! explains the others.

use perflab_model::Direction;

use super::super::took::LineOutcome;
use super::bench::{BenchmarkLogReader, parse_finite_number};
use super::folder::PackedFolder;
use crate::ArchiveError;

const NAMES: [(&str, &str); 3] = [("User", "user"), ("System", "system"), ("Elapsed", "elapsed")];

/// Reads them; they decide where the benchmark gave nothing else.
pub(super) fn read_gnu_times(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
    decide: bool,
) -> Result<(), ArchiveError> {
    for log in folder.numbered_logs("time") {
        let [key, ..] = log.keys[..] else { continue };
        let mut found = None;
        let took = bench.read_lines(log.path, |_, line| {
            let read = line.text.contains("elapsed").then(|| parse_short_gnu_time(line.text))?;
            Some(match read {
                Ok(times) => {
                    found = Some(times);
                    LineOutcome::Used
                }
                Err(reason) => LineOutcome::Unusable(reason),
            })
        })?;
        let case = bench
            .results
            .find_or_add_case(&format!("{}-time", bench.name), [("of".to_owned(), key.into())].into());
        if let Some(times) = found {
            let execution = bench.next_execution(case);
            for ((name, _), value) in NAMES.into_iter().zip(times) {
                let metric = bench.metric_named(case, name, "s", Direction::Lower, decide);
                bench.add_sample(execution, metric, value);
            }
        }
        bench.keep_report(took);
    }
    Ok(())
}

/// `0.05user 0.12system 0:01.50elapsed 11%CPU …`
fn parse_short_gnu_time(text: &str) -> Result<[f64; 3], String> {
    let word = |ending: &str| text.split_ascii_whitespace().find_map(|word| word.strip_suffix(ending));
    let mut times = [0.0; 3];
    for (time, (_, ending)) in times.iter_mut().zip(NAMES) {
        let word = word(ending).ok_or_else(|| format!("it has no time of `{ending}`"))?;
        *time = word
            .split(':')
            .try_fold(0.0, |sum, part| Ok::<_, String>(sum * 60.0 + parse_finite_number(part)?))?;
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    #[test]
    fn minutes_and_hours_are_seconds() {
        let text = "0.05user 0.12system 1:02:03.50elapsed 11%CPU (0avgtext+0avgdata 1maxresident)k";
        assert_eq!(super::parse_short_gnu_time(text), Ok([0.05, 0.12, 3723.5]));
        assert_eq!(
            super::parse_short_gnu_time("0.05user 0:01elapsed"),
            Err("it has no time of `system`".into())
        );
    }
}
