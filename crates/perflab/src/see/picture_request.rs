//! A picture that is asked for by its address, as `perflab plot` takes it.

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{ArgAction, Args, Command, FromArgMatches};
use perflab_serve::{PictureRequest, RefusalReason, ResultRefusal};

use crate::see::plot::{PlotArgs, PlotKind};

/// The words of `perflab plot` that draw this.
///
/// # Errors
/// An option that the kind does not have; a value that cannot be understood.
pub fn parse_picture(of: &PictureRequest) -> Result<PlotKind, ResultRefusal> {
    let command = plot_command();
    let switches: Vec<&str> = command
        .find_subcommand(&of.kind)
        .into_iter()
        .flat_map(|kind| kind.get_arguments())
        .filter(|option| matches!(option.get_action(), ArgAction::SetTrue))
        .filter_map(|option| option.get_long())
        .collect();
    let mut typed = vec![of.kind.clone(), "--output=-".to_owned()];
    for (name, value) in &of.options {
        match (switches.contains(&name.as_str()), value.as_str()) {
            (false, _) => typed.push(format!("--{name}={value}")),
            (true, "true") => typed.push(format!("--{name}")),
            (true, "false") => {}
            (true, _) => return Err(refuse_parameter(format!("`{name}={value}` is neither true nor false"))),
        }
    }
    typed.push("--".to_owned());
    typed.extend(of.runs.iter().cloned());
    let parsed = command.try_get_matches_from(typed).and_then(|found| PlotArgs::from_arg_matches(&found));
    parsed.map(|args| args.kind).map_err(|error| refuse_parameter(parse_error_sentence(&error, of)))
}

fn plot_command() -> Command {
    PlotArgs::augment_args(Command::new("plot").no_binary_name(true))
}

/// What a picture of this kind takes beside its runs.
fn parameter_names(kind: &str) -> Vec<String> {
    let command = plot_command();
    let options = command.find_subcommand(kind).into_iter().flat_map(Command::get_arguments);
    let names =
        options.filter_map(|option| option.get_long()).filter(|name| !["output", "help"].contains(name));
    names.map(str::to_owned).collect()
}

fn refuse_parameter(sentence: String) -> ResultRefusal {
    ResultRefusal { reason: RefusalReason::Parameter, sentence }
}

/// What is wrong, in the words of an address: there are no dashes before names.
fn parse_error_sentence(error: &Error, of: &PictureRequest) -> String {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        _ => String::new(),
    };
    let options = text(ContextKind::InvalidArg);
    // `--column <MONITOR.COLUMN>`
    let name_of = |option: &str| {
        let name = option.split([' ', '=', '[']).next().unwrap_or_default();
        name.trim_start_matches('-').to_owned()
    };
    let (name, value) = (name_of(&options), text(ContextKind::InvalidValue));
    let kind = &of.kind;
    match error.kind() {
        ErrorKind::UnknownArgument if of.runs.contains(&options) => {
            format!("a {kind} has fewer runs than that: leave out `run={options}`")
        }
        ErrorKind::UnknownArgument => {
            format!("`{name}` is no parameter of a {kind}: there are {}", parameter_names(kind).join(", "))
        }
        ErrorKind::MissingRequiredArgument => format!("the parameter `{name}` is missing for a {kind}"),
        ErrorKind::ArgumentConflict => {
            format!("`{name}` and `{}` exclude each other", name_of(&text(ContextKind::PriorArg)))
        }
        ErrorKind::InvalidValue if value.is_empty() => format!("`{name}` needs a value"),
        ErrorKind::InvalidValue => {
            format!("`{name}={value}` is unknown: write {}", text(ContextKind::ValidValue))
        }
        _ => match std::error::Error::source(error) {
            Some(reason) => format!("`{name}={value}`: {reason}"),
            None => format!("`{name}={value}` is not understood"),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use perflab_serve::{PICTURE_KINDS, picture_option_names};

    use super::*;

    /// What an address takes is what the verb takes, but for where the picture goes.
    #[test]
    fn addresses_take_what_the_verb_takes() {
        let command = plot_command();
        let kinds: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        assert_eq!(kinds, PICTURE_KINDS);
        let options: BTreeSet<&str> = command
            .get_subcommands()
            .flat_map(|kind| kind.get_arguments().filter_map(|option| option.get_long()))
            .filter(|name| *name != "output")
            .collect();
        assert_eq!(options, picture_option_names().collect());
    }

    fn refusal(kind: &str, options: &[(&str, &str)], runs: &[&str]) -> String {
        let of = PictureRequest {
            kind: kind.to_owned(),
            runs: runs.iter().map(|run| (*run).to_owned()).collect(),
            options: options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        };
        let refused = parse_picture(&of).unwrap_err();
        assert_eq!(refused.reason, RefusalReason::Parameter);
        refused.sentence
    }

    #[test]
    fn what_cannot_be_understood_is_named_as_in_the_address() {
        let one = &["a"];
        insta::assert_snapshot!(refusal("strip", &[("bins", "fd")], one), @"`bins` is no parameter of a strip: there are by, metric, workload, where, title, size, x-range, log, confidence");
        insta::assert_snapshot!(refusal("strip", &[("x-range", "abc")], one), @"`x-range=abc`: `abc` is no range: write LOW:HIGH, such as 10ms:20ms, 0: or :64MiB");
        insta::assert_snapshot!(refusal("strip", &[("log", "y")], one), @"`log=y` is unknown: write x");
        insta::assert_snapshot!(refusal("ecdf", &[("confidence", "NaN")], one), @"`confidence=NaN`: `NaN` is not a ratio: write a number with %, such as `3%`");
        insta::assert_snapshot!(refusal("histogram", &[("bins", "sturges")], one), @"`bins=sturges` is unknown: write fd, scott");
        insta::assert_snapshot!(refusal("timeline", &[], one), @"the parameter `column` is missing for a timeline");
        insta::assert_snapshot!(refusal("timeline", &[("column", "a")], one), @"`column=a`: `a` is no column: write MONITOR.COLUMN, such as vmstat.nr_dirty (`perflab monitor list`)");
        insta::assert_snapshot!(refusal("heatmap", &[("column", "stat.user"), ("log", "x")], one), @"`log=x` is neither true nor false");
        insta::assert_snapshot!(refusal("heatmap", &[("column", "stat.user"), ("over", "a,b")], one), @"`column` and `over` exclude each other");
        insta::assert_snapshot!(refusal("heatmap", &[("column", "stat.user")], &["a", "b"]), @"a heatmap has fewer runs than that: leave out `run=b`");
        insta::assert_snapshot!(refusal("strip", &[("size", "1x1")], one), @"`size=1x1`: a picture is 300 to 8000 pixels wide and 200 to 16000 high");
    }
}
