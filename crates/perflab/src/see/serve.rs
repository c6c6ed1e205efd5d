//! `perflab serve`: the web laboratory, whose results are those of `report`, `compare`, `history`, `guard` and `plot`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use perflab_analyze::{Comparison, MetricHistories};
use perflab_archive::ArchiveEntry;
use perflab_present::ReportData;
use perflab_present::chart::Scene;
use perflab_present::comparison::OutputFormat;
use perflab_present::guard_badge;
use perflab_serve::{
    HistoryRequest, ListenPlace, PictureRequest, RefusalReason, ResultRefusal, ResultSource, ServeOptions,
    query_parameter_names, serve_archive,
};

use crate::app::App;
use crate::failure::{Exit, Failure, UnexpectedError};
use crate::see::compare::{CompareArgs, build_explained_comparison};
use crate::see::history::{
    HistoryArgs, find_study_history, judge_newest_metric, read_histories, read_history_data,
};
use crate::see::picture_request::parse_picture;
use crate::see::report::{report_data, report_data_of};
use crate::selection::select_run;
use crate::signals::with_stop_signal;
use crate::verb::Verb;

/// Serves the archive until a signal ends it.
pub fn serve_laboratory(context: &App, args: &ServeArgs) -> Result<Exit, Failure> {
    let archive = context.archive()?;
    // What a verb says beside its result has no place in an answer.
    let mut silent = context.clone();
    (silent.quiet, silent.format) = (true, OutputFormat::Json);
    let source = ArchiveResults(silent);
    let place = match &args.socket {
        Some(path) => ListenPlace::Unix(path.clone()),
        None => args.listen.clone(),
    };
    let options = ServeOptions {
        place,
        hosts: args.host.clone(),
        may_write: args.write,
        token_file: args.token_file.clone(),
    };
    let mut printed = Ok(());
    let begun = |address: &str| {
        printed = context.print_value("address", address);
        context.note("^C ends it; whoever has this address reads the archive");
    };
    let (served, _) =
        with_stop_signal(|stop| serve_archive(archive, Arc::new(source), &options, stop, begun))?;
    served?;
    printed?;
    Ok(Exit::Fine)
}

/// The results that the verbs of the command line print.
struct ArchiveResults(App);

impl ResultSource for ArchiveResults {
    fn report_data(&self, selectors: &[String]) -> Result<ReportData<'static>, ResultRefusal> {
        let archive = self.0.archive().map_err(refuse_request)?;
        report_data_of(&archive, selectors).map(|(_, data)| data).map_err(refuse_request)
    }

    fn run_data(&self, id: &str) -> Result<ReportData<'static>, ResultRefusal> {
        let archive = self.0.archive().map_err(refuse_request)?;
        let run = select_run(&archive, id).map_err(refuse_request)?;
        report_data(std::slice::from_ref(&run), Vec::new()).map_err(refuse_request)
    }

    fn comparison(&self, selectors: &[String], by: Option<&str>) -> Result<Comparison, ResultRefusal> {
        let by = by.map(|by| format!("--by={by}"));
        let args: CompareArgs = parse_verb(by, selectors).map_err(refuse_request)?;
        build_explained_comparison(&self.0, &args).map(|(found, _)| found).map_err(refuse_request)
    }

    fn history_data(&self, of: &HistoryRequest) -> Result<ReportData<'static>, ResultRefusal> {
        let args = parse_history(of)?;
        read_history_data(&self.0, &args.of).map_err(refuse_request)
    }

    fn histories(&self, of: &HistoryRequest) -> Result<MetricHistories, ResultRefusal> {
        let args = parse_history(of)?;
        read_histories(&self.0, &args.of).map(|(_, found)| found).map_err(refuse_request)
    }

    fn study_history(
        &self,
        runs: &[ArchiveEntry],
        last: usize,
    ) -> Result<Option<MetricHistories>, ResultRefusal> {
        let args = parse_history(&HistoryRequest {
            metrics: vec!["primary".to_owned()],
            last: Some(last),
            ..HistoryRequest::default()
        })?;
        find_study_history(&self.0, &args.of, runs).map_err(refuse_request)
    }

    fn picture(&self, of: &PictureRequest) -> Result<Scene, ResultRefusal> {
        let kind = parse_picture(of)?;
        kind.draw(&self.0).map_err(refuse_request)
    }

    fn badge(&self, of: &HistoryRequest, case: Option<&str>) -> Result<Scene, ResultRefusal> {
        let args = parse_history(of)?;
        let (found, row) = judge_newest_metric(&self.0, &args.of, case).map_err(refuse_request)?;
        Ok(guard_badge(&found, &row))
    }
}

