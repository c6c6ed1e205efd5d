//! What a barrier costs, and how far apart its targets begin.
//!
//! `cargo bench -p perflab-conduct --bench barrier [-- --rounds N] [--peer-rounds N]`
//!
//! 1. One barrier over 1,000 agents that answer at once, over TCP on this host: time and memory.
//! 2. 2, 4 and 16 agents as processes, 200 releases each: how far apart they woke. Beside it, in the same run, the same
//!    with tokens over nc (`barrier_peer.sh`), fewer rounds as each takes a second.

#![expect(clippy::unwrap_used, reason = "a bench may die of a surprise")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use perflab_conduct::barrier::{Action, Barrier, Input, Limits, Point, stages};
use perflab_conduct::hub::Hub;
use perflab_conduct::offset::{Offset, Trip};
use perflab_conduct::protocol::{Decoder, Greeter, Order, Report, encode, greeting};
use perflab_conduct::{Channel, Host, Stop, agent, place};
use perflab_model::study::{OnLost, TargetKind, TargetUse};
use perflab_model::{Nanos, Slot};
use perflab_observe::{Root, monotonic_now};
use perflab_workload::Catalogue;

const MANY: usize = 1_000;
const LEAD: u64 = 5_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|first| first == "agent") {
        return serve();
    }
    let number = |name: &str, default: u32| {
        let found = arguments.iter().skip_while(|argument| *argument != name).nth(1);
        found.and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    many();
    for targets in [2, 4, 16] {
        skew(targets, number("--rounds", 200), number("--peer-rounds", 20));
    }
}

fn host() -> Host {
    let perflab = std::env::current_exe().unwrap();
    Host {
        root: Root::host(),
        state: PathBuf::from("/nonexistent"),
        perflab,
        catalogue: Catalogue::default(),
    }
}

/// This binary as the agent that it starts.
fn serve() {
    let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
    let reading = stdin.as_fd().try_clone_to_owned().unwrap();
    let writing = stdout.as_fd().try_clone_to_owned().unwrap();
    let _ = agent::serve(Channel::new("host", reading, writing), false, host());
}

/// Barriers over many agents.
fn many() {
    let before = resident("VmRSS");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let simulated = std::thread::spawn(move || simulate(address));
    let mut hub = Hub::new().unwrap();
    for number in 0..MANY {
        let (stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        hub.add(Channel::both_ways(format!("agent{number}"), stream).unwrap()).unwrap();
    }
    let rounds = 50_u32;
    let slots: Vec<(u32, Slot, Vec<usize>)> = (0..rounds)
        .map(|index| {
            let slot = Slot { case: 0, iteration: index, block: index, warmup: false, boot: 0 };
            (index, slot, (0..MANY).collect())
        })
        .collect();
    let minute = Nanos(60_000_000_000);
    let limits = Limits { first: minute, before: minute, after: minute, last: minute };
    let mut barrier = Barrier::new(stages(&slots, MANY, limits), MANY, OnLost::Stop, minute);
    let mut times = Vec::new();
    let mut begun = Instant::now();
    let mut todo = barrier.take(monotonic_now(), Input::Time);
    'run: loop {
        for action in std::mem::take(&mut todo) {
            match action {
                Action::Go { who, point } => {
                    times.push(begun.elapsed());
                    begun = Instant::now();
                    let order = order(point, &slots);
                    who.iter().for_each(|target| hub.send(*target, &order));
                }
                Action::Over => break 'run,
                other => panic!("{other:?}"),
            }
        }
        for heard in hub.wait(Nanos(monotonic_now().0 + minute.0)).unwrap() {
            if let Report::Reached(point) = heard.said.unwrap() {
                let input = Input::Reached { target: heard.link, point };
                todo.extend(barrier.take(monotonic_now(), input));
            }
        }
    }
    // The first one waits for the greetings.
    let mut times = times.split_off(2);
    times.sort_unstable();
    let (middle, last) = (times[times.len() / 2], times[times.len() - 1]);
    println!("barrier over {MANY} agents, {} of them: p50 {middle:.1?}, max {last:.1?}", times.len());
    let peak = resident("VmHWM");
    println!("  memory of both sides together: peak {} KiB, {} KiB more than before", peak, peak - before);
    drop(hub);
    simulated.join().unwrap();
}

fn order(point: Point, slots: &[(u32, Slot, Vec<usize>)]) -> Order {
    match point {
        Point::Before(index) => Order::Ready { index, slot: slots[index as usize].1 },
        Point::After(index) => Order::Start { index, at: Nanos(0) },
        Point::Last => Order::Undo,
        Point::First | Point::End => Order::Leave,
    }
}

