//! Draws the pictures of docs/statistics.md: `cargo run -p perflab --example pictures`. Every number in them is simulated
//! here, with fixed seeds, by the rules that `crates/stats/tests/it/other_tools.rs` holds to their bounds.

#[path = "../../stats/tests/it/hunter.rs"]
#[expect(dead_code, reason = "the picture shows its defaults")]
mod hunter;
#[path = "../../stats/tests/it/noise.rs"]
mod noise;
#[path = "../../stats/tests/it/other_tools.rs"]
#[expect(
    clippy::unwrap_used,
    dead_code,
    reason = "it is that of the tests, and not every rule has a picture"
)]
mod other_tools;

use std::path::Path;

use hunter::Hunter;
use other_tools::DifferenceRule;
use perflab_present::chart::{
    AxisBand, AxisUnit, BarChart, ChartBar, ChartDot, DotChart, LevelLine, Scene, SceneSurface,
};
use perflab_stats::{EDivisive, hodges_lehmann_ratio};

/// Makes one picture.
type PictureMaker = fn() -> anyhow::Result<Scene>;

fn main() -> anyhow::Result<()> {
    let pictures: [(&str, PictureMaker); 8] = [
        ("boots", boot_level_picture),
        ("order", case_order_picture),
        ("verdicts", four_verdicts_picture),
        ("rules", power_picture),
        ("alarms", false_alarm_picture),
        ("metrics", many_metrics_picture),
        ("stopping", stopping_rule_picture),
        ("steps", history_steps_picture),
    ];
    for (name, draw) in pictures {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/pictures/statistics-{name}.svg"));
        std::fs::write(&path, draw()?.to_svg(SceneSurface::Paper))?;
        println!("{}", path.display());
    }
    Ok(())
}

/// Shares as bars, two a question.
fn paired_share_chart(title: &str, note: &str, bars: Vec<(String, f64)>) -> anyhow::Result<Scene> {
    let bar = |(name, share): (String, f64)| ChartBar { name, parts: vec![share], interval: None };
    let (title, note) = (title.into(), note.into());
    let bars = bars.into_iter().map(bar).collect();
    Ok(BarChart { title, note, unit: AxisUnit::Share, parts: Vec::new(), bars }.render())
}

fn boot_level_picture() -> anyhow::Result<Scene> {
    let shapes = [(3, 10), (5, 10), (10, 10)];
    let bars = shapes.into_iter().flat_map(|(boots, iterations)| {
        let (pooled, means) = other_tools::boot_false_alarms(boots, iterations, 2_000);
        let name = format!("{boots} boots × {iterations}");
        [(format!("{name}, pooled"), pooled), (format!("{name}, by boot"), means)]
    });
    paired_share_chart(
        "False alarms where nothing changed, at a level of 5 %",
        "boots differ as much as iterations do; pooled: all iterations as if independent",
        bars.collect(),
    )
}

fn case_order_picture() -> anyhow::Result<Scene> {
    let bars = [0.0, 0.01, 0.03].into_iter().flat_map(|total| {
        let (in_turn, paired) = other_tools::drift_false_alarms(total, 2_000);
        let name = format!("drift {:.0} %", total * 100.0);
        [(format!("{name}, AAAA BBBB"), in_turn), (format!("{name}, interleaved"), paired)]
    });
    paired_share_chart(
        "False alarms under drift, at a level of 5 %",
        "ten a side, 1 % noise: one side after the other, or pairs in random order",
        bars.collect(),
    )
}

fn many_metrics_picture() -> anyhow::Result<Scene> {
    let bars = [1, 10, 50].into_iter().flat_map(|count| {
        let (each, corrected) = other_tools::many_metrics_false_alarms(count, 1_000);
        [(format!("{count} metrics, p < 5 %"), each), (format!("{count} metrics, q < 5 %"), corrected)]
    });
    paired_share_chart(
        "Chance of any false alarm",
        "nothing changed; q: Benjamini and Hochberg",
        bars.collect(),
    )
}

fn stopping_rule_picture() -> anyhow::Result<Scene> {
    let (significant, precise) = other_tools::peeking_false_alarms(4_000);
    paired_share_chart(
        "False alarms of whoever looks every five iterations up to fifty",
        "nothing changed; stopping at the first p below 5 %, or when both medians are known to ± 1 %",
        vec![("until significant".into(), significant), ("until precise".into(), precise)],
    )
}

fn false_alarm_picture() -> anyhow::Result<Scene> {
    let all: [(&str, DifferenceRule); 4] = [
        ("perflab (ranks)", other_tools::differ_by_ranks),
        ("MMTests (bands)", other_tools::differ_by_bands),
        ("lkp (ranges)", other_tools::differ_by_ranges),
        ("minima 2 % apart", other_tools::differ_by_minima),
    ];
    let bars = all.into_iter().flat_map(|(name, rule)| {
        [5, 30].map(|n| (format!("{name}, n = {n}"), other_tools::reported_share(rule, 1.0, n, 2_000)))
    });
    paired_share_chart(
        "A change reported although nothing changed",
        "2 % noise; ours is meant to be 5 %",
        bars.collect(),
    )
}

