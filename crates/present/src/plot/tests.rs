//! Pictures as golden files, and what must hold for any of them.

use fixtures::run_builder::{RunBuilder, SplitMixNoise};
use perflab_analyze::{
    AnalysisOptions, BinRule, ComparisonSide, MarkedIteration, MetricLines, MonitorLine, MonitorLines,
    MonitorPoint, SampleLine, ScalingCurves, ScalingLaw, ValueGrid, compare_levels, metric_lines,
    monitor_grid, scaling_curves,
};
use perflab_model::{Direction, Unit};

use super::*;
use crate::chart::look::AxisLook;
use crate::chart::scene::{Scene, SceneMark, SceneSurface, TEXT, TextAnchor};
use crate::chart::typeface;

/// Two levels, one of which has a tail, in the unit of `time`.
fn side_with_tail(workloads: Vec<&'static str>, iterations: u32) -> ComparisonSide {
    let mut noise = SplitMixNoise(5);
    let run = RunBuilder::new("r")
        .with(|lab| {
            lab.workloads = workloads;
            lab.factors = vec![("pages", vec!["ordinary", "huge"])];
            lab.iterations = iterations;
        })
        .build_run(|at| {
            let value = noise.lognormal_around(0.0123, 0.04);
            let is_slow = noise.uniform() < 0.1;
            let faster = if at.level("pages") == "huge" { 0.8 } else { 1.0 };
            Some(value * faster * if is_slow { 1.3 } else { 1.0 })
        });
    ComparisonSide { name: "r".into(), runs: vec![run] }
}

fn lines_of(side: ComparisonSide) -> Vec<MetricLines> {
    metric_lines(&[side], Some("pages"), &AnalysisOptions::default()).unwrap()
}

fn two_levels() -> Vec<MetricLines> {
    lines_of(side_with_tail(vec!["memory-sweep"], 30))
}

/// Metrics with the given values in place of what was measured.
fn with_values(values: &[f64]) -> Vec<MetricLines> {
    let mut found = two_levels();
    for line in found.iter_mut().flat_map(|metric| &mut metric.lines) {
        line.points.truncate(values.len());
        line.points.iter_mut().zip(values).for_each(|(point, value)| point.value = *value);
    }
    found
}

fn all_kinds(metrics: &[MetricLines], look: &PlotLook) -> Vec<(&'static str, Scene)> {
    vec![
        ("strip", strip_scene(metrics, look)),
        ("ecdf", distribution_scene(metrics, look)),
        ("histogram", histogram_scene(metrics, BinRule::FreedmanDiaconis, look)),
    ]
}

fn sized(width: f64, height: Option<f64>) -> PlotLook {
    PlotLook { width: Some(width), height, ..PlotLook::default() }
}

/// Writes pictures where `PERFLAB_LOOK` says, for whoever looks at them.
fn keep_for_looking(name: &str, scene: &Scene) {
    if let Some(folder) = std::env::var_os("PERFLAB_LOOK") {
        let folder = std::path::Path::new(&folder);
        std::fs::write(folder.join(format!("{name}.png")), scene.to_png().unwrap()).unwrap();
        std::fs::write(folder.join(format!("{name}.svg")), scene.to_svg(SceneSurface::Paper)).unwrap();
    }
}

/// The texts of a scene as boxes: left, right, top, bottom.
fn text_boxes(scene: &Scene) -> Vec<(String, [f64; 4])> {
    let text_box = |mark: &SceneMark| match mark {
        SceneMark::Text { at, anchor, size, text, .. } if !text.is_empty() => {
            let width = typeface::text_width(text, *size);
            let left = match anchor {
                TextAnchor::Start => at.x,
                TextAnchor::Middle => at.x - width / 2.0,
                TextAnchor::End => at.x - width,
            };
            Some((text.clone(), [left, left + width, at.y - size * 0.75, at.y + size * 0.2]))
        }
        _ => None,
    };
    scene.marks.iter().filter_map(text_box).collect()
}

