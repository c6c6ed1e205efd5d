//! `perflab flame export`

use perflab_stacks::{ProfileSelection, write_firefox, write_folded, write_pprof, write_speedscope};

use super::pictures::measured_tree_options;
use super::stored::read_stored_profile;
use crate::arguments::flame::{FlameExportArgs, FlameExportFormat};
use crate::context::App;
use crate::exit::Exit;
use crate::output_path::OutputPath;

/// Writes one case of a run for another viewer.
pub fn export_profile(context: &App, wanted: &FlameExportArgs) -> anyhow::Result<Exit> {
    let (run, profile) = read_stored_profile(context, &wanted.run, wanted.case)?;
    let manifest = run.manifest()?;
    let slots = measured_tree_options(&manifest.plan, &profile).slots;
    let name = manifest.label.unwrap_or_else(|| run.short_id().to_owned());
    let chosen = ProfileSelection { name: &name, profile: &profile, slots: slots.as_deref() };
    let bytes = match wanted.to {
        FlameExportFormat::Folded => write_folded(chosen).into_bytes(),
        FlameExportFormat::Speedscope => write_speedscope(chosen).into_bytes(),
        FlameExportFormat::Firefox => write_firefox(chosen)?.into_bytes(),
        FlameExportFormat::Pprof => write_pprof(chosen)?,
    };
    let path = wanted.output.as_ref().unwrap_or(&OutputPath::Stdout);
    if wanted.to == FlameExportFormat::Pprof {
        path.refuse_terminal("a profile of pprof")?;
    }
    path.write(&bytes)?;
    let parts = profile.sample_counts();
    if parts.lost > 0 || parts.unreadable > 0 {
        let (lost, unreadable) = (parts.lost, parts.unreadable);
        context
            .note(format!("not in the file: {lost} samples lost for want of room, {unreadable} unreadable"));
    }
    Ok(Exit::Fine)
}
