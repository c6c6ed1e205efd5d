//! Two threads or processes that hand one byte to and fro over a pair of pipes.
//!
//! Each hand-over is a context switch where they share a CPU, and a wake-up across CPUs where they do not.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::json;

use crate::load::args::{BuiltinLoadArgs, LoadError, invalid_value_error};

#[derive(Clone, Copy)]
enum SwitchBetween {
    Threads,
    Processes,
}

#[derive(Clone, Copy, PartialEq)]
enum SwitchPlacement {
    /// wherever the scheduler puts them
    Any,
    /// both on one CPU
    Together,
    /// on two CPUs
    Apart,
}

#[derive(Clone, Copy, PartialEq)]
enum PingRole {
    Lead,
    Echo,
}

pub(crate) fn measure_context_switches(
    options: &mut BuiltinLoadArgs,
) -> Result<serde_json::Value, LoadError> {
    let rounds = options.count("rounds", 50_000, 1)?;
    let between = options
        .choice("between", &[("threads", SwitchBetween::Threads), ("processes", SwitchBetween::Processes)])?;
    let places = [
        ("any", SwitchPlacement::Any),
        ("together", SwitchPlacement::Together),
        ("apart", SwitchPlacement::Apart),
    ];
    let placement = options.choice("placement", &places)?;
    let role = options.choice("role", &[("lead", PingRole::Lead), ("echo", PingRole::Echo)])?;
    options.require_all_used()?;
    if role == PingRole::Echo {
        pin_to_cpu(placement, 1)?;
        echo_bytes(io::stdin(), io::stdout()).map_err(LoadError::system_error("answer over a pipe"))?;
        return Ok(json!({}));
    }
    let seconds = match between {
        SwitchBetween::Threads => time_threads(rounds, placement)?,
        SwitchBetween::Processes => time_processes(rounds, placement)?,
    };
    let rounds = rounds as f64;
    Ok(
        json!({ "switches_per_second": 2.0 * rounds / seconds, "round_trip_us": seconds * 1e6 / rounds, "seconds": seconds }),
    )
}

fn time_threads(rounds: usize, placement: SwitchPlacement) -> Result<f64, LoadError> {
    let pipe = || io::pipe().map_err(LoadError::system_error("make a pipe"));
    let ((echo_in, lead_out), (lead_in, echo_out)) = (pipe()?, pipe()?);
    std::thread::scope(|scope| {
        let other = scope.spawn(move || {
            pin_to_cpu(placement, 1)?;
            echo_bytes(echo_in, echo_out).map_err(LoadError::system_error("answer over a pipe"))
        });
        // Placed in a thread of its own, so that the caller keeps its CPUs.
        let lead = scope.spawn(move || {
            pin_to_cpu(placement, 0)?;
            send_pings(lead_in, lead_out, rounds).map_err(LoadError::system_error("ask over a pipe"))
        });
        let seconds = join_thread(lead)?;
        join_thread(other)?;
        Ok(seconds)
    })
}

fn join_thread<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T, LoadError>>) -> Result<T, LoadError> {
    thread
        .join()
        .unwrap_or_else(|_| Err(LoadError::system_error("finish a thread")(io::Error::other("it panicked"))))
}

fn time_processes(rounds: usize, placement: SwitchPlacement) -> Result<f64, LoadError> {
    let mut other = spawn_partner(placement)?;
    let pipes = (other.stdout.take(), other.stdin.take());
    let measured = match pipes {
        (Some(answers), Some(questions)) => std::thread::scope(|scope| {
            join_thread(scope.spawn(move || {
                pin_to_cpu(placement, 0)?;
                send_pings(answers, questions, rounds).map_err(LoadError::system_error("ask over a pipe"))
            }))
        }),
        _ => Err(LoadError::system_error("reach the other process")(io::ErrorKind::BrokenPipe.into())),
    };
    // Its pipe is closed now, so it ends by itself.
    other.wait().map_err(LoadError::system_error("wait for the other process"))?;
    measured
}

/// The other process: this program again, as `load context-switches --role echo`.
fn spawn_partner(placement: SwitchPlacement) -> Result<Child, LoadError> {
    let own = std::env::current_exe().map_err(LoadError::system_error("find this program"))?;
    let placed = match placement {
        SwitchPlacement::Any => "any",
        SwitchPlacement::Together => "together",
        SwitchPlacement::Apart => "apart",
    };
    let arguments = ["load", "context-switches", "--role", "echo", "--placement", placed].map(OsString::from);
    let mut command = Command::new(own);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().map_err(LoadError::system_error("start the other process"))
}

/// Seconds for `rounds` round trips, after one that only makes sure that the other side is there.
fn send_pings(mut answers: impl Read, mut questions: impl Write, rounds: usize) -> io::Result<f64> {
    let mut byte = [1];
    let mut round = || {
        questions.write_all(&byte)?;
        questions.flush()?;
        answers.read_exact(&mut byte)
    };
    round()?;
    let start = Instant::now();
    for _ in 0..rounds {
        round()?;
    }
    Ok(start.elapsed().as_secs_f64())
}

/// Gives every byte back until the other side has had enough.
fn echo_bytes(mut questions: impl Read, mut answers: impl Write) -> io::Result<()> {
    let mut byte = [0];
    while questions.read(&mut byte)? == 1 {
        answers.write_all(&byte)?;
        answers.flush()?;
    }
    Ok(())
}

/// Ties the calling thread to its CPU; `side` is 0 for the one that asks and 1 for the one that answers.
fn pin_to_cpu(placement: SwitchPlacement, side: usize) -> Result<(), LoadError> {
    if placement == SwitchPlacement::Any {
        return Ok(());
    }
    let allowed = sched_getaffinity(None)
        .map_err(io::Error::from)
        .map_err(LoadError::system_error("read the CPU mask"))?;
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    let index = if placement == SwitchPlacement::Apart { side } else { 0 };
    let cpu = cpus.get(index).ok_or_else(|| invalid_value_error("placement", "`apart` needs two CPUs"))?;
    let mut one = CpuSet::new();
    one.set(*cpu);
    sched_setaffinity(None, &one)
        .map_err(io::Error::from)
        .map_err(LoadError::system_error("set the CPU mask"))
}
