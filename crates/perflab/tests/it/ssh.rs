//! Targets over ssh: a real sshd of the test's own on this host, and the user's real ssh.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::laboratory::{Sandbox, is_root, skip_test, to_command_output};

pub const SSHD: &str = "/usr/sbin/sshd";

/// An sshd that ends with the test, and a folder with an `ssh` that knows the way to it.
struct SshServer {
    child: Child,
    path: PathBuf,
}

impl Drop for SshServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a program is on the path, or where a system keeps its own.
pub fn is_program_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).any(|folder| folder.join(program).is_file())
}

/// A key without a passphrase.
pub fn make_ssh_key(path: &Path) {
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path).status();
    assert!(made.unwrap().success());
}

/// What each `ssh` of a test was called with.
const CALLS: &str = "ssh_calls";

/// A folder with an `ssh` that knows the way to `box`: this port, with `user_key` of `home`, and whose `host_key` it is.
pub fn make_ssh_client(home: &Path, port: u16) -> PathBuf {
    let at = |name: &str| home.join(name);
    let host_key = fs::read_to_string(at("host_key.pub")).unwrap();
    fs::write(at("known"), format!("[127.0.0.1]:{port} {host_key}")).unwrap();
    let home = home.display();
    let text = format!(
        "Host box\n HostName 127.0.0.1\n Port {port}\n User root\n IdentityFile {home}/user_key\n\
         \x20UserKnownHostsFile {home}/known\n StrictHostKeyChecking yes\n"
    );
    fs::write(at("ssh_config"), text).unwrap();
    let path = at("bin");
    fs::create_dir(&path).unwrap();
    let client = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" >> {home}/{CALLS}\nexec /usr/bin/ssh -F {home}/ssh_config \"$@\"\n"
    );
    fs::write(path.join("ssh"), client).unwrap();
    fs::set_permissions(path.join("ssh"), fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn start_ssh_server(home: &Path) -> SshServer {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let at = |name: &str| home.join(name);
    make_ssh_key(&at("host_key"));
    make_ssh_key(&at("user_key"));
    fs::copy(at("user_key.pub"), at("authorized")).unwrap();
    let home_text = home.display();
    let server = format!(
        "ListenAddress 127.0.0.1\nPort {port}\nHostKey {home_text}/host_key\nAuthorizedKeysFile {home_text}/authorized\n\
         StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n"
    );
    fs::write(at("sshd_config"), server).unwrap();
    let path = make_ssh_client(home, port);
    fs::create_dir_all("/run/sshd").unwrap();
    let mut command = Command::new(SSHD);
    command.args(["-D", "-f"]).arg(at("sshd_config")).stdin(Stdio::null()).stderr(Stdio::null());
    let server = SshServer { child: command.spawn().unwrap(), path };
    let begun = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20), "sshd does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    server
}

/// All hosts of these tests are this machine, and a run holds its hosts: one test at a time.
pub static ALONE: Mutex<()> = Mutex::new(());

/// Where the `ssh` of `home` put copies of perflab.
fn find_agent_copies(home: &Path) -> BTreeSet<PathBuf> {
    const PREFIX: &str = "/tmp/perflab.";
    let calls = fs::read_to_string(home.join(CALLS)).unwrap();
    let suffix = |(at, _): (usize, &str)| calls[at + PREFIX.len()..].get(..6).unwrap();
    calls.match_indices(PREFIX).map(|found| PathBuf::from(format!("{PREFIX}{}", suffix(found)))).collect()
}

