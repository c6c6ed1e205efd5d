//! `perflab queue`: studies that are run one after the other, whatever ends perflab or the machine in between.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, FromArgMatches as _, Subcommand};
use jiff::Timestamp;
use perflab_archive::{Archive, new_run_id};
use perflab_model::untrusted_text::escape_controls_in_line;
use perflab_model::{StopRequest, remove_control_characters};
use perflab_observe::{end_with_parent, spawn_child};
use perflab_present::comparison::{Grid, GridCell, GridColumn};
use perflab_workload::argv_element::quote_word;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use crate::app::{App, GlobalArgs, named_parser, print_result};
use crate::failure::{Exit, Failure, FailureContext as _, UsageError};
use crate::laboratory::job_queue::{InterruptedJob, JobQueue, JobQueueError, JobState, QueuedJob};
use crate::laboratory::queue_watch::{QueueWatchArgs, watch_tree};
use crate::measure::resume::{ResumeArgs, resume_run};
use crate::measure::run::{RunArgs, prepare_manifest, run_study, stop_on_interrupt};
use crate::verb::Verb;

/// How often a job that runs is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Of how many such looks one is whether it was cancelled.
const LOOKS_AT_JOBS: u32 = 5;

/// How often it is looked for another job.
const IDLE: Duration = Duration::from_secs(2);

/// Run studies one after the other, also across a reboot
#[derive(Debug, Args)]
#[command(after_long_help = QUEUE)]
pub struct QueueArgs {
    #[command(subcommand)]
    verb: QueueVerb,
}

const QUEUE: &str = "\
Examples:
  perflab queue add nightly.toml --label monday      a study, with options of `perflab run`
  perflab queue run --once                           all that wait, one after the other
  perflab queue list                                 which wait, run, have ended, and how
  perflab queue cancel 3                             the one that is job 3
  perflab queue watch ~/linux --study nightly.toml   what is new in a tree, whenever something is";

/// What there is to do with the queue.
#[derive(Debug, Subcommand)]
enum QueueVerb {
    /// Add a study, with options of `perflab run`, behind all others
    Add(QueueAddArgs),
    /// List the jobs
    List,
    /// Cancel jobs; one that runs is stopped, and what it measured is kept
    Cancel {
        /// Their numbers
        #[arg(required = true, value_name = "JOB")]
        jobs: Vec<u64>,
    },
    /// Test what is new in a tree: build, run a study, guard, bisect what stepped, report
    Watch(Box<QueueWatchArgs>),
    /// Carry jobs out, one after the other, as they come
    Run {
        /// End when none waits any more; exit with code 4 if one of them failed or was stopped
        #[arg(long)]
        once: bool,
    },
}

#[derive(Debug, Args)]
struct QueueAddArgs {
    /// What becomes of it if perflab or the machine ends while it runs
    #[arg(long, value_name = "WHAT", value_parser = named_parser::<InterruptedJob>(), default_value = "again")]
    if_interrupted: InterruptedJob,
    /// The study, and options of `perflab run` behind it
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "STUDY")]
    arguments: Vec<String>,
}

impl Verb for QueueArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        match &self.verb {
            QueueVerb::Add(args) => add_job(app, args),
            QueueVerb::List => list_jobs(app),
            QueueVerb::Cancel { jobs } => cancel_jobs(app, jobs),
            QueueVerb::Watch(args) => watch_tree(app, args),
            QueueVerb::Run { once } => run_jobs(app, *once),
        }
    }
}

/// Carry out a job of the queue, as long as who started it lives
#[derive(Debug, Args)]
pub struct QueuedRunArgs {
    /// Who started it
    #[arg(long)]
    parent: u32,
    /// The id of the run
    #[arg(long)]
    run_id: String,
    /// The run that it goes on with
    #[arg(long)]
    resumes: Option<String>,
    /// The study, and options of `perflab run` behind it
    #[arg(required = true, last = true)]
    arguments: Vec<String>,
}

