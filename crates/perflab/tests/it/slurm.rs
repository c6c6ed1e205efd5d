//! Targets that are the nodes of a Slurm job: a real munge, a real slurmctld and four real slurmd of the test's own on this host.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::image::write_executable_script;
use crate::interrupted::{send_signal, wait_for_condition};
use crate::laboratory::{CommandOutput, Sandbox, is_root, skip_test, to_command_output};
use crate::ssh::is_program_there;

const PROGRAMS: [&str; 5] = ["munged", "slurmctld", "slurmd", "srun", "setarch"];

const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];

/// A cluster that ends with the test.
struct SlurmCluster {
    home: PathBuf,
    daemons: Vec<Child>,
    nodes: Vec<Child>,
}

impl SlurmCluster {
    /// Starts all daemons below `home`, and waits until all nodes are idle. `old` nodes are of another architecture.
    fn start(home: &Path, old: &[&str]) -> Self {
        let listeners: Vec<TcpListener> = (0..5).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<u16> = listeners.iter().map(|one| one.local_addr().unwrap().port()).collect();
        drop(listeners);
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let (host, place) = (host.trim(), home.display());
        fs::create_dir_all(home.join("state")).unwrap();
        fs::create_dir_all(home.join("spool")).unwrap();
        let nodes: String = NODES
            .iter()
            .zip(&ports[1..])
            .map(|(node, port)| {
                format!("NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=500 Feature=f-{node}\n")
            })
            .collect();
        let text = format!(
            "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\nSlurmUser=root\nAuthType=auth/munge\n\
             AuthInfo=socket={place}/munge.socket\nCredType=cred/munge\nStateSaveLocation={place}/state\n\
             SlurmctldPidFile={place}/slurmctld.pid\nSlurmctldLogFile={place}/slurmctld.log\nSlurmdPidFile={place}/%n.pid\n\
             SlurmdLogFile={place}/%n.log\nSlurmdSpoolDir={place}/spool/%n\nProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/none\nSelectType=select/cons_tres\n\
             SchedulerParameters=sched_interval=1,bf_interval=1\nMpiDefault=none\nReturnToService=2\nKillWait=2\n\
             TaskProlog={place}/prolog\nSlurmdParameters=config_overrides\n{nodes}PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP\n",
            ports[0]
        );
        fs::write(home.join("slurm.conf"), text).unwrap();
        // What agents promise to undo lies here; the last node does not know where to call.
        write_executable_script(
            &home.join("prolog"),
            &format!(
                "echo export PERFLAB_STATE={place}/agents\n[ \"$SLURMD_NODENAME\" != n4 ] || echo unset SLURM_LAUNCH_NODE_IPADDR"
            ),
        );
        let key: Vec<u8> = std::iter::repeat_n(b'k', 128).collect();
        fs::write(home.join("munge.key"), key).unwrap();
        fs::set_permissions(home.join("munge.key"), fs::Permissions::from_mode(0o600)).unwrap();
        let mut cluster = SlurmCluster { home: home.into(), daemons: Vec::new(), nodes: Vec::new() };
        let file = |option: &str, name: &str| format!("--{option}={place}/{name}");
        let munge = [
            "--foreground".to_owned(),
            "--force".to_owned(),
            file("socket", "munge.socket"),
            file("key-file", "munge.key"),
            file("pid-file", "munge.pid"),
            file("log-file", "munge.log"),
            file("seed-file", "munge.seed"),
        ];
        let munged = cluster.start_daemon("munged", &munge.each_ref().map(String::as_str));
        cluster.daemons.push(munged);
        wait_for_condition(|| home.join("munge.socket").exists());
        let controller = cluster.start_daemon("slurmctld", &["-D", "-c"]);
        cluster.daemons.push(controller);
        for node in NODES {
            let words: &[&str] = match old.contains(&node) {
                true => &["linux32", "/usr/sbin/slurmd", "-D", "-N", node],
                false => &["-D", "-N", node],
            };
            let daemon = cluster.start_daemon(if old.contains(&node) { "setarch" } else { "slurmd" }, words);
            cluster.nodes.push(daemon);
        }
        cluster.wait_until_idle(&NODES);
        cluster
    }

