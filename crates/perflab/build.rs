//! The table of shipped studies, made of the folder `studies/`, so that adding one is adding a file.
//!
//! And where perflab looks for its libraries before anywhere else: the folder in which a guest has them
//! (`perflab_conduct::initramfs::HOME`). A guest's root may be of another system, with other libraries. A static perflab
//! (`-C target-feature=+crt-static`) has none, and glibc's start of such a program does not bear the path.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    write_study_table()?;
    let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    if !features.split(',').any(|feature| feature == "crt-static") {
        println!("cargo::rustc-link-arg-bins=-Wl,-rpath,/run/perflab/lib");
    }
    Ok(())
}

/// `&[ShippedStudy { name: "memory", text: include_str!("/…/memory.toml") }, …]`, without what a new study begins as.
fn write_study_table() -> io::Result<()> {
    let folder = PathBuf::from(read_build_variable("CARGO_MANIFEST_DIR")?).join("studies");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let mut rows = String::from("&[\n");
    for path in &files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if name != "starter" {
            // Writing to a String cannot fail.
            let _ = writeln!(rows, "    ShippedStudy {{ name: {name:?}, text: include_str!({path:?}) }},");
        }
    }
    fs::write(Path::new(&read_build_variable("OUT_DIR")?).join("studies.rs"), rows + "]\n")
}

fn read_build_variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}