impl Verb for QueuedRunArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        end_with_parent(self.parent).context("cannot tie its life to the queue's")?;
        let mut args = parse_run_args(&self.arguments)?;
        args.run_id = Some(self.run_id.clone());
        if self.resumes.is_none() {
            return run_study(app, &args);
        }
        let RunArgs { apply, wait, no_report, run_id, .. } = args;
        resume_run(
            app,
            &ResumeArgs { run: self.resumes.clone(), changed: false, apply, wait, no_report, run_id },
        )
    }
}

/// What clap makes of these words behind `perflab run`.
fn match_run_args(words: &[String]) -> Result<RunArgs, clap::Error> {
    let command = <RunArgs as Args>::augment_args(clap::Command::new("run").no_binary_name(true));
    RunArgs::from_arg_matches(&command.try_get_matches_from(words.iter().map(OsString::from))?)
}

/// The option that `perflab run` does not have, where `perflab queue add` has it.
fn misplaced_option(error: &clap::Error) -> Option<&str> {
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(option))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return None;
    };
    let own = QueueAddArgs::augment_args(GlobalArgs::augment_args(clap::Command::new("add")));
    let is_named = |argument: &clap::Arg| match option.strip_prefix("--") {
        Some(long) => argument.get_long() == Some(long),
        None => argument.get_short().is_some_and(|short| *option == format!("-{short}")),
    };
    own.get_arguments().any(is_named).then_some(option)
}

/// What `perflab run` makes of these words.
fn parse_run_args(words: &[String]) -> Result<RunArgs, UsageError> {
    let args = match_run_args(words).map_err(|error| {
        if let Some(option) = misplaced_option(&error) {
            let message = format!("`{option}` is an option of `perflab queue add`, not of its study");
            return UsageError::new(
                message,
                format!("write it before the study: `perflab queue add {option} ... STUDY`"),
            );
        }
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        let line = line.strip_prefix("error: ").unwrap_or(line);
        UsageError::new(line, "`perflab run --help` lists what goes behind the study")
    })?;
    match args.study {
        Some(_) => Ok(args),
        None => Err(UsageError::new("the queue runs studies", "name one: `perflab queue add STUDY`")),
    }
}

/// The queue; files in its folder that cannot be read are named, and left out.
fn open_queue() -> Result<JobQueue, JobQueueError> {
    let queue = JobQueue::open()?;
    for error in queue.find_unreadable_jobs()? {
        stderr_line!("warning: left out: {}", escape_controls_in_line(&error.to_string()));
    }
    Ok(queue)
}

fn add_job(context: &App, args: &QueueAddArgs) -> Result<Exit, Failure> {
    if match_run_args(&args.arguments).is_err_and(|error| error.kind() == ErrorKind::DisplayHelp) {
        let mut command = (context.command_line)();
        command.build();
        let help = command.find_subcommand_mut("run").map(|run| run.render_long_help().to_string());
        context.print_text(&help.unwrap_or_default())?;
        return Ok(Exit::Fine);
    }
    let run_args = parse_run_args(&args.arguments)?;
    // What would be refused then is refused now, while somebody looks.
    let (manifest, _) = prepare_manifest(context, &run_args, |_| ())?;
    if args.if_interrupted == InterruptedJob::Resume && manifest.study.run.until.is_some() {
        let message = "a study that ends when something is known (`until`) cannot be resumed";
        return Err(UsageError::new(
            message,
            "write `--if-interrupted again`, or give it a number of iterations",
        )
        .into());
    }
    let folder = std::env::current_dir().context("cannot find the current folder")?;
    let archive = std::path::absolute(context.archive_path())?;
    let workloads: std::io::Result<Vec<_>> = context.workloads.iter().map(std::path::absolute).collect();
    let workloads = workloads?;
    let id = open_queue()?.add(|id| QueuedJob {
        id,
        arguments: args.arguments.clone(),
        folder,
        archive,
        remote: context.remote.as_ref().map(ToString::to_string),
        workloads,
        if_interrupted: args.if_interrupted,
        state: JobState::Waiting,
        added: Timestamp::now().as_second(),
        began: None,
        ended: None,
        attempts: 0,
        run: None,
        resumes: None,
        exit_code: None,
        is_unwanted: false,
    })?;
    context.print_value("job", &id.to_string())?;
    Ok(Exit::Fine)
}

