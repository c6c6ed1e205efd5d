//! Hosts of an inventory: real sshds, each in a network namespace of its own, which is a machine of its own to the lock of a host.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::interrupted::{send_signal, wait_for_condition};
use crate::laboratory::{CommandOutput, Sandbox, is_root, mask_numbers, skip_test, to_command_output};
use crate::ssh::{ALONE, SSHD, is_program_there, make_ssh_key};

/// Where the sshd behind the gate listens, in the gate's namespace.
const INNER_PORT: u16 = 2222;

/// What ends with the test.
struct Lab {
    children: Vec<Child>,
}

impl Drop for Lab {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Whether there is all that the lab is made of.
fn can_start_lab() -> bool {
    is_root() && Path::new(SSHD).exists() && ["ip", "unshare", "nsenter"].into_iter().all(is_program_there)
}

/// An inventory beside the sandbox's studies: `a` and `b`, each a network namespace; `gate`, a third, and `inner` behind it, which
/// only the gate reaches; `stranger`, whose key is another than the one that is known; and `nobody`, where nobody listens.
fn start_lab(laboratory: &Sandbox) -> Lab {
    let at = |name: &str| laboratory.path(name).display().to_string();
    ["host_key", "user_key"].iter().for_each(|name| make_ssh_key(&laboratory.path(name)));
    fs::copy(at("user_key.pub"), at("authorized")).unwrap();
    let server = format!(
        "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n",
        at("host_key"),
        at("authorized")
    );
    fs::write(at("sshd_config"), server).unwrap();
    let key = fs::read_to_string(at("host_key.pub")).unwrap();
    let other = fs::read_to_string(at("user_key.pub")).unwrap();
    let known = format!("a,b,gate,[127.0.0.1]:{INNER_PORT} {key}stranger {other}");
    fs::write(at("known"), known).unwrap();
    fs::create_dir_all("/run/sshd").unwrap();
    let mut children = Vec::new();
    let mut namespace = || {
        let mut command = Command::new("unshare");
        command.args(["-n", "sh", "-c", "ip link set lo up && echo up; exec sleep 1000"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut up = [0; 3];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut up).unwrap();
        let pid = child.id();
        children.push(child);
        pid
    };
    let enter = |pid: u32| format!("nsenter -t {pid} -n {SSHD} -f {}", at("sshd_config"));
    let pids = [namespace(), namespace(), namespace()];
    let mut text = format!(
        "[defaults]\nuser = \"root\"\nidentity = \"user_key\"\nanswer-within = \"20s\"\n\
         ssh-options = [\"UserKnownHostsFile={}\", \"StrictHostKeyChecking=yes\", \"IdentitiesOnly=yes\"]\n\
         variables = {{ delay = \"0.01\" }}\n",
        at("known")
    );
    for (name, pid) in ["a", "b", "gate"].into_iter().zip(pids).chain([("stranger", pids[0])]) {
        text += &format!("[host.{name}]\nssh-options = [\"ProxyCommand={} -i\"]\n", enter(pid));
    }
    text += &format!(
        "[host.inner]\naddress = \"127.0.0.1\"\nport = {INNER_PORT}\njump = \"gate\"\nvariables = {{ delay = \"0.03\" }}\n\
         [host.nobody]\naddress = \"127.0.0.1\"\nport = 1\n\
         [groups]\npair = [\"a\", \"b\"]\nlab = [\"pair\", \"inner\"]\n"
    );
    fs::write(at("hosts.toml"), text).unwrap();
    let mut command = Command::new("nsenter");
    command.args(["-t", &pids[2].to_string(), "-n", SSHD, "-D", "-f", &at("sshd_config")]);
    command.args(["-o", "ListenAddress=127.0.0.1", "-o", &format!("Port={INNER_PORT}")]);
    children.push(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let begun = Instant::now();
    let is_listening = || {
        let listening = fs::read_to_string(format!("/proc/{}/net/tcp", pids[2])).unwrap();
        listening.contains(&format!(":{INNER_PORT:04X} "))
    };
    while !is_listening() {
        assert!(begun.elapsed() < Duration::from_secs(20), "sshd does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    Lab { children }
}

fn write_node_study(laboratory: &Sandbox, name: &str, host: &str, command: &str) -> String {
    laboratory.write_study(
        name,
        &format!(
            "run = {{ iterations = 2, warmup = 0 }}\n[workload.wait]\ncommand = \"{command}\"\n\
             [target.node]\nkind = \"ssh\"\nhost = \"{host}\"\n"
        ),
    )
}

#[test]
fn needs_root_a_group_works_in_step_or_each_host_is_a_level_also_behind_a_gate() {
    let name = "needs_root_a_group_works_in_step_or_each_host_is_a_level_also_behind_a_gate";
    if !can_start_lab() {
        return skip_test(name, "sshd, ip, unshare, nsenter, and root to run them");
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let laboratory = Sandbox::new();
    let _lab = start_lab(&laboratory);
    let step = write_node_study(&laboratory, "step.toml", "lab", "sleep {{ target.variables.delay }}");
    laboratory.run_successfully(&["run", &step, "--no-report"]);
    assert_eq!(laboratory.target_names(), ["a", "b", "inner"]);
    let machines = laboratory.write_study(
        "machines.toml",
        "run = { iterations = 1, warmup = 0 }\n[workload.wait]\ncommand = \"sleep {{ target.variables.delay }}\"\n\
         [target.box]\nkind = \"ssh\"\n[factor.machine]\nkind = \"target\"\nkey = \"host\"\nlevels = [\"lab\"]\n",
    );
    laboratory.run_successfully(&["run", &machines, "--no-report", "--set", "machine=a,machine=inner"]);
    assert_eq!(laboratory.target_names(), ["box"]);
    let times = laboratory.samples_by_level("machine", "time");
    let time = |machine: &str| times.iter().find(|(level, _)| level == machine).unwrap().1;
    assert!(time("inner") > time("a"), "each host has its own variables: {times:?}");
    // A group on the command line is its hosts as well.
    let expanded = laboratory.run_json(&["study", "expand", &machines, "--set", "machine=pair"]);
    assert_eq!(expanded.as_array().unwrap().len(), 2);
    let plain = laboratory.write_study(
        "plain.toml",
        "run = { iterations = 1, warmup = 0 }\n[workload.echo]\n[target.box]\nkind = \"ssh\"\nhost = \"inner\"\n",
    );
    laboratory.run_successfully(&["run", &plain, "--no-report", "--vary", "machine=target:host=pair"]);
    let levels: Vec<String> =
        laboratory.samples_by_level("machine", "speed").into_iter().map(|(level, _)| level).collect();
    assert!(
        levels.len() == 2 && levels.iter().all(|level| ["a", "b"].contains(&level.as_str())),
        "{levels:?}"
    );
}

fn run_in_background(laboratory: &Sandbox, study: &str) -> Child {
    let mut command = laboratory.command(&["run", study, "--no-report"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn needs_root_a_host_is_held_by_one_study_until_it_ends_however_it_ends() {
    let name = "needs_root_a_host_is_held_by_one_study_until_it_ends_however_it_ends";
    if !can_start_lab() {
        return skip_test(name, "sshd, ip, unshare, nsenter, and root to run them");
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let laboratory = Sandbox::new();
    let _lab = start_lab(&laboratory);
    let began = laboratory.path("began");
    let long = format!("touch {}; sleep 100", began.display());
    let long = write_node_study(&laboratory, "long.toml", "a", &long);
    let short = write_node_study(&laboratory, "short.toml", "pair", "true");
    let mut first = run_in_background(&laboratory, &long);
    wait_for_condition(|| began.exists());
    let mut checked = laboratory.run_json(&["host", "check", "pair"]);
    let (held, free) = (checked["result"][0].take(), checked["result"][1].take());
    assert_eq!((&held["runs"], &held["held"]), (&true.into(), &true.into()), "{held}");
    assert_eq!(held["holder"]["study"], "long.toml");
    assert!(
        held["facts"]["root"].as_bool().unwrap() && held["facts"]["architecture"] == std::env::consts::ARCH
    );
    let run = laboratory.only_run().file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(held["holder"]["run"], run.as_str());
    assert_eq!((&free["host"], &free["held"]), (&"b".into(), &false.into()));
    let refused = laboratory.run(&["run", &short, "--no-report"]);
    assert_eq!(refused.code, Some(3), "{}", refused.err);
    // A host that is awaited is there as soon as its holder is killed.
    let mut waiting = laboratory.command(&["run", &short, "--no-report", "--wait"]);
    let waiting = waiting.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    send_signal(&first, rustix::process::Signal::KILL);
    first.wait().unwrap();
    let ended = to_command_output(waiting.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}

/// The ssh that holds a host, of a run.
fn find_hold(run: &Child) -> i32 {
    let is_hold = |pid: &i32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains("hold-host")
    };
    let mut children = Vec::new();
    for thread in fs::read_dir(format!("/proc/{}/task", run.id())).unwrap().flatten() {
        let listed = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.extend(listed.split_whitespace().map(|pid| pid.parse::<i32>().unwrap()));
    }
    children.into_iter().find(is_hold).unwrap()
}

#[test]
fn needs_root_a_run_whose_hold_was_lost_says_so() {
    let name = "needs_root_a_run_whose_hold_was_lost_says_so";
    if !can_start_lab() {
        return skip_test(name, "sshd, ip, unshare, nsenter, and root to run them");
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let laboratory = Sandbox::new();
    let _lab = start_lab(&laboratory);
    let (began, go) = (laboratory.path("began"), laboratory.path("go"));
    let command = format!("touch {}; while [ ! -e {} ]; do sleep 0.05; done", began.display(), go.display());
    let study = write_node_study(&laboratory, "lost.toml", "a", &command);
    let mut run = run_in_background(&laboratory, &study);
    wait_for_condition(|| began.exists());
    let hold = rustix::process::Pid::from_raw(find_hold(&run)).unwrap();
    rustix::process::kill_process(hold, rustix::process::Signal::KILL).unwrap();
    fs::write(go, "").unwrap();
    assert!(run.wait().unwrap().success(), "it goes on");
    let journal = fs::read_to_string(laboratory.only_run().join("journal.jsonl")).unwrap();
    let warnings = journal.lines().filter(|line| line.contains("\"warning\""));
    assert_eq!(warnings.filter(|line| line.contains("host a")).count(), 1, "{journal}");
}

fn wording(said: &CommandOutput) -> String {
    let lines = said.stable_err();
    lines.lines().filter(|line| line.starts_with("error: ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn needs_root_hosts_that_cannot_be_used_are_named_before_anything_is_measured() {
    let name = "needs_root_hosts_that_cannot_be_used_are_named_before_anything_is_measured";
    if !can_start_lab() {
        return skip_test(name, "sshd, ip, unshare, nsenter, and root to run them");
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let laboratory = Sandbox::new();
    let _lab = start_lab(&laboratory);
    let run = |host: &str| {
        let study = write_node_study(&laboratory, "one.toml", host, "true");
        let said = laboratory.run(&["run", &study, "--no-report"]);
        (said.code, wording(&said))
    };
    let (code, nobody) = run("nobody");
    assert_eq!(code, Some(3));
    let (code, stranger) = run("stranger");
    assert_eq!(code, Some(3));
    let (code, unknown) = run("labb");
    assert_eq!(code, Some(2));
    assert_eq!(laboratory.run_json(&["list"]), serde_json::json!([]), "nothing was measured");
    let all = mask_numbers(&[nobody, stranger, unknown].join("\n")).replace("after N s", "after N ms");
    insta::assert_snapshot!(all, @r"
    error: host nobody (root@N port N) does not answer: after N ms, ssh said: connect to host N port N: Connection refused; look at its `address`, `port` and `jump` in hosts.toml, or leave it out
    error: host stranger (root@stranger) was refused after N ms: its host key is not the one that is known; find out why: the machine was installed anew, or it is another one; then replace the known key (`ssh-keygen -R`), or say in `ssh-options` of hosts.toml which one it is (`UserKnownHostsFile`)
    error: /tmp/.TMP/one.toml:N:N: `target.node.host`: /tmp/.TMP/hosts.toml has no host and no group `labb`; did you mean `lab`?
    ");
    // The same machine under two names.
    let text = fs::read_to_string(laboratory.path("hosts.toml")).unwrap();
    let alias =
        text.replace("[host.stranger]", "[host.twin]\naddress = \"a\"").replace("\"b\"]", "\"twin\"]");
    fs::write(laboratory.path("hosts.toml"), alias).unwrap();
    let study = write_node_study(&laboratory, "twins.toml", "pair", "true");
    let twins = laboratory.run(&["run", &study, "--no-report"]);
    assert_eq!(twins.code, Some(3));
    let said = wording(&twins);
    assert!(
        said.contains("host a is the same machine as twin")
            || said.contains("host twin is the same machine as a"),
        "{said}"
    );
    let checked = laboratory.run(&["host", "check", "a", "nobody", "--format", "json"]);
    assert_eq!(checked.code, Some(3), "{}", checked.err);
    let checked: serde_json::Value = serde_json::from_str(&checked.out).unwrap();
    let runs: Vec<bool> =
        checked["result"].as_array().unwrap().iter().map(|host| host["runs"].as_bool().unwrap()).collect();
    assert_eq!(runs, [true, false]);
}

#[test]
fn an_inventory_lies_beside_the_study_or_is_the_users_own() {
    let laboratory = Sandbox::new();
    let configuration = laboratory.path("configuration");
    fs::create_dir_all(configuration.join("perflab")).unwrap();
    let study = write_node_study(&laboratory, "one.toml", "far", "true");
    let check = || {
        let mut command = laboratory.command(&["study", "expand", &study]);
        to_command_output(command.env("XDG_CONFIG_HOME", &configuration).output().unwrap())
    };
    let missing = check();
    assert_eq!(missing.code, Some(2), "{}", missing.err);
    let own = configuration.join("perflab/hosts.toml");
    fs::write(&own, "[host.far]\naddress = \"own.example.org\"\n").unwrap();
    let said = check();
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("own.example.org"));
    fs::write(laboratory.path("hosts.toml"), "[host.far]\naddress = \"beside.example.org\"\n").unwrap();
    assert!(check().err.contains("beside.example.org"), "the one beside the study comes first");
    fs::write(laboratory.path("hosts.toml"), "[host.far]\nadress = \"x\"\n").unwrap();
    assert_eq!(check().code, Some(2));
    let listed =
        laboratory.run(&["host", "list", "--inventory", &own.display().to_string(), "--format", "json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(listed["result"][0]["address"], "own.example.org");
}
