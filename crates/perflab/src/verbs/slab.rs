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
use crate::context::Context;
use crate::exit::Exit;

/// Carries out a verb of the slab instrument.
pub fn run(context: &Context, verb: &SlabVerb) -> anyhow::Result<Exit> {
    match verb {
        SlabVerb::Record(wanted) => record::record(context, wanted),
        SlabVerb::Show(wanted) => show::show(context, wanted),
        SlabVerb::Timeline(wanted) => timeline::timeline(context, wanted),
        SlabVerb::Histogram(wanted) => histogram::histogram(context, wanted),
        SlabVerb::Compare(wanted) => compare::compare(context, wanted),
        SlabVerb::Top(wanted) => top::top(context, wanted),
        SlabVerb::Import(wanted) => import::import(context, wanted),
        SlabVerb::WhatIf(wanted) => what_if::what_if(context, wanted),
    }
}
