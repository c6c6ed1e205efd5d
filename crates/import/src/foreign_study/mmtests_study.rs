//! A configuration of MMTests as a study: benchmarks become workloads, bounds become lists, monitors and settings their
//! counterparts, by the table `mmtests.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::OnceLock;

use indexmap::IndexMap;
use perflab_model::problem::{nearest_name, suggest_name};
use serde::Deserialize;

use super::counterpart_table::parse_shipped_table;
use super::line_account::{ConvertedStudy, LineAccount, LineFate};
use super::shell_config::{ChangeKind, ShellConfig, read_shell_config};
use super::shell_value::{Arithmetic, MachineNumber, ShellValue, shorten_foreign_text};
use super::study_text::{
    DEFAULT_ITERATIONS, describe_file, factor_name, is_slip, parse_shell_size, shorten_comment, toml_level,
    toml_multiline_string, toml_string, workload_name, write_table,
};

/// What stands here for what MMTests has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CounterpartTable {
    benchmark: BTreeMap<String, BenchmarkCounterpart>,
    #[serde(rename = "by-hand")]
    by_hand: BTreeMap<String, String>,
    elsewhere: BTreeMap<String, String>,
    monitors: BTreeMap<String, Vec<String>>,
    runner: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct BenchmarkCounterpart {
    workload: String,
    say: Option<String>,
    iterations: Option<String>,
    parameters: IndexMap<String, toml::Value>,
    #[serde(default)]
    without_meaning: BTreeMap<String, String>,
}

fn counterpart_table() -> &'static CounterpartTable {
    static TABLE: OnceLock<CounterpartTable> = OnceLock::new();
    TABLE.get_or_init(|| parse_shipped_table("mmtests.toml", include_str!("mmtests.toml")))
}

/// A study of the text of a configuration; those that it includes lie in `folder`.
///
/// # Errors
/// The reason why there is none.
pub(super) fn convert_configuration(text: &str, folder: &Path, name: &str) -> Result<ConvertedStudy, String> {
    let config = read_shell_config(text, folder)?;
    let benchmarks = named_benchmarks(&config)?;
    let mut writer = StudyWriter::new(&config, name);
    for benchmark in &benchmarks {
        writer.add_benchmark(benchmark);
    }
    if writer.workloads.is_empty() {
        return Err(no_counterpart(&writer.missing));
    }
    writer.settle_iterations();
    writer.add_monitors();
    writer.add_disk();
    writer.add_changes();
    let account = writer.account_for_lines();
    let text = writer.write_study(&describe_file(text), &account);
    Ok(ConvertedStudy { text, account })
}

fn named_benchmarks(config: &ShellConfig) -> Result<Vec<String>, String> {
    let names = config.variables.get("MMTESTS").map(|variable| &variable.value);
    match names {
        None => Err("it neither sets MMTESTS, as configurations of MMTests do, nor names a suite or testcase, as job files of \
                     lkp-tests do"
            .into()),
        Some(ShellValue::Text(names)) if !names.trim().is_empty() => {
            let names: indexmap::IndexSet<&str> = names.split_whitespace().collect();
            Ok(names.into_iter().map(str::to_owned).collect())
        }
        Some(_) => Err("MMTESTS names no benchmark that can be known without running it".into()),
    }
}

fn no_counterpart(benchmarks: &[(String, String)]) -> String {
    let why = |(name, why): &(String, String)| format!("{} ({why})", shorten_foreign_text(name));
    let all: Vec<String> = benchmarks.iter().take(5).map(why).collect();
    format!("none of its benchmarks has a counterpart here: {}", all.join("; "))
}

/// Why nothing stands for a benchmark, and what to use.
fn missing_counterpart(name: &str) -> String {
    let table = counterpart_table();
    match table.elsewhere.get(name) {
        Some(reason) => reason.clone(),
        None if name.ends_with("build") => "a program is built: a command of yours".into(),
        None if name.starts_with("nas-") || name.starts_with("parsec-") => "none yet".into(),
        None => format!("not known; {}", suggest_name(name, table.benchmark.keys().map(String::as_str))),
    }
}

/// A workload of the study.
struct ConvertedWorkload {
    name: String,
    counterpart: &'static BenchmarkCounterpart,
    parameters: Vec<(String, String)>,
    matrix: Vec<(String, String)>,
}

struct StudyWriter<'a> {
    config: &'a ShellConfig,
    file: String,
    workloads: Vec<ConvertedWorkload>,
    /// Benchmarks that nothing stands for, each with the reason.
    missing: Vec<(String, String)>,
    /// How often benchmarks are repeated, by the variable that says so.
    iterations: BTreeMap<String, i64>,
    /// Workloads whose steps are not those of the original.
    other_steps: BTreeSet<String>,
    monitors: BTreeSet<String>,
    monitor_interval: String,
    counters: Vec<String>,
    disk: Vec<(String, String)>,
    settings: IndexMap<String, String>,
    /// By their names; of two that are alike the last is what holds.
    factors: IndexMap<String, String>,
    /// What became of variables, by name.
    fates: BTreeMap<String, LineFate>,
    change_fates: Vec<LineFate>,
}

impl<'a> StudyWriter<'a> {
    fn new(config: &'a ShellConfig, file: &str) -> Self {
        StudyWriter {
            config,
            file: shorten_foreign_text(file),
            workloads: Vec::new(),
            missing: Vec::new(),
            iterations: BTreeMap::new(),
            other_steps: BTreeSet::new(),
            monitors: BTreeSet::new(),
            monitor_interval: "10s".into(),
            counters: Vec::new(),
            disk: Vec::new(),
            settings: IndexMap::new(),
            factors: IndexMap::new(),
            fates: BTreeMap::new(),
            change_fates: Vec::new(),
        }
    }

