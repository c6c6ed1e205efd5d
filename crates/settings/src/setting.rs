//! The value of one setting's file: read, written, compared; and dropping caches, which cannot be put back.
//!
//! One file of /proc or /sys has many spellings, through `..`, links and second mounts; they count as one setting.
//! A file holds one value, or `always [madvise] never`, of which the word in brackets is in force. Kernels read
//! values back in their own spelling: `0x10` is 16 afterwards, `1` is `Y`, a mask has leading zeros; what is one
//! value to the kernel is one value here.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use perflab_model::{Setting, normalize_path};
use perflab_observe::Root;
use perflab_observe::io::MountTable;

use crate::error::SettingError;

/// The setting with its file below `root`.
pub fn locate_setting(setting: &Setting, root: &Root) -> Setting {
    match setting {
        Setting::File { name, path, value } => Setting::File {
            name: name.clone(),
            path: root.path(&path.to_string_lossy()),
            value: value.clone(),
        },
        other => other.clone(),
    }
}

/// Writes what is dirty, which cannot be dropped, and drops: 1 pages of files, 2 names and inodes, 3 both. A journal holds on to
/// the pages of a file system's own blocks that were just written until names and inodes go: after these, pages go once more.
///
/// # Errors
/// Without root.
pub fn drop_caches(root: &perflab_observe::Root, which: u8) -> Result<(), SettingError> {
    rustix::fs::sync();
    let path = root.path("/proc/sys/vm/drop_caches");
    let write = |which: &u8| std::fs::write(&path, which.to_string());
    let values = if which == 3 { &[3, 1][..] } else { &[which] };
    values.iter().try_for_each(write).map_err(|source| SettingError::File {
        action: "write",
        path: path.clone(),
        source,
    })
}

/// Files of which writing one zeroes the other: where one reads 0, the other says what is in force, and 0 itself cannot be
/// written back.
const COUNTERPARTS: &[(&str, &str)] = &[
    ("vm/dirty_bytes", "vm/dirty_ratio"),
    ("vm/dirty_background_bytes", "vm/dirty_background_ratio"),
    ("vm/overcommit_kbytes", "vm/overcommit_ratio"),
];

/// Files that are one value of the kernel's under two names.
const SYNONYMS: &[(&str, &str)] = &[
    ("vm/nr_hugepages", "vm/nr_hugepages_mempolicy"),
    ("net/ipv4/ip_forward", "net/ipv4/conf/all/forwarding"),
];

/// Files of which writing the first sets the others, which may be written alone.
const PARTS: &[(&str, &str)] =
    &[("kernel/watchdog", "kernel/soft_watchdog"), ("kernel/watchdog", "kernel/nmi_watchdog")];

/// A file, however it is spelt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileIdentity {
    /// A file of the kernel's own: its path there. These have other inodes on each mount, and new ones when memory is short.
    Kernel { kind: String, path: PathBuf },
    /// Another file that is there.
    Inode { device: u64, inode: u64 },
    /// What is not there.
    Path(PathBuf),
}

impl FileIdentity {
    pub fn of_path(path: &Path) -> Self {
        Self::of_path_among(&MountTable::read(), path)
    }

    fn of_path_among(mounts: &MountTable, path: &Path) -> Self {
        let Ok(real) = fs::canonicalize(path) else { return FileIdentity::Path(normalize_path(path)) };
        let of_kernel = mounts.find_by_path(&real).filter(|mount| matches!(&*mount.kind, "proc" | "sysfs"));
        if let Some(mount) = of_kernel
            && let Ok(below) = real.strip_prefix(&mount.mount_point)
        {
            return FileIdentity::Kernel { kind: mount.kind.clone(), path: mount.root.join(below) };
        }
        match real.metadata() {
            Ok(found) => FileIdentity::Inode { device: found.dev(), inode: found.ino() },
            Err(_) => FileIdentity::Path(real),
        }
    }

    /// Whether a path means this file, too; `own` is how it was spelt.
    pub fn is_same_file(&self, own: &Path, path: &Path) -> bool {
        own == path || *self == Self::of_path(path)
    }
}

/// The other file of a pair of which writing one zeroes the other.
pub(crate) fn counterpart_file(path: &Path) -> Option<PathBuf> {
    pair_partner(COUNTERPARTS, path)
}

/// The other names of the same value. A sysctl of huge pages is of the default size's pool.
pub(crate) fn synonym_files(path: &Path) -> Vec<PathBuf> {
    pair_partner(SYNONYMS, path).into_iter().chain(default_huge_page_pool(path)).collect()
}

/// The file under /sys of the pool that `vm.nr_hugepages` sizes, in the root that the sysctl's file is in.
fn default_huge_page_pool(path: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| normalize_path(path));
    let sysctls = ["proc/sys/vm/nr_hugepages", "proc/sys/vm/nr_hugepages_mempolicy"];
    let root = sysctls.iter().find_map(|sysctl| path.to_str()?.strip_suffix(sysctl))?;
    let memory = fs::read_to_string(format!("{root}proc/meminfo")).ok()?;
    let size = memory.lines().find_map(|line| line.strip_prefix("Hugepagesize:"))?;
    let size = size.trim().strip_suffix("kB")?.trim();
    Some(PathBuf::from(format!("{root}sys/kernel/mm/hugepages/hugepages-{size}kB/nr_hugepages")))
}

