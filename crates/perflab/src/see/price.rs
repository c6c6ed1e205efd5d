//! `perflab price`: what one more of something costs, as the slope over doses of it that take turns.

use std::ffi::OsString;

use clap::Args;
use perflab_analyze::price::{PriceList, check_doses, fewest_blocks, list_prices};
use perflab_analyze::{AnalysisOptions, CaseCondition, ComparisonSide};
use perflab_archive::RunDir;
use perflab_conduct::RunPermissions;
use perflab_model::study::{LevelCombinations, SlotOrder, Study};
use perflab_model::{Ratio, RunStatus, join_continued_runs};
use perflab_present::comparison::{Grid, GridColumn, OutputFormat};
use perflab_present::price::{PriceDocument, price_grid, price_rows_grid, price_schema, price_sentences};
use perflab_workload::find_delay_refusal;

use crate::app::App;
use crate::failure::{Exit, Failure, UsageError};
use crate::measure::run::{self, RunArgs};
use crate::measure::varied_factor::VariedFactor;
use crate::quantities::parse_confidence;
use crate::see::compare::CONFIDENCE;
use crate::selection::{self, parse_label};
use crate::verb::Verb;

/// Blocks where no number is given: six are the fewest for an interval of 95 %.
const BLOCKS: u32 = 12;

/// Prints the prices of a run, of one that is measured first where there is a command or a study.
pub fn print_prices(context: &App, args: &PriceArgs) -> Result<Exit, Failure> {
    if args.schema {
        context.print_text(&serde_json::to_string_pretty(&price_schema())?)?;
        return Ok(Exit::Fine);
    }
    if args.list {
        context.print_grid(&dose_grid())?;
        return Ok(Exit::Fine);
    }
    if args.command.is_empty() && args.study.is_none() {
        if let Some(option) = args.measuring_option() {
            let hint = "write a command behind `--`, or --study STUDY; without, a finished run is priced";
            return Err(UsageError::new(format!("`{option}` needs something to measure"), hint).into());
        }
        let archive = context.archive()?;
        let runs = selection::find_named_runs(&archive, &selection::named_runs_or_latest(&args.runs))?;
        print_run_prices(context, &runs, args)?;
        return Ok(Exit::Fine);
    }
    let (status, found) = measure_doses(context, args)?;
    let printed = print_run_prices(context, std::slice::from_ref(&found), args);
    context.note(format!("run: {} in {}", found.short_id(), context.archive_path().display()));
    // A run that was stopped, or failed, may lack doses.
    if status == RunStatus::Finished {
        printed?;
    }
    Ok(run::exit_of_run(context, status, &found))
}

/// Runs the command or the study under each dose, in turns.
fn measure_doses(context: &App, args: &PriceArgs) -> Result<(RunStatus, RunDir), Failure> {
    if args.dose.is_empty() && args.study.is_none() {
        let message = "a command without a dose has no price";
        let hint = "give one: --dose syscall:fsync=0us,20us,50us; `perflab price --list` has others";
        return Err(UsageError::new(message, hint).into());
    }
    let run_args = RunArgs {
        study: args.study.clone(),
        command: args.command.clone(),
        vary: args.dose.clone(),
        label: args.label.clone(),
        seed: args.seed,
        iterations: args.iterations.or(args.study.is_none().then_some(BLOCKS)),
        apply: args.apply,
        no_report: true,
        ..RunArgs::default()
    };
    run::undo_leftovers(context);
    let take_turns = |study: &mut Study| {
        study.run.order = SlotOrder::Randomised;
        study.run.combinations = LevelCombinations::OneAtATime;
    };
    let (manifest, catalogue) = match &args.study {
        Some(_) => run::prepare_manifest(context, &run_args, take_turns)?,
        None => {
            let source = run::command_run_study(&run_args)?;
            run::prepare_written_study(context, source, &run_args, take_turns)?
        }
    };
    let given: Vec<&str> = args.dose.iter().map(VariedFactor::name).collect();
    check_doses(&manifest.study, &given)?;
    // Each dose has a price in each metric that decides: one, of a command.
    let fewest = fewest_blocks(given.len(), args.confidence.0);
    if let Some(blocks) = args.iterations.filter(|blocks| (*blocks as usize) < fewest) {
        stderr_line!(
            "warning: with {blocks} blocks, no price of {} can be told from chance: it takes --iterations {fewest}",
            given.len()
        );
    }
    let permissions = RunPermissions { apply: args.apply, ..RunPermissions::default() };
    run::execute_manifest(context, &manifest, catalogue, &permissions)
}

/// The price list of such a run in several parts, after the last of them.
pub fn conclude_price_run(context: &App, parts: &[RunDir]) -> Result<(), Failure> {
    let records = parts.iter().map(RunDir::read_record).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<&str> = parts.iter().map(RunDir::short_id).collect();
    let side = ComparisonSide { name: names.join(", "), runs: join_continued_runs(records) };
    print_list(context, &list_prices(&side, &[], &AnalysisOptions::default())?)?;
    let last = parts.last().map_or("", RunDir::short_id);
    context.note(format!("run: {last} in {}", context.archive_path().display()));
    Ok(())
}

fn print_run_prices(context: &App, runs: &[RunDir], args: &PriceArgs) -> Result<(), Failure> {
    let names: Vec<&str> = runs.iter().map(RunDir::short_id).collect();
    let records = runs.iter().map(RunDir::read_record).collect::<Result<Vec<_>, _>>()?;
    let side = ComparisonSide { name: names.join(", "), runs: join_continued_runs(records) };
    let options = AnalysisOptions {
        confidence: args.confidence.0,
        metrics: args.metric.clone(),
        workloads: args.workload.clone(),
        conditions: args.conditions.clone(),
        ..AnalysisOptions::default()
    };
    let list = list_prices(&side, &args.by, &options)?;
    print_list(context, &list)
}

