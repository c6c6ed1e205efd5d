//! The archive that a kernel unpacks as its first file system: cpio in its `newc` form
//! (Documentation/driver-api/early-userspace/buffer-format.rst).

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const PRIVATE: u32 = 0o100_600;
const LINK: u32 = 0o120_777;
const CHARACTER: u32 = 0o020_600;

/// Writes one. Parents of what is added are made where they are not there.
#[derive(Debug)]
pub struct CpioWriter<W> {
    out: W,
    entries: u32,
    known: BTreeSet<PathBuf>,
}

impl<W: Write> CpioWriter<W> {
    /// An archive with nothing in it.
    pub fn new(out: W) -> Self {
        CpioWriter { out, entries: 0, known: BTreeSet::new() }
    }

    /// A folder.
    pub fn add_directory(&mut self, path: &Path) -> io::Result<()> {
        self.add_entry(path, DIRECTORY, &[], (0, 0))
    }

    /// A file that everybody may read and execute.
    pub fn add_file(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.add_entry(path, PROGRAM, content, (0, 0))
    }

    /// A file that nobody but root may read.
    pub fn add_private_file(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.add_entry(path, PRIVATE, content, (0, 0))
    }

    /// A symbolic link.
    pub fn add_link(&mut self, path: &Path, to: &str) -> io::Result<()> {
        self.add_entry(path, LINK, to.as_bytes(), (0, 0))
    }

    /// A character device.
    pub fn add_device(&mut self, path: &Path, major: u32, minor: u32) -> io::Result<()> {
        self.add_entry(path, CHARACTER, &[], (major, minor))
    }

    /// Ends the archive.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_entry(b"TRAILER!!!", 0, &[], (0, 0))?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Adds an entry once; the first one wins.
    fn add_entry(&mut self, path: &Path, mode: u32, content: &[u8], device: (u32, u32)) -> io::Result<()> {
        let path: PathBuf = path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        if path.as_os_str().is_empty() || self.known.contains(&path) {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.add_directory(parent)?;
        }
        self.write_entry(path.as_os_str().as_encoded_bytes(), mode, content, device)?;
        self.known.insert(path);
        Ok(())
    }

    fn write_entry(
        &mut self,
        name: &[u8],
        mode: u32,
        content: &[u8],
        (major, minor): (u32, u32),
    ) -> io::Result<()> {
        let size = u32::try_from(content.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.entries += 1;
        let length = name.len() as u32 + 1;
        // inode, mode, uid, gid, links, mtime, size, device, device of the node, length of the name, checksum
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, major, minor, length, 0];
        let mut head = b"070701".to_vec();
        fields.iter().for_each(|field| head.extend(format!("{field:08x}").into_bytes()));
        head.extend_from_slice(name);
        head.push(0);
        self.write_padded(&head)?;
        self.write_padded(content)
    }

    /// Headers and contents begin at multiples of four.
    fn write_padded(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.out.write_all(&[0; 3][..(4 - bytes.len() % 4) % 4])
    }
}
