//! How evenly targets of a synchronised run were served, and how far apart they started: on the page and in the
//! terminal.

use std::collections::BTreeMap;

use perflab_analyze::fairness::{IntervalEstimate, TargetFairness};
use perflab_model::quantity::format_quantity;
use perflab_model::{Case, RunRecord, Sample};

use crate::chart::axes::AxisBand;
use crate::chart::axis_unit::AxisUnit;
use crate::chart::dot_charts::{ChartDot, DotChart, LevelLine, RangeLine};
use crate::chart::scene::Scene;
use crate::grid::{Grid, GridCell, GridColumn};
use crate::run_viewer;
use crate::section::{MOST_OPEN_PARTS, ReportData, Section, SectionBlock, SectionError, no_conclusions};

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// How evenly the targets of a synchronised run were served.
pub(crate) const SECTION: Section = Section {
    id: "fairness",
    title: "Between targets",
    conclusions: no_conclusions,
    blocks: fairness_blocks,
};

/// A part for each run that had two targets or more at work.
fn fairness_blocks(data: &ReportData) -> Result<Vec<SectionBlock>, SectionError> {
    let several = data.runs.len() > 1;
    let part = |record: &RunRecord| {
        let blocks = run_blocks(record);
        let name = (several && !blocks.is_empty()).then(|| run_viewer::run_display_name(record));
        name.map(SectionBlock::Heading).into_iter().chain(blocks).collect::<Vec<_>>()
    };
    Ok(data.records().flat_map(part).collect())
}

fn run_blocks(record: &RunRecord) -> Vec<SectionBlock> {
    let all = perflab_analyze::target_fairness(record, CONFIDENCE);
    let names: Vec<String> = record.manifest.targets.iter().map(|target| target.name.clone()).collect();
    let synchronisation = synchronisation_text(record).map(|line| format!("{line}.")).into_iter();
    let sentences = synchronisation.chain(all.iter().map(|one| fairness_sentence(one, &names)));
    let mut blocks: Vec<SectionBlock> = sentences.map(SectionBlock::Text).collect();
    if !all.is_empty() {
        blocks.push(SectionBlock::Figure(spread_chart(&all)));
    }
    let figure = |one| SectionBlock::Figure(target_chart(one, &names));
    blocks.extend(all.iter().take(MOST_OPEN_PARTS).map(figure));
    let further: Vec<SectionBlock> = all.iter().skip(MOST_OPEN_PARTS).map(figure).collect();
    if !further.is_empty() {
        let count = Some(further.len());
        blocks.push(SectionBlock::Fold {
            summary: "Further cases and metrics".into(),
            count,
            blocks: further,
        });
    }
    blocks
}

fn fairness_sentence(one: &TargetFairness, names: &[String]) -> String {
    let each = |(index, median): (usize, &f64)| {
        format!("{} {}", target_name(names, index), format_quantity(*median, &one.unit))
    };
    let medians: Vec<String> = one.medians.iter().enumerate().map(each).collect();
    format!(
        "`{}`, `{}`: of {} targets in {} iterations, the largest value of an iteration was {} times its smallest, \
         Jain\u{2019}s index {}; medians: {}.",
        one.case,
        one.metric,
        one.targets,
        one.iterations,
        estimate_with_interval(&one.spread),
        estimate_with_interval(&one.jain),
        medians.join(", "),
    )
}

fn estimate_with_interval(estimate: &IntervalEstimate) -> String {
    match &estimate.interval {
        Some(interval) => format!("{:.3} [{:.3}, {:.3}]", estimate.value, interval.low, interval.high),
        None => format!("{:.3} (too few iterations for an interval)", estimate.value),
    }
}

fn target_name(names: &[String], index: usize) -> String {
    names.get(index).cloned().unwrap_or_else(|| format!("target {index}"))
}

