//! The verbs of `perflab io`: what was read of which file, and where it lies.
//!
//! `record` is an ordinary run with its I/O traced; `import` takes a block trace, with the files of the file system
//! that was traced; `where` goes from files to sectors and back. `coverage` holds a recording against a startup trace
//! of ours, or against a list of pages of the prefetch module of 2007. A report does so too where a startup trace of
//! the program is stored on this machine.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use perflab_analyze;
use perflab_analyze::{
    BlockStatus, PublishedCoverage, TraceContents, reads_by_directory, reads_by_file, reads_over_disk,
    reads_over_time, remove_stacked_requests, trace_coverage,
};
use perflab_import::{BlockMapFile, BlockTraceFileSystem, ImportOptions, detect_importer};
use perflab_model::io_trace::{IoEvent, IoEventKind, IoRecording, PAGE, PageRange, SECTOR, ThreadNames};
use perflab_model::{Bytes, Nanos};
use perflab_observe::io::{MountTable, describe_file, match_sectors_to_files, require_disk_below};
use perflab_observe::mounts;
use perflab_prefetch::trace_dump::{is_page_dump, read_page_dump};
use perflab_present::chart::Scene;
use perflab_present::comparison::{Grid, GridCell, GridColumn};
use perflab_present::io::{
    self, CoverageNames, blocks_grid, coverage_grid, describe_published_difference, published_grid,
    read_classes_chart, read_positions_chart,
};

use crate::app::{self, App};
use crate::failure::{Exit, Failure, UsageError};
use crate::keep::exchange::refuse_endless;
use crate::measure::command_study::RecordedCommand;
use crate::output_path::OutputPath;
use crate::quantities::parse_block_size;
use crate::selection::parse_label;
use crate::verb::Verb;
use perflab_model::quantity::format_share;

/// See what a program reads: files, metadata, disk requests
#[derive(Debug, Args)]
pub struct IoArgs {
    #[command(subcommand)]
    pub verb: IoVerb,
}

impl Verb for IoArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        run_io_verb(app, &self.verb)
    }
}

/// The verbs of the I/O instrument.
#[derive(Debug, Subcommand)]
pub enum IoVerb {
    /// Trace what a command, or the whole system, reads: pages, what was needed of them, disk requests
    Record(IoRecordArgs),
    /// Show what was read: by file, by directory, over time, over the disk
    Show(IoShowArgs),
    /// Compare what was read with a prefetch trace: found, missing, read around, metadata
    Coverage(CoverageArgs),
    /// Write disk requests as blkparse prints them
    Export(IoExportArgs),
    /// Import a block trace: files of blktrace, text of blkparse
    Import(IoImportArgs),
    /// Show where a file lies on its disk, or which files own sectors
    Where(BlockOwnerArgs),
}

/// `perflab io record`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perflab io record -- python3 -c 'import json'    one command and whatever it starts
  perflab io record --for 15s                      everything, for 15 seconds

Needs root. Pages are those of the command's process tree alone; disk requests are those of all
processes, since the kernel sends many of them on behalf of others.")]
pub struct IoRecordArgs {
    /// Record for this long; a command is stopped after it
    #[arg(long = "for", value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// Trace the pages of all processes, not only of the command
    #[arg(long)]
    pub system: bool,
    /// A name for the run
    #[arg(long, value_parser = parse_label)]
    pub label: Option<String>,
    /// The command
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What `--by` shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum IoGrouping {
    /// one row a file
    #[default]
    File,
    /// one row a directory
    Directory,
    /// equal intervals of time
    Time,
    /// equal parts of each disk
    Disk,
}

/// Which iteration of a run.
#[derive(Debug, Args)]
pub struct IoSelection {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    /// The iteration, by its slot in `perflab show RUN --iterations` (default: the first one traced)
    #[arg(long, value_name = "SLOT")]
    pub slot: Option<u32>,
    /// Of a run on several targets: the name of one (default: the first)
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
}

/// `perflab io show`
#[derive(Debug, Args)]
pub struct IoShowArgs {
    #[command(flatten)]
    pub which: IoSelection,
    /// What a row stands for
    #[arg(long, value_enum, default_value_t)]
    pub by: IoGrouping,
    /// How many rows, or parts of the time or disk
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
}

/// `perflab io coverage`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perflab io coverage start --trace python3                  a trace that was learnt here
  perflab io coverage @latest --trace prefetch-trace.txt     a dump of /proc/prefetch of 2007
  perflab io coverage @latest --trace prefetch-trace.txt --method published

A dump names inodes: the run must have been imported with a map of its blocks (`perflab io import
--map`), or have been recorded on the file system that the dump is of.")]
pub struct CoverageArgs {
    #[command(flatten)]
    pub which: IoSelection,
    /// The prefetch trace: a file, a program with a learnt trace, or a dump of the 2007 prefetch module
    #[arg(long, value_name = "FILE|PROGRAM")]
    pub trace: PathBuf,
    /// How it is counted
    #[arg(long, value_enum, default_value_t)]
    pub method: CoverageMethod,
    /// List every extent with its status in place of the sums
    #[arg(long)]
    pub blocks: bool,
    /// Draw it into FILE.svg or FILE.png, or as SVG on standard output (-)
    #[arg(short, long, alias = "plot", value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
    /// What to draw
    #[arg(long, value_enum, default_value_t, requires = "output")]
    pub drawn: IoSceneKind,
}

/// How coverage is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum CoverageMethod {
    /// each block of 4 KiB that a disk was asked for
    #[default]
    Blocks,
    /// as the comparison of 2007 did, with what is wrong with that, beside the figures by block
    Published,
}