/// Chance to report a true change of 5 % over the number of values.
fn power_picture() -> anyhow::Result<Scene> {
    let all: [(&str, DifferenceRule); 3] = [
        ("perflab (ranks)", other_tools::differ_by_ranks),
        ("MMTests (bands)", other_tools::differ_by_bands),
        ("lkp (ranges)", other_tools::differ_by_ranges),
    ];
    let sizes = [4, 5, 6, 8, 10, 15, 20, 30];
    let dot = |group: usize, n: usize, rule: DifferenceRule| ChartDot {
        x: n as f64,
        y: other_tools::reported_share(rule, 1.03, n, 1_000),
        interval: None,
        group,
        name: n.to_string(),
    };
    let dots = all.iter().enumerate().flat_map(|(group, (_, rule))| sizes.map(|n| dot(group, n, *rule)));
    Ok(DotChart {
        title: "A true change of 3 %, reported".into(),
        note: "2 % noise: a rule should see more with more values".into(),
        unit: AxisUnit::Share,
        x_title: "values a side".into(),
        dots: dots.collect(),
        groups: all.iter().map(|(name, _)| (*name).to_owned()).collect(),
        ..DotChart::default()
    }
    .render())
}

/// Four experiments, four verdicts.
fn four_verdicts_picture() -> anyhow::Result<Scene> {
    let mut noise = noise::NormalNoise::from_seed(21);
    let cases = [
        ("better", 0.94, 0.01, 12),
        ("worse", 1.05, 0.012, 12),
        ("same", 1.002, 0.01, 15),
        ("unclear", 1.02, 0.05, 8),
    ];
    let dots = cases.iter().enumerate().map(|(at, (name, ratio, spread, n))| {
        let (a, b) = (
            other_tools::lognormal_values(&mut noise, 1.0, *spread, *n),
            other_tools::lognormal_values(&mut noise, *ratio, *spread, *n),
        );
        let found = hodges_lehmann_ratio(&a, &b, 0.95)?;
        let interval = found.interval.map(|i| (i.low - 1.0, i.high - 1.0));
        Ok(ChartDot { x: at as f64, y: found.value - 1.0, interval, group: at, name: (*name).into() })
    });
    let level = |value: f64| LevelLine { from: -0.5, to: 3.5, value };
    Ok(DotChart {
        title: "Four experiments on a time, four verdicts".into(),
        note: "dot: estimated change, bar: its 95 % interval, lines: no change and a margin of ± 3 %".into(),
        unit: AxisUnit::Share,
        x_title: "experiment".into(),
        dots: dots.collect::<anyhow::Result<_>>()?,
        levels: vec![level(-0.03), level(0.0), level(0.03)],
        groups: cases.iter().map(|(name, ..)| (*name).to_owned()).collect(),
        ..DotChart::default()
    }
    .render())
}

/// A history with a step of 3 %, and how often two methods see steps in flat ones.
fn history_steps_picture() -> anyhow::Result<Scene> {
    let mut noise = noise::NormalNoise::from_seed(5);
    let series: Vec<f64> =
        (0..40).map(|at| 100.0 * if at < 24 { 1.0 } else { 1.03 } * (0.01 * noise.normal()).exp()).collect();
    let found = EDivisive::default().find(&series)?;
    let starts: Vec<usize> = std::iter::once(0).chain(found.iter().map(|step| step.index)).collect();
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([series.len()]).collect();
    let stretches: Vec<(f64, f64)> =
        starts.iter().zip(&ends).map(|(from, to)| (*from as f64 - 0.5, *to as f64 - 0.5)).collect();
    let mean = |(from, to): (&usize, &usize)| perflab_stats::mean(&series[*from..*to]);
    let means: Vec<f64> = starts.iter().zip(&ends).map(mean).collect::<Result<_, _>>()?;
    let level = |((from, to), value): (&(f64, f64), &f64)| LevelLine { from: *from, to: *to, value: *value };
    let span = |((from, to), pair): (&(f64, f64), &[f64])| AxisBand {
        from: *from,
        to: *to,
        name: format!("{:+.1} %", (pair[1] / pair[0] - 1.0) * 100.0),
    };
    let group = |at: usize| starts.iter().filter(|start| **start <= at).count() - 1;
    let dots = series.iter().enumerate().map(|(at, value)| ChartDot {
        x: at as f64,
        y: *value,
        interval: None,
        group: group(at),
        name: at.to_string(),
    });
    let quick = EDivisive { permutations: 99, ..EDivisive::default() };
    let divisive = share_of_flat_histories(|series| Ok(!quick.find(series)?.is_empty()))?;
    let hunter = share_of_flat_histories(|series| Ok(!Hunter::default().find(series).is_empty()))?;
    Ok(DotChart {
        title: "A step of 3 % in a history of 40 runs".into(),
        note: format!(
            "found by E-divisive; steps in flat histories of 40: E-divisive at 5 %: {:.1} %, Hunter at 0.1 %: {:.1} %",
            divisive * 100.0,
            hunter * 100.0
        ),
        unit: AxisUnit::Plain("s".into()),
        x_title: "run".into(),
        x_labels: Vec::new(),
        dots: dots.collect(),
        levels: stretches.iter().zip(&means).map(level).collect(),
        ranges: Vec::new(),
        bands: stretches.iter().skip(1).zip(means.windows(2)).map(span).collect(),
        groups: vec!["before".into(), "after".into()],
    }
    .render())
}

/// In how many of 400 flat histories steps are seen.
fn share_of_flat_histories(sees: impl Fn(&[f64]) -> anyhow::Result<bool>) -> anyhow::Result<f64> {
    let seen: Vec<bool> = (0..400).map(|_| sees(&flat_noise_series())).collect::<Result<_, _>>()?;
    Ok(seen.iter().filter(|seen| **seen).count() as f64 / 400.0)
}

/// A flat history of forty runs; each call draws the next one.
fn flat_noise_series() -> Vec<f64> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1_000);
    let mut noise = noise::NormalNoise::from_seed(NEXT.fetch_add(1, Ordering::Relaxed));
    noise.normals(40)
}
