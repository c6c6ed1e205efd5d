//! One barrier over a thousand agents, all of them on one thread of this process.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use perflab_conduct::Connection;
use perflab_conduct::barrier::{
    Barrier, BarrierAction, BarrierInput, BarrierPoint, StageLimits, round_stages,
};
use perflab_conduct::multiplexer::Multiplexer;
use perflab_conduct::protocol::{
    AgentOrder, AgentReport, FrameDecoder, GreetingParser, encode_frame, greeting_line,
};
use perflab_model::study::LostTargetPolicy;
use perflab_model::{Nanos, Slot};
use perflab_observe::monotonic_now;

use crate::BarrierBenchError;

const MANY: usize = 1_000;
const MINUTE: Nanos = Nanos(60_000_000_000);

/// A case's place in the order of a run, with who takes part.
type BarrierRound = (u32, Slot, Vec<usize>);

/// Barriers over many agents.
pub(crate) fn measure_many_agents() -> Result<(), BarrierBenchError> {
    let before = resident_kib("VmRSS")?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let simulated = std::thread::spawn(move || simulate_agents(address));
    let mut hub = Multiplexer::new()?;
    for number in 0..MANY {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        hub.add(Connection::duplex(format!("agent{number}"), stream)?)?;
    }
    // The first one waits for the greetings.
    let mut times = time_barriers(&mut hub)?.split_off(2);
    times.sort_unstable();
    let (middle, last) = (times[times.len() / 2], times[times.len() - 1]);
    println!("barrier over {MANY} agents, {} of them: p50 {middle:.1?}, max {last:.1?}", times.len());
    let peak = resident_kib("VmHWM")?;
    println!("  memory of both sides together: peak {} KiB, {} KiB more than before", peak, peak - before);
    drop(hub);
    simulated.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What each of fifty rounds of all takes, from one barrier to the next.
fn time_barriers(hub: &mut Multiplexer) -> Result<Vec<Duration>, BarrierBenchError> {
    let round = |index| {
        let slot = Slot { case: 0, iteration: index, block: index, warmup: false, boot: 0, layout: None };
        (index, slot, (0..MANY).collect())
    };
    let rounds: Vec<BarrierRound> = (0..50).map(round).collect();
    let limits = StageLimits { first: MINUTE, before: MINUTE, after: MINUTE, last: MINUTE };
    let mut barrier = Barrier::new(round_stages(&rounds, MANY, limits), MANY, LostTargetPolicy::Stop, MINUTE);
    let (mut times, mut begun) = (Vec::new(), Instant::now());
    let mut todo = barrier.step(monotonic_now(), BarrierInput::Time);
    loop {
        for action in std::mem::take(&mut todo) {
            match action {
                BarrierAction::Go { who, point } => {
                    times.push(begun.elapsed());
                    begun = Instant::now();
                    let order = order_towards(point, &rounds);
                    who.iter().for_each(|target| hub.send(*target, &order));
                }
                BarrierAction::Over => return Ok(times),
                other => return Err(format!("{other:?}").into()),
            }
        }
        for heard in hub.receive(Nanos(monotonic_now().0 + MINUTE.0))? {
            if let AgentReport::Reached(point) = heard.report? {
                let input = BarrierInput::Reached { target: heard.index, point };
                todo.extend(barrier.step(monotonic_now(), input));
            }
        }
    }
}

fn order_towards(point: BarrierPoint, rounds: &[BarrierRound]) -> AgentOrder {
    match point {
        BarrierPoint::Before(index) => AgentOrder::Prepare { index, slot: rounds[index as usize].1 },
        BarrierPoint::After(index) => AgentOrder::Start { index, at: Nanos(0) },
        BarrierPoint::Last => AgentOrder::Undo,
        BarrierPoint::First | BarrierPoint::End => AgentOrder::Leave,
    }
}

/// An agent that reaches at once whatever it is sent to. The first order is its configuration.
struct SimulatedAgent {
    stream: TcpStream,
    greeter: Option<GreetingParser>,
    decoder: FrameDecoder<AgentOrder>,
    configured: bool,
}

impl SimulatedAgent {
    fn connect(address: SocketAddr) -> Result<Self, BarrierBenchError> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.write_all(&greeting_line())?;
        Ok(Self {
            stream,
            greeter: Some(GreetingParser::default()),
            decoder: FrameDecoder::default(),
            configured: false,
        })
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<(), BarrierBenchError> {
        match self.greeter.take() {
            Some(mut waiting) => match waiting.feed(bytes)? {
                Some(rest) => self.decoder.push(&rest),
                None => self.greeter = Some(waiting),
            },
            None => self.decoder.push(bytes),
        }
        while let Some(order) = self.decoder.next_message()? {
            let point = self.point_reached(&order);
            self.stream.write_all(&encode_frame(&AgentReport::Reached(point))?)?;
        }
        Ok(())
    }

    fn point_reached(&mut self, order: &AgentOrder) -> BarrierPoint {
        match order {
            AgentOrder::Prepare { index, .. } => BarrierPoint::Before(*index),
            AgentOrder::Start { index, .. } => BarrierPoint::After(*index),
            AgentOrder::Undo => BarrierPoint::Last,
            _ if std::mem::replace(&mut self.configured, true) => BarrierPoint::End,
            _ => BarrierPoint::First,
        }
    }
}

/// A thousand agents on one thread.
fn simulate_agents(address: SocketAddr) -> Result<(), BarrierBenchError> {
    use rustix::event::epoll;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut agents = Vec::new();
    for index in 0..MANY {
        let agent = SimulatedAgent::connect(address)?;
        epoll::add(&epoll, &agent.stream, epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN)?;
        agents.push(agent);
    }
    let (mut buffer, mut open) = ([0; 4096], MANY);
    while open > 0 {
        let mut ready = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; 256];
        let (ready, _) = epoll::wait(&epoll, &mut ready, None)?;
        for index in ready.iter().map(|event| event.data.u64() as usize) {
            let agent = &mut agents[index];
            match agent.stream.read(&mut buffer) {
                Ok(length @ 1..) => agent.receive(&buffer[..length])?,
                _ => {
                    epoll::delete(&epoll, &agent.stream)?;
                    open -= 1;
                }
            }
        }
    }
    Ok(())
}

/// KiB that this process has, or had at most.
fn resident_kib(key: &str) -> Result<u64, BarrierBenchError> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(key)).unwrap_or_default();
    Ok(line.split_whitespace().nth(1).unwrap_or_default().parse()?)
}
