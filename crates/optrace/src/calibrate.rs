//! What recording itself costs, measured before each trace with the code that records. Owns the three figures that a
//! reader subtracts; refuses to guess anything about the program.

use crate::clock::{ClockKind, ClockLine};
use crate::format::{RecordHeadWord, RecordingCost, decode_span};
use crate::lane::ThreadChunks;
use crate::live::RegionShape;
use crate::pen::{StampWriter, tag};
use crate::replay::StampDecoder;

/// Operations of one batch, and batches: the median of the quietest batch counts. Below Miri there is nothing to measure.
const BATCH: usize = if cfg!(miri) { 10 } else { 500 };
const BATCHES: usize = 9;

/// What an operation and a span cost, in ticks.
pub(crate) fn measure_recording_cost(clock: ClockKind) -> RecordingCost {
    let least = |figures: [f64; BATCHES]| figures.into_iter().fold(f64::INFINITY, f64::min);
    let lane = ThreadChunks::new(0, RegionShape { chunk_words: BATCH * 4, chunks: 2 }, None, clock.now());
    let empty = least([(); BATCHES].map(|()| time_batch(clock, &lane, false).0));
    let with = [(); BATCHES].map(|()| time_batch(clock, &lane, true));
    let (outer, inner) = (least(with.map(|(outer, _)| outer)), least(with.map(|(_, inner)| inner)));
    RecordingCost { operation: empty, around: (outer - empty - inner).max(0.0), span: inner }
}

/// Median duration of empty operations, and of the empty span inside each.
fn time_batch(clock: ClockKind, lane: &ThreadChunks, span: bool) -> (f64, f64) {
    let mut pen = StampWriter::new(clock);
    pen.enter_chunk(lane, 0);
    for _ in 0..BATCH {
        pen.stamp(tag::BEGIN, 0);
        if span {
            pen.stamp(tag::ENTER, 0);
            pen.stamp(tag::LEAVE, 0);
        }
        pen.stamp(tag::END, 0);
    }
    lane.submit_chunk(0, pen.used_words(), clock.read_pair());
    let mut replay = StampDecoder::new(lane.opened);
    lane.write_full_chunk(0, |filled| replay.decode_chunk(filled.words));
    median_durations(&replay.builder.words, span)
}

fn median_durations(words: &[u64], span: bool) -> (f64, f64) {
    let records = || words.chunks_exact(if span { 3 } else { 2 });
    let outer = records().filter_map(|record| Some(RecordHeadWord::decode(*record.get(1)?).duration));
    let inner = records().filter_map(|record| Some(decode_span(*record.get(2)?).1));
    (median(outer.collect()), median(inner.collect()))
}

fn median(mut ticks: Vec<u64>) -> f64 {
    ticks.sort_unstable();
    ticks.get(ticks.len() / 2).map_or(0.0, |ticks| *ticks as f64)
}

/// Nanoseconds a tick, over some two milliseconds. Good to a few parts in 10,000; blocks carry instants of their own.
pub(crate) fn measure_ns_per_tick(clock: ClockKind) -> f64 {
    if clock == ClockKind::Monotonic {
        return 1.0;
    }
    let from = clock.read_pair();
    std::thread::sleep(std::time::Duration::from_millis(2));
    ClockLine::through(from, clock.read_pair(), 1.0).slope()
}