/// What a picture of coverage shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum IoSceneKind {
    /// every read, over time and over the places of the disk
    #[default]
    Places,
    /// sums by status, over time
    Classes,
}

/// `perflab io import`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perflab io import sda.blktrace.0 --on /        what blktrace wrote, all CPUs; files of /
  perflab io import trace.txt --label old        what blkparse printed
  perflab io import hda1.blktrace.0 --map hda1.blktrace.0.map
                                                 with the map that e2block2file made of it

A block trace names sectors, not files. With --on, the traced file system, as far as it still is as
it was, says which files own these sectors; no file is read. With --map, a map from blocks to files
says so; where its file system begins on the disk is derived from the requests unless
--partition-start gives it. `perflab import` accepts such files, too.")]
pub struct IoImportArgs {
    /// The trace
    pub path: PathBuf,
    /// Where the traced file system is mounted now
    #[arg(long, value_name = "PLACE")]
    pub on: Option<PathBuf>,
    /// The map from blocks to files that e2block2file wrote
    #[arg(long, value_name = "FILE", conflicts_with = "on")]
    pub map: Option<PathBuf>,
    /// First sector (512 bytes) of the map's file system on its disk
    #[arg(long, value_name = "SECTOR", requires = "map")]
    pub partition_start: Option<u64>,
    /// Block size of the map's file system
    #[arg(long, value_name = "SIZE", requires = "map", value_parser = parse_block_size)]
    pub block_size: Option<Bytes>,
    /// A name for the run
    #[arg(long, value_parser = parse_label)]
    pub label: Option<String>,
}

/// `perflab io where`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perflab io where /usr/bin/git                  its extents on the disk
  perflab io where --on / 2048+8 4096            which files own these sectors (512 bytes)")]
pub struct BlockOwnerArgs {
    /// The mount point of the file system that owns the sectors
    #[arg(long, value_name = "PLACE")]
    pub on: Option<PathBuf>,
    /// Files; with --on sectors, FIRST or FIRST+COUNT
    #[arg(required = true, value_name = "FILE|SECTORS")]
    pub what: Vec<String>,
}

/// `perflab io export`
#[derive(Debug, Args)]
pub struct IoExportArgs {
    #[command(flatten)]
    pub which: IoSelection,
    /// In the format that blkparse prints
    #[arg(long, required = true)]
    pub blkparse: bool,
}

/// Carries out a verb.
pub fn run_io_verb(context: &App, verb: &IoVerb) -> Result<Exit, Failure> {
    match verb {
        IoVerb::Record(args) => record_io(context, args),
        IoVerb::Show(args) => show_reads(context, args),
        IoVerb::Coverage(args) => show_coverage(context, args),
        IoVerb::Export(args) => export_blkparse(context, args),
        IoVerb::Import(args) => import_io_trace(context, args),
        IoVerb::Where(args) => print_block_owners(context, args),
    }
}

/// A recording in which each read stands once, where disks lie upon one another.
fn count_reads_once(context: &App, recording: IoRecording) -> IoRecording {
    for unplaced in &recording.summary.unplaced {
        context.note(format!(
            "warning: the place of files of {} on the disk below is unknown, so its reads belong to no file: {}",
            unplaced.device, unplaced.reason
        ));
    }
    let (recording, caused) = remove_stacked_requests(recording);
    if caused > 0 {
        let upper: Vec<String> =
            recording.summary.stacks.iter().map(|stack| stack.device.to_string()).collect();
        context.note(format!(
            "{} that {} read from the disk below are left out: they are counted as reads of the upper disk",
            perflab_model::Bytes(caused),
            upper.join(", ")
        ));
    }
    recording
}