/// Whether writing the one file sets the other, too, though that may be written alone.
pub(crate) fn writes_through(whole: &Path, part: &Path) -> bool {
    let known = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| normalize_path(path));
    let (whole, part) = (known(whole), known(part));
    PARTS.iter().any(|(of_whole, of_part)| {
        let root = whole.to_str().and_then(|path| path.strip_suffix(of_whole));
        root.is_some() && root == part.to_str().and_then(|path| path.strip_suffix(of_part))
    })
}

/// Files that hold other values once this one is written, whatever is written: with another I/O scheduler the queue has the
/// depth of the kernel's choice, and with the old one again its tunables are the kernel's defaults.
pub(crate) fn dependent_files(path: &Path) -> Vec<PathBuf> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| normalize_path(path));
    if !path.ends_with("queue/scheduler") {
        return Vec::new();
    }
    let tunables = fs::read_dir(path.with_file_name("iosched")).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = tunables.map(|entry| entry.path()).collect();
    found.sort();
    found.push(path.with_file_name("nr_requests"));
    let is_setting = |path: &PathBuf| path.metadata().is_ok_and(|file| file.mode() & 0o200 != 0);
    found.retain(is_setting);
    found
}

fn pair_partner(pairs: &[(&str, &str)], path: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| normalize_path(path));
    let both_ways = pairs.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
    let mut found = both_ways.filter(|(own, _)| path.ends_with(own)).filter_map(|(own, other)| {
        let root = path.to_str()?.strip_suffix(own)?;
        Some(PathBuf::from(format!("{root}{other}")))
    });
    found.next()
}

/// The content of a setting's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingContent {
    /// What is in force.
    pub value: String,
    /// The words that the file offers; empty where it offers none.
    pub offered: Vec<String>,
}

