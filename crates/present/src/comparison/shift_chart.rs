//! The shift function as a picture: how far each decile moved, and the band that holds all of them at once.

use perflab_analyze::{ChangeScale, Comparison, RowShift, VerdictRow};

use crate::chart::axis_unit::AxisUnit;
use crate::chart::dot_charts::{ChartDot, DotChart, LevelLine};
use crate::chart::scene::Scene;
use crate::comparison::row_text::{format_size, verdict_words};
use crate::method_text::percent_of_level;

/// As many rows are drawn: a page of thousands would be no use.
pub(crate) const MOST_SHIFT_CHARTS: usize = 60;

/// What an open end reaches beyond the others, as a share of their range.
const OPEN: f64 = 0.08;

/// The pictures of the rows that have ten values a side, those that decide first, and how many rows are left out.
pub(crate) fn shift_charts(comparison: &Comparison) -> (Vec<Scene>, usize) {
    let rows = comparison.deciding_rows();
    let drawn = |row: &&VerdictRow| {
        Some(shift_chart(row, &RowShift::from_row(row, &comparison.runs, comparison.confidence)?, comparison))
    };
    let charts: Vec<Scene> = rows.iter().filter_map(drawn).take(MOST_SHIFT_CHARTS).collect();
    let left = rows.len() - charts.len();
    (charts, left)
}

/// One row's.
fn shift_chart(row: &VerdictRow, shift: &RowShift, comparison: &Comparison) -> Scene {
    let ends =
        || shift.deciles.iter().flat_map(|decile| [decile.low, decile.high, Some(decile.shift)]).flatten();
    let (least, most) = (ends().fold(0.0, f64::min), ends().fold(0.0, f64::max));
    let beyond = (most - least) * OPEN;
    let dots = shift.deciles.iter().enumerate().map(|(place, decile)| ChartDot {
        x: place as f64,
        y: decile.shift,
        interval: Some((decile.low.unwrap_or(least - beyond), decile.high.unwrap_or(most + beyond))),
        group: usize::from(decile.excludes_zero()),
        name: match (decile.low, decile.high) {
            (Some(_), Some(_)) => format!("decile {}", place + 1),
            (Some(_), None) => format!("decile {}: no upper end", place + 1),
            (None, Some(_)) => format!("decile {}: no lower end", place + 1),
            (None, None) => format!("decile {}: no ends", place + 1),
        },
    });
    let margin = match shift.scale {
        ChangeScale::Ratio => row.margin,
        ChangeScale::Absolute => row.margin * row.baseline.as_ref().map_or(0.0, |side| side.median.abs()),
    };
    let level = |value| LevelLine { from: 0.0, to: 8.0, value };
    let name =
        if comparison.candidates.len() > 1 { format!(" ({})", row.candidate_name) } else { String::new() };
    DotChart {
        title: format!("{}, {}{name}: {}", row.subject, row.metric, verdict_words(row)),
        note: format!(
            "square: how far the decile moved; rule: the band for all nine at {} %; lines: no change, ± {}",
            percent_of_level(comparison.confidence),
            format_size(row.margin)
        ),
        unit: match shift.scale {
            ChangeScale::Ratio => AxisUnit::Share,
            ChangeScale::Absolute => AxisUnit::Plain(row.unit.to_string()),
        },
        x_title: "share of the values below".into(),
        x_labels: (1..10).map(|tenth| format!("{tenth}0 %")).collect(),
        dots: dots.collect(),
        levels: [0.0, margin, -margin].into_iter().map(level).collect(),
        ranges: Vec::new(),
        bands: Vec::new(),
        groups: vec!["no change is possible".into(), "changed".into()],
    }
    .render()
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::{RunBuilder, SplitMixNoise};
    use perflab_analyze::{AnalysisOptions, ComparisonSide, compare_levels};

    use super::*;

    /// A tail of which one value in five takes 30 % longer: the upper deciles move, the lower ones do not.
    fn compare_with_heavy_tail(iterations: u32) -> Comparison {
        let mut noise = SplitMixNoise(8);
        let run = RunBuilder::new("r")
            .with(|lab| {
                lab.factors = vec![("build", vec!["old", "new"])];
                lab.iterations = iterations;
            })
            .build_run(|at| {
                let value = noise.lognormal_around(10.0, 0.02);
                let is_slow = at.level("build") == "new" && noise.uniform() < 0.2;
                Some(if is_slow { value * 1.3 } else { value })
            });
        let side = ComparisonSide { name: "r".into(), runs: vec![run] };
        compare_levels(&side, "build", &AnalysisOptions::default()).unwrap()
    }

    #[test]
    fn upper_deciles_that_moved_are_marked() {
        let comparison = compare_with_heavy_tail(300);
        let shift = RowShift::from_row(&comparison.rows[0], &comparison.runs, 0.95).unwrap();
        assert!(!shift.deciles[2].excludes_zero() && shift.deciles[7].shift > 0.01);
        let (charts, left) = shift_charts(&comparison);
        assert_eq!((charts.len(), left), (1, 0));
        insta::assert_snapshot!(charts[0].texts().join("\n"), @"
        sweep, time: worse
        square: how far the decile moved; rule: the band for all nine at 95 %; lines: no change, ± 3 %
        -10
        0
        10
        20
        30
        40
        10 %
        30 %
        50 %
        70 %
        90 %
        %
        share of the values below
        no change is possible
        changed
        ");
    }

    #[test]
    fn nine_values_have_no_picture() {
        let (charts, left) = shift_charts(&compare_with_heavy_tail(9));
        assert_eq!((charts.len(), left), (0, 1));
    }
}
