//! `perflab slab import`

use perflab_archive::import::{Kind, Options, import_foreign};
use perflab_model::Bytes;
use perflab_present::table::{Cell, Column, Grid};

use crate::arguments::slab::Import;
use crate::context::Context;
use crate::exit::{Exit, Usage};

/// Makes a run of what other tools wrote, and says what was taken of each file.
pub fn import(context: &Context, wanted: &Import) -> anyhow::Result<Exit> {
    let kind = wanted.kind.as_deref().map(str::parse::<Kind>).transpose();
    let kind = kind.map_err(|error| Usage::new(error, "leave --kind out to have it guessed"))?;
    let page_size = wanted.page_size.as_deref().map(Bytes::parse).transpose();
    let page_size =
        page_size.map_err(|error| Usage::new(format!("--page-size: {error}"), "for example 64KiB"))?;
    let options = Options { label: wanted.label.clone(), page_size, kind };
    let imported = import_foreign(&context.archive()?, &wanted.path, &options)?;
    for warning in &imported.warnings {
        eprintln!("warning: {}; {}", warning.message, warning.advice);
    }
    let numbers = ["ticks", "rows read", "used", "flagged", "unusable"].map(Column::right);
    let mut grid = Grid::new(["file", "became"].map(Column::left).into_iter().chain(numbers));
    for took in &imported.took {
        grid.add([
            Cell::from(took.name()),
            took.became.into(),
            took.ticks.into(),
            took.rows_read.into(),
            took.rows_used.into(),
            took.rows_flagged.into(),
            took.rows_unusable.into(),
        ]);
        for remark in took.unusable.iter().chain(&took.flagged) {
            eprintln!("warning: {}:{}: {}", took.file.display(), remark.line, remark.reason);
        }
        took.notes.iter().for_each(|note| context.say(format!("{}: {note}", took.name())));
    }
    context.print(&grid)?;
    context.say(format!("run: {} (taken for {})", imported.run.short(), imported.kind.name()));
    Ok(Exit::Fine)
}
