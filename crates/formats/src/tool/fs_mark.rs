//! fs_mark's report as lkp keeps it: the call, a line per round with files/s, and when it began on the machine's own
//! clock, without its time zone.

use indexmap::IndexMap;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use perflab_model::{Direction, Metric, Nanos, Scalar, Unit};

/// Time zones differ by whole quarters of an hour.
const QUARTER: i64 = 900;

/// A benchmark begins at most this long, in seconds, after its logs: else the two clocks tell nothing.
const NEAR: i64 = 300;

const SECOND: f64 = 1e9;

const SYNC: [&str; 7] =
    ["none", "inband", "sync-fsync", "post-reverse", "sync-post-reverse", "post", "sync-post"];

/// Options that are parameters of the catalogue's fs_mark, or would be.
const OPTIONS: &[(&str, &str)] = &[
    ("-n", "files"),
    ("-s", "size"),
    ("-L", "rounds"),
    ("-D", "folders"),
    ("-N", "files-per-folder"),
    ("-t", "threads"),
];

/// What the report says.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct FsMarkReport {
    /// As the catalogue names them; `directories` for the number of `-d`.
    pub parameters: IndexMap<String, Scalar>,
    /// The means over all rounds.
    pub values: Vec<(Metric, f64)>,
    begun: Option<DateTime>,
    seconds: Option<f64>,
}

/// One round: files, files/s, overhead in microseconds.
struct FsMarkRound {
    count: f64,
    rate: f64,
    overhead: f64,
}

/// What a report says.
pub fn parse_fs_mark_report(text: &str) -> FsMarkReport {
    let rounds: Vec<FsMarkRound> = text.lines().filter_map(parse_fs_mark_round).collect();
    let mut values = Vec::new();
    let mean = |of: fn(&FsMarkRound) -> f64| rounds.iter().map(of).sum::<f64>() / rounds.len() as f64;
    if !rounds.is_empty() {
        let metric = |name: &str, unit: &str, direction, primary| Metric {
            name: name.into(),
            unit: Unit::new(unit),
            direction,
            primary,
        };
        let files = metric("files", "files/s", Direction::Higher, true);
        let overhead = metric("overhead", "us", Direction::Neither, false);
        values.extend([(files, mean(|round| round.rate)), (overhead, mean(|round| round.overhead))]);
    }
    let call = text.lines().map(|line| line.trim_start_matches('#').trim()).find_map(find_fs_mark_call);
    let only = if let [round] = &rounds[..] { Some(round) } else { None };
    let seconds = only.filter(|round| round.rate > 0.0).map(|round| round.count / round.rate);
    FsMarkReport {
        parameters: call.map(fs_mark_parameters).unwrap_or_default(),
        values,
        begun: parse_fs_mark_start(text),
        seconds,
    }
}

impl FsMarkReport {
    /// From when to when it ran, since 1970: its own clock is put right by `near`, a time shortly before
    /// it began, as zones differ by whole quarters of an hour.
    pub fn run_span(&self, near: Nanos) -> Option<(Nanos, Nanos)> {
        let local = self.begun?.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second();
        let near = i64::try_from(near.0 / 1_000_000_000).ok()?;
        let later = local - near;
        let zone = (later as f64 / QUARTER as f64).round() as i64 * QUARTER;
        let begun = u64::try_from(local - zone).ok()?.checked_mul(1_000_000_000)?;
        let length = self.seconds.filter(|seconds| (0.0..1e9).contains(seconds))?;
        let span = (Nanos(begun), Nanos(begun.checked_add((length * SECOND) as u64)?));
        ((later - zone).abs() <= NEAR).then_some(span)
    }
}

/// `10  102400  9  566.2  9193328`
fn parse_fs_mark_round(line: &str) -> Option<FsMarkRound> {
    let numbers: Option<Vec<f64>> = line.split_ascii_whitespace().map(|word| word.parse().ok()).collect();
    let [_, count, _, rate, overhead] = numbers?[..] else { return None };
    [count, rate, overhead].iter().all(|number| number.is_finite()).then_some(FsMarkRound {
        count,
        rate,
        overhead,
    })
}

/// The words behind `fs_mark`, whatever stands before it.
fn find_fs_mark_call(line: &str) -> Option<&str> {
    line.split_once("fs_mark ").map(|(_, words)| words)
}

fn fs_mark_parameters(call: &str) -> IndexMap<String, Scalar> {
    let mut found = IndexMap::new();
    let words: Vec<&str> = call.split_ascii_whitespace().collect();
    let mut directories = 0;
    for pair in words.windows(2) {
        let [option, value] = *pair else { continue };
        directories += i64::from(option == "-d");
        let Ok(number) = value.parse::<i64>() else { continue };
        if let Some((_, name)) = OPTIONS.iter().find(|(known, _)| *known == option) {
            found.insert((*name).to_owned(), Scalar::Int(number));
        } else if let Some(sync) = usize::try_from(number).ok().and_then(|place| SYNC.get(place))
            && option == "-S"
        {
            found.insert("sync".into(), Scalar::from(*sync));
        }
    }
    found.insert("directories".into(), Scalar::Int(directories));
    found
}

/// `2019-10-11 19:33:32 fs_mark …`
fn parse_fs_mark_start(text: &str) -> Option<DateTime> {
    text.lines().find_map(|line| line.split_once(" fs_mark ")?.0.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "2019-10-11 19:33:32 fs_mark -d /a -d /b -D 16 -N 256 -n 3200 -L 1 -S 1 -s 9\n\n\
        #\tVersion 3.3, 32 thread(s) starting at Fri Oct 11 19:33:32 2019\n\n\
        FSUse%        Count         Size    Files/sec     App Overhead\n    10       102400            9        566.2          9193328\n";

    #[test]
    fn a_report_gives_its_call_its_figures_and_its_time() {
        let report = parse_fs_mark_report(REPORT);
        let parameters: Vec<String> =
            report.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            parameters.join(" "),
            "folders=16 files-per-folder=256 files=3200 rounds=1 sync=inband size=9 directories=2"
        );
        assert_eq!(report.values[0].1, 566.2);
        assert_eq!(report.values[1].1, 9_193_328.0);
        // The machine stood at two hours east of UTC: 17:33:31 is a second before 19:33:32.
        let (begin, end) = report.run_span(Nanos(1_570_815_211_000_000_000)).unwrap();
        assert_eq!(begin, Nanos(1_570_815_212_000_000_000));
        assert!((end.since(begin).seconds() - 102_400.0 / 566.2).abs() < 1e-6);
        assert_eq!(report.run_span(Nanos(1_570_815_211_000_000_000 + 420_000_000_000)), None);
    }

    #[test]
    fn no_report_is_no_value() {
        assert_eq!(parse_fs_mark_report("").values, []);
        assert_eq!(parse_fs_mark_report("FSUse% Count\n1 2 3 x 5\n").values, []);
    }
}
