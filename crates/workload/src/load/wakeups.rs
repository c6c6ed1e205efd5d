//! Workers that are woken, think, and compute: wake-up and request latencies, and requests a second.
//!
//! The design is that of schbench (C. Mason, <https://github.com/masoncl/schbench>, its README): each message thread has workers,
//! which ask it for work and wait on a futex. The message thread wakes all that wait, with the instant at which it began to
//! do so; how much later a worker runs is its wake-up latency. A request is a sleep, in the place of network or disk, and
//! multiplications of matrices while the lock of the CPU is held, so that being preempted there delays others.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::thread::futex;
use serde_json::json;

use crate::load::args::{BuiltinLoadArgs, LoadError, invalid_value_error};
use crate::load::arrivals::{ArrivalPlan, NAP, RequestTimes};
use crate::load::latency::LatencyHistogram;
use crate::load::latency_log::LatencyLog;
use crate::load::tasks::{LONGEST_WAIT, MOST_TASKS, StopSignals, wake_exactly};

#[derive(Debug, Clone)]
struct WakeupPlan {
    messengers: usize,
    workers: usize,
    think: Duration,
    operations: usize,
    /// rows and columns of the three matrices of a worker
    order: usize,
    locked: bool,
    /// none where workers ask for the next request when they have done one
    arrivals: Option<ArrivalPlan>,
    warm_up: Duration,
    time: Duration,
}

/// Bytes of the three matrices at most: their product takes minutes beyond.
const LARGEST_FOOTPRINT: usize = 1 << 30;

pub(crate) fn measure_wakeups(options: &mut BuiltinLoadArgs) -> Result<serde_json::Value, LoadError> {
    let messengers = options.count_within("messengers", 1, 1..=MOST_TASKS)?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = options.count_within("workers", cpus.div_ceil(messengers), 1..=MOST_TASKS)?;
    let think = options.duration("think", Duration::from_micros(100))?;
    let operations = options.count("operations", 5, 0)?;
    let footprint = options.size("footprint", 256 << 10)?;
    let locked = options.value("locked", true)?;
    let arrivals = ArrivalPlan::take(options)?;
    let log = LatencyLog::take(options)?;
    let warm_up = options.duration("warm-up", Duration::from_millis(200))?;
    let time = options.duration("time", Duration::from_secs(2))?;
    options.require_all_used()?;
    if messengers * workers > MOST_TASKS {
        let reason = format!("{messengers} x {workers} workers are too many; at most {MOST_TASKS}");
        return Err(invalid_value_error("workers", &reason));
    }
    if footprint > LARGEST_FOOTPRINT {
        return Err(invalid_value_error("footprint", "at most 1 GiB"));
    }
    if time.is_zero() {
        return Err(invalid_value_error("time", "nothing can be measured in no time"));
    }
    let order = (footprint / 3 / size_of::<u64>()).isqrt();
    let plan = WakeupPlan { messengers, workers, think, operations, order, locked, arrivals, warm_up, time };
    let measured = run_wakeups(&plan)?;
    if measured.requests == 0 {
        return Err(invalid_value_error("time", "no request was finished; give it more"));
    }
    let [service, response, delay] = measured.times.tagged();
    log.write(measured.seconds, &[("wakeup", &measured.wakeups), service, response, delay])?;
    let mut result = json!({
        "messengers": messengers,
        "workers": workers,
        "seconds": measured.seconds,
        "requests_per_second": measured.requests as f64 / measured.seconds,
        "wakeup": measured.wakeups.to_json(),
        "request": measured.times.service.to_json(),
    });
    if let Some(arrivals) = &plan.arrivals {
        measured.times.write_json(arrivals, &mut result);
    }
    Ok(result)
}

struct MeasuredWakeups {
    seconds: f64,
    requests: u64,
    wakeups: LatencyHistogram,
    times: RequestTimes,
}

/// What one worker saw while it was measured. In a closed loop there are service times only.
struct WorkerRecord {
    wakeups: LatencyHistogram,
    times: RequestTimes,
}