/// The recording that the options name.
fn read_io_recording(context: &App, which: &IoSelection) -> Result<IoRecording, Failure> {
    let run = crate::selection::select_run(&context.archive()?, &which.run)?;
    let all = run.read_io_recordings()?;
    let slots: BTreeSet<u32> = all.iter().map(|(iteration, _)| iteration.slot).collect();
    let slots: Vec<String> = slots.iter().map(u32::to_string).collect();
    let target =
        which.target.as_deref().map(|name| crate::selection::target_index(&run, name)).transpose()?;
    let found = all.into_iter().find(|(iteration, _)| {
        which.slot.is_none_or(|requested| requested == iteration.slot)
            && (target.is_none() || iteration.target == target)
    });
    let missing =
        || UsageError::new("I/O was not traced in this slot", format!("traced slots: {}", slots.join(", ")));
    Ok(found.map(|(_, recording)| recording).ok_or_else(missing)?)
}

/// Directories that are shown at the end.
const SHOWN: usize = 10;

/// Records, and says what to look at.
pub fn record_io(context: &App, args: &IoRecordArgs) -> Result<Exit, Failure> {
    let is_tree = !args.system && !args.command.is_empty();
    let recorded = RecordedCommand {
        verb: "io record",
        title: "I/O",
        command: &args.command,
        pid: None,
        duration: args.duration,
        quiet_time: Nanos(0),
        label: args.label.as_deref(),
        tables: if is_tree { "[io]\nscope = \"workload\"\n" } else { "[io]\nscope = \"system\"\n" },
    };
    let (status, found) = recorded.record(context, |_| ())?;
    for (_, recording) in found.read_io_recordings()? {
        let recording = count_reads_once(context, recording);
        note_io_recording(context, &recording);
        let folders = reads_by_directory(&reads_by_file(&recording));
        context.print_grid(&perflab_present::io::folders_grid(&folders, SHOWN))?;
    }
    context.note(format!(
        "`perflab io show {}` lists every file; see also `--by time` and `--by disk`",
        found.short_id()
    ));
    Ok(recorded.exit_of(context, status, &found))
}

/// What was seen, and what it cost to see it.
fn note_io_recording(context: &App, recording: &IoRecording) {
    let sum = |kind: IoEventKind| {
        let all = recording.events.iter().filter(|event| event.kind == kind);
        all.map(|event| event.count).sum::<u64>()
    };
    let requests = recording.events.iter().filter(|event| event.is_disk_read());
    let (count, sectors) = requests.fold((0, 0), |(count, sum), event| (count + 1, sum + event.count));
    let summary = &recording.summary;
    context.note(format!(
        "{} events, {} lost: {} entered the page cache; {count} requests read {}; reading the trace took {} of CPU",
        recording.events.len(),
        summary.lost,
        Bytes(sum(IoEventKind::Added) * PAGE),
        Bytes(sectors * SECTOR),
        summary.cost,
    ));
    for missing in &summary.missing {
        context.note(format!("warning: this kernel lacks {missing}"));
    }
}

/// Prints what was read, in the way that was asked for.
pub fn show_reads(context: &App, args: &IoShowArgs) -> Result<Exit, Failure> {
    let recording = count_reads_once(context, read_io_recording(context, &args.which)?);
    let grid = match args.by {
        IoGrouping::File => io::files_grid(&reads_by_file(&recording), args.top),
        IoGrouping::Directory => io::folders_grid(&reads_by_directory(&reads_by_file(&recording)), args.top),
        IoGrouping::Time => io::reads_over_time_grid(&reads_over_time(&recording, args.top)),
        IoGrouping::Disk => io::reads_over_disk_grid(&reads_over_disk(&recording, args.top)),
    };
    context.print_grid(&grid)?;
    Ok(Exit::Fine)
}

