//! What the values of options may be, for the shell that completes them: names that ship, and names that the archive has.
//!
//! Each name of a value in the help (`RUN`, `FACTOR`, `STUDY`) has one row in [`VALUES`]; an option whose value has a name of these is
//! completed without a line of its own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use clap::builder::StyledStr;
use clap::{Arg, Command};
use clap_complete::CompletionCandidate;
use clap_complete::engine::{ArgValueCompleter, PathCompleter, ValueCompleter as _};
use perflab_analyze::flame::category_rules::SHIPPED_RULES;
use perflab_archive::export::Exporter;
use perflab_archive::{Archive, PeekedRun};
use perflab_guest::KernelRecipes;
use perflab_import::IMPORTERS;
use perflab_model::Manifest;
use perflab_model::study::{EVENT_RECIPES, Factor, Study};
use perflab_observe::{MONITOR_PRESETS, all_monitors};
use perflab_settings::PresetList;
use perflab_workload::Catalogue;

use crate::app::App;
use crate::study_source::{STUDIES, find_study};

/// Of one value: what the help calls it, or its option's name; the verb that it is of, with those below; what it may be.
struct CompletedValue(&'static str, &'static str, ValueLister);

/// What a value may be, whatever of it is typed already.
type ValueLister = fn(&TypedLine, &str) -> Vec<CompletionCandidate>;

/// The first row that fits counts.
const VALUES: &[CompletedValue] = &[
    CompletedValue("RUN|LEVEL", "", |line, typed| join_lists([line.runs(typed), line.levels()])),
    CompletedValue("RUN", "", TypedLine::runs),
    CompletedValue("OTHER", "diff", TypedLine::runs),
    CompletedValue("NAME", "label", |line, _| line.labels()),
    CompletedValue("label", "", |line, _| line.labels()),
    CompletedValue("NAME", "list", |line, _| line.labels()),
    CompletedValue("STUDY", "history", |line, _| line.titles()),
    CompletedValue("STUDY", "guard", |line, _| line.titles()),
    CompletedValue("STUDY", "", |_, typed| list_studies(typed)),
    CompletedValue("FACTOR", "", |line, _| line.factors()),
    CompletedValue("FACTOR[,FACTOR]", "", |line, _| line.factors()),
    CompletedValue("FACTOR=LEVEL", "", |line, _| line.pairs()),
    CompletedValue("KEY=VALUE", "", |line, _| line.pairs()),
    CompletedValue("NAME|KEY=VALUE", "", |line, _| join_lists([line.workloads_of_runs(), line.pairs()])),
    CompletedValue("LEVEL", "", |line, _| line.levels()),
    CompletedValue("WORKLOAD", "", |line, _| line.workloads_of_study()),
    CompletedValue("workload", "", |line, _| line.workloads_of_runs()),
    CompletedValue("versus", "", |line, _| line.workloads_of_runs()),
    CompletedValue("metric", "", |line, _| line.metrics()),
    CompletedValue("CASE", "", |line, _| line.cases()),
    CompletedValue("monitor", "run", |_, _| list_monitors()),
    CompletedValue("monitor", "bench", |_, _| list_monitors()),
    CompletedValue("monitor", "", |line, _| line.monitors_of_runs()),
    CompletedValue("series", "why", |line, _| line.monitors_of_runs()),
    CompletedValue("MONITOR.COLUMN", "", |line, _| line.monitor_columns()),
    CompletedValue("NAME", "monitor show", |_, _| list_monitors()),
    CompletedValue("event", "run", |_, _| list_events()),
    CompletedValue("event", "bench", |_, _| list_events()),
    CompletedValue("NAME", "event show", |_, _| list_events()),
    CompletedValue("NAME", "workload", |line, _| line.catalogue()),
    CompletedValue("PARAMETER=VALUE", "workload try", |line, _| line.parameters()),
    CompletedValue("NAME", "setting show", |_, _| list_settings("")),
    CompletedValue("NAME[=LEVEL]", "tune", |_, _| list_settings("")),
    CompletedValue("KIND:KEY=LEVELS", "", |_, _| list_varied_kinds()),
    CompletedValue("NAME", "kernel", |_, _| list_kernels()),
    CompletedValue("A", "kernel diff", |_, _| list_kernels()),
    CompletedValue("B", "kernel diff", |_, _| list_kernels()),
    CompletedValue("RECIPE", "", |_, _| list_kernels()),
    CompletedValue("kernel", "vm boot", |_, _| list_kernels()),
    CompletedValue("TABLE", "", |_, _| SHIPPED_RULES.iter().map(|(name, _)| (*name).into()).collect()),
    CompletedValue("KIND", "import", |_, _| {
        IMPORTERS.iter().map(|importer| describe_value(importer.name, importer.about)).collect()
    }),
    CompletedValue("FORMAT", "export", |_, _| Exporter::ALL.iter().map(|(name, _)| (*name).into()).collect()),
];

