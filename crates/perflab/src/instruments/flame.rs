//! The verbs of `perflab flame`: call stacks recorded, imported, shown, drawn, exported.
//!
//! `record` is an ordinary run with call stacks sampled; the other verbs read the profile of a stored run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use perflab_analyze::flame::{
    CallTreeOptions, CategoryRules, CategoryShareOptions, FunctionShare, ProfiledRun, ShareLevelData,
    SharedCommands, build_call_tree, category_shares, compare_categories, function_differences,
    function_rows, join_profiles, profile_parts,
};
use perflab_archive::{Archive, RunDir, new_run_id};
use perflab_import::{ImportOptions, profile_source};
use perflab_model::expression::ExpressionScope;
use perflab_model::{Case, Nanos, Profile, ProfileSummary};
use perflab_present::comparison::OutputFormat;
use perflab_present::flame::{
    self, DifferentialGraph, FlameGraph, ProfiledSide, colour_categories, draw_sides, measured_tree_options,
    render_flame_page, share_commands, side_profiles,
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
use crate::selection::{only_varied_factor, parse_label, select_side};
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
    /// Show what differs between runs, or levels of a factor: functions, a picture, the viewer
    Diff(FlameDiffArgs),
    /// Write the viewer: one HTML file with the flame graph of a run
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
    #[arg(long, value_parser = parse_label)]
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
    /// A folder with a copy of the recorded machine's programs and libraries, by their paths
    #[arg(long, value_name = "DIR")]
    pub symfs: Option<PathBuf>,
    /// A name for the run; runs that share a label are repetitions of one another
    #[arg(long, value_parser = parse_label)]
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
    #[command(flatten)]
    pub levels: ProfiledLevelArgs,
    /// The table of rules: slab, kernel, or a file
    #[arg(long, value_name = "TABLE", default_value = "slab")]
    pub rules: String,
    /// Only samples of this command
    #[arg(long, value_name = "COMMAND")]
    pub comm: Option<String>,
}

/// `perflab flame diff`
#[derive(Debug, Clone, Args)]
#[command(after_long_help = "\
Each function with its share on both sides, what it moved by, and whether that is more than chance:
intervals are over boots, runs or iterations, and at most 5 % of what is said to have moved did not.
Runs that share a label are repetitions of one another.

Examples:
  perflab flame diff before after
  perflab flame diff @latest --by kernel --versus linux-6.1-slob
  perflab flame diff before after -o difference.html
  perflab flame diff before after -o difference.svg")]
pub struct FlameDiffArgs {
    #[command(flatten)]
    pub levels: ProfiledLevelArgs,
    /// Compare samples that end in a function, not those with it on their stack
    #[arg(long = "self")]
    pub own: bool,
    /// How many functions
    #[arg(long, value_name = "N", default_value_t = 25)]
    pub top: usize,
    /// Keep commands apart that not every side has; by default they share a box, as two versions of a program should
    #[arg(long)]
    pub by_command: bool,
    /// What colours mean: the rule table slab or kernel, a file of rules, or none (kernel and user)
    #[arg(long, value_name = "TABLE", default_value = "slab")]
    pub rules: String,
    /// Write the viewer (FILE.html) or a picture of both sides and their difference (FILE.svg); - is the table
    #[arg(short, long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
}

impl FlameDiffArgs {
    /// The levels of a factor of one run, as a table.
    pub fn of_factor(run: &str, factor: &str) -> Self {
        FlameDiffArgs {
            levels: ProfiledLevelArgs {
                by: Some(factor.to_owned()),
                ..ProfiledLevelArgs::of_runs(vec![run.to_owned()], None)
            },
            own: false,
            top: 25,
            by_command: false,
            rules: "slab".into(),
            output: None,
        }
    }
}

/// `perflab flame html`
#[derive(Debug, Args)]
#[command(after_long_help = "\
All profiled cases of a run are laid over one tree: the viewer shows any of them, or the difference
of two. What differs between runs is `perflab flame diff A B -o difference.html`.

Example:
  perflab flame html @latest -o flame.html")]
