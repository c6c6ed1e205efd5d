//! The arrows between rooms, as DESIGN.md draws them: data goes down, an arrow up is a mistake.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Crate -> the crates of this repository that it may use, each of which it does use. The binary may use all.
const ROOMS: &[(&str, &[&str])] = &[
    ("slablist", &[]),
    ("optrace", &[]),
    ("perflab-model", &[]),
    ("perflab-files", &[]),
    ("perflab-stats", &[]),
    ("perflab-stacks", &["perflab-files", "perflab-model"]),
    ("perflab-formats", &["perflab-model"]),
    ("perflab-observe", &["perflab-formats", "perflab-model", "perflab-stacks"]),
    ("perflab-workload", &["optrace", "perflab-formats", "perflab-model", "slablist"]),
    ("perflab-archive", &["optrace", "perflab-files", "perflab-model"]),
    (
        "perflab-import",
        &[
            "optrace",
            "perflab-files",
            "perflab-formats",
            "perflab-model",
            "perflab-observe",
            "perflab-stacks",
        ],
    ),
    ("perflab-prefetch", &["perflab-files", "perflab-model", "perflab-observe"]),
    ("perflab-guest", &["perflab-files", "perflab-model", "perflab-observe", "perflab-stacks"]),
    ("perflab-settings", &["perflab-formats", "perflab-model", "perflab-observe", "perflab-workload"]),
    ("perflab-disk", &["perflab-model", "perflab-observe", "perflab-settings"]),
    ("perflab-startup", &["perflab-formats", "perflab-model", "perflab-observe", "perflab-settings"]),
    (
        "perflab-conduct",
        &[
            "perflab-disk",
            "perflab-guest",
            "perflab-model",
            "perflab-observe",
            "perflab-settings",
            "perflab-stacks",
            "perflab-stats",
            "perflab-workload",
        ],
    ),
    ("perflab-analyze", &["perflab-formats", "perflab-model", "perflab-stats"]),
    ("perflab-present", &["perflab-analyze", "perflab-model"]),
    ("perflab-remote", &["perflab-archive", "perflab-files", "perflab-model"]),
    ("perflab-serve", &["perflab-analyze", "perflab-archive", "perflab-model", "perflab-present"]),
];

/// The workspace's crates, and the folder of each.
fn crates() -> Vec<(cargo_metadata::Package, PathBuf)> {
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec().unwrap();
    let folder = |package: &cargo_metadata::Package| package.manifest_path.parent().unwrap().into();
    metadata.packages.into_iter().map(|package| (package.clone(), folder(&package))).collect()
}

/// Every line of Rust below `folder/src`, with its file.
fn source_lines(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.extend(text.lines().map(|line| (path.clone(), line.to_owned())));
            }
        }
    }
    found
}

#[test]
fn crates_use_only_what_lies_below_and_declare_only_what_they_use() {
    let crates = crates();
    let names: BTreeSet<String> = crates.iter().map(|(package, _)| package.name.to_string()).collect();
    let allowed: BTreeMap<&str, &[&str]> = ROOMS.iter().copied().collect();
    for (package, folder) in &crates {
        let Some(allowed) = allowed.get(package.name.as_str()) else {
            assert!(
                ["perflab", "xtask", "fixtures", "damage", "fuzz-decoders"].contains(&package.name.as_str()),
                "{} is not drawn",
                package.name
            );
            continue;
        };
        let normal =
            package.dependencies.iter().filter(|one| one.kind == cargo_metadata::DependencyKind::Normal);
        let used: BTreeSet<&str> =
            normal.map(|one| one.name.as_str()).filter(|name| names.contains(*name)).collect();
        assert_eq!(used, allowed.iter().copied().collect(), "arrows of {}", package.name);
        let source = source_lines(folder);
        for name in used {
            let word = name.replace('-', "_");
            assert!(
                source.iter().any(|(_, line)| line.contains(&word)),
                "{} does not use {name}",
                package.name
            );
        }
    }
    assert_eq!(crates.len(), names.len());
    assert!(ROOMS.iter().all(|(room, _)| names.contains(*room)), "a room that is drawn is not there");
}

/// What no line of `formats` holds: it is given texts, and gives rows.
const OUTSIDE: &[&str] = &[
    "std::fs",
    "fs::",
    "std::process",
    "std::net",
    "std::env",
    "std::thread",
    "Instant",
    "SystemTime",
    "rustix",
];

#[test]
fn formats_reads_no_file_and_no_clock() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../formats"));
    let source = source_lines(folder);
    assert!(source.len() > 1000);
    for (file, line) in source {
        let used = OUTSIDE.iter().find(|name| line.contains(**name));
        assert!(used.is_none(), "{}: {line}", file.display());
    }
}

/// The name that a line of Rust defines as a type which other files see.
fn defined_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = rest.strip_prefix("(crate)").unwrap_or(rest).strip_prefix(' ')?;
    let rest =
        ["struct ", "enum ", "trait ", "union ", "type "].iter().find_map(|word| rest.strip_prefix(word))?;
    rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()
}

#[test]
fn every_type_has_a_name_of_its_own() {
    let mut defined: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for (_, folder) in crates() {
        for (file, line) in source_lines(&folder) {
            // A type of a trait's implementation stands deeper, and is not `pub`.
            if let Some(name) = defined_type(&line) {
                defined.entry(name.to_owned()).or_default().push(file);
            }
        }
    }
    assert!(defined.len() > 500, "{} types were found", defined.len());
    let twice: Vec<_> = defined.into_iter().filter(|(_, files)| files.len() > 1).collect();
    assert!(twice.is_empty(), "{twice:#?}");
}