/// Holds a recording against a prefetch trace.
pub fn show_coverage(context: &App, args: &CoverageArgs) -> Result<Exit, Failure> {
    let recording = count_reads_once(context, read_io_recording(context, &args.which)?);
    if args.method == CoverageMethod::Published && (args.blocks || args.output.is_some()) {
        let what = "the figures of 2007 are sums: there are neither blocks nor a picture of them";
        return Err(UsageError::new(what, "leave --method published out").into());
    }
    let evidence = read_evidence(context, &args.trace)?;
    let published = match args.method {
        CoverageMethod::Blocks => None,
        CoverageMethod::Published => Some(published_figures(&recording, &evidence)?),
    };
    let found = perflab_analyze::trace_coverage(&recording, &evidence.into_known_pages(context, &recording));
    if let Some(published) = published {
        context.print_grid(&published_grid(&published, &found))?;
        note_file_coverage(context, &published, &found);
        for difference in &published.reasons {
            context.note(format!("why it differs from ours: {}", describe_published_difference(difference)));
        }
        return Ok(Exit::Fine);
    }
    context.print_grid(&if args.blocks { blocks_grid(&found) } else { coverage_grid(&found) })?;
    app::write_scene(context, args.output.as_ref(), || coverage_scene(&found, args))?;
    note_coverage_checks(context, &found, recording.summary.lost);
    note_unrecorded_uses(context, &found);
    Ok(Exit::Fine)
}

/// The figures of 2007 for the same files.
fn published_figures(
    recording: &IoRecording,
    evidence: &CoverageEvidence,
) -> Result<PublishedCoverage, Failure> {
    let CoverageEvidence::Dump(ranges) = evidence else {
        let hint = "name a dump of /proc/prefetch with --trace, or omit --method";
        return Err(
            UsageError::new("the comparison of 2007 needs a dump of its prefetch module", hint).into()
        );
    };
    let hint = "import the trace with its map: `perflab io import TRACE --map MAP`";
    perflab_analyze::published_coverage(recording, ranges)
        .map_err(|error| UsageError::new(error.to_string(), hint).into())
}

/// How much was found of what belongs to files, which is what a list of their pages could have had.
fn note_file_coverage(context: &App, published: &PublishedCoverage, found: &perflab_analyze::TraceCoverage) {
    let bytes = |statuses: &[BlockStatus]| -> u64 {
        statuses.iter().filter_map(|status| found.bytes.get(status)).sum()
    };
    let ours =
        bytes(&[BlockStatus::Found, BlockStatus::Missing, BlockStatus::NotInTrace, BlockStatus::ReadAround]);
    let share = |part: u64, of: u64| format_share(part as f64 / of.max(1) as f64);
    context.note(format!(
        "of what belongs to files, {} of the requests are found as 2007 counted, {} of the bytes by block",
        share(published.found, published.found + published.missing),
        share(bytes(&[BlockStatus::Found]), ours)
    ));
}

/// What is the same where uses of pages were not recorded.
fn note_unrecorded_uses(context: &App, found: &perflab_analyze::TraceCoverage) {
    if found.bytes.get(&BlockStatus::NotInTrace).is_some_and(|bytes| *bytes > 0) {
        context.note(
            "not in trace: the pages that were needed were not recorded, so missing and read around are counted \
             together",
        );
    }
}

fn coverage_scene(found: &perflab_analyze::TraceCoverage, args: &CoverageArgs) -> Scene {
    let title = format!("Reads held against {}", args.trace.display());
    match args.drawn {
        IoSceneKind::Places => read_positions_chart(found, &title, CoverageNames::Trace),
        IoSceneKind::Classes => read_classes_chart(found, &title, CoverageNames::Trace),
    }
}

/// The check of the analysis on itself.
fn note_coverage_checks(context: &App, found: &perflab_analyze::TraceCoverage, lost: u64) {
    let sum: u64 = found.bytes.values().sum();
    let answers = &found.answers;
    context.note(match answers.contradiction(sum) {
        0 => format!(
            "the classes add up to the {} that disks delivered, except {} requested before and {} in flight at the end",
            Bytes(answers.completed),
            Bytes(answers.before_start),
            Bytes(answers.in_flight)
        ),
        apart => format!(
            "warning: the classes add up to {}, but disks delivered {}: {} are unaccounted for ({lost} events were lost)",
            Bytes(sum),
            Bytes(answers.completed),
            Bytes(apart)
        ),
    });
}

