//! One execution of a study, `perflab run`: its manifest, its events to consumers, settings undone.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::channel;

use clap::Args;
use perflab_analyze::compare::gate::GateParseError;
use perflab_analyze::{Gate, KernelLogPart, KernelLogRow, kernel_troubles};
use perflab_archive::RunDir;
use perflab_conduct::execution_records::end_abandoned_executions;
use perflab_conduct::{
    ConductError, LocalMachine, PlanChoices, RunPermissions, conduct_run, plan_study, study_warnings,
    used_definitions,
};
use perflab_model::StopRequest;
use perflab_model::fact_table;
use perflab_model::study::{
    CounterGroups, EventChoice, MonitorTiming, ProfileSpec, StoppingRule, TomlSource,
};
use perflab_model::{
    FORMAT_VERSION, Facts, Manifest, Nanos, Overhead, RunEventKind, RunPlan, RunStatus, Study,
    environment_facts, named_variables,
};
use perflab_observe::Root;
use perflab_settings::setting_problems;
use perflab_workload::{Catalogue, ExecutionGuard};

use crate::app::App;
use crate::failure::{Exit, Failure, FailureContext as _, UnexpectedError, UsageError};
use crate::inventory_file::find_inventory_of;
use crate::laboratory::workload::install_workload;
use crate::measure::command_words::{check_command_exists, command_words, parameter_template, quote_toml};
use crate::measure::event_consumers::{RecorderConsumer, StoppingWatch, feed_consumers};
use crate::measure::failing_command::FailingCommandWatch;
use crate::measure::full_disk::DiskFullError;
use crate::measure::progress::ProgressReporter;
use crate::measure::repeatable_run::check_study_resumable;
use crate::measure::target_images::{add_root_facts, get_missing_images, wants_images};
use crate::measure::varied_factor::VariedFactor;
use crate::selection::parse_label;
use crate::verb::Verb;
use crate::{signals, study_source};

/// The time between readings of a monitor that a command line names.
pub const MONITOR_INTERVAL: Nanos = Nanos(100_000_000);

/// Samples a second at most.
pub const HIGHEST_FREQUENCY: i64 = ProfileSpec::HIGHEST_FREQUENCY as i64;

/// Runs a study, or a command, and shows what came out.
pub fn run_study(context: &App, args: &RunArgs) -> Result<Exit, Failure> {
    undo_leftovers(context);
    let (manifest, catalogue) = match &args.study {
        Some(_) => prepare_manifest(context, args, |_| ())?,
        None => prepare_written_study(context, command_run_study(args)?, args, |_| ())?,
    };
    if args.install_only {
        return install_workloads(context, &manifest, &catalogue);
    }
    let permissions = RunPermissions { apply: args.apply, install: args.install, wait: args.wait };
    let (status, run) = execute_manifest(context, &manifest, catalogue, &permissions)?;
    let concluded = crate::see::report::conclude_run(context, &run, args.no_report);
    // A run that was stopped may lack a side.
    if status != RunStatus::Stopped {
        concluded?;
    }
    match exit_of_run(context, status, &run) {
        Exit::Fine => exit_for_kernel_log(args, &run),
        failed => Ok(failed),
    }
}

