//! Settings of the kernel that are in force until dropped, and put back then.

use std::sync::atomic::{AtomicU32, Ordering};

use perflab_model::Setting;
use perflab_settings::{AppliedSettings, SettingError, UndoJournal};

use crate::app::App;

/// Settings in force until this is dropped. What they were is written to the journal of settings first: should this process be
/// killed, the next perflab puts them back.
pub struct TemporarySettings(Option<AppliedSettings>);

impl TemporarySettings {
    /// Brings files of /proc and /sys to what `knobs` want. Where one cannot be, none is left changed.
    pub fn apply(context: &App, knobs: &[Setting]) -> Result<Self, SettingError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let id = format!("meanwhile-{process}-{count}-{}", perflab_observe::monotonic_now().0);
        let boot = perflab_observe::read_boot_id(&context.root);
        let mut bench = AppliedSettings::new(UndoJournal::new(
            &perflab_observe::own_directories::state_directory(),
            &id,
            &boot,
        ));
        // Who does not listen for signals still puts back what they were.
        let _ = crate::signals::end_with_settings_put_back();
        let set = bench.apply(knobs);
        let meanwhile = TemporarySettings(Some(bench));
        set.map(|_| meanwhile)
    }
}

impl Drop for TemporarySettings {
    fn drop(&mut self) {
        if let Some(undone) = self.0.take().map(AppliedSettings::undo_all) {
            undone.failed.iter().for_each(|error| stderr_line!("warning: {error}"));
        }
    }
}
