//! The verbs of `perflab flame`: call stacks recorded, imported, shown, drawn, exported.
//!
//! `record` is an ordinary run with call stacks sampled; the other verbs read the profile of a stored run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use perflab_analyze::flame::{
    CallTreeOptions, CategoryRules, CategoryShareOptions, ProfiledRun, ShareLevelData, SharedCommands,
    build_call_tree, category_shares, compare_categories, function_rows, join_profiles, profile_parts,
};
use perflab_archive::{Archive, RunDir, new_run_id};
use perflab_import::{ImportOptions, profile_source};
use perflab_model::expression::ExpressionScope;
use perflab_model::{Case, Nanos, Profile, ProfileSummary};
use perflab_present::comparison::OutputFormat;
use perflab_present::flame::{
    self, FlameGraph, FlameViewerData, ProfiledSide, colour_categories, draw_sides, measured_tree_options,
    render_flame_page, share_commands,
};
use perflab_stacks::{
    ProfileFormat, ProfileSelection, SymbolOptions, write_firefox, write_folded, write_pprof,
    write_speedscope,
};

use crate::app::{App, read_text_file};
use crate::failure::{Exit, Failure, UsageError};
use crate::instruments::profiled_levels::{
    CaseProfile, ProfiledCaseGroup, ProfiledLevel, ProfiledLevelArgs, read_profiled_levels,
};
use crate::keep::imported_runs::record_source;
use crate::measure::command_study::RecordedCommand;
use crate::output_path::OutputPath;
use crate::see::report::{default_page_path, note_written_file};
use crate::verb::Verb;
use perflab_model::quantity::format_quantity;

/// See which functions the CPU time goes to, in call stacks
#[derive(Debug, Args)]
pub struct FlameArgs {
    #[command(subcommand)]
    pub verb: FlameVerb,
}

impl Verb for FlameArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        run_flame_verb(app, &self.verb)
    }
}

/// The verbs of profiles.
#[derive(Debug, Subcommand)]
pub enum FlameVerb {
    /// Sample call stacks, kernel and user, while a command runs, for a time, or until ^C
    Record(FlameRecordArgs),
    /// Import a profile that another tool recorded
    Import(FlameImportArgs),
    /// Show the share of each operation and category, by a table of rules: who is the allocator
    Shares(FlameSharesArgs),
    /// Show where the samples of a run are: functions, self and inclusive
    Show(FlameShowArgs),
    /// Write the viewer: one HTML file with the flame graph of a run, or the difference of two
    Html(FlameHtmlArgs),
    /// Draw the flame graph of a run as one static SVG
    Svg(FlameSvgArgs),
    /// Write the profile of a run for another viewer: folded, speedscope, firefox, pprof
    Export(FlameExportArgs),
}

/// `perflab flame record`
#[derive(Debug, Args)]
#[command(after_long_help = "\
The best event of the machine is sampled: cycles, or without a hardware counter (as in most virtual
machines) the CPU clock, which is blind while interrupts are off. The output says which.
Examples:
  perflab flame record -- hackbench -g 2
  perflab flame record --system --for 10s
  perflab flame record -F 999 -p 1234 --for 5s")]
pub struct FlameRecordArgs {
    /// Samples per second on each CPU
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 499,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(perflab_model::study::ProfileSpec::HIGHEST_FREQUENCY)))]
    pub frequency: u32,
    /// Sample everything on every CPU (the default without a command)
    #[arg(short = 'a', long, conflicts_with = "pid")]
    pub system: bool,
    /// Sample this process and its descendants
    #[arg(short = 'p', long, value_name = "PID")]
    pub pid: Option<i32>,
    /// Record for this long; a command is stopped after it
    #[arg(long = "for", value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// A name for the run; runs that share a label are repetitions of one another
    #[arg(long)]
    pub label: Option<String>,
    /// The command to record; without one, record until ^C or for the time given by --for
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `perflab flame import`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perf record -F 499 -a -g -- sleep 10 && perflab flame import perf.data
  perf record -e '{cpu-clock,page-faults}' -g -- make
  perflab flame import perf.data --event page-faults
  perflab flame import out.folded --label before")]