    /// The value of a variable that is set to something.
    fn value(&self, name: &str) -> Option<&'a ShellValue> {
        let value = &self.config.variables.get(name)?.value;
        (value.as_text() != Some("")).then_some(value)
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.value(name)?.as_text()
    }

    fn translated(&mut self, name: &str, what: String) {
        self.fates.insert(name.to_owned(), LineFate::Translated(what));
    }

    fn refused(&mut self, name: &str, why: String) {
        self.fates.entry(name.to_owned()).or_insert(LineFate::NotUnderstood(why));
    }

    fn add_benchmark(&mut self, name: &str) {
        let Some(counterpart) = counterpart_table().benchmark.get(name).filter(|_| self.is_covered(name))
        else {
            self.missing.push((name.to_owned(), missing_counterpart(name)));
            return;
        };
        let mut workload = ConvertedWorkload {
            name: workload_name(name),
            counterpart,
            parameters: Vec::new(),
            matrix: Vec::new(),
        };
        for (parameter, rule) in &counterpart.parameters {
            self.add_parameter(&mut workload, parameter, rule);
        }
        if name == "fio"
            && let Err(why) = self.add_fio_jobs(&mut workload)
        {
            self.refused("FIO_CMD_OPTIONS", why.clone());
            self.missing.push((name.to_owned(), why));
            return;
        }
        if name == "perfpipe" {
            self.add_placement(&workload.name);
        }
        for (variable, why) in &counterpart.without_meaning {
            self.fates.entry(variable.clone()).or_insert_with(|| LineFate::NoMeaning(why.clone()));
        }
        if let Some(variable) = &counterpart.iterations {
            self.add_iterations(variable);
        }
        self.add_iterations("MMTEST_ITERATIONS");
        self.workloads.push(workload);
    }

    /// Whether the kind of a benchmark that is asked for is the one that has a counterpart.
    fn is_covered(&self, benchmark: &str) -> bool {
        match benchmark {
            "unixbenchd" => self.text("UNIXBENCHD_SUBCOMMAND").is_none_or(|command| command == "context1"),
            "fio" => self.value("FIO_CMD_OPTIONS").is_some() || self.value("FIO_IO_PATTERNS").is_some(),
            _ => true,
        }
    }

    fn add_iterations(&mut self, variable: &str) {
        let Some(value) = self.value(variable) else { return };
        match value.as_integer().filter(|number| (1..=100_000).contains(number)) {
            Some(number) => drop(self.iterations.insert(variable.to_owned(), number)),
            None => self.refused(
                variable,
                "iterations are a whole number from 1 to 100000, known before a run".into(),
            ),
        }
    }

    /// A study repeats all of its workloads alike: as often as the one that is repeated most.
    fn settle_iterations(&mut self) {
        let Some(most) = self.iterations.values().copied().max() else { return };
        for (variable, number) in self.iterations.clone() {
            let more = if number < most { " for all workloads" } else { "" };
            self.translated(&variable, format!("run.iterations = {most}{more}"));
        }
    }

    fn add_parameter(&mut self, workload: &mut ConvertedWorkload, parameter: &str, rule: &toml::Value) {
        let toml::Value::String(rule) = rule else {
            workload.parameters.push((parameter.to_owned(), rule.to_string()));
            return;
        };
        if let Some(text) = rule.strip_prefix('=') {
            workload.parameters.push((parameter.to_owned(), toml_string(text)));
            return;
        }
        let words: Vec<&str> = rule.split_whitespace().collect();
        let place = format!("workload.{}.parameters.{parameter}", workload.name);
        match words[..] {
            ["walk" | "powers" | "strides", low, high] => {
                self.add_range(workload, parameter, (words.first().copied().unwrap_or_default(), low, high))
            }
            ["list" | "sizes" | "words", variable] => {
                self.add_list(workload, parameter, (words.first().copied().unwrap_or_default(), variable))
            }
            [kind, variables, ref rest @ ..] => {
                let Some(variable) = variables.split('|').find(|name| self.value(name).is_some()) else {
                    return;
                };
                let Some(value) = self.value(variable) else { return };
                match convert_value(kind, value, rest.first().copied()) {
                    Ok(text) => {
                        self.translated(variable, format!("{place} = {text}"));
                        workload.parameters.push((parameter.to_owned(), text));
                    }
                    Err(why) => self.refused(variable, why),
                }
            }
            _ => {}
        }
    }

    /// A list from its two ends; one value where both are the same.
    fn add_range(
        &mut self,
        workload: &mut ConvertedWorkload,
        parameter: &str,
        (function, low, high): (&str, &str, &str),
    ) {
        let end = |writer: &Self, name: &str| match name.parse::<i64>() {
            Ok(number) => Some(Ok(MachineNumber::known(number))),
            Err(_) => writer.value(name).map(|value| {
                value.as_number().ok_or_else(|| match value {
                    ShellValue::Unknown(reason) => reason.clone(),
                    _ => "it is no number".to_owned(),
                })
            }),
        };
        let (low_end, high_end) = (end(self, low), end(self, high));
        for (name, found) in [(low, &low_end), (high, &high_end)] {
            if let Some(Err(why)) = found {
                self.refused(name, why.clone());
            }
        }
        let place = |writer: &mut Self, what: &str, text: &str| {
            let names = [low, high].map(|name| (name, writer.value(name).is_some()));
            for (name, _) in names.into_iter().filter(|(_, is_set)| *is_set) {
                writer.translated(name, format!("workload.{}.{what}.{parameter} = {text}", workload.name));
            }
        };
        match (low_end, high_end) {
            (Some(Ok(low_end)), Some(Ok(high_end))) if low_end != high_end => {
                let ours = if function == "strides" { "powers" } else { function };
                if function != ours {
                    self.other_steps.insert(workload.name.clone());
                }
                let text = toml_string(&format!("{ours}({low_end}, {high_end})"));
                place(self, "matrix", &text);
                workload.matrix.push((parameter.to_owned(), text));
            }
            (Some(Ok(only)), Some(Ok(_))) | (None, Some(Ok(only))) => {
                let text = number_text(&only);
                place(self, "parameters", &text);
                workload.parameters.push((parameter.to_owned(), text));
            }
            // One end of a list is none, where the other is not known.
            (Some(Ok(only)), None) if self.value(low).is_some() => {
                let text = number_text(&only);
                place(self, "parameters", &text);
                workload.parameters.push((parameter.to_owned(), text));
            }
            _ => {}
        }
    }

    fn add_list(
        &mut self,
        workload: &mut ConvertedWorkload,
        parameter: &str,
        (kind, variable): (&str, &str),
    ) {
        let Some(value) = self.value(variable) else { return };
        let Some(text) = value.as_text() else {
            return self.refused(variable, "a list that the machine decides".into());
        };
        let words: Vec<&str> = text.split([' ', ',', '\n', '\t']).filter(|word| !word.is_empty()).collect();
        let converted: Option<Vec<String>> = words
            .iter()
            .map(|word| match kind {
                "words" => Some(toml_string(word)),
                "sizes" => parse_shell_size(word).map(|bytes| bytes.to_string()),
                _ => word.parse::<i64>().ok().map(|number| number.to_string()),
            })
            .collect();
        match converted.as_deref() {
            Some([only]) => {
                self.translated(
                    variable,
                    format!("workload.{}.parameters.{parameter} = {only}", workload.name),
                );
                workload.parameters.push((parameter.to_owned(), only.clone()));
            }
            Some(list @ [_, ..]) => {
                let text = format!("[{}]", list.join(", "));
                self.translated(variable, format!("workload.{}.matrix.{parameter} = {text}", workload.name));
                workload.matrix.push((parameter.to_owned(), text));
            }
            _ => self.refused(variable, "a list of what are no numbers".into()),
        }
    }

    /// The jobs of fio: a file that the configuration wrote, with the options of the command line, or these alone.
    fn add_fio_jobs(&mut self, workload: &mut ConvertedWorkload) -> Result<(), String> {
        if self.value("FIO_CMD_OPTIONS").is_none() {
            self.add_fio_patterns(workload);
            return Ok(());
        }
        let Some(options) = self.text("FIO_CMD_OPTIONS") else {
            return Err("its options are not known without running it".into());
        };
        let mut job = String::new();
        let (mut extra, mut sections) = (Vec::new(), Vec::<Vec<&str>>::new());
        for word in split_outside_templates(options) {
            match word.strip_prefix("--") {
                // Each name begins a job, to which the options that follow belong.
                Some(option) if option.starts_with("name=") => sections.push(vec![option]),
                Some(option) => sections.last_mut().unwrap_or(&mut extra).push(option),
                None => match self.config.files.get(word) {
                    Some(ShellValue::Unknown(reason)) => return Err(reason.clone()),
                    Some(text) => job.push_str(&text.clone().into_template()),
                    None => return Err(format!("the job file {} is not there", shorten_foreign_text(word))),
                },
            }
        }
        for section in &sections {
            let Some((name, options)) = section.split_first() else { continue };
            let options = options.iter().filter(|option| !option.starts_with("output"));
            let lines: Vec<&str> = options.copied().collect();
            job.push_str(&format!("\n[{}]\n{}\n", name.trim_start_matches("name="), lines.join("\n")));
        }
        if job.is_empty() {
            job = "[job]\n".into();
        }
        let mut lines: Vec<String> = job.lines().map(|line| strip_job_comment(line).to_owned()).collect();
        lines.retain(|line| !line.is_empty());
        // Options of the command line hold for the jobs that follow: for all of a file's.
        let global = lines.iter().position(|line| line.trim() == "[global]").map(|at| at + 1);
        let at = global.unwrap_or_else(|| {
            lines.insert(0, "[global]".into());
            1
        });
        for option in extra.iter().rev().filter(|option| !option.starts_with("output")) {
            lines.insert(at, (*option).to_owned());
        }
        let text = toml_multiline_string(&lines.join("\n"));
        for name in ["FIO_CMD_OPTIONS", "JOBFILE"] {
            self.translated(name, format!("workload.{}.parameters.job", workload.name));
        }
        workload.parameters.push(("job".into(), text));
        Ok(())
    }

    /// fio by its parameters, `FIO_TEST_TYPE=multivar_scale`: the workload `fio`, each list a list.
    fn add_fio_patterns(&mut self, workload: &mut ConvertedWorkload) {
        workload.counterpart = plain_fio();
        let rules = [
            ("rw", "words FIO_IO_PATTERNS"),
            ("iodepth", "list FIO_IODEPTH"),
            ("bs", "sizes FIO_BLOCK_SIZE"),
            ("size", "sizes FIO_SIZE"),
            ("ioengine", "words FIO_IOENGINE"),
            ("jobs", "powers 1 FIO_MAX_JOBS"),
        ];
        for (parameter, rule) in rules {
            self.add_parameter(workload, parameter, &toml::Value::String(rule.into()));
        }
    }

    /// Where the two ends of a pipe run.
    fn add_placement(&mut self, workload: &str) {
        let Some(binding) = self.text("PERFPIPE_BINDING") else { return };
        let level = match binding {
            "cross-ht" => "siblings",
            "cross-llc" | "same-socket" => "same-cache",
            "cross-socket" | "cross-node" => "cross-node",
            "pinned" | "pin" => "one-cpu",
            _ => {
                return self.refused(
                    "PERFPIPE_BINDING",
                    format!("`{}` is no placement here", shorten_foreign_text(binding)),
                );
            }
        };
        self.translated("PERFPIPE_BINDING", format!("factor.placement.levels = [\"{level}\"]"));
        let text =
            format!("kind = \"placement\"\nworkload = {}\nlevels = [\"{level}\"]", toml_string(workload));
        self.factors.insert("placement".into(), text);
    }

    fn add_monitors(&mut self) {
        let table = counterpart_table();
        let mut not_here = Vec::new();
        for variable in ["MONITORS_ALWAYS", "MONITORS_GZIP", "MONITORS_WITH_LATENCY", "MONITORS_TRACER"] {
            let Some(names) = self.text(variable) else { continue };
            for name in names.split_whitespace() {
                match table.monitors.get(name) {
                    Some(ours) => self.monitors.extend(ours.iter().cloned()),
                    None if name.starts_with("perf-") || name == "ftrace" => {}
                    None => not_here.push(name),
                }
            }
            let fate = match not_here[..] {
                [] => LineFate::Translated("monitors".into()),
                _ => LineFate::Translated(format!(
                    "monitors, but {}, which perflab has not",
                    not_here.join(", ")
                )),
            };
            not_here.clear();
            self.fates.insert(variable.into(), fate);
        }
        if self.text("RUN_MONITOR") == Some("no") {
            self.monitors.clear();
            self.translated("RUN_MONITOR", "no monitors".into());
        }
        if let Some(value) = self.value("MONITOR_UPDATE_FREQUENCY")
            && let Ok(text) = convert_value("time", value, Some("s"))
        {
            self.monitor_interval = text.trim_matches('"').to_owned();
            self.translated("MONITOR_UPDATE_FREQUENCY", format!("the interval of monitors is {text}"));
        } else if self.value("MONITOR_UPDATE_FREQUENCY").is_some() {
            self.refused("MONITOR_UPDATE_FREQUENCY", "it is no number of seconds".into());
        }
        if let Some(events) = self.text("MONITOR_PERF_EVENTS") {
            let is_name =
                |event: &&str| event.chars().all(|c| c.is_ascii_alphanumeric() || "-_:/".contains(c));
            self.counters = events
                .split([',', ' ', '\n', '\t'])
                .filter(|event| !event.is_empty())
                .filter(is_name)
                .map(str::to_owned)
                .collect();
            self.translated("MONITOR_PERF_EVENTS", "counters.events".into());
        }
    }

    fn add_disk(&mut self) {
        let filesystem =
            self.text("TESTDISK_FILESYSTEM").filter(|name| ["ext4", "xfs", "btrfs"].contains(name));
        if let Some(partition) = self.text("TESTDISK_PARTITION") {
            self.disk.push(("kind".into(), toml_string("partition")));
            self.disk.push(("path".into(), toml_string(partition)));
            self.translated("TESTDISK_PARTITION", "disk.path".into());
        } else if filesystem.is_some() {
            let size = self.text("TESTDISK_FS_SIZE").and_then(parse_shell_size);
            let size = size.map_or_else(|| toml_string("2GiB"), |bytes| bytes.to_string());
            self.disk.push(("kind".into(), toml_string("image")));
            self.disk.push(("size".into(), size));
            self.translated("TESTDISK_FS_SIZE", "disk.size".into());
        }
        if let Some(filesystem) = filesystem {
            self.disk.push(("filesystem".into(), toml_string(filesystem)));
            self.translated("TESTDISK_FILESYSTEM", "disk.filesystem".into());
        }
        for (variable, key) in [("TESTDISK_MKFS_PARAM", "mkfs"), ("TESTDISK_MOUNT_ARGS", "mount")] {
            if let Some(text) = self.text(variable).filter(|_| !self.disk.is_empty()) {
                let words: Vec<String> = text.split_whitespace().map(toml_string).collect();
                let value = if key == "mkfs" { format!("[{}]", words.join(", ")) } else { toml_string(text) };
                self.disk.push((key.into(), value));
                self.translated(variable, format!("disk.{key}"));
            }
        }
        let needed = self.config.variables.contains_key("TESTDISK_FS_SIZE") && self.disk.is_empty();
        if needed {
            let why = "without TESTDISK_FILESYSTEM, workloads write to a directory";
            self.fates.insert("TESTDISK_FS_SIZE".into(), LineFate::NoMeaning(why.into()));
        }
    }

    fn add_changes(&mut self) {
        for change in &self.config.changes {
            let fate = match &change.kind {
                ChangeKind::Write(path, value) => self.add_written_file(path, value.trim()),
                ChangeKind::Command(words) => {
                    let words: Vec<&str> = words.iter().map(String::as_str).collect();
                    self.add_command(&words)
                }
            };
            self.change_fates.push(fate);
        }
    }

    fn set(&mut self, preset: &str, level: &str) -> LineFate {
        let level = toml_level(level);
        let fate = LineFate::Translated(format!("settings.{preset} = {level}"));
        self.settings.insert(preset.to_owned(), level);
        fate
    }

    fn add_sysctl(&mut self, key: &str, value: &str) -> LineFate {
        if !key.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c)) || value.contains("{{") {
            return LineFate::NotUnderstood("a sysctl whose value the machine decides".into());
        }
        let key = key.replace('/', ".");
        if key.split('.').any(str::is_empty) {
            return LineFate::NotUnderstood("a path that is no sysctl's".into());
        }
        if key == "vm.drop_caches" {
            let text = format!("kind = \"drop-caches\"\nlevels = [{}]", value.parse::<i64>().unwrap_or(3));
            self.factors.insert("caches".into(), text);
            return LineFate::Translated("a factor of kind drop-caches".into());
        }
        let level = toml_level(value);
        let text = format!("kind = \"sysctl\"\nkey = {}\nlevels = [{level}]", toml_string(&key));
        self.factors.insert(factor_name(&key), text);
        LineFate::Translated(format!("a factor of kind sysctl: {key} = {level}"))
    }

    fn add_written_file(&mut self, path: &str, value: &str) -> LineFate {
        if let Some(key) = path.strip_prefix("/proc/sys/") {
            return self.add_sysctl(key, value);
        }
        match path {
            "/sys/kernel/mm/transparent_hugepage/enabled" => self.set("thp", value),
            "/sys/kernel/mm/transparent_hugepage/defrag" => self.set("thp-defrag", value),
            "/sys/kernel/mm/lru_gen/enabled" => self.set("lru-gen", value),
            _ if value.contains("{{") => LineFate::NotUnderstood("a value that the machine decides".into()),
            _ if path.split('/').skip(1).any(|name| matches!(name, "" | "." | "..")) => {
                LineFate::NotUnderstood("a path that is no file's".into())
            }
            _ => {
                let level = toml_level(value);
                let text = format!("kind = \"file\"\nkey = {}\nlevels = [{level}]", toml_string(path));
                self.factors.insert(factor_name(path.trim_start_matches("/sys/")), text);
                LineFate::Translated(format!("a factor of kind file: {}", shorten_foreign_text(path)))
            }
        }
    }

    fn add_command(&mut self, words: &[&str]) -> LineFate {
        match words {
            ["disable_transhuge"] => self.set("thp", "never"),
            ["enable_transhuge"] => self.set("thp", "always"),
            ["madvise_transhuge" | "default_transhuge"] => self.set("thp", "madvise"),
            ["cpupower", "frequency-set", "-g", governor] => self.set("governor", governor),
            ["swapoff", "-a"] => self.set("swap", "none"),
            ["sysctl", rest @ ..] => {
                let pairs = rest.iter().filter_map(|word| word.split_once('='));
                let pairs: Vec<(&str, &str)> = pairs.collect();
                match pairs[..] {
                    [(key, value)] => self.add_sysctl(key, value),
                    _ => LineFate::NotUnderstood("a sysctl that is not one name with its value".into()),
                }
            }
            ["limit_memory", ..] => LineFate::NotUnderstood(
                "run it in a guest with so much memory: [target] memory, or append = \"mem=...\"".into(),
            ),
            [name, ..] => LineFate::NotUnderstood(format!(
                "the command `{}`: a hook or a factor of kind commands can run it",
                shorten_foreign_text(name)
            )),
            [] => LineFate::NoMeaning("it does nothing".into()),
        }
    }

    fn account_for_lines(&self) -> LineAccount {
        let mut account = self.config.account.clone();
        for (change, fate) in self.config.changes.iter().zip(&self.change_fates) {
            account.set(change.lines.clone(), fate);
        }
        for (name, variable) in &self.config.variables {
            let fate = self.variable_fate(name, &variable.value);
            for lines in &variable.lines {
                account.set(lines.clone(), &fate);
            }
        }
        account
    }

    fn variable_fate(&self, name: &str, value: &ShellValue) -> LineFate {
        if name == "MMTESTS" {
            return match &self.missing[..] {
                [] => LineFate::Translated("the workloads".into()),
                missing => {
                    let why =
                        |(name, why): &(String, String)| format!("{}: {why}", shorten_foreign_text(name));
                    let all: Vec<String> = missing.iter().map(why).collect();
                    LineFate::NotUnderstood(format!(
                        "not all benchmarks have a counterpart: {}",
                        all.join("; ")
                    ))
                }
            };
        }
        if let Some(fate) = self.fates.get(name) {
            return fate.clone();
        }
        if value.as_text() == Some("") {
            return LineFate::NoMeaning("it is empty: what holds without it".into());
        }
        if let Some(why) = counterpart_table().runner.get(name) {
            return LineFate::NoMeaning(why.clone());
        }
        if let Some(how) = counterpart_table().by_hand.get(name) {
            return LineFate::NotUnderstood(how.clone());
        }
        if self.config.read.contains(name) {
            return LineFate::Translated("part of other values".into());
        }
        if self.config.files.contains_key(value.as_text().unwrap_or_default()) {
            return LineFate::Translated("the name of a file".into());
        }
        let known = self.workloads.iter().flat_map(|workload| workload.counterpart.variables());
        let known: BTreeSet<&str> = known.collect();
        LineFate::NotUnderstood(match nearest_name(name, known).filter(|known| is_slip(name, known)) {
            Some(nearest) => format!("nothing here corresponds; did you mean `{nearest}`?"),
            None => "nothing here corresponds".into(),
        })
    }

    fn write_study(&self, description: &str, account: &LineAccount) -> String {
        let mut text =
            format!("# Made by `perflab study from {}`, which has an account of every line.\n", self.file);
        for (name, why) in &self.missing {
            let _ = writeln!(text, "# Not here: {}: {}", shorten_foreign_text(name), shorten_comment(why));
        }
        for workload in &self.workloads {
            if let Some(say) = &workload.counterpart.say {
                let _ = writeln!(text, "# {}: {say}.", workload.name);
            }
        }
        for (line, fate) in account.iter() {
            if let LineFate::NotUnderstood(why) = fate {
                let _ = writeln!(text, "# Line {line} is left out: {}", shorten_comment(why));
            }
        }
        let counts: BTreeSet<i64> = self.iterations.values().copied().collect();
        if counts.len() > 1 {
            let _ = writeln!(
                text,
                "# MMTests repeats these benchmarks unequally often; a study repeats all alike, as often as the most."
            );
        } else if counts.is_empty() {
            let _ = writeln!(
                text,
                "# How often to repeat it does not stand in the configuration: {DEFAULT_ITERATIONS} times are ours."
            );
        }
        for name in &self.other_steps {
            let _ = writeln!(
                text,
                "# {name}: MMTests steps by strides of its own between the two ends; here they double."
            );
        }
        let title = self.file.trim_start_matches("config-");
        let _ = writeln!(text, "title = {}", toml_string(title));
        if !description.is_empty() {
            let _ = writeln!(text, "description = {}", toml_string(description));
        }
        let iterations = self.iterations.values().copied().max().unwrap_or(DEFAULT_ITERATIONS);
        let _ = writeln!(text, "\n[run]\niterations = {iterations}");
        for workload in &self.workloads {
            let name = &workload.name;
            let _ = writeln!(text, "\n[workload.{name}]");
            if *name != workload.counterpart.workload {
                let _ = writeln!(text, "use = {}", toml_string(&workload.counterpart.workload));
            }
            write_table(&mut text, &format!("workload.{name}.parameters"), &workload.parameters);
            write_table(&mut text, &format!("workload.{name}.matrix"), &workload.matrix);
        }
        if !self.monitors.is_empty() {
            let interval = toml_string(&self.monitor_interval);
            let monitors: Vec<(String, String)> =
                self.monitors.iter().map(|name| (name.clone(), interval.clone())).collect();
            write_table(&mut text, "monitors", &monitors);
        }
        if !self.counters.is_empty() {
            let events: Vec<String> = self.counters.iter().map(|event| toml_string(event)).collect();
            let _ = writeln!(text, "\n[counters]\nevents = [{}]", events.join(", "));
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

impl BenchmarkCounterpart {
    /// The variables that it knows.
    fn variables(&self) -> impl Iterator<Item = &str> {
        let rules = self.parameters.values().filter_map(toml::Value::as_str);
        let named = rules
            .flat_map(str::split_whitespace)
            .filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase()));
        named.chain(self.iterations.as_deref()).chain(self.without_meaning.keys().map(String::as_str))
    }
}

