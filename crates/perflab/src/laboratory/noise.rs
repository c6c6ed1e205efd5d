//! The noise of this machine and what a precision costs: `perflab noise`, `plan`.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use perflab_analyze::compare::noise_card::NoiseRow;
use perflab_analyze::design::propose_designs;
use perflab_analyze::sample_size::{SampleSizeAim, SampleSizeOptions};
use perflab_analyze::{AnalysisOptions, ComparisonSide, NoiseCard, compare_levels, plan_sample_sizes};
use perflab_conduct::RunPermissions;
use perflab_formats::kernel::stat::{CpuTimes, parse_context_switches};
use perflab_model::study::{Factor, FactorKind, FactorLevel, SlotOrder};
use perflab_model::{Manifest, Nanos, Ratio, RunRecord, RunStatus, Study};
use perflab_present::noise::{
    design_grid, design_notes, noise_card_grid, noise_level_notes, sample_size_grid, sample_size_notes,
};

use crate::app::{App, read_text_file};
use crate::failure::{Exit, Failure, FailureContext as _, UnexpectedError, UsageError};
use crate::measure::run;
use crate::output_path::replace_file;
use crate::quantities::{parse_goal, parse_iterations};
use crate::selection;
use crate::study_source::find_study;
use crate::verb::Verb;

/// The factor whose levels are the same, and the label of such runs.
pub const FACTOR: &str = "noise";

/// Values of a side below which its median has no interval at 95 %.
const FEWEST_ITERATIONS: u32 = 6;

/// Measures the noise of this machine, or shows its card.
pub fn measure_or_show_noise(context: &App, args: &NoiseArgs) -> Result<Exit, Failure> {
    if args.show {
        let card = read_noise_card(context)?;
        let hint = "measure it with `perflab noise`";
        let card = card.ok_or_else(|| UsageError::new("there is no noise card for this machine", hint))?;
        print_noise_card(context, &card)?;
        return Ok(Exit::Fine);
    }
    if !args.duet && args.iterations < FEWEST_ITERATIONS {
        return Err(UsageError::new(
            format!("--iterations {}: so few have no interval", args.iterations),
            format!("name {FEWEST_ITERATIONS} or more, or leave it out for 20"),
        )
        .into());
    }
    run::undo_leftovers(context);
    let stop = run::stop_on_interrupt()?;
    let before = ProcessorLoad::read(context);
    let mut newest = None;
    let vary = |study: &mut Study| use_same_variant_twice(study, args.duet);
    if args.duet {
        let source = find_study(&args.study)?;
        let mut study = source.parse_study()?;
        vary(&mut study);
        source.check_study(&study)?;
    }
    for _ in 0..args.runs {
        let (manifest, catalogue) = run::prepare_manifest(context, &noise_run_args(args), vary)?;
        let machine = run::local_machine(context, catalogue)?;
        let (status, directory) =
            run::execute_study(context, &machine, &manifest, &RunPermissions::default(), &stop)?;
        newest = Some(directory.read_record()?);
        if !matches!(status, RunStatus::Finished | RunStatus::Failed) {
            break;
        }
    }
    let record = newest.ok_or_else(|| UsageError::new("--runs is 0", "name 1 or more"))?;
    let side = ComparisonSide { name: FACTOR.into(), runs: vec![record] };
    let comparison = compare_levels(&side, FACTOR, &AnalysisOptions::default())?;
    let manifest = side
        .runs
        .first()
        .map(|run| &run.manifest)
        .ok_or_else(|| UnexpectedError("the run is gone".into()))?;
    let (card, without) = NoiseCard::from_comparison(&comparison, manifest);
    let mut card = card.with_levels(&list_noise_runs(context, manifest)?, FACTOR);
    if let Some(run) = side.runs.first().filter(|run| run.manifest.plan.is_duet()) {
        card = card.with_duet(&comparison, run);
    }
    if let Some(passed) = before.zip(ProcessorLoad::read(context)).map(|(before, now)| now.since(&before)) {
        (card.steal, card.context_switches) = (passed.steal(), passed.switches_per_second());
    }
    without.iter().for_each(|reason| stderr_line!("not on the card: {reason}"));
    if card.rows.is_empty() {
        stderr_line!(
            "perflab: no noise card: no metric has an interval; it takes at least {FEWEST_ITERATIONS} iterations per side, better 20 (the default)"
        );
        return Ok(Exit::NothingJudged);
    }
    keep_noise_card(context, &card)?;
    print_noise_card(context, &card)?;
    Ok(Exit::Fine)
}

