//! `perflab bisect`: the commit that made a metric worse, measured until it is decided with a bounded error.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use perflab_analyze::bisection::{
    Bisection, BisectionCosts, BisectionOptions, BisectionPurpose, BisectionStep, MeasuredBlock,
};
use perflab_archive::RunDir;
use perflab_conduct::RunPermissions;
use perflab_conduct::execution_records::ExecutionRecord;
use perflab_model::error_class::ErrorClass;
use perflab_model::named::Named;
use perflab_model::study::TomlSource;
use perflab_model::{Direction, Nanos, Ratio, RunStatus, StopRequest};
use perflab_observe::own_directories;
use perflab_present::comparison::OutputFormat;
use perflab_present::count_text;

use crate::app::{App, named_parser};
use crate::failure::{Exit, Failure, FailureContext as _, UnexpectedError, UsageError};
use crate::measure::bisection::bisection_journal::{BisectionEntry, BisectionJournal, BisectionSubject};
use crate::measure::bisection::bisection_result::{BisectionParts, BisectionResult};
use crate::measure::bisection::commit_builds::{CommitBuild, CommitBuilder, CommitBuilds};
use crate::measure::bisection::commit_line::CommitLine;
use crate::measure::bisection::commit_runs::{BisectedMetric, CommitLevel, CommitStudy, LABEL};
use crate::measure::bisection::metric_scale::MetricScale;
use crate::measure::command_words::{command_words, escape_template, quote_toml};
use crate::measure::run::{self, RunArgs};
use crate::quantities::{parse_error, parse_margin};
use crate::study_source;
use crate::verb::Verb;

/// The folder of bisections below the state directory.
const STATE: &str = "bisect";

/// Blocks of the ends, at most, before good and bad count as equal.
const MOST_END_BLOCKS: usize = 60;

/// Why a commit was left out, in bytes.
const LONGEST_REASON: usize = 600;

/// What is assumed before anything was measured, in minutes.
const FIRST_COSTS: BisectionCosts = BisectionCosts { build: 0.5, boot: 0.05, step: 0.05 };

/// The chance that a bisection ends at a wrong commit, unless something else is asked for.
pub const BISECTION_ERROR: Ratio = Ratio(0.05);

/// The smallest difference of good and bad that is bisected, unless something else is asked for.
pub const BISECTION_MARGIN: Ratio = Ratio(0.01);

/// Find the commit that made a metric worse, with a bounded error
#[derive(Debug, Args)]
#[command(after_long_help = BISECT)]
pub struct BisectArgs {
    /// A commit, tag or branch at which the metric is good; an ancestor of the bad one
    #[arg(long, value_name = "REV")]
    pub good: String,
    /// A commit, tag or branch at which it is bad
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    pub bad: String,
    /// The git repository, or a folder in it; it is only read
    #[arg(long, value_name = "PATH", default_value = ".")]
    pub tree: PathBuf,
    /// The study that measures a commit, in whose folder $PERFLAB_TREE it is; of one case
    #[arg(long, required_unless_present = "command", conflicts_with = "command")]
    pub study: Option<String>,
    /// A command in place of a study, run in the commit's folder: its time is the metric
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// The metric (default: the first that decides)
    #[arg(long)]
    pub metric: Option<String>,
    /// Which way the metric is worse (default: as its workload says)
    #[arg(long, value_name = "WAY", value_parser = named_parser::<WorseWay>())]
    pub worse: Option<WorseWay>,
    /// What builds a commit, run by the shell in its folder
    #[arg(long, value_name = "COMMAND")]
    pub build: Option<String>,
    /// Bisect a kernel: the recipe that builds one of the tree (`linux-guest`, mine.toml); the study's guests boot it
    #[arg(long, value_name = "RECIPE", conflicts_with = "build")]
    pub kernel: Option<String>,
    /// How long a build by --build may take
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub build_limit: Nanos,
    /// The chance that the whole walk ends at a wrong commit, at most
    #[arg(long, value_name = "PERCENT", default_value_t = BISECTION_ERROR, value_parser = parse_error)]
    pub error: Ratio,
    /// Stop where good and bad differ by less, as far as their interval tells; what is named may be smaller
    #[arg(long, value_name = "PERCENT", default_value_t = BISECTION_MARGIN, value_parser = parse_margin)]
    pub margin: Ratio,
    /// Keep only these levels of a factor of the study (repeatable)
    #[arg(long, value_name = "FACTOR=LEVEL", value_delimiter = ',')]
    pub set: Vec<String>,
    /// Only this workload of the study
    #[arg(long, value_name = "WORKLOAD")]
    pub only: Option<String>,
    /// At most so many starts, or boots, of commits
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pub at_most: usize,
    /// Where builds and the journal are kept (default: a folder of its own below perflab's state)
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Forget what an earlier bisection of the same things has measured
    #[arg(long)]
    pub restart: bool,
}

