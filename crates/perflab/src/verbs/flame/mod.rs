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
use crate::context::App;
use crate::exit::Exit;

/// Carries out a verb of profiles.
pub fn run_flame_verb(context: &App, verb: &FlameVerb) -> anyhow::Result<Exit> {
    match verb {
        FlameVerb::Import(wanted) => import::import_profile_file(context, wanted),
        FlameVerb::Record(wanted) => record::record_profile(context, wanted),
        FlameVerb::Shares(wanted) => shares::print_shares(context, wanted),
        FlameVerb::Show(wanted) => show::show_functions(context, wanted),
        FlameVerb::Svg(wanted) => svg::write_flame_svg(context, wanted),
        FlameVerb::Export(wanted) => export::export_profile(context, wanted),
        FlameVerb::Html(wanted) => html::write_flame_html(context, wanted),
    }
}
