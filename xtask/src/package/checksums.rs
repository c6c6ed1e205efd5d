//! Sums by which what was shipped is known again.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use sha2::{Digest as _, Sha256};

/// `SHA256SUMS`, as `sha256sum --check` reads it.
pub fn write_sums(output: &Path, files: &[PathBuf]) -> Result<PathBuf> {
    let mut sums = String::new();
    for path in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        writeln!(sums, "{}  {name}", sum_bytes(&fs::read(path)?))?;
    }
    let path = output.join("SHA256SUMS");
    fs::write(&path, sums)?;
    Ok(path)
}

/// SHA-256 in hexadecimal digits.
pub fn sum_bytes(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
