//! `perflab slab`: where the kernel's object memory goes, live, over a run, and between runs.

mod compare;
mod growth;
mod histogram;
mod import;
mod notebook;
pub mod output;
mod record;
mod show;
mod stored;
mod timeline;
mod top;
mod what_if;

use crate::arguments::slab::SlabVerb;
use crate::context::App;
use crate::exit::Exit;

/// Carries out a verb of the slab instrument.
pub fn run_slab_verb(context: &App, verb: &SlabVerb) -> anyhow::Result<Exit> {
    match verb {
        SlabVerb::Record(wanted) => record::record_slab(context, wanted),
        SlabVerb::Show(wanted) => show::show_slab_caches(context, wanted),
        SlabVerb::Timeline(wanted) => timeline::show_timeline(context, wanted),
        SlabVerb::Histogram(wanted) => histogram::show_efficiency_histogram(context, wanted),
        SlabVerb::Compare(wanted) => compare::compare_slab_bytes(context, wanted),
        SlabVerb::Top(wanted) => top::show_slab_top(context, wanted),
        SlabVerb::Import(wanted) => import::import_slab_logs(context, wanted),
        SlabVerb::WhatIf(wanted) => what_if::show_what_if(context, wanted),
    }
}
