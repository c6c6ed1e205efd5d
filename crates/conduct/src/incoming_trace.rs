//! Files of tracers that targets send in parts, put together again on this host.
//!
//! A target is somebody else's machine: it may send each file once, and no more of it than is kept of a target.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use perflab_model::io_trace::IoRecording;
use perflab_model::{Nanos, remove_control_characters};

use crate::error::ConductError;
use crate::protocol::{TraceFilePart, largest_trace};

/// Files that are not whole yet, and which ones were.
#[derive(Debug, Default)]
pub(crate) struct IncomingTraces {
    files: HashMap<(usize, u32, String), IncomingTrace>,
}

#[derive(Debug)]
struct IncomingTrace {
    path: PathBuf,
    /// None once it is whole.
    file: Option<File>,
    bytes: u64,
}

impl IncomingTraces {
    /// Takes a part of a file that `target` sends; gives the file once it is whole. `folder` says where it is put.
    ///
    /// # Errors
    /// The target sends what no agent sends, or this host cannot keep it; the reason is for people.
    pub(crate) fn take_part(
        &mut self,
        target: usize,
        part: &TraceFilePart,
        folder: impl FnOnce() -> Result<PathBuf, ConductError>,
    ) -> Result<Option<PathBuf>, String> {
        let cannot = |error: io::Error| format!("its trace cannot be kept: {error}");
        let bytes = BASE64.decode(part.bytes.as_bytes());
        let bytes = bytes.map_err(|error| format!("its trace is not base64: {error}"))?;
        let key = (target, part.slot, part.tracer.clone());
        if !self.files.contains_key(&key) {
            let folder = folder().map_err(|error| format!("its trace cannot be kept: {error}"))?;
            // The tracer is one of ours by name: it was held against the plan.
            let path = folder.join(format!("{}.{target}.{}", part.slot, part.tracer));
            let file = Some(File::create_new(&path).map_err(cannot)?);
            self.files.insert(key.clone(), IncomingTrace { path, file, bytes: 0 });
        }
        let Some(trace) = self.files.get_mut(&key) else { return Ok(None) };
        let Some(file) = &mut trace.file else {
            return Err(format!("it sent its trace of iteration {} twice", part.slot));
        };
        trace.bytes += bytes.len() as u64;
        let most = largest_trace(&part.tracer);
        if trace.bytes > most.0 {
            return Err(format!("its trace holds more than {most}"));
        }
        file.write_all(&bytes).map_err(cannot)?;
        if !part.last {
            return Ok(None);
        }
        trace.file = None;
        Ok(Some(trace.path.clone()))
    }
}

/// Takes control characters off the texts of a recording, and puts its times on this host's axis by `to_run_time`.
///
/// # Errors
/// The file is no recording; the reason is for people.
pub(crate) fn clean_io_recording(path: &Path, to_run_time: impl Fn(Nanos) -> Nanos) -> Result<(), String> {
    let text = std::fs::read(path).map_err(|error| format!("its trace cannot be read: {error}"))?;
    let mut recording: IoRecording =
        serde_json::from_slice(&text).map_err(|error| format!("its trace is no recording: {error}"))?;
    for event in &mut recording.events {
        event.at = to_run_time(event.at);
        event.name = event.name.as_deref().map(remove_control_characters);
    }
    for file in &mut recording.files {
        file.path = file.path.as_deref().map(remove_control_characters);
    }
    recording.summary.begun = to_run_time(recording.summary.begun);
    recording.summary.ended = to_run_time(recording.summary.ended);
    let summary = &mut recording.summary;
    let reasons = summary.unplaced.iter_mut().map(|device| &mut device.reason);
    for text in summary.missing.iter_mut().chain(summary.names.values_mut()).chain(reasons) {
        *text = remove_control_characters(text);
    }
    let write = || {
        let mut file = BufWriter::new(File::create(path)?);
        serde_json::to_writer(&mut file, &recording)?;
        file.flush()
    };
    write().map_err(|error: io::Error| format!("its trace cannot be kept: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part_of(bytes: &[u8], last: bool) -> TraceFilePart {
        TraceFilePart { slot: 3, tracer: "io".into(), bytes: BASE64.encode(bytes), last }
    }

    #[test]
    fn parts_make_the_file_and_each_file_comes_once() {
        let home = tempfile::tempdir().unwrap();
        let mut traces = IncomingTraces::default();
        let mut take =
            |target, part: &TraceFilePart| traces.take_part(target, part, || Ok(home.path().to_owned()));
        assert_eq!(take(0, &part_of(b"one", false)), Ok(None));
        assert_eq!(take(1, &part_of(b"other", false)), Ok(None));
        let whole = take(0, &part_of(b" two", true)).unwrap().unwrap();
        assert_eq!(std::fs::read(whole).unwrap(), b"one two");
        assert!(take(0, &part_of(b"three", true)).is_err(), "it was whole");
        assert!(take(2, &TraceFilePart { bytes: "~".into(), ..part_of(b"", true) }).is_err());
    }

    #[test]
    fn a_recording_that_would_fill_the_memory_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let mut traces = IncomingTraces::default();
        let mut take = || traces.take_part(0, &part_of(&[0; 1 << 20], false), || Ok(home.path().to_owned()));
        let most = largest_trace("io").0 >> 20;
        assert!((0..most).all(|_| take() == Ok(None)));
        assert!(take().is_err(), "more than {most} MiB");
    }

    #[test]
    fn texts_of_a_recording_carry_no_control_characters() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("trace");
        let mut recording = IoRecording::default();
        recording.summary.missing = vec!["a\u{1b}[31mb".into()];
        recording.summary.names.insert(7, "c\u{202e}d".into());
        std::fs::write(&path, serde_json::to_vec(&recording).unwrap()).unwrap();
        clean_io_recording(&path, |at| at).unwrap();
        let clean: IoRecording = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let texts = [clean.summary.missing, clean.summary.names.into_values().collect()].concat();
        assert_eq!(texts.len(), 2);
        assert!(texts.iter().all(|text| !text.contains(['\u{1b}', '\u{202e}'])), "{texts:?}");
    }

    #[test]
    fn what_is_no_recording_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("trace");
        std::fs::write(&path, b"{}").unwrap();
        assert!(clean_io_recording(&path, |at| at).is_err());
    }
}
