//! `perflab slab top`: the caches now, full-screen on a terminal, once anywhere else.

mod draw;
mod live;
mod screen;
mod view;

use std::io::IsTerminal;

use perflab_analyze::slab::{self, ShowOptions};
use perflab_present::slab as present;
use perflab_present::table::{Cell, Column, Grid};

use self::live::Live;
use super::{output, show};
use crate::arguments::slab::Top;
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::quantities;

/// Watches the caches until q; prints one snapshot where nobody could watch.
pub fn top(context: &Context, wanted: &Top) -> anyhow::Result<Exit> {
    let every = quantities::time("--every", &wanted.every)?;
    if !rustix::process::geteuid().is_root() {
        if wanted.plot.is_some() {
            let what = "--plot: without root there are totals only, of which nothing can be drawn";
            return Err(Usage::new(what, "run it as root, or leave --plot out").into());
        }
        return totals(context);
    }
    let live = Live::open(&context.root, every)?;
    if wanted.plot.is_none() && std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        screen::run(live, every, wanted.by)?;
        return Ok(Exit::Fine);
    }
    snapshot(context, live, wanted)
}

fn snapshot(context: &Context, mut live: Live, wanted: &Top) -> anyhow::Result<Exit> {
    let recording = live.sample()?;
    let result = slab::show(&recording, &ShowOptions::default());
    let order = show::order(wanted.by);
    output::print(context, &result, || {
        present::show_grid(&result, order, usize::MAX, show::width(context, false))
    })?;
    output::plot(context, wanted.plot.as_ref(), || present::show_figure(&result, order, show::BARS))?;
    output::say_counts(context, &result.rows);
    Ok(Exit::Fine)
}

/// What everybody may read.
fn totals(context: &Context) -> anyhow::Result<Exit> {
    stderr_line!("warning: {}", super::record::WITHOUT_ROOT);
    let text = context.root.read("/proc/meminfo")?;
    let mut grid = Grid::new([Column::left("meminfo"), Column::right("size")]);
    for name in ["Slab", "SReclaimable", "SUnreclaim"] {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kib = line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse::<u64>().ok());
        let size = kib.map(|kib| perflab_model::Bytes(kib.saturating_mul(1024)));
        let cell = size.map_or_else(Cell::missing, |size| Cell::shown(size.to_string(), size.0));
        grid.add([Cell::from(name), cell]);
    }
    context.print(&grid)?;
    Ok(Exit::Fine)
}
