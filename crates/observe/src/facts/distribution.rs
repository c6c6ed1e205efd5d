//! Family `distribution`: the Linux distribution and its version (os-release(5)).

use super::notes::{FactCollector, find_field};

pub(super) fn collect_distribution_facts(notes: &mut FactCollector<'_>) {
    let paths = ["/etc/os-release", "/usr/lib/os-release"];
    let Some((path, text)) = paths.iter().find_map(|path| Some((path, notes.read(path)?))) else { return };
    let keys = [
        ("distribution.name", "PRETTY_NAME"),
        ("distribution.id", "ID"),
        ("distribution.version", "VERSION_ID"),
        ("distribution.build", "BUILD_ID"),
    ];
    for (key, name) in keys {
        notes.add_optional(
            key,
            find_field(&text, '=', name).map(|value| value.trim_matches(['"', '\''])),
            path,
        );
    }
}
