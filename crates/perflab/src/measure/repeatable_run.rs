//! Whether a run can be done again, or gone on with.

use perflab_archive::RunDir;
use perflab_model::Manifest;

use crate::failure::UsageError;

/// Refuses runs whose work no study describes: imports, and those of `watch` and `flame record`.
///
/// # Errors
/// It is one of these.
pub fn check_reproducible(found: &RunDir, manifest: &Manifest) -> Result<(), UsageError> {
    if manifest.study_text.is_empty() {
        let message = format!("run {} was imported: what it ran is not known", found.short_id());
        return Err(UsageError::new(message, "run it with the tool that made it"));
    }
    // `watch` and `flame record` run a command that their study does not hold.
    let spec = manifest.study.workload.get("command");
    if spec.is_some_and(|spec| spec.command.is_none() && spec.uses.is_none()) {
        let verb = &manifest.study_file;
        let message =
            format!("run {} is one of `perflab {verb}`, which no study describes", found.short_id());
        let hint = format!("type `perflab {verb}` again; the run's title names its command");
        return Err(UsageError::new(message, hint));
    }
    Ok(())
}

/// Refuses runs that nobody can go on with, whatever they lack: those, and those that end once something is known.
///
/// # Errors
/// It is one of these.
pub fn check_study_resumable(found: &RunDir, manifest: &Manifest) -> Result<(), UsageError> {
    check_reproducible(found, manifest)?;
    let short = found.short_id();
    if manifest.study_file == "bench" {
        let hint = "type `perflab bench` again; the run's title names its commands";
        return Err(UsageError::new(format!("run {short} is one of `perflab bench`"), hint));
    }
    if manifest.study.run.until.is_some() {
        let message =
            format!("run {short} ends when something is known (`until`), not after so many iterations");
        let hint = format!("do it once more: `perflab reproduce {short} --again`");
        return Err(UsageError::new(message, hint));
    }
    Ok(())
}