/// A dot for each target in each iteration, and a rule from the least to the most of it.
fn target_chart(one: &TargetFairness, names: &[String]) -> Scene {
    let iterations = one.values.iter().enumerate();
    let dots = iterations.flat_map(|(at, (boot, values))| {
        values.iter().enumerate().map(move |(place, (target, value))| ChartDot {
            // Beside one another, as guests that are served alike would hide one another.
            x: at as f64 + (place as f64 - (values.len() as f64 - 1.0) / 2.0) * 0.6 / values.len() as f64,
            y: *value,
            interval: None,
            group: *target as usize,
            name: format!(
                "{}, boot {boot}, iteration {at}: {}",
                target_name(names, *target as usize),
                format_quantity(*value, &one.unit)
            ),
        })
    });
    DotChart {
        title: format!("{}, {}", one.case, one.metric),
        note: format!(
            "a dot a guest and iteration; largest over smallest {}, Jain\u{2019}s index {}",
            estimate_with_interval(&one.spread),
            estimate_with_interval(&one.jain)
        ),
        unit: AxisUnit::Plain(one.unit.clone()),
        x_title: "iteration".into(),
        x_labels: Vec::new(),
        dots: dots.collect(),
        ranges: one
            .values
            .iter()
            .enumerate()
            .filter_map(|(at, (_, values))| range_line(at, values))
            .collect(),
        levels: Vec::new(),
        bands: boot_bands(one),
        groups: names.to_vec(),
    }
    .render()
}

/// The iterations of each boot, where there were several.
fn boot_bands(one: &TargetFairness) -> Vec<AxisBand> {
    let mut from = 0.0;
    let boots = one.values.chunk_by(|(boot, _), (next, _)| boot == next);
    let spans = boots.filter_map(|iterations| {
        let to = from + iterations.len() as f64;
        let (boot, _) = iterations.first()?;
        let span = AxisBand { from: from - 0.5, to: to - 0.5, name: format!("boot {boot}") };
        from = to;
        Some(span)
    });
    Some(spans.collect::<Vec<_>>()).filter(|spans| spans.len() > 1).unwrap_or_default()
}

/// From the least to the most of one iteration.
fn range_line(at: usize, values: &[(u32, f64)]) -> Option<RangeLine> {
    let of = |pick: fn(f64, f64) -> f64| values.iter().map(|(_, value)| *value).reduce(pick);
    of(f64::min).zip(of(f64::max)).map(|(low, high)| RangeLine { x: at as f64, low, high })
}

/// Largest over smallest of every case, with its interval: 1 is even.
fn spread_chart(all: &[TargetFairness]) -> Scene {
    let dot = |(at, one): (usize, &TargetFairness)| ChartDot {
        x: at as f64,
        y: one.spread.value,
        interval: None,
        group: 0,
        name: format!("{}, {}: {}", one.case, one.metric, estimate_with_interval(&one.spread)),
    };
    let reach = |(at, one): (usize, &TargetFairness)| {
        let interval = one.spread.interval.as_ref()?;
        Some(RangeLine { x: at as f64, low: interval.low, high: interval.high })
    };
    let span = |(at, one): (usize, &TargetFairness)| AxisBand {
        from: at as f64 - 0.5,
        to: at as f64 + 0.5,
        name: one.case.clone(),
    };
    DotChart {
        title: "Largest over smallest".into(),
        note: "the median over iterations with its interval; 1, the line, is even".into(),
        unit: AxisUnit::Plain(String::new()),
        x_title: "case, in the order of below".into(),
        x_labels: Vec::new(),
        dots: all.iter().enumerate().map(dot).collect(),
        ranges: all.iter().enumerate().filter_map(reach).collect(),
        levels: vec![LevelLine { from: -0.5, to: all.len() as f64 - 0.5, value: 1.0 }],
        bands: all.iter().enumerate().map(span).collect(),
        groups: Vec::new(),
    }
    .render()
}

/// More targets than this have no row of their own.
const LISTED: usize = 8;