fn plain_fio() -> &'static BenchmarkCounterpart {
    static FIO: OnceLock<BenchmarkCounterpart> = OnceLock::new();
    FIO.get_or_init(|| BenchmarkCounterpart {
        workload: "fio".into(),
        say: None,
        iterations: None,
        parameters: IndexMap::new(),
        without_meaning: BTreeMap::new(),
    })
}

/// A number as a value: itself, or an expression.
fn number_text(number: &MachineNumber) -> String {
    number.as_integer().map_or_else(|| toml_string(&number.to_string()), |known| known.to_string())
}

/// A value of a parameter, by the kind that the table has for it.
fn convert_value(kind: &str, value: &ShellValue, unit: Option<&str>) -> Result<String, String> {
    let unknown = |value: &ShellValue| match value {
        ShellValue::Unknown(reason) => reason.clone(),
        ShellValue::Text(text) => format!("`{}` is no such value", shorten_foreign_text(text)),
        ShellValue::Number(_) => "the machine decides it".to_owned(),
    };
    let parts: u64 = unit.and_then(|unit| unit.parse().ok()).unwrap_or(1);
    match kind {
        "number" => value.as_number().map(|number| number_text(&number)).ok_or_else(|| unknown(value)),
        "size" => match value {
            ShellValue::Text(text) => {
                let bytes = parse_shell_size(text).and_then(|bytes| bytes.checked_div(parts));
                bytes.map(|bytes| bytes.to_string()).ok_or_else(|| unknown(value))
            }
            ShellValue::Number(number) => {
                let divisor = MachineNumber::known(i64::try_from(parts).unwrap_or(1));
                let part = if parts == 1 {
                    Some(number.clone())
                } else {
                    number.compute(Arithmetic::Divide, &divisor)
                };
                part.map(|part| toml_string(&part.to_string())).ok_or_else(|| unknown(value))
            }
            ShellValue::Unknown(_) => Err(unknown(value)),
        },
        "time" => match value.as_integer().filter(|time| *time >= 0) {
            Some(time) => Ok(toml_string(&format!("{time}{}", unit.unwrap_or("s")))),
            None => {
                let seconds = value.as_text().and_then(|text| text.trim().parse::<f64>().ok());
                let seconds = seconds.filter(|seconds| unit == Some("s") && (0.001..1e6).contains(seconds));
                seconds
                    .map(|seconds| toml_string(&format!("{}ms", (seconds * 1e3).round())))
                    .ok_or_else(|| unknown(value))
            }
        },
        "text" => value.as_text().map(toml_string).ok_or_else(|| unknown(value)),
        "yes" => match value.as_text() {
            Some("yes") => Ok("true".into()),
            Some("no") => Ok("false".into()),
            _ => Err(unknown(value)),
        },
        _ => Err(format!("the table has no kind `{kind}`")),
    }
}

