//! How far apart agents wake that were given the same instant: processes of ours, and shells with nc.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use perflab_conduct::clock_offset::{ClockOffsetEstimator, RoundTrip};
use perflab_conduct::launcher;
use perflab_conduct::multiplexer::Multiplexer;
use perflab_conduct::protocol::{AgentOrder, AgentReport};
use perflab_model::StopRequest;
use perflab_model::study::{TargetKind, TargetSpec};
use perflab_model::{Nanos, PlannedTarget};
use perflab_observe::monotonic_now;

use crate::{BarrierBenchError, local_machine};

/// How long before it is due a release is told.
const LEAD: u64 = 5_000_000;

/// Releases of real agents, and of shells with nc.
pub(crate) fn measure_skew(targets: usize, rounds: u32, peer_rounds: u32) -> Result<(), BarrierBenchError> {
    let (ours, lost) = time_releases(targets, rounds)?;
    println!(
        "{targets} targets, perflab: {} releases, {lost} lost; {}",
        ours.len(),
        format_spread(ours.clone())
    );
    let Some((peers, hung)) = run_shell_peer(targets, peer_rounds)? else {
        println!("  nc: not installed (apt-get install netcat-openbsd)");
        return Ok(());
    };
    let fate = if hung { "then a token was lost" } else { "none lost" };
    println!(
        "  the same with nc: {} of {peer_rounds} releases, {fate}; {}",
        peers.len(),
        format_spread(peers.clone())
    );
    if !peers.is_empty() {
        println!("  ratio of medians: {:.0}", median_time(peers) / median_time(ours));
    }
    Ok(())
}

fn median_time(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

fn format_spread(mut times: Vec<f64>) -> String {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| {
        times.get((share * (times.len().max(1) - 1) as f64) as usize).copied().unwrap_or(f64::NAN)
    };
    format!("skew p50 {:.3} ms, p90 {:.3} ms, max {:.3} ms", at(0.5), at(0.9), at(1.0))
}

/// How far apart the agents woke in each round, in milliseconds, and how many rounds were not whole.
fn time_releases(targets: usize, rounds: u32) -> Result<(Vec<f64>, u32), BarrierBenchError> {
    let (host, mut hub) = (local_machine()?, Multiplexer::new()?);
    let mut places = Vec::new();
    for number in 0..targets {
        let (name, spec) = (format!("agent{number}"), TargetSpec::new(TargetKind::Process));
        let target = launcher::LaunchableTarget::resolve(PlannedTarget { name, spec });
        let started = launcher::launch_target(&target, &host, &StopRequest::new())?;
        hub.add(started.connection)?;
        places.push(started.handle);
    }
    let mut offsets = vec![ClockOffsetEstimator::default(); targets];
    await_reports(&mut hub, targets, |report| matches!(report, AgentReport::Hello(_)).then_some(Nanos(0)))?;
    let (mut skews, mut lost) = (Vec::new(), 0);
    for round in 0..rounds {
        compare_clocks(&mut hub, &mut offsets, u64::from(round) * 8)?;
        let start = Nanos(monotonic_now().0 + LEAD);
        for (target, offset) in offsets.iter().enumerate() {
            hub.send(target, &AgentOrder::Rehearse { at: offset.to_theirs(start) });
        }
        let woke = await_reports(&mut hub, targets, |report| match report {
            AgentReport::Woke { at } => Some(*at),
            _ => None,
        })?;
        // All have this machine's clock, so that what they say is the truth and no estimate.
        match (woke.iter().min(), woke.iter().max()) {
            (Some(first), Some(last)) if woke.len() == targets => skews.push((last.0 - first.0) as f64 / 1e6),
            _ => lost += 1,
        }
    }
    Ok((skews, lost))
}

fn compare_clocks(
    hub: &mut Multiplexer,
    offsets: &mut [ClockOffsetEstimator],
    first: u64,
) -> Result<(), BarrierBenchError> {
    for (target, offset) in offsets.iter_mut().enumerate() {
        for id in first..first + 8 {
            let sent = monotonic_now();
            hub.send(target, &AgentOrder::Ping { id });
            for heard in hub.receive(Nanos(sent.0 + 1_000_000_000))? {
                if let Ok(AgentReport::Pong { id: answered, at }) = heard.report
                    && (heard.index, answered) == (target, id)
                {
                    offset.add_trip(RoundTrip { sent, theirs: at, back: heard.at }).expect("our own clock");
                }
            }
        }
    }
    Ok(())
}

/// What all say, within five seconds.
fn await_reports(
    hub: &mut Multiplexer,
    targets: usize,
    wanted: impl Fn(&AgentReport) -> Option<Nanos>,
) -> Result<Vec<Nanos>, BarrierBenchError> {
    let deadline = Nanos(monotonic_now().0 + 5_000_000_000);
    let mut said = Vec::new();
    while said.len() < targets && monotonic_now() < deadline {
        let heard = hub.receive(deadline)?;
        said.extend(heard.iter().filter_map(|heard| wanted(heard.report.as_ref().ok()?)));
    }
    Ok(said)
}

/// The same with nc: skews in milliseconds, and whether a token was lost. `None` without nc.
fn run_shell_peer(targets: usize, rounds: u32) -> Result<Option<(Vec<f64>, bool)>, BarrierBenchError> {
    if Command::new("nc").arg("-h").stderr(Stdio::null()).stdout(Stdio::null()).status().is_err() {
        return Ok(None);
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/barrier_peer.sh");
    let port = 20_000 + std::process::id() % 20_000 + targets as u32;
    let mut child = Command::new("bash")
        .arg(script)
        .args([targets.to_string(), rounds.to_string(), port.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (mut skews, mut lost) = (Vec::new(), false);
    let told = child.stdout.take().ok_or("a child without its pipe")?;
    for line in BufReader::new(told).lines().map_while(Result::ok) {
        let times: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        if line.starts_with("lost") {
            lost = true;
        } else if times.len() == targets {
            let ends =
                (times.iter().copied().fold(f64::MAX, f64::min), times.iter().copied().fold(0.0, f64::max));
            skews.push((ends.1 - ends.0) / 1e3);
        }
    }
    std::thread::sleep(Duration::from_millis(100));
    let _ = child.wait();
    Ok(Some((skews, lost)))
}
