//! The settings of a study: what each level sets, and what of it this machine cannot have.
//!
//! They are worked out before anything is changed, and checked without writing, not even the same value: files that are
//! missing or read-only, words that a file does not offer, texts where numbers are.

use std::path::{Path, PathBuf};

use perflab_model::expression::{ExpressionError, ExpressionScope};
use perflab_model::study::{Factor, FactorKind, FactorLevel, FactorSide, LevelValue, Study};
use perflab_model::{
    PlannedSetting, PresetLevel, PresetLevelError, PresetName, Problem, Refusal, Setting, normalize_path,
};
use perflab_observe::Root;
use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::container_settings::container_problems;
use crate::preset_files::{SettingSite, find_preset_refusal};
use crate::preset_list::PresetList;
use crate::setting::{
    FileIdentity, SettingContent, counterpart_file, has_write_bit, is_same_value, parse_number,
    synonym_files, writes_through,
};
use crate::setting_place::{factor_key, setting_key, written_paths};
use crate::sysctl_ranges::find_sysctl_range;

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
    let presets = PresetList::of_study(study);
    for (name, fixed) in &study.settings {
        let on = (!study.target.is_empty()).then(|| fixed.on.unwrap_or(FactorSide::Host));
        let scope = Some(scope).filter(|_| on.is_none_or(|on| on == here));
        let key = format!("settings.{name}");
        let text = fixed.level.to_string();
        let level = match scope.map(|scope| scope.render(&text)).transpose() {
            Ok(rendered) => rendered.unwrap_or(text),
            Err(error) => return Err(Problem::new(key, error.to_string())),
        };
        let setting = resolve_preset(&presets, name, &level, (&key, &key), scope.is_some())?;
        let (factor, fixed) = (name.clone(), true);
        resolved.push(PlannedSetting { factor, level, fixed, on, setting });
    }
    for (name, factor) in &study.factor {
        let on = (!study.target.is_empty()).then(|| factor.on.unwrap_or(FactorSide::Host));
        let scope = Some(scope).filter(|_| on.is_none_or(|on| on == here));
        for (index, level) in factor.levels.iter().enumerate() {
            let key = format!("factor.{name}.levels[{index}]");
            let value = render_level(factor, level, scope)
                .map_err(|error| Problem::new(key.clone(), error.to_string()))?;
            let setting = if factor.kind.spec().takes_preset {
                let preset = factor.key.as_deref().unwrap_or(name);
                let keys = (factor_key(name, factor), key);
                Some(resolve_preset(&presets, preset, &value, (&keys.0, &keys.1), scope.is_some())?)
            } else {
                factor.kind.level_setting(&LevelValue {
                    factor: name,
                    key: factor.key.as_deref().unwrap_or(name),
                    level: &level.name,
                    value: &value,
                    apply: &level.apply,
                    undo: &level.undo,
                })
            };
            resolved.extend(setting.map(|setting| PlannedSetting {
                factor: name.clone(),
                level: level.name.clone(),
                fixed: false,
                on,
                setting,
            }));
        }
    }
    Ok(resolved)
}

/// The value of a level; without a scope, as it is written.
fn render_level(
    factor: &Factor,
    level: &FactorLevel,
    scope: Option<&ExpressionScope>,
) -> Result<String, ExpressionError> {
    let text = level.value.to_string();
    match scope.filter(|_| factor.kind.spec().is_templated && factor.kind.is_set_on_machine()) {
        Some(scope) => scope.render(&text),
        None => Ok(text),
    }
}

/// A preset at a level; `keys` are those of its name and of its level in the study. A level that another side works out is not looked
/// at here.
fn resolve_preset(
    presets: &PresetList,
    name: &str,
    level: &str,
    (name_key, level_key): (&str, &str),
    is_here: bool,
) -> Result<Setting, Problem> {
    let preset =
        presets.get(name).map_err(|Refusal { what, hint }| Problem::new(name_key, what).with_hint(hint))?;
    match PresetLevel::new(name, preset, level) {
        Ok(level) => Ok(Setting::Preset(Box::new(level))),
        Err(_) if !is_here && level.contains("{{") => Ok(Setting::Preset(Box::new(PresetLevel {
            name: name.into(),
            level: level.into(),
            part: None,
            of_disk: false,
            files: preset.file.clone(),
            mechanism: preset.mechanism,
            trigger: preset.trigger,
            needs: preset.needs.clone(),
        }))),
        Err(PresetLevelError { message, hint, is_part }) => {
            Err(Problem::new(if is_part { name_key } else { level_key }, message).with_hint(hint))
        }
    }
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
    found.extend(preset_problems(study, settings, root));
    found.extend(setting_conflicts(study, settings, root));
    found.extend(container_problems(study, settings, root));
    found
}

