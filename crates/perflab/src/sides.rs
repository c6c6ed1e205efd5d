//! From what the user calls runs to the sides of a comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::thread;

use perflab_analyze::Side;
use perflab_archive::id::shortest_prefixes;
use perflab_archive::{Archive, ArchiveError, RunDir};
use perflab_model::RunRecord;

/// The runs behind one selector, as one side: a label that several runs share is their repetitions.
pub fn side(archive: &Archive, selector: &str) -> anyhow::Result<Side> {
    of(archive, selector, RunDir::record)
}

/// The same with those iterations only that did not end well.
pub fn side_of_failures(archive: &Archive, selector: &str) -> anyhow::Result<Side> {
    of(archive, selector, RunDir::record_of_failures)
}

fn of(
    archive: &Archive,
    selector: &str,
    record: fn(&RunDir) -> Result<RunRecord, ArchiveError>,
) -> anyhow::Result<Side> {
    let runs = archive.find(selector)?.iter().map(record).collect::<Result<Vec<_>, _>>()?;
    Ok(Side { name: name(selector, &runs), runs })
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
        read.flatten().collect::<anyhow::Result<Vec<_>>>().map(told_apart)
    })
}

/// Runs that share a label are sides of one name: their ids, as short as they can be, tell them apart.
fn told_apart(mut sides: Vec<Side>) -> Vec<Side> {
    let id = |side: &Side| side.runs.first().map(|run| run.manifest.id.clone()).unwrap_or_default();
    let ids: Vec<String> = sides.iter().map(id).collect::<BTreeSet<_>>().into_iter().collect();
    let short: BTreeMap<String, String> = ids.iter().cloned().zip(shortest_prefixes(&ids)).collect();
    let names: Vec<String> = sides.iter().map(|side| side.name.clone()).collect();
    for side in &mut sides {
        let (id, several) = (id(side), names.iter().filter(|name| **name == side.name).count() > 1);
        if let Some(short) = short.get(&id).filter(|_| several && side.name != id) {
            side.name = format!("{} ({short})", side.name);
        }
    }
    sides
}

/// One run by its label, several by what names them.
fn name(selector: &str, runs: &[RunRecord]) -> String {
    let label = runs.first().filter(|_| runs.len() == 1).and_then(|run| run.manifest.label.clone());
    label.unwrap_or_else(|| selector.to_owned())
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
