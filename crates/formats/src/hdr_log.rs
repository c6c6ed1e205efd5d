//! The log of HdrHistogram (G. Tene, <https://hdrhistogram.org>): a histogram of values for each interval of time, perhaps with a tag.
//!
//! The text is that of the project's `HistogramLogWriter`, versions 1.2 and 1.3; a histogram in it is the V2 encoding, compressed or
//! not, in base64. The library reads the encoding; what it would take on trust is checked before.

use std::io::Read as _;

use data_encoding::BASE64;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use perflab_model::error_class::{Classify, ErrorClass};

use crate::finite_number::{parse_finite_number, shorten_quotation};
use crate::value_histogram::{HistogramError, ValueHistogram};

/// First words of the V2 encoding, plain and compressed.
const PLAIN_COOKIE: u32 = 0x1c84_9313;
const COMPRESSED_COOKIE: u32 = 0x1c84_9314;

/// Cookies of the encodings before: plain and compressed of each, whose fifth to eighth bits are a word's length.
const OLD_COOKIES: [(u32, &str); 4] =
    [(0x1c84_9301, "V1"), (0x1c84_9302, "V1"), (0x1c84_9308, "V0"), (0x1c84_9309, "V0")];

/// Cookies of histograms of floats.
const FLOAT_COOKIES: [u32; 2] = [0x0c72_124e, 0x0c72_124f];

/// Bytes before the counts.
const HEAD: usize = 40;

/// The largest encoding: five digits over all 63 bits have six million counts of nine bytes at most.
const LARGEST: u64 = HEAD as u64 + 9 * 6_300_000;

/// Why something is no HdrHistogram log, or no histogram in one.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum HdrLogError {
    /// The line is none of a log.
    #[error("`{0}` is no line of an HdrHistogram log: [Tag=NAME,]start,length,max,histogram")]
    NoLogLine(String),
    /// A number of a line is none.
    #[error("`{text}` is no {what} of an interval")]
    NotANumber {
        /// which
        what: &'static str,
        /// what stands there
        text: String,
    },
    /// The histogram is not in base64.
    #[error("its histogram is not in base64 ({0}): the line is cut off or damaged")]
    NotBase64(String),
    /// It begins with other bytes.
    #[error("its histogram begins with {found:#010x}, which is not the V2 encoding ({about})")]
    WrongCookie {
        /// the first four bytes
        found: u32,
        /// what that is, as far as it is known
        about: &'static str,
    },
    /// It has not as many bytes as it says.
    #[error("its histogram says {said} bytes and has {found}: it is cut off or damaged")]
    WrongLength {
        /// by its head
        said: u64,
        /// what there is
        found: u64,
    },
    /// It cannot be unpacked.
    #[error("its histogram cannot be unpacked: {0}")]
    NotCompressed(String),
    /// Its head cannot be, or its counts do not fit to it.
    #[error("its histogram is damaged: {0}")]
    Damaged(String),
    /// It holds what no histogram holds.
    #[error(transparent)]
    Impossible(#[from] HistogramError),
}

impl Classify for HdrLogError {
    fn class(&self) -> ErrorClass {
        match self {
            HdrLogError::NoLogLine(_)
            | HdrLogError::NotANumber { .. }
            | HdrLogError::NotBase64(_)
            | HdrLogError::WrongCookie { .. }
            | HdrLogError::WrongLength { .. }
            | HdrLogError::NotCompressed(_)
            | HdrLogError::Damaged(_)
            | HdrLogError::Impossible(_) => ErrorClass::Unexpected,
        }
    }
}

/// What a line of a log says.
#[derive(Debug, Clone, PartialEq)]
pub enum HdrLogLine<'a> {
    /// When what is measured began: seconds since 1970.
    StartTime(f64),
    /// What the times of intervals count from: seconds since 1970.
    BaseTime(f64),
    /// One interval.
    Interval(HdrLogInterval<'a>),
    /// Nothing: a comment, the head of the table, a blank line.
    Remark,
}

/// One interval of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct HdrLogInterval<'a> {
    /// Which of several histograms it is of.
    pub tag: Option<&'a str>,
    /// When it begins, in seconds since the base time, the start time, or 1970.
    pub start: f64,
    /// How long it is, in seconds.
    pub length: f64,
    /// Its largest value, in the unit that the writer chose.
    pub max: f64,
    /// Its histogram in base64.
    pub encoded: &'a str,
}

