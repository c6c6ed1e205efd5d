//! Perflab as the first process of a guest: from the kernel's hands through the work to power off.
//!
//! Nothing here is a general init: there are no services, and when the work ends, the guest ends. Modules are
//! loaded in the order in which they were packed; the loopback interface is brought up because benchmarks that
//! speak to themselves need it and nothing else does it; the first process waits for its own child and for every
//! orphan that becomes one. The agent is started by a name of its own and not through the command line: under TCG
//! code that runs once is what costs most, and parsing perflab's arguments alone would be a tenth of a boot.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Command as Process, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, ioctl_tiocsctty, setsid, wait};
use rustix::system::{RebootCommand, finit_module, reboot};

use crate::init_protocol::{
    AGENT_PORT, CONTROL_PORT, ControlFrame, ControlPort, GuestCommand, GuestMessage, GuestWork, HostMessage,
    InitConfig, InitError,
};
use crate::initramfs::GUEST_HOME;
use crate::{init_network, init_root};

/// Whether this process is the first one of a guest that perflab booted.
pub fn is_guest_init() -> bool {
    std::process::id() == 1 && init_config_path().is_file()
}

fn init_config_path() -> std::path::PathBuf {
    Path::new(GUEST_HOME).join("orders.json")
}

/// Does everything. Never comes back: the guest is powered off, whatever happens.
pub fn run_init() -> ! {
    if let Err(error) = boot_to_work() {
        // For the console's log; the host has it already, if there was a port.
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("perflab init: {error}\n"));
    }
    rustix::fs::sync();
    loop {
        // Without a way to power off, a kernel halts or panics, and QEMU is configured to end then.
        let _ = reboot(RebootCommand::PowerOff);
        let _ = reboot(RebootCommand::Restart);
    }
}

fn boot_to_work() -> Result<(), InitError> {
    init_root::mount_kernel_file_systems(Path::new("/"))?;
    let text = fs::read(init_config_path()).map_err(InitError::system_error("read", GUEST_HOME))?;
    let orders: InitConfig = serde_json::from_slice(&text)?;
    load_modules(&orders.modules)?;
    let line = ControlPort::new(init_root::open_port(CONTROL_PORT)?);
    let worked = prepare_guest(&orders).and_then(|()| do_work(&orders.work, orders.vsock, &line));
    if let Err(error) = &worked {
        line.send(&GuestMessage::Failed(error.to_string()));
    }
    worked
}

fn prepare_guest(orders: &InitConfig) -> Result<(), InitError> {
    // A kernel without these works as well.
    let _ = rustix::system::sethostname(orders.name.as_bytes());
    let _ = init_network::bring_loopback_up();
    init_network::set_up_interfaces(&orders.network.interfaces)?;
    init_root::enter_root(&orders.root)?;
    init_network::write_names(&orders.network, Path::new("/"));
    Ok(())
}

/// Where the shell is.
const CONSOLE: &str = "/dev/hvc0";

/// Does it, and reports how it ended.
fn do_work(work: &GuestWork, vsock: Option<u32>, line: &ControlPort) -> Result<(), InitError> {
    let ended = match work {
        GuestWork::Agent => run_agent(vsock, line)?,
        GuestWork::Command(command) => run_piped_command(command, line)?,
        GuestWork::Shell(command) => run_shell(command, line)?,
        GuestWork::Shells(command) => loop {
            run_shell(command, line)?;
        },
    };
    line.send(&ended);
    Ok(())
}

fn perflab_command() -> Process {
    let mut process = Process::new(Path::new(GUEST_HOME).join("perflab"));
    set_login_environment(&mut process);
    process
}

/// What a login gives; a kernel gives HOME=/ and TERM=linux.
fn set_login_environment(process: &mut Process) {
    process.env("HOME", "/root").env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
}

fn start_process(process: &mut Process, what: &str) -> Result<Child, InitError> {
    process.spawn().map_err(InitError::system_error("start", what))
}

/// perflab itself, taking orders.
fn run_agent(vsock: Option<u32>, line: &ControlPort) -> Result<GuestMessage, InitError> {
    let mut agent = agent_command(vsock)?;
    set_login_environment(&mut agent);
    let child = start_process(agent.stdin(Stdio::null()), "the agent")?;
    line.send(&GuestMessage::Ready);
    Ok(reap_until_exit(child.id()))
}

/// A shell on the virtual console, with it as its terminal.
fn run_shell(command: &GuestCommand, line: &ControlPort) -> Result<GuestMessage, InitError> {
    init_root::wait_for_device(Path::new(CONSOLE))?;
    let mut process = perflab_command();
    set_surroundings(&mut process, command);
    let child = start_process(process.args(["terminal", CONSOLE]).args(&command.argv), "a shell")?;
    line.send(&GuestMessage::Ready);
    Ok(reap_until_exit(child.id()))
}

fn set_surroundings(process: &mut Process, command: &GuestCommand) {
    let exists = command.directory.is_dir();
    process.current_dir(if exists { &command.directory } else { Path::new("/") });
    process.env_clear().envs(command.environment.iter().map(|(name, value)| (name, value)));
}

