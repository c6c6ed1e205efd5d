//! The SHA-256 of a file, which tells whether it is still what it was.

use std::fmt::Write as _;
use std::io;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of what is read, as sha256sum prints it.
///
/// # Errors
/// What reading fails with.
pub fn sha256_hex(file: &mut impl io::Read) -> io::Result<String> {
    let mut sha = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        sha.update(buffer.get(..read).unwrap_or_default());
    }
    Ok(sha.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
