//! `perflab plot`: metrics and comparisons as pictures in files.

use clap::{Args, Subcommand, ValueEnum};
use perflab_analyze::{
    AnalysisOptions, BinRule, CaseCondition, Comparison, ComparisonSide, MetricLines, ScalingLaw,
    compare_levels, compare_sides, metric_lines, scaling_curves,
};
use perflab_model::Ratio;
use perflab_present::chart::{AxisLook, Scene};
use perflab_present::plot::{
    MOST_PANELS, PlotLook, distribution_scene, histogram_scene, intervals_scene, scaling_scene, strip_scene,
};

use crate::app::{self, App};
use crate::failure::{Exit, Failure, UsageError};
use crate::file_runs::NamedRuns;
use crate::quantities::{parse_confidence, parse_margin};
use crate::see::compare::{CONFIDENCE, MARGIN};
use crate::see::plot_look::{AxisRange, AxisValues, PictureArgs, PictureAxis, axis_look};
use crate::see::plot_monitor::{HeatMapArgs, TimelineArgs, draw_heat_map, draw_timeline};
use crate::selection;
use crate::verb::Verb;

/// Draw metrics and comparisons as pictures: SVG or PNG
#[derive(Debug, Args)]
#[command(after_long_help = PLOT)]
pub struct PlotArgs {
    #[command(subcommand)]
    pub kind: PlotKind,
}

impl Verb for PlotArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        let scene = self.kind.draw(app)?;
        app::write_scene(app, Some(&self.kind.picture().output), || scene)?;
        Ok(Exit::Fine)
    }
}

const PLOT: &str = "\
One picture has a panel for each metric and case, and in it a line for each run or level; without
--metric, those metrics that decide. A name has the same colour in every picture. The same data
give the same file, byte for byte.

Examples:
  perflab plot strip before after -o time.svg             every iteration, medians with intervals
  perflab plot ecdf @latest --by pages -o ecdf.png        distributions with their bands
  perflab plot histogram before after --metric 'lat*' -o h.svg --log x
  perflab plot interval before after -o verdicts.svg      the changes of `compare`, for a slide
  perflab plot scaling before after --over threads --fit usl -o scaling.svg
  perflab plot timeline before after --column vmstat.nr_dirty -o dirty.svg
  perflab plot heatmap @latest --column stat.user -o cpus.svg";

/// The kinds of pictures.
#[derive(Debug, Subcommand)]
pub enum PlotKind {
    /// Draw every value in order of time, a row each run or level, with its median
    Strip(StripArgs),
    /// Draw which share of the values is up to a value, with a band for the whole curve
    Ecdf(EcdfArgs),
    /// Draw how many values lie where, in bins by a rule
    Histogram(HistogramArgs),
    /// Draw the changes between runs or levels with their intervals: verdicts for a slide
    Interval(IntervalArgs),
    /// Draw a metric over a parameter that is a number, such as threads, with the law that fits it
    Scaling(ScalingArgs),
    /// Draw what a monitor recorded over time, runs or levels on one axis
    Timeline(TimelineArgs),
    /// Draw a monitor's column by row and time, or a metric over two parameters, as colours
    Heatmap(HeatMapArgs),
}

impl PlotKind {
    /// The picture.
    ///
    /// # Errors
    /// Runs that cannot be read, or have nothing of what is to be drawn; a range in another unit.
    pub fn draw(&self, app: &App) -> Result<Scene, Failure> {
        match self {
            PlotKind::Strip(args) => draw_strips(app, args),
            PlotKind::Ecdf(args) => draw_distributions(app, args),
            PlotKind::Histogram(args) => draw_histograms(app, args),
            PlotKind::Interval(args) => draw_intervals(app, args),
            PlotKind::Scaling(args) => draw_scaling(app, args),
            PlotKind::Timeline(args) => draw_timeline(app, args),
            PlotKind::Heatmap(args) => draw_heat_map(app, args),
        }
    }

    fn picture(&self) -> &PictureArgs {
        match self {
            PlotKind::Strip(args) => &args.picture,
            PlotKind::Ecdf(args) => &args.picture,
            PlotKind::Histogram(args) => &args.picture,
            PlotKind::Interval(args) => &args.picture,
            PlotKind::Scaling(args) => &args.picture,
            PlotKind::Timeline(args) => &args.picture,
            PlotKind::Heatmap(args) => &args.picture,
        }
    }
}

