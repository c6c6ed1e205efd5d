//! A small file system of the test's own, on a loop device: mounted anew, nothing of it is in memory. One at a time: tests that
//! drop the machine's caches would take from others what they are about to look at ([`Caches`]).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::caches::Caches;
use crate::laboratory::{is_root, skip};

/// Gone with its mount when dropped.
pub struct Image {
    home: tempfile::TempDir,
    kind: &'static str,
    _caches: Caches,
}

impl Image {
    /// An ext4, or says why it cannot be.
    pub fn new(test: &str) -> Option<Self> {
        Image::of(test, "ext4")
    }

    /// A file system of this kind (`ext4`, `xfs`, `btrfs`).
    pub fn of(test: &str, kind: &'static str) -> Option<Self> {
        if !is_root() {
            skip(test, "mounting an image needs root");
            return None;
        }
        let image = Image { home: tempfile::tempdir().unwrap(), kind, _caches: Caches::alone() };
        // Whoever is asked to read there as nobody must come so far.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(image.home.path(), open).unwrap();
        fs::create_dir(image.place()).unwrap();
        if !image.make() {
            skip(test, &format!("mkfs.{kind} cannot be run"));
            return None;
        }
        if !image.mount() {
            skip(test, &format!("no loop device can be had, or this kernel has no {kind}"));
            return None;
        }
        Some(image)
    }

    /// Makes the file system anew: empty, and another one.
    fn make(&self) -> bool {
        // The file has holes.
        let size = match self.kind {
            "xfs" => 320 << 20,
            _ => 128 << 20,
        };
        let _ = fs::remove_file(self.file());
        fs::File::create(self.file()).unwrap().set_len(size).unwrap();
        let mut make = Command::new(format!("mkfs.{}", self.kind));
        make.arg("-q").arg(self.file()).status().is_ok_and(|done| done.success())
    }

    /// An empty file system in the same place, with another UUID.
    pub fn remake(&self) {
        assert!(self.unmount() && self.make() && self.mount());
    }

    /// A file of so many pages of 4 KiB.
    pub fn write(&self, name: &str, pages: usize) -> PathBuf {
        let path = self.place().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, vec![b'x'; pages * 4096]).unwrap();
        path
    }

    /// A shell script there.
    pub fn script(&self, name: &str, text: &str) -> String {
        script(&self.place().join(name), text)
    }

    pub fn place(&self) -> PathBuf {
        self.home.path().join("mnt")
    }

    /// Writes everything, and forgets everything.
    pub fn cool(&self) {
        assert!(self.unmount() && self.mount());
    }

    fn file(&self) -> PathBuf {
        self.home.path().join("disk")
    }

    fn mount(&self) -> bool {
        // Every read that leaves a trace would be seen in the time of access.
        let mut mount = Command::new("mount");
        mount.args(["-t", self.kind, "-o", "loop,strictatime"]).arg(self.file()).arg(self.place());
        mount.status().is_ok_and(|done| done.success())
    }

    fn unmount(&self) -> bool {
        Command::new("umount").arg(self.place()).status().is_ok_and(|done| done.success())
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        self.unmount();
    }
}

/// A script that can be run.
pub fn script(path: &Path, text: &str) -> String {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    path.display().to_string()
}
