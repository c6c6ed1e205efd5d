//! `perflab flame show`

use perflab_analyze::flame::{CallTreeOptions, build_call_tree, function_rows};
use perflab_model::Profile;
use perflab_present::flame;

use super::stored::read_stored_profile;
use crate::arguments::flame::FlameShowArgs;
use crate::context::App;
use crate::exit::Exit;

/// The functions with most samples.
pub fn show_functions(context: &App, wanted: &FlameShowArgs) -> anyhow::Result<Exit> {
    let (_, profile) = read_stored_profile(context, &wanted.run, wanted.case)?;
    print_functions(context, &profile, wanted.top)?;
    Ok(Exit::Fine)
}

/// The first functions of a profile, and what became of its samples.
pub fn print_functions(context: &App, profile: &Profile, top: usize) -> anyhow::Result<()> {
    let tree = build_call_tree(profile, &CallTreeOptions::default()).tree;
    context.print_grid(&flame::functions_grid(&function_rows(&tree), tree.total_amount(), top))?;
    context.note(format!("shares are of all {} samples that were kept", tree.total_amount().samples));
    note_samples(context, profile);
    Ok(())
}

/// What the samples are, and what became of them.
pub fn note_samples(context: &App, profile: &Profile) {
    context.note(flame::sample_account(&profile.sample_counts()));
    note_profile_source(context, profile);
}

/// Where samples come from, and what their event hides.
pub fn note_profile_source(context: &App, profile: &Profile) {
    let Some(about) = profile.iterations.first().map(|piece| &piece.summary) else { return };
    let event = if about.event.is_empty() { String::new() } else { format!(", event {}", about.event) };
    let rate = about.frequency.map(|rate| format!(" at {rate} Hz")).unwrap_or_default();
    context.note(format!("from {}{event}{rate}", about.source));
    if let Some(hides) = &about.hides {
        context.note(format!("what {} hides: {hides}", about.event));
    }
}
