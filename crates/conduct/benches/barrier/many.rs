//! One barrier over a thousand agents, all of them on one thread of this process.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use perflab_conduct::Channel;
use perflab_conduct::barrier::{Action, Barrier, Input, Limits, Point, stages};
use perflab_conduct::hub::Hub;
use perflab_conduct::protocol::{Decoder, Greeter, Order, Report, encode, greeting};
use perflab_model::study::OnLost;
use perflab_model::{Nanos, Slot};
use perflab_observe::monotonic_now;

use crate::Surprise;

const MANY: usize = 1_000;
const MINUTE: Nanos = Nanos(60_000_000_000);

/// A case's place in the order of a run, with who takes part.
type Round = (u32, Slot, Vec<usize>);

/// Barriers over many agents.
pub(crate) fn many() -> Result<(), Surprise> {
    let before = resident("VmRSS")?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let simulated = std::thread::spawn(move || simulate(address));
    let mut hub = Hub::new()?;
    for number in 0..MANY {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        hub.add(Channel::both_ways(format!("agent{number}"), stream)?)?;
    }
    // The first one waits for the greetings.
    let mut times = barriers(&mut hub)?.split_off(2);
    times.sort_unstable();
    let (middle, last) = (times[times.len() / 2], times[times.len() - 1]);
    println!("barrier over {MANY} agents, {} of them: p50 {middle:.1?}, max {last:.1?}", times.len());
    let peak = resident("VmHWM")?;
    println!("  memory of both sides together: peak {} KiB, {} KiB more than before", peak, peak - before);
    drop(hub);
    simulated.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What each of fifty rounds of all takes, from one barrier to the next.
fn barriers(hub: &mut Hub) -> Result<Vec<Duration>, Surprise> {
    let round = |index| {
        let slot = Slot { case: 0, iteration: index, block: index, warmup: false, boot: 0 };
        (index, slot, (0..MANY).collect())
    };
    let rounds: Vec<Round> = (0..50).map(round).collect();
    let limits = Limits { first: MINUTE, before: MINUTE, after: MINUTE, last: MINUTE };
    let mut barrier = Barrier::new(stages(&rounds, MANY, limits), MANY, OnLost::Stop, MINUTE);
    let (mut times, mut begun) = (Vec::new(), Instant::now());
    let mut todo = barrier.take(monotonic_now(), Input::Time);
    loop {
        for action in std::mem::take(&mut todo) {
            match action {
                Action::Go { who, point } => {
                    times.push(begun.elapsed());
                    begun = Instant::now();
                    let order = order(point, &rounds);
                    who.iter().for_each(|target| hub.send(*target, &order));
                }
                Action::Over => return Ok(times),
                other => return Err(format!("{other:?}").into()),
            }
        }
        for heard in hub.wait(Nanos(monotonic_now().0 + MINUTE.0))? {
            if let Report::Reached(point) = heard.said? {
                let input = Input::Reached { target: heard.link, point };
                todo.extend(barrier.take(monotonic_now(), input));
            }
        }
    }
}

fn order(point: Point, rounds: &[Round]) -> Order {
    match point {
        Point::Before(index) => Order::Ready { index, slot: rounds[index as usize].1 },
        Point::After(index) => Order::Start { index, at: Nanos(0) },
        Point::Last => Order::Undo,
        Point::First | Point::End => Order::Leave,
    }
}

/// An agent that reaches at once whatever it is sent to. The first order is its enrolment.
struct Simulated {
    stream: TcpStream,
    greeter: Option<Greeter>,
    decoder: Decoder<Order>,
    enrolled: bool,
}

impl Simulated {
    fn connect(address: SocketAddr) -> Result<Self, Surprise> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.write_all(&greeting())?;
        Ok(Self { stream, greeter: Some(Greeter::default()), decoder: Decoder::default(), enrolled: false })
    }

    fn hear(&mut self, bytes: &[u8]) -> Result<(), Surprise> {
        match self.greeter.take() {
            Some(mut waiting) => match waiting.take(bytes)? {
                Some(rest) => self.decoder.push(&rest),
                None => self.greeter = Some(waiting),
            },
            None => self.decoder.push(bytes),
        }
        while let Some(order) = self.decoder.take()? {
            let point = self.reached(&order);
            self.stream.write_all(&encode(&Report::Reached(point))?)?;
        }
        Ok(())
    }

    fn reached(&mut self, order: &Order) -> Point {
        match order {
            Order::Ready { index, .. } => Point::Before(*index),
            Order::Start { index, .. } => Point::After(*index),
            Order::Undo => Point::Last,
            _ if std::mem::replace(&mut self.enrolled, true) => Point::End,
            _ => Point::First,
        }
    }
}

/// A thousand agents on one thread.
fn simulate(address: SocketAddr) -> Result<(), Surprise> {
    use rustix::event::epoll;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut agents = Vec::new();
    for index in 0..MANY {
        let agent = Simulated::connect(address)?;
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
                Ok(length @ 1..) => agent.hear(&buffer[..length])?,
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
fn resident(key: &str) -> Result<u64, Surprise> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(key)).unwrap_or_default();
    Ok(line.split_whitespace().nth(1).unwrap_or_default().parse()?)
}
