//! The object of BPF programs that is committed beside its source, so that neither a build nor CI needs clang: built again, and
//! checked to be of this source.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::needs::run_command;

const FOLDER: &str = "crates/observe/bpf";

const SOURCE: &str = "events.bpf.c";

const OBJECT: &str = "events.bpf.o";

/// What the object was made of, and by what.
const STAMP: &str = "events.bpf.stamp";

/// No path of this machine gets into the object, and no debugging information but the types of its maps.
const CLANG_OPTIONS: &[&str] = &[
    "-target",
    "bpf",
    "-mcpu=v3",
    "-O2",
    "-g",
    "-Wall",
    "-Werror",
    "-fdebug-compilation-dir=.",
    "-c",
    SOURCE,
    "-o",
];

const STRIP_OPTIONS: &[&str] =
    &["--strip-debug", "--remove-section=.BTF.ext", "--remove-section=.rel.BTF.ext"];

/// Versions with which it is known to build; Debian names programs by them.
const CLANGS: &[&str] = &["clang-14", "clang"];

/// Builds the object and its stamp.
pub fn rebuild_object() -> Result<()> {
    let Some((clang, version)) = find_clang() else {
        bail!("there is no clang: apt-get install clang-14 llvm-14");
    };
    let folder = Path::new(FOLDER);
    build_object(clang, &folder.join(OBJECT))?;
    let object = fs::read(folder.join(OBJECT))?;
    let stamp = format!("{}object {}\nclang  {version}\n", describe_source()?, describe_hash(&object));
    fs::write(folder.join(STAMP), stamp)?;
    println!("{}: {} bytes by {version}", folder.join(OBJECT).display(), object.len());
    Ok(())
}

/// Whether the committed object is of the committed source: by the stamp, and where the same clang is here, byte by byte.
pub fn check_object() -> Result<bool> {
    let folder = Path::new(FOLDER);
    let stamp = fs::read_to_string(folder.join(STAMP)).context("the object of BPF programs has no stamp")?;
    let object = fs::read(folder.join(OBJECT))?;
    let expected = format!("{}object {}\n", describe_source()?, describe_hash(&object));
    let Some(clang) = stamp.strip_prefix(&expected) else {
        eprintln!("{FOLDER}/{OBJECT} is not what {SOURCE} makes: `cargo xtask bpf` builds it again");
        return Ok(false);
    };
    let here =
        find_clang().filter(|(_, version)| clang.strip_prefix("clang  ").map(str::trim) == Some(version));
    let Some((clang, version)) = here else {
        println!(
            "{OBJECT} is of this source, by its stamp; it was not built again: this machine has no such clang"
        );
        return Ok(true);
    };
    let built = std::env::temp_dir().join(format!("perflab-bpf-{}.o", std::process::id()));
    let same = build_object(clang, &built).and_then(|()| Ok(fs::read(&built)? == object));
    let _ = fs::remove_file(&built);
    if !same? {
        eprintln!(
            "{FOLDER}/{OBJECT}: {version} makes another of {SOURCE}: `cargo xtask bpf` builds it again"
        );
        return Ok(false);
    }
    println!("{OBJECT} is what {version} makes of its source, byte by byte");
    Ok(true)
}

fn build_object(clang: &str, object: &Path) -> Result<()> {
    let object = std::path::absolute(object)?;
    run_command(Command::new(clang).args(CLANG_OPTIONS).arg(&object).current_dir(FOLDER))?;
    let objcopy = clang.replace("clang", "llvm-objcopy");
    run_command(Command::new(objcopy).args(STRIP_OPTIONS).arg(&object))
}

/// A clang that is installed with its objcopy, and what it calls itself.
fn find_clang() -> Option<(&'static str, String)> {
    CLANGS.iter().find_map(|clang| {
        let _objcopy = Command::new(clang.replace("clang", "llvm-objcopy")).arg("--version").output().ok()?;
        let said = Command::new(clang).arg("--version").output().ok()?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        Some((*clang, said.lines().next()?.trim().to_owned()))
    })
}

/// The source and how it is built.
fn describe_source() -> Result<String> {
    let mut text = fs::read(Path::new(FOLDER).join(SOURCE))?;
    for option in CLANG_OPTIONS.iter().chain(STRIP_OPTIONS) {
        text.extend(option.bytes());
        text.push(b' ');
    }
    Ok(format!("source {}\n", describe_hash(&text)))
}

fn describe_hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
