//! Targets in step, as the page's template reads them: every target's iteration as a dot, and how evenly they were served
//! with its interval. What is fair is `analyze::together`'s to say.

use perflab_analyze::together::{self, Estimate, Fairness};
use perflab_model::RunRecord;
use serde::Serialize;

use super::number::quantity;
use super::run;
use crate::chart::{Dot, Dots, Level, PALETTE, Range, Scene, Span, Surface, Unit};
use crate::table;

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// What is said of one run.
#[derive(Debug, Serialize)]
pub(super) struct View {
    run: String,
    lines: Vec<String>,
    figures: Vec<String>,
}

/// A view for each run that had two targets or more at work.
pub(super) fn views<'a>(records: impl Iterator<Item = &'a RunRecord>) -> Vec<View> {
    records.filter_map(view).collect()
}

fn view(record: &RunRecord) -> Option<View> {
    let all = together::fairness(record, CONFIDENCE);
    let punctuality = table::targets::punctuality(record);
    if all.is_empty() && punctuality.is_none() {
        return None;
    }
    let names: Vec<String> = record.manifest.targets.iter().map(|target| target.name.clone()).collect();
    let mut scenes: Vec<Scene> = all.iter().map(|one| every_iteration(one, &names)).collect();
    if !all.is_empty() {
        scenes.push(spreads(&all));
    }
    let lines = punctuality.map(|line| format!("{line}.")).into_iter();
    Some(View {
        run: run::name(record),
        lines: lines.chain(all.iter().map(|one| sentence(one, &names))).collect(),
        figures: scenes.iter().map(|scene| scene.svg(Surface::Inline)).collect(),
    })
}

fn sentence(one: &Fairness, names: &[String]) -> String {
    let each =
        |(index, median): (usize, &f64)| format!("{} {}", name(names, index), quantity(*median, &one.unit));
    let medians: Vec<String> = one.medians.iter().enumerate().map(each).collect();
    format!(
        "`{}`, `{}`: of {} targets in {} iterations, the largest value of an iteration was {} times its smallest, \
         Jain\u{2019}s index {}; medians: {}.",
        one.case,
        one.metric,
        one.targets,
        one.iterations,
        interval(&one.spread),
        interval(&one.jain),
        medians.join(", "),
    )
}

fn interval(estimate: &Estimate) -> String {
    match &estimate.interval {
        Some(interval) => format!("{:.3} [{:.3}, {:.3}]", estimate.value, interval.low, interval.high),
        None => format!("{:.3} (too few iterations for an interval)", estimate.value),
    }
}

fn name(names: &[String], index: usize) -> String {
    names.get(index).cloned().unwrap_or_else(|| format!("target {index}"))
}

/// A dot for each target in each iteration, and a rule from the least to the most of it.
fn every_iteration(one: &Fairness, names: &[String]) -> Scene {
    let iterations = one.values.iter().enumerate();
    let dots = iterations.flat_map(|(at, (boot, values))| {
        values.iter().enumerate().map(move |(place, (target, value))| Dot {
            // Beside one another, as guests that are served alike would hide one another.
            x: at as f64 + (place as f64 - (values.len() as f64 - 1.0) / 2.0) * 0.6 / values.len() as f64,
            y: *value,
            interval: None,
            group: *target as usize % PALETTE.len(),
            name: format!("{}, boot {boot}, iteration {at}: {value:.4}", name(names, *target as usize)),
        })
    });
    Dots {
        title: format!("{}, {}", one.case, one.metric),
        note: format!(
            "a dot a guest and iteration; largest over smallest {}, Jain\u{2019}s index {}",
            interval(&one.spread),
            interval(&one.jain)
        ),
        unit: Unit::Plain(one.unit.clone()),
        across: "iteration".into(),
        dots: dots.collect(),
        ranges: one.values.iter().enumerate().filter_map(|(at, (_, values))| range(at, values)).collect(),
        levels: Vec::new(),
        spans: boots(one),
        groups: names.iter().take(one.targets).cloned().collect(),
    }
    .scene()
}