/// How far apart the targets of a run began, and how well that is known; `None` without two synchronised targets.
#[must_use]
pub fn synchronisation_text(record: &RunRecord) -> Option<String> {
    let skew = perflab_analyze::start_skew(record)?;
    let known = perflab_analyze::clock_bounds(record).map_or_else(String::new, |(middle, largest)| {
        format!("; at each release their clocks were known to {middle} (median), to {largest} at the worst")
    });
    Some(format!(
        "{} synchronised targets: they started within {} of one another (median of {} iterations), within {} at the most{known}; \
         this is the start of the process; the work itself starts later",
        record.manifest.targets.len(),
        skew.median,
        skew.iterations,
        skew.largest,
    ))
}

/// How evenly the targets of each case were served in its primary metrics, a line each.
#[must_use]
pub fn fairness_lines(record: &RunRecord) -> Vec<String> {
    if record.manifest.targets.len() < 2 {
        return Vec::new();
    }
    let all = perflab_analyze::target_fairness(record, CONFIDENCE).into_iter();
    let line = |one: perflab_analyze::TargetFairness| {
        format!(
            "{}, {}: largest of {} targets over smallest {}, Jain's index {} (medians of {} iterations)",
            one.case,
            one.metric,
            one.targets,
            estimate_and_interval_text(&one.spread),
            estimate_and_interval_text(&one.jain),
            one.iterations,
        )
    };
    all.map(line).collect()
}

/// The same as a table, with each target's median.
#[must_use]
pub fn fairness_grid(record: &RunRecord) -> Grid {
    let left = ["case", "metric"].map(GridColumn::left);
    let right = ["targets", "n", "largest/smallest", "Jain's index", "median of each"].map(GridColumn::right);
    let mut grid = Grid::new(left.into_iter().chain(right));
    for one in perflab_analyze::target_fairness(record, CONFIDENCE) {
        let medians: Vec<String> =
            one.medians.iter().map(|value| format_quantity(*value, &one.unit)).collect();
        grid.add_row([
            one.case.as_str().into(),
            one.metric.as_str().into(),
            (one.targets as u64).into(),
            (one.iterations as u64).into(),
            estimate_and_interval_text(&one.spread).as_str().into(),
            estimate_and_interval_text(&one.jain).as_str().into(),
            medians.join(", ").as_str().into(),
        ]);
    }
    grid
}

fn estimate_and_interval_text(estimate: &IntervalEstimate) -> String {
    match &estimate.interval {
        Some(interval) => format!("{:.3} [{:.3}, {:.3}]", estimate.value, interval.low, interval.high),
        None => format!("{:.3}", estimate.value),
    }
}

/// The median of each case and metric. Where several targets were at work a value is the mean over them, as in a comparison, and
/// each has a row of its own for the primary metrics.
#[must_use]
pub fn median_grid(record: &RunRecord) -> Grid {
    let names: Vec<&str> = record.manifest.targets.iter().map(|target| target.name.as_str()).collect();
    let by_target = record.samples.iter().any(|sample| sample.target.is_some());
    let target = by_target.then(|| GridColumn::left("target"));
    let left = ["case", "metric"].map(GridColumn::left).into_iter().chain(target);
    let mut grid = Grid::new(left.chain(["median", "min", "max", "n"].map(GridColumn::right)));
    let whole = perflab_analyze::average_over_targets(&record.samples);
    // What is all of them comes first, then each.
    let mut groups: BTreeMap<(u32, bool, &str, Option<u32>), Vec<&Sample>> = BTreeMap::new();
    let each = record.samples.iter().filter(|one| one.target.is_some() && one.primary);
    let each = each.filter(|_| (2..=LISTED).contains(&names.len()));
    for sample in whole.iter().chain(each) {
        let key = (sample.case, !sample.primary, sample.metric.as_str(), sample.target);
        groups.entry(key).or_default().push(sample);
    }
    for ((case, _, metric, target), samples) in groups {
        let mut values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
        values.sort_by(f64::total_cmp);
        let unit = samples.first().map(|sample| sample.unit.0.clone()).unwrap_or_default();
        let show = |value: Option<f64>| {
            value.map_or_else(GridCell::missing, |value| GridCell::quantity(value, &unit))
        };
        let label = record.manifest.plan.case(case).map(Case::label).unwrap_or_default();
        let who = match target {
            Some(target) => names.get(target as usize).copied().unwrap_or_default(),
            None => "mean of all",
        };
        let front = [GridCell::from(label.as_str()), metric.into()].into_iter();
        let back = [
            show(perflab_analyze::median(&values).ok()),
            show(values.first().copied()),
            show(values.last().copied()),
            (values.len() as u64).into(),
        ];
        grid.add_row(front.chain(by_target.then(|| who.into())).chain(back));
    }
    grid
}

