//! `perflab slab import`

use crate::arguments::ImportArgs;
use crate::context::App;
use crate::exit::Exit;
use crate::verbs;

/// Makes a run of logs of the slab allocator, and says what was taken of each file.
pub fn import_slab_logs(context: &App, wanted: &ImportArgs) -> anyhow::Result<Exit> {
    verbs::import::refuse_endless(&wanted.path)?;
    verbs::import::import_external(context, wanted)
}
