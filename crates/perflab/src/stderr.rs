//! What people are told beside the data, on stderr.
//!
//! A reader that is gone, or a full disk, changes nothing of what is done; names from files and guests cannot steer the
//! terminal.

use std::fmt;
use std::io::Write as _;

use perflab_model::untrusted_text::escape_controls;

/// Says a line.
pub fn write_stderr_line(text: fmt::Arguments<'_>) {
    // Whoever does not listen misses the words and nothing else.
    let text = text.to_string();
    // A name with a line of its own is no command to who runs a job and reads what it says.
    let text = escape_controls(&text).replace("\n::", "\n\\::");
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Says what brings its own line ends.
pub fn write_stderr_text(text: fmt::Arguments<'_>) {
    let _ = write!(std::io::stderr().lock(), "{}", escape_controls(&text.to_string()));
}

/// Writes what perflab itself has coloured.
pub fn write_stderr_coloured(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// [`line`] with the arguments of `format!`.
macro_rules! stderr_line {
    ($($words:tt)*) => { $crate::stderr::write_stderr_line(format_args!($($words)*)) };
}

/// [`write_stderr_text()`] with the arguments of `format!`.
macro_rules! stderr_text {
    ($($words:tt)*) => { $crate::stderr::write_stderr_text(format_args!($($words)*)) };
}
