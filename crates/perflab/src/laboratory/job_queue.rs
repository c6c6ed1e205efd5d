//! The jobs of this user's queue: a folder with a file for each, and who carries them out.
//!
//! Every change of a job is a new file that takes the place of the old one, written to the disk before: whatever ends perflab or the
//! machine, each job is as it was before the change or after it.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use perflab_model::StopRequest;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::named::Named;
use perflab_observe::own_directories::{self, OwnFileAccess, create_own_directory, open_own_file};
use serde::{Deserialize, Serialize};

use crate::durable_file::replace_own_file;

/// The folder in that of the user's state.
const FOLDER: &str = "queue";

/// Held while the jobs are read and changed,
const EDIT_LOCK: &str = "edit.lock";

/// and while they are carried out.
const RUNNER_LOCK: &str = "runner.lock";

/// Held by whoever measures: a job of the queue, or a watch of a tree.
const TURN_LOCK: &str = "turn.lock";

/// How often the second is tried, and the time in between.
const TRIES: u32 = 5;

const PAUSE: Duration = Duration::from_millis(50);

/// How often it is looked whether nobody measures any more.
const TURN_PAUSE: Duration = Duration::from_secs(1);

/// Ended jobs that are kept; older ones make room for new ones.
const KEPT: usize = 200;

/// A job is a few lines.
const LARGEST_JOB: u64 = 1 << 20;

/// What becomes of a job that was interrupted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InterruptedJob {
    /// it is carried out again, from its beginning
    #[default]
    Again,
    /// what its run lacks is carried out
    Resume,
    /// it stays as it is
    Leave,
}

impl Named for InterruptedJob {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (InterruptedJob::Again, "again", "it is run again, from its beginning"),
        (InterruptedJob::Resume, "resume", "what its run lacks is run, as by `perflab resume`"),
        (InterruptedJob::Leave, "leave", "it stays as it is"),
    ];
}

/// Where a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// its turn has not come
    Waiting,
    /// it is being carried out
    Running,
    /// its run ended well
    Finished,
    /// its run failed, or could not begin
    Failed,
    /// perflab or the machine ended before its run
    Interrupted,
    /// somebody cancelled it
    Cancelled,
}

impl JobState {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            JobState::Waiting => "waiting",
            JobState::Running => "running",
            JobState::Finished => "finished",
            JobState::Failed => "failed",
            JobState::Interrupted => "interrupted",
            JobState::Cancelled => "cancelled",
        }
    }

    /// Whether nothing more happens to it.
    pub fn is_over(self) -> bool {
        !matches!(self, JobState::Waiting | JobState::Running)
    }
}

/// A study to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedJob {
    /// Its number, from 1.
    pub id: u64,
    /// What stands behind `perflab run`.
    pub arguments: Vec<String>,
    /// Where it was typed.
    pub folder: PathBuf,
    /// The archive that its runs go to.
    pub archive: PathBuf,
    /// Where in object storage the archive is, if `archive` is a copy.
    #[serde(default)]
    pub remote: Option<String>,
    /// Folders of definitions beside the shipped ones.
    pub workloads: Vec<PathBuf>,
    /// What becomes of it where it is interrupted.
    pub if_interrupted: InterruptedJob,
    /// Where it is.
    pub state: JobState,
    /// When it came, in seconds since 1970.
    pub added: i64,
    /// When it was last begun.
    pub began: Option<i64>,
    /// When that ended.
    pub ended: Option<i64>,
    /// How often it was begun.
    pub attempts: u32,
    /// The id of its last run.
    pub run: Option<String>,
    /// The id of the run that this one goes on with.
    #[serde(default)]
    pub resumes: Option<String>,
    /// How that ended; none where a signal ended it.
    pub exit_code: Option<i32>,
    /// Whether somebody wants it to end.
    pub is_unwanted: bool,
}

impl QueuedJob {
    /// Notes that its run was interrupted, and when, if that is known; it waits again where it is to.
    pub fn interrupt(&mut self, when: Option<i64>) {
        self.ended = when;
        self.state = match (self.is_unwanted, self.if_interrupted) {
            (true, _) => JobState::Cancelled,
            (false, InterruptedJob::Again | InterruptedJob::Resume) => JobState::Waiting,
            (false, InterruptedJob::Leave) => JobState::Interrupted,
        };
    }
}

/// Why the queue cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum JobQueueError {
    /// A file cannot be read or written.
    #[error("cannot {doing} {path}")]
    Io {
        /// read, write, lock
        doing: &'static str,
        /// the file
        path: PathBuf,
        /// why
        source: io::Error,
    },
    /// A file of a job is none.
    #[error("{path} is no job of this version's: {reason}; remove it, and add the job again")]
    Damaged {
        /// the file
        path: PathBuf,
        /// what is wrong
        reason: String,
    },
    /// Somebody carries it out already.
    #[error("the queue {0} is carried out by another perflab; `perflab queue list` shows what it is at")]
    InUse(PathBuf),
    /// There is no such job.
    #[error("there is no job {0}; `perflab queue list` lists them")]
    Unknown(u64),
}

