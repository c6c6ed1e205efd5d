//! Verbs that perflab starts itnot people: the agent inside a target, an emulated disk, guards.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use clap::Args;
use perflab_conduct::launcher::{SshDestination, call_host, return_machine, serve_host_hold};
use perflab_conduct::{Connection, LocalMachine, agent};
use perflab_guest::KernelIdentity;
use perflab_model::Nanos;
use perflab_model::study::DiskModel;
use perflab_observe::Root;
use perflab_workload::Catalogue;

use crate::app::App;
use crate::failure::{Exit, Failure, FailureContext as _, UsageError};
use crate::verb::Verb;

/// Serves one host and ends.
pub fn run_agent(args: &AgentArgs) -> Result<Exit, Failure> {
    let channel = match (&args.device, &args.connect, &args.call) {
        (Some(path), ..) => device_channel(path)?,
        (None, Some(address), _) => tcp_channel(address)?,
        (None, None, Some(address)) => match call_host(address).context("cannot call the host")? {
            Some(stream) => Connection::duplex("host", stream)?,
            None => stdio_channel()?,
        },
        (None, None, None) => stdio_channel()?,
    };
    // Whoever ends processes (a job that is cancelled) ends it as its host does: with its settings put back.
    let end = crate::signals::open_stop_signals()?;
    agent::serve_agent(channel, args.device.is_some(), Some(end), agent_target()?)?;
    Ok(Exit::Fine)
}

/// The agent that a guest's first process starts, on this device or calling this address.
pub fn run_guest_agent(place: &str) -> Exit {
    let is_device = place.starts_with('/');
    let channel = if is_device { device_channel(Path::new(place)) } else { tcp_channel(place) };
    let served =
        channel.and_then(|channel| Ok(agent::serve_agent(channel, is_device, None, agent_target()?)?));
    match served {
        Ok(()) => Exit::Fine,
        Err(failure) => {
            failure.print();
            failure.exit()
        }
    }
}

/// This machine. Which workloads there are comes with the run.
fn agent_target() -> Result<LocalMachine, Failure> {
    let perflab = std::env::current_exe().context("cannot find perflab's own binary")?;
    Ok(LocalMachine {
        root: Root::host(),
        state: perflab_observe::own_directories::state_directory(),
        perflab,
        catalogue: Catalogue::default(),
        runs_as_typed: false,
        quiet_after: None,
        traces: Default::default(),
        monitors: Default::default(),
        counters: Default::default(),
        events: Default::default(),
    })
}

fn stdio_channel() -> Result<Connection, Failure> {
    let reading = std::io::stdin().as_fd().try_clone_to_owned()?;
    let writing = std::io::stdout().as_fd().try_clone_to_owned()?;
    Ok(Connection::new("host", reading, writing))
}

fn device_channel(path: &Path) -> Result<Connection, Failure> {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    let opened = opened.with_context(|| format!("cannot open {}", path.display()))?;
    Ok(Connection::duplex("host", opened)?)
}

fn tcp_channel(address: &str) -> Result<Connection, Failure> {
    if let Some(address) = address.strip_prefix("vsock:") {
        let stream = perflab_guest::connect_vsock(address);
        return Ok(Connection::duplex(
            "host",
            stream.with_context(|| format!("cannot connect to vsock {address}"))?,
        )?);
    }
    let Some(address) = address.strip_prefix("tcp:") else {
        let hint = "write tcp:HOST:PORT or vsock:CID:PORT";
        return Err(UsageError::new(format!("`{address}` is not the address of a host"), hint).into());
    };
    let stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
    // Frames are small and awaited: none may wait for company.
    stream.set_nodelay(true)?;
    Ok(Connection::duplex("host", stream)?)
}

/// Serves until the file system is unmounted, or the run that it serves is killed.
pub fn run_disk_server(args: &DiskServerArgs) -> Result<Exit, Failure> {
    let DiskServerArgs { model, image, place, parent } = args;
    perflab_observe::end_with_parent(*parent).context("cannot tie its life to the run that it serves")?;
    let served = perflab_disk::serve_disk(image, *model, place);
    served.with_context(|| format!("cannot serve {} in {}", image.display(), place.display()))?;
    Ok(Exit::Fine)
}

/// Run a built-in load (what the catalogue's own workloads call)
#[derive(Debug, Args)]
#[command(after_help = "\
Loads: context-switches, drv_rand_ops, huge-faults, map-churn, memory-bandwidth, memory-sweep,
memory-use, net, page-faults, processes, reclaim-latency, scaling, semaphores, small-files,
truncate, unmap, wakeups;
`perflab load NAME --help` lists the options of one.")]
pub struct BuiltInLoadArgs {
    /// The load's name and its options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub arguments: Vec<OsString>,
}

