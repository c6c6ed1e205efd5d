//! One setting at one level: whether it can be set here, read back, compared; and dropping caches, which cannot be
//! put back.
//!
//! Settings are worked out from the study before anything is changed, and checked without writing, not even the
//! same value: files that are missing or read-only, words that a file does not offer, texts where numbers are.
//!
//! One file of /proc or /sys has many spellings, through `..`, links and second mounts; they count as one setting.
//! A file holds one value, or `always [madvise] never`, of which the word in brackets is in force. Kernels read
//! values back in their own spelling: `0x10` is 16 afterwards, `1` is `Y`, a mask has leading zeros; what is one
//! value to the kernel is one value here.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use perflab_model::expression::{ExpressionError, ExpressionScope};
use perflab_model::study::{Factor, FactorKind, FactorLevel, FactorSide, LevelValue, Study};
use perflab_model::{PlannedSetting, Problem, Setting};
use perflab_observe::Root;
use perflab_observe::io::MountTable;
use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::error::SettingError;

/// What each level of the study's factors sets, in the study's order. Values are worked out by the facts of `scope` where
/// they are set on the side that is `here`, and left as the study has them on the other.
///
/// # Errors
/// A value has no meaning here.
pub fn resolve_settings(
    study: &Study,
    scope: &ExpressionScope,
    here: FactorSide,
) -> Result<Vec<PlannedSetting>, Problem> {
    let mut resolved = Vec::new();
    for (name, factor) in &study.factor {
        let on = (!study.target.is_empty()).then(|| factor.on.unwrap_or(FactorSide::Host));
        let scope = Some(scope).filter(|_| on.is_none_or(|on| on == here));
        for (index, level) in factor.levels.iter().enumerate() {
            let setting = resolve_level(name, factor, level, scope)
                .map_err(|error| Problem::new(format!("factor.{name}.levels[{index}]"), error.to_string()))?;
            resolved.extend(setting.map(|setting| PlannedSetting {
                factor: name.clone(),
                level: level.name.clone(),
                on,
                setting,
            }));
        }
    }
    Ok(resolved)
}

/// What a level sets; without a scope, its value as it is written.
fn resolve_level(
    name: &str,
    factor: &Factor,
    level: &FactorLevel,
    scope: Option<&ExpressionScope>,
) -> Result<Option<Setting>, ExpressionError> {
    let text = level.value.to_string();
    let value = match scope.filter(|_| factor.kind.spec().is_templated && factor.kind.is_set_on_machine()) {
        Some(scope) => scope.render(&text)?,
        None => text,
    };
    Ok(factor.kind.level_setting(&LevelValue {
        factor: name,
        key: factor.key.as_deref().unwrap_or(name),
        level: &level.name,
        value: &value,
        apply: &level.apply,
        undo: &level.undo,
    }))
}

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

/// The path with `.` and `..` taken as they are written.
fn normalize_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// The other file of a pair of which writing one zeroes the other.
pub(crate) fn counterpart_file(path: &Path) -> Option<PathBuf> {
    pair_partner(COUNTERPARTS, path)
}

