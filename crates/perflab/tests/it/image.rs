//! A small file system of the test's own, on a loop device: mounted anew, nothing of it is in memory. One at a time: tests that
//! drop the machine's caches would take from others what they are about to look at ([`Caches`]).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::caches::CachesLock;
use crate::laboratory::{is_root, skip_test};

/// Gone with its mount when dropped.
pub struct MountedImage {
    home: tempfile::TempDir,
    kind: &'static str,
    _caches: CachesLock,
}

impl MountedImage {
    /// An ext4, or says why it cannot be.
    pub fn new(test: &str) -> Option<Self> {
        MountedImage::of_kind(test, "ext4")
    }

    /// A file system of this kind (`ext4`, `xfs`, `btrfs`).
    pub fn of_kind(test: &str, kind: &'static str) -> Option<Self> {
        if !is_root() {
            skip_test(test, "mounting an image needs root");
            return None;
        }
        let image = MountedImage { home: tempfile::tempdir().unwrap(), kind, _caches: CachesLock::acquire() };
        // Whoever is asked to read there as nobody must come so far.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(image.home.path(), open).unwrap();
        fs::create_dir(image.mount_point()).unwrap();
        if !image.make_file_system() {
            skip_test(test, &format!("mkfs.{kind} cannot be run"));
            return None;
        }
        if !image.mount() {
            skip_test(test, &format!("no loop device can be had, or this kernel has no {kind}"));
            return None;
        }
        Some(image)
    }

    /// Makes the file system anew: empty, and another one.
    fn make_file_system(&self) -> bool {
        // The file has holes.
        let size = match self.kind {
            "xfs" => 320 << 20,
            _ => 128 << 20,
        };
        let _ = fs::remove_file(self.image_file());
        fs::File::create(self.image_file()).unwrap().set_len(size).unwrap();
        let mut make = Command::new(format!("mkfs.{}", self.kind));
        make.arg("-q").arg(self.image_file()).status().is_ok_and(|done| done.success())
    }

    /// An empty file system in the same place, with another UUID.
    pub fn remake(&self) {
        assert!(self.unmount() && self.make_file_system() && self.mount());
    }

    /// A file of so many pages of 4 KiB.
    pub fn write_pages(&self, name: &str, pages: usize) -> PathBuf {
        let path = self.mount_point().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, vec![b'x'; pages * 4096]).unwrap();
        path
    }

    /// A shell script there.
    pub fn write_script(&self, name: &str, text: &str) -> String {
        write_executable_script(&self.mount_point().join(name), text)
    }

    pub fn mount_point(&self) -> PathBuf {
        self.home.path().join("mnt")
    }

    /// Writes everything, and forgets everything.
    pub fn evict_files(&self) {
        assert!(self.unmount() && self.mount());
    }

    fn image_file(&self) -> PathBuf {
        self.home.path().join("disk")
    }

    fn mount(&self) -> bool {
        // Every read that leaves a trace would be seen in the time of access.
        let mut mount = Command::new("mount");
        mount
            .args(["-t", self.kind, "-o", "loop,strictatime"])
            .arg(self.image_file())
            .arg(self.mount_point());
        mount.status().is_ok_and(|done| done.success())
    }

    /// Mounts of other tests are copied by whoever makes a mount namespace meanwhile: what is in memory is forgotten once the
    /// last copy is gone, and the loop device with it.
    fn unmount(&self) -> bool {
        let done = Command::new("umount").arg(self.mount_point()).status().is_ok_and(|done| done.success());
        let begun = Instant::now();
        while done && self.is_attached() && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(20));
        }
        done
    }

    /// Whether a loop device has the image's file.
    fn is_attached(&self) -> bool {
        let file = self.image_file();
        let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let mut files =
            devices.filter_map(|device| fs::read_to_string(device.path().join("loop/backing_file")).ok());
        files.any(|backing| backing.trim_end() == file.to_str().unwrap())
    }
}

impl Drop for MountedImage {
    fn drop(&mut self) {
        self.unmount();
    }
}

/// A script that can be run.
pub fn write_executable_script(path: &Path, text: &str) -> String {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    path.display().to_string()
}
