//! `kind`: what turning a factor means. All that is particular to a kind is its row in `FactorKind::spec`.

use std::fmt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::placement::{Placement, PlacementError};
use crate::scalar::Scalar;
use crate::setting::{Setting, normalize_path};
use crate::syscall_delay::SyscallDelay;

/// What turning a factor means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FactorKind {
    /// a parameter of the workload
    Parameter,
    /// an environment variable of the workload
    Environment,
    /// a sysctl, undone afterwards
    Sysctl,
    /// a file under /proc or /sys, undone afterwards
    File,
    /// a preset of `perflab setting list`, or of `[preset.NAME]`: written to all its files, read back, undone afterwards
    Setting,
    /// page cache and slab dropped before the iteration: 0 none, 1 pages, 2 slab, 3 both
    DropCaches,
    /// a key of `[disk]`: every iteration then gets a disk of its own, made afresh
    Disk,
    /// a pair of commands per level: apply, undo
    Commands,
    /// what only a person can change (the booted kernel): named with `--set factor=level`, one level a run
    Label,
    /// how many of the study's targets take part: 1, 2, 4; the others wait
    Targets,
    /// a key of `[target]`: the kernel, the memory, words of the command line; targets are started anew for each level
    Target,
    /// what runs beside the workload: names of `[beside.NAME]`, or `none`
    Beside,
    /// on which CPUs the workload runs and from which nodes it takes memory: `same-cache`, `cpus=0-3 memory=bind:0`
    Placement,
    /// whether the study's monitors are read in an iteration: `on`, `off`; what they cost is the difference
    Monitors,
    /// a delay in a system call of the workload and all that it starts, which the key names: `0us`, `20us`
    Syscall,
}

