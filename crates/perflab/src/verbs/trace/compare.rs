//! `perflab trace compare`

use anyhow::Context as _;
use perflab_analyze::operations::{
    OperationComparison, OperationReport, compare_operations as compared, operation_conclusions,
};
use perflab_archive::RunDir;
use perflab_model::operation::OperationColumns;
use perflab_present::comparison::OutputFormat;
use perflab_present::operations::changes_grid;

use super::stored::{TRACER, analyze_both, concatenate_operations, outlier_options, traced_slots};
use crate::arguments::trace::TraceCompareArgs;
use crate::context::App;
use crate::exit::{Exit, UsageError};
use crate::verbs::slab::output;

/// One side: what it is called, and its answer.
pub struct TracedSide {
    /// the run's label or the level's name
    pub name: String,
    /// all its iterations, one behind the other
    pub report: OperationReport,
}

/// What changed between two traces, in quantiles and in causes.
pub fn compare_traces(context: &App, wanted: &TraceCompareArgs) -> anyhow::Result<Exit> {
    let [(before_name, before), (after_name, after)] = read_traced_sides(context, wanted)?;
    let [before, after] = analyze_both([&before, &after], &outlier_options(&wanted.which)?)?;
    let (before, after) =
        (TracedSide { name: before_name, report: before }, TracedSide { name: after_name, report: after });
    let found = compared((&before.name, &after.name), &before.report, &after.report);
    output::print_result(context, &found, || changes_grid(&found))?;
    if context.format == OutputFormat::Table {
        let mut lines = perflab_analyze::operations::comparison_conclusions(&found);
        for side in [&before, &after] {
            lines.push(format!("\n{}:", side.name));
            lines.extend(operation_conclusions(&side.report));
        }
        context.print_text(&(String::from("\n") + &lines.join("\n")))?;
    }
    exit_for_regression(&found, wanted.fail_if.as_deref())
}

fn read_traced_sides(
    context: &App,
    wanted: &TraceCompareArgs,
) -> anyhow::Result<[(String, OperationColumns); 2]> {
    let archive = context.archive()?;
    let of = |selector: &String| crate::sides::select_run(&archive, selector);
    match (wanted.runs.as_slice(), &wanted.by) {
        ([run], Some(factor)) => {
            let run = of(run)?;
            let [before, after] = first_two_levels(&run, factor)?;
            Ok([read_level(&run, factor, before)?, read_level(&run, factor, after)?])
        }
        ([before, after], None) => {
            Ok([read_whole_run(&of(before)?, before, wanted)?, read_whole_run(&of(after)?, after, wanted)?])
        }
        _ => Err(UsageError::new(
            "either two runs, or one run and --by FACTOR",
            "see `perflab trace compare --help`",
        )
        .into()),
    }
}

/// The first two levels of a factor.
fn first_two_levels(run: &RunDir, factor: &str) -> anyhow::Result<[String; 2]> {
    let plan = run.manifest()?.plan;
    let known = plan.factors.keys().map(String::as_str);
    let levels = plan.factors.get(factor).with_context(|| {
        let hint = perflab_model::problem::suggest_name(factor, known);
        UsageError::new(format!("the run has no factor `{factor}`"), hint)
    })?;
    match levels.as_slice() {
        [before, after, ..] => Ok([before.clone(), after.clone()]),
        _ => {
            Err(UsageError::new(format!("factor `{factor}` has one level"), "there is nothing to compare")
                .into())
        }
    }
}

fn read_level(run: &RunDir, factor: &str, level: String) -> anyhow::Result<(String, OperationColumns)> {
    let slots = slots_of_level(run, factor, &level)?;
    Ok((level, concatenate_operations(run, &slots)?))
}

/// The traced slots of one level of a factor.
pub fn slots_of_level(run: &RunDir, factor: &str, level: &str) -> anyhow::Result<Vec<u32>> {
    let plan = run.manifest()?.plan;
    let of_level = |slot: &u32| {
        let case = plan.slots.get(*slot as usize).and_then(|slot| plan.case(slot.case));
        case.is_some_and(|case| case.levels.get(factor).is_some_and(|of| of == level))
    };
    Ok(traced_slots(&run.read_trace_summaries(TRACER)?).into_iter().filter(of_level).collect())
}

fn read_whole_run(
    run: &RunDir,
    selector: &str,
    wanted: &TraceCompareArgs,
) -> anyhow::Result<(String, OperationColumns)> {
    let slots = wanted.which.slot.map_or_else(
        || Ok(traced_slots(&run.read_trace_summaries(TRACER)?)),
        |slot| anyhow::Ok(vec![slot]),
    )?;
    Ok((run.manifest()?.label.unwrap_or_else(|| selector.to_owned()), concatenate_operations(run, &slots)?))
}

/// Whether a quantile rose by more than was said, and clearly.
fn exit_for_regression(found: &OperationComparison, wanted: Option<&str>) -> anyhow::Result<Exit> {
    let Some(text) = wanted else { return Ok(Exit::Fine) };
    let wrong =
        || UsageError::new(format!("--fail-if `{text}` is not QUANTILE:CHANGE"), "for example p99.9:5%");
    let (name, change) = text.split_once(':').ok_or_else(wrong)?;
    let change: f64 = change.trim_end_matches('%').parse().map_err(|_| wrong())?;
    let quantile = found.quantiles.iter().find(|quantile| quantile.name == name).ok_or_else(wrong)?;
    let low = quantile.interval.map_or(0.0, |(low, _)| low);
    Ok(if low > 1.0 + change / 100.0 { Exit::Regression } else { Exit::Fine })
}
