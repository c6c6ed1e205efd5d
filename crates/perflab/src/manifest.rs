//! The manifest of a run that is about to begin.

use perflab_model::study::TomlSource;
use perflab_model::{FORMAT_VERSION, Facts, Manifest, Overhead, RunPlan, RunStatus, Study};
use perflab_observe::Root;

/// Puts together what is known before the first event.
pub fn build_manifest(
    source: &TomlSource,
    study: Study,
    plan: RunPlan,
    facts: Facts,
    label: Option<String>,
    root: &Root,
) -> Manifest {
    Manifest {
        format: FORMAT_VERSION,
        writer: format!("perflab {}", env!("CARGO_PKG_VERSION")),
        id: perflab_archive::new_run_id(),
        label,
        study,
        study_text: source.text.clone(),
        study_file: source.file.clone(),
        plan,
        facts,
        boot_id: perflab_observe::read_boot_id(root),
        target: "host".into(),
        targets: Vec::new(),
        anchor: perflab_observe::read_clock_anchor(),
        status: RunStatus::Running,
        overhead: Overhead::default(),
    }
}
