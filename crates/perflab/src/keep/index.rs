//! The index of the archive's runs: `perflab index`.

use clap::Args;
use perflab_archive::index::index_check::IndexCheck;
use perflab_model::Bytes;
use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};

use crate::app::App;
use crate::failure::{Exit, Failure};
use crate::verb::Verb;

/// Check the index of the archive's runs, or make it anew
#[derive(Debug, Args)]
#[command(after_long_help = INDEX)]
pub struct IndexArgs {
    /// Read every run and hold its row of the index against it (the default)
    #[arg(long, conflicts_with = "rebuild")]
    pub check: bool,
    /// Throw the index away and make it from the runs
    #[arg(long)]
    pub rebuild: bool,
}

const INDEX: &str = "\
ARCHIVE/index.sqlite holds what `list`, `history` and `guard` read of each run. It is kept by every
perflab that writes to the archive and can be deleted at any time: rows that are missing or older
than their runs are read from the runs, and written again where the archive can be written.

--check exits with 1 if a row is wrong, which only damage or an edit of the index can do; --rebuild
mends it. An index that cannot be read at all misleads nobody: the runs are read instead, and the
next writer makes it anew.

Examples:
  perflab index --check
  perflab index --rebuild";

impl Verb for IndexArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        match self.rebuild {
            true => rebuild_index(app),
            false => check_index(app),
        }
    }
}

fn rebuild_index(context: &App) -> Result<Exit, Failure> {
    let runs = context.archive()?.rebuild_index()?;
    match context.format {
        OutputFormat::Json => context.print_json(&serde_json::json!({ "runs": runs }))?,
        _ => context.note(format!("the index has a row for each of {runs} runs")),
    }
    Ok(Exit::Fine)
}

fn check_index(context: &App) -> Result<Exit, Failure> {
    let check = context.archive()?.check_index()?;
    match context.format {
        OutputFormat::Json => context.print_json(&check)?,
        _ => context.print_grid(&check_grid(&check))?,
    }
    if let Some(reason) = &check.unusable {
        context.note_line(&format!("the index cannot be used: {reason}; the runs are read without it"));
    }
    for (runs, state) in
        [(&check.wrong, "wrong"), (&check.stale, "missing or old"), (&check.gone, "left over")]
    {
        if !runs.is_empty() {
            let runs: Vec<&str> = runs.iter().map(String::as_str).take(SHOWN).collect();
            context.note_line(&format!("{state}: {}", runs.join(", ")));
        }
    }
    if check.is_right() {
        return Ok(Exit::Fine);
    }
    stderr_line!("perflab: {} rows of the index are wrong: run `perflab index --rebuild`", check.wrong.len());
    Ok(Exit::UNEXPECTED)
}

/// Runs that are named of each state.
const SHOWN: usize = 10;

fn check_grid(check: &IndexCheck) -> Grid {
    let mut grid = Grid::new([GridColumn::left("index"), GridColumn::right("value")]);
    let count = |set: usize| GridCell::from(set as u64);
    grid.add_row(["size".into(), GridCell::with_text(Bytes(check.bytes).to_string(), check.bytes)]);
    for (name, value) in [
        ("closed runs that can be read", GridCell::from(check.runs)),
        ("rows that are right", GridCell::from(check.right)),
        ("runs without a current row", count(check.stale.len())),
        ("rows of runs that are gone or damaged", count(check.gone.len())),
        ("rows that are wrong", count(check.wrong.len())),
    ] {
        grid.add_row([name.into(), value]);
    }
    grid
}
