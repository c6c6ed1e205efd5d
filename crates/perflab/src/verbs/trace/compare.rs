//! `perflab trace compare`

use anyhow::Context as _;
use perflab_analyze::trace::{Comparison, Report, compare as compared, sentences};
use perflab_archive::RunDir;
use perflab_model::trace::Operations;
use perflab_present::table::Format;
use perflab_present::trace::changes_grid;

use super::stored::{TRACER, analyzed_alike, options, slots, together};
use crate::arguments::trace::Compare;
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::verbs::slab::output;

/// One side: what it is called, and its answer.
pub struct Side {
    /// the run's label or the level's name
    pub name: String,
    /// all its iterations, one behind the other
    pub report: Report,
}

/// What changed between two traces, in quantiles and in causes.
pub fn compare(context: &Context, wanted: &Compare) -> anyhow::Result<Exit> {
    let [(before_name, before), (after_name, after)] = sides(context, wanted)?;
    let [before, after] = analyzed_alike([&before, &after], &options(&wanted.which)?)?;
    let (before, after) =
        (Side { name: before_name, report: before }, Side { name: after_name, report: after });
    let found = compared((&before.name, &after.name), &before.report, &after.report);
    output::print(context, &found, || changes_grid(&found))?;
    if context.format == Format::Table {
        let mut lines = perflab_analyze::trace::compared(&found);
        for side in [&before, &after] {
            lines.push(format!("\n{}:", side.name));
            lines.extend(sentences(&side.report));
        }
        context.write(&(String::from("\n") + &lines.join("\n")))?;
    }
    regression(&found, wanted.fail_if.as_deref())
}

fn sides(context: &Context, wanted: &Compare) -> anyhow::Result<[(String, Operations); 2]> {
    let archive = context.archive()?;
    let of = |selector: &String| crate::sides::one(&archive, selector);
    match (wanted.runs.as_slice(), &wanted.by) {
        ([run], Some(factor)) => {
            let run = of(run)?;
            let [before, after] = levels(&run, factor)?;
            Ok([level(&run, factor, before)?, level(&run, factor, after)?])
        }
        ([before, after], None) => {
            Ok([whole(&of(before)?, before, wanted)?, whole(&of(after)?, after, wanted)?])
        }
        _ => Err(Usage::new(
            "either two runs, or one run and --by FACTOR",
            "see `perflab trace compare --help`",
        )
        .into()),
    }
}

/// The first two levels of a factor.
fn levels(run: &RunDir, factor: &str) -> anyhow::Result<[String; 2]> {
    let plan = run.manifest()?.plan;
    let known = plan.factors.keys().map(String::as_str);
    let levels = plan.factors.get(factor).with_context(|| {
        let hint = perflab_model::nearest::hint(factor, known);
        Usage::new(format!("the run has no factor `{factor}`"), hint)
    })?;
    match levels.as_slice() {
        [before, after, ..] => Ok([before.clone(), after.clone()]),
        _ => {
            Err(Usage::new(format!("factor `{factor}` has one level"), "there is nothing to compare").into())
        }
    }
}

fn level(run: &RunDir, factor: &str, level: String) -> anyhow::Result<(String, Operations)> {
    let slots = slots_of(run, factor, &level)?;
    Ok((level, together(run, &slots)?))
}

/// The traced slots of one level of a factor.
pub fn slots_of(run: &RunDir, factor: &str, level: &str) -> anyhow::Result<Vec<u32>> {
    let plan = run.manifest()?.plan;
    let of_level = |slot: &u32| {
        let case = plan.slots.get(*slot as usize).and_then(|slot| plan.case(slot.case));
        case.is_some_and(|case| case.levels.get(factor).is_some_and(|of| of == level))
    };
    Ok(slots(&run.traced(TRACER)?).into_iter().filter(of_level).collect())
}

fn whole(run: &RunDir, selector: &str, wanted: &Compare) -> anyhow::Result<(String, Operations)> {
    let slots =
        wanted.which.slot.map_or_else(|| Ok(slots(&run.traced(TRACER)?)), |slot| anyhow::Ok(vec![slot]))?;
    Ok((run.manifest()?.label.unwrap_or_else(|| selector.to_owned()), together(run, &slots)?))
}

/// Whether a quantile rose by more than was said, and clearly.
fn regression(found: &Comparison, wanted: Option<&str>) -> anyhow::Result<Exit> {
    let Some(text) = wanted else { return Ok(Exit::Fine) };
    let wrong = || Usage::new(format!("--fail-if `{text}` is not QUANTILE:CHANGE"), "for example p99.9:5%");
    let (name, change) = text.split_once(':').ok_or_else(wrong)?;
    let change: f64 = change.trim_end_matches('%').parse().map_err(|_| wrong())?;
    let quantile = found.quantiles.iter().find(|quantile| quantile.name == name).ok_or_else(wrong)?;
    let low = quantile.interval.map_or(0.0, |(low, _)| low);
    Ok(if low > 1.0 + change / 100.0 { Exit::Regression } else { Exit::Fine })
}