/// The command line with what its values may be; `words` stand before the cursor.
pub fn add_completed_values(command: Command, app: &App, words: &[String]) -> Command {
    let line = Arc::new(TypedLine {
        archive: line_archive(app, words),
        words: words.to_vec(),
        runs: OnceLock::new(),
        plans: OnceLock::new(),
    });
    add_to_verb(command, "", &line)
}

fn add_to_verb(command: Command, verb: &str, line: &Arc<TypedLine>) -> Command {
    let below: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let command = command.mut_args(|argument| add_to_argument(argument, verb, line));
    below.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |below| add_to_verb(below, format!("{verb} {name}").trim_start(), line))
    })
}

fn add_to_argument(argument: Arg, verb: &str, line: &Arc<TypedLine>) -> Arg {
    let Some(CompletedValue(_, _, list)) = find_value(&argument, verb) else { return argument };
    let line = Arc::clone(line);
    argument.add(ArgValueCompleter::new(move |typed: &OsStr| {
        let Some(typed) = typed.to_str() else { return Vec::new() };
        let mut found = list(&line, typed);
        found
            .retain(|candidate| candidate.get_value().to_str().is_some_and(|value| value.starts_with(typed)));
        found
    }))
}

fn find_value(argument: &Arg, verb: &str) -> Option<&'static CompletedValue> {
    if argument.get_value_parser().possible_values().is_some() {
        return None;
    }
    let names = argument.get_value_names().unwrap_or_default();
    let is_of_verb = |of: &str| of.is_empty() || verb == of || verb.starts_with(&format!("{of} "));
    VALUES.iter().find(|CompletedValue(name, of, _)| {
        is_of_verb(of) && (argument.get_id() == *name || names.iter().any(|value| value.as_str() == *name))
    })
}

/// The archive that the line names, else the one that it means without.
fn line_archive(app: &App, words: &[String]) -> PathBuf {
    let named = words.iter().enumerate().find_map(|(at, word)| match word.strip_prefix("--archive")? {
        "" => words.get(at + 1).map(|folder| expand_home(folder)),
        rest => rest.strip_prefix('=').map(expand_home),
    });
    named.unwrap_or_else(|| app.archive_path().into())
}

/// The shell has not expanded what is being typed.
fn expand_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path.into(),
    }
}

/// What was typed up to the cursor, and what it leads to, read when it is asked for.
struct TypedLine {
    archive: PathBuf,
    words: Vec<String>,
    runs: OnceLock<Vec<PeekedRun>>,
    plans: OnceLock<Vec<(PeekedRun, Manifest)>>,
}

/// So many runs are looked into where the line names none.
const LATEST_RUNS: usize = 3;

/// So many runs are suggested while nothing of one is typed.
const SUGGESTED_RUNS: usize = 40;

