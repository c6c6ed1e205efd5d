//! `perflab trace plot`

use perflab_present::chart::PALETTE;
use perflab_present::trace::{Picture, Spread, picture, range};

use super::stored::analyzed;
use crate::arguments::trace::{Plot, SpreadName};
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::verbs::slab::output;

/// The number over which operations are drawn where none is named.
const ELEMENTS: &str = "elements";

/// Draws every operation of an iteration.
pub fn plot(context: &Context, wanted: &Plot) -> anyhow::Result<Exit> {
    let (operations, report) = analyzed(context, &wanted.run, &wanted.which)?;
    let with: Vec<Vec<String>> = wanted
        .with
        .iter()
        .map(|names| names.split(',').map(|name| name.trim().to_owned()).collect())
        .collect();
    if with.len() > PALETTE.len() {
        let message =
            format!("--with {} times: no more than {} have a colour of their own", with.len(), PALETTE.len());
        return Err(Usage::new(message, "name spans of one colour together: --with reap,reap-index").into());
    }
    for name in with.iter().flatten() {
        if !operations.spans.iter().any(|span| span.name == *name) {
            let names = operations.spans.iter().map(|span| span.name.as_str());
            let hint = perflab_model::nearest::hint(name, names);
            return Err(Usage::new(format!("--with {name}: no such span in the trace"), hint).into());
        }
    }
    let is_of_all =
        |name: &str| operations.number(name).is_some_and(|number| number.len() == operations.len());
    if let Some(name) = wanted.over.as_deref().filter(|name| !is_of_all(name)) {
        let names =
            operations.numbers.iter().map(|number| number.name.as_str()).filter(|name| is_of_all(name));
        let hint = perflab_model::nearest::hint(name, names);
        return Err(Usage::new(format!("--over {name}: operations have no such number each"), hint).into());
    }
    let other = wanted.like.as_ref().map(|run| analyzed(context, run, &wanted.which)).transpose()?;
    let wanted_picture = Picture {
        title: format!("Every operation of {}", wanted.run),
        spread: match wanted.axis {
            SpreadName::Log => Spread::Log,
            SpreadName::Linear => Spread::Linear,
        },
        causes: with.is_empty(),
        with,
        over: Some(wanted.over.clone().unwrap_or_else(|| ELEMENTS.into())),
        range: other.as_ref().map(|(_, other)| range(&[other, &report])),
    };
    output::plot(context, Some(&wanted.output), || picture(&operations, &report, &wanted_picture))?;
    Ok(Exit::Fine)
}
