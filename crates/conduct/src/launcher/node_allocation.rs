//! The nodes of one Slurm job: asked for, waited for, and given back.
//!
//! A job of the run's own is held by `salloc`: it runs a shell that waits for the end of its standard input, so that the nodes are
//! given back as soon as perflab is gone, however it ended. Before they are asked for, the undo journal has a promise to cancel
//! the job by a name that no other has: the next start does so where salloc was killed, too. A perflab that was started in a job
//! uses the nodes of that one, and leaves it as it is.

use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use perflab_model::study::TargetSpec;
use perflab_model::{Nanos, StopRequest, describe_error_chain, remove_control_characters};
use perflab_settings::{UndoEntry, UndoJournal, run_stoppable_command};
use rustix::process::{Pid, Signal, kill_process};

use crate::launcher::process::{StderrTail, has_ended_within};

/// How long the nodes are waited for, where the study says nothing.
const WAIT: Duration = Duration::from_secs(300);

/// When it is first said that they are waited for.
const QUIET: Duration = Duration::from_secs(3);

const LOOK: Duration = Duration::from_millis(50);

/// How long salloc may take to give the nodes back, and to end once it is asked to.
const GRACE: Duration = Duration::from_secs(3);

/// What salloc runs on this host while it holds the nodes.
const HOLDER: &str = "echo \"$SLURM_JOB_ID\"; exec cat >/dev/null";

/// The job that this perflab was started in.
const OWN_JOB: &str = "SLURM_JOB_ID";

/// A node of the job, as Slurm describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllocatedNode {
    /// The job's number.
    pub(crate) job: String,
    pub(crate) name: String,
    /// Where the other nodes reach it.
    pub(crate) address: String,
    /// Its instruction set in the words of uname(1): `x86_64`.
    pub(crate) architecture: String,
    /// What a `constraint` may name; empty where the node has nothing of it.
    pub(crate) features: String,
}

impl AllocatedNode {
    /// Reads a line of `scontrol --oneliner show node`.
    fn parse(job: &str, line: &str) -> Option<Self> {
        let value = |key: &str| {
            let mut words = line.split_whitespace();
            words.find_map(|word| word.strip_prefix(key)).filter(|value| *value != "(null)")
        };
        let name = value("NodeName=")?;
        Some(AllocatedNode {
            job: job.into(),
            name: name.into(),
            address: value("NodeAddr=").unwrap_or(name).into(),
            architecture: value("Arch=").unwrap_or_default().into(),
            features: value("ActiveFeatures=").unwrap_or_default().into(),
        })
    }

    /// A command of Slurm's that is about the node's job, and about no other that this perflab may have been started in.
    pub(crate) fn job_command(&self, program: &str) -> Command {
        let mut command = slurm_command(program);
        command.arg(format!("--jobid={}", self.job));
        command
    }
}

/// A command of Slurm's that takes nothing from the job that this perflab may have been started in.
fn slurm_command(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let is_of_job = text.starts_with("SLURM_") && !["SLURM_CONF", "SLURM_JWT"].contains(&text.as_ref());
        if is_of_job {
            command.env_remove(&name);
        }
    }
    command.env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// The nodes of a job, given back when this is dropped, unless they were there before.
#[derive(Debug)]
pub(crate) struct NodeAllocation {
    pub(crate) nodes: Vec<AllocatedNode>,
    holder: Option<JobHolder>,
}

/// What a job is asked for with.
pub(crate) struct NodeRequest<'a> {
    /// The name under `[target]`, for messages.
    pub(crate) target: &'a str,
    pub(crate) spec: &'a TargetSpec,
    pub(crate) count: usize,
    /// The run's id.
    pub(crate) run: &'a str,
    pub(crate) journal: UndoJournal,
}

