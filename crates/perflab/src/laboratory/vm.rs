//! Guests booted by hand: `perflab vm boot`, `list`, `shell`, `stop`, and the hidden verbs by which guests are started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use perflab_guest::BootOptions;
use perflab_guest::{
    AcceleratorRequest, Guest, GuestDebug, GuestDisk, GuestError, GuestMachine, GuestNumaNode,
    GuestRootSource, boot_guest,
};
use perflab_guest::{GuestCommand, GuestWork};
use perflab_model::StopRequest;
use perflab_model::study::{PortForward, qemu_option_problem};
use perflab_model::{Bytes, Nanos};
use perflab_observe::own_directories;
use perflab_present::comparison::{Grid, GridCell, GridColumn};
use perflab_settings::TemporaryFolder;

use crate::app::{App, named_parser};
use crate::failure::{Exit, Failure, FailureContext as _, UsageError};
use crate::verb::Verb;

/// Does what was asked for. The exit code is a guest's command's, where there is one.
pub fn run_vm_verb(context: &App, args: &VmArgs) -> Result<Exit, Failure> {
    match &args.verb {
        VmVerb::Boot(args) => boot_described_guest(context, args),
        VmVerb::List => print_guests(context),
        VmVerb::Shell { guest } => open_guest_shell(context, guest),
        VmVerb::Stop { guest } => {
            let note = perflab_guest::find_guest(guest)?;
            perflab_guest::stop_guest(&note)?;
            context.note(format!("{} is gone", note.id));
            Ok(Exit::Fine)
        }
    }
}

/// `perflab launch`: only its failure comes back.
pub fn launch_program(args: &LaunchArgs) -> Exit {
    let manner = perflab_observe::ChildOptions { read_only: args.read_only, stays: args.stays };
    let error = perflab_observe::exec_child(args.parent, manner, &args.argv);
    stderr_line!("error: cannot start {}: {error}", args.argv.first().cloned().unwrap_or_default().display());
    Exit::UNEXPECTED
}

/// `perflab terminal`: only its failure comes back.
pub fn open_terminal(args: &TerminalArgs) -> Exit {
    let error = perflab_guest::exec_on_terminal(&args.device, &args.argv);
    stderr_line!("error: no terminal at {}: {error}", args.device.display());
    Exit::UNEXPECTED
}

fn print_guests(context: &App) -> Result<Exit, Failure> {
    let columns = ["guest", "kernel", "cpus", "memory", "runs by", "pid", "console"];
    let mut grid = Grid::new(columns.map(GridColumn::left));
    let all = perflab_guest::list_guests()?;
    if all.is_empty() {
        context.note("no guest is running; `perflab vm boot --stay` starts one that stays");
    }
    for note in all {
        let row = [
            note.id.clone(),
            note.kernel.clone(),
            note.cpus.to_string(),
            note.memory.to_string(),
            note.accelerator.to_string(),
            note.pid.to_string(),
            note.console.display().to_string(),
        ];
        grid.add_row(row.map(|text| GridCell::from(text.as_str())));
    }
    context.print_grid(&grid)?;
    Ok(Exit::Fine)
}

fn open_guest_shell(context: &App, guest: &str) -> Result<Exit, Failure> {
    let note = perflab_guest::find_guest(guest)?;
    let stream = perflab_guest::connect_shell(&note)?;
    context.note(format!("{}: a shell in the guest; ^] leaves it", note.id));
    crate::laboratory::guest_terminal::attach_console(stream)?;
    Ok(Exit::Fine)
}

fn boot_described_guest(context: &App, args: &BootArgs) -> Result<Exit, Failure> {
    // A guest whose root is this host's has its programs; what a disk or a folder of its own holds is known there.
    if args.root == "host" {
        crate::measure::command_words::check_command_exists(&args.command)?;
    }
    let mut machine = machine_from_args(args)?;
    let logs = GuestLogs::new(context, args)?;
    if args.debug {
        machine.debug = Some(debug_files(&machine.name, logs.path())?);
        note_debugger(context, &machine);
    }
    let work = guest_work(args, &machine);
    let stop = crate::measure::run::stop_on_interrupt()?;
    let perflab = std::env::current_exe()?;
    let around = BootOptions { perflab: &perflab, logs: logs.path(), work, stays: args.stay, stop: &stop };
    note_machine(context, &machine)?;
    if matches!(machine.root, GuestRootSource::Host) && uses_host_tmp(args) {
        context.note("the guest has a /tmp of its own: files in the host's /tmp are not there");
    }
    let begun = std::time::Instant::now();
    let guest = match boot_guest(&machine, &around) {
        Ok(guest) => guest,
        // QEMU may hear ^C first, which is no crash.
        Err(_) if stop.is_requested() => return Err(GuestError::Stopped { name: machine.name }.into()),
        Err(error) => {
            let dump = machine.debug.as_ref().filter(|debug| debug.dump.exists());
            dump.into_iter().for_each(|debug| note_crash_dump(context, &debug.dump, &machine.kernel.image));
            logs.keep_if_useful(context);
            return Err(error.into());
        }
    };
    context.note(format!("{} is ready after {}", guest.name(), Nanos::from(begun.elapsed())));
    run_in_guest(context, args, guest, &stop, logs)
}

