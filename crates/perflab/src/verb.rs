//! What a verb is: the arguments that it takes and one call, with a name and a group in the help.
//!
//! The table of all verbs is in `cli.rs`.

use clap::{ArgMatches, Args, Command};

use crate::app::App;
use crate::failure::{Exit, Failure, UnexpectedError};

/// A verb: clap's arguments, whose description is the verb's line in the help, and one call.
pub trait Verb: Args {
    /// Carries it out.
    ///
    /// # Errors
    /// What ended it early.
    fn run(&self, app: &App) -> Result<Exit, Failure>;
}

/// The groups of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerbGroup {
    /// runs that measure
    Measure,
    /// what was measured
    See,
    /// runs as things, in and out
    Keep,
    /// instruments, each usable alone
    LookInto,
    /// what measuring needs
    Laboratory,
    /// what perflab starts itself: hidden
    Internal,
}

impl VerbGroup {
    /// Those that the help shows, in its order.
    pub const SHOWN: [VerbGroup; 5] =
        [VerbGroup::Measure, VerbGroup::See, VerbGroup::Keep, VerbGroup::LookInto, VerbGroup::Laboratory];

    /// Its heading in the help.
    pub const fn heading(self) -> &'static str {
        match self {
            VerbGroup::Measure => "Measure",
            VerbGroup::See => "See",
            VerbGroup::Keep => "Keep",
            VerbGroup::LookInto => "Look into",
            VerbGroup::Laboratory => "Laboratory",
            VerbGroup::Internal => "Internal",
        }
    }
}

/// A line of the table of verbs.
#[derive(Debug)]
pub struct VerbEntry {
    /// what is typed
    pub name: &'static str,
    /// where the help shows it
    pub group: VerbGroup,
    arguments: fn(Command) -> Command,
    run: fn(&ArgMatches, &App) -> Result<Exit, Failure>,
}

impl VerbEntry {
    /// A verb under its name.
    pub const fn new<V: Verb>(name: &'static str, group: VerbGroup) -> Self {
        VerbEntry { name, group, arguments: V::augment_args, run: run_parsed::<V> }
    }

    /// The verb as clap knows it.
    pub fn command(&self) -> Command {
        (self.arguments)(Command::new(self.name)).hide(self.group == VerbGroup::Internal)
    }

    /// Carries it out with what was typed behind it.
    ///
    /// # Errors
    /// What ended it early.
    pub fn run(&self, matches: &ArgMatches, app: &App) -> Result<Exit, Failure> {
        (self.run)(matches, app)
    }
}

fn run_parsed<V: Verb>(matches: &ArgMatches, app: &App) -> Result<Exit, Failure> {
    let args = V::from_arg_matches(matches).map_err(|error| UnexpectedError(error.to_string()))?;
    args.run(app)
}