/// Presets that this machine does not have, or not at that level.
fn preset_problems(study: &Study, settings: &[PlannedSetting], root: &Root) -> Vec<Problem> {
    let site = SettingSite { root, disk: None };
    let problem = |planned: &PlannedSetting| {
        let Setting::Preset(level) = &planned.setting else { return None };
        let Refusal { what, hint } = find_preset_refusal(level, site)?;
        // Who may not write is refused when the study is run.
        let is_denied = !rustix::process::geteuid().is_root() && what.contains("cannot ");
        let message = if planned.fixed { what } else { format!("factor `{}`: {what}", planned.factor) };
        (!is_denied).then(|| Problem::new(level_key(study, planned), message).with_hint(hint))
    };
    let here = settings.iter().filter(|planned| planned.is_set_on(Some(FactorSide::Host)));
    let mut found: Vec<Problem> = Vec::new();
    for problem in here.filter_map(problem) {
        // One that is not there at all is not told for each of its levels.
        if !found.iter().any(|known| known.message == problem.message) {
            found.push(problem);
        }
    }
    found
}

/// Where a setting's level stands in the study.
fn level_key(study: &Study, planned: &PlannedSetting) -> String {
    let name = &planned.factor;
    if planned.fixed {
        return format!("settings.{name}");
    }
    let levels = study.factor.get(name).map(|factor| factor.levels.iter());
    let index = levels.and_then(|mut levels| levels.position(|level| level.name == planned.level));
    format!("factor.{name}.levels[{}]", index.unwrap_or_default())
}

/// A file that a factor or a line of `[settings]` writes to.
struct SettingFile {
    /// its factor, or its name under `[settings]`
    name: String,
    /// its key in the study
    key: String,
    fixed: bool,
    side: FactorSide,
    path: PathBuf,
    identity: FileIdentity,
}

impl SettingFile {
    fn all(study: &Study, settings: &[PlannedSetting], root: &Root) -> Vec<Self> {
        let mut found: Vec<SettingFile> = Vec::new();
        for planned in settings {
            let side = planned.on.unwrap_or(FactorSide::Host);
            for path in written_paths(&planned.setting, root) {
                let is_known = |known: &SettingFile| {
                    (&known.name, known.fixed, &known.path) == (&planned.factor, planned.fixed, &path)
                };
                if found.iter().any(is_known) {
                    continue;
                }
                let (name, key) = (planned.factor.clone(), setting_key(study, planned));
                let identity = side_file_identity(side, &path);
                found.push(SettingFile { name, key, fixed: planned.fixed, side, path, identity });
            }
        }
        found
    }

    fn has_same_owner(&self, other: &Self) -> bool {
        (&self.name, self.fixed) == (&other.name, other.fixed)
    }

    /// Both of them, for people.
    fn describe_pair(&self, other: &Self) -> String {
        let one = |file: &SettingFile| {
            if file.fixed { format!("`settings.{}`", file.name) } else { format!("factor `{}`", file.name) }
        };
        match (self.fixed, other.fixed) {
            (false, false) => format!("factors `{}` and `{}`", self.name, other.name),
            _ => format!("{} and {}", one(self), one(other)),
        }
    }

    /// Why there cannot be two of these: what one of them changes is the other's.
    fn conflict_with(&self, other: &Self) -> Option<String> {
        if self.side != other.side {
            return None;
        }
        let (one, two) = (self.path.display(), other.path.display());
        if self.identity == other.identity {
            return Some(if one.to_string() == two.to_string() {
                format!("write to one file, {one}")
            } else {
                format!("write to one file: {one} is {two}")
            });
        }
        let counterpart = counterpart_file(&self.path);
        if counterpart.is_some_and(|path| side_file_identity(self.side, &path) == other.identity) {
            return Some(format!("undo each other: writing {two} zeroes {one}, and the other way round"));
        }
        let is_synonym = |own: &Self, other: &Self| {
            synonym_files(&own.path).iter().any(|path| side_file_identity(own.side, path) == other.identity)
        };
        if is_synonym(self, other) || is_synonym(other, self) {
            return Some(format!("write to one value: {one} and {two} are names of it"));
        }
        let wholes = [(self, other), (other, self)];
        let (whole, part) =
            wholes.into_iter().find(|(whole, part)| writes_through(&whole.path, &part.path))?;
        Some(format!("write to one value: {} sets {}, too", whole.path.display(), part.path.display()))
    }
}

/// What is in a guest is not looked at from here.
fn side_file_identity(side: FactorSide, path: &Path) -> FileIdentity {
    match side {
        FactorSide::Host => FileIdentity::of_path(path),
        FactorSide::Guest => FileIdentity::Path(normalize_path(path)),
    }
}

