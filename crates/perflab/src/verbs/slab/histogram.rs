//! `perflab slab histogram`

use perflab_analyze::slab::{self, ShowOptions};
use perflab_present::slab as present;

use super::stored::stored;
use super::{notebook, output};
use crate::arguments::slab::{Histogram, Method};
use crate::context::Context;
use crate::exit::{Exit, Usage};

const BINS: usize = 20;

/// How efficiencies are spread over caches and bytes.
pub fn histogram(context: &Context, wanted: &Histogram) -> anyhow::Result<Exit> {
    let stored = stored(context, &wanted.run)?;
    if wanted.method == Method::Notebook {
        return notebook::histogram(context, &stored, wanted);
    }
    if wanted.of.is_some() {
        return Err(
            Usage::new("--of chooses between the notebook's histograms", "add --method notebook").into()
        );
    }
    let recording = stored.recording()?;
    let result = slab::histogram(&recording, wanted.bins.unwrap_or(BINS));
    output::print(context, &result, || present::histogram_grid(&result))?;
    output::plot(context, wanted.plot.as_ref(), || {
        let all = slab::show(&recording, &ShowOptions::default()).total.overall().value();
        present::histogram_figure(&result, all)
    })?;
    output::say_counts(context, &recording.counts());
    Ok(Exit::Fine)
}