impl TypedLine {
    /// All runs, the latest first.
    fn peeked_runs(&self) -> &[PeekedRun] {
        self.runs.get_or_init(|| {
            let mut runs =
                self.open_archive().and_then(|archive| archive.peek_runs().ok()).unwrap_or_default();
            runs.reverse();
            runs
        })
    }

    fn open_archive(&self) -> Option<Archive> {
        Archive::open(&self.archive).ok()
    }

    /// The plans of the runs that the line names, else of the latest.
    fn plans(&self) -> &[(PeekedRun, Manifest)] {
        self.plans.get_or_init(|| {
            let Some(archive) = self.open_archive() else { return Vec::new() };
            let (runs, words) = (self.peeked_runs(), self.words.get(2..).unwrap_or_default());
            let is_named =
                |(at, run): &(usize, &PeekedRun)| words.iter().any(|word| names_run(word, *at, run));
            let read = |run: &PeekedRun| Some((run.clone(), archive.peek_manifest(run)?));
            let named: Vec<_> = runs
                .iter()
                .enumerate()
                .filter(is_named)
                .take(LATEST_RUNS)
                .filter_map(|(_, run)| read(run))
                .collect();
            if named.is_empty() { runs.iter().filter_map(read).take(LATEST_RUNS).collect() } else { named }
        })
    }

    /// Labels, `@latest`, and ids, the latest first.
    fn runs(&self, typed: &str) -> Vec<CompletionCandidate> {
        let runs = self.peeked_runs();
        let mut found = self.labels();
        for (at, run) in runs.iter().enumerate().take(if typed.starts_with('@') { SUGGESTED_RUNS } else { 2 })
        {
            let name = if at == 0 { "@latest".to_owned() } else { format!("@latest~{at}") };
            found.push(describe_value(name, describe_run(run)));
        }
        // An id is understood in small letters, too.
        let is_small = typed.contains(|letter: char| letter.is_ascii_lowercase());
        let shown = if typed.is_empty() { SUGGESTED_RUNS } else { usize::MAX };
        found.extend(runs.iter().take(shown).map(|run| {
            let id = if typed.len() > run.short.len() { &run.id } else { &run.short };
            describe_value(if is_small { id.to_lowercase() } else { id.clone() }, describe_run(run))
        }));
        found
    }

    fn labels(&self) -> Vec<CompletionCandidate> {
        let labelled = self.peeked_runs().iter().filter_map(|run| {
            let title = run.title.as_deref().unwrap_or_default();
            run.label.as_deref().map(|label| (label, title))
        });
        distinct(labelled)
    }

    fn titles(&self) -> Vec<CompletionCandidate> {
        distinct(self.peeked_runs().iter().filter_map(|run| run.title.as_deref()).map(|title| (title, "")))
    }

    /// The study that the line names.
    fn study(&self) -> Option<Study> {
        let words = self.words.get(2..).unwrap_or_default().iter();
        let names = words.filter(|word| !word.starts_with('-'));
        names.filter_map(|word| find_study(word).ok()?.parse_study().ok()).next()
    }

    /// Factors with their levels: of the study that is named, else of runs.
    fn factor_levels(&self) -> Vec<(String, Vec<String>)> {
        if let Some(study) = self.study() {
            let level_names =
                |factor: &Factor| factor.levels.iter().map(|level| level.name.clone()).collect();
            return study.factor.iter().map(|(name, factor)| (name.clone(), level_names(factor))).collect();
        }
        let factors = self.plans().iter().flat_map(|(_, run)| &run.plan.factors);
        factors.map(|(name, levels)| (name.clone(), levels.clone())).collect()
    }

    fn factors(&self) -> Vec<CompletionCandidate> {
        let factors = self.factor_levels();
        let rows: Vec<(String, String)> =
            factors.into_iter().map(|(name, levels)| (name, levels.join(", "))).collect();
        distinct(rows.iter().map(|(name, levels)| (name.as_str(), levels.as_str())))
    }