pub struct FlameImportArgs {
    /// The file
    pub file: PathBuf,
    /// Its format: perf.data, perf-script, pprof or folded (default: detected)
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<ProfileFormat>,
    /// One event of a perf.data that holds several (default: all together)
    #[arg(long, value_name = "NAME")]
    pub event: Option<String>,
    /// A copy of /proc/kallsyms of the recorded machine, if that was another one
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,
    /// The recorded kernel's vmlinux with debug information: inlined functions become visible
    #[arg(long, value_name = "FILE")]
    pub vmlinux: Option<PathBuf>,
    /// A name for the run; runs that share a label are repetitions of one another
    #[arg(long)]
    pub label: Option<String>,
}

/// `perflab flame show`
#[derive(Debug, Args)]
pub struct FlameShowArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    /// The case, by its number (default: the first one profiled)
    #[arg(long, value_name = "CASE")]
    pub case: Option<u32>,
    /// How many functions
    #[arg(long, value_name = "N", default_value_t = 25)]
    pub top: usize,
}

/// `perflab flame shares`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Each share is printed with what it is a share of. Intervals come from repetitions, never from the
number of samples: from boots where there are several, else from runs, else from iterations. Several
runs, or the levels of a factor, stand beside each other, with how each differs from the first.
Examples:
  perflab flame shares @latest
  perflab flame shares @latest --by kernel
  perflab flame shares before after
  perflab flame shares @latest --rules my-rules.toml --comm hackbench")]
pub struct FlameSharesArgs {
    /// The runs, the baseline first; a label that several share is their repetitions
    #[arg(default_value = "@latest", value_name = "RUN")]
    pub runs: Vec<String>,
    /// The levels of this factor beside each other, the first being the baseline
    #[arg(long, value_name = "FACTOR")]
    pub by: Option<String>,
    /// The table of rules: slab, kernel, or a file
    #[arg(long, value_name = "TABLE", default_value = "slab")]
    pub rules: String,
    /// The case, by its number (default: all)
    #[arg(long, value_name = "CASE")]
    pub case: Option<u32>,
    /// Only samples of this command
    #[arg(long, value_name = "COMMAND")]
    pub comm: Option<String>,
}

/// `perflab flame html`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Several runs are laid over one tree: the viewer shows any of them, or the difference of two. Runs
that share a label are repetitions of one another, and so are the iterations of one run;
differences within their noise are grey.

Examples:
  perflab flame html @latest -o flame.html
  perflab flame html before after -o difference.html")]
pub struct FlameHtmlArgs {
    /// The runs, the baseline first
    #[arg(default_value = "@latest")]
    pub runs: Vec<String>,
    /// Only this case of each run, by its number (default: all that were profiled)
    #[arg(long, value_name = "CASE")]
    pub case: Option<u32>,
    /// Keep commands apart that not every side has; by default they share a box, as two versions of a program should
    #[arg(long)]
    pub by_command: bool,
    /// What colours mean: the rule table slab or kernel, a file of rules, or none (kernel and user)
    #[arg(long, value_name = "TABLE", default_value = "slab")]
    pub rules: String,
    /// The page to write (default: reports/ID-flame.html in the archive)
    #[arg(short, long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
}

/// `perflab flame svg`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perflab flame svg @latest -o flame.svg
  perflab flame svg @latest --icicle --width 1600 > flame.svg")]
pub struct FlameSvgArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    /// The case, by its number (default: the first one profiled)
    #[arg(long, value_name = "CASE")]
    pub case: Option<u32>,
    /// What colours mean: the rule table slab or kernel, a file of rules, or none (kernel and user)
    #[arg(long, value_name = "TABLE", default_value = "slab")]
    pub rules: String,
    /// Callers on top, callees below
    #[arg(long)]
    pub icicle: bool,
    /// Pixels from left to right
    #[arg(long, value_name = "PIXELS", default_value_t = 1200, value_parser = clap::value_parser!(u32).range(300..=10_000))]
    pub width: u32,
    /// The picture to write (default: standard output)
    #[arg(short, long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
}