/// Settings of which one changes what another is about. A case would not have both levels, and what was there before the first
/// of them could not be distinguished from what the other wrote.
fn setting_conflicts(study: &Study, settings: &[PlannedSetting], root: &Root) -> Vec<Problem> {
    let all = SettingFile::all(study, settings, root);
    let pairs =
        all.iter().enumerate().flat_map(|(index, two)| all.iter().take(index).map(move |one| (one, two)));
    let mut found: Vec<Problem> = Vec::new();
    let mut told: Vec<(&str, &str)> = Vec::new();
    for (one, two) in pairs.filter(|(one, two)| !one.has_same_owner(two)) {
        let Some(reason) = one.conflict_with(two) else { continue };
        let owners = (one.key.as_str(), two.key.as_str());
        if !told.contains(&owners) {
            told.push(owners);
            let message = format!("{} {reason}", one.describe_pair(two));
            let hint = "make one factor of them, or leave one out";
            found.push(Problem::new(two.key.clone(), message).with_hint(hint));
        }
    }
    found.extend(declared_conflicts(study, settings));
    found
}

/// Presets that say of themselves that they change what another is about.
fn declared_conflicts(study: &Study, settings: &[PlannedSetting]) -> Vec<Problem> {
    let presets = PresetList::of_study(study);
    let of_preset = settings.iter().filter_map(|planned| match &planned.setting {
        Setting::Preset(level) => Some((planned, PresetName::new(&level.name).preset)),
        _ => None,
    });
    let all: Vec<(&PlannedSetting, &str)> = of_preset.collect();
    let mut found: Vec<Problem> = Vec::new();
    for (index, (two, name)) in all.iter().enumerate() {
        for (one, other) in all.iter().take(index) {
            let is_one = (&one.factor, one.fixed) == (&two.factor, two.fixed);
            let names = |preset: &str, other: &str| {
                presets.get(preset).is_ok_and(|preset| preset.conflicts.iter().any(|name| name == other))
            };
            if is_one || one.on != two.on || !(names(name, other) || names(other, name)) {
                continue;
            }
            let message = format!("`{name}` and `{other}` change the same thing");
            let problem = Problem::new(level_key(study, two), message).with_hint("leave one out");
            if !found.iter().any(|known| known.message == problem.message) {
                found.push(problem);
            }
        }
    }
    found
}

/// The file that a factor writes to, on the machine that it is of.
fn written_file(name: &str, factor: &Factor) -> Option<String> {
    factor.kind.spec().file.map(|file| (file.path)(factor.key.as_deref().unwrap_or(name)))
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
    if let Some(([least, greatest], number)) = find_sysctl_range(path).zip(parse_number(value))
        && !(i128::from(least)..=i128::from(greatest)).contains(&number)
    {
        let hint = format!("write a number from {least} to {greatest}");
        return Some((format!("{path} does not take `{value}`"), hint));
    }
    if holds_numbers && !value.split_whitespace().all(is_number) {
        let hint = format!("it holds `{}` now", content.value);
        return Some((format!("{path} holds numbers, and `{value}` is none"), hint));
    }
    None
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
            ("proc/meminfo", "Hugepagesize:       2048 kB\n"),
            ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0\n"),
            ("proc/sys/kernel/watchdog", "1\n"),
            ("proc/sys/kernel/soft_watchdog", "1\n"),
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
        let switch = |key: &str| sysctl(key).replace("[1, 2]", "[0, 1]");
        insta::assert_snapshot!(
            [
                factor_pair_messages(swappiness, &file("/proc/sys/vm/swappiness")),
                factor_pair_messages(swappiness, &file("/proc/sys/net/../vm/swappiness")),
                factor_pair_messages(&sysctl("vm.dirty_bytes"), &sysctl("vm.dirty_ratio")),
                factor_pair_messages(&sysctl("vm.nr_hugepages"), &sysctl("vm/nr_hugepages_mempolicy")),
                factor_pair_messages(
                    &file("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"),
                    &sysctl("vm.nr_hugepages")
                ),
                factor_pair_messages(&switch("kernel.soft_watchdog"), &switch("kernel.watchdog")),
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
        s.toml:9:1: `factor.g.key`: factors `f` and `g` write to one value: /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages and /proc/sys/vm/nr_hugepages are names of it; make one factor of them, or leave one out
        s.toml:9:1: `factor.g.key`: factors `f` and `g` write to one value: /proc/sys/kernel/watchdog sets /proc/sys/kernel/soft_watchdog, too; make one factor of them, or leave one out
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
                sysctl("vm.swappiness", "[200, 201]"),
                sysctl("vm.dirty_ratio", "[-1, 100]"),
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
        s.toml:6:16: `factor.f.levels[1]`: factor `f`, level `201`: /proc/sys/vm/swappiness does not take `201`; write a number from 0 to 200
        s.toml:6:11: `factor.f.levels[0]`: factor `f`, level `-1`: /proc/sys/vm/dirty_ratio does not take `-1`; write a number from 0 to 100
        s.toml:5:1: `factor.f.key`: factor `f`: /proc/sys/vm/drop_caches is no setting: what it was cannot be put back; a factor of `kind = "drop-caches"` drops caches before each iteration
        "#
        );
    }
}
