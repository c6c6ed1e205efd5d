//! The bar of a copying: bytes done, bytes in all, and how fast.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use perflab_archive::RunDir;

/// Shown on stderr where that is a terminal; gone with this value.
#[derive(Debug)]
pub struct TransferBar {
    bar: ProgressBar,
}

const STYLE: &str = "{spinner:.dim} {prefix} {bar:32.cyan/dim} {bytes}/{total_bytes}  {bytes_per_sec}  {eta}";

impl TransferBar {
    /// A bar of so many bytes; nothing is shown where there are none.
    pub fn new(quiet: bool, what: &'static str, bytes: u64) -> Self {
        let is_shown = std::io::stderr().is_terminal() && !quiet && bytes > 0;
        let target =
            if is_shown { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(bytes), target).with_prefix(what);
        if let Ok(style) = ProgressStyle::with_template(STYLE) {
            bar.set_style(style.progress_chars("━━─"));
        }
        TransferBar { bar }
    }

    /// Bytes that were copied.
    pub fn add(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    /// What the files of runs take; what cannot be read counts as nothing, and is told by whoever copies it.
    pub fn bytes_of(runs: &[RunDir]) -> u64 {
        let size = |run: &RunDir| -> u64 {
            let files = run.list_files().unwrap_or_default();
            files
                .iter()
                .filter_map(|name| run.path().join(name).metadata().ok())
                .map(|found| found.len())
                .sum()
        };
        runs.iter().map(size).sum()
    }
}

impl Drop for TransferBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