/// Fails a run whose kernels had trouble that --fail-if names.
fn exit_for_kernel_log(args: &RunArgs, run: &RunDir) -> Result<Exit, Failure> {
    let Some(gate) = &args.fail_if else { return Ok(Exit::Fine) };
    let (record, mut logs) =
        (run.read_record()?, crate::selection::read_kernel_logs(std::slice::from_ref(run))?);
    let parts = logs.remove(run.id());
    let is_unread = |part: &KernelLogPart| part.text.starts_with(RunEventKind::KERNEL_LOG_UNREAD);
    let troubles = kernel_troubles(&record, parts.as_deref().unwrap_or_default());
    let refused = |row: &&KernelLogRow| row.trouble.is_some_and(|trouble| gate.refuses_trouble(trouble));
    let found: Vec<&KernelLogRow> = troubles.iter().filter(refused).collect();
    for row in &found {
        let count = row.sides.first().copied().unwrap_or_default();
        let kind = row.trouble.map(|trouble| trouble.to_string()).unwrap_or_default();
        let (iterations, of, elsewhere) = (count.iterations, count.of, count.elsewhere);
        stderr_line!(
            "perflab: --fail-if {gate}: {kind} in {iterations} of {of} measured iterations and {elsewhere} times between them: {}",
            row.line
        );
    }
    if !found.is_empty() {
        return Ok(Exit::Regression);
    }
    if parts.is_none_or(|parts| parts.iter().any(is_unread)) {
        stderr_line!("perflab: --fail-if {gate}: the kernel's log was not kept, or could not be read");
        return Ok(Exit::NothingJudged);
    }
    Ok(Exit::Fine)
}

/// A condition about the kernel's log: a run by itself has no verdict that another could decide.
fn parse_kernel_log_gate(text: &str) -> Result<Gate, String> {
    let gate: Gate = text.parse().map_err(|error: GateParseError| error.to_string())?;
    match gate.judges_rows() {
        false => Ok(gate),
        true => {
            Err("a run fails by kernel-log:KIND only; verdicts are those of `perflab compare --fail-if`"
                .into())
        }
    }
}

/// Installs what a study needs, and runs nothing.
fn install_workloads(context: &App, manifest: &Manifest, catalogue: &Catalogue) -> Result<Exit, Failure> {
    if wants_images(manifest) {
        let machine = local_machine(context, catalogue.clone())?;
        get_missing_images(context, &machine, manifest, &stop_on_interrupt()?)?;
        context.note("the kernels and roots of its targets are here; its workloads run there: `perflab workload install NAME --apply`");
        return Ok(Exit::Fine);
    }
    if !manifest.plan.targets.is_empty() {
        let message = "the workloads of this study run on its targets, not on this host";
        return Err(UsageError::new(message, "there: `perflab workload install NAME --apply`").into());
    }
    for definition in used_definitions(manifest, catalogue) {
        install_workload(context, definition, true)?;
    }
    Ok(Exit::Fine)
}

/// The machine that conducts a run.
pub fn local_machine(context: &App, catalogue: perflab_workload::Catalogue) -> Result<LocalMachine, Failure> {
    let perflab = std::env::current_exe().context("cannot find perflab's own binary")?;
    Ok(LocalMachine {
        root: context.root.clone(),
        state: perflab_observe::own_directories::state_directory(),
        perflab,
        catalogue,
        runs_as_typed: false,
        quiet_after: None,
        traces: Default::default(),
        monitors: Default::default(),
        counters: Default::default(),
        events: Default::default(),
    })
}

/// Processes and settings of a killed run first: they would be part of what is measured.
pub fn undo_leftovers(context: &App) {
    let boot = perflab_observe::read_boot_id(&context.root);
    let ended =
        end_abandoned_executions(&perflab_observe::own_directories::state_directories(), &boot, false).ended;
    if ended > 0 {
        stderr_line!("perflab: a run was killed; ended {ended} of its processes, which were still running");
    }
    for path in crate::laboratory::leftovers::remove_unfinished_imports(context) {
        stderr_line!("perflab: removed {}, left incomplete by a killed perflab", path.display());
    }
    for found in crate::laboratory::leftovers::put_back_leftovers(context) {
        if !found.undone.is_empty() {
            let count = found.undone.len();
            stderr_line!(
                "perflab: run {} was killed; put back {count} of its settings: {}",
                found.run,
                found.undone.join(", ")
            );
        }
        for left in found.left {
            stderr_line!("warning: left as somebody else has set it: before the run it was {left}");
        }
        for failed in found.failed {
            stderr_line!("warning: not put back yet: {failed}");
        }
    }
}

