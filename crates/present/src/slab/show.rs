//! Owns the table of caches and the picture of where their bytes went. It refuses an order of its own.

use perflab_analyze::slab::mean::Mean;
use perflab_analyze::slab::{CacheLine, Integral, Order, Show};

use super::cells;
use crate::chart::{Bar, Bars, Scene, Unit};
use crate::table::{Cell, Column, Grid};

/// How much room the table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// every column
    Wide,
    /// what matters most, for eighty columns
    Narrow,
}

/// A column: its title, the notebook's and the kernel tool's name for it, and whether eighty columns have room.
struct Told {
    title: &'static str,
    theirs: &'static str,
    narrow: bool,
}

const fn told(title: &'static str, theirs: &'static str, narrow: bool) -> Told {
    Told { title, theirs, narrow }
}

const COLUMNS: &[Told] = &[
    told("cache", "name (Name)", true),
    told("slab", "space_normalized_in_kb (Space)", true),
    told("wasted", "none (Loss)", true),
    told("tail", "none (Lpadd, of all slabs)", false),
    told("align", "none (Lalig, of all slots)", false),
    told("free", "none (in neither of Loss's parts)", false),
    told("efficiency", "percent_efficient (%Ef), a whole number there", true),
    told("at least", "none", false),
    told("unweighted", "mean of percent_efficient over ticks", true),
    told("packing", "ef", false),
    told("alignment", "none", false),
    told("occupancy", "active_vs_num, of objects", false),
    told("object", "object_size (Objsize)", false),
    told("per slab", "o_s (O/S)", false),
    told("peak", "none", true),
    told("other names", "none (slabinfo -a)", false),
];

/// Each column's title, with what the notebook calls it and, in brackets, the kernel's slabinfo tool.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    COLUMNS.iter().map(|column| (column.title, column.theirs))
}

/// Totals, then the first `top` caches in that order. Everything is a mean over the run's time but the peak.
#[must_use]
pub fn grid(show: &Show, order: Order, top: usize, width: Width) -> Grid {
    let kept = |column: &&Told| width == Width::Wide || column.narrow;
    let columns = COLUMNS.iter().filter(kept).map(|column| match column.title {
        "cache" | "other names" => Column::left(column.title),
        title => Column::right(title),
    });
    let mut grid = Grid::new(columns);
    let mut add = |cells: Vec<Cell>| {
        let cells = COLUMNS.iter().zip(cells).filter(|(column, _)| kept(column));
        grid.add(cells.map(|(_, cell)| cell).collect::<Vec<_>>());
    };
    add(total(&format!("all {} caches", show.caches.len()), &show.total, show.unweighted));
    let kinds = [
        ("reclaimable", &show.reclaimable),
        ("unreclaimable", &show.unreclaimable),
        ("of unknown kind", &show.unknown),
    ];
    for (name, sum) in kinds.into_iter().filter(|(_, sum)| sum.usage.slab_bytes > 0) {
        add(total(name, sum, None));
    }
    show.sorted(order).into_iter().take(top).for_each(|line| add(cache(line)));
    grid
}

fn total(name: &str, sum: &Integral, unweighted: Option<f64>) -> Vec<Cell> {
    let mut cells = vec![Cell::from(name)];
    cells.extend(figures(sum, unweighted));
    cells
}

fn cache(line: &CacheLine) -> Vec<Cell> {
    let mut cells = vec![Cell::from(line.name.as_str())];
    cells.extend(figures(&line.mean, line.unweighted));
    cells.push(line.object_size.into());
    cells.push(line.objs_per_slab.into());
    cells.push(cells::bytes(line.peak_bytes));
    cells.push(cells::others(&line.members, &line.name));
    cells
}

/// The columns from `slab` to `occupancy`.
fn figures(integral: &Integral, unweighted: Option<f64>) -> Vec<Cell> {
    let mean = Mean::from(*integral);
    vec![
        cells::mean_bytes(mean.slab_bytes),
        cells::mean_bytes(integral.wasted()),
        cells::mean_bytes(mean.tail_bytes),
        mean.align_bytes.map_or_else(Cell::missing, cells::mean_bytes),
        cells::mean_bytes(mean.free_bytes),
        cells::efficiency(mean.overall, mean.alignment),
        cells::share(mean.overall_at_least.and_then(perflab_analyze::slab::Ratio::value)),
        cells::share(unweighted),
        cells::ratio(mean.packing),
        cells::share(cells::alignment(mean.alignment)),
        cells::ratio(mean.occupancy),
    ]
}

/// Waste by kind of the first `top` caches.
#[must_use]
pub fn figure(show: &Show, order: Order, top: usize) -> Scene {
    let mean = Mean::from(show.total);
    let overall = mean.overall.percent().map(|share| format!("{share:.2} %")).unwrap_or_default();
    let bar = |line: &&CacheLine| {
        let mean = Mean::from(line.mean);
        // A torn row can make a part negative; a stack of parts cannot show that.
        let parts = [mean.tail_bytes, mean.align_bytes.unwrap_or(0.0), mean.free_bytes];
        Bar { name: line.name.clone(), parts: parts.map(|part| part.max(0.0)).to_vec(), interval: None }
    };
    Bars {
        title: "Slab memory that holds no object, by cache".into(),
        note: format!("mean over the run; all caches together: {overall} of slab bytes hold objects"),
        unit: Unit::Bytes,
        parts: ["tail of slabs", "alignment", "free objects"].map(String::from).to_vec(),
        bars: show.sorted(order).iter().take(top).map(bar).collect(),
    }
    .scene()
}
