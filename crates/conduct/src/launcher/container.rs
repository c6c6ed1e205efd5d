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

use perflab_guest::{
    DistributionRoot, DistributionRootError, GuestMachine, GuestRootSource, pack_portable_perflab,
};
use perflab_model::study::TargetSpec;
use perflab_model::{PlannedTarget, Refusal, remove_control_characters};
use perflab_observe::io::{MountEntry, MountTable};
use perflab_settings::{CONTAINER_STATE, TemporaryFolder};

use crate::launcher::agent_handle::{AgentHandle, LaunchedAgent};
use crate::launcher::process::{AgentProcess, spawn_paired_agent};
use crate::run_context::LocalMachine;

/// Where perflab lies in a container: so short that a loader's path within fits where a program names the system's.
const AGENT_HOME: &str = "/run/perflab-agent";

/// Where the agent keeps its journals there: in a folder of the container's own, as whatever runs in it may remove what it sees.
const STATE_HOME: &str = "/run/perflab-state";

/// Folders of a container that are not its root's.
const OWN_FOLDERS: [&str; 5] = ["proc", "sys", "dev", "run", "tmp"];

/// What `root` says for this host's own root.
const HOST_ROOT: &str = "host";

/// Makes the container in a mount namespace that is nobody else's, and becomes its first process. Changes go to the disk of temporary
/// files, or to memory where that cannot hold the upper layer of an overlay. So do those of what else is laid in, `SOURCE PLACE` by
/// `SOURCE PLACE`; what cannot be the lower layer of an overlay can only be read. Paths of layers are relative: options of a mount have
/// no quotes.
const ENTER: &str = r#"
root=$1 scratch=$2 agent=$3 journals=$4 state=$5 folders=$6 name=$7; shift 7
own_path=$PATH PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin
umask 022
lay() {
    mkdir -p "$3/lower" "$3/upper" "$3/work" &&
    { chmod --reference="$1" "$3/upper" && chown --reference="$1" "$3/upper" || true; } 2>/dev/null &&
    mount --bind "$1" "$3/lower" &&
    (cd "$3" && mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work perflab "$2")
}
lay_in_memory() {
    mkdir -p "$3/memory" && mount -t tmpfs -o mode=700 perflab "$3/memory" && lay "$1" "$2" "$3/memory"
}
lay "$root" "$scratch/root" "$scratch" 2>/dev/null || lay_in_memory "$root" "$scratch/root" "$scratch"
cd "$scratch/root"
for folder in $folders; do mkdir -p "$folder"; done
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=755 perflab run
number=0
while [ $# -gt 0 ]; do
    number=$((number + 1))
    if [ -d "$1" ]; then mkdir -p ".$2"; fi
    place=$scratch/root$2 layers=$scratch/laid/$number
    if [ -d "$1" ] && { lay "$1" "$place" "$layers" || lay_in_memory "$1" "$place" "$layers"; } 2>/dev/null; then
        shift 2
        continue
    fi
    mount --bind "$1" ".$2"
    mount -o remount,bind,ro ".$2"
    shift 2
done
mkdir -m 755 ".$agent"
mkdir -m 700 ".$state"
mount --bind "$scratch/agent" ".$agent"
mount -o remount,bind,exec ".$agent" 2>/dev/null || true
mount --bind "$scratch/$journals" ".$state"
hostname "$name" 2>/dev/null || true
chroot=$(command -v chroot)
PATH=$own_path
exec "$chroot" . "$agent/perflab" agent
"#;

const ROOT_HINT: &str =
    "name a folder that holds the root of a system, or a release: `root = \"debootstrap:trixie\"`";

/// Why a target cannot be a container, where that is known before.
pub(crate) fn container_problem(target: &PlannedTarget) -> Option<Refusal> {
    let root = match container_root(&target.spec) {
        Ok(root) => root,
        // What a run makes before it begins is no problem, where it can be made.
        Err(DistributionRootError::NotMade { .. }) => {
            let made = target.spec.root.as_deref().and_then(DistributionRoot::parse)?;
            let error = made.and_then(|made| made.check_makeable()).err()?;
            return Some(root_refusal(target, &error));
        }
        Err(error) => return Some(root_refusal(target, &error)),
    };
    let problem = root_problem(&root).or_else(|| user_problem(&root));
    problem.map(|problem| folder_refusal(target, &root, problem))
}

fn root_refusal(target: &PlannedTarget, error: &DistributionRootError) -> Refusal {
    let hint = "a folder that holds the root of a system, and `host`, are roots, too";
    Refusal { what: format!("target {}: {error}", target.name), hint: hint.into() }
}

/// Why a folder of this host cannot be the root of a guest, where that is known before.
pub(crate) fn guest_root_problem(target: &PlannedTarget, machine: &GuestMachine) -> Option<Refusal> {
    let GuestRootSource::Folder { path } = &machine.root else { return None };
    root_problem(path).map(|problem| folder_refusal(target, path, problem))
}

fn folder_refusal(target: &PlannedTarget, root: &Path, (what, hint): (String, &str)) -> Refusal {
    let what = format!("the root of target {}, `{}`, {what}", target.name, root.display());
    Refusal { what: remove_control_characters(&what), hint: hint.into() }
}

/// Why a folder cannot be the root of a container or a guest, and what to do.
fn root_problem(root: &Path) -> Option<(String, &'static str)> {
    match fs::metadata(root) {
        Err(error) => return Some((format!("cannot be read: {error}"), ROOT_HINT)),
        Ok(found) if !found.is_dir() => return Some(("is no folder".to_owned(), ROOT_HINT)),
        Ok(_) if fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_none()) => {
            return Some(("is empty".to_owned(), ROOT_HINT));
        }
        Ok(_) => {}
    }
    let is_in_the_way =
        |name: &&&str| fs::symlink_metadata(root.join(name)).is_ok_and(|found| !found.is_dir());
    let name = OWN_FOLDERS.iter().find(is_in_the_way)?;
    Some((
        format!("has a /{name} that is no folder"),
        "a container or guest has a folder of its own there: make it a folder, or remove it",
    ))
}