/// `perflab flame export`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Formats:
  folded      `command;outer;inner 42` a line, for flamegraph.pl, inferno; _[k] is the kernel
  speedscope  JSON for https://www.speedscope.app, in order of time where samples have one
  firefox     JSON for https://profiler.firefox.com, with threads and times
  pprof       gzip-compressed protobuf, for `go tool pprof`

Examples:
  perflab flame export @latest --to folded > out.folded
  perflab flame export @latest --to pprof -o out.pb.gz && go tool pprof -top out.pb.gz")]
pub struct FlameExportArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    /// The case, by its number (default: the first one profiled)
    #[arg(long, value_name = "CASE")]
    pub case: Option<u32>,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: FlameExportFormat,
    /// The file to write (default: standard output)
    #[arg(short, long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
}

/// What `perflab flame export` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FlameExportFormat {
    /// folded text
    Folded,
    /// speedscope's JSON
    Speedscope,
    /// the Firefox Profiler's JSON
    Firefox,
    /// pprof's protobuf
    Pprof,
}

/// Carries out a verb of profiles.
pub fn run_flame_verb(context: &App, verb: &FlameVerb) -> Result<Exit, Failure> {
    match verb {
        FlameVerb::Import(args) => import_profile_file(context, args),
        FlameVerb::Record(args) => record_profile(context, args),
        FlameVerb::Shares(args) => print_shares(context, args),
        FlameVerb::Show(args) => show_functions(context, args),
        FlameVerb::Svg(args) => write_flame_svg(context, args),
        FlameVerb::Export(args) => export_profile(context, args),
        FlameVerb::Html(args) => write_flame_html(context, args),
    }
}

/// Functions that are shown at the end.
const SHOWN: usize = 15;

/// From here on sampling is felt: each sample is an interrupt, and some microseconds to read and to name.
const FELT: u32 = 9_999;

/// Records, and says what to look at.
pub fn record_profile(context: &App, args: &FlameRecordArgs) -> Result<Exit, Failure> {
    if args.frequency > FELT {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        context.note(format!(
            "warning: {} samples a second on {cpus} CPUs: sampling takes a part of the processors that shows in what is \
             recorded, and naming the samples afterwards may take longer than recording; -F 4999 costs a tenth of it",
            args.frequency as usize * cpus
        ));
    }
    let recorded = RecordedCommand {
        verb: "flame record",
        title: "Call stacks",
        command: &args.command,
        pid: args.pid,
        duration: args.duration,
        quiet_time: Nanos(0),
        label: args.label.as_deref(),
        tables: &profile_study_table(args),
    };
    let (status, found) = recorded.record(context, |study| {
        if let Some(profile) = &mut study.profile {
            profile.symbols = perflab_analyze::flame::category_rules::shipped_anchors();
        }
    })?;
    if let Ok(profile) = read_first_profile(&found) {
        print_functions(context, &profile, SHOWN)?;
        profile
            .iterations
            .iter()
            .for_each(|piece| note_sampling_cost(context, &piece.summary, piece.samples.len()));
    }
    Ok(recorded.exit_of(context, status, &found))
}

/// What sampling cost this program; the interrupts are the kernel's, and in the workload's time.
fn note_sampling_cost(context: &App, about: &ProfileSummary, samples: usize) {
    let each = format_quantity(about.cost.0 as f64 / samples.max(1) as f64, "ns");
    context.note(format!("reading samples took {} of CPU, {each} a sample", about.cost));
}

fn profile_study_table(args: &FlameRecordArgs) -> String {
    let scope = match (args.pid, args.system || args.command.is_empty()) {
        (Some(pid), _) => format!("pid = {pid}"),
        (None, true) => "scope = \"system\"".into(),
        (None, false) => "scope = \"workload\"".into(),
    };
    format!("[profile]\nfrequency = {}\n{scope}\n", args.frequency)
}