/// The other name of the same value.
fn synonym_file(path: &Path) -> Option<PathBuf> {
    pair_partner(SYNONYMS, path)
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
        let text = fs::read_to_string(path);
        let text = text.map_err(|source| SettingError::File { action: "read", path: path.into(), source })?;
        Ok(SettingContent::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        let bracketed = |word: &&str| word.len() > 2 && word.starts_with('[') && word.ends_with(']');
        let chosen: Vec<&str> = words.iter().copied().filter(bracketed).collect();
        // Two words in brackets are not a choice of one.
        let [chosen] = chosen[..] else {
            return SettingContent { value: text.trim().to_owned(), offered: Vec::new() };
        };
        let bare = |word: &&str| word.trim_start_matches('[').trim_end_matches(']').to_owned();
        SettingContent { value: bare(&chosen), offered: words.iter().map(bare).collect() }
    }
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
fn parse_number(word: &str) -> Option<i128> {
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

/// Files that are not settings: what is written to them is done at once, and nothing of it can be put back.
const TRIGGERS: [(&str, &str); 3] = [
    ("/proc/sys/vm/drop_caches", "a factor of `kind = \"drop-caches\"` drops caches before each iteration"),
    ("/proc/sys/vm/compact_memory", "a factor of `kind = \"commands\"` may write to it"),
    ("/proc/sysrq-trigger", "a factor of `kind = \"commands\"` may write to it"),
];

/// The problems of all settings that are made on this machine, each with the study's key.
pub fn setting_problems(study: &Study, settings: &[PlannedSetting], root: &Root) -> Vec<Problem> {
    let everywhere = study.target.is_empty();
    let applies = |factor: &Factor| everywhere || factor.on.unwrap_or(FactorSide::Host) == FactorSide::Host;
    let files = study.factor.iter().filter(|(_, factor)| applies(factor));
    let mut found: Vec<Problem> =
        files.flat_map(|(name, factor)| factor_problems(name, factor, settings, root)).collect();
    found.extend(factor_conflicts(study, root));
    found
}

/// A factor that writes to a file.
struct FileFactor<'a> {
    name: &'a str,
    /// its key in the study
    key: String,
    side: FactorSide,
    path: PathBuf,
    identity: FileIdentity,
}

impl<'a> FileFactor<'a> {
    fn new(study: &'a Study, name: &'a str, factor: &'a Factor, root: &Root) -> Option<Self> {
        let side =
            if study.target.is_empty() { FactorSide::Host } else { factor.on.unwrap_or(FactorSide::Host) };
        let path = root.path(&written_file(name, factor)?);
        let identity = side_file_identity(side, &path);
        Some(FileFactor { name, key: factor_key(name, factor), side, path, identity })
    }

    /// Why there cannot be two factors of these: what one of them changes is the other's.
    fn conflict_with(&self, other: &Self) -> Option<String> {
        if self.side != other.side {
            return None;
        }
        let is_other = |path: Option<PathBuf>| {
            path.is_some_and(|path| side_file_identity(self.side, &path) == other.identity)
        };
        let (one, two) = (self.path.display(), other.path.display());
        if self.identity == other.identity {
            return Some(if one.to_string() == two.to_string() {
                format!("write to one file, {one}")
            } else {
                format!("write to one file: {one} is {two}")
            });
        }
        if is_other(counterpart_file(&self.path)) {
            return Some(format!("undo each other: writing {two} zeroes {one}, and the other way round"));
        }
        is_other(synonym_file(&self.path))
            .then(|| format!("write to one value: {one} and {two} are names of it"))
    }
}

/// What is in a guest is not looked at from here.
fn side_file_identity(side: FactorSide, path: &Path) -> FileIdentity {
    match side {
        FactorSide::Host => FileIdentity::of_path(path),
        FactorSide::Guest => FileIdentity::Path(normalize_path(path)),
    }
}

/// Factors of which one changes what another is about. A case would not have both levels, and what was there before the first
/// of them could not be distinguished from what the other wrote.
fn factor_conflicts(study: &Study, root: &Root) -> Vec<Problem> {
    let all = study.factor.iter().filter_map(|(name, factor)| FileFactor::new(study, name, factor, root));
    let all: Vec<FileFactor<'_>> = all.collect();
    let pairs =
        all.iter().enumerate().flat_map(|(index, two)| all.iter().take(index).map(move |one| (one, two)));
    let found = pairs.filter_map(|(one, two)| {
        let message = format!("factors `{}` and `{}` {}", one.name, two.name, one.conflict_with(two)?);
        Some(Problem::new(two.key.clone(), message).with_hint("make one factor of them, or leave one out"))
    });
    found.collect()
}

/// The file that a factor writes to, on the machine that it is of.
fn written_file(name: &str, factor: &Factor) -> Option<String> {
    factor.kind.spec().file.map(|file| (file.path)(factor.key.as_deref().unwrap_or(name)))
}

fn factor_key(name: &str, factor: &Factor) -> String {
    if factor.key.is_some() { format!("factor.{name}.key") } else { format!("factor.{name}") }
}

fn factor_problems(name: &str, factor: &Factor, settings: &[PlannedSetting], root: &Root) -> Vec<Problem> {
    let key = factor.key.as_deref().unwrap_or(name);
    let Some(bare) = written_file(name, factor) else { return Vec::new() };
    let place = factor_key(name, factor);
    let path = root.path(&bare);
    let file = FileIdentity::of_path(&path);
    if let Some((_, remedy)) =
        TRIGGERS.iter().find(|(trigger, _)| file.is_same_file(&path, &root.path(trigger)))
    {
        let message = format!("factor `{name}`: {bare} is no setting: what it was cannot be put back");
        return vec![Problem::new(place, message).with_hint(*remedy)];
    }
    if !path.exists() {
        return vec![describe_missing_file(name, factor.kind, key, &path).into_problem(place)];
    }
    if access(&path, Access::WRITE_OK) == Err(Errno::ROFS) || !has_write_bit(&path) {
        let message = format!("factor `{name}`: {bare} is read-only");
        return vec![
            Problem::new(place, message).with_hint("it cannot be set on this machine: leave the factor out"),
        ];
    }
    // Who may not read it is refused when the study is run, by the check of permissions.
    let Ok(content) = SettingContent::read(&path) else { return Vec::new() };
    let levels = factor.levels.iter().enumerate().filter_map(|(index, level)| {
        let planned = settings.iter().find(|one| one.factor == name && one.level == level.name)?;
        let Setting::File { value, .. } = &planned.setting else { return None };
        let (message, hint) = refused_value(factor.kind, &bare, &content, value.trim())?;
        let message = format!("factor `{name}`, level `{}`: {message}", level.name);
        Some(Problem::new(format!("factor.{name}.levels[{index}]"), message).with_hint(hint))
    });
    levels.collect()
}

/// Why the file does not take this value, and what it takes, where that is known.
fn refused_value(
    kind: FactorKind,
    path: &str,
    content: &SettingContent,
    value: &str,
) -> Option<(String, String)> {
    let is_number = |word: &str| parse_number(word).is_some();
    if !content.offered.is_empty() {
        // Some of these files take the number of a word, too.
        let known = content.offered.iter().any(|word| is_same_value(word, value)) || is_number(value);
        let hint = || perflab_model::suggest_name(value, content.offered.iter().map(String::as_str));
        return (!known).then(|| (format!("{path} does not offer `{value}`"), hint()));
    }
    let mut now = content.value.split_whitespace().peekable();
    let keeps_numbers = kind.spec().file.is_some_and(|file| file.keeps_numbers);
    let holds_numbers = keeps_numbers && now.peek().is_some() && now.all(is_number);
    if holds_numbers && !value.split_whitespace().all(is_number) {
        let hint = format!("it holds `{}` now", content.value);
        return Some((format!("{path} holds numbers, and `{value}` is none"), hint));
    }
    None
}

fn has_write_bit(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o222 != 0)
}