/// A job as it is listed.
#[derive(Debug, Serialize)]
struct ListedJob {
    #[serde(flatten)]
    job: QueuedJob,
    /// what its runs printed
    log: std::path::PathBuf,
}

/// The jobs as they are: nobody carries out what a killed perflab was at.
fn read_jobs(queue: &JobQueue) -> Result<Vec<QueuedJob>, JobQueueError> {
    let mut jobs = queue.jobs()?;
    if jobs.iter().any(|job| job.state == JobState::Running) && !queue.is_carried_out()? {
        // It may have ended meanwhile.
        jobs = queue.jobs()?;
        let running = jobs.iter_mut().filter(|job| job.state == JobState::Running);
        running.for_each(|job| (job.state, job.ended) = (JobState::Interrupted, last_sign(queue, job)));
    }
    Ok(jobs)
}

/// When a job that nobody carries out any more last wrote something; none where that is not known.
fn last_sign(queue: &JobQueue, job: &QueuedJob) -> Option<i64> {
    let log = queue.log_path(job.id).metadata().and_then(|log| log.modified()).ok();
    let run = Archive::open(&job.archive).ok().zip(job.run.as_deref());
    let journal = run.and_then(|(archive, id)| archive.last_journal_write(id));
    let times = [log, journal].into_iter().flatten();
    let seconds = times.filter_map(|time| Some(Timestamp::try_from(time).ok()?.as_second()));
    seconds.filter(|time| job.began.is_some_and(|began| *time >= began)).max()
}

/// Forgets the id of a run that never began, or has been removed.
fn forget_missing_run(job: &mut QueuedJob) {
    let is_there =
        |id: &String| Archive::open(&job.archive).is_ok_and(|archive| archive.run_path(id).is_dir());
    if !job.run.as_ref().is_some_and(is_there) {
        job.run = None;
    }
}

fn list_jobs(context: &App) -> Result<Exit, Failure> {
    let queue = open_queue()?;
    let mut jobs = read_jobs(&queue)?;
    jobs.iter_mut().for_each(forget_missing_run);
    let listed: Vec<ListedJob> =
        jobs.into_iter().map(|job| ListedJob { log: queue.log_path(job.id), job }).collect();
    print_result(context, &listed, || jobs_grid(&listed))?;
    Ok(Exit::Fine)
}

fn jobs_grid(listed: &[ListedJob]) -> Grid {
    let left = ["state", "study", "added", "took"].map(GridColumn::left);
    let right = ["attempts", "exit code"].map(GridColumn::right);
    let columns =
        [GridColumn::right("job")].into_iter().chain(left).chain(right).chain([GridColumn::left("run")]);
    let mut grid = Grid::new(columns);
    for ListedJob { job, .. } in listed {
        let words: Vec<String> = job.arguments.iter().map(|word| quote_word(word)).collect();
        let took = match (job.began, job.ended) {
            (Some(began), Some(ended)) if job.state != JobState::Running => {
                format!("{} s", (ended - began).max(0))
            }
            _ => String::new(),
        };
        let added = Timestamp::from_second(job.added).map(|at| at.strftime("%Y-%m-%d %H:%M UTC").to_string());
        grid.add_row([
            GridCell::from(job.id),
            job.state.word().into(),
            remove_control_characters(&words.join(" ")).as_str().into(),
            added.unwrap_or_default().as_str().into(),
            took.as_str().into(),
            GridCell::from(u64::from(job.attempts)),
            job.exit_code.map_or_else(|| "".into(), |code| code.to_string().as_str().into()),
            job.run.as_deref().unwrap_or_default().into(),
        ]);
    }
    grid
}

