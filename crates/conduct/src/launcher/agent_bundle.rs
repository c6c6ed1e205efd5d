//! The bundle that is copied to another machine for a run: perflab, its loader and its libraries.
//!
//! It is an archive as `tar -x` takes it (ustar), regular files and folders only, unpacked in a temporary folder there.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;
use std::process::Output;

use perflab_guest::pack_portable_perflab;
use perflab_model::remove_control_characters;
use tar::{Builder, EntryType, Header};

/// Where it is put there: so short that a loader's path within fits where a program names the system's.
const PREFIX: &str = "/tmp/perflab.";

/// Unpacks perflab in a private folder of another machine that was not there before; gives the folder. `run` carries a script of the
/// shell's out there, with the bundle as its standard input.
pub(crate) fn copy_agent_bundle(
    perflab: &Path,
    run: impl FnOnce(&str, File) -> io::Result<Output>,
) -> io::Result<String> {
    let folder = format!("{PREFIX}{}", random_suffix());
    let bundle = agent_bundle(perflab, Path::new(&folder))?;
    // Whoever is ended meanwhile leaves no half of it.
    let take = format!(
        "trap : TERM HUP; umask 077; mkdir {folder} && {{ tar -xf - -C {folder} || {{ trap '' TERM HUP; rm -rf {folder}; exit 1; }}; }}"
    );
    let output = run(&take, bundle)?;
    if output.status.success() {
        return Ok(folder);
    }
    let output = remove_control_characters(&String::from_utf8_lossy(&output.stderr));
    Err(io::Error::other(format!("perflab could not be copied there: {}", output.trim())))
}

/// Six letters that cannot be guessed; where the name is taken all the same, the folder is not made.
fn random_suffix() -> String {
    let mut random = RandomState::new().build_hasher().finish();
    let mut letter = || {
        let letter = b'a' + (random % 26) as u8;
        random /= 26;
        char::from(letter)
    };
    (0..6).map(|_| letter()).collect()
}

/// The archive, from its beginning. Unpacked in `folder`, its perflab starts there and nowhere else.
fn agent_bundle(perflab: &Path, folder: &Path) -> io::Result<File> {
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

/// Readable only by the user who unpacks it.
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
        // A short path, as a machine of another user has it.
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
