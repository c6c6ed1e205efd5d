//! Folders of /proc and /sys as rows: whichever there are, read file by file.
//!
//! Folders come and go with their devices. They are listed again when one of them has gone, and every so many readings.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use perflab_formats::column::DiscoveredColumn;
use perflab_formats::kernel::KernelFileLayout;
use perflab_formats::kernel::kernel_folder::{
    FolderCells, FolderLayout, match_name, parse_discovered_cell, parse_folder_cell, parse_small_cell,
};
use perflab_model::column::stored_columns;
use perflab_model::{CellRow, ColumnSpec, DeclaredColumn, SeriesSchema, TableCell};

use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext};
use crate::monitor::text_file::read_again;
use crate::root::{Root, open_unblocked};

/// Readings after which folders are listed again: one that is new is seen this late.
const LISTED_EVERY: u32 = 16;

/// Rows of one reading at most: a tree that somebody copied may hold anything.
const MOST_ROWS: usize = 10_000;

/// Files that all monitors of folders together keep open; others are opened each time.
const MOST_KEPT: usize = 128;

static KEPT: AtomicUsize = AtomicUsize::new(0);

/// The columns of a reading, cells by cells.
#[derive(Debug, Default, Clone)]
struct FolderColumns {
    /// For each of the cells that are lines: what they were in the first reading.
    discovered: Vec<Vec<DiscoveredColumn>>,
}

/// The open folders.
pub(crate) struct FolderMonitor {
    root: Root,
    layout: FolderLayout,
    schema: SeriesSchema,
    columns: FolderColumns,
    rows: Vec<FolderRow>,
    until_listed: u32,
    buffer: Vec<u8>,
}

/// One folder, and what is read in it.
struct FolderRow {
    keys: Vec<String>,
    path: PathBuf,
    files: Vec<SmallFile>,
}

/// A file that is read again and again, kept open where there is room.
pub(crate) struct SmallFile {
    path: PathBuf,
    kept: Option<KeptFile>,
}

/// An open file that counts.
struct KeptFile(File);

impl KeptFile {
    fn keep(file: File) -> Result<KeptFile, File> {
        let has_room = |kept| (kept < MOST_KEPT).then_some(kept + 1);
        match KEPT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, has_room) {
            Ok(_) => Ok(KeptFile(file)),
            Err(_) => Err(file),
        }
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        KEPT.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SmallFile {
    /// Not opened yet.
    pub(crate) fn new(path: PathBuf) -> Self {
        SmallFile { path, kept: None }
    }

    /// The text as it is now.
    pub(crate) fn read<'b>(&mut self, buffer: &'b mut Vec<u8>) -> io::Result<&'b str> {
        let length = match &self.kept {
            Some(kept) => read_again(&kept.0, buffer),
            None => self.open_and_read(buffer),
        };
        let length = match length {
            // What the file stood for was removed; another may stand there by now.
            Err(_) if self.kept.take().is_some() => self.open_and_read(buffer)?,
            length => length?,
        };
        let bytes = buffer.get(..length).unwrap_or_default();
        std::str::from_utf8(bytes).map_err(|_| io::Error::from(ErrorKind::InvalidData))
    }

    fn open_and_read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let file = open_unblocked(&self.path)?;
        let length = read_again(&file, buffer)?;
        self.kept = KeptFile::keep(file).ok();
        Ok(length)
    }
}

impl FolderMonitor {
    /// Opens the folders that there are.
    ///
    /// # Errors
    /// There is none, or nothing in any of them can be read: then the first refusal.
    pub(crate) fn open(context: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
        let KernelFileLayout::Folders(layout) = context.file.layout else {
            let source = io::Error::from(ErrorKind::Unsupported);
            return Err(ObserveError::read_failed(context.file.source, source));
        };
        let mut monitor = FolderMonitor {
            root: context.root.clone(),
            layout,
            schema: context.schema_with_columns(Vec::new()),
            columns: FolderColumns::default(),
            rows: Vec::new(),
            until_listed: 0,
            buffer: vec![0; 4096],
        };
        let refused = monitor.list_folders().err();
        if monitor.rows.is_empty() {
            let source = refused.unwrap_or_else(|| rustix::io::Errno::NOENT.into());
            return Err(ObserveError::read_failed(context.file.source, source));
        }
        monitor.discover_columns();
        let mut first = Vec::new();
        let refused = monitor.read_all(&mut first);
        if let (true, Some(source)) = (first.is_empty(), refused) {
            return Err(ObserveError::read_failed(context.file.source, source));
        }
        Ok(Box::new(monitor))
    }