/// Reads a line of a log.
///
/// # Errors
/// It is none. The histogram in it is not looked at.
pub fn parse_hdr_log_line(text: &str) -> Result<HdrLogLine<'_>, HdrLogError> {
    let text = text.trim();
    if let Some(remark) = text.strip_prefix('#') {
        let time = |name: &str| {
            let rest = remark.strip_prefix(name)?;
            parse_finite_number(rest.split([' ', ']']).find(|word| !word.is_empty())?)
        };
        return Ok(match (time("[StartTime:"), time("[BaseTime:")) {
            (Some(start), _) => HdrLogLine::StartTime(start),
            (_, Some(base)) => HdrLogLine::BaseTime(base),
            _ => HdrLogLine::Remark,
        });
    }
    if text.is_empty() || text.starts_with('"') {
        return Ok(HdrLogLine::Remark);
    }
    let (tag, rest) = match text.strip_prefix("Tag=").and_then(|rest| rest.split_once(',')) {
        Some((tag, rest)) => (Some(tag), rest),
        None => (None, text),
    };
    let fields: Vec<&str> = rest.split(',').collect();
    let [start, length, max, encoded] = *fields.as_slice() else {
        return Err(HdrLogError::NoLogLine(shorten_quotation(text)));
    };
    let number = |what: &'static str, text: &str| {
        let found = text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        found.ok_or_else(|| HdrLogError::NotANumber { what, text: shorten_quotation(text) })
    };
    Ok(HdrLogLine::Interval(HdrLogInterval {
        tag,
        start: number("start", start)?,
        length: number("length", length)?,
        max: number("maximum", max)?,
        encoded: encoded.trim(),
    }))
}

/// Whether a text begins as a log does: the first line that is no remark is an interval with a histogram.
pub fn is_hdr_log(text: &str) -> bool {
    let first = text.lines().find(|line| {
        !matches!(
            parse_hdr_log_line(line),
            Ok(HdrLogLine::Remark | HdrLogLine::StartTime(_) | HdrLogLine::BaseTime(_))
        )
    });
    let interval = first.map(parse_hdr_log_line);
    matches!(interval, Some(Ok(HdrLogLine::Interval(interval))) if interval.encoded.starts_with("HIST"))
}

/// Reads a histogram in base64: each bucket by its largest value, as HdrHistogram reports percentiles. Its tools add intervals of two
/// digits into a histogram of three, each bucket by its least value, and so report up to one step of two digits less.
///
/// # Errors
/// It is cut off, damaged, or in another encoding.
pub fn decode_hdr_histogram(encoded: &str) -> Result<ValueHistogram, HdrLogError> {
    let bytes =
        BASE64.decode(encoded.as_bytes()).map_err(|error| HdrLogError::NotBase64(error.to_string()))?;
    let plain = match read_word(&bytes, 0)? {
        PLAIN_COOKIE => bytes,
        COMPRESSED_COOKIE => inflate_payload(&bytes)?,
        other => return Err(wrong_cookie(other)),
    };
    check_plain_encoding(&plain)?;
    let decoded = Deserializer::new().deserialize::<u64, _>(&mut plain.as_slice());
    let decoded: Histogram<u64> = decoded.map_err(|error| HdrLogError::Damaged(error.to_string()))?;
    let mut histogram = ValueHistogram::default();
    for step in decoded.iter_recorded() {
        let value = step.value_iterated_to();
        let middle = decoded.median_equivalent(value) as f64;
        histogram.add_bucket(decoded.highest_equivalent(value) as f64, middle, step.count_at_value())?;
    }
    Ok(histogram)
}

fn wrong_cookie(found: u32) -> HdrLogError {
    // The bits between are of the length of a word, which those encodings chose.
    let old = OLD_COOKIES.iter().find(|(cookie, _)| found & !0xf0 == *cookie);
    let about = match old {
        Some((_, about)) => about,
        None if FLOAT_COOKIES.contains(&found) => "a histogram of floats",
        None => "nothing that is known",
    };
    HdrLogError::WrongCookie { found, about }
}