impl NodeAllocation {
    /// Takes the nodes of the job that this perflab was started in, or has Slurm start one and waits for it. `tell` hears what the
    /// user should know meanwhile, and what to do about it.
    ///
    /// # Errors
    /// Slurm is not there, refuses the request, or does not start the job in time; then nothing of it is left.
    pub(crate) fn obtain(
        request: NodeRequest<'_>,
        stop: &StopRequest,
        tell: &dyn Fn(String, String),
    ) -> io::Result<Self> {
        let own = std::env::var(OWN_JOB).ok().filter(|job| !job.is_empty());
        let count = request.count;
        let (holder, job) = match own {
            Some(job) => {
                warn_of_unused_keys(&request, &job, tell);
                (None, job)
            }
            None => {
                let (holder, job) = JobHolder::start(request, stop, tell)?;
                (Some(holder), job)
            }
        };
        let mut nodes = read_nodes(&job, stop)?;
        if nodes.len() < count {
            let have = nodes.len();
            return Err(io::Error::other(format!(
                "Slurm's job {job} has {have} of the {count} nodes that the study wants; set `count = {have}`, or start \
                 perflab outside of that job (`env -u {OWN_JOB} perflab ...`)"
            )));
        }
        nodes.truncate(count);
        Ok(NodeAllocation { nodes, holder })
    }

    /// Gives the nodes back; says what is not.
    pub(crate) fn give_back(mut self) -> Vec<String> {
        self.holder.take().map(|mut holder| holder.give_back()).unwrap_or_default()
    }
}

/// Keys that ask for something mean nothing in a job that is there.
fn warn_of_unused_keys(request: &NodeRequest<'_>, job: &str, tell: &dyn Fn(String, String)) {
    let NodeRequest { target, spec, .. } = request;
    let present = [
        ("partition", spec.partition.is_some()),
        ("constraint", spec.constraint.is_some()),
        ("exclusive", spec.exclusive.is_some()),
        ("time", spec.time.is_some()),
        ("account", spec.account.is_some()),
        ("reservation", spec.reservation.is_some()),
        ("options", !spec.options.is_empty()),
    ];
    let unused: Vec<String> = present
        .iter()
        .filter(|(_, present)| *present)
        .map(|(key, _)| format!("`target.{target}.{key}`"))
        .collect();
    if !unused.is_empty() {
        let keys = unused.join(", ");
        tell(
            format!(
                "perflab runs in Slurm's job {job} and uses its nodes as they are; {keys} asked for nothing"
            ),
            format!("start it outside of the job (`env -u {OWN_JOB} perflab ...`) to have one of its own"),
        );
    }
}

/// The nodes of a job that runs.
fn read_nodes(job: &str, stop: &StopRequest) -> io::Result<Vec<AllocatedNode>> {
    let list = run_slurm(slurm_command("squeue").args(["--noheader", "--format=%N", "--jobs", job]), stop)?;
    let list = list.trim();
    if list.is_empty() {
        return Err(io::Error::other(format!("Slurm's job {job} has no nodes: it has ended, or waits")));
    }
    let text = run_slurm(slurm_command("scontrol").args(["--oneliner", "show", "node", list]), stop)?;
    Ok(text.lines().filter_map(|line| AllocatedNode::parse(job, line)).collect())
}

/// What a command of Slurm's printed.
fn run_slurm(command: &mut Command, stop: &StopRequest) -> io::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output =
        run_stoppable_command(command, stop).map_err(|error| explain_missing_slurm(&program, error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(io::Error::other(format!("{program}: {}", slurm_complaint(&String::from_utf8_lossy(&output.stderr)))))
}

/// Names the package of a program of Slurm's that is not there.
pub(crate) fn explain_missing_slurm(program: &str, error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => io::Error::other(format!(
            "{program} is not installed (Debian: apt-get install slurm-client); a study over Slurm's nodes is started where jobs \
             are submitted"
        )),
        _ => error,
    }
}

/// What a command of Slurm's complained of, on one line: `salloc: error: ` is left out.
pub(crate) fn slurm_complaint(stderr: &str) -> String {
    let text = remove_control_characters(stderr);
    let errors: Vec<&str> =
        text.lines().filter_map(|line| line.split_once(" error: ")).map(|(_, what)| what).collect();
    match errors.as_slice() {
        [] => text
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("it said nothing")
            .trim()
            .to_owned(),
        errors => errors.join("; "),
    }
}

/// A salloc that holds the run's job, and the promise that it is given back.
#[derive(Debug)]
struct JobHolder {
    /// The job's name: only this run's job is called so.
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    stderr: StderrTail,
    /// With the number of the promise; none once it is kept.
    journal: Option<(UndoJournal, u32)>,
    /// Whether Slurm has started the job.
    started: bool,
}