impl Verb for BuiltInLoadArgs {
    fn run(&self, _app: &App) -> Result<Exit, Failure> {
        Ok(Exit::Program(perflab_workload::run_load(&self.arguments)))
    }
}

/// Serve an image with the delays of another disk, until it is unmounted
#[derive(Debug, Args)]
pub struct DiskServerArgs {
    /// The disk whose delays are emulated
    #[arg(long, value_name = "NAME")]
    pub model: DiskModel,
    /// What it holds
    #[arg(long, value_name = "FILE")]
    pub image: PathBuf,
    /// Where the served file appears: an existing folder
    #[arg(long, value_name = "DIR")]
    pub place: PathBuf,
    /// The process with which it ends
    #[arg(long, value_name = "PID")]
    pub parent: u32,
}

impl Verb for DiskServerArgs {
    fn run(&self, _app: &App) -> Result<Exit, Failure> {
        run_disk_server(self)
    }
}

fn parse_executor(text: &str) -> Result<perflab_workload::ExecutionOwner, &'static str> {
    perflab_workload::ExecutionOwner::parse(text).ok_or("it is no executor")
}

/// End what a perflab was running when it is killed
#[derive(Debug, Args)]
pub struct ExecutionGuardArgs {
    /// Whose executions, as their marks name it
    #[arg(value_parser = parse_executor)]
    pub executor: perflab_workload::ExecutionOwner,
}

impl Verb for ExecutionGuardArgs {
    fn run(&self, _app: &App) -> Result<Exit, Failure> {
        perflab_workload::guard_executions(&self.executor);
        Ok(Exit::Fine)
    }
}

/// Have a machine that was booted into another kernel return to its own
#[derive(Debug, Args)]
pub struct ReturnMachineArgs {
    /// The machine, as ssh names it
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    pub address: String,
    /// An option of ssh's configuration, KEYWORD=VALUE (repeatable)
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub ssh_option: Vec<String>,
    /// The build id of its own kernel, in hexadecimal; empty where it has none
    #[arg(long, value_name = "ID", value_parser = parse_build_id_text)]
    pub build_id: BuildId,
    /// The release of its own kernel
    #[arg(long, value_name = "RELEASE", allow_hyphen_values = true)]
    pub release: String,
    /// The version of its own kernel
    #[arg(long, value_name = "VERSION", allow_hyphen_values = true)]
    pub kernel_version: String,
    /// What its own kernel was booted with
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    pub command_line: String,
    /// How long it may take to answer, and to boot
    #[arg(long, value_name = "TIME", default_value = "270s")]
    pub within: Nanos,
}

/// A build id as bytes.
#[derive(Debug, Clone)]
pub struct BuildId(Vec<u8>);

fn parse_build_id_text(text: &str) -> Result<BuildId, &'static str> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
    bytes.map(BuildId).ok_or("it is no build id")
}

impl Verb for ReturnMachineArgs {
    fn run(&self, _app: &App) -> Result<Exit, Failure> {
        let own = KernelIdentity {
            build_id: self.build_id.0.clone(),
            release: self.release.clone(),
            version: self.kernel_version.clone(),
        };
        let machine = SshDestination { address: self.address.clone(), options: self.ssh_option.clone() };
        let returned = return_machine(&machine, &own, &self.command_line, self.within.into());
        returned.with_context(|| format!("{} did not return to its own kernel", self.address))?;
        Ok(Exit::Fine)
    }
}

/// Hold this machine for a study of a perflab elsewhere, as long as its stream lasts
#[derive(Debug, Args)]
pub struct HoldHostArgs {}

impl Verb for HoldHostArgs {
    fn run(&self, _app: &App) -> Result<Exit, Failure> {
        serve_host_hold().context("cannot speak to the host")?;
        Ok(Exit::Fine)
    }
}

/// Take orders from a perflab elsewhere, over standard input and output by default
#[derive(Debug, Args)]
pub struct AgentArgs {
    /// Speak over this character device: a virtio-serial port
    #[arg(long, value_name = "PATH")]
    pub device: Option<PathBuf>,
    /// Speak over a connection to this address: tcp:HOST:PORT, vsock:CID:PORT
    #[arg(long, value_name = "ADDRESS", conflicts_with = "device")]
    pub connect: Option<String>,
    /// Call this address, HOST:PORT, with the secret that the first line of standard input is, and say on standard output whether that
    /// went well: if not, speak over these
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["device", "connect"])]
    pub call: Option<String>,
}

impl Verb for AgentArgs {
    fn run(&self, _app: &App) -> Result<Exit, Failure> {
        run_agent(self)
    }
}
