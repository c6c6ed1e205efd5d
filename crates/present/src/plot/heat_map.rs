//! A column of a monitor by row and time, or a metric over two parameters, as colours.

use perflab_analyze::ValueGrid;

use crate::chart::axis_unit::AxisUnit;
use crate::chart::heat_chart::HeatChart;
use crate::chart::scene::Scene;
use crate::plot::panel::{PlotLook, value_unit};

/// Pixels around the rows.
const AROUND: f64 = 150.0;

/// Most rows that have a height of their own, where none is asked for.
const MOST_ROWS: usize = 60;

/// The grid as colours. The vertical axis of the look is that of the colours: their range, and whether they are logarithmic.
#[must_use]
pub fn heat_map_scene(grid: &ValueGrid, look: &PlotLook) -> Scene {
    let rows = grid.rows.len().clamp(1, MOST_ROWS) as f64;
    let height = if grid.seconds.is_some() { HeatChart::LEAST_ROW.max(18.0) } else { 34.0 };
    let missing = grid.values.iter().flatten().filter(|value| value.is_none()).count();
    let cell = match grid.seconds {
        Some(_) => "colour: the mean of each length of time",
        None => "colour and number: the median of each cell",
    };
    let missing = match missing {
        0 => String::new(),
        1 => "; one cell has no value".to_owned(),
        missing => format!("; {missing} cells have no value"),
    };
    let hidden =
        grid.values.iter().flatten().flatten().filter(|value| look.y.logarithmic && **value <= 0.0).count();
    let hidden = match hidden {
        0 => String::new(),
        hidden => format!("; {hidden} not above zero, in the lightest colour"),
    };
    HeatChart {
        title: look.title.clone().unwrap_or_else(|| match grid.seconds {
            Some(_) => format!("{} over time", grid.name),
            None => format!("{} over {} and {}", grid.name, grid.column_name, grid.row_name),
        }),
        note: format!("{cell}{missing}{hidden}"),
        x_title: grid.column_name.clone(),
        y_title: grid.row_name.clone(),
        columns: grid.columns.clone(),
        across: (grid.seconds.unwrap_or_default(), AxisUnit::Plain("s".into())),
        rows: grid.rows.clone(),
        values: grid.values.clone(),
        unit: value_unit(&grid.unit),
        scale: look.y,
        look: look.panel(1, AROUND + height * rows),
    }
    .render()
}
