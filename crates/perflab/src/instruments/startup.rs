//! `perflab startup`: an ordinary run of a study that is written here, whose workload is one measured startup; and its
//! conclusions.

use std::ffi::OsString;

use clap::{Args, ValueEnum};
use perflab_analyze::{ChangeScale, Comparison, ComparisonSide, Verdict, VerdictRow};
use perflab_conduct::ConductError;
use perflab_model::Refusal;
use perflab_model::{Nanos, RunRecord};

use crate::app::App;
use crate::failure::{Exit, Failure, UsageError};
use crate::instruments::startup_once::{CacheState, PrefetchMode, StartupCommand};
use crate::measure::command_study::CommandStudy;
use crate::measure::command_words::{command_words, escape_template, quote_toml};
use crate::selection::parse_label;
use crate::verb::Verb;
use perflab_model::quantity::{format_digits, format_percent_change};
use perflab_startup::ReadinessCondition;

/// What one startup prints is a metric of the workload that starts applications, whose last part says so.
const APPLICATION_START: &str = include_str!("../../workloads/application-start.toml");

/// Measures startups, and compares the modes.
pub fn measure_startups(context: &App, args: &StartupArgs) -> Result<Exit, Failure> {
    let subject = StartupCommand::new(&args.command, &args.ready_when, args.limit)?;
    if args.reader.is_some() != args.prefetch.contains(&PrefetchMode::Reader) {
        let message = "--reader COMMAND and the mode `reader` in --prefetch go together";
        return Err(UsageError::new(
            message,
            "as in `--prefetch none,reader --reader 'vmtouch -qt /opt/app'`",
        )
        .into());
    }
    if !rustix::process::geteuid().is_root() && args.caches.iter().any(|caches| *caches != CacheState::Warm) {
        let what = "dropping caches before each start needs root".into();
        let hint = "run as root, or measure warm starts with `--caches warm`".into();
        return Err(ConductError::Refused(vec![Refusal { what, hint }]).into());
    }
    if args.prefetch.iter().any(|mode| *mode != PrefetchMode::None) {
        subject.learn_trace(context, &perflab_prefetch::TraceStore::locate(None), args.fine)?;
    }
    let written = CommandStudy {
        verb: "startup",
        workload: "start",
        definition: startup_definition(args)?,
        study: startup_study(args),
        seed: rand::random(),
        label: args.label.as_deref(),
        as_typed: false,
    };
    let (status, found) = written.execute(context, |_| ())?;
    let side = ComparisonSide { name: found.short_id().to_owned(), runs: vec![found.read_record()?] };
    for line in startup_answers(&context.archive()?, &side)? {
        context.print_conclusion(&line)?;
    }
    crate::see::report::conclude_run(context, &found, true)?;
    let factors = startup_factors(args);
    if let Some((factor, _)) = factors.iter().find(|(_, levels)| levels.len() > 1) {
        context.note(format!("`perflab compare {} --by {factor}` shows the verdicts", found.short_id()));
    }
    Ok(if status == perflab_model::RunStatus::Finished { Exit::Fine } else { Exit::WORKLOAD_FAILED })
}

/// What was asked, in a line for each factor: how much faster each mode is. Of one mode alone, how long it takes.
fn startup_answers(
    archive: &perflab_archive::Archive,
    side: &ComparisonSide,
) -> Result<Vec<String>, Failure> {
    let comparisons = crate::see::report::compare_by_every_factor(archive, side)?;
    if !comparisons.is_empty() {
        return Ok(comparisons.iter().filter_map(factor_answer).collect());
    }
    let walls = |record: &RunRecord| {
        let all = record.samples.iter().filter(|sample| sample.metric == WALL);
        all.map(|sample| sample.value).collect::<Vec<_>>()
    };
    let walls: Vec<f64> = side.runs.iter().flat_map(walls).collect();
    let middle = perflab_stats::median(&walls).ok().map(|wall| {
        format!("it takes {} to start (median of {} starts)", seconds_to_nanos(wall), walls.len())
    });
    Ok(middle.into_iter().collect())
}

