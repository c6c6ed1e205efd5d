use clap::Command;

/// What clap gives text beside options at most, on any terminal: longer lines are broken wherever they are.
const WIDTH: usize = 100;

fn collect_too_wide_lines(command: &Command, found: &mut Vec<String>) {
    let text = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    let wide = |line: &&str| line.chars().count() > WIDTH;
    found.extend(
        text.unwrap_or_default().lines().filter(wide).map(|line| format!("{}: {line}", command.get_name())),
    );
    command.get_subcommands().for_each(|verb| collect_too_wide_lines(verb, found));
}

#[test]
fn what_help_explains_fits_into_its_lines() {
    let mut found = Vec::new();
    collect_too_wide_lines(&super::Cli::visible_command(), &mut found);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// clap looks for slips of its user in debug builds when it is asked.
#[test]
fn the_command_line_is_whole_and_options_that_are_not_shown_are_accepted() {
    let mut all = super::Cli::visible_command();
    all.build();
    let parsed = super::Cli::visible_command().try_get_matches_from([
        "perflab",
        "check",
        "--archive",
        "a",
        "--format",
        "json",
    ]);
    assert_eq!(parsed.unwrap().get_one::<std::path::PathBuf>("archive"), Some(&"a".into()));
    let check = all.find_subcommand("check").unwrap().clone().render_long_help().to_string();
    assert!(!check.contains("--archive") && check.contains("--format"), "{check}");
    let shell = all.find_subcommand("vm").unwrap().find_subcommand("shell").unwrap().clone();
    assert!(!shell.clone().render_long_help().to_string().contains("--format"));
}
