//! `perflab startup`: an ordinary run of a study that is written here, whose workload is one measured start.

mod ahead;
mod once;
mod subject;

use clap::ValueEnum;
use perflab_analyze::startup::Application;
use perflab_conduct::{ConductError, Refusal};
use perflab_model::RunRecord;

use crate::arguments::startup::{Ahead, Caches, Startup};
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::verbs::recording::{literal, quoted, words};
use crate::verbs::written::Written;

pub use once::once;
use subject::Subject;

/// What one start prints is a metric of the workload that starts applications, whose last part says so.
const APPLICATION_START: &str = include_str!("../../../../workloads/application-start.toml");

/// Measures starts, and compares the ways.
pub fn run(context: &Context, wanted: &Startup) -> anyhow::Result<Exit> {
    let subject = Subject::new(&wanted.command, &wanted.until, &wanted.limit)?;
    if wanted.reader.is_some() != wanted.prefetch.contains(&Ahead::Reader) {
        let message = "--reader COMMAND and the way `reader` in --prefetch belong together";
        return Err(
            Usage::new(message, "as in `--prefetch none,reader --reader 'vmtouch -qt /opt/app'`").into()
        );
    }
    if !rustix::process::geteuid().is_root() && wanted.caches.iter().any(|caches| *caches != Caches::Warm) {
        let what = "dropping caches before each start needs root".into();
        let hint = "measure as root, or warm starts with `--caches warm`".into();
        return Err(ConductError::Refused(vec![Refusal { what, hint }]).into());
    }
    if wanted.prefetch.iter().any(|way| *way != Ahead::None) {
        subject.teach(context, &perflab_prefetch::Store::locate(None), wanted.fine)?;
    }
    let written = Written {
        verb: "startup",
        workload: "start",
        definition: definition(wanted)?,
        study: study(wanted),
        seed: rand::random(),
        label: wanted.label.as_deref(),
    };
    let (status, found) = written.carry_out(context, |_| ())?;
    super::report::after_run(context, &found, true)?;
    let factors = factors(wanted);
    if let Some((factor, _)) = factors.iter().find(|(_, levels)| levels.len() > 1) {
        context.say(format!("`perflab compare {} --by {factor}` has the verdicts", found.short()));
    }
    Ok(if status == perflab_model::Status::Finished { Exit::Fine } else { Exit::WorkloadFailed })
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
    Usage::new(format!("--until: {error}"), "`perflab startup --help` describes them")
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
        wanted.runs, wanted.aside
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
    let mut own = vec!["--until", &wanted.until, "--limit", &wanted.limit];
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
    let ways: Vec<String> = Ahead::value_variants().iter().map(name).collect();
    let ways: Vec<&str> = ways.iter().map(String::as_str).collect();
    text += &choice("prefetch", "none", &ways, "how it is read ahead");
    let metrics = APPLICATION_START.find("\n[[metric]]").and_then(|at| APPLICATION_START.get(at..));
    text += metrics.unwrap_or_default();
    Ok(text)
}
