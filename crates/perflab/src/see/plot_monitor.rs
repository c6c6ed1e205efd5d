//! `perflab plot timeline` and `heatmap`: what monitors recorded, over time; and a metric over two parameters.

use clap::Args;
use perflab_analyze::{
    AnalysisOptions, CaseCondition, MonitorLineOptions, MonitorLines, MonitoredRun, ValueGrid,
    derive_columns, metric_grid, metric_lines, monitor_grid, monitor_lines,
};
use perflab_present::chart::{AxisLook, Scene};
use perflab_present::plot::{PlotLook, heat_map_scene, timeline_scene};

use crate::app::App;
use crate::failure::{Failure, UsageError};
use crate::file_runs::NamedRuns;
use crate::see::plot_look::{AxisRange, AxisValues, PictureArgs, axis_look};
use crate::selection;

/// Lines of one run at most: more have no colours of their own.
const MOST_LINES: usize = 7;

/// Rows of a heat map at most.
const MOST_ROWS: usize = 128;

/// Columns of a heat map over time at most.
const MOST_COLUMNS: usize = 200;

/// `vmstat.nr_dirty`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorColumn {
    monitor: String,
    column: String,
}

impl std::str::FromStr for MonitorColumn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts =
            text.split_once('.').filter(|(monitor, column)| !monitor.is_empty() && !column.is_empty());
        let (monitor, column) = parts.ok_or_else(|| {
            format!("`{text}` is no column: write MONITOR.COLUMN, such as vmstat.nr_dirty (`perflab monitor list`)")
        })?;
        Ok(MonitorColumn { monitor: monitor.to_owned(), column: column.to_owned() })
    }
}

/// `perflab plot timeline`
#[derive(Debug, Args)]
pub struct TimelineArgs {
    /// The runs (default: @latest); one line each
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,
    /// What is drawn: a gauge's values, a counter's growth a second
    #[arg(long, value_name = "MONITOR.COLUMN")]
    pub column: MonitorColumn,
    /// Only the row of this key (a CPU, a device, a cache), in which * stands for any text (repeatable)
    #[arg(long, value_name = "KEY")]
    pub row: Vec<String>,
    /// One line for each level of this factor: the middle of its iterations, from the start of each
    #[arg(long, value_name = "FACTOR")]
    pub by: Option<String>,
    /// With --by: only iterations of cases with this level or value of a parameter (repeatable)
    #[arg(long = "where", value_name = "KEY=VALUE", requires = "by")]
    pub conditions: Vec<CaseCondition>,
    #[command(flatten)]
    pub picture: PictureArgs,
    /// Ends of the time axis: 0s:10s
    #[arg(long, value_name = "LOW:HIGH")]
    pub x_range: Option<AxisRange>,
    /// Ends of the vertical axis, in the unit of the values: 0:64MiB
    #[arg(long, value_name = "LOW:HIGH", allow_hyphen_values = true)]
    pub y_range: Option<AxisRange>,
    /// A logarithmic vertical axis (y: time has none)
    #[arg(long, value_name = "AXIS", value_parser = ["y"])]
    pub log: Option<String>,
}

/// Draws a column over time.
pub fn draw_timeline(context: &App, args: &TimelineArgs) -> Result<Scene, Failure> {
    let options = MonitorLineOptions {
        keys: args.row.clone(),
        by: args.by.clone(),
        conditions: args.conditions.clone(),
        most: MOST_LINES,
    };
    let found = read_monitor_lines(context, &args.runs, &args.column, &options)?;
    let x = axis_look("--x-range", args.x_range.as_ref(), false, AxisValues::Seconds)?;
    let values = AxisValues::OfUnit(&found.unit);
    let y = axis_look("--y-range", args.y_range.as_ref(), args.log.is_some(), values)?;
    let look = plain_look(&args.picture, [x, y]);
    Ok(timeline_scene(&found, &look))
}