fn parse_history(of: &HistoryRequest) -> Result<HistoryArgs, ResultRefusal> {
    let workloads = of.workloads.iter().map(|name| format!("--workload={name}"));
    let label = of.label.iter().map(|label| format!("--label={label}"));
    let study = of.study.iter().map(|study| format!("--study={study}"));
    let last = of.last.iter().map(|last| format!("--last={last}"));
    let options = workloads.chain(label).chain(study).chain(last);
    parse_verb(options, &of.metrics).map_err(refuse_request)
}

/// The arguments of a verb with what it takes where nothing else is said: options, then words that are none.
fn parse_verb<A: Args + FromArgMatches>(
    options: impl IntoIterator<Item = String>,
    words: &[String],
) -> Result<A, Failure> {
    let typed = options.into_iter().chain(["--".to_owned()]).chain(words.iter().cloned());
    let command = A::augment_args(Command::new("verb").no_binary_name(true));
    let parsed = command.try_get_matches_from(typed);
    let parsed = parsed.and_then(|matches: ArgMatches| A::from_arg_matches(&matches));
    // The parameters have types: only a mistake of ours is left.
    parsed.map_err(|error| UnexpectedError(error.to_string()).into())
}

fn refuse_request(failure: Failure) -> ResultRefusal {
    let sentence = name_parameters(&failure.to_string());
    ResultRefusal { reason: RefusalReason::Class(failure.exit().class()), sentence }
}

/// A sentence in the words of an address: what are options of a verb are parameters there, without dashes.
fn name_parameters(sentence: &str) -> String {
    let known: BTreeSet<&str> = query_parameter_names().collect();
    let mut parts = sentence.split("--");
    let mut named = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end =
            part.find(|letter: char| !letter.is_ascii_lowercase() && letter != '-').unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        match known.contains(name) {
            true if named.ends_with('`') => named += part,
            true => named += &format!("`{name}`{rest}"),
            false => named += &format!("--{part}"),
        }
    }
    named
}

/// Serve the archive to a browser on this machine
#[derive(Debug, Args)]
#[command(after_long_help = SERVE)]
pub struct ServeArgs {
    /// A port of this machine, or ADDRESS:PORT; port 0 is any that is free
    #[arg(long, value_name = "PORT|ADDRESS:PORT", default_value = "0")]
    pub listen: ListenPlace,
    /// Listen on this Unix socket instead, which only this user can connect to: for a reverse proxy
    #[arg(long, value_name = "PATH", conflicts_with = "listen")]
    pub socket: Option<PathBuf>,
    /// A further name under which it is reached, such as that of the proxy (repeatable)
    #[arg(long, value_name = "NAME", value_parser = parse_host_name)]
    pub host: Vec<String>,
    /// Keep the token in this file, for the next start and for programs; it is made where it is not there
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Let pages and scripts change labels and add notes
    #[arg(long)]
    pub write: bool,
}

/// A name as `Host` has it, without a port.
fn parse_host_name(text: &str) -> Result<String, String> {
    let is_address = text.parse::<std::net::IpAddr>().is_ok();
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_');
    match is_address || (!text.is_empty() && text.chars().all(is_letter)) {
        true => Ok(text.to_owned()),
        false => Err("a host is named like lab.example, without a scheme and a port".into()),
    }
}

impl Verb for ServeArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        serve_laboratory(app, self)
    }
}

const SERVE: &str = "\
Prints an address with a token, new at each start but for --token-file; the browser keeps it in a
cookie. Scripts send it in the header Authorization: Bearer TOKEN. It only reads, and only the
archive, but for labels and notes with --write.

Examples:
  perflab serve                                     any free port
  perflab serve --listen 8080
  perflab serve --listen 8080 --token-file token    for Grafana and Prometheus
  perflab serve --socket /run/user/1000/perflab.sock --host lab.example";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_named_as_the_parameters_that_they_are() {
        let named = [
            "several: choose with --metric, --workload and --where",
            "--x-range: `2:1` ends before it begins",
            "see `--metric` and `perflab rm --force`",
            "none",
        ]
        .map(name_parameters);
        insta::assert_snapshot!(named.join("\n"), @"
        several: choose with `metric`, `workload` and `where`
        `x-range`: `2:1` ends before it begins
        see `metric` and `perflab rm --force`
        none
        ");
    }
}