fn run_wakeups(plan: &WakeupPlan) -> Result<MeasuredWakeups, LoadError> {
    let stage = WakeupStage::new(plan);
    let signals = StopSignals::watch()?;
    std::thread::scope(|scope| {
        let mut messengers = Vec::new();
        let mut workers = Vec::new();
        let mut refused = None;
        for messenger in 0..plan.messengers {
            let stage = &stage;
            match std::thread::Builder::new().spawn_scoped(scope, move || stage.run_messenger(messenger)) {
                Ok(thread) => messengers.push(thread),
                Err(error) => refused = Some(error),
            }
            for worker in 0..plan.workers {
                let run = move || stage.run_worker(messenger, messenger * plan.workers + worker);
                match std::thread::Builder::new().spawn_scoped(scope, run) {
                    Ok(thread) => workers.push(thread),
                    Err(error) => refused = Some(error),
                }
            }
        }
        let window = match refused {
            Some(error) => Err(LoadError::system_error("start a thread")(error)),
            None => stage.time_window(&signals),
        };
        stage.stop();
        let mut wakeups = LatencyHistogram::new()?;
        let mut times = RequestTimes::new()?;
        let panicked = || LoadError::system_error("finish a thread")(std::io::Error::other("it panicked"));
        for worker in workers {
            let record = worker.join().map_err(|_| panicked())??;
            wakeups.merge(&record.wakeups);
            times.merge(&record.times);
        }
        for messenger in messengers {
            messenger.join().map_err(|_| panicked())?.map_err(LoadError::system_error("keep time"))?;
        }
        let (seconds, requests) = window?;
        stage.count_overdue(&mut times);
        Ok(MeasuredWakeups { seconds, requests, wakeups, times })
    })
}

/// States of a parking place.
const BLOCKED: u32 = 0;
const RUNNING: u32 = 1;

/// Where one thread waits: a futex, and since when it is to run.
#[derive(Debug, Default)]
#[repr(align(128))]
struct ParkingPlace {
    state: AtomicU32,
    /// nanoseconds since the stage began
    woken_at: AtomicU64,
    /// requests that this thread has finished
    requests: AtomicU64,
    /// and of how many it has written down the times
    recorded: AtomicU64,
}

impl ParkingPlace {
    /// Lets the thread run that waits here or is about to.
    fn post(&self) {
        if self.state.compare_exchange(BLOCKED, RUNNING, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            // Nobody may be there yet, who will see that it may run.
            let _ = futex::wake(&self.state, futex::Flags::PRIVATE, 1);
        }
    }

    fn wait(&self) {
        while self.state.compare_exchange(RUNNING, BLOCKED, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            // Woken, interrupted, or too late to wait: it is looked at again.
            let _ = futex::wait(&self.state, futex::Flags::PRIVATE, BLOCKED, None);
        }
    }
}

/// A lock that is held while a worker computes on its CPU.
#[derive(Debug, Default)]
#[repr(align(128))]
struct CpuLock(AtomicBool);

struct WakeupStage {
    plan: WakeupPlan,
    began: Instant,
    messengers: Vec<ParkingPlace>,
    workers: Vec<ParkingPlace>,
    /// for each messenger, a bit for each of its workers that waits to be woken
    waiting: Vec<Vec<AtomicU64>>,
    cpu_locks: Vec<CpuLock>,
    /// for each messenger, when requests were due that no worker has begun, in nanoseconds since the stage began
    queues: Vec<Mutex<VecDeque<u64>>>,
    /// threads that have begun
    begun: AtomicUsize,
    measuring: AtomicBool,
    /// requests count that are due from then on, in nanoseconds since the stage began
    measured_from: AtomicU64,
    /// and until then
    ended_at: AtomicU64,
    stopping: AtomicBool,
}

impl WakeupStage {
    fn new(plan: &WakeupPlan) -> Self {
        let places = |count: usize| (0..count).map(|_| ParkingPlace::default()).collect();
        let words = || (0..plan.workers.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        WakeupStage {
            began: Instant::now(),
            messengers: places(plan.messengers),
            workers: places(plan.messengers * plan.workers),
            waiting: (0..plan.messengers).map(|_| words()).collect(),
            cpu_locks: (0..rustix::thread::CpuSet::MAX_CPU).map(|_| CpuLock::default()).collect(),
            queues: (0..plan.messengers).map(|_| Mutex::default()).collect(),
            begun: AtomicUsize::new(0),
            measuring: AtomicBool::new(false),
            measured_from: AtomicU64::new(u64::MAX),
            ended_at: AtomicU64::new(u64::MAX),
            stopping: AtomicBool::new(false),
            plan: plan.clone(),
        }
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.messengers.iter().chain(&self.workers).for_each(ParkingPlace::post);
    }

    /// Wakes whoever waits, all with the instant at which that began, and then waits for the next who asks. In an open loop it wakes one
    /// when a request is due.
    fn run_messenger(&self, messenger: usize) -> std::io::Result<()> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        if let Some(arrivals) = &self.plan.arrivals {
            return self.pass_arrivals(messenger, arrivals);
        }
        let place = &self.messengers[messenger];
        while !self.is_stopping() {
            self.wake_waiting(messenger);
            place.wait();
        }
        self.wake_waiting(messenger);
        Ok(())
    }

