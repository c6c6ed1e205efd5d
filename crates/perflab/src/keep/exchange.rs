//! Runs in and out: `perflab import` from files of perflab or of any other tool, `perflab export` as a portable file or
//! in another tool's format.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use indexmap::IndexMap;
use perflab_analyze::command_times;
use perflab_archive::export::{Exporter, export_schema, write_export};
use perflab_archive::run_id::shortest_prefixes;
use perflab_archive::{
    Archive, RunDir, import_portable_run, is_portable_run, write_portable_file, write_portable_run,
};
use perflab_import::{FileReport, IMPORTERS, ImportOptions, Importer, find_importer, list_importable};
use perflab_model::Bytes;
use perflab_present::command_times::hyperfine_document;
use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};
use perflab_stacks::SymbolOptions;
use perflab_stats::median_with_interval;

use crate::app::App;
use crate::failure::{Exit, Failure, UsageError};
use crate::instruments::trace_summary::note_trace_summaries;
use crate::keep::imported_runs::{ImportOutcome, LISTED, record_imports, warn_of_import};
use crate::keep::perfetto_export::write_perfetto_trace;
use crate::output_path::OutputPath;
use crate::selection;
use crate::verb::Verb;

/// What lies at a path that is to be imported.
enum PathContent {
    /// a run of perflab's own
    Portable(PathBuf),
    /// results of other tools, each with its importer
    Results(Vec<(&'static Importer, PathBuf)>),
}

/// `perflab import PATH...`
pub fn import_named_paths(context: &App, args: &ImportArgs) -> Result<Exit, Failure> {
    let page_size = args.page_size.as_deref().map(Bytes::parse).transpose();
    let page_size =
        page_size.map_err(|error| UsageError::new(format!("--page-size: {error}"), "for example 64KiB"))?;
    let anchors = perflab_analyze::flame::category_rules::shipped_anchors();
    let options = ImportOptions {
        label: args.label.clone(),
        page_size,
        again: args.again,
        symbols: SymbolOptions { anchors, ..SymbolOptions::default() },
        ..ImportOptions::default()
    };
    let paths = distinct_paths(context, args);
    import_contents(context, paths.iter().map(|path| look_at_path(path, args.kind)).collect(), &options)
}

/// The paths, each once: a result that is named twice would count twice.
fn distinct_paths(context: &App, args: &ImportArgs) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    let is_new = |path: &&PathBuf| {
        let place = std::fs::canonicalize(path).unwrap_or_else(|_| (*path).clone());
        let is_new = args.again || seen.insert(place);
        if !is_new {
            context.note_line(&format!("{} is named twice, and imported once", path.display()));
        }
        is_new
    };
    args.paths.iter().filter(is_new).cloned().collect()
}

/// What a path is.
fn look_at_path(path: &Path, kind: Option<&'static Importer>) -> Result<PathContent, Failure> {
    refuse_endless(path)?;
    match kind {
        Some(kind) => Ok(PathContent::Results(vec![(kind, path.into())])),
        None if is_portable_run(path) => Ok(PathContent::Portable(path.into())),
        None => Ok(PathContent::Results(list_importable(path)?)),
    }
}

/// Refuses what may be waited for, or read, for ever. A path that is not there is reported by whoever opens it.
pub fn refuse_endless(path: &Path) -> Result<(), UsageError> {
    perflab_files::refuse_endless(path).map_err(|error| {
        let what = format!("{}: {error}", path.display());
        UsageError::new(what, "write what it gives to a file, and import that")
    })
}

/// Makes a run of each result, and says what was taken of them.
pub fn import_results(
    context: &App,
    results: Vec<(&'static Importer, PathBuf)>,
    options: &ImportOptions,
) -> Result<Exit, Failure> {
    import_contents(context, vec![Ok(PathContent::Results(results))], options)
}

/// Makes the runs of each path, and says what was taken of them. What can be read is in the archive; each path that cannot is
/// told with the reason, and the worst of the reasons is the exit code.
fn import_contents(
    context: &App,
    contents: Vec<Result<PathContent, Failure>>,
    options: &ImportOptions,
) -> Result<Exit, Failure> {
    let results = contents.iter().flat_map(|content| match content {
        Ok(PathContent::Results(results)) => results.as_slice(),
        _ => &[],
    });
    let results: Vec<(&'static Importer, PathBuf)> = results.cloned().collect();
    let archive = context.archive()?;
    if !results.is_empty() {
        archive.ensure_writable()?;
        crate::measure::run::undo_leftovers(context);
    }
    let is_one = contents.len() == 1 && results.len() < 2;
    let mut recorded = record_imports(context, &archive, &results, options).into_iter();
    let (mut all, mut refused) = (Vec::new(), Vec::new());
    let mut take = |outcome: Result<ImportOutcome, Failure>| match outcome {
        Ok(outcome) => all.push(outcome),
        Err(error) => refused.push(error),
    };
    for content in contents {
        match content {
            Ok(PathContent::Results(results)) => recorded.by_ref().take(results.len()).for_each(&mut take),
            Ok(PathContent::Portable(file)) => take(import_portable(&archive, &file, options)),
            Err(error) => take(Err(error)),
        }
    }
    print_imports(context, &all, is_one)?;
    if refused.len() < 2 {
        return refused.pop().map_or(Ok(Exit::Fine), Err);
    }
    refused.iter().for_each(Failure::print);
    let exits = refused.iter().map(Failure::exit);
    Ok(exits.max_by_key(|exit| exit.code()).unwrap_or(Exit::Fine))
}

/// Takes a run that `perflab export` wrote.
fn import_portable(
    archive: &Archive,
    file: &Path,
    options: &ImportOptions,
) -> Result<ImportOutcome, Failure> {
    let run = import_portable_run(archive, file)?;
    if let Some(label) = &options.label {
        archive.set_label(run.id(), Some(label))?;
    }
    Ok(ImportOutcome {
        label: run.manifest()?.label,
        run,
        path: file.into(),
        kind: "perflab",
        file_reports: Vec::new(),
        warnings: Vec::new(),
    })
}

/// Says what was taken of the files, and which runs they became.
fn print_imports(context: &App, all: &[ImportOutcome], is_one: bool) -> Result<(), Failure> {
    all.iter().for_each(warn_of_import);
    if let ([ImportOutcome { run, kind: "perflab", .. }], true) = (all, is_one) {
        return context.print_value("run", run.id());
    }
    if context.quiet {
        // What a script goes on with.
        let ids: Vec<&str> = all.iter().map(|imported| imported.run.id()).collect();
        return match context.format {
            OutputFormat::Json => context.print_json(&ids),
            _ => ids.iter().try_for_each(|id| context.print_text(id)),
        };
    }
    match all {
        [] => {}
        [imported] if is_one => print_one_import(context, imported)?,
        _ => context.print_grid(&imports_grid(all))?,
    }
    let traced = all.iter().filter(|imported| imported.kind == "optrace");
    traced.into_iter().try_for_each(|imported| note_trace_summaries(context, &imported.run))
}

/// What was taken of each file of a run.
fn print_one_import(context: &App, imported: &ImportOutcome) -> Result<(), Failure> {
    context.print_grid(&files_grid(&imported.file_reports))?;
    let label = imported.label.as_deref().map_or(String::new(), |label| format!(", labelled {label}"));
    context.note_line(&format!("run: {}{label} (taken for {})", imported.run.short_id(), imported.kind));
    Ok(())
}

/// What became of each path: a row a run.
fn imports_grid(all: &[ImportOutcome]) -> Grid {
    let texts = ["path", "taken for", "run", "label"].map(GridColumn::left);
    let numbers = ["files", "rows read", "used", "flagged", "unusable"].map(GridColumn::right);
    let mut grid = Grid::new(texts.into_iter().chain(numbers));
    // Runs of one import share their time, with which their ids begin.
    let mut ids: Vec<String> = all.iter().map(|imported| imported.run.id().to_owned()).collect();
    ids.sort_unstable();
    let short: HashMap<String, String> = ids.iter().cloned().zip(shortest_prefixes(&ids)).collect();
    for imported in all {
        let reports = &imported.file_reports;
        let sum = |of: fn(&FileReport) -> u64| GridCell::from(reports.iter().map(of).sum::<u64>());
        let label = imported.label.as_deref().unwrap_or("");
        let path = imported.path.display().to_string();
        grid.add_row(vec![
            path.as_str().into(),
            imported.kind.into(),
            short.get(imported.run.id()).map_or(imported.run.id(), String::as_str).into(),
            label.into(),
            GridCell::from(reports.len() as u64),
            sum(|report| report.rows_read),
            sum(|report| report.rows_used),
            sum(|report| report.rows_flagged),
            sum(|report| report.rows_unusable),
        ]);
    }
    grid
}

/// What was taken of each file, or where they are many, of each folder.
fn files_grid(took: &[FileReport]) -> Grid {
    let numbers = ["ticks", "rows read", "used", "flagged", "unusable"].map(GridColumn::right);
    let mut grid = Grid::new(["file", "became"].map(GridColumn::left).into_iter().chain(numbers));
    let rows = if took.len() > LISTED { folder_rows(took) } else { file_rows(took) };
    for (name, became, counts) in rows {
        grid.add_row(import_cells(&name, became, counts));
    }
    grid
}

/// Ticks, rows read, used, flagged, unusable.
type ImportCounts = [u64; 5];

fn import_counts(took: &FileReport) -> ImportCounts {
    [took.ticks, took.rows_read, took.rows_used, took.rows_flagged, took.rows_unusable]
}

fn import_cells(name: &str, became: &str, counts: ImportCounts) -> Vec<GridCell> {
    [GridCell::from(name), became.into()].into_iter().chain(counts.map(GridCell::from)).collect()
}

/// A row of the table: what, what it became, its counts.
type ImportGridRow = (String, &'static str, ImportCounts);

fn file_rows(took: &[FileReport]) -> Vec<ImportGridRow> {
    took.iter().map(|took| (took.file_name(), took.became, import_counts(took))).collect()
}

/// The counts of each folder's files that became the same.
fn folder_rows(took: &[FileReport]) -> Vec<ImportGridRow> {
    let mut sums: IndexMap<(&Path, &'static str), (u64, ImportCounts)> = IndexMap::new();
    for took in took {
        let folder = took.file.parent().unwrap_or(&took.file);
        let (files, sum) = sums.entry((folder, took.became)).or_default();
        *files += 1;
        sum.iter_mut().zip(import_counts(took)).for_each(|(sum, more)| *sum += more);
    }
    let named = |((folder, became), (files, sum)): ((&Path, _), (u64, ImportCounts))| {
        let parts: Vec<_> = folder.iter().rev().take(3).map(|part| part.to_string_lossy()).collect();
        let name = parts.into_iter().rev().collect::<Vec<_>>().join("/");
        (format!("{name} ({files} files)"), became, sum)
    };
    sums.into_iter().map(named).collect()
}

/// Confidence of the intervals of medians.
const CONFIDENCE: f64 = 0.95;

/// `perflab export RUN [FILE] [--to FORMAT]`
pub fn export_stored_run(context: &App, args: &ExportArgs) -> Result<Exit, Failure> {
    if args.schema {
        context.print_text(&serde_json::to_string_pretty(&export_schema())?)?;
        return Ok(Exit::Fine);
    }
    let archive = context.archive()?;
    let file = args.file.as_ref().or(args.output.as_ref());
    match &args.to {
        None => export_as_portable(context, &select_part(context, &archive, &args.run)?, file),
        Some(format) => {
            let format =
                format.parse().map_err(|error: String| UsageError::new(error, "say one of these"))?;
            export_for_tool(context, &archive, args, (format, file.unwrap_or(&OutputPath::Stdout)))?;
            Ok(Exit::Fine)
        }
    }
}

/// The samples of a whole run, or what was recorded of a part of it, as the format has it.
fn export_for_tool(
    context: &App,
    archive: &Archive,
    args: &ExportArgs,
    (format, file): (Exporter, &OutputPath),
) -> Result<(), Failure> {
    match format {
        Exporter::Parquet => {
            file.refuse_terminal("a table of Parquet")?;
            let samples = select_part(context, archive, &args.run)?.samples_path()?;
            file.write_new(|out| Ok(io::copy(&mut File::open(samples)?, out).map(drop)?))
        }
        Exporter::Perfetto => {
            file.refuse_terminal("a trace")?;
            let run = select_part(context, archive, &args.run)?;
            file.write_new(|out| write_perfetto_trace(&run, out))
        }
        Exporter::Hyperfine => {
            let (run, record) = selection::select_whole_run(archive, &args.run)?;
            let times = command_times(&record);
            if times.iter().all(|one| one.times.is_empty()) {
                let message = format!(
                    "run {} has no times of commands, which hyperfine's format is of",
                    run.short_id()
                );
                return Err(UsageError::new(message, "`--to csv` and `--to json` have every metric").into());
            }
            let document = serde_json::to_string_pretty(&hyperfine_document(&times))?;
            file.write_new(|out| Ok(writeln!(out, "{document}")?))
        }
        _ => {
            let (_, record) = selection::select_whole_run(archive, &args.run)?;
            file.write_new(|mut out| Ok(write_export(&record, &median_interval, format, &mut out)?))
        }
    }
}

/// One run for a format that holds a run as it was recorded; says so where it is a part of one that was gone on with.
fn select_part(context: &App, archive: &Archive, selector: &str) -> Result<RunDir, Failure> {
    let run = selection::select_run(archive, selector)?;
    let parts = selection::find_all_parts(archive, &run);
    let others: Vec<&str> = parts.iter().filter(|part| part.id() != run.id()).map(RunDir::short_id).collect();
    if !others.is_empty() {
        context.note(format!(
            "run {} is a part of a run that was gone on with; this format takes one part: export {}, too",
            run.short_id(),
            others.join(" and ")
        ));
    }
    Ok(run)
}

fn export_as_portable(context: &App, run: &RunDir, file: Option<&OutputPath>) -> Result<Exit, Failure> {
    let file = match file {
        Some(OutputPath::Stdout) => {
            OutputPath::Stdout.refuse_terminal("a portable file")?;
            OutputPath::Stdout.write_new(|out| Ok(write_portable_run(run, out)?))?;
            return Ok(Exit::Fine);
        }
        Some(OutputPath::File(file)) => file.clone(),
        None => PathBuf::from(format!("{}.perflab", run.id())),
    };
    write_portable_file(run, &file)?;
    context.print_value("file", &file.display().to_string())?;
    Ok(Exit::Fine)
}

/// The interval of a median, where there are values enough.
fn median_interval(values: &[f64]) -> Option<(f64, f64)> {
    let found = median_with_interval(values, CONFIDENCE).ok()?.interval?;
    Some((found.low, found.high))
}

/// Write a run as one portable file, or in another tool's format
#[derive(Debug, Args)]
#[command(
    after_help = EXPORT,
    override_usage = "perflab export [OPTIONS] <RUN> [FILE]\n       perflab export --schema"
)]
pub struct ExportArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    /// The file (default: ID.perflab here; standard output with --to)
    #[arg(value_name = "FILE", value_parser = OutputPath::parser())]
    pub file: Option<OutputPath>,
    /// Another tool's format: csv, json, markdown, latex, parquet, gobench, bmf, kcidb, junit, openmetrics, perfetto or hyperfine
    #[arg(long, value_name = "FORMAT")]
    pub to: Option<String>,
    /// The same as FILE; `-` is standard output
    #[arg(short, long, value_name = "FILE", conflicts_with = "file", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
    /// Print the JSON Schema of `--to json`
    #[arg(long)]
    pub schema: bool,
}

impl Verb for ExportArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        export_stored_run(app, self)
    }
}

