//! The operations of stored runs, read for analysis.

use perflab_analyze::operations::{
    OperationClock, OperationReport, OutlierOptions, analyze_operations, choose_clock,
};
use perflab_archive::RunDir;
use perflab_model::operation::{OperationColumns, OperationTraceSummary};

use crate::arguments::trace::{OperationClockName, OperationSelection};
use crate::context::App;
use crate::exit::UsageError;

/// The one tracer that there is.
pub const TRACER: &str = "optrace";

/// How outliers are to be found.
pub fn outlier_options(which: &OperationSelection) -> anyhow::Result<OutlierOptions> {
    if !(0.5..1.0).contains(&which.above) {
        return Err(UsageError::new(
            format!("--above {}: not from 0.5 up to 1", which.above),
            "for example 0.999",
        )
        .into());
    }
    let clock = which.clock.map(|clock| match clock {
        OperationClockName::Cpu => OperationClock::OnCpu,
        OperationClockName::Wall => OperationClock::Wall,
    });
    Ok(OutlierOptions {
        clock,
        operation: which.operation.clone(),
        quantile: which.above,
        ..OutlierOptions::default()
    })
}

/// One iteration of the run that a selector names.
pub fn read_iteration(
    context: &App,
    run: &str,
    which: &OperationSelection,
) -> anyhow::Result<OperationColumns> {
    let run = crate::sides::select_run(&context.archive()?, run)?;
    let told = run.read_trace_summaries(TRACER)?;
    let slot = which.slot.or_else(|| told.first().map(|told| told.slot)).unwrap_or(0);
    if which.slot.is_none() && told.len() > 1 {
        let slots: Vec<String> = told.iter().map(|told| told.slot.to_string()).collect();
        context.note(format!(
            "iteration {slot} of {} that were traced: --slot {}",
            told.len(),
            slots.join(", ")
        ));
    }
    Ok(run.read_operations(TRACER, slot)?)
}

/// The answers about both sides of a comparison, by one clock: the wall's where it explains either.
pub fn analyze_both(
    sides: [&OperationColumns; 2],
    options: &OutlierOptions,
) -> anyhow::Result<[OperationReport; 2]> {
    let [before, after] = sides.map(|side| choose_clock(side, options));
    let wall = before? == OperationClock::Wall || after? == OperationClock::Wall;
    let options =
        OutlierOptions { clock: options.clock.or(wall.then_some(OperationClock::Wall)), ..options.clone() };
    let [before, after] = sides.map(|side| analyze_operations(side, &options));
    Ok([before?, after?])
}

/// All iterations of `slots`, one behind the other.
pub fn concatenate_operations(run: &RunDir, slots: &[u32]) -> anyhow::Result<OperationColumns> {
    let mut all = OperationColumns::default();
    for slot in slots {
        let next = run.read_operations(TRACER, *slot)?;
        if all.is_empty() { all = next } else { all.append(&next) }
    }
    Ok(all)
}

/// The slots that were traced whole, or at least in part.
pub fn traced_slots(told: &[OperationTraceSummary]) -> Vec<u32> {
    told.iter().filter(|told| told.operations > 0).map(|told| told.slot).collect()
}

/// The answer about one iteration of a run, with its operations.
pub fn analyze_iteration(
    context: &App,
    run: &str,
    which: &OperationSelection,
) -> anyhow::Result<(OperationColumns, OperationReport)> {
    let operations = read_iteration(context, run, which)?;
    let report = analyze_operations(&operations, &outlier_options(which)?)?;
    Ok((operations, report))
}
