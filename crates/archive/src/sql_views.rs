//! The tables of many runs as views for DuckDB: `samples`, `iterations`, `facts`, `series.MONITOR`, `edges.MONITOR`,
//! `events.TRACER`, `stacks.samples`, `stacks.tree` and `stacks.frames`, each with the run's id in its first column, and the
//! table `runs`.
//!
//! Only text is made here: the statements name the files as they lie in the archive, and nothing is copied.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use jiff::tz::TimeZone;
use perflab_model::RunStatus;
use rayon::prelude::*;

use crate::archive_dir::ArchiveEntry;
use crate::checksums::open_verified;
use crate::error::ArchiveError;
use crate::run_layout::{
    EDGES, EVENTS, FACTS_FILE, FRAMES, ITERATIONS, RUNS, SAMPLES, SERIES, STACKS, TREE, list_table_names,
};

/// Statements that make a table of runs and a view of each kind of table that they have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlViews {
    /// SQL of DuckDB, a statement a line.
    pub statements: String,
    /// Runs of which a table is not in a view, each with the reason: it is damaged, or not made yet.
    pub left_out: Vec<(String, String)>,
}

/// Folders of tables that monitors and tracers name; each is a schema of views.
const FOLDERS: [&str; 3] = [SERIES, EDGES, EVENTS];

impl SqlViews {
    /// Those of `runs` of the archive at `archive`. A damaged run has no part in them, and none of a run's tables that is not as it
    /// was written; a run that did not end has no tables. Where a question is given, only views whose names stand in it: to make
    /// one, DuckDB opens all its files.
    ///
    /// # Errors
    /// The archive's path is not UTF-8, which SQL is.
    pub fn new(archive: &Path, runs: &[ArchiveEntry], question: Option<&str>) -> Result<Self, ArchiveError> {
        let root = std::path::absolute(archive.join(RUNS)).map_err(ArchiveError::io("read", archive))?;
        let root = root.to_str().ok_or_else(|| {
            let unreadable = std::io::Error::new(std::io::ErrorKind::InvalidInput, "its path is not UTF-8");
            ArchiveError::io("read", archive)(unreadable)
        })?;
        let readable: Vec<&ArchiveEntry> = runs.iter().filter(|run| run.summary.is_ok()).collect();
        let question = question.map(str::to_lowercase);
        let mut files = TableFiles { root: root.to_owned(), question, views: BTreeMap::new() };
        for run in &readable {
            files.add_run(&run.id);
        }
        let mut statements = runs_table(&readable);
        for folder in FOLDERS.into_iter().chain([STACKS]) {
            let _ = writeln!(statements, "CREATE SCHEMA {folder};");
        }
        let mut left_out: Vec<(String, String)> = runs.iter().filter_map(describe_left_out).collect();
        left_out.extend(files.remove_damaged());
        for (view, table) in &files.views {
            statements.push_str(&table.create_view(root, view));
        }
        Ok(SqlViews { statements, left_out })
    }
}

/// Why a run has no tables, where it has none.
fn describe_left_out(run: &ArchiveEntry) -> Option<(String, String)> {
    let reason = match &run.summary {
        Err(reason) => format!("it is damaged: {reason}"),
        Ok(summary) if summary.status == RunStatus::Running => {
            "it is being recorded: its tables are made when it ends".to_owned()
        }
        Ok(summary) if matches!(summary.status, RunStatus::Interrupted | RunStatus::DiskFull) => {
            format!("it is {}, so that its tables were never made", summary.status)
        }
        Ok(_) => return None,
    };
    Some((run.id.clone(), reason))
}

/// The files behind each view, by its name in SQL.
struct TableFiles {
    /// The folder of the runs.
    root: String,
    /// The question, in small letters; without one, all views are wanted.
    question: Option<String>,
    views: BTreeMap<String, ViewedTable>,
}

/// The files of one view.
struct ViewedTable {
    kind: TableKind,
    files: Vec<RunTableFile>,
}

/// A table of a run.
struct RunTableFile {
    run: String,
    /// Its name in the run's folder.
    name: String,
}

#[derive(Clone, Copy)]
enum TableKind {
    /// a table of Parquet
    Parquet,
    /// one of them, in a file for each case
    ParquetOfCases,
    /// an object of JSON: a key, with its value and source
    Facts,
}

impl TableFiles {
    fn add_run(&mut self, run: &str) {
        let folder = format!("{}/{run}", self.root);
        let tables = [("samples", SAMPLES), ("iterations", ITERATIONS)];
        for (name, file) in tables {
            self.add_file(run, (name, name), TableKind::Parquet, file.to_owned());
        }
        self.add_file(run, ("facts", "facts"), TableKind::Facts, FACTS_FILE.to_owned());
        if self.asks_for(STACKS) {
            for (view, name, file) in [("stacks.tree", "tree", TREE), ("stacks.frames", "frames", FRAMES)] {
                self.add_file(run, (view, name), TableKind::Parquet, file.to_owned());
            }
            let names = list_table_names(Path::new(&folder), STACKS);
            for case in names.iter().filter(|name| name.parse::<u32>().is_ok()) {
                let file = format!("{STACKS}/{case}.parquet");
                self.add_file(run, ("stacks.samples", "samples"), TableKind::ParquetOfCases, file);
            }
        }
        for schema in FOLDERS {
            if !self.asks_for(schema) {
                continue;
            }
            for name in list_table_names(Path::new(&folder), schema) {
                let view = format!("{schema}.{}", quote_name(&name));
                let file = format!("{schema}/{name}.parquet");
                self.add_file(run, (&view, &name), TableKind::Parquet, file);
            }
        }
    }

