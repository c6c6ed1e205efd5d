//! What the names of MMTests' configurations say: of which shipped one a generated one is made, what its endings add, and why
//! some have no study.

use std::path::Path;

/// What an ending adds to the configuration before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndingMeaning {
    /// A level of something that every study can vary.
    Level(VariedLevel),
    /// Options of `perflab run`, with what they do.
    Options { options: &'static str, about: &'static str },
    /// A level of a parameter that a study may vary; no other study has it.
    OwnLevel { key: &'static str, level: &'static str },
    /// What a study does anyway.
    Nothing,
    /// What has no option: what to do instead, or why nothing.
    Differs(&'static str),
}

/// A level, and how it is varied where a study has no such factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VariedLevel {
    /// The factor's kind.
    pub kind: &'static str,
    /// Its key; empty where the kind has none.
    pub key: &'static str,
    /// What the ending asks for.
    pub level: &'static str,
    /// What that is held against.
    pub baseline: &'static str,
    /// What is not the same, if anything.
    pub differs: Option<&'static str>,
}

/// An ending of a generated configuration's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameEnding {
    /// Without the dash before it.
    pub word: &'static str,
    /// What it adds.
    pub means: EndingMeaning,
}

const fn vary_level(
    kind: &'static str,
    key: &'static str,
    level: &'static str,
    baseline: &'static str,
    differs: Option<&'static str>,
) -> EndingMeaning {
    EndingMeaning::Level(VariedLevel { kind, key, level, baseline, differs })
}

const fn emulated_disk(model: &'static str) -> EndingMeaning {
    let differs = "the disk is emulated; a real one is [disk] kind = \"partition\", which is formatted";
    vary_level("disk", "model", model, "nvme", Some(differs))
}

const fn filesystem(level: &'static str) -> EndingMeaning {
    vary_level("disk", "filesystem", level, "ext4", None)
}

const fn placement(level: &'static str) -> EndingMeaning {
    vary_level("placement", "", level, "any", None)
}

const RAID: EndingMeaning = EndingMeaning::Differs(
    "a study's disk is an image; of a RAID: [disk] kind = \"partition\", path = \"/dev/md0\", which is formatted",
);
const PROCESSOR: EndingMeaning =
    EndingMeaning::Differs("numbers of one processor's topology: walk(…) and placement take this machine's");

/// The endings that MMTests' generators make, of names that are no other's end.
const ENDINGS: &[NameEnding] = &[
    NameEnding { word: "xfs", means: filesystem("xfs") },
    NameEnding { word: "ext4", means: filesystem("ext4") },
    NameEnding { word: "btrfs", means: filesystem("btrfs") },
    NameEnding {
        word: "ext3",
        means: EndingMeaning::Differs("kernels read ext3 by their ext4: --set filesystem=ext4"),
    },
    NameEnding {
        word: "nocow",
        means: EndingMeaning::Differs("btrfs without copies on write: [disk] mount = \"nodatacow\""),
    },
    NameEnding {
        word: "tmpfs",
        means: EndingMeaning::Options { options: "--scratch /dev/shm", about: "files lie in a tmpfs" },
    },
    NameEnding { word: "raid0", means: RAID },
    NameEnding { word: "raid1", means: RAID },
    NameEnding { word: "raid5", means: RAID },
    NameEnding { word: "ssd", means: emulated_disk("ssd-sata") },
    NameEnding { word: "rotary", means: emulated_disk("hdd-7200") },
    NameEnding {
        word: "nullb",
        means: EndingMeaning::Differs(
            "a disk that does nothing: the image in memory (--scratch /dev/shm) is the nearest",
        ),
    },
    NameEnding { word: "cross-ht", means: placement("siblings") },
    NameEnding { word: "cross-socket", means: placement("cross-node") },
    NameEnding { word: "cross-node", means: placement("cross-node") },
    NameEnding {
        word: "spread",
        means: EndingMeaning::Differs(
            "threads spread over nodes: --vary placement=any,one-per-core is the nearest",
        ),
    },
    NameEnding {
        word: "cstate",
        means: vary_level("setting", "idle", "0us", "any", Some("CPUs spin in place of a sleep in C1")),
    },
    NameEnding { word: "defrag", means: vary_level("setting", "thp-defrag", "always", "madvise", None) },
    NameEnding {
        word: "cpufreq",
        means: EndingMeaning::Differs(
            "the governor `performance`: `perflab tune --apply governor=performance` before it, or [settings] governor = \"performance\"",
        ),
    },
    NameEnding { word: "unbound", means: EndingMeaning::Nothing },
    NameEnding { word: "4clients", means: EndingMeaning::OwnLevel { key: "pairs", level: "4" } },
    NameEnding { word: "madvhugepage", means: EndingMeaning::OwnLevel { key: "advice", level: "huge" } },
    NameEnding {
        word: "maxcpus",
        means: EndingMeaning::Differs("as many workers as CPUs: the last level of workers"),
    },
    NameEnding { word: "zen2", means: PROCESSOR },
    NameEnding { word: "zen3", means: PROCESSOR },
    NameEnding { word: "zen4", means: PROCESSOR },
    NameEnding { word: "zen5", means: PROCESSOR },
];

