//! Renders a report of the recorded run under `tests/data/recorded/`, for the browser test and for looking at.
//!
//! `cargo run -p perflab-present --example sample_report -- OUT.html [one|two|long|many|flame|flame-large|trace]`: one run with its two factors and a profile;
//! two runs, the second one with slower values and another kernel; one run of 36,000 ticks; or one of 1,000 cases with 30 iterations each;
//! the flame graph viewer, with two sides or with 100,000 boxes; or the study's 1,416,100 operations.

#[path = "../tests/data/recorded.rs"]
#[expect(clippy::unwrap_used, reason = "it is that of the tests")]
mod recorded;
#[path = "../tests/data/stacks.rs"]
#[expect(clippy::unwrap_used, reason = "it is that of the tests")]
mod stacks;

use std::error::Error;

use perflab_analyze::{AnalysisOptions, Comparison, ComparisonSide, compare_levels, compare_sides};
use perflab_model::Nanos;
use perflab_model::fact_table;
use perflab_model::operation::OperationTraceSummary;
use perflab_model::series::{RowRuns, Series};
use perflab_present::flame::render_flame_page;
use perflab_present::report::{SECTIONS, render_report};
use perflab_present::{ReportData, ReportRun};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let out = arguments.next().ok_or("give a path for the page")?;
    let kind = arguments.next();
    let flames = match kind.as_deref() {
        Some("flame") => Some(stacks::two_side_picture()),
        Some("flame-large") => Some(stacks::large_picture(100_000)),
        _ => None,
    };
    if let Some(flames) = flames {
        std::fs::write(&out, render_flame_page("perflab", &flames)?)?;
        return Ok(());
    }
    let input = match kind.as_deref() {
        Some("two") => two_run_report()?,
        Some("long") => hour_long_report()?,
        Some("many") => thousand_case_report()?,
        Some("trace") => traced_run_report(1, 1_416_100)?,
        Some("targets") => traced_run_report(6, 50_000)?,
        _ => one_run_report(recorded::recorded_run())?,
    };
    let page = render_report(&input, SECTIONS)?;
    std::fs::write(&out, &page)?;
    eprintln!("{out}: {} bytes", page.len());
    Ok(())
}

fn compare_run_by_factor(run: &ReportRun, factor: &str) -> Result<Comparison, Box<dyn Error>> {
    let side = ComparisonSide { name: "run".into(), runs: vec![run.record.clone()] };
    Ok(compare_levels(&side, factor, &AnalysisOptions::default())?)
}

fn one_run_report(mut run: ReportRun) -> Result<ReportData<'static>, Box<dyn Error>> {
    run.profiles = stacks::two_side_profiles();
    let comparisons = vec![compare_run_by_factor(&run, "pages")?, compare_run_by_factor(&run, "placebo")?];
    Ok(ReportData { comparisons, runs: vec![Box::new(run)], ..ReportData::default() })
}

fn two_run_report() -> Result<ReportData<'static>, Box<dyn Error>> {
    let (mut before, mut after) = (recorded::recorded_run(), recorded::recorded_run());
    before.record.manifest.label = Some("before".into());
    after.record.manifest.label = Some("after".into());
    after.record.manifest.id = "01KAKM7Z3XV6W2YB4C8D5E7FGJ".into();
    after.record.manifest.facts.add(fact_table::KERNEL_RELEASE, "6.19.0-rc1", "uname");
    for sample in after.record.samples.iter_mut().filter(|sample| sample.metric == "bandwidth") {
        sample.value *= 0.93;
    }
    let side =
        |name: &str, run: &ReportRun| ComparisonSide { name: name.into(), runs: vec![run.record.clone()] };
    let comparison =
        compare_sides(&side("before", &before), &[side("after", &after)], &AnalysisOptions::default())?;
    Ok(ReportData {
        title: "Does the new kernel cost bandwidth?".into(),
        comparisons: vec![comparison],
        runs: vec![Box::new(before), Box::new(after)],
        ..ReportData::default()
    })
}

/// The recorded series over and over, as an hour at 10 Hz would give it.
fn hour_long_report() -> Result<ReportData<'static>, Box<dyn Error>> {
    let mut run = recorded::recorded_run();
    for series in &mut run.series {
        *series = RowRuns::from_series(&repeat_series(&series.to_series(), 36_000 / 113));
    }
    one_run_report(run)
}

fn repeat_series(series: &Series, times: u64) -> Series {
    let last = series.at.last().map_or(0, |at| at.0);
    let at = (0..times).flat_map(|n| series.at.iter().map(move |at| Nanos(at.0 + n * (last + 100_000_000))));
    let rows = (0..times).flat_map(|_| 0..series.at.len());
    Series {
        schema: series.schema.clone(),
        at: at.collect(),
        took: Vec::new(),
        table: series.table.take_rows(rows),
    }
}

/// A thousand cases, thirty iterations each, with the recorded values in turn.
fn thousand_case_report() -> Result<ReportData<'static>, Box<dyn Error>> {
    let mut run = recorded::recorded_run();
    let record = &mut run.record;
    let (model, values) = (record.manifest.plan.cases[0].clone(), record.samples.clone());
    let case = |n: u32| {
        let mut case = model.clone();
        case.point.insert("size".into(), perflab_model::Scalar::Int(i64::from(n / 2)));
        case.levels.insert("pages".into(), ["ordinary", "huge"][n as usize % 2].into());
        case
    };
    record.manifest.plan.cases = (0..1000).map(case).collect();
    record.samples.clear();
    record.iterations.clear();
    record.manifest.plan.slots.clear();
    for n in 0..30_000_u32 {
        let (case, iteration, start) = (n % 1000, n / 1000, Nanos(u64::from(n) * 370_000));
        let mut like = values.iter().filter(|s| s.primary && s.case / 2 % 2 == case % 2);
        let from = like.nth(n as usize % 40).ok_or("the recorded run has fewer values")?;
        let end = Nanos(start.0 + 350_000);
        record.samples.push(perflab_model::Sample { case, iteration, start, end, ..from.clone() });
        record.manifest.plan.slots.push(perflab_model::Slot {
            boot: 0,
            case,
            iteration,
            block: iteration,
            warmup: false,
            layout: None,
        });
        record.iterations.push(perflab_model::IterationRecord {
            target: None,
            slot: n,
            outcome: perflab_model::Outcome::Ok,
            start,
            end,
        });
    }
    let comparisons = vec![compare_run_by_factor(&run, "pages")?];
    Ok(ReportData { comparisons, runs: vec![Box::new(run)], ..ReportData::default() })
}

/// Insertions as the study has them, on one target or several.
fn traced_run_report(targets: u32, count: u32) -> Result<ReportData<'static>, Box<dyn Error>> {
    let mut run = recorded::recorded_run();
    let trace = |target: u32| {
        let summary = OperationTraceSummary {
            operations: u64::from(count),
            target: (targets > 1).then_some(target),
            ..OperationTraceSummary::default()
        };
        (summary, fixtures::operations::study_operations(count))
    };
    let target = |number: u32| perflab_model::TargetRecord {
        name: format!("guest{number}"),
        kind: "vm".into(),
        kernel: String::new(),
        boot_id: String::new(),
        clock: perflab_model::ClockOffset::default(),
        facts: perflab_model::Facts::default(),
    };
    run.record.manifest.targets = (1..=targets).filter(|_| targets > 1).map(target).collect();
    run.operations = (0..targets).map(trace).collect();
    one_run_report(run)
}
