//! What the text of a study can get wrong about its targets.

use super::{Factor, FactorKind, Study, TargetKind, TargetUse};
use crate::problem::Problem;

/// All such problems.
pub(super) fn problems(study: &Study, found: &mut Vec<Problem>) {
    for (name, target) in &study.target {
        one(name, target, found);
    }
    for (name, factor) in &study.factor {
        side(name, factor, study, found);
        number(name, factor, study, found);
    }
    if study.run.boots == 0 {
        found.push(Problem::new("run.boots", "must be at least 1"));
    }
    if study.run.boots > 1 && study.target.is_empty() {
        let hint = "add `[target.guest]`, or repeat the run under one `--label`";
        found.push(Problem::new("run.boots", "there is nothing to start anew").hint(hint));
    }
}

fn one(name: &str, target: &TargetUse, found: &mut Vec<Problem>) {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name == "host" || name.is_empty() || !name.chars().all(plain) {
        let hint = "letters, digits, `-` and `_`; `host` is this machine";
        found.push(Problem::new(format!("target.{name}"), "cannot be a target's name").hint(hint));
    }
    if target.count == 0 {
        found.push(Problem::new(format!("target.{name}.count"), "must be at least 1"));
    }
    guest(name, target, found);
    match (target.kind, &target.address) {
        (TargetKind::Ssh, None) => {
            let hint = "add `address = \"user@host\"`";
            found.push(Problem::new(format!("target.{name}"), "needs `address`").hint(hint));
        }
        (TargetKind::Ssh, Some(address)) if address.starts_with('-') || address.is_empty() => {
            found.push(Problem::new(format!("target.{name}.address"), "is no address"));
        }
        (TargetKind::Ssh, Some(_)) | (_, None) => {}
        (kind, Some(_)) => {
            let message = format!("means nothing for a target of kind `{kind}`");
            found.push(Problem::new(format!("target.{name}.address"), message));
        }
    }
}

/// Keys of guests: what they need, and who has no use for them.
fn guest(name: &str, target: &TargetUse, found: &mut Vec<Problem>) {
    if target.kind == TargetKind::Vm {
        if target.kernel.is_none() {
            let hint = "add `kernel = \"debian-cloud\"` (`perflab kernel list`), or a file";
            found.push(Problem::new(format!("target.{name}"), "needs `kernel`").hint(hint));
        }
        let memory = target.memory.as_deref().map(crate::Bytes::parse);
        if let Some(Err(wrong)) = memory {
            found.push(Problem::new(format!("target.{name}.memory"), wrong.to_string()));
        }
        return;
    }
    let given = [
        ("kernel", target.kernel.is_some()),
        ("modules", target.modules.is_some()),
        ("append", !target.append.is_empty()),
        ("cpus", target.cpus.is_some()),
        ("memory", target.memory.is_some()),
        ("root", target.root.is_some()),
        ("pin", !target.pin.is_empty()),
    ];
    for (key, _) in given.into_iter().filter(|(_, given)| *given) {
        let message = format!("means nothing for a target of kind `{}`", target.kind);
        found.push(Problem::new(format!("target.{name}.{key}"), message));
    }
}

fn side(name: &str, factor: &Factor, study: &Study, found: &mut Vec<Problem>) {
    use FactorKind::{Commands, DropCaches, File, Sysctl};
    if factor.on.is_none() {
        return;
    }
    let key = format!("factor.{name}.on");
    if study.target.is_empty() {
        found.push(Problem::new(key, "the study has no targets").hint("add `[target.guest]`"));
    } else if !matches!(factor.kind, Sysctl | File | DropCaches | Commands) {
        let message = format!("means nothing for a factor of kind `{}`", factor.kind);
        found.push(Problem::new(key, message));
    }
}

fn number(name: &str, factor: &Factor, study: &Study, found: &mut Vec<Problem>) {
    if factor.kind != FactorKind::Targets {
        return;
    }
    let all = study.targets();
    if all == 0 {
        let hint = "add `[target.guest]` with a `count`";
        found.push(Problem::new(format!("factor.{name}"), "the study has no targets").hint(hint));
    }
    for (index, level) in factor.levels.iter().enumerate() {
        let number = matches!(level.value, crate::Value::Int(n) if n >= 1 && n <= i64::from(all));
        if !number && all > 0 {
            let key = format!("factor.{name}.levels[{index}]");
            let problem = Problem::new(key, format!("`{}` is no number of targets", level.value));
            found.push(problem.hint(format!("from 1 to {all}, which is how many the study has")));
        }
    }
}
