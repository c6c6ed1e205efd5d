//! `perflab_0.1.0_amd64.deb`, by `dpkg-deb`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail};

use super::contents::{PackageContents, PackageLayout, ScratchFolder, set_times};
use crate::needs;

/// What Debian calls the machine.
fn debian_architecture(machine: &str) -> Result<&'static str> {
    match machine {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => bail!("Debian has no name here for {other}"),
    }
}

/// Who answers for the package.
const MAINTAINER: &str = "perflab <perflab@users.noreply.github.com>";

/// What Debian's policy wants to know about the rights, machine-readable.
const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: perflab
Source: https://github.com/perflab/perflab

Files: *
Copyright: the authors of perflab
License: MIT or Apache-2.0
 The texts are /usr/share/doc/perflab/LICENSE-MIT and /usr/share/common-licenses/Apache-2.0.
 The program holds works of others under their own licences: /usr/share/doc/perflab/THIRD-PARTY.gz
 has all of them, and /usr/share/doc/perflab/perflab.spdx.json says the same for programs.
";

/// Writes it, and gives where it is.
pub fn write_package(contents: &PackageContents, output: &Path) -> Result<PathBuf> {
    let scratch = ScratchFolder::make("deb")?;
    let root = scratch.path().join("root");
    contents.write_tree(&root, PackageLayout::Debian)?;
    fs::write(root.join("usr/share/doc/perflab/copyright"), COPYRIGHT)?;
    let control = root.join("DEBIAN");
    fs::create_dir(&control)?;
    fs::write(control.join("md5sums"), list_sums(&root)?)?;
    fs::write(control.join("control"), render_control(contents, &root)?)?;
    set_times(&root, SystemTime::UNIX_EPOCH + Duration::from_secs(contents.source_date))?;
    let name = format!("perflab_{}_{}.deb", contents.version, debian_architecture(contents.machine)?);
    let path = output.join(name);
    let mut dpkg = Command::new("dpkg-deb");
    // One thread: several cut xz at other places.
    dpkg.args(["--root-owner-group", "--threads-max=1", "-Zxz", "--build"]).arg(&root).arg(&path);
    dpkg.env("SOURCE_DATE_EPOCH", contents.source_date.to_string()).stdout(std::process::Stdio::null());
    needs::run_command(&mut dpkg)?;
    Ok(path)
}

fn render_control(contents: &PackageContents, root: &Path) -> Result<String> {
    let depends = contents.libraries.debian_depends()?;
    let depends =
        if depends.is_empty() { String::new() } else { format!("Depends: {}\n", depends.join(", ")) };
    Ok(format!(
        "Package: perflab\nVersion: {}\nArchitecture: {}\nMaintainer: {MAINTAINER}\nInstalled-Size: {}\n{depends}\
         Section: utils\nPriority: optional\nHomepage: https://github.com/perflab/perflab\n\
         Description: tells you what a change does to a Linux system\n \
         perflab runs workloads over and over, on a host or in step across virtual machines,\n \
         records what the kernel does meanwhile, and shows the difference: in tables whose\n \
         numbers can be trusted, and in pictures of what averages hide.\n",
        contents.version,
        debian_architecture(contents.machine)?,
        count_kibibytes(root)?,
    ))
}

/// What dpkg calls the installed size: each file in whole KiB, and one for each folder.
fn count_kibibytes(path: &Path) -> Result<u64> {
    if !path.is_dir() {
        return Ok(fs::metadata(path)?.len().div_ceil(1024));
    }
    fs::read_dir(path)?.try_fold(1, |sum, entry| Ok(sum + count_kibibytes(&entry?.path())?))
}

/// What `dpkg --verify` compares with.
fn list_sums(root: &Path) -> Result<String> {
    let mut files = Vec::new();
    collect_files(&root.join("usr"), &mut files)?;
    files.sort();
    let mut sums = String::new();
    for file in files {
        let relative = file.strip_prefix(root)?;
        let output =
            Command::new("md5sum").arg(relative).current_dir(root).output().context("cannot run md5sum")?;
        write!(sums, "{}", String::from_utf8_lossy(&output.stdout))?;
    }
    Ok(sums)
}

fn collect_files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { collect_files(&path, found)? } else { found.push(path) }
    }
    Ok(())
}
