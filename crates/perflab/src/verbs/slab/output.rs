//! Where a result goes: JSON in full, tables as grids, figures into files.

use perflab_analyze::slab::SlabRowCounts;
use perflab_present::chart::{Scene, SceneSurface};
use perflab_present::comparison::{Grid, OutputFormat};
use serde::Serialize;

use crate::context::App;
use crate::exit::UsageError;
use crate::output_path::OutputPath;

/// The version of every JSON document of `perflab slab`.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct ResultDocument<'a, T> {
    version: u32,
    result: &'a T,
}

/// The whole result as JSON, or the grid in any other format.
pub fn print_result<T: Serialize>(
    context: &App,
    result: &T,
    grid: impl FnOnce() -> Grid,
) -> anyhow::Result<()> {
    if context.format == OutputFormat::Json {
        let document = ResultDocument { version: VERSION, result };
        return context.print_json(&document);
    }
    context.print_grid(&grid())
}

/// Draws into a file, in the format of its name's ending; on standard output, as SVG.
pub fn write_scene(
    context: &App,
    path: Option<&OutputPath>,
    scene: impl FnOnce() -> Scene,
) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    let bytes = match path.extension() {
        None | Some("svg") => scene().to_svg(SceneSurface::Paper).into_bytes(),
        Some("png") => scene().to_png()?,
        Some(_) => {
            let message = format!("{path}: only .svg and .png can be drawn");
            return Err(UsageError::new(
                message,
                "name the file picture.svg or picture.png, or - for SVG on stdout",
            )
            .into());
        }
    };
    path.write(&bytes)?;
    context.note(format!("picture: {path}"));
    Ok(())
}

/// Says where a table for people has fewer rows than there are.
pub fn note_omitted_rows(context: &App, shown: Option<usize>, all: usize) {
    if let Some(shown) = shown.filter(|shown| *shown < all) {
        context.note(format!(
            "{shown} of {all} points of time, evenly chosen; all of them: --format csv or json"
        ));
    }
}

/// Says what became of the rows: none is lost silently.
pub fn note_row_counts(context: &App, counts: &SlabRowCounts) {
    context.note(format!(
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
