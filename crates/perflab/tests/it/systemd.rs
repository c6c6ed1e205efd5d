//! The daemon's unit under a real systemd, the first process of namespaces of its own, with nothing else to start.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::image::MountedImage;
use crate::laboratory::{Sandbox, skip_test};

const SYSTEMD: &str = "/lib/systemd/systemd";
const SERVICE: &str = "perflab-prefetch";
/// Long enough for a busy machine; nothing is judged by it.
const PATIENCE: Duration = Duration::from_secs(60);

/// What becomes systemd: `$1` has the units, `$2` is where programs are watched. No directory of the machine is written.
const BEGIN: &str = "set -e
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib
umount -R /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
exec env container=perflab SYSTEMD_UNIT_PATH=$1 /lib/systemd/systemd --system --unit=only.target
";

/// Gone, with all its processes, when dropped.
struct SystemdInstance {
    outer: Child,
    group: PathBuf,
}

impl SystemdInstance {
    fn start(units: &Path, group: PathBuf) -> Self {
        fs::create_dir(&group).unwrap();
        let script = units.join("begin");
        fs::write(&script, BEGIN).unwrap();
        let inside = ["--pid", "--fork", "--mount", "--cgroup", "--uts", "--ipc", "--mount-proc"];
        let outer = Command::new("sh")
            .args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec unshare \"$@\""])
            .arg(&group)
            .args(inside)
            .args(["--kill-child", "--propagation", "private", "sh"])
            .args([&script, units])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        SystemdInstance { outer, group }
    }

    /// Its number outside.
    fn init_pid(&self) -> Option<u32> {
        let outer = self.outer.id();
        let children = fs::read_to_string(format!("/proc/{outer}/task/{outer}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }

    fn run_command(&self, command: &[&str]) -> Option<Output> {
        let first = self.init_pid()?.to_string();
        Command::new("nsenter").args(["--target", &first, "--all"]).args(command).output().ok()
    }

    fn command_text(&self, command: &[&str]) -> String {
        let said = self.run_command(command).map(|output| output.stdout).unwrap_or_default();
        String::from_utf8(said).unwrap().trim().into()
    }

    fn read_property(&self, name: &str) -> String {
        self.command_text(&["systemctl", "show", SERVICE, "--value", "-p", name])
    }

    /// What the daemon says of itself and of its programs; none while no daemon answers.
    fn daemon_status(&self) -> Option<String> {
        let said = self.run_command(&[env!("CARGO_BIN_EXE_perflab"), "prefetch", "status"])?;
        let said = [said.stderr, said.stdout].map(|text| String::from_utf8(text).unwrap()).concat();
        said.starts_with("daemon ").then_some(said)
    }

    fn wait_until<T>(&self, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = found() {
                return found;
            }
            let said = || self.command_text(&["systemctl", "status", "--no-pager", SERVICE]);
            assert!(begun.elapsed() < PATIENCE, "{what}: {}", said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for SystemdInstance {
    fn drop(&mut self) {
        let _ = self.outer.kill();
        let _ = self.outer.wait();
        // Empty only once the last of its processes is gone.
        let begun = Instant::now();
        while self.group.is_dir() && begun.elapsed() < PATIENCE {
            let groups =
                Command::new("find").arg(&self.group).args(["-depth", "-type", "d"]).output().unwrap();
            for group in String::from_utf8_lossy(&groups.stdout).lines() {
                let _ = fs::remove_dir(group);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Where the second version of control groups is mounted.
fn cgroup2_mount() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?;
    line.split(' ').nth(1).map(PathBuf::from)
}

/// Our unit as it is printed, but for where the program lies and what it watches; and a target that wants nothing else.
fn write_test_units(laboratory: &Sandbox, place: &Path) -> PathBuf {
    let units = laboratory.path("units");
    fs::create_dir(&units).unwrap();
    let unit = laboratory.run_successfully(&["prefetch", "daemon", "--print-unit"]).out;
    // What processes wait for is told in the machine's own namespace alone.
    let watching =
        format!("{} prefetch daemon --on {1} --only {1}", env!("CARGO_BIN_EXE_perflab"), place.display());
    let unit = unit.replace("/usr/bin/perflab prefetch daemon", &watching);
    fs::write(units.join(format!("{SERVICE}.service")), unit).unwrap();
    let only = format!("[Unit]\nDefaultDependencies=no\nWants={SERVICE}.service\n");
    fs::write(units.join("only.target"), only).unwrap();
    for target in ["local-fs", "sysinit", "basic", "shutdown"] {
        fs::write(units.join(format!("{target}.target")), "[Unit]\nDefaultDependencies=no\n").unwrap();
    }
    units
}

#[test]
fn the_unit_runs_and_a_hung_daemon_is_replaced_root() {
    let test = "the_unit_runs_and_a_hung_daemon_is_replaced_root";
    let Some(image) = MountedImage::new(test) else { return };
    let Some(groups) = cgroup2_mount().filter(|_| Path::new(SYSTEMD).exists()) else {
        return skip_test(test, "systemd or version 2 of control groups is missing");
    };
    let laboratory = Sandbox::new();
    let program = image.mount_point().join("true");
    fs::copy(fs::canonicalize("/bin/true").unwrap(), &program).unwrap();
    let program = program.to_str().unwrap();
    let units = write_test_units(&laboratory, &image.mount_point());
    let systemd = SystemdInstance::start(&units, groups.join(format!("perflab-test-{}", std::process::id())));
    let first = systemd.wait_until("the daemon answers", || systemd.daemon_status());
    assert!(first.contains(&format!(", on {}\n", image.mount_point().display())), "{first}");
    assert_eq!(systemd.read_property("ActiveState"), "active");
    assert_eq!(systemd.command_text(&["stat", "-c", "%a", "/var/lib/perflab", "/run/perflab"]), "700\n700");

    assert!(systemd.run_command(&[program]).unwrap().status.success());
    systemd.wait_until("the start is seen", || {
        systemd.daemon_status().filter(|status| status.contains(program))
    });

    // Nobody answers now: the exec waits until systemd has ended who should.
    let hung = systemd.read_property("MainPID");
    assert!(first.starts_with(&format!("daemon {hung} ")), "{first}");
    systemd.command_text(&["kill", "-STOP", &hung]);
    assert!(systemd.run_command(&[program]).unwrap().status.success());
    systemd.wait_until("it is started again", || (systemd.read_property("NRestarts") == "1").then_some(()));
    let second = systemd.wait_until("the new daemon answers", || systemd.daemon_status());
    assert!(!second.starts_with(&format!("daemon {hung} ")), "{second}");

    systemd.command_text(&["systemctl", "stop", SERVICE]);
    assert_eq!(
        [systemd.read_property("ActiveState"), systemd.read_property("Result")],
        ["inactive", "success"]
    );
    assert!(systemd.run_command(&[program]).unwrap().status.success());
}
