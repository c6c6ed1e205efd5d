//! Real guests: QEMU boots Debian's cloud kernel, by KVM where it runs code, else by TCG.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use perflab_guest::find_closure;

use crate::containers::{list_tree, make_small_root};
use crate::laboratory::{CommandOutput, Sandbox, is_root, skip_test, to_command_output};
use crate::ssh::is_program_there;

/// A laboratory whose guests are nobody else's.
pub struct GuestSandbox {
    home: tempfile::TempDir,
}

impl Drop for GuestSandbox {
    /// Guests that a failed test left: one started to stay would stay for good.
    fn drop(&mut self) {
        for pid in self.processes() {
            if let Some(pid) = rustix::process::Pid::from_raw(pid as i32) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

impl GuestSandbox {
    /// None, said visibly, where the machine cannot boot guests.
    pub fn new(test: &str) -> Option<GuestSandbox> {
        let qemu = Command::new("qemu-system-x86_64").arg("--version").output().is_ok();
        if !qemu || !is_root() {
            skip_test(test, "needs qemu-system-x86 and root");
            return None;
        }
        cloud_kernel();
        let home = tempfile::Builder::new().prefix("pv").tempdir().unwrap();
        fs::create_dir(home.path().join("tmp")).unwrap();
        Some(GuestSandbox { home })
    }

    /// What is left of its folder for temporary files.
    fn temporary_files(&self) -> Vec<PathBuf> {
        fs::read_dir(self.home.path().join("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// Where their folders are.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_perflab"));
        command.args(words).stdin(Stdio::null()).current_dir("/");
        command.env("XDG_RUNTIME_DIR", self.home.path());
        command.env("PERFLAB_STATE", self.home.path().join("state"));
        command.env("TMPDIR", self.home.path().join("tmp"));
        command
    }

    fn run(&self, words: &[&str]) -> CommandOutput {
        to_command_output(self.command(words).output().unwrap())
    }

    /// A guest that sleeps, once its command runs.
    fn start_sleeping_guest(&self) -> Child {
        let script = "echo awake; exec sleep 1000";
        let mut command =
            self.command(&["vm", "boot", "--root", "bare", "--with", "sleep", "--", "sh", "-c", script]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = [0; 6];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        assert_eq!(&line, b"awake\n");
        child
    }

    /// Processes that have this laboratory in their command line: QEMU, virtiofsd, launchers.
    pub fn processes(&self) -> Vec<u32> {
        let mark = self.home.path().to_str().unwrap().as_bytes();
        let all = fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let ours = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.windows(mark.len()).any(|window| window == mark)
        };
        pids.filter(ours).collect()
    }

    /// Processes, folders, sockets and mounts that are left.
    fn list_leftovers(&self) -> Vec<String> {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let mounts = mounts.lines().filter(|line| line.contains(self.home.path().to_str().unwrap()));
        let folders = fs::read_dir(self.home.path().join("perflab")).into_iter().flatten().flatten();
        let mut left: Vec<String> = mounts.map(str::to_owned).collect();
        left.extend(folders.map(|entry| entry.path().display().to_string()));
        left.extend(self.processes().iter().map(|pid| format!("process {pid}")));
        left
    }

    /// Folders, sockets and files of guests that somebody else may use.
    fn files_open_to_others(&self) -> Vec<PathBuf> {
        let folders: Vec<PathBuf> = fs::read_dir(self.home.path().join("perflab"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        let inside = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap().flatten());
        let sockets = inside.filter(|entry| entry.file_type().unwrap().is_socket()).map(|entry| entry.path());
        let all: Vec<PathBuf> = folders.iter().cloned().chain(sockets).collect();
        assert!(all.len() > folders.len(), "there are sockets");
        all.into_iter().filter(|path| fs::metadata(path).unwrap().mode() & 0o077 != 0).collect()
    }

    pub fn assert_nothing_is_left(&self) {
        // A killed process takes a moment to go.
        let begun = Instant::now();
        while !self.list_leftovers().is_empty() && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(self.list_leftovers(), Vec::<String>::new());
    }
}

/// Debian's cloud kernel, fetched once for all tests and runs.
fn cloud_kernel() -> PathBuf {
    static KERNEL: OnceLock<PathBuf> = OnceLock::new();
    let find = || {
        let perflab = || Command::new(env!("CARGO_BIN_EXE_perflab"));
        let shown = to_command_output(
            perflab().args(["kernel", "show", "debian-cloud", "--format", "csv"]).output().unwrap(),
        );
        let image = shown.out.lines().find_map(|line| line.strip_prefix("image,").map(PathBuf::from));
        image.unwrap_or_else(|| {
            let fetched =
                to_command_output(perflab().args(["kernel", "fetch", "debian-cloud"]).output().unwrap());
            assert_eq!(fetched.code, Some(0), "{}", fetched.err);
            PathBuf::from(fetched.out.trim())
        })
    };
    KERNEL.get_or_init(find).clone()
}

#[test]
fn a_command_under_another_kernel_is_as_if_it_ran_here() {
    let Some(guests) = GuestSandbox::new("a_command_under_another_kernel_is_as_if_it_ran_here") else {
        return;
    };
    let script = "uname -r; cat; echo wrong >&2; touch /usr/perflab-test && ls /usr/perflab-test; \
                  dd if=/dev/zero of=/tmp/full bs=1M 2>/dev/null || echo full; ip -o addr show lo | grep -c 127.0.0.1; exit 7";
    let mut child = guests
        .command(&["vm", "boot", "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"through and through\n").unwrap();
    let ended = to_command_output(child.wait_with_output().unwrap());
    let release =
        cloud_kernel().file_name().unwrap().to_str().unwrap().strip_prefix("vmlinuz-").unwrap().to_owned();
    let wanted = format!("{release}\nthrough and through\n/usr/perflab-test\nfull\n1\n");
    assert_eq!((ended.code, ended.out.as_str()), (Some(7), wanted.as_str()), "{}", ended.err);
    assert!(ended.err.lines().any(|line| line == "wrong"), "{}", ended.err);
    assert!(ended.err.contains("/dev/kvm"), "why this accelerator: {}", ended.err);
    assert!(!Path::new("/usr/perflab-test").exists(), "the host's root is read-only");
    guests.assert_nothing_is_left();
}

#[test]
fn a_folder_is_the_root_of_a_guest_and_stays_as_it_is() {
    let Some(guests) = GuestSandbox::new("a_folder_is_the_root_of_a_guest_and_stays_as_it_is") else {
        return;
    };
    let laboratory = Sandbox::new();
    // A comma is one of QEMU's own signs.
    let root = make_small_root(&laboratory, "small,root", 7);
    let before = list_tree(&root);
    let script = "cat /etc/speed; touch /etc/made && cat /etc/made; test -e /etc/passwd || echo alone";
    let words = ["vm", "boot", "--root", root.to_str().unwrap(), "--", "sh", "-c", script];
    let ended = guests.run(&words);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "speed 7\nalone\n"), "{}", ended.err);
    assert_eq!(list_tree(&root), before);
    guests.assert_nothing_is_left();
}

#[test]
fn four_guests_at_once_each_with_its_own_end() {
    let Some(guests) = GuestSandbox::new("four_guests_at_once_each_with_its_own_end") else { return };
    let children: Vec<Child> = ["exit 0", "exit 3", "kill -9 $$", "head -c 300000 /dev/zero | wc -c"]
        .iter()
        .map(|script| {
            let words =
                ["vm", "boot", "--root", "bare", "--with", "head", "--with", "wc", "--", "sh", "-c", script];
            guests.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let ended: Vec<CommandOutput> =
        children.into_iter().map(|child| to_command_output(child.wait_with_output().unwrap())).collect();
    let codes: Vec<Option<i32>> = ended.iter().map(|one| one.code).collect();
    assert_eq!(codes, [Some(0), Some(3), Some(137), Some(0)], "{}", ended[3].err);
    assert_eq!(ended[3].out, "300000\n");
    guests.assert_nothing_is_left();
}

#[test]
fn a_guest_that_dies_is_said_at_once() {
    let Some(guests) = GuestSandbox::new("a_guest_that_dies_is_said_at_once") else { return };
    let child = guests.start_sleeping_guest();
    let qemu = guests.processes();
    assert!(!qemu.is_empty());
    let begun = Instant::now();
    for pid in qemu {
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(pid as i32).unwrap(),
            rustix::process::Signal::KILL,
        )
        .unwrap();
    }
    let ended = to_command_output(child.wait_with_output().unwrap());
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    insta::assert_snapshot!(ended.err_wording_of("error: "), @"error: guest debian-cloud ended before its command; the last lines of its console, /tmp/TMP/tmp/perflab-PID-TMP/debian-cloud.console.log:");
    guests.assert_nothing_is_left();
}

#[test]
fn interrupted_or_killed_perflab_leaves_nothing() {
    let Some(guests) = GuestSandbox::new("interrupted_or_killed_perflab_leaves_nothing") else { return };
    let (asked, mut killed) = (guests.start_sleeping_guest(), guests.start_sleeping_guest());
    assert!(guests.list_leftovers().len() >= 4, "{:?}", guests.list_leftovers());
    assert_eq!(guests.files_open_to_others(), Vec::<PathBuf>::new());
    let pid = rustix::process::Pid::from_child(&asked);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(asked.wait_with_output().unwrap().status.code(), Some(4));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let begun = Instant::now();
    while !guests.processes().is_empty() && begun.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(guests.processes(), Vec::<u32>::new(), "QEMU ends with perflab, however that ends");
    // The folder of a killed perflab's guest goes when the next one looks, unless it is brand-new.
    let folder = fs::read_dir(guests.home.path().join("perflab")).unwrap().next().unwrap().unwrap().path();
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(60);
    fs::File::open(&folder).unwrap().set_modified(long_ago).unwrap();
    // The console's log of the one that was killed goes by `undo`, and so does its folder; both are named.
    let [logs] = &guests.temporary_files()[..] else { panic!("{:?}", guests.temporary_files()) };
    // A QEMU whose last breath takes long (its memory goes first) still holds its sockets.
    let begun = Instant::now();
    let mut named = String::new();
    while !guests.list_leftovers().is_empty() && begun.elapsed() < Duration::from_secs(30) {
        let undone = guests.run(&["undo"]);
        named += &(undone.out + &undone.err);
    }
    guests.assert_nothing_is_left();
    for gone in [logs, &folder] {
        assert!(named.contains(gone.to_str().unwrap()), "{}: {named}", gone.display());
    }
    assert_eq!(guests.temporary_files(), Vec::<PathBuf>::new());
}

#[test]
fn a_kernel_that_panics_is_shown_with_its_last_words() {
    let Some(guests) = GuestSandbox::new("a_kernel_that_panics_is_shown_with_its_last_words") else { return };
    let ended = guests.run(&[
        "vm",
        "boot",
        "--root",
        "bare",
        "--append",
        "rdinit=/no-such-init root=/dev/none",
        "--",
        "true",
    ]);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    guests.assert_nothing_is_left();
    let logs = kept_logs(&ended).unwrap();
    let console = fs::read_to_string(logs.join("debian-cloud.console.log")).unwrap();
    // What the kernel said of its end is in the error.
    let panic = console.lines().find_map(|line| Some(line.split_once("Kernel panic")?.1)).unwrap();
    assert!(ended.err.contains(panic.trim_end()), "{panic} {}", ended.err);
    fs::remove_dir_all(logs).unwrap();
}

/// The processor of the first guest stands still (`-S`); the second is as it should be.
#[test]
fn a_guest_that_is_late_is_tried_once_more() {
    let Some(guests) = GuestSandbox::new("a_guest_that_is_late_is_tried_once_more") else { return };
    let programs = guests.home.path().join("programs");
    let tried = guests.home.path().join("tried");
    fs::create_dir(&programs).unwrap();
    let path = std::env::var("PATH").unwrap();
    let stands = format!("case \"$*\" in *-kernel*) mkdir '{}' && set -- \"$@\" -S;; esac", tried.display());
    let script = format!("PATH='{path}'\n{stands}\nexec qemu-system-x86_64 \"$@\"");
    crate::image::write_executable_script(&programs.join("qemu-system-x86_64"), &script);
    let logs = guests.home.path().join("logs");
    let path = format!("{}:{path}", programs.display());
    let words = ["vm", "boot", "--root", "bare", "--with", "uname", "--boot-within", "40s", "--logs"];
    let mut boot = guests.command(&words);
    let ended =
        to_command_output(boot.arg(&logs).args(["--", "uname", "-n"]).env("PATH", path).output().unwrap());
    assert_eq!((ended.code, ended.out.trim()), (Some(0), "debian-cloud"), "{}", ended.err);
    assert!(logs.join("debian-cloud.console.first.log").is_file() && tried.is_dir());
    guests.assert_nothing_is_left();
    let wrong = guests.run(&["vm", "boot", "--boot-within", "soon", "--", "true"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.err);
    insta::assert_snapshot!(wrong.stable_err(), @"
    error: invalid value 'soon' for '--boot-within <TIME>': `soon` is not a time: write a number with ns, us, ms, s, min, h or d, such as `100ms`

    For more information, try '--help'.
    ");
}

/// A QEMU that opens no socket, and one whose monitor says nothing: ^C waits for neither.
#[test]
fn who_stops_a_boot_does_not_wait_for_a_qemu_that_is_silent() {
    let Some(guests) = GuestSandbox::new("who_stops_a_boot_does_not_wait_for_a_qemu_that_is_silent") else {
        return;
    };
    let programs = guests.home.path().join("programs");
    fs::create_dir(&programs).unwrap();
    let begun = guests.home.path().join("begun");
    let path = std::env::var("PATH").unwrap();
    let silent = format!(
        "PATH='{path}'\ncase \"$*\" in *-kernel*) touch '{}'; exec sleep 1000;; esac",
        begun.display()
    );
    let script = format!("{silent}\nexec qemu-system-x86_64 \"$@\"");
    crate::image::write_executable_script(&programs.join("qemu-system-x86_64"), &script);
    let wait_for = |there: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !there() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it never came");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    for has_sockets in [false, true] {
        let words = ["vm", "boot", "--root", "bare", "--pin", "0", "--boot-within", "900s", "--", "true"];
        let mut boot = guests.command(&words);
        boot.env("PATH", format!("{}:{path}", programs.display())).stderr(Stdio::piped());
        let boot = boot.spawn().unwrap();
        wait_for(&|| begun.exists());
        let (mut sockets, mut heard) = (Vec::new(), Vec::new());
        if has_sockets {
            let mut folders = fs::read_dir(guests.home.path().join("perflab")).unwrap().flatten();
            let folder = folders.next().unwrap().path();
            for name in ["qmp", "shell", "control"] {
                sockets.push(std::os::unix::net::UnixListener::bind(folder.join(name)).unwrap());
            }
            // It has come to the monitor, and waits for its greeting.
            heard.push(sockets[0].accept().unwrap());
        }
        let pid = rustix::process::Pid::from_child(&boot);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let ended = to_command_output(boot.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(4), "{has_sockets}: {}", ended.err);
        fs::remove_file(&begun).unwrap();
        guests.assert_nothing_is_left();
    }
}

#[test]
fn a_guest_that_stays_is_listed_has_a_shell_and_is_stopped() {
    let Some(guests) = GuestSandbox::new("a_guest_that_stays_is_listed_has_a_shell_and_is_stopped") else {
        return;
    };
    let ended = guests.run(&["vm", "boot", "--root", "bare", "--with", "uname", "--name", "box", "--stay"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let logs = ended.err.lines().find_map(|line| line.strip_prefix("the guest's logs are in ")).unwrap();
    let console = fs::read_to_string(Path::new(logs).join("box.console.log")).unwrap();
    assert!(console.contains("Linux version"), "{console}");
    let id = ended.out.trim();
    assert!(guests.run(&["vm", "list"]).out.contains(id));
    let mut shell =
        guests.command(&["vm", "shell", "box"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = shell.stdin.take().unwrap();
    input.write_all(b"uname -r; echo do''ne\r").unwrap();
    let mut heard = String::new();
    let mut output = shell.stdout.take().unwrap();
    let mut buffer = [0; 512];
    while !heard.contains("done") {
        let length = std::io::Read::read(&mut output, &mut buffer).unwrap();
        assert!(length > 0, "{heard}");
        heard.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    let release =
        cloud_kernel().file_name().unwrap().to_str().unwrap().strip_prefix("vmlinuz-").unwrap().to_owned();
    assert!(heard.lines().any(|line| line.trim_end().ends_with(&release)), "{heard}");
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert_eq!(guests.run(&["vm", "stop", id]).code, Some(0));
    guests.assert_nothing_is_left();
    let gone = guests.run(&["vm", "stop", "box"]);
    assert_eq!(gone.code, Some(2), "{}", gone.err);
    insta::assert_snapshot!(gone.stable_err(), @"error: no guest `box` is running; `perflab vm boot --stay` starts one");
    assert_eq!(guests.temporary_files(), Vec::<PathBuf>::new(), "its logs go with it");
}

#[test]
fn bad_wishes_are_refused_before_anything_starts() {
    let Some(guests) = GuestSandbox::new("bad_wishes_are_refused_before_anything_starts") else { return };
    let refused = [
        (&["--kernel", "debian-clod", "--", "true"][..], 2),
        (&["--kernel", "/etc/passwd", "--", "true"], 3),
        (&["--root", "no-such.qcow2", "--", "true"], 2),
        (&["--memory", "lots", "--", "true"], 2),
        (&["--node", "2:x", "--", "true"], 2),
        (&["--root", "bare", "--", "no-such-program"], 2),
        (&["--", "no-such-program"], 2),
        (&["--modules", "/no/such/folder", "--", "true"], 2),
        (&["--name", "a,b", "--", "true"], 2),
        (&["--name", "../../x", "--", "true"], 2),
    ];
    let errors = refused.map(|(words, code)| {
        let ended = guests.run(&[&["vm", "boot"], words].concat());
        assert_eq!(ended.code, Some(code), "{words:?}: {}", ended.err);
        ended.err_wording_of("error: ") + "\n"
    });
    insta::assert_snapshot!(errors.concat());
    // A newcomer's first try, with nothing fetched.
    let mut first = guests.command(&["vm", "boot", "--", "true"]);
    let first = to_command_output(first.env("PERFLAB_CACHE", guests.home().join("cache")).output().unwrap());
    assert_eq!(first.code, Some(3), "{}", first.err);
    insta::assert_snapshot!(first.err.trim(), @"error: the kernel `debian-cloud` is not here yet: `perflab kernel fetch debian-cloud` gets it");
    guests.assert_nothing_is_left();
    assert_eq!(guests.temporary_files(), Vec::<PathBuf>::new());
}

#[test]
fn qemu_takes_what_perflab_does_not_know_and_not_what_it_sets_itself() {
    let test = "qemu_takes_what_perflab_does_not_know_and_not_what_it_sets_itself";
    let Some(guests) = GuestSandbox::new(test) else { return };
    // 0x1002 is the balloon of virtio, in its older form.
    let script = "cat /sys/bus/pci/devices/*/device";
    let boot = ["vm", "boot", "--root", "bare", "--with", "sh", "--with", "cat"];
    let balloon = ["--qemu-option=-device", "--qemu-option=virtio-balloon-pci,disable-modern=on"];
    let command = ["--", "sh", "-c", script];
    let plain = guests.run(&[&boot[..], &command].concat());
    let with_balloon = guests.run(&[&boot[..], &balloon, &command].concat());
    let count = |output: &CommandOutput| output.out.lines().filter(|line| line.trim() == "0x1002").count();
    assert_eq!((count(&plain), count(&with_balloon)), (0, 1), "{}{}", plain.err, with_balloon.err);
    // A program that is packed by its name is found where scripts look for it.
    let shell = guests.run(&[&boot[..], &["--", "/bin/sh", "-c", "exit 7"]].concat());
    assert_eq!(shell.code, Some(7), "{}", shell.err);
    let own = guests.run(&[&boot[..], &["--qemu-option=-m", "--qemu-option=1G"], &command].concat());
    assert_eq!(own.code, Some(2), "{}", own.err);
    guests.assert_nothing_is_left();
}

#[test]
fn a_program_of_this_hosts_tmp_is_packed_for_a_bare_root_and_told_as_hidden_from_a_shared_one() {
    let test = "a_program_of_this_hosts_tmp_is_packed_for_a_bare_root_and_told_as_hidden_from_a_shared_one";
    let Some(guests) = GuestSandbox::new(test) else { return };
    let program = tempfile::Builder::new().prefix("hidden").tempfile_in("/tmp").unwrap().into_temp_path();
    fs::remove_file(&program).unwrap();
    crate::image::write_executable_script(&program, "echo here");
    let path = program.to_str().unwrap();
    let bare = guests.run(&["vm", "boot", "--root", "bare", "--with", "sh", "--", path]);
    assert_eq!((bare.code, bare.out.as_str()), (Some(0), "here\n"), "{}", bare.err);
    let shared = guests.run(&["vm", "boot", "--", path]);
    assert_eq!(shared.code, Some(1), "{}", shared.err);
    insta::assert_snapshot!(shared.err_wording_of("error: ").replace(path, "PROGRAM"), @"error: guest debian-cloud: cannot start PROGRAM: No such file or directory (os error N); a guest has a /tmp of its own, so put it elsewhere");
    guests.assert_nothing_is_left();
}

/// The threads of QEMU's virtual processors, with the CPUs that they may use.
fn pinned_threads(qemu: u64) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{qemu}/task")).unwrap().flatten().map(|task| task.path());
    let cpu = |task: PathBuf| {
        let name = fs::read_to_string(task.join("comm")).ok()?;
        let status = fs::read_to_string(task.join("status")).ok()?;
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        name.starts_with("CPU ").then(|| format!("{} on {}", name.trim(), allowed.trim()))
    };
    let mut all: Vec<String> = tasks.filter_map(cpu).collect();
    all.sort();
    all
}

/// Where the host's kernel takes the memory of a QEMU's nodes from, node by node.
fn memory_policies(qemu: u64) -> Vec<String> {
    let maps = fs::read_to_string(format!("/proc/{qemu}/numa_maps")).unwrap();
    let memory = maps.lines().filter(|line| line.contains("memory-backend-memfd"));
    let mut policies: Vec<String> = memory.map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect();
    policies.sort();
    policies
}

/// Whether a QEMU has opened that file past the page cache (`O_DIRECT`).
fn is_opened_direct(qemu: u64, file: &Path) -> bool {
    let files = fs::read_dir(format!("/proc/{qemu}/fd")).unwrap().flatten();
    let file = files.filter(|fd| fs::read_link(fd.path()).is_ok_and(|path| path == file)).last().unwrap();
    let number = file.file_name().into_string().unwrap();
    let details = fs::read_to_string(format!("/proc/{qemu}/fdinfo/{number}")).unwrap();
    let flags = details.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim();
    u32::from_str_radix(flags, 8).unwrap() & 0o40000 != 0
}

/// Where the logs of a guest that gave up are kept.
fn kept_logs(ended: &CommandOutput) -> Option<PathBuf> {
    ended.err.lines().find_map(|line| line.strip_prefix("the guest's logs are in ")).map(PathBuf::from)
}

/// The two sizes, in MiB, of what a refused guest's kernel and first file system take.
fn refused_guest_sizes(said: &CommandOutput) -> Vec<u64> {
    let numbers =
        said.err.split("MiB").filter_map(|part| part.split_whitespace().next_back()?.parse::<f64>().ok());
    numbers.map(|mib| mib as u64).collect()
}

#[test]
fn a_guest_with_too_little_memory_is_told_what_to_set() {
    let Some(guests) = GuestSandbox::new("a_guest_with_too_little_memory_is_told_what_to_set") else {
        return;
    };
    let boot = |memory: &str| guests.run(&["vm", "boot", "--root", "bare", "--memory", memory, "--", "true"]);
    let refused = boot("32MiB");
    assert_eq!(refused.code, Some(3), "{}", refused.err);
    insta::assert_snapshot!(refused.err_wording_of("error: "), @"error: guest debian-cloud has too little memory with N MiB: its kernel takes N MiB and its first file system N MiB, twice while it is unpacked; give it N MiB or more (`--memory`, or `memory` in the study)");
    let sizes = refused_guest_sizes(&refused);
    let [_, kernel, initramfs, good] = sizes[..] else { panic!("{sizes:?} {}", refused.err) };
    assert!(kernel > 30 && initramfs > 10 && good >= kernel + 3 * initramfs, "{sizes:?}");
    // Enough for the check, and not for the kernel: it says so on its console.
    let panicked = boot(&format!("{}MiB", kernel + 2 * initramfs + 4));
    assert_eq!(panicked.code, Some(3), "{}", panicked.err);
    let advice = |ended: &CommandOutput| {
        let wording = ended.err_wording_of("error: ");
        wording.rsplit_once("; ").map(|(_, advice)| advice.to_owned()).unwrap()
    };
    assert_eq!(advice(&panicked), advice(&refused));
    guests.assert_nothing_is_left();
    assert_eq!(kept_logs(&refused), None, "one that never started has no logs");
    fs::remove_dir_all(kept_logs(&panicked).unwrap()).unwrap();
}

#[test]
fn memory_on_a_node_that_the_host_has_not_is_said_in_qemus_words() {
    let Some(guests) = GuestSandbox::new("memory_on_a_node_that_the_host_has_not_is_said_in_qemus_words")
    else {
        return;
    };
    let ended = guests.run(&["vm", "boot", "--root", "bare", "--node", "1:512MiB:99", "--", "true"]);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    guests.assert_nothing_is_left();
    let logs = kept_logs(&ended).unwrap();
    let words = fs::read_to_string(logs.join("debian-cloud.qemu.log")).unwrap();
    assert!(!words.trim().is_empty() && ended.err.contains(words.trim()), "{words:?} {}", ended.err);
    fs::remove_dir_all(logs).unwrap();
}

#[test]
fn what_is_said_of_a_guest_is_so_inside() {
    let Some(guests) = GuestSandbox::new("what_is_said_of_a_guest_is_so_inside") else { return };
    let caches = ["none", "writeback", "writethrough", "directsync", "unsafe"];
    let images = caches.map(|cache| guests.home().join(format!("{cache}.img")));
    images.iter().for_each(|image| fs::write(image, vec![7; 1 << 20]).unwrap());
    let script = "nproc; cat /sys/devices/system/node/online; cat /sys/devices/system/node/node1/cpulist; \
                  grep -o perflab.test=1 /proc/cmdline; grep -m1 -o Nehalem /proc/cpuinfo; \
                  cat /sys/block/vd[a-e]/queue/write_cache; cat /sys/block/vda/size; \
                  head -c 4096 /dev/zero >/dev/vda; head -c 1 /dev/vda | od -An -tu1; echo awake >&2; read line";
    let programs = ["nproc", "cat", "grep", "head", "od"];
    let mut words =
        vec!["vm", "boot", "--root", "bare", "--name", "said", "--node", "1:320MiB:0", "--node", "1:192MiB"];
    words.extend([
        "--pin",
        "1,0",
        "--append",
        "perflab.test=1",
        "--accelerator",
        "tcg",
        "--cpu-model",
        "Nehalem",
    ]);
    let disks: Vec<String> =
        images.iter().zip(caches).map(|(image, cache)| format!("{}:{cache}", image.display())).collect();
    disks.iter().for_each(|disk| words.extend(["--disk", disk]));
    programs.iter().for_each(|program| words.extend(["--with", program]));
    words.extend(["--quiet", "--", "sh", "-c", script]);
    let mut command = guests.command(&words);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut heard = Vec::new();
    while !heard.ends_with(b"awake\n") {
        let mut byte = [0];
        if std::io::Read::read(child.stderr.as_mut().unwrap(), &mut byte).unwrap() == 0 {
            panic!("{}", String::from_utf8_lossy(&heard));
        }
        heard.push(byte[0]);
    }
    let folder = fs::read_dir(guests.home().join("perflab")).unwrap().next().unwrap().unwrap().path();
    let note: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("guest.json")).unwrap()).unwrap();
    if std::thread::available_parallelism().unwrap().get() > 1 {
        assert_eq!(pinned_threads(note["pid"].as_u64().unwrap()), ["CPU 0/TCG on 1", "CPU 1/TCG on 0"]);
    }
    let qemu = note["pid"].as_u64().unwrap();
    assert_eq!(
        memory_policies(qemu),
        ["bind:0", "default"],
        "the first node's memory is the host's node 0's"
    );
    let direct: Vec<bool> = images.iter().map(|image| is_opened_direct(qemu, image)).collect();
    assert_eq!(direct, [true, false, false, true, false], "past the host's page cache: none and directsync");
    child.stdin.take().unwrap().write_all(b"go on\n").unwrap();
    let ended = to_command_output(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let lines: Vec<&str> = ended.out.lines().map(str::trim).collect();
    let wanted = ["2", "0-1", "1", "perflab.test=1", "Nehalem"];
    let disks = ["write back", "write back", "write through", "write through", "write back", "2048", "0"];
    assert_eq!(lines, [&wanted[..], &disks[..]].concat());
    assert!(fs::read(&images[0]).unwrap().iter().all(|byte| *byte == 7), "what it wrote is gone with it");
    guests.assert_nothing_is_left();
}

/// A small system of the test's own on the first partition of a disk image.
fn build_small_system(home: &Path) -> PathBuf {
    let tree = home.join("tree");
    let add = |path: &Path| {
        let place = tree.join(path.strip_prefix("/").unwrap());
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(path, place).unwrap();
    };
    for program in ["sh", "cat"] {
        let needed = find_closure(program).unwrap();
        needed.libraries.values().chain(&needed.interpreter).for_each(|file| add(file));
        fs::create_dir_all(tree.join("bin")).unwrap();
        fs::copy(&needed.program, tree.join("bin").join(program)).unwrap();
    }
    fs::write(tree.join("mark"), "the image's\n").unwrap();
    let run = |words: &[&str]| {
        let done =
            to_command_output(Command::new(words[0]).args(&words[1..]).current_dir(home).output().unwrap());
        assert_eq!(done.code, Some(0), "{words:?}: {}", done.err);
    };
    run(&["mkfs.ext4", "-q", "-d", "tree", "partition", "32M"]);
    // A table with one partition of Linux's kind, a mebibyte from the beginning.
    let mut disk = vec![0; 1 << 20];
    disk[446 + 4] = 0x83;
    disk[446 + 8..446 + 12].copy_from_slice(&2048_u32.to_le_bytes());
    disk[446 + 12..446 + 16].copy_from_slice(&((32_u32 << 20) / 512).to_le_bytes());
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    disk.extend(fs::read(home.join("partition")).unwrap());
    fs::write(home.join("disk"), disk).unwrap();
    run(&["qemu-img", "convert", "-O", "qcow2", "disk", "root.qcow2"]);
    home.join("root.qcow2")
}

#[test]
fn a_partition_of_an_image_is_a_root_and_stays_as_it_was() {
    let test = "a_partition_of_an_image_is_a_root_and_stays_as_it_was";
    let Some(guests) = GuestSandbox::new(test) else { return };
    if !is_program_there("qemu-img") || !is_program_there("mkfs.ext4") {
        return skip_test(test, "qemu-img, mkfs.ext4");
    }
    let image = build_small_system(guests.home());
    let before = fs::read(&image).unwrap();
    let root = format!("{}:1", image.display());
    let script = "cat /mark; echo changed >/mark; cat /mark; while read d p t r; do [ $p = / ] && echo $d $t; done </proc/mounts; exit 3";
    let ended = guests.run(&["vm", "boot", "--root", &root, "--", "sh", "-c", script]);
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (Some(3), "the image's\nchanged\n/dev/vda1 ext4\n"),
        "{}",
        ended.err
    );
    assert!(fs::read(&image).unwrap() == before, "what it wrote is gone with it");
    guests.assert_nothing_is_left();
}

/// Huge pages of the host, reserved until dropped.
struct ReservedHugePages(String);

const RESERVED: &str = "/proc/sys/vm/nr_hugepages";

impl ReservedHugePages {
    fn reserve(count: u32) -> Option<ReservedHugePages> {
        let pages = ReservedHugePages(fs::read_to_string(RESERVED).ok()?);
        fs::write(RESERVED, count.to_string()).ok()?;
        let there: u32 = fs::read_to_string(RESERVED).ok()?.trim().parse().ok()?;
        (there >= count).then_some(pages)
    }
}

impl Drop for ReservedHugePages {
    fn drop(&mut self) {
        let _ = fs::write(RESERVED, &self.0);
    }
}

#[test]
fn a_guest_on_huge_pages_takes_them_from_the_host() {
    let test = "a_guest_on_huge_pages_takes_them_from_the_host";
    let Some(guests) = GuestSandbox::new(test) else { return };
    let Some(_pages) = ReservedHugePages::reserve(210) else {
        return eprintln!("SKIP {test}: the host reserves no huge pages");
    };
    let words = [
        "vm",
        "boot",
        "--root",
        "bare",
        "--memory",
        "384MiB",
        "--huge-pages",
        "2MiB",
        "--with",
        "sleep",
        "--",
    ];
    let script = ["sh", "-c", "echo awake; exec sleep 1000"];
    let mut command = guests.command(&[&words[..], &script[..]].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let free = meminfo.lines().find_map(|line| line.strip_prefix("HugePages_Free:")).unwrap().trim();
    assert!(free.parse::<u32>().unwrap() < 120, "{meminfo}");
    child.kill().unwrap();
    child.wait().unwrap();
    let begun = Instant::now();
    while !guests.processes().is_empty() && begun.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(guests.processes(), Vec::<u32>::new());
}
