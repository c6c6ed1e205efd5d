//! A preset: a setting under a name of its own, which says which files it is, what its levels write to them, how much the kernel may
//! make another value of it, and what it needs.
//!
//! Presets are TOML: one file each below `settings/`, or `[preset.NAME]` in a study.

use std::fmt;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error_class::{Classify, ErrorClass};
use crate::problem::Problem;
use crate::quantity::{Bytes, Nanos, Ratio, parse_hertz};

/// One preset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SettingPreset {
    /// One line: what is set.
    pub title: String,
    /// What it does to measurements, and what to know before it is set.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// What it needs, where it is not there on every machine.
    #[serde(default, skip_serializing_if = "PresetNeeds::is_empty")]
    pub needs: PresetNeeds,
    /// Presets that change what this one is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// What `NAME:PART` means; absent for a preset of which there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<PresetPart>,
    /// The files: of several tables the first counts that takes the level and whose files are there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file: Vec<PresetFile>,
    /// What carries it out where writing files does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<SettingMechanism>,
    /// Whether it is something that is done before every iteration, and of which nothing is to be undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trigger: bool,
    /// The level at which a machine is quiet, for `check` and `tune`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet: Option<QuietLevel>,
    /// Where it was really set, read back and undone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tried: String,
}

/// What a preset needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PresetNeeds {
    /// An option of the kernel, named without `CONFIG_`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// What the machine has to have: `a driver of CPU frequencies, which guests lack`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<String>,
}

impl PresetNeeds {
    /// Whether nothing is needed.
    pub fn is_empty(&self) -> bool {
        self.option.is_none() && self.hardware.is_none()
    }
}

/// What stands for `{part}` in a preset's paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PresetPart {
    /// What a part is: `a disk`.
    pub about: String,
    /// The part that is meant where none is named; `*` is all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Parts with other names than those in the paths: `2MiB = "2048"`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub words: IndexMap<String, String>,
    /// Whether parts are disks, of which `disk` is the study's own, and `under` the one under its loop device.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disk: bool,
}

/// Files that get one value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PresetFile {
    /// Paths below /proc or /sys, with `*` for any part of a name, and `{part}`.
    pub paths: Vec<String>,
    /// Levels that are written otherwise than they are called: `on = "1"`. Where there are some and nothing is said of what else is
    /// taken, nothing else is.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub words: IndexMap<String, String>,
    /// What else is taken, and what is written of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<PresetValue>,
    /// The least and the greatest number that the kernel takes, of one that takes numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[i64; 2]>,
    /// A file beside it that lists the words that it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_by: Option<String>,
    /// What the kernel may make of a value.
    #[serde(default, skip_serializing_if = "ValueTolerance::is_exact")]
    pub tolerance: ValueTolerance,
}

/// What a level is, and what is written of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PresetValue {
    /// a word, as it is
    Word,
    /// a whole number
    Number,
    /// a size, written in bytes: `64MiB`
    Bytes,
    /// a size, written in KiB: `128KiB`
    Kibibytes,
    /// a frequency, written in kHz: `2.4GHz`
    Kilohertz,
    /// a time, written in nanoseconds: `20us`
    Nanoseconds,
    /// a time, written in microseconds: `75us`
    Microseconds,
    /// a time, written in milliseconds: `10ms`
    Milliseconds,
    /// a share, written as a number of per cent: `10%`
    Percent,
}

