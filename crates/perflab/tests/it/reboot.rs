//! Real machines that are booted into another kernel over ssh: QEMU is the machine, with an sshd and kexec, and no perflab around it.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::laboratory::{CommandOutput, Sandbox, skip_test, to_command_output};
use crate::libvirt::{build_small_system, strip_perflab};
use crate::ssh;
use crate::vm::GuestSandbox;

/// What the machine does after every boot, into whichever kernel.
const MACHINE: &str = "mkdir -p /run/sshd /root /boot; until [ -b /dev/vda ]; do sleep 0.1; done; \
    mount -t ext4 -o ro /dev/vda /boot; ip addr add 10.0.2.15/24 dev eth0; ip link set eth0 up; \
    /usr/sbin/sshd -f /etc/sshd_config; while :; do sleep 1000; done";

const PROGRAMS: &[&str] =
    &["sh", "sshd", "mkdir", "ip", "head", "tar", "rm", "kexec", "cat", "uname", "sync", "sleep", "mount"];

const COMMAND_LINE: &str =
    "console=ttyS0 panic=-1 no_timer_check cryptomgr.notests rdinit=/run/perflab/perflab";

/// An emulated boot takes half a minute on a busy machine; one that has not come after this does not come.
const LIMIT: Duration = Duration::from_secs(900);

/// A machine, until it is dropped. Reset, it boots its own kernel again, as one with a boot loader does.
struct Machine {
    qemu: Child,
    path: String,
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

impl Machine {
    fn start(home: &Path, kernel: &Path, initramfs: &Path, disk: &Path) -> Machine {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let file = |name: &str| home.join(name).display().to_string();
        let mut command = Command::new("qemu-system-x86_64");
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35", "-m", "1024"]);
        command.args(["-accel", "tcg,thread=multi", "-cpu", "max,-erms", "-append", COMMAND_LINE]);
        command.arg("-kernel").arg(kernel).arg("-initrd").arg(initramfs);
        command.args(["-chardev", &format!("file,id=console,path={}", file("console.log"))]);
        command.args(["-serial", "chardev:console", "-device", "virtio-serial-pci"]);
        command.args(["-chardev", &format!("file,id=control,path={}", file("control"))]);
        command.args(["-device", "virtserialport,chardev=control,name=perflab.control"]);
        command.args(["-drive", &format!("if=none,id=boot,format=raw,file={}", disk.display())]);
        command.args(["-device", "virtio-blk-pci,drive=boot"]);
        let forward = format!("user,id=n0,restrict=on,hostfwd=tcp:127.0.0.1:{port}-10.0.2.15:22");
        command.args(["-netdev", &forward, "-device", "virtio-net-pci,netdev=n0,romfile=,addr=0x1c"]);
        let qemu = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let client = ssh::make_ssh_client(home, port);
        let path = format!("{}:{}", client.display(), std::env::var("PATH").unwrap());
        let machine = Machine { qemu, path };
        let begun = Instant::now();
        while machine.ask("true").is_none() {
            let console = fs::read(home.join("console.log")).unwrap_or_default();
            assert!(begun.elapsed() < LIMIT, "{}", String::from_utf8_lossy(&console));
            std::thread::sleep(Duration::from_millis(100));
        }
        machine
    }

    fn ask(&self, script: &str) -> Option<String> {
        // A machine that boots another kernel meanwhile knows nothing of the connection, and never answers.
        let mut command = Command::new("timeout");
        command
            .args(["60", "ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=60", "box", script])
            .env("PATH", &self.path);
        let said = to_command_output(command.stdin(Stdio::null()).output().unwrap());
        (said.code == Some(0)).then(|| said.out.trim().to_owned())
    }

    fn command_line(&self) -> String {
        self.ask("cat /proc/cmdline").unwrap()
    }

    fn boot_id(&self) -> String {
        self.ask("cat /proc/sys/kernel/random/boot_id").unwrap()
    }

    fn command(&self, laboratory: &Sandbox, home: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(home.join("perflab"));
        command.arg("--workloads").arg(laboratory.path("workloads")).args(words).current_dir(home);
        command.env("PERFLAB_ARCHIVE", laboratory.path("archive")).env("PATH", &self.path);
        command.env("PERFLAB_STATE", laboratory.path("state")).stdin(Stdio::null());
        command
    }