    /// Finds the folders that there are now, and keeps what is open of those that were there before.
    fn list_folders(&mut self) -> io::Result<()> {
        self.until_listed = LISTED_EVERY;
        let mut found: Vec<(Vec<String>, PathBuf)> = Vec::new();
        let mut refused = None;
        for pattern in self.layout.folders {
            let listed = list_matching(&self.root.path("/"), pattern, &mut found);
            refused = refused.or(listed.err());
        }
        let mut before = std::mem::take(&mut self.rows);
        for (keys, path) in found {
            let known = before.iter().position(|row| row.path == path).map(|index| before.swap_remove(index));
            let row = known.unwrap_or_else(|| FolderRow { files: self.small_files(&path), keys, path });
            self.rows.push(row);
        }
        refused.map_or(Ok(()), Err)
    }

    fn small_files(&self, folder: &Path) -> Vec<SmallFile> {
        let open = SmallFile::new;
        let files = self.layout.cells.iter().flat_map(|cells| match cells {
            FolderCells::Files { below, columns } => {
                columns.iter().map(|column| open(folder.join(format!("{below}{}", column.name)))).collect()
            }
            FolderCells::Words { .. } | FolderCells::NamedWords { .. } | FolderCells::Lines { .. } => {
                vec![open(folder.join(cells.file().unwrap_or_default()))]
            }
        });
        files.collect()
    }

    /// The columns: keys, what is declared, and the names of the first reading.
    fn discover_columns(&mut self) {
        let keys = self.layout.keys.iter().map(|key| ColumnSpec::key(key));
        let mut columns: Vec<ColumnSpec> = keys.collect();
        for cells in self.layout.cells {
            match cells {
                FolderCells::Files { columns: declared, .. }
                | FolderCells::Words { columns: declared, .. } => {
                    columns.extend(stored_columns(declared));
                }
                FolderCells::NamedWords { lines, .. } => {
                    lines.iter().for_each(|(_, declared)| columns.extend(stored_columns(declared)));
                }
                FolderCells::Lines { file, split, discover } => {
                    let mut found: Vec<DiscoveredColumn> = Vec::new();
                    for row in &self.rows {
                        let text = fs::read_to_string(row.path.join(file)).unwrap_or_default();
                        for (name, rest) in text.lines().filter_map(split) {
                            let is_number =
                                rest.starts_with(|first: char| first.is_ascii_digit() || first == '-');
                            let is_known = |known: &DiscoveredColumn| known.column.name == name;
                            let is_taken = columns.iter().any(|column| column.name == name);
                            if is_number && !is_taken && found.len() < 2000 && !found.iter().any(is_known) {
                                found.push(discover(name, rest));
                            }
                        }
                    }
                    columns.extend(found.iter().map(|found| found.column.clone()));
                    self.columns.discovered.push(found);
                }
            }
        }
        self.schema.columns = columns;
    }

    /// Appends the rows of the folders that are there; returns the first refusal.
    fn read_all(&mut self, rows: &mut Vec<CellRow>) -> Option<io::Error> {
        let mut refused = None;
        let width = self.schema.columns.len();
        for folder in &mut self.rows {
            let mut row = CellRow::with_capacity(width);
            row.extend(folder.keys.iter().map(|key| TableCell::Text(key.clone())));
            let mut is_there = false;
            let mut files = folder.files.iter_mut();
            let mut discovered = self.columns.discovered.iter();
            for cells in self.layout.cells {
                let mut read =
                    |file: Option<&mut SmallFile>, row: &mut CellRow, parse: &mut TextParser<'_>| {
                        let text = file.map_or(Ok(""), |file| file.read(&mut self.buffer));
                        match text {
                            Ok(text) => {
                                is_there = true;
                                parse(text, row);
                            }
                            Err(error) => {
                                refused.get_or_insert(error);
                                parse("", row);
                            }
                        }
                    };
                match cells {
                    FolderCells::Files { columns, .. } => columns.iter().for_each(|column| {
                        read(files.next(), &mut row, &mut |text, row| row.push(small_cell(column, text)));
                    }),
                    FolderCells::Words { columns, .. } => {
                        read(files.next(), &mut row, &mut |text, row| push_words(columns, text, row));
                    }
                    FolderCells::NamedWords { lines, .. } => {
                        read(files.next(), &mut row, &mut |text, row| push_named_words(lines, text, row));
                    }
                    FolderCells::Lines { split, .. } => {
                        let columns = discovered.next().map_or(&[][..], Vec::as_slice);
                        read(files.next(), &mut row, &mut |text, row| push_lines(columns, *split, text, row));
                    }
                }
            }
            if is_there {
                rows.push(row);
            }
        }
        refused
    }
}

