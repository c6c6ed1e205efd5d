//! What a side ran, as a command line: a study's file, or the commands of `perflab bench` and `perflab run --`, quoted again so that
//! they can be pasted.

use std::fmt::Write as _;

use perflab_model::RunRecord;
use perflab_model::fact_table;
use perflab_model::study::{CommandLine, Factor, FactorKind, RunRules, Study, WorkloadSpec};

/// The factor whose levels are the commands of a bench.
const BENCH_COMMANDS: &str = "command";

/// The shell that `perflab bench` and `perflab run --` take where none is named.
const USUAL_SHELL: &str = "/bin/sh";

/// Iterations before those that count, of `perflab bench` where no number is named.
const USUAL_WARMUP: u32 = 1;

/// What was run, and how it is typed again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedStudy {
    verb: RecordedVerb,
    /// the options that it was given, a blank before each
    options: String,
    /// what it varies, as `--vary` names it: `setting:thp`
    varied: Vec<String>,
}

/// The verb that ran it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RecordedVerb {
    /// `perflab run`: a file, or the name of a shipped study, quoted.
    File(String),
    /// `perflab bench`: its commands, and the candidate's alone.
    Bench { commands: String, candidate: String },
    /// `perflab run --`: its command.
    Command(String),
}

/// Where a study stands in the commands of tables.
const STUDY: &str = "perflab run {study}";

impl RecordedStudy {
    /// A study of which nothing is known.
    pub(crate) fn unknown() -> Self {
        let verb = RecordedVerb::File("STUDY".into());
        RecordedStudy { verb, options: String::new(), varied: Vec::new() }
    }

    /// What a run is of; `level` is the candidate's of the factor that is compared.
    pub(crate) fn of_run(run: &RunRecord, level: Option<&str>) -> Self {
        let manifest = &run.manifest;
        // perflab has not run what it imported, and cannot run it again.
        if manifest.facts.value(&fact_table::IMPORT_KIND).is_some() {
            return RecordedStudy::unknown();
        }
        let study = &manifest.study;
        let file = manifest.study_file.as_str();
        let workload = study.workload.get(BENCH_COMMANDS);
        let varied = study.factor.iter().map(|(name, factor)| varied_subject(name, factor)).collect();
        let (verb, options) = match (file, workload) {
            ("bench", Some(workload)) => {
                let commands = bench_commands(workload, study);
                let candidate = commands.iter().find(|(name, _)| level == Some(name)).or(commands.last());
                let candidate = candidate.map(|(_, text)| quote_word(text)).unwrap_or_default();
                let quoted: Vec<String> = commands.iter().map(|(_, text)| quote_word(text)).collect();
                let verb = RecordedVerb::Bench { commands: quoted.join(" "), candidate };
                (verb, bench_options(workload, study, &commands))
            }
            ("run", Some(WorkloadSpec { command: Some(command), .. })) => {
                let words = command.templates().iter().map(|word| quote_word(&plain_text(word)));
                let verb = RecordedVerb::Command(words.collect::<Vec<_>>().join(" "));
                (verb, varied_options(study.factor.iter()) + &length_options(study, &RunRules::default()))
            }
            _ => {
                let verb = RecordedVerb::File(quote_word(if file.is_empty() { "STUDY" } else { file }));
                // The text is that of the brief form, and the options are beside it.
                let brief = if manifest.brief { " --brief" } else { "" };
                (verb, brief.to_owned() + &options_beside_file(study, &manifest.study_text))
            }
        };
        RecordedStudy { verb, options, varied }
    }

    /// A command in which `perflab run {study}` stands for what was run, with what it varied: `perflab run {study} --event off-cpu`. What
    /// the command varies and the study varies itself, is varied once.
    pub(crate) fn complete_command(&self, command: &str) -> String {
        let command = self.without_varied(command);
        let options = &self.options;
        match &self.verb {
            RecordedVerb::File(file) => command.replace(STUDY, &format!("perflab run {file}{options}")),
            RecordedVerb::Bench { commands, candidate } => {
                // Under several settings, one command takes long enough.
                let timed = if command.contains("--vary") { candidate } else { commands };
                format!("{} {timed}", command.replace(STUDY, &format!("perflab bench{options}")))
            }
            RecordedVerb::Command(words) => {
                format!("{} -- {words}", command.replace(STUDY, &format!("perflab run{options}")))
            }
        }
    }