/// The iterations of each boot, where there were several.
fn boots(one: &Fairness) -> Vec<Span> {
    let mut from = 0.0;
    let boots = one.values.chunk_by(|(boot, _), (next, _)| boot == next);
    let spans = boots.filter_map(|iterations| {
        let to = from + iterations.len() as f64;
        let (boot, _) = iterations.first()?;
        let span = Span { from: from - 0.5, to: to - 0.5, name: format!("boot {boot}") };
        from = to;
        Some(span)
    });
    Some(spans.collect::<Vec<_>>()).filter(|spans| spans.len() > 1).unwrap_or_default()
}

/// From the least to the most of one iteration.
fn range(at: usize, values: &[(u32, f64)]) -> Option<Range> {
    let of = |pick: fn(f64, f64) -> f64| values.iter().map(|(_, value)| *value).reduce(pick);
    of(f64::min).zip(of(f64::max)).map(|(low, high)| Range { at: at as f64, low, high })
}

/// Largest over smallest of every case, with its interval: 1 is even.
fn spreads(all: &[Fairness]) -> Scene {
    let dot = |(at, one): (usize, &Fairness)| Dot {
        x: at as f64,
        y: one.spread.value,
        interval: None,
        group: at % PALETTE.len(),
        name: format!("{}, {}: {}", one.case, one.metric, interval(&one.spread)),
    };
    let reach = |(at, one): (usize, &Fairness)| {
        let interval = one.spread.interval.as_ref()?;
        Some(Range { at: at as f64, low: interval.low, high: interval.high })
    };
    let span = |(at, one): (usize, &Fairness)| Span {
        from: at as f64 - 0.5,
        to: at as f64 + 0.5,
        name: one.case.clone(),
    };
    Dots {
        title: "Largest over smallest".into(),
        note: "the median over iterations with its interval; 1, the line, is even".into(),
        unit: Unit::Plain(String::new()),
        across: "case, in the order of above".into(),
        dots: all.iter().enumerate().map(dot).collect(),
        ranges: all.iter().enumerate().filter_map(reach).collect(),
        levels: vec![Level { from: -0.5, to: all.len() as f64 - 0.5, value: 1.0 }],
        spans: all.iter().enumerate().map(span).collect(),
        groups: Vec::new(),
    }
    .scene()
}

#[cfg(test)]
mod tests {
    use perflab_model::{Nanos, Sample};

    use super::*;

    fn sample(target: u32, iteration: u32, value: f64) -> Sample {
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

    fn fairness() -> Fairness {
        let three = |n| {
            [(0, 10.0 + f64::from(n)), (1, 20.0), (2, 12.0)].map(|(target, value)| sample(target, n, value))
        };
        let samples: Vec<[Sample; 3]> = (0..6).map(three).collect();
        let groups: Vec<Vec<&Sample>> = samples.iter().map(|three| three.iter().collect()).collect();
        together::of_case("memory-sweep guests=3".into(), "bandwidth", &groups, CONFIDENCE).unwrap()
    }

    #[test]
    fn every_guest_of_every_iteration_is_a_dot_of_its_own_and_the_interval_is_said() {
        let names = ["guest1", "guest2", "guest3"].map(str::to_owned);
        let picture = every_iteration(&fairness(), &names).svg(Surface::Paper);
        for guest in &names {
            assert_eq!(picture.matches(&format!("{guest}, boot 0, iteration ")).count(), 6, "{guest}");
        }
        assert!(picture.contains("largest over smallest 1.667 [1.667, 2.000]"), "{picture}");
        let said = sentence(&fairness(), &names);
        assert!(said.contains("guest3 12\u{a0}MB/s"), "{said}");
        assert!(!picture.contains("boot 0</text>"), "there is but one");
        let mut two = fairness();
        two.values.iter_mut().skip(4).for_each(|(boot, _)| *boot = 1);
        let picture = every_iteration(&two, &names).svg(Surface::Paper);
        assert!(["boot 0</text>", "boot 1</text>"].iter().all(|title| picture.contains(title)), "{picture}");
        assert!(spreads(&[fairness(), fairness()]).svg(Surface::Paper).contains("Largest over smallest"));
    }
}