/// What the processors did for others, at one instant.
struct ProcessorLoad {
    at: Instant,
    times: Option<CpuTimes>,
    switches: Option<u64>,
}

impl ProcessorLoad {
    fn read(context: &App) -> Option<Self> {
        let text = context.root.read("/proc/stat").ok()?;
        let (times, switches) = (CpuTimes::parse(&text), parse_context_switches(&text));
        Some(ProcessorLoad { at: Instant::now(), times, switches })
    }

    fn since(&self, before: &ProcessorLoad) -> LoadDifference {
        LoadDifference {
            seconds: self.at.duration_since(before.at).as_secs_f64(),
            times: self.times.zip(before.times).map(|(now, before)| now.since(&before)),
            switches: self.switches.zip(before.switches).map(|(now, before)| now.saturating_sub(before)),
        }
    }
}

/// What they did between two.
struct LoadDifference {
    seconds: f64,
    times: Option<CpuTimes>,
    switches: Option<u64>,
}

impl LoadDifference {
    /// The share of all time that the hypervisor gave to others.
    fn steal(&self) -> Option<f64> {
        Some(self.times?.steal_percent()? / 100.0)
    }

    fn switches_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0).then_some(self.switches? as f64 / self.seconds)
    }
}

/// From so many noise runs the levels are known well enough.
const MOST_NOISE_RUNS: usize = 30;

/// The latest noise runs of the same study, in order of time: the run of `manifest` is the last of them.
fn list_noise_runs(context: &App, manifest: &Manifest) -> Result<Vec<RunRecord>, Failure> {
    let archive = context.archive()?;
    let mut listed = archive.list_runs()?;
    listed.retain(|run| {
        let is_noise = run.summary.as_ref().is_ok_and(|summary| {
            summary.label.as_deref() == Some(FACTOR) && summary.title == manifest.study.title
        });
        is_noise && run.id != manifest.id
    });
    let mut runs = Vec::new();
    for run in listed.split_off(listed.len().saturating_sub(MOST_NOISE_RUNS - 1)) {
        // A run that cannot be read says nothing; `list` names it.
        runs.extend(selection::select_run(&archive, &run.id).ok().and_then(|run| run.read_record().ok()));
    }
    runs.push(selection::select_run(&archive, &manifest.id)?.read_record()?);
    Ok(runs)
}

fn noise_run_args(args: &NoiseArgs) -> run::RunArgs {
    run::RunArgs {
        label: Some(FACTOR.into()),
        only: args.only.clone(),
        seed: args.seed,
        iterations: Some(args.iterations),
        no_report: true,
        no_monitors: args.duet,
        ..run::RunArgs::of_study(&args.study)
    }
}

/// The first level of every factor, under two labels that nothing reads; at one moment where that is asked for, when monitors of
/// the whole machine would see both.
fn use_same_variant_twice(study: &mut Study, at_once: bool) {
    if at_once {
        study.run.order = SlotOrder::Duet;
        study.monitors.clear();
        (study.profile, study.io) = (None, None);
    }
    study.factor.values_mut().for_each(|factor| factor.levels.keep_first());
    let level = |name: &str| FactorLevel::from_scalar(name.into());
    let (kind, key) = (FactorKind::Environment, Some("PERFLAB_NOISE".into()));
    let factor = Factor { kind, key, workload: None, on: None, levels: vec![level("a"), level("b")].into() };
    study.factor.insert(FACTOR.into(), factor);
}

/// Where the card of this machine lies.
fn noise_card_path(context: &App) -> PathBuf {
    let id = std::fs::read_to_string(context.root.path("/etc/machine-id")).unwrap_or_default();
    let name: String = id.trim().chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    let name = if name.is_empty() { "machine".to_owned() } else { name };
    context.archive_path().join("noise").join(format!("{name}.json"))
}