pub struct FlameHtmlArgs {
    /// The run; a label that several share is their repetitions
    #[arg(default_value = "@latest", value_name = "RUN")]
    pub runs: Vec<String>,
    /// Only this case, by its number (default: all that were profiled)
    #[arg(long, value_name = "CASE")]
    pub case: Option<u32>,
    /// Keep commands apart that not every case has; by default they share a box, as two versions of a program should
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
        FlameVerb::Diff(args) => compare_profiles(context, args),
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
        symfs: args.symfs.clone(),
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
    let mut documents = Vec::new();
    for group in read_profiled_levels(&context.archive()?, &args.levels)? {
        documents.extend(match &group.levels[..] {
            [level] => print_level_shares(context, args, &group, level, &rules)?,
            _ => print_compared_shares(context, args, &group, &rules)?,
        });
    }
    documents.iter().try_for_each(|document| context.print_json(document))?;
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
    let found = compare_categories(args.levels.by.as_deref(), &levels, rules, &options)?;
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
    let [run] = &args.runs[..] else {
        let hint =
            format!("what differs between runs: perflab flame diff {} -o FILE.html", args.runs.join(" "));
        return Err(UsageError::new("flame html takes one run", hint).into());
    };
    let archive = context.archive()?;
    let requested = ProfiledLevelArgs::of_runs(args.runs.clone(), args.case);
    let groups = read_profiled_levels(&archive, &requested)?;
    let path = match (&args.output, archive.find_runs(run)?.first()) {
        (Some(path), _) => path.clone(),
        (None, Some(run)) => default_page_path(context, run, "-flame.html")?,
        (None, None) => OutputPath::File("perflab-flame.html".into()),
    };
    write_viewer(context, joined_sides(groups), (&args.rules, args.by_command), &path)
}

/// The functions, a picture or the viewer of what differs.
pub fn compare_profiles(context: &App, args: &FlameDiffArgs) -> Result<Exit, Failure> {
    let archive = context.archive()?;
    let levels = with_only_factor(&archive, &args.levels)?;
    let args = &FlameDiffArgs { levels, ..args.clone() };
    let groups = read_profiled_levels(&archive, &args.levels)?;
    match args.output.as_ref().map(|path| (path, path.extension())) {
        None | Some((_, None)) => print_function_differences(context, args, groups),
        Some((path, Some("html"))) => {
            write_viewer(context, joined_sides(groups), (&args.rules, args.by_command), path)
        }
        Some((path, Some("svg"))) => write_differential_svg(context, args, groups, path),
        Some((path, Some(_))) => {
            let hint = "name FILE.html for the viewer or FILE.svg for a picture; without -o it is a table";
            Err(UsageError::new(format!("{path} is neither of them"), hint).into())
        }
    }
}

/// A run by itself is compared by the factor that it varies, if that is the only one.
fn with_only_factor(archive: &Archive, levels: &ProfiledLevelArgs) -> Result<ProfiledLevelArgs, Failure> {
    let ([run], None) = (&levels.runs[..], &levels.by) else { return Ok(levels.clone()) };
    let by = only_varied_factor(&select_side(archive, run)?)?;
    Ok(ProfiledLevelArgs { by: Some(by), ..levels.clone() })
}

/// One group of cases, where only one can be shown.
fn only_group(mut groups: Vec<ProfiledCaseGroup>) -> Result<ProfiledCaseGroup, Failure> {
    if let [group] = &groups[..]
        && group.levels.len() > 1
    {
        return Ok(groups.remove(0));
    }
    let number = |group: &ProfiledCaseGroup| {
        let case = group.levels.first().and_then(|level| level.profiles.first()).map_or(0, |one| one.case);
        format!("{case} ({})", group.name)
    };
    let known: Vec<String> = groups.iter().filter(|group| group.levels.len() > 1).map(number).collect();
    let (what, hint) = match known.is_empty() {
        true => ("no profiled case is on both sides", "`perflab show RUN` lists the cases".to_owned()),
        false => ("several cases were profiled", format!("choose one: --case {}", known.join(", --case "))),
    };
    Err(UsageError::new(what, hint).into())
}

