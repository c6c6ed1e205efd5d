//! Renders a report of the recorded run under `tests/data/recorded/`, for the browser test and for looking at.
//!
//! `cargo run -p perflab-present --example sample_report -- OUT.html [one|two|long]`: one run with its two factors;
//! two runs, the second one with slower values and another kernel; or one run of 36,000 ticks.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../tests/data/recorded.rs"]
mod recorded;

use perflab_analyze::{Comparison, Options, Side, compare, compare_by_factor};
use perflab_model::Nanos;
use perflab_model::series::{ColumnData, Series};
use perflab_present::report::{ReportInput, RunInput, render};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let out = arguments.next().expect("a path for the page");
    let input = match arguments.next().as_deref() {
        Some("two") => two(),
        Some("long") => long(),
        _ => one(),
    };
    let page = render(&input).unwrap();
    std::fs::write(&out, &page).unwrap();
    eprintln!("{out}: {} bytes", page.len());
}

fn by_factor(run: &RunInput, factor: &str) -> Comparison {
    let side = Side { name: "run".into(), runs: vec![run.record.clone()] };
    compare_by_factor(&side, factor, &Options::default()).unwrap()
}

fn one() -> ReportInput {
    let run = recorded::run();
    let comparisons = vec![by_factor(&run, "pages"), by_factor(&run, "placebo")];
    ReportInput { title: String::new(), comparisons, runs: vec![run] }
}

fn two() -> ReportInput {
    let (mut before, mut after) = (recorded::run(), recorded::run());
    before.record.manifest.label = Some("before".into());
    after.record.manifest.label = Some("after".into());
    after.record.manifest.id = "01KAKM7Z3XV6W2YB4C8D5E7FGJ".into();
    after.record.manifest.facts.add("kernel.release", "6.19.0-rc1", "uname");
    for sample in after.record.samples.iter_mut().filter(|sample| sample.metric == "bandwidth") {
        sample.value *= 0.93;
    }
    let side = |name: &str, run: &RunInput| Side { name: name.into(), runs: vec![run.record.clone()] };
    let comparison =
        compare(&side("before", &before), &[side("after", &after)], &Options::default()).unwrap();
    ReportInput {
        title: "Does the new kernel cost bandwidth?".into(),
        comparisons: vec![comparison],
        runs: vec![before, after],
    }
}

/// The recorded series over and over, as an hour at 10 Hz would give it.
fn long() -> ReportInput {
    let mut input = one();
    for series in &mut input.runs[0].series {
        *series = repeated(series, 36_000 / 113);
    }
    input
}

fn repeated(series: &Series, times: u64) -> Series {
    let last = series.at.last().map_or(0, |at| at.0);
    let at = (0..times).flat_map(|n| series.at.iter().map(move |at| Nanos(at.0 + n * (last + 100_000_000))));
    let columns = series.columns.iter().map(|column| match column {
        ColumnData::Int(cells) => ColumnData::Int(cells.repeat(times as usize)),
        ColumnData::Float(cells) => ColumnData::Float(cells.repeat(times as usize)),
        ColumnData::Text(cells) => ColumnData::Text((0..times).flat_map(|_| cells.iter().cloned()).collect()),
    });
    Series { schema: series.schema.clone(), at: at.collect(), columns: columns.collect() }
}