/// Makes a run of a profile, and says what became of every sample.
pub fn import_profile_file(context: &App, args: &FlameImportArgs) -> Result<Exit, Failure> {
    let options = SymbolOptions {
        event: args.event.clone(),
        kallsyms: args.kallsyms.clone(),
        vmlinux: args.vmlinux.clone(),
        anchors: perflab_analyze::flame::category_rules::shipped_anchors(),
    };
    crate::keep::exchange::refuse_endless(&args.file)?;
    let imported = perflab_stacks::read_profile_file(&args.file, args.from, &options)?;
    let parts = imported.sample_parts();
    let (source, remarks) = (imported.about.source.clone(), imported.remarks.clone());
    let own = ImportOptions { label: args.label.clone(), id: new_run_id(), ..ImportOptions::default() };
    let recorded = record_source(&context.archive()?, &mut profile_source(&args.file, imported, &own))?;
    let (run, warnings) = (recorded.recorder.finish()?, recorded.warnings);
    for remark in remarks {
        stderr_line!("warning: {}:{}: {}", args.file.display(), remark.place, remark.reason);
    }
    for warning in warnings {
        stderr_line!("warning: {}; {}", warning.message, warning.advice);
    }
    context.print_grid(&flame::parts_grid(&parts))?;
    context.note(format!("run: {} (taken for {source})", run.short_id()));
    Ok(Exit::Fine)
}

/// The version of the JSON document.
const VERSION: u32 = 1;

/// The share of each operation and category, for each case or the one that was asked for.
pub fn print_shares(context: &App, args: &FlameSharesArgs) -> Result<Exit, Failure> {
    let rules = read_rule_table(&args.rules)?;
    let requested = ProfiledLevelArgs { runs: &args.runs, by: args.by.as_deref(), case: args.case };
    let mut documents = Vec::new();
    for group in read_profiled_levels(&context.archive()?, requested)? {
        documents.extend(match &group.levels[..] {
            [level] => print_level_shares(context, args, &group, level, &rules)?,
            _ => print_compared_shares(context, args, &group, &rules)?,
        });
    }
    match &documents[..] {
        [] => {}
        [only] => context.print_json(only)?,
        _ => context.print_json(&documents)?,
    }
    Ok(Exit::Fine)
}

/// A shipped table by its name, or a file.
pub fn read_rule_table(name: &str) -> Result<CategoryRules, Failure> {
    if let Some(shipped) = CategoryRules::load_shipped(name) {
        return Ok(shipped?);
    }
    if !Path::new(name).exists() {
        let known: Vec<&str> =
            perflab_analyze::flame::category_rules::SHIPPED_RULES.iter().map(|(name, _)| *name).collect();
        let hint = format!("name a file, or one of {}", known.join(", "));
        return Err(UsageError::new(format!("there is no rule table `{name}`"), hint).into());
    }
    let text = read_text_file(Path::new(name)).map_err(|error| {
        let hint = "name a regular file of text, in UTF-8";
        UsageError::new(format!("cannot read the rule table {name}: {error}"), hint)
    })?;
    Ok(CategoryRules::parse(name, &text)?)
}