    fn start_daemon(&self, program: &str, words: &[&str]) -> Child {
        let path = format!("/usr/sbin:/sbin:{}", std::env::var("PATH").unwrap());
        let mut command = self.command(program, words);
        command.env("PATH", path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// A program that knows this cluster, and no job of another one.
    fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(words);
        self.show_to(&mut command);
        command
    }

    fn show_to(&self, command: &mut Command) {
        command.env("SLURM_CONF", self.home.join("slurm.conf")).env_remove("SLURM_JOB_ID");
    }

    fn ask(&self, program: &str, words: &[&str]) -> String {
        let Output { stdout, .. } = self.command(program, words).output().unwrap();
        String::from_utf8_lossy(&stdout).trim().to_owned()
    }

    /// Has the controller set what a node does.
    fn set_state(&self, node: &str, state: &str) {
        self.ask(
            "scontrol",
            &["update", &format!("nodename={node}"), &format!("state={state}"), "reason=test"],
        );
    }

    fn wait_until_idle(&self, nodes: &[&str]) {
        wait_for_condition(|| {
            let states = self.ask("sinfo", &["--noheader", "--Node", "--format=%N %T"]);
            nodes.iter().all(|node| states.lines().any(|line| line == format!("{node} idle")))
        });
    }

    /// Jobs that wait, run or end.
    fn job_count(&self) -> usize {
        self.ask("squeue", &["--noheader", "--states=PENDING,RUNNING", "--format=%i"]).lines().count()
    }

    fn run(&self, laboratory: &Sandbox, study: &str) -> CommandOutput {
        to_command_output(self.run_command(laboratory, study).output().unwrap())
    }

    fn run_command(&self, laboratory: &Sandbox, study: &str) -> Command {
        let mut command = laboratory.command(&["run", study, "--no-report"]);
        self.show_to(&mut command);
        command
    }

    /// Starts a run of `study`, and waits until every node has set its mark.
    fn start_long_run(&self, laboratory: &Sandbox, study: &str, nodes: usize) -> Child {
        let mut command = self.run_command(laboratory, study);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for_condition(|| {
            assert!(child.try_wait().unwrap().is_none(), "it ended early");
            count_marks(laboratory) == nodes
        });
        child
    }

    /// Kills a node's slurmd, and what carries its steps out.
    fn kill_node(&mut self, node: &str) {
        let index = NODES.iter().position(|name| *name == node).unwrap();
        self.nodes[index].kill().unwrap();
        self.nodes[index].wait().unwrap();
        assert!(kill_steps(&self.home.join(format!("{node}.log"))) > 0);
    }
}

/// Kills what carries out the steps of the node with that log; how many there were.
fn kill_steps(log: &Path) -> usize {
    let mut killed = 0;
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let files = fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten();
        let has_log = |file: fs::DirEntry| fs::read_link(file.path()).is_ok_and(|target| target == log);
        if line.starts_with(b"slurmstepd: ") && files.into_iter().any(has_log) {
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
            killed += 1;
        }
    }
    killed
}

impl Drop for SlurmCluster {
    fn drop(&mut self) {
        self.ask("scancel", &["--user=root"]);
        let begun = Instant::now();
        let is_over = || self.ask("squeue", &["--noheader", "--format=%i"]).is_empty();
        while !is_over() && begun.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(50));
        }
        for child in self.nodes.iter_mut().chain(self.daemons.iter_mut().rev()) {
            let _ = child.kill();
            let _ = child.wait();
        }
        for node in NODES {
            kill_steps(&self.home.join(format!("{node}.log")));
        }
    }
}