/// Which samples are drawn.
#[derive(Debug, Args)]
pub struct PlottedRuns {
    /// The runs, also files of other tools (default: @latest); one line each
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,
    /// One line for each level of this factor (default for one run: its factor, if it has one)
    #[arg(long, value_name = "FACTOR")]
    pub by: Option<String>,
    /// Only this metric, in which * stands for any text; or all that decide or explain (repeatable)
    #[arg(long, value_name = "NAME|primary|explanatory")]
    pub metric: Vec<String>,
    /// Only this workload (repeatable)
    #[arg(long, value_name = "NAME")]
    pub workload: Vec<String>,
    /// Only cases with this level of a factor, or value of a parameter (repeatable)
    #[arg(long = "where", value_name = "KEY=VALUE")]
    pub conditions: Vec<CaseCondition>,
}

impl PlottedRuns {
    fn options(&self) -> AnalysisOptions {
        AnalysisOptions {
            metrics: self.metric.clone(),
            workloads: self.workload.clone(),
            conditions: self.conditions.clone(),
            ..AnalysisOptions::default()
        }
    }

    /// One side a name.
    fn read_sides(&self, context: &App) -> Result<Vec<ComparisonSide>, Failure> {
        let named = NamedRuns::resolve(context, &selection::named_runs_or_latest(&self.runs))?;
        let archive = context.archive()?;
        selection::select_sides(&named.selectors, |name| selection::select_side(&archive, name))
    }

    /// The factor whose levels are lines: the one that is named; of one run, the only one that it varied.
    fn lines_by(&self, sides: &[ComparisonSide]) -> Result<Option<String>, UsageError> {
        if self.by.is_some() {
            return Ok(self.by.clone());
        }
        let [alone] = sides else { return Ok(None) };
        match selection::varied_factors(alone).as_slice() {
            [] => Ok(None),
            [factor] => Ok(Some(factor.clone())),
            several => Err(UsageError::new(
                format!("`{}` has several factors, and each could be the lines", alone.name),
                format!("name one with --by: {}", several.join(", ")),
            )),
        }
    }

    /// The metrics with their lines; says how many panels are left out.
    fn read_lines(&self, context: &App) -> Result<Vec<MetricLines>, Failure> {
        let mut sides = self.read_sides(context)?;
        let conditions = selection::keep_runs_with_facts(&mut sides, &self.conditions)?;
        let options = AnalysisOptions { conditions, ..self.options() };
        let found = metric_lines(&sides, self.lines_by(&sides)?.as_deref(), &options)?;
        note_left_out_panels(context, found.len());
        Ok(found)
    }
}

/// The look of an axis of values, which all panels share.
fn value_axis(
    option: &str,
    range: Option<&AxisRange>,
    logarithmic: bool,
    metrics: &[MetricLines],
) -> Result<AxisLook, UsageError> {
    let Some(first) = metrics.first() else { return Ok(AxisLook::default()) };
    if let Some(other) = metrics.iter().find(|metric| metric.unit != first.unit).filter(|_| range.is_some()) {
        return Err(UsageError::new(
            format!(
                "{option} is for one unit, but {} is in {} and {} in {}",
                first.metric, first.unit, other.metric, other.unit
            ),
            "choose one with --metric",
        ));
    }
    axis_look(option, range, logarithmic, AxisValues::OfUnit(&first.unit))
}

/// `perflab plot strip`
#[derive(Debug, Args)]
pub struct StripArgs {
    #[command(flatten)]
    pub of: PlottedRuns,
    #[command(flatten)]
    pub picture: PictureArgs,
    /// Ends of the axis, in the unit of the values: 10ms:20ms, 0:
    #[arg(long, value_name = "LOW:HIGH", allow_hyphen_values = true)]
    pub x_range: Option<AxisRange>,
    /// A logarithmic axis (x: rows have no other)
    #[arg(long, value_name = "AXIS", value_parser = ["x"])]
    pub log: Option<String>,
    /// Confidence of the intervals
    #[arg(long, default_value_t = CONFIDENCE, value_name = "PERCENT", value_parser = parse_confidence)]
    pub confidence: Ratio,
}

fn draw_strips(context: &App, args: &StripArgs) -> Result<Scene, Failure> {
    let metrics = args.of.read_lines(context)?;
    let x = value_axis("--x-range", args.x_range.as_ref(), args.log.is_some(), &metrics)?;
    let look = picture_look(&args.picture, args.confidence, [x, AxisLook::default()]);
    Ok(strip_scene(&metrics, &look))
}

/// Axes of a picture with values along the one and shares up the other.
#[derive(Debug, Args)]
pub struct ShareAxes {
    /// Ends of the horizontal axis, in the unit of the values: 10ms:20ms, 0:
    #[arg(long, value_name = "LOW:HIGH", allow_hyphen_values = true)]
    pub x_range: Option<AxisRange>,
    /// Ends of the vertical axis: 0:50%
    #[arg(long, value_name = "LOW:HIGH")]
    pub y_range: Option<AxisRange>,
    /// Logarithmic axes: x, y or x,y
    #[arg(long, value_enum, value_name = "AXIS", value_delimiter = ',')]
    pub log: Vec<PictureAxis>,
}

