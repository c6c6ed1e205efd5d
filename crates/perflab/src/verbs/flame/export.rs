//! `perflab flame export`

use perflab_stacks::export::{Chosen, firefox, folded, pprof, speedscope};

use super::pictures::measured;
use super::stored::stored;
use crate::arguments::flame::{Export, ExportFormat};
use crate::context::Context;
use crate::exit::Exit;
use crate::output_path::OutputPath;

/// Writes one case of a run for another viewer.
pub fn export(context: &Context, wanted: &Export) -> anyhow::Result<Exit> {
    let (run, profile) = stored(context, &wanted.run, wanted.case)?;
    let manifest = run.manifest()?;
    let slots = measured(&manifest.plan, &profile).slots;
    let name = manifest.label.unwrap_or_else(|| run.short().to_owned());
    let chosen = Chosen { name: &name, profile: &profile, slots: slots.as_deref() };
    let bytes = match wanted.to {
        ExportFormat::Folded => folded(chosen).into_bytes(),
        ExportFormat::Speedscope => speedscope(chosen).into_bytes(),
        ExportFormat::Firefox => firefox(chosen)?.into_bytes(),
        ExportFormat::Pprof => pprof(chosen)?,
    };
    let path = wanted.output.as_ref().unwrap_or(&OutputPath::Stdout);
    if wanted.to == ExportFormat::Pprof {
        path.refuse_terminal("a profile of pprof")?;
    }
    path.write(&bytes)?;
    let parts = profile.parts();
    if parts.lost > 0 || parts.unreadable > 0 {
        let (lost, unreadable) = (parts.lost, parts.unreadable);
        context
            .say(format!("not in the file: {lost} samples lost for want of room, {unreadable} unreadable"));
    }
    Ok(Exit::Fine)
}
