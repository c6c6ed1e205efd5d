//! `perflab slab import`

use crate::arguments::Import;
use crate::context::Context;
use crate::exit::Exit;
use crate::verbs;

/// Makes a run of logs of the slab allocator, and says what was taken of each file.
pub fn import(context: &Context, wanted: &Import) -> anyhow::Result<Exit> {
    verbs::import::refuse_endless(&wanted.path)?;
    verbs::import::foreign(context, wanted)
}
