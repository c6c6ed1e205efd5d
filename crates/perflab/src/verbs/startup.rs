//! `perflab startup`: an ordinary run of a study that is written here, whose workload is one measured start.

mod ahead;
mod once;
mod subject;

pub use subject::never_cold;

use clap::ValueEnum;
use perflab_analyze::startup::Application;
use perflab_analyze::{Comparison, Row, Scale, Side, Verdict};
use perflab_conduct::{ConductError, Refusal};
use perflab_model::{Nanos, RunRecord};

use crate::arguments::startup::{Ahead, Caches, Startup};
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::verbs::recording::{literal, quoted, words};
use crate::verbs::written::Written;

pub use once::once;
use subject::Subject;

/// What one start prints is a metric of the workload that starts applications, whose last part says so.
const APPLICATION_START: &str = include_str!("../../../../workloads/application-start.toml");

/// Measures starts, and compares the modes.
pub fn run(context: &Context, wanted: &Startup) -> anyhow::Result<Exit> {
    let subject = Subject::new(&wanted.command, &wanted.ready_when, &wanted.limit)?;
    if wanted.reader.is_some() != wanted.prefetch.contains(&Ahead::Reader) {
        let message = "--reader COMMAND and the mode `reader` in --prefetch belong together";
        return Err(
            Usage::new(message, "as in `--prefetch none,reader --reader 'vmtouch -qt /opt/app'`").into()
        );
    }
    if !rustix::process::geteuid().is_root() && wanted.caches.iter().any(|caches| *caches != Caches::Warm) {
        let what = "dropping caches before each start needs root".into();
        let hint = "measure as root, or warm starts with `--caches warm`".into();
        return Err(ConductError::Refused(vec![Refusal { what, hint }]).into());
    }
    if wanted.prefetch.iter().any(|mode| *mode != Ahead::None) {
        subject.teach(context, &perflab_prefetch::Store::locate(None), wanted.fine)?;
    }
    let written = Written {
        verb: "startup",
        workload: "start",
        definition: definition(wanted)?,
        study: study(wanted),
        seed: rand::random(),
        label: wanted.label.as_deref(),
        as_typed: false,
    };
    let (status, found) = written.carry_out(context, |_| ())?;
    let side = Side { name: found.short().to_owned(), runs: vec![found.record()?] };
    for line in answers(&side)? {
        context.conclude(&line)?;
    }
    super::report::after_run(context, &found, true)?;
    let factors = factors(wanted);
    if let Some((factor, _)) = factors.iter().find(|(_, levels)| levels.len() > 1) {
        context.say(format!("`perflab compare {} --by {factor}` has the verdicts", found.short()));
    }
    Ok(if status == perflab_model::Status::Finished { Exit::Fine } else { Exit::WorkloadFailed })
}

/// What was asked, in a line for each factor: how much faster each mode is. Of one mode alone, how long it takes.
fn answers(side: &Side) -> anyhow::Result<Vec<String>> {
    let comparisons = super::report::by_factors(side)?;
    if !comparisons.is_empty() {
        return Ok(comparisons.iter().filter_map(answer).collect());
    }
    let walls = |record: &RunRecord| {
        let all = record.samples.iter().filter(|sample| sample.metric == WALL);
        all.map(|sample| sample.value).collect::<Vec<_>>()
    };
    let walls: Vec<f64> = side.runs.iter().flat_map(walls).collect();
    let middle = perflab_stats::median(&walls).ok().map(|wall| {
        format!("it takes {} until it is there (the median of {} starts)", seconds(wall), walls.len())
    });
    Ok(middle.into_iter().collect())
}

/// The metric that is asked about.
const WALL: &str = "wall";

fn answer(comparison: &Comparison) -> Option<String> {
    let factor = comparison.by.as_deref()?;
    let rows = || comparison.rows.iter().filter(|row| row.metric == WALL);
    let varies = |name: &str| {
        rows().any(|row| row.point.get(name) != rows().next().and_then(|first| first.point.get(name)))
    };
    let each: Vec<String> = rows().map(|row| difference(row, &comparison.baseline, &varies)).collect();
    (!each.is_empty()).then(|| format!("{factor}: {}", each.join("; ")))
}

