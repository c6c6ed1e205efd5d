//! What can be known of a study's settings before any is changed: files that are not there or take no writing, words that a file
//! does not offer, texts where numbers are. Nothing is written for it, not even the same value.

use std::path::{Path, PathBuf};

use perflab_model::expression::ExpressionScope;
use perflab_model::study::{Factor, FactorKind, FactorSide, Study};
use perflab_model::{Problem, nearest};
use perflab_observe::Root;
use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::knob::sysctl_path;
use super::setting_file::{FileIdentity, counterpart_file, normalize_path, synonym_file};
use super::setting_value::{SettingContent, is_same_value, parse_number};

/// Files that are not settings: what is written to them is done at once, and nothing of it can be put back.
const TRIGGERS: [(&str, &str); 3] = [
    ("/proc/sys/vm/drop_caches", "a factor of `kind = \"drop-caches\"` drops caches before each iteration"),
    ("/proc/sys/vm/compact_memory", "a factor of `kind = \"commands\"` may write to it"),
    ("/proc/sysrq-trigger", "a factor of `kind = \"commands\"` may write to it"),
];

/// The problems of all settings that are made on this machine, each with the study's key.
pub fn setting_problems(study: &Study, scope: &ExpressionScope, root: &Root) -> Vec<Problem> {
    let everywhere = study.target.is_empty();
    let here = |factor: &Factor| everywhere || factor.on.unwrap_or(FactorSide::Host) == FactorSide::Host;
    let files = study.factor.iter().filter(|(_, factor)| here(factor));
    let mut found: Vec<Problem> =
        files.flat_map(|(name, factor)| factor_problems(name, factor, scope, root)).collect();
    found.extend(factor_conflicts(study, root));
    found
}

/// A factor that writes to a file.
struct FileFactor<'a> {
    name: &'a str,
    /// its place in the study
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
/// of them could not be told from what the other wrote.
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
    let key = factor.key.as_deref().unwrap_or(name);
    match factor.kind {
        FactorKind::Sysctl => Some(sysctl_path(key)),
        FactorKind::File => Some(key.to_owned()),
        _ => None,
    }
}

fn factor_key(name: &str, factor: &Factor) -> String {
    if factor.key.is_some() { format!("factor.{name}.key") } else { format!("factor.{name}") }
}

fn factor_problems(name: &str, factor: &Factor, scope: &ExpressionScope, root: &Root) -> Vec<Problem> {
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
    // Who may not read it is refused when the study is run, by what is said of rights.
    let Ok(content) = SettingContent::read(&path) else { return Vec::new() };
    let levels = factor.levels.iter().enumerate().filter_map(|(index, level)| {
        let value = scope.render(&level.value.to_string()).ok()?;
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
        let hint = || nearest::suggest_name(value, content.offered.iter().map(String::as_str));
        return (!known).then(|| (format!("{path} does not offer `{value}`"), hint()));
    }
    let mut now = content.value.split_whitespace().peekable();
    let holds_numbers = kind == FactorKind::Sysctl && now.peek().is_some() && now.all(is_number);
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
    let message = match kind {
        FactorKind::Sysctl => format!("factor `{name}`: there is no sysctl `{key}`"),
        _ => format!("factor `{name}`: {} is not there", path.display()),
    };
    let near = nearest_name(path).map(|near| match kind {
        FactorKind::Sysctl => sysctl_name(key, path, &near),
        _ => near.display().to_string(),
    });
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
    nearest::nearest_name(name, names.iter().map(String::as_str)).map(|near| folder.join(near))
}

/// `vm.swappiness` of `/proc/sys/vm/swappiness`, written as the user writes names.
fn sysctl_name(key: &str, path: &Path, near: &Path) -> String {
    let parts = key.split(['.', '/']).count();
    let base: PathBuf = path.components().take(path.components().count().saturating_sub(parts)).collect();
    let name = near.strip_prefix(base).unwrap_or(near).display().to_string();
    if key.contains('/') { name } else { name.replace('/', ".") }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let found = setting_problems(&study, &ExpressionScope::default(), &Root(home.path().to_path_buf()));
        let home = home.path().display().to_string();
        let problems = source.place_problems(found);
        problems.to_string().lines().map(|line| line.replace(&home, "")).collect()
    }

    /// What is said of two factors on these files.
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
