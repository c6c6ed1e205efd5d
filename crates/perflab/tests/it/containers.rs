//! Targets that are containers: the roots of other systems under this kernel. Each test that sets something sets what no other test sets.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::interrupted::{send_signal, wait_for_condition};
use crate::laboratory::{Sandbox, command_as_nobody, is_root, skip_test, to_command_output};

/// A root that has nothing but these programs of this system, with their libraries, and says its name.
pub fn make_small_root(laboratory: &Sandbox, name: &str, speed: u32) -> PathBuf {
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

pub fn list_tree(root: &Path) -> String {
    let listed = Command::new("find").arg(root).args(["-printf", "%P %y %m %T@\n"]).output().unwrap();
    String::from_utf8(listed.stdout).unwrap()
}

/// A study of one iteration in a container.
fn container_study(workload: &str, root: &str, more: &str) -> String {
    format!(
        "run = {{ iterations = 1, warmup = 0 }}\n[workload.{workload}]\n[target.box]\nkind = \"container\"\nroot = \"{root}\"\n{more}"
    )
}

fn is_running(command: &str) -> bool {
    !Command::new("pgrep").args(["-f", command]).output().unwrap().stdout.is_empty()
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
    // What a workload removes of all that it sees is nothing of this host's.
    laboratory.write_workload("long", "", "rm -rf /run/* 2>/dev/null; exec sleep 678");
    let study = laboratory.write_study(
        "long.toml",
        &container_study(
            "long",
            root.to_str().unwrap(),
            "[factor.unfairness]\nkind = \"sysctl\"\nkey = \"vm.page_lock_unfairness\"\nlevels = [9]\n",
        ),
    );
    let unfairness = || fs::read_to_string("/proc/sys/vm/page_lock_unfairness").unwrap();
    let usual = unfairness();
    let mut run = laboratory.command(&["run", &study]);
    let mut child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_condition(|| is_running("^sleep 678$"));
    assert_eq!(unfairness().trim(), "9");
    send_signal(&child, Signal::KILL);
    child.wait().unwrap();
    wait_for_condition(|| !is_running("^sleep 678$"));
    laboratory.run_successfully(&["undo"]);
    assert_eq!(unfairness(), usual);
    assert_eq!(mounts_of_perflab(), [""; 0]);
}

/// Its agent is killed, so that nobody is left in the container to carry out what was to come after the workload.
#[test]
fn needs_root_what_a_killed_container_was_to_do_is_not_done_on_the_host() {
    let name = "needs_root_what_a_killed_container_was_to_do_is_not_done_on_the_host";
    if !is_root() {
        return skip_test(name, "it kills a container from outside");
    }
    let laboratory = Sandbox::new();
    let root = make_small_root(&laboratory, "small", 1);
    let witness = laboratory.path("witness");
    let workload = format!("cleanup = [\"sh\", \"-c\", \"echo >{}\"]\n", witness.display());
    laboratory.write_workload("long", &workload, "exec sleep 679");
    let factor = "[factor.swap]\nkind = \"sysctl\"\nkey = \"vm.page-cluster\"\nlevels = [2]\n";
    let study = container_study("long", root.to_str().unwrap(), factor);
    let study = laboratory.write_study("long.toml", &study);
    let cluster = || fs::read_to_string("/proc/sys/vm/page-cluster").unwrap();
    let usual = cluster();
    let mut run = laboratory.command(&["run", &study]);
    let mut child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_condition(|| is_running("^sleep 679$"));
    assert_eq!(cluster().trim(), "2");
    let unshare =
        Command::new("pkill").args(["-9", "-P", &child.id().to_string(), "unshare"]).status().unwrap();
    assert!(unshare.success());
    child.wait().unwrap();
    laboratory.run_successfully(&["undo"]);
    assert_eq!(cluster(), usual, "the kernel is shared");
    assert!(!witness.exists(), "the root is not");
    assert_eq!(mounts_of_perflab(), [""; 0]);
}

#[test]
fn needs_root_what_is_mounted_below_a_root_is_there() {
    if !is_root() {
        return skip_test("needs_root_what_is_mounted_below_a_root_is_there", "it mounts file systems");
    }
    let laboratory = Sandbox::new();
    let root = make_small_root(&laboratory, "small, with: data", 1);
    let data = root.join("data");
    fs::create_dir(&data).unwrap();
    let mount = |words: &[&str]| {
        assert!(Command::new(words[0]).args(&words[1..]).arg(&data).status().unwrap().success())
    };
    mount(&["mount", "-t", "tmpfs", "-o", "size=1m", "small"]);
    fs::write(data.join("speed"), "speed 7\n").unwrap();
    laboratory.write_workload("speeds", "", "cat /data/speed; touch /data/made");
    let study = container_study("speeds", root.to_str().unwrap(), "");
    let study = laboratory.write_study("box.toml", &study);
    let told = laboratory.run(&["run", &study]);
    let names: Vec<_> = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    mount(&["umount"]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert_eq!(names, ["speed"]);
    assert_eq!(mounts_of_perflab(), [""; 0]);
}

/// The kernel leaves a folder of the overlay's that not even its owner may enter.
#[test]
fn what_another_user_makes_a_container_of_goes_with_it() {
    if !is_root() {
        return skip_test("what_another_user_makes_a_container_of_goes_with_it", "becomes another user");
    }
    let test =
        ["--reuid=65534", "--regid=65534", "--clear-groups", "unshare", "--user", "--map-root-user", "true"];
    if !Command::new("setpriv").args(test).status().unwrap().success() {
        return skip_test("what_another_user_makes_a_container_of_goes_with_it", "namespaces of other users");
    }
    let (folder, mut command) = command_as_nobody();
    let laboratory = Sandbox::new();
    let small = make_small_root(&laboratory, "small", 1);
    let root = folder.path().join("root");
    assert!(Command::new("cp").arg("-r").args([&small, &root]).status().unwrap().success());
    assert!(Command::new("chown").args(["-R", "65534:65534"]).arg(&root).status().unwrap().success());
    let (study, temporary) = (folder.path().join("box.toml"), folder.path().join("temporary: a, b"));
    fs::create_dir(&temporary).unwrap();
    fs::set_permissions(&temporary, fs::Permissions::from_mode(0o1777)).unwrap();
    let text = format!(
        "title = \"t\"\nrun = {{ iterations = 1, warmup = 0 }}\n\
         [workload.speeds]\ncommand = \"touch /etc/made && cat /etc/speed\"\n\
         [target.box]\nkind = \"container\"\nroot = \"{}\"\n",
        root.display()
    );
    fs::write(&study, text).unwrap();
    command.args(["run", "--no-report"]).arg(&study).env("TMPDIR", &temporary);
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let told = to_command_output(command.output().unwrap());
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "{}", told.err);
    // The whole root of this host has other file systems below it.
    fs::write(&study, fs::read_to_string(&study).unwrap().replace(root.to_str().unwrap(), "host")).unwrap();
    let told = to_command_output(command.output().unwrap());
    assert_eq!(told.code, Some(3), "{}", told.err);
}

/// What is this kernel's is set on this host, where a killed container cannot lose it.
#[test]
fn a_setting_on_the_wrong_side_of_a_container_is_refused_before_anything_runs() {
    let laboratory = Sandbox::new();
    laboratory.write_workload("speeds", "", "echo speed 1");
    let check = |more: &str| {
        let study = laboratory.write_study("box.toml", &container_study("speeds", "host", more));
        laboratory.run(&["study", "check", &study])
    };
    for more in [
        "[factor.a]\nkind = \"sysctl\"\nkey = \"vm.swappiness\"\nlevels = [1, 2]\non = \"guest\"\n",
        "[factor.a]\nkind = \"file\"\nkey = \"/proc//sys/../sys/kernel/msgmax\"\nlevels = [8000, 8100]\n",
        "[settings]\nswap = { level = \"file:8MiB\", on = \"guest\" }\n",
        "[settings]\npids-max = \"100\"\n",
        "[disk]\nkind = \"image\"\nsize = \"64MiB\"\nmodel = \"nvme\"\n",
    ] {
        let told = check(more);
        assert_eq!(told.code, Some(2), "{more}: {}", told.err);
    }
    let namespaced = "[factor.size]\nkind = \"sysctl\"\nkey = \"kernel.msgmax\"\nlevels = [4000, 9000]\n";
    let told = check(namespaced);
    assert_eq!(told.code, Some(2), "{}", told.err);
    insta::assert_snapshot!(told.err_wording_of("factor.size"), @r#"error: /tmp/.TMP/box.toml:N:N: `factor.size.key`: it belongs to a namespace, and a container has one of its own; add `on = "guest"`: it is set in the container then"#);
    let told = check(
        "[factor.a]\nkind = \"sysctl\"\nkey = \"kernel.msgmax\"\nlevels = [4000, 9000]\non = \"guest\"\n",
    );
    assert_eq!(told.code, Some(0), "{}", told.err);
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

/// A release is made by debootstrap once, whoever is killed meanwhile, and is the root of a container.
#[test]
fn needs_root_a_release_is_made_once_and_is_the_root_of_a_container() {
    if !is_root() {
        return skip_test(
            "needs_root_a_release_is_made_once_and_is_the_root_of_a_container",
            "debootstrap makes device files",
        );
    }
    let laboratory = Sandbox::new();
    let cache = laboratory.path("cache");
    let command = |arguments: &[&str]| {
        let mut command = laboratory.command(arguments);
        command.env("PERFLAB_CACHE", &cache);
        command
    };
    let run = |arguments: &[&str]| to_command_output(command(arguments).output().unwrap());
    let made = || {
        let names = fs::read_dir(cache.join("roots")).into_iter().flatten();
        let mut names: Vec<_> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    laboratory.write_workload(
        "release",
        "",
        "read -r version </etc/debian_version; echo \"speed ${version%%.*}\"",
    );
    for (wrong, code) in [("", 2), ("trixie,--foreign", 2), ("no-such-release", 3)] {
        let study = container_study("release", &format!("debootstrap:{wrong}"), "");
        let study = laboratory.write_study("wrong.toml", &study);
        let failed = run(&["run", &study]);
        assert_eq!(failed.code, Some(code), "{wrong}: {}", failed.err);
        let checked = run(&["study", "check", &study]);
        assert_eq!(checked.code, Some(if code == 2 { 2 } else { 0 }), "{wrong}: {}", checked.err);
    }
    assert_eq!(made(), [""; 0]);

    let factor = "[factor.release]\nkind = \"target\"\nkey = \"root\"\nlevels = [\"debootstrap:bookworm\"]\n";
    let study = laboratory.write_study("good.toml", &container_study("release", "host", factor));
    let mut killed = command(&["run", &study]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let half = cache.join("roots/.new-bookworm/root");
    let maker = format!("debootstrap .*{}", half.display());
    wait_for_condition(|| is_running(&maker) && half.join("var").exists());
    // Who waits for somebody else's root can be stopped, too.
    let waiting = command(&["run", &study]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    send_signal(&waiting, Signal::INT);
    let waited = to_command_output(waiting.wait_with_output().unwrap());
    assert_eq!(waited.code, Some(4), "{}", waited.err);
    assert!(is_running(&maker) && waited.err.contains(&killed.id().to_string()), "{}", waited.err);
    send_signal(&killed, Signal::KILL);
    killed.wait().unwrap();
    wait_for_condition(|| !is_running(&maker));
    assert!(!half.parent().unwrap().join("root.json").exists());

    let only = run(&["run", "--install-only", &study]);
    assert_eq!(only.code, Some(0), "{}", only.err);
    let root = cache.join("roots/bookworm/root");
    assert_eq!(made(), ["bookworm"]);
    let before = list_tree(&root);
    let begun = run(&["run", &study]);
    assert_eq!(begun.code, Some(0), "{}", begun.err);
    let speeds: Vec<f64> =
        laboratory.samples_by_level("release", "speed").into_iter().map(|(_, speed)| speed).collect();
    assert_eq!(speeds, [12.0]);
    assert_eq!(list_tree(&root), before);
    let manifest = fs::read_to_string(laboratory.only_run().join("run.json")).unwrap();
    assert!(manifest.contains("root.packages.debootstrap:bookworm"));
}
