//! Owns what was planned differently on two sides: parameters of the same case, repetitions, order, seed, margins.
//! It refuses results: it looks at manifests only.

use std::collections::BTreeMap;

use perflab_model::{Case, Manifest, RunRecord};

/// What differs between the first run of the baseline and any run of a candidate, as `key: ours -> theirs`.
pub(crate) fn differences(baseline: &[RunRecord], candidate: &[RunRecord], hidden: &[String]) -> Vec<String> {
    let Some(first) = baseline.first() else { return Vec::new() };
    let mut found: Vec<String> = Vec::new();
    for run in candidate {
        let all = between(&first.manifest, &run.manifest, hidden);
        found.extend(all.into_iter().filter(|one| !found.contains(one)).collect::<Vec<_>>());
    }
    found
}

fn between(ours: &Manifest, theirs: &Manifest, hidden: &[String]) -> Vec<String> {
    let mut found = rules(ours, theirs);
    let known: BTreeMap<String, &Case> =
        ours.plan.cases.iter().map(|case| (name(case, hidden), case)).collect();
    for case in &theirs.plan.cases {
        if let Some(twin) = known.get(&name(case, hidden)) {
            found.extend(case_differences(twin, case));
        }
    }
    found
}

fn rules(ours: &Manifest, theirs: &Manifest) -> Vec<String> {
    let (a, b) = (&ours.study.run, &theirs.study.run);
    let order = changed("order", Some(&ours.plan.order), Some(&theirs.plan.order));
    let seed =
        changed("seed", a.seed.as_ref(), b.seed.as_ref()).filter(|_| a.seed.is_some() && b.seed.is_some());
    let all = [
        changed("iterations", Some(&a.iterations), Some(&b.iterations)),
        changed("warmup", Some(&a.warmup), Some(&b.warmup)),
        order,
        seed,
    ];
    let margins = ours.plan.margins.iter().filter_map(|(metric, margin)| {
        changed(&format!("margin of {metric}"), Some(margin), theirs.plan.margins.get(metric))
    });
    all.into_iter().flatten().chain(margins).collect()
}

/// Parameters and environment that are not part of the case's name.
fn case_differences(ours: &Case, theirs: &Case) -> Vec<String> {
    let mut found = Vec::new();
    if ours.uses != theirs.uses {
        found.extend(changed(&format!("{}: workload", ours.workload), Some(&ours.uses), Some(&theirs.uses)));
    }
    for (key, value) in &ours.parameters {
        let key_text = format!("{}: {key}", ours.workload);
        found.extend(changed(&key_text, Some(value), theirs.parameters.get(key)));
    }
    for (key, value) in &ours.environment {
        let key_text = format!("{}: ${key}", ours.workload);
        found.extend(changed(&key_text, Some(value), theirs.environment.get(key)));
    }
    found
}

fn changed<T: PartialEq + std::fmt::Display>(
    key: &str,
    ours: Option<&T>,
    theirs: Option<&T>,
) -> Option<String> {
    let text = |value: Option<&T>| value.map_or_else(|| "none".into(), ToString::to_string);
    (ours != theirs).then(|| format!("{key}: {} -> {}", text(ours), text(theirs)))
}

/// The case as it is lined up: without the factors that are compared.
fn name(case: &Case, hidden: &[String]) -> String {
    let levels = case.levels.iter().filter(|(factor, _)| !hidden.contains(factor));
    levels.fold(case.subject(), |text, (factor, level)| format!("{text} {factor}={level}"))
}