/// The manifest of the study that is named, as changed by the arguments and by `change`, with the catalogue that it is run
/// from.
pub fn prepare_manifest(
    context: &App,
    args: &RunArgs,
    change: impl FnOnce(&mut Study),
) -> Result<(Manifest, Catalogue), Failure> {
    let source = study_source::find_study(args.study.as_deref().unwrap_or_default())?;
    prepare_written_study(context, source, args, change)
}

/// The same of a study that was written for the occasion.
pub fn prepare_written_study(
    context: &App,
    source: TomlSource,
    args: &RunArgs,
    change: impl FnOnce(&mut Study),
) -> Result<(Manifest, Catalogue), Failure> {
    let source = if args.brief { source.shorten()? } else { source };
    let mut study = source.parse_study()?;
    for varied in &args.vary {
        varied.add_to(&mut study)?;
    }
    if !args.vary.is_empty() {
        source.check_study(&study)?;
    }
    note_study_warnings(&source, &study);
    change(&mut study);
    plan_manifest(context, &source, study, args)
}

/// The manifest of a study that was read from `source`, as changed by the arguments, with the catalogue that it is run from.
pub fn plan_manifest(
    context: &App,
    source: &TomlSource,
    mut study: Study,
    args: &RunArgs,
) -> Result<(Manifest, Catalogue), Failure> {
    if args.no_monitors {
        study.monitors.clear();
        study.counters = None;
        study.events.clear();
        study.kernel_log = false;
        (study.profile, study.io) = (None, None);
    }
    for name in &args.monitor {
        // What the study says of it stays.
        study.monitors.entry(name.clone()).or_insert(MonitorTiming::Every(MONITOR_INTERVAL));
    }
    if let Some(frequency) = args.profile {
        study.profile.get_or_insert_default().frequency = Some(frequency);
    }
    if let Some(events) = &args.counters {
        study.counters.get_or_insert_default().events.0.extend(events.0.iter().cloned());
    }
    for event in &args.event {
        if study.events.insert(event.name.clone(), event.spec.clone()).is_some() {
            let message = format!("`--event`: the study has an event `{}` already", event.name);
            let hint = "leave the option out, or give the study's another name";
            return Err(UsageError::new(message, hint).into());
        }
    }
    if let Some(iterations) = args.iterations {
        if iterations == 0 {
            let message = "`--iterations 0` would measure nothing";
            return Err(UsageError::new(
                message,
                "give 1 or more, or leave it out for the study's own number",
            )
            .into());
        }
        study.run.iterations = iterations;
        study.run.until = None;
    }
    study.run.until = args.until.or(study.run.until);
    let mut facts = perflab_observe::collect_facts(&context.root, study.facts.as_deref())?;
    let catalogue = context.catalogue_of(source, &study)?;
    let seed = args.seed.or(study.run.seed).unwrap_or_else(rand::random);
    study.run.seed = Some(seed);
    if let Some(profile) = &mut study.profile {
        profile.symbols = perflab_analyze::flame::category_rules::shipped_anchors();
    }
    let choices = PlanChoices {
        set: parse_level_choices(&args.set)?,
        only: args.only.clone(),
        seed,
        scratch: args.scratch.clone(),
        inventory: find_inventory_of(source, &study)?,
    };
    let plan =
        plan_study(&study, &catalogue, &facts, &choices).map_err(|found| source.place_problems(found))?;
    add_root_facts(&mut facts, &plan);
    for name in plan.metrics.keys() {
        if let Some(version) =
            catalogue.get(name).and_then(perflab_workload::WorkloadDefinition::read_version)
        {
            facts.add(fact_table::WORKLOAD_VERSION.key(name), version.as_str(), "its version command");
        }
    }
    let study = perflab_conduct::plan::settle_study(&study, &catalogue, &facts, &choices)
        .map_err(|found| source.place_problems(found))?;
    check_settings(context, source, &study, &plan)?;
    facts.extend(read_environment_facts(&study, &plan));
    let mut manifest = build_manifest(source, study, plan, facts, args.label.clone(), &context.root);
    if let Some(id) = &args.run_id {
        manifest.id.clone_from(id);
    }
    Ok((manifest, catalogue))
}