fn run_in_guest(
    context: &App,
    args: &BootArgs,
    mut guest: Guest,
    stop: &StopRequest,
    logs: GuestLogs,
) -> Result<Exit, Failure> {
    if args.stay {
        let note = guest.leave_running(logs.keep_if_useful(context))?;
        context.print_value("guest", &note.id)?;
        context.note(format!(
            "`perflab vm shell {0}` opens a shell in it, `perflab vm stop {0}` ends it",
            note.id
        ));
        return Ok(Exit::Fine);
    }
    if args.command.is_empty() {
        context.note("the guest ends with the shell, or with ^]");
        crate::laboratory::guest_terminal::attach_console(std::os::unix::net::UnixStream::connect(
            guest.shell_socket(),
        )?)?;
        if let Some(dump) = guest.finish_crash_dump()? {
            note_crash_dump(context, &dump, &guest.record().image);
            logs.keep_if_useful(context);
        }
        return Ok(Exit::Fine);
    }
    let ended = crate::laboratory::guest_terminal::pass_through_streams(&guest, stop);
    if ended.is_err() && !stop.is_requested() {
        if let Some(dump) = guest.finish_crash_dump()? {
            note_crash_dump(context, &dump, &guest.record().image);
        }
        logs.keep_if_useful(context);
    }
    ended
}

/// Says where the memory of a guest is that panicked, and how to look into it.
fn note_crash_dump(context: &App, dump: &Path, image: &Path) {
    let symbols = kernel_symbols_file(image).map_or(String::new(), |path| format!(" {}", path.display()));
    context.note(format!("the guest's memory is in {0}: `gdb{symbols} -c {0}`", dump.display()));
}

/// A socket's path has room for so many bytes.
const LONGEST_SOCKET_PATH: usize = 107;

/// Where the debugger of a guest finds it. A dump of an earlier guest of the name is not written over.
fn debug_files(name: &str, logs: &Path) -> Result<GuestDebug, UsageError> {
    let logs = std::path::absolute(logs).unwrap_or_else(|_| logs.to_owned());
    let stub = logs.join(format!("{name}.gdb"));
    if stub.as_os_str().len() > LONGEST_SOCKET_PATH {
        let message = format!("{} is too long for the path of a socket", stub.display());
        return Err(UsageError::new(message, "keep the logs in a shorter folder: --logs /tmp/guest"));
    }
    let free = |number: u32| {
        let number = if number == 0 { String::new() } else { format!(".{number}") };
        logs.join(format!("{name}{number}.core"))
    };
    let dump = (0..).map(free).find(|path| !path.exists()).unwrap_or_else(|| free(0));
    Ok(GuestDebug { stub, dump })
}

/// The unstripped kernel of a recipe that was built, beside its image.
fn kernel_symbols_file(image: &Path) -> Option<PathBuf> {
    Some(image.with_file_name("vmlinux")).filter(|path| path.is_file())
}

fn note_debugger(context: &App, machine: &GuestMachine) {
    let Some(debug) = &machine.debug else { return };
    context.note(
        "the kernel's addresses are not randomised (nokaslr), and it may take as long to boot as it likes",
    );
    let symbols = kernel_symbols_file(&machine.kernel.image);
    let has_symbols = symbols.is_some();
    let symbols = symbols.map_or(String::new(), |path| format!(" {}", path.display()));
    context.note(format!("gdb{symbols} -ex 'target remote {}'", debug.stub.display()));
    if !has_symbols {
        context.note("no `vmlinux` is beside its image: gdb knows its symbols only with one, as `perflab kernel build` keeps it");
    }
}

/// Whether the command is given something of the host's /tmp, or starts there.
fn uses_host_tmp(args: &BootArgs) -> bool {
    let here = std::env::current_dir().unwrap_or_default();
    let inside = |path: &Path| path.starts_with("/tmp") && path.exists();
    inside(&here) || args.command.iter().any(|word| inside(Path::new(word)))
}

