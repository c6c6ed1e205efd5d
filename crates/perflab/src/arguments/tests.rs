use clap::{Command, CommandFactory as _};

/// What clap gives text beside options at most, on any terminal: longer lines are broken wherever they are.
const WIDTH: usize = 100;

fn too_wide(command: &Command, found: &mut Vec<String>) {
    let text = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    let wide = |line: &&str| line.chars().count() > WIDTH;
    found.extend(
        text.unwrap_or_default().lines().filter(wide).map(|line| format!("{}: {line}", command.get_name())),
    );
    command.get_subcommands().for_each(|verb| too_wide(verb, found));
}

#[test]
fn what_help_explains_fits_into_its_lines() {
    let mut found = Vec::new();
    too_wide(&super::Arguments::command(), &mut found);
    assert!(found.is_empty(), "{}", found.join("\n"));
}
