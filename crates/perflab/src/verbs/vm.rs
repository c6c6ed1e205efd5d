//! `perflab vm boot|list|shell|stop`, and the hidden verbs by which guests are started.

mod console;
mod machine;
mod stream;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use perflab_conduct::Stop;
use perflab_conduct::init::{Command, Work};
use perflab_conduct::leftovers::TemporaryFolder;
use perflab_conduct::machine::boot::Surroundings;
use perflab_conduct::machine::{Guest, Machine, MachineError, RootKind, boot, launch, running};
use perflab_observe::own_directories;
use perflab_present::table::{Cell, Column, Grid};

use crate::arguments::vm::{self, Boot, VmVerb};
use crate::context::Context;
use crate::exit::Exit;

/// Does what was asked for. The exit code is a guest's command's, where there is one.
pub fn run(context: &Context, wanted: &vm::Vm) -> anyhow::Result<ExitCode> {
    match &wanted.verb {
        VmVerb::Boot(wanted) => boot_one(context, wanted),
        VmVerb::List => list(context).map(ExitCode::from),
        VmVerb::Shell { guest } => shell(context, guest).map(ExitCode::from),
        VmVerb::Stop { guest } => {
            let note = running::find(guest)?;
            running::stop(&note)?;
            context.say(format!("{} is gone", note.id));
            Ok(Exit::Fine.into())
        }
    }
}

/// `perflab launch`: only its failure comes back.
pub fn launched(wanted: &vm::Launch) -> ExitCode {
    let manner = launch::Manner { read_only: wanted.read_only, stays: wanted.stays };
    let error = launch::launch(wanted.parent, manner, &wanted.argv);
    stderr_line!(
        "error: cannot start {}: {error}",
        wanted.argv.first().cloned().unwrap_or_default().display()
    );
    Exit::Unexpected.into()
}

/// `perflab terminal`: only its failure comes back.
pub fn terminal(wanted: &vm::Terminal) -> ExitCode {
    let error = perflab_conduct::init::terminal(&wanted.device, &wanted.argv);
    stderr_line!("error: no terminal at {}: {error}", wanted.device.display());
    Exit::Unexpected.into()
}

fn list(context: &Context) -> anyhow::Result<Exit> {
    let columns = ["guest", "kernel", "cpus", "memory", "runs by", "pid", "console"];
    let mut grid = Grid::new(columns.map(Column::left));
    let all = running::list()?;
    if all.is_empty() {
        context.say("no guest runs; `perflab vm boot --stay` starts one that stays");
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
        grid.add(row.map(|text| Cell::from(text.as_str())));
    }
    context.print(&grid)?;
    Ok(Exit::Fine)
}

fn shell(context: &Context, guest: &str) -> anyhow::Result<Exit> {
    let note = running::find(guest)?;
    let stream = running::shell(&note)?;
    context.say(format!("{}: the shell of the guest; ^] leaves it", note.id));
    console::attach(stream)?;
    Ok(Exit::Fine)
}

fn boot_one(context: &Context, wanted: &Boot) -> anyhow::Result<ExitCode> {
    // A guest whose root is this host's has its programs; what a disk or a folder of its own holds is known there.
    if wanted.root == "host" {
        super::recording::is_there(&wanted.command)?;
    }
    let machine = machine::described(wanted)?;
    let logs = Logs::new(context, wanted)?;
    let work = work(wanted, &machine);
    let stop = super::run::stop_on_interrupt()?;
    let perflab = std::env::current_exe()?;
    let around = Surroundings { perflab: &perflab, logs: logs.path(), work, stays: wanted.stay, stop: &stop };
    say(context, &machine)?;
    if matches!(machine.root, RootKind::Host) && names_tmp(wanted) {
        context.say("the guest has a /tmp of its own: what lies in this host's is not there");
    }
    let begun = std::time::Instant::now();
    let guest = match boot(&machine, &around) {
        Ok(guest) => guest,
        // QEMU may hear ^C first, which is no crash.
        Err(_) if stop.asked() => return Err(MachineError::Stopped { name: machine.name }.into()),
        Err(error) => {
            logs.keep(context);
            return Err(error.into());
        }
    };
    context.say(format!("{} is ready after {:.1} s", guest.name(), begun.elapsed().as_secs_f64()));
    carry_out(context, wanted, guest, &stop, logs)
}