impl SettingContent {
    /// Reads a setting's file.
    pub fn read(path: &Path) -> Result<Self, SettingError> {
        let text = refuse_way_out(path).and_then(|()| fs::read_to_string(path));
        let text = text.map_err(|source| SettingError::File { action: "read", path: path.into(), source })?;
        Ok(SettingContent::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        let bracketed = |word: &&str| word.len() > 2 && word.starts_with('[') && word.ends_with(']');
        // The scheduler's `none voluntary (full)`.
        let parenthesised = |word: &&str| word.len() > 2 && word.starts_with('(') && word.ends_with(')');
        let pick = |is_chosen: &dyn Fn(&&str) -> bool| -> Vec<&str> {
            words.iter().copied().filter(|word| is_chosen(word)).collect()
        };
        let chosen = match pick(&bracketed) {
            none if none.is_empty() => pick(&parenthesised),
            chosen => chosen,
        };
        // Two words in brackets are not a choice of one.
        let [chosen] = chosen[..] else {
            return SettingContent { value: text.trim().to_owned(), offered: Vec::new() };
        };
        let bare = |word: &&str| word.trim_matches(['[', ']', '(', ')']).to_owned();
        SettingContent { value: bare(&chosen), offered: words.iter().map(bare).collect() }
    }
}

/// Writes a value as its file takes it.
pub(crate) fn write_value(path: &Path, value: &str) -> io::Result<()> {
    refuse_way_out(path)?;
    if is_features_file(path) {
        return write_words(path, value);
    }
    fs::write(path, value)
}

/// Refuses a path of /proc or /sys that leads to a file elsewhere, as `/proc/self/root` and `/proc/self/fd` do: it is no setting.
fn refuse_way_out(path: &Path) -> io::Result<()> {
    let is_kernels = |path: &Path| ["/proc", "/sys"].iter().any(|root| path.starts_with(root));
    if !is_kernels(path) {
        return Ok(());
    }
    let led_to = fs::canonicalize(path)?;
    if is_kernels(&led_to) {
        return Ok(());
    }
    let reason = format!("it leads to {}, which is no setting of the kernel", led_to.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

/// Whether a path is that of the scheduler's features, below whatever root: it takes one word a write.
fn is_features_file(path: &Path) -> bool {
    path.ends_with("debug/sched/features")
}

/// Writes those words that the file does not hold.
fn write_words(path: &Path, value: &str) -> io::Result<()> {
    let now = fs::read_to_string(path)?;
    let held: Vec<&str> = now.split_whitespace().collect();
    value.split_whitespace().filter(|word| !held.contains(word)).try_for_each(|word| fs::write(path, word))
}

/// Whether two spellings are one value to the kernel.
pub(crate) fn is_same_value(a: &str, b: &str) -> bool {
    let (a, b): (Vec<&str>, Vec<&str>) = (a.split_whitespace().collect(), b.split_whitespace().collect());
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| is_same_word(a, b))
}

fn is_same_word(a: &str, b: &str) -> bool {
    let numbers = parse_number(a).zip(parse_number(b));
    a == b
        || numbers.is_some_and(|(a, b)| a == b)
        || parse_switch(a).zip(parse_switch(b)).is_some_and(|(a, b)| a == b)
        || is_same_mask(a, b)
}

/// A number as the kernel reads it: in tens, `0x` in sixteens, a leading 0 in eights.
pub(crate) fn parse_number(word: &str) -> Option<i128> {
    let (sign, digits) = word.strip_prefix('-').map_or((1, word), |digits| (-1, digits));
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match (lower.strip_prefix("0x"), lower.strip_prefix('0')) {
        (Some(digits), _) => (16, digits),
        (None, Some(digits)) if !digits.is_empty() => (8, digits),
        _ => (10, lower.as_str()),
    };
    let plain = digits.chars().all(|digit| digit.is_digit(base));
    i128::from_str_radix(digits, base).ok().filter(|_| plain).map(|number| sign * number)
}

/// What `kstrtobool` makes of a word, where one of the two spellings is a letter.
fn parse_switch(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "1" | "y" | "yes" | "t" | "on" => Some(true),
        "0" | "n" | "no" | "f" | "off" => Some(false),
        _ => None,
    }
}

/// Masks of processors are read with leading zeros, in groups of eight digits: `3` is `0000,00000003`.
fn is_same_mask(a: &str, b: &str) -> bool {
    let bare = |mask: &str| {
        let digits: String = mask.chars().filter(|character| *character != ',').collect();
        digits
            .chars()
            .all(|digit| digit.is_ascii_hexdigit())
            .then(|| digits.trim_start_matches('0').to_ascii_lowercase())
    };
    let padded = |mask: &str| mask.starts_with("00") || mask.contains(',') && mask.len() > 8;
    (padded(a) != padded(b)) && bare(a).is_some() && bare(a) == bare(b)
}

/// Whether anybody may write to a file, by its permissions.
pub(crate) fn has_write_bit(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o222 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_file_are_one() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "60").unwrap();
        fs::hard_link(&file, home.path().join("alias")).unwrap();
        std::os::unix::fs::symlink(home.path(), home.path().join("link")).unwrap();
        let own = FileIdentity::of_path(&file);
        for spelling in ["alias", "link/file", "link/../file", "./file"] {
            // `link/..` is the parent of where the link leads, which is not what is written.
            let same = own.is_same_file(&file, &home.path().join(spelling));
            assert_eq!(same, spelling != "link/../file", "{spelling}");
        }
        let swappiness = FileIdentity::of_path(Path::new("/proc/sys/vm/swappiness"));
        assert_eq!(
            swappiness,
            FileIdentity::of_path(Path::new("/proc/self/root/proc/sys/kernel/../vm/swappiness"))
        );
        assert!(matches!(swappiness, FileIdentity::Kernel { .. }), "{swappiness:?}");
        assert_ne!(swappiness, FileIdentity::of_path(Path::new("/proc/sys/vm/overcommit_memory")));
    }

    #[test]
    fn pairs_are_known_by_every_spelling() {
        assert_eq!(counterpart_file(Path::new("/x/vm/a/../dirty_ratio")), Some("/x/vm/dirty_bytes".into()));
        assert_eq!(counterpart_file(Path::new("/x/vm/not_dirty_ratio")), None);
        assert_eq!(
            synonym_files(Path::new("/x/vm/nr_hugepages_mempolicy")),
            [Path::new("/x/vm/nr_hugepages")]
        );
        let (whole, part) = (Path::new("/x/kernel/watchdog"), Path::new("/x/kernel/nmi_watchdog"));
        assert!(writes_through(whole, part) && !writes_through(part, whole));
        assert!(!writes_through(whole, Path::new("/y/kernel/nmi_watchdog")), "of another root");
    }

    #[test]
    fn the_word_in_brackets_is_in_force_and_all_are_offered() {
        let content = SettingContent::parse("always [madvise] never\n");
        assert_eq!((content.value.as_str(), content.offered.len()), ("madvise", 3));
        assert_eq!(SettingContent::parse("[none]\n").offered, ["none"]);
        assert_eq!(SettingContent::parse("none voluntary (full)\n").value, "full");
        for plain in ["60", "a [b] c [d]", "[] a", "() b", "32768\t60999"] {
            let content = SettingContent::parse(&format!("{plain}\n"));
            assert_eq!((content.value.as_str(), content.offered.len()), (plain, 0));
        }
    }

    #[test]
    fn spellings_of_one_value_are_one() {
        for (a, b) in [
            ("32768 60999", "32768\t60999"),
            ("0x10", "16"),
            ("010", "8"),
            ("1", "Y"),
            ("off", "N"),
            ("3", "00000003"),
            ("FF", "0000,000000ff"),
            ("-1", "-1"),
            ("0", "0x0"),
        ] {
            assert!(is_same_value(a, b) && is_same_value(b, a), "{a} {b}");
        }
        for (a, b) in [("1", "10"), ("10", "010"), ("4 4", "4"), ("never", "always"), ("1", "-1"), ("a", "b")]
        {
            assert!(!is_same_value(a, b), "{a} {b}");
        }
    }
}
