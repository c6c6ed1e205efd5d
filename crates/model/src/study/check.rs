//! What the text of a study alone can get wrong, beyond types and unknown keys.

use std::collections::BTreeSet;

use super::{DiskKind, DiskModel, Factor, FactorKind, SlotOrder, Study};
use crate::problem::Problem;

/// All problems of `study`, each with its key.
pub(super) fn study_problems(study: &Study) -> Vec<Problem> {
    let mut found = Vec::new();
    if study.run.iterations == 0 {
        found.push(Problem::new("run.iterations", "must be at least 1").with_hint("10 is a good start"));
    }
    if study.run.until.is_some() && study.run.order == SlotOrder::Sequential {
        let hint = "leave `order` out: only complete blocks can be looked at fairly";
        found.push(Problem::new("run.until", "does not go with the sequential order").with_hint(hint));
    }
    if study.workload.is_empty() {
        found.push(
            Problem::new("workload", "no workload to run").with_hint("add `[workload.memory-bandwidth]`"),
        );
    }
    for (name, workload) in &study.workload {
        for (parameter, values) in &workload.matrix {
            matrix_problems(&format!("workload.{name}.matrix.{parameter}"), values, &mut found);
            if workload.parameters.contains_key(parameter) {
                let key = format!("workload.{name}.matrix.{parameter}");
                let hint = "keep it in one of the two tables";
                found.push(Problem::new(key, "stands under `parameters` too").with_hint(hint));
            }
        }
    }
    for (name, factor) in &study.factor {
        level_list_problems(name, factor, &mut found);
        factor_key_problems(name, factor, study, &mut found);
        disk_factor_problems(name, factor, study, &mut found);
    }
    for (name, choice) in &study.metric {
        if let Some(text) = &choice.margin
            && parse_margin(text).is_none()
        {
            let key = format!("metric.{name}.margin");
            found.push(
                Problem::new(key, format!("`{text}` is not a margin"))
                    .with_hint("write a per cent value such as \"2%\""),
            );
        }
    }
    disk_problems(study, &mut found);
    profile_problems(study, &mut found);
    io_trace_problems(study, &mut found);
    super::check_target::all_target_problems(study, &mut found);
    found
}

fn profile_problems(study: &Study, found: &mut Vec<Problem>) {
    let Some(profile) = &study.profile else { return };
    let highest = super::ProfileSpec::HIGHEST_FREQUENCY;
    if !(1..=highest).contains(&profile.frequency) {
        let message = format!("must be between 1 and {highest} samples a second");
        let problem = Problem::new("profile.frequency", message);
        found.push(problem.with_hint("499 costs next to nothing, 4999 is felt"));
    }
    if !study.target.is_empty() && profile.pid.is_some() {
        let problem = Problem::new("profile.pid", "names a process of this host, and this study has targets");
        found.push(
            problem.with_hint("profile the workload (`scope = \"workload\"`), or everything in the targets"),
        );
    }
}

fn io_trace_problems(study: &Study, found: &mut Vec<Problem>) {
    if study.io.is_some() && !study.target.is_empty() {
        let problem = Problem::new("io", "I/O is traced on this host only, and this study has targets");
        found.push(problem.with_hint("leave [io] out, or the targets"));
    }
}

/// `"2%"` as 0.02; also the margin of [`super::MetricChoice`].
pub(super) fn parse_margin(text: &str) -> Option<f64> {
    let percent: f64 = text.trim().strip_suffix('%')?.trim().parse().ok()?;
    (percent > 0.0 && percent < 100.0).then_some(percent / 100.0)
}

fn matrix_problems(key: &str, values: &[crate::Scalar], found: &mut Vec<Problem>) {
    if values.is_empty() {
        found.push(Problem::new(key, "has no value").with_hint("list at least one"));
    }
    let mut seen = BTreeSet::new();
    for (index, value) in values.iter().enumerate() {
        if !seen.insert(value.to_string()) {
            found.push(Problem::new(format!("{key}[{index}]"), format!("`{value}` stands here twice")));
        }
    }
}

fn level_list_problems(name: &str, factor: &Factor, found: &mut Vec<Problem>) {
    if factor.levels.is_empty() {
        let key = format!("factor.{name}.levels");
        found.push(Problem::new(key, "has no level").with_hint("list at least one; two make a comparison"));
    }
    let mut seen = BTreeSet::new();
    for (index, level) in factor.levels.iter().enumerate() {
        let key = format!("factor.{name}.levels[{index}]");
        if !seen.insert(&level.name) {
            let hint = "remove one, or give one of them a `name` of its own";
            found.push(
                Problem::new(&key, format!("the level `{}` stands here twice", level.name)).with_hint(hint),
            );
        }
        if let Some(problem) = level_problem(&key, factor.kind, level) {
            found.push(problem);
        }
    }
}

