//! Which archive in object storage is meant, and which of its runs.

use std::collections::BTreeMap;

use clap::Args;
use perflab_archive::run_list::RunListEntry;
use perflab_remote::{RemoteArchive, RemoteError, RemoteUrl};

use crate::selection::RunChoice;

/// The archive in object storage that is meant.
#[derive(Debug, Args)]
pub struct RemoteChoice {
    /// The archive in object storage: s3://BUCKET/PREFIX, or file:///FOLDER for a folder that several machines see
    #[arg(long, value_name = "URL", env = "PERFLAB_REMOTE", hide_env_values = true, value_parser = parse_remote)]
    pub remote: RemoteUrl,
}

/// clap's parser of such a place.
pub fn parse_remote(text: &str) -> Result<RemoteUrl, String> {
    RemoteUrl::parse(text).map_err(|error| error.to_string())
}

/// Says which of an archive's lists cannot be read, and what becomes of that.
pub fn warn_of_damage(remote: &RemoteArchive) {
    for error in remote.damage() {
        stderr_line!("warning: {error}");
    }
    if !remote.damage().is_empty() {
        stderr_line!(
            "warning: the runs were listed from their files instead, of which those that were removed may be some; \
             `perflab push --remote {}` writes a whole list",
            remote.url()
        );
    }
}

/// The runs of such an archive that are meant, the oldest first: by selectors, else by label and number.
///
/// # Errors
/// A selector or a label that no run there has.
pub fn choose_remote_runs(
    remote: &RemoteArchive,
    selectors: &[String],
    choice: &RunChoice,
) -> Result<Vec<RunListEntry>, RemoteError> {
    if !selectors.is_empty() {
        let mut found = BTreeMap::new();
        for selector in selectors {
            found.extend(remote.find_runs(selector)?.into_iter().map(|entry| (entry.id.clone(), entry)));
        }
        return Ok(found.into_values().collect());
    }
    let mut runs: Vec<RunListEntry> = match &choice.label {
        Some(label) => remote.find_labelled_runs(label)?,
        None => remote.runs().cloned().collect(),
    };
    runs.drain(..choice.last.map_or(0, |last| runs.len().saturating_sub(last)));
    Ok(runs)
}
