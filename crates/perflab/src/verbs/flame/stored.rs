//! The profile of a stored run.

use perflab_archive::RunDir;
use perflab_model::Profile;

use crate::context::App;

/// The profile of the run that a selector names: of `case`, or of the first case that has one.
pub fn read_stored_profile(context: &App, run: &str, case: Option<u32>) -> anyhow::Result<(RunDir, Profile)> {
    let run = crate::sides::select_run(&context.archive()?, run)?;
    let profile = match case {
        Some(case) => run.read_profile(case)?,
        None => read_first_profile(&run)?,
    };
    Ok((run, profile))
}

/// The profile of the first case that has one.
pub fn read_first_profile(run: &RunDir) -> anyhow::Result<Profile> {
    let case = run.profiled_cases()?.first().copied().unwrap_or(0);
    Ok(run.read_profile(case)?)
}