/// Words apart from one another by blanks, but for those of templates: `--jobs={{ 2 * cpus }}` is one.
fn split_outside_templates(text: &str) -> Vec<&str> {
    let (mut words, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if c.is_whitespace() && depth < 2 => {
                words.extend(text.get(start..at).filter(|word| !word.is_empty()));
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    words.extend(text.get(start..).filter(|word| !word.is_empty()));
    words
}

/// A line of a job file without what fio takes for a comment.
fn strip_job_comment(line: &str) -> &str {
    let end = line.find(['#', ';']).unwrap_or(line.len());
    line.get(..end).unwrap_or_default().trim_end()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn convert(text: &str) -> ConvertedStudy {
        convert_configuration(text, Path::new("/nonexistent"), "config-mine").unwrap()
    }

    fn parse(study: &ConvertedStudy) -> toml::Table {
        study.text.parse().unwrap()
    }

    #[test]
    fn each_name_on_the_command_line_of_fio_is_a_job_of_its_own() {
        let text = "export MMTESTS=fio\n\
            export FIO_CMD_OPTIONS=\"--direct=1 --name=a --rw=read --size=64M --name=b --rw=write --numjobs=$((NUMCPUS*2))\"\n";
        let study = convert(text);
        let job = parse(&study)["workload"]["fio"]["parameters"]["job"].as_str().unwrap().to_owned();
        insta::assert_snapshot!(job, @"
        [global]
        direct=1
        [a]
        rw=read
        size=64M
        [b]
        rw=write
        numjobs={{ 2 * cpus }}
        ");
        assert_eq!(study.account.count().not_understood, 0);
    }

    /// As in bash, whose `:` does nothing but expand its words.
    #[test]
    fn a_default_that_is_assigned_holds_from_then_on() {
        let text =
            "export MMTESTS=hackbench-process-pipes\n: ${LOOPS:=7}\nexport HACKBENCH_ITERATIONS=$LOOPS\n";
        assert_eq!(parse(&convert(text))["run"]["iterations"].as_integer(), Some(7));
    }

    const LATENCY: &str = "\
### Wake-ups over all CPUs
export MMTESTS=\"schbench stressng\"
. $SHELLPACK_INCLUDE/include-sizes.sh
export MONITORS_GZIP=\"proc-vmstat mpstat\"
export MONITOR_UPDATE_FREQUENCY=3
STEPS=15
export SCHBENCH_RUNTIME=$((60+STEPS-1)) SCHBENCH_MIN_WORKER_THREADS=1
export SCHBENCH_MAX_WORKER_THREADS=$((NUM_LOGICAL_CPUS*2))
if [ $SCHBENCH_MAX_WORKER_THREADS -gt 64 ]; then
\tSCHBENCH_MAX_WORKER_THREADS=64
fi
if [[ `uname -m` =~ i.86 ]]; then
\texport SCHBENCH_RUNTIME=1
fi
export STRESSNG_TESTNAME=context STRESSNG_ITERATIONS=7
disable_transhuge
echo 40 > /proc/sys/vm/dirty_ratio
frobnicate --now
export SCHBENCH_RUNTIEM=5
";

    #[test]
    fn a_configuration_becomes_a_study_that_fits_every_machine() {
        let study = convert(LATENCY);
        let table = parse(&study);
        let workload = &table["workload"]["schbench"];
        assert_eq!(workload["use"].as_str(), Some("wakeups"));
        assert_eq!(workload["parameters"]["time"].as_str(), Some("74s"));
        assert_eq!(workload["matrix"]["workers"].as_str(), Some("walk(1, [2 * cpus, 64]|min)"));
        assert_eq!(table["workload"]["stressng"]["parameters"]["stressor"].as_str(), Some("context"));
        assert_eq!(table["run"]["iterations"].as_integer(), Some(7));
        assert_eq!(table["settings"]["thp"].as_str(), Some("never"));
        assert_eq!(table["factor"]["vm-dirty_ratio"]["levels"][0].as_integer(), Some(40));
        assert_eq!(table["monitors"]["vmstat"].as_str(), Some("3s"));
        assert_eq!(table["description"].as_str(), Some("Wake-ups over all CPUs"));
    }

    #[test]
    fn the_account_has_every_line_once() {
        let study = convert(LATENCY);
        let counts = study.account.count();
        assert_eq!(counts.lines, 19);
        assert_eq!(
            counts.empty + counts.translated + counts.no_meaning + counts.not_understood,
            counts.lines
        );
        let left_out: Vec<usize> = study
            .account
            .iter()
            .filter(|(_, fate)| matches!(fate, LineFate::NotUnderstood(_)))
            .map(|(line, _)| line)
            .collect();
        assert_eq!(left_out, [18, 19], "{:?}", study.account);
        let fate = |line: usize| study.account.iter().nth(line - 1).unwrap().1.clone();
        assert!(matches!(fate(9), LineFate::Translated(_)) && matches!(fate(11), LineFate::Translated(_)));
        assert!(matches!(fate(13), LineFate::NoMeaning(_)), "{:?}", fate(13));
        let LineFate::NotUnderstood(why) = fate(19) else { panic!("{:?}", fate(19)) };
        insta::assert_snapshot!(why, @"nothing here corresponds; did you mean `SCHBENCH_RUNTIME`?");
    }

    #[test]
    fn a_job_file_goes_into_the_study_with_the_options_of_the_command_line() {
        let text = "export MMTESTS=fio\nJOB=/tmp/job-$$\nexport FIO_CMD_OPTIONS=\"$JOB --ioengine=libaio\"\n\
                    cat >$JOB <<END\n[global]\ndirect=1 # no cache\n[reader]\n\
                    filesize=$((MEMTOTAL_BYTES*2))\nEND\n";
        let study = convert(text);
        let job = parse(&study)["workload"]["fio"]["parameters"]["job"].as_str().unwrap().to_owned();
        assert_eq!(job, "[global]\nioengine=libaio\ndirect=1\n[reader]\nfilesize={{ 2 * memory }}\n");
        assert_eq!(study.account.count().not_understood, 0, "{:?}", study.account);
    }

    #[test]
    fn what_is_no_configuration_is_refused_with_the_reason() {
        let refuse = |text: &str| convert_configuration(text, Path::new("/nonexistent"), "c").unwrap_err();
        let deep = format!("export MMTESTS={}", "$(".repeat(500));
        let many = "if true; then ".repeat(20_000) + &"fi; ".repeat(20_000);
        let refusals =
            ["echo hello\n", "export MMTESTS=\"$(ls)\"\n", "export MMTESTS=ltp\n", "if then (", &deep, &many]
                .map(refuse);
        let boundless = [
            "2222222222>f",
            "cat 22\\\n22222222<f",
            "echo {1..-1111111111111111111}",
            "cd ~+1111111111111111111",
        ];
        for text in boundless {
            let text = format!("export MMTESTS=stream\n{text}\n");
            assert!(refuse(&text).ends_with(" is beyond what a shell can count"), "{text}");
        }
        convert("export MMTESTS=stream\nA=1111111111111111111111 2>/dev/null\ncd ~- ~+ ~1 {1..3}\n");
        insta::assert_snapshot!(refusals.join("\n"), @"
        it neither sets MMTESTS, as configurations of MMTests do, nor names a suite or testcase, as job files of lkp-tests do
        MMTESTS names no benchmark that can be known without running it
        none of its benchmarks has a counterpart here: ltp (functional tests are not measured)
        syntax error at end of input
        more than 100 brackets lie within one another
        more than 100 conditions and loops lie within one another
        ");
    }

    /// What bash makes of these lines, or nothing where only running them would tell.
    #[test]
    fn statements_mean_what_they_mean_to_bash() {
        let cases: [(&str, Option<i64>); 20] = [
            ("L=3\nbreak\nL=5", Some(5)),
            ("L=3\nreturn\nL=6", Some(6)),
            ("N=4\nL=$((${N}*$N/2))", Some(8)),
            ("for i in 4 5 6; do L=$i; [ $i -eq 5 ] && break; done", Some(5)),
            ("for i in 4 5 6; do [ $i -gt 4 ] && continue; L=$i; done", Some(4)),
            ("f() { local L=9; }\nL=3\nf", Some(3)),
            ("f() { L=4; return; L=7; }\nf", Some(4)),
            ("f() { L=9; }\nL=3\nf &", Some(3)),
            ("L=5\nunset L\nL=${L:-2}", Some(2)),
            ("case 5 in 4) L=4;; [5-6]) L=55;; *) L=9;; esac", Some(55)),
            ("case 5 in [!0-4]) L=8;; *) L=9;; esac", Some(8)),
            ("A=\nL=${A-6}\nL=${L:-4}", Some(4)),
            ("L=3\n( L=9 )", Some(3)),
            ("L=3\nexit 0\nL=9", Some(3)),
            ("L=$((RANDOM))", None),
            ("L=1\nwhile [ $L -lt 20 ]; do L=$((L*2)); done", None),
            ("L=3\nif grep -q x /etc/passwd; then L=9; fi", None),
            ("L=3; eval L=9", None),
            ("L=1\nfor i in $(seq 1 4); do L=$((L+i)); done", None),
            (
                "A=xxxxxxxx\nfor i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do A=$A$A; done\nL=${#A}",
                None,
            ),
        ];
        for (lines, loops) in cases {
            let text = format!("export MMTESTS=perfpipe\n{lines}\nexport PERFPIPE_LOOPS=$L\n");
            // What stands behind an exit is not read: the variable is set before.
            let text = match lines.contains("exit") {
                true => format!("export MMTESTS=perfpipe\n{}\n", lines.replace("L=", "PERFPIPE_LOOPS=")),
                false => text,
            };
            let study = convert(&text);
            let table = parse(&study);
            let found = table["workload"]["perfpipe"]
                .get("parameters")
                .and_then(|all| all.get("loops")?.as_integer());
            assert_eq!(found, loops, "{lines}\n{}", study.text);
            assert_eq!(
                study.account.count().not_understood > 0,
                loops.is_none(),
                "{lines}: {:?}",
                study.account
            );
        }
    }

    /// A job of which something is not known is no job.
    #[test]
    fn jobs_that_only_running_would_tell_are_left_out() {
        let text = "export MMTESTS=\"fio stressng\"\nS=$(stat -c %s /etc/hostname)\ncat > /tmp/j <<EOF\n[rd]\nsize=$S\nEOF\n\
                    export FIO_CMD_OPTIONS=/tmp/j\n";
        let study = convert(text);
        assert!(parse(&study)["workload"].get("fio").is_none(), "{}", study.text);
        assert!(study.account.count().not_understood >= 6, "{:?}", study.account);
    }

    /// Whatever it names and writes, what comes out is TOML.
    #[test]
    fn names_and_values_of_others_are_quoted() {
        let text = "export MMTESTS=stressng\nexport STRESSNG_TESTNAME='a\"]\\b'\n\
                    echo 1 > '/sys/a b\"]/c'\necho 2 > '/sys/a b\"]/c'\necho 1 > /proc/sys/vm/x\necho 2 > /proc/sys/vm/x\n\
                    export TESTDISK_PARTITION='/dev/s\"\nda'\n";
        let table = parse(&convert(text));
        assert_eq!(table["factor"].as_table().unwrap().len(), 2);
        assert_eq!(table["factor"]["vm-x"]["levels"][0].as_integer(), Some(2));
        assert_eq!(table["workload"]["stressng"]["parameters"]["stressor"].as_str(), Some("a\"]\\b"));
        assert_eq!(table["disk"]["path"].as_str(), Some("/dev/s\"\nda"));
    }

    /// What is written to a folder, or to a path that leads elsewhere, is no factor.
    #[test]
    fn what_is_written_to_no_file_is_told() {
        for path in
            ["/sys/", "/proc/", "/sys/kernel//x", "/sys/kernel/mm/", "/sys/./x", "/proc/../etc/passwd"]
        {
            let text = format!("export MMTESTS=stressng\nexport STRESSNG_TESTNAME=fork\necho 1 > {path}\n");
            let study = convert(&text);
            assert!(parse(&study).get("factor").is_none(), "{path}: {}", study.text);
            assert_eq!(study.account.count().not_understood, 1, "{path}: {:?}", study.account);
        }
    }

    /// The parser would take the age of the world for these.
    #[test]
    fn arithmetic_that_is_not_closed_is_given_up() {
        let text = format!(
            "export MMTESTS=fio\ncat >$JOB <<END\n{}END\n",
            "size=$((MEMORY*thread start\n".repeat(20)
        );
        let error = convert_configuration(&text, Path::new("/nonexistent"), "c").unwrap_err();
        insta::assert_snapshot!(error, @"it cannot be read within 10 s: a quote or bracket is not closed");
    }

    /// A file that includes itself, and two that include each other, end.
    #[test]
    fn includes_end() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("one", "source two\nexport STRESSNG_ITERATIONS=9\n");
        write("two", ". ./one\nexport STRESSNG_TESTNAME=fork\nreturn\nexport STRESSNG_TESTNAME=vm\n");
        let text = "export MMTESTS=stressng\nsource configs/one\n";
        let study = convert_configuration(text, folder.path(), "c").unwrap();
        let table = parse(&study);
        assert_eq!(table["workload"]["stressng"]["parameters"]["stressor"].as_str(), Some("fork"));
        assert_eq!(table["run"]["iterations"].as_integer(), Some(9));
    }

    /// Every counterpart is in the catalogue, with every parameter that the table names.
    #[test]
    fn counterparts_are_in_the_catalogue() {
        let catalogue = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
        for (name, counterpart) in &counterpart_table().benchmark {
            let text = std::fs::read_to_string(catalogue.join(&counterpart.workload).with_extension("toml"));
            let definition: toml::Table =
                text.unwrap_or_else(|error| panic!("{name}: {error}")).parse().unwrap();
            for parameter in counterpart.parameters.keys() {
                assert!(definition["parameter"].get(parameter).is_some(), "{name}: {parameter}");
            }
        }
    }

    #[test]
    fn only_a_pipe_between_bound_tasks_is_placed() {
        let levels = |suite: &str| {
            let study = convert(&format!("export MMTESTS=\"{suite}\"\nexport PERFPIPE_BINDING=pinned\n"));
            parse(&study)
                .get("factor")
                .map(|factors| factors["placement"]["levels"][0].as_str().unwrap().to_owned())
        };
        assert_eq!(levels("perfpipe").as_deref(), Some("one-cpu"));
        assert_eq!(levels("hackbench-process-pipes"), None);
    }

    #[test]
    fn numbers_are_compared_as_the_shell_does() {
        let chosen = |condition: &str| {
            let text = format!(
                "export MMTESTS=stressng STRESSNG_TESTNAME=context STRESSNG_ITERATIONS=1\nif [ {condition} ]; then\n\
                 export STRESSNG_ITERATIONS=2\nfi\n"
            );
            parse(&convert(&text))["run"]["iterations"].as_integer().unwrap()
        };
        let conditions = [
            "3 -le 3", "4 -le 3", "2 -le 3", "3 -lt 3", "3 -ge 3", "2 -ge 3", "3 -eq 3", "3 -ne 3", "4 -gt 3",
        ];
        assert_eq!(conditions.map(chosen), [2, 1, 2, 1, 2, 1, 2, 1, 2]);
    }
}