/// The variables of perflab's own environment that workloads on this host inherit, as far as they tell something.
pub fn read_environment_facts(study: &Study, plan: &RunPlan) -> Facts {
    if !plan.targets.is_empty() {
        return Facts::default();
    }
    let text = |text: OsString| text.to_string_lossy().into_owned();
    let variables = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
    environment_facts(&named_variables(study, plan), variables)
}

/// The study that runs a command.
pub fn command_run_study(args: &RunArgs) -> Result<TomlSource, Failure> {
    let words = command_words(&args.command)?;
    let parameters: Vec<&str> = args.vary.iter().filter_map(VariedFactor::parameter).collect();
    let command = match words.as_slice() {
        // As a shell's user would quote it.
        [text] if text.contains(char::is_whitespace) => quote_toml(&parameter_template(text, &parameters)),
        words => {
            check_command_exists(words)?;
            let words: Vec<String> =
                words.iter().map(|word| quote_toml(&parameter_template(word, &parameters))).collect();
            format!("[{}]", words.join(", "))
        }
    };
    let title = quote_toml(&format!("`{}`", words.join(" ")));
    Ok(TomlSource::new("run", format!("title = {title}\n\n[workload.command]\ncommand = {command}\n")))
}

/// Says what is hardly meant, in its place.
pub fn note_study_warnings(source: &TomlSource, study: &Study) {
    // What a brief form leaves out, such as levels, it is meant to.
    if source.is_brief() {
        return;
    }
    // Each has a place of its own: of a study that extends another, in either.
    for warning in study_warnings(study) {
        let placed = source.place_problems(vec![warning]).to_string();
        placed.lines().for_each(|line| stderr_line!("warning: {line}"));
    }
}

/// What can be known of the study's settings without changing any.
pub fn check_settings(
    context: &App,
    source: &TomlSource,
    study: &Study,
    plan: &RunPlan,
) -> Result<(), Failure> {
    let found = setting_problems(study, &plan.settings, &context.root);
    if found.is_empty() { Ok(()) } else { Err(source.place_problems(found).into()) }
}

/// `factor=level` pairs.
pub fn parse_level_choices(texts: &[String]) -> Result<Vec<(String, String)>, UsageError> {
    let pair = |text: &String| match text.split_once('=') {
        Some((factor, level)) => Ok((factor.trim().to_owned(), level.trim().to_owned())),
        None => Err(UsageError::new(
            format!("`--set {text}` is not FACTOR=LEVEL"),
            "write, for example, --set pages=huge, or --set cpus=1,cpus=4 for two levels of one factor",
        )),
    };
    texts.iter().map(pair).collect()
}

/// ^C once stops cleanly; twice ends the process at once, with its settings put back.
pub fn stop_on_interrupt() -> Result<StopRequest, Failure> {
    let stop = StopRequest::new();
    signals::register_stop_signals(&stop.flag())?;
    Ok(stop)
}

/// Carries a planned study out on this machine, until it ends or ^C.
pub fn execute_manifest(
    context: &App,
    manifest: &Manifest,
    catalogue: Catalogue,
    permissions: &RunPermissions,
) -> Result<(RunStatus, RunDir), Failure> {
    let stop = stop_on_interrupt()?;
    let machine = local_machine(context, catalogue)?;
    execute_study(context, &machine, manifest, permissions, &stop)
}

