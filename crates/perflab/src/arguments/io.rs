//! `perflab io`

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::output_path::OutputPath;

/// `perflab io`
#[derive(Debug, Args)]
pub struct IoArgs {
    #[command(subcommand)]
    pub verb: IoVerb,
}

/// The verbs of the I/O instrument.
#[derive(Debug, Subcommand)]
pub enum IoVerb {
    /// Trace what a command, or the whole system, reads: pages, what was needed of them, disk requests
    Record(IoRecordArgs),
    /// Show what was read: by file, by directory, over time, over the disk
    Show(IoShowArgs),
    /// Hold what was read against a prefetch trace: found, missing, read around, metadata
    Coverage(CoverageArgs),
    /// Write disk requests as blkparse prints them
    Export(IoExportArgs),
    /// Make a run of a block trace: files of blktrace, text of blkparse
    Import(IoImportArgs),
    /// Say where a file lies on its disk, or whose sectors of a disk are
    Where(BlockOwnerArgs),
}

/// `perflab io record`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perflab io record -- python3 -c 'import json'    one command and whatever it starts
  perflab io record --for 15s                      everything, for 15 seconds

Needs root. Pages are those of the command's process tree alone; disk requests are everybody's,
because the kernel sends many of them in somebody else's name.")]
pub struct IoRecordArgs {
    /// How long at most; without a command, how long
    #[arg(long = "for", value_name = "TIME")]
    pub duration: Option<String>,
    /// Trace everybody's pages, not only the command's
    #[arg(long)]
    pub system: bool,
    /// A name for the run
    #[arg(long)]
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
    /// equal stretches of time
    Time,
    /// equal stretches of each disk
    Disk,
}

/// Which iteration of a run.
#[derive(Debug, Args)]
pub struct IoSelection {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    /// Which iteration, by its number in `perflab show RUN --iterations`; the first that was traced where left out
    #[arg(long, value_name = "SLOT")]
    pub slot: Option<u32>,
}

/// `perflab io show`
#[derive(Debug, Args)]
pub struct IoShowArgs {
    #[command(flatten)]
    pub which: IoSelection,
    /// How to look at it
    #[arg(long, value_enum, default_value_t)]
    pub by: IoGrouping,
    /// How many rows; with time and disk, how many stretches
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
    /// The prefetch trace: a file, a program that one was learnt for, or a dump of the prefetch module of 2007
    #[arg(long, value_name = "FILE|PROGRAM")]
    pub trace: PathBuf,
    /// How it is counted
    #[arg(long, value_enum, default_value_t)]
    pub method: CoverageMethod,
    /// Every stretch of blocks with its status, in place of the sums
    #[arg(long)]
    pub blocks: bool,
    /// Draw it into FILE.svg or FILE.png
    #[arg(long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub plot: Option<OutputPath>,
    /// What is drawn
    #[arg(long, value_enum, default_value_t, requires = "plot")]
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

A block trace names sectors and no files. With --on the file system that was traced is walked, as
far as it is still there, and asked which files lie at these sectors; none is read. With --map they
are those of a map from blocks to files; where its file system begins on the disk is found by the
requests, unless --partition-start says so. `perflab import` takes such files, too.")]
pub struct IoImportArgs {
    /// The trace
    pub path: PathBuf,
    /// Where the file system that was traced is mounted now
    #[arg(long, value_name = "PLACE")]
    pub on: Option<PathBuf>,
    /// Whose the blocks were, as e2block2file wrote it
    #[arg(long, value_name = "FILE", conflicts_with = "on")]
    pub map: Option<PathBuf>,
    /// First sector (512 bytes) of the map's file system on its disk
    #[arg(long, value_name = "SECTOR", requires = "map")]
    pub partition_start: Option<u64>,
    /// How large the blocks of the map's file system are
    #[arg(long, value_name = "SIZE", requires = "map")]
    pub block_size: Option<String>,
    /// A name for the run
    #[arg(long)]
    pub label: Option<String>,
}

/// `perflab io where`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perflab io where /usr/bin/git                  its stretches of the disk
  perflab io where --on / 2048+8 4096            whose these sectors (512 bytes) of the disk are")]
pub struct BlockOwnerArgs {
    /// Where the file system is mounted whose disk's sectors are meant
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