/// Appends the cells of a text.
type TextParser<'a> = dyn FnMut(&str, &mut CellRow) + 'a;

fn small_cell(column: &DeclaredColumn, text: &str) -> TableCell {
    if text.is_empty() { TableCell::Missing } else { parse_small_cell(column, text) }
}

fn push_words(columns: &[DeclaredColumn], text: &str, row: &mut CellRow) {
    let mut words = text.split_ascii_whitespace();
    row.extend(
        columns
            .iter()
            .map(|column| words.next().map_or(TableCell::Missing, |word| parse_folder_cell(column, word))),
    );
}

fn push_named_words(lines: &[(&str, &[DeclaredColumn])], text: &str, row: &mut CellRow) {
    for (name, columns) in lines {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        push_words(columns, line.unwrap_or_default(), row);
    }
}

/// Lines stand where they stood in the first reading, nearly always.
fn push_lines(
    columns: &[DiscoveredColumn],
    split: fn(&str) -> Option<(&str, &str)>,
    text: &str,
    row: &mut CellRow,
) {
    let begin = row.len();
    row.resize(begin + columns.len(), TableCell::Missing);
    let mut expected = 0;
    for (name, rest) in text.lines().filter_map(split) {
        let is_of = |column: &DiscoveredColumn| column.column.name == name;
        let at = if columns.get(expected).is_some_and(is_of) {
            expected
        } else {
            let Some(at) = columns.iter().position(is_of) else { continue };
            at
        };
        expected = at + 1;
        if let (Some(column), Some(cell)) = (columns.get(at), row.get_mut(begin + at)) {
            *cell = parse_discovered_cell(column, rest);
        }
    }
}

impl Monitor for FolderMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        self.until_listed = self.until_listed.saturating_sub(1);
        if self.until_listed == 0 {
            // Where it cannot be listed any more nothing is there, which rows tell.
            self.list_folders().ok();
        }
        let before = rows.len();
        self.read_all(rows);
        if rows.len() - before < self.rows.len() {
            self.until_listed = 0;
        }
        Ok(())
    }
}

/// Appends the folders below `root` that a pattern stands for, sorted, each with what its `*` stand for.
fn list_matching(root: &Path, pattern: &str, found: &mut Vec<(Vec<String>, PathBuf)>) -> io::Result<()> {
    let mut paths: Vec<(Vec<String>, PathBuf)> = vec![(Vec::new(), root.to_owned())];
    let mut refused = None;
    for part in pattern.trim_start_matches('/').split('/') {
        let mut next = Vec::new();
        for (keys, path) in paths {
            if !part.contains('*') {
                next.push((keys, path.join(part)));
                continue;
            }
            let entries = match fs::read_dir(&path) {
                Ok(entries) => entries,
                Err(error) => {
                    refused.get_or_insert(error);
                    continue;
                }
            };
            let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
            let mut names: Vec<String> = names.filter(|name| match_name(part, name).is_some()).collect();
            names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
            next.extend(names.iter().take(MOST_ROWS).map(|name| {
                let key = match_name(part, name).unwrap_or_default().to_owned();
                (keys.iter().cloned().chain([key]).collect(), path.join(name))
            }));
        }
        paths = next;
    }
    for (keys, path) in paths {
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => found.push((keys, path)),
            Ok(_) => {}
            Err(error) => drop(refused.get_or_insert(error)),
        }
    }
    found.truncate(MOST_ROWS);
    match refused {
        Some(error) if found.is_empty() => Err(error),
        _ => Ok(()),
    }
}
