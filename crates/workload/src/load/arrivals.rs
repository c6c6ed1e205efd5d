//! Requests that come when they come, whether or not those before are answered: an open loop.
//!
//! In a closed loop who waits for an answer asks for nothing meanwhile, so that a server that stands still for a second spoils one
//! measurement and not the thousand that should have been made (G. Tene, "How NOT to Measure Latency", 2013, who named this
//! coordinated omission; B. Schroeder, A. Wierman, M. Harchol-Balter, "Open Versus Closed: A Cautionary Tale", NSDI 2006). Here each
//! request has an instant at which it is due. The *response time* counts from there to the answer, the *service time* from when the
//! request was really begun, and the *delay* is what lies between: what wrk2 (G. Tene) calls corrected and uncorrected latency.

use std::io;
use std::time::Duration;

use serde_json::json;

use crate::load::args::{BuiltinLoadArgs, LoadError, invalid_value_error};
use crate::load::latency::LatencyHistogram;
use crate::load::random_order::Xorshift64;

/// How the times between two arrivals are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArrivalProcess {
    /// all the same
    Uniform,
    /// exponentially: arrivals know nothing of one another
    Poisson,
}

pub(crate) const PROCESSES: &[(&str, ArrivalProcess)] =
    &[("uniform", ArrivalProcess::Uniform), ("poisson", ArrivalProcess::Poisson)];

/// Requests a second at most: beyond, the clock is most of what is measured.
const HIGHEST_RATE: f64 = 1e6;

/// How long it is slept at most before it is looked whether it is enough.
pub(crate) const NAP: Duration = Duration::from_millis(10);

const SECOND: f64 = 1e9;

/// How many requests come, and when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ArrivalPlan {
    /// a second, of all sources together
    pub(crate) rate: f64,
    pub(crate) process: ArrivalProcess,
    pub(crate) seed: u64,
}

impl ArrivalPlan {
    /// From `--rate`, `--arrivals` and `--seed`; none where the rate is 0: a closed loop.
    pub(crate) fn take(options: &mut BuiltinLoadArgs) -> Result<Option<Self>, LoadError> {
        let rate = options.value("rate", 0.0_f64)?;
        let process = options.choice("arrivals", PROCESSES)?;
        let seed = options.value("seed", 1_u64)?;
        if !(0.0..=HIGHEST_RATE).contains(&rate) {
            let reason = format!("{rate} requests a second are none to keep; 0 to {HIGHEST_RATE}");
            return Err(invalid_value_error("rate", &reason));
        }
        Ok((rate > 0.0).then_some(ArrivalPlan { rate, process, seed }))
    }

    /// The arrivals at one of several sources. Those of all together are of the same kind: evenly spaced, or a Poisson process.
    pub(crate) fn schedule(&self, source: usize, sources: usize) -> ArrivalSchedule {
        ArrivalSchedule {
            process: self.process,
            period: SECOND * sources as f64 / self.rate,
            offset: SECOND * source as f64 / self.rate,
            arrivals: 0,
            time: 0.0,
            random: Xorshift64::new(self.seed.wrapping_mul(0x1_0000).wrapping_add(source as u64 + 1)),
        }
    }
}

/// When requests of one source are due, one after the other.
pub(crate) struct ArrivalSchedule {
    process: ArrivalProcess,
    /// nanoseconds between two, in the mean
    period: f64,
    /// nanoseconds until the first of a uniform one
    offset: f64,
    arrivals: u64,
    /// nanoseconds until the last
    time: f64,
    random: Xorshift64,
}

impl Iterator for ArrivalSchedule {
    /// Since the source began.
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.time = match self.process {
            // Not added up, so that no error is either.
            ArrivalProcess::Uniform => self.offset + self.period * self.arrivals as f64,
            ArrivalProcess::Poisson => {
                // Above 0 and at most 1, in steps of 2^-53.
                let share = ((self.random.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
                self.time - self.period * share.ln()
            }
        };
        self.arrivals += 1;
        Some(Duration::from_nanos(self.time as u64))
    }
}

/// What requests took that were due while it was measured.
#[derive(Debug)]
pub(crate) struct RequestTimes {
    /// from its beginning to its answer
    pub(crate) service: LatencyHistogram,
    /// from when it was due to its answer
    pub(crate) response: LatencyHistogram,
    /// from when it was due to its beginning
    pub(crate) delay: LatencyHistogram,
    /// due, and not answered at the end: they count in `response` with what they had waited by then
    pub(crate) overdue: u64,
    /// begun, and never answered
    pub(crate) lost: u64,
}

impl RequestTimes {
    pub(crate) fn new() -> Result<Self, LoadError> {
        let [service, response, delay] =
            [LatencyHistogram::new()?, LatencyHistogram::new()?, LatencyHistogram::new()?];
        Ok(RequestTimes { service, response, delay, overdue: 0, lost: 0 })
    }

