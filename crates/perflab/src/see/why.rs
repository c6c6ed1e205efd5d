//! `perflab why`: what goes with a change, from everything that its runs recorded.

use clap::Args;
use perflab_analyze::why::{Explanation, explain_row, figures_of_series};
use perflab_analyze::{CaseCondition, Comparison, VerdictRow};
use perflab_model::{Nanos, Ratio};
use perflab_present::comparison::OutputFormat;
use perflab_present::why::{
    ExplanationDocument, explanation_schema, explanation_text, series_grid, suspect_grid,
};

use crate::app::App;
use crate::failure::{Exit, Failure};
use crate::file_runs::NamedRuns;
use crate::quantities::{parse_confidence, parse_margin};
use crate::see::compare::{self, CONFIDENCE, CompareArgs, ComparisonStyle, MARGIN, WarmupChoice};
use crate::see::recorded_sides::RecordedSides;
use crate::see::row_suspects::changed_rows;
use crate::see::why_test::test_suspect;
use crate::selection;
use crate::verb::Verb;

/// Columns of a line where there is no terminal.
const USUAL_WIDTH: usize = 100;

/// Explains the row that changed most, or the one that was named.
pub fn explain_change(context: &App, args: &WhyArgs) -> Result<Exit, Failure> {
    if args.schema {
        context.print_text(&serde_json::to_string_pretty(&explanation_schema())?)?;
        return Ok(Exit::Fine);
    }
    let named = NamedRuns::resolve(context, &args.runs)?;
    let compared = args.as_compared(named.selectors.clone());
    let (mut comparison, read) = compare::build_comparison(context, &compared)?;
    let archive = context.archive()?;
    let runs = selection::find_named_runs(&archive, &selection::named_runs_or_latest(&named.selectors))?;
    selection::add_kernel_log(&mut comparison, &read, &selection::read_kernel_logs(&runs)?);
    let changed = changed_rows(&comparison);
    let Some(row) = changed.first().map(|row| (*row).clone()) else {
        return nothing_changed(context, &comparison);
    };
    let mut recorded = RecordedSides::read(&read, &runs)?;
    let options = compare::comparison_options(&compared);
    if let Some(series) = &args.series {
        let figures = figures_of_series(&comparison, &row, &recorded.sides, &options, series)?;
        match context.format {
            OutputFormat::Json => context.print_json(&figures)?,
            _ => context.print_grid(&series_grid(&figures))?,
        }
        return Ok(Exit::Fine);
    }
    let mut found = explain_row(&comparison, &row, &recorded.sides, &options, &recorded.monitors)?;
    found.left_out.append(&mut recorded.left_out);
    if let Some(limit) = args.test {
        let tested = test_suspect(context, (&found, &row), (&comparison, &recorded.sides), &options, limit)?;
        found.tested = Some(tested);
    }
    print_explanation(context, &found, &comparison)?;
    let others: Vec<&&VerdictRow> = changed.iter().skip(1).collect();
    if let Some(other) = others.first() {
        let place = format!("{} {} of {}", other.subject, other.metric, other.candidate_name);
        context.note_line(&format!(
            "{} more rows changed, such as {place}: --metric, --workload, --where and --versus choose",
            others.len()
        ));
    }
    Ok(Exit::Fine)
}

/// There is nothing to explain: what `compare` says of the rows instead.
fn nothing_changed(context: &App, comparison: &Comparison) -> Result<Exit, Failure> {
    if context.format == OutputFormat::Json {
        context.print_json(&ExplanationDocument::new(None, comparison))?;
    } else {
        let rows = comparison.deciding_rows();
        let reason = |row: &VerdictRow| {
            row.withheld.as_ref().map(|reason| format!(" ({reason}; --across compares them all the same)"))
        };
        let word = |row: &&VerdictRow| {
            format!(
                "{} {} is {}{}",
                row.subject,
                row.metric,
                row.verdict_word(),
                reason(row).unwrap_or_default()
            )
        };
        let first = rows.first().map_or_else(|| "no metric was measured on both sides".to_owned(), word);
        let more = match rows.len() {
            0 | 1 => String::new(),
            count => format!(", and {} more", count - 1),
        };
        context.print_text(&format!("nothing to explain: {first}{more}"))?;
    }
    Ok(Exit::NothingJudged)
}

