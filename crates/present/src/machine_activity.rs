//! What a machine did while a command ran, as a table.

use perflab_analyze::MachineActivity;
use perflab_model::quantity::format_share;

use crate::grid::{Grid, GridCell, GridColumn};

/// A row for each thing; what it did at rest beside, where that was watched.
pub fn machine_activity_grid(all: &[MachineActivity]) -> Grid {
    let has_rest = all.iter().any(|one| one.at_rest.is_some());
    let columns = [GridColumn::left("the machine"), GridColumn::right("meanwhile")];
    let mut grid = Grid::new(columns.into_iter().chain(has_rest.then(|| GridColumn::right("at rest"))));
    for one in all {
        let cell = |value: f64| match one.unit.0.is_empty() {
            true => GridCell::with_text(format_share(value), value),
            false => GridCell::quantity(value, &one.unit.0),
        };
        let mut row = vec![GridCell::from(one.what.as_str()), cell(one.during)];
        row.extend(has_rest.then(|| one.at_rest.map_or_else(GridCell::missing, cell)));
        grid.add_row(row);
    }
    grid
}
