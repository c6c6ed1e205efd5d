//! A job file of lkp-tests as a study: sections of programs become workloads, lists become matrices, monitors and settings
//! their counterparts, by the table `lkp.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::OnceLock;

use indexmap::{IndexMap, IndexSet};
use perflab_model::problem::{nearest_name, suggest_name};
use serde::Deserialize;

use super::counterpart_table::parse_shipped_table;
use super::job_file::{JobEntry, JobFates, JobFile, read_job_file};
use super::line_account::{ConvertedStudy, LineAccount, LineFate};
use super::shell_value::shorten_foreign_text;
use super::study_text::{
    DEFAULT_ITERATIONS, describe_file, factor_name, is_slip, parse_shell_size, shorten_comment, toml_level,
    toml_string, workload_name, write_table,
};
use super::yaml_tree::{YamlEntry, YamlNode, YamlScalar};

/// What stands here for what lkp-tests has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ProgramTable {
    benchmark: BTreeMap<String, ProgramCounterpart>,
    elsewhere: BTreeMap<String, String>,
    monitors: BTreeMap<String, Vec<String>>,
    sysctl: BTreeMap<String, String>,
    without_meaning: BTreeMap<String, String>,
    by_hand: BTreeMap<String, String>,
}

/// What stands here for a program of lkp-tests, or for one of its tests.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ProgramCounterpart {
    workload: Option<String>,
    say: Option<String>,
    #[serde(default)]
    sections: Vec<String>,
    select: Option<String>,
    required: Option<String>,
    iterations: Option<String>,
    #[serde(default)]
    parameters: IndexMap<String, toml::Value>,
    #[serde(default)]
    without_meaning: BTreeMap<String, String>,
    #[serde(default)]
    variant: BTreeMap<String, ProgramCounterpart>,
}

fn program_table() -> &'static ProgramTable {
    static TABLE: OnceLock<ProgramTable> = OnceLock::new();
    TABLE.get_or_init(|| parse_shipped_table("lkp.toml", include_str!("lkp.toml")))
}

/// A study of the text of a job file; those that it includes lie in `folder`, or near it.
///
/// # Errors
/// The reason why there is none.
pub(super) fn convert_job_file(text: &str, folder: &Path, name: &str) -> Result<ConvertedStudy, String> {
    let JobFile { documents, fates } = read_job_file(text, folder, name)?;
    let mut writer = JobStudyWriter::new(name, fates);
    let parts = join_parts(&documents)?;
    for part in &parts {
        writer.add_part(part);
    }
    if writer.workloads.is_empty() {
        return Err(writer.no_counterpart(&parts));
    }
    writer.add_iterations();
    writer.add_shared_keys();
    writer.account_for_keys(&documents);
    let account = writer.fates.account_for(text);
    let text = writer.write_study(&describe_file(text), &account);
    Ok(ConvertedStudy { text, account })
}

/// A key where it stands: its file, and its lines in that.
#[derive(Debug, Clone, Copy)]
struct JobKey<'a> {
    source: usize,
    entry: &'a YamlEntry,
}

/// What holds for one part of the file: the last one of a name counts.
type JobPart<'a> = IndexMap<&'a str, JobKey<'a>>;

/// The parts of a job file: the first document alone, and with each of the others.
fn join_parts(documents: &[Vec<JobEntry>]) -> Result<Vec<JobPart<'_>>, String> {
    let mut first = JobPart::new();
    documents
        .first()
        .into_iter()
        .flatten()
        .for_each(|known| add_to_part(&mut first, known.source, &known.entry));
    if documents.len().saturating_mul(first.len()) > MOST_KEYS {
        return Err(format!("its parts have more than {MOST_KEYS} keys in all"));
    }
    let mut parts = vec![first.clone()];
    for document in documents.iter().skip(1) {
        let mut part = first.clone();
        document.iter().for_each(|known| add_to_part(&mut part, known.source, &known.entry));
        parts.push(part);
    }
    Ok(parts)
}

/// Keys of all parts, those of the first document counted for each: a job has some twenty.
const MOST_KEYS: usize = 100_000;

fn add_to_part<'a>(part: &mut JobPart<'a>, source: usize, entry: &'a YamlEntry) {
    match (&entry.node, entry.key.strip_suffix('-')) {
        // What each role does is done here by one machine.
        (YamlNode::Table(entries), _) if entry.key.starts_with("if ") => {
            entries.iter().for_each(|inner| add_to_part(part, source, inner));
        }
        (YamlNode::Scalar(scalar), Some(name)) if scalar.is_null => drop(part.shift_remove(name)),
        _ => drop(part.insert(&entry.key, JobKey { source, entry })),
    }
}

/// A workload of the study.
struct JobWorkload {
    name: String,
    uses: &'static str,
    parameters: Vec<(String, String)>,
    matrix: Vec<(String, String)>,
}

/// A value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum JobValue {
    /// As TOML writes it.
    Known(String),
    /// An expression of the machine.
    Expression(String),
}

impl JobValue {
    fn into_toml(self) -> String {
        match self {
            JobValue::Known(text) => text,
            JobValue::Expression(text) => toml_string(&text),
        }
    }
}