/// Writes disk requests in the default format of blkparse: device, CPU, sequence, seconds, pid, action, flags, sectors.
pub fn export_blkparse(context: &App, args: &IoExportArgs) -> Result<Exit, Failure> {
    let recording = read_io_recording(context, &args.which)?;
    let mut text = String::new();
    let programs = ThreadNames::from_recording(&recording);
    let mut sequence = 0;
    for event in &recording.events {
        let Some(action) = blkparse_action(event.kind) else { continue };
        sequence += 1;
        let at = event.at.since(recording.summary.begun);
        let device = format!("{},{}", event.device.major(), event.device.minor());
        let flags = event.name.as_deref().unwrap_or_default();
        let (seconds, nanos) = (at.0 / 1_000_000_000, at.0 % 1_000_000_000);
        let pid = event.pid;
        let program = match event.kind {
            IoEventKind::Completed => "0".into(),
            _ => programs.name_at(pid, event.at).map_or_else(|| pid.to_string(), String::from),
        };
        // The CPU is not kept: it is always 0. A comm is not either, of a thread that had started a program: that stands for it.
        let _ = writeln!(
            text,
            "{device:>7} {:>2} {sequence:>8} {seconds:>5}.{nanos:09} {pid:>5} {action:>2} {flags:>3} {} + {} [{program}]",
            0, event.first, event.count,
        );
    }
    context.print_value("blkparse", &text)?;
    Ok(Exit::Fine)
}

fn blkparse_action(kind: IoEventKind) -> Option<&'static str> {
    match kind {
        IoEventKind::Queued => Some("Q"),
        IoEventKind::Issued => Some("D"),
        IoEventKind::Completed => Some("C"),
        _ => None,
    }
}

/// Makes a run of a trace.
pub fn import_io_trace(context: &App, args: &IoImportArgs) -> Result<Exit, Failure> {
    refuse_endless(&args.path)?;
    refuse_bzip2(&args.path)?;
    let kind = detect_importer(&args.path)?;
    if !["blktrace", "blkparse"].contains(&kind.name) {
        let message = format!("{} is no block trace", args.path.display());
        let hint = "a file of blktrace or the text of blkparse is one; `perflab import` takes other results";
        return Err(UsageError::new(message, hint).into());
    }
    if let Some(place) = &args.on {
        // Looked at first: a place that is none must not cost a run.
        require_disk_below(place)?;
    }
    let on =
        args.on.clone().map(|place| BlockTraceFileSystem { mount_point: place, find: find_files_on_disk });
    let block_map = args.map.as_deref().map(|map| block_map_from_args(map, args)).transpose()?;
    let options = ImportOptions {
        label: args.label.clone(),
        kind: Some(kind),
        on,
        block_map,
        ..ImportOptions::default()
    };
    crate::keep::exchange::import_results(context, vec![(kind, args.path.clone())], &options)
}

fn block_map_from_args(map: &Path, args: &IoImportArgs) -> Result<BlockMapFile, UsageError> {
    refuse_bzip2(map)?;
    refuse_endless(map)?;
    let (partition_start, block_size) = (args.partition_start, args.block_size);
    Ok(BlockMapFile { path: map.into(), partition_start, block_size })
}

fn find_files_on_disk(recording: &mut IoRecording, place: &Path) {
    if let Err(error) = match_sectors_to_files(recording, place) {
        stderr_line!("warning: no file is named: {error}");
    }
}

/// Prints where files lie, or whose sectors are.
pub fn print_block_owners(context: &App, args: &BlockOwnerArgs) -> Result<Exit, Failure> {
    let grid = match &args.on {
        Some(place) => block_owner_grid(place, &args.what)?,
        None => extent_grid(&args.what)?,
    };
    context.print_grid(&grid)?;
    Ok(Exit::Fine)
}

fn extent_grid(files: &[String]) -> Result<Grid, Failure> {
    let numbers = ["offset", "disk", "sector", "sectors"].map(GridColumn::right);
    let mut grid = Grid::new(std::iter::once(GridColumn::left("file")).chain(numbers));
    let all = MountTable::read();
    for name in files {
        let missing =
            || UsageError::new(format!("there is no {name}"), "name files, or sectors with --on PLACE");
        let path = std::fs::canonicalize(name).map_err(|_| missing())?;
        let file = describe_file(&path).ok_or_else(missing)?;
        let mut recording = IoRecording { files: vec![file], ..IoRecording::default() };
        let mount = all.find_by_path(&path);
        // Where the extents of a btrfs lie takes more than asking the file.
        mount.into_iter().for_each(|mount| perflab_observe::io::describe_file_system(&mut recording, mount));
        let below = mount.and_then(mounts::disk_below);
        for file in &recording.files {
            let (disk, start) = recording.summary.disk_below(below.unwrap_or(file.device));
            for extent in &file.extents {
                let sector = (start + extent.physical) / SECTOR;
                let sectors = extent.length / SECTOR;
                let (name, disk) = (GridCell::from(name.as_str()), GridCell::from(disk.to_string()));
                grid.add_row([name, extent.logical.into(), disk, sector.into(), sectors.into()]);
            }
        }
    }
    Ok(grid)
}

