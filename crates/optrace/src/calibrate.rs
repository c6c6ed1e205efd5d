//! What recording itself costs, measured before each trace with the code that records. Owns the three figures that a
//! reader subtracts; refuses to guess anything about the program.

use crate::clock::{ClockKind, Line};
use crate::format::{Cost, HeadWord, span_of};
use crate::lane::Lane;
use crate::live::Shape;
use crate::pen::{Pen, tag};
use crate::replay::Replay;

/// Operations of one batch, and batches: the median of the quietest batch counts. Below Miri there is nothing to measure.
const BATCH: usize = if cfg!(miri) { 10 } else { 500 };
const BATCHES: usize = 9;

/// What an operation and a span cost, in ticks.
pub(crate) fn calibrate(clock: ClockKind) -> Cost {
    let least = |figures: [f64; BATCHES]| figures.into_iter().fold(f64::INFINITY, f64::min);
    let lane = Lane::new(0, Shape { chunk_words: BATCH * 4, chunks: 2 }, None, clock.now());
    let empty = least([(); BATCHES].map(|()| batch(clock, &lane, false).0));
    let with = [(); BATCHES].map(|()| batch(clock, &lane, true));
    let (outer, inner) = (least(with.map(|(outer, _)| outer)), least(with.map(|(_, inner)| inner)));
    Cost { operation: empty, around: (outer - empty - inner).max(0.0), span: inner }
}

/// Median duration of empty operations, and of the empty span inside each.
fn batch(clock: ClockKind, lane: &Lane, span: bool) -> (f64, f64) {
    let mut pen = Pen::new(clock);
    pen.enter_chunk(lane, 0);
    for _ in 0..BATCH {
        pen.stamp(tag::BEGIN, 0);
        if span {
            pen.stamp(tag::ENTER, 0);
            pen.stamp(tag::LEAVE, 0);
        }
        pen.stamp(tag::END, 0);
    }
    lane.hand_over(0, pen.used(), clock.pair());
    let mut replay = Replay::new(lane.opened);
    lane.take(0, |filled| replay.chunk(filled.words));
    medians(&replay.state.words, span)
}

fn medians(words: &[u64], span: bool) -> (f64, f64) {
    let records = || words.chunks_exact(if span { 3 } else { 2 });
    let outer = records().filter_map(|record| Some(HeadWord::of(*record.get(1)?).duration));
    let inner = records().filter_map(|record| Some(span_of(*record.get(2)?).1));
    (median(outer.collect()), median(inner.collect()))
}

fn median(mut ticks: Vec<u64>) -> f64 {
    ticks.sort_unstable();
    ticks.get(ticks.len() / 2).map_or(0.0, |ticks| *ticks as f64)
}

/// Nanoseconds a tick, over some two milliseconds. Good to a few parts in 10,000; blocks carry instants of their own.
pub(crate) fn ns_per_tick(clock: ClockKind) -> f64 {
    if clock == ClockKind::Monotonic {
        return 1.0;
    }
    let from = clock.pair();
    std::thread::sleep(std::time::Duration::from_millis(2));
    Line::through(from, clock.pair(), 1.0).slope()
}
