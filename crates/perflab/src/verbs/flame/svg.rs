//! `perflab flame svg`

use perflab_analyze::flame::join;
use perflab_present::flame::{self, FlameSvg};

use super::pictures::{categories, colours, measured};
use super::stored::stored;
use crate::arguments::flame::Svg;
use crate::context::Context;
use crate::exit::Exit;
use crate::output_path::OutputPath;

/// Draws one case of a run.
pub fn svg(context: &Context, wanted: &Svg) -> anyhow::Result<Exit> {
    let (run, profile) = stored(context, &wanted.run, wanted.case)?;
    let manifest = run.manifest()?;
    let joined = join(&[vec![(&profile, measured(&manifest.plan, &profile))]]);
    let source = profile.pieces.first().map(|piece| flame::source(&piece.about)).unwrap_or_default();
    let picture = flame::svg(&FlameSvg {
        title: &manifest.label.unwrap_or_else(|| run.short().to_owned()),
        source: &source,
        joined: &joined,
        categories: &categories(&joined, colours(&wanted.rules)?.as_ref()),
        width: f64::from(wanted.width),
        icicle: wanted.icicle,
    });
    wanted.output.as_ref().unwrap_or(&OutputPath::Stdout).write(picture.as_bytes())?;
    Ok(Exit::Fine)
}
