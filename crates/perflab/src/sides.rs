//! From what the user calls runs to the sides of a comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::thread;

use perflab_analyze::ComparisonSide;
use perflab_archive::run_id::shortest_prefixes;
use perflab_archive::{Archive, ArchiveError, RunDir};
use perflab_model::RunRecord;

/// The runs behind one selector, as one side: a label that several runs share is their repetitions.
pub fn select_side(archive: &Archive, selector: &str) -> anyhow::Result<ComparisonSide> {
    read_side(archive, selector, RunDir::read_record)
}

/// The same with those iterations only that did not end well.
pub fn select_side_of_failures(archive: &Archive, selector: &str) -> anyhow::Result<ComparisonSide> {
    read_side(archive, selector, RunDir::read_failed_record)
}

fn read_side(
    archive: &Archive,
    selector: &str,
    record: fn(&RunDir) -> Result<RunRecord, ArchiveError>,
) -> anyhow::Result<ComparisonSide> {
    let runs = archive.find_runs(selector)?.iter().map(record).collect::<Result<Vec<_>, _>>()?;
    Ok(ComparisonSide { name: side_name(selector, &runs), runs })
}

/// Several sides, read by as many threads as there are processors; the first error where there is any.
pub fn select_sides(
    selectors: &[String],
    side: impl Fn(&str) -> anyhow::Result<ComparisonSide> + Sync,
) -> anyhow::Result<Vec<ComparisonSide>> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let part = selectors.len().div_ceil(threads).max(1);
    let read = |part: &[String]| part.iter().map(|selector| side(selector)).collect::<Vec<_>>();
    thread::scope(|scope| {
        let parts: Vec<_> = selectors.chunks(part).map(|part| scope.spawn(|| read(part))).collect();
        let read = parts.into_iter().map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic)));
        read.flatten().collect::<anyhow::Result<Vec<_>>>().map(disambiguate_names)
    })
}

/// Runs that share a label are sides of one name: their ids, as short as they can be, tell them apart.
fn disambiguate_names(mut sides: Vec<ComparisonSide>) -> Vec<ComparisonSide> {
    let id = |side: &ComparisonSide| side.runs.first().map(|run| run.manifest.id.clone()).unwrap_or_default();
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
fn side_name(selector: &str, runs: &[RunRecord]) -> String {
    let label = runs.first().filter(|_| runs.len() == 1).and_then(|run| run.manifest.label.clone());
    label.unwrap_or_else(|| selector.to_owned())
}

/// The one run behind a selector, where a verb can only take one.
pub fn select_run(archive: &Archive, selector: &str) -> anyhow::Result<RunDir> {
    let mut runs = archive.find_runs(selector)?;
    if runs.len() > 1 {
        let message = format!("`{selector}` names {} runs, and one is needed", runs.len());
        return Err(crate::exit::UsageError::new(message, "name it by its id: see `perflab list`").into());
    }
    runs.pop().ok_or_else(|| {
        crate::exit::UsageError::new(format!("there is no run `{selector}`"), "see `perflab list`").into()
    })
}
