//! What every verb needs, from the global options: the archive, the catalogue, noise cards, and where a result goes.
//!
//! A result is JSON in full, a table as a grid, or a figure in a file.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Command};
use perflab_analyze::slab::SlabRowCounts;
use perflab_archive::Archive;
use perflab_archive::unpack_folder::{UnpackFolder, make_unpack_folder};
use perflab_model::named::Named;
use perflab_model::study::{Study, TomlSource};
use perflab_model::untrusted_text::{escape_controls_in_line, escape_controls_keeping_colours};
use perflab_observe::{Root, own_directories};
use perflab_present::chart::{Scene, SceneSurface};
use perflab_present::comparison::{Grid, OutputFormat};
use perflab_remote::RemoteUrl;
use perflab_settings::TemporaryFolder;
use perflab_workload::Catalogue;
use serde::Serialize;

use crate::archive_place::ArchivePlace;
use crate::failure::{Failure, UsageError};
use crate::output_path::{OutputPath, is_file_on_stdout, write_to_stdout};

/// Options of every verb.
#[derive(Debug, Args)]
pub struct GlobalArgs {
    /// Directory that holds the runs (default: the nearest perflab-archive here or above, else that of the user,
    /// ~/.local/share/perflab/archive, if it is there; else ./perflab-archive is made), or
    /// s3://BUCKET/PREFIX or file:///FOLDER, of which a copy is kept here
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help_heading = EVERYWHERE,
        env = "PERFLAB_ARCHIVE",
        hide_env_values = true
    )]
    pub archive: Option<PathBuf>,
    /// Directory with further workload definitions (repeatable)
    #[arg(long, global = true, value_name = "DIR", help_heading = EVERYWHERE)]
    pub workloads: Vec<PathBuf>,
    /// How results are printed: table (for people), json (every number), csv, markdown; of `compare` also short (one line a
    /// row) and mail (72 columns); of `compare` and `guard` also github (annotations), junit, ktap
    #[arg(
        long,
        global = true,
        value_parser = named_parser::<OutputFormat>(),
        default_value = "table",
        hide_possible_values = true,
        help_heading = EVERYWHERE
    )]
    pub format: OutputFormat,
    /// Print nothing on stderr but warnings and errors
    #[arg(short, long, global = true, help_heading = EVERYWHERE)]
    pub quiet: bool,
}

/// The heading of these options in a verb's help.
const EVERYWHERE: &str = "Everywhere";

/// clap's parser of a choice by name, whose help says what each means.
pub fn named_parser<T: Named + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let values = T::NAMES.iter().map(|(_, name, about)| PossibleValue::new(*name).help(*about));
    PossibleValuesParser::new(values).try_map(|name| T::from_name(&name).ok_or("it is no such choice"))
}

/// The command line's global options, resolved.
#[derive(Debug, Clone)]
pub struct App {
    archive: PathBuf,
    /// the archive in object storage that `archive` is a copy of
    pub remote: Option<RemoteUrl>,
    /// Folders of definitions beside the shipped ones.
    pub workloads: Vec<PathBuf>,
    /// table, json, csv or markdown
    pub format: OutputFormat,
    /// no talk on stderr but errors and warnings
    pub quiet: bool,
    /// colour on stdout
    pub colour: bool,
    /// width of the terminal, where stdout is one
    pub width: Option<usize>,
    /// root of /proc and /sys
    pub root: Root,
    /// the whole command line, for what is made of it
    pub command_line: fn() -> Command,
}

impl App {
    /// Resolves the global options.
    ///
    /// # Errors
    /// An archive in object storage that is none.
    pub fn new(global: &GlobalArgs, command_line: fn() -> Command) -> Result<Self, Failure> {
        let ArchivePlace { path, remote } = ArchivePlace::locate(global.archive.as_deref())?;
        let terminal = io::stdout().is_terminal();
        let requested = std::env::var_os("NO_COLOR").is_none();
        Ok(App {
            archive: path,
            remote,
            workloads: global.workloads.clone(),
            format: global.format,
            quiet: global.quiet,
            colour: terminal && requested,
            width: terminal.then(terminal_width).flatten(),
            root: Root::host(),
            command_line,
        })
    }

    /// The archive, made where it is not there yet.
    pub fn archive(&self) -> Result<Archive, Failure> {
        if self.archive.join("archive.json").is_file() && self.archive.join("lists").is_dir() {
            let path = std::path::absolute(&self.archive).unwrap_or_else(|_| self.archive.clone());
            let message = format!("{} is an archive that several machines share", path.display());
            let hint = format!("name it as such: --archive file://{}", path.display());
            return Err(UsageError::new(message, hint).into());
        }
        Ok(Archive::open(&self.archive)?.with_unpack_folders(make_journalled_unpack_folder))
    }

    /// Where the archive lies.
    pub fn archive_path(&self) -> &std::path::Path {
        &self.archive
    }

    /// The embedded workloads and those of `--workloads`.
    pub fn catalogue(&self) -> Result<Catalogue, Failure> {
        let mut catalogue = Catalogue::embedded();
        for directory in &self.workloads {
            catalogue.extend_from_folder(directory)?;
        }
        Ok(catalogue)
    }

    /// The same with the commands that a study has of its own.
    ///
    /// # Errors
    /// A definition that cannot be read, and what is wrong with a command, in its place in the study.
    pub fn catalogue_of(&self, source: &TomlSource, study: &Study) -> Result<Catalogue, Failure> {
        let extended = self.catalogue()?.with_commands_of(study);
        Ok(extended.map_err(|found| source.place_problems(found))?)
    }