fn carry_out(
    context: &Context,
    wanted: &Boot,
    guest: Guest,
    stop: &Stop,
    logs: Logs,
) -> anyhow::Result<ExitCode> {
    if wanted.stay {
        let note = guest.leave(logs.keep(context))?;
        context.answer("guest", &note.id)?;
        context.say(format!(
            "`perflab vm shell {0}` opens a shell in it, `perflab vm stop {0}` ends it",
            note.id
        ));
        return Ok(Exit::Fine.into());
    }
    if wanted.command.is_empty() {
        context.say("the shell's end, or ^], ends the guest");
        console::attach(std::os::unix::net::UnixStream::connect(guest.shell_socket())?)?;
        return Ok(Exit::Fine.into());
    }
    let ended = stream::pass_through(&guest, stop);
    if ended.is_err() && !stop.asked() {
        logs.keep(context);
    }
    ended
}

/// Whether the command is given something of the host's /tmp, or starts there.
fn names_tmp(wanted: &Boot) -> bool {
    let here = std::env::current_dir().unwrap_or_default();
    let inside = |path: &Path| path.starts_with("/tmp") && path.exists();
    inside(&here) || wanted.command.iter().any(|word| inside(Path::new(word)))
}

fn say(context: &Context, machine: &Machine) -> Result<(), MachineError> {
    let chosen = machine.accelerator.choose()?;
    context.say(format!(
        "{} boots {} with {} ({})",
        machine.name, machine.kernel.release, chosen.accelerator, chosen.because
    ));
    Ok(())
}

fn work(wanted: &Boot, machine: &Machine) -> Work {
    let variable = |name: &str| std::env::var(name).ok().map(|value| (name.to_owned(), value));
    let mut environment: Vec<(String, String)> =
        ["PATH", "TERM", "LANG"].into_iter().filter_map(variable).collect();
    environment.push(("HOME".into(), "/root".into()));
    let directory = std::env::current_dir().unwrap_or_default();
    let bare = matches!(machine.root, RootKind::Bare { .. });
    if matches!(machine.root, RootKind::Host) {
        // What this host's perflabs promise to put back is theirs, although the guest sees their journals.
        environment.push(("PERFLAB_STATE".into(), "/run/perflab/state".into()));
    }
    if wanted.command.is_empty() {
        let shell = if bare { "sh" } else { "bash" };
        let shell = std::env::var("SHELL").ok().filter(|_| !bare).unwrap_or_else(|| shell.into());
        let command = Command { argv: vec![shell], directory, environment };
        return if wanted.stay { Work::Shells(command) } else { Work::Shell(command) };
    }
    Work::Command(Command { argv: wanted.command.clone(), directory, environment })
}

/// Where logs go: where the user said, else a temporary folder that stays only where it is of use.
enum Logs {
    Given(PathBuf),
    Temporary(TemporaryFolder),
}

impl Logs {
    fn new(context: &Context, wanted: &Boot) -> anyhow::Result<Logs> {
        if let Some(path) = &wanted.logs {
            return Ok(Logs::Given(path.clone()));
        }
        let boot = perflab_observe::boot_id(&context.root);
        let folder = TemporaryFolder::make(&own_directories::state(), &boot);
        Ok(Logs::Temporary(folder.context("cannot make a folder for the console's log")?))
    }

    fn path(&self) -> &Path {
        match self {
            Logs::Given(path) => path,
            Logs::Temporary(folder) => folder.path(),
        }
    }

    /// Keeps a temporary folder, unless nothing is in it, and says where it is.
    fn keep(self, context: &Context) -> Option<PathBuf> {
        let Logs::Temporary(folder) = self else { return None };
        let has_something = |path: &Path| path.read_dir().is_ok_and(|mut entries| entries.next().is_some());
        if !has_something(folder.path()) {
            return None;
        }
        let path = folder.keep();
        context.say(format!("the guest's logs are in {}", path.display()));
        Some(path)
    }
}
