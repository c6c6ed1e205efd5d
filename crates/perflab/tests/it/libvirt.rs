//! A domain of libvirt's: a real libvirtd of the test's own starts a real QEMU, in which a real sshd runs.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use perflab_guest::{CpioWriter, Initramfs};
use perflab_guest::{GuestRoot, GuestWork, InitConfig};

use crate::caches::CachesLock;
use crate::laboratory::{Sandbox, skip_test, to_command_output};
use crate::ssh;
use crate::vm::GuestSandbox;

/// Everything that libvirt keeps is the test's own, in a mount namespace that ends with it. /dev/kvm is not there: where
/// it opens and is of no use, libvirt takes each QEMU for a new one and looks at it again, a minute each time. The user
/// that its package makes is there, even where the package that makes it was not installed.
const DAEMON: &str = r#"
set -e
for part in etc lib run cache sockets; do mkdir -p "$H/$part"; done
mkdir -p /etc/libvirt /var/lib/libvirt /run/libvirt /var/cache/libvirt
mount --bind "$H/etc" /etc/libvirt
mount --bind "$H/lib" /var/lib/libvirt
mount --bind "$H/run" /run/libvirt
mount --bind "$H/cache" /var/cache/libvirt
for file in passwd group; do cp "/etc/$file" "$H/$file"; done
grep -q ^libvirt-qemu: "$H/passwd" || echo libvirt-qemu:x:64055:64055::/:/usr/sbin/nologin >>"$H/passwd"
grep -q ^libvirt-qemu: "$H/group" || echo libvirt-qemu:x:64055: >>"$H/group"
grep -q ^kvm: "$H/group" || echo kvm:x:64056: >>"$H/group"
for file in passwd group; do mount --bind "$H/$file" "/etc/$file"; done
if [ -e /dev/kvm ]; then
  : >"$H/nothing"
  mount --bind "$H/nothing" /dev/kvm
  mount -o remount,bind,ro /dev/kvm
fi
cat >/etc/libvirt/qemu.conf <<CONF
user = "root"
group = "root"
security_driver = "none"
cgroup_controllers = [ ]
namespaces = [ ]
stdio_handler = "file"
dynamic_ownership = 0
remember_owner = 0
CONF
cat >"$H/daemon.conf" <<CONF
unix_sock_dir = "$H/sockets"
auth_unix_rw = "none"
CONF
exec libvirtd --config "$H/daemon.conf" --pid-file "$H/pid"
"#;

/// What the domain does: an sshd on the address that QEMU's network gives it, until its power button is pressed.
const GUEST: &str = "mkdir -p /run/sshd /root; ip addr add 10.0.2.15/24 dev eth0; ip link set eth0 up; \
    /usr/sbin/sshd -f /etc/sshd_config; \
    for e in /dev/input/event*; do (head -c 24 $e >/dev/null; kill $$) & done; wait";

/// libvirtd, and the domain that it may be running; both end with it.
struct LibvirtDaemon {
    child: Child,
    uri: String,
}