impl Classify for JobQueueError {
    fn class(&self) -> ErrorClass {
        match self {
            JobQueueError::Io { source, .. } => source.class(),
            JobQueueError::Damaged { .. } | JobQueueError::InUse(_) => ErrorClass::Environment,
            JobQueueError::Unknown(_) => ErrorClass::Usage,
        }
    }
}

/// What the queue's folder holds.
#[derive(Debug, Default)]
struct StoredJobs {
    /// by their numbers
    jobs: Vec<QueuedJob>,
    /// the files that are no jobs, by their numbers
    unreadable: Vec<(u64, JobQueueError)>,
}

/// The queue of this user.
#[derive(Debug)]
pub struct JobQueue {
    path: PathBuf,
    folder: std::os::fd::OwnedFd,
}

/// Who has this carries the queue out.
#[derive(Debug)]
pub struct QueueRunnerLock(#[expect(dead_code, reason = "it is held")] File);

/// Who has this measures, and nobody else of the queue.
#[derive(Debug)]
pub struct QueueTurn(#[expect(dead_code, reason = "it is held")] File);

impl JobQueue {
    /// Opens it, made where there is none.
    pub fn open() -> Result<Self, JobQueueError> {
        let path = own_directories::state_directory().join(FOLDER);
        match create_own_directory(&path) {
            Ok(folder) => Ok(JobQueue { path, folder }),
            Err(source) => Err(JobQueueError::Io { doing: "open", path, source }),
        }
    }

    /// Where what a job's runs print goes.
    pub fn log_path(&self, id: u64) -> PathBuf {
        self.path.join(format!("{id}.log"))
    }

    fn io_error(&self, doing: &'static str, name: &str) -> impl Fn(io::Error) -> JobQueueError + use<> {
        let path = self.path.join(name);
        move |source| JobQueueError::Io { doing, path: path.clone(), source }
    }

    fn open_lock(&self, name: &str) -> Result<File, JobQueueError> {
        let open = |access| open_own_file(&self.folder, OsStr::new(name), access);
        let opened = match open(OwnFileAccess::New) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => open(OwnFileAccess::Append),
            opened => opened,
        };
        opened.map_err(self.io_error("open", name))
    }

    /// Has this process carry it out.
    ///
    /// # Errors
    /// Another one does.
    pub fn lock_runner(&self) -> Result<QueueRunnerLock, JobQueueError> {
        // Who only looks has the lock for a moment.
        for _ in 0..TRIES {
            match self.try_lock_runner() {
                Err(JobQueueError::InUse(_)) => std::thread::sleep(PAUSE),
                answer => return answer,
            }
        }
        self.try_lock_runner()
    }

    fn try_lock_runner(&self) -> Result<QueueRunnerLock, JobQueueError> {
        let file = self.open_lock(RUNNER_LOCK)?;
        match file.try_lock() {
            Ok(()) => Ok(QueueRunnerLock(file)),
            Err(TryLockError::WouldBlock) => Err(JobQueueError::InUse(self.path.clone())),
            Err(TryLockError::Error(error)) => Err(self.io_error("lock", RUNNER_LOCK)(error)),
        }
    }

    /// Has this process measure, once nobody else does; none where it is to stop before. `tell` hears whom it waits for.
    pub fn take_turn(
        &self,
        stop: &StopRequest,
        tell: impl FnOnce(&str),
    ) -> Result<Option<QueueTurn>, JobQueueError> {
        let mut tell = Some(tell);
        while !stop.is_requested() {
            if let Some(turn) = self.try_take_turn()? {
                return Ok(Some(turn));
            }
            if let Some(tell) = tell.take() {
                tell("waiting: a job of the queue, or a watch of a tree, is measured");
            }
            stop.wait_for(TURN_PAUSE);
        }
        Ok(None)
    }

    fn try_take_turn(&self) -> Result<Option<QueueTurn>, JobQueueError> {
        let file = self.open_lock(TURN_LOCK)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(QueueTurn(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(self.io_error("lock", TURN_LOCK)(error)),
        }
    }

    /// Whether somebody carries it out.
    pub fn is_carried_out(&self) -> Result<bool, JobQueueError> {
        match self.try_lock_runner() {
            Ok(_) => Ok(false),
            Err(JobQueueError::InUse(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Reads the jobs, by their numbers, has them changed, and writes those that were.
    pub fn edit<T>(&self, change: impl FnOnce(&mut Vec<QueuedJob>) -> T) -> Result<T, JobQueueError> {
        self.edit_stored(|stored| Ok(change(&mut stored.jobs)))
    }

    /// Adds the job that `make` makes of its number, behind all others; a file that cannot be read keeps its number.
    pub fn add(&self, make: impl FnOnce(u64) -> QueuedJob) -> Result<u64, JobQueueError> {
        self.edit_stored(|stored| {
            let taken = stored.jobs.iter().map(|job| job.id);
            let last = taken.chain(stored.unreadable.iter().map(|(id, _)| *id)).max().unwrap_or(0);
            let id = last.checked_add(1).ok_or_else(|| JobQueueError::Damaged {
                path: self.path.join(format!("{last}.json")),
                reason: "there is no number after its own".into(),
            })?;
            stored.jobs.push(make(id));
            Ok(id)
        })
    }

    /// The files that are no jobs, though their names say so: what is wrong with each.
    pub fn find_unreadable_jobs(&self) -> Result<Vec<JobQueueError>, JobQueueError> {
        self.edit_stored(|stored| Ok(stored.unreadable.drain(..).map(|(_, error)| error).collect()))
    }

    fn edit_stored<T>(
        &self,
        change: impl FnOnce(&mut StoredJobs) -> Result<T, JobQueueError>,
    ) -> Result<T, JobQueueError> {
        let lock = self.open_lock(EDIT_LOCK)?;
        lock.lock().map_err(self.io_error("lock", EDIT_LOCK))?;
        let mut stored = self.read_jobs()?;
        let before = stored.jobs.clone();
        let answer = change(&mut stored)?;
        let jobs = stored.jobs;
        for job in jobs.iter().filter(|job| !before.contains(job)) {
            self.write_job(job)?;
        }
        let over: Vec<u64> = jobs.iter().filter(|job| job.state.is_over()).map(|job| job.id).collect();
        for id in over.iter().take(over.len().saturating_sub(KEPT)) {
            let name = format!("{id}.json");
            std::fs::remove_file(self.path.join(&name)).map_err(self.io_error("remove", &name))?;
            // There is none of a job that never ran.
            let _ = std::fs::remove_file(self.log_path(*id));
        }
        Ok(answer)
    }

    /// The jobs, by their numbers.
    pub fn jobs(&self) -> Result<Vec<QueuedJob>, JobQueueError> {
        self.edit(|jobs| jobs.clone())
    }

    fn read_jobs(&self) -> Result<StoredJobs, JobQueueError> {
        let entries = std::fs::read_dir(&self.path).map_err(self.io_error("read", ""))?;
        let mut stored = StoredJobs::default();
        for entry in entries {
            let name = entry.map_err(self.io_error("read", ""))?.file_name();
            let name = name.to_string_lossy().into_owned();
            let id: Option<u64> = name.strip_suffix(".json").and_then(|number| number.parse().ok());
            let Some(id) = id else { continue };
            match self.read_job(id, &name) {
                Ok(job) => stored.jobs.push(job),
                Err(reason) => {
                    let error = JobQueueError::Damaged { path: self.path.join(&name), reason };
                    stored.unreadable.push((id, error));
                }
            }
        }
        stored.jobs.sort_by_key(|job| job.id);
        stored.unreadable.sort_by_key(|(id, _)| *id);
        Ok(stored)
    }

    /// A job, or what is wrong with its file.
    fn read_job(&self, id: u64, name: &str) -> Result<QueuedJob, String> {
        if name != format!("{id}.json") {
            return Err(format!("that of job {id} is called {id}.json"));
        }
        let opened = open_own_file(&self.folder, OsStr::new(name), OwnFileAccess::Read);
        let opened = opened.map_err(|error| match error.raw_os_error() {
            Some(number) if number == rustix::io::Errno::LOOP.raw_os_error() => {
                "it is a symbolic link".into()
            }
            _ => error.to_string(),
        })?;
        let mut text = Vec::new();
        opened.take(LARGEST_JOB + 1).read_to_end(&mut text).map_err(|error| error.to_string())?;
        if text.len() as u64 > LARGEST_JOB {
            return Err(format!("it is larger than {} MiB", LARGEST_JOB >> 20));
        }
        let job: QueuedJob = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        if job.id == id { Ok(job) } else { Err(format!("it is that of job {}", job.id)) }
    }

    fn write_job(&self, job: &QueuedJob) -> Result<(), JobQueueError> {
        let name = format!("{}.json", job.id);
        let text = serde_json::to_vec_pretty(job).map_err(io::Error::other);
        let written = text.and_then(|text| replace_own_file(&self.folder, &name, &text));
        written.map_err(self.io_error("write", &name))
    }
}
