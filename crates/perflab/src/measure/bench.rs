//! `perflab bench 'A' 'B'`: commands timed against one another, as a study of one line.
//!
//! Its options are hyperfine's where both have the thing; what differs is what is said at the end: the commands are
//! interleaved, and the difference has a verdict.

use std::collections::BTreeSet;

use clap::Args;
use perflab_analyze::{ComparisonSide, command_times};
use perflab_archive::RunDir;
use perflab_conduct::RunPermissions;
use perflab_model::study::{CounterGroups, CountersSpec, EVENTS_MONITOR, EventChoice, TomlSource};
use perflab_model::{Nanos, RunStatus};
use perflab_present::command_times::{command_times_grid, hyperfine_document};
use perflab_present::comparison::{OutputFormat, render_comparisons};
use perflab_workload::argv_element::split_words;

use crate::app::App;
use crate::failure::{Exit, Failure, UsageError};
use crate::measure::command_words::{check_command_exists, parameter_template, quote_toml};
use crate::measure::run::{self, HIGHEST_FREQUENCY, RunArgs};
use crate::measure::varied_factor::VariedFactor;
use crate::output_path::OutputPath;
use crate::selection::parse_label;
use crate::verb::Verb;

/// The factor whose levels are the commands.
const FACTOR: &str = "command";

/// The word for no shell at all.
const NO_SHELL: &str = "none";

/// What a run without a number of its own measures at least.
const MIN_RUNS: u32 = 10;

/// More iterations of a command are not planned where nothing else ends the run.
const MOST_RUNS: u32 = 1_000;

/// More values of a scan are not compared.
const MOST_SCANNED: i128 = 1_000;

/// Time commands against one another, in turn, to see which is faster
#[derive(Debug, Args)]
#[command(after_long_help = BENCH)]
pub struct BenchArgs {
    /// The commands, one argument each; the first is the baseline. `{NAME}` stands for a parameter
    #[arg(required = true, value_name = "COMMAND")]
    pub commands: Vec<String>,
    /// A name for a command, in the order of the commands (repeatable)
    #[arg(short = 'n', long = "command-name", value_name = "NAME")]
    pub names: Vec<String>,
    /// Warm-up runs of each command, which do not count
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub warmup: u32,
    /// Exactly this many runs of each command (default: as many as it takes to decide)
    #[arg(short, long, value_name = "N", conflicts_with_all = ["min_runs", "max_runs", "time_cap"])]
    pub runs: Option<u32>,
    /// At least this many runs of each command
    #[arg(short, long, value_name = "N", default_value_t = MIN_RUNS)]
    pub min_runs: u32,
    /// At most this many runs of each command
    #[arg(short = 'M', long, value_name = "N", default_value_t = MOST_RUNS)]
    pub max_runs: u32,
    /// How long all runs may take together, warm-up aside, if their number is left open: no further run of each command begins after
    /// that, even before --min-runs is reached
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub time_cap: Nanos,
    /// A command before the first run of each command, not timed
    #[arg(short, long, value_name = "COMMAND")]
    pub setup: Option<String>,
    /// A command before each run, not timed: `sync; echo 3 > /proc/sys/vm/drop_caches`
    #[arg(short, long, value_name = "COMMAND")]
    pub prepare: Option<String>,
    /// A command after each run, not timed
    #[arg(short = 'C', long, value_name = "COMMAND")]
    pub conclude: Option<String>,
    /// A command after the last run of each command, not timed
    #[arg(short, long, value_name = "COMMAND")]
    pub cleanup: Option<String>,
    /// The shell that runs the commands; `none` starts them without one
    #[arg(short = 'S', long, value_name = "SHELL", default_value = "/bin/sh")]
    pub shell: String,
    /// Start the commands without a shell: --shell none
    #[arg(short = 'N', conflicts_with = "shell")]
    pub no_shell: bool,
    /// Also count runs that end with an exit code other than 0; runs killed by a signal still fail
    #[arg(short, long)]
    pub ignore_failure: bool,
    /// Repeat everything for each value of a parameter: -L threads 1,2,4 'make -j{threads}' (repeatable)
    #[arg(short = 'L', long, num_args = 2, value_names = ["NAME", "VALUES"])]
    pub parameter_list: Vec<String>,
    /// The same for all whole numbers from MIN to MAX (repeatable)
    #[arg(short = 'P', long, num_args = 3, value_names = ["NAME", "MIN", "MAX"])]
    pub parameter_scan: Vec<String>,
    /// The step of --parameter-scan
    #[arg(short = 'D', long, value_name = "N", default_value_t = 1, requires = "parameter_scan")]
    pub parameter_step_size: u32,
    /// Repeat everything under each level of something else, as in `perflab run --vary`: sysctl:vm.swappiness=60,0 (repeatable)
    #[arg(long, value_name = "KIND:KEY=LEVELS")]
    pub vary: Vec<VariedFactor>,
    /// Also record this monitor (repeatable; `perflab monitor list`): when iterations begin and end, and every 100 ms
    #[arg(long, value_name = "NAME")]
    pub monitor: Vec<String>,
    /// Also sample call stacks, this often a second on each CPU; 999 is a good choice (`perflab flame diff`)
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=HIGHEST_FREQUENCY))]
    pub profile: Option<u32>,
    /// Events to count of each run, by perf's names: `task-clock,{instructions,cycles}` (`perflab monitor show counters`)
    #[arg(long, value_name = "EVENTS", value_parser = CounterGroups::parse_list)]
    pub counters: Option<CounterGroups>,
    /// Also count this event where it happens: a recipe (`perflab event list`), or a tracepoint GROUP:NAME (repeatable)
    #[arg(long, value_name = "NAME")]
    pub event: Vec<EventChoice>,
    /// Write the times as hyperfine's JSON
    #[arg(long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub export: Option<OutputPath>,
    /// A name for the run; runs that share a label are repetitions of one another
    #[arg(long, value_parser = parse_label)]
    pub label: Option<String>,
    /// Seed of the random order
    #[arg(long)]
    pub seed: Option<u64>,
}

