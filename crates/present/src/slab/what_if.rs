//! Owns the table of what would be. It refuses advice: a higher order saves bytes and costs allocations.

use perflab_analyze::slab::LayoutWhatIf;

use super::cells;
use crate::table::{Grid, GridColumn};

/// A cache under another layout.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct WhatIfRow {
    /// The cache.
    pub cache: String,
    /// What would be.
    pub what_if: LayoutWhatIf,
}

impl WhatIfRow {
    /// Bytes saved; below 0 where it would take more.
    #[must_use]
    pub fn saved_bytes(&self) -> i128 {
        i128::from(self.what_if.bytes_now) - i128::from(self.what_if.bytes_then)
    }
}

/// One row a cache and layout.
#[must_use]
pub fn what_if_grid(rows: &[WhatIfRow]) -> Grid {
    let numbers = ["order", "object", "slot", "per slab", "slab", "saved", "if full, now", "if full, then"];
    let columns = [GridColumn::left("cache")].into_iter().chain(numbers.map(GridColumn::right));
    let mut grid = Grid::new(columns);
    for row in rows {
        let then = row.what_if.then;
        grid.add_row([
            row.cache.as_str().into(),
            then.order.into(),
            then.object_size.into(),
            then.slab_size.into(),
            then.objs_per_slab.into(),
            cells::bytes_cell(u128::from(row.what_if.bytes_then)),
            cells::signed_bytes_cell(row.saved_bytes()),
            cells::bytes_cell(u128::from(row.what_if.packed_now)),
            cells::bytes_cell(u128::from(row.what_if.packed_then)),
        ]);
    }
    grid
}
