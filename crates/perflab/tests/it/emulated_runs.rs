//! Runs on emulated disks. Needs root.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::emulated::lock_emulation;
use crate::interrupted::{send_signal, wait_for_condition};
use crate::laboratory::{Sandbox, to_command_output};

const STUDY: &str = r#"
[run]
iterations = 2
warmup = 0

[disk]
kind = "image"
size = "64MiB"

[workload.fs_mark]
parameters = { files = 20, size = 4096, threads = 1 }

[factor.model]
kind = "disk"
levels = ["hdd-7200", "nvme"]
"#;

#[test]
fn a_study_varies_the_disk_and_says_that_it_is_emulated_root() {
    let Some(_caches) = lock_emulation("a_study_varies_the_disk_and_says_that_it_is_emulated_root") else {
        return;
    };
    let laboratory = Sandbox::new();
    let study = laboratory.write_study("disks.toml", STUDY);
    let ran = laboratory.run_successfully(&["run", &study]);
    insta::assert_snapshot!(ran.err_wording_of("emulated"), @"
    warning: the disk hdd-7200 is emulated: an image, served with the delays of its data sheet; figures say what such a disk would do, not what one of this machine's does
    warning: the disk nvme is emulated: an image, served with the delays of its data sheet; figures say what such a disk would do, not what one of this machine's does
    ");
    let shown = laboratory.run_json(&["compare", "@latest", "--by", "model"]);
    let sides = [&shown["baseline"], &shown["rows"][0]["candidate_name"]];
    assert_eq!(sides, ["hdd-7200", "nvme"], "{shown}");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let home = find_own_disk(&laboratory).unwrap();
    let left = mounts.lines().find(|line| line.contains(home.to_str().unwrap()));
    assert_eq!(left, None, "disks are unmounted");
}

/// More than a disk of 7,200 turns takes in within the patience that a run has with a workload that does not end; on a disk that
/// has room for much more, else ext4 has the writer wait.
const SYNCS: &str = "head -c 1100M /dev/zero > {{ scratch }}/big; touch {{ kept }}/written; sync -f {{ scratch }}; echo speed 1";

#[test]
fn an_interrupted_runs_disk_goes_while_much_waits_to_be_written_root() {
    let Some(_caches) = lock_emulation("an_interrupted_runs_disk_goes_while_much_waits_to_be_written_root")
    else {
        return;
    };
    let laboratory = Sandbox::new();
    laboratory.write_workload("syncs", "needs = { root = true, scratch = true, disk = \"1GiB\" }", SYNCS);
    let disk = "kind = \"image\"\nsize = \"8GiB\"\nmodel = \"hdd-7200\"";
    let study = laboratory.write_study("syncs.toml", &format!("[workload.syncs]\n[disk]\n{disk}"));
    let mut command = laboratory.command(&["run", &study]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_condition(|| {
        find_own_disk(&laboratory).is_some_and(|home| home.join("mount/kept/written").exists())
    });
    let home = find_own_disk(&laboratory).unwrap();
    send_signal(&child, rustix::process::Signal::INT);
    let ended = to_command_output(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(home.to_str().unwrap()), "{mounts}");
    assert!(!home.exists(), "the image is gone");
    insta::assert_snapshot!(laboratory.run_successfully(&["undo"]).stable_err(), @"no run left a setting behind; looked for undo journals in /tmp/.TMP/state");
}

/// Mounts of a test's own, in which nobody else's disks are. Gone when dropped.
struct OwnMountNamespace(Child);

impl OwnMountNamespace {
    /// Once they are there: who enters before is among everybody's.
    fn new() -> Self {
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--propagation", "private", "sh", "-c", "echo; exec sleep 600"]);
        let mut child = unshare.stdout(Stdio::piped()).spawn().unwrap();
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        OwnMountNamespace(child)
    }

    /// The command among them.
    fn command_inside(&self, command: &Command) -> Command {
        let mut among = Command::new("nsenter");
        among.args(["--mount", "--target", &self.0.id().to_string(), "--"]);
        among.arg(command.get_program()).args(command.get_args());
        among.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        among
    }
}

impl Drop for OwnMountNamespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a machine is left with when everything on it is killed, and the journal is lost. Seen from mounts of the test's own: a
/// dead disk among everybody's would be in the way of `mkfs.btrfs` of other tests.
#[test]
fn a_dead_disk_goes_though_no_journal_tells_of_it_root() {
    let Some(_caches) = lock_emulation("a_dead_disk_goes_though_no_journal_tells_of_it_root") else { return };
    let laboratory = Sandbox::new();
    let begun = laboratory.path("begun");
    laboratory.write_workload(
        "stays",
        "needs = { scratch = true }",
        &format!("touch {}; sleep 600", begun.display()),
    );
    let disk = "kind = \"image\"\nsize = \"64MiB\"\nmodel = \"nvme\"";
    let study = laboratory.write_study("stays.toml", &format!("[workload.stays]\n[disk]\n{disk}"));
    let mounts = OwnMountNamespace::new();
    let mut run =
        mounts.command_inside(&laboratory.command(&["run", &study])).stderr(Stdio::null()).spawn().unwrap();
    wait_for_condition(|| begun.exists());
    let home = find_own_disk(&laboratory).unwrap();
    send_signal(&run, rustix::process::Signal::KILL);
    run.wait().unwrap();
    wait_for_condition(|| !is_disk_served(&home));
    std::fs::remove_dir_all(laboratory.path("state")).unwrap();
    let undo = || to_command_output(mounts.command_inside(&laboratory.command(&["undo"])).output().unwrap());
    let undone = undo();
    assert_eq!(undone.code, Some(0), "{}", undone.err);
    assert!(undone.err.contains(&format!("unmount {}/mount", home.display())), "{}", undone.err);
    assert!(!home.exists(), "{}", undone.err);
    let again = undo();
    insta::assert_snapshot!("a_dead_disk_goes_though_no_journal_tells_of_it_root_1", again.stable_err());
}

/// Runs its words while nobody serves a file system that user `$1` mounted as `$2`, and again when it is dead.
const FOREIGN: &str = "user=$1 place=$2; shift 2; exec 9<>/dev/fuse; \
    mount -i -t fuse -o fd=9,rootmode=40000,user_id=$user,group_id=$user,allow_other perflab-emulated-disk $place || exit 99; \
    timeout -s KILL 60 \"$@\" 9>&- || exit 98; exec 9>&-; timeout -s KILL 60 \"$@\"; code=$?; umount $place; exit $code";

#[test]
fn a_disk_of_another_user_neither_hangs_root_nor_has_it_delete_root() {
    let name = "a_disk_of_another_user_neither_hangs_root_nor_has_it_delete_root";
    let Some(_caches) = lock_emulation(name) else { return };
    let laboratory = Sandbox::new();
    let home = laboratory.path("theirs/perflab-x");
    let place = home.join("served");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(home.join("keep"), "theirs").unwrap();
    std::os::unix::fs::chown(laboratory.path("theirs"), Some(65534), None).unwrap();
    let undo = laboratory.command(&["undo"]);
    let mounts = OwnMountNamespace::new();
    let undone = |user: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", FOREIGN, "sh", user]).arg(&place).arg(undo.get_program()).args(undo.get_args());
        shell.envs(undo.get_envs().filter_map(|(name, value)| Some((name, value?))));
        to_command_output(mounts.command_inside(&shell).output().unwrap())
    };
    let theirs = undone("65534");
    assert_eq!(theirs.code, Some(0), "{}", theirs.err);
    // Silent, root's own takes five seconds, and counts as one that lives; dead, it is not removed from where others may be at it.
    let own = undone("0");
    assert_eq!(own.code, Some(6), "{}", own.err);
    assert!(home.join("keep").exists());
}

/// Whether somebody serves the disk in `home`.
fn is_disk_served(home: &Path) -> bool {
    let serves = |process: PathBuf| {
        let line = std::fs::read_to_string(process.join("cmdline")).unwrap_or_default();
        line.contains("disk-server") && line.contains(home.to_str().unwrap())
    };
    std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).any(serves)
}

/// Where the disk of the only run lies, once there is one.
fn find_own_disk(laboratory: &Sandbox) -> Option<PathBuf> {
    let run = std::fs::read_dir(laboratory.path("archive/runs")).ok()?.flatten().next()?.file_name();
    // A folder that is still being made has the run's id at the end of its name.
    let id = run.to_str()?.rsplit('-').next()?;
    Some(Path::new("/dev/shm").join(format!("perflab-{id}")))
}
