//! Where a result goes: JSON in full, tables as grids, figures into files.

use std::path::Path;

use anyhow::Context as _;
use perflab_analyze::slab::RowCounts;
use perflab_present::chart::{Scene, Surface};
use perflab_present::table::{Format, Grid};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Usage;

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
        return context.write(&serde_json::to_string_pretty(&document)?);
    }
    context.print(&grid())
}

/// Draws into a file, in the format of its name's ending.
pub fn plot(context: &Context, path: Option<&Path>, scene: impl FnOnce() -> Scene) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let bytes = match ending {
        "svg" => scene().svg(Surface::Paper).into_bytes(),
        "png" => scene().png()?,
        _ => {
            let message = format!("--plot {}: only .svg and .png can be drawn", path.display());
            return Err(Usage::new(message, "name the file picture.svg or picture.png").into());
        }
    };
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    context.say(format!("picture: {}", path.display()));
    Ok(())
}

/// What became of the rows, on stderr: none is lost silently.
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
