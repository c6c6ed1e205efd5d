//! A place to import to, and copies of the recording to damage.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use perflab_archive::{Archive, RunDir, new_run_id};
use perflab_import::{FileReport, ImportError, ImportOptions, ImportSource as _, open_import};
use perflab_model::RunEventKind;
use perflab_model::run::RunWarning;
use tempfile::TempDir;

pub const MEMBERS: [&str; 8] =
    ["slabinfo.gz", "slabinfo_tool.gz", "orders", "job.yaml", "job", "meminfo.gz", "fsmark", "fsmark.time"];
pub const HEAD: &str = "slabinfo - version: 2.1\n# name <active_objs> <num_objs> <objsize>\n";
pub const ROW: &str = "dentry 10 42 192 21 1 : tunables 0 0 0 : slabdata 2 2 0\n";

/// A run that was made of other tools' files.
#[derive(Debug)]
pub struct ImportOutcome {
    pub run: RunDir,
    pub label: Option<String>,
    pub kind: &'static str,
    pub file_reports: Vec<FileReport>,
    pub warnings: Vec<RunWarning>,
}

/// Records what an importer gives, as `perflab import` does.
pub fn record_import(
    archive: &Archive,
    path: &Path,
    options: &ImportOptions,
) -> Result<ImportOutcome, ImportError> {
    let options = ImportOptions { id: new_run_id(), ..options.clone() };
    let (importer, mut source) = open_import(path, &options)?;
    let first = source.next().unwrap()?;
    let RunEventKind::Began(manifest) = &first.what else { panic!("{first:?}") };
    let mut recorder = archive.begin_bulk_run(manifest).unwrap();
    recorder.record(&first).unwrap();
    let mut warnings = Vec::new();
    for event in source.by_ref() {
        let event = event?;
        recorder.record(&event).unwrap();
        if let RunEventKind::Warning { message, advice } = event.what {
            warnings.push(RunWarning { message, advice });
        }
    }
    let (file_reports, label) = (source.file_reports(), manifest.label.clone());
    Ok(ImportOutcome { run: recorder.finish().unwrap(), label, kind: importer.name, file_reports, warnings })
}

/// An archive, and room for files beside it.
pub struct ImportTestArchive {
    directory: TempDir,
}

impl ImportTestArchive {
    pub fn new() -> Self {
        ImportTestArchive { directory: tempfile::tempdir().unwrap() }
    }

    pub fn archive(&self) -> Archive {
        Archive::open(&self.directory.path().join("archive")).unwrap()
    }

    pub fn write_file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub fn try_import(&self, path: &Path) -> Result<ImportOutcome, ImportError> {
        record_import(&self.archive(), path, &ImportOptions::default())
    }

    pub fn import(&self, path: &Path) -> ImportOutcome {
        self.try_import(path).unwrap()
    }

    /// The error, without the directory that changes; and that no run is left behind.
    pub fn refusal_of(&self, path: &Path) -> String {
        let error = self.try_import(path).unwrap_err().to_string();
        assert_eq!(self.archive().list_runs().unwrap(), []);
        error.replace(&format!("{}/", self.directory.path().display()), "")
    }

    /// A copy of these members of the recording.
    pub fn copy_members(&self, name: &str, members: &[&str]) -> PathBuf {
        let folder = self.directory.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        for member in members {
            fs::copy(recording_path().join(member), folder.join(member)).unwrap();
        }
        folder
    }
}

pub fn recording_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/lkp-fsmark")
}

/// The text of a file, unpacked where it is packed.
pub fn read_unpacked_text(path: &Path) -> String {
    let mut text = String::new();
    match path.extension().is_some_and(|extension| extension == "gz") {
        true => GzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text).unwrap(),
        false => File::open(path).unwrap().read_to_string(&mut text).unwrap(),
    };
    text
}

pub fn gzip_text(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

pub fn find_report<'a>(imported: &'a ImportOutcome, name: &str) -> &'a FileReport {
    imported.file_reports.iter().find(|took| took.file_name() == name).unwrap()
}

pub fn warning_messages(imported: &ImportOutcome) -> Vec<&str> {
    imported.warnings.iter().map(|warning| warning.message.as_str()).collect()
}

pub fn int_cells(run: &RunDir, monitor: &str, name: &str) -> Vec<Option<i64>> {
    run.read_series(monitor).unwrap().table.column::<i64>(name).unwrap().iter().collect()
}

pub fn text_cells(run: &RunDir, monitor: &str, name: &str) -> Vec<String> {
    let series = run.read_series(monitor).unwrap();
    let cells = series.table.column::<str>(name).unwrap();
    cells.iter().map(|cell| cell.unwrap_or_default().to_owned()).collect()
}