    fn levels(&self) -> Vec<CompletionCandidate> {
        let factors = self.factor_levels();
        distinct(
            factors
                .iter()
                .flat_map(|(name, levels)| levels.iter().map(move |level| (level.as_str(), name.as_str()))),
        )
    }

    /// `FACTOR=LEVEL`, and parameters in which cases of runs differ.
    fn pairs(&self) -> Vec<CompletionCandidate> {
        let factors = self.factor_levels();
        let levels = factors
            .iter()
            .flat_map(|(name, levels)| levels.iter().map(move |level| format!("{name}={level}")));
        let points = self.plans().iter().flat_map(|(_, run)| &run.plan.cases);
        let points = points.flat_map(|case| case.point.iter().map(|(name, value)| format!("{name}={value}")));
        let pairs: Vec<String> = match self.study() {
            Some(_) => levels.collect(),
            None => levels.chain(points).collect(),
        };
        distinct(pairs.iter().map(|pair| (pair.as_str(), "")))
    }

    fn workloads_of_runs(&self) -> Vec<CompletionCandidate> {
        let cases = self.plans().iter().flat_map(|(_, run)| &run.plan.cases);
        distinct(cases.map(|case| (case.workload.as_str(), case.uses.as_str())))
    }

    fn workloads_of_study(&self) -> Vec<CompletionCandidate> {
        let names = self.study().map(|study| study.workload.into_keys().collect::<Vec<_>>());
        names.unwrap_or_default().iter().map(CompletionCandidate::new).collect()
    }

    fn metrics(&self) -> Vec<CompletionCandidate> {
        let declared = self.plans().iter().flat_map(|(_, run)| run.plan.metrics.values().flatten());
        let metrics: Vec<(String, String)> =
            declared.map(|metric| (metric.name.to_string(), metric.unit.to_string())).collect();
        distinct(metrics.iter().map(|(name, unit)| (name.as_str(), unit.as_str())))
    }

    /// Cases by their numbers, of the first run.
    fn cases(&self) -> Vec<CompletionCandidate> {
        let Some((_, run)) = self.plans().first() else { return Vec::new() };
        run.plan
            .cases
            .iter()
            .enumerate()
            .map(|(at, case)| describe_value(at.to_string(), case.label()))
            .collect()
    }

    fn monitors_of_runs(&self) -> Vec<CompletionCandidate> {
        let Some(archive) = self.open_archive() else { return Vec::new() };
        let names: Vec<String> =
            self.plans().iter().flat_map(|(run, _)| archive.peek_monitors(run)).collect();
        distinct(names.iter().map(|name| (name.as_str(), describe_monitor(name))))
    }

    fn monitor_columns(&self) -> Vec<CompletionCandidate> {
        let recorded = self.monitors_of_runs();
        let is_recorded = |name: &str| recorded.iter().any(|monitor| monitor.get_value() == name);
        let monitors = all_monitors().iter().filter(|monitor| is_recorded(monitor.name));
        let columns = monitors.flat_map(|monitor| {
            let columns = perflab_model::column::stored_columns(monitor.columns);
            columns.into_iter().map(move |column| format!("{}.{}", monitor.name, column.name).into())
        });
        columns.collect()
    }

    /// Names of the catalogue, with those in the folders that the line adds.
    fn catalogue(&self) -> Vec<CompletionCandidate> {
        let folders = self.words.windows(2).filter_map(|pair| match pair {
            [option, folder] if option == "--workloads" => Some(expand_home(folder)),
            _ => None,
        });
        let own = folders.filter_map(|folder| folder.read_dir().ok()).flatten().flatten();
        let own = own.filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".toml")?.to_owned()));
        let shipped = Catalogue::embedded_names().map(str::to_owned);
        own.chain(shipped).map(CompletionCandidate::new).collect()
    }

    /// Parameters of the workload that the line names, each with its default.
    fn parameters(&self) -> Vec<CompletionCandidate> {
        let catalogue = Catalogue::embedded();
        let named = self.words.iter().skip(3).find_map(|word| catalogue.get(word));
        let names = named.into_iter().flat_map(|workload| workload.parameters.keys());
        names.map(|name| CompletionCandidate::new(format!("{name}="))).collect()
    }
}

