//! Learning finely: the kernel brings pages around each one that is touched, and no trace tells later which of them were
//! needed. With less brought around, fewer of them are remembered that were not.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use perflab_conduct::settings::Setting;
use perflab_observe::io::MountTable;
use perflab_observe::mounts;

use crate::context::App;
use crate::exit::UsageError;
use crate::verbs::meanwhile::TemporarySettings;

/// KiB that come with a page that is touched: that page alone. With 16 a start learns a third more, and faster by little: most
/// pages lie a little ahead of one that was just read, where the arm is anyway.
const SMALL_READ_AHEAD: u64 = 4;

/// Has the kernel read less around what is touched on a program's disk, until what is returned is dropped.
pub fn lower_read_ahead(context: &App, program: &Path) -> anyhow::Result<TemporarySettings> {
    let mounts = MountTable::read();
    let path = mounts.find_by_path(program).and_then(mounts::read_ahead_file).ok_or_else(|| {
        let message = format!("--fine: {} lies on no disk whose read-ahead can be set", program.display());
        UsageError::new(message, "learn without --fine")
    })?;
    let now: Option<u64> = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
    // Where it is as low already, too: who holds a setting keeps it, though another who set it ends before.
    let value = now.map_or(SMALL_READ_AHEAD, |now| now.min(SMALL_READ_AHEAD)).to_string();
    let knob = Setting::File { name: path.display().to_string(), path, value };
    TemporarySettings::apply(context, &[knob]).context("--fine turns read-ahead down, which needs root")
}