#[test]
fn needs_root_two_logins_work_in_step_and_leave_nothing_behind() {
    let name = "needs_root_two_logins_work_in_step_and_leave_nothing_behind";
    if !is_root() || !Path::new(SSHD).exists() {
        return skip_test(name, "sshd, and root to run it");
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let laboratory = Sandbox::new();
    let server = start_ssh_server(laboratory.home.path());
    let study = laboratory.write_study(
        "ssh.toml",
        "run = { iterations = 2, warmup = 0 }\n[workload.echo]\n[target.box]\nkind = \"ssh\"\naddress = \"box\"\ncount = 2\n\
         [monitors]\nmeminfo = \"20ms\"\n",
    );
    let path = format!("{}:{}", server.path.display(), std::env::var("PATH").unwrap());
    let run = |study: &str| {
        let mut command = laboratory.command(&["run", study, "--no-report"]);
        to_command_output(command.env("PATH", &path).output().unwrap())
    };
    let ended = run(&study);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let shown = laboratory.run_successfully(&["show"]);
    assert_eq!(laboratory.target_names().len(), 2, "{}", shown.err);
    let series = laboratory.only_run().join("series");
    assert!(series.join("meminfo.parquet").exists() && series.join("meminfo.box2.parquet").exists());
    let copies = find_agent_copies(laboratory.home.path());
    assert_eq!(copies.len(), 2);
    assert!(copies.iter().all(|copy| !copy.exists()), "the copies of perflab are removed");
    let text =
        fs::read_to_string(&study).unwrap().replace("address = \"box\"", "address = \"root@127.0.0.1\"");
    let wrong = laboratory.path("wrong.toml");
    fs::write(&wrong, text).unwrap();
    let refused = run(&wrong.display().to_string());
    assert_ne!(refused.code, Some(0));
    // What ssh says of it depends on whether somebody listens there.
    let wording = refused.err_wording_of("error: ");
    insta::assert_snapshot!(wording.split(": ssh: ").next().unwrap(), @"error: target box1: perflab could not be copied there");
}

/// libvirt's own driver for tests keeps its domains in the memory of each virsh: this one is switched off in every one.
const NODE: &str = r#"<node><domain type="test" xmlns:test="http://libvirt.org/schemas/domain/test/1.0">
<test:runstate>5</test:runstate><name>box</name><memory>65536</memory><os><type>hvm</type></os></domain></node>"#;

#[test]
fn needs_root_a_domain_of_libvirts_is_started_reached_by_ssh_and_kept_with_its_xml() {
    let name = "needs_root_a_domain_of_libvirts_is_started_reached_by_ssh_and_kept_with_its_xml";
    let virsh = Command::new("virsh").arg("--version").output().is_ok();
    if !is_root() || !Path::new(SSHD).exists() || !virsh {
        return skip_test(name, "virsh, sshd, and root to run it");
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let laboratory = Sandbox::new();
    let server = start_ssh_server(laboratory.home.path());
    fs::write(laboratory.path("node.xml"), NODE).unwrap();
    let off = format!("test://{}", laboratory.path("node.xml").display());
    let path = format!("{}:{}", server.path.display(), std::env::var("PATH").unwrap());
    let run = |domain: &str, connect: &str| {
        let text = format!(
            "run = {{ iterations = 2, warmup = 0 }}\n[workload.echo]\n[target.box]\nkind = \"libvirt\"\n\
             address = \"box\"\ndomain = \"{domain}\"\nconnect = \"{connect}\"\n"
        );
        let study = laboratory.write_study("libvirt.toml", &text);
        to_command_output(
            laboratory.command(&["run", &study, "--no-report"]).env("PATH", &path).output().unwrap(),
        )
    };
    let refused = run("nobody", "test:///default");
    insta::assert_snapshot!(refused.err_wording_of("target box"), @"error: target box: virsh domstate of domain nobody: error: failed to get domain 'nobody'");
    // One that runs already stays as it is; one that is off is started.
    for (domain, connect) in [("test", "test:///default"), ("box", off.as_str())] {
        let ended = run(domain, connect);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let runs = fs::read_dir(laboratory.path("archive/runs")).unwrap().flatten();
        let logs = runs.map(|run| run.path().join("logs/outputs.jsonl.zst"));
        let texts = logs.filter_map(|log| Command::new("zstd").arg("-dc").arg(log).output().ok());
        let mark = format!("<name>{domain}</name>");
        assert!(
            texts
                .map(|text| String::from_utf8_lossy(&text.stdout).into_owned())
                .any(|text| text.contains(&mark))
        );
    }
}

/// A machine that takes the connection and never says a word: ^C does not wait for it.
#[test]
fn who_stops_a_run_does_not_wait_for_a_machine_that_is_silent() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "silent.toml",
        "run = { iterations = 2, warmup = 0 }\n[workload.echo]\n[target.box]\nkind = \"ssh\"\naddress = \"box\"\n",
    );
    let (programs, begun) = (laboratory.path("programs"), laboratory.path("begun"));
    fs::create_dir(&programs).unwrap();
    crate::image::write_executable_script(
        &programs.join("ssh"),
        &format!("touch '{}'; exec sleep 1000", begun.display()),
    );
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut command = laboratory.command(&["run", &study, "--no-report"]);
    let child = command.env("PATH", &path).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    crate::interrupted::wait_for_condition(|| begun.exists());
    crate::interrupted::send_signal(&child, rustix::process::Signal::INT);
    let ended = to_command_output(child.wait_with_output().unwrap());
    assert!(ended.code.is_some_and(|code| code != 0), "{}", ended.err);
    // Stopped, and not given up.
    insta::assert_snapshot!(ended.stable_err(), @"error: stopped before the first iteration; nothing was measured");
}
