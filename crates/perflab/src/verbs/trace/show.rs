//! `perflab trace show`

use perflab_analyze::trace::sentences_about_probes;
use perflab_present::trace::slowest_grid;

use super::stored::analyzed;
use crate::arguments::trace::{Show, Which};
use crate::context::Context;
use crate::exit::{Exit, Usage};

/// The slowest operations, each with what happened in it.
pub fn show(context: &Context, wanted: &Show) -> anyhow::Result<Exit> {
    if (wanted.which.above - Which::ABOVE).abs() > f64::EPSILON {
        let what =
            "--above says which operations are outliers, and `trace show` lists the slowest, outliers or not";
        return Err(Usage::new(
            what,
            "`perflab trace causes --above` counts outliers; --top lists more here",
        )
        .into());
    }
    let (operations, report) = analyzed(context, &wanted.run, &wanted.which)?;
    sentences_about_probes(&report).into_iter().for_each(|sentence| context.say(sentence));
    context.print(&slowest_grid(&operations, &report, wanted.top))?;
    Ok(Exit::Fine)
}
