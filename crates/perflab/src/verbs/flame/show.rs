//! `perflab flame show`

use perflab_analyze::flame::{GrowOptions, functions, grow};
use perflab_model::Profile;
use perflab_present::flame;

use super::stored::stored;
use crate::arguments::flame::Show;
use crate::context::Context;
use crate::exit::Exit;

/// The functions with most samples.
pub fn show(context: &Context, wanted: &Show) -> anyhow::Result<Exit> {
    let (_, profile) = stored(context, &wanted.run, wanted.case)?;
    print(context, &profile, wanted.top)?;
    Ok(Exit::Fine)
}

/// The first functions of a profile, and what became of its samples.
pub fn print(context: &Context, profile: &Profile, top: usize) -> anyhow::Result<()> {
    let tree = grow(profile, &GrowOptions::default()).tree;
    context.print(&flame::functions_grid(&functions(&tree), tree.all(), top))?;
    context.say(format!("shares are of all {} samples that were kept", tree.all().samples));
    say(context, profile);
    Ok(())
}

/// What the samples are, and what became of them.
pub fn say(context: &Context, profile: &Profile) {
    context.say(flame::account(&profile.parts()));
    say_source(context, profile);
}

/// Where samples come from, and what their event hides.
pub fn say_source(context: &Context, profile: &Profile) {
    let Some(about) = profile.pieces.first().map(|piece| &piece.about) else { return };
    let event = if about.event.is_empty() { String::new() } else { format!(", event {}", about.event) };
    let rate = about.frequency.map(|rate| format!(" at {rate} Hz")).unwrap_or_default();
    context.say(format!("from {}{event}{rate}", about.source));
    if let Some(hides) = &about.hides {
        context.say(format!("what {} hides: {hides}", about.event));
    }
}