/// This machine's card, if it has one.
///
/// A card that cannot be read is an error: silently comparing without it would look like no card.
pub fn read_noise_card(context: &App) -> Result<Option<NoiseCard>, Failure> {
    let path = noise_card_path(context);
    let text = match read_text_file(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read the noise card {}", path.display()));
        }
    };
    let card = serde_json::from_str(&text).with_context(|| {
        format!(
            "the noise card {} is damaged: remove it, and measure again with `perflab noise`",
            path.display()
        )
    })?;
    Ok(Some(card))
}

/// Keeps rows of other cases: several studies share one card. Of a case that was measured in turn and at once, it keeps both.
fn keep_noise_card(context: &App, card: &NoiseCard) -> Result<(), Failure> {
    let path = noise_card_path(context);
    let mut card = card.clone();
    if let Some(old) = read_noise_card(context).unwrap_or_default().filter(|old| old.kernel == card.kernel) {
        for row in old.rows {
            let is_own = |own: &&mut NoiseRow| own.subject == row.subject && own.metric == row.metric;
            match card.rows.iter_mut().find(is_own) {
                None => card.rows.push(row),
                Some(own) if own.duet.is_some() => *own = NoiseRow { duet: own.duet, ..row },
                Some(own) => own.duet = row.duet,
            }
        }
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    replace_file(&path, serde_json::to_string_pretty(&card)?.as_bytes())
        .with_context(|| format!("cannot write the noise card {}", path.display()))?;
    context.note(format!("noise card: {}", path.display()));
    Ok(())
}

fn print_noise_card(context: &App, card: &NoiseCard) -> Result<(), Failure> {
    context.print_grid(&noise_card_grid(card))?;
    noise_level_notes(card).iter().for_each(|note| context.note(format!("note: {note}")));
    context.note(
        "note: noise: standard deviation of one iteration; reaches: the largest change that the interval admits although \
         nothing changed; finds: the change that as many iterations find in 80 % of experiments; alarms: share of small \
         experiments (6 a side, cut out of this run) with p below 5 %, the sides interleaved or one after the other",
    );
    Ok(())
}

/// Boots, runs and iterations that a wanted precision costs.
pub fn plan_sample_size(context: &App, args: &SampleSizeArgs) -> Result<Exit, Failure> {
    let goal = precision_goal(args);
    if args.noise_card {
        return propose_experiments(context, &goal);
    }
    let archive = context.archive()?;
    let mut side = ComparisonSide { name: args.runs.join(", "), runs: Vec::new() };
    for name in &args.runs {
        side.runs.extend(selection::select_side(&archive, name)?.runs);
    }
    let options = AnalysisOptions { metrics: args.metric.clone(), ..AnalysisOptions::default() };
    let (planned, unplanned) = plan_sample_sizes(&side, &goal, &options)?;
    context.print_grid(&sample_size_grid(&planned))?;
    for one in unplanned {
        stderr_line!("left out: {}, {} {}", one.subject, one.metric, one.reason);
    }
    for note in sample_size_notes(&planned, &goal) {
        context.note(format!("note: {note}"));
    }
    Ok(Exit::Fine)
}

/// The designs that the noise card of this machine allows for.
fn propose_experiments(context: &App, goal: &SampleSizeOptions) -> Result<Exit, Failure> {
    let hint = "measure it with `perflab noise`, better `perflab noise --runs 5`";
    let card = read_noise_card(context)?;
    let card = card.ok_or_else(|| UsageError::new("there is no noise card for this machine", hint))?;
    let proposals = propose_designs(&card, goal).map_err(|error| UnexpectedError(error.to_string()))?;
    if proposals.is_empty() {
        return Err(UsageError::new("the noise card of this machine does not know its levels", hint).into());
    }
    context.print_grid(&design_grid(&proposals))?;
    for note in design_notes(&card, &proposals, goal) {
        context.note(format!("note: {note}"));
    }
    Ok(Exit::Fine)
}

fn precision_goal(args: &SampleSizeArgs) -> SampleSizeOptions {
    let choices = [
        (args.detect, SampleSizeAim::Detect),
        (args.decide, SampleSizeAim::Decide),
        (args.precision, SampleSizeAim::Precision),
    ];
    let chosen = choices.into_iter().find_map(|(size, aim)| Some((size?, aim)));
    let (size, aim) = chosen.unwrap_or((Ratio(0.01), SampleSizeAim::Precision));
    let iterations = args.iterations.map(|iterations| iterations as usize);
    SampleSizeOptions { size: size.0, aim, boot_cost: args.boot_cost, iterations }
}

/// Say how many boots, runs and iterations a wanted precision costs
#[derive(Debug, Args)]
#[command(after_long_help = PLAN)]
pub struct SampleSizeArgs {
    /// Earlier runs, whose noise is expected of the next ones
    #[arg(default_value = "@latest", value_name = "RUN")]
    pub runs: Vec<String>,
    /// From this machine's noise card instead: which design reaches the goal in the least time
    #[arg(long, conflicts_with_all = ["runs", "metric"])]
    pub noise_card: bool,
    /// Half the width of the interval you want
    #[arg(long, value_name = "PERCENT", conflicts_with_all = ["detect", "decide"], value_parser = parse_goal)]
    pub precision: Option<Ratio>,
    /// Find a real change of this size in 80 % of experiments
    #[arg(long, value_name = "PERCENT", conflicts_with = "decide", value_parser = parse_goal)]
    pub detect: Option<Ratio>,
    /// Reach a verdict, changed or the same within this margin, in 80 % of experiments
    #[arg(long, value_name = "PERCENT", value_parser = parse_goal)]
    pub decide: Option<Ratio>,
    /// The cost of a boot besides its iterations
    #[arg(long, default_value = "60s", value_name = "TIME")]
    pub boot_cost: Nanos,
    /// Iterations in each boot or run (default: the cheapest number, or that of the runs named)
    #[arg(long, value_name = "N", value_parser = parse_iterations)]
    pub iterations: Option<u32>,
    /// Only this metric (repeatable)
    #[arg(long, value_name = "NAME")]
    pub metric: Vec<String>,
}

impl Verb for SampleSizeArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        plan_sample_size(app, self)
    }
}