/// A file that is not there, with the nearest name of where it should be.
struct MissingFile {
    message: String,
    hint: String,
}

impl MissingFile {
    fn into_problem(self, key: String) -> Problem {
        Problem::new(key, self.message).with_hint(self.hint)
    }
}

fn describe_missing_file(name: &str, kind: FactorKind, key: &str, path: &Path) -> MissingFile {
    let file = kind.spec().file;
    let message = match file.and_then(|file| file.noun) {
        Some(noun) => format!("factor `{name}`: there is no {noun} `{key}`"),
        None => format!("factor `{name}`: {} is not there", path.display()),
    };
    let near = nearest_name(path).zip(file).map(|(near, file)| (file.spell)(key, path, &near));
    let hint = near.map_or_else(
        || "this kernel lacks it: check the name, or leave the factor out".to_owned(),
        |near| format!("did you mean `{near}`? otherwise this kernel lacks it: leave the factor out"),
    );
    MissingFile { message, hint }
}

/// The existing file whose name is nearest, where only the last part of the path or the folder before it is misspelt.
fn nearest_name(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?;
    if folder.is_dir() {
        return nearest_name_in(folder, path.file_name()?.to_str()?);
    }
    let folder = nearest_name(folder).filter(|folder| folder.is_dir())?;
    let file = folder.join(path.file_name()?);
    if file.exists() { Some(file) } else { nearest_name_in(&folder, path.file_name()?.to_str()?) }
}

