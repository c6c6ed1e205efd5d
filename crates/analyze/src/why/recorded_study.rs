//! What a side ran, as a command line: a study's file, or the commands of `perflab bench` and `perflab run --`, quoted again so that
//! they can be pasted.

use std::fmt::Write as _;

use perflab_model::RunRecord;
use perflab_model::study::{CommandLine, Factor, FactorKind, WorkloadSpec};

/// The factor whose levels are the commands of a bench.
const BENCH_COMMANDS: &str = "command";

/// The shell that `perflab bench` and `perflab run --` take where none is named.
const USUAL_SHELL: &str = "/bin/sh";

/// What was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecordedStudy {
    /// A file, or the name of a shipped study, quoted.
    File(String),
    /// `perflab bench`: the options that it was given, its commands, and the candidate's alone.
    Bench { options: String, commands: String, candidate: String },
    /// `perflab run --`: what it varied, and its command.
    Command { options: String, command: String },
}

impl RecordedStudy {
    /// What a run is of; `level` is the candidate's of the factor that is compared.
    pub(crate) fn of_run(run: &RunRecord, level: Option<&str>) -> Self {
        let manifest = &run.manifest;
        let study = &manifest.study;
        let file = manifest.study_file.as_str();
        let workload = study.workload.get(BENCH_COMMANDS);
        match (file, workload) {
            ("bench", Some(workload)) => {
                let commands = study.factor.get(BENCH_COMMANDS).map(level_texts).unwrap_or_default();
                let only = workload.command.iter().flat_map(CommandLine::templates);
                let commands: Vec<(String, String)> = match commands.is_empty() {
                    true => only.map(|text| (String::new(), text.clone())).collect(),
                    false => commands,
                };
                let candidate = commands.iter().find(|(name, _)| level == Some(name)).or(commands.last());
                let candidate = candidate.map(|(_, text)| quote_word(&plain_text(text))).unwrap_or_default();
                let quoted: Vec<String> =
                    commands.iter().map(|(_, text)| quote_word(&plain_text(text))).collect();
                RecordedStudy::Bench {
                    options: bench_options(workload, &study.factor),
                    commands: quoted.join(" "),
                    candidate,
                }
            }
            ("run", Some(WorkloadSpec { command: Some(command), .. })) => {
                let words = command.templates().iter().map(|word| quote_word(&plain_text(word)));
                RecordedStudy::Command {
                    options: varied_options(&study.factor),
                    command: words.collect::<Vec<_>>().join(" "),
                }
            }
            _ => RecordedStudy::File(quote_word(if file.is_empty() { "STUDY" } else { file })),
        }
    }

    /// Whether a person wrote it into a file, with tables to add to.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self, RecordedStudy::File(_))
    }

    /// A command in which `{study}` stands for what was run: `perflab run {study} --event off-cpu`.
    pub(crate) fn complete_command(&self, command: &str) -> String {
        match self {
            RecordedStudy::File(file) => command.replace("{study}", file),
            // `perflab bench` varies commands and their parameters, and nothing else.
            RecordedStudy::Bench { candidate, .. } if command.contains("--vary") => {
                format!("{} -- {candidate}", command.replace("perflab run {study}", "perflab run"))
            }
            RecordedStudy::Bench { options, commands, .. } => {
                let begun = command.replace("perflab run {study}", &format!("perflab bench{options}"));
                format!("{begun} {commands}")
            }
            RecordedStudy::Command { options, command: words } => {
                let begun = command.replace("perflab run {study}", &format!("perflab run{options}"));
                format!("{begun} -- {words}")
            }
        }
    }

    /// A command that records monitors beside what was run, where it is no file to which they could be added.
    pub(crate) fn bench_command(&self, monitor: &str) -> Option<String> {
        let (options, commands) = match self {
            RecordedStudy::File(_) => return None,
            RecordedStudy::Bench { options, commands, .. } => (options.as_str(), commands.clone()),
            // One argument is a text for the shell; of several, each is a word.
            RecordedStudy::Command { command, .. } => ("", quote_if_several(command)),
        };
        Some(format!("perflab bench{options} --monitor {monitor} {commands}"))
    }

    /// [`complete_command`](Self::complete_command) of a command that has `{study}`; nothing of one that has not.
    pub(crate) fn complete_written(&self, command: &str) -> Option<String> {
        command.contains("{study}").then(|| self.complete_command(command))
    }

    /// A command that runs what was run once, behind `--`; nothing where it is a file.
    pub(crate) fn recorded_command(&self, command: &str) -> Option<String> {
        match self {
            RecordedStudy::File(_) => None,
            // Commands of a bench are texts for the shell.
            RecordedStudy::Bench { candidate, .. } => Some(format!("{command} -- sh -c {candidate}")),
            RecordedStudy::Command { command: words, .. } => Some(format!("{command} -- {words}")),
        }
    }

    /// As JSON has it: the file, or the verb.
    pub(crate) fn name(&self) -> String {
        match self {
            RecordedStudy::File(file) => shlex::split(file).unwrap_or_default().concat(),
            RecordedStudy::Bench { .. } => "bench".into(),
            RecordedStudy::Command { .. } => "run".into(),
        }
    }
}