fn note_machine(context: &App, machine: &GuestMachine) -> Result<(), GuestError> {
    let chosen = machine.accelerator.choose()?;
    context.note(format!(
        "{} boots {} with {} ({})",
        machine.name, machine.kernel.release, chosen.accelerator, chosen.because
    ));
    Ok(())
}

fn guest_work(args: &BootArgs, machine: &GuestMachine) -> GuestWork {
    let variable = |name: &str| std::env::var(name).ok().map(|value| (name.to_owned(), value));
    let mut environment: Vec<(String, String)> =
        ["PATH", "TERM", "LANG"].into_iter().filter_map(variable).collect();
    environment.push(("HOME".into(), "/root".into()));
    let directory = std::env::current_dir().unwrap_or_default();
    let bare = matches!(machine.root, GuestRootSource::Bare { .. });
    if matches!(machine.root, GuestRootSource::Host) {
        // What this host's perflabs promise to put back is theirs, although the guest sees their journals.
        environment.push(("PERFLAB_STATE".into(), "/run/perflab/state".into()));
    }
    if args.command.is_empty() {
        let shell = if bare { "sh" } else { "bash" };
        let shell = std::env::var("SHELL").ok().filter(|_| !bare).unwrap_or_else(|| shell.into());
        let command = GuestCommand { argv: vec![shell], directory, environment };
        return if args.stay { GuestWork::Shells(command) } else { GuestWork::Shell(command) };
    }
    GuestWork::Command(GuestCommand { argv: args.command.clone(), directory, environment })
}

/// Where logs go: where the user asked, else a temporary folder that stays only where it is of use.
enum GuestLogs {
    Given(PathBuf),
    Temporary(TemporaryFolder),
}

impl GuestLogs {
    fn new(context: &App, args: &BootArgs) -> Result<GuestLogs, Failure> {
        if let Some(path) = &args.logs {
            return Ok(GuestLogs::Given(path.clone()));
        }
        let boot = perflab_observe::read_boot_id(&context.root);
        let folder = TemporaryFolder::create(&own_directories::state_directory(), &boot);
        Ok(GuestLogs::Temporary(folder.context("cannot make a folder for the console's log")?))
    }

    fn path(&self) -> &Path {
        match self {
            GuestLogs::Given(path) => path,
            GuestLogs::Temporary(folder) => folder.path(),
        }
    }

    /// Keeps a temporary folder, unless nothing is in it, and says where it is.
    fn keep_if_useful(self, context: &App) -> Option<PathBuf> {
        let GuestLogs::Temporary(folder) = self else { return None };
        let has_something = |path: &Path| path.read_dir().is_ok_and(|mut entries| entries.next().is_some());
        if !has_something(folder.path()) {
            return None;
        }
        let path = folder.keep();
        context.note(format!("the guest's logs are in {}", path.display()));
        Some(path)
    }
}

/// The machine that the user describes.
pub fn machine_from_args(args: &BootArgs) -> Result<GuestMachine, Failure> {
    if let Some(modules) = args.modules.as_deref().filter(|modules| !modules.is_dir()) {
        let message = format!("there is no folder {} for --modules", modules.display());
        return Err(UsageError::new(message, "name the folder that holds `kernel/` and `modules.dep`").into());
    }
    let kernel = perflab_guest::find_kernel(&args.kernel, args.modules.as_deref())?;
    let name = match &args.name {
        Some(name) => check_guest_name(name)?,
        None => guest_name_of_kernel(&args.kernel),
    };
    let nodes = args.node.clone();
    let mut machine = GuestMachine::new(name, kernel);
    machine.cpus = if nodes.is_empty() { args.cpus } else { nodes.iter().map(|node| node.cpus).sum() };
    machine.memory =
        if nodes.is_empty() { args.memory } else { Bytes(nodes.iter().map(|node| node.memory.0).sum()) };
    machine.nodes = nodes;
    machine.load = args.load.clone();
    machine.append = args.append.clone();
    if let Some((message, hint)) = qemu_option_problem(&args.qemu_option) {
        return Err(UsageError::new(message, hint).into());
    }
    machine.qemu_options = args.qemu_option.clone();
    machine.root = parse_root(args)?;
    machine.accelerator = args.accelerator;
    machine.model = args.cpu_model.clone();
    machine.boot_within = args.boot_within;
    machine.pin = args.pin.clone();
    machine.huge_pages = args.huge_pages;
    machine.disks = args.disk.iter().map(|text| parse_disk(text)).collect::<Result<Vec<_>, _>>()?;
    machine.disk_queues = args.disk_queues;
    machine.iothreads = args.iothreads;
    machine.network.host = args.network || !args.forward.is_empty();
    machine.network.forward = args.forward.clone();
    Ok(machine)
}

