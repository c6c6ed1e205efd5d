//! Makes the table of embedded presets from the folder `settings/`, so that adding a setting is adding one file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = PathBuf::from(read_variable("CARGO_MANIFEST_DIR")?).join("settings");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    fs::write(Path::new(&read_variable("OUT_DIR")?).join("settings.rs"), format_preset_table(&files))
}

/// `&[("thp.toml", include_str!("/…/thp.toml")), …]`
fn format_preset_table(files: &[PathBuf]) -> String {
    let mut rows = String::from("&[\n");
    for path in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Writing to a String cannot fail.
        let _ = writeln!(rows, "    ({name:?}, include_str!({path:?})),");
    }
    rows + "]\n"
}

fn read_variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}