fn block_owner_grid(place: &Path, sectors: &[String]) -> Result<Grid, Failure> {
    let ranges = sectors.iter().map(|text| parse_sector_range(text)).collect::<Result<Vec<_>, _>>()?;
    let mount = MountTable::read();
    let disk = mount.find_by_path(place).and_then(mounts::disk_below).unwrap_or_default();
    let disk = mounts::partition_of_device(disk).map_or(disk, |partition| partition.disk);
    let event = |(first, count)| IoEvent {
        at: Nanos(0),
        pid: 0,
        kind: IoEventKind::Issued,
        device: disk,
        inode: 0,
        first,
        count,
        name: Some("R".into()),
    };
    let mut recording =
        IoRecording { events: ranges.into_iter().map(event).collect(), ..IoRecording::default() };
    match_sectors_to_files(&mut recording, place)?;
    let numbers = ["sector", "sectors", "inode", "offset"].map(GridColumn::right);
    let mut grid = Grid::new(numbers.into_iter().chain([GridColumn::left("of")]));
    for block in trace_coverage(&recording, &TraceContents::default()).blocks {
        let of = if block.name.is_empty() { "nobody that is known" } else { &block.name };
        let (inode, offset) = block
            .file
            .map_or((None, None), |(inode, page)| (Some(inode), Some(page * perflab_model::io_trace::PAGE)));
        grid.add_row([
            block.sector.into(),
            block.sectors.into(),
            inode.into(),
            offset.into(),
            GridCell::from(of),
        ]);
    }
    Ok(grid)
}

/// `2048+8`, or `2048` for one block of 4 KiB.
fn parse_sector_range(text: &str) -> Result<(u64, u64), UsageError> {
    let (first, count) = text.split_once('+').unwrap_or((text, "8"));
    let numbers = first.parse().ok().zip(count.parse().ok()).filter(|(_, count): &(u64, u64)| *count > 0);
    numbers.ok_or_else(|| UsageError::new(format!("`{text}` names no sectors"), "for example 2048 or 2048+8"))
}

/// What `--trace` names.
pub enum CoverageEvidence {
    /// pages and sectors of a trace of ours
    Trace(TraceContents),
    /// a list of pages of 2007
    Dump(Vec<PageRange>),
}

/// Reads what `--trace` names.
pub fn read_evidence(context: &App, trace: &Path) -> Result<CoverageEvidence, Failure> {
    if !is_page_dump(trace) {
        refuse_bzip2(trace)?;
        return Ok(CoverageEvidence::Trace(crate::instruments::prefetch_store::read_known_pages(trace)?));
    }
    let dump = read_page_dump(trace)?;
    let pages: u64 = dump.ranges.iter().map(|range| range.count).sum();
    context.note(format!(
        "{} is a dump of the 2007 prefetch module: {} records of {pages} pages in all, and {} empty ones",
        trace.display(),
        dump.ranges.len(),
        dump.empty
    ));
    if let Some((lines, first)) = dump.unusable {
        context.note(format!(
            "warning: {lines} of its lines are not records and are left out; the first is `{first}`"
        ));
    }
    Ok(CoverageEvidence::Dump(dump.ranges))
}

impl CoverageEvidence {
    /// As pages and sectors that the recording's can be looked for in.
    pub fn into_known_pages(self, context: &App, recording: &IoRecording) -> TraceContents {
        match self {
            CoverageEvidence::Trace(known) => known,
            CoverageEvidence::Dump(ranges) => {
                let (known, named) = TraceContents::from_pages(recording, &ranges);
                if let Some(named) = named {
                    let others = ranges.iter().filter(|range| range.device != named).count();
                    context.note(format!(
                        "{named} of the dump is the mapped file system; {others} records belong to others"
                    ));
                }
                known
            }
        }
    }
}

/// Refuses what bzip2 packed, as the raw files of 2007 are.
pub fn refuse_bzip2(path: &Path) -> Result<(), UsageError> {
    use std::io::Read as _;
    let mut head = [0; 3];
    let is_file = path.metadata().is_ok_and(|found| found.is_file());
    let read = is_file && std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok();
    match read && &head == b"BZh" {
        true => Err(UsageError::new(
            format!("{} is packed by bzip2", path.display()),
            "unpack it with bunzip2 first",
        )),
        false => Ok(()),
    }
}