const BENCH: &str = "\
Examples:
  perflab bench 'gzip -k big' 'zstd -k big' --prepare 'rm -f big.*'   which is faster
  perflab bench -N -r 300 /bin/true                                   one command, no shell
  perflab bench -L threads 1,2,4 'make -j{threads}' -p 'make clean'   a parameter
  perflab bench -w 3 --export times.json ./old ./new                  hyperfine's JSON, too

The commands take turns in random order, so a drift of the machine does not look like a difference
between them. The runs end once the difference is known, at --time-cap, or if every one of the first
few fails. The result is a run in the archive like any other: perflab report, compare, history and
show work on it.";

/// Carries the commands out and says which is faster.
pub fn bench_commands(context: &App, args: &BenchArgs) -> Result<Exit, Failure> {
    run::undo_leftovers(context);
    let written = BenchStudy::new(args)?;
    let source = TomlSource::new("bench", written.text());
    let run_args = RunArgs {
        label: args.label.clone(),
        seed: args.seed,
        vary: args.vary.clone(),
        monitor: args.monitor.clone(),
        profile: args.profile,
        counters: args.counters.clone(),
        event: args.event.clone(),
        ..RunArgs::default()
    };
    let (manifest, catalogue) = run::prepare_written_study(context, source, &run_args, |_| ())?;
    let (status, found) = run::execute_manifest(context, &manifest, catalogue, &RunPermissions::default())?;
    conclude_bench(context, args, status, &found)
}

/// The times of each command, the verdicts, and the file that was asked for.
fn conclude_bench(
    context: &App,
    args: &BenchArgs,
    status: RunStatus,
    found: &RunDir,
) -> Result<Exit, Failure> {
    let record = found.read_record()?;
    let times = command_times(&record);
    let side = ComparisonSide { name: found.short_id().to_owned(), runs: vec![record] };
    let compared = crate::see::report::compare_by_every_factor(&context.archive()?, &side);
    // A run that was stopped may lack a side.
    let comparisons = if status == RunStatus::Stopped { compared.unwrap_or_default() } else { compared? };
    let is_for_people = matches!(context.format, OutputFormat::Table | OutputFormat::Markdown);
    if is_for_people || comparisons.is_empty() {
        context.print_grid(&command_times_grid(&times))?;
    }
    if !comparisons.is_empty() {
        let text = render_comparisons(&comparisons, context.format, context.width, context.colour)?;
        context.print_text(&if is_for_people { format!("\n{text}") } else { text })?;
    }
    if args.counters.is_some() {
        show_monitor(context, found, CountersSpec::WORKLOAD_MONITOR)?;
    }
    if !args.event.is_empty() {
        show_monitor(context, found, EVENTS_MONITOR)?;
    }
    if let Some(path) = &args.export {
        let document = serde_json::to_string_pretty(&hyperfine_document(&times))?;
        path.write(format!("{document}\n").as_bytes())?;
        context.note(format!("times: {path}"));
    }
    context.note(format!("run: {} in {}", found.short_id(), context.archive_path().display()));
    Ok(run::exit_of_run(context, status, found))
}