/// Texts that touch one another, or leave the picture.
fn misplaced_texts(scene: &Scene) -> Vec<String> {
    let boxes = text_boxes(scene);
    let mut wrong = Vec::new();
    let face = typeface::embedded_face().unwrap();
    for (at, (text, [left, right, top, bottom])) in boxes.iter().enumerate() {
        if text.chars().any(|letter| face.glyph_index(letter).is_none()) {
            wrong.push(format!("`{text}` has letters that the typeface lacks"));
        }
        if *left < -0.5 || *right > scene.width + 0.5 || *top < -0.5 || *bottom > scene.height + 0.5 {
            wrong.push(format!("`{text}` leaves the picture: {left:.0} to {right:.0} of {}", scene.width));
        }
        for (other, [l, r, t, b]) in boxes.iter().skip(at + 1) {
            if left < r && l < right && top < b && t < bottom {
                wrong.push(format!("`{text}` touches `{other}`"));
            }
        }
    }
    wrong
}

#[test]
fn pictures_read_as_they_were_looked_at() {
    let metrics = two_levels();
    for (name, scene) in all_kinds(&metrics, &PlotLook::default()) {
        insta::assert_snapshot!(name, scene.to_svg(SceneSurface::Paper));
    }
    let side = side_with_tail(vec!["memory-sweep"], 30);
    let comparison = compare_levels(&side, "pages", &AnalysisOptions::default()).unwrap();
    let scene = intervals_scene(&comparison, &PlotLook::default());
    insta::assert_snapshot!("intervals", scene.to_svg(SceneSurface::Paper));
}

#[test]
fn no_text_touches_another_at_any_size() {
    let many = side_with_tail(vec!["memory-sweep", "a-workload-with-quite-a-long-name", "fs"], 30);
    let comparison = compare_levels(&many, "pages", &AnalysisOptions::default()).unwrap();
    let logarithmic = AxisLook { logarithmic: true, ..AxisLook::default() };
    for metrics in [two_levels(), lines_of(many)] {
        for (width, height) in
            [(300.0, Some(200.0)), (400.0, None), (400.0, Some(300.0)), (900.0, None), (1200.0, Some(800.0))]
        {
            for x in [AxisLook::default(), logarithmic] {
                let look = PlotLook { x, ..sized(width, height) };
                let pictures = all_kinds(&metrics, &look)
                    .into_iter()
                    .chain([("intervals", intervals_scene(&comparison, &look))]);
                for (name, scene) in pictures {
                    let log = if x.logarithmic { "-log" } else { "" };
                    keep_for_looking(
                        &format!("{name}-{width}-{}-{}{log}", height.unwrap_or(0.0), metrics.len()),
                        &scene,
                    );
                    assert_eq!(misplaced_texts(&scene), Vec::<String>::new(), "{name}, {width} wide");
                }
            }
        }
    }
    assert!(
        text_boxes(&strip_scene(&two_levels(), &sized(400.0, None)))
            .iter()
            .all(|(_, [_, _, top, bottom])| bottom - top < 2.0 * TEXT)
    );
}

#[test]
fn the_same_data_are_the_same_bytes() {
    let draw = || all_kinds(&two_levels(), &PlotLook::default());
    for ((_, one), (_, other)) in draw().into_iter().zip(draw()) {
        assert_eq!(one.to_svg(SceneSurface::Paper), other.to_svg(SceneSurface::Paper));
        assert_eq!(one.to_png().unwrap(), other.to_png().unwrap());
    }
}

