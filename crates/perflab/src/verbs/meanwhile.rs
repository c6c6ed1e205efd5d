//! Settings of the kernel that hold while something is done, and are put back afterwards.

use std::sync::atomic::{AtomicU32, Ordering};

use perflab_conduct::ConductError;
use perflab_conduct::settings::{Bench, Knob, UndoJournal};

use crate::context::Context;

/// Settings in force until this is dropped. What they were is written to the journal of settings first: should this process be
/// killed, the next perflab puts them back.
pub struct Meanwhile(Option<Bench>);

impl Meanwhile {
    /// Brings files of /proc and /sys to what `knobs` want. Where one cannot be, none is left changed.
    pub fn set(context: &Context, knobs: &[Knob]) -> Result<Self, ConductError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let id = format!("meanwhile-{process}-{count}-{}", perflab_observe::monotonic_now().0);
        let boot = perflab_observe::boot_id(&context.root);
        let mut bench = Bench::new(UndoJournal::new(&perflab_observe::own_directories::state(), &id, &boot));
        // Who does not listen for signals still puts back what they were.
        let _ = crate::signals::end_with_settings_put_back();
        let set = bench.set(knobs);
        let meanwhile = Meanwhile(Some(bench));
        set.map(|_| meanwhile)
    }
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        if let Some((_, failed)) = self.0.take().map(Bench::undo) {
            failed.iter().for_each(|error| stderr_line!("warning: {error}"));
        }
    }
}