    /// Puts each request into the queue when it is due, and wakes a worker for it, if one waits.
    fn pass_arrivals(&self, messenger: usize, arrivals: &ArrivalPlan) -> std::io::Result<()> {
        wake_exactly()?;
        let begin = self.now();
        for due in arrivals.schedule(messenger, self.plan.messengers) {
            let due = begin + due.as_nanos() as u64;
            let now = loop {
                let now = self.now();
                if now >= due || self.is_stopping() {
                    break now;
                }
                std::thread::sleep(Duration::from_nanos(due - now).min(NAP));
            };
            if now < due {
                break;
            }
            self.lock_queue(messenger).push_back(due);
            self.wake_one(messenger);
        }
        Ok(())
    }

    fn lock_queue(&self, messenger: usize) -> MutexGuard<'_, VecDeque<u64>> {
        // A thread that panicked is told of elsewhere.
        self.queues[messenger].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_one(&self, messenger: usize) {
        for (word, waiting) in self.waiting[messenger].iter().enumerate() {
            let bits = waiting.load(Ordering::SeqCst);
            if bits == 0 {
                continue;
            }
            let bit = bits.trailing_zeros() as usize;
            // Nobody else takes one away.
            waiting.fetch_and(!(1 << bit), Ordering::SeqCst);
            let worker = &self.workers[messenger * self.plan.workers + word * 64 + bit];
            worker.woken_at.store(self.now(), Ordering::SeqCst);
            return worker.post();
        }
    }

    /// Whether it was measured when a request was due.
    fn is_measured(&self, due: u64) -> bool {
        let [from, end] = [&self.measured_from, &self.ended_at].map(|time| time.load(Ordering::SeqCst));
        (from..=end).contains(&due)
    }

    /// Requests that were due and that nobody has begun.
    fn count_overdue(&self, times: &mut RequestTimes) {
        let end = self.ended_at.load(Ordering::SeqCst);
        for messenger in 0..self.plan.messengers {
            for due in self.lock_queue(messenger).iter().filter(|due| self.is_measured(**due)) {
                times.record_overdue(Duration::from_nanos(*due), Duration::from_nanos(end));
            }
        }
    }

    fn wake_waiting(&self, messenger: usize) {
        for (word, waiting) in self.waiting[messenger].iter().enumerate() {
            let mut waiting = waiting.swap(0, Ordering::SeqCst);
            let now = self.now();
            while waiting != 0 {
                let bit = waiting.trailing_zeros() as usize;
                waiting &= waiting - 1;
                let worker = &self.workers[messenger * self.plan.workers + word * 64 + bit];
                worker.woken_at.store(now, Ordering::SeqCst);
                worker.post();
            }
        }
    }