fn nearest_name_in(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    perflab_model::nearest_name(name, names.iter().map(String::as_str)).map(|near| folder.join(near))
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
            synonym_file(Path::new("/x/vm/nr_hugepages_mempolicy")),
            Some("/x/vm/nr_hugepages".into())
        );
    }

    #[test]
    fn the_word_in_brackets_is_in_force_and_all_are_offered() {
        let content = SettingContent::parse("always [madvise] never\n");
        assert_eq!((content.value.as_str(), content.offered.len()), ("madvise", 3));
        assert_eq!(SettingContent::parse("[none]\n").offered, ["none"]);
        for plain in ["60", "a [b] c [d]", "[] a", "32768\t60999"] {
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

    /// A recorded tree of the few files that these tests need.
    fn recorded_tree() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("proc/sys/vm/swappiness", "60\n"),
            ("proc/sys/vm/drop_caches", "0\n"),
            ("proc/sys/vm/dirty_bytes", "0\n"),
            ("proc/sys/vm/dirty_ratio", "20\n"),
            ("proc/sys/vm/nr_hugepages", "0\n"),
            ("proc/sys/vm/nr_hugepages_mempolicy", "0\n"),
            ("proc/sys/net/ipv4/tcp_congestion_control", "cubic\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ] {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        home
    }

    fn factor_messages(factor: &str) -> Vec<String> {
        let home = recorded_tree();
        let text = format!("title = \"t\"\n[workload.w]\n[factor.f]\n{factor}\n");
        let source = perflab_model::study::TomlSource::new("s.toml", text);
        let study = source.parse_study().unwrap();
        let settings =
            resolve_settings(&study, &ExpressionScope::default(), FactorSide::Host).unwrap_or_default();
        let found = setting_problems(&study, &settings, &Root(home.path().to_path_buf()));
        let home = home.path().display().to_string();
        let problems = source.place_problems(found);
        problems.to_string().lines().map(|line| line.replace(&home, "")).collect()
    }

    /// The problems of two factors on these files.
    fn factor_pair_messages(one: &str, two: &str) -> Vec<String> {
        factor_messages(&format!("{one}\n[factor.g]\n{two}"))
    }

    #[test]
    fn factors_that_change_one_another_are_refused() {
        let swappiness = "kind = \"sysctl\"\nkey = \"vm.swappiness\"\nlevels = [1, 2]";
        let file = |path: &str| format!("kind = \"file\"\nkey = \"{path}\"\nlevels = [1, 2]");
        let sysctl = |key: &str| format!("kind = \"sysctl\"\nkey = \"{key}\"\nlevels = [1, 2]");
        insta::assert_snapshot!(
            [
                factor_pair_messages(swappiness, &file("/proc/sys/vm/swappiness")),
                factor_pair_messages(swappiness, &file("/proc/sys/net/../vm/swappiness")),
                factor_pair_messages(&sysctl("vm.dirty_bytes"), &sysctl("vm.dirty_ratio")),
                factor_pair_messages(&sysctl("vm.nr_hugepages"), &sysctl("vm/nr_hugepages_mempolicy")),
                factor_pair_messages(swappiness, &sysctl("vm.dirty_ratio")),
                factor_messages(&file("/proc/sys/net/../vm/drop_caches")),
            ]
            .concat()
            .join("\n"),
            @r#"
        s.toml:9:1: `factor.g.key`: factors `f` and `g` write to one file, /proc/sys/vm/swappiness; make one factor of them, or leave one out
        s.toml:9:1: `factor.g.key`: factors `f` and `g` write to one file: /proc/sys/vm/swappiness is /proc/sys/net/../vm/swappiness; make one factor of them, or leave one out
        s.toml:9:1: `factor.g.key`: factors `f` and `g` undo each other: writing /proc/sys/vm/dirty_ratio zeroes /proc/sys/vm/dirty_bytes, and the other way round; make one factor of them, or leave one out
        s.toml:9:1: `factor.g.key`: factors `f` and `g` write to one value: /proc/sys/vm/nr_hugepages and /proc/sys/vm/nr_hugepages_mempolicy are names of it; make one factor of them, or leave one out
        s.toml:5:1: `factor.f.key`: factor `f`: /proc/sys/net/../vm/drop_caches is no setting: what it was cannot be put back; a factor of `kind = "drop-caches"` drops caches before each iteration
        "#
        );
    }

    #[test]
    fn words_that_a_file_does_not_offer() {
        insta::assert_snapshot!(
            factor_messages("kind = \"file\"\nkey = \"/sys/kernel/mm/transparent_hugepage/enabled\"\nlevels = [\"never\", \"allways\"]").join("\n"),
            @"s.toml:6:20: `factor.f.levels[1]`: factor `f`, level `allways`: /sys/kernel/mm/transparent_hugepage/enabled does not offer `allways`; did you mean `always`?"
        );
    }

    #[test]
    fn names_that_are_not_there_and_texts_for_numbers() {
        let sysctl = |key: &str, levels: &str| {
            factor_messages(&format!("kind = \"sysctl\"\nkey = \"{key}\"\nlevels = {levels}"))
        };
        insta::assert_snapshot!(
            [
                sysctl("vm.swapiness", "[1, 2]"),
                sysctl("vmm.swappiness", "[1, 2]"),
                sysctl("vm/swapiness", "[1, 2]"),
                sysctl("no.such", "[1, 2]"),
                sysctl("vm.swappiness", "[1, \"high\"]"),
                sysctl("vm.drop_caches", "[0, 3]"),
                sysctl("net.ipv4.tcp_congestion_control", "[\"cubic\", \"bbr\"]"),
            ]
            .concat()
            .join("\n"),
            @r#"
        s.toml:5:1: `factor.f.key`: factor `f`: there is no sysctl `vm.swapiness`; did you mean `vm.swappiness`? otherwise this kernel lacks it: leave the factor out
        s.toml:5:1: `factor.f.key`: factor `f`: there is no sysctl `vmm.swappiness`; did you mean `vm.swappiness`? otherwise this kernel lacks it: leave the factor out
        s.toml:5:1: `factor.f.key`: factor `f`: there is no sysctl `vm/swapiness`; did you mean `vm/swappiness`? otherwise this kernel lacks it: leave the factor out
        s.toml:5:1: `factor.f.key`: factor `f`: there is no sysctl `no.such`; this kernel lacks it: check the name, or leave the factor out
        s.toml:6:14: `factor.f.levels[1]`: factor `f`, level `high`: /proc/sys/vm/swappiness holds numbers, and `high` is none; it holds `60` now
        s.toml:5:1: `factor.f.key`: factor `f`: /proc/sys/vm/drop_caches is no setting: what it was cannot be put back; a factor of `kind = "drop-caches"` drops caches before each iteration
        "#
        );
    }
}
