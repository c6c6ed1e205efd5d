//! What an importer is: its name, how it recognises what it reads, and the events that it gives.

use std::path::{Path, PathBuf};

use perflab_model::io_trace::IoRecording;
use perflab_model::{Bytes, RunEvent};
use perflab_stacks::SymbolOptions;

use crate::error::ImportError;
use crate::import_report::FileReport;
use crate::input_folder::InputFolder;
use crate::input_path::InputPath;

/// Opens a path for its events.
pub(crate) type SourceOpener = fn(&Path, &ImportOptions) -> Result<Box<dyn ImportSource>, ImportError>;

/// A format that can be imported. Each stands in a file of its own and in the list of `registry.rs`.
#[derive(Debug)]
pub struct Importer {
    /// Its name on the command line and in facts.
    pub name: &'static str,
    /// What it reads, in a line of help.
    pub about: &'static str,
    /// Whether its files say what was set up anew for each repetition: a boot, a process.
    pub(crate) knows_boots: bool,
    /// How a path that it reads is told from others.
    pub(crate) recognises: Recognition,
    /// The events of a path. Files that cannot be read are errors, and so are those whose beginning is not what it should be.
    pub(crate) open: SourceOpener,
}

/// What tells whether a path is an importer's.
#[derive(Debug)]
pub(crate) enum Recognition {
    /// It reads files.
    File(fn(&InputPath) -> bool),
    /// It reads folders.
    Folder(fn(&InputFolder) -> bool),
}

impl Importer {
    /// Whether the path looks like what it reads.
    pub(crate) fn recognises(&self, input: &InputPath) -> bool {
        match (&self.recognises, input.folder()) {
            (Recognition::File(is_one), None) => is_one(input),
            (Recognition::Folder(is_one), Some(folder)) => {
                folder.begin_search();
                is_one(folder)
            }
            _ => false,
        }
    }

    pub(crate) fn reads_folders(&self) -> bool {
        matches!(self.recognises, Recognition::Folder(_))
    }
}

impl PartialEq for Importer {
    fn eq(&self, other: &Importer) -> bool {
        self.name == other.name
    }
}

impl Eq for Importer {}

/// What the user says about the files.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The run's label.
    pub label: Option<String>,
    /// The page size of the machine that was recorded; else what the files say.
    pub page_size: Option<Bytes>,
    /// What the path is (default: guessed).
    pub kind: Option<&'static Importer>,
    /// Take what a run of the same label was made of already.
    pub again: bool,
    /// The run's id.
    pub id: String,
    /// For profiles: which event, and where symbols are looked up.
    pub symbols: SymbolOptions,
    /// For block traces: where the file system that was traced can be asked about its files.
    pub on: Option<BlockTraceFileSystem>,
    /// For block traces: whose the blocks of that file system were, as another tool wrote it down then.
    pub block_map: Option<BlockMapFile>,
}

/// A file system that was traced, and who asks it: an import by itself looks at nothing but what it imports.
#[derive(Debug, Clone)]
pub struct BlockTraceFileSystem {
    /// where it is mounted
    pub mount_point: PathBuf,
    /// adds the files of that place to which the recording's sectors belong
    pub find: fn(&mut IoRecording, &Path),
}

/// A map, and what is known of the file system that it is of.
#[derive(Debug, Clone, Default)]
pub struct BlockMapFile {
    /// the map
    pub path: PathBuf,
    /// first sector (512 bytes) of the file system on the disk that requests name (default: found from the requests)
    pub partition_start: Option<u64>,
    /// bytes of a block of the file system (default: found from the requests)
    pub block_size: Option<Bytes>,
}

/// Somebody else's results as the events of a run, in order: `Began` first, `Ended` last.
///
/// Times count from the manifest's anchor, whose realtime is the first time that the files give.
pub trait ImportSource: Iterator<Item = Result<RunEvent, ImportError>> {
    /// What was taken of each file so far; complete once the events are over.
    fn file_reports(&self) -> Vec<FileReport>;
}

/// A source whose events are all there from the beginning.
#[derive(Debug)]
pub struct ImportedEvents {
    events: std::vec::IntoIter<RunEvent>,
    reports: Vec<FileReport>,
}

impl ImportedEvents {
    pub(crate) fn new(events: Vec<RunEvent>, reports: Vec<FileReport>) -> Self {
        ImportedEvents { events: events.into_iter(), reports }
    }
}

impl Iterator for ImportedEvents {
    type Item = Result<RunEvent, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.events.next().map(Ok)
    }
}

impl ImportSource for ImportedEvents {
    fn file_reports(&self) -> Vec<FileReport> {
        self.reports.clone()
    }
}
