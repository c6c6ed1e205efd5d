//! A small ext4 file system of the test's own, on a loop device: mounted anew, nothing of it is in memory. One at a time:
//! tests that drop the machine's caches would take from others what they are about to look at.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::laboratory::{is_root, skip};

static CACHES: Mutex<()> = Mutex::new(());

/// Gone with its mount when dropped.
pub struct Image {
    home: tempfile::TempDir,
    _caches: MutexGuard<'static, ()>,
}

impl Image {
    /// Makes one, or says why it cannot be.
    pub fn new(test: &str) -> Option<Self> {
        if !is_root() {
            skip(test, "mounting an image needs root");
            return None;
        }
        let caches = CACHES.lock().unwrap_or_else(PoisonError::into_inner);
        let image = Image { home: tempfile::tempdir().unwrap(), _caches: caches };
        fs::create_dir(image.place()).unwrap();
        let file = fs::File::create(image.file()).unwrap();
        file.set_len(32 << 20).unwrap();
        if !Command::new("mkfs.ext4").arg("-q").arg(image.file()).status().is_ok_and(|done| done.success()) {
            skip(test, "mkfs.ext4 cannot be run");
            return None;
        }
        if !image.mount() {
            skip(test, "no loop device can be had");
            return None;
        }
        Some(image)
    }

    /// A file of so many pages of 4 KiB.
    pub fn write(&self, name: &str, pages: usize) -> PathBuf {
        let path = self.place().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, vec![b'x'; pages * 4096]).unwrap();
        path
    }

    pub fn place(&self) -> PathBuf {
        self.home.path().join("mnt")
    }

    /// Writes everything, and forgets everything.
    pub fn cool(&self) {
        self.unmount();
        assert!(self.mount());
    }

    fn file(&self) -> PathBuf {
        self.home.path().join("disk")
    }

    fn mount(&self) -> bool {
        let mount = Command::new("mount").args(["-o", "loop"]).arg(self.file()).arg(self.place()).status();
        mount.is_ok_and(|done| done.success())
    }

    fn unmount(&self) {
        let _ = Command::new("umount").arg(self.place()).status();
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        self.unmount();
    }
}
