//! `perflab reference`: the page of the book that has the help of every verb.

use clap::{Args, Command};
use perflab_present::facts::fact_kinds_grid;
use perflab_serve::render_api_reference;

use crate::app::App;
use crate::failure::{Exit, Failure};
use crate::help::global_options::hide_global_options_below;
use crate::verb::Verb;

/// Print the reference page of the command line: the help of every verb, global options once
#[derive(Debug, Args)]
pub struct ReferenceArgs {
    /// Print the kinds of facts instead
    #[arg(long)]
    facts: bool,
    /// Print the routes of the web laboratory instead
    #[arg(long, conflicts_with = "facts")]
    api: bool,
}

impl Verb for ReferenceArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        if self.facts {
            app.print_grid(&fact_kinds_grid())?;
        } else if self.api {
            app.print_text(&render_api_reference())?;
        } else {
            app.print_text(&render_reference((app.command_line)()))?;
        }
        Ok(Exit::Fine)
    }
}

/// Columns of the reference page, whatever the terminal.
const REFERENCE_WIDTH: usize = 100;

/// Markdown: the help of perflab, then that of every verb without the global options.
pub fn render_reference(command: Command) -> String {
    let mut command = hide_global_options_below(command.term_width(REFERENCE_WIDTH));
    command.build();
    let mut page = String::from("# Commands\n");
    append_help(&command, "perflab", &mut page);
    page
}

fn append_help(command: &Command, path: &str, page: &mut String) {
    let help = command.clone().render_long_help();
    *page += &format!("\n## {path}\n\n```text\n{}\n```\n", help.to_string().trim_end());
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        append_help(below, &format!("{path} {}", below.get_name()), page);
    }
}
