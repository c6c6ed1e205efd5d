//! A kernel image and what it says about itself.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use perflab_model::Bytes;
use serde::{Deserialize, Serialize};

use super::{KernelError, KernelModules};

/// A kernel that can be booted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelImage {
    /// What the user calls it: a recipe's name, or the file's path.
    pub name: String,
    /// The image: `vmlinuz`, `bzImage`.
    pub image: PathBuf,
    /// `6.1.0-56-cloud-amd64`.
    pub release: String,
    /// The folder of its modules, with `kernel/…` below it; none where it has none.
    pub modules: Option<PathBuf>,
}

impl KernelImage {
    /// The kernel in this file. Its modules are `modules` where given, else found beside the image, as packages
    /// unpack them, or where this host has its own.
    ///
    /// # Errors
    /// The file cannot be read, or is no image that QEMU boots.
    pub fn open(image: &Path, modules: Option<&Path>) -> Result<KernelImage, KernelError> {
        let release = read_release(image)?;
        let folder = Path::new("lib/modules").join(&release);
        let around = image.parent().and_then(Path::parent).map(|home| home.join(&folder));
        let mut places = around.into_iter().chain([Path::new("/").join(&folder)]);
        let found = places.find(|place| !release.is_empty() && place.join("kernel").is_dir());
        Ok(KernelImage {
            name: image.display().to_string(),
            image: image.into(),
            release,
            modules: modules.map(Path::to_owned).or(found),
        })
    }

    /// How much memory it takes while it boots, as its header says; nothing where that is too old to say it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn boot_memory(&self) -> Result<Bytes, KernelError> {
        let head = read_boot_header(&self.image)?;
        Ok(Bytes(header_word(&head, NEEDS).unwrap_or_default().into()))
    }

    /// Its modules, by name.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn modules(&self) -> Result<KernelModules, KernelError> {
        KernelModules::find(&self.release, self.modules.as_deref())
    }
}

/// Where the boot header says what it is (Documentation/arch/x86/boot.rst).
const MAGIC: usize = 0x202;
const VERSION: usize = 0x20e;
const SETUP: usize = 0x200;
/// `init_size`, 0 before version 2.10.
const NEEDS: usize = 0x260;

/// The header, and what follows it.
fn read_boot_header(image: &Path) -> Result<Vec<u8>, KernelError> {
    let mut head = Vec::new();
    let read = File::open(image).and_then(|file| file.take(64 << 10).read_to_end(&mut head));
    read.map_err(KernelError::file_error(image))?;
    Ok(head)
}

fn header_word(head: &[u8], at: usize) -> Option<u32> {
    head.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

/// The release that a bzImage names in its header.
fn read_release(image: &Path) -> Result<String, KernelError> {
    let head = read_boot_header(image)?;
    let wrong = |reason| KernelError::NotAKernel { path: image.into(), reason };
    if head.get(MAGIC..MAGIC + 4) != Some(b"HdrS") {
        return Err(wrong("it has no boot header; give the vmlinuz or bzImage of an x86-64 kernel"));
    }
    let offset =
        head.get(VERSION..VERSION + 2).map_or(0, |word| usize::from(word[0]) | usize::from(word[1]) << 8);
    let text = head.get(offset + SETUP..).filter(|_| offset != 0).unwrap_or_default();
    let release: Vec<u8> = text.iter().copied().take_while(|byte| byte.is_ascii_graphic()).collect();
    String::from_utf8(release).map_err(|_| wrong("its header names no release"))
}