    fn without_varied(&self, command: &str) -> String {
        let mut kept: Vec<&str> = Vec::new();
        let mut words = command.split(' ');
        while let Some(word) = words.next() {
            let Some(varied) = (word == "--vary").then(|| words.next()).flatten() else {
                kept.push(word);
                continue;
            };
            let subject = varied.split('=').next().unwrap_or(varied);
            if !self.varied.iter().any(|own| own == subject) {
                kept.extend([word, varied]);
            }
        }
        kept.join(" ")
    }

    /// As JSON has it: the file, or the verb.
    pub(crate) fn name(&self) -> String {
        match &self.verb {
            RecordedVerb::File(file) => shlex::split(file).unwrap_or_default().concat(),
            RecordedVerb::Bench { .. } => "bench".into(),
            RecordedVerb::Command(_) => "run".into(),
        }
    }
}

/// A word as a shell takes it; one that cannot be quoted (it holds a zero byte) as it is.
pub(crate) fn quote_word(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |quoted| quoted.into_owned())
}

/// The text of a template as it was typed: `{{ NAME }}` is a parameter, `{NAME}`, and `{{ '…' }}` stands for what is in it.
fn plain_text(template: &str) -> String {
    let (mut text, mut rest) = (String::new(), template);
    while let Some((before, behind)) = rest.split_once("{{ ") {
        text += before;
        match behind.strip_prefix('\'').and_then(split_quoted) {
            Some((quoted, behind)) => {
                text += &quoted;
                rest = behind;
            }
            None => {
                let Some((name, behind)) = behind.split_once(" }}") else { return text + "{{ " + behind };
                let _ = write!(text, "{{{name}}}");
                rest = behind;
            }
        }
    }
    text + rest
}

/// What stands in quotes, and what is behind them.
fn split_quoted(text: &str) -> Option<(String, &str)> {
    let (mut quoted, mut letters) = (String::new(), text.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\'' => return Some((quoted, text.get(at..)?.strip_prefix("' }}")?)),
            '\\' => match letters.next()?.1 {
                'n' => quoted.push('\n'),
                other => quoted.push(other),
            },
            other => quoted.push(other),
        }
    }
    None
}

/// The commands of a bench, each with its name.
fn bench_commands(workload: &WorkloadSpec, study: &Study) -> Vec<(String, String)> {
    match study.factor.get(BENCH_COMMANDS) {
        Some(factor) => {
            let levels = factor.levels.iter();
            levels.map(|level| (level.name.clone(), plain_text(&level.value.to_string()))).collect()
        }
        None => {
            let only = workload.command.iter().flat_map(CommandLine::templates);
            only.map(|text| (String::new(), plain_text(text))).collect()
        }
    }
}

fn bench_options(workload: &WorkloadSpec, study: &Study, commands: &[(String, String)]) -> String {
    let mut text = String::new();
    let mut varied: Vec<(&String, &Factor)> = Vec::new();
    for (name, factor) in study.factor.iter().filter(|(name, _)| *name != BENCH_COMMANDS) {
        // A parameter of -L is called as its factor is.
        if factor.kind != FactorKind::Parameter || factor.key.is_some() {
            varied.push((name, factor));
            continue;
        }
        let _ = write!(text, " -L {} {}", quote_word(name), quote_word(&joined_levels(factor)));
    }
    text += &varied_options(varied.into_iter());
    if commands.iter().any(|(name, command)| !name.is_empty() && name != command) {
        text.extend(commands.iter().map(|(name, _)| format!(" -n {}", quote_word(name))));
    }
    let others = [
        ("--setup", &workload.setup),
        ("--prepare", &workload.prepare),
        ("--conclude", &workload.conclude),
        ("--cleanup", &workload.cleanup),
    ];
    for (option, command) in others {
        let text_of = |command: &CommandLine| plain_text(&command.templates().join(" "));
        if let Some(command) = command.as_ref().map(text_of) {
            let _ = write!(text, " {option} {}", quote_word(&command));
        }
    }
    match workload.shell.as_deref() {
        None | Some(USUAL_SHELL) => {}
        Some(shell) => drop(write!(text, " --shell {}", quote_word(shell))),
    }
    if !workload.allow_exit.is_empty() {
        text += " --ignore-failure";
    }
    if study.run.warmup != USUAL_WARMUP {
        let _ = write!(text, " --warmup {}", study.run.warmup);
    }
    if study.run.until.is_none() {
        let _ = write!(text, " --runs {}", study.run.iterations);
    }
    text
}