/// A command whose standard streams are the host's.
fn run_piped_command(command: &GuestCommand, line: &ControlPort) -> Result<GuestMessage, InitError> {
    let nothing =
        || InitError::system_error("start", "nothing")(io::Error::from(io::ErrorKind::InvalidInput));
    let (program, arguments) = command.argv.split_first().ok_or_else(nothing)?;
    let mut process = Process::new(program);
    set_surroundings(&mut process, command);
    process.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    line.send(&GuestMessage::Ready);
    let mut child =
        process.spawn().map_err(|source| match is_hidden_by_tmp(program, &command.directory) {
            true if source.kind() == io::ErrorKind::NotFound => {
                InitError::Hidden { what: program.clone(), source }
            }
            _ => InitError::system_error("start", program)(source),
        })?;
    if let (Some(input), Ok(reader)) = (child.stdin.take(), line.reader()) {
        // Not waited for: input may never end.
        thread::spawn(move || feed_command(reader, input));
    }
    let output = child.stdout.take().map(|from| copy_to_host(from, line.clone(), GuestMessage::Output));
    let errors = child.stderr.take().map(|from| copy_to_host(from, line.clone(), GuestMessage::Errors));
    let ended = reap_until_exit(child.id());
    wait_for_pipes(&[output, errors]);
    Ok(ended)
}

/// Whether a program is named by a path in the host's /tmp, which no guest has.
fn is_hidden_by_tmp(program: &str, directory: &Path) -> bool {
    program.contains('/') && directory.join(program).starts_with("/tmp")
}

/// How long a command's background processes may go on printing after it has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Both pipes come to their end with the command, unless a background process holds them.
fn wait_for_pipes(copiers: &[Option<JoinHandle<()>>]) {
    let ended = Instant::now();
    while ended.elapsed() < LAST_WORDS && copiers.iter().flatten().any(|copier| !copier.is_finished()) {
        thread::sleep(Duration::from_millis(1));
    }
}

/// From a pipe to the host.
fn copy_to_host(
    mut from: impl Read + Send + 'static,
    line: ControlPort,
    make_message: fn(Vec<u8>) -> GuestMessage,
) -> JoinHandle<()> {
    let mut buffer = vec![0; 16 << 10];
    thread::spawn(move || {
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            line.send(&make_message(buffer.get(..length).unwrap_or_default().to_vec()));
        }
    })
}

/// From the host to the command.
fn feed_command(mut reader: File, mut input: impl Write) {
    while let Ok(Some(HostMessage::Input(bytes))) = HostMessage::read(&mut reader) {
        if input.write_all(&bytes).is_err() {
            return;
        }
    }
}

/// What it is called.
const NAME: &str = "perflab-agent";

/// The host's number in every guest (vsock(7)).
const HOST: u32 = 2;

/// perflab as the agent, on its port, or calling its host's vsock port.
fn agent_command(vsock: Option<u32>) -> Result<Command, InitError> {
    let place = match vsock {
        Some(port) => format!("vsock:{HOST}:{port}"),
        None => init_root::wait_for_port(AGENT_PORT)?.display().to_string(),
    };
    let mut command = Command::new(Path::new(GUEST_HOME).join("perflab"));
    command.arg0(NAME).arg(place);
    Ok(command)
}

/// Where this process is to take orders, if it was started as a guest's agent: a device, or `vsock:CID:PORT`.
pub fn guest_agent_address() -> Option<String> {
    let mut argv = std::env::args_os();
    argv.next().filter(|name| name == NAME)?;
    argv.next()?.into_string().ok()
}

fn load_modules(modules: &[String]) -> Result<(), InitError> {
    modules.iter().try_for_each(|module| load_module(module))
}

fn load_module(module: &str) -> Result<(), InitError> {
    let path = Path::new(GUEST_HOME).join("modules").join(format!("{module}.ko"));
    let file = File::open(&path).map_err(InitError::system_error("open", path.display().to_string()))?;
    match finit_module(&file, c"", 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(InitError::system_error("load", format!("module {module}"))(error)),
    }
}

/// Waits until `child` has ended; others that end before it are reaped.
fn reap_until_exit(child: u32) -> GuestMessage {
    let child = i32::try_from(child).ok().and_then(Pid::from_raw);
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if Some(pid) == child => return exit_message(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return GuestMessage::Failed(format!("cannot wait for the work: {error}")),
        }
    }
}

fn exit_message(status: WaitStatus) -> GuestMessage {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => GuestMessage::Exited(code),
        (None, signal) => GuestMessage::Killed(signal.unwrap_or_default()),
    }
}

/// Becomes `argv` in a new session whose terminal is `device`. Comes back only with the reason why it could not.
pub fn exec_on_terminal(device: &Path, argv: &[OsString]) -> io::Error {
    match command_on_terminal(device, argv) {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    }
}

fn command_on_terminal(device: &Path, argv: &[OsString]) -> io::Result<Command> {
    let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    setsid()?;
    let terminal = OpenOptions::new().read(true).write(true).open(device)?;
    ioctl_tiocsctty(&terminal)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(terminal.try_clone()?).stdout(terminal.try_clone()?).stderr(terminal);
    Ok(command)
}
