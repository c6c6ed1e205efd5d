//! Two threads or processes that hand one byte to and fro over a pair of pipes: each hand-over is a
//! switch of context where they share a CPU, and a wake-up across CPUs where they do not.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::json;

use super::LoadError;
use super::options::{Options, wrong};

#[derive(Clone, Copy)]
enum Between {
    Threads,
    Processes,
}

#[derive(Clone, Copy, PartialEq)]
enum Placement {
    /// wherever the scheduler puts them
    Any,
    /// both on one CPU
    Together,
    /// on two CPUs
    Apart,
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    Lead,
    Echo,
}

pub(super) fn measure(options: &mut Options) -> Result<serde_json::Value, LoadError> {
    let rounds = options.count("rounds", 50_000, 1)?;
    let between =
        options.choice("between", &[("threads", Between::Threads), ("processes", Between::Processes)])?;
    let places = [("any", Placement::Any), ("together", Placement::Together), ("apart", Placement::Apart)];
    let placement = options.choice("placement", &places)?;
    let role = options.choice("role", &[("lead", Role::Lead), ("echo", Role::Echo)])?;
    options.done()?;
    if role == Role::Echo {
        place(placement, 1)?;
        echo(io::stdin(), io::stdout()).map_err(LoadError::refused("answer over a pipe"))?;
        return Ok(json!({}));
    }
    let seconds = match between {
        Between::Threads => threads(rounds, placement)?,
        Between::Processes => processes(rounds, placement)?,
    };
    let rounds = rounds as f64;
    Ok(
        json!({ "switches_per_second": 2.0 * rounds / seconds, "round_trip_us": seconds * 1e6 / rounds, "seconds": seconds }),
    )
}

fn threads(rounds: usize, placement: Placement) -> Result<f64, LoadError> {
    let pipe = || io::pipe().map_err(LoadError::refused("make a pipe"));
    let ((echo_in, lead_out), (lead_in, echo_out)) = (pipe()?, pipe()?);
    std::thread::scope(|scope| {
        let other = scope.spawn(move || {
            place(placement, 1)?;
            echo(echo_in, echo_out).map_err(LoadError::refused("answer over a pipe"))
        });
        // Placed in a thread of its own, so that the caller keeps its CPUs.
        let lead = scope.spawn(move || {
            place(placement, 0)?;
            ping(lead_in, lead_out, rounds).map_err(LoadError::refused("ask over a pipe"))
        });
        let seconds = joined(lead)?;
        joined(other)?;
        Ok(seconds)
    })
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T, LoadError>>) -> Result<T, LoadError> {
    thread
        .join()
        .unwrap_or_else(|_| Err(LoadError::refused("finish a thread")(io::Error::other("it panicked"))))
}

fn processes(rounds: usize, placement: Placement) -> Result<f64, LoadError> {
    let mut other = partner(placement)?;
    let pipes = (other.stdout.take(), other.stdin.take());
    let measured = match pipes {
        (Some(answers), Some(questions)) => std::thread::scope(|scope| {
            joined(scope.spawn(move || {
                place(placement, 0)?;
                ping(answers, questions, rounds).map_err(LoadError::refused("ask over a pipe"))
            }))
        }),
        _ => Err(LoadError::refused("reach the other process")(io::ErrorKind::BrokenPipe.into())),
    };
    // Its pipe is closed now, so it ends by itself.
    other.wait().map_err(LoadError::refused("wait for the other process"))?;
    measured
}

/// The other process: this program again, as `load context-switches --role echo`.
fn partner(placement: Placement) -> Result<Child, LoadError> {
    let own = std::env::current_exe().map_err(LoadError::refused("find this program"))?;
    let placed = match placement {
        Placement::Any => "any",
        Placement::Together => "together",
        Placement::Apart => "apart",
    };
    let arguments = ["load", "context-switches", "--role", "echo", "--placement", placed].map(OsString::from);
    let mut command = Command::new(own);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().map_err(LoadError::refused("start the other process"))
}

/// Seconds for `rounds` round trips, after one that only makes sure that the other side is there.
fn ping(mut answers: impl Read, mut questions: impl Write, rounds: usize) -> io::Result<f64> {
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
fn echo(mut questions: impl Read, mut answers: impl Write) -> io::Result<()> {
    let mut byte = [0];
    while questions.read(&mut byte)? == 1 {
        answers.write_all(&byte)?;
        answers.flush()?;
    }
    Ok(())
}

/// Ties the calling thread to its CPU; `side` is 0 for the one that asks and 1 for the one that answers.
fn place(placement: Placement, side: usize) -> Result<(), LoadError> {
    if placement == Placement::Any {
        return Ok(());
    }
    let allowed =
        sched_getaffinity(None).map_err(io::Error::from).map_err(LoadError::refused("read the CPU mask"))?;
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    let index = if placement == Placement::Apart { side } else { 0 };
    let cpu = cpus.get(index).ok_or_else(|| wrong("placement", "`apart` needs two CPUs"))?;
    let mut one = CpuSet::new();
    one.set(*cpu);
    sched_setaffinity(None, &one).map_err(io::Error::from).map_err(LoadError::refused("set the CPU mask"))
}