impl LibvirtDaemon {
    fn start(home: &Path) -> LibvirtDaemon {
        // Its namespace would keep another test's image mounted, and in memory.
        let _caches = CachesLock::acquire();
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", DAEMON]).env("H", home);
        let log = fs::File::create(home.join("daemon.log")).unwrap();
        let child =
            command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let socket = home.join("sockets/libvirt-sock");
        let daemon = LibvirtDaemon { child, uri: format!("qemu+unix:///system?socket={}", socket.display()) };
        let begun = Instant::now();
        while !socket.exists() {
            let log = || fs::read_to_string(home.join("daemon.log")).unwrap();
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
        daemon
    }

    fn run_virsh(&self, words: &[&str]) -> String {
        let mut command = Command::new("virsh");
        let said = to_command_output(command.args(["--connect", &self.uri]).args(words).output().unwrap());
        assert_eq!(said.code, Some(0), "virsh {words:?}: {}", said.err);
        said.out.trim().to_owned()
    }
}

impl Drop for LibvirtDaemon {
    fn drop(&mut self) {
        let mut command = Command::new("virsh");
        let _ = command.args(["--connect", &self.uri, "destroy", "box"]).output();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A machine's whole system: perflab as its first process, which loads modules and runs a script; sshd, the few programs with which
/// perflab's agent gets there.
pub fn build_small_system(
    home: &Path,
    path: &Path,
    perflab: &Path,
    kernel: &perflab_guest::KernelImage,
    script: &str,
    programs: &[&str],
) {
    let wanted = ["virtio_pci", "virtio_console", "virtio_net", "virtio_blk", "ext4", "button", "evdev"];
    let modules = kernel.modules().unwrap().loading_order(&wanted).unwrap();
    let environment = vec![("PATH".into(), "/usr/sbin:/usr/bin:/sbin:/bin".into())];
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    let orders = InitConfig {
        name: "box".into(),
        modules: modules.iter().map(|module| module.name.clone()).collect(),
        root: GuestRoot::Bare,
        work: GuestWork::Command(perflab_guest::GuestCommand { argv, directory: "/".into(), environment }),
        vsock: None,
        network: perflab_guest::GuestAddresses::default(),
    };
    let programs: Vec<String> = programs.iter().map(|program| (*program).to_owned()).collect();
    Initramfs { perflab, modules: &modules, orders: &orders, programs: &programs }.write(path).unwrap();
    // A second archive behind the first.
    let mut archive = CpioWriter::new(fs::OpenOptions::new().append(true).open(path).unwrap());
    let read = |name: &str| fs::read(home.join(name)).unwrap();
    let users = "root:x:0:0:root:/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n";
    let server = "HostKey /etc/host_key\nAuthorizedKeysFile /etc/authorized\nStrictModes no\nUsePAM no\n\
                  PermitRootLogin yes\nPidFile none\nUseDNS no\n";
    for (name, content) in [
        ("/etc/passwd", users.into()),
        ("/etc/sshd_config", server.into()),
        ("/etc/authorized", read("user_key.pub")),
    ] {
        archive.add_file(Path::new(name), &content).unwrap();
    }
    archive.add_private_file(Path::new("/etc/host_key"), &read("host_key")).unwrap();
    archive.add_file(Path::new("/bin/sh"), &fs::read(fs::canonicalize("/bin/sh").unwrap()).unwrap()).unwrap();
    archive.finish().unwrap();
}

fn domain_xml(home: &Path, kernel: &Path, initramfs: &Path, port: u16) -> String {
    let (home, kernel, initramfs) = (home.display(), kernel.display(), initramfs.display());
    format!(
        "<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n\
         <name>box</name><memory unit='MiB'>1024</memory><vcpu>1</vcpu>\n\
         <os><type arch='x86_64' machine='q35'>hvm</type><kernel>{kernel}</kernel><initrd>{initramfs}</initrd>\n\
         <cmdline>console=ttyS0 panic=-1 no_timer_check cryptomgr.notests rdinit=/run/perflab/perflab</cmdline></os>\n\
         <features><acpi/></features><on_reboot>destroy</on_reboot><on_crash>destroy</on_crash>\n\
         <cpu mode='maximum'><feature policy='disable' name='erms'/></cpu>\n\
         <devices><emulator>/usr/bin/qemu-system-x86_64</emulator>\n\
         <serial type='file'><source path='{home}/console.log'/></serial>\n\
         <channel type='file'><source path='{home}/control'/><target type='virtio' name='perflab.control'/></channel>\n\
         <controller type='usb' model='none'/><memballoon model='none'/></devices>\n\
         <qemu:commandline><qemu:arg value='-netdev'/>\n\
         <qemu:arg value='user,id=n0,restrict=on,hostfwd=tcp:127.0.0.1:{port}-10.0.2.15:22'/>\n\
         <qemu:arg value='-device'/><qemu:arg value='virtio-net-pci,netdev=n0,romfile=,addr=0x1c'/>\n\
         </qemu:commandline></domain>\n"
    )
}

/// perflab without what only debuggers read: it travels through an emulated network.
pub fn strip_perflab(home: &Path) -> PathBuf {
    let path = home.join("perflab");
    let stripped = Command::new("strip").arg("-o").arg(&path).arg(env!("CARGO_BIN_EXE_perflab")).status();
    assert!(stripped.unwrap().success());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn needs_root_a_real_domain_is_started_works_and_is_shut_down_again() {
    let name = "needs_root_a_real_domain_is_started_works_and_is_shut_down_again";
    let Some(guests) = GuestSandbox::new(name) else { return };
    if ["libvirtd", "virsh", "sshd", "strip"].iter().any(|program| !ssh::is_program_there(program)) {
        return skip_test(name, "libvirtd, virsh, sshd, strip");
    }
    let (home, laboratory) = (guests.home(), Sandbox::new());
    let perflab = strip_perflab(home);
    ["host_key", "user_key"].iter().for_each(|name| ssh::make_ssh_key(&home.join(name)));
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let kernel = perflab_guest::find_kernel("debian-cloud", None).unwrap();
    let initramfs = home.join("initramfs");
    let programs = ["sh", "sshd", "mkdir", "ip", "head", "tar", "rm"];
    build_small_system(home, &initramfs, &perflab, &kernel, GUEST, &programs);
    fs::write(home.join("box.xml"), domain_xml(home, &kernel.image, &initramfs, port)).unwrap();
    let daemon = LibvirtDaemon::start(home);
    daemon.run_virsh(&["define", &home.join("box.xml").display().to_string()]);
    let study = laboratory.write_study(
        "libvirt.toml",
        &format!(
            "run = {{ iterations = 2, warmup = 0 }}\n[workload.echo]\n[target.box]\nkind = \"libvirt\"\n\
             address = \"box\"\ndomain = \"box\"\nconnect = \"{}\"\n",
            daemon.uri
        ),
    );
    let path = format!("{}:{}", ssh::make_ssh_client(home, port).display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(&perflab);
    command.arg("--workloads").arg(laboratory.path("workloads")).args(["run", &study, "--no-report"]);
    command.current_dir(home).env("PERFLAB_ARCHIVE", laboratory.path("archive")).env("PATH", path);
    let ended = to_command_output(command.env("PERFLAB_STATE", laboratory.path("state")).output().unwrap());
    let console = fs::read(home.join("console.log")).unwrap_or_default();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.err, String::from_utf8_lossy(&console));
    assert_eq!(daemon.run_virsh(&["domstate", "box"]), "shut off", "as it was before");
    let run = laboratory.only_run();
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap();
    assert_eq!(manifest["targets"][0]["kernel"], kernel.release, "what ran there");
    let outputs = Command::new("zstd").arg("-dc").arg(run.join("logs/outputs.jsonl.zst")).output().unwrap();
    let outputs = String::from_utf8_lossy(&outputs.stdout);
    assert!(
        outputs.contains("<domain type='qemu'") && outputs.contains("<name>box</name>"),
        "its XML is kept"
    );
    drop(daemon);
    guests.assert_nothing_is_left();
}
