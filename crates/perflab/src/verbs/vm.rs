//! `perflab vm boot|list|shell|stop`, and the hidden verbs by which guests are started.

mod console;
mod machine;
mod stream;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use perflab_conduct::StopRequest;
use perflab_conduct::guest::boot::BootOptions;
use perflab_conduct::guest::init_protocol::{GuestCommand, GuestWork};
use perflab_conduct::guest::{
    Guest, GuestError, GuestMachine, GuestRootSource, boot_guest, child_process, running_guest,
};
use perflab_conduct::leftovers::TemporaryFolder;
use perflab_observe::own_directories;
use perflab_present::comparison::{Grid, GridCell, GridColumn};

use crate::arguments::vm::{self, BootArgs, VmVerb};
use crate::context::App;
use crate::exit::Exit;

/// Does what was asked for. The exit code is a guest's command's, where there is one.
pub fn run_vm_verb(context: &App, wanted: &vm::VmArgs) -> anyhow::Result<ExitCode> {
    match &wanted.verb {
        VmVerb::Boot(wanted) => boot_described_guest(context, wanted),
        VmVerb::List => print_guests(context).map(ExitCode::from),
        VmVerb::Shell { guest } => open_guest_shell(context, guest).map(ExitCode::from),
        VmVerb::Stop { guest } => {
            let note = running_guest::find_guest(guest)?;
            running_guest::stop_guest(&note)?;
            context.note(format!("{} is gone", note.id));
            Ok(Exit::Fine.into())
        }
    }
}

/// `perflab launch`: only its failure comes back.
pub fn launch_program(wanted: &vm::LaunchArgs) -> ExitCode {
    let manner = child_process::ChildOptions { read_only: wanted.read_only, stays: wanted.stays };
    let error = child_process::exec_child(wanted.parent, manner, &wanted.argv);
    stderr_line!(
        "error: cannot start {}: {error}",
        wanted.argv.first().cloned().unwrap_or_default().display()
    );
    Exit::Unexpected.into()
}

/// `perflab terminal`: only its failure comes back.
pub fn open_terminal(wanted: &vm::TerminalArgs) -> ExitCode {
    let error = perflab_conduct::exec_on_terminal(&wanted.device, &wanted.argv);
    stderr_line!("error: no terminal at {}: {error}", wanted.device.display());
    Exit::Unexpected.into()
}

fn print_guests(context: &App) -> anyhow::Result<Exit> {
    let columns = ["guest", "kernel", "cpus", "memory", "runs by", "pid", "console"];
    let mut grid = Grid::new(columns.map(GridColumn::left));
    let all = running_guest::list_guests()?;
    if all.is_empty() {
        context.note("no guest runs; `perflab vm boot --stay` starts one that stays");
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

fn open_guest_shell(context: &App, guest: &str) -> anyhow::Result<Exit> {
    let note = running_guest::find_guest(guest)?;
    let stream = running_guest::connect_shell(&note)?;
    context.note(format!("{}: the shell of the guest; ^] leaves it", note.id));
    console::attach_console(stream)?;
    Ok(Exit::Fine)
}

fn boot_described_guest(context: &App, wanted: &BootArgs) -> anyhow::Result<ExitCode> {
    // A guest whose root is this host's has its programs; what a disk or a folder of its own holds is known there.
    if wanted.root == "host" {
        super::recording::check_command_exists(&wanted.command)?;
    }
    let machine = machine::machine_from_args(wanted)?;
    let logs = GuestLogs::new(context, wanted)?;
    let work = guest_work(wanted, &machine);
    let stop = super::run::stop_on_interrupt()?;
    let perflab = std::env::current_exe()?;
    let around = BootOptions { perflab: &perflab, logs: logs.path(), work, stays: wanted.stay, stop: &stop };
    note_machine(context, &machine)?;
    if matches!(machine.root, GuestRootSource::Host) && uses_host_tmp(wanted) {
        context.note("the guest has a /tmp of its own: what lies in this host's is not there");
    }
    let begun = std::time::Instant::now();
    let guest = match boot_guest(&machine, &around) {
        Ok(guest) => guest,
        // QEMU may hear ^C first, which is no crash.
        Err(_) if stop.is_requested() => return Err(GuestError::Stopped { name: machine.name }.into()),
        Err(error) => {
            logs.keep_if_useful(context);
            return Err(error.into());
        }
    };
    context.note(format!("{} is ready after {:.1} s", guest.name(), begun.elapsed().as_secs_f64()));
    run_in_guest(context, wanted, guest, &stop, logs)
}

fn run_in_guest(
    context: &App,
    wanted: &BootArgs,
    guest: Guest,
    stop: &StopRequest,
    logs: GuestLogs,
) -> anyhow::Result<ExitCode> {
    if wanted.stay {
        let note = guest.leave_running(logs.keep_if_useful(context))?;
        context.print_value("guest", &note.id)?;
        context.note(format!(
            "`perflab vm shell {0}` opens a shell in it, `perflab vm stop {0}` ends it",
            note.id
        ));
        return Ok(Exit::Fine.into());
    }
    if wanted.command.is_empty() {
        context.note("the shell's end, or ^], ends the guest");
        console::attach_console(std::os::unix::net::UnixStream::connect(guest.shell_socket())?)?;
        return Ok(Exit::Fine.into());
    }
    let ended = stream::pass_through_streams(&guest, stop);
    if ended.is_err() && !stop.is_requested() {
        logs.keep_if_useful(context);
    }
    ended
}

/// Whether the command is given something of the host's /tmp, or starts there.
fn uses_host_tmp(wanted: &BootArgs) -> bool {
    let here = std::env::current_dir().unwrap_or_default();
    let inside = |path: &Path| path.starts_with("/tmp") && path.exists();
    inside(&here) || wanted.command.iter().any(|word| inside(Path::new(word)))
}

fn note_machine(context: &App, machine: &GuestMachine) -> Result<(), GuestError> {
    let chosen = machine.accelerator.choose()?;
    context.note(format!(
        "{} boots {} with {} ({})",
        machine.name, machine.kernel.release, chosen.accelerator, chosen.because
    ));
    Ok(())
}

fn guest_work(wanted: &BootArgs, machine: &GuestMachine) -> GuestWork {
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
    if wanted.command.is_empty() {
        let shell = if bare { "sh" } else { "bash" };
        let shell = std::env::var("SHELL").ok().filter(|_| !bare).unwrap_or_else(|| shell.into());
        let command = GuestCommand { argv: vec![shell], directory, environment };
        return if wanted.stay { GuestWork::Shells(command) } else { GuestWork::Shell(command) };
    }
    GuestWork::Command(GuestCommand { argv: wanted.command.clone(), directory, environment })
}

/// Where logs go: where the user said, else a temporary folder that stays only where it is of use.
enum GuestLogs {
    Given(PathBuf),
    Temporary(TemporaryFolder),
}

impl GuestLogs {
    fn new(context: &App, wanted: &BootArgs) -> anyhow::Result<GuestLogs> {
        if let Some(path) = &wanted.logs {
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
