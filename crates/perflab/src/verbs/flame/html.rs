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
    let colours = colours(&wanted.rules)?;
    let (picture, shared) = picture(&selected, wanted.case, colours.as_ref(), wanted.by_command)?;
    let html = page(writer, &picture)?;
    let path = match (&wanted.output, selected.first().and_then(|side| side.runs.first())) {
        (Some(path), _) => path.clone(),
        (None, Some(run)) => default_path(context, run, "-flame.html")?,
        (None, None) => OutputPath::File("perflab-flame.html".into()),
    };
    path.write(html.as_bytes())?;
    if let Some(shared) = shared {
        context.say(format!(
            "commands that are not on every side share a box, so that their functions are compared: {} (--by-command keeps \
             them apart)",
            shared.label
        ));
    }
    say_written(context, "flame graph", &path)?;
    Ok(Exit::Fine)
}