impl ShareAxes {
    fn looks(&self, metrics: &[MetricLines]) -> Result<[AxisLook; 2], UsageError> {
        let is_log = |axis| self.log.contains(&axis);
        let x = value_axis("--x-range", self.x_range.as_ref(), is_log(PictureAxis::X), metrics)?;
        let y = axis_look("--y-range", self.y_range.as_ref(), is_log(PictureAxis::Y), AxisValues::Shares)?;
        Ok([x, y])
    }
}

/// `perflab plot ecdf`
#[derive(Debug, Args)]
pub struct EcdfArgs {
    #[command(flatten)]
    pub of: PlottedRuns,
    #[command(flatten)]
    pub picture: PictureArgs,
    #[command(flatten)]
    pub axes: ShareAxes,
    /// Confidence of the bands
    #[arg(long, default_value_t = CONFIDENCE, value_name = "PERCENT", value_parser = parse_confidence)]
    pub confidence: Ratio,
}

fn draw_distributions(context: &App, args: &EcdfArgs) -> Result<Scene, Failure> {
    let metrics = args.of.read_lines(context)?;
    let look = picture_look(&args.picture, args.confidence, args.axes.looks(&metrics)?);
    Ok(distribution_scene(&metrics, &look))
}

/// The rules of `--bins`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BinRuleChoice {
    /// Freedman and Diaconis: by the middle half of the values
    Fd,
    /// Scott: by the standard deviation
    Scott,
}

/// `perflab plot histogram`
#[derive(Debug, Args)]
pub struct HistogramArgs {
    #[command(flatten)]
    pub of: PlottedRuns,
    #[command(flatten)]
    pub picture: PictureArgs,
    #[command(flatten)]
    pub axes: ShareAxes,
    /// The rule that says how wide bins are
    #[arg(long, value_enum, default_value_t = BinRuleChoice::Fd, value_name = "RULE")]
    pub bins: BinRuleChoice,
}

fn draw_histograms(context: &App, args: &HistogramArgs) -> Result<Scene, Failure> {
    let metrics = args.of.read_lines(context)?;
    let look = picture_look(&args.picture, CONFIDENCE, args.axes.looks(&metrics)?);
    let rule = match args.bins {
        BinRuleChoice::Fd => BinRule::FreedmanDiaconis,
        BinRuleChoice::Scott => BinRule::Scott,
    };
    Ok(histogram_scene(&metrics, rule, &look))
}

/// `perflab plot interval`
#[derive(Debug, Args)]
pub struct IntervalArgs {
    #[command(flatten)]
    pub of: PlottedRuns,
    #[command(flatten)]
    pub picture: PictureArgs,
    /// The level that others are compared with (default: the first)
    #[arg(long, value_name = "LEVEL")]
    pub baseline: Option<String>,
    /// Ends of the axis: -10%:10%
    #[arg(long, value_name = "LOW:HIGH", allow_hyphen_values = true)]
    pub x_range: Option<AxisRange>,
    /// Confidence of the intervals
    #[arg(long, default_value_t = CONFIDENCE, value_name = "PERCENT", value_parser = parse_confidence)]
    pub confidence: Ratio,
    /// The smallest relative change that matters, unless the study gives one for the metric
    #[arg(long, default_value_t = MARGIN, value_name = "PERCENT", value_parser = parse_margin)]
    pub margin: Ratio,
}

fn draw_intervals(context: &App, args: &IntervalArgs) -> Result<Scene, Failure> {
    let comparison = compare_plotted_runs(context, args)?;
    let x = axis_look("--x-range", args.x_range.as_ref(), false, AxisValues::Shares)?;
    let look = picture_look(&args.picture, args.confidence, [x, AxisLook::default()]);
    Ok(intervals_scene(&comparison, &look))
}