fn read_monitor_lines(
    context: &App,
    runs: &[String],
    column: &MonitorColumn,
    options: &MonitorLineOptions,
) -> Result<MonitorLines, Failure> {
    let archive = context.archive()?;
    let named = NamedRuns::resolve(context, &selection::named_runs_or_latest(runs))?;
    let mut monitored: Vec<MonitoredRun> = Vec::new();
    for selector in &named.selectors {
        let directories = archive.find_runs(selector)?;
        for directory in &directories {
            let record = directory.read_record()?;
            let name = match (&record.manifest.label, directories.len()) {
                (Some(label), 1) => label.clone(),
                (Some(label), _) => format!("{label} ({})", directory.short_id()),
                (None, _) => directory.short_id().to_owned(),
            };
            let series = directory.read_series(&column.monitor)?;
            let series = derive_columns(&series).into_owned();
            monitored.push(MonitoredRun { name, record, series });
        }
    }
    // Lines are told apart by their names.
    for at in 0..monitored.len() {
        let name = monitored.get(at).map(|run| run.name.clone()).unwrap_or_default();
        if monitored.iter().filter(|run| run.name == name).count() > 1 {
            for (number, run) in monitored.iter_mut().filter(|run| run.name == name).enumerate() {
                run.name = format!("{name} ({})", number + 1);
            }
        }
    }
    Ok(monitor_lines(&monitored, &column.column, options)?)
}

fn plain_look(picture: &PictureArgs, [x, y]: [AxisLook; 2]) -> PlotLook {
    PlotLook {
        title: picture.title.clone(),
        width: picture.width(),
        height: picture.height(),
        x,
        y,
        ..PlotLook::default()
    }
}

/// `perflab plot heatmap`
#[derive(Debug, Args)]
pub struct HeatMapArgs {
    /// The run (default: @latest); of a metric, its repetitions under one label, too
    #[arg(value_name = "RUN", default_value = "@latest")]
    pub run: String,
    /// A monitor's column by row and time: a gauge's values, a counter's growth a second
    #[arg(long, value_name = "MONITOR.COLUMN", conflicts_with = "over", required_unless_present = "over")]
    pub column: Option<MonitorColumn>,
    /// With --column: only rows of this key, in which * stands for any text (repeatable)
    #[arg(long, value_name = "KEY", conflicts_with = "over")]
    pub row: Vec<String>,
    /// A metric over two parameters or factors, the first across
    #[arg(long, value_name = "ACROSS,DOWN", value_delimiter = ',')]
    pub over: Vec<String>,
    /// With --over: only this metric, in which * stands for any text
    #[arg(long, value_name = "NAME", conflicts_with = "column")]
    pub metric: Vec<String>,
    /// With --over: only this workload
    #[arg(long, value_name = "NAME", conflicts_with = "column")]
    pub workload: Vec<String>,
    /// With --over: only cases with this level of a factor, or value of a parameter (repeatable)
    #[arg(long = "where", value_name = "KEY=VALUE", conflicts_with = "column")]
    pub conditions: Vec<CaseCondition>,
    #[command(flatten)]
    pub picture: PictureArgs,
    /// The values at the ends of the scale of colours: 0:64MiB
    #[arg(long, value_name = "LOW:HIGH", allow_hyphen_values = true)]
    pub range: Option<AxisRange>,
    /// A logarithmic scale of colours
    #[arg(long)]
    pub log: bool,
}

/// Draws values as colours.
pub fn draw_heat_map(context: &App, args: &HeatMapArgs) -> Result<Scene, Failure> {
    let grid = match &args.column {
        Some(column) => {
            let options = MonitorLineOptions {
                keys: args.row.clone(),
                most: MOST_ROWS,
                ..MonitorLineOptions::default()
            };
            let found = read_monitor_lines(context, std::slice::from_ref(&args.run), column, &options)?;
            if found.left_out > 0 {
                context
                    .note(format!("{} rows that vary less are left out: choose with --row", found.left_out));
            }
            monitor_grid(&found, MOST_COLUMNS)
        }
        None => read_metric_grid(context, args)?,
    };
    let y = axis_look("--range", args.range.as_ref(), args.log, AxisValues::OfUnit(&grid.unit))?;
    let look = plain_look(&args.picture, [AxisLook::default(), y]);
    Ok(heat_map_scene(&grid, &look))
}

fn read_metric_grid(context: &App, args: &HeatMapArgs) -> Result<ValueGrid, Failure> {
    let [across, down] = args.over.as_slice() else {
        return Err(UsageError::new("--over takes two parameters", "name two, such as `threads,size`").into());
    };
    let archive = context.archive()?;
    let mut sides = [selection::select_side(&archive, &args.run)?];
    let options = AnalysisOptions {
        conditions: selection::keep_runs_with_facts(&mut sides, &args.conditions)?,
        metrics: args.metric.clone(),
        workloads: args.workload.clone(),
        ..AnalysisOptions::default()
    };
    Ok(metric_grid(&metric_lines(&sides, None, &options)?, [across, down])?)
}
