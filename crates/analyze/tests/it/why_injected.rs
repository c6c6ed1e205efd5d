//! What `why` says of causes that are put into the quantities of a real run. Its noise hides one of them.

use perflab_analyze::why::{explain_row, find_first_suspect};
use perflab_analyze::{AnalysisOptions, ComparisonSide, compare_levels, compare_sides};
use perflab_model::RunRecord;
use serde_json::{Number, Value};

use crate::why_placebo::read_recorded_run;

/// Seconds that each iteration takes longer.
const LONGER: f64 = 0.5;

/// What grows by how much in an iteration. Times are in the unit of the quantity.
type Growth = &'static [(&'static str, f64)];

/// What was put in, and the series of the first suspect that a table names; computing is told by its place, not by a suspect.
const CAUSES: &[(&str, Growth, Option<&str>)] = &[
    ("computing", &[("user", LONGER)], None),
    (
        "faults",
        &[("system", LONGER), ("minor-faults", 500_000.0), ("vmstat pgfault", 500_000.0)],
        Some("minor-faults"),
    ),
    (
        "disk",
        &[
            ("diskstats read_ios", 2_000.0),
            ("diskstats read_ios device=vda", 2_000.0),
            ("diskstats read_bytes", 8e6),
            ("diskstats read_ns", LONGER * 1e9),
            ("events block-latency.count key=all", 2_000.0),
            ("events block-latency.sum key=all", LONGER * 1e9),
            ("events off-cpu.sum key=all", LONGER * 1e9),
            ("voluntary-switches", 2_000.0),
            ("vmstat pgpgin", 8e6),
            ("pressure total_ns resource=io kind=some", LONGER * 1e9),
            ("pressure total_ns resource=io kind=full", LONGER * 0.9e9),
        ],
        Some("vmstat pgpgin"),
    ),
    (
        "neighbours",
        &[
            ("events run-queue-delay.count key=all", 600.0),
            ("events run-queue-delay.sum key=all", LONGER * 1e9),
            ("involuntary-switches", 600.0),
            ("others-cpu-time", LONGER),
            ("pressure total_ns resource=cpu kind=some", LONGER * 1e9),
        ],
        None,
    ),
    ("nothing-recorded", &[], None),
];

/// The run with the growth in these of its samples.
fn grow(record: &RunRecord, growth: Growth, is_grown: impl Fn(u32, u32) -> bool) -> RunRecord {
    let mut grown = record.clone();
    for sample in grown.samples.iter_mut().filter(|one| is_grown(one.case, one.iteration)) {
        // A block is a little more or less of it than another.
        let share = 1.0 + 0.05 * (f64::from(sample.iteration % 7) - 3.0) / 3.0;
        if matches!(sample.metric.as_str(), "time" | "iteration-duration") {
            sample.value += share * LONGER;
        }
        if let Some((_, more)) = growth.iter().find(|(name, _)| *name == sample.metric.as_str()) {
            sample.value += share * more;
        }
    }
    grown
}

/// Numbers to three places: the last ones differ from one mathematical library to the next.
fn round_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let Some(exact) = number.as_f64().filter(|_| !number.is_i64() && !number.is_u64()) else {
                return;
            };
            let rounded = format!("{exact:.2e}").parse().ok().and_then(Number::from_f64);
            rounded.into_iter().for_each(|rounded| *number = rounded);
        }
        Value::Array(all) => all.iter_mut().for_each(round_numbers),
        Value::Object(all) => all.values_mut().for_each(round_numbers),
        _ => {}
    }
}

fn primary_options() -> AnalysisOptions {
    AnalysisOptions { metrics: vec!["primary".into()], ..AnalysisOptions::default() }
}

/// The series of the first suspect, and all that was found.
fn explain(sides: &[ComparisonSide]) -> (Option<String>, String) {
    let options = primary_options();
    let comparison = match sides {
        [side] => compare_levels(side, "placebo", &options),
        sides => compare_sides(&sides[0], &sides[1..], &options),
    }
    .unwrap();
    let row = comparison.deciding_rows()[0];
    let found =
        explain_row(&comparison, row, sides, &options, &["vmstat".into(), "diskstats".into()]).unwrap();
    let mut document = serde_json::to_value(&found).unwrap();
    round_numbers(&mut document);
    let series = find_first_suspect(&found).and_then(|suspect| suspect.series);
    (series, serde_json::to_string_pretty(&document).unwrap())
}

#[test]
fn what_was_put_into_a_level_is_told() {
    let record = read_recorded_run();
    for (name, growth, first) in CAUSES {
        let run = grow(&record, growth, |case, _| case == 1);
        let (series, document) = explain(&[ComparisonSide { name: "run".into(), runs: vec![run] }]);
        assert_eq!(series.as_deref(), *first, "{name}");
        insta::assert_snapshot!(format!("injected_{name}"), document);
    }
}

/// Two runs, the later half of the blocks against the earlier.
#[test]
fn what_was_put_into_a_run_is_told() {
    let record = read_recorded_run();
    for (name, growth, _) in CAUSES {
        let sides = ["before", "after"].map(|side| {
            let mut run = grow(&record, growth, |_, _| side == "after");
            run.manifest.id = side.into();
            run.samples.retain(|sample| (sample.iteration >= 20) == (side == "after"));
            run.iterations.retain(|one| {
                let slot = &run.manifest.plan.slots[one.slot as usize];
                (slot.iteration >= 20) == (side == "after")
            });
            ComparisonSide { name: side.into(), runs: vec![run] }
        });
        let (_, document) = explain(&sides);
        insta::assert_snapshot!(format!("injected_{name}_runs"), document);
    }
}
