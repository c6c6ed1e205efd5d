//! Where a file goes: to a path, or to stdout.

use std::io::Write;
use std::path::Path;

use anyhow::Context as _;

/// Writes bytes to a file, or to stdout where none is named.
pub fn write(path: Option<&Path>, bytes: &[u8]) -> anyhow::Result<()> {
    match path {
        Some(path) => std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display())),
        None => {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(bytes)?;
            Ok(stdout.flush()?)
        }
    }
}
