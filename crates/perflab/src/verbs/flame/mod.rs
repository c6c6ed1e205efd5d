//! `perflab flame`: sampled call stacks, recorded or taken from other tools.

mod import;
mod record;
mod shares;
mod show;
pub mod stored;

use crate::arguments::flame::FlameVerb;
use crate::context::Context;
use crate::exit::Exit;

/// Carries out a verb of profiles.
pub fn run(context: &Context, verb: &FlameVerb) -> anyhow::Result<Exit> {
    match verb {
        FlameVerb::Import(wanted) => import::import(context, wanted),
        FlameVerb::Record(wanted) => record::record(context, wanted),
        FlameVerb::Shares(wanted) => shares::print(context, wanted),
        FlameVerb::Show(wanted) => show::show(context, wanted),
    }
}
