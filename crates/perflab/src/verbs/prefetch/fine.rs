//! Learning finely: the kernel brings pages around each one that is touched, and no trace tells later which of them were
//! needed. With less brought around, fewer of them are remembered that were not.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use perflab_conduct::settings::Knob;
use perflab_observe::io::{Mounts, mounts};

use crate::context::Context;
use crate::exit::Usage;
use crate::verbs::meanwhile::Meanwhile;

/// KiB that come with a page that is touched: that page alone. With 16 a start learns a third more, and faster by little: most
/// pages lie a little ahead of one that was just read, where the arm is anyway.
const AROUND: u64 = 4;

/// Has the kernel read less around what is touched on a program's disk, until what is returned is dropped.
pub fn finely(context: &Context, program: &Path) -> anyhow::Result<Meanwhile> {
    let mounts = Mounts::read();
    let path = mounts.under(program).and_then(mounts::read_ahead).ok_or_else(|| {
        let message = format!("--fine: {} lies on no disk whose read-ahead can be set", program.display());
        Usage::new(message, "learn without --fine")
    })?;
    let now: Option<u64> = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
    // Where it is as low already, too: who holds a setting keeps it, though another who set it ends before.
    let value = now.map_or(AROUND, |now| now.min(AROUND)).to_string();
    let knob = Knob::File { name: path.display().to_string(), path, value };
    Meanwhile::set(context, &[knob]).context("--fine turns read-ahead down, which needs root")
}