const PLAN: &str = "\
Runs that share a label, or are named together, are repetitions; runs with different boot ids are
different boots. Boots are planned if they repeat, else runs; from one run, only iterations of a
run in which both sides are levels of a factor: two runs, one per side, get no verdict.

Examples:
  perflab plan before --precision 1%
  perflab plan before --detect 2% --boot-cost 5min
  perflab plan --noise-card --detect 2%";

/// Measure this machine's noise: one variant under two labels
#[derive(Debug, Args)]
#[command(after_long_help = NOISE)]
pub struct NoiseArgs {
    /// A study file, or the name of a shipped study: its first levels are measured
    #[arg(default_value = "quickstart")]
    pub study: String,
    /// Iterations under each label
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = parse_iterations)]
    pub iterations: u32,
    /// Runs, one after the other: how much a run differs from the next
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,
    /// Measure both labels at one moment, each on half of the CPUs: whether `order = "duet"` pays
    #[arg(long)]
    pub duet: bool,
    /// Only this workload of the study
    #[arg(long, value_name = "WORKLOAD")]
    pub only: Option<String>,
    /// Seed of the random order
    #[arg(long)]
    pub seed: Option<u64>,
    /// Show the stored noise card, and measure nothing
    #[arg(long)]
    pub show: bool,
}

impl Verb for NoiseArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        measure_or_show_noise(app, self)
    }
}

const NOISE: &str = "\
Runs the same variant under two labels, interleaved. Nothing changes, so whatever differs is the
noise of this machine: the noise card holds how large it is, which changes can be found, and how
often the rules would raise a false alarm. Later comparisons on this machine use the card, and say
so when it is old.

Earlier noise runs of the same study on this machine count, too: several runs show how much a run
adds (--runs 5), runs of several boots how much a boot does. With --duet both labels run at one
moment, on two halves of the machine: the card then knows what such pairs differ by. Halves on which
a duet does not pay are refused with the figures. `perflab plan --noise-card` proposes designs from
the card, and `compare` widens the interval of two single runs by it.";
