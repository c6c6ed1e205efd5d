//! Makes the table of embedded definitions from the folder `workloads/`, so that adding a benchmark
//! is adding one file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let crate_root = PathBuf::from(read_build_variable("CARGO_MANIFEST_DIR")?);
    let folder = crate_root.join("workloads");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    fs::write(Path::new(&read_build_variable("OUT_DIR")?).join("embedded.rs"), render_table(&files))
}

/// `&[("fio.toml", include_str!("/…/fio.toml")), …]`
fn render_table(files: &[PathBuf]) -> String {
    let mut rows = String::from("&[\n");
    for path in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Writing to a String cannot fail.
        let _ = writeln!(rows, "    ({name:?}, include_str!({path:?})),");
    }
    rows + "]\n"
}

fn read_build_variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}
