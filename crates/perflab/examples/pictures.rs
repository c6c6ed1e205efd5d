//! Draws the pictures of docs/statistics.md: `cargo run -p perflab --example pictures`. Every number in them is simulated
//! here, with fixed seeds, by the rules that `crates/stats/tests/simulation_rules.rs` holds to their bounds.

#![expect(clippy::unwrap_used, reason = "a picture that cannot be drawn must stop")]

#[path = "../../stats/tests/noise/mod.rs"]
mod noise;
#[path = "../../stats/tests/noise/rules.rs"]
#[expect(dead_code, reason = "not every rule has a picture")]
mod rules;

use std::path::Path;

use perflab_present::chart::{Bar, Bars, Dot, Dots, Level, Scene, Span, Surface, Unit};
use perflab_stats::{EDivisive, Hunter, hodges_lehmann_ratio};
use rules::Rule;

/// Makes one picture.
type Draw = fn() -> Scene;

fn main() {
    let pictures: [(&str, Draw); 8] = [
        ("boots", boots),
        ("order", order),
        ("verdicts", verdicts),
        ("rules", power),
        ("alarms", alarms),
        ("metrics", metrics),
        ("stopping", stopping),
        ("steps", steps),
    ];
    for (name, draw) in pictures {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/pictures/statistics-{name}.svg"));
        std::fs::write(&path, draw().svg(Surface::Paper)).unwrap();
        println!("{}", path.display());
    }
}

/// Shares as bars, two a question.
fn pairs(title: &str, note: &str, bars: Vec<(String, f64)>) -> Scene {
    let bar = |(name, share): (String, f64)| Bar { name, parts: vec![share], interval: None };
    let (title, note) = (title.into(), note.into());
    Bars { title, note, unit: Unit::Share, parts: Vec::new(), bars: bars.into_iter().map(bar).collect() }
        .scene()
}

fn boots() -> Scene {
    let shapes = [(3, 10), (5, 10), (10, 10)];
    let bars = shapes.into_iter().flat_map(|(boots, iterations)| {
        let (pooled, means) = rules::boots(boots, iterations, 2_000);
        let name = format!("{boots} boots × {iterations}");
        [(format!("{name}, pooled"), pooled), (format!("{name}, by boot"), means)]
    });
    pairs(
        "False alarms where nothing changed, at a level of 5 %",
        "boots differ as much as iterations do; pooled: all iterations as if independent",
        bars.collect(),
    )
}

fn order() -> Scene {
    let bars = [0.0, 0.01, 0.03].into_iter().flat_map(|total| {
        let (in_turn, paired) = rules::drift(total, 2_000);
        let name = format!("drift {:.0} %", total * 100.0);
        [(format!("{name}, AAAA BBBB"), in_turn), (format!("{name}, interleaved"), paired)]
    });
    pairs(
        "False alarms under drift, at a level of 5 %",
        "ten a side, 1 % noise: one side after the other, or pairs in random order",
        bars.collect(),
    )
}

fn metrics() -> Scene {
    let bars = [1, 10, 50].into_iter().flat_map(|count| {
        let (each, corrected) = rules::many(count, 1_000);
        [(format!("{count} metrics, p < 5 %"), each), (format!("{count} metrics, q < 5 %"), corrected)]
    });
    pairs("Chance of any false alarm", "nothing changed; q: Benjamini and Hochberg", bars.collect())
}

fn stopping() -> Scene {
    let (significant, precise) = rules::peeking(4_000);
    pairs(
        "False alarms of whoever looks every five iterations up to fifty",
        "nothing changed; stopping at the first p below 5 %, or when both medians are known to ± 1 %",
        vec![("until significant".into(), significant), ("until precise".into(), precise)],
    )
}

fn alarms() -> Scene {
    let all: [(&str, Rule); 4] = [
        ("perflab (ranks)", rules::ranks),
        ("MMTests (bands)", rules::bands),
        ("lkp (ranges)", rules::ranges),
        ("minima 2 % apart", rules::minima),
    ];
    let bars = all.into_iter().flat_map(|(name, rule)| {
        [5, 30].map(|n| (format!("{name}, n = {n}"), rules::reports(rule, 1.0, n, 2_000)))
    });
    pairs("A change reported although nothing changed", "2 % noise; ours is meant to be 5 %", bars.collect())
}