#[cfg(test)]
mod tests {
    use perflab_model::{Nanos, Sample};

    use crate::chart::scene::SceneSurface;

    use super::*;

    fn target_sample(target: u32, iteration: u32, value: f64) -> Sample {
        Sample {
            boot: 0,
            target: Some(target),
            case: 0,
            iteration,
            metric: "bandwidth".into(),
            value,
            unit: perflab_model::Unit::new("MB/s"),
            direction: perflab_model::Direction::Higher,
            primary: true,
            start: Nanos(0),
            end: Nanos(1),
        }
    }

    fn sample_fairness() -> TargetFairness {
        let three = |n| {
            [(0, 10.0 + f64::from(n)), (1, 20.0), (2, 12.0)]
                .map(|(target, value)| target_sample(target, n, value))
        };
        let samples: Vec<[Sample; 3]> = (0..6).map(three).collect();
        let groups: Vec<Vec<&Sample>> = samples.iter().map(|three| three.iter().collect()).collect();
        perflab_analyze::case_fairness("memory-sweep guests=3".into(), "bandwidth", &groups, CONFIDENCE)
            .unwrap()
    }

    #[test]
    fn every_guest_of_every_iteration_is_a_dot_of_its_own_and_the_interval_is_said() {
        let names = ["guest1", "guest2", "guest3"].map(str::to_owned);
        let scene = target_chart(&sample_fairness(), &names);
        let picture = scene.to_svg(SceneSurface::Paper);
        for guest in &names {
            assert_eq!(picture.matches(&format!("{guest}, boot 0, iteration ")).count(), 6, "{guest}");
        }
        insta::assert_snapshot!(scene.texts().join("\n"), @"
        memory-sweep guests=3, bandwidth
        a dot a guest and iteration; largest over smallest 1.667 [1.667, 2.000], Jain’s index 0.942 [0.913, 0.958]
        10
        12
        14
        16
        18
        20
        0
        1
        2
        3
        4
        5
        MB/s
        iteration
        guest1
        guest2
        guest3
        ");
        insta::assert_snapshot!(fairness_sentence(&sample_fairness(), &names), @"`memory-sweep guests=3`, `bandwidth`: of 3 targets in 6 iterations, the largest value of an iteration was 1.667 [1.667, 2.000] times its smallest, Jain’s index 0.942 [0.913, 0.958]; medians: guest1 12.5 MB/s, guest2 20 MB/s, guest3 12 MB/s.");
        assert!(!scene.texts().contains(&"boot 0"), "there is but one");
        let mut two = sample_fairness();
        two.values.iter_mut().skip(4).for_each(|(boot, _)| *boot = 1);
        let scene = target_chart(&two, &names);
        assert!(
            ["boot 0", "boot 1"].iter().all(|title| scene.texts().contains(title)),
            "{:?}",
            scene.texts()
        );
        let spread = spread_chart(&[sample_fairness(), sample_fairness()]);
        insta::assert_snapshot!(spread.texts().join("\n"), @"
        Largest over smallest
        the median over iterations with its interval; 1, the line, is even
        1.6
        1.8
        2.0
        2.2
        2.4
        2.6
        2.8
        0
        1

        case, in the order of below
        memory-sweep guests=3
        memory-sweep guests=3
        no intervals: too few values a run
        ");
    }
}
