//! `perflab slab histogram`

use perflab_analyze::slab::{self, CacheTableOptions};
use perflab_present::slab as present;

use super::stored::read_stored_slab_run;
use super::{notebook, output};
use crate::arguments::slab::{NotebookMethod, SlabHistogramArgs};
use crate::context::App;
use crate::exit::{Exit, UsageError};

const BINS: usize = 20;

/// How efficiencies are spread over caches and bytes.
pub fn show_efficiency_histogram(context: &App, wanted: &SlabHistogramArgs) -> anyhow::Result<Exit> {
    let stored = read_stored_slab_run(context, &wanted.run)?;
    if wanted.method == NotebookMethod::Notebook {
        return notebook::show_notebook_histograms(context, &stored, wanted);
    }
    if wanted.of.is_some() {
        return Err(UsageError::new(
            "--of chooses between the notebook's histograms",
            "add --method notebook",
        )
        .into());
    }
    let recording = stored.read_recording()?;
    let result = slab::efficiency_histogram(&recording, wanted.bins.unwrap_or(BINS));
    output::print_result(context, &result, || present::histogram_grid(&result))?;
    output::write_scene(context, wanted.plot.as_ref(), || {
        let all = slab::cache_table(&recording, &CacheTableOptions::default()).total.overall().value();
        present::histogram_figure(&result, all)
    })?;
    output::note_row_counts(context, &recording.counts());
    Ok(Exit::Fine)
}