/// Why this user cannot make a container of it, and what to do.
fn user_problem(root: &Path) -> Option<(String, &'static str)> {
    if rustix::process::geteuid().is_root() {
        return None;
    }
    let test = ["--user", "--map-root-user", "--mount", "true"];
    let has_namespaces = Command::new("unshare").args(test).output().is_ok_and(|said| said.status.success());
    if !has_namespaces {
        let what = "can be made a container by root alone: other users may not make namespaces here";
        return Some((
            what.into(),
            "run as root, or see `sysctl kernel.unprivileged_userns_clone user.max_user_namespaces`",
        ));
    }
    let mounts = MountTable::read();
    let place = mounts_below(&mounts, root).into_iter().next()?;
    Some((
        format!(
            "has another file system below it ({}), which only root can lay into a container",
            place.display()
        ),
        "run as root, or name a folder without: one that `debootstrap` made",
    ))
}

/// Where other file systems are mounted below a root, but those of which a container has its own. The first ones first.
fn mounts_below<'a>(mounts: &'a MountTable, root: &Path) -> Vec<&'a Path> {
    let Ok(root) = fs::canonicalize(root) else { return Vec::new() };
    let is_own = |place: &Path| OWN_FOLDERS.iter().any(|name| place.starts_with(root.join(name)));
    // One that another is mounted over is not seen.
    let is_seen = |mount: &MountEntry| {
        mounts.find_by_path(&mount.mount_point).is_some_and(|found| found.id == mount.id)
    };
    let is_below = |mount: &&MountEntry| {
        let place = &mount.mount_point;
        is_seen(mount)
            && place.starts_with(&root)
            && *place != root
            && !is_own(place)
            && mount.kind != "autofs"
    };
    let mut places: Vec<&Path> =
        mounts.iter().filter(is_below).map(|mount| mount.mount_point.as_path()).collect();
    places.sort();
    places.dedup();
    places
}

/// What else is laid into a container: what is mounted below its root, each with its place there.
fn laid_folders(root: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mounts = MountTable::read();
    let place = |path: &Path| Path::new("/").join(path.strip_prefix(root).unwrap_or(path));
    mounts_below(&mounts, root).into_iter().map(|path| (path.to_owned(), place(path))).collect()
}

fn container_root(spec: &TargetSpec) -> Result<PathBuf, DistributionRootError> {
    let text = match spec.root.as_deref() {
        None | Some(HOST_ROOT) => return Ok("/".into()),
        Some(text) => text,
    };
    DistributionRoot::parse(text).map_or_else(|| Ok(text.into()), |made| made?.require())
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
    let root = container_root(spec).map_err(io::Error::other)?;
    let root = fs::canonicalize(&root).map_err(|error| name_path(&root, &error))?;
    let boot_id = perflab_observe::read_boot_id(&host.root);
    let scratch = TemporaryFolder::create_for_container(&host.state, &boot_id).map_err(io::Error::other)?;
    prepare_scratch(scratch.path(), &host.perflab).map_err(|error| name_path(scratch.path(), &error))?;
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
    command.args(["--", "sh", "-euc", ENTER, "sh"]).arg(&root).arg(scratch.path());
    command.args([AGENT_HOME, CONTAINER_STATE, STATE_HOME, &OWN_FOLDERS.join(" "), name]);
    laid_folders(&root).into_iter().for_each(|(source, place)| {
        command.arg(source).arg(place);
    });
    // The folder for temporary files is the container's own, wherever that of this host is.
    command.env("PERFLAB_STATE", STATE_HOME).env_remove("TMPDIR");
    let (connection, process) = spawn_paired_agent(name, command).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other("a container needs `unshare`, of util-linux"),
        _ => error,
    })?;
    Ok(LaunchedAgent { connection, handle: Box::new(ContainerAgent { process, _scratch: scratch }) })
}

fn name_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Makes the folders that mounts go to, and puts perflab there.
fn prepare_scratch(scratch: &Path, perflab: &Path) -> io::Result<()> {
    let mut folder = DirBuilder::new();
    for name in ["root", CONTAINER_STATE, "agent", "agent/lib"] {
        folder.mode(0o700).create(scratch.join(name))?;
    }
    for (name, content) in pack_portable_perflab(perflab, Path::new(AGENT_HOME)).map_err(io::Error::other)? {
        let place = scratch.join("agent").join(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o700).open(place)?;
        file.write_all(&content)?;
    }
    Ok(())
}