    /// All of one clock.
    pub(crate) fn record(&mut self, due: Duration, started: Duration, ended: Duration) {
        self.service.record(ended.saturating_sub(started));
        self.response.record(ended.saturating_sub(due));
        self.delay.record(started.saturating_sub(due));
    }

    /// A request that was due and has no answer when all ends.
    pub(crate) fn record_overdue(&mut self, due: Duration, end: Duration) {
        self.response.record(end.saturating_sub(due));
        self.overdue += 1;
    }

    pub(crate) fn merge(&mut self, other: &RequestTimes) {
        self.service.merge(&other.service);
        self.response.merge(&other.response);
        self.delay.merge(&other.delay);
        self.overdue += other.overdue;
        self.lost += other.lost;
    }

    /// For another process: two counts, and each histogram behind its length.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = [self.overdue, self.lost].into_iter().flat_map(u64::to_ne_bytes).collect();
        for histogram in [&self.service, &self.response, &self.delay] {
            let part = histogram.to_bytes();
            bytes.extend((part.len() as u64).to_ne_bytes());
            bytes.extend(part);
        }
        bytes
    }

    /// Adds what [`RequestTimes::to_bytes`] wrote.
    pub(crate) fn merge_bytes(&mut self, mut bytes: &[u8]) {
        let take_number = |bytes: &mut &[u8]| match bytes.split_first_chunk() {
            Some((number, rest)) => {
                *bytes = rest;
                u64::from_ne_bytes(*number)
            }
            None => 0,
        };
        self.overdue += take_number(&mut bytes);
        self.lost += take_number(&mut bytes);
        for histogram in [&mut self.service, &mut self.response, &mut self.delay] {
            let length = take_number(&mut bytes) as usize;
            let (part, rest) = bytes.split_at(length.min(bytes.len()));
            histogram.merge_bytes(part);
            bytes = rest;
        }
    }

    /// Each kind with its name in a log.
    pub(crate) fn tagged(&self) -> [(&'static str, &LatencyHistogram); 3] {
        [("service", &self.service), ("response", &self.response), ("delay", &self.delay)]
    }

    /// Adds what an open loop says to the result of a load.
    pub(crate) fn write_json(&self, plan: &ArrivalPlan, result: &mut serde_json::Value) {
        result["offered_per_second"] = json!(plan.rate);
        result["response"] = self.response.to_json();
        result["delay"] = self.delay.to_json();
        result["overdue"] = json!(self.overdue);
        result["lost"] = json!(self.lost);
    }
}

/// Where a loop stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopPhase {
    WarmUp,
    Measured,
    Stopped,
}

/// What an open loop lives by: the clock, and who says when it is enough.
pub(crate) trait LoopTime {
    /// Since any instant.
    fn now(&self) -> Duration;
    fn sleep(&self, time: Duration);
    fn phase(&self) -> LoopPhase;
}

