//! `perflab flame html`

use std::path::PathBuf;

use anyhow::Context as _;
use perflab_archive::RunDir;
use perflab_present::flame::page;

use super::pictures::{Selected, colours, picture};
use crate::arguments::flame::Html;
use crate::context::Context;
use crate::exit::Exit;

/// Writes the viewer as one file.
pub fn html(context: &Context, wanted: &Html) -> anyhow::Result<Exit> {
    let archive = context.archive()?;
    let select = |name: &String| Selected::find(&archive, name);
    let selected = wanted.runs.iter().map(select).collect::<anyhow::Result<Vec<_>>>()?;
    let writer = concat!("perflab ", env!("CARGO_PKG_VERSION"));
    let html = page(writer, &picture(&selected, wanted.case, colours(&wanted.rules)?.as_ref())?)?;
    let path = match (&wanted.output, selected.first().and_then(|side| side.runs.first())) {
        (Some(path), _) => path.clone(),
        (None, Some(run)) => default_path(context, run)?,
        (None, None) => PathBuf::from("perflab-flame.html"),
    };
    std::fs::write(&path, html).with_context(|| format!("cannot write the page {}", path.display()))?;
    context.say("flame graph:");
    context.write(&path.display().to_string())?;
    Ok(Exit::Fine)
}

fn default_path(context: &Context, run: &RunDir) -> anyhow::Result<PathBuf> {
    let directory = context.archive_path().join("reports");
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    Ok(directory.join(format!("{}-flame.html", run.id())))
}