/// A thousand agents on one thread, which reach at once whatever they are sent to. The first order is their enrolment.
fn simulate(address: std::net::SocketAddr) {
    use rustix::event::epoll;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let mut agents: Vec<(TcpStream, Option<Greeter>, Decoder<Order>, bool)> = Vec::new();
    for index in 0..MANY {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.write_all(&greeting()).unwrap();
        epoll::add(&epoll, &stream, epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN).unwrap();
        agents.push((stream, Some(Greeter::default()), Decoder::default(), false));
    }
    let (mut buffer, mut open) = ([0; 4096], MANY);
    while open > 0 {
        let mut ready = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; 256];
        let (ready, _) = epoll::wait(&epoll, &mut ready, None).unwrap();
        for index in ready.iter().map(|event| event.data.u64() as usize) {
            let (stream, greeter, decoder, enrolled) = &mut agents[index];
            let length = stream.read(&mut buffer).unwrap_or(0);
            if length == 0 {
                epoll::delete(&epoll, &*stream).unwrap();
                open -= 1;
                continue;
            }
            match greeter.take() {
                Some(mut waiting) => match waiting.take(&buffer[..length]).unwrap() {
                    Some(rest) => decoder.push(&rest),
                    None => *greeter = Some(waiting),
                },
                None => decoder.push(&buffer[..length]),
            }
            while let Some(order) = decoder.take().unwrap() {
                let point = match order {
                    Order::Ready { index, .. } => Point::Before(index),
                    Order::Start { index, .. } => Point::After(index),
                    Order::Undo => Point::Last,
                    _ if *enrolled => Point::End,
                    _ => Point::First,
                };
                *enrolled = true;
                stream.write_all(&encode(&Report::Reached(point)).unwrap()).unwrap();
            }
        }
    }
}

fn resident(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Releases of real agents, and of shells with nc.
fn skew(targets: usize, rounds: u32, peer_rounds: u32) {
    let (ours, lost) = released(targets, rounds);
    println!("{targets} targets, perflab: {} releases, {lost} lost; {}", ours.len(), spread(ours.clone()));
    let Some((peers, hung)) = peer(targets, peer_rounds) else {
        return println!("  nc: not installed (apt-get install netcat-openbsd)");
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
fn released(targets: usize, rounds: u32) -> (Vec<f64>, u32) {
    let (host, mut hub) = (host(), Hub::new().unwrap());
    let target = TargetUse::new(TargetKind::Process);
    let mut places = Vec::new();
    for number in 0..targets {
        let started = place::start(&format!("agent{number}"), &target, &host, &Stop::new()).unwrap();
        hub.add(started.channel).unwrap();
        places.push(started.place);
    }
    let mut offsets = vec![Offset::default(); targets];
    await_all(&mut hub, targets, |report| matches!(report, Report::Hello(_)).then_some(Nanos(0)));
    let (mut skews, mut lost) = (Vec::new(), 0);
    for round in 0..rounds {
        compare_clocks(&mut hub, &mut offsets, u64::from(round) * 8);
        let start = Nanos(monotonic_now().0 + LEAD);
        for (target, offset) in offsets.iter().enumerate() {
            hub.send(target, &Order::Rehearse { at: offset.theirs(start) });
        }
        let woke = await_all(&mut hub, targets, |report| match report {
            Report::Woke { at } => Some(*at),
            _ => None,
        });
        // All have this machine's clock, so that what they say is the truth and no estimate.
        match (woke.iter().min(), woke.iter().max()) {
            (Some(first), Some(last)) if woke.len() == targets => skews.push((last.0 - first.0) as f64 / 1e6),
            _ => lost += 1,
        }
    }
    (skews, lost)
}

fn compare_clocks(hub: &mut Hub, offsets: &mut [Offset], first: u64) {
    for (target, offset) in offsets.iter_mut().enumerate() {
        for id in first..first + 8 {
            let sent = monotonic_now();
            hub.send(target, &Order::Ping { id });
            let heard = hub.wait(Nanos(sent.0 + 1_000_000_000)).unwrap();
            for heard in heard {
                if let Ok(Report::Pong { id: answered, at }) = heard.said
                    && (heard.link, answered) == (target, id)
                {
                    offset.add(Trip { sent, theirs: at, back: heard.at });
                }
            }
        }
    }
}

/// What all say, within five seconds.
fn await_all(hub: &mut Hub, targets: usize, wanted: impl Fn(&Report) -> Option<Nanos>) -> Vec<Nanos> {
    let deadline = Nanos(monotonic_now().0 + 5_000_000_000);
    let mut said = Vec::new();
    while said.len() < targets && monotonic_now() < deadline {
        let heard = hub.wait(deadline).unwrap();
        said.extend(heard.iter().filter_map(|heard| wanted(heard.said.as_ref().ok()?)));
    }
    said
}

/// The same with nc: skews in milliseconds, and whether a token was lost. `None` without nc.
fn peer(targets: usize, rounds: u32) -> Option<(Vec<f64>, bool)> {
    Command::new("nc").arg("-h").stderr(Stdio::null()).stdout(Stdio::null()).status().ok()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/barrier_peer.sh");
    let port = 20_000 + std::process::id() % 20_000 + targets as u32;
    let mut child = Command::new("bash")
        .arg(script)
        .args([targets.to_string(), rounds.to_string(), port.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut skews, mut lost) = (Vec::new(), false);
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
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
    Some((skews, lost))
}
