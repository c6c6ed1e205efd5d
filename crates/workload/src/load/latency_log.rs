//! `--log PATH`: what a load measured, as a log of HdrHistogram, which other tools and `perflab compare` read.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::load::args::{BuiltinLoadArgs, LoadError};
use crate::load::latency::LatencyHistogram;

/// Maxima beside the histograms are in milliseconds, as HdrHistogram's own writer has them.
const MAXIMUM_DIVISOR: f64 = 1e6;

/// Where latencies are written, if anywhere.
#[derive(Debug)]
pub(crate) struct LatencyLog(Option<PathBuf>);

impl LatencyLog {
    /// From `--log`; empty or not there: nowhere.
    pub(crate) fn take(options: &mut BuiltinLoadArgs) -> Result<Self, LoadError> {
        let path = options.value_with_shown_default("log", String::new(), "none")?;
        Ok(LatencyLog((!path.is_empty()).then(|| path.into())))
    }

    /// Writes one interval, which ends now, of each of these that holds something: its tag, and its latencies in nanoseconds.
    pub(crate) fn write(&self, seconds: f64, tags: &[(&str, &LatencyHistogram)]) -> Result<(), LoadError> {
        let Some(path) = &self.0 else { return Ok(()) };
        let refused = || LoadError::system_error(format!("write {}", path.display()));
        let write = || -> io::Result<()> {
            let mut file = BufWriter::new(File::create(path)?);
            let length = Duration::try_from_secs_f64(seconds).map_err(io::Error::other)?;
            let begin = SystemTime::now() - length;
            let mut serializer = V2DeflateSerializer::new();
            let mut log = IntervalLogWriterBuilder::new()
                .add_comment("[Logged with perflab: nanoseconds]")
                .add_comment("[Histogram log format version 1.3]")
                .with_start_time(begin)
                .with_base_time(begin)
                .with_max_value_divisor(MAXIMUM_DIVISOR)
                .begin_log_with(&mut file, &mut serializer)?;
            for (tag, histogram) in tags.iter().filter(|(_, histogram)| !histogram.is_empty()) {
                let written = log.write_histogram(histogram.inner(), Duration::ZERO, length, Tag::new(tag));
                written.map_err(|error| io::Error::other(error.to_string()))?;
            }
            file.flush()
        };
        write().map_err(refused())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use perflab_formats::hdr_log::{HdrLogLine, decode_hdr_histogram, is_hdr_log, parse_hdr_log_line};
    use perflab_formats::value_histogram::Percentile;

    use super::*;

    fn log_to(path: &str) -> LatencyLog {
        let arguments: Vec<OsString> = ["net", "--log", path].map(Into::into).into();
        LatencyLog::take(&mut BuiltinLoadArgs::parse(&arguments).unwrap()).unwrap()
    }

    #[test]
    fn what_is_written_is_read_with_its_tags() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.hlog");
        let [mut service, mut response, empty] = [(); 3].map(|()| LatencyHistogram::new().unwrap());
        for micros in 1..=1000 {
            service.record(Duration::from_micros(micros));
            response.record(Duration::from_micros(2 * micros));
        }
        let log = log_to(path.to_str().unwrap());
        log.write(2.5, &[("service", &service), ("response", &response), ("delay", &empty)]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(is_hdr_log(&text), "{text}");
        let mut found = Vec::new();
        for line in text.lines() {
            if let HdrLogLine::Interval(interval) = parse_hdr_log_line(line).unwrap() {
                let histogram = decode_hdr_histogram(interval.encoded).unwrap();
                let rank = Percentile::new(99.0).unwrap().nearest_rank(histogram.count());
                let p99 = histogram.value_at_rank(rank).unwrap();
                assert!((p99 / 1e6 - interval.max * 0.99).abs() < 0.002, "{text}");
                found.push((interval.tag.unwrap().to_owned(), interval.length, histogram.count()));
            }
        }
        assert_eq!(found, [("service".into(), 2.5, 1000), ("response".into(), 2.5, 1000)]);
    }

    #[test]
    fn where_it_cannot_be_written_is_named_and_nowhere_is_no_error() {
        let refused = log_to("/proc/nowhere/a.hlog").write(1.0, &[]).unwrap_err();
        assert!(
            matches!(refused, LoadError::Refused { action, .. } if action == "write /proc/nowhere/a.hlog")
        );
        log_to("").write(1.0, &[]).unwrap();
    }
}
