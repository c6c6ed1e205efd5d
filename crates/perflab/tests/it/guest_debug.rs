//! A guest under a debugger: QEMU's stub, the memory of a kernel that panicked, and disks with queues and threads of their own.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::laboratory::{skip_test, to_command_output};
use crate::ssh::is_program_there;
use crate::vm::GuestSandbox;

/// What gdb prints of a text in a kernel's memory.
fn text_in_memory(arguments: &[&str], address: &str) -> String {
    let mut command = Command::new("gdb");
    command.args(["-nx", "-batch"]).args(arguments).args(["-ex", &format!("x/s 0x{address}")]);
    let said = to_command_output(command.stdin(Stdio::null()).output().unwrap());
    assert_eq!(said.code, Some(0), "{}", said.err);
    said.out
}

fn threads_named(pid: u32, begin: &str) -> usize {
    let tasks =
        fs::read_dir(Path::new("/proc").join(pid.to_string()).join("task")).into_iter().flatten().flatten();
    tasks
        .filter(|task| fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.starts_with(begin)))
        .count()
}

#[test]
fn a_debugger_sees_a_guest_as_it_runs_and_its_memory_after_a_panic() {
    let test = "a_debugger_sees_a_guest_as_it_runs_and_its_memory_after_a_panic";
    let Some(guests) = GuestSandbox::new(test) else { return };
    if !is_program_there("gdb") {
        return skip_test(test, "gdb");
    }
    let (logs, disk) = (guests.home().join("logs"), guests.home().join("data.img"));
    fs::File::create(&disk).unwrap().set_len(16 << 20).unwrap();
    let script = "ls /sys/block/vda/mq | wc -l; sed -n 's/ . linux_banner$//p' /proc/kallsyms; read go; echo c > /proc/sysrq-trigger";
    let mut command =
        guests.command(&["vm", "boot", "--debug", "--root", "bare", "--cpus", "2", "--memory", "400MiB"]);
    command.args(["--with", "ls", "--with", "wc", "--with", "sed", "--disk-queues", "1", "--iothreads", "2"]);
    command.arg("--disk").arg(&disk).arg("--logs").arg(&logs).args(["--", "sh", "-c", script]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (Some(Ok(queues)), Some(Ok(banner))) = (lines.next(), lines.next()) else {
        panic!("{}", to_command_output(child.wait_with_output().unwrap()).err)
    };
    assert_eq!(queues, "1", "queues of the disk");
    let threads: usize =
        guests.processes().into_iter().map(|pid| threads_named(pid, "IO iothread")).max().unwrap();
    assert_eq!(threads, 2);
    let stub = format!("target remote {}", logs.join("debian-cloud.gdb").display());
    let seen = text_in_memory(&["-ex", "set architecture i386:x86-64", "-ex", &stub], &banner);
    assert!(seen.contains("Linux version "), "{seen}");
    // It goes on when the debugger leaves.
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let ended = to_command_output(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    let core = logs.join("debian-cloud.core");
    assert!(ended.err.contains(core.to_str().unwrap()), "{}", ended.err);
    let seen = text_in_memory(&["-c", core.to_str().unwrap()], &banner);
    assert!(seen.contains("Linux version "), "{seen}");
    guests.assert_nothing_is_left();
}