struct JobStudyWriter<'a> {
    file: String,
    fates: JobFates,
    /// Keys that have a fate: their file, and which of its keys they are.
    settled: BTreeSet<(usize, usize)>,
    /// Keys so far that became a setting or a factor.
    turned: usize,
    workloads: Vec<JobWorkload>,
    /// The parts of which they were made.
    parts: Vec<JobPart<'a>>,
    /// What differs, by workload.
    says: Vec<(String, &'static str)>,
    /// Programs that nothing stands for, each with the reason.
    missing: IndexMap<String, String>,
    /// The keys that say how often, with what they say.
    iterations: Vec<(JobKey<'a>, i64)>,
    monitors: BTreeSet<String>,
    has_profile: bool,
    disk: Vec<(String, String)>,
    settings: IndexMap<String, String>,
    factors: IndexMap<String, String>,
}

/// Keys that a study has for all of its workloads.
const SHARED_KEYS: [&str; 8] = [
    "category",
    "fs",
    "disk",
    "cpufreq_governor",
    "iosched",
    "transparent_hugepage",
    "sysctl",
    "drop_caches",
];

/// What lkp-tests records beside every benchmark, as far as it is cheap.
const BESIDE_BENCHMARKS: [&str; 9] =
    ["diskstats", "interrupts", "meminfo", "node", "schedstat", "slabinfo", "softirqs", "stat", "vmstat"];

/// File systems of a disk.
const FILESYSTEMS: [&str; 3] = ["ext4", "xfs", "btrfs"];

const IS_EMPTY: &str = "it is empty: what holds without it";

impl<'a> JobStudyWriter<'a> {
    fn new(file: &str, fates: JobFates) -> Self {
        JobStudyWriter {
            file: shorten_foreign_text(file),
            fates,
            settled: BTreeSet::new(),
            turned: 0,
            workloads: Vec::new(),
            parts: Vec::new(),
            says: Vec::new(),
            missing: IndexMap::new(),
            iterations: Vec::new(),
            monitors: BTreeSet::new(),
            has_profile: false,
            disk: Vec::new(),
            settings: IndexMap::new(),
            factors: IndexMap::new(),
        }
    }

    /// A fate for the line of a key, or for all of its lines.
    fn settle(&mut self, key: JobKey<'_>, fate: LineFate) {
        self.settled.insert((key.source, key.entry.id));
        let line = *key.entry.lines.start();
        self.fates.set(key.source, &(line..=line), fate.clone());
        self.fates.set_rest(key.source, &key.entry.lines, fate);
    }

    /// The line of a key whose own lines are settled: it became something where one of them did.
    fn settle_table(&mut self, key: JobKey<'_>, before: usize, became: &str) {
        self.settled.insert((key.source, key.entry.id));
        let fate = match self.turned > before {
            true => LineFate::Translated(became.to_owned()),
            false => LineFate::NotUnderstood("nothing below it is in the study".to_owned()),
        };
        self.fates.set_rest(key.source, &key.entry.lines, fate);
    }

    fn settle_value(&mut self, key: JobKey<'_>, value: &YamlScalar, fate: LineFate) {
        self.fates.set(key.source, &value.lines, fate);
    }

    fn refuse(&mut self, key: JobKey<'_>, why: &str) {
        self.settled.insert((key.source, key.entry.id));
        self.fates.set(key.source, &key.entry.lines, LineFate::NotUnderstood(why.to_owned()));
    }

    fn add_part(&mut self, part: &JobPart<'a>) {
        let before = self.workloads.len();
        for (name, key) in part {
            if let Some((name, counterpart)) = program_table().benchmark.get_key_value(*name) {
                if let Err(why) = self.add_program(part, name, counterpart, *key) {
                    if !self.missing.contains_key(name) || !self.settled.contains(&(key.source, key.entry.id))
                    {
                        self.refuse(*key, &why);
                    }
                    self.missing.insert(name.clone(), why);
                }
            } else if let Some(why) = program_table().elsewhere.get(*name)
                && !self.settled.contains(&(key.source, key.entry.id))
            {
                self.refuse(*key, why);
                self.missing.insert((*name).to_owned(), why.clone());
            }
        }
        if self.workloads.len() > before {
            self.parts.push(part.clone());
        }
    }

    /// The workloads of a program's section.
    fn add_program(
        &mut self,
        part: &JobPart<'a>,
        name: &'static str,
        counterpart: &'static ProgramCounterpart,
        section: JobKey<'a>,
    ) -> Result<(), String> {
        let sections: Vec<&str> =
            std::iter::once(name).chain(counterpart.sections.iter().map(String::as_str)).collect();
        let find = |key: &str| find_key(part, &sections, key);
        if let Some(required) = &counterpart.required
            && find(required).is_none_or(|key| is_empty(&key.entry.node))
        {
            return Err(format!("`{required}` says what is measured, and is not there"));
        }
        let mut variants: BTreeSet<&'static str> = BTreeSet::new();
        let mut failure = None;
        let before = self.workloads.len();
        let selected = counterpart.select.as_deref().and_then(find);
        if let (Some(select), Some(key)) = (&counterpart.select, selected) {
            let mut others = 0;
            for value in list_values(key).map_err(|why| format!("`{select}`: {why}"))? {
                let Some((variant, counterpart)) = counterpart.variant.get_key_value(&value.text) else {
                    others += 1;
                    if counterpart.workload.is_none() {
                        let why = format!("`{}` has no counterpart here", shorten_foreign_text(&value.text));
                        self.settle_value(key, value, LineFate::NotUnderstood(why.clone()));
                        failure = Some(why);
                    }
                    continue;
                };
                variants.insert(variant);
                let own = format!("{name}-{variant}");
                match self.add_workload(part, &sections, &own, (counterpart, &BTreeSet::new())) {
                    Ok(own) => {
                        self.settle_value(key, value, LineFate::Translated(format!("workload.{own}")));
                        self.settle(key, LineFate::Translated("workloads".into()));
                    }
                    Err(why) => {
                        self.settle_value(key, value, LineFate::NotUnderstood(why.clone()));
                        failure = Some(why);
                    }
                }
            }
            if others == 0 && self.workloads.len() > before {
                self.end_program(name, counterpart, section, before);
                return Ok(());
            }
        }
        if counterpart.workload.is_some() {
            match self.add_workload(part, &sections, name, (counterpart, &variants)) {
                Ok(_) => {}
                Err(why) if self.workloads.len() == before => return Err(why),
                Err(_) => {}
            }
        } else if self.workloads.len() == before {
            let select = counterpart.select.as_deref().unwrap_or_default();
            return Err(
                failure.unwrap_or_else(|| format!("`{select}` says what is measured, and is not there"))
            );
        }
        self.end_program(name, counterpart, section, before);
        Ok(())
    }

    fn end_program(
        &mut self,
        name: &str,
        counterpart: &'static ProgramCounterpart,
        section: JobKey<'a>,
        before: usize,
    ) {
        let first = self.workloads.get(before).map_or(name, |workload| workload.name.as_str()).to_owned();
        self.add_remark(&first, counterpart);
        self.settled.insert((section.source, section.entry.id));
        let line = *section.entry.lines.start();
        self.fates.set(section.source, &(line..=line), LineFate::Translated(format!("workload.{first}")));
    }

    /// What differs from the program of lkp-tests, once however many workloads are made of it.
    fn add_remark(&mut self, workload: &str, counterpart: &'static ProgramCounterpart) {
        if let Some(say) = &counterpart.say
            && !self.says.iter().any(|(_, known)| known == say)
        {
            self.says.push((workload.to_owned(), say));
        }
    }

    /// One workload; its name.
    fn add_workload(
        &mut self,
        part: &JobPart<'a>,
        sections: &[&str],
        name: &str,
        (counterpart, without): (&'static ProgramCounterpart, &BTreeSet<&'static str>),
    ) -> Result<String, String> {
        let uses = counterpart.workload.as_deref().ok_or("the table names no workload")?;
        let plain = workload_name(name);
        let names = |name: &String| self.workloads.iter().any(|known| known.name == *name);
        let numbered = std::iter::once(plain.clone()).chain((2..).map(|number| format!("{plain}-{number}")));
        let name = numbered.into_iter().find(|name| !names(name)).unwrap_or(plain);
        let mut workload =
            JobWorkload { name: name.clone(), uses, parameters: Vec::new(), matrix: Vec::new() };
        for (parameter, rule) in &counterpart.parameters {
            let Some(rule) = rule.as_str() else {
                workload.parameters.push((parameter.clone(), rule.to_string()));
                continue;
            };
            if let Some(text) = rule.strip_prefix('=') {
                workload.parameters.push((parameter.clone(), toml_string(text)));
                continue;
            }
            self.add_parameter(part, sections, &mut workload, (parameter, rule, without))?;
        }
        for (key, why) in &counterpart.without_meaning {
            if let Some(key) = find_key(part, sections, key)
                && !self.settled.contains(&(key.source, key.entry.id))
            {
                self.settle(key, LineFate::NoMeaning(why.clone()));
            }
        }
        let iterations = counterpart.iterations.as_deref().unwrap_or("iterations");
        if let Some(key) = find_key(part, sections, iterations)
            && !self
                .iterations
                .iter()
                .any(|(known, _)| known.source == key.source && known.entry.id == key.entry.id)
        {
            match list_values(key).as_deref() {
                Ok([]) => self.settle(key, LineFate::NoMeaning(IS_EMPTY.into())),
                Ok([value]) => match convert_number(value) {
                    Ok(JobValue::Known(text))
                        if text.parse::<i64>().is_ok_and(|count| (1..=100_000).contains(&count)) =>
                    {
                        self.iterations.push((key, text.parse().unwrap_or(1)));
                    }
                    _ => {
                        self.refuse(key, "iterations are a whole number from 1 to 100000, known before a run")
                    }
                },
                _ => self.refuse(key, "a study has one number of iterations"),
            }
        }
        self.add_remark(&name, counterpart);
        self.workloads.push(workload);
        Ok(name)
    }

    fn add_parameter(
        &mut self,
        part: &JobPart<'a>,
        sections: &[&str],
        workload: &mut JobWorkload,
        (parameter, rule, without): (&str, &str, &BTreeSet<&'static str>),
    ) -> Result<(), String> {
        let (rule, default) = match rule.split_once(" else ") {
            Some((rule, default)) => (rule, Some(default)),
            None => (rule, None),
        };
        let words: Vec<&str> = rule.split_whitespace().collect();
        let [kind, name, ref rest @ ..] = words[..] else { return Ok(()) };
        let key = find_key(part, sections, name);
        let values = key.map_or(Ok(Vec::new()), list_values);
        let values = match (key, values) {
            (Some(key), Err(why)) => {
                self.refuse(key, &why);
                return if kind == "map" { Err(format!("`{name}`: {why}")) } else { Ok(()) };
            }
            (_, values) => values.unwrap_or_default(),
        };
        let Some(key) = key.filter(|_| !values.is_empty()) else {
            if let Some(key) = key {
                self.settle(key, LineFate::NoMeaning(IS_EMPTY.into()));
            }
            if let Some(default) = default {
                let value = match default.parse::<i64>() {
                    Ok(number) => number.to_string(),
                    Err(_) => toml_string(default),
                };
                workload.parameters.push((parameter.to_owned(), value));
            }
            return Ok(());
        };
        if kind == "share" {
            match divide_keys(part, sections, key, rest) {
                Ok((value, greatest)) => {
                    let text = value.into_toml();
                    match &greatest[..] {
                        [] => {
                            let place = format!("workload.{}.parameters.{parameter} = {text}", workload.name);
                            self.settle(key, LineFate::Translated(place));
                        }
                        names => {
                            let why = format!(
                                "{parameter} = {text} holds for the greatest `{}`, and is the same for the others",
                                names.join("`, `")
                            );
                            self.refuse(key, &why);
                        }
                    }
                    workload.parameters.push((parameter.to_owned(), text));
                }
                Err(why) => self.refuse(key, &format!("{why}: set the parameter {parameter} by hand")),
            }
            return Ok(());
        }
        let values = values.into_iter().filter(|value| !without.contains(value.text.as_str())).collect();
        match self.add_values(workload, parameter, (kind, rest), (key, values)) {
            // Another case than the one that is meant would be measured in its place.
            Err(why) if ["map", "words", "text"].contains(&kind) => Err(why),
            _ => Ok(()),
        }
    }

    /// The values of a key as those of a parameter.
    fn add_values(
        &mut self,
        workload: &mut JobWorkload,
        parameter: &str,
        (kind, rest): (&str, &[&str]),
        (key, values): (JobKey<'a>, Vec<&YamlScalar>),
    ) -> Result<(), String> {
        let mut converted: IndexSet<JobValue> = IndexSet::new();
        let mut failure = None;
        let table = if values.len() == 1 { "parameters" } else { "matrix" };
        let place = format!("workload.{}.{table}.{parameter}", workload.name);
        for value in &values {
            match convert_value(kind, value, rest) {
                Ok(found) => {
                    let fate = LineFate::Translated(place.clone());
                    self.settle_value(key, value, fate);
                    converted.extend(found);
                }
                Err(why) => {
                    self.settle_value(key, value, LineFate::NotUnderstood(why.clone()));
                    failure = Some(why);
                }
            }
        }
        self.settled.insert((key.source, key.entry.id));
        self.fates.set_rest(key.source, &key.entry.lines, LineFate::NoMeaning(IS_EMPTY.into()));
        let line = *key.entry.lines.start();
        let converted: Vec<JobValue> = converted.into_iter().collect();
        match (&converted[..], failure) {
            ([], Some(why)) => {
                self.fates.set(key.source, &(line..=line), LineFate::NotUnderstood(why.clone()));
                return Err(why);
            }
            // All of its values are workloads of their own.
            ([], None) => return Err(format!("`{}` has nothing else", key.entry.key)),
            ([only], _) => {
                let text = only.clone().into_toml();
                self.fates.set(
                    key.source,
                    &(line..=line),
                    LineFate::Translated(format!(
                        "workload.{}.parameters.{parameter} = {text}",
                        workload.name
                    )),
                );
                workload.parameters.push((parameter.to_owned(), text));
            }
            (several, _) => {
                let texts: Vec<String> = several
                    .iter()
                    .map(|value| match value {
                        JobValue::Known(text) | JobValue::Expression(text) => text.clone(),
                    })
                    .collect();
                let list = format!("[{}]", texts.join(", "));
                // An expression of the machine gives each value once, whatever the machine.
                let is_expression = several.iter().any(|value| matches!(value, JobValue::Expression(_)));
                if is_expression && several.len() > MOST_SHARES {
                    let why = format!("an expression gives at most {MOST_SHARES} such values");
                    self.refuse(key, &why);
                    return Err(why);
                }
                let text = if is_expression { toml_string(&list) } else { list };
                self.fates.set(
                    key.source,
                    &(line..=line),
                    LineFate::Translated(format!("workload.{}.matrix.{parameter}", workload.name)),
                );
                workload.matrix.push((parameter.to_owned(), text));
            }
        }
        Ok(())
    }

    /// A study repeats all of its workloads alike: as often as the one that is repeated most.
    fn add_iterations(&mut self) {
        let Some(most) = self.iterations.iter().map(|(_, count)| *count).max() else { return };
        for (key, count) in self.iterations.clone() {
            let more = if count < most { " for all workloads" } else { "" };
            self.settle(key, LineFate::Translated(format!("run.iterations = {most}{more}")));
        }
    }

    /// What holds for all workloads: where parts differ, the first one's.
    fn add_shared_keys(&mut self) {
        let parts = std::mem::take(&mut self.parts);
        for name in SHARED_KEYS {
            let found: Vec<Option<JobKey<'a>>> = parts.iter().map(|part| part.get(name).copied()).collect();
            let Some(Some(first)) = found.first().copied() else { continue };
            if found.iter().any(Option::is_none) {
                continue;
            }
            let said = describe_node(&first.entry.node);
            for other in found.iter().flatten() {
                if (other.source, other.entry.id) == (first.source, first.entry.id) {
                    continue;
                }
                if describe_node(&other.entry.node) != said {
                    self.refuse(*other, "a study has it for all workloads, as its first part says it: make another study of this part");
                } else {
                    self.settle(*other, LineFate::Translated(format!("as the first part says it: {name}")));
                }
            }
            self.add_shared_key(name, first, parts.first());
        }
        for part in &parts {
            for (name, key) in part {
                if name.starts_with("perf-profile") {
                    self.has_profile = true;
                    self.settle(*key, LineFate::Translated("profile".into()));
                    self.settle_inner(*key, "profiles have options of their own: [profile]");
                } else if let Some(ours) = program_table().monitors.get(*name) {
                    self.monitors.extend(ours.iter().cloned());
                    self.settle(*key, LineFate::Translated(format!("monitors: {}", ours.join(", "))));
                    self.settle_inner(*key, "monitors have their interval in [monitors]");
                }
            }
        }
        self.parts = parts;
    }

    /// What options of something become that has none here.
    fn settle_inner(&mut self, key: JobKey<'_>, why: &str) {
        let YamlNode::Table(entries) = &key.entry.node else { return };
        for entry in entries {
            self.settle(JobKey { source: key.source, entry }, LineFate::NoMeaning(why.to_owned()));
        }
    }

    fn add_shared_key(&mut self, name: &str, key: JobKey<'a>, part: Option<&JobPart<'a>>) {
        match name {
            "category" => {
                match list_values(key).ok().and_then(|values| Some(values.first()?.text.as_str())) {
                    Some("benchmark" | "noise-benchmark") => {
                        self.monitors.extend(BESIDE_BENCHMARKS.map(str::to_owned));
                        self.settle(
                            key,
                            LineFate::Translated("monitors: what lkp-tests records beside benchmarks".into()),
                        );
                    }
                    _ => self.settle(key, LineFate::NoMeaning("monitors are named in [monitors]".into())),
                }
            }
            "fs" => self.add_filesystem(key, part.and_then(|part| part.get("disk").copied())),
            "cpufreq_governor" => self.add_setting(key, "governor"),
            "iosched" if !self.disk.is_empty() => self.add_setting(key, "io-scheduler"),
            "transparent_hugepage" => {
                let YamlNode::Table(entries) = &key.entry.node else { return };
                let before = self.turned;
                for entry in entries {
                    let inner = JobKey { source: key.source, entry };
                    match entry.key.as_str() {
                        "thp_enabled" => self.add_setting(inner, "thp"),
                        "thp_defrag" => self.add_setting(inner, "thp-defrag"),
                        "shmem_enabled" => self.add_setting(inner, "thp-shmem"),
                        _ => self.refuse(inner, "a setting, if any: see `perflab setting list`"),
                    }
                }
                self.settle_table(key, before, "settings");
            }
            "sysctl" => {
                let YamlNode::Table(entries) = &key.entry.node else { return };
                let before = self.turned;
                for entry in entries {
                    self.add_sysctl(JobKey { source: key.source, entry });
                }
                self.settle_table(key, before, "factors of kind sysctl");
            }
            "drop_caches" => {
                // Without a value, the program drops all.
                let levels = match list_values(key) {
                    Ok(levels) if !levels.is_empty() => levels,
                    _ if is_empty(&key.entry.node) => return self.drop_caches(key, &[3]),
                    _ => Vec::new(),
                };
                let levels: Option<Vec<i64>> = levels
                    .iter()
                    .map(|level| level.text.parse().ok().filter(|level| (0..=3).contains(level)))
                    .collect();
                match levels.as_deref() {
                    Some(levels @ [_, ..]) => self.drop_caches(key, levels),
                    _ => self.refuse(key, "a factor of kind drop-caches has levels from 0 to 3"),
                }
            }
            _ => {}
        }
    }

    fn drop_caches(&mut self, key: JobKey<'a>, levels: &[i64]) {
        let text = format!("kind = \"drop-caches\"\nlevels = {levels:?}");
        self.factors.insert("caches".into(), text);
        self.settle(key, LineFate::Translated("a factor of kind drop-caches".into()));
    }

    /// One level is a setting of the study, several are a factor.
    fn add_setting(&mut self, key: JobKey<'a>, preset: &str) {
        match list_levels(key) {
            Ok(levels) => match &levels[..] {
                [] => self.settle(key, LineFate::NoMeaning(IS_EMPTY.into())),
                [level] => {
                    self.turned += 1;
                    self.settle(key, LineFate::Translated(format!("settings.{preset} = {level}")));
                    self.settings.insert(preset.to_owned(), level.clone());
                    // Of two keys that are alike the last one holds.
                    self.factors.shift_remove(preset);
                }
                levels => {
                    self.turned += 1;
                    let text = format!(
                        "kind = \"setting\"\nkey = {}\nlevels = [{}]",
                        toml_string(preset),
                        levels.join(", ")
                    );
                    self.settle(key, LineFate::Translated(format!("factor.{preset}")));
                    self.factors.insert(preset.to_owned(), text);
                    self.settings.shift_remove(preset);
                }
            },
            Err(why) => self.refuse(key, &why),
        }
    }

    fn add_sysctl(&mut self, key: JobKey<'a>) {
        let name = key.entry.key.strip_prefix("sc_").unwrap_or(&key.entry.key);
        let Some(path) = program_table().sysctl.get(name) else {
            return self.refuse(key, "a factor of kind sysctl: say which file in /proc/sys it is");
        };
        match list_levels(key) {
            Ok(levels) if !levels.is_empty() => {
                self.turned += 1;
                let text = format!(
                    "kind = \"sysctl\"\nkey = {}\nlevels = [{}]",
                    toml_string(path),
                    levels.join(", ")
                );
                self.factors.insert(factor_name(path), text);
                self.settle(key, LineFate::Translated(format!("a factor of kind sysctl: {path}")));
            }
            Ok(_) => self.settle(key, LineFate::NoMeaning(IS_EMPTY.into())),
            Err(why) => self.refuse(key, &why),
        }
    }

    /// A disk with a file system: an image, in place of one of lkp's disks.
    fn add_filesystem(&mut self, key: JobKey<'a>, disk: Option<JobKey<'a>>) {
        let mut named = key;
        if let YamlNode::Table(entries) = &key.entry.node {
            self.settle(key, LineFate::Translated("disk".into()));
            for entry in entries {
                let inner = JobKey { source: key.source, entry };
                match entry.key.as_str() {
                    "fs" => named = inner,
                    _ => self.refuse(inner, "options of file systems are `mkfs` and `mount` of [disk]"),
                }
            }
        }
        let values = match list_values(named) {
            Ok(values) => values,
            Err(why) => return self.refuse(named, &why),
        };
        let mut levels = Vec::new();
        for value in values {
            if FILESYSTEMS.contains(&value.text.as_str()) {
                self.settle_value(named, value, LineFate::Translated("disk.filesystem".into()));
                levels.push(toml_string(&value.text));
            } else {
                let why = format!(
                    "`{}` is no file system of [disk]: {}",
                    shorten_foreign_text(&value.text),
                    FILESYSTEMS.join(", ")
                );
                self.settle_value(named, value, LineFate::NotUnderstood(why));
            }
        }
        levels.dedup();
        let Some(first) = levels.first() else { return };
        self.settled.insert((named.source, named.entry.id));
        self.settle(named, LineFate::Translated("disk.filesystem".into()));
        let size = disk.and_then(|disk| {
            list_values(disk)
                .ok()?
                .first()?
                .text
                .rsplit_once('_')
                .and_then(|(kind, size)| parse_shell_size(size).filter(|_| kind.ends_with("BRD")))
        });
        self.disk.push(("kind".into(), toml_string("image")));
        self.disk.push(("size".into(), size.map_or_else(|| toml_string("8GiB"), |size| size.to_string())));
        self.disk.push(("filesystem".into(), first.clone()));
        if levels.len() > 1 {
            let text = format!("kind = \"disk\"\nkey = \"filesystem\"\nlevels = [{}]", levels.join(", "));
            self.factors.insert("filesystem".into(), text);
        }
        if let Some(disk) = disk {
            self.settle(
                disk,
                LineFate::Translated("disk: an image in its place; name a partition of yours".into()),
            );
            self.settle_inner(disk, "an image stands in its place");
        }
    }

    /// Fates for all keys that have none.
    fn account_for_keys(&mut self, documents: &[Vec<JobEntry>]) {
        for known in documents.iter().flatten() {
            self.account_for_key(JobKey { source: known.source, entry: &known.entry });
        }
    }

    fn account_for_key(&mut self, key: JobKey<'_>) {
        let name = key.entry.key.as_str();
        if let YamlNode::Table(entries) = &key.entry.node {
            let section =
                program_table().benchmark.values().any(|known| known.sections.iter().any(|own| own == name));
            let is_role = name.starts_with("if role ");
            if is_role {
                self.settle(key, LineFate::NoMeaning("client and server run on this machine".into()));
            } else if name.starts_with("if ") {
                self.settle(
                    key,
                    LineFate::NotUnderstood("only lkp would decide it; what stands below is taken".into()),
                );
            } else if section
                && !self.settled.contains(&(key.source, key.entry.id))
                && !self.workloads.is_empty()
            {
                self.settle(key, LineFate::Translated("parameters of the workload".into()));
            }
            if is_role || self.settled.contains(&(key.source, key.entry.id)) || name.starts_with("if ") {
                for entry in entries {
                    let inner = JobKey { source: key.source, entry };
                    match is_role || name.starts_with("if ") {
                        true => self.account_for_key(inner),
                        false => self.account_for_option(inner),
                    }
                }
                return;
            }
        }
        if self.settled.contains(&(key.source, key.entry.id)) {
            return;
        }
        let table = program_table();
        let missing = self.missing.get(name).cloned();
        let prefixed = |name: &str| {
            let fits = |(key, _): &(&String, &String)| {
                key.strip_suffix('*').is_some_and(|start| name.starts_with(start))
            };
            table.without_meaning.iter().find(fits).map(|(_, why)| why)
        };
        if let Some(why) = missing.or_else(|| table.by_hand.get(name).cloned()) {
            self.refuse(key, &why);
        } else if let Some(why) = table.without_meaning.get(name).or_else(|| prefixed(name)) {
            self.settle(key, LineFate::NoMeaning(why.clone()));
            self.fates.set(key.source, &key.entry.lines, LineFate::NoMeaning(why.clone()));
        } else if SHARED_KEYS.contains(&name) {
            let why = match name {
                "disk" => "workloads write to a directory: name a disk in [disk]",
                "iosched" => "a setting: io-scheduler, of a disk",
                _ => "a study has it for all workloads: make another study of this part",
            };
            self.refuse(key, why);
        } else if name.ends_with('-') && is_empty(&key.entry.node) {
            self.settle(key, LineFate::NoMeaning("what it takes away is not in the study".into()));
        } else {
            self.account_for_option(key);
        }
    }

    /// A key that nothing was made of.
    fn account_for_option(&mut self, key: JobKey<'_>) {
        if self.settled.contains(&(key.source, key.entry.id)) {
            return;
        }
        if is_empty(&key.entry.node) {
            return self.settle(key, LineFate::NoMeaning(IS_EMPTY.into()));
        }
        let name = key.entry.key.as_str();
        let known = program_table().benchmark.values().flat_map(ProgramCounterpart::keys);
        let known: BTreeSet<&str> = known.collect();
        let why = match nearest_name(name, known.iter().copied()) {
            _ if known.contains(name) => "it is no parameter of the workload".to_owned(),
            Some(nearest) if is_slip(name, nearest) => {
                format!("nothing here corresponds; did you mean `{nearest}`?")
            }
            _ => "nothing here corresponds".to_owned(),
        };
        self.refuse(key, &why);
    }

    /// Why there is no study.
    fn no_counterpart(&self, parts: &[JobPart<'_>]) -> String {
        let text = |name: &str| {
            let key = parts.iter().find_map(|part| part.get(name))?;
            Some(list_values(*key).ok()?.first()?.text.clone())
        };
        let missing = match self.missing.is_empty() {
            false => {
                let why = |(name, why): (&String, &String)| format!("{} ({why})", shorten_foreign_text(name));
                self.missing.iter().take(5).map(why).collect::<Vec<_>>().join("; ")
            }
            true => {
                let name = text("testcase").or_else(|| text("suite"));
                let Some(name) = name else {
                    let lacks =
                        self.fates.first_left_out().map(|(line, why)| format!("; line {line}: {why}"));
                    return "it names no program that measures".to_owned() + &lacks.unwrap_or_default();
                };
                let short = shorten_foreign_text(&name);
                match (text("category").as_deref(), program_table().elsewhere.get(&name)) {
                    (_, Some(why)) => format!("{short} ({why})"),
                    (Some("functional"), None) => format!("{short} (functional tests are not measured)"),
                    _ => {
                        let known = program_table().benchmark.keys().map(String::as_str);
                        format!("{short} (not known; {})", suggest_name(&name, known))
                    }
                }
            }
        };
        format!("none of its programs has a counterpart here: {missing}")
    }

    fn write_study(&self, description: &str, account: &LineAccount) -> String {
        let mut text =
            format!("# Made by `perflab study from {}`, which has an account of every line.\n", self.file);
        for (name, why) in &self.missing {
            let _ = writeln!(text, "# Not here: {}: {}", shorten_foreign_text(name), shorten_comment(why));
        }
        for (name, say) in &self.says {
            let _ = writeln!(text, "# {name}: {say}.");
        }
        for (line, fate) in account.iter() {
            if let LineFate::NotUnderstood(why) = fate {
                let _ = writeln!(text, "# Line {line} is left out: {}", shorten_comment(why));
            }
        }
        for (name, line, why) in self.fates.left_out_elsewhere() {
            let _ = writeln!(text, "# Line {line} of {name} is left out: {}", shorten_comment(why));
        }
        let counts: BTreeSet<i64> = self.iterations.iter().map(|(_, count)| *count).collect();
        if counts.len() > 1 {
            let _ = writeln!(
                text,
                "# lkp-tests repeats these programs unequally often; a study repeats all alike, as often as the most."
            );
        } else if counts.is_empty() {
            let _ = writeln!(
                text,
                "# How often to repeat it does not stand in the job: {DEFAULT_ITERATIONS} times are ours."
            );
        }
        let title = self.file.trim_end_matches(".yaml").trim_end_matches(".yml");
        let _ = writeln!(text, "title = {}", toml_string(title));
        if !description.is_empty() {
            let _ = writeln!(text, "description = {}", toml_string(description));
        }
        let iterations = counts.last().copied().unwrap_or(DEFAULT_ITERATIONS);
        let _ = writeln!(text, "\n[run]\niterations = {iterations}");
        for workload in &self.workloads {
            let name = &workload.name;
            let _ = writeln!(text, "\n[workload.{name}]");
            if *name != workload.uses {
                let _ = writeln!(text, "use = {}", toml_string(workload.uses));
            }
            write_table(&mut text, &format!("workload.{name}.parameters"), &workload.parameters);
            write_table(&mut text, &format!("workload.{name}.matrix"), &workload.matrix);
        }
        let monitors: Vec<(String, String)> =
            self.monitors.iter().map(|name| (name.clone(), toml_string("1s"))).collect();
        write_table(&mut text, "monitors", &monitors);
        if self.has_profile {
            let _ = writeln!(text, "\n[profile]");
        }
        write_table(&mut text, "disk", &self.disk);
        let settings: Vec<(String, String)> =
            self.settings.iter().map(|(preset, level)| (preset.clone(), level.clone())).collect();
        write_table(&mut text, "settings", &settings);
        for (name, factor) in &self.factors {
            let _ = writeln!(text, "\n[factor.{name}]\n{factor}");
        }
        text
    }
}

impl ProgramCounterpart {
    /// The keys that it knows, those of its variants too.
    fn keys(&self) -> Vec<&str> {
        let rules =
            self.parameters.values().filter_map(toml::Value::as_str).filter(|rule| !rule.starts_with('='));
        let named = rules.filter_map(|rule| rule.split_whitespace().nth(1));
        let own = named
            .chain(self.iterations.as_deref())
            .chain(self.select.as_deref())
            .chain(self.without_meaning.keys().map(String::as_str));
        own.chain(self.variant.values().flat_map(ProgramCounterpart::keys)).collect()
    }
}

/// A key of a program's sections, or one that all programs see.
fn find_key<'a>(part: &JobPart<'a>, sections: &[&str], name: &str) -> Option<JobKey<'a>> {
    let in_section = sections.iter().find_map(|section| {
        let dotted = part.get(format!("{section}.{name}").as_str()).copied();
        dotted.or_else(|| {
            let key = part.get(section)?;
            let YamlNode::Table(entries) = &key.entry.node else { return None };
            let entry = entries.iter().rfind(|entry| entry.key == name)?;
            Some(JobKey { source: key.source, entry })
        })
    });
    in_section.or_else(|| part.get(name).copied())
}

/// The values of a key: one, or those of a list, without those that are empty.
fn list_values(key: JobKey<'_>) -> Result<Vec<&YamlScalar>, String> {
    let values: Option<Vec<&YamlScalar>> = match &key.entry.node {
        YamlNode::Scalar(scalar) => Some(vec![scalar]),
        YamlNode::Table(_) => None,
        YamlNode::List(nodes) => nodes
            .iter()
            .map(|node| match node {
                YamlNode::Scalar(scalar) => Some(scalar),
                _ => None,
            })
            .collect(),
    };
    let values = values.ok_or("a table stands where a value should")?;
    match values.len() > MOST_LEVELS {
        true => Err(format!("a list in a study has at most {MOST_LEVELS} values")),
        false => Ok(values.into_iter().filter(|value| !value.is_null).collect()),
    }
}

/// Values of a list of which the machine decides some: an expression has at most 256 operators.
const MOST_SHARES: usize = 60;

/// Values of a list.
const MOST_LEVELS: usize = 1000;

/// Levels of a setting, as TOML.
fn list_levels(key: JobKey<'_>) -> Result<Vec<String>, String> {
    let mut levels: Vec<String> = Vec::new();
    for value in list_values(key)? {
        let text = plain_text(value)?;
        if text.trim().is_empty() || text.chars().any(char::is_control) {
            return Err(format!("`{}` is no level", shorten_foreign_text(text)));
        }
        let level = toml_level(text);
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    Ok(levels)
}

fn is_empty(node: &YamlNode) -> bool {
    match node {
        YamlNode::Scalar(scalar) => scalar.is_null,
        YamlNode::List(nodes) => nodes.is_empty(),
        YamlNode::Table(entries) => entries.is_empty(),
    }
}

/// What a value says, wherever it stands.
fn describe_node(node: &YamlNode) -> String {
    match node {
        YamlNode::Scalar(scalar) => format!("{:?}", (&scalar.text, scalar.is_null)),
        YamlNode::List(nodes) => {
            format!("[{}]", nodes.iter().map(describe_node).collect::<Vec<_>>().join(","))
        }
        YamlNode::Table(entries) => {
            let entries =
                entries.iter().map(|entry| format!("{:?}:{}", entry.key, describe_node(&entry.node)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
        }
    }
}

/// Text that means itself.
fn plain_text(value: &YamlScalar) -> Result<&str, String> {
    if value.is_made_elsewhere() {
        return Err("it is not known without running something".into());
    }
    // A study would take these for templates.
    match ["{{", "{%", "{#"].iter().any(|mark| value.text.contains(mark)) {
        true => Err(format!("`{}` is no such value", shorten_foreign_text(&value.text))),
        false => Ok(&value.text),
    }
}

/// The values of a parameter that a value stands for.
fn convert_value(kind: &str, value: &YamlScalar, rest: &[&str]) -> Result<Vec<JobValue>, String> {
    let text = plain_text(value)?;
    let refused = || format!("`{}` is no such value", shorten_foreign_text(text));
    let one = |text: String| Ok(vec![JobValue::Known(text)]);
    let number = || rest.get(1).and_then(|number| number.parse::<i64>().ok());
    match (kind, rest) {
        ("number", ["at-most", ..]) => {
            let most = number().ok_or_else(refused)?;
            Ok(vec![match convert_number(value)? {
                JobValue::Known(known) => {
                    JobValue::Known(known.parse::<i64>().map_err(|_| refused())?.min(most).to_string())
                }
                JobValue::Expression(share) => JobValue::Expression(format!("[{share}, {most}]|min")),
            }])
        }
        ("number", _) => Ok(vec![convert_number(value)?]),
        ("size", _) => {
            let times = match rest.first() {
                Some(&"times") => number().and_then(|times| u64::try_from(times).ok()).unwrap_or(1),
                _ => 1,
            };
            let bytes = parse_shell_size(text).and_then(|bytes| bytes.checked_mul(times));
            let bytes = bytes.and_then(|bytes| i64::try_from(bytes).ok()).ok_or_else(refused)?;
            match (rest.first(), number()) {
                (Some(&"at-least"), Some(least)) if bytes < least => Err(refused()),
                _ => one(bytes.to_string()),
            }
        }
        ("time", _) => one(toml_string(&convert_time(text, rest.first().copied()).ok_or_else(refused)?)),
        ("text", _) => one(toml_string(text)),
        ("words", _) => Ok(split_words(text).map(|word| JobValue::Known(toml_string(word))).collect()),
        ("yes", _) => match text {
            "no" | "false" | "0" | "off" | "never" => one("false".into()),
            _ => one("true".into()),
        },
        ("map", known) => split_words(text)
            .map(|word| {
                let pairs = known.iter().map(|pair| pair.split_once('=').unwrap_or((pair, pair)));
                let found = pairs.into_iter().find(|(theirs, _)| *theirs == word);
                let found =
                    found.ok_or_else(|| format!("`{}` has no counterpart here", shorten_foreign_text(word)));
                found.map(|(_, ours)| JobValue::Known(toml_string(ours)))
            })
            .collect(),
        _ => Err(format!("the table has no kind `{kind}`")),
    }
}

fn split_words(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ']).filter(|word| !word.is_empty())
}

/// A whole number, behind which letters may stand, or a share of the CPUs.
fn convert_number(value: &YamlScalar) -> Result<JobValue, String> {
    let text = plain_text(value)?.trim();
    let refused = || format!("`{}` is no whole number", shorten_foreign_text(text));
    if let Some(share) = text.strip_suffix('%') {
        let share = share.parse::<u32>().ok().filter(|share| (1..=1_000_000).contains(share));
        return Ok(JobValue::Expression(describe_share(share.ok_or_else(refused)?)));
    }
    let digits = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let number = digits.parse::<i64>().ok().filter(|number| (0..1_000_000_000_000_000).contains(number));
    Ok(JobValue::Known(number.ok_or_else(refused)?.to_string()))
}

/// So many per cent of the CPUs, one at least.
fn describe_share(percent: u32) -> String {
    match percent {
        100 => "cpus".into(),
        _ if percent.is_multiple_of(100) => format!("{} * cpus", percent / 100),
        _ if 100_u32.is_multiple_of(percent) => format!("[cpus // {}, 1]|max", 100 / percent),
        _ => format!("[cpus * {percent} // 100, 1]|max"),
    }
}

/// A time as TOML has it: `300`, `300s`, `5m`, `4h`, `1d`.
fn convert_time(text: &str, unit: Option<&str>) -> Option<String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number = digits.parse::<u64>().ok()?;
    let seconds = match text.get(digits.len()..)? {
        "" => return Some(format!("{number}{}", unit.unwrap_or("s"))),
        "ms" | "us" => return Some(text.to_owned()),
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    Some(format!("{}s", number.checked_mul(seconds)?))
}

/// A size divided by other keys: files, of so many bytes, of so many threads; of a key with several values by the greatest, so that no
/// case takes more room than was meant. Those keys are named.
fn divide_keys(
    part: &JobPart<'_>,
    sections: &[&str],
    total: JobKey<'_>,
    by: &[&str],
) -> Result<(JobValue, Vec<String>), String> {
    let mut greatest = Vec::new();
    let mut find_divisor = |key: JobKey<'_>| -> Result<Option<JobValue>, String> {
        let name = &key.entry.key;
        let convert = |value: &YamlScalar| {
            let size = parse_shell_size(plain_text(value)?).map(|size| JobValue::Known(size.to_string()));
            convert_number(value).ok().or(size).ok_or_else(|| format!("`{name}` is no number"))
        };
        let values = list_values(key)?.into_iter().map(convert).collect::<Result<Vec<_>, _>>()?;
        if values.len() > 1 {
            greatest.push(name.clone());
        }
        Ok(greatest_value(values))
    };
    let amount = match list_values(total)?[..] {
        [value] => parse_shell_size(plain_text(value)?).and_then(|size| i64::try_from(size).ok()),
        _ => return Err("it has several values".into()),
    };
    let mut amount = amount.ok_or("it is no size")?;
    let mut shares = Vec::new();
    for word in by {
        let (name, least) = word.split_once(':').unwrap_or((word, "1"));
        let Some(key) = find_key(part, sections, name) else { continue };
        match find_divisor(key)? {
            None => {}
            Some(JobValue::Known(number)) => {
                let number = number.parse::<i64>().unwrap_or(1).max(least.parse().unwrap_or(1));
                amount = amount.checked_div(number).unwrap_or(amount);
            }
            Some(JobValue::Expression(share)) => shares.push(format!("({share})")),
        }
    }
    let share = match shares.is_empty() {
        true => JobValue::Known(amount.max(1).to_string()),
        false => JobValue::Expression(format!("[{amount} // {}, 1]|max", shares.join(" // "))),
    };
    Ok((share, greatest))
}

/// The greatest of some numbers, which may depend on the machine; none of none.
fn greatest_value(values: Vec<JobValue>) -> Option<JobValue> {
    let (mut known, mut expressions) = (None, Vec::new());
    for value in values {
        match value {
            JobValue::Known(number) => known = known.max(number.parse::<i64>().ok()),
            JobValue::Expression(text) => expressions.push(text),
        }
    }
    match (known, &expressions[..]) {
        (known, []) => known.map(|number| JobValue::Known(number.to_string())),
        (None, [one]) => Some(JobValue::Expression(one.clone())),
        (known, _) => {
            let all: Vec<String> =
                known.map(|number| number.to_string()).into_iter().chain(expressions).collect();
            Some(JobValue::Expression(format!("[{}]|max", all.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn convert(text: &str) -> ConvertedStudy {
        convert_job_file(text, Path::new("/nonexistent"), "mine.yaml").unwrap()
    }

    /// What the study lacks, a line each, with the reason.
    fn left_out_lines(study: &ConvertedStudy) -> String {
        let lines = study.account.iter().filter_map(|(line, fate)| match fate {
            LineFate::NotUnderstood(why) => Some(format!("{line}: {why}")),
            _ => None,
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn parse(study: &ConvertedStudy) -> toml::Table {
        study.text.parse().unwrap()
    }

    const MESSAGES: &str = "\
# Messages between
# many tasks
suite: hackbench
testcase: hackbench
category: benchmark
need_memory: 4G

nr_threads:
  - 50%
  - 100%
  # - 200%
  - 1600%
iterations: 8x
perf-profile:
  delay: 20
transparent_hugepage:
  thp_enabled: [always, never]
  thp_defrag: never
sysctl:
  sc_swappiness: 10
  sc_frob: 1
boot_params:
  bp_mem: 4G
hackbench:
  mode: &modes
    - process
    - threads
  ipc: [pipe, carrier-pigeon]
  loops: <%= 30 * 7 %>
  fsd: 20

---
nr_threads: {{ 7
  * 6 }}
% if x
frobnicate: 3
hackbench:
  mode: process
  loops: 300
transparent_hugepage:
  thp_enabled: madvise
";

    #[test]
    fn a_job_becomes_a_study_that_fits_every_machine() {
        let study = convert(MESSAGES);
        let table = parse(&study);
        let workload = &table["workload"]["hackbench"];
        assert_eq!(workload["matrix"]["groups"].as_str(), Some("[[cpus // 2, 1]|max, cpus, 16 * cpus]"));
        assert_eq!(workload["matrix"]["tasks"].as_array().unwrap().len(), 2);
        assert_eq!(workload["parameters"]["channel"].as_str(), Some("pipe"));
        assert!(workload["parameters"].get("loops").is_none());
        let other = &table["workload"]["hackbench-2"];
        assert_eq!(other["use"].as_str(), Some("hackbench"));
        assert_eq!(other["parameters"]["loops"].as_integer(), Some(300));
        assert_eq!(table["run"]["iterations"].as_integer(), Some(8));
        assert_eq!(table["factor"]["thp"]["levels"].as_array().unwrap().len(), 2);
        assert_eq!(table["settings"]["thp-defrag"].as_str(), Some("never"));
        assert_eq!(table["factor"]["vm-swappiness"]["levels"][0].as_integer(), Some(10));
        assert!(table["monitors"]["vmstat"].is_str() && table["profile"].is_table());
        assert_eq!(table["description"].as_str(), Some("Messages between many tasks"));
    }

    #[test]
    fn the_account_has_every_line_once() {
        let study = convert(MESSAGES);
        let counts = study.account.count();
        assert_eq!(counts.lines, MESSAGES.lines().count());
        assert_eq!(
            counts.empty + counts.translated + counts.no_meaning + counts.not_understood,
            counts.lines
        );
        insta::assert_snapshot!(left_out_lines(&study), @"
        21: a factor of kind sysctl: say which file in /proc/sys it is
        22: the kernel's command line: boot it so, or run in a guest: `append` of [target.NAME]
        23: the kernel's command line: boot it so, or run in a guest: `append` of [target.NAME]
        28: `carrier-pigeon` has no counterpart here
        29: Ruby decides it: nothing is run
        30: nothing here corresponds; did you mean `fds`?
        33: Ruby decides it: nothing is run
        34: Ruby decides it: nothing is run
        35: Ruby decides it: nothing is run
        36: nothing here corresponds
        40: a study has it for all workloads, as its first part says it: make another study of this part
        41: a study has it for all workloads, as its first part says it: make another study of this part
        ");
    }

    /// As many files as fit at the greatest number of threads: none of the others takes more room.
    #[test]
    fn what_is_divided_by_several_values_is_divided_by_the_greatest() {
        let job = "suite: fsmark\nnr_threads: [1t, 32t]\nfilesize: 16MB\ntest_size: 60G\nfs: [ext4, f2fs, ntfs]\nfsmark:\n";
        let study = convert(job);
        assert!(study.text.contains("files = 120\n"), "{}", study.text);
        insta::assert_snapshot!(left_out_lines(&study), @"
        4: files = 120 holds for the greatest `nr_threads`, and is the same for the others
        5: `f2fs` is no file system of [disk]: ext4, xfs, btrfs; `ntfs` is no file system of [disk]: ext4, xfs, btrfs
        ");
    }

    /// The head of a table says no more of it than its lines.
    #[test]
    fn a_table_of_which_every_line_is_left_out_became_nothing() {
        let fates = |line: &str| {
            let study = convert(&format!(
                "suite: hackbench\nhackbench:\n  mode: process\nsysctl:\n  sc_nonsense: 3\n{line}"
            ));
            let of_head = study.account.iter().find(|(at, _)| *at == 4).map(|(_, fate)| fate.clone());
            of_head.unwrap()
        };
        assert!(matches!(fates(""), LineFate::NotUnderstood(_)), "{:?}", fates(""));
        assert!(
            matches!(fates("  sc_swappiness: 10\n"), LineFate::Translated(_)),
            "{:?}",
            fates("  sc_swappiness: 10\n")
        );
    }

    /// A file that is included stands in place of the line, changed as that says.
    #[test]
    fn files_beside_are_included() {
        let folder = tempfile::tempdir().unwrap();
        let jobs = folder.path().join("jobs");
        std::fs::create_dir_all(jobs.join("other")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(jobs.join(name), text).unwrap();
        write(
            "base.yaml",
            "suite: x\nruntime: 5m\nnr_threads: 1\nfs: xfs\nodd: 1\ntbench:\n---\nnr_threads: 2\n<<: loop.yaml\n",
        );
        write("loop.yaml", "<<: other.yaml\n<<: loop.yaml\n");
        write("other/other.yaml", "iterations: 3\n");
        std::os::unix::fs::symlink("/etc/hostname", jobs.join("link.yaml")).unwrap();
        let convert = |text: &str| convert_job_file(text, &jobs, "mine.yaml").unwrap();
        let study = convert(
            "<<: {file: base.yaml, ignore: fs, runtime: 7s}\n<<: link.yaml\n<<: ../base.txt\nnr_threads: 4\n",
        );
        let table = parse(&study);
        assert_eq!(table["workload"]["tbench"]["parameters"]["clients"].as_integer(), Some(1));
        assert_eq!(table["workload"]["tbench-2"]["parameters"]["clients"].as_integer(), Some(4));
        assert_eq!(table["workload"]["tbench-2"]["parameters"]["time"].as_str(), Some("7s"));
        assert_eq!(table["run"]["iterations"].as_integer(), Some(3));
        assert!(table.get("disk").is_none());
        let counts = study.account.count();
        assert_eq!((counts.translated, counts.not_understood), (2, 2), "{:?}", study.account);
        let comments: Vec<&str> = study.text.lines().filter(|line| line.starts_with("# Line ")).collect();
        insta::assert_snapshot!(comments.join("\n"), @"
        # Line 2 is left out: `link.yaml` is not there, or cannot be read
        # Line 3 is left out: `../base.txt` is not there, or cannot be read
        # Line 5 of base.yaml is left out: nothing here corresponds
        # Line 8 of base.yaml is left out: it is no parameter of the workload
        # Line 2 of loop.yaml is left out: `loop.yaml` would be read within itself, or too deep
        ");
    }

    #[test]
    fn what_has_no_counterpart_is_refused_with_the_reason() {
        let refuse = |text: &str| convert_job_file(text, Path::new("/nonexistent"), "c.yaml").unwrap_err();
        let texts = [
            "suite: kselftests\ncategory: functional\nkselftests:\n  group: x\n",
            "suite: hackbenhc\nhackbenhc:\n",
            "testcase: aim7\naim7:\n  test: x\n",
            "suite: will-it-scale\nwill-it-scale:\n  test: brk1\n",
            "suite: stress-ng\nstress-ng:\n",
            "suite: netperf\nnetperf:\n  test: SCTP_RR\n",
            "<<: none.yaml\n",
            "suite:\n",
            "suite: [a\n",
            "suite: a\n\tb: c\n",
        ];
        insta::assert_snapshot!(texts.map(refuse).join("\n"), @"
        none of its programs has a counterpart here: kselftests (functional tests are not measured)
        none of its programs has a counterpart here: hackbenhc (not known; did you mean `hackbench`?)
        none of its programs has a counterpart here: aim7 (none yet: the studies fs-metadata and scaling-* measure parts of it)
        none of its programs has a counterpart here: will-it-scale (`brk1` has no counterpart here)
        none of its programs has a counterpart here: stress-ng (`test` says what is measured, and is not there)
        none of its programs has a counterpart here: netperf (`SCTP_RR` has no counterpart here)
        it names no program that measures; line 1: `none.yaml` is not there, or cannot be read
        it names no program that measures
        line 1: it is no YAML: unclosed bracket '['
        line 1: it is no YAML: while scanning a plain scalar, found a tab
        ");
    }

    /// Whatever it names and writes, what comes out is TOML, and no template.
    #[test]
    fn names_and_values_of_others_are_quoted() {
        let text = "suite: 'a\"]'\nstress-ng:\n  test: [\"a\\\"]\\\\b\\n\", 'x{{ 1 }}', '{% raw %}', $(reboot)]\n\
                    cpufreq_governor: 'a\"b'\n";
        let study = convert_job_file(text, Path::new("/nonexistent"), "a\"\n].yaml").unwrap();
        let table = parse(&study);
        assert_eq!(table["workload"]["stress-ng"]["parameters"]["stressor"].as_str(), Some("a\"]\\b\n"));
        assert_eq!(table["settings"]["governor"].as_str(), Some("a\"b"));
        assert_eq!(study.account.count().not_understood, 1, "{:?}", study.account);
    }

    #[test]
    fn disks_settings_and_sizes_follow_from_several_keys() {
        let text = "suite: fsmark\ndisk: 1BRD_48G\nfs: [ext4, btrfs, f2fs]\niosched: none\niterations: 4x\nnr_threads: 10%\nfsmark:\n  \
                    filesize: 9B\n  test_size: 1G\n  nr_directories: 16d\n  sync_method: NoSync\nfsmark.test_size: 2G\ndrop_caches: 3\n";
        let study = convert(text);
        let table = parse(&study);
        let parameters = &table["workload"]["fsmark"]["parameters"];
        assert_eq!(parameters["files"].as_str(), Some("[131072 // ([cpus // 10, 1]|max), 1]|max"));
        assert_eq!(parameters["threads"].as_str(), Some("[[cpus // 10, 1]|max, 64]|min"));
        assert_eq!(parameters["sync"].as_str(), Some("none"));
        assert_eq!(table["disk"]["size"].as_integer(), Some(48 << 30));
        assert_eq!(table["factor"]["filesystem"]["levels"].as_array().unwrap().len(), 2);
        assert_eq!(table["settings"]["io-scheduler"].as_str(), Some("none"));
        assert_eq!(table["factor"]["caches"]["levels"][0].as_integer(), Some(3));
    }

    #[test]
    fn shares_and_times_are_understood() {
        let number = |text: &str| {
            let value = YamlScalar { text: text.into(), is_null: false, lines: 1..=1 };
            convert_number(&value).map(JobValue::into_toml).unwrap_or_default()
        };
        let numbers =
            ["100%", "200%", "25%", "30%", "16d", "10x", "0", "0%", "-1", "4K", "1e9", "%", ""].map(number);
        insta::assert_snapshot!(numbers.join("\n"), @r#"
        "cpus"
        "2 * cpus"
        "[cpus // 4, 1]|max"
        "[cpus * 30 // 100, 1]|max"
        16
        10
        0
        "#);
        let times = ["300", "300s", "5m", "4h", "1d", "20ms", "x", "-1s", "5 s", ""]
            .map(|text| convert_time(text, Some("s")));
        let times = times.map(Option::unwrap_or_default).join(" ");
        assert_eq!(times.trim_end(), "300s 300s 300s 14400s 86400s 20ms");
    }

    /// Whatever is missing of a job, what comes out is TOML, and each line has its fate.
    #[test]
    fn damaged_jobs_are_read_or_refused() {
        let lines: Vec<&str> = MESSAGES.lines().collect();
        let cut = (0..MESSAGES.len()).map(|end| MESSAGES[..end].to_owned());
        let without = (0..lines.len()).map(|line| [&lines[..line], &lines[line + 1..]].concat().join("\n"));
        let twice = (0..lines.len())
            .map(|line| [&lines[..line], &lines[..=line], &lines[line..]].concat().join("\n"));
        let marks =
            ["\t", "- ", "? ", "[", "{", "*", "&a ", "%", "<%", "{{", "'", "|\n", "\0", "\u{feff}", "..."];
        let marked = (0..lines.len()).flat_map(|line| {
            let lines = &lines;
            marks.map(move |mark| {
                let changed = format!("{mark}{}", lines[line]);
                [&lines[..line], &[&changed], &lines[line + 1..]].concat().join("\n")
            })
        });
        let (mut studies, mut refused) = (0, 0);
        for text in cut.chain(without).chain(twice).chain(marked) {
            let Ok(study) = convert_job_file(&text, Path::new("/nonexistent"), "c") else {
                refused += 1;
                continue;
            };
            studies += 1;
            parse(&study);
            let counts = study.account.count();
            let fates = counts.empty + counts.translated + counts.no_meaning + counts.not_understood;
            assert_eq!((fates, counts.lines), (text.lines().count(), text.lines().count()), "{text}");
        }
        assert!(studies > 100 && refused > 100, "{studies} {refused}");
    }

    /// Every counterpart is in the catalogue, with every parameter that the table names.
    #[test]
    fn counterparts_are_in_the_catalogue() {
        let catalogue = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
        let check = |name: &str, counterpart: &ProgramCounterpart| {
            let Some(workload) = &counterpart.workload else { return };
            let text = std::fs::read_to_string(catalogue.join(workload).with_extension("toml"));
            let definition: toml::Table =
                text.unwrap_or_else(|error| panic!("{name}: {error}")).parse().unwrap();
            for parameter in counterpart.parameters.keys() {
                assert!(definition["parameter"].get(parameter).is_some(), "{name}: {parameter}");
            }
        };
        for (name, counterpart) in &program_table().benchmark {
            check(name, counterpart);
            counterpart.variant.values().for_each(|variant| check(name, variant));
        }
    }
}
