//! `perflab startup`: an ordinary run of a study that is written here, whose workload is one measured startup; and its
//! conclusions.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use perflab_analyze::{ChangeScale, Comparison, ComparisonSide, Verdict, VerdictRow};
use perflab_conduct::ConductError;
use perflab_model::Refusal;
use perflab_model::{Nanos, RunRecord};

use crate::app::App;
use crate::failure::{Exit, Failure, UsageError};
use crate::instruments::startup_once::StartupCommand;
use crate::measure::command_study::{CommandStudy, command_words, escape_template, quote_toml};
use crate::verb::Verb;

/// What one startup prints is a metric of the workload that starts applications, whose last part says so.
const APPLICATION_START: &str = include_str!("../../workloads/application-start.toml");

/// Measures startups, and compares the modes.
pub fn measure_startups(context: &App, args: &StartupArgs) -> Result<Exit, Failure> {
    let subject = StartupCommand::new(&args.command, &args.ready_when, &args.limit)?;
    if args.reader.is_some() != args.prefetch.contains(&PrefetchModeName::Reader) {
        let message = "--reader COMMAND and the mode `reader` in --prefetch belong together";
        return Err(UsageError::new(
            message,
            "as in `--prefetch none,reader --reader 'vmtouch -qt /opt/app'`",
        )
        .into());
    }
    if !rustix::process::geteuid().is_root()
        && args.caches.iter().any(|caches| *caches != CacheStateName::Warm)
    {
        let what = "dropping caches before each start needs root".into();
        let hint = "measure as root, or warm starts with `--caches warm`".into();
        return Err(ConductError::Refused(vec![Refusal { what, hint }]).into());
    }
    if args.prefetch.iter().any(|mode| *mode != PrefetchModeName::None) {
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
    for line in startup_answers(&side)? {
        context.print_conclusion(&line)?;
    }
    crate::see::report::conclude_run(context, &found, true)?;
    let factors = startup_factors(args);
    if let Some((factor, _)) = factors.iter().find(|(_, levels)| levels.len() > 1) {
        context.note(format!("`perflab compare {} --by {factor}` has the verdicts", found.short_id()));
    }
    Ok(if status == perflab_model::RunStatus::Finished { Exit::Fine } else { Exit::WORKLOAD_FAILED })
}

/// What was asked, in a line for each factor: how much faster each mode is. Of one mode alone, how long it takes.
fn startup_answers(side: &ComparisonSide) -> Result<Vec<String>, Failure> {
    let comparisons = crate::see::report::compare_by_every_factor(side)?;
    if !comparisons.is_empty() {
        return Ok(comparisons.iter().filter_map(factor_answer).collect());
    }
    let walls = |record: &RunRecord| {
        let all = record.samples.iter().filter(|sample| sample.metric == WALL);
        all.map(|sample| sample.value).collect::<Vec<_>>()
    };
    let walls: Vec<f64> = side.runs.iter().flat_map(walls).collect();
    let middle = perflab_stats::median(&walls).ok().map(|wall| {
        format!(
            "it takes {} until it is there (the median of {} starts)",
            seconds_to_nanos(wall),
            walls.len()
        )
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
        return format!("{name} unclear, as one side has no start");
    };
    let percent = |value: f64| format!("{:.0} %", value.abs() * 100.0);
    let times = format!("{} against {}", seconds_to_nanos(after.median), seconds_to_nanos(before.median));
    match row.verdict {
        Verdict::Better => {
            format!("{name} takes {} less time than {baseline} ({times})", percent(change.value))
        }
        Verdict::Worse if change.value >= 1.0 => {
            format!("{name} takes {:.1} times as long as {baseline} ({times})", change.value + 1.0)
        }
        Verdict::Worse => {
            format!("{name} takes {} more time than {baseline} ({times})", percent(change.value))
        }
        Verdict::Same => format!("{name} takes as long as {baseline} ({times})"),
        Verdict::Unclear => {
            let more =
                row.needed.map_or_else(String::new, |needed| format!(", about {needed} starts would tell"));
            format!("{name} unclear against {baseline} ({times}{more})")
        }
    }
}

fn seconds_to_nanos(value: f64) -> Nanos {
    Nanos((value.max(0.0) * 1e9) as u64)
}

pub(crate) fn readiness_usage_error(error: &perflab_startup::ReadinessConditionError) -> UsageError {
    UsageError::new(format!("--ready-when: {error}"), "`perflab startup --help` describes them")
}

fn value_name<T: ValueEnum>(value: &T) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Levels of caches and of reading ahead.
fn startup_factors(args: &StartupArgs) -> [(&'static str, Vec<String>); 2] {
    [
        ("prefetch", args.prefetch.iter().map(value_name::<PrefetchModeName>).collect()),
        ("caches", args.caches.iter().map(value_name::<CacheStateName>).collect()),
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
    let mut own = vec!["--ready-when", &args.ready_when, "--limit", &args.limit];
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
    let modes: Vec<String> = PrefetchModeName::value_variants().iter().map(value_name).collect();
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

Each mode is started --warmup times first, which does not count: the first start learns, the second
shows what was learnt to the disk's own cache. The others are in random order, one of each mode
after the other (complete blocks), so that drift cannot pose as a gain. Dropping caches needs
root; what is in memory then of the files that a start reads is looked at, and said with the worst
of them. As root each start has a control group of its own (cgroup2), of which the kernel tells
its CPU time and by which all of it is ended; and the kernel counts waiting for disks meanwhile
(kernel.task_delayacct), and is put back afterwards.

Another maker's reading ahead is a mode, too: `reader` runs what --reader says (by sh) before the
program starts, and its time counts.

--ready-when says when the program counts as started; what still runs of it is ended then:
  exit          it has ended, well
  line[:TEXT]   it has printed a line (with TEXT)
  file:PATH     this file was made or written
  notify        it has said READY=1, as services tell systemd
  listen:PORT   something accepts connections there; listen:PATH: at a socket of this path
  window        it has a window under X11 of at least 300x200 pixels that is no splash screen;
                window:WxH of that size, window:CLASS of that class (DISPLAY names the server)")]
pub struct StartupArgs {
    /// What is in memory at the start: 3 nothing, 1 names and inodes, warm everything
    #[arg(long, value_enum, value_delimiter = ',', default_value = "3")]
    pub caches: Vec<CacheStateName>,
    /// Prefetch modes, the first of which is the baseline
    #[arg(long, value_enum, value_delimiter = ',', default_value = "none")]
    pub prefetch: Vec<PrefetchModeName>,
    /// What reads ahead where --prefetch says `reader`: a command of another maker's
    #[arg(long, value_name = "COMMAND")]
    pub reader: Option<String>,
    /// Learn finely what is read ahead, as `prefetch learn --fine` does
    #[arg(long)]
    pub fine: bool,
    /// How often each mode is measured
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub iterations: u32,
    /// How often each mode is started before without being measured
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub warmup: u32,
    /// When it counts as started
    #[arg(long, value_name = "CONDITION", default_value = "exit")]
    pub ready_when: String,
    /// How long a start may take
    #[arg(long, value_name = "TIME", default_value = "120s")]
    pub limit: String,
    /// A name for the run
    #[arg(long)]
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

/// What is in memory at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CacheStateName {
    /// nothing
    #[value(name = "3")]
    All,
    /// names and inodes, no pages
    #[value(name = "1")]
    Pages,
    /// everything that its trace knows; where there is none, what the start before left
    Warm,
}

/// Prefetch modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PrefetchModeName {
    /// nothing is
    None,
    /// everything before the program starts
    Sync,
    /// beside the program
    Async,
    /// metadata before it starts, the rest beside it
    Staged,
    /// what --reader says is run before it starts
    Reader,
}

/// Measure one start (what `perflab startup` calls)
#[derive(Debug, Args)]
pub struct StartOnceArgs {
    /// What is in memory at the start
    #[arg(long, value_enum)]
    pub caches: CacheStateName,
    /// How it is read ahead
    #[arg(long, value_enum)]
    pub prefetch: PrefetchModeName,
    /// What reads ahead where that is `reader`
    #[arg(long, required_if_eq("prefetch", "reader"))]
    pub reader: Option<String>,
    /// When it counts as started
    #[arg(long)]
    pub ready_when: String,
    /// How long it may take
    #[arg(long)]
    pub limit: String,
    /// Where traces lie
    #[arg(long)]
    pub store: Option<PathBuf>,
    /// Trace it and remember what it read, unless that is known
    #[arg(long)]
    pub learn: bool,
    /// When it is learnt: finely, as `prefetch learn --fine` does
    #[arg(long, requires = "learn")]
    pub fine: bool,
    /// When it is learnt: bring together on the disk what it reads, and learn again
    #[arg(long, requires = "learn")]
    pub relayout: bool,
    /// Start it on this disk: in a root directory whose packages are copied there
    #[arg(long, value_name = "DIR", requires = "package")]
    pub inside: Option<PathBuf>,
    /// What is copied there: a package, with everything that it needs
    #[arg(long, value_delimiter = ',')]
    pub package: Vec<String>,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

impl Verb for StartOnceArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        crate::instruments::startup_once::measure_one_startup(app, self)
    }
}