fn level_problem(key: &str, kind: FactorKind, level: &super::FactorLevel) -> Option<Problem> {
    let commands = !level.apply.is_empty() || !level.undo.is_empty();
    match kind {
        FactorKind::Commands if level.apply.is_empty() != level.undo.is_empty() => Some(
            Problem::new(key, format!("the level `{}` has only one of `apply` and `undo`", level.name))
                .with_hint(
                    "what is applied must be undone: give both, or neither for a level that changes nothing",
                ),
        ),
        FactorKind::Commands => None,
        _ if commands => Some(
            Problem::new(key, format!("`apply` and `undo` do nothing in a factor of kind `{kind}`"))
                .with_hint("use `kind = \"commands\"`"),
        ),
        FactorKind::DropCaches if !matches!(level.value, crate::Scalar::Int(0..=3)) => Some(
            Problem::new(key, format!("`{}` is not a way to drop caches", level.value))
                .with_hint("0 drops nothing, 1 the page cache, 2 slab objects, 3 both"),
        ),
        _ => None,
    }
}

fn factor_key_problems(name: &str, factor: &Factor, study: &Study, found: &mut Vec<Problem>) {
    if let Some(workload) = &factor.workload
        && !study.workload.contains_key(workload)
    {
        let hint = crate::nearest::suggest_name(workload, study.workload.keys().map(String::as_str));
        let key = format!("factor.{name}.workload");
        found.push(Problem::new(key, format!("the study has no workload `{workload}`")).with_hint(hint));
    }
    let missing = factor.key.is_none() && matches!(factor.kind, FactorKind::Sysctl | FactorKind::File);
    if missing {
        let key = format!("factor.{name}");
        let hint = "add `key = \"vm.swappiness\"` or, for a file, its path";
        found.push(
            Problem::new(key, format!("a factor of kind `{}` needs a `key`", factor.kind)).with_hint(hint),
        );
    }
    if let (FactorKind::File, Some(path)) = (factor.kind, &factor.key)
        && !["/proc/", "/sys/"].iter().any(|root| path.starts_with(root))
    {
        let key = format!("factor.{name}.key");
        found.push(
            Problem::new(key, format!("{path} is not under /proc or /sys"))
                .with_hint("use `kind = \"commands\"` for other files"),
        );
    }
}

/// A factor over the disk needs a disk that can be made afresh, and a key that levels can stand for.
fn disk_factor_problems(name: &str, factor: &Factor, study: &Study, found: &mut Vec<Problem>) {
    if factor.kind != FactorKind::Disk {
        return;
    }
    if study.disk.as_ref().is_none_or(|disk| disk.kind == DiskKind::Directory) {
        let hint = "add `[disk]` with `kind = \"image\"` and a `size`";
        found.push(Problem::new(format!("factor.{name}"), "there is no disk to make afresh").with_hint(hint));
    }
    match factor.key.as_deref().unwrap_or(name) {
        "filesystem" => {
            for (index, level) in factor.levels.iter().enumerate() {
                let key = format!("factor.{name}.levels[{index}]");
                found.extend(filesystem_problem(&key, &level.value.to_string()));
            }
        }
        "mount" => {}
        "model" => {
            for (index, level) in factor.levels.iter().enumerate() {
                let key = format!("factor.{name}.levels[{index}]");
                found.extend(disk_model_problem(&key, &level.value.to_string()));
            }
        }
        other => {
            let problem =
                Problem::new(format!("factor.{name}"), format!("`{other}` of a disk cannot be varied"));
            found.push(problem.with_hint("known here: filesystem, mount, model"));
        }
    }
}

fn filesystem_problem(key: &str, filesystem: &str) -> Option<Problem> {
    let known = ["ext4", "xfs", "btrfs"].contains(&filesystem);
    let problem = || Problem::new(key, format!("`{filesystem}` is not known here"));
    (!known).then(|| problem().with_hint("known here: ext4, xfs, btrfs"))
}

fn disk_model_problem(key: &str, model: &str) -> Option<Problem> {
    let error = model.parse::<DiskModel>().err()?;
    Some(Problem::new(key, error).with_hint("add `value`, where the level has another name"))
}

fn disk_problems(study: &Study, found: &mut Vec<Problem>) {
    let Some(disk) = &study.disk else { return };
    let mut need = |wanted: bool, key: &str, hint: &str| {
        if wanted {
            found.push(Problem::new("disk", format!("needs `{key}`")).with_hint(hint));
        }
    };
    need(disk.kind != DiskKind::Image && disk.path.is_none(), "path", "name the directory or the partition");
    need(disk.kind == DiskKind::Image && disk.size.is_none(), "size", "such as \"1GiB\"");
    if disk.kind != DiskKind::Image && disk.model.is_some() {
        let problem =
            Problem::new("disk.model", "only an image can be served with the delays of another disk");
        found.push(problem.with_hint("use `kind = \"image\"` and a `size`"));
    }
    found.extend(disk.filesystem.as_deref().and_then(|name| filesystem_problem("disk.filesystem", name)));
}

impl super::MetricChoice {
    /// The margin as a fraction: 0.02 for `"2%"`.
    pub fn margin_fraction(&self) -> Option<f64> {
        self.margin.as_deref().and_then(parse_margin)
    }
}