/// One value, equal ones, zeros on a logarithmic axis, huge and tiny ones, ranges in which nothing is.
#[test]
fn values_that_are_hard_to_draw_are_drawn() {
    let values: &[&[f64]] = &[
        &[1.0],
        &[0.0],
        &[5.0; 20],
        &[0.0; 20],
        &[0.0, 1.0, 2.0, 3.0],
        &[-1.0, -2.0, -3.0],
        &[1e-300, 1e300],
        &[f64::MIN, f64::MAX],
        &[f64::MIN_POSITIVE, 2.0 * f64::MIN_POSITIVE],
        &[1e15, 1e15 + 1.0],
    ];
    let ranges = [(None, None), (Some(10.0), Some(20.0)), (Some(-1.0), Some(0.5))];
    for values in values {
        let metrics = with_values(values);
        for (low, high) in ranges {
            for logarithmic in [false, true] {
                let x = AxisLook { low, high, logarithmic };
                for y in [AxisLook::default(), AxisLook { logarithmic: true, ..AxisLook::default() }] {
                    for (name, scene) in all_kinds(&metrics, &PlotLook { x, y, ..PlotLook::default() }) {
                        let svg = scene.to_svg(SceneSurface::Paper);
                        assert!(
                            !svg.contains("NaN") && !svg.contains("inf"),
                            "{name} of {values:?} in {x:?}"
                        );
                        // Of the two axes up, one is enough to see whether pixels can be made.
                        assert!(y.logarithmic || scene.to_png().is_ok(), "{name} of {values:?} in {x:?}");
                    }
                }
            }
        }
    }
    for (_, scene) in all_kinds(&[], &PlotLook::default()) {
        assert!(scene.marks.is_empty());
    }
}

/// A step in a gauge of two devices, as lines of one run.
fn monitor_lines_of(lines: Vec<MonitorLine>) -> MonitorLines {
    let span = |at: u32| MarkedIteration {
        from: f64::from(at) * 2.0,
        to: f64::from(at) * 2.0 + 1.5,
        name: if at.is_multiple_of(2) { "huge".into() } else { "ordinary".into() },
    };
    MonitorLines {
        monitor: "vmstat".into(),
        column: "nr_dirty".into(),
        unit: Unit::new("pages"),
        is_rate: false,
        lines,
        left_out: 3,
        iterations: (0..5).map(span).collect(),
    }
}

fn monitor_line(name: &str, scale: f64, spread: bool) -> MonitorLine {
    let point = |at: u32| {
        let value = scale * (1.0 + f64::from(at % 10)) * if at > 50 { 3.0 } else { 1.0 };
        let spread = spread.then_some((value * 0.8, value * 1.3));
        MonitorPoint { seconds: f64::from(at) * 0.1, value, spread }
    };
    MonitorLine {
        name: name.into(),
        parts: vec![(0..40).map(point).collect(), (45..100).map(point).collect()],
    }
}

fn scaling_of(law: Option<ScalingLaw>) -> Vec<ScalingCurves> {
    let mut noise = SplitMixNoise(3);
    let mut metric = |threads: u32| {
        let mut line = |name: &str, loss: f64| {
            let n = f64::from(threads);
            let rate = 1000.0 * n / (1.0 + loss * (n - 1.0) + 0.002 * n * (n - 1.0));
            let mut found = two_levels().remove(0).lines.remove(0);
            found.points.iter_mut().for_each(|point| point.value = noise.lognormal_around(rate, 0.03));
            SampleLine { name: name.into(), ..found }
        };
        MetricLines {
            subject: format!("sweep threads={threads}"),
            point: vec![("threads".into(), threads.to_string())],
            metric: "rate".into(),
            unit: Unit::new("ops/s"),
            direction: Direction::Higher,
            primary: true,
            lines: vec![line("before", 0.05), line("after", 0.01)],
        }
    };
    let metrics: Vec<MetricLines> = [1, 2, 4, 8, 16, 32].map(&mut metric).into();
    scaling_curves(&metrics, "threads", law, 0.95).unwrap()
}