    fn run_worker(&self, messenger: usize, worker: usize) -> Result<WorkerRecord, LoadError> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let mut record = WorkerRecord { wakeups: LatencyHistogram::new()?, times: RequestTimes::new()? };
        let place = &self.workers[worker];
        // The first two are never written, as in schbench: all their pages are the one page of zeros.
        let mut words = vec![0_u64; 3 * self.plan.order * self.plan.order];
        let matrices = Cell::from_mut(words.as_mut_slice()).as_slice_of_cells();
        if self.plan.arrivals.is_some() {
            while let Some(due) = self.take_request(messenger, worker, &mut record) {
                let start = self.now();
                self.do_request(matrices);
                place.requests.fetch_add(1, Ordering::Relaxed);
                if self.is_measured(due) {
                    place.recorded.fetch_add(1, Ordering::Relaxed);
                    let [due, start, end] = [due, start, self.now()].map(Duration::from_nanos);
                    record.times.record(due, start, end);
                }
            }
            return Ok(record);
        }
        while !self.is_stopping() {
            let measuring = self.measuring.load(Ordering::Relaxed);
            let wakeup = self.ask_and_wait(messenger, worker);
            let start = Instant::now();
            self.do_request(matrices);
            let request = start.elapsed();
            place.requests.fetch_add(1, Ordering::Relaxed);
            if measuring {
                place.recorded.fetch_add(1, Ordering::Relaxed);
                record.wakeups.record(wakeup);
                record.times.service.record(request);
            }
        }
        Ok(record)
    }

    /// When the next request was due, once there is one; none at the end.
    fn take_request(&self, messenger: usize, worker: usize, record: &mut WorkerRecord) -> Option<u64> {
        let place = &self.workers[worker];
        let own = worker - messenger * self.plan.workers;
        while !self.is_stopping() {
            {
                let mut queue = self.lock_queue(messenger);
                if let Some(due) = queue.pop_front() {
                    return Some(due);
                }
                // Under the lock: whoever puts a request into the queue sees that this worker waits.
                place.state.store(BLOCKED, Ordering::SeqCst);
                self.waiting[messenger][own / 64].fetch_or(1 << (own % 64), Ordering::SeqCst);
            }
            if !self.is_stopping() {
                place.wait();
            }
            // At the end all are woken by another, at no instant.
            if self.measuring.load(Ordering::Relaxed) && !self.is_stopping() {
                let woken = place.woken_at.load(Ordering::SeqCst);
                record.wakeups.record(Duration::from_nanos(self.now().saturating_sub(woken)));
            }
        }
        None
    }

    /// The time from when the messenger began to wake until this worker runs.
    fn ask_and_wait(&self, messenger: usize, worker: usize) -> Duration {
        let place = &self.workers[worker];
        let own = worker - messenger * self.plan.workers;
        place.state.store(BLOCKED, Ordering::SeqCst);
        place.woken_at.store(self.now(), Ordering::SeqCst);
        self.waiting[messenger][own / 64].fetch_or(1 << (own % 64), Ordering::SeqCst);
        self.messengers[messenger].post();
        // A messenger that ends looks once more, so that nobody who waits is missed.
        if !self.is_stopping() {
            place.wait();
        }
        Duration::from_nanos(self.now().saturating_sub(place.woken_at.load(Ordering::SeqCst)))
    }

    fn do_request(&self, matrices: &[Cell<u64>]) {
        if !self.plan.think.is_zero() {
            std::thread::sleep(self.plan.think);
        }
        let lock = self.plan.locked.then(|| self.lock_this_cpu());
        for _ in 0..self.plan.operations {
            multiply(matrices, self.plan.order);
        }
        if let Some(lock) = lock {
            lock.0.store(false, Ordering::Release);
        }
    }

    /// Spins until it has the lock of the CPU that it runs on by then.
    fn lock_this_cpu(&self) -> &CpuLock {
        loop {
            let cpu = rustix::thread::sched_getcpu();
            let lock = &self.cpu_locks[cpu % self.cpu_locks.len()];
            while lock.0.swap(true, Ordering::Acquire) {
                std::hint::spin_loop();
            }
            if rustix::thread::sched_getcpu() == cpu {
                return lock;
            }
            lock.0.store(false, Ordering::Release);
        }
    }

    /// The seconds that it was measured, and how many requests were finished in them.
    fn time_window(&self, signals: &StopSignals) -> Result<(f64, u64), LoadError> {
        let requests =
            || self.workers.iter().map(|place| place.requests.load(Ordering::Relaxed)).sum::<u64>();
        // On a busy machine a thread may take longer to begin than all that is measured.
        while self.begun.load(Ordering::SeqCst) < self.messengers.len() + self.workers.len() {
            signals.sleep(Duration::from_micros(200))?;
        }
        signals.sleep(self.plan.warm_up)?;
        self.measured_from.store(self.now(), Ordering::SeqCst);
        self.measuring.store(true, Ordering::SeqCst);
        let (before, start) = (requests(), Instant::now());
        signals.sleep(self.plan.time)?;
        // And nothing may be begun and finished in so short a time.
        let is_any = || self.workers.iter().any(|place| place.recorded.load(Ordering::Relaxed) > 0);
        while !is_any() && start.elapsed() < LONGEST_WAIT {
            signals.sleep(self.plan.time)?;
        }
        self.measuring.store(false, Ordering::SeqCst);
        self.ended_at.store(self.now(), Ordering::SeqCst);
        Ok((start.elapsed().as_secs_f64(), requests() - before))
    }
}

