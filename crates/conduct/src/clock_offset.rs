//! How another machine's clock relates to ours, from round trips: arithmetic only, no clock is read here.
//!
//! We note the time, ask, receive the other clock's time, and note the time again. It was read somewhere between
//! our two, so that clock is ahead of ours by at least `theirs - back` and at most `theirs - sent`: an interval
//! that is as wide as the round trip, however the way there and the way back differ (Cristian 1989; RFC 5905,
//! section 8). Many trips give many intervals, widened with age by what clocks may drift, and the truth lies in
//! what they have in common (Marzullo 1984). So the bound is a bound, and a short trip makes it narrow.

use std::collections::VecDeque;

use perflab_model::{ClockOffset, Nanos};

/// The most that the rates of two clocks differ, in billionths: what the kernel's adjtimex(2) allows a clock to be slewed.
const DRIFT_PPB: i64 = 500_000;

/// Trips that are looked at.
const WINDOW: usize = 32;

/// A rate is reported only after the clocks were watched for this long: before that it would be noise.
const RATE_AFTER: Nanos = Nanos(10_000_000_000);

/// The latest time of another clock that is believed: no machine is up for 146 years. Below it, no difference of two clocks
/// leaves an `i64`.
const LATEST: Nanos = Nanos(1 << 62);

const BILLION: i64 = 1_000_000_000;

/// One question for the time, and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// Our clock before the question was sent.
    pub sent: Nanos,
    /// Their clock.
    pub theirs: Nanos,
    /// Our clock after the answer came.
    pub back: Nanos,
}

impl RoundTrip {
    /// How long it took.
    pub fn duration(&self) -> Nanos {
        self.back.since(self.sent)
    }

    fn lowest_offset(&self) -> i64 {
        to_signed(self.theirs) - to_signed(self.back)
    }

    fn highest_offset(&self) -> i64 {
        to_signed(self.theirs) - to_signed(self.sent)
    }

    fn middle_offset(&self) -> i64 {
        i64::midpoint(self.lowest_offset(), self.highest_offset())
    }
}

/// What is known about another clock.
#[derive(Debug, Clone, Default)]
pub struct ClockOffsetEstimator {
    trips: VecDeque<RoundTrip>,
    first: Option<RoundTrip>,
}

impl ClockOffsetEstimator {
    /// Takes one more round trip.
    ///
    /// # Errors
    /// Their clock is none of a machine's; nothing is changed.
    pub fn add_trip(&mut self, trip: RoundTrip) -> Result<(), String> {
        if trip.theirs > LATEST {
            return Err(format!("its clock says {} ns, and no machine is up for so long", trip.theirs.0));
        }
        self.trips.push_back(trip);
        if self.trips.len() > WINDOW {
            self.trips.pop_front();
        }
        // A clock that was set, or stood still with its machine: what was known before is no longer true.
        while self.common_interval(trip.back, 0).is_none() && self.trips.len() > 1 {
            self.trips.pop_front();
            self.first = None;
        }
        let young = self.first.is_none_or(|first| trip.back.since(first.back) < RATE_AFTER);
        if young && self.first.is_none_or(|first| trip.duration() <= first.duration()) {
            self.first = Some(trip);
        }
        Ok(())
    }

    /// How their clock relates to ours at `now`, a time of ours; `None` before the first trip.
    ///
    /// The offset follows the rate that was seen; the bound does not trust that rate, which wide trips make wrong, but only
    /// that no clock drifts by more than a kernel allows.
    pub fn clock(&self, now: Nanos) -> Option<ClockOffset> {
        let (low, high) = self.common_interval(now, 0)?;
        let rate_ppb = self.rate_ppb();
        let (from, to) = self.common_interval(now, rate_ppb).unwrap_or((low, high));
        let offset = i64::midpoint(from, to).clamp(low, high);
        let bound = Nanos(high.abs_diff(offset).max(offset.abs_diff(low)));
        Some(ClockOffset { offset, bound, rate_ppb })
    }

    /// Their time at a time of ours.
    pub fn to_theirs(&self, ours: Nanos) -> Nanos {
        let offset = self.clock(ours).map_or(0, |clock| clock.offset);
        shift_time(ours, offset)
    }

    /// Our time at a time of theirs.
    pub fn to_ours(&self, theirs: Nanos) -> Nanos {
        // The offset moves by less than a millionth of the error that its own argument would have.
        let newest = self.trips.back().map_or(0, RoundTrip::middle_offset);
        let offset = self.clock(shift_time(theirs, newest.saturating_neg())).map_or(0, |clock| clock.offset);
        shift_time(theirs, offset.saturating_neg())
    }

    /// The shortest of the trips that are looked at.
    pub fn shortest_trip(&self) -> Option<Nanos> {
        self.trips.iter().map(RoundTrip::duration).min()
    }

    /// The interval that all trips allow at `now`, where the clocks drift apart by `rate` billionths, give or take what a kernel
    /// allows.
    fn common_interval(&self, now: Nanos, rate: i64) -> Option<(i64, i64)> {
        let bounds = self.trips.iter().map(|trip| {
            let age = to_signed(now) - to_signed(trip.back);
            let (drift, slack) = (scale_ppb(age, rate), scale_ppb(age.abs(), DRIFT_PPB));
            let apart = |apart: i64, slack: i64| apart.saturating_add(drift).saturating_add(slack);
            (apart(trip.lowest_offset(), -slack), apart(trip.highest_offset(), slack))
        });
        let all = bounds.reduce(|one, other| (one.0.max(other.0), one.1.min(other.1)))?;
        (all.0 <= all.1).then_some(all)
    }