/// `--vary` of each factor.
fn varied_options<'a>(factors: impl Iterator<Item = (&'a String, &'a Factor)>) -> String {
    let of = |(name, factor): (&String, &Factor)| {
        let subject = varied_subject(name, factor);
        // What a factor is called where nobody names it.
        let usual = factor.key.clone().unwrap_or_else(|| factor.kind.to_string());
        let named = if usual == *name { String::new() } else { format!("{name}=") };
        format!(" --vary {}", quote_word(&format!("{named}{subject}={}", joined_levels(factor))))
    };
    factors.map(of).collect()
}

/// What a factor turns, as `--vary` has it: `setting:thp`, `drop-caches`.
fn varied_subject(name: &str, factor: &Factor) -> String {
    let has_key = matches!(
        factor.kind,
        FactorKind::Sysctl
            | FactorKind::File
            | FactorKind::Setting
            | FactorKind::Environment
            | FactorKind::Parameter
            | FactorKind::Disk
            | FactorKind::Target
    );
    match has_key {
        true => format!("{}:{}", factor.kind, factor.key.as_deref().unwrap_or(name)),
        false => factor.kind.to_string(),
    }
}

fn joined_levels(factor: &Factor) -> String {
    factor.levels.iter().map(|level| level.value.to_string()).collect::<Vec<_>>().join(",")
}

/// How much is measured, where that is not as it would be.
fn length_options(study: &Study, usual: &RunRules) -> String {
    match study.run.until {
        until if until == usual.until && study.run.iterations == usual.iterations => String::new(),
        Some(until) => format!(" --until {}", quote_word(&until.to_string())),
        None => format!(" --iterations {}", study.run.iterations),
    }
}

