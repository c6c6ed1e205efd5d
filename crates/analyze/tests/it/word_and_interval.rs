//! Word and interval agree, by the definitions of the glossary, whatever was measured and however.

use fixtures::run_builder::{RunBuilder, SplitMixNoise};
use perflab_analyze::{
    AnalysisOptions, Comparison, ComparisonSide, IntervalMeaning, RowFlag, SmallChange, VerdictRow,
    compare_levels, compare_sides,
};
use perflab_model::{Direction, RunRecord, fact_table};

/// Rounding of a level.
const SLACK: f64 = 1e-9;

fn pick<T: Copy>(noise: &mut SplitMixNoise, from: &[T]) -> T {
    from[(noise.uniform() * from.len() as f64) as usize]
}

/// A kind of values, drawn once for an experiment: scatter, ties, outliers, zeros and negative ones.
#[derive(Clone, Copy, Debug)]
struct ValueShape {
    spread: f64,
    step: f64,
    far: f64,
    centre: f64,
    dependence: f64,
}

impl ValueShape {
    fn draw(noise: &mut SplitMixNoise) -> Self {
        ValueShape {
            spread: pick(noise, &[0.0, 0.002, 0.02, 0.2]),
            step: pick(noise, &[0.0, 0.0, 0.01, 0.05]),
            far: pick(noise, &[0.0, 0.0, 0.05]),
            centre: pick(noise, &[1.0, 1.0, 1.0, 0.0, -1.0, 1e-9, 1e9]),
            dependence: pick(noise, &[0.0, 0.0, 0.6]),
        }
    }

    fn value(self, noise: &mut SplitMixNoise, state: &mut f64, shift: f64) -> f64 {
        let innovation = noise.normal();
        *state = self.dependence * *state + (1.0 - self.dependence.powi(2)).sqrt() * innovation;
        let far = if noise.uniform() < self.far { 3.0 } else { 1.0 };
        let value = (1.0 + self.spread * *state + shift) * far;
        let value = if self.step > 0.0 { (value / self.step).round() * self.step } else { value };
        if self.centre == 0.0 { value - 1.0 } else { value * self.centre }
    }
}

