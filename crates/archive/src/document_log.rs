//! `facts/documents.jsonl.zst`: what machines said about themselves in documents, as the journal's own lines, compressed. A run
//! without any has no such file.

use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use perflab_model::{MachineDocument, RunEvent, RunEventKind};
use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;

use crate::checksums::open_verified;
use crate::error::ArchiveError;
use crate::fresh_file::create_fresh_file;
use crate::journal::{JournalReader, kind};
use crate::run_layout::{DOCUMENTS, FACTS};

/// A configuration of 280 KB takes 64 KB at this level; at 9 it takes 57 KB, and several times as long: a tenth of a short run.
const LEVEL: i32 = 3;

/// The file, from the first document on.
pub(crate) struct DocumentLogWriter {
    directory: PathBuf,
    encoder: Option<Encoder<'static, File>>,
}

impl DocumentLogWriter {
    pub(crate) fn new(directory: &Path) -> Self {
        DocumentLogWriter { directory: directory.into(), encoder: None }
    }

    fn path(&self) -> PathBuf {
        self.directory.join(DOCUMENTS)
    }

    /// Takes one line of the journal as it stands, without its end.
    pub(crate) fn push(&mut self, line: &[u8]) -> Result<(), ArchiveError> {
        let path = self.path();
        let encoder = match &mut self.encoder {
            Some(encoder) => encoder,
            none => {
                let folder = self.directory.join(FACTS);
                fs::create_dir_all(&folder).map_err(ArchiveError::io("create", &folder))?;
                let created = create_fresh_file(&path).and_then(|file| Encoder::new(file, LEVEL));
                none.insert(created.map_err(ArchiveError::io("create", &path))?)
            }
        };
        let written = encoder.write_all(line).and_then(|()| encoder.write_all(b"\n"));
        written.map_err(ArchiveError::io("write", &path))
    }

    pub(crate) fn close(self) -> Result<(), ArchiveError> {
        let path = self.path();
        let Some(encoder) = self.encoder else { return Ok(()) };
        encoder.finish().and_then(|file| file.sync_all()).map_err(ArchiveError::io("write", &path))
    }
}

/// The documents of a closed run.
pub(crate) fn read_documents(run: &Path) -> Result<Vec<MachineDocument>, ArchiveError> {
    let path = run.join(DOCUMENTS);
    if path.symlink_metadata().is_err() {
        return Ok(Vec::new());
    }
    let file = open_verified(run, Path::new(DOCUMENTS))?;
    let decoder = Decoder::new(file).map_err(ArchiveError::io("read", &path))?;
    list_documents(JournalReader::from_reader(&path, Box::new(BufReader::new(decoder))))
}

/// The documents in a journal or in the stored lines, in order.
pub(crate) fn list_documents(events: JournalReader) -> Result<Vec<MachineDocument>, ArchiveError> {
    let document = |event: Result<RunEvent, ArchiveError>| match event {
        Ok(RunEvent { target, what: RunEventKind::Document(document), .. }) => {
            Some(Ok(MachineDocument { target, document }))
        }
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    };
    events.select_kinds(&[kind::DOCUMENT]).filter_map(document).collect()
}