/// Chance to report a true change of 5 % over the number of values.
fn power() -> Scene {
    let all: [(&str, Rule); 3] = [
        ("perflab (ranks)", rules::ranks),
        ("MMTests (bands)", rules::bands),
        ("lkp (ranges)", rules::ranges),
    ];
    let sizes = [4, 5, 6, 8, 10, 15, 20, 30];
    let dot = |group: usize, n: usize, rule: Rule| Dot {
        x: n as f64,
        y: rules::reports(rule, 1.03, n, 1_000),
        interval: None,
        group,
        name: n.to_string(),
    };
    let dots = all.iter().enumerate().flat_map(|(group, (_, rule))| sizes.map(|n| dot(group, n, *rule)));
    Dots {
        title: "A true change of 3 %, reported".into(),
        note: "2 % noise: a rule should see more with more values".into(),
        unit: Unit::Share,
        across: "values a side".into(),
        dots: dots.collect(),
        groups: all.iter().map(|(name, _)| (*name).to_owned()).collect(),
        ..Dots::default()
    }
    .scene()
}

/// Four experiments, four verdicts.
fn verdicts() -> Scene {
    let mut noise = noise::Noise::seeded(21);
    let cases = [
        ("better", 0.94, 0.01, 12),
        ("worse", 1.05, 0.012, 12),
        ("same", 1.002, 0.01, 15),
        ("unclear", 1.02, 0.05, 8),
    ];
    let dots = cases.iter().enumerate().map(|(at, (name, ratio, spread, n))| {
        let (a, b) =
            (rules::around(&mut noise, 1.0, *spread, *n), rules::around(&mut noise, *ratio, *spread, *n));
        let found = hodges_lehmann_ratio(&a, &b, 0.95).unwrap();
        let interval = found.interval.map(|i| (i.low - 1.0, i.high - 1.0));
        Dot { x: at as f64, y: found.value - 1.0, interval, group: at, name: (*name).into() }
    });
    let level = |value: f64| Level { from: -0.5, to: 3.5, value };
    Dots {
        title: "Four experiments on a time, four verdicts".into(),
        note: "dot: estimated change, bar: its 95 % interval, lines: no change and a margin of ± 3 %".into(),
        unit: Unit::Share,
        across: "experiment".into(),
        dots: dots.collect(),
        levels: vec![level(-0.03), level(0.0), level(0.03)],
        groups: cases.iter().map(|(name, ..)| (*name).to_owned()).collect(),
        ..Dots::default()
    }
    .scene()
}

/// A history with a step of 3 %, and how often two methods see steps in flat ones.
fn steps() -> Scene {
    let mut noise = noise::Noise::seeded(5);
    let series: Vec<f64> =
        (0..40).map(|at| 100.0 * if at < 24 { 1.0 } else { 1.03 } * (0.01 * noise.normal()).exp()).collect();
    let found = EDivisive::default().find(&series).unwrap();
    let starts: Vec<usize> = std::iter::once(0).chain(found.iter().map(|step| step.index)).collect();
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([series.len()]).collect();
    let stretches: Vec<(f64, f64)> =
        starts.iter().zip(&ends).map(|(from, to)| (*from as f64 - 0.5, *to as f64 - 0.5)).collect();
    let mean = |(from, to): (&usize, &usize)| perflab_stats::mean(&series[*from..*to]).unwrap();
    let means: Vec<f64> = starts.iter().zip(&ends).map(mean).collect();
    let level = |((from, to), value): (&(f64, f64), &f64)| Level { from: *from, to: *to, value: *value };
    let span = |((from, to), pair): (&(f64, f64), &[f64])| Span {
        from: *from,
        to: *to,
        name: format!("{:+.1} %", (pair[1] / pair[0] - 1.0) * 100.0),
    };
    let group = |at: usize| starts.iter().filter(|start| **start <= at).count() - 1;
    let dots = series.iter().enumerate().map(|(at, value)| Dot {
        x: at as f64,
        y: *value,
        interval: None,
        group: group(at),
        name: at.to_string(),
    });
    let flat = |find: &dyn Fn(&[f64]) -> bool| rules::share(400, || find(&noise_series()));
    let divisive = flat(&|series| {
        !EDivisive { permutations: 99, ..EDivisive::default() }.find(series).unwrap().is_empty()
    });
    let hunter = flat(&|series| !Hunter::default().find(series).unwrap().is_empty());
    Dots {
        title: "A step of 3 % in a history of 40 runs".into(),
        note: format!(
            "found by E-divisive; steps in flat histories of 40: E-divisive at 5 %: {:.1} %, Hunter at 0.1 %: {:.1} %",
            divisive * 100.0,
            hunter * 100.0
        ),
        unit: Unit::Plain("s".into()),
        across: "run".into(),
        dots: dots.collect(),
        levels: stretches.iter().zip(&means).map(level).collect(),
        ranges: Vec::new(),
        spans: stretches.iter().skip(1).zip(means.windows(2)).map(span).collect(),
        groups: vec!["before".into(), "after".into()],
    }
    .scene()
}

/// A flat history of forty runs; each call draws the next one.
fn noise_series() -> Vec<f64> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1_000);
    let mut noise = noise::Noise::seeded(NEXT.fetch_add(1, Ordering::Relaxed));
    noise.normals(40)
}
