//! `logs/outputs.jsonl.zst`: everything that commands printed, as the journal's own lines, compressed.
//! One file, because thirty thousand iterations would be sixty thousand small ones.

use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::Path;

use perflab_model::RunEventKind;
use zstd::stream::{read::Decoder, write::Encoder};

use crate::ArchiveError;
use crate::checksums::open_verified;
use crate::events::{JournalReader, kind};
use crate::fresh_file::create_fresh_file;
use crate::layout::{LOGS, OUTPUTS};

const LEVEL: i32 = 3;

/// The file being written.
pub(crate) struct OutputLogWriter<'a> {
    path: std::path::PathBuf,
    encoder: Encoder<'a, File>,
}

impl OutputLogWriter<'_> {
    pub(crate) fn create(directory: &Path) -> Result<Self, ArchiveError> {
        let path = directory.join(OUTPUTS);
        fs::create_dir_all(directory.join(LOGS)).map_err(ArchiveError::io("create", &path))?;
        let encoder = create_fresh_file(&path).and_then(|file| Encoder::new(file, LEVEL));
        let encoder = encoder.map_err(ArchiveError::io("create", &path))?;
        Ok(OutputLogWriter { path, encoder })
    }

    /// Takes one line of the journal as it stands, without its end.
    pub(crate) fn push(&mut self, line: &[u8]) -> Result<(), ArchiveError> {
        let written = self.encoder.write_all(line).and_then(|()| self.encoder.write_all(b"\n"));
        written.map_err(ArchiveError::io("write", &self.path))
    }

    pub(crate) fn close(self) -> Result<(), ArchiveError> {
        let finished = self.encoder.finish().and_then(|file| file.sync_all());
        finished.map_err(ArchiveError::io("write", &self.path))
    }
}

/// The stored lines of a finished run.
pub(crate) fn open_output_log(run: &Path) -> Result<JournalReader, ArchiveError> {
    let path = run.join(OUTPUTS);
    let file = open_verified(run, Path::new(OUTPUTS))?;
    let decoder = Decoder::new(file).map_err(ArchiveError::io("read", &path))?;
    Ok(JournalReader::from_reader(&path, Box::new(BufReader::new(decoder))))
}

/// All that `name` printed in `slot`, from a journal or from the stored lines; `None` where nothing was.
pub(crate) fn find_output(
    events: JournalReader,
    slot: Option<u32>,
    name: &str,
) -> Result<Option<String>, ArchiveError> {
    let mut found: Option<String> = None;
    for event in events.select_kinds(&[kind::OUTPUT]) {
        if let RunEventKind::Output { slot: of, name: by, text } = event?.what
            && of == slot
            && by == name
        {
            found.get_or_insert_default().push_str(&text);
        }
    }
    Ok(found)
}
