//! `perflab-0.1.0-py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64.whl`, by `wheel pack`: the Python package with the program,
//! which pip puts where programs are (<https://packaging.python.org/en/latest/specifications/binary-distribution-format/>).

use std::fs::{self, Permissions};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use flate2::read::GzDecoder;

use super::contents::{FileRole, PackageContents, ScratchFolder, set_times};
use crate::needs;

/// Licences of perflab.
const LICENCES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT"];

/// Those of all that is in its program: of a wheel, such files have to be text, so it is not compressed here.
const NOTICES: &str = "THIRD-PARTY";

/// Writes it, and gives where it is.
pub fn write_wheel(contents: &PackageContents, output: &Path) -> Result<PathBuf> {
    let python = needs::find_python_with("wheel");
    let python =
        python.context("no python3 has the module `wheel`: as root, apt-get install python3-wheel")?;
    let scratch = ScratchFolder::make("wheel")?;
    let (tree, made) = (scratch.path().join("tree"), scratch.path().join("made"));
    fs::create_dir(&made)?;
    for (path, bytes, mode) in list_files(contents)? {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().context("a file has a folder")?)?;
        fs::write(&path, bytes)?;
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
    }
    set_times(&tree, SystemTime::UNIX_EPOCH + Duration::from_secs(contents.source_date))?;
    let mut pack = Command::new(python);
    pack.args(["-m", "wheel", "pack", "--dest-dir"]).arg(&made).arg(&tree);
    pack.env("SOURCE_DATE_EPOCH", contents.source_date.to_string()).stdout(Stdio::null());
    needs::run_command(&mut pack)?;
    // Its name is made of the tags, by whoever knows the rules.
    let name = fs::read_dir(&made)?.next().context("`wheel pack` made nothing")??.file_name();
    let path = output.join(&name);
    fs::copy(made.join(&name), &path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Path, contents and mode of each file but `RECORD`, which `wheel` writes.
fn list_files(contents: &PackageContents) -> Result<Vec<(String, Vec<u8>, u32)>> {
    let name = contents.name_and_version();
    let info = format!("{name}.dist-info");
    let text = |path: String, bytes: Vec<u8>| (path, bytes, 0o644);
    let module = |(file, bytes): &(String, Vec<u8>)| text(format!("perflab/{file}"), bytes.clone());
    let mut files: Vec<_> = contents.python.modules.iter().map(module).collect();
    let metadata = contents.python.render_metadata(&[LICENCES, &[NOTICES]].concat())?;
    files.push(text(format!("{info}/METADATA"), metadata.into_bytes()));
    files.push(text(format!("{info}/WHEEL"), render_tags(contents).into_bytes()));
    for licence in LICENCES {
        let bytes = contents.find_file(FileRole::Document, licence)?.bytes.clone();
        files.push(text(format!("{info}/licenses/{licence}"), bytes));
    }
    let mut notices = Vec::new();
    let compressed = contents.find_file(FileRole::Document, &format!("{NOTICES}.gz"))?;
    GzDecoder::new(&compressed.bytes[..]).read_to_end(&mut notices)?;
    files.push(text(format!("{info}/licenses/{NOTICES}"), notices));
    let bill = contents.find_file(FileRole::Document, "perflab.spdx.json")?.bytes.clone();
    files.push(text(format!("{info}/sboms/perflab.spdx.json"), bill));
    let program = contents.find_file(FileRole::Program, "perflab")?;
    files.push((format!("{name}.data/scripts/perflab"), program.bytes.clone(), program.mode()));
    Ok(files)
}

/// `WHEEL`: any Python 3, and the platforms on which the program starts.
fn render_tags(contents: &PackageContents) -> String {
    let platforms = contents.libraries.wheel_platforms();
    let tags: String = platforms.iter().map(|platform| format!("Tag: py3-none-{platform}\n")).collect();
    format!("Wheel-Version: 1.0\nGenerator: cargo-xtask-package\nRoot-Is-Purelib: false\n{tags}")
}