const EXPORT: &str = "\
  perflab export @latest                          one portable file, for `perflab import` elsewhere
  perflab export @latest --to csv -o samples.csv  every sample, for a spreadsheet
  perflab export before --to gobench -o b.txt     then `benchstat b.txt a.txt`
  perflab export before --to perfetto -o b.pftrace  then open it in ui.perfetto.dev";

/// Take runs into the archive: exported ones, other tools' results
#[derive(Debug, Args)]
#[command(after_long_help = IMPORT)]
pub struct ImportArgs {
    /// What to import: files that `perflab export` wrote, and files and folders of other tools (`--kind` lists them); of a folder of
    /// results each
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// A name for the runs (else what the files suggest, such as the directory of an MMTests run)
    #[arg(long, value_parser = selection::parse_label)]
    pub label: Option<String>,
    /// What the paths are [default: recognised by content]
    #[arg(long, value_name = "KIND", value_parser = parse_importer, long_help = importer_help())]
    pub kind: Option<&'static Importer>,
    /// Page size of the machine that was recorded, such as 64KiB (else what the files say)
    #[arg(long, value_name = "SIZE")]
    pub page_size: Option<String>,
    /// Take results although a run of this label was made of the very same files
    #[arg(long)]
    pub again: bool,
}

impl Verb for ImportArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        import_named_paths(app, self)
    }
}

const IMPORT: &str = "\
Examples:
  perflab import before.perflab                  a run that `perflab export` wrote
  perflab import fio-*.json --label before       repetitions of one another
  perflab import perf.data slabinfo.log work/log whatever each of them is
`perflab flame import` and `perflab io import` have options for profiles and block traces.";

/// The importer that `--kind` names.
fn parse_importer(name: &str) -> Result<&'static Importer, String> {
    find_importer(name).ok_or_else(|| {
        let known: Vec<&str> = IMPORTERS.iter().map(|importer| importer.name).collect();
        format!("unknown import format `{name}`; known: {}", known.join(", "))
    })
}

/// What can be imported, a line a kind.
fn importer_help() -> String {
    let width = IMPORTERS.iter().map(|importer| importer.name.len()).max().unwrap_or_default();
    let line = |importer: &&Importer| format!("  {:width$}  {}\n", importer.name, importer.about);
    format!(
        "What the paths are [default: recognised by content]:\n\n{}",
        IMPORTERS.iter().map(line).collect::<String>().trim_end_matches('\n')
    )
}
