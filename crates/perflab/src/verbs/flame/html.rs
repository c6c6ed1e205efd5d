//! `perflab flame html`

use perflab_present::flame::page;

use super::pictures::{Selected, colours, picture};
use crate::arguments::flame::Html;
use crate::context::Context;
use crate::exit::Exit;
use crate::output_path::OutputPath;
use crate::verbs::report::{default_path, say_written};

/// Writes the viewer as one file.
pub fn html(context: &Context, wanted: &Html) -> anyhow::Result<Exit> {
    let archive = context.archive()?;
    let select = |name: &String| Selected::find(&archive, name);
    let selected = wanted.runs.iter().map(select).collect::<anyhow::Result<Vec<_>>>()?;
    let writer = concat!("perflab ", env!("CARGO_PKG_VERSION"));
    let html = page(writer, &picture(&selected, wanted.case, colours(&wanted.rules)?.as_ref())?)?;
    let path = match (&wanted.output, selected.first().and_then(|side| side.runs.first())) {
        (Some(path), _) => path.clone(),
        (None, Some(run)) => default_path(context, run, "-flame.html")?,
        (None, None) => OutputPath::File("perflab-flame.html".into()),
    };
    path.write(html.as_bytes())?;
    say_written(context, "flame graph", &path)?;
    Ok(Exit::Fine)
}