fn parameter_grid() -> ValueGrid {
    let value = |row: i32, column: i32| {
        (row != 1 || column != 2).then(|| f64::from(10 + row * 7 + column * column) * 1e6)
    };
    ValueGrid {
        name: "time".into(),
        unit: Unit::new("ns"),
        row_name: "size".into(),
        rows: vec!["4K".into(), "64K".into(), "1M".into()],
        column_name: "threads".into(),
        columns: (0..5).map(|power| (1 << power).to_string()).collect(),
        seconds: None,
        values: (0..3).map(|row| (0..5).map(|column| value(row, column)).collect()).collect(),
    }
}

/// Timelines, scaling curves and heat maps.
fn other_kinds(look: &PlotLook) -> Vec<(&'static str, Scene)> {
    let devices = monitor_lines_of(vec![monitor_line("sda", 100.0, false), monitor_line("sdb", 40.0, false)]);
    let cpus = (0..20).map(|cpu| monitor_line(&format!("cpu{cpu}"), f64::from(cpu), false)).collect();
    let levels = vec![monitor_line("huge", 100.0, true), monitor_line("ordinary", 150.0, true)];
    let levels = MonitorLines { iterations: Vec::new(), left_out: 0, ..monitor_lines_of(levels) };
    vec![
        ("timeline", timeline_scene(&devices, look)),
        ("timeline-levels", timeline_scene(&levels, look)),
        ("scaling", scaling_scene(&scaling_of(Some(ScalingLaw::Universal)), "threads", look)),
        ("scaling-plain", scaling_scene(&scaling_of(None), "threads", look)),
        ("heat-time", heat_map_scene(&monitor_grid(&monitor_lines_of(cpus), 200), look)),
        ("heat-grid", heat_map_scene(&parameter_grid(), look)),
    ]
}

#[test]
fn timelines_curves_and_heat_maps_read_as_they_were_looked_at() {
    for (name, scene) in other_kinds(&PlotLook::default()) {
        insta::assert_snapshot!(name, scene.to_svg(SceneSurface::Paper));
    }
}

#[test]
fn their_texts_do_not_touch_either() {
    let logarithmic = AxisLook { logarithmic: true, ..AxisLook::default() };
    for (width, height) in
        [(300.0, Some(200.0)), (400.0, None), (400.0, Some(300.0)), (900.0, None), (1200.0, Some(800.0))]
    {
        for axis in [AxisLook::default(), logarithmic] {
            let look = PlotLook { x: axis, y: axis, ..sized(width, height) };
            for (name, scene) in other_kinds(&look) {
                let log = if axis.logarithmic { "-log" } else { "" };
                keep_for_looking(&format!("{name}-{width}-{}{log}", height.unwrap_or(0.0)), &scene);
                assert_eq!(misplaced_texts(&scene), Vec::<String>::new(), "{name}, {width} wide");
            }
        }
    }
}

#[test]
fn grids_and_lines_of_nothing_are_drawn() {
    let nothing = ValueGrid { values: vec![vec![None; 5]; 3], ..parameter_grid() };
    let empty = ValueGrid { values: Vec::new(), rows: Vec::new(), columns: Vec::new(), ..parameter_grid() };
    let zeros = ValueGrid { values: vec![vec![Some(0.0); 5]; 3], ..parameter_grid() };
    let logarithmic = AxisLook { logarithmic: true, ..AxisLook::default() };
    for y in [AxisLook::default(), logarithmic] {
        let look = PlotLook { y, ..PlotLook::default() };
        for grid in [&nothing, &empty, &zeros] {
            let scene = heat_map_scene(grid, &look);
            assert!(!scene.to_svg(SceneSurface::Paper).contains("NaN") && scene.to_png().is_ok());
        }
        let scene = timeline_scene(&monitor_lines_of(Vec::new()), &look);
        insta::allow_duplicates!(insta::assert_snapshot!(scene.texts().join("\n"), @"
        vmstat.nr_dirty over time
        readings; from the first reading of the run; dashed: where an iteration begins; 3 rows that vary less are left out
        no data
        "));
        assert!(
            scaling_scene(&[], "threads", &look).to_png().is_err()
                || scaling_scene(&[], "threads", &look).marks.is_empty()
        );
    }
}