impl PresetValue {
    /// What a level of this kind looks like.
    pub fn example(self) -> &'static str {
        match self {
            PresetValue::Word => "a word that the kernel offers",
            PresetValue::Number => "a whole number",
            PresetValue::Bytes => "a size, such as 64MiB",
            PresetValue::Kibibytes => "a size in whole KiB, such as 128KiB",
            PresetValue::Kilohertz => "a frequency, such as 2.4GHz",
            PresetValue::Nanoseconds => "a time, such as 20us",
            PresetValue::Microseconds => "a time, such as 75us",
            PresetValue::Milliseconds => "a time, such as 10ms",
            PresetValue::Percent => "whole per cent, such as 10%",
        }
    }

    /// What was read, as a level.
    pub fn level_of(self, value: &str) -> String {
        let number = || value.parse::<u64>().ok();
        let text = match self {
            PresetValue::Word | PresetValue::Number => None,
            PresetValue::Bytes => number().map(|bytes| Bytes(bytes).to_study_text()),
            PresetValue::Kibibytes => {
                number().and_then(|size| Some(Bytes(size.checked_mul(1 << 10)?).to_study_text()))
            }
            PresetValue::Kilohertz => number().map(|kilohertz| match kilohertz {
                kilohertz if kilohertz.is_multiple_of(1_000) => format!("{}MHz", kilohertz / 1_000),
                kilohertz => format!("{kilohertz}kHz"),
            }),
            PresetValue::Nanoseconds => number().map(|nanos| format!("{nanos}ns")),
            PresetValue::Microseconds => number().map(|micros| format!("{micros}us")),
            PresetValue::Milliseconds => number().map(|millis| format!("{millis}ms")),
            PresetValue::Percent => Some(format!("{value}%")),
        };
        text.unwrap_or_else(|| value.to_owned())
    }

    /// What is written of a level; none where it is of another kind, or of no whole number of units.
    pub fn translate(self, level: &str) -> Option<String> {
        let whole = |amount: u64, unit: u64| amount.is_multiple_of(unit).then(|| (amount / unit).to_string());
        match self {
            PresetValue::Word => {
                let is_word = |character: char| !character.is_control();
                (!level.is_empty() && level.chars().all(is_word)).then(|| level.to_owned())
            }
            PresetValue::Number => level.parse::<i64>().ok().map(|number| number.to_string()),
            PresetValue::Bytes => whole(Bytes::parse(level).ok()?.0, 1),
            PresetValue::Kibibytes => whole(Bytes::parse(level).ok()?.0, 1 << 10),
            PresetValue::Kilohertz => whole(parse_hertz(level).ok()?, 1_000),
            PresetValue::Nanoseconds => whole(Nanos::parse(level).ok()?.0, 1),
            PresetValue::Microseconds => whole(Nanos::parse(level).ok()?.0, 1_000),
            PresetValue::Milliseconds => whole(Nanos::parse(level).ok()?.0, 1_000_000),
            PresetValue::Percent => {
                let percent = Ratio::parse_within(level, 0.0..=1.0).ok()?.percent();
                (percent.fract() == 0.0).then(|| percent.to_string())
            }
        }
    }
}

/// What the kernel may make of a value that is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ValueTolerance {
    /// nothing else: another value is an error
    #[default]
    Exact,
    /// a value near it, which is recorded; none at all is an error
    Rounded,
    /// less of it, which is recorded: as many huge pages as there was memory for; none at all is an error
    Less,
    /// some of the files may refuse it: interrupts that cannot be moved
    Some,
}

impl ValueTolerance {
    /// Whether nothing else is tolerated.
    pub fn is_exact(&self) -> bool {
        *self == ValueTolerance::Exact
    }
}

impl fmt::Display for ValueTolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ValueTolerance::Exact => "as asked, or an error",
            ValueTolerance::Rounded => "the kernel may round it",
            ValueTolerance::Less => "as much as was got",
            ValueTolerance::Some => "where the kernel allows it",
        })
    }
}

/// What carries a preset out that no writing of files does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SettingMechanism {
    /// as many CPUs as the level says are online, the first ones
    CpusOnline,
    /// /dev/cpu_dma_latency is held open with the level
    WakeupLatency,
    /// words of the scheduler in debugfs: `+NAME -NAME`
    SchedulerFeatures,
    /// swap areas: `none`, `file:SIZE`, `zram:SIZE:ALGORITHM`
    Swap,
    /// interrupts go to these CPUs: `0-1`
    Interrupts,
    /// packets of a network device wait so to be sent: `netem delay 10ms`
    QueueDiscipline,
    /// a network device does it in place of the kernel: `on`, `off`
    Offload,
    /// a control group that the workload is executed in is limited so
    ControlGroup,
}

impl SettingMechanism {
    /// Whether what it sets stays when perflab ends.
    pub fn lasts(self) -> bool {
        !matches!(self, SettingMechanism::WakeupLatency | SettingMechanism::ControlGroup)
    }
}

/// The level at which a machine is quiet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuietLevel {
    /// The level.
    pub level: String,
    /// Further levels that are as good.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<String>,
    /// What any other does.
    pub why: String,
}