/// Runs against the first; of one run, or with a factor, its levels against the baseline.
fn compare_plotted_runs(context: &App, args: &IntervalArgs) -> Result<Comparison, Failure> {
    let mut sides = args.of.read_sides(context)?;
    let options = AnalysisOptions {
        confidence: args.confidence.0,
        default_margin: args.margin.0,
        baseline: args.baseline.clone(),
        conditions: selection::keep_runs_with_facts(&mut sides, &args.of.conditions)?,
        ..args.of.options()
    };
    let archive = context.archive()?;
    if let Some(factor) = args.of.lines_by(&sides)? {
        // Several runs are repetitions of one another.
        let name = sides.iter().map(|side| side.name.as_str()).collect::<Vec<_>>().join(", ");
        let side = ComparisonSide { name, runs: sides.into_iter().flat_map(|side| side.runs).collect() };
        let sides = [side];
        let [side] = &sides;
        return selection::compare_with_history(&archive, &sides, &options, |options| {
            compare_levels(side, &factor, options)
        });
    }
    if let Some(baseline) = &args.baseline {
        let known = sides.iter().map(|side| side.name.as_str());
        let at = sides.iter().position(|side| side.name == *baseline).ok_or_else(|| {
            let hint = perflab_model::problem::suggest_name(baseline, known);
            UsageError::new(format!("no run that was named is called `{baseline}`"), hint)
        })?;
        sides.get_mut(..=at).unwrap_or_default().rotate_right(1);
    }
    let options =
        AnalysisOptions { baseline: None, earlier: selection::earlier_runs(&archive, &sides), ..options };
    match sides.split_first() {
        Some((baseline, candidates)) if !candidates.is_empty() => {
            selection::compare_with_history(&archive, &sides, &options, |options| {
                compare_sides(baseline, candidates, options)
            })
        }
        _ => Err(UsageError::new(
            "one run without a factor has no change to draw",
            "name a second run, or draw its values: perflab plot strip",
        )
        .into()),
    }
}

/// `perflab plot scaling`
#[derive(Debug, Args)]
pub struct ScalingArgs {
    #[command(flatten)]
    pub of: PlottedRuns,
    #[command(flatten)]
    pub picture: PictureArgs,
    /// The parameter along the horizontal axis: one of the matrix, or a factor whose levels are numbers
    #[arg(long, value_name = "PARAMETER")]
    pub over: String,
    /// The law that is fitted to the medians: Amdahl's, or Gunther's Universal Scalability Law
    #[arg(long, value_enum, value_name = "LAW")]
    pub fit: Option<ScalingLawChoice>,
    /// Ends of the horizontal axis: 1:64
    #[arg(long, value_name = "LOW:HIGH")]
    pub x_range: Option<AxisRange>,
    /// Ends of the vertical axis, in the unit of the values: 0:20ms
    #[arg(long, value_name = "LOW:HIGH", allow_hyphen_values = true)]
    pub y_range: Option<AxisRange>,
    /// Logarithmic axes: x, y or x,y
    #[arg(long, value_enum, value_name = "AXIS", value_delimiter = ',')]
    pub log: Vec<PictureAxis>,
    /// Confidence of the intervals
    #[arg(long, default_value_t = CONFIDENCE, value_name = "PERCENT", value_parser = parse_confidence)]
    pub confidence: Ratio,
}

/// The laws of `--fit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScalingLawChoice {
    /// contention only
    Amdahl,
    /// contention and coherency
    Usl,
}

fn draw_scaling(context: &App, args: &ScalingArgs) -> Result<Scene, Failure> {
    let mut sides = args.of.read_sides(context)?;
    let conditions = selection::keep_runs_with_facts(&mut sides, &args.of.conditions)?;
    let options = AnalysisOptions { conditions, ..args.of.options() };
    // The parameter is the axis: another factor of the only run is its lines.
    let by = match (&args.of.by, sides.as_slice()) {
        (None, [alone]) => {
            let mut others = selection::varied_factors(alone);
            others.retain(|factor| *factor != args.over);
            if let [only] = others.as_slice() { Some(only.clone()) } else { None }
        }
        (by, _) => by.clone(),
    };
    let metrics = metric_lines(&sides, by.as_deref(), &options)?;
    let law = args.fit.map(|law| match law {
        ScalingLawChoice::Amdahl => ScalingLaw::Amdahl,
        ScalingLawChoice::Usl => ScalingLaw::Universal,
    });
    let curves = scaling_curves(&metrics, &args.over, law, args.confidence.0)?;
    note_left_out_panels(context, curves.len());
    let is_log = |axis| args.log.contains(&axis);
    let x = axis_look("--x-range", args.x_range.as_ref(), is_log(PictureAxis::X), AxisValues::Numbers)?;
    let y = value_axis("--y-range", args.y_range.as_ref(), is_log(PictureAxis::Y), &metrics)?;
    let look = picture_look(&args.picture, args.confidence, [x, y]);
    Ok(scaling_scene(&curves, &args.over, &look))
}

/// Says how many panels a picture has no room for.
fn note_left_out_panels(context: &App, panels: usize) {
    if panels > MOST_PANELS {
        context.note(format!(
            "the first {MOST_PANELS} of {panels} metrics and cases are drawn: choose with --metric, --workload and --where"
        ));
    }
}

fn picture_look(picture: &PictureArgs, confidence: Ratio, [x, y]: [AxisLook; 2]) -> PlotLook {
    let title = picture.title.clone();
    PlotLook { title, width: picture.width(), height: picture.height(), x, y, confidence: confidence.0 }
}
