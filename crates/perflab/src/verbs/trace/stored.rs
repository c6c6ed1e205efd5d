//! The operations of stored runs, read for analysis.

use perflab_analyze::trace::{Clock, Options, Report, analyze, choose_clock};
use perflab_archive::RunDir;
use perflab_model::trace::{Operations, Traced};

use crate::arguments::trace::{ClockName, Which};
use crate::context::Context;
use crate::exit::Usage;

/// The one tracer that there is.
pub const TRACER: &str = "optrace";

/// How outliers are to be found.
pub fn options(which: &Which) -> anyhow::Result<Options> {
    if !(0.5..1.0).contains(&which.above) {
        return Err(Usage::new(
            format!("--above {}: not from 0.5 up to 1", which.above),
            "for example 0.999",
        )
        .into());
    }
    let clock = which.clock.map(|clock| match clock {
        ClockName::Cpu => Clock::OnCpu,
        ClockName::Wall => Clock::Wall,
    });
    Ok(Options { clock, operation: which.operation.clone(), quantile: which.above, ..Options::default() })
}

/// One iteration of the run that a selector names.
pub fn one(context: &Context, run: &str, which: &Which) -> anyhow::Result<Operations> {
    let run = crate::sides::one(&context.archive()?, run)?;
    let told = run.traced(TRACER)?;
    let slot = which.slot.or_else(|| told.first().map(|told| told.slot)).unwrap_or(0);
    if which.slot.is_none() && told.len() > 1 {
        let slots: Vec<String> = told.iter().map(|told| told.slot.to_string()).collect();
        context.say(format!(
            "iteration {slot} of {} that were traced: --slot {}",
            told.len(),
            slots.join(", ")
        ));
    }
    Ok(run.operations(TRACER, slot)?)
}

/// The answers about both sides of a comparison, by one clock: the wall's where it explains either.
pub fn analyzed_alike(sides: [&Operations; 2], options: &Options) -> anyhow::Result<[Report; 2]> {
    let [before, after] = sides.map(|side| choose_clock(side, options));
    let wall = before? == Clock::Wall || after? == Clock::Wall;
    let options = Options { clock: options.clock.or(wall.then_some(Clock::Wall)), ..options.clone() };
    let [before, after] = sides.map(|side| analyze(side, &options));
    Ok([before?, after?])
}

/// All iterations of `slots`, one behind the other.
pub fn together(run: &RunDir, slots: &[u32]) -> anyhow::Result<Operations> {
    let mut all = Operations::default();
    for slot in slots {
        let next = run.operations(TRACER, *slot)?;
        if all.is_empty() { all = next } else { all.append(&next) }
    }
    Ok(all)
}

/// The slots that were traced whole, or at least in part.
pub fn slots(told: &[Traced]) -> Vec<u32> {
    told.iter().filter(|told| told.operations > 0).map(|told| told.slot).collect()
}

/// The answer about one iteration of a run, with its operations.
pub fn analyzed(context: &Context, run: &str, which: &Which) -> anyhow::Result<(Operations, Report)> {
    let operations = one(context, run, which)?;
    let report = analyze(&operations, &options(which)?)?;
    Ok((operations, report))
}