/// Prints what moved at each level, against the first.
fn print_function_differences(
    context: &App,
    args: &FlameDiffArgs,
    groups: Vec<ProfiledCaseGroup>,
) -> Result<Exit, Failure> {
    let group = only_group(groups)?;
    let label = group.name.clone();
    let mut sides = joined_sides(vec![group]);
    let shared = if args.by_command { None } else { share_commands(&mut sides) };
    let profiles = side_profiles(&sides);
    let joined = join_profiles(&profiles);
    let share = if args.own { FunctionShare::Own } else { FunctionShare::Inclusive };
    let (mut documents, mut text) = (Vec::new(), String::new());
    let first = sides.first().map(|side| side.name.clone()).unwrap_or_default();
    for (at, side) in sides.iter().enumerate().skip(1) {
        let Some(found) = function_differences(&joined, (0, at), share) else {
            let message = format!("{first} or {} has no sample that was kept", side.name);
            return Err(UsageError::new(message, "`perflab flame show RUN` accounts for the samples").into());
        };
        let names = [first.as_str(), side.name.as_str()];
        if context.format == OutputFormat::Json {
            documents.push(serde_json::json!({ "baseline": first, "candidate": side.name, "result": found }));
            continue;
        }
        let grid = flame::function_differences_grid(&found, names, args.top);
        text.push_str(&grid.render(context.format, context.width, context.colour)?);
        flame::function_differences_lines(&found, args.top).iter().for_each(|line| context.note(line));
    }
    if context.format == OutputFormat::Json {
        let document = serde_json::json!({ "version": VERSION, "label": label, "differences": documents });
        text = format!("{document:#}\n");
    }
    match &args.output {
        Some(path) => path.write(text.as_bytes())?,
        None => context.print_text(&text)?,
    }
    note_shared_commands(context, shared.as_ref());
    Ok(Exit::Fine)
}

/// Draws two sides, and both over one tree.
fn write_differential_svg(
    context: &App,
    args: &FlameDiffArgs,
    groups: Vec<ProfiledCaseGroup>,
    path: &OutputPath,
) -> Result<Exit, Failure> {
    let group = only_group(groups)?;
    if let [_, second, _, ..] = &group.levels[..] {
        let hint = match args.levels.by.is_some() {
            true => format!("choose one: --versus {}", second.name),
            false => "name two runs".into(),
        };
        let message = format!("a picture has two sides, and here are {}", group.levels.len());
        return Err(UsageError::new(message, hint).into());
    }
    let title = match &args.levels.by {
        Some(factor) => format!("{} by {factor}", group.name),
        None => group.name.clone(),
    };
    let mut sides = joined_sides(vec![group]);
    let shared = if args.by_command { None } else { share_commands(&mut sides) };
    let profiles = side_profiles(&sides);
    let joined = join_profiles(&profiles);
    let [before, after] = &sides[..] else { unreachable!("a group has two levels") };
    let picture = flame::differential_flame_svg(&DifferentialGraph {
        title: &title,
        names: [&before.name, &after.name],
        joined: &joined,
        categories: &colour_categories(&joined, read_colour_rules(&args.rules)?.as_ref()),
        width: PICTURE_WIDTH,
    });
    path.write(picture.as_bytes())?;
    note_shared_commands(context, shared.as_ref());
    note_written_file(context, "flame graphs", path)?;
    Ok(Exit::Fine)
}

/// Pixels of a picture of two sides.
const PICTURE_WIDTH: f64 = 1600.0;

/// A side for each level; where there are several cases, they have theirs in the name.
fn joined_sides(groups: Vec<ProfiledCaseGroup>) -> Vec<ProfiledSide> {
    let several = groups.len() > 1;
    let of_group = |group: ProfiledCaseGroup| {
        let side = |level: ProfiledLevel| ProfiledSide {
            name: if several { format!("{}: {}", level.name, group.name) } else { level.name },
            profiles: level.profiles.into_iter().map(case_tree).collect(),
        };
        group.levels.into_iter().map(side).collect::<Vec<_>>()
    };
    groups.into_iter().flat_map(of_group).collect()
}

fn case_tree(one: CaseProfile) -> (Profile, CallTreeOptions) {
    let how = measured_tree_options(&one.record.manifest, &one.profile);
    (one.profile, how)
}

fn note_shared_commands(context: &App, shared: Option<&SharedCommands>) {
    if let Some(shared) = shared {
        context.note(format!(
            "commands that are not on every side share a box, so that their functions are compared: {} (--by-command keeps \
             them apart)",
            shared.label
        ));
    }
}

/// Writes the viewer of sides over one tree.
fn write_viewer(
    context: &App,
    mut sides: Vec<ProfiledSide>,
    (rules, by_command): (&str, bool),
    path: &OutputPath,
) -> Result<Exit, Failure> {
    let writer = concat!("perflab ", env!("CARGO_PKG_VERSION"));
    let shared = if by_command { None } else { share_commands(&mut sides) };
    let html = render_flame_page(writer, &draw_sides(&sides, read_colour_rules(rules)?.as_ref()))?;
    path.write(html.as_bytes())?;
    note_shared_commands(context, shared.as_ref());
    note_written_file(context, "flame graph", path)?;
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

/// The table that gives boxes their colours; none where kernel and user are enough.
pub fn read_colour_rules(name: &str) -> Result<Option<CategoryRules>, Failure> {
    if name == "none" { Ok(None) } else { read_rule_table(name).map(Some) }
}