impl PresetFile {
    /// What is written for a level; none where these files do not take it.
    pub fn translate(&self, level: &str) -> Option<String> {
        if let Some(written) = self.words.get(level) {
            return Some(written.clone());
        }
        let takes = self.takes.or(self.words.is_empty().then_some(PresetValue::Word));
        let written = takes?.translate(level)?;
        let is_taken = |[least, greatest]: [i64; 2]| {
            written.parse().is_ok_and(|number: i64| (least..=greatest).contains(&number))
        };
        self.range.is_none_or(is_taken).then_some(written)
    }

    /// What a value that was read is called as a level; the value where no word stands for it.
    pub fn level_of(&self, value: &str) -> String {
        let word = self.words.iter().find(|(_, written)| *written == value).map(|(word, _)| word.clone());
        word.or_else(|| Some(self.takes?.level_of(value))).unwrap_or_else(|| value.to_owned())
    }

    /// What it takes, for people.
    pub fn describe_levels(&self) -> String {
        let words = self.words.keys().cloned();
        let takes = self.takes.or(self.words.is_empty().then_some(PresetValue::Word));
        let example = |takes: PresetValue| match self.range {
            Some([least, greatest]) => format!("{} from {least} to {greatest}", takes.example()),
            None => takes.example().to_owned(),
        };
        words.chain(takes.map(example)).collect::<Vec<_>>().join(", ")
    }
}

impl SettingPreset {
    /// What its levels are, for people.
    pub fn describe_levels(&self) -> String {
        let own = match self.mechanism {
            Some(SettingMechanism::CpusOnline) => Some("a number of CPUs"),
            Some(SettingMechanism::WakeupLatency) => Some("any, a time such as 20us"),
            Some(SettingMechanism::SchedulerFeatures) => Some("words such as `+NEXT_BUDDY -TTWU_QUEUE`"),
            Some(SettingMechanism::Swap) => {
                Some("unchanged, none, file:SIZE, zram:SIZE, zram:SIZE:ALGORITHM")
            }
            Some(SettingMechanism::Interrupts) => Some("a list of CPUs, such as 0-1"),
            Some(SettingMechanism::QueueDiscipline) => {
                Some("default, or words of tc such as `netem delay 10ms`")
            }
            Some(SettingMechanism::Offload) => Some("on, off"),
            Some(SettingMechanism::ControlGroup) => Some(
                "none, or a limit: of cpu-max a share of one CPU (50%, 250%), of memory-max and memory-high a size, of pids-max a number, of io-max rates (`rbps=10MiB wiops=100`), of isolated-cpus a list of CPUs",
            ),
            None => None,
        };
        let mut found: Vec<String> = own.map(str::to_owned).into_iter().collect();
        for text in self.file.iter().map(PresetFile::describe_levels) {
            if !found.contains(&text) {
                found.push(text);
            }
        }
        found.join("; or ")
    }

    /// What is wrong with it, with keys below its own.
    pub fn problems(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        if self.file.is_empty() && self.mechanism.is_none() {
            let problem = Problem::new("", "sets nothing");
            found.push(problem.with_hint("add `[[file]]` with `paths`"));
        }
        for (index, file) in self.file.iter().enumerate() {
            let key = format!("file[{index}].paths");
            if file.paths.is_empty() {
                found.push(Problem::new(&key, "names no file"));
            }
            for path in &file.paths {
                if let Some(message) = path_problem(path, self.part.is_some()) {
                    let hint = "write /sys/…, with `*` for any part of a name and `{part}` for what `[part]` is about";
                    found.push(Problem::new(&key, format!("`{path}` {message}")).with_hint(hint));
                }
            }
            let is_range =
                |[least, greatest]: [i64; 2]| file.takes == Some(PresetValue::Number) && least <= greatest;
            if !file.range.is_none_or(is_range) {
                let problem = Problem::new(format!("file[{index}].range"), "is no range of numbers");
                found
                    .push(problem.with_hint("write the least and the greatest, beside `takes = \"number\"`"));
            }
            if file.offered_by.as_deref().is_some_and(|name| name.contains('/')) {
                let problem =
                    Problem::new(format!("file[{index}].offered-by"), "is a file in the same folder");
                found.push(problem.with_hint("give its bare name"));
            }
        }
        found
    }
}

fn path_problem(path: &str, has_part: bool) -> Option<&'static str> {
    if !["/proc/", "/sys/"].iter().any(|root| path.starts_with(root)) {
        return Some("is not under /proc or /sys");
    }
    if path.split('/').any(|part| part == "..") {
        return Some("leaves its folder");
    }
    let bare = path.replace("{part}", "");
    if bare.contains(['{', '}']) {
        return Some("has a placeholder that is not known");
    }
    (bare.len() < path.len() && !has_part).then_some("has a `{part}`, and there is no `[part]`")
}