/// A word as a shell takes it; one that cannot be quoted (it holds a zero byte) as it is.
pub(crate) fn quote_word(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |quoted| quoted.into_owned())
}

/// Words as the one argument that `perflab bench` takes for a command.
fn quote_if_several(words: &str) -> String {
    match shlex::split(words).as_deref() {
        Some([only]) => quote_word(only),
        _ => quote_word(words),
    }
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

/// The levels of a factor, each with its name and its value.
fn level_texts(factor: &Factor) -> Vec<(String, String)> {
    factor.levels.iter().map(|level| (level.name.clone(), level.value.to_string())).collect()
}

fn bench_options(workload: &WorkloadSpec, factors: &indexmap::IndexMap<String, Factor>) -> String {
    let mut text = String::new();
    for (name, factor) in factors.iter().filter(|(name, _)| *name != BENCH_COMMANDS) {
        let values: Vec<String> = factor.levels.iter().map(|level| level.value.to_string()).collect();
        let _ = write!(text, " -L {} {}", quote_word(name), quote_word(&values.join(",")));
    }
    let commands = [
        ("--setup", &workload.setup),
        ("--prepare", &workload.prepare),
        ("--conclude", &workload.conclude),
        ("--cleanup", &workload.cleanup),
    ];
    for (option, command) in commands {
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
    text
}

/// `--vary` of each factor that `perflab run --` was given.
fn varied_options(factors: &indexmap::IndexMap<String, Factor>) -> String {
    let of = |(name, factor): (&String, &Factor)| {
        let values: Vec<String> = factor.levels.iter().map(|level| level.value.to_string()).collect();
        let key = factor.key.as_ref().unwrap_or(name);
        let named = if key == name { String::new() } else { format!("{name}=") };
        let has_key =
            !matches!(factor.kind, FactorKind::DropCaches | FactorKind::Placement | FactorKind::Monitors);
        let key = if has_key { format!(":{key}") } else { String::new() };
        format!(" --vary {}", quote_word(&format!("{named}{}{key}={}", factor.kind, values.join(","))))
    };
    factors.iter().map(of).collect()
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

    #[test]
    fn a_bench_is_typed_again_with_its_options() {
        let study = "title = \"\"\n[workload.command]\nshell = \"/bin/sh\"\nprepare = \"rm -f 'a b'\"\ncommand = \"{{ command }}\"\n\
            [factor.command]\nkind = \"parameter\"\nlevels = [{ name = \"gzip\", value = \"gzip -k x\" }, { name = \"awk\", value = \"{{ 'awk \\\\'{print}\\\\'' }} {{ n }}\" }]\n\
            [factor.n]\nkind = \"parameter\"\nlevels = [1, 2]\n";
        let found = recorded("bench", study, Some("awk"));
        let run = |command: &str| found.complete_command(command);
        assert_eq!(
            run("perflab run {study} --event off-cpu"),
            "perflab bench -L n '1,2' --prepare \"rm -f 'a b'\" --event off-cpu 'gzip -k x' \"awk '{print}' {n}\""
        );
        assert_eq!(
            run("perflab run {study} --vary sysctl:a=1,2"),
            "perflab run --vary sysctl:a=1,2 -- \"awk '{print}' {n}\""
        );
        let monitored = found.bench_command("vmstat").unwrap();
        assert_eq!(shlex::split(&monitored).unwrap().last().unwrap(), "awk '{print}' {n}");
    }

    #[test]
    fn a_command_is_typed_again_with_what_it_varied() {
        let study = "title = \"\"\n[workload.command]\ncommand = [\"sh\", \"-c\", \"a; b\"]\n\
            [factor.swappiness]\nkind = \"sysctl\"\nkey = \"vm.swappiness\"\nlevels = [60, 0]\n";
        let found = recorded("run", study, None);
        assert_eq!(
            found.complete_command("perflab run {study} --event off-cpu"),
            "perflab run --vary 'swappiness=sysctl:vm.swappiness=60,0' --event off-cpu -- sh -c 'a; b'"
        );
        let monitored = found.bench_command("vmstat").unwrap();
        assert_eq!(shlex::split(&monitored).unwrap().last().unwrap(), "sh -c 'a; b'");
        let text = "title = \"\"\n[workload.command]\ncommand = \"a; b\"\n";
        assert!(recorded("run", text, None).complete_command("perflab run {study}").ends_with("-- 'a; b'"));
        let file = recorded("my study.toml", text, None);
        assert_eq!(file.complete_command("perflab run {study}"), "perflab run 'my study.toml'");
        assert_eq!((file.name().as_str(), file.bench_command("stat")), ("my study.toml", None));
    }
}
