//! A badge: a metric's newest value with the verdict of its history, small enough for a line of a page.

use perflab_analyze::{GuardRow, MetricHistories, Verdict};

use crate::chart::palette::RgbColour;
use crate::chart::scene::{MarkInk, Scene, SceneMark, ScenePoint, TextAnchor, rect_mark};
use crate::chart::typeface::{FALLBACK_SHARE, shorten_to_width, text_width};
use crate::grid::GridCell;
use crate::history::{alarm_word, guard_row_text};

/// Pixels.
const HEIGHT: f64 = 20.0;

/// Pixels of its texts.
const LETTERS: f64 = 11.0;

/// Pixels left and right of a text.
const MARGIN: f64 = 7.0;

/// The widest text.
const WIDEST: f64 = 240.0;

const PAPER: RgbColour = RgbColour(0xff, 0xff, 0xff);

/// Behind the name.
const NAME: RgbColour = RgbColour(0x44, 0x4b, 0x53);

/// As on pages: a word says it, too.
fn verdict_colour(row: &GuardRow) -> RgbColour {
    match row.verdict {
        _ if row.standing.is_some() => RgbColour(0xb5, 0x47, 0x08),
        Verdict::Better => RgbColour(0x00, 0x71, 0x4f),
        Verdict::Worse => RgbColour(0xb5, 0x47, 0x08),
        Verdict::Same | Verdict::SameHere => RgbColour(0x00, 0x60, 0xa8),
        Verdict::Unclear | Verdict::Differs => RgbColour(0x7a, 0x54, 0x00),
    }
}

/// The badge of a series as `perflab guard` judges its newest run.
#[must_use]
pub fn guard_badge(history: &MetricHistories, row: &GuardRow) -> Scene {
    let value = GridCell::quantity(row.value, &row.unit.0).text().to_owned();
    // What got worse earlier is so still, whatever the newest run is against the level since.
    let word = if row.standing.is_some() { "✗ worse" } else { alarm_word(row) };
    let name = shorten_to_width(&row.metric, LETTERS, WIDEST);
    let text = shorten_to_width(&format!("{value}  {word}"), LETTERS, WIDEST);
    let [left, right] =
        [&name, &text].map(|text| (text_width(text, LETTERS) / FALLBACK_SHARE).ceil() + 2.0 * MARGIN);
    let (verdict, values) = guard_row_text(history, row);
    let description = format!("{}, {}: {verdict}; {values}", row.subject, row.metric);
    let inked = |x: f64, text: String| SceneMark::Text {
        at: ScenePoint { x, y: 14.0 },
        anchor: TextAnchor::Start,
        size: LETTERS,
        ink: MarkInk::Own(PAPER),
        text,
    };
    let behind = |from: f64, to: f64, colour: RgbColour| {
        rect_mark((from, 0.0), (to, HEIGHT), MarkInk::Own(colour), description.as_str())
    };
    let marks = vec![
        behind(0.0, left, NAME),
        behind(left, left + right, verdict_colour(row)),
        inked(MARGIN, name),
        inked(left + MARGIN, text),
    ];
    Scene { width: left + right, height: HEIGHT, description, marks }
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::{SplitMixNoise, build_daily_runs};
    use perflab_analyze::{AnalysisOptions, check_newest_run, metric_histories};

    use super::*;

    /// The texts of the badge over these levels, a run a day each.
    fn badge_texts(levels: &[f64]) -> String {
        let runs = build_daily_runs(levels, 0.005, SplitMixNoise(3));
        let options = AnalysisOptions::default();
        let found = metric_histories(&runs, &options).unwrap();
        let judged = check_newest_run(&found, &options).unwrap();
        let badge = guard_badge(&found, &judged.rows[0]);
        assert!(badge.width < 2.0 * WIDEST && badge.height == HEIGHT);
        badge.texts().join(" | ")
    }

    #[test]
    fn a_badge_has_the_words_of_the_guard() {
        let old = vec![0.0123; 15];
        let then = |level: f64, runs: usize| badge_texts(&[old.clone(), vec![level; runs]].concat());
        insta::assert_snapshot!(badge_texts(&old[..3]), @"time | 12.34 ms  ? too few runs");
        insta::assert_snapshot!(badge_texts(&old), @"time | 12.31 ms  = same");
        insta::assert_snapshot!(then(0.0140, 6), @"time | 13.95 ms  ✗ worse");
        insta::assert_snapshot!(then(0.0110, 6), @"time | 10.96 ms  ✓ better");
        insta::assert_snapshot!(then(0.0150, 1), @"time | 15 ms  ? outside");
        // Worse for long, which nobody has accepted.
        insta::assert_snapshot!(then(0.0140, 25), @"time | 14 ms  ✗ worse");
    }
}