const BISECT: &str = "\
Each step checks out, builds and measures the two to four commits that tell most per minute, side by
side in random order, until all but one commit are excluded. The chance that the right one is
excluded anywhere on the way is at most --error, whatever the noise is like, as long as one commit
made the change. Then the culprit is measured against its parent once more, for the size of the
change. Commits are those of the first-parent line; one that does not build or run is left out.

After a kill, ^C or a full disk, the same command goes on where it was. Exit code 0: a commit is
named. 7: none can be (good and bad are equal, or no single commit explains the change). What was
measured are runs of the archive, labelled bisect:GOOD..BAD.

Examples:
  perflab bisect --good v1.2 --build 'make -j2' -- ./bench 1000
  perflab bisect --good v1.2 --tree ~/src/zstd --build 'make -j2' --study zstd.toml --metric speed
  perflab bisect --good v6.4 --bad v6.5 --tree ~/linux --kernel linux-guest --study scheduler

In zstd.toml:
  title = \"zstd\"
  [workload.compress]
  command = \"$PERFLAB_TREE/zstd -b3 -i1 $PERFLAB_TREE/lib/libzstd.a\"";

/// Which way a metric is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorseWay {
    /// of a time
    Larger,
    /// of a throughput
    Smaller,
}

impl Named for WorseWay {
    const NAMES: &'static [(Self, &'static str, &'static str)] =
        &[(WorseWay::Larger, "larger", "time, faults"), (WorseWay::Smaller, "smaller", "throughput")];
}

impl Verb for BisectArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        bisect_commits(app, self)
    }
}

/// Walks until one commit is left, and says what was found.
pub fn bisect_commits(context: &App, args: &BisectArgs) -> Result<Exit, Failure> {
    let stop = run::stop_on_interrupt()?;
    let Some(result) = walk_commits(context, args, &stop)? else { return Ok(Exit::WORKLOAD_FAILED) };
    if context.format == OutputFormat::Json {
        context.print_json(&result)?;
    } else {
        context.print_text(&result.text())?;
    }
    let label = run_label(&result.good.short, &result.bad.short);
    context.note(format!("runs: label {label} in {}", context.archive_path().display()));
    Ok(result.exit())
}