/// Connects the source of events to its consumers.
pub fn execute_study(
    context: &App,
    machine: &LocalMachine,
    manifest: &Manifest,
    permissions: &RunPermissions,
    stop: &StopRequest,
) -> Result<(RunStatus, RunDir), Failure> {
    let archive = context.archive()?;
    archive.ensure_writable()?;
    get_missing_images(context, machine, manifest, stop)?;
    // What was made just now has packages, too.
    let mut manifest = manifest.clone();
    add_root_facts(&mut manifest.facts, &manifest.plan);
    let manifest = &manifest;
    let mut recording = RecorderConsumer::new(archive);
    let mut progress = ProgressReporter::new(context.quiet);
    let mut enough = StoppingWatch::new(manifest, stop);
    let mut failing = FailingCommandWatch::new(manifest, stop);
    let (sink, events) = channel();
    let guard = start_execution_guard();
    let (outcome, broken) = std::thread::scope(|scope| {
        let source = scope.spawn(|| {
            let sink = sink;
            conduct_run(machine, manifest, permissions, &sink, stop)
        });
        let broken =
            feed_consumers(&events, &mut [&mut recording, &mut progress, &mut enough, &mut failing], stop);
        (source.join(), broken)
    });
    drop(guard);
    let place = recording.run_path();
    let recorded = recording.finish();
    // What was cut off may have been a perflab with settings of its own.
    undo_leftovers(context);
    let status =
        outcome.map_err(|_| UnexpectedError("the measuring thread panicked: please report this".into()))?;
    if let Some(full) = place.and_then(|run| DiskFullError::of_run(context, &run)) {
        return Err(full.into());
    }
    if let Some(error) = broken {
        return Err(error.context("the run was stopped, and its settings undone"));
    }
    let status = status?;
    if let (RunStatus::Finished, Some(missed)) = (status, enough.missed_goal()) {
        stderr_line!("{missed}");
    }
    let run = recorded?.ok_or(ConductError::NobodyListens)?;
    Ok((status, run))
}

/// Has what runs ended should this process be killed.
pub fn start_execution_guard() -> Option<ExecutionGuard> {
    let command = std::env::current_exe().map(|own| {
        let mut command = Command::new(own);
        command.arg("execution-guard");
        command
    });
    let started = command.and_then(ExecutionGuard::start);
    let warn = |error| stderr_line!("warning: if perflab is killed, its commands go on: {error}");
    started.map_err(warn).ok()
}

/// How a run ended, as an exit code, with a word on it.
pub fn exit_of_run(context: &App, status: RunStatus, run: &RunDir) -> Exit {
    match status {
        RunStatus::Finished => Exit::Fine,
        RunStatus::Failed => {
            context.note(format!(
                "an iteration or a cleanup failed: `perflab show {} --iterations` lists iterations",
                run.short_id()
            ));
            Exit::WORKLOAD_FAILED
        }
        _ => {
            let short = run.short_id();
            let can_go_on =
                run.manifest().is_ok_and(|manifest| check_study_resumable(run, &manifest).is_ok());
            let rest =
                if can_go_on { format!("; the rest: `perflab resume {short}`") } else { String::new() };
            context.note(format!("stopped; what was measured is kept: `perflab show {short}`{rest}"));
            Exit::WORKLOAD_FAILED
        }
    }
}

/// Puts together what is known before the first event.
pub fn build_manifest(
    source: &TomlSource,
    study: Study,
    plan: RunPlan,
    facts: Facts,
    label: Option<String>,
    root: &Root,
) -> Manifest {
    Manifest {
        format: FORMAT_VERSION,
        writer: format!("perflab {}", env!("CARGO_PKG_VERSION")),
        id: perflab_archive::new_run_id(),
        label,
        study,
        study_text: source.text.clone(),
        study_file: source.file.clone(),
        brief: source.is_brief(),
        plan,
        facts,
        boot_id: perflab_observe::read_boot_id(root),
        target: "host".into(),
        targets: Vec::new(),
        variants: Vec::new(),
        duet: None,
        continues: None,
        first_part: None,
        anchor: perflab_observe::read_clock_anchor(),
        status: RunStatus::Running,
        overhead: Overhead::default(),
    }
}

