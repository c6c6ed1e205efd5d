//! `perflab slab top`: the caches now, full-screen on a terminal, once anywhere else.

mod draw;
mod live;
mod screen;
mod view;

use std::io::IsTerminal;

use perflab_analyze::slab::{self, CacheTableOptions};
use perflab_present::comparison::{Grid, GridCell, GridColumn};
use perflab_present::slab as present;

use self::live::LiveSlab;
use super::{output, show};
use crate::arguments::slab::SlabTopArgs;
use crate::context::App;
use crate::exit::{Exit, UsageError};
use crate::quantities;

/// Watches the caches until q; prints one snapshot where nobody could watch.
pub fn show_slab_top(context: &App, wanted: &SlabTopArgs) -> anyhow::Result<Exit> {
    let every = quantities::parse_time_option("--every", &wanted.every)?;
    if !rustix::process::geteuid().is_root() {
        if wanted.plot.is_some() {
            let what = "--plot: without root there are totals only, of which nothing can be drawn";
            return Err(UsageError::new(what, "run it as root, or leave --plot out").into());
        }
        return print_slab_totals(context);
    }
    let live = LiveSlab::open(&context.root, every)?;
    if wanted.plot.is_none() && std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        screen::watch_slab_caches(live, every, wanted.by)?;
        return Ok(Exit::Fine);
    }
    print_snapshot(context, live, wanted)
}

fn print_snapshot(context: &App, mut live: LiveSlab, wanted: &SlabTopArgs) -> anyhow::Result<Exit> {
    let recording = live.sample()?;
    let result = slab::cache_table(&recording, &CacheTableOptions::default());
    let order = show::cache_order(wanted.by);
    output::print_result(context, &result, || {
        present::show_grid(&result, order, usize::MAX, show::grid_width(context, false))
    })?;
    output::write_scene(context, wanted.plot.as_ref(), || present::show_figure(&result, order, show::BARS))?;
    output::note_row_counts(context, &result.rows);
    Ok(Exit::Fine)
}

/// What everybody may read.
fn print_slab_totals(context: &App) -> anyhow::Result<Exit> {
    stderr_line!("warning: {}", super::record::WITHOUT_ROOT);
    let text = context.root.read("/proc/meminfo")?;
    let mut grid = Grid::new([GridColumn::left("meminfo"), GridColumn::right("size")]);
    for name in ["Slab", "SReclaimable", "SUnreclaim"] {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kib = line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse::<u64>().ok());
        let size = kib.map(|kib| perflab_model::Bytes(kib.saturating_mul(1024)));
        let cell = size.map_or_else(GridCell::missing, |size| GridCell::with_text(size.to_string(), size.0));
        grid.add_row([GridCell::from(name), cell]);
    }
    context.print_grid(&grid)?;
    Ok(Exit::Fine)
}