/// Walks until one commit is left; none where it was stopped.
///
/// # Errors
/// There is no such line of commits, its ends cannot be built, nothing can be measured here.
pub fn walk_commits(
    context: &App,
    args: &BisectArgs,
    stop: &StopRequest,
) -> Result<Option<BisectionResult>, Failure> {
    run::undo_leftovers(context);
    let line = CommitLine::read(&args.tree, &args.good, &args.bad)?;
    note_line(context, &line);
    let study = commit_study(args, &line)?;
    let subject = bisection_subject(args, &line, &study);
    let folder = match &args.state {
        Some(folder) => folder.clone(),
        None => own_directories::state_directory().join(STATE).join(subject.digest()),
    };
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let folder =
        std::fs::canonicalize(&folder).with_context(|| format!("cannot find {}", folder.display()))?;
    let journal = BisectionJournal::open(&folder, &subject, args.restart)?;
    let builder = match &args.kernel {
        Some(recipe) => CommitBuilder::Kernel(recipe),
        None => CommitBuilder::Command(args.build.as_deref()),
    };
    let builds = CommitBuilds { folder: &folder, tree: &line.tree, builder, limit: args.build_limit };
    let options = BisectionOptions {
        error: args.error.0,
        // Known with the first values.
        margin: 0.0,
        costs: FIRST_COSTS,
        most_end_blocks: MOST_END_BLOCKS,
        most_boots: args.at_most,
    };
    let walk = Bisection::new(line.bad(), options)?;
    let mut walker =
        CommitWalker { context, args, line: &line, study, builds, journal, walk, metric: None, step: 0 };
    walker.replay()?;
    walker.study.plan(context, &walker.levels(&[0, line.bad()]), 1)?;
    let boot = perflab_observe::read_boot_id(&context.root);
    let _executions = ExecutionRecord::write(&own_directories::state_directory(), &boot).ok();
    let guard = run::start_execution_guard();
    let walked = walker.walk(stop);
    drop(guard);
    let Some(result) = walked? else {
        context.note(format!("stopped; the same command goes on from there (state: {})", folder.display()));
        return Ok(None);
    };
    // What was found is told, whatever its builds left.
    if let Err(failure) = walker.builds.remove_trees() {
        stderr_line!("warning: {failure}");
    }
    Ok(Some(result))
}

fn note_line(context: &App, line: &CommitLine) {
    context.note(format!(
        "{} from {} to {}",
        count_text(line.bad(), "commit"),
        line.name(0),
        line.name(line.bad())
    ));
    if let Some(good) = &line.good_beside {
        context.note(format!(
            "{good} is not on the first-parent line of the bad commit: measured is {}, where the line leaves it",
            line.name(0)
        ));
    }
    if line.is_dirty {
        stderr_line!(
            "warning: {} has changes that are not committed: commits are measured without them",
            line.tree.display()
        );
    }
}

/// The study, or the command as one.
fn commit_study(args: &BisectArgs, line: &CommitLine) -> Result<CommitStudy, Failure> {
    let source = match &args.study {
        Some(study) => study_source::find_study(study)?,
        None => TomlSource::new("bisect", command_study_text(&args.command, args.kernel.is_none())?),
    };
    let run_args = RunArgs {
        set: args.set.clone(),
        only: args.only.clone(),
        no_report: true,
        label: Some(run_label(&line.name(0), &line.name(line.bad()))),
        ..RunArgs::default()
    };
    CommitStudy::new(source, run_args, args.metric.clone(), args.kernel.is_some())
}

/// The label of runs between these two commits.
fn run_label(good: &str, bad: &str) -> String {
    format!("{LABEL}{good}..{bad}")
}

/// A command in the commit's folder, where it has one.
fn command_study_text(command: &[OsString], has_folder: bool) -> Result<String, UsageError> {
    let words = command_words(command)?;
    let line = match words.as_slice() {
        // As a shell's user would quote it.
        [text] if text.contains(char::is_whitespace) => text.clone(),
        words => {
            let quoted = shlex::try_join(words.iter().map(String::as_str));
            let quoted = quoted.map_err(|_| {
                UsageError::new("the command holds a NUL", "put it into a script, and name the script")
            })?;
            format!("exec {quoted}")
        }
    };
    let title = quote_toml(&format!("`{}`", words.join(" ")));
    let line = if has_folder { format!("cd \"$PERFLAB_TREE\" && {line}") } else { line };
    let command = quote_toml(&escape_template(&line));
    Ok(format!("title = {title}\n\n[workload.command]\ncommand = {command}\n"))
}

fn bisection_subject(args: &BisectArgs, line: &CommitLine, study: &CommitStudy) -> BisectionSubject {
    let tree = std::fs::canonicalize(&line.tree).unwrap_or_else(|_| line.tree.clone());
    let only = args.only.iter().map(|only| format!("only={only}"));
    let worse = args.worse.map(|worse| format!("worse={}", worse.name()));
    BisectionSubject {
        version: BisectionSubject::VERSION,
        tree,
        commits: line.commits.iter().map(|commit| commit.id.clone()).collect(),
        study: study.source.text.clone(),
        choices: args.set.iter().cloned().chain(only).chain(worse).collect(),
        metric: args.metric.clone(),
        build: args.build.clone().or_else(|| Some(format!("kernel {}", args.kernel.as_ref()?))),
        error: args.error.0,
        margin: args.margin.0,
    }
}