fn print_list(context: &App, list: &PriceList) -> Result<(), Failure> {
    match context.format {
        OutputFormat::Json => context.print_json(&PriceDocument::new(list)),
        OutputFormat::Csv => context.print_grid(&price_rows_grid(list)),
        _ => {
            let (before, after) = price_sentences(list);
            context.print_text(&format!("{before}\n"))?;
            context.print_grid(&price_grid(list))?;
            if !after.is_empty() {
                context.print_text("")?;
            }
            after.iter().try_for_each(|line| context.print_text(line))
        }
    }
}

/// Doses that are known by name, with what each needs, and whether it can be given here.
fn dose_grid() -> Grid {
    let columns = ["dose", "what it does", "needs", "here"].map(GridColumn::left);
    let syscalls = find_delay_refusal().map_or_else(|| "yes".to_owned(), |reason| format!("no: {reason}"));
    let rows = [
        [
            "syscall:NAME=0us,20us,50us",
            "each call of NAME by the workload and all that it starts begins so much later",
            "seccomp of Linux 5.5; no root, but then no setuid programs in the workload",
            &syscalls,
        ],
        [
            "setting:cpu-max=100%,75%,50%",
            "a quota of CPU time",
            "root, control groups",
            "see `perflab setting show cpu-max`",
        ],
        ["sysctl:NAME=1,2,3", "a number of the kernel", "root", "see `perflab setting list` for presets"],
        ["parameter:NAME=1,2,3", "a number in the command, or in a part of it: {NAME}", "nothing", "yes"],
        ["environment:NAME=1,2,3", "a variable that the command reads", "nothing", "yes"],
    ];
    Grid::with_rows(columns, rows.map(|row| row.map(Into::into).to_vec()).to_vec())
}

/// Measure what one more of a delay, or of any number, costs
#[derive(Debug, Clone, Args)]
#[command(after_long_help = PRICE)]
pub struct PriceArgs {
    /// A run that varied a number, or a label of several (default: @latest); nothing is measured then
    #[arg(value_name = "RUN", conflicts_with_all = ["command", "study"])]
    pub runs: Vec<String>,
    /// The command to measure under each dose; its time decides
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "study")]
    pub command: Vec<OsString>,
    /// The study to measure under each dose, in place of a command
    #[arg(long, value_name = "STUDY")]
    pub study: Option<String>,
    /// What to give more and more of, none of it or the least first (repeatable): syscall:fsync=0us,20us,50us,
    /// setting:cpu-max=100%,75%,50%, parameter:NAME=1,2,3. One is given at a time
    #[arg(long, value_name = "KIND:KEY=LEVELS")]
    pub dose: Vec<VariedFactor>,
    /// Blocks, each with every dose once (default: 12; of a study, as it says)
    #[arg(long, value_name = "N")]
    pub iterations: Option<u32>,
    /// A name for the run
    #[arg(long, value_parser = parse_label)]
    pub label: Option<String>,
    /// Seed of the random order
    #[arg(long)]
    pub seed: Option<u64>,
    /// Allow what destroys data: formatting the study's partition
    #[arg(long, conflicts_with = "command")]
    pub apply: bool,
    /// Only the prices of this factor (repeatable)
    #[arg(long, value_name = "FACTOR")]
    pub by: Vec<String>,
    /// The price in this metric, in which * stands for any text (default: those that decide; repeatable)
    #[arg(long, value_name = "NAME")]
    pub metric: Vec<String>,
    /// Only this workload, in which * stands for any text (repeatable)
    #[arg(long, value_name = "NAME")]
    pub workload: Vec<String>,
    /// Only cases with this level of a factor or value of a parameter (repeatable)
    #[arg(long = "where", value_name = "KEY=VALUE")]
    pub conditions: Vec<CaseCondition>,
    /// Confidence of the intervals
    #[arg(long, default_value_t = CONFIDENCE, value_name = "PERCENT", value_parser = parse_confidence)]
    pub confidence: Ratio,
    /// List the doses that there are, what each needs, and whether it can be given here
    #[arg(long, conflicts_with_all = ["runs", "command", "study", "dose"])]
    pub list: bool,
    /// Print the JSON Schema of `--format json`
    #[arg(long, conflicts_with_all = ["runs", "command", "study", "dose", "list"])]
    pub schema: bool,
}

impl PriceArgs {
    /// An option that says how to measure, if one was given.
    fn measuring_option(&self) -> Option<&'static str> {
        let given = [
            ("--dose", !self.dose.is_empty()),
            ("--iterations", self.iterations.is_some()),
            ("--label", self.label.is_some()),
            ("--seed", self.seed.is_some()),
            ("--apply", self.apply),
        ];
        given.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
    }
}

impl Verb for PriceArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        print_prices(app, self)
    }
}

const PRICE: &str = "\
Examples:
  perflab price --dose syscall:fsync=0us,100us,300us -- ./server-test
  perflab price --dose syscall:futex=0us,20us,50us --dose syscall:read=0us,20us,50us -- make -j2
  perflab price @latest                the list of a finished run again, whatever number it varied
  perflab price --list                 doses, what each needs, and whether it can be given here

A price is the slope of the metric over the doses, within blocks that hold every dose once, in
random order: `+0.8 % [0.6, 1.0]` for one more microsecond says what a microsecond less would be
worth. `none found: at most 0.05 %` says that nobody waits for it. One price too many is found in at
most 5 % of lists. Where threads queue, or caches are kept warm meanwhile, a line predicts nothing.";