fn print_explanation(context: &App, found: &Explanation, comparison: &Comparison) -> Result<(), Failure> {
    match context.format {
        OutputFormat::Json => context.print_json(&ExplanationDocument::new(Some(found), comparison)),
        OutputFormat::Csv => context.print_grid(&suspect_grid(found)),
        OutputFormat::Markdown => {
            context.print_text(&explanation_text(found, None, false))?;
            if found.has_suspects() {
                context.print_text("")?;
                context.print_grid(&suspect_grid(found))?;
            }
            Ok(())
        }
        _ => {
            let width = context.width.unwrap_or(USUAL_WIDTH);
            context.print_text(&explanation_text(found, Some(width), context.colour))
        }
    }
}

/// Explain a change: what goes with it, each suspect with its evidence
#[derive(Debug, Clone, Args)]
#[command(after_long_help = WHY)]
pub struct WhyArgs {
    /// A baseline and a candidate; or one run or label, the levels of whose factor are compared (default: @latest)
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,
    /// The factor whose levels to compare, if a run varies several
    #[arg(long, value_name = "FACTOR")]
    pub by: Option<String>,
    /// Explain this metric (default: of those that decide, the one that changed most)
    #[arg(long, value_name = "NAME")]
    pub metric: Vec<String>,
    /// Only this workload, in which * stands for any text (repeatable)
    #[arg(long, value_name = "NAME")]
    pub workload: Vec<String>,
    /// Only cases with this level of a factor or value of a parameter, or runs with this fact (repeatable)
    #[arg(long = "where", value_name = "KEY=VALUE")]
    pub conditions: Vec<CaseCondition>,
    /// Only this run or level as the candidate
    #[arg(long, value_name = "NAME")]
    pub versus: Vec<String>,
    /// Explain cases that share a name even if their command, parameters or definition differ
    #[arg(long)]
    pub across: bool,
    /// Print this quantity beside the metric, iteration by iteration, as it was weighed: `minor-faults`, `vmstat pgfault`
    #[arg(long, value_name = "NAME")]
    pub series: Option<String>,
    /// Test the first suspect that a setting switches, if that takes no longer than TIME: measure both sides again under each
    /// of its levels, in turn
    #[arg(long, value_name = "TIME", conflicts_with = "series")]
    pub test: Option<Nanos>,
    /// Confidence of the intervals
    #[arg(long, default_value_t = CONFIDENCE, value_name = "PERCENT", value_parser = parse_confidence)]
    pub confidence: Ratio,
    /// The smallest relative change that matters, unless the study gives one for the metric
    #[arg(long, default_value_t = MARGIN, value_name = "PERCENT", value_parser = parse_margin)]
    pub margin: Ratio,
    /// Print the JSON Schema of `--format json`
    #[arg(long, conflicts_with = "runs")]
    pub schema: bool,
}

impl WhyArgs {
    /// What is compared.
    fn as_compared(&self, runs: Vec<String>) -> CompareArgs {
        CompareArgs {
            runs,
            by: self.by.clone().into_iter().collect(),
            monitor: None,
            baseline: None,
            style: ComparisonStyle::Perflab,
            ratio: false,
            stat: Vec::new(),
            significance: false,
            gate: crate::gate_args::GateArgs::default(),
            metric: self.metric.clone(),
            workload: self.workload.clone(),
            conditions: self.conditions.clone(),
            versus: self.versus.clone(),
            all_studies: false,
            sort: None,
            schema: false,
            fact: None,
            across: self.across,
            boots_differ: false,
            warmup: WarmupChoice::Keep,
            confidence: self.confidence,
            margin: self.margin,
        }
    }
}

impl Verb for WhyArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        explain_change(app, self)
    }
}

const WHY: &str = "\
Examples:
  perflab why before after             what goes with the change between two labels
  perflab why @latest --by pages       between the levels of a factor, iteration by iteration
  perflab why @latest --metric access  of this metric
  perflab why @latest --test 5min      and test the first suspect, by both sides with and without it

A suspect goes with the change; only its test shows whether it is the cause. Exit code 7 means that
nothing changed.";