const OTHER_LIBRARY: &str = "it measures a compiler by building a library: the study `libraries` compiles others, the workload `library-build` any that Debian's mirrors have";

/// What a configuration of MMTests may be called that no study answers, with the reason and what to use instead.
const WITHOUT_STUDY: &[(&str, &str)] = &[
    (
        "config-hpc-nas-*",
        "it comes as source only, and no package of Debian has it: a command of yours in a study, or the study `hpc`",
    ),
    (
        "config-hpc-xsbench-*",
        "it comes as source only, and no package of Debian has it: a command of yours in a study, or the study `hpc`",
    ),
    (
        "config-workload-coremark*",
        "it comes as source only, and no package of Debian has it: the study `sched-cpu` has other loads of a CPU",
    ),
    (
        "config-workload-kvmstart-*",
        "no workload starts guests: `perflab vm boot` times one start, the study `vm-fairness` runs several",
    ),
    ("config-buildtest-hpc-atompaw", OTHER_LIBRARY),
    ("config-buildtest-hpc-boost", OTHER_LIBRARY),
    ("config-buildtest-hpc-cgal", OTHER_LIBRARY),
    ("config-buildtest-hpc-cmake", OTHER_LIBRARY),
    ("config-buildtest-hpc-gmp", OTHER_LIBRARY),
    ("config-buildtest-hpc-metis", OTHER_LIBRARY),
    ("config-buildtest-hpc-mumps", OTHER_LIBRARY),
    ("config-buildtest-hpc-pio", OTHER_LIBRARY),
    ("config-buildtest-hpc-revocap", OTHER_LIBRARY),
    ("config-buildtest-hpc-scalapack", OTHER_LIBRARY),
    ("config-buildtest-hpc-trilinos", OTHER_LIBRARY),
    ("config-buildtest-hpc-xc", OTHER_LIBRARY),
    ("config-functional-*", "functional tests are not measured"),
    ("config-jvm-*", "it has to be bought"),
    ("config-example-xfstests", "functional tests are not measured"),
    ("config-script", "a command of yours: `perflab run -- COMMAND`"),
    ("config-scheduler-easywave", "its data are not to be had"),
    (
        "config-hpc-parsec-*",
        "its inputs are gigabytes; the workloads `build`, `compress` and `x264` are applications",
    ),
];

/// How a configuration's name begins.
const BEGINNING: &str = "config-";

/// The name of a configuration, without the folder that it was typed with; none if it is no such name.
pub fn find_configuration_name(text: &str) -> Option<&str> {
    let name = Path::new(text).file_name()?.to_str()?;
    (name.starts_with(BEGINNING) && name.len() > BEGINNING.len()).then_some(name)
}

/// A word as it would be as a configuration's name.
pub fn to_configuration_name(text: &str) -> String {
    format!("{BEGINNING}{text}")
}

/// The name without its last ending, and that; none where it has none.
pub fn split_last_ending(name: &str) -> Option<(&str, &'static NameEnding)> {
    ENDINGS.iter().find_map(|ending| {
        let rest = name.strip_suffix(ending.word)?.strip_suffix('-')?;
        (rest.len() > BEGINNING.len()).then_some((rest, ending))
    })
}

/// Why no study answers the configuration, with what to use, where that is known.
pub fn find_reason_without_study(name: &str) -> Option<&'static str> {
    let found = WITHOUT_STUDY
        .iter()
        .find(|(pattern, _)| perflab_analyze::compare::case_condition::matches_pattern(pattern, name));
    found.map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_left_out_and_endings_are_taken_one_by_one() {
        assert_eq!(find_configuration_name("configs/config-a"), Some("config-a"));
        assert_eq!(find_configuration_name("hackbench"), None);
        assert_eq!(find_configuration_name("config-"), None);
        let mut name = "config-io-dbench4-async-btrfs-nocow-ssd-raid1";
        let mut endings = Vec::new();
        while let Some((rest, ending)) = split_last_ending(name) {
            (name, endings) = (rest, [endings, vec![ending.word]].concat());
        }
        assert_eq!((name, endings), ("config-io-dbench4-async", vec!["raid1", "ssd", "nocow", "btrfs"]));
        assert_eq!(split_last_ending("config-xfs"), None);
    }
}
