//! `perflab-0.1.0-1.x86_64.rpm`, by `rpmbuild`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use super::contents::{FileRole, PackageContents, PackageLayout, ScratchFolder};
use crate::needs;

/// Settings by which `rpmbuild` writes the same bytes everywhere, and nothing but what it is given.
const DEFINITIONS: &[&str] = &[
    "_buildhost localhost",
    "use_source_date_epoch_as_buildtime 1",
    "clamp_mtime_to_source_date_epoch 1",
    "source_date_epoch_from_changelog 0",
    "build_mtime_policy clamp_to_source_date_epoch",
    "_binary_payload w6.xzdio",
    "debug_package %{nil}",
    "_build_id_links none",
    "__os_install_post %{nil}",
    "_source_payload w6.xzdio",
];

/// Writes it, and gives where it is.
pub fn write_package(contents: &PackageContents, output: &Path) -> Result<PathBuf> {
    let scratch = ScratchFolder::make("rpm")?;
    let (tree, top) = (scratch.path().join("tree"), scratch.path().join("top"));
    contents.write_tree(&tree, PackageLayout::Rpm)?;
    fs::create_dir(&top)?;
    let specification = scratch.path().join("perflab.spec");
    fs::write(&specification, render_specification(contents, &tree))?;
    let mut rpmbuild = Command::new("rpmbuild");
    rpmbuild.args(["-bb", "--quiet", "--target", contents.machine]);
    for definition in DEFINITIONS {
        rpmbuild.args(["--define", definition]);
    }
    rpmbuild.args(["--define", &format!("_topdir {}", top.display())]).arg(&specification);
    // Without rpm's own macros for it, root is not asked for, and the work of this user stays alone.
    rpmbuild.env("SOURCE_DATE_EPOCH", contents.source_date.to_string()).stdout(Stdio::null());
    needs::run_command(&mut rpmbuild).context("as root: apt-get install rpm")?;
    let name = format!("{}-1.{}.rpm", contents.name_and_version(), contents.machine);
    let path = output.join(&name);
    let built = top.join("RPMS").join(contents.machine).join(&name);
    fs::copy(&built, &path).with_context(|| format!("rpmbuild made no {}", built.display()))?;
    Ok(path)
}

fn render_specification(contents: &PackageContents, tree: &Path) -> String {
    let files = contents.files.iter().map(|file| {
        let kind = match (file.role, file.name.starts_with("LICENSE")) {
            (FileRole::Document, true) => "%license ",
            (FileRole::Document, false) => "%doc ",
            _ => "",
        };
        format!("%attr({:04o}, root, root) {kind}/{}\n", file.mode(), file.path(PackageLayout::Rpm))
    });
    format!(
        "Name: perflab\nVersion: {}\nRelease: 1\nSummary: Tells you what a change does to a Linux system\n\
         License: MIT OR Apache-2.0\nURL: https://github.com/perflab/perflab\n\n\
         %description\n\
         perflab runs workloads over and over, on a host or in step across virtual machines,\n\
         records what the kernel does meanwhile, and shows the difference: in tables whose\n\
         numbers can be trusted, and in pictures of what averages hide.\n\n\
         %install\ncp -a {}/. %{{buildroot}}/\n\n\
         %files\n{}%dir %attr(0755, root, root) /usr/share/doc/perflab\n\
         %dir %attr(0755, root, root) /usr/share/perflab\n\
         %dir %attr(0755, root, root) /usr/share/perflab/grafana\n",
        contents.version,
        tree.display(),
        files.collect::<String>()
    )
}
