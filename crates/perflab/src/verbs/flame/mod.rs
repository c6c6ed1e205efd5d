//! `perflab flame`: sampled call stacks, recorded or taken from other tools.

mod export;
mod html;
mod import;
pub mod pictures;
mod record;
mod shares;
mod show;
pub mod stored;
mod svg;

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
        FlameVerb::Svg(wanted) => svg::svg(context, wanted),
        FlameVerb::Export(wanted) => export::export(context, wanted),
        FlameVerb::Html(wanted) => html::html(context, wanted),
    }
}