/// Whether a word selects the run that is the `at`-th of all, counted from the latest.
fn names_run(word: &str, at: usize, run: &PeekedRun) -> bool {
    match word.strip_prefix("@latest") {
        Some("") => at == 0,
        Some(back) => back.strip_prefix('~').and_then(|back| back.parse().ok()) == Some(at),
        None => {
            run.label.as_deref() == Some(word)
                || word.len() >= 4 && run.id.starts_with(&word.to_ascii_uppercase())
        }
    }
}

fn describe_run(run: &PeekedRun) -> String {
    match (&run.label, &run.title) {
        (Some(label), Some(title)) => format!("{label}: {title}"),
        (label, title) => label.as_ref().or(title.as_ref()).cloned().unwrap_or_default(),
    }
}

fn describe_monitor(name: &str) -> &'static str {
    all_monitors().iter().find(|monitor| monitor.name == name).map_or("", |monitor| monitor.about)
}

/// One list of two, in this order.
fn join_lists(lists: [Vec<CompletionCandidate>; 2]) -> Vec<CompletionCandidate> {
    lists.into_iter().flatten().collect()
}

/// A value with what it is.
fn describe_value(value: impl Into<String>, about: impl Into<String>) -> CompletionCandidate {
    let about: String = about.into();
    CompletionCandidate::new(value.into()).help((!about.is_empty()).then(|| StyledStr::from(about)))
}

/// Each value once, as it comes first.
fn distinct<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<CompletionCandidate> {
    let mut seen = std::collections::HashSet::new();
    rows.filter(|(value, _)| seen.insert(*value)).map(|(value, about)| describe_value(value, about)).collect()
}

/// Those that ship, and TOML files.
fn list_studies(typed: &str) -> Vec<CompletionCandidate> {
    let is_toml = |path: &Path| path.extension().is_some_and(|ending| ending == "toml");
    let files = PathCompleter::file().filter(is_toml).complete(OsStr::new(typed));
    let files = files.into_iter().filter(|file| !file.is_hide_set() && file.get_value() != ".");
    files.chain(STUDIES.iter().map(|study| describe_value(study.name, study_title(study.text)))).collect()
}

/// The title in a study's text, which is one of the first lines, without reading all of it.
fn study_title(text: &str) -> &str {
    let title = text.lines().find_map(|line| line.strip_prefix("title = "));
    title.unwrap_or_default().trim_matches('"')
}

fn list_monitors() -> Vec<CompletionCandidate> {
    let presets =
        MONITOR_PRESETS.iter().map(|preset| describe_value(preset.name, preset.monitors().join(", ")));
    let single = all_monitors().iter().map(|monitor| describe_value(monitor.name, monitor.about));
    presets.chain(single).collect()
}

fn list_events() -> Vec<CompletionCandidate> {
    EVENT_RECIPES.iter().map(|recipe| describe_value(recipe.name, recipe.about)).collect()
}

fn list_settings(before: &str) -> Vec<CompletionCandidate> {
    PresetList::shipped()
        .iter()
        .map(|(name, preset)| describe_value(format!("{before}{name}"), &*preset.title))
        .collect()
}

/// `setting:NAME=`, and the other kinds that one argument can vary.
fn list_varied_kinds() -> Vec<CompletionCandidate> {
    let kinds = crate::measure::varied_factor::kind_prefixes().map(CompletionCandidate::new);
    kinds.chain(list_settings("setting:")).collect()
}

fn list_kernels() -> Vec<CompletionCandidate> {
    let Ok(recipes) = KernelRecipes::shipped() else { return Vec::new() };
    recipes.iter().map(|recipe| describe_value(&*recipe.name, &*recipe.title)).collect()
}
