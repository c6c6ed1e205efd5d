//! An agent in a container: the root of another system, with changes that are thrown away, and namespaces of its own for mounts,
//! processes, System V IPC and the host's name. The kernel, its settings, devices and network are this host's.
//!
//! util-linux makes it (`unshare`, `mount`), as on the command line: no daemon, no image format. perflab in there has a loader and libraries of its
//! own, so that the root may be of any distribution, or have no library at all. When its agent ends, the kernel ends every process of the
//! container, and its mounts with them.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use perflab_guest::pack_portable_perflab;
use perflab_model::study::TargetSpec;
use perflab_model::{PlannedTarget, Refusal, remove_control_characters};
use perflab_settings::TemporaryFolder;

use crate::launcher::agent_handle::{AgentHandle, LaunchedAgent};
use crate::launcher::process::{AgentProcess, spawn_paired_agent};
use crate::run_context::LocalMachine;

/// Where perflab lies in a container: so short that a loader's path within fits where a program names the system's.
const AGENT_HOME: &str = "/run/perflab-agent";

/// What `root` says for this host's own root.
const HOST_ROOT: &str = "host";

/// Makes the container in a mount namespace that is nobody else's, and becomes its first process. Changes go to the disk of temporary
/// files, or to memory where that cannot hold the upper layer of an overlay.
const ENTER: &str = r#"
root=$1 scratch=$2 state=$3 name=$4
mount --bind "$root" "$scratch/lower"
mount -t overlay -o "lowerdir=$scratch/lower,upperdir=$scratch/upper,workdir=$scratch/work" perflab "$scratch/root" 2>/dev/null || {
    mount -t tmpfs -o mode=700 perflab "$scratch/memory"
    mkdir "$scratch/memory/upper" "$scratch/memory/work"
    mount -t overlay -o "lowerdir=$scratch/lower,upperdir=$scratch/memory/upper,workdir=$scratch/memory/work" perflab "$scratch/root"
}
cd "$scratch/root"
for folder in proc sys dev run tmp; do
    if [ -L "$folder" ]; then echo "/$folder is a link there" >&2; exit 1; fi
    mkdir -p "$folder"
done
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=755 perflab run
mkdir -m 755 ".$5"
mkdir -m 700 run/perflab-state
mount --bind "$scratch/agent" ".$5"
mount --bind "$state" run/perflab-state
hostname "$name" 2>/dev/null || true
exec chroot . "$5/perflab" agent
"#;

/// Why a target cannot be a container, where that is known before.
pub(crate) fn container_problem(target: &PlannedTarget) -> Option<Refusal> {
    let root = container_root(&target.spec);
    let what = match fs::metadata(&root) {
        Err(error) => format!("cannot be read: {error}"),
        Ok(found) if !found.is_dir() => "is no folder".to_owned(),
        Ok(_) => return None,
    };
    let what = format!("the root of target {}, {}, {what}", target.name, root.display());
    let hint = "name a folder that holds the root of a system: `debootstrap trixie FOLDER` makes one";
    Some(Refusal { what: remove_control_characters(&what), hint: hint.into() })
}

fn container_root(spec: &TargetSpec) -> PathBuf {
    match spec.root.as_deref() {
        None | Some(HOST_ROOT) => "/".into(),
        Some(folder) => folder.into(),
    }
}

/// A container and what was made for it, which goes after it.
#[derive(Debug)]
struct ContainerAgent {
    process: AgentProcess,
    _scratch: TemporaryFolder,
}

impl AgentHandle for ContainerAgent {
    fn end(&mut self) -> String {
        self.process.end()
    }
}

/// Starts the agent in a container of its own, in a process group of its own: a ^C at the terminal is perflab's to pass on.
pub(crate) fn launch_in_container(
    name: &str,
    spec: &TargetSpec,
    host: &LocalMachine,
) -> io::Result<LaunchedAgent> {
    let root = fs::canonicalize(container_root(spec))?;
    let scratch = TemporaryFolder::create(&host.state, &perflab_observe::read_boot_id(&host.root))
        .map_err(io::Error::other)?;
    prepare_scratch(scratch.path(), &host.perflab)?;
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "--pid",
        "--ipc",
        "--uts",
        "--fork",
        "--kill-child",
        "--propagation",
        "private",
    ]);
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--", "sh", "-euc", ENTER, "sh"]).arg(&root).arg(scratch.path()).arg(&host.state);
    command.arg(name).arg(AGENT_HOME).env("PERFLAB_STATE", "/run/perflab-state");
    let (connection, process) = spawn_paired_agent(name, command).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other("a container needs `unshare`, of util-linux"),
        _ => error,
    })?;
    Ok(LaunchedAgent { connection, handle: Box::new(ContainerAgent { process, _scratch: scratch }) })
}

/// Makes the folders that mounts go to, and puts perflab there.
fn prepare_scratch(scratch: &Path, perflab: &Path) -> io::Result<()> {
    let mut folder = DirBuilder::new();
    for name in ["lower", "memory", "root", "agent", "agent/lib", "upper", "work"] {
        folder.mode(if name == "upper" { 0o755 } else { 0o700 }).create(scratch.join(name))?;
    }
    for (name, content) in pack_portable_perflab(perflab, Path::new(AGENT_HOME)).map_err(io::Error::other)? {
        let place = scratch.join("agent").join(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o700).open(place)?;
        file.write_all(&content)?;
    }
    Ok(())
}