/// A recipe's name, or the file's: `bzImage`. It becomes a host name and part of sockets' names.
fn guest_name_of_kernel(kernel: &str) -> String {
    let base =
        Path::new(kernel).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    base.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).take(24).collect()
}

/// The longest name: it is part of sockets' paths, which have to be short.
const LONGEST_NAME: usize = 40;

/// A guest's name as the user gave it: a word of QEMU's lists, a host name, and part of paths.
fn check_guest_name(name: &str) -> Result<String, UsageError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.starts_with('-') || name.len() > LONGEST_NAME || !name.chars().all(plain) {
        return Err(UsageError::new(
            format!("`{name}` cannot be a guest's name"),
            format!("write letters, digits, `-` and `_`, at most {LONGEST_NAME}"),
        ));
    }
    Ok(name.to_owned())
}

fn parse_root(args: &BootArgs) -> Result<GuestRootSource, GuestError> {
    let command = args.command.first().cloned().unwrap_or_else(|| "sh".into());
    let programs: Vec<String> = [command].into_iter().chain(args.with.iter().cloned()).collect();
    GuestRootSource::parse(&args.root, &programs)
}

/// `2:1GiB:0`
fn parse_node(text: &str) -> Result<GuestNumaNode, &'static str> {
    let wrong = || "write CPUS:MEMORY or CPUS:MEMORY:HOST-NODE, as 2:1GiB:0";
    let mut parts = text.split(':');
    let cpus = parts.next().and_then(|cpus| cpus.parse().ok()).ok_or_else(wrong)?;
    let memory = parts.next().and_then(|size| Bytes::parse(size).ok()).ok_or_else(wrong)?;
    let host = parts.next().map(|host| host.parse().map_err(|_| wrong())).transpose()?;
    Ok(GuestNumaNode { cpus, memory, host })
}

const CACHES: &[&str] = &["none", "writeback", "writethrough", "directsync", "unsafe"];

/// `scratch.qcow2:none`
fn parse_disk(text: &str) -> Result<GuestDisk, UsageError> {
    let (path, cache) = match text.rsplit_once(':') {
        Some((path, cache)) if CACHES.contains(&cache) => (path, cache),
        _ => (text, "writeback"),
    };
    if !Path::new(path).is_file() {
        let hint = format!("write IMAGE or IMAGE:CACHE, with one of {}", CACHES.join(", "));
        return Err(UsageError::new(format!("there is no disk image {path}"), hint));
    }
    Ok(GuestDisk { cache: cache.into(), ..GuestDisk::discarding_changes(path) })
}

/// Boot virtual machines: run anything under another kernel
#[derive(Debug, Args)]
pub struct VmArgs {
    #[command(subcommand)]
    pub verb: VmVerb,
}

impl Verb for VmArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        run_vm_verb(app, self)
    }
}

/// The verbs of guests.
#[derive(Debug, Subcommand)]
pub enum VmVerb {
    /// Boot a kernel, and run a command or a shell in it
    #[command(after_long_help = BOOT)]
    Boot(Box<BootArgs>),
    /// List the running guests
    List,
    /// Open a shell in a running guest
    Shell {
        /// The guest, by its id or the beginning of it
        guest: String,
    },
    /// Stop a guest at once; what it wrote is lost
    Stop {
        /// The guest, by its id or the beginning of it
        guest: String,
    },
}

const BOOT: &str = "\
The command's output, input and exit code are passed through. By default the guest's root is this
host's, read-only, with an overlay in the guest's memory: every program of this host runs there,
and nothing that it writes stays.

  perflab kernel fetch debian-cloud                      a kernel, once
  perflab vm boot -- uname -r                            the kernel's release
  perflab vm boot --kernel arch/x86/boot/bzImage -- dmesg    the kernel that you just built
  perflab vm boot --cpus 4 --memory 2GiB --append mitigations=off -- hackbench -g 8
  perflab vm boot --root bare --with sh -- echo hi       no root: the program and its libraries
  perflab vm boot --root debian.qcow2:1 -- /bin/true     the first partition of an image
  perflab vm boot                                        a shell
  perflab vm boot --stay; perflab vm shell debian-cloud  a guest that stays until `perflab vm stop`
  perflab vm boot --network -- curl -I http://10.0.2.2/  the guest reaches this host by a network
  perflab vm boot --debug -- sh -c 'echo c >/proc/sysrq-trigger'  a core file for gdb

Exit code: the command's, 128 + N where signal N killed it; perflab's own errors are on stderr,
with exit code 3 (something is missing) or 1.";

