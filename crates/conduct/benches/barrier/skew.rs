//! How far apart agents wake that were told the same time: processes of ours, and shells with nc.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use perflab_conduct::hub::Hub;
use perflab_conduct::offset::{Offset, Trip};
use perflab_conduct::protocol::{Order, Report};
use perflab_conduct::{Stop, place};
use perflab_model::Nanos;
use perflab_model::study::{TargetKind, TargetUse};
use perflab_observe::monotonic_now;

use crate::{Surprise, host};

/// How long before it is due a release is told.
const LEAD: u64 = 5_000_000;

/// Releases of real agents, and of shells with nc.
pub(crate) fn skew(targets: usize, rounds: u32, peer_rounds: u32) -> Result<(), Surprise> {
    let (ours, lost) = released(targets, rounds)?;
    println!("{targets} targets, perflab: {} releases, {lost} lost; {}", ours.len(), spread(ours.clone()));
    let Some((peers, hung)) = peer(targets, peer_rounds)? else {
        println!("  nc: not installed (apt-get install netcat-openbsd)");
        return Ok(());
    };
    let fate = if hung { "then a token was lost" } else { "none lost" };
    println!(
        "  the same with nc: {} of {peer_rounds} releases, {fate}; {}",
        peers.len(),
        spread(peers.clone())
    );
    if !peers.is_empty() {
        println!("  ratio of medians: {:.0}", middle(peers) / middle(ours));
    }
    Ok(())
}

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

fn spread(mut times: Vec<f64>) -> String {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| {
        times.get((share * (times.len().max(1) - 1) as f64) as usize).copied().unwrap_or(f64::NAN)
    };
    format!("skew p50 {:.3} ms, p90 {:.3} ms, max {:.3} ms", at(0.5), at(0.9), at(1.0))
}

/// How far apart the agents woke in each round, in milliseconds, and how many rounds were not whole.
fn released(targets: usize, rounds: u32) -> Result<(Vec<f64>, u32), Surprise> {
    let (host, mut hub) = (host()?, Hub::new()?);
    let target = TargetUse::new(TargetKind::Process);
    let mut places = Vec::new();
    for number in 0..targets {
        let started = place::start(&format!("agent{number}"), &target, &host, &Stop::new())?;
        hub.add(started.channel)?;
        places.push(started.place);
    }
    let mut offsets = vec![Offset::default(); targets];
    await_all(&mut hub, targets, |report| matches!(report, Report::Hello(_)).then_some(Nanos(0)))?;
    let (mut skews, mut lost) = (Vec::new(), 0);
    for round in 0..rounds {
        compare_clocks(&mut hub, &mut offsets, u64::from(round) * 8)?;
        let start = Nanos(monotonic_now().0 + LEAD);
        for (target, offset) in offsets.iter().enumerate() {
            hub.send(target, &Order::Rehearse { at: offset.theirs(start) });
        }
        let woke = await_all(&mut hub, targets, |report| match report {
            Report::Woke { at } => Some(*at),
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

fn compare_clocks(hub: &mut Hub, offsets: &mut [Offset], first: u64) -> Result<(), Surprise> {
    for (target, offset) in offsets.iter_mut().enumerate() {
        for id in first..first + 8 {
            let sent = monotonic_now();
            hub.send(target, &Order::Ping { id });
            for heard in hub.wait(Nanos(sent.0 + 1_000_000_000))? {
                if let Ok(Report::Pong { id: answered, at }) = heard.said
                    && (heard.link, answered) == (target, id)
                {
                    offset.add(Trip { sent, theirs: at, back: heard.at }).expect("our own clock");
                }
            }
        }
    }
    Ok(())
}

/// What all say, within five seconds.
fn await_all(
    hub: &mut Hub,
    targets: usize,
    wanted: impl Fn(&Report) -> Option<Nanos>,
) -> Result<Vec<Nanos>, Surprise> {
    let deadline = Nanos(monotonic_now().0 + 5_000_000_000);
    let mut said = Vec::new();
    while said.len() < targets && monotonic_now() < deadline {
        let heard = hub.wait(deadline)?;
        said.extend(heard.iter().filter_map(|heard| wanted(heard.said.as_ref().ok()?)));
    }
    Ok(said)
}

/// The same with nc: skews in milliseconds, and whether a token was lost. `None` without nc.
fn peer(targets: usize, rounds: u32) -> Result<Option<(Vec<f64>, bool)>, Surprise> {
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