/// Prints a table; the document instead, where JSON is asked for.
fn print_level_shares(
    context: &App,
    args: &FlameSharesArgs,
    group: &ProfiledCaseGroup,
    level: &ProfiledLevel,
    rules: &CategoryRules,
) -> Result<Option<serde_json::Value>, Failure> {
    let runs: Vec<ProfiledRun<'_>> = level.profiles.iter().map(CaseProfile::profiled_run).collect();
    let counts = level_operation_counts(context, level)?;
    let options = CategoryShareOptions { comm: args.comm.clone(), counts, ..CategoryShareOptions::default() };
    let found = category_shares(&runs, rules, &options);
    let number = level.profiles.first().map_or(0, |one| one.case);
    if context.format == OutputFormat::Json {
        let document =
            serde_json::json!({ "version": VERSION, "case": number, "label": group.name, "result": found });
        return Ok(Some(document));
    }
    context.note_line(&format!("case {number}: {}", group.name));
    context.print_grid(&flame::shares_grid(&found))?;
    flame::shares_lines(&found).iter().for_each(|line| context.note(line));
    context.note(flame::sample_account(&profile_parts(&runs)));
    level.profiles.iter().take(1).for_each(|one| note_profile_source(context, &one.profile));
    if CategoryRules::load_shipped(&args.rules).is_none() && !found.unmatched.is_empty() {
        let all = found.unmatched.join(", ");
        context.note(format!("patterns of {} that no function here fits: {all}", args.rules));
    }
    Ok(None)
}

/// The same of several levels beside each other.
fn print_compared_shares(
    context: &App,
    args: &FlameSharesArgs,
    group: &ProfiledCaseGroup,
    rules: &CategoryRules,
) -> Result<Option<serde_json::Value>, Failure> {
    let levels =
        group.levels.iter().map(|level| share_level_data(context, level)).collect::<Result<Vec<_>, _>>()?;
    let options = CategoryShareOptions { comm: args.comm.clone(), ..CategoryShareOptions::default() };
    let found = compare_categories(args.by.as_deref(), &levels, rules, &options)?;
    if context.format == OutputFormat::Json {
        let document = serde_json::json!({ "version": VERSION, "label": group.name, "comparison": found });
        return Ok(Some(document));
    }
    context.note_line(&group.name);
    context.print_grid(&flame::compared_shares_grid(&found))?;
    flame::compared_shares_lines(&found).iter().for_each(|line| context.note(line));
    Ok(None)
}

fn share_level_data<'a>(context: &App, level: &'a ProfiledLevel) -> Result<ShareLevelData<'a>, Failure> {
    let runs = level.profiles.iter().map(|one| (&*one.record, one.case, one.profiled_run())).collect();
    let (kernels, counts) = (level.kernels(), level_operation_counts(context, level)?);
    Ok(ShareLevelData { name: level.name.clone(), runs, kernels, counts })
}

/// Operations that an iteration of a level does, where all its cases have the same number of them.
fn level_operation_counts(context: &App, level: &ProfiledLevel) -> Result<BTreeMap<String, f64>, Failure> {
    let cases = level.profiles.iter().filter_map(CaseProfile::planned_case);
    let mut counts =
        cases.map(|case| operation_counts(context, case)).collect::<Result<Vec<_>, Failure>>()?;
    counts.dedup();
    Ok(if counts.len() == 1 { counts.remove(0) } else { BTreeMap::new() })
}

/// Operations that an iteration of a case does, where its workload's definition says.
fn operation_counts(context: &App, case: &Case) -> Result<BTreeMap<String, f64>, Failure> {
    let catalogue = context.catalogue()?;
    let Some(definition) = catalogue.get(&case.uses) else { return Ok(BTreeMap::new()) };
    let scope = ExpressionScope::new(
        case.parameters.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
    );
    Ok(definition.operation_counts(&scope))
}

/// The functions with most samples.
pub fn show_functions(context: &App, args: &FlameShowArgs) -> Result<Exit, Failure> {
    let (_, profile) = read_stored_profile(context, &args.run, args.case)?;
    print_functions(context, &profile, args.top)?;
    Ok(Exit::Fine)
}

/// The first functions of a profile, and what became of its samples.
pub fn print_functions(context: &App, profile: &Profile, top: usize) -> Result<(), Failure> {
    let tree = build_call_tree(profile, &CallTreeOptions::default()).tree;
    context.print_grid(&flame::functions_grid(&function_rows(&tree), tree.total_amount(), top))?;
    context.note(format!("shares are of all {} samples kept", tree.total_amount().samples));
    note_samples(context, profile);
    Ok(())
}

