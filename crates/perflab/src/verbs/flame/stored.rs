//! The profile of a stored run.

use perflab_archive::RunDir;
use perflab_model::Profile;

use crate::context::Context;

/// The profile of the run that a selector names: of `case`, or of the first case that has one.
pub fn stored(context: &Context, run: &str, case: Option<u32>) -> anyhow::Result<(RunDir, Profile)> {
    let run = crate::sides::one(&context.archive()?, run)?;
    let profile = match case {
        Some(case) => run.profile(case)?,
        None => first(&run)?,
    };
    Ok((run, profile))
}

/// The profile of the first case that has one.
pub fn first(run: &RunDir) -> anyhow::Result<Profile> {
    let case = run.profiled()?.first().copied().unwrap_or(0);
    Ok(run.profile(case)?)
}