/// What a command line made of a file's study: what it varied beside it, and what it left of it.
fn options_beside_file(study: &Study, text: &str) -> String {
    let Ok(written) = toml::from_str::<Study>(text) else { return String::new() };
    let mut options =
        varied_options(study.factor.iter().filter(|(name, _)| !written.factor.contains_key(*name)));
    for (name, factor) in &study.factor {
        let levels = written.factor.get(name).filter(|written| written.levels.expression().is_none());
        if levels.is_some_and(|written| written.levels.len() > factor.levels.len()) {
            let kept = factor.levels.iter().map(|level| quote_word(&format!("{name}={}", level.name)));
            options.extend(kept.map(|kept| format!(" --set {kept}")));
        }
    }
    if let (1, Some(only)) = (study.workload.len(), study.workload.keys().next())
        && written.workload.len() > 1
    {
        let _ = write!(options, " --only {}", quote_word(only));
    }
    options + &length_options(study, &written.run)
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::RunBuilder;
    use perflab_model::study::Study;

    use super::*;

    fn recorded(file: &str, study: &str, level: Option<&str>) -> RecordedStudy {
        let mut run = RunBuilder::new("01A").build_run(|_| Some(1.0));
        run.manifest.study_file = file.into();
        run.manifest.study = toml::from_str::<Study>(study).unwrap();
        RecordedStudy::of_run(&run, level)
    }

    /// The words of a completed command, as a shell splits it.
    fn words(found: &RecordedStudy, command: &str) -> Vec<String> {
        shlex::split(&found.complete_command(command)).unwrap()
    }

    #[test]
    fn a_bench_is_typed_again_with_its_options() {
        let study = "title = \"\"\n[run]\nwarmup = 0\niterations = 7\n\
            [workload.command]\nshell = \"/bin/sh\"\nprepare = \"rm -f 'a b'\"\ncommand = \"{{ command }}\"\n\
            [factor.command]\nkind = \"parameter\"\nlevels = [{ name = \"gzip\", value = \"gzip -k x\" }, { name = \"awk\", value = \"{{ 'awk \\\\'{print}\\\\'' }} {{ n }}\" }]\n\
            [factor.n]\nkind = \"parameter\"\nlevels = [1, 2]\n\
            [factor.thp]\nkind = \"setting\"\nkey = \"thp\"\nlevels = [\"always\", \"never\"]\n";
        let found = recorded("bench", study, Some("awk"));
        let begun: Vec<&str> =
            "perflab bench -L n 1,2 --vary setting:thp=always,never -n gzip -n awk --prepare"
                .split(' ')
                .collect();
        let all = words(&found, "perflab run {study} --event off-cpu");
        assert_eq!(all[..begun.len()], begun);
        let behind = [
            "rm -f 'a b'",
            "--warmup",
            "0",
            "--runs",
            "7",
            "--event",
            "off-cpu",
            "gzip -k x",
            "awk '{print}' {n}",
        ];
        assert_eq!(all[begun.len()..], behind);
        // The candidate alone under what is varied beside; what the study varies itself is varied once.
        let tested =
            words(&found, "perflab run {study} --vary sysctl:a=1,2 --vary setting:thp=madvise,never");
        assert_eq!(tested.last().unwrap(), "awk '{print}' {n}");
        assert!(!tested.iter().any(|word| word == "gzip -k x"), "{tested:?}");
        assert!(tested.iter().any(|word| word == "sysctl:a=1,2"), "{tested:?}");
        assert_eq!(tested.iter().filter(|word| word.starts_with("setting:thp=")).count(), 1, "{tested:?}");
    }

    #[test]
    fn a_command_is_typed_again_with_what_it_varied() {
        let study = "title = \"\"\n[run]\niterations = 4\n[workload.command]\ncommand = [\"sh\", \"-c\", \"a; b\"]\n\
            [factor.swappiness]\nkind = \"sysctl\"\nkey = \"vm.swappiness\"\nlevels = [60, 0]\n\
            [factor.N]\nkind = \"environment\"\nkey = \"N\"\nlevels = [0, \"a b\"]\n\
            [factor.cold]\nkind = \"drop-caches\"\nlevels = [0, 3]\n\
            [factor.targets]\nkind = \"targets\"\nlevels = [1, 2]\n";
        let varied = [
            "--vary",
            "swappiness=sysctl:vm.swappiness=60,0",
            "--vary",
            "environment:N=0,a b",
            "--vary",
            "cold=drop-caches=0,3",
            "--vary",
            "targets=1,2",
            "--iterations",
            "4",
        ];
        let found = recorded("run", study, None);
        let all = words(&found, "perflab run {study} --monitor vmstat --vary drop-caches=0,1");
        assert_eq!(
            all,
            [&["perflab", "run"][..], &varied, &["--monitor", "vmstat", "--", "sh", "-c", "a; b"]].concat()
        );
        let text = "title = \"\"\n[workload.command]\ncommand = \"a; b\"\n";
        assert_eq!(
            words(&recorded("run", text, None), "perflab run {study}"),
            ["perflab", "run", "--", "a; b"]
        );
    }

    #[test]
    fn a_file_is_named_with_what_the_command_line_made_of_it() {
        let written = "title = \"\"\n[run]\niterations = 9\n[workload.a]\ncommand = \"a\"\n[workload.b]\ncommand = \"b\"\n\
            [factor.pages]\nkind = \"setting\"\nkey = \"thp\"\nlevels = [\"always\", \"madvise\", \"never\"]\n";
        let run = "title = \"\"\n[run]\niterations = 3\n[workload.a]\ncommand = \"a\"\n\
            [factor.pages]\nkind = \"setting\"\nkey = \"thp\"\nlevels = [\"always\", \"never\"]\n\
            [factor.N]\nkind = \"environment\"\nkey = \"N\"\nlevels = [1, 2]\n";
        let found = |study: &str| {
            let mut run = RunBuilder::new("01A").build_run(|_| Some(1.0));
            run.manifest.study_file = "my study.toml".into();
            run.manifest.study_text = written.into();
            run.manifest.study = toml::from_str::<Study>(study).unwrap();
            RecordedStudy::of_run(&run, None)
        };
        let options = [
            "--vary",
            "environment:N=1,2",
            "--set",
            "pages=always",
            "--set",
            "pages=never",
            "--only",
            "a",
            "--iterations",
            "3",
        ];
        let words = |study: &str| words(&found(study), "perflab run {study} --vary setting:thp=always,never");
        assert_eq!(words(run), [&["perflab", "run", "my study.toml"][..], &options].concat());
        assert_eq!(words(written), ["perflab", "run", "my study.toml"]);
        assert_eq!(found(written).name(), "my study.toml");
    }

    #[test]
    fn a_brief_form_is_typed_again_as_one() {
        let mut run = RunBuilder::new("01A").build_run(|_| Some(1.0));
        run.manifest.brief = true;
        let found = RecordedStudy::of_run(&run, None);
        assert_eq!(words(&found, "perflab run {study}")[..4], ["perflab", "run", "test.toml", "--brief"]);
    }
}
