//! The licences of all that is inside the program, with their texts: who ships a copy has to ship them, too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::linked_libraries::LinkedLibraries;
use super::shipped_crates::{ShippedCrate, ShippedCrates};

/// How names of files begin that hold a licence or say whose work it is.
const LICENCE_FILES: &[&str] = &["license", "licence", "copying", "copyright", "notice", "unlicense"];

/// So deep licences lie: sources in C stand in a folder of the crate that binds them.
const DEEPEST: usize = 2;

/// What is inside and no crate: what it is, its licence, and where it says so.
const OTHERS: &[(&str, &str, &str)] = &[
    ("the Rust standard library", "MIT OR Apache-2.0", "https://www.rust-lang.org/policies/licenses"),
    ("SQLite, in libsqlite3-sys", "public domain", "https://www.sqlite.org/copyright.html"),
    ("Roboto, a subset, for pictures", "Apache-2.0", "https://github.com/googlefonts/roboto-classic"),
];

/// The text of the list.
pub fn render_notices(crates: &ShippedCrates, libraries: &LinkedLibraries) -> Result<String> {
    let foreign: Vec<&ShippedCrate> = crates.list.iter().filter(|one| !one.is_own).collect();
    let mut page = String::from(
        "perflab is licensed under MIT OR Apache-2.0. Its program holds the works below, under their own licences,\n\
         whose texts follow the list.\n\n",
    );
    let mut texts = BTreeMap::<String, Vec<String>>::new();
    for one in &foreign {
        if one.licence.is_empty() {
            bail!("{} {} names no licence", one.name, one.version);
        }
        let found = read_licence_texts(&one.folder)?;
        // A text names whose it is; without one, the crate does.
        let authors =
            if found.is_empty() { format!("  by {}", one.authors.join(", ")) } else { String::new() };
        writeln!(page, "{} {}  {}  {}{authors}", one.name, one.version, one.licence, one.repository)?;
        if found.is_empty() && !has_known_text(&one.licence) {
            bail!("{} {} ships no text of its licence, {}", one.name, one.version, one.licence);
        }
        for text in found {
            texts.entry(text).or_default().push(format!("{} {}", one.name, one.version));
        }
    }
    for (what, licence, place) in OTHERS {
        writeln!(page, "{what}  {licence}  {place}")?;
    }
    if libraries.is_static() {
        writeln!(
            page,
            "the GNU C library, linked statically  LGPL-2.1-or-later  https://sourceware.org/glibc/\n    \
             perflab's sources are free: build it against another version of that library with `cargo xtask dist`"
        )?;
    }
    page += "\nWhere a crate has no text of its own here, its licence is one of those in LICENSE-MIT and LICENSE-APACHE.\n";
    // The order of whom they are of, not of their first words.
    let mut texts: Vec<(Vec<String>, String)> = texts.into_iter().map(|(text, of)| (of, text)).collect();
    texts.sort();
    for (of, text) in texts {
        write!(page, "\n{}\nof {}\n\n{}\n", "-".repeat(78), of.join(", "), text.trim_end())?;
    }
    Ok(page)
}

/// Whether the text of one of the licences to choose from lies in every package anyway.
fn has_known_text(expression: &str) -> bool {
    ["MIT", "Apache-2.0"].iter().any(|licence| expression.split([' ', '(', ')']).any(|word| word == *licence))
}

/// All texts of licences in a crate's folder, sorted by their paths.
fn read_licence_texts(folder: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    find_licence_files(folder, DEEPEST, &mut paths)?;
    paths.sort();
    let read = |path: &PathBuf| {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).replace("\r\n", "\n"))
    };
    paths.iter().map(read).collect()
}

fn find_licence_files(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if path.is_dir() {
            if depth > 1 && name != "target" && !name.starts_with('.') {
                find_licence_files(&path, depth - 1, found)?;
            }
            continue;
        }
        let is_code = [".rs", ".py", ".toml", ".c", ".h"].iter().any(|ending| name.ends_with(ending));
        if !is_code && LICENCE_FILES.iter().any(|start| name.starts_with(start)) {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_that_has_a_known_text_is_seen() {
        assert!(
            has_known_text("MIT")
                && has_known_text("(Zlib OR Apache-2.0)")
                && !has_known_text("BSD-3-Clause")
        );
    }
}