impl fmt::Display for FactorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// What is particular to a kind of factor.
#[derive(Debug, Clone, Copy)]
pub struct FactorKindSpec {
    /// Whether its levels may hold expressions in double braces.
    pub is_templated: bool,
    /// Whether its levels are pairs of commands.
    pub takes_commands: bool,
    /// The file that its levels are written to, where it is one.
    pub file: Option<WrittenFile>,
    /// Whether its key names a preset.
    pub takes_preset: bool,
    /// What a level sets on a machine; the plan and the scratch disk take care of kinds without it.
    pub setting: Option<fn(&LevelValue<'_>) -> Option<Setting>>,
    /// What is wrong with a level's value, and what would be right.
    pub refuse_value: fn(&Scalar) -> Option<(String, &'static str)>,
}

/// A file that a kind of factor writes to: its key names it.
#[derive(Debug, Clone, Copy)]
pub struct WrittenFile {
    /// What a key is called: `sysctl`; none where it is the path.
    pub noun: Option<&'static str>,
    /// The file of a key.
    pub path: fn(&str) -> String,
    /// What is wrong with a key, and what would be right.
    pub refuse_key: fn(&str) -> Option<(String, &'static str)>,
    /// How another file is spelt as a key, like this one of this file.
    pub spell: fn(&str, &Path, &Path) -> String,
    /// Whether a file that holds numbers takes nothing else.
    pub keeps_numbers: bool,
}

impl WrittenFile {
    /// What the file of a key is called in events and messages: `sysctl vm.swappiness`, or the path.
    pub fn title(&self, key: &str) -> String {
        self.noun.map_or_else(|| (self.path)(key), |noun| format!("{noun} {key}"))
    }
}

/// A level of a factor, its value worked out.
#[derive(Debug, Clone, Copy)]
pub struct LevelValue<'a> {
    /// The factor's name.
    pub factor: &'a str,
    /// Its key; its name where it has none.
    pub key: &'a str,
    /// The level's name.
    pub level: &'a str,
    /// Its value.
    pub value: &'a str,
    /// argv that applies it
    pub apply: &'a [String],
    /// argv that undoes it
    pub undo: &'a [String],
}

impl FactorKind {
    /// What is particular to the kind.
    pub const fn spec(self) -> FactorKindSpec {
        match self {
            FactorKind::Parameter
            | FactorKind::Disk
            | FactorKind::Label
            | FactorKind::Targets
            | FactorKind::Target
            | FactorKind::Beside => PLANNED,
            FactorKind::Environment => FactorKindSpec { is_templated: true, ..PLANNED },
            FactorKind::Sysctl => written(WrittenFile {
                noun: Some("sysctl"),
                path: sysctl_path,
                refuse_key: |key| {
                    let what = || format!("`{key}` is no name of a sysctl");
                    let is_inside = lies_below(&sysctl_path(key), "/proc/sys");
                    (!is_inside).then(|| (what(), "write it as sysctl(8) does: vm.swappiness"))
                },
                spell: sysctl_name,
                keeps_numbers: true,
            }),
            FactorKind::File => written(WrittenFile {
                noun: None,
                path: str::to_owned,
                refuse_key: |path| {
                    let is_inside = ["/proc", "/sys"].iter().any(|root| lies_below(path, root));
                    let what = || format!("{path} is not under /proc or /sys");
                    (!is_inside).then(|| (what(), "use `kind = \"commands\"` for other files"))
                },
                spell: |_, _, path| path.display().to_string(),
                keeps_numbers: false,
            }),
            FactorKind::Setting => FactorKindSpec { is_templated: true, takes_preset: true, ..PLANNED },
            FactorKind::DropCaches => FactorKindSpec {
                setting: Some(|level| {
                    level.value.parse().ok().filter(|which| *which > 0).map(Setting::DropCaches)
                }),
                refuse_value: |value| {
                    let what = || format!("`{value}` is not a way to drop caches");
                    let is_known = matches!(value, Scalar::Int(0..=3));
                    (!is_known).then(|| (what(), "0 drops nothing, 1 the page cache, 2 slab objects, 3 both"))
                },
                ..PLANNED
            },
            FactorKind::Placement => FactorKindSpec {
                refuse_value: |value| {
                    let refused = value.to_string().parse::<Placement>().err()?;
                    Some((refused.to_string(), PlacementError::HINT))
                },
                ..PLANNED
            },
            FactorKind::Syscall => FactorKindSpec {
                refuse_value: |value| {
                    let what = || format!("`{value}` is no delay of a system call");
                    let hint = "write a time from 0us to 10s, such as 20us";
                    SyscallDelay::parse_delay(&value.to_string()).is_none().then(|| (what(), hint))
                },
                ..PLANNED
            },
            FactorKind::Monitors => FactorKindSpec {
                refuse_value: |value| {
                    let is_known = ["on", "off"].contains(&value.to_string().as_str());
                    (!is_known).then(|| (format!("`{value}` is no state of monitors"), "write `on` or `off`"))
                },
                ..PLANNED
            },
            FactorKind::Commands => FactorKindSpec {
                takes_commands: true,
                setting: Some(|level| {
                    Some(Setting::Commands {
                        factor: level.factor.into(),
                        level: level.level.into(),
                        apply: level.apply.into(),
                        undo: level.undo.into(),
                    })
                }),
                ..PLANNED
            },
        }
    }

    /// The setting of a level whose value is worked out, if it sets anything; not that of a preset, which has to be known.
    pub fn level_setting(self, level: &LevelValue<'_>) -> Option<Setting> {
        let spec = self.spec();
        match (spec.file, spec.setting) {
            (Some(file), _) => Some(Setting::File {
                name: file.title(level.key),
                path: (file.path)(level.key).into(),
                value: level.value.into(),
            }),
            (None, Some(setting)) => setting(level),
            (None, None) => None,
        }
    }

    /// Whether it sets something on a machine, so that in a study with targets it has a side.
    pub fn is_set_on_machine(self) -> bool {
        let spec = self.spec();
        spec.file.is_some() || spec.setting.is_some() || spec.takes_preset
    }
}

/// A kind that only the plan is about.
const PLANNED: FactorKindSpec = FactorKindSpec {
    is_templated: false,
    takes_commands: false,
    file: None,
    takes_preset: false,
    setting: None,
    refuse_value: |_| None,
};

/// A kind that writes a file.
const fn written(file: WrittenFile) -> FactorKindSpec {
    FactorKindSpec { is_templated: true, file: Some(file), ..PLANNED }
}

/// Whether a path, with `..` taken as it is written, is that of something below `root`.
fn lies_below(path: &str, root: &str) -> bool {
    let plain = normalize_path(Path::new(path));
    plain.starts_with(root) && plain != Path::new(root)
}

/// `vm.swappiness` -> `/proc/sys/vm/swappiness`; a name that holds slashes already is taken as a path,
/// as sysctl(8) does for interface names with dots.
fn sysctl_path(key: &str) -> String {
    if key.contains('/') {
        format!("/proc/sys/{key}")
    } else {
        format!("/proc/sys/{}", key.replace('.', "/"))
    }
}

/// How sysctl(8) calls another file, with as many parts as `key`, the name of the file at `path`, leaves below `/proc/sys`.
fn sysctl_name(key: &str, path: &Path, other: &Path) -> String {
    let parts = key.split(['.', '/']).count();
    let base: PathBuf = path.components().take(path.components().count().saturating_sub(parts)).collect();
    let name = other.strip_prefix(base).unwrap_or(other).display().to_string();
    if key.contains('/') { name } else { name.replace('/', ".") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kinds_are_those_of_the_study() {
        assert_eq!(FactorKind::DropCaches.to_string(), "drop-caches");
        assert_eq!(FactorKind::Sysctl.to_string(), "sysctl");
    }

    #[test]
    fn a_sysctl_is_a_file_by_its_own_name() {
        let file = FactorKind::Sysctl.spec().file.unwrap();
        assert_eq!((file.path)("vm.swappiness"), "/proc/sys/vm/swappiness");
        assert_eq!(
            (file.path)("net/ipv4/conf/eth0.1/forwarding"),
            "/proc/sys/net/ipv4/conf/eth0.1/forwarding"
        );
        let near = (file.spell)(
            "vm.swapines",
            Path::new("/proc/sys/vm/swapines"),
            Path::new("/proc/sys/vm/swappiness"),
        );
        assert_eq!(near, "vm.swappiness");
    }

    #[test]
    fn a_delay_is_a_time_that_somebody_waits_for() {
        let refuse = FactorKind::Syscall.spec().refuse_value;
        for text in ["20", "-1us", "11s", "much"] {
            assert!(refuse(&Scalar::Text(text.into())).is_some(), "{text}");
        }
        assert_eq!(refuse(&Scalar::Int(0)), None);
    }

    #[test]
    fn zero_drops_no_caches() {
        let level = |value| LevelValue { factor: "c", key: "c", level: value, value, apply: &[], undo: &[] };
        assert_eq!(FactorKind::DropCaches.level_setting(&level("0")), None);
        assert_eq!(FactorKind::DropCaches.level_setting(&level("3")), Some(Setting::DropCaches(3)));
    }
}