/// What is behind the head of the compressed encoding: a word of its length, and zlib's bytes.
fn inflate_payload(bytes: &[u8]) -> Result<Vec<u8>, HdrLogError> {
    let packed = bytes.get(8..).unwrap_or_default();
    check_length(read_word(bytes, 4)?, packed.len())?;
    let mut plain = Vec::new();
    let mut unpacked = ZlibDecoder::new(packed).take(LARGEST + 1);
    unpacked.read_to_end(&mut plain).map_err(|error| HdrLogError::NotCompressed(error.to_string()))?;
    if plain.len() as u64 > LARGEST {
        return Err(HdrLogError::NotCompressed(format!("it is larger than the largest, of {LARGEST} bytes")));
    }
    Ok(plain)
}

/// What the library takes as it comes: lengths that it makes room for, and the one number that it cannot negate.
fn check_plain_encoding(bytes: &[u8]) -> Result<(), HdrLogError> {
    match read_word(bytes, 0)? {
        PLAIN_COOKIE => {}
        other => return Err(wrong_cookie(other)),
    }
    let counts =
        bytes.get(HEAD..).ok_or(HdrLogError::WrongLength { said: HEAD as u64, found: bytes.len() as u64 })?;
    check_length(read_word(bytes, 4)?, counts.len())?;
    if counts.windows(9).any(|window| window.iter().all(|byte| *byte == 0xff)) {
        return Err(HdrLogError::Damaged("it skips more counts than there can be".into()));
    }
    Ok(())
}

fn check_length(said: u32, found: usize) -> Result<(), HdrLogError> {
    let (said, found) = (u64::from(said), found as u64);
    if said == found { Ok(()) } else { Err(HdrLogError::WrongLength { said, found }) }
}