fn judge(noise: &mut SplitMixNoise, options: &AnalysisOptions, cases: usize) -> (String, Comparison) {
    let shape = ValueShape::draw(noise);
    let change = pick(noise, &[0.0, 0.0, 0.005, 0.02, 0.05, -0.03]);
    let n = pick(noise, &[1_u32, 2, 3, 4, 5, 6, 8, 10, 17, 30, 60]);
    let direction = pick(noise, &[Direction::Lower, Direction::Lower, Direction::Higher, Direction::Neither]);
    let exact = noise.uniform() < 0.1;
    let fails = pick(noise, &[0.0, 0.0, 0.0, 0.2]);
    let design = pick(
        noise,
        &["blocks", "levels", "single", "imports", "several", "one against many", "boots", "one boot"],
    );
    let mut state = noise.normal();
    let workloads = ["a", "b", "c", "d"];
    let mut run =
        |name: &str, lab: &dyn Fn(&mut RunBuilder), begun: u64, shift: f64, noise: &mut SplitMixNoise| {
            let lab = RunBuilder::new(name).with(|builder| {
                builder.iterations = n;
                builder.metrics[0].direction = direction;
                builder.workloads = workloads[..cases].to_vec();
                lab(builder);
            });
            let mut lucks = vec![0.0; lab.boots as usize];
            lucks.iter_mut().for_each(|luck| *luck = 0.01 * noise.normal() * f64::from(u8::from(!exact)));
            let mut run = lab.build_run(|at| {
                let shift = shift + if at.level("build") == "new" { change } else { 0.0 };
                let value = shape.value(noise, &mut state, shift + lucks[at.boot as usize]);
                (noise.uniform() >= fails || at.iteration == 0).then_some(value)
            });
            run.manifest.anchor.realtime.0 += begun * 1_000_000_000_000;
            if exact {
                run.manifest.plan.exact = vec!["time".into()];
            }
            run
        };
    let side = |name: &str, runs: Vec<RunRecord>| ComparisonSide { name: name.into(), runs };
    let both = |ours, theirs| compare_sides(&side("a", ours), &[side("b", theirs)], options).unwrap();
    let plain = |_: &mut RunBuilder| {};
    let found = match design {
        "blocks" | "levels" => {
            let lab = |builder: &mut RunBuilder| {
                builder.factors = vec![("build", vec!["old", "new"])];
                builder.order = if design == "blocks" { "randomised" } else { "sequential" };
            };
            let run = run("r", &lab, 0, 0.0, noise);
            compare_levels(&side("r", vec![run]), "build", options).unwrap()
        }
        "single" | "one boot" | "imports" => {
            let mut runs = [run("a", &plain, 0, 0.0, noise), run("b", &plain, 1, change, noise)];
            if design == "one boot" {
                runs[1].manifest.boot_id = "boot-2".into();
            }
            if design == "imports" {
                runs.iter_mut().for_each(|run| {
                    run.manifest.boot_id = String::new();
                    run.manifest.facts.add(fact_table::IMPORT_KIND, "hyperfine", "import");
                });
            }
            let [ours, theirs] = runs;
            both(vec![ours], vec![theirs])
        }
        "several" | "one against many" => {
            let several = pick(noise, &[2, 3, 4, 5]);
            let ours = if design == "several" { several } else { 1 };
            let ours = (0..ours).map(|i| run(&format!("a{i}"), &plain, 2 * i, 0.0, noise)).collect();
            let theirs =
                (0..several).map(|i| run(&format!("b{i}"), &plain, 2 * i + 1, change, noise)).collect();
            both(ours, theirs)
        }
        _ => {
            let boots = pick(noise, &[2_u32, 3, 5, 8]);
            let mut boots_of = |name: &str, shift: f64| {
                let lab = |builder: &mut RunBuilder| (builder.boots, builder.boot_id) = (boots, name.into());
                vec![run(name, &lab, 0, shift, noise)]
            };
            let ours = boots_of("a", 0.0);
            both(ours, boots_of("b", change))
        }
    };
    (format!("{design} n={n} {shape:?} {change} exact {exact} fails {fails} {direction:?}"), found)
}

/// A small change says whether q calls it one, and what has no bound has no interval.
fn check_small_change(row: &VerdictRow, alpha: f64) -> Result<(), &'static str> {
    let small =
        if row.q.is_some_and(|q| q <= alpha) { SmallChange::There } else { SmallChange::PerhapsThere };
    if row.small_change != row.is_small_change().then_some(small) {
        return Err("a small change that q does not call one");
    }
    let is_unbounded = row.change.is_some_and(|change| change.covers == IntervalMeaning::Unbounded);
    if is_unbounded && row.change.is_some_and(|change| change.interval.or(change.narrow).is_some()) {
        return Err("an interval without a bound");
    }
    Ok(())
}

