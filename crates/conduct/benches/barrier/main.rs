//! What a barrier costs, and how far apart its targets begin.
//!
//! `cargo bench -p perflab-conduct --bench barrier [-- --rounds N] [--peer-rounds N]`
//!
//! 1. One barrier over 1,000 agents that answer at once, over TCP on this host: time and memory.
//! 2. 2, 4 and 16 agents as processes, 200 releases each: how far apart they woke. Beside it, in the same run, the same
//!    with tokens over nc (`barrier_peer.sh`), fewer rounds as each takes a second.

mod many;
mod skew;

use std::os::fd::AsFd;
use std::path::PathBuf;

use perflab_conduct::{Connection, LocalMachine, agent};
use perflab_observe::Root;
use perflab_workload::Catalogue;

type BarrierBenchError = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), BarrierBenchError> {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|first| first == "agent") {
        return serve_agent();
    }
    let number = |name: &str, default: u32| {
        let found = arguments.iter().skip_while(|argument| *argument != name).nth(1);
        found.and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    many::measure_many_agents()?;
    let (rounds, peer_rounds) = (number("--rounds", 200), number("--peer-rounds", 20));
    [2, 4, 16].into_iter().try_for_each(|targets| skew::measure_skew(targets, rounds, peer_rounds))
}

fn local_machine() -> std::io::Result<LocalMachine> {
    Ok(LocalMachine {
        root: Root::host(),
        state: PathBuf::from("/nonexistent"),
        perflab: std::env::current_exe()?,
        catalogue: Catalogue::default(),
        runs_as_typed: false,
        quiet_after: None,
        traces: Default::default(),
        monitors: Default::default(),
        counters: Default::default(),
        events: Default::default(),
    })
}

/// This binary as the agent that it starts.
fn serve_agent() -> Result<(), BarrierBenchError> {
    let reading = std::io::stdin().as_fd().try_clone_to_owned()?;
    let writing = std::io::stdout().as_fd().try_clone_to_owned()?;
    let _ = agent::serve_agent(Connection::new("host", reading, writing), false, None, local_machine()?);
    Ok(())
}