/// Builds and measures what the walk asks for.
struct CommitWalker<'a> {
    context: &'a App,
    args: &'a BisectArgs,
    line: &'a CommitLine,
    study: CommitStudy,
    builds: CommitBuilds<'a>,
    journal: BisectionJournal,
    walk: Bisection,
    /// The metric, and how its values are compared: known with the first ones.
    metric: Option<(BisectedMetric, MetricScale)>,
    step: usize,
}

impl CommitWalker<'_> {
    /// Takes over what was done before.
    fn replay(&mut self) -> Result<(), Failure> {
        let entries = self.journal.entries().to_vec();
        for entry in &entries {
            match entry {
                BisectionEntry::Began(_) => {}
                BisectionEntry::Built { commit, .. } => self.walk.mark_built(*commit),
                BisectionEntry::Skipped { commit, .. } => self.walk.skip(*commit),
                BisectionEntry::Measured { metric, commits, blocks, .. } => {
                    self.take_blocks(metric, commits, blocks)?;
                    self.step += 1;
                }
            }
        }
        self.walk.set_costs(self.costs());
        if self.step > 0 {
            self.context.note(format!("{} runs were made before; going on from there", self.step));
        }
        Ok(())
    }

    /// What things cost here, in minutes.
    fn costs(&self) -> BisectionCosts {
        let minutes =
            |seconds: Option<f64>, first: f64| seconds.map_or(first, |seconds| seconds / 60.0).max(1e-6);
        BisectionCosts {
            build: minutes(self.journal.build_seconds(), FIRST_COSTS.build),
            boot: minutes(self.journal.boot_seconds(), FIRST_COSTS.boot),
            step: minutes(self.journal.step_seconds(), FIRST_COSTS.step),
        }
    }

    fn levels(&self, commits: &[usize]) -> Vec<CommitLevel> {
        let level = |index: &usize| {
            let commit = self.line.get(*index)?;
            Some(CommitLevel { name: commit.short.clone(), value: self.builds.level_value(commit) })
        };
        commits.iter().filter_map(level).collect()
    }

    /// Until the end; none where it was stopped.
    fn walk(&mut self, stop: &StopRequest) -> Result<Option<BisectionResult>, Failure> {
        loop {
            let (commits, blocks, purpose) = match self.walk.next_step() {
                BisectionStep::Measure { commits, blocks, purpose } => (commits, blocks, purpose),
                BisectionStep::End(end) => {
                    let Some((metric, scale)) = &self.metric else {
                        return Err(UnexpectedError("a walk ended that measured nothing".into()).into());
                    };
                    let parts = BisectionParts {
                        line: self.line,
                        journal: &self.journal,
                        walk: &self.walk,
                        metric,
                        scale: *scale,
                        error: self.args.error.0,
                    };
                    return parts.conclude(&self.context.archive()?, &end).map(Some);
                }
            };
            let mut is_complete = true;
            for commit in &commits {
                match self.provide_commit(*commit, stop)? {
                    ProvidedCommit::Ready => {}
                    ProvidedCommit::Skipped => is_complete = false,
                    ProvidedCommit::Stopped => return Ok(None),
                }
            }
            if is_complete && !self.measure_step(&commits, blocks, purpose, stop)? {
                return Ok(None);
            }
        }
    }

    /// Builds a commit unless it is built.
    fn provide_commit(&mut self, index: usize, stop: &StopRequest) -> Result<ProvidedCommit, Failure> {
        let Some(commit) = self.line.get(index) else {
            return Err(UnexpectedError(format!("there is no commit number {index}")).into());
        };
        let is_built = self
            .journal
            .entries()
            .iter()
            .any(|entry| matches!(entry, BisectionEntry::Built { commit, .. } if *commit == index));
        if is_built && self.builds.is_there(commit) {
            return Ok(ProvidedCommit::Ready);
        }
        if self.args.build.is_some() || self.args.kernel.is_some() {
            self.context.note_line(&format!("building {} {}", commit.short, commit.subject));
        }
        match self.builds.build(self.context, commit, &stop.flag())? {
            CommitBuild::Built { seconds } => {
                self.journal.append(BisectionEntry::Built { commit: index, seconds })?;
                self.walk.mark_built(index);
                self.walk.set_costs(self.costs());
                Ok(ProvidedCommit::Ready)
            }
            CommitBuild::Failed { reason } => {
                self.skip_commit(index, reason)?;
                Ok(ProvidedCommit::Skipped)
            }
            CommitBuild::Full(error) => Err(error.into()),
            CommitBuild::Stopped => Ok(ProvidedCommit::Stopped),
        }
    }

    /// Leaves a commit out; the ends cannot be left out.
    fn skip_commit(&mut self, index: usize, reason: String) -> Result<(), Failure> {
        let name = self.line.name(index);
        // The last words of a console may be several lines.
        let mut reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        reason.truncate(reason.floor_char_boundary(LONGEST_REASON));
        if index == 0 || index == self.line.bad() {
            let which = if index == 0 { "good" } else { "bad" };
            let hint = format!("name another commit by --{which}, or mend what builds and runs it");
            return Err(UsageError::new(format!("the {which} commit {name} {reason}"), hint).into());
        }
        self.context.note_line(&format!("left out: {name} {reason}"));
        self.journal.append(BisectionEntry::Skipped { commit: index, reason })?;
        self.walk.skip(index);
        Ok(())
    }

    /// One run of these commits; false where it was stopped.
    fn measure_step(
        &mut self,
        commits: &[usize],
        blocks: usize,
        purpose: BisectionPurpose,
        stop: &StopRequest,
    ) -> Result<bool, Failure> {
        self.step += 1;
        self.note_step(commits, blocks, purpose);
        let levels = self.levels(commits);
        let found = match self.run_commits(&levels, blocks, stop) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(false),
            Err(error) if self.args.kernel.is_some() => return self.skip_unbootable(commits, error, stop),
            Err(error) => return Err(error),
        };
        let values = self.study.read_values(&found, &levels)?;
        if !values.failed.is_empty() {
            for (place, reason) in values.failed {
                if let Some(index) = commits.get(place) {
                    self.skip_commit(*index, format!("{reason} (run {})", found.short_id()))?;
                }
            }
            return Ok(true);
        }
        if values.blocks.is_empty() {
            let message = format!(
                "no block of run {} has a value of each of {}",
                found.short_id(),
                self.line.names(commits)
            );
            return Err(UsageError::new(
                message,
                "commits fail now and then: see `perflab show --iterations`",
            )
            .into());
        }
        self.journal.append(BisectionEntry::Measured {
            run: found.id().to_owned(),
            purpose,
            metric: values.metric.clone(),
            commits: commits.to_vec(),
            blocks: values.blocks.clone(),
            boot_seconds: values.boot_seconds,
            other_seconds: values.other_seconds,
        })?;
        self.walk.set_costs(self.costs());
        self.take_blocks(&values.metric, commits, &values.blocks)?;
        Ok(true)
    }

    /// A run of the study at these commits; none where it was stopped.
    fn run_commits(
        &self,
        levels: &[CommitLevel],
        blocks: usize,
        stop: &StopRequest,
    ) -> Result<Option<RunDir>, Failure> {
        let (manifest, catalogue) = self.study.plan(self.context, levels, blocks)?;
        let machine = run::local_machine(self.context, catalogue)?;
        let permissions = RunPermissions::default();
        let (status, found) = run::execute_study(self.context, &machine, &manifest, &permissions, stop)?;
        Ok((status != RunStatus::Stopped && !stop.is_requested()).then_some(found))
    }

    /// A run of kernels that failed as a whole: each is booted alone, and one that cannot be is left out. Where all can, the
    /// failure was none of theirs.
    fn skip_unbootable(
        &mut self,
        commits: &[usize],
        failure: Failure,
        stop: &StopRequest,
    ) -> Result<bool, Failure> {
        if stop.is_requested() {
            return Ok(false);
        }
        let mut is_any = false;
        for commit in commits {
            let level = self.levels(&[*commit]);
            self.context.note(format!("booting {} alone", self.line.name(*commit)));
            match self.run_commits(&level, 1, stop) {
                Ok(None) => return Ok(false),
                Ok(Some(_)) => {}
                Err(error) if error.exit() == Exit::Class(ErrorClass::Usage) => return Err(error),
                Err(error) => {
                    is_any = true;
                    self.skip_commit(*commit, format!("does not boot: {error}"))?;
                }
            }
        }
        if is_any { Ok(true) } else { Err(failure) }
    }

    /// Gives blocks to the walk; the first ones say how the metric is compared.
    fn take_blocks(
        &mut self,
        metric: &BisectedMetric,
        commits: &[usize],
        blocks: &[Vec<f64>],
    ) -> Result<(), Failure> {
        let scale = match &self.metric {
            Some((_, scale)) => *scale,
            None => {
                let good = self.good_direction(metric)?;
                let scale = MetricScale::of_values(blocks, good);
                let first: Vec<f64> = blocks.iter().filter_map(|block| block.first().copied()).collect();
                let level = perflab_stats::median(&first).unwrap_or(1.0);
                self.walk.set_margin(scale.margin(self.args.margin.0, level));
                self.metric = Some((metric.clone(), scale));
                scale
            }
        };
        let walked = |values: &Vec<f64>| -> Option<MeasuredBlock> {
            let values = values.iter().map(|value| scale.walked(*value)).collect::<Option<Vec<f64>>>()?;
            Some(MeasuredBlock { commits: commits.to_vec(), values })
        };
        let Some(walked) = blocks.iter().map(walked).collect::<Option<Vec<_>>>() else {
            let message =
                format!("{} was above zero, and is not in every run: its ratio means nothing", metric.name);
            return Err(UsageError::new(message, "choose another metric").into());
        };
        Ok(self.walk.observe(&walked)?)
    }

    fn good_direction(&self, metric: &BisectedMetric) -> Result<Direction, UsageError> {
        match (self.args.worse, metric.direction) {
            (Some(WorseWay::Larger), _) => Ok(Direction::Lower),
            (Some(WorseWay::Smaller), _) => Ok(Direction::Higher),
            (None, Direction::Neither) => Err(UsageError::new(
                format!("{} is neither better nor worse where it is larger", metric.name),
                "say what is worse: --worse larger, or --worse smaller",
            )),
            (None, direction) => Ok(direction),
        }
    }

    /// What comes now, what is left, and how long it still takes.
    fn note_step(&self, commits: &[usize], blocks: usize, purpose: BisectionPurpose) {
        let names = self.line.names(commits);
        let (ranges, _) = self.walk.open_ranges();
        let open: usize = ranges.iter().map(|range| range.last + 1 - range.first).sum();
        let candidates = self.walk.candidates();
        let probability = |range: &&perflab_analyze::bisection::BlameRange| {
            candidates.probability_between(range.parent(), range.last)
        };
        let likeliest = ranges.iter().max_by(|one, other| probability(one).total_cmp(&probability(other)));
        let likeliest = likeliest.map(|range| {
            format!(", {} with {:.0} %", self.line.name(range.last), 100.0 * probability(&range))
        });
        let what = match purpose {
            BisectionPurpose::Ends => "good and bad".into(),
            BisectionPurpose::Search => {
                format!("{open} of {} commits left{}", self.line.bad(), likeliest.unwrap_or_default())
            }
            BisectionPurpose::Confirmation => "the culprit against its parent".into(),
        };
        let left = self.walk.remaining_minutes().map(|minutes| match minutes {
            minutes if minutes < 1.0 => format!("; about {:.0} s left", (60.0 * minutes).max(1.0)),
            minutes => format!("; about {minutes:.0} min left"),
        });
        self.context.note(format!(
            "step {}: {what}{}: {names}, {blocks} times each",
            self.step,
            left.unwrap_or_default()
        ));
    }
}

/// What became of a commit that is to be measured.
enum ProvidedCommit {
    Ready,
    Skipped,
    Stopped,
}
