//! Processes and threads made and ended, over and over, and a mix of cheap system calls: what UnixBench calls process creation, execl
//! throughput, shell scripts and system call overhead (<https://github.com/kdlucas/byte-unixbench>, its README), written anew.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::WaitOptions;

use crate::load::args::{BuiltinLoadArgs, LoadError};
use crate::load::scaling::measure_cases;
use crate::load::scaling_case::{ScalingCase, case};
use crate::load::tasks::Task;
use crate::system_calls::SingleThread;

pub(crate) fn measure_processes(options: &mut BuiltinLoadArgs) -> Result<serde_json::Value, LoadError> {
    measure_cases(options, CASES)
}

const CASES: &[ScalingCase] = &[
    case("fork", "spawn", |task, _| fork_and_wait(task)),
    case("exec", "execl", |task, _| task.repeat(|| run_quietly(&mut Command::new("true")))),
    case("shell", "shell1", run_script),
    case("thread", "", |task, _| {
        task.repeat(|| {
            let thread = std::thread::Builder::new().spawn(|| ())?;
            thread.join().map_err(|_| io::Error::other("a thread panicked"))
        })
    }),
    case("syscalls", "syscall", mix_system_calls),
];

/// A child that ends at once.
fn fork_and_wait(task: &Task<'_>) -> io::Result<()> {
    let one = SingleThread::check()?;
    task.repeat(|| {
        let child = one.fork(|| 0)?;
        rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(child), WaitOptions::empty()))?;
        Ok(())
    })
}

fn run_quietly(command: &mut Command) -> io::Result<()> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status()? {
        status if status.success() => Ok(()),
        status => Err(io::Error::other(format!("it ended with {status}"))),
    }
}

/// Three small tools over a file of a thousand lines.
fn run_script(task: &Task<'_>, folder: &Path) -> io::Result<()> {
    const SCRIPT: &str = "sort \"$1\" | grep 7 | wc -l";
    let path = folder.join(task.index.to_string()).join("lines");
    let lines: String = (0..1000_u32).map(|line| format!("{}\n", line.wrapping_mul(2_654_435_761))).collect();
    std::fs::write(&path, lines)?;
    task.repeat(|| run_quietly(Command::new("sh").args(["-c", SCRIPT, "sh"]).arg(&path)))
}

/// Five cheap system calls, which count as one.
fn mix_system_calls(task: &Task<'_>, folder: &Path) -> io::Result<()> {
    let file: File = tempfile::tempfile_in(folder)?;
    task.repeat(|| {
        drop(rustix::io::dup(&file)?);
        std::hint::black_box(rustix::process::getpid());
        std::hint::black_box(rustix::process::getuid());
        std::hint::black_box(rustix::process::umask(rustix::fs::Mode::WGRP | rustix::fs::Mode::WOTH));
        Ok(())
    })
}
