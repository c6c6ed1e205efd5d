//! The manifest of a run that is about to begin.

use perflab_model::study::Source;
use perflab_model::{FORMAT_VERSION, Facts, Manifest, Overhead, Plan, Status, Study};
use perflab_observe::Root;

/// Puts together what is known before the first event.
pub fn manifest(
    source: &Source,
    study: Study,
    plan: Plan,
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
        boot_id: perflab_observe::boot_id(root),
        target: "host".into(),
        targets: Vec::new(),
        anchor: perflab_observe::anchor(),
        status: Status::Running,
        overhead: Overhead::default(),
    }
}