/// The third of three matrices becomes the product of the others, in the plain order, written with every step: what counts is
/// the cache that it needs, not how fast it could be.
fn multiply(matrices: &[Cell<u64>], order: usize) {
    if order == 0 {
        return;
    }
    let (first, rest) = matrices.split_at(order * order);
    let (second, third) = rest.split_at(order * order);
    for (row, results) in first.chunks_exact(order).zip(third.chunks_exact(order)) {
        for (column, result) in results.iter().enumerate() {
            result.set(0);
            for (left, right) in row.iter().zip(second.chunks_exact(order)) {
                result.set(result.get().wrapping_add(left.get().wrapping_mul(right[column].get())));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn measure(arguments: &[&str]) -> Result<serde_json::Value, LoadError> {
        let mut all: Vec<OsString> = ["wakeups", "--warm-up", "0", "--time", "50ms"].map(Into::into).into();
        all.extend(arguments.iter().map(Into::into));
        measure_wakeups(&mut BuiltinLoadArgs::parse(&all)?)
    }

    #[test]
    fn workers_of_several_messengers_are_woken_and_counted() {
        for locked in ["true", "false"] {
            let result =
                measure(&["--messengers", "2", "--workers", "70", "--footprint", "4KiB", "--locked", locked]);
            let result = result.unwrap();
            assert!(result["requests_per_second"].as_f64().unwrap() > 0.0, "{result}");
            for kind in ["wakeup", "request"] {
                let [p50, p99, max] =
                    ["p50_us", "p99_us", "max_us"].map(|key| result[kind][key].as_f64().unwrap());
                assert!(p50 <= p99 && p99 <= max, "{result}");
            }
            // The sleep is part of a request.
            assert!(result["request"]["p50_us"].as_f64().unwrap() >= 100.0, "{result}");
        }
    }

    #[test]
    fn requests_that_come_at_a_rate_wait_in_a_queue() {
        let arguments = ["--messengers", "2", "--workers", "2", "--footprint", "4KiB", "--rate", "400"];
        let longer = ["--arrivals", "poisson", "--think", "1ms", "--time", "300ms"];
        let result = measure(&[&arguments[..], &longer].concat()).unwrap();
        // The sleep is part of a request.
        assert!(result["request"]["p50_us"].as_f64().unwrap() >= 1000.0, "{result}");
        assert!(result["response"]["max_us"].as_f64() >= result["request"]["max_us"].as_f64(), "{result}");
        assert!(result["wakeup"]["count"].as_u64().unwrap() > 0, "{result}");

        // Two workers that take 10 ms each do 200 of 2,000 requests a second: the others wait until the end.
        let arguments = ["--messengers", "1", "--workers", "2", "--operations", "0", "--think", "10ms"];
        let result = measure(&[&arguments[..], &["--rate", "2000", "--time", "100ms"]].concat()).unwrap();
        let [finished, all] = ["request", "response"].map(|key| result[key]["count"].as_u64().unwrap());
        assert_eq!(finished + result["overdue"].as_u64().unwrap(), all, "{result}");
        // Those that were due while it was measured; each worker may be at one more when it ends.
        let seconds = result["seconds"].as_f64().unwrap();
        assert!((all as f64 - 2000.0 * seconds).abs() <= 4.0, "{result}");
        assert!(finished as f64 <= 2.0 * (seconds / 0.01 + 1.0), "{result}");
        let [service, response] = ["request", "response"].map(|key| result[key]["max_us"].as_f64().unwrap());
        assert!(response > service, "{result}");
    }

    #[test]
    fn a_product_is_that_of_linear_algebra() {
        let matrices: Vec<Cell<u64>> = [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0].map(Cell::new).into();
        multiply(&matrices, 2);
        let product: Vec<u64> = matrices[8..].iter().map(Cell::get).collect();
        assert_eq!(product, [19, 22, 43, 50]);
    }

    #[test]
    fn impossible_parameters_are_named() {
        let error = |arguments: &[&str]| measure(arguments).unwrap_err().to_string();
        assert_eq!(error(&["--workers", "0"]), "--workers: 0 is too few; at least 1");
        assert_eq!(
            error(&["--messengers", "4096", "--workers", "2"]),
            "--workers: 4096 x 2 workers are too many; at most 4096"
        );
        assert_eq!(error(&["--time", "0"]), "--time: nothing can be measured in no time");
        assert_eq!(error(&["--footprint", "2GiB"]), "--footprint: at most 1 GiB");
    }
}
