//! `perflab slab what-if`

use perflab_analyze::slab::what_if::LayoutChange;
use perflab_analyze::slab::{self, SlabRecording, SlabRow};
use perflab_present::slab as present;

use super::output;
use super::stored::read_stored_slab_run;
use crate::arguments::slab::WhatIfArgs;
use crate::context::App;
use crate::exit::{Exit, UsageError};

/// Orders that are tried where none is named: those that SLUB chooses by itself.
const ORDERS: [u32; 4] = [0, 1, 2, 3];

/// Bytes of caches under other layouts, at the run's last tick.
pub fn show_what_if(context: &App, wanted: &WhatIfArgs) -> anyhow::Result<Exit> {
    let recording = read_stored_slab_run(context, &wanted.run)?.read_recording()?;
    let caches = wanted.cache.as_deref().map(|name| recording.find_caches(name)).transpose()?;
    let last = recording.ticks().len().saturating_sub(1);
    let rows = recording.rows().iter().filter(|row| row.last == last && row.slabs > 0);
    let rows = rows.filter(|row| caches.as_ref().is_none_or(|caches| caches.contains(&row.cache)));
    let mut found: Vec<present::WhatIfRow> = Vec::new();
    for row in rows {
        found.extend(layouts_of_cache(&recording, row, wanted)?);
    }
    if found.is_empty() {
        let hint = "it has no slabs at the run's last tick, or does not fit the wanted layout";
        return Err(UsageError::new("there is nothing to lay out anew", hint).into());
    }
    if wanted.cache.is_none() {
        found.sort_by_key(|row| -row.saved_bytes());
        found.truncate(wanted.top);
    }
    output::print_result(context, &found, || present::what_if_grid(&found))?;
    context
        .note("saved: at as many objects as now; the kernel may need a higher order for speed, not for room");
    Ok(Exit::Fine)
}

/// The cache in the wanted layout; in each other order where none is named. What is impossible is an error only
/// where it was asked for.
fn layouts_of_cache(
    recording: &SlabRecording,
    row: &SlabRow,
    wanted: &WhatIfArgs,
) -> anyhow::Result<Vec<present::WhatIfRow>> {
    let Some(cache) = recording.caches().get(row.cache) else { return Ok(Vec::new()) };
    let align = cache.attributes.as_ref().and_then(|attributes| attributes.align);
    let orders: Vec<Option<u32>> = match (wanted.order, wanted.object_size) {
        (Some(order), _) => vec![Some(order)],
        (None, Some(_)) => vec![None],
        (None, None) => ORDERS.map(Some).to_vec(),
    };
    let asked = wanted.cache.is_some() && orders.len() == 1;
    let mut found = Vec::new();
    for order in orders {
        let change = LayoutChange { order, object_size: wanted.object_size, align };
        match slab::what_if_layout(row, recording.page_size(), &change) {
            // In a list of all caches, what is already so says nothing.
            Ok(what_if) if wanted.cache.is_none() && what_if.then == what_if.now => {}
            Ok(what_if) => found.push(present::WhatIfRow { cache: cache.label(), what_if }),
            Err(error) if asked => return Err(error.into()),
            Err(_) => {}
        }
    }
    Ok(found)
}