    fn rate_ppb(&self) -> i64 {
        let (Some(first), Some(last)) = (self.first, self.trips.iter().min_by_key(|trip| trip.duration()))
        else {
            return 0;
        };
        let apart = last.back.since(first.back);
        if apart < RATE_AFTER {
            return 0;
        }
        let moved =
            (i128::from(last.middle_offset()) - i128::from(first.middle_offset())) * i128::from(BILLION);
        let rate = moved / i128::from(apart.0);
        i64::try_from(rate).map_or(0, |rate| rate.clamp(-DRIFT_PPB, DRIFT_PPB))
    }
}

fn scale_ppb(time: i64, ppb: i64) -> i64 {
    let product = i128::from(time) * i128::from(ppb) / i128::from(BILLION);
    i64::try_from(product).unwrap_or(0)
}

fn to_signed(time: Nanos) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

fn shift_time(time: Nanos, by: i64) -> Nanos {
    Nanos(time.0.saturating_add_signed(by))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_000_000_000_000;

    /// Their clock, ahead by `offset` at START and faster by `ppb`.
    fn skewed_clock(ours: u64, offset: i64, ppb: i64) -> Nanos {
        Nanos(ours.saturating_add_signed(offset + scale_ppb((ours - START) as i64, ppb)))
    }

    #[test]
    fn a_short_trip_after_long_ones_narrows_the_bound() {
        let mut offset = ClockOffsetEstimator::default();
        assert_eq!(offset.clock(Nanos(START)), None);
        for (n, way) in [(0_u64, 900_000), (1, 30_000), (2, 800_000)] {
            let sent = START + n * 1_000_000;
            offset
                .add_trip(RoundTrip {
                    sent: Nanos(sent),
                    theirs: skewed_clock(sent + way, 5_000_000, 0),
                    back: Nanos(sent + 2 * way),
                })
                .unwrap();
        }
        let clock = offset.clock(Nanos(START + 3_000_000)).unwrap();
        assert!(clock.bound < Nanos(32_000), "{clock:?}");
        assert!((clock.offset - 5_000_000).unsigned_abs() <= clock.bound.0, "{clock:?}");
        assert_eq!(offset.shortest_trip(), Some(Nanos(60_000)));
    }

    #[test]
    fn a_clock_that_was_set_is_believed_anew() {
        let mut offset = ClockOffsetEstimator::default();
        for (sent, ahead) in [(START, 1_000_000_000), (START + 1_000_000, -70_000_000)] {
            offset
                .add_trip(RoundTrip {
                    sent: Nanos(sent),
                    theirs: skewed_clock(sent + 50, ahead, 0),
                    back: Nanos(sent + 100),
                })
                .unwrap();
        }
        let clock = offset.clock(Nanos(START + 1_000_100)).unwrap();
        assert!((clock.offset + 70_000_000).abs() < 200, "{clock:?}");
    }

    #[test]
    fn a_clock_that_no_machine_has_is_refused_and_what_was_known_stays() {
        let mut offset = ClockOffsetEstimator::default();
        let trip = |theirs| RoundTrip { sent: Nanos(START), theirs, back: Nanos(START + 100) };
        offset.add_trip(trip(Nanos(START + 50))).unwrap();
        let known = offset.clock(Nanos(START));
        for lie in [u64::MAX, i64::MAX as u64, LATEST.0 + 1] {
            assert!(offset.add_trip(trip(Nanos(lie))).is_err(), "{lie}");
            assert_eq!(offset.clock(Nanos(START)), known);
        }
    }

    proptest::proptest! {
        /// Whatever clocks say, and whenever they are asked, there is an answer.
        #[test]
        fn no_clock_makes_it_panic(
            trips in proptest::collection::vec((0..=LATEST.0, 0..=LATEST.0, proptest::prelude::any::<u64>()), 1..40),
            at in proptest::prelude::any::<u64>(),
        ) {
            let mut offset = ClockOffsetEstimator::default();
            for (sent, took, theirs) in trips {
                let (sent, back) = (Nanos(sent), Nanos(sent.saturating_add(took)));
                let _ = offset.add_trip(RoundTrip { sent, theirs: Nanos(theirs), back });
                for at in [Nanos(at), back] {
                    let _ = (offset.clock(at), offset.to_theirs(at), offset.to_ours(at));
                }
            }
        }

        /// Whatever the ways there and back take, the truth is within the bound, also a while later.
        #[test]
        fn the_bound_is_a_bound(
            ahead in -2_000_000_000_i64..2_000_000_000,
            ppb in -400_000_i64..400_000,
            trips in proptest::collection::vec((0_u64..3_000_000, 0_u64..3_000_000, 1_u64..2_000_000_000), 1..60),
            later in 0_u64..2_000_000_000,
        ) {
            let mut offset = ClockOffsetEstimator::default();
            let mut now = START;
            for (there, back, pause) in trips {
                let (sent, asked) = (now, now + there);
                now = asked + back;
                offset.add_trip(RoundTrip { sent: Nanos(sent), theirs: skewed_clock(asked, ahead, ppb), back: Nanos(now) }).unwrap();
                let clock = offset.clock(Nanos(now)).unwrap();
                let truth = to_signed(skewed_clock(now, ahead, ppb)) - to_signed(Nanos(now));
                proptest::prop_assert!((clock.offset - truth).unsigned_abs() <= clock.bound.0 + 1000, "{clock:?} {truth}");
                now += pause;
            }
            let then = now + later;
            let (told, truth) = (offset.to_theirs(Nanos(then)), skewed_clock(then, ahead, ppb));
            let bound = offset.clock(Nanos(then)).unwrap().bound.0;
            proptest::prop_assert!(told.0.abs_diff(truth.0) <= bound + 1000, "{told:?} {truth:?}");
            proptest::prop_assert!(offset.to_ours(told).0.abs_diff(then) <= bound / 100 + 1000);
        }
    }
}