    /// Prints a grid in the requested format.
    pub fn print_grid(&self, grid: &Grid) -> Result<(), Failure> {
        self.print_text(&grid.render(self.format, self.width, self.colour)?)
    }

    /// Prints text that is data: on stderr, where a file was asked for on standard output.
    pub fn print_text(&self, text: &str) -> Result<(), Failure> {
        // JSON escapes by itself, and is exact.
        let text = match self.format {
            OutputFormat::Json => text.into(),
            _ => escape_controls_keeping_colours(text, self.colour),
        };
        if is_file_on_stdout() {
            stderr_line!("{}", text.trim_end_matches('\n'));
            return Ok(());
        }
        match text.ends_with('\n') {
            true => write_to_stdout(text.as_bytes()),
            false => write_to_stdout(format!("{text}\n").as_bytes()),
        }
    }

    /// Prints one value that is the whole answer, such as a path: bare for people, an object of one key as JSON.
    pub fn print_value(&self, key: &str, value: &str) -> Result<(), Failure> {
        match self.format {
            OutputFormat::Json => {
                self.print_json(&serde_json::Map::from_iter([(key.to_owned(), value.into())]))
            }
            _ => self.print_text(value),
        }
    }

    /// Prints a value as the one JSON document of a verb.
    pub fn print_json(&self, value: &impl serde::Serialize) -> Result<(), Failure> {
        self.print_text(&serde_json::to_string_pretty(value)?)
    }

    /// Prints in words what a table shows: below the table for people, on stderr where programs read the table.
    pub fn print_conclusion(&self, sentence: &str) -> Result<(), Failure> {
        match self.format {
            OutputFormat::Table | OutputFormat::Markdown => self.print_text(sentence),
            OutputFormat::Json
            | OutputFormat::Csv
            | OutputFormat::Short
            | OutputFormat::Mail
            | OutputFormat::Github
            | OutputFormat::Junit
            | OutputFormat::Ktap => {
                self.note(sentence);
                Ok(())
            }
        }
    }

    /// Says a sentence with names of others in it, such as labels and titles: none of them begins a line of its own.
    pub fn note_line(&self, text: &str) {
        self.note(escape_controls_in_line(text));
    }

    /// Says something on stderr, unless `--quiet`.
    pub fn note(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            stderr_line!("{text}");
        }
    }
}

/// The longest text that is read whole: a table of rules, a noise card.
const LONGEST_TEXT: u64 = 64 << 20;

/// A file's text; what would be waited for is refused, whoever put it there.
pub fn read_text_file(path: &Path) -> io::Result<String> {
    let bytes = perflab_files::read_finite_file(path, LONGEST_TEXT)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// A folder that a portable file is unpacked to: the next perflab removes it where this one is killed, and a signal does so itself.
fn make_journalled_unpack_folder() -> io::Result<Box<dyn UnpackFolder>> {
    let boot = perflab_observe::read_boot_id(&Root::host());
    match TemporaryFolder::create(&own_directories::state_directory(), &boot) {
        Ok(folder) => {
            crate::signals::end_with_settings_put_back()?;
            Ok(Box::new(UnpackedFolder(folder)))
        }
        // Without a place for a journal, as in a home that is read only, it is read all the same.
        Err(_) => make_unpack_folder(),
    }
}

#[derive(Debug)]
struct UnpackedFolder(TemporaryFolder);

impl UnpackFolder for UnpackedFolder {
    fn path(&self) -> &Path {
        self.0.path()
    }
}

fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// The version of every JSON document of `perflab slab`.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct ResultDocument<'a, T> {
    version: u32,
    result: &'a T,
}

/// The whole result as JSON, or the grid in any other format.
pub fn print_result<T: Serialize>(
    context: &App,
    result: &T,
    grid: impl FnOnce() -> Grid,
) -> Result<(), Failure> {
    if context.format == OutputFormat::Json {
        let document = ResultDocument { version: VERSION, result };
        return context.print_json(&document);
    }
    context.print_grid(&grid())
}

/// Draws into a file, in the format of its name's ending; on standard output, as SVG.
pub fn write_scene(
    context: &App,
    path: Option<&OutputPath>,
    scene: impl FnOnce() -> Scene,
) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let bytes = match path.extension() {
        None | Some("svg") => scene().to_svg(SceneSurface::Paper).into_bytes(),
        Some("png") => scene().to_png()?,
        Some(_) => {
            let message = format!("{path}: a picture is drawn as .svg or .png");
            return Err(UsageError::new(
                message,
                "name the file picture.svg or picture.png, or - for SVG on standard output",
            )
            .into());
        }
    };
    path.write(&bytes)?;
    context.note(format!("picture: {path}"));
    Ok(())
}

/// Says where a table for people has fewer rows than there are.
pub fn note_omitted_rows(context: &App, shown: Option<usize>, all: usize) {
    if let Some(shown) = shown.filter(|shown| *shown < all) {
        context
            .note(format!("{shown} of {all} points of time, evenly spaced; --format csv and json have all"));
    }
}

/// Says what became of the rows: none is lost silently.
pub fn note_row_counts(context: &App, counts: &SlabRowCounts) {
    context.note(format!(
        "{} rows read, {} used, {} unusable; {} flagged ({} torn, {} approximate, {} malformed), {} without slabs",
        counts.read,
        counts.used,
        counts.unusable,
        counts.flagged,
        counts.torn,
        counts.approximate,
        counts.malformed,
        counts.empty
    ));
}