/// Stand-alone libraries, which know no exit codes: what they fail with is classified where it is wrapped.
const UNCLASSIFIED: &[&str] =
    &["slablist", "optrace", "perflab-stats", "fixtures", "damage", "xtask", "fuzz-decoders"];

/// Exit codes are made of the class that an error says of itself, beside its definition.
#[test]
fn every_error_says_its_class() {
    let mut count = 0;
    for (package, folder) in crates() {
        if UNCLASSIFIED.iter().any(|name| package.name.as_str().starts_with(name)) {
            continue;
        }
        let source = source_lines(&folder);
        for (file, line) in &source {
            // One that only its crate sees is wrapped before it leaves.
            let is_public = line.trim_start().starts_with("pub ");
            let Some(name) = defined_type(line).filter(|name| is_public && name.ends_with("Error")) else {
                continue;
            };
            let implementation = format!("impl Classify for {name} {{");
            let is_classified = source.iter().any(|(_, line)| line.starts_with(&implementation));
            assert!(is_classified, "{name} of {} says no class", file.display());
            count += 1;
        }
    }
    assert!(count > 35, "{count} errors were found");
}

#[test]
fn errors_are_told_apart_by_their_class_and_not_by_downcasts() {
    let (_, binary) = crates().into_iter().find(|(package, _)| package.name.as_str() == "perflab").unwrap();
    for (file, line) in source_lines(&binary) {
        let is_allowed =
            !line.contains("anyhow") && (!line.contains("downcast") || file.ends_with("output_path.rs"));
        assert!(is_allowed, "{}: {line}", file.display());
    }
}

/// Constants of the table are the only keys that the program itself knows: what else is looked up was read from a record.
#[test]
fn facts_are_named_by_their_constants() {
    for (_, folder) in crates() {
        for (file, line) in source_lines(&folder) {
            assert!(!line.contains(".stored(\""), "{}: declare the fact: {line}", file.display());
        }
    }
}

#[test]
fn only_the_binary_uses_clap() {
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec().unwrap();
    for package in metadata.packages.iter().filter(|package| package.name.starts_with("perflab-")) {
        for used in &package.dependencies {
            assert!(
                !["clap", "anyhow", "miette", "indicatif"].contains(&used.name.as_str()),
                "{} uses {}",
                package.name,
                used.name
            );
        }
    }
}

#[test]
fn every_dependency_has_its_line() {
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec().unwrap();
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dependencies.md")).unwrap();
    for package in &metadata.packages {
        for used in package.dependencies.iter().filter(|one| one.path.is_none()) {
            assert!(
                page.contains(&format!("| {} ", used.name)),
                "{} of {} has no line in docs/dependencies.md",
                used.name,
                package.name
            );
        }
    }
}

/// Private crates: chores, and what only tests use.
const UNPUBLISHED: &[&str] = &["xtask", "fixtures", "damage", "fuzz-decoders"];

#[test]
fn every_crate_that_is_published_says_what_it_is_and_needs_no_unpublished_one() {
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec().unwrap();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let is_published = package.publish.as_ref().is_none_or(|registries| !registries.is_empty());
        assert_eq!(is_published, !UNPUBLISHED.contains(&name), "publish of {name}");
        if !is_published {
            continue;
        }
        assert!(package.description.is_some() && package.license.is_some(), "{name} lacks a description");
        assert!(package.repository.is_some() && package.rust_version.is_some(), "{name} lacks its origin");
        let readme = package.readme().unwrap_or_else(|| panic!("{name} has no readme"));
        assert!(readme.is_file(), "{name}: no {readme}");
        for used in package.dependencies.iter().filter(|one| one.path.is_some()) {
            // A path alone is dropped from what is published, which only a dependency of tests survives.
            let is_tests = used.kind == cargo_metadata::DependencyKind::Development;
            assert!(
                is_tests || used.req.to_string() != "*",
                "{name} uses {} without a version beside its path",
                used.name
            );
            assert!(
                is_tests || !UNPUBLISHED.contains(&used.name.as_str()),
                "{name} needs {}, which is not published",
                used.name
            );
        }
    }
}

/// What a published crate compiles in lies in its own folder, if by a symbolic link: cargo packs nothing else.
#[test]
fn no_crate_includes_what_lies_outside_its_folder() {
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec().unwrap();
    let mut seen = 0;
    for package in metadata.packages.iter().filter(|package| !UNPUBLISHED.contains(&package.name.as_str())) {
        let home = package.manifest_path.parent().unwrap();
        for (file, text) in rust_files(home.join("src").as_std_path()) {
            // A module of tests at the end of a file is not compiled into anything that is published.
            let shipped = text.split("#[cfg(test)]").next().unwrap();
            if file.ends_with("tests.rs") {
                continue;
            }
            for rest in
                ["include_str!(\"", "include_bytes!(\""].iter().flat_map(|call| shipped.split(call).skip(1))
            {
                let target = rest.split('"').next().unwrap();
                let depth = file.parent().unwrap().strip_prefix(home).unwrap().components().count();
                let up = target.split('/').take_while(|part| *part == "..").count();
                assert!(up <= depth, "{} includes {target}", file.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 10, "only {seen} inclusions found");
}

fn rust_files(folder: &std::path::Path) -> Vec<(std::path::PathBuf, String)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            files.push((path, text));
        }
    }
    files
}