/// A preset's name with the part that is meant: `io-scheduler`, `io-scheduler:vda`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PresetName<'a> {
    /// The preset.
    pub preset: &'a str,
    /// Its part, where one is named.
    pub part: Option<&'a str>,
}

impl<'a> PresetName<'a> {
    /// As a factor's `key` names it.
    pub fn new(text: &'a str) -> Self {
        match text.split_once(':') {
            Some((preset, part)) => PresetName { preset, part: Some(part) },
            None => PresetName { preset: text, part: None },
        }
    }
}

/// A preset at one level: all that is needed to carry it out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PresetLevel {
    /// `thp`, `io-scheduler:vda`
    pub name: String,
    /// The level, as the study says it.
    pub level: String,
    /// What stands for `{part}`: a name, or `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Whether the part is one of the study's own disks, `disk` or `under`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_disk: bool,
    /// The preset's files that take the level.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PresetFile>,
    /// Its mechanism.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<SettingMechanism>,
    /// Whether it is done before every iteration.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trigger: bool,
    /// What it needs, for who finds it missing.
    #[serde(default, skip_serializing_if = "PresetNeeds::is_empty")]
    pub needs: PresetNeeds,
}

/// A level that a preset does not take, or a part that it has not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PresetLevelError {
    /// what is wrong
    pub message: String,
    /// what would be right
    pub hint: String,
    /// whether it is the part, not the level
    pub is_part: bool,
}

impl Classify for PresetLevelError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }
}

impl PresetLevel {
    /// A preset as `name` calls it, at `level`.
    ///
    /// # Errors
    /// It has no such part, or does not take the level.
    pub fn new(name: &str, preset: &SettingPreset, level: &str) -> Result<Self, PresetLevelError> {
        let level = level.trim();
        let (part, of_disk) = choose_part(name, preset)?;
        let files: Vec<PresetFile> =
            preset.file.iter().filter(|file| file.translate(level).is_some()).cloned().collect();
        if files.is_empty() && preset.mechanism.is_none() {
            return Err(PresetLevelError {
                message: format!("`{name}` does not take `{level}`"),
                hint: format!("it takes {}", preset.describe_levels()),
                is_part: false,
            });
        }
        Ok(PresetLevel {
            name: name.into(),
            level: level.into(),
            part,
            of_disk,
            files,
            mechanism: preset.mechanism,
            trigger: preset.trigger,
            needs: preset.needs.clone(),
        })
    }
}

impl SettingPreset {
    /// Refuses a name with a part that the preset has not.
    ///
    /// # Errors
    /// Which part, and what one would be.
    pub fn check_part(&self, name: &str) -> Result<(), PresetLevelError> {
        match PresetName::new(name).part {
            Some(_) => choose_part(name, self).map(|_| ()),
            None => Ok(()),
        }
    }
}