    /// Whether a name stands in the question.
    fn asks_for(&self, name: &str) -> bool {
        self.question.as_ref().is_none_or(|question| question.contains(&name.to_lowercase()))
    }

    /// Adds a run's file to a view that is asked for by its name, where it is there.
    fn add_file(&mut self, run: &str, (view, name): (&str, &str), kind: TableKind, file: String) {
        let file = RunTableFile { run: run.to_owned(), name: file };
        if self.asks_for(name) && Path::new(&file.path(&self.root)).is_file() {
            let new = || ViewedTable { kind, files: Vec::new() };
            self.views.entry(view.to_owned()).or_insert_with(new).files.push(file);
        }
    }

    /// Takes out the files that are not as they were written; gives each one's run, and what is wrong with it. A view without files
    /// is none.
    fn remove_damaged(&mut self) -> Vec<(String, String)> {
        let root = Path::new(&self.root);
        let find_damage =
            |file: &RunTableFile| open_verified(&root.join(&file.run), Path::new(&file.name)).err();
        let mut damaged = Vec::new();
        for table in self.views.values_mut() {
            let found: Vec<Option<ArchiveError>> = table.files.par_iter().map(find_damage).collect();
            for (file, error) in std::mem::take(&mut table.files).into_iter().zip(found) {
                match error {
                    None => table.files.push(file),
                    Some(error) => damaged.push((file.run, error.to_string())),
                }
            }
        }
        self.views.retain(|_, table| !table.files.is_empty());
        damaged
    }
}

impl RunTableFile {
    fn path(&self, root: &str) -> String {
        format!("{root}/{}/{}", self.run, self.name)
    }
}

impl ViewedTable {
    fn create_view(&self, root: &str, view: &str) -> String {
        let files: Vec<String> = self.files.iter().map(|file| quote_text(&file.path(root))).collect();
        let files = files.join(", ");
        // The last folder of that name: an archive may lie below another one.
        let run = format!("regexp_extract(filename, '.*/{RUNS}/([^/]+)/', 1) AS run");
        let parquet = format!("read_parquet([{files}], filename = true, union_by_name = true)");
        match self.kind {
            TableKind::Parquet => {
                format!("CREATE VIEW {view} AS SELECT {run}, * EXCLUDE (filename) FROM {parquet};\n")
            }
            TableKind::ParquetOfCases => format!(
                "CREATE VIEW {view} AS SELECT {run}, CAST(regexp_extract(filename, '([0-9]+).parquet$', 1) AS INTEGER) \
                 AS \"case\", * EXCLUDE (filename) FROM {parquet};\n"
            ),
            TableKind::Facts => format!(
                "CREATE VIEW {view} AS SELECT {run}, key, value->>'value' AS value, value->>'source' AS source FROM \
                 (SELECT filename, unnest(map_entries(CAST(CAST(content AS JSON) AS MAP(VARCHAR, JSON))), \
                 recursive := true) FROM read_text([{files}]));\n"
            ),
        }
    }
}

/// A row a run: what `perflab list` shows.
fn runs_table(runs: &[&ArchiveEntry]) -> String {
    let mut table = String::from(
        "CREATE TABLE runs (run VARCHAR, label VARCHAR, study VARCHAR, study_file VARCHAR, status VARCHAR, \
         begun TIMESTAMP, iterations BIGINT, planned BIGINT, bytes BIGINT, continues VARCHAR);\n",
    );
    for some in runs.chunks(1000) {
        let rows: Vec<String> = some.iter().filter_map(|run| run_row(run)).collect();
        if !rows.is_empty() {
            let _ = writeln!(table, "INSERT INTO runs VALUES {};", rows.join(", "));
        }
    }
    table
}

fn run_row(run: &ArchiveEntry) -> Option<String> {
    let summary = run.summary.as_ref().ok()?;
    let text_or_null = |text: &Option<String>| text.as_deref().map_or_else(|| "NULL".into(), quote_text);
    let (label, continues) = (text_or_null(&summary.label), text_or_null(&summary.continues));
    Some(format!(
        "({}, {label}, {}, {}, '{}', '{}', {}, {}, {}, {continues})",
        quote_text(&run.id),
        quote_text(&summary.title),
        quote_text(&summary.study_file),
        summary.status,
        TimeZone::UTC.to_datetime(summary.begun),
        summary.iterations,
        summary.planned,
        run.bytes,
    ))
}

/// A text as SQL writes it.
fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A name as SQL writes it, whatever is in it.
fn quote_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
