//! `perflab man`: manual pages, made of the help of every verb.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::app::App;
use crate::failure::{Exit, Failure, FailureContext as _, UsageError};
use crate::help::global_options::hide_global_options_below;
use crate::output_path::{replace_file, write_to_stdout};
use crate::verb::Verb;

/// Print a manual page, or write those of every verb
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  perflab man compare | man -l -                   read one that is not installed
  perflab man -o ~/.local/share/man/man1           for `man perflab-compare`; the packages have them")]
pub struct ManArgs {
    /// The verb whose page is printed (default: the page of perflab itself)
    #[arg(value_name = "VERB", conflicts_with = "output")]
    pub verb: Vec<String>,
    /// Write the pages of all verbs into this folder, which is made where it is not there yet
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

impl Verb for ManArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        let pages = render_manual_pages((app.command_line)())?;
        match &self.output {
            Some(folder) => {
                write_pages(folder, &pages).with_context(|| format!("cannot write {}", folder.display()))?;
                app.note(format!("{} pages in {}", pages.len(), folder.display()));
            }
            None => write_to_stdout(&find_page(&pages, &self.verb)?.text)?,
        }
        Ok(Exit::Fine)
    }
}

/// The section of commands that anybody may use.
const SECTION: &str = "1";

/// A page and what it is of.
struct ManualPage {
    /// `perflab-slab-show`
    name: String,
    text: Vec<u8>,
}

fn write_pages(folder: &Path, pages: &[ManualPage]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    pages
        .iter()
        .try_for_each(|page| replace_file(&folder.join(format!("{}.{SECTION}", page.name)), &page.text))
}

fn find_page<'a>(pages: &'a [ManualPage], verb: &[String]) -> Result<&'a ManualPage, UsageError> {
    let words: Vec<&str> = std::iter::once("perflab").chain(verb.iter().map(String::as_str)).collect();
    let name = words.join("-");
    pages.iter().find(|page| page.name == name).ok_or_else(|| {
        let names = pages.iter().filter_map(|page| page.name.strip_prefix("perflab-"));
        let hint = perflab_model::problem::suggest_name(&verb.join("-"), names);
        UsageError::new(format!("there is no verb `{}`", verb.join(" ")), hint)
    })
}

/// The page of perflab, and those of all verbs that the help shows.
fn render_manual_pages(command: Command) -> Result<Vec<ManualPage>, Failure> {
    let mut command = hide_global_options_below(command).disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add_pages(&command, "", &mut pages)?;
    Ok(pages)
}

fn add_pages(command: &Command, above: &str, pages: &mut Vec<ManualPage>) -> Result<(), Failure> {
    let name = match above {
        "" => command.get_name().to_owned(),
        above => format!("{above}-{}", command.get_name()),
    };
    pages.push(ManualPage { text: render_page(command, &name, above)?, name: name.clone() });
    let mut shown = command.get_subcommands().filter(|below| !below.is_hide_set());
    shown.try_for_each(|below| add_pages(below, &name, pages))
}

fn render_page(command: &Command, name: &str, above: &str) -> io::Result<Vec<u8>> {
    let title = name.to_uppercase();
    let version = concat!("perflab ", env!("CARGO_PKG_VERSION"));
    let page = Man::new(command.clone()).title(title).section(SECTION).source(version).manual("perflab");
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        page.render_subcommands_section(&mut text)?;
    }
    render_notes(command).map_or(Ok(()), |notes| notes.to_writer(&mut text))?;
    see_also(above).to_writer(&mut text)?;
    Ok(text)
}

/// What stands below the options in the help: its lines are set as they are.
fn render_notes(command: &Command) -> Option<Roff> {
    let notes = command.get_after_long_help().or(command.get_after_help())?;
    let mut roff = Roff::new();
    roff.control("SH", ["NOTES"]).control("nf", []);
    for line in notes.to_string().lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    Some(roff)
}

fn see_also(above: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]);
    match above {
        "" => roff.text([roman("The book: https://github.com/perflab/perflab/blob/main/docs/SUMMARY.md")]),
        "perflab" => roff.text([bold("perflab"), roman("(1), which has the options of every verb")]),
        above => roff.text([
            bold(above),
            roman("(1), "),
            bold("perflab"),
            roman("(1), which has the options of every verb"),
        ]),
    };
    roff
}
