//! What is sent to a machine that ssh reaches: perflab, its loader and its libraries, as `tar -x` takes them (ustar,
//! POSIX.1-1988). Owns that form, and no more of it than regular files and folders of root's own choosing.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;

use crate::initramfs::portable;

/// tar's unit.
const BLOCK: usize = 512;

/// The archive, from its beginning. Unpacked in `folder`, its perflab starts there and nowhere else.
pub(super) fn parcel(perflab: &Path, folder: &Path) -> io::Result<File> {
    let files = portable(perflab, folder).map_err(io::Error::other)?;
    let mut out = BufWriter::new(tempfile::tempfile()?);
    out.write_all(&header("lib/", 0, b'5'))?;
    for (name, content) in &files {
        out.write_all(&header(name, content.len(), b'0'))?;
        out.write_all(content)?;
        out.write_all(&[0; BLOCK][content.len() % BLOCK..][..padding(content.len())])?;
    }
    out.write_all(&[0; 2 * BLOCK])?;
    let mut file = out.into_inner()?;
    file.rewind()?;
    Ok(file)
}

fn padding(length: usize) -> usize {
    length.next_multiple_of(BLOCK) - length
}

/// Name, mode, owner and group, size, time, checksum, kind; numbers are octal, fields end with NUL.
fn header(name: &str, size: usize, kind: u8) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    put(0, name.as_bytes());
    put(100, b"0000700\x000000000\x000000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_program_in_its_parcel_starts_with_its_own_loader() {
        // A short path, as a machine of somebody else's has it.
        let home = tempfile::Builder::new().prefix("p").rand_bytes(4).tempdir_in("/tmp").unwrap();
        let program = std::fs::canonicalize("/bin/cat").unwrap();
        let archive = parcel(&program, home.path()).unwrap();
        let unpacked = Command::new("tar").args(["-xf", "-", "-C"]).arg(home.path()).stdin(archive).status();
        assert!(unpacked.unwrap().success());
        let cat = home.path().join("perflab");
        let maps = Command::new(&cat).arg("/proc/self/maps").output().unwrap();
        let maps = String::from_utf8_lossy(&maps.stdout);
        assert!(maps.contains(&home.path().join("ld.so").display().to_string()), "{maps}");
    }
}