/// What the samples are, and what became of them.
pub fn note_samples(context: &App, profile: &Profile) {
    context.note(flame::sample_account(&profile.sample_counts()));
    note_profile_source(context, profile);
}

/// Where samples come from, and what their event hides.
pub fn note_profile_source(context: &App, profile: &Profile) {
    let Some(about) = profile.iterations.first().map(|piece| &piece.summary) else { return };
    let event = if about.event.is_empty() { String::new() } else { format!(", event {}", about.event) };
    let rate = about.frequency.map(|rate| format!(" at {rate} Hz")).unwrap_or_default();
    context.note(format!("from {}{event}{rate}", about.source));
    if let Some(hides) = &about.hides {
        context.note(format!("what {} hides: {hides}", about.event));
    }
}

/// Writes the viewer as one file.
pub fn write_flame_html(context: &App, args: &FlameHtmlArgs) -> Result<Exit, Failure> {
    let archive = context.archive()?;
    let select = |name: &String| SelectedProfiles::find(&archive, name);
    let selected = args.runs.iter().map(select).collect::<Result<Vec<_>, Failure>>()?;
    let writer = concat!("perflab ", env!("CARGO_PKG_VERSION"));
    let colours = read_colour_rules(&args.rules)?;
    let (picture, shared) = join_selected_profiles(&selected, args.case, colours.as_ref(), args.by_command)?;
    let html = render_flame_page(writer, &picture)?;
    let path = match (&args.output, selected.first().and_then(|side| side.runs.first())) {
        (Some(path), _) => path.clone(),
        (None, Some(run)) => default_page_path(context, run, "-flame.html")?,
        (None, None) => OutputPath::File("perflab-flame.html".into()),
    };
    path.write(html.as_bytes())?;
    if let Some(shared) = shared {
        context.note(format!(
            "commands that are not on every side share a box, so that their functions are compared: {} (--by-command keeps \
             them apart)",
            shared.label
        ));
    }
    note_written_file(context, "flame graph", &path)?;
    Ok(Exit::Fine)
}

/// Draws one case of a run.
pub fn write_flame_svg(context: &App, args: &FlameSvgArgs) -> Result<Exit, Failure> {
    let (run, profile) = read_stored_profile(context, &args.run, args.case)?;
    let manifest = run.manifest()?;
    let joined = join_profiles(&[vec![(&profile, measured_tree_options(&manifest, &profile))]]);
    let source = profile
        .iterations
        .first()
        .map(|piece| flame::profile_source_text(&piece.summary))
        .unwrap_or_default();
    let picture = flame::flame_graph_svg(&FlameGraph {
        title: &manifest.label.unwrap_or_else(|| run.short_id().to_owned()),
        source: &source,
        joined: &joined,
        categories: &colour_categories(&joined, read_colour_rules(&args.rules)?.as_ref()),
        width: f64::from(args.width),
        icicle: args.icicle,
    });
    args.output.as_ref().unwrap_or(&OutputPath::Stdout).write(picture.as_bytes())?;
    Ok(Exit::Fine)
}

/// Writes one case of a run for another viewer.
pub fn export_profile(context: &App, args: &FlameExportArgs) -> Result<Exit, Failure> {
    let (run, profile) = read_stored_profile(context, &args.run, args.case)?;
    let manifest = run.manifest()?;
    let slots = measured_tree_options(&manifest, &profile).slots;
    let name = manifest.label.unwrap_or_else(|| run.short_id().to_owned());
    let chosen = ProfileSelection { name: &name, profile: &profile, slots: slots.as_deref() };
    let bytes = match args.to {
        FlameExportFormat::Folded => write_folded(chosen).into_bytes(),
        FlameExportFormat::Speedscope => write_speedscope(chosen).into_bytes(),
        FlameExportFormat::Firefox => write_firefox(chosen)?.into_bytes(),
        FlameExportFormat::Pprof => write_pprof(chosen)?,
    };
    let path = args.output.as_ref().unwrap_or(&OutputPath::Stdout);
    if args.to == FlameExportFormat::Pprof {
        path.refuse_terminal("a profile of pprof")?;
    }
    path.write(&bytes)?;
    let parts = profile.sample_counts();
    if parts.lost > 0 || parts.unreadable > 0 {
        let (lost, unreadable) = (parts.lost, parts.unreadable);
        context
            .note(format!("not in the file: {lost} samples lost for want of room, {unreadable} unreadable"));
    }
    Ok(Exit::Fine)
}

