//! `perflab flame html`

use perflab_present::flame::render_flame_page;

use super::pictures::{SelectedProfiles, join_selected_profiles, read_colour_rules};
use crate::arguments::flame::FlameHtmlArgs;
use crate::context::App;
use crate::exit::Exit;
use crate::output_path::OutputPath;
use crate::verbs::report::{default_page_path, note_written_file};

/// Writes the viewer as one file.
pub fn write_flame_html(context: &App, wanted: &FlameHtmlArgs) -> anyhow::Result<Exit> {
    let archive = context.archive()?;
    let select = |name: &String| SelectedProfiles::find(&archive, name);
    let selected = wanted.runs.iter().map(select).collect::<anyhow::Result<Vec<_>>>()?;
    let writer = concat!("perflab ", env!("CARGO_PKG_VERSION"));
    let colours = read_colour_rules(&wanted.rules)?;
    let (picture, shared) =
        join_selected_profiles(&selected, wanted.case, colours.as_ref(), wanted.by_command)?;
    let html = render_flame_page(writer, &picture)?;
    let path = match (&wanted.output, selected.first().and_then(|side| side.runs.first())) {
        (Some(path), _) => path.clone(),
        (None, Some(run)) => default_page_path(context, run, "-flame.html")?,
        (None, None) => OutputPath::File("perflab-flame.html".into()),
    };
    path.write(html.as_bytes())?;
    if let Some(shared) = shared {
        context.note(format!(
            "commands that are not on every side share a box, so that their functions are compared: {} (--by-command keeps \
             them apart)",
            shared.label
        ));
    }
    note_written_file(context, "flame graph", &path)?;
    Ok(Exit::Fine)
}
