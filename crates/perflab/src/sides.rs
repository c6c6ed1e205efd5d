//! From what the user calls runs to the sides of a comparison.

use std::panic::resume_unwind;
use std::thread;

use perflab_analyze::Side;
use perflab_archive::{Archive, RunDir};

/// The runs behind one selector, as one side: a label that several runs share is their repetitions.
pub fn side(archive: &Archive, selector: &str) -> anyhow::Result<Side> {
    let runs = archive.find(selector)?;
    let name = name(selector, &runs);
    let records = runs.iter().map(RunDir::record).collect::<Result<Vec<_>, _>>()?;
    Ok(Side { name, runs: records })
}

/// Several sides, read by as many threads as there are processors; the first error where there is any.
pub fn several(
    selectors: &[String],
    side: impl Fn(&str) -> anyhow::Result<Side> + Sync,
) -> anyhow::Result<Vec<Side>> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let part = selectors.len().div_ceil(threads).max(1);
    let read = |part: &[String]| part.iter().map(|selector| side(selector)).collect::<Vec<_>>();
    thread::scope(|scope| {
        let parts: Vec<_> = selectors.chunks(part).map(|part| scope.spawn(|| read(part))).collect();
        let read = parts.into_iter().map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic)));
        read.flatten().collect()
    })
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