/// `perflab vm boot`
#[derive(Debug, Args)]
pub struct BootArgs {
    /// A kernel image (bzImage, vmlinuz), or a recipe's name (`perflab kernel list`)
    #[arg(long, default_value = "debian-cloud")]
    pub kernel: String,
    /// The kernel's modules, if they are not beside the image
    #[arg(long, value_name = "DIR")]
    pub modules: Option<PathBuf>,
    /// A further module to load, with its dependencies (repeatable)
    #[arg(long, value_name = "MODULE")]
    pub load: Vec<String>,
    /// Words for the kernel's command line (repeatable)
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    pub append: Vec<String>,
    /// One further argument for QEMU (repeatable): --qemu-option=-device --qemu-option=virtio-balloon
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub qemu_option: Vec<String>,
    /// The guest's root: `host`, `bare`, a folder that holds a system, `debootstrap:RELEASE` where a run has made it, or a disk image (IMAGE or
    /// IMAGE:PARTITION)
    #[arg(long, default_value = "host")]
    pub root: String,
    /// With `--root bare`: further programs of this host to pack (repeatable)
    #[arg(long, value_name = "PROGRAM")]
    pub with: Vec<String>,
    /// The guest's name
    #[arg(long)]
    pub name: Option<String>,
    /// Virtual processors
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=512))]
    pub cpus: u32,
    /// Memory
    #[arg(long, default_value = "512MiB", value_name = "SIZE")]
    pub memory: Bytes,
    /// KVM where it really runs code, else TCG; or one of them
    #[arg(long, value_name = "NAME", value_parser = named_parser::<AcceleratorRequest>(), default_value = "best")]
    pub accelerator: AcceleratorRequest,
    /// The processor model, as QEMU names it (default: the host's with KVM, all features with TCG)
    #[arg(long, value_name = "MODEL")]
    pub cpu_model: Option<String>,
    /// The time limit of each of two attempts to boot (default: by accelerator and host load)
    #[arg(long, value_name = "TIME")]
    pub boot_within: Option<Nanos>,
    /// Pin the virtual processors to these host CPUs, in order: 0,1,4
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    pub pin: Vec<u32>,
    /// A NUMA node as CPUS:MEMORY[:HOST-NODE] (may be repeated; replaces --cpus and --memory)
    #[arg(long, value_name = "NODE", value_parser = parse_node)]
    pub node: Vec<GuestNumaNode>,
    /// Back the memory with huge pages of this size: 2MiB, 1GiB
    #[arg(long, value_name = "SIZE")]
    pub huge_pages: Option<Bytes>,
    /// A further disk, IMAGE[:CACHE-MODE]; its changes are discarded (repeatable)
    #[arg(long, value_name = "DISK")]
    pub disk: Vec<String>,
    /// Request queues of each disk (default: one a processor)
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub disk_queues: Option<u32>,
    /// Threads of QEMU that serve the disks, each disk by one of them in turn
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=64))]
    pub iothreads: u32,
    /// A network card to this host (10.0.2.2 in the guest) and whatever it reaches
    #[arg(long)]
    pub network: bool,
    /// Let this port of 127.0.0.1 lead to the guest's, as 2222:22 (repeatable)
    #[arg(long, value_name = "HOST:GUEST")]
    pub forward: Vec<PortForward>,
    /// A stub for gdb, no address randomisation, and a core file if the kernel panics
    #[arg(long)]
    pub debug: bool,
    /// Where to keep the console's log (default: a temporary folder, kept if something fails)
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// Leave the guest running with a shell on its console
    #[arg(long, conflicts_with = "command")]
    pub stay: bool,
    /// The command; without one, a shell
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Become a program that ends with perflab
#[derive(Debug, Args)]
pub struct LaunchArgs {
    /// The process with which the launched one ends
    #[arg(long)]
    pub parent: u32,
    /// See all file systems read-only
    #[arg(long)]
    pub read_only: bool,
    /// Stay when the parent ends
    #[arg(long)]
    pub stays: bool,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    pub argv: Vec<OsString>,
}

impl Verb for LaunchArgs {
    fn run(&self, _app: &App) -> Result<Exit, Failure> {
        Ok(launch_program(self))
    }
}

/// Become a program with a terminal of its own
#[derive(Debug, Args)]
pub struct TerminalArgs {
    /// The terminal
    pub device: PathBuf,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub argv: Vec<OsString>,
}

impl Verb for TerminalArgs {
    fn run(&self, _app: &App) -> Result<Exit, Failure> {
        Ok(open_terminal(self))
    }
}
