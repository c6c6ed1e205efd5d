//! `perflab flame svg`

use perflab_analyze::flame::join_profiles;
use perflab_present::flame::{self, FlameGraph};

use super::pictures::{colour_categories, measured_tree_options, read_colour_rules};
use super::stored::read_stored_profile;
use crate::arguments::flame::FlameSvgArgs;
use crate::context::App;
use crate::exit::Exit;
use crate::output_path::OutputPath;

/// Draws one case of a run.
pub fn write_flame_svg(context: &App, wanted: &FlameSvgArgs) -> anyhow::Result<Exit> {
    let (run, profile) = read_stored_profile(context, &wanted.run, wanted.case)?;
    let manifest = run.manifest()?;
    let joined = join_profiles(&[vec![(&profile, measured_tree_options(&manifest.plan, &profile))]]);
    let source = profile
        .iterations
        .first()
        .map(|piece| flame::profile_source_text(&piece.summary))
        .unwrap_or_default();
    let picture = flame::flame_graph_svg(&FlameGraph {
        title: &manifest.label.unwrap_or_else(|| run.short_id().to_owned()),
        source: &source,
        joined: &joined,
        categories: &colour_categories(&joined, read_colour_rules(&wanted.rules)?.as_ref()),
        width: f64::from(wanted.width),
        icicle: wanted.icicle,
    });
    wanted.output.as_ref().unwrap_or(&OutputPath::Stdout).write(picture.as_bytes())?;
    Ok(Exit::Fine)
}