impl JobHolder {
    /// Has Slurm start the job; gives its number once it has.
    fn start(
        request: NodeRequest<'_>,
        stop: &StopRequest,
        tell: &dyn Fn(String, String),
    ) -> io::Result<(Self, String)> {
        let NodeRequest { target, spec, count, run, mut journal } = request;
        let name = format!("perflab-{run}");
        // A program that is missing leaves no promise.
        run_slurm(slurm_command("salloc").arg("--version"), stop)?;
        let argv = vec!["scancel".to_owned(), format!("--name={name}")];
        let undo = UndoEntry::Run { factor: format!("the nodes of Slurm's job {name}"), argv };
        let number = journal.promise(undo).map_err(io::Error::other)?;
        let mut command = salloc_command(spec, count, &name);
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) => {
                journal.mark_undone(number).and_then(|()| journal.close()).map_err(io::Error::other)?;
                return Err(explain_missing_slurm("salloc", error));
            }
        };
        let (stdin, stderr) = (child.stdin.take(), StderrTail::of_child(&mut child));
        let job = listen_for_job(&mut child)?;
        // From here on it ends with this value.
        let journal = Some((journal, number));
        let mut holder = JobHolder { name, child, stdin, stderr, journal, started: false };
        let job = holder.await_job(&job, target, spec, stop, tell)?;
        holder.started = true;
        Ok((holder, job))
    }

    /// Waits until salloc names its job.
    fn await_job(
        &mut self,
        job: &Receiver<String>,
        target: &str,
        spec: &TargetSpec,
        stop: &StopRequest,
        tell: &dyn Fn(String, String),
    ) -> io::Result<String> {
        let within = spec.wait.map_or(WAIT, |wait| Duration::from(wait.0));
        let limit = Nanos::from(within);
        let (begun, mut is_told) = (Instant::now(), false);
        loop {
            match job.recv_timeout(LOOK) {
                Ok(job) => return Ok(job),
                Err(RecvTimeoutError::Disconnected) => return Err(self.refusal(spec, stop)),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if stop.is_requested() {
                return Err(io::Error::other("stopped before Slurm had started the job"));
            }
            if begun.elapsed() > within {
                let reason = self.pending_reason(stop);
                return Err(io::Error::other(format!(
                    "Slurm did not start the job within {limit}: {reason}; ask for what is free (`sinfo`), or wait longer \
                     (`target.{target}.wait`)"
                )));
            }
            if !is_told && begun.elapsed() > QUIET {
                is_told = true;
                tell(
                    format!("Slurm has not started the job yet: {}", self.pending_reason(stop)),
                    format!("its nodes are waited for up to {limit} (`target.{target}.wait`)"),
                );
            }
        }
    }

    /// Why the job does not start, as Slurm knows it.
    fn pending_reason(&self, stop: &StopRequest) -> String {
        let name = format!("--name={}", self.name);
        let asked = run_slurm(slurm_command("squeue").args(["--noheader", "--format=%r", &name]), stop);
        let reason = asked.unwrap_or_else(|error| error.to_string());
        let reason = remove_control_characters(reason.trim());
        if reason.is_empty() || reason == "None" { "Slurm gives no reason".into() } else { reason }
    }

    /// Why salloc ended before there was a job.
    fn refusal(&mut self, spec: &TargetSpec, stop: &StopRequest) -> io::Error {
        let _ = self.child.wait();
        let stderr = self.stderr.text();
        let complaint = slurm_complaint(&stderr);
        let wrong_partition = stderr.to_ascii_lowercase().contains("invalid partition");
        let hint = match (&spec.partition, wrong_partition) {
            (Some(_), true) => {
                match run_slurm(slurm_command("sinfo").args(["--noheader", "--format=%R"]), stop) {
                    Ok(there) => {
                        format!("; there are {}", there.split_whitespace().collect::<Vec<_>>().join(", "))
                    }
                    Err(_) => String::new(),
                }
            }
            _ => String::new(),
        };
        io::Error::other(format!("Slurm refuses the job: {complaint}{hint}"))
    }

    /// Gives the nodes back; says what is not.
    fn give_back(&mut self) -> Vec<String> {
        let Some((mut journal, number)) = self.journal.take() else { return Vec::new() };
        // The end of its input ends the job, and a signal the wait for one.
        self.stdin = None;
        let patience = if self.started { GRACE } else { Duration::ZERO };
        if !has_ended_within(&mut self.child, patience) {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            if !has_ended_within(&mut self.child, GRACE) {
                let _ = self.child.kill();
                has_ended_within(&mut self.child, GRACE);
            }
        }
        let undone = journal.undo(number).and_then(|()| journal.close());
        undone.err().map(|error| describe_error_chain(&error)).into_iter().collect()
    }
}

