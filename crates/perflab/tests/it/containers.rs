//! Targets that are containers: the roots of other systems under this kernel. Each test that sets something sets what no other test sets.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::interrupted::{send_signal, wait_for_condition};
use crate::laboratory::{Sandbox, is_root, skip_test};

/// A root that has nothing but these programs of this system, with their libraries, and says its name.
fn make_small_root(laboratory: &Sandbox, name: &str, speed: u32) -> PathBuf {
    let root = laboratory.path(name);
    for program in ["/bin/sh", "/bin/cat", "/usr/bin/touch", "/usr/bin/sleep"] {
        let needed = Command::new("ldd").arg(program).output().unwrap();
        let needed = String::from_utf8(needed.stdout).unwrap();
        let libraries = needed.split_whitespace().filter(|word| word.starts_with('/')).map(Path::new);
        for file in libraries.chain([Path::new(program)]) {
            let place = root.join(file.strip_prefix("/").unwrap());
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::copy(file, place).unwrap();
        }
    }
    fs::create_dir_all(root.join("etc")).unwrap();
    fs::write(root.join("etc/os-release"), format!("NAME=\"{name}\"\nPRETTY_NAME=\"{name} 1\"\n")).unwrap();
    fs::write(root.join("etc/speed"), format!("speed {speed}\n")).unwrap();
    root
}

fn list_tree(root: &Path) -> String {
    let listed = Command::new("find").arg(root).args(["-printf", "%P %y %m %T@\n"]).output().unwrap();
    String::from_utf8(listed.stdout).unwrap()
}

fn mounts_of_perflab() -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    mounts.lines().filter(|line| line.starts_with("perflab ")).map(str::to_owned).collect()
}

#[test]
fn needs_root_roots_are_levels_and_stay_as_they_are() {
    if !is_root() {
        return skip_test("needs_root_roots_are_levels_and_stay_as_they_are", "it changes a setting");
    }
    let laboratory = Sandbox::new();
    let [slow, fast] =
        [("slow", 20), ("fast", 10)].map(|(name, speed)| make_small_root(&laboratory, name, speed));
    let before = [&slow, &fast].map(|root| list_tree(root));
    // Numbers of processes begin anew in a container.
    laboratory.write_workload("speeds", "", "cat /etc/speed; touch /etc/made; test $$ -lt 1000");
    let study = laboratory.write_study(
        "roots.toml",
        &format!(
            "run = {{ iterations = 2, warmup = 0, boots = 2 }}\n[workload.speeds]\n[target.box]\nkind = \"container\"\n\
             [factor.root]\nkind = \"target\"\nkey = \"root\"\nlevels = [\"{}\", \"{}\"]\n\
             [factor.proactiveness]\nkind = \"sysctl\"\nkey = \"vm.compaction_proactiveness\"\nlevels = [37]\n",
            slow.display(),
            fast.display()
        ),
    );
    let proactiveness = || fs::read_to_string("/proc/sys/vm/compaction_proactiveness").unwrap();
    let usual = proactiveness();
    laboratory.run_successfully(&["run", &study]);
    let mut measured = laboratory.samples_by_level("root", "speed");
    measured.sort_by(|one, other| one.0.cmp(&other.0));
    let speeds: Vec<f64> = measured.iter().map(|(_, speed)| *speed).collect();
    assert_eq!(speeds, [10.0, 10.0, 10.0, 10.0, 20.0, 20.0, 20.0, 20.0], "{measured:?}");
    assert_eq!(proactiveness(), usual);
    assert_eq!([&slow, &fast].map(|root| list_tree(root)), before);
    assert_eq!(mounts_of_perflab(), [""; 0]);
}

#[test]
fn needs_root_a_killed_run_leaves_no_container() {
    if !is_root() {
        return skip_test("needs_root_a_killed_run_leaves_no_container", "it changes a setting");
    }
    let laboratory = Sandbox::new();
    let root = make_small_root(&laboratory, "small", 1);
    let begun = laboratory.path("state/begun");
    laboratory.write_workload("long", "", "echo $$ >/run/perflab-state/begun; exec sleep 678");
    let study = laboratory.write_study(
        "long.toml",
        &format!(
            "run = {{ iterations = 1, warmup = 0 }}\n[workload.long]\n[target.box]\nkind = \"container\"\nroot = \"{}\"\n\
             [factor.unfairness]\nkind = \"sysctl\"\nkey = \"vm.page_lock_unfairness\"\nlevels = [9]\n",
            root.display()
        ),
    );
    let unfairness = || fs::read_to_string("/proc/sys/vm/page_lock_unfairness").unwrap();
    let usual = unfairness();
    let mut run = laboratory.command(&["run", &study]);
    let mut child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_condition(|| begun.exists());
    assert_eq!(unfairness().trim(), "9");
    send_signal(&child, Signal::KILL);
    child.wait().unwrap();
    wait_for_condition(|| {
        let sleeping = Command::new("pgrep").args(["-f", "^sleep 678$"]).output().unwrap();
        sleeping.stdout.is_empty()
    });
    laboratory.run_successfully(&["undo"]);
    assert_eq!(unfairness(), usual);
    assert_eq!(mounts_of_perflab(), [""; 0]);
}

#[test]
fn a_container_without_a_root_is_refused_before_anything_runs() {
    let laboratory = Sandbox::new();
    laboratory.write_workload("speeds", "", "echo speed 1");
    let target = |root: &str| {
        let text = format!(
            "run = {{ iterations = 1, warmup = 0 }}\n[workload.speeds]\n[target.box]\nkind = \"container\"\n{root}"
        );
        laboratory.write_study("box.toml", &text)
    };
    let told = laboratory.run(&["study", "check", &target("")]);
    assert_eq!(told.code, Some(2), "{}", told.err);
    let missing = laboratory.path("missing");
    let told = laboratory.run(&["run", &target(&format!("root = \"{}\"", missing.display()))]);
    assert_eq!(told.code, Some(3), "{}", told.err);
    assert_eq!(laboratory.run_json(&["list"]), serde_json::json!([]));
}
