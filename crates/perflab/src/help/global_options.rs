//! Options of every verb, in the help of those that they mean something to.

use clap::{Arg, Command};

/// The command with a hidden copy of a global option in one verb, which is handed down in its place.
pub fn hide_global_option(command: Command, verb: &str, name: &str) -> Command {
    let option = command.get_arguments().find(|option| option.get_id() == name).cloned();
    match option {
        Some(option) => hide_option_in(command, &verb.split(' ').collect::<Vec<_>>(), &option),
        None => command,
    }
}

fn hide_option_in(command: Command, path: &[&str], option: &Arg) -> Command {
    match path.split_first() {
        Some((verb, rest)) => command.mut_subcommand(verb, |verb| hide_option_in(verb, rest, option)),
        None if command.get_arguments().any(|one| one.get_id() == option.get_id()) => command,
        None => command.arg(option.clone().hide(true)),
    }
}

/// The command with its global options in its own help alone.
pub fn hide_global_options_below(command: Command) -> Command {
    let globals = command.get_arguments().filter(|option| option.is_global_set());
    let globals: Vec<String> = globals.map(|option| option.get_id().to_string()).collect();
    // Whoever is changed goes to the end, so that all of them stand in the help's order at last.
    let mut verbs: Vec<(usize, String)> = command
        .get_subcommands()
        .map(|verb| (verb.get_display_order(), verb.get_name().to_owned()))
        .collect();
    verbs.sort();
    globals.iter().fold(command, |command, name| {
        verbs.iter().fold(command, |command, (_, verb)| hide_global_option(command, verb, name))
    })
}
