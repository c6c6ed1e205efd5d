//! What is sent to a machine that ssh reaches: perflab, its loader and its libraries, as `tar -x` takes them (ustar). Owns what
//! is in it, regular files and folders of root's own choosing.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;

use tar::{Builder, EntryType, Header};

use crate::initramfs::pack_portable_perflab;

/// The archive, from its beginning. Unpacked in `folder`, its perflab starts there and nowhere else.
pub(super) fn agent_bundle(perflab: &Path, folder: &Path) -> io::Result<File> {
    let files = pack_portable_perflab(perflab, folder).map_err(io::Error::other)?;
    let mut archive = Builder::new(BufWriter::new(tempfile::tempfile()?));
    add_bundle_file(&mut archive, EntryType::Directory, "lib/", &[])?;
    for (name, content) in &files {
        add_bundle_file(&mut archive, EntryType::Regular, name, content)?;
    }
    let mut file = archive.into_inner()?.into_inner()?;
    file.rewind()?;
    Ok(file)
}

/// For whoever unpacks it, and for nobody else.
fn add_bundle_file(
    archive: &mut Builder<impl Write>,
    kind: EntryType,
    name: &str,
    content: &[u8],
) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(0o700);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(content.len() as u64);
    archive.append_data(&mut header, name, content)
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
        let archive = agent_bundle(&program, home.path()).unwrap();
        let unpacked = Command::new("tar").args(["-xf", "-", "-C"]).arg(home.path()).stdin(archive).status();
        assert!(unpacked.unwrap().success());
        let cat = home.path().join("perflab");
        let maps = Command::new(&cat).arg("/proc/self/maps").output().unwrap();
        let maps = String::from_utf8_lossy(&maps.stdout);
        assert!(maps.contains(&home.path().join("ld.so").display().to_string()), "{maps}");
    }
}
