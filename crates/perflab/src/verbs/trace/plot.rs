//! `perflab trace plot`

use perflab_present::chart::PALETTE;
use perflab_present::operations::{OperationSceneOptions, ScaleKind, common_time_range, operation_scene};

use super::stored::analyze_iteration;
use crate::arguments::trace::{OperationPlotArgs, TimeScaleName};
use crate::context::App;
use crate::exit::{Exit, UsageError};
use crate::verbs::slab::output;

/// The number over which operations are drawn where none is named.
const ELEMENTS: &str = "elements";

/// Draws every operation of an iteration.
pub fn plot_operations(context: &App, wanted: &OperationPlotArgs) -> anyhow::Result<Exit> {
    let (operations, report) = analyze_iteration(context, &wanted.run, &wanted.which)?;
    let with: Vec<Vec<String>> = wanted
        .with
        .iter()
        .map(|names| names.split(',').map(|name| name.trim().to_owned()).collect())
        .collect();
    if with.len() > PALETTE.len() {
        let message =
            format!("--with {} times: no more than {} have a colour of their own", with.len(), PALETTE.len());
        return Err(
            UsageError::new(message, "name spans of one colour together: --with reap,reap-index").into()
        );
    }
    for name in with.iter().flatten() {
        if !operations.spans.iter().any(|span| span.name == *name) {
            let names = operations.spans.iter().map(|span| span.name.as_str());
            let hint = perflab_model::problem::suggest_name(name, names);
            return Err(UsageError::new(format!("--with {name}: no such span in the trace"), hint).into());
        }
    }
    let is_of_all =
        |name: &str| operations.number_values(name).is_some_and(|number| number.len() == operations.len());
    if let Some(name) = wanted.over.as_deref().filter(|name| !is_of_all(name)) {
        let names =
            operations.numbers.iter().map(|number| number.name.as_str()).filter(|name| is_of_all(name));
        let hint = perflab_model::problem::suggest_name(name, names);
        return Err(
            UsageError::new(format!("--over {name}: operations have no such number each"), hint).into()
        );
    }
    let other = wanted.like.as_ref().map(|run| analyze_iteration(context, run, &wanted.which)).transpose()?;
    let wanted_picture = OperationSceneOptions {
        title: format!("Every operation of {}", wanted.run),
        scale_kind: match wanted.axis {
            TimeScaleName::Log => ScaleKind::Log,
            TimeScaleName::Linear => ScaleKind::Linear,
        },
        colour_by_cause: with.is_empty(),
        drawn_spans: with,
        x_number: Some(wanted.over.clone().unwrap_or_else(|| ELEMENTS.into())),
        time_range: other.as_ref().map(|(_, other)| common_time_range(&[other, &report])),
    };
    output::write_scene(context, Some(&wanted.output), || {
        operation_scene(&operations, &report, &wanted_picture)
    })?;
    Ok(Exit::Fine)
}