/// Makes each request when it is due, or as soon as the one before is answered; whether `serve` was answered is its value.
pub(crate) fn run_open_loop(
    time: &impl LoopTime,
    schedule: ArrivalSchedule,
    mut serve: impl FnMut() -> io::Result<bool>,
    times: &mut RequestTimes,
) -> io::Result<()> {
    let begin = time.now();
    // From when on requests count that are due.
    let mut opened: Option<Duration> = None;
    let mut schedule = schedule.peekable();
    // Until when it was not at its end: who sleeps notices that late.
    let mut slept_from = None;
    let end = loop {
        let Some(due) = schedule.peek().copied() else { break time.now() - begin };
        let now = time.now() - begin;
        match time.phase() {
            LoopPhase::WarmUp => {}
            LoopPhase::Measured => drop(opened.get_or_insert(now)),
            LoopPhase::Stopped => break slept_from.unwrap_or(now),
        }
        if now < due {
            slept_from = Some(now);
            time.sleep((due - now).min(NAP));
            continue;
        }
        slept_from = None;
        let is_answered = serve()?;
        let ended = time.now() - begin;
        // What the end broke off is overdue, as all are that come behind it.
        if !is_answered && time.phase() == LoopPhase::Stopped {
            break ended;
        }
        schedule.next();
        let is_measured = opened.is_some_and(|opened| due >= opened);
        match is_answered {
            true if is_measured => times.record(due, now, ended),
            false if is_measured => times.lost += 1,
            _ => {}
        }
    };
    let Some(opened) = opened else { return Ok(()) };
    for due in schedule.take_while(|due| *due <= end).filter(|due| *due >= opened) {
        times.record_overdue(due, end);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::ffi::OsString;

    use super::*;

    const MICRO: u64 = 1000;
    const MILLI: u64 = 1_000_000;

    fn plan(rate: f64, process: ArrivalProcess) -> ArrivalPlan {
        ArrivalPlan { rate, process, seed: 7 }
    }

    /// A clock that moves when somebody sleeps or serves.
    #[derive(Default)]
    struct SimulatedTime {
        now: Cell<u64>,
        measured_from: u64,
        stopped_at: u64,
    }

    impl SimulatedTime {
        fn pass(&self, nanos: u64) {
            self.now.set(self.now.get() + nanos);
        }
    }

    impl LoopTime for SimulatedTime {
        fn now(&self) -> Duration {
            Duration::from_nanos(self.now.get())
        }

        fn sleep(&self, time: Duration) {
            self.pass(time.as_nanos() as u64);
        }

        fn phase(&self) -> LoopPhase {
            match self.now.get() {
                now if now >= self.stopped_at => LoopPhase::Stopped,
                now if now >= self.measured_from => LoopPhase::Measured,
                _ => LoopPhase::WarmUp,
            }
        }
    }

    /// One server and a queue (D. V. Lindley, 1952): who arrives begins when the one before is done, and not before. Service and
    /// response times, sorted, of the requests that are due from `from` on.
    fn simulate_queue(arrivals: &[u64], service: impl Fn(u64) -> u64, from: u64) -> [Vec<u64>; 2] {
        let (mut free, mut found) = (0, [Vec::new(), Vec::new()]);
        for arrival in arrivals {
            let start = free.max(*arrival);
            free = start + service(start);
            if *arrival >= from {
                found[0].push(free - start);
                found[1].push(free - arrival);
            }
        }
        found.iter_mut().for_each(|times| times.sort_unstable());
        found
    }

    fn nearest_rank(sorted: &[u64], per_mille: usize) -> f64 {
        sorted[(sorted.len() * per_mille).div_ceil(1000) - 1] as f64
    }

    fn percentile_nanos(histogram: &LatencyHistogram, key: &str) -> f64 {
        histogram.to_json()[key].as_f64().unwrap() * 1e3
    }

    /// A server that needs 100 us and stands still once for a second, under 1,000 requests a second for ten seconds. What the loop
    /// records is what a simulation of the queue says, to the three digits of the histogram: service hides the second, and
    /// response shows it.
    #[test]
    fn a_stall_shows_in_response_and_not_in_service() {
        for process in [ArrivalProcess::Uniform, ArrivalProcess::Poisson] {
            let time = SimulatedTime {
                measured_from: 1000 * MILLI,
                stopped_at: 11_000 * MILLI,
                ..SimulatedTime::default()
            };
            let stall = |at: u64| {
                let stands = (5000 * MILLI..5002 * MILLI).contains(&at);
                100 * MICRO + if stands { 1000 * MILLI } else { 0 }
            };
            let mut times = RequestTimes::new().unwrap();
            let serve = || {
                time.pass(stall(time.now.get()));
                Ok(true)
            };
            let plan = plan(1000.0, process);
            run_open_loop(&time, plan.schedule(0, 1), serve, &mut times).unwrap();
            let arrivals: Vec<u64> = plan
                .schedule(0, 1)
                .map(|due| due.as_nanos() as u64)
                .take_while(|due| *due < time.stopped_at)
                .collect();
            let [service, response] = simulate_queue(&arrivals, stall, time.measured_from);
            assert!(times.service.count().abs_diff(service.len() as u64) <= 1, "{process:?}");
            for (key, per_mille) in [("p50_us", 500), ("p90_us", 900), ("p99_us", 990), ("p999_us", 999)] {
                for (found, expected) in [(&times.service, &service), (&times.response, &response)] {
                    let (found, expected) = (percentile_nanos(found, key), nearest_rank(expected, per_mille));
                    // A value apart, where the last request is or is not one of them.
                    assert!((found / expected - 1.0).abs() < 5e-3, "{process:?} {key}: {found} {expected}");
                }
            }
            let [service, response] =
                [&times.service, &times.response].map(|found| percentile_nanos(found, "p99_us"));
            assert!(
                service < 101.0 * MICRO as f64 && response > 800.0 * MILLI as f64,
                "{service} {response}"
            );
        }
    }

    #[test]
    fn who_is_not_answered_at_the_end_has_waited_until_then() {
        let time = SimulatedTime { stopped_at: 100 * MILLI, ..SimulatedTime::default() };
        let mut times = RequestTimes::new().unwrap();
        let serve = || {
            // The fifth is never answered, and the end comes.
            let is_stuck = time.now.get() >= 40 * MILLI;
            time.pass(if is_stuck { 60 * MILLI } else { MILLI });
            Ok(!is_stuck)
        };
        run_open_loop(&time, plan(100.0, ArrivalProcess::Uniform).schedule(0, 1), serve, &mut times).unwrap();
        // Due at 0, 10, 20, 30: answered. At 40, 50 to 100: not.
        assert_eq!((times.service.count(), times.overdue, times.lost), (4, 7, 0));
        assert_eq!(times.response.count(), 11);
        let longest = percentile_nanos(&times.response, "max_us");
        assert!((longest / (60.0 * MILLI as f64) - 1.0).abs() < 1e-3, "{longest}");
    }

    #[test]
    fn what_was_due_in_the_warm_up_does_not_count() {
        let time =
            SimulatedTime { measured_from: 50 * MILLI, stopped_at: 99 * MILLI, ..SimulatedTime::default() };
        let mut times = RequestTimes::new().unwrap();
        let serve = || {
            time.pass(MILLI);
            // One in two is lost.
            Ok((time.now.get() / (10 * MILLI)).is_multiple_of(2))
        };
        run_open_loop(&time, plan(100.0, ArrivalProcess::Uniform).schedule(0, 1), serve, &mut times).unwrap();
        assert_eq!((times.service.count(), times.lost, times.overdue), (2, 3, 0));
    }

    #[test]
    fn arrivals_of_several_sources_are_those_of_one() {
        let even = plan(1000.0, ArrivalProcess::Uniform);
        let mut all: Vec<Duration> = (0..4).flat_map(|source| even.schedule(source, 4).take(250)).collect();
        all.sort_unstable();
        assert!(all.iter().zip(0..).all(|(due, place)| *due == Duration::from_millis(place)), "{all:?}");

        // Counts in a tenth of a second of 1,000 a second: mean and variance are both 100 (95 % of 2,000 windows: 0.4 and 6).
        let poisson = plan(1000.0, ArrivalProcess::Poisson);
        let mut counts = vec![0_u32; 2000];
        for source in 0..4 {
            for due in poisson.schedule(source, 4) {
                match counts.get_mut(due.as_millis() as usize / 100) {
                    Some(count) => *count += 1,
                    None => break,
                }
            }
        }
        let mean = counts.iter().sum::<u32>() as f64 / 2000.0;
        let variance = counts.iter().map(|count| (f64::from(*count) - mean).powi(2)).sum::<f64>() / 1999.0;
        assert!((mean - 100.0).abs() < 1.0 && (variance - 100.0).abs() < 12.0, "{mean} {variance}");
        let again = |seed: u64| ArrivalPlan { seed, ..poisson }.schedule(0, 1).take(5).collect::<Vec<_>>();
        assert_eq!(again(3), again(3));
        assert_ne!(again(3), again(4));
    }

    #[test]
    fn times_survive_the_way_to_another_process() {
        let mut times = RequestTimes::new().unwrap();
        times.record(Duration::from_millis(1), Duration::from_millis(3), Duration::from_millis(4));
        times.record_overdue(Duration::from_millis(2), Duration::from_millis(9));
        times.lost = 5;
        let [mut by_bytes, mut by_merge] = [RequestTimes::new().unwrap(), RequestTimes::new().unwrap()];
        by_bytes.merge_bytes(&times.to_bytes());
        by_merge.merge(&times);
        for found in [by_bytes, by_merge] {
            assert_eq!((found.overdue, found.lost), (1, 5));
            assert_eq!(found.service.to_json(), times.service.to_json());
            assert_eq!(found.response.to_json(), times.response.to_json());
            assert_eq!(found.delay.to_json(), times.delay.to_json());
        }
        // What was cut is no reason to fall.
        by_cut(&times.to_bytes());
    }

    fn by_cut(bytes: &[u8]) {
        for length in 0..bytes.len() {
            RequestTimes::new().unwrap().merge_bytes(&bytes[..length]);
        }
    }

    #[test]
    fn no_rate_is_a_closed_loop_and_an_impossible_one_is_named() {
        let take = |arguments: &[&str]| {
            let all: Vec<OsString> = ["net"].iter().chain(arguments).map(Into::into).collect();
            ArrivalPlan::take(&mut BuiltinLoadArgs::parse(&all).unwrap())
        };
        assert_eq!(take(&[]).unwrap(), None);
        let found = take(&["--rate", "50", "--arrivals", "poisson", "--seed", "3"]).unwrap();
        assert_eq!(found, Some(ArrivalPlan { rate: 50.0, process: ArrivalProcess::Poisson, seed: 3 }));
        for rate in ["-1", "NaN", "inf", "1e7"] {
            assert!(matches!(take(&["--rate", rate]), Err(LoadError::Argument { key, .. }) if key == "rate"));
        }
    }
}
