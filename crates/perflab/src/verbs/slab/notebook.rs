//! `--method notebook`: the figures of the 2019 notebook, beside ours.

use super::stored::Stored;
use crate::arguments::slab::{Histogram, Show, Timeline};
use crate::context::Context;
use crate::exit::{Exit, Usage};

fn missing() -> anyhow::Error {
    Usage::new("--method notebook is not there yet", "leave it out").into()
}

/// Its table of the thirty least efficient caches.
pub fn show(_: &Context, _: &Stored, _: &Show) -> anyhow::Result<Exit> {
    Err(missing())
}

/// Its two means over time, and dentry.
pub fn timeline(_: &Context, _: &Stored, _: &Timeline) -> anyhow::Result<Exit> {
    Err(missing())
}

/// Its two histograms.
pub fn histogram(_: &Context, _: &Stored, _: &Histogram) -> anyhow::Result<Exit> {
    Err(missing())
}
