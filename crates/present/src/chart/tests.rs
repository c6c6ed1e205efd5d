//! Figures as golden files, and what must hold for any figure.

use super::*;
use crate::chart::{axes, typeface};

fn stacked_chart() -> StackedChart {
    let times: Vec<f64> = (0..40).map(f64::from).collect();
    let grow = |scale: f64| times.iter().map(|at| scale * 1e6 * (1.0 + at / 10.0)).collect();
    StackedChart {
        title: "Slab memory by cache".into(),
        note: "the largest caches; bytes of slabs".into(),
        unit: AxisUnit::Bytes,
        layers: vec![
            ChartLayer::others("45 others", grow(0.8)),
            ChartLayer::new("ext4_inode_cache", grow(3.0)),
            ChartLayer::new("dentry & <friends>", grow(1.5)),
        ],
        bands: vec![AxisBand { from: 5.0, to: 30.0, name: "fs_mark".into() }],
        times,
    }
}

fn line_chart() -> LineChart {
    let values: Vec<Option<f64>> =
        (0..20).map(|at| (at != 9).then(|| 0.93 - 0.002 * f64::from(at))).collect();
    let low = values.iter().map(|value| value.map(|value| value - 0.02)).collect();
    LineChart {
        title: "Efficiency over time".into(),
        note: "objects asked for against slab bytes".into(),
        unit: AxisUnit::Share,
        times: (0..20).map(f64::from).collect(),
        lines: vec![
            ChartLine { low: Some(low), ..ChartLine::new("overall", values.clone()) },
            ChartLine { dashed: true, ..ChartLine::new("notebook", values) },
        ],
        ..LineChart::default()
    }
}

fn histogram_chart() -> HistogramChart {
    HistogramChart {
        title: "Caches by efficiency".into(),
        unit: AxisUnit::Share,
        x_title: "efficiency".into(),
        height_unit: AxisUnit::Plain("caches".into()),
        edges: (0..=20).map(|edge| f64::from(edge) / 20.0).collect(),
        counts: (0..20).map(|bin| f64::from(bin * bin % 37)).collect(),
        pointers: vec![("mean".into(), 0.82)],
        ..HistogramChart::default()
    }
}

fn bar_chart() -> BarChart {
    let bar = |name: &str, parts: Vec<f64>| ChartBar { name: name.into(), parts, interval: None };
    BarChart {
        title: "Waste by kind".into(),
        note: "bytes that no object asked for".into(),
        unit: AxisUnit::Bytes,
        parts: ["alignment", "tail", "free"].map(String::from).to_vec(),
        bars: vec![
            bar("dentry", vec![1e5, 2e5, 9e5]),
            bar("a_cache_with_a_very_long_name_indeed_it_is", vec![0.0, 1e5, 0.0]),
        ],
    }
}

fn difference_chart() -> BarChart {
    let bar = |name: &str, change: f64| ChartBar {
        name: name.into(),
        parts: vec![change],
        interval: Some((change - 3e5, change + 2e5)),
    };
    BarChart {
        title: "Change".into(),
        bars: vec![bar("dentry", 2e6), bar("filp", -4e5)],
        ..BarChart::default()
    }
}

#[test]
fn figures_read_as_they_were_looked_at() {
    insta::assert_snapshot!("stacked", stacked_chart().render().to_svg(SceneSurface::Paper));
    insta::assert_snapshot!("lines", line_chart().render().to_svg(SceneSurface::Inline));
    insta::assert_snapshot!("histogram", histogram_chart().render().to_svg(SceneSurface::Paper));
    insta::assert_snapshot!("bars", bar_chart().render().to_svg(SceneSurface::Paper));
    insta::assert_snapshot!("deltas", difference_chart().render().to_svg(SceneSurface::Paper));
}

#[test]
fn a_page_that_forbids_styles_and_scripts_takes_a_figure() {
    for scene in
        [stacked_chart().render(), line_chart().render(), histogram_chart().render(), bar_chart().render()]
    {
        let svg = scene.to_svg(SceneSurface::Inline);
        for forbidden in ["style", "<script", "onload", "href", "url("] {
            assert!(!svg.contains(forbidden), "{forbidden}");
        }
        assert!(!svg.contains("<friends>"), "texts are escaped");
    }
}

#[test]
fn a_png_is_a_png_of_twice_the_size_and_not_blank() {
    for (scene, name) in [
        (stacked_chart().render(), "stacked"),
        (line_chart().render(), "lines"),
        (histogram_chart().render(), "histogram"),
        (bar_chart().render(), "bars"),
        (difference_chart().render(), "deltas"),
    ] {
        let png = scene.to_png().unwrap();
        if let Some(folder) = std::env::var_os("PERFLAB_LOOK") {
            std::fs::write(std::path::Path::new(&folder).join(format!("{name}.png")), &png).unwrap();
        }
        let image = tiny_skia::Pixmap::decode_png(&png).unwrap();
        assert_eq!(f64::from(image.width()), scene.width * 2.0);
        let dark = image.pixels().iter().filter(|pixel| pixel.red() < 100 && pixel.green() < 100).count();
        assert!(dark > 200, "{name}: only {dark} dark pixels: where are the texts?");
    }
}

#[test]
fn figures_without_data_say_so() {
    for scene in
        [StackedChart::default().render(), LineChart::default().render(), HistogramChart::default().render()]
    {
        insta::allow_duplicates!(insta::assert_snapshot!(scene.texts().join("\n"), @"no data"));
        assert!(scene.to_png().is_ok());
    }
    assert!(BarChart::default().render().to_png().is_ok());
}

#[test]
fn ticks_are_nice_at_any_size() {
    for power in -9..15 {
        for lead in [1.0, 1.3, 2.7, 4.9, 9.9] {
            let span = lead * 10f64.powi(power);
            let step = axes::nice_step(span, 6);
            let count = axes::tick_values(0.0, span, step).len();
            assert!((3..=13).contains(&count), "{span}: {count} ticks of {step}");
        }
    }
}

#[test]
fn the_typeface_is_sound() {
    assert!(typeface::embedded_face().is_some());
    assert!(typeface::text_width("iiii", 12.0) < typeface::text_width("mmmm", 12.0));
    assert_eq!(typeface::shorten_to_width("kmalloc-8k", 12.0, 1000.0), "kmalloc-8k");
    assert!(typeface::shorten_to_width("a_very_long_cache_name", 12.0, 60.0).ends_with('…'));
}

#[test]
fn a_spike_of_one_tick_among_many_is_drawn() {
    let times: Vec<f64> = (0..200_000).map(f64::from).collect();
    let mut values = vec![Some(1.0); times.len()];
    values[123_456] = Some(5.0);
    let figure = LineChart {
        times,
        lines: vec![ChartLine::new("spike", values)],
        unit: AxisUnit::Plain("s".into()),
        from_zero: true,
        ..LineChart::default()
    };
    let svg = figure.render().to_svg(SceneSurface::Paper);
    assert!(svg.len() < 60_000, "{} bytes", svg.len());
    let line = svg.lines().find(|line| line.contains("<title>spike")).unwrap();
    assert!(line.contains(",76 "), "the highest point lies at the top");
}
