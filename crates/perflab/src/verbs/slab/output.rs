//! Where a result goes: JSON in full, tables as grids, figures into files.

use perflab_analyze::slab::RowCounts;
use perflab_present::chart::{Scene, Surface};
use perflab_present::table::{Format, Grid};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Usage;
use crate::output_path::OutputPath;

/// The version of every JSON document of `perflab slab`.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a, T> {
    version: u32,
    result: &'a T,
}

/// The whole result as JSON, or the grid in any other format.
pub fn print<T: Serialize>(context: &Context, result: &T, grid: impl FnOnce() -> Grid) -> anyhow::Result<()> {
    if context.format == Format::Json {
        let document = Document { version: VERSION, result };
        return context.document(&document);
    }
    context.print(&grid())
}

/// Draws into a file, in the format of its name's ending; on standard output, as SVG.
pub fn plot(
    context: &Context,
    path: Option<&OutputPath>,
    scene: impl FnOnce() -> Scene,
) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    let bytes = match path.ending() {
        None | Some("svg") => scene().svg(Surface::Paper).into_bytes(),
        Some("png") => scene().png()?,
        Some(_) => {
            let message = format!("{path}: only .svg and .png can be drawn");
            return Err(Usage::new(
                message,
                "name the file picture.svg or picture.png, or - for SVG on stdout",
            )
            .into());
        }
    };
    path.write(&bytes)?;
    context.say(format!("picture: {path}"));
    Ok(())
}

/// Says where a table for people has fewer rows than there are.
pub fn say_rows(context: &Context, shown: Option<usize>, all: usize) {
    if let Some(shown) = shown.filter(|shown| *shown < all) {
        context.say(format!(
            "{shown} of {all} points of time, evenly chosen; all of them: --format csv or json"
        ));
    }
}

/// Says what became of the rows: none is lost silently.
pub fn say_counts(context: &Context, counts: &RowCounts) {
    context.say(format!(
        "{} rows read, {} used, {} unusable; {} flagged ({} torn, {} approximate, {} malformed), {} without slabs",
        counts.read,
        counts.used,
        counts.unusable,
        counts.flagged,
        counts.torn,
        counts.approximate,
        counts.malformed,
        counts.empty
    ));
}