/// Whether what a cluster needs is here.
fn has_slurm(name: &str) -> bool {
    let is_there = is_root() && PROGRAMS.iter().all(|program| is_program_there(program));
    if !is_there {
        skip_test(name, "munge, slurmctld, slurmd, slurm-client, and root to run them");
    }
    is_there
}

fn node_study(laboratory: &Sandbox, keys: &str) -> String {
    laboratory.write_study(
        "nodes.toml",
        &format!(
            "run = {{ iterations = 2, warmup = 0 }}\n[workload.echo]\n[target.node]\nkind = \"slurm\"\n{keys}\n\
             [monitors]\nmeminfo = \"20ms\"\n"
        ),
    )
}

/// A study that takes minutes, and has a mark on each node until it is undone.
fn long_study(laboratory: &Sandbox, count: usize, rules: &str) -> String {
    laboratory.write_workload("slow", "", "echo speed 1; sleep 0.1");
    let mark = laboratory.path("mark");
    let (mark, nodes) = (mark.display(), NODES[..count].join(","));
    laboratory.write_study(
        "long.toml",
        &format!(
            "run = {{ iterations = 600, warmup = 0, {rules} }}\n[workload.slow]\n[target.node]\nkind = \"slurm\"\ncount = {count}\n\
             options = [\"--nodelist={nodes}\"]\n[factor.mark]\nkind = \"commands\"\non = \"guest\"\nlevels = [{{ name = \"on\", \
             apply = [\"sh\", \"-c\", \"touch {mark}.$SLURMD_NODENAME\"], undo = [\"sh\", \"-c\", \"rm -f {mark}.$SLURMD_NODENAME\"] }}]\n"
        ),
    )
}

fn count_marks(laboratory: &Sandbox) -> usize {
    let names = fs::read_dir(laboratory.home.path()).unwrap().flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_string_lossy().starts_with("mark.")).count()
}

/// Folders that agents were copied to, and what agents on nodes promised to undo.
fn list_agent_leftovers(home: &Path) -> BTreeSet<PathBuf> {
    let folders = [PathBuf::from("/tmp"), home.join("agents")];
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .filter(|path| ["/perflab.", "/undo-"].iter().any(|name| path.to_string_lossy().contains(name)))
        .collect()
}

fn read_manifest(run: &Path) -> Value {
    serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap()
}