/// The metric that is asked about.
const WALL: &str = "wall";

fn factor_answer(comparison: &Comparison) -> Option<String> {
    let factor = comparison.by.as_deref()?;
    let rows = || comparison.rows.iter().filter(|row| row.metric == WALL);
    let varies = |name: &str| {
        rows().any(|row| row.point.get(name) != rows().next().and_then(|first| first.point.get(name)))
    };
    let each: Vec<String> = rows().map(|row| difference_text(row, &comparison.baseline, &varies)).collect();
    (!each.is_empty()).then(|| format!("{factor}: {}", each.join("; ")))
}

fn difference_text(row: &VerdictRow, baseline: &str, varies: &impl Fn(&str) -> bool) -> String {
    let point = row
        .point
        .iter()
        .filter(|(name, _)| varies(name))
        .map(|(name, level)| format!(" ({name}={level})"))
        .collect::<String>();
    let name = format!("{}{point}", row.candidate_name);
    let (Some(change), Some(before), Some(after)) =
        (row.change.filter(|change| change.scale == ChangeScale::Ratio), &row.baseline, &row.candidate)
    else {
        return format!("{name}: unclear, since one side has no start");
    };
    let percent = |value: f64| format_percent_change(value.abs()).trim_start_matches('+').to_owned();
    let times = format!("{} against {}", seconds_to_nanos(after.median), seconds_to_nanos(before.median));
    match row.verdict {
        Verdict::Better => {
            format!("{name} takes {} less time than {baseline} ({times})", percent(change.value))
        }
        Verdict::Worse if change.value >= 1.0 => {
            format!(
                "{name} takes {} times as long as {baseline} ({times})",
                format_digits(change.value + 1.0)
            )
        }
        Verdict::Worse => {
            format!("{name} takes {} more time than {baseline} ({times})", percent(change.value))
        }
        Verdict::Same | Verdict::SameHere => format!("{name} takes as long as {baseline} ({times})"),
        Verdict::Unclear | Verdict::Differs => {
            let more =
                row.needed.map_or_else(String::new, |needed| format!(", about {needed} starts would decide"));
            format!("{name}: unclear against {baseline} ({times}{more})")
        }
    }
}

fn seconds_to_nanos(value: f64) -> Nanos {
    Nanos((value.max(0.0) * 1e9) as u64)
}