fn difference(row: &Row, baseline: &str, varies: &impl Fn(&str) -> bool) -> String {
    let point = row
        .point
        .iter()
        .filter(|(name, _)| varies(name))
        .map(|(name, level)| format!(" ({name}={level})"))
        .collect::<String>();
    let name = format!("{}{point}", row.candidate_name);
    let (Some(change), Some(before), Some(after)) =
        (row.change.filter(|change| change.scale == Scale::Ratio), &row.baseline, &row.candidate)
    else {
        return format!("{name} unclear, as one side has no start");
    };
    let percent = |value: f64| format!("{:.0} %", value.abs() * 100.0);
    let times = format!("{} against {}", seconds(after.median), seconds(before.median));
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

fn seconds(value: f64) -> Nanos {
    Nanos((value.max(0.0) * 1e9) as u64)
}

/// Which of the shapes of 2007 a run has, in sentences, and what disturbed it; none where nothing was read ahead.
pub fn conclusions(record: &RunRecord) -> Vec<String> {
    let applications = perflab_analyze::startup::applications(record);
    let of = |one: &Application| {
        one.shapes.iter().map(|shape| format!("{}: {shape}", one.name)).collect::<Vec<_>>()
    };
    let disturbed = perflab_analyze::startup::pages_out(record).filter(|_| !applications.is_empty());
    applications.iter().flat_map(of).chain(disturbed.map(paged_out)).collect()
}

fn paged_out(place: &str) -> String {
    format!(
        "disturbed: the kernel takes pages that nobody maps out of memory, though there is room (DAMON, {place}): some of what was read ahead may have been read twice, and warm starts may have read"
    )
}

fn usage(error: &perflab_conduct::startup::NotAnEnd) -> Usage {
    Usage::new(format!("--ready-when: {error}"), "`perflab startup --help` describes them")
}

fn name<T: ValueEnum>(value: &T) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Levels of caches and of reading ahead.
fn factors(wanted: &Startup) -> [(&'static str, Vec<String>); 2] {
    [
        ("prefetch", wanted.prefetch.iter().map(name::<Ahead>).collect()),
        ("caches", wanted.caches.iter().map(name::<Caches>).collect()),
    ]
}

fn study(wanted: &Startup) -> String {
    let command: Vec<_> = wanted.command.iter().map(|word| word.to_string_lossy()).collect();
    let title = quoted(&format!("Start of `{}`", command.join(" ")));
    let mut text = format!(
        "title = {title}\n\n[run]\niterations = {}\nwarmup = {}\norder = \"randomised\"\n\n[workload.start]\n",
        wanted.iterations, wanted.warmup
    );
    for (factor, levels) in factors(wanted) {
        let levels: Vec<String> = levels.iter().map(|level| quoted(level)).collect();
        text += &format!("\n[factor.{factor}]\nkind = \"parameter\"\nlevels = [{}]\n", levels.join(", "));
    }
    text
}

fn definition(wanted: &Startup) -> Result<String, Usage> {
    let command = words(&wanted.command)?;
    let fixed = ["{{ perflab }}", "start-once", "--caches", "{{ caches }}", "--prefetch", "{{ prefetch }}"];
    let mut own = vec!["--ready-when", &wanted.ready_when, "--limit", &wanted.limit];
    own.extend(wanted.reader.iter().flat_map(|reader| ["--reader", reader]));
    own.push("--");
    let command = command.iter().map(String::as_str);
    let literals = own.into_iter().chain(command).map(|word| quoted(&literal(word)));
    let argv: Vec<String> = fixed.iter().map(|word| quoted(word)).chain(literals).collect();
    let choice = |parameter: &str, default: &str, all: &[&str], about: &str| {
        let all: Vec<String> = all.iter().map(|one| quoted(one)).collect();
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
    let modes: Vec<String> = Ahead::value_variants().iter().map(name).collect();
    let modes: Vec<&str> = modes.iter().map(String::as_str).collect();
    text += &choice("prefetch", "none", &modes, "how it is read ahead");
    let metrics = APPLICATION_START.find("\n[[metric]]").and_then(|at| APPLICATION_START.get(at..));
    text += metrics.unwrap_or_default();
    Ok(text)
}
