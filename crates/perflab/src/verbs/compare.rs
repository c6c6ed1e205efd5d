//! `perflab compare`

use perflab_analyze::{Comparison, Gate, Options, compare, compare_by_factor};

use crate::arguments;
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::sides;

/// Compares runs, or the levels of a factor within one.
pub fn run(context: &Context, wanted: &arguments::Compare) -> anyhow::Result<Exit> {
    let gate = wanted.fail_if.as_deref().map(str::parse::<Gate>).transpose()?;
    let comparison = comparison(context, wanted)?;
    context.write(&perflab_present::table::render(
        &comparison,
        context.format,
        context.width,
        context.colour,
    )?)?;
    let found = gate.map(|gate| comparison.violations(&gate).len()).unwrap_or_default();
    if found > 0 {
        eprintln!("perflab: --fail-if {}: {found} found", wanted.fail_if.as_deref().unwrap_or_default());
    }
    Ok(if found > 0 { Exit::Regression } else { Exit::Fine })
}

fn comparison(context: &Context, wanted: &arguments::Compare) -> anyhow::Result<Comparison> {
    let archive = context.archive()?;
    let options = options(wanted)?;
    let sides = wanted.runs.iter().map(|run| sides::side(&archive, run)).collect::<Result<Vec<_>, _>>()?;
    match (&wanted.by, sides.split_first()) {
        (Some(factor), Some((side, []))) => Ok(compare_by_factor(side, factor, &options)?),
        (Some(_), _) => {
            Err(Usage::new("--by compares within one run", "name one run, or leave --by out").into())
        }
        (None, Some((baseline, candidates))) if !candidates.is_empty() => {
            Ok(compare(baseline, candidates, &options)?)
        }
        (None, _) => Err(Usage::new(
            "there is nothing to compare one run with",
            "name a second run, or a factor with --by",
        )
        .into()),
    }
}

fn options(wanted: &arguments::Compare) -> Result<Options, Usage> {
    if !(0.5..1.0).contains(&wanted.confidence) {
        let message = format!("--confidence {} is not between 0.5 and 1", wanted.confidence);
        return Err(Usage::new(message, "0.95 is usual"));
    }
    let margin = wanted.margin.trim().trim_end_matches('%').parse::<f64>().ok();
    let margin = margin.filter(|margin| (0.0..100.0).contains(margin));
    let margin = margin.ok_or_else(|| {
        Usage::new(format!("--margin {} is not a per cent value", wanted.margin), "write 3%")
    })?;
    Ok(Options {
        confidence: wanted.confidence,
        default_margin: margin / 100.0,
        metrics: wanted.metric.clone(),
        ..Options::default()
    })
}
