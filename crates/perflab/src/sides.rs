//! From what the user calls runs to the sides of a comparison.

use perflab_analyze::Side;
use perflab_archive::{Archive, RunDir};

/// The runs behind one selector, as one side: a label that several runs share is their repetitions.
pub fn side(archive: &Archive, selector: &str) -> anyhow::Result<Side> {
    let runs = archive.find(selector)?;
    let name = name(selector, &runs);
    let records = runs.iter().map(RunDir::record).collect::<Result<Vec<_>, _>>()?;
    Ok(Side { name, runs: records })
}

fn name(selector: &str, runs: &[RunDir]) -> String {
    let one = runs.first().filter(|_| runs.len() == 1);
    match one.and_then(|run| run.manifest().ok()) {
        Some(manifest) => manifest.label.unwrap_or_else(|| selector.to_owned()),
        None => selector.to_owned(),
    }
}

/// The one run behind a selector, where a verb can only take one.
pub fn one(archive: &Archive, selector: &str) -> anyhow::Result<RunDir> {
    let mut runs = archive.find(selector)?;
    if runs.len() > 1 {
        let message = format!("`{selector}` names {} runs, and one is needed", runs.len());
        return Err(crate::exit::Usage::new(message, "name it by its id: see `perflab list`").into());
    }
    runs.pop().ok_or_else(|| {
        crate::exit::Usage::new(format!("there is no run `{selector}`"), "see `perflab list`").into()
    })
}