fn choose_part(name: &str, preset: &SettingPreset) -> Result<(Option<String>, bool), PresetLevelError> {
    let given = PresetName::new(name).part;
    let refuse = |message: String, hint: String| Err(PresetLevelError { message, hint, is_part: true });
    let Some(spec) = &preset.part else {
        return match given {
            None => Ok((None, false)),
            Some(part) => {
                refuse(format!("`{name}`: there are no parts, so `{part}` is none"), "leave it out".into())
            }
        };
    };
    let Some(part) = given.or(spec.default.as_deref()) else {
        let known = spec.words.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let hint = format!("write `{name}:PART`, where the part is {} ({known})", spec.about);
        return refuse(format!("`{name}` needs a part"), hint.replace(" ()", ""));
    };
    let of_disk = spec.disk && matches!(part, "disk" | "under");
    let part = spec.words.get(part).map_or(part, String::as_str);
    let is_name = |character: char| character.is_ascii_alphanumeric() || "_-.*".contains(character);
    if part.is_empty() || part.starts_with('.') || !part.chars().all(is_name) {
        return refuse(format!("`{part}` is no part of `{name}`"), format!("name {}", spec.about));
    }
    Ok((Some(part.to_owned()), of_disk))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset(text: &str) -> SettingPreset {
        toml::from_str(&format!("title = \"t\"\n{text}")).unwrap()
    }

    #[test]
    fn levels_are_quantities_words_or_what_the_kernel_offers() {
        let translate = |kind: PresetValue, level: &str| kind.translate(level);
        assert_eq!(translate(PresetValue::Kibibytes, "4MiB").as_deref(), Some("4096"));
        assert_eq!(translate(PresetValue::Kibibytes, "100B"), None, "no whole KiB");
        assert_eq!(translate(PresetValue::Kilohertz, "2.4GHz").as_deref(), Some("2400000"));
        assert_eq!(translate(PresetValue::Milliseconds, "1.5s").as_deref(), Some("1500"));
        assert_eq!(translate(PresetValue::Percent, "10%").as_deref(), Some("10"));
        assert_eq!(translate(PresetValue::Percent, "120%"), None);
        assert_eq!(translate(PresetValue::Number, "1.5"), None);
        for (kind, value, level) in [
            (PresetValue::Kibibytes, "33792", "33MiB"),
            (PresetValue::Kibibytes, "100", "100KiB"),
            (PresetValue::Bytes, "268435456", "256MiB"),
            (PresetValue::Kilohertz, "800000", "800MHz"),
            (PresetValue::Percent, "7", "7%"),
            (PresetValue::Milliseconds, "10", "10ms"),
        ] {
            assert_eq!(
                (kind.level_of(value).as_str(), kind.translate(level).as_deref()),
                (level, Some(value))
            );
        }
        assert_eq!(translate(PresetValue::Word, "a\nb"), None);
        let boost = preset("[[file]]\npaths = [\"/sys/a\"]\nwords = { on = \"0\", off = \"1\" }\n");
        assert_eq!(boost.file[0].translate("on").as_deref(), Some("0"));
        assert_eq!(boost.file[0].translate("1"), None);
        assert_eq!(boost.file[0].level_of("1"), "off");
    }

    #[test]
    fn a_level_goes_to_the_files_that_take_it_and_a_part_is_a_name() {
        let text = "[part]\nabout = \"a size\"\ndefault = \"2048\"\nwords = { 1GiB = \"1048576\" }\n\
                    [[file]]\npaths = [\"/sys/{part}/a\"]\ntakes = \"percent\"\n\
                    [[file]]\npaths = [\"/sys/b\"]\ntakes = \"bytes\"\n";
        let preset = preset(text);
        assert_eq!(preset.problems(), []);
        let level = PresetLevel::new("x:1GiB", &preset, "10%").unwrap();
        assert_eq!((level.part.as_deref(), level.files.len()), (Some("1048576"), 1));
        assert_eq!(PresetLevel::new("x", &preset, "1MiB").unwrap().files[0].paths, ["/sys/b"]);
        for (name, level) in [("x", "much"), ("x:../../etc", "10%"), ("x:", "10%"), ("x:a/b", "10%")] {
            assert!(PresetLevel::new(name, &preset, level).is_err(), "{name} {level}");
        }
        assert!(preset.check_part("x").is_ok() && preset.check_part("x:a/b").is_err());
    }

    #[test]
    fn a_number_that_the_kernel_does_not_take_is_no_level() {
        let of = |file: &str| preset(&format!("[[file]]\npaths = [\"/sys/a\"]\n{file}\n"));
        let bounded = of("takes = \"number\"\nrange = [0, 200]");
        for (level, is_taken) in [("0", true), ("200", true), ("201", false), ("-1", false), ("x", false)] {
            assert_eq!(PresetLevel::new("x", &bounded, level).is_ok(), is_taken, "{level}");
        }
        assert_eq!(bounded.describe_levels(), "a whole number from 0 to 200");
        assert_eq!(bounded.problems(), []);
        for wrong in ["takes = \"number\"\nrange = [2, 1]", "takes = \"bytes\"\nrange = [1, 2]"] {
            assert_eq!(of(wrong).problems().len(), 1, "{wrong}");
        }
        assert!(bounded.check_part("x:part").is_err());
    }

    #[test]
    fn paths_stay_below_proc_and_sys() {
        let of = |path: &str| preset(&format!("[[file]]\npaths = [\"{path}\"]\n")).problems().len();
        assert_eq!(
            ["/sys/a*", "/etc/passwd", "/sys/../etc", "/sys/{x}", "/sys/{part}"].map(of),
            [0, 1, 1, 1, 1]
        );
        assert_eq!(preset("").problems().len(), 1);
    }
}