/// The profile of the run that a selector names: of `case`, or of the first case that has one.
pub fn read_stored_profile(
    context: &App,
    run: &str,
    case: Option<u32>,
) -> Result<(RunDir, Profile), Failure> {
    let run = crate::selection::select_run(&context.archive()?, run)?;
    let profile = match case {
        Some(case) => run.read_profile(case)?,
        None => read_first_profile(&run)?,
    };
    Ok((run, profile))
}

/// The profile of the first case that has one.
pub fn read_first_profile(run: &RunDir) -> Result<Profile, Failure> {
    let case = run.profiled_cases()?.first().copied().unwrap_or(0);
    Ok(run.read_profile(case)?)
}

/// The runs behind one selector: one, or several that repeat each other.
#[derive(Debug)]
pub struct SelectedProfiles {
    /// The label, or what was asked for.
    pub name: String,
    /// At least one.
    pub runs: Vec<RunDir>,
}

impl SelectedProfiles {
    /// Finds them.
    pub fn find(archive: &Archive, selector: &str) -> Result<Self, Failure> {
        let name = crate::selection::select_side(archive, selector)?.name;
        Ok(SelectedProfiles { name, runs: archive.find_runs(selector)? })
    }
}

/// All selected runs, and all of their cases or the requested one, over one tree; and the commands that share a box
/// in it, which none do where commands are to stay apart.
pub fn join_selected_profiles(
    selected: &[SelectedProfiles],
    case: Option<u32>,
    rules: Option<&CategoryRules>,
    by_command: bool,
) -> Result<(FlameViewerData, Option<SharedCommands>), Failure> {
    let mut sides = Vec::new();
    for one in selected {
        sides.extend(read_profiled_sides(one, case)?);
    }
    let shared = if by_command { None } else { share_commands(&mut sides) };
    Ok((draw_sides(&sides, rules), shared))
}

/// The table that gives boxes their colours; none where kernel and user are enough.
pub fn read_colour_rules(name: &str) -> Result<Option<CategoryRules>, Failure> {
    if name == "none" { Ok(None) } else { read_rule_table(name).map(Some) }
}

/// A side for each case. A case that a repetition lacks is read from those that have it.
fn read_profiled_sides(selected: &SelectedProfiles, case: Option<u32>) -> Result<Vec<ProfiledSide>, Failure> {
    let Some(first) = selected.runs.first() else { return Ok(Vec::new()) };
    let profiled = first.profiled_cases()?;
    let cases = match case {
        Some(case) => vec![case],
        None if profiled.is_empty() => vec![0],
        None => profiled,
    };
    cases.iter().map(|case| read_profiled_side(selected, *case, cases.len() > 1)).collect()
}

fn read_profiled_side(selected: &SelectedProfiles, case: u32, named: bool) -> Result<ProfiledSide, Failure> {
    let mut profiles = Vec::new();
    for run in &selected.runs {
        if run.profiled_cases()?.contains(&case) || selected.runs.len() == 1 {
            let profile = run.read_profile(case)?;
            let how = measured_tree_options(&run.manifest()?, &profile);
            profiles.push((profile, how));
        }
    }
    let label = selected.runs.first().map(RunDir::manifest).transpose()?;
    let label = label.and_then(|manifest| manifest.plan.cases.get(case as usize).map(|case| case.label()));
    let name = match label {
        Some(label) if named => format!("{}: {label}", selected.name),
        _ => selected.name.clone(),
    };
    Ok(ProfiledSide { name, profiles })
}
