//! Guests sampled from outside: real kernels, what runs with interrupts off, guests and perflabs that are killed meanwhile.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use perflab_model::profile::Profile;
use perflab_model::{NodeId, StackSample};
use rustix::process::{Pid, Signal, kill_process};

use crate::laboratory::{CommandOutput, Sandbox, to_command_output};
use crate::vm::GuestSandbox;

/// A guest of two processors that runs `command`, sampled at 50 Hz.
fn sampled_study(laboratory: &Sandbox, command: &str, iterations: u32) -> String {
    let text = format!(
        "[run]\nwarmup = 0\niterations = {iterations}\n[workload.work]\ncommand = '''{command}'''\n\
         [target.guest]\nkind = \"vm\"\nkernel = \"debian-cloud\"\ncpus = 2\n\
         memory = \"512MiB\"\nappend = [\"printk.devkmsg=on\"]\n[profile]\nfrom = \"outside\"\n"
    );
    laboratory.write_study("outside.toml", &text)
}

fn run_in(guests: &GuestSandbox, laboratory: &Sandbox, study: &str) -> CommandOutput {
    let mut command = laboratory.command(&["run", study, "--no-report"]);
    to_command_output(command.env("XDG_RUNTIME_DIR", guests.home()).output().unwrap())
}

/// The functions of a sample, innermost first.
fn functions<'p>(profile: &'p Profile, sample: &StackSample) -> Vec<&'p str> {
    let node = |id: NodeId| profile.node(id).unwrap();
    let chain = std::iter::successors(sample.leaf, |id| node(*id).parent);
    chain.map(|id| profile.frame(node(id).frame).unwrap().name.as_str()).collect()
}

#[test]
fn what_a_guest_does_with_interrupts_off_is_seen_with_its_callers_and_its_tasks_name() {
    let Some(guests) = GuestSandbox::new("what_a_guest_does_with_interrupts_off_is_seen") else { return };
    let laboratory = Sandbox::new();
    // The serial console is written to with interrupts off, a character a visit to QEMU.
    let say = "sh -c 'for i in $(seq 3000); do echo \"<1>a line for the console that is neither long nor short\" > /dev/kmsg; done'";
    let study = sampled_study(&laboratory, say, 2);
    let text = fs::read_to_string(&study).unwrap();
    fs::write(&study, format!("kernel-log = false\n{text}")).unwrap();
    let ended = run_in(&guests, &laboratory, &study);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let archive = perflab_archive::Archive::open(&laboratory.path("archive")).unwrap();
    let run = archive.find_runs("@latest").unwrap().remove(0);
    let profile = run.read_profile(0).unwrap();
    assert_eq!(profile.iterations.len(), 2);
    for piece in &profile.iterations {
        let stops = piece.summary.guest_stops.unwrap();
        assert!(stops.stops > 0 && stops.stopped_share() < 0.5, "{stops:?}");
        // Both processors are looked at whenever the guest is stopped.
        assert_eq!(piece.samples.len() as u64, 2 * stops.stops);
        assert!(piece.samples.iter().all(|sample| sample.cpu.is_some_and(|cpu| cpu < 2)));
    }
    let own = run.manifest().unwrap().overhead.guest_stops.unwrap();
    assert_eq!(
        own.stops,
        profile.iterations.iter().map(|piece| piece.summary.guest_stops.unwrap().stops).sum::<u64>()
    );
    let samples: Vec<&StackSample> = profile.iterations.iter().flat_map(|piece| &piece.samples).collect();
    let of_writer = |sample: &&&StackSample| {
        let functions = functions(&profile, sample);
        functions.contains(&"serial8250_console_write") && functions.contains(&"do_syscall_64")
    };
    let writing: Vec<_> = samples.iter().filter(of_writer).collect();
    // A busy host gives the guest little time to write in.
    assert!(writing.len() >= 10, "{} of {}", writing.len(), samples.len());
    assert!(writing.iter().all(|sample| profile.comm(sample.comm) == "sh"));
    let idle = samples.iter().filter(|sample| profile.comm(sample.comm).starts_with("swapper/"));
    assert!(idle.clone().count() > 0);
    assert!(idle.clone().all(|sample| functions(&profile, sample).last() == Some(&"guest")));
    guests.assert_nothing_is_left();
}

/// Begins a run of long iterations, and gives its process once it samples.
fn begin_long_run(guests: &GuestSandbox, laboratory: &Sandbox) -> std::process::Child {
    let study = sampled_study(laboratory, "sh -c 'while :; do :; done'", 1);
    let mut command = laboratory.command(&["run", &study, "--no-report"]);
    command.env("XDG_RUNTIME_DIR", guests.home()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let begun = Instant::now();
    let journal = || {
        let runs = fs::read_dir(laboratory.path("archive/runs")).into_iter().flatten().flatten();
        runs.filter_map(|run| fs::read_to_string(run.path().join("journal.jsonl")).ok()).collect::<String>()
    };
    while !journal().contains("\"released\"") && begun.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    child
}

#[test]
fn a_guest_that_dies_while_it_is_sampled_is_lost_as_any_other() {
    let Some(guests) = GuestSandbox::new("a_guest_that_dies_while_it_is_sampled") else { return };
    let laboratory = Sandbox::new();
    let child = begin_long_run(&guests, &laboratory);
    let folder = fs::read_dir(guests.home().join("perflab")).unwrap().flatten().next().unwrap().path();
    let note: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("guest.json")).unwrap()).unwrap();
    let qemu = i32::try_from(note["pid"].as_i64().unwrap()).unwrap();
    kill_process(Pid::from_raw(qemu).unwrap(), Signal::KILL).unwrap();
    let ended = to_command_output(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    guests.assert_nothing_is_left();
}

#[test]
fn nothing_is_left_of_a_perflab_that_is_killed_while_it_samples() {
    let Some(guests) = GuestSandbox::new("nothing_is_left_of_a_perflab_that_is_killed") else { return };
    let laboratory = Sandbox::new();
    let mut child = begin_long_run(&guests, &laboratory);
    assert!(!laboratory_is_empty(&guests));
    child.kill().unwrap();
    child.wait().unwrap();
    // The folders of guests that were killed with their perflab are removed by whoever looks next.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(30) && !laboratory_is_empty(&guests) {
        std::thread::sleep(Duration::from_secs(1));
        to_command_output(guests.command(&["vm", "list"]).output().unwrap());
    }
    guests.assert_nothing_is_left();
}

fn laboratory_is_empty(guests: &GuestSandbox) -> bool {
    fs::read_dir(guests.home().join("perflab")).map_or(true, |folders| folders.count() == 0)
}

#[test]
fn what_cannot_be_sampled_from_outside_is_said_when_the_study_is_checked() {
    let laboratory = Sandbox::new();
    let checked = |text: &str| {
        let study = laboratory.write_study("s.toml", text);
        let said = laboratory.run(&["study", "check", &study]);
        assert_eq!(said.code, Some(2), "{}", said.err);
        said.err.replace(&study, "s.toml")
    };
    let guest = "[target.guest]\nkind = \"vm\"\nkernel = \"debian-cloud\"\n";
    let said = [
        checked("[workload.echo]\n[profile]\nfrom = \"outside\"\n"),
        checked(
            "[workload.echo]\n[target.far]\nkind = \"ssh\"\naddress = \"a\"\n[profile]\nfrom = \"outside\"\n",
        ),
        checked(&format!(
            "[workload.echo]\n{guest}[profile]\nfrom = \"outside\"\nfrequency = 4999\nscope = \"workload\"\n"
        )),
    ];
    insta::assert_snapshot!(said.concat());
}
