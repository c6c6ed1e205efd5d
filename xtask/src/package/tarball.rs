//! The archive that is unpacked anywhere: `tar -C /usr/local --strip-components=1 -xzf FILE`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use tar::{Builder, EntryType, Header};

use super::contents::{PackageContents, PackageLayout, compress_gzip};

/// Writes it, and gives where it is.
pub fn write_tarball(contents: &PackageContents, output: &Path) -> Result<PathBuf> {
    let name = format!("{}-{}-linux", contents.name_and_version(), contents.machine);
    let mut archive = Builder::new(Vec::new());
    let header = |kind: EntryType, mode: u32, size: u64| {
        let mut header = Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(size);
        header.set_mtime(contents.source_date);
        header.set_uid(0);
        header.set_gid(0);
        header
    };
    let paths: Vec<(String, _)> = contents
        .files
        .iter()
        .map(|file| (format!("{name}/{}", file.path(PackageLayout::Prefix)), file))
        .collect();
    // Every folder, so that whoever unpacks it has them with a mode that is said.
    let folders: BTreeSet<String> = paths
        .iter()
        .flat_map(|(path, _)| Path::new(path).ancestors().skip(1))
        .map(|folder| folder.display().to_string())
        .filter(|folder| !folder.is_empty())
        .collect();
    for folder in folders {
        archive.append_data(
            &mut header(EntryType::Directory, 0o755, 0),
            format!("{folder}/"),
            std::io::empty(),
        )?;
    }
    for (path, file) in paths {
        let mut header = header(EntryType::Regular, file.mode(), file.bytes.len() as u64);
        archive.append_data(&mut header, path, &file.bytes[..])?;
    }
    let path = output.join(format!("{name}.tar.gz"));
    fs::write(&path, compress_gzip(&archive.into_inner()?)?)?;
    Ok(path)
}