/// What was counted of each command: compared, where there are several; else where to look.
fn show_monitor(context: &App, found: &RunDir, monitor: &str) -> Result<(), Failure> {
    if found.list_monitors()?.iter().all(|name| name != monitor) {
        // None was counted, which was said.
        return Ok(());
    }
    let side = crate::selection::monitor_side(&context.archive()?, found.id(), monitor)?;
    let comparisons = crate::see::report::compare_monitor_by_every_factor(&context.archive()?, &side)?;
    if comparisons.is_empty() || context.format == OutputFormat::Json {
        context.note(format!("{monitor}: perflab show {} --monitor {monitor}", found.short_id()));
        return Ok(());
    }
    let text = render_comparisons(&comparisons, context.format, context.width, context.colour)?;
    context.print_text(&format!("\n{text}"))
}

/// A parameter of the commands and its values.
struct BenchParameter {
    name: String,
    values: Vec<String>,
}

/// The study that the arguments are.
struct BenchStudy<'a> {
    args: &'a BenchArgs,
    parameters: Vec<BenchParameter>,
}

impl<'a> BenchStudy<'a> {
    /// Checks what clap cannot.
    fn new(args: &'a BenchArgs) -> Result<Self, Failure> {
        check_commands(args)?;
        check_names(args)?;
        check_numbers_of_runs(args)?;
        let lists = args.parameter_list.chunks_exact(2).filter_map(list_parameter);
        let scans = args.parameter_scan.chunks_exact(3);
        let scans = scans.map(|scan| scan_parameter(scan, args.parameter_step_size));
        let parameters: Vec<BenchParameter> = lists.map(Ok).chain(scans).collect::<Result<_, _>>()?;
        for (at, parameter) in parameters.iter().enumerate() {
            check_parameter(args, parameter, parameters.get(..at).unwrap_or_default())?;
        }
        Ok(BenchStudy { args, parameters })
    }

    /// As a person could have written it.
    fn text(&self) -> String {
        let args = self.args;
        let titles: Vec<String> = args.commands.iter().map(|command| format!("`{command}`")).collect();
        let shell = if args.no_shell { NO_SHELL } else { &args.shell };
        let mut text = format!(
            "title = {}\n\n[run]\nwarmup = {}\n{}\n[workload.command]\nshell = {}\n",
            quote_toml(&titles.join(", ")),
            args.warmup,
            self.end_rule(),
            quote_toml(shell)
        );
        let others = [
            ("setup", &args.setup),
            ("prepare", &args.prepare),
            ("conclude", &args.conclude),
            ("cleanup", &args.cleanup),
        ];
        let others =
            others.iter().filter_map(|(key, command)| Some((*key, self.template(command.as_ref()?))));
        for (key, command) in others {
            text += &format!("{key} = {}\n", quote_toml(&command));
        }
        if args.ignore_failure {
            text += "allow-exit = [-1]\n";
        }
        match args.commands.as_slice() {
            [only] => text += &format!("command = {}\n", quote_toml(&self.template(only))),
            several => {
                text += "command = \"{{ command }}\"\n";
                let levels = several.iter().enumerate().map(|(index, command)| self.level(index, command));
                let levels: Vec<String> = levels.collect();
                text +=
                    &format!("\n[factor.{FACTOR}]\nkind = \"parameter\"\nlevels = [\n{}]\n", levels.concat());
            }
        }
        for parameter in &self.parameters {
            let values: Vec<String> = parameter.values.iter().map(|value| quote_toml(value)).collect();
            text += &format!(
                "\n[factor.{}]\nkind = \"parameter\"\nlevels = [{}]\n",
                parameter.name,
                values.join(", ")
            );
        }
        text
    }

    fn level(&self, index: usize, command: &str) -> String {
        let name = self.args.names.get(index).map_or(command, String::as_str);
        format!("  {{ name = {}, value = {} }},\n", quote_toml(name), quote_toml(&self.template(command)))
    }

