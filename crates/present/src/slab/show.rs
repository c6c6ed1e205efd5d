//! Owns the table of caches and the picture of where their bytes went. It refuses an order of its own.

use perflab_analyze::slab::mean::MeanUsage;
use perflab_analyze::slab::{CacheOrder, CacheRow, CacheTable, UsageIntegral};

use super::cells;
use crate::chart::{AxisUnit, BarChart, ChartBar, Scene};
use crate::table::{Grid, GridCell, GridColumn};

/// How much room the table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridWidth {
    /// every column
    Wide,
    /// what matters most, for eighty columns
    Narrow,
}

/// A column: its title, the notebook's and the kernel tool's name for it, and whether eighty columns have room.
struct SlabColumn {
    title: &'static str,
    notebook_name: &'static str,
    narrow: bool,
}

const fn slab_column(title: &'static str, theirs: &'static str, narrow: bool) -> SlabColumn {
    SlabColumn { title, notebook_name: theirs, narrow }
}

const COLUMNS: &[SlabColumn] = &[
    slab_column("cache", "name (Name)", true),
    slab_column("slab", "space_normalized_in_kb (Space)", true),
    slab_column("wasted", "none (Loss)", true),
    slab_column("tail", "none (Lpadd, of all slabs)", false),
    slab_column("align", "none (Lalig, of all slots)", false),
    slab_column("free", "none (in neither of Loss's parts)", false),
    slab_column("efficiency", "percent_efficient (%Ef), a whole number there", true),
    slab_column("at least", "none", false),
    slab_column("unweighted", "mean of percent_efficient over ticks", true),
    slab_column("packing", "ef", false),
    slab_column("alignment", "none", false),
    slab_column("occupancy", "active_vs_num, of objects", false),
    slab_column("object", "object_size (Objsize)", false),
    slab_column("per slab", "o_s (O/S)", false),
    slab_column("peak", "none", true),
    slab_column("other names", "none (slabinfo -a)", false),
];

/// Each column's title, with what the notebook calls it and, in brackets, the kernel's slabinfo tool.
pub fn notebook_column_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    COLUMNS.iter().map(|column| (column.title, column.notebook_name))
}

/// Totals, then the first `top` caches in that order. Everything is a mean over the run's time but the peak.
#[must_use]
pub fn cache_grid(show: &CacheTable, order: CacheOrder, top: usize, width: GridWidth) -> Grid {
    let kept = |column: &&SlabColumn| width == GridWidth::Wide || column.narrow;
    let columns = COLUMNS.iter().filter(kept).map(|column| match column.title {
        "cache" | "other names" => GridColumn::left(column.title),
        title => GridColumn::right(title),
    });
    let mut grid = Grid::new(columns);
    let mut add = |cells: Vec<GridCell>| {
        let cells = COLUMNS.iter().zip(cells).filter(|(column, _)| kept(column));
        grid.add_row(cells.map(|(_, cell)| cell).collect::<Vec<_>>());
    };
    add(total_cells(&format!("all {} caches", show.caches.len()), &show.total, show.unweighted));
    let kinds = [
        ("reclaimable", &show.reclaimable),
        ("unreclaimable", &show.unreclaimable),
        ("of unknown kind", &show.unknown),
    ];
    for (name, sum) in kinds.into_iter().filter(|(_, sum)| sum.usage.slab_bytes > 0) {
        add(total_cells(name, sum, None));
    }
    show.sorted_rows(order).into_iter().take(top).for_each(|line| add(cache_cells(line)));
    grid
}

fn total_cells(name: &str, sum: &UsageIntegral, unweighted: Option<f64>) -> Vec<GridCell> {
    let mut cells = vec![GridCell::from(name)];
    cells.extend(integral_cells(sum, unweighted));
    cells
}

fn cache_cells(line: &CacheRow) -> Vec<GridCell> {
    let mut cells = vec![GridCell::from(line.name.as_str())];
    cells.extend(integral_cells(&line.mean, line.unweighted));
    cells.push(line.object_size.into());
    cells.push(line.objs_per_slab.into());
    cells.push(cells::bytes_cell(line.peak_bytes));
    cells.push(cells::other_names_cell(&line.members, &line.name));
    cells
}

/// The columns from `slab` to `occupancy`.
fn integral_cells(integral: &UsageIntegral, unweighted: Option<f64>) -> Vec<GridCell> {
    let mean = MeanUsage::from(*integral);
    vec![
        cells::mean_bytes_cell(mean.slab_bytes),
        cells::mean_bytes_cell(integral.wasted_bytes()),
        cells::mean_bytes_cell(mean.tail_bytes),
        mean.align_bytes.map_or_else(GridCell::missing, cells::mean_bytes_cell),
        cells::mean_bytes_cell(mean.free_bytes),
        cells::efficiency_cell(mean.overall, mean.alignment),
        cells::share_cell(mean.overall_at_least.and_then(perflab_analyze::slab::ExactRatio::value)),
        cells::share_cell(unweighted),
        cells::ratio_cell(mean.packing),
        cells::share_cell(cells::alignment_share(mean.alignment)),
        cells::ratio_cell(mean.occupancy),
    ]
}

/// Waste by kind of the first `top` caches.
#[must_use]
pub fn waste_chart(show: &CacheTable, order: CacheOrder, top: usize) -> Scene {
    let mean = MeanUsage::from(show.total);
    let overall = mean.overall.percent().map(|share| format!("{share:.2} %")).unwrap_or_default();
    let bar = |line: &&CacheRow| {
        let mean = MeanUsage::from(line.mean);
        // A torn row can make a part negative; a stack of parts cannot show that.
        let parts = [mean.tail_bytes, mean.align_bytes.unwrap_or(0.0), mean.free_bytes];
        ChartBar { name: line.name.clone(), parts: parts.map(|part| part.max(0.0)).to_vec(), interval: None }
    };
    BarChart {
        title: "Slab memory that holds no object, by cache".into(),
        note: format!("mean over the run; all caches together: {overall} of slab bytes hold objects"),
        unit: AxisUnit::Bytes,
        parts: ["tail of slabs", "alignment", "free objects"].map(String::from).to_vec(),
        bars: show.sorted_rows(order).iter().take(top).map(bar).collect(),
    }
    .render()
}