/// What the glossary says of the row's word.
fn check_row(row: &VerdictRow, options: &AnalysisOptions, alone: bool) -> Result<(), &'static str> {
    let alpha = 1.0 - options.confidence + SLACK;
    let word = row.verdict_word();
    let is_changed_word = ["better", "worse", "changed", "differs"].contains(&word);
    let Some(change) = row.change else {
        let by_failures = !row.basis.is_values();
        return if word == "unclear" || word == "missing" || by_failures {
            Ok(())
        } else {
            Err("a word without a change")
        };
    };
    let margin = row.no_larger_than;
    let inside = change.narrow.is_some_and(|narrow| {
        let scale = if change.scale == perflab_analyze::ChangeScale::Ratio {
            row.margin
        } else {
            row.margin * row.baseline.as_ref().map_or(0.0, |side| side.median.abs())
        };
        -scale < narrow.low && narrow.high < scale
    });
    let excludes = change.interval.is_some_and(|interval| interval.low > 0.0 || interval.high < 0.0);
    if let Some(interval) = change.interval {
        if !(interval.low <= change.value && change.value <= interval.high) {
            return Err("the estimate lies outside of its interval");
        }
        if let Some(narrow) = change.narrow
            && (narrow.low < interval.low || narrow.high > interval.high)
        {
            return Err("the narrow interval leaves the other");
        }
    }
    if row.exact && row.method.is_none() {
        let changed = change.value != 0.0;
        return if changed == is_changed_word || !row.basis.is_values() {
            Ok(())
        } else {
            Err("exact values")
        };
    }
    let middle = match row.middle {
        Some(middle) => middle.word(),
        None if row.basis.is_values() => word,
        None => return Ok(()),
    };
    for part in &row.parts {
        let interval = part.change.interval.ok_or("a part without an interval")?;
        let part_excludes = interval.low > 0.0 || interval.high < 0.0;
        if part_excludes != (part.p <= 1.0 - interval.level + SLACK) {
            return Err("the interval of a part does not invert its test");
        }
    }
    let constant =
        change.value == 0.0 && change.interval.is_none_or(|interval| interval.low == interval.high);
    if matches!(middle, "same" | "same here") && !(inside || constant) {
        return Err("same outside of the margin");
    }
    if inside && !matches!(middle, "same" | "same here") {
        return Err("inside the margin and not the same");
    }
    if row.is_small_change() != (matches!(middle, "same" | "same here") && word != "withheld" && excludes) {
        return Err("same, but there");
    }
    if row.interval_of_same().is_some() && !inside {
        return Err("same by an interval that leaves the margin");
    }
    let has_range = change.narrow.is_some() && row.relative_change().is_some();
    if has_range != row.no_larger_than.is_some() && row.method.is_some() {
        return Err("a range without the smallest margin that would hold");
    }
    check_small_change(row, alpha)?;
    if is_changed_word && row.basis.is_values() {
        if !excludes || row.q.is_none_or(|q| q > alpha) {
            return Err("changed though the interval holds no change");
        }
        let good = row.is_good_change();
        if (word == "better" && good != Some(true)) || (word == "worse" && good != Some(false)) {
            return Err("the wrong way");
        }
    }
    if word == "unclear" && row.basis.is_values() && excludes && row.q.is_none_or(|q| q <= alpha) {
        return Err("unclear though the interval excludes no change");
    }
    if alone && word == "unclear" && row.basis.is_values() && excludes {
        return Err("unclear beside an interval that excludes no change, the row being alone");
    }
    if let Some(margin) = margin
        && matches!(middle, "same" | "same here")
        && !constant
        && margin >= row.margin
        && row.margin > 0.0
    {
        return Err("a bound beyond the margin of a row that is the same");
    }
    if row.flags.contains(&RowFlag::Changed) && row.direction != Direction::Neither && change.value != 0.0 {
        return Err("changed without a better or worse");
    }
    Ok(())
}

#[test]
fn every_word_agrees_with_its_interval() {
    let mut noise = SplitMixNoise(20_261_125);
    let mut wrong = std::collections::BTreeMap::<&str, (usize, String)>::new();
    for _ in 0..4_000 {
        let options = AnalysisOptions {
            confidence: pick(&mut noise, &[0.95, 0.95, 0.9, 0.99]),
            default_margin: pick(&mut noise, &[0.03, 0.03, 0.0, 0.01]),
            ..AnalysisOptions::default()
        };
        let cases = pick(&mut noise, &[1, 1, 4]);
        let (experiment, found) = judge(&mut noise, &options, cases);
        for row in &found.rows {
            if let Err(what) = check_row(row, &options, cases == 1) {
                let of = wrong.entry(what).or_insert_with(|| {
                    (
                        0,
                        format!(
                            "{experiment} {:?} {:?} p {:?} q {:?} {:?}",
                            row.verdict, row.change, row.p, row.q, row.method
                        ),
                    )
                });
                of.0 += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