    /// When there are enough runs.
    fn end_rule(&self) -> String {
        match self.args.runs {
            Some(runs) => format!("iterations = {runs}\n"),
            None => {
                let is_compared =
                    self.args.commands.len() > 1 || !self.parameters.is_empty() || !self.args.vary.is_empty();
                format!(
                    "until = \"{}, at least {}, at most {}, within {}\"\n",
                    if is_compared { "decided" } else { "precision 1%" },
                    self.args.min_runs,
                    self.args.max_runs,
                    self.args.time_cap.to_study_text()
                )
            }
        }
    }

    /// A command's text with its parameters as a study names them.
    fn template(&self, text: &str) -> String {
        let listed = self.parameters.iter().map(|parameter| parameter.name.as_str());
        let varied = self.args.vary.iter().filter_map(VariedFactor::parameter);
        let names: Vec<&str> = listed.chain(varied).collect();
        parameter_template(text, &names)
    }
}

/// Each command runs something; without a shell, what it runs is there.
fn check_commands(args: &BenchArgs) -> Result<(), Failure> {
    let is_split = args.no_shell || args.shell == NO_SHELL;
    for (at, command) in args.commands.iter().enumerate() {
        if command.trim().is_empty() {
            let message = format!("command {} is empty", at + 1);
            return Err(UsageError::new(message, "name a program and its arguments: 'sleep 0.1'").into());
        }
        if !is_split {
            continue;
        }
        let words = split_words(command)
            .map_err(|error| UsageError::new(error.to_string(), "close it, or leave -N out"))?;
        let is_known = words.first().is_some_and(|program| !program.contains('{'));
        if is_known {
            check_command_exists(&words)?;
        }
    }
    Ok(())
}

/// Each command is called something that no other is.
fn check_names(args: &BenchArgs) -> Result<(), UsageError> {
    if args.commands.len() == 1 && !args.names.is_empty() {
        let hint = "name a second command, or leave -n out";
        return Err(UsageError::new("-n tells several commands apart, and there is one", hint));
    }
    if args.names.len() > args.commands.len() {
        let message = format!("{} names for {} commands", args.names.len(), args.commands.len());
        return Err(UsageError::new(message, "give each command one -n at most, in their order"));
    }
    let mut seen = BTreeSet::new();
    let names = args.commands.iter().enumerate().map(|(at, command)| args.names.get(at).unwrap_or(command));
    match names.into_iter().find(|name| !seen.insert(*name)) {
        None => Ok(()),
        Some(name) => {
            let hint = "give one of them a name of its own: -n old -n new";
            Err(UsageError::new(format!("two commands are called `{name}`"), hint))
        }
    }
}

/// Something is measured.
fn check_numbers_of_runs(args: &BenchArgs) -> Result<(), UsageError> {
    if args.time_cap == Nanos(0) {
        return Err(UsageError::new("`--time-cap 0s` would measure nothing", "give it 1s or more"));
    }
    if args.runs == Some(0) {
        return Err(UsageError::new("`--runs 0` would measure nothing", "give 1 or more"));
    }
    if args.max_runs < args.min_runs {
        let message = format!("--max-runs {} is less than --min-runs {}", args.max_runs, args.min_runs);
        return Err(UsageError::new(message, "raise --max-runs, or lower --min-runs"));
    }
    Ok(())
}

/// A parameter has values, a name that no `earlier` one has, and a command that names it.
fn check_parameter(
    args: &BenchArgs,
    parameter: &BenchParameter,
    earlier: &[BenchParameter],
) -> Result<(), UsageError> {
    let name = &parameter.name;
    if !name.chars().all(|letter| letter.is_alphanumeric() || letter == '_') {
        let message = format!("`{name}` is no name of a parameter");
        return Err(UsageError::new(message, "use letters, digits and _"));
    }
    if earlier.iter().any(|other| other.name == *name) {
        let message = format!("the parameter `{name}` is given twice");
        return Err(UsageError::new(message, "list all of its values in one -L"));
    }
    if parameter.values.iter().any(String::is_empty) {
        let message = format!("the parameter `{name}` has an empty value");
        return Err(UsageError::new(message, "separate values by one comma: -L threads 1,2,4"));
    }
    let placeholder = format!("{{{name}}}");
    let others = [&args.setup, &args.prepare, &args.conclude, &args.cleanup];
    let mut texts = args.commands.iter().chain(others.into_iter().flatten());
    if !texts.any(|text| text.contains(&placeholder)) {
        let message = format!("no command names the parameter `{name}`");
        return Err(UsageError::new(message, format!("write {placeholder} where its value belongs")));
    }
    Ok(())
}