#[test]
fn needs_root_the_nodes_of_a_job_work_in_step_and_are_given_back() {
    let name = "needs_root_the_nodes_of_a_job_work_in_step_and_are_given_back";
    if !has_slurm(name) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let cluster = SlurmCluster::start(home.path(), &["n4"]);

    // Two nodes, one after the other of two starts.
    let laboratory = Sandbox::new();
    let ended = cluster
        .run(&laboratory, &node_study(&laboratory, "count = 2\nconstraint = \"f-n1|f-n3\"\ntime = \"5min\""));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(laboratory.target_names(), ["n1", "n3"]);
    assert_eq!(cluster.job_count(), 0, "the job is over");
    let run = laboratory.only_run();
    assert!(run.join("series/meminfo.n1.parquet").exists() && run.join("series/meminfo.n3.parquet").exists());
    let targets = &read_manifest(&run)["targets"];
    assert_eq!(
        (&targets[1]["kind"], &targets[1]["facts"]["slurm.node"]["value"]),
        (&"slurm".into(), &"n3".into())
    );
    assert_eq!(targets[1]["facts"]["slurm.features"]["value"], "f-n3");
    assert!(
        !laboratory
            .path("state")
            .read_dir()
            .unwrap()
            .flatten()
            .any(|file| { file.file_name().to_string_lossy().starts_with("undo-") })
    );

    // A node of another kind: said of which, and with `continue` the others go on.
    let laboratory = Sandbox::new();
    let study = node_study(&laboratory, "count = 2\nconstraint = \"f-n3|f-n4\"");
    let refused = cluster.run(&laboratory, &study);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    insta::assert_snapshot!(refused.err_wording_of("target n4"), @"error: target n4: its instruction set is i686, and this perflab's is x86_64; name nodes of the same kind by `constraint` or `partition`");
    let text = fs::read_to_string(&study).unwrap();
    fs::write(&study, text.replace("warmup = 0", "warmup = 0, on-lost-target = \"continue\"")).unwrap();
    let ended = cluster.run(&laboratory, &study);
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    assert!(laboratory.shown_metrics("@latest").contains("speed"), "{}", ended.err);
    assert_eq!(cluster.job_count(), 0);

    // A job that perflab was started in is used, and left as it is.
    let laboratory = Sandbox::new();
    let study = node_study(&laboratory, "count = 2\npartition = \"all\"");
    let perflab = cluster.run_command(&laboratory, &study);
    let job = cluster.command(
        "salloc",
        &[
            "--nodes=3",
            "--nodelist=n1,n2,n3",
            "sh",
            "-c",
            "sleep 0; \"$@\"; echo code $?; squeue --noheader --jobs $SLURM_JOB_ID",
            "sh",
        ],
    );
    let mut job = job;
    job.arg(perflab.get_program()).args(perflab.get_args()).current_dir(laboratory.home.path());
    job.envs(perflab.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ended = to_command_output(job.output().unwrap());
    let mut lines = ended.out.lines().skip_while(|line| *line != "code 0");
    assert!(lines.next().is_some() && lines.next().is_some(), "{}\n{}", ended.out, ended.err);
    assert_eq!(laboratory.target_names(), ["n1", "n2"]);
    let warned = ended.err_wording_of("target.node.partition");
    insta::assert_snapshot!(warned.lines().next().unwrap(), @"warning: perflab runs in Slurm's job N and uses its nodes as they are; `target.node.partition` asked for nothing; start it outside of the job (`env -u SLURM_JOB_ID perflab ...`) to have one of its own");

    // What cannot be had.
    let laboratory = Sandbox::new();
    let nowhere = cluster.run(&laboratory, &node_study(&laboratory, "count = 2\npartition = \"nowhere\""));
    assert_eq!(nowhere.code, Some(1), "{}", nowhere.err);
    insta::assert_snapshot!(nowhere.err_wording_of("target node"), @"error: target node: Slurm refuses the job: invalid partition specified: nowhere; Job submit/allocate failed: Invalid partition name specified; there are all");
    cluster.set_state("n2", "drain");
    let drained =
        cluster.run(&laboratory, &node_study(&laboratory, "count = 1\nconstraint = \"f-n2\"\nwait = \"1s\""));
    assert_eq!(drained.code, Some(1), "{}", drained.err);
    // Which of its words Slurm has for it depends on when it is asked.
    let reasons = [
        "ReqNodeNotAvail, UnavailableNodes:n2",
        "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
    ];
    let wording = drained.err_wording_of("target node");
    let reason = reasons.into_iter().find(|reason| wording.contains(reason)).expect(&wording);
    insta::assert_snapshot!(wording.replace(reason, "REASON"), @"error: target node: Slurm did not start the job within N s: REASON; ask for what is free (`sinfo`), or wait longer (`target.node.wait`)");
    assert_eq!(cluster.job_count(), 0, "nothing waits any more");
    let without = node_study(&laboratory, "count = 1");
    let mut command = cluster.run_command(&laboratory, &without);
    let missing = to_command_output(command.env("PATH", laboratory.home.path()).output().unwrap());
    assert_eq!(missing.code, Some(1), "{}", missing.err);
    insta::assert_snapshot!(missing.err_wording_of("target node"), @"error: target node: salloc is not installed (Debian: apt-get install slurm-client); a study over Slurm's nodes is started where jobs are submitted");
}

#[test]
fn needs_root_whatever_ends_a_job_its_nodes_are_as_they_were() {
    let name = "needs_root_whatever_ends_a_job_its_nodes_are_as_they_were";
    if !has_slurm(name) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut cluster = SlurmCluster::start(home.path(), &[]);
    let before = list_agent_leftovers(home.path());
    let ended = |child: Child| to_command_output(child.wait_with_output().unwrap());

    // Four nodes, of which one cannot call: it is spoken to over srun's own streams.
    let laboratory = Sandbox::new();
    let finished = cluster.run(&laboratory, &node_study(&laboratory, "count = 4"));
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    assert_eq!(laboratory.target_names(), NODES);

    // ^C.
    let laboratory = Sandbox::new();
    let study = long_study(&laboratory, 1, "");
    let child = cluster.start_long_run(&laboratory, &study, 1);
    send_signal(&child, Signal::INT);
    let stopped = ended(child);
    assert_eq!((stopped.code, laboratory.latest_status().as_str()), (Some(4), "stopped"), "{}", stopped.err);
    assert_eq!((count_marks(&laboratory), cluster.job_count()), (0, 0));

    // Cancelled by somebody else.
    let laboratory = Sandbox::new();
    let study = long_study(&laboratory, 1, "");
    let child = cluster.start_long_run(&laboratory, &study, 1);
    cluster.ask("scancel", &["--user=root"]);
    let cancelled = ended(child);
    assert_eq!(
        (cancelled.code, laboratory.latest_status().as_str()),
        (Some(4), "failed"),
        "{}",
        cancelled.err
    );
    wait_for_condition(|| count_marks(&laboratory) == 0 && cluster.job_count() == 0);

    // A node dies, and the other goes on.
    let laboratory = Sandbox::new();
    let study = long_study(&laboratory, 2, "on-lost-target = \"continue\", lost-after = \"2s\"");
    let child = cluster.start_long_run(&laboratory, &study, 2);
    cluster.kill_node("n2");
    wait_for_condition(|| count_marks(&laboratory) == 1);
    assert!(laboratory.path("mark.n1").exists());
    let journal = laboratory.only_run().join("journal.jsonl");
    let count = || fs::read_to_string(&journal).unwrap().matches("\"sample\"").count();
    let known = count();
    wait_for_condition(|| count() > known + 3);
    send_signal(&child, Signal::INT);
    let ended_early = ended(child);
    assert_eq!(ended_early.code, Some(4), "{}", ended_early.err);
    assert_eq!(count_marks(&laboratory), 0);

    // perflab is killed: salloc gives the nodes back, and the agents undo what they did.
    let laboratory = Sandbox::new();
    let study = long_study(&laboratory, 1, "");
    let mut child = cluster.start_long_run(&laboratory, &study, 1);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for_condition(|| count_marks(&laboratory) == 0 && cluster.job_count() == 0);

    // So is salloc: the next perflab ends the job.
    let laboratory = Sandbox::new();
    let study = long_study(&laboratory, 1, "");
    let mut child = cluster.start_long_run(&laboratory, &study, 1);
    let threads = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().flatten();
    let children: String =
        threads.map(|thread| fs::read_to_string(thread.path().join("children")).unwrap()).collect();
    let is_salloc =
        |pid: &str| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "salloc");
    let salloc = children.split_whitespace().find(|pid| is_salloc(pid)).unwrap().parse().unwrap();
    kill_process(Pid::from_raw(salloc).unwrap(), Signal::KILL).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for_condition(|| count_marks(&laboratory) == 0);
    assert_eq!(cluster.job_count(), 1);
    let mut undo = laboratory.command(&["undo"]);
    cluster.show_to(&mut undo);
    let undone = to_command_output(undo.output().unwrap());
    assert_eq!(undone.code, Some(0), "{}", undone.err);
    wait_for_condition(|| cluster.job_count() == 0);
    wait_for_condition(|| list_agent_leftovers(home.path()).is_subset(&before));
}