    fn run(&self, laboratory: &Sandbox, home: &Path, words: &[&str]) -> CommandOutput {
        to_command_output(self.command(laboratory, home, words).output().unwrap())
    }
}

fn study_text(release: &str, workload: &str, levels: &str) -> String {
    format!(
        "run = {{ iterations = 1, warmup = 0 }}\n[workload.{workload}\n\
         [target.box]\nkind = \"ssh\"\naddress = \"box\"\nreboot = \"kexec\"\nkernel = \"{release}\"\n\
         [factor.words]\nkind = \"target\"\nkey = \"append\"\nlevels = {levels}\n"
    )
}

#[test]
fn needs_root_a_machine_is_booted_into_each_level_and_returns_to_its_own_kernel() {
    let name = "needs_root_a_machine_is_booted_into_each_level_and_returns_to_its_own_kernel";
    let Some(guests) = GuestSandbox::new(name) else { return };
    if ["sshd", "strip", "kexec", "mkfs.ext4"].iter().any(|program| !ssh::is_program_there(program)) {
        return skip_test(name, "sshd, strip, kexec, mkfs.ext4");
    }
    let (home, laboratory) = (guests.home(), Sandbox::new());
    let perflab = strip_perflab(home);
    ["host_key", "user_key"].iter().for_each(|name| ssh::make_ssh_key(&home.join(name)));
    let kernel = perflab_guest::find_kernel("debian-cloud", None).unwrap();
    let release = kernel.release.as_str();
    // Without a build id, release and version would do.
    let image = perflab_guest::KernelIdentity::of_image(&fs::read(&kernel.image).unwrap()).unwrap();
    assert_eq!((image.build_id.len(), image.release.as_str()), (20, release));
    let system = home.join("initramfs");
    build_small_system(home, &system, &perflab, &kernel, MACHINE, PROGRAMS);
    // What is installed on the machine, on its disk: a release, with its first file system.
    let (boot, disk) = (home.join("boot"), home.join("boot.img"));
    fs::create_dir(&boot).unwrap();
    fs::copy(&kernel.image, boot.join(format!("vmlinuz-{release}"))).unwrap();
    fs::copy(&system, boot.join(format!("initrd.img-{release}"))).unwrap();
    let room = fs::metadata(&system).unwrap().len() + (64 << 20);
    fs::File::create(&disk).unwrap().set_len(room.next_multiple_of(1 << 20)).unwrap();
    let made = Command::new("mkfs.ext4").args(["-q", "-F", "-d"]).arg(&boot).arg(&disk).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let machine = Machine::start(home, &kernel.image, &system, &disk);
    let (own, first) = (machine.command_line(), machine.boot_id());

    // A kernel that is not there: said before the machine is touched.
    let study = laboratory.write_study("none.toml", &study_text("9.9.9-none", "echo]", "[\"a\", \"b\"]"));
    let refused = machine.run(&laboratory, home, &["run", &study, "--no-report"]);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    insta::assert_snapshot!(refused.err_wording_of("9.9.9-none"), @"error: target box: no kernel N-none is installed there (/boot/vmlinuz-9.9.9-none /boot/bzImage-9.9.9-none /boot/kernel-9.9.9-none /lib/modules/N-none/vmlinuz); install it, or name its image by a path");
    assert_eq!(machine.boot_id(), first);

    let study = laboratory
        .write_study("kexec.toml", &study_text(release, "echo]", "[\"level.one=1\", \"level.two=2\"]"));
    let ended = machine.run(&laboratory, home, &["run", &study, "--no-report"]);
    let console = fs::read(home.join("console.log")).unwrap_or_default();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.err, String::from_utf8_lossy(&console));
    let run = laboratory.only_run();
    let manifest: Value = serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap();
    let variants = manifest["variants"].as_array().unwrap();
    let mut boots = vec![first];
    for variant in variants {
        let target = &variant["targets"][0];
        let level = variant["levels"]["words"].as_str().unwrap();
        let line = target["facts"]["kernel.cmdline"]["value"].as_str().unwrap();
        assert_eq!(line, format!("{own} {level}"));
        boots.push(target["boot_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(machine.command_line(), own, "its own kernel, as it was");
    boots.push(machine.boot_id());
    boots.sort_unstable();
    boots.dedup();
    assert_eq!(boots.len(), 4, "before, each level, after");

    // Killed in an iteration, the next perflab has the machine return. The iteration leaves the emulated machine time to answer.
    let text = study_text(release, "doze]\ncommand = \"sleep 100000\"", "[\"level.one=1\", \"level.two=2\"]");
    let study = laboratory.write_study("killed.toml", &text);
    let mut command = machine.command(&laboratory, home, &["run", &study, "--no-report"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !machine.ask("cat /proc/cmdline").is_some_and(|line| line.contains("level.")) {
        assert!(child.try_wait().unwrap().is_none() && begun.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let undone = machine.run(&laboratory, home, &["undo"]);
    assert_eq!(undone.code, Some(0), "{}", undone.err);
    assert_eq!(machine.command_line(), own);
    drop(machine);
    guests.assert_nothing_is_left();
}