/// `-L NAME A,B`
fn list_parameter(pair: &[String]) -> Option<BenchParameter> {
    let [name, values] = pair else { return None };
    let values = values.split(',').map(|value| value.trim().to_owned()).collect();
    Some(BenchParameter { name: name.clone(), values })
}

/// `-P NAME MIN MAX`
fn scan_parameter(scan: &[String], step: u32) -> Result<BenchParameter, UsageError> {
    let [name, low, high] = scan else {
        return Err(UsageError::new("--parameter-scan takes NAME MIN MAX", "-P threads 1 8"));
    };
    let number = |text: &String| {
        text.parse::<i64>().map_err(|_| {
            UsageError::new(format!("--parameter-scan: `{text}` is no whole number"), "-P threads 1 8")
        })
    };
    let (low, high) = (number(low)?, number(high)?);
    if step == 0 || high < low {
        let message = format!("--parameter-scan: from {low} to {high} by {step} is nothing");
        return Err(UsageError::new(message, "give the smaller bound first, and a step of 1 or more"));
    }
    let count = (i128::from(high) - i128::from(low)) / i128::from(step) + 1;
    if count > MOST_SCANNED {
        let message = format!("--parameter-scan: from {low} to {high} by {step} are {count} values");
        let hint = format!("at most {MOST_SCANNED} are compared: give a larger -D");
        return Err(UsageError::new(message, hint));
    }
    let values = (low..=high).step_by(step as usize).map(|value| value.to_string()).collect();
    Ok(BenchParameter { name: name.clone(), values })
}

impl Verb for BenchArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        bench_commands(app, self)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    fn study_of(typed: &[&str]) -> Result<perflab_model::Study, String> {
        let command = BenchArgs::augment_args(clap::Command::new("bench"));
        let matches =
            command.try_get_matches_from([&["bench"], typed].concat()).map_err(|e| e.to_string())?;
        let args = BenchArgs::from_arg_matches(&matches).unwrap();
        let text = BenchStudy::new(&args).map_err(|error| format!("{error:?}"))?.text();
        TomlSource::new("bench", text).parse_study().map_err(|problems| problems.to_string())
    }

    #[test]
    fn several_commands_are_levels_and_one_is_a_command() {
        let study = study_of(&["sleep 0.1", "sleep '0.2'", "-n", "short"]).unwrap();
        let levels: Vec<&str> = study.factor[FACTOR].levels.iter().map(|level| level.name.as_str()).collect();
        assert_eq!(levels, ["short", "sleep '0.2'"]);
        let alone = study_of(&["sleep 0.1", "-r", "7"]).unwrap();
        assert!(alone.factor.is_empty());
        assert_eq!(alone.run.iterations, 7);
    }

    #[test]
    fn only_a_parameter_in_braces_is_one() {
        let study = study_of(&["-L", "n", "1,2", "awk '{print $1}' {n} {{x}}"]).unwrap();
        let command = study.workload["command"].command.as_ref().unwrap().templates()[0].clone();
        let mut scope = perflab_model::expression::ExpressionScope::default();
        scope.set("n", perflab_model::Scalar::Text("7".into()));
        assert_eq!(scope.render(&command).unwrap(), "awk '{print $1}' 7 {{x}}");
        assert_eq!(study.factor["n"].levels.len(), 2);
        let scan = study_of(&["-P", "n", "1", "9", "-D", "4", "echo {n}"]).unwrap();
        assert_eq!(scan.factor["n"].levels.len(), 3);
    }

    #[test]
    fn what_means_nothing_is_refused() {
        let refused = [
            &["", "ls"][..],
            &["ls", "-r", "0"],
            &["ls", "-n", "a", "-n", "b"],
            &["ls", "-L", "n", "1,2"],
            &["ls {n}", "-P", "n", "9", "1"],
            &["ls", "-m", "20", "-M", "10"],
        ];
        for typed in refused {
            assert!(study_of(typed).is_err(), "{typed:?}");
        }
    }

    #[test]
    fn what_is_compared_runs_until_it_is_decided_or_the_time_is_over() {
        let capped = study_of(&["ls", "pwd", "--time-cap", "5s", "-m", "7"]).unwrap().run.until.unwrap();
        assert!(capped.is_decided());
        assert_eq!((capped.at_least, capped.within), (7, Some(Nanos(5_000_000_000))));
        assert!(!study_of(&["ls"]).unwrap().run.until.unwrap().is_decided());
    }
}