/// Four bytes, the most significant first.
fn read_word(bytes: &[u8], at: usize) -> Result<u32, HdrLogError> {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_be_bytes);
    word.ok_or(HdrLogError::WrongLength { said: at as u64 + 4, found: bytes.len() as u64 })
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer, V2Serializer};
    use proptest::prelude::*;

    use super::*;
    use crate::value_histogram::Percentile;

    /// The first interval of the log of jHiccup that HdrHistogram tests its readers with (`jHiccup-2.0.7S.logV2.hlog`, CC0).
    const JHICCUP: &str = "0.127,1.007,2.769,HISTFAAAAEV42pNpmSzMwMCgyAABTBDKT4GBgdnNYMcCBvsPEBEJISEuATEZMQ4uASkhIR4nrxg9v2lMaxhvMekILGZkKmcCAEf2CsI=";

    fn interval(line: &str) -> HdrLogInterval<'_> {
        match parse_hdr_log_line(line).unwrap() {
            HdrLogLine::Interval(interval) => interval,
            other => panic!("{other:?}"),
        }
    }

    fn percentile(histogram: &ValueHistogram, percent: f64) -> Option<f64> {
        histogram.value_at_rank(Percentile::new(percent).unwrap().nearest_rank(histogram.count()))
    }

    fn encode(histogram: &Histogram<u64>) -> [String; 2] {
        let (mut plain, mut packed) = (Vec::new(), Vec::new());
        V2Serializer::new().serialize(histogram, &mut plain).unwrap();
        V2DeflateSerializer::new().serialize(histogram, &mut packed).unwrap();
        [plain, packed].map(|bytes| BASE64.encode(&bytes))
    }

    #[test]
    fn lines_are_told_apart() {
        for (line, expected) in [
            ("#[Histogram log format version 1.3]", HdrLogLine::Remark),
            ("\"StartTimestamp\",\"Interval_Length\"", HdrLogLine::Remark),
            ("", HdrLogLine::Remark),
            (
                "#[StartTime: 1441812279.474 (seconds since epoch), Wed Sep 09 08:24:39 PDT 2015]",
                HdrLogLine::StartTime(1_441_812_279.474),
            ),
            ("#[BaseTime: 0.5 (seconds since epoch)]", HdrLogLine::BaseTime(0.5)),
        ] {
            assert_eq!(parse_hdr_log_line(line), Ok(expected));
        }
        let tagged = format!("Tag=A b,{JHICCUP}");
        let found = interval(&tagged);
        assert_eq!((found.tag, found.start, found.length, found.max), (Some("A b"), 0.127, 1.007, 2.769));
        assert_eq!(interval(JHICCUP).tag, None);
        for line in ["hello", "1,2,3", "1,2,3,4,5", "x,1,2,HIST", "1,-1,2,HIST", "1,1,inf,HIST"] {
            assert!(parse_hdr_log_line(line).is_err(), "{line}");
        }
        assert!(is_hdr_log(&format!("#[x]\n\n{JHICCUP}\n")) && !is_hdr_log("1,2,3,4\n") && !is_hdr_log(""));
    }

    /// The maximum that stands beside the histogram is in milliseconds, with three digits.
    #[test]
    fn a_histogram_of_another_writer_has_its_maximum() {
        let found = interval(JHICCUP);
        let histogram = decode_hdr_histogram(found.encoded).unwrap();
        let largest = histogram.largest().unwrap() / 1e6;
        assert!((largest / found.max - 1.0).abs() < 1e-3, "{largest}");
        assert!(percentile(&histogram, 50.0).unwrap() <= largest * 1e6);
    }

    /// By hand from the format's description: 2 digits, values 1 to 127 once each in one run of counts, then nothing until
    /// 1000, whose bucket is of 4.
    #[test]
    fn an_encoding_written_by_hand_is_read() {
        let mut counts: Vec<u8> = vec![0x00];
        // zig-zag of 1 is 2
        counts.extend([0x02; 127]);
        // Values from 128 to 255 are the rest of the first bucket (2 x 100 -> 256 single values), then halves of 128: 2 a step to
        // 511, 4 a step from 512 on. 1000 is (1000 - 512) / 4 = 122 steps into the third: index 256 + 128 + 122 = 506.
        let zeros: u64 = 506 - 128;
        // zig-zag of -378 is 755: 0x73 with more to come, 0x05
        assert_eq!(2 * zeros - 1, 755);
        counts.extend([0xf3, 0x05, 0x06]);
        let mut bytes = PLAIN_COOKIE.to_be_bytes().to_vec();
        bytes.extend((counts.len() as u32).to_be_bytes());
        bytes.extend([0_u32, 2].into_iter().flat_map(u32::to_be_bytes));
        bytes.extend([1_u64, 3_600_000_000].into_iter().flat_map(u64::to_be_bytes));
        bytes.extend(1.0_f64.to_be_bytes());
        assert_eq!(bytes.len(), HEAD);
        bytes.extend(counts);
        let histogram = decode_hdr_histogram(&BASE64.encode(&bytes)).unwrap();
        assert_eq!(histogram.count(), 130);
        assert_eq!(percentile(&histogram, 50.0), Some(65.0));
        // The largest value of the bucket from 1000 to 1003.
        assert_eq!(histogram.largest(), Some(1003.0));
        let mean = ((1..=127).sum::<u64>() as f64 + 3.0 * 1002.0) / 130.0;
        assert_eq!(histogram.mean(), Some(mean));
    }

    #[test]
    fn merged_intervals_have_the_percentiles_of_all() {
        let [mut first, mut second, mut all] =
            [(); 3].map(|()| Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).unwrap());
        for value in 1..=100_000_u64 {
            let part = if value % 3 == 0 { &mut first } else { &mut second };
            part.record(value * 1000).unwrap();
            all.record(value * 1000).unwrap();
        }
        let mut merged = ValueHistogram::default();
        for part in [&first, &second] {
            let [plain, packed] = encode(part);
            assert_eq!(decode_hdr_histogram(&plain), decode_hdr_histogram(&packed));
            merged.merge(&decode_hdr_histogram(&packed).unwrap()).unwrap();
        }
        for percent in [1.0, 50.0, 90.0, 99.0, 99.9, 99.99] {
            let expected = all.value_at_quantile(percent / 100.0) as f64;
            assert_eq!(percentile(&merged, percent), Some(expected), "{percent}");
        }
        assert_eq!(merged.count(), 100_000);
        assert_eq!(merged.largest(), Some(all.max() as f64));
        assert!((merged.mean().unwrap() / all.mean() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_damaged_says_how() {
        let encoded = interval(JHICCUP).encoded;
        let damaged = |text: &str| decode_hdr_histogram(text).unwrap_err();
        for cut in 1..encoded.len() {
            let error = damaged(&encoded[..cut]);
            assert!(
                matches!(error, HdrLogError::NotBase64(_) | HdrLogError::WrongLength { .. }),
                "{cut}: {error}"
            );
        }
        let with_cookie = |cookie: u32| {
            let mut bytes = BASE64.decode(encoded.as_bytes()).unwrap();
            bytes[..4].copy_from_slice(&cookie.to_be_bytes());
            damaged(&BASE64.encode(&bytes))
        };
        for (cookie, expected) in [
            (0x1c84_9322, "V1"),
            (0x1c84_9389, "V0"),
            (0x0c72_124e, "a histogram of floats"),
            (7, "nothing that is known"),
        ] {
            let error = with_cookie(cookie);
            assert!(matches!(error, HdrLogError::WrongCookie { about, .. } if about == expected), "{error}");
        }
        assert!(matches!(damaged(""), HdrLogError::WrongLength { .. }));
        assert!(matches!(damaged("%"), HdrLogError::NotBase64(_)));
    }

    /// A head that asks for gigabytes, a bomb, more counts than there is room for, and a count that is skipped backwards for ever.
    #[test]
    fn heads_that_lie_cost_nothing() {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 1000, 1).unwrap();
        histogram.record(7).unwrap();
        let plain = BASE64.decode(encode(&histogram)[0].as_bytes()).unwrap();
        let damaged = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = plain.clone();
            change(&mut bytes);
            decode_hdr_histogram(&BASE64.encode(&bytes)).unwrap_err()
        };
        let error = damaged(&|bytes| bytes[4..8].copy_from_slice(&u32::MAX.to_be_bytes()));
        assert!(matches!(error, HdrLogError::WrongLength { said: 0xffff_ffff, .. }), "{error}");
        // Digits, the least value, the ratio: none of them can be.
        for (at, value) in [(12, 0xff), (16, 0xff), (32, 0x7f)] {
            let error = damaged(&|bytes| bytes[at] = value);
            assert!(matches!(error, HdrLogError::Damaged(_)), "{at}: {error}");
        }
        let with_counts = |counts: &[u8]| {
            damaged(&|bytes| {
                bytes.truncate(HEAD);
                bytes.extend(counts);
                bytes[4..8].copy_from_slice(&(counts.len() as u32).to_be_bytes());
            })
        };
        // It skips 10 million buckets and has a count there.
        for counts in [&[0xff_u8; 9][..], &[0xff, 0xd9, 0xc4, 0x09, 0x02]] {
            let error = with_counts(counts);
            assert!(matches!(error, HdrLogError::Damaged(_)), "{error}");
        }
        let mut bomb = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::copy(&mut std::io::repeat(0).take(LARGEST + 2), &mut bomb).unwrap();
        let packed = bomb.finish().unwrap();
        let mut bytes = COMPRESSED_COOKIE.to_be_bytes().to_vec();
        bytes.extend((packed.len() as u32).to_be_bytes());
        bytes.extend(packed);
        let error = decode_hdr_histogram(&BASE64.encode(&bytes)).unwrap_err();
        assert!(matches!(error, HdrLogError::NotCompressed(_)), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_damage_is_survived(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
            let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 2).unwrap();
            (0..50_u64).for_each(|value| histogram.record(value * value * 1000).unwrap());
            let mut bytes = BASE64.decode(encode(&histogram)[0].as_bytes()).unwrap();
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            // Whatever it is: a histogram, or a reason.
            let _ = decode_hdr_histogram(&BASE64.encode(&bytes));
        }

        #[test]
        fn what_was_written_is_read(values in proptest::collection::vec(0..u64::MAX / 4, 1..50), digits in 0..=4_u8) {
            let mut histogram = Histogram::<u64>::new_with_bounds(1, u64::MAX / 2, digits).unwrap();
            values.iter().for_each(|value| histogram.record(*value).unwrap());
            let [plain, packed] = encode(&histogram).map(|text| decode_hdr_histogram(&text).unwrap());
            prop_assert_eq!(&plain, &packed);
            prop_assert_eq!(plain.count(), values.len() as u64);
            prop_assert_eq!(plain.largest(), Some(histogram.max() as f64));
        }
    }
}