impl Drop for JobHolder {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// In a process group of its own: a ^C at the terminal is perflab's to pass on.
fn salloc_command(spec: &TargetSpec, count: usize, name: &str) -> Command {
    let mut command = Command::new("salloc");
    command.args([format!("--job-name={name}"), format!("--nodes={count}"), "--wait-all-nodes=1".into()]);
    // Whether the others go on without a node that fails is for the study to say.
    command.arg("--no-kill");
    let texts = [
        ("partition", &spec.partition),
        ("constraint", &spec.constraint),
        ("account", &spec.account),
        ("reservation", &spec.reservation),
    ];
    for (key, text) in texts {
        command.args(text.as_ref().map(|text| format!("--{key}={text}")));
    }
    if spec.exclusive.unwrap_or(true) {
        command.arg("--exclusive");
    }
    if let Some(time) = spec.time {
        command.arg(format!("--time={}", Duration::from(time.0).as_secs().div_ceil(60)));
    }
    command.args(&spec.options).args(["sh", "-c", HOLDER]);
    command.env("LC_ALL", "C").process_group(0);
    command
}

/// Hears the first line that salloc's shell prints; the channel closes with its output.
fn listen_for_job(child: &mut Child) -> io::Result<Receiver<String>> {
    let stdout = child.stdout.take().ok_or_else(|| io::Error::other("a requested pipe is missing"))?;
    let (sender, job) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        if BufReader::new(stdout).read_line(&mut line).is_ok() && !line.trim().is_empty() {
            let _ = sender.send(line.trim().to_owned());
        }
    });
    Ok(job)
}

#[cfg(test)]
mod tests {
    use perflab_model::study::TargetKind;

    use super::*;

    #[test]
    fn a_node_is_what_slurm_prints_of_it() {
        let line = "NodeName=n1 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 AvailableFeatures=epyc,nvme ActiveFeatures=epyc Gres=(null) \
                    NodeAddr=10.0.0.7 NodeHostName=vm OS=Linux 6.1.0 #1 SMP Arch=odd State=IDLE";
        let node = AllocatedNode::parse("7", line).unwrap();
        assert_eq!((node.name.as_str(), node.address.as_str()), ("n1", "10.0.0.7"));
        assert_eq!((node.architecture.as_str(), node.features.as_str()), ("x86_64", "epyc"));
        let bare = AllocatedNode::parse("7", "NodeName=n2 ActiveFeatures=(null) NodeAddr=(null)").unwrap();
        assert_eq!(
            (bare.address.as_str(), bare.architecture.as_str(), bare.features.as_str()),
            ("n2", "", "")
        );
        assert_eq!(AllocatedNode::parse("7", "Node n9 not found"), None);
    }

    #[test]
    fn a_request_has_what_the_study_says() {
        let time = serde_json::from_str("\"90s\"").unwrap();
        let spec = TargetSpec {
            partition: Some("night".into()),
            time: Some(time),
            options: vec!["--gres=gpu:1".into()],
            ..TargetSpec::new(TargetKind::Slurm)
        };
        let words: Vec<String> = salloc_command(&spec, 4, "perflab-x")
            .get_args()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let expected = [
            "--job-name=perflab-x",
            "--nodes=4",
            "--wait-all-nodes=1",
            "--no-kill",
            "--partition=night",
            "--exclusive",
            "--time=2",
            "--gres=gpu:1",
            "sh",
            "-c",
            HOLDER,
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn a_complaint_is_what_slurm_calls_an_error() {
        let said = "salloc: error: invalid partition specified: nope\nsalloc: error: Job submit/allocate failed: Invalid\n";
        assert_eq!(
            slurm_complaint(said),
            "invalid partition specified: nope; Job submit/allocate failed: Invalid"
        );
        assert_eq!(slurm_complaint("salloc: Pending\nsalloc: revoked\n\n"), "salloc: revoked");
        assert_eq!(slurm_complaint(""), "it said nothing");
    }
}