fn value_name<T: ValueEnum>(value: &T) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Levels of caches and of reading ahead.
fn startup_factors(args: &StartupArgs) -> [(&'static str, Vec<String>); 2] {
    [
        ("prefetch", args.prefetch.iter().map(value_name::<PrefetchMode>).collect()),
        ("caches", args.caches.iter().map(value_name::<CacheState>).collect()),
    ]
}

fn startup_study(args: &StartupArgs) -> String {
    let command: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    let title = quote_toml(&format!("Start of `{}`", command.join(" ")));
    let mut text = format!(
        "title = {title}\n\n[run]\niterations = {}\nwarmup = {}\norder = \"randomised\"\n\n[workload.start]\n",
        args.iterations, args.warmup
    );
    for (factor, levels) in startup_factors(args) {
        let levels: Vec<String> = levels.iter().map(|level| quote_toml(level)).collect();
        text += &format!("\n[factor.{factor}]\nkind = \"parameter\"\nlevels = [{}]\n", levels.join(", "));
    }
    text
}

fn startup_definition(args: &StartupArgs) -> Result<String, UsageError> {
    let command = command_words(&args.command)?;
    let fixed = ["{{ perflab }}", "start-once", "--caches", "{{ caches }}", "--prefetch", "{{ prefetch }}"];
    let (ready_when, limit) = (args.ready_when.to_option_text(), args.limit.to_study_text());
    let mut own = vec!["--ready-when", &ready_when, "--limit", &limit];
    own.extend(args.reader.iter().flat_map(|reader| ["--reader", reader]));
    own.push("--");
    let command = command.iter().map(String::as_str);
    let literals = own.into_iter().chain(command).map(|word| quote_toml(&escape_template(word)));
    let argv: Vec<String> = fixed.iter().map(|word| quote_toml(word)).chain(literals).collect();
    let choice = |parameter: &str, default: &str, all: &[&str], about: &str| {
        let all: Vec<String> = all.iter().map(|one| quote_toml(one)).collect();
        format!(
            "\n[parameter.{parameter}]\ntype = \"choice\"\ndefault = \"{default}\"\nchoices = [{}]\nabout = \"{about}\"\n",
            all.join(", ")
        )
    };
    let mut text = format!(
        "title = \"one start of a program\"\nmeasures = \"how long it takes, and what it reads\"\n\
         homepage = \"https://localhost\"\nlicence = \"NOASSERTION\"\nargv = [{}]\n",
        argv.join(", ")
    );
    text += &choice("caches", "3", &["3", "1", "warm"], "what is in memory at the start");
    let modes: Vec<String> = PrefetchMode::value_variants().iter().map(value_name).collect();
    let modes: Vec<&str> = modes.iter().map(String::as_str).collect();
    text += &choice("prefetch", "none", &modes, "how it is read ahead");
    let metrics = APPLICATION_START.find("\n[[metric]]").and_then(|at| APPLICATION_START.get(at..));
    text += metrics.unwrap_or_default();
    Ok(text)
}

/// Measure how long a program takes to start, cold or warm
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perflab startup --prefetch none,sync,async,staged -- python3 -c 'import json'
  perflab startup --caches 3,1,warm --iterations 7 -- git --version
  perflab startup --prefetch none,reader --reader 'vmtouch -qt /usr/lib/git-core' -- git --version
  perflab startup --ready-when listen:6379 -- redis-server
  perflab startup --ready-when window:640x480 -- soffice --nologo --writer

The --warmup starts of each mode do not count: the first learns, the second brings what was learnt
into the cache of the disk itself. The others run in random order in complete blocks, one of each
mode, so that drift cannot look like a gain. Dropping caches needs root; the output says how much of
what the program reads is in memory all the same, and of which file most. As root, each start runs
in a control group of its own (cgroup2), which gives its CPU time and ends all of its processes; and
the kernel accounts waiting for disks (kernel.task_delayacct), which is put back afterwards.

The mode `reader` is for other tools: --reader runs (by sh) before the program starts, and its time
counts.

--ready-when names what ends a start; what still runs then is ended:
  exit          the program exits with 0
  line[:TEXT]   it prints a line (that contains TEXT)
  file:PATH     this file is created or written
  notify        it sends READY=1, as services do to systemd
  listen:PORT   something accepts connections there; listen:PATH: on the socket of this path
  window        it shows an X11 window of at least 300x200 pixels that is no splash screen;
                window:WxH: of that size; window:CLASS: of that class (DISPLAY names the server)")]
pub struct StartupArgs {
    /// What is in memory at the start (the values are those of drop_caches)
    #[arg(long, value_enum, value_delimiter = ',', default_value = "3")]
    pub caches: Vec<CacheState>,
    /// Prefetch modes, the first being the baseline
    #[arg(long, value_enum, value_delimiter = ',', default_value = "none")]
    pub prefetch: Vec<PrefetchMode>,
    /// The command that reads ahead in the mode `reader`: another tool's
    #[arg(long, value_name = "COMMAND")]
    pub reader: Option<String>,
    /// Learn page by page, as `prefetch learn --fine` does
    #[arg(long)]
    pub fine: bool,
    /// Measured starts of each mode
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub iterations: u32,
    /// Starts of each mode before that, which are not measured
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub warmup: u32,
    /// When the program counts as started: see below
    #[arg(long, value_name = "CONDITION", default_value = "exit")]
    pub ready_when: ReadinessCondition,
    /// The time limit of a start
    #[arg(long, value_name = "TIME", default_value = "120s")]
    pub limit: Nanos,
    /// A name for the run
    #[arg(long, value_parser = parse_label)]
    pub label: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl Verb for StartupArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        measure_startups(app, self)
    }
}