/// Run a study or a command: progress, table, report
#[derive(Debug, Default, Args)]
#[command(after_long_help = RUN)]
pub struct RunArgs {
    /// A study file, or the name of a shipped study (`perflab study list`)
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    pub study: Option<String>,
    /// A command in place of a study: its time decides; one argument with blanks in it is a text for the shell
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// Vary something more, `KIND:KEY=LEVEL,LEVEL` with the baseline first (repeatable): sysctl:vm.swappiness=60,0,
    /// file:/sys/…=a,b, environment:NAME=a,b, parameter:NAME=1,2, drop-caches=0,3. `NAME=` in front names the factor
    #[arg(long, value_name = "KIND:KEY=LEVELS")]
    pub vary: Vec<VariedFactor>,
    /// A name for the run; runs that share a label are repetitions of one another
    #[arg(long, value_parser = parse_label)]
    pub label: Option<String>,
    /// Keep only these levels of a factor: `--set pages=huge`, `--set cpus=1,cpus=4` (repeatable)
    #[arg(long, value_name = "FACTOR=LEVEL", value_delimiter = ',')]
    pub set: Vec<String>,
    /// Only this workload of the study
    #[arg(long, value_name = "WORKLOAD")]
    pub only: Option<String>,
    /// Seed of the random order
    #[arg(long)]
    pub seed: Option<u64>,
    /// Iterations of each case (default: as the study says)
    #[arg(long, value_name = "N", conflicts_with = "until")]
    pub iterations: Option<u32>,
    /// End the run once this is reached: `decided`, `decided, at most 100`, `precision 1%, at most 60`
    #[arg(long, value_name = "RULE")]
    pub until: Option<StoppingRule>,
    /// Also record this monitor (repeatable; `perflab monitor list`): when iterations begin and end, and every 100 ms
    #[arg(long, value_name = "NAME")]
    pub monitor: Vec<String>,
    /// Also sample call stacks, this often a second on each CPU; 999 is a good choice (`perflab flame diff`)
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=HIGHEST_FREQUENCY))]
    pub profile: Option<u32>,
    /// Also count these events of the workload, by perf's names: `task-clock,{instructions,cycles}` (`perflab monitor show counters`)
    #[arg(long, value_name = "EVENTS", value_parser = CounterGroups::parse_list)]
    pub counters: Option<CounterGroups>,
    /// Also count this event where it happens: a recipe (`perflab event list`), or a tracepoint GROUP:NAME (repeatable)
    #[arg(long, value_name = "NAME")]
    pub event: Vec<EventChoice>,
    /// Record nothing while iterations run: no monitors, counters, events, stacks and I/O
    #[arg(long, conflicts_with_all = ["monitor", "profile", "counters", "event"])]
    pub no_monitors: bool,
    /// Install missing workloads first
    #[arg(long)]
    pub install: bool,
    /// Install missing workloads, get missing kernels and roots of targets, and run nothing
    #[arg(long, conflicts_with = "install")]
    pub install_only: bool,
    /// Run the brief form of the study: less of everything, as its `[brief]` says; ends in minutes
    #[arg(long, requires = "study")]
    pub brief: bool,
    /// Allow what destroys data: formatting the study's partition
    #[arg(long)]
    pub apply: bool,
    /// Where scratch directories and disk images are made
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
    /// Wait for hosts that another study has, at most so long (`--wait=2h`; default: a day)
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "24h")]
    pub wait: Option<Nanos>,
    /// Write no report
    #[arg(long)]
    pub no_report: bool,
    /// Exit with code 5 if the kernel's log tells of this: `kernel-log:warning`, `kernel-log:bug`, `kernel-log:any`
    #[arg(long, value_name = "CONDITION", value_parser = parse_kernel_log_gate, conflicts_with = "no_monitors")]
    pub fail_if: Option<Gate>,
    /// The id of the run, where its caller gives it one.
    #[arg(skip)]
    pub run_id: Option<String>,
}

impl RunArgs {
    /// A study as it is.
    pub fn of_study(study: &str) -> Self {
        RunArgs { study: Some(study.into()), ..RunArgs::default() }
    }
}

const RUN: &str = "\
Examples:
  perflab run quickstart                                     a shipped study
  perflab run study.toml --label before                      a study of your own
  perflab run --iterations 20 -- make -j4                    how long a command takes
  perflab run --vary sysctl:vm.swappiness=60,0 -- ./load     the same command under two settings";

impl Verb for RunArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        run_study(app, self)
    }
}