fn cancel_jobs(context: &App, ids: &[u64]) -> Result<Exit, Failure> {
    let queue = open_queue()?;
    let known = read_jobs(&queue)?;
    for id in ids {
        let job = known.iter().find(|job| job.id == *id).ok_or(JobQueueError::Unknown(*id))?;
        if job.state.is_over() && !will_run_again(job) {
            let message = format!("job {id} is {} already", job.state.word());
            return Err(UsageError::new(message, "`perflab queue list` shows which wait and run").into());
        }
    }
    let is_carried_out = queue.is_carried_out()?;
    queue.edit(|jobs| {
        for job in jobs.iter_mut().filter(|job| ids.contains(&job.id)) {
            match job.state {
                JobState::Running if is_carried_out => job.is_unwanted = true,
                JobState::Waiting | JobState::Running => job.state = JobState::Cancelled,
                JobState::Interrupted | JobState::Finished | JobState::Failed | JobState::Cancelled => {}
            }
        }
    })?;
    context.note(format!("cancelled: {}", ids.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")));
    Ok(Exit::Fine)
}

/// Whether the next who carries the queue out runs it, though it was interrupted.
fn will_run_again(job: &QueuedJob) -> bool {
    job.state == JobState::Interrupted && job.if_interrupted != InterruptedJob::Leave
}

fn run_jobs(context: &App, once: bool) -> Result<Exit, Failure> {
    let queue = open_queue()?;
    let _lock = queue.lock_runner()?;
    let stop = stop_on_interrupt()?;
    let interrupted = queue.edit(|jobs| {
        let running: Vec<&mut QueuedJob> =
            jobs.iter_mut().filter(|job| job.state == JobState::Running).collect();
        let note = |job: &mut QueuedJob| {
            job.interrupt(last_sign(&queue, job));
            (job.id, job.state)
        };
        running.into_iter().map(note).collect::<Vec<_>>()
    })?;
    for (id, state) in interrupted {
        let then = if state == JobState::Waiting { "its turn comes again" } else { "it is left as it is" };
        context.note(format!("job {id} was interrupted: perflab or the machine ended; {then}"));
    }
    let mut has_failed = false;
    while !stop.is_requested() {
        if !queue.jobs()?.iter().any(|job| job.state == JobState::Waiting) {
            if once {
                break;
            }
            stop.wait_for(IDLE);
            continue;
        }
        let Some(_turn) = queue.take_turn(&stop, |text| context.note(text))? else { break };
        let begun = queue.edit(|jobs| {
            let job = jobs.iter_mut().find(|job| job.state == JobState::Waiting)?;
            job.state = JobState::Running;
            (job.began, job.ended, job.exit_code) = (Some(Timestamp::now().as_second()), None, None);
            forget_missing_run(job);
            job.resumes = job.run.take().filter(|_| job.if_interrupted == InterruptedJob::Resume);
            (job.attempts, job.run) = (job.attempts + 1, Some(new_run_id()));
            Some(job.clone())
        })?;
        // Somebody may have cancelled it.
        let Some(job) = begun else { continue };
        let state = carry_out(context, &queue, &job, &stop)?;
        // One that was stopped waits again, or is left as it is.
        has_failed |= !matches!(state, JobState::Finished | JobState::Cancelled);
    }
    Ok(if has_failed && once { Exit::WORKLOAD_FAILED } else { Exit::Fine })
}

/// Runs a job to its end; what became of it.
fn carry_out(
    context: &App,
    queue: &JobQueue,
    job: &QueuedJob,
    stop: &StopRequest,
) -> Result<JobState, Failure> {
    let words: Vec<String> = job.arguments.iter().map(|word| quote_word(word)).collect();
    let resumed = job.resumes.as_ref().map_or_else(String::new, |run| format!(", from run {run} on"));
    context.note_line(&format!("job {}: perflab run {}{resumed}", job.id, words.join(" ")));
    let ended = start_job(queue, job).and_then(|child| await_job(queue, job, child, stop));
    let (status, is_stopped, problem) = match ended {
        Ok((status, is_stopped)) => (Some(status), is_stopped, None),
        Err(error) => (None, false, Some(error)),
    };
    let state = queue.edit(|jobs| {
        let job = jobs.iter_mut().find(|other| other.id == job.id)?;
        job.exit_code = status.and_then(|status| status.code());
        let now = Timestamp::now().as_second();
        job.ended = Some(now);
        let is_fine = status.is_some_and(|status| status.success());
        match (is_fine, job.is_unwanted, is_stopped) {
            (true, ..) => job.state = JobState::Finished,
            (false, true, _) => job.state = JobState::Cancelled,
            (false, false, true) => job.interrupt(Some(now)),
            (false, false, false) => job.state = JobState::Failed,
        }
        Some(job.state)
    })?;
    let state = state.unwrap_or(JobState::Cancelled);
    let what =
        if is_stopped && state == JobState::Waiting { "stopped; its turn comes again" } else { state.word() };
    let problem = problem.map(|error| format!(": it could not be started: {error}")).unwrap_or_default();
    context.note_line(&format!("job {}: {what}{problem}; {}", job.id, queue.log_path(job.id).display()));
    Ok(state)
}

/// A job as a process that ends with this one, and is asked to stop by this one alone.
fn start_job(queue: &JobQueue, job: &QueuedJob) -> std::io::Result<Child> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let log = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(flags)
        .open(queue.log_path(job.id))?;
    start_logged_job(job, &log).inspect_err(|error| {
        // It is said on stderr, too.
        let _ = writeln!(&log, "error: it could not be started: {error}");
    })
}

fn start_logged_job(job: &QueuedJob, log: &File) -> std::io::Result<Child> {
    let explain = |error: std::io::Error| {
        let folder = job.folder.display();
        let what = match error.kind() {
            std::io::ErrorKind::NotFound => "is gone".to_owned(),
            _ => format!("cannot be entered: {error}"),
        };
        std::io::Error::new(error.kind(), format!("the folder that it was added in, {folder}, {what}"))
    };
    job.folder.join(".").metadata().map_err(explain)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--archive").arg(job.remote.as_ref().map_or(job.archive.as_os_str(), OsStr::new));
    for folder in &job.workloads {
        command.arg("--workloads").arg(folder);
    }
    let run = job.run.as_deref().unwrap_or_default();
    command.args(["queued-run", "--parent", &std::process::id().to_string(), "--run-id", run]);
    if let Some(resumed) = &job.resumes {
        command.args(["--resumes", resumed]);
    }
    command.arg("--").args(&job.arguments).current_dir(&job.folder).process_group(0);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
    spawn_child(command)
}

/// Waits for a job; whether it was asked to stop because this process is to.
fn await_job(
    queue: &JobQueue,
    job: &QueuedJob,
    mut child: Child,
    stop: &StopRequest,
) -> std::io::Result<(ExitStatus, bool)> {
    let mut asked = None;
    let mut look = 0_u32;
    loop {
        look = look.wrapping_add(1);
        if let Some(status) = child.try_wait()? {
            return Ok((status, asked == Some(true)));
        }
        if asked.is_none() {
            // A queue that cannot be read is said when the job has ended.
            let is_unwanted = || {
                let jobs = queue.jobs().unwrap_or_default();
                jobs.iter().any(|other| other.id == job.id && other.is_unwanted)
            };
            let is_read = look.is_multiple_of(LOOKS_AT_JOBS);
            asked =
                if stop.is_requested() { Some(true) } else { (is_read && is_unwanted()).then_some(false) };
            if asked.is_some() {
                let _ = kill_process(Pid::from_child(&child), Signal::INT);
            }
        }
        std::thread::sleep(LOOK);
    }
}
