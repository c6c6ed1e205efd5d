//! The arrows between rooms, as DESIGN.md draws them: data goes down, an arrow up is a mistake.

use std::collections::BTreeMap;

/// Room -> the rooms that it may use. The binary may use all.
const ROOMS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("stats", &[]),
    ("stacks", &["model"]),
    ("observe", &["model", "stacks"]),
    ("workload", &["model"]),
    ("archive", &["model", "stacks"]),
    ("prefetch", &["model", "observe"]),
    ("conduct", &["model", "stacks", "observe", "workload", "prefetch"]),
    ("analyze", &["model", "stats", "archive"]),
    ("present", &["model", "analyze", "archive"]),
];

#[test]
fn rooms_use_only_what_lies_below() {
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec().unwrap();
    let allowed: BTreeMap<&str, &[&str]> = ROOMS.iter().copied().collect();
    let rooms = metadata
        .packages
        .iter()
        .filter_map(|package| Some((package, package.name.strip_prefix("perflab-")?)));
    let mut seen = 0;
    for (package, room) in rooms {
        let allowed =
            allowed.get(room).unwrap_or_else(|| panic!("{room} is not drawn in DESIGN.md and here"));
        let normal =
            package.dependencies.iter().filter(|one| one.kind == cargo_metadata::DependencyKind::Normal);
        for used in normal.filter_map(|one| one.name.strip_prefix("perflab-")) {
            assert!(allowed.contains(&used), "an arrow up: {room} uses {used}");
        }
        seen += 1;
    }
    assert_eq!(seen, ROOMS.len());
}

#[test]
fn only_the_binary_uses_clap_and_anyhow() {
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
