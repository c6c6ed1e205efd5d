//! Samples as the index stores them: the metrics that they are of, then a few bytes and the value of each, in their order.
//! When they were taken is not stored.

use indexmap::IndexSet;
use perflab_model::{Direction, Nanos, Sample, SharedStr, Unit};

/// Runs with more samples than these are read from their tables: the index is to stay small beside the runs.
pub(super) const MOST_SAMPLES: usize = 16_384;

/// What samples of one metric of one case share.
#[derive(Clone, PartialEq, Eq, Hash)]
struct SampledMetric {
    case: u32,
    metric: SharedStr,
    unit: Unit,
    direction: Direction,
    primary: bool,
}

const DIRECTIONS: [Direction; 3] = [Direction::Higher, Direction::Lower, Direction::Neither];

/// The bytes of `samples`.
pub(super) fn encode_samples(samples: &[Sample]) -> Vec<u8> {
    let metric = |sample: &Sample| SampledMetric {
        case: sample.case,
        metric: sample.metric.clone(),
        unit: sample.unit.clone(),
        direction: sample.direction,
        primary: sample.primary,
    };
    let metrics: IndexSet<SampledMetric> = samples.iter().map(metric).collect();
    let mut bytes = Vec::with_capacity(samples.len() * 12);
    push_number(&mut bytes, metrics.len() as u64);
    for one in &metrics {
        push_number(&mut bytes, one.case.into());
        push_text(&mut bytes, &one.metric);
        push_text(&mut bytes, &one.unit.0);
        let direction = DIRECTIONS.iter().position(|known| *known == one.direction).unwrap_or_default();
        push_number(&mut bytes, (2 * direction + usize::from(one.primary)) as u64);
    }
    push_number(&mut bytes, samples.len() as u64);
    for sample in samples {
        push_number(&mut bytes, metrics.get_index_of(&metric(sample)).unwrap_or_default() as u64);
        push_number(&mut bytes, sample.target.map_or(0, |target| u64::from(target) + 1));
        push_number(&mut bytes, sample.boot.into());
        push_number(&mut bytes, sample.iteration.into());
        bytes.extend(sample.value.to_le_bytes());
    }
    bytes
}

/// The samples of such bytes; `None` where they are none.
pub(super) fn decode_samples(bytes: &[u8]) -> Option<Vec<Sample>> {
    let mut rest = bytes;
    let mut metrics = Vec::new();
    for _ in 0..take_number(&mut rest)? {
        let (case, metric, unit) = (take_small(&mut rest)?, take_text(&mut rest)?, take_text(&mut rest)?);
        let flags = take_number(&mut rest)?;
        let direction = *DIRECTIONS.get(usize::try_from(flags / 2).ok()?)?;
        metrics.push(SampledMetric { case, metric, unit: Unit(unit), direction, primary: flags % 2 == 1 });
    }
    let count = usize::try_from(take_number(&mut rest)?).ok()?;
    let mut samples = Vec::with_capacity(count.min(MOST_SAMPLES));
    for _ in 0..count {
        let metric: &SampledMetric = metrics.get(usize::try_from(take_number(&mut rest)?).ok()?)?;
        let target = take_small(&mut rest)?.checked_sub(1);
        let (boot, iteration) = (take_small(&mut rest)?, take_small(&mut rest)?);
        let (value, after) = rest.split_first_chunk()?;
        rest = after;
        samples.push(Sample {
            boot,
            target,
            case: metric.case,
            iteration,
            metric: metric.metric.clone(),
            value: f64::from_le_bytes(*value),
            unit: metric.unit.clone(),
            direction: metric.direction,
            primary: metric.primary,
            start: Nanos(0),
            end: Nanos(0),
        });
    }
    rest.is_empty().then_some(samples)
}

/// LEB128.
fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn take_small(rest: &mut &[u8]) -> Option<u32> {
    u32::try_from(take_number(rest)?).ok()
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    push_number(bytes, text.len() as u64);
    bytes.extend(text.as_bytes());
}

fn take_text(rest: &mut &[u8]) -> Option<SharedStr> {
    let length = usize::try_from(take_number(rest)?).ok()?;
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    std::str::from_utf8(text).ok().map(SharedStr::from)
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::{RunBuilder, explanatory_metric, primary_metric};
    use proptest::prelude::*;

    use super::*;

    fn samples() -> Vec<Sample> {
        let run = RunBuilder::new("01").with(|builder| {
            builder.boots = 2;
            builder.factors = vec![("pages", vec!["small", "huge"])];
            builder.metrics = vec![
                primary_metric("time", "s", Direction::Lower),
                explanatory_metric("µ-faults", "1", Direction::Neither),
            ];
        });
        let mut samples = run.build_run(|point| Some(f64::from(point.iteration) / 3.0)).samples;
        for (at, sample) in samples.iter_mut().enumerate() {
            (sample.start, sample.end) = (Nanos(0), Nanos(0));
            sample.target = (at % 3 > 0).then_some(at as u32 * 50);
        }
        samples[0].value = f64::INFINITY;
        samples[1].boot = u32::MAX - 1;
        samples
    }

    #[test]
    fn samples_come_back_in_their_order() {
        let samples = samples();
        assert_eq!(decode_samples(&encode_samples(&samples)).unwrap(), samples);
        assert_eq!(decode_samples(&encode_samples(&[])).unwrap(), []);
    }

    #[test]
    fn what_is_cut_short_or_longer_is_none() {
        let bytes = encode_samples(&samples());
        assert!((0..bytes.len()).all(|length| decode_samples(&bytes[..length]).is_none()));
        assert!(decode_samples(&[&bytes[..], &[0]].concat()).is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_samples(&bytes);
        }
    }
}
