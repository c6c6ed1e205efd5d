//! What the text of a study can get wrong about its targets.

use super::{AgentChannel, Factor, FactorKind, Study, TargetKind, TargetSpec};
use crate::problem::Problem;

/// All such problems.
pub(super) fn all_target_problems(study: &Study, found: &mut Vec<Problem>) {
    for (name, target) in &study.target {
        target_problems(name, target, found);
    }
    for (name, factor) in &study.factor {
        factor_side_problems(name, factor, study, found);
        target_count_problems(name, factor, study, found);
    }
    if study.run.boots == 0 {
        found.push(Problem::new("run.boots", "must be at least 1"));
    }
    if study.run.boots > 1 && study.target.is_empty() {
        let hint = "add `[target.guest]`, or repeat the run under one `--label`";
        found.push(Problem::new("run.boots", "there is nothing to start anew").with_hint(hint));
    }
    if study.run.boots > 1 && study.run.until.is_some() {
        let problem =
            Problem::new("run.until", "looks at iterations, and with `boots` a boot is what counts");
        found.push(problem.with_hint("give a number of `iterations`, and more `boots`"));
    }
    if study.run.boot_each_case {
        boot_each_case_problems(study, found);
    }
}

/// What cannot be when every case has its own start of the targets.
fn boot_each_case_problems(study: &Study, found: &mut Vec<Problem>) {
    let key = "run.boot-each-case";
    if study.target.is_empty() {
        found.push(Problem::new(key, "there is nothing to start").with_hint("add `[target.guest]`"));
    }
    if study.run.until.is_some() {
        let problem = Problem::new(key, "does not go with `until`, which looks at complete blocks");
        found.push(problem.with_hint("give a number of `iterations`"));
    }
}

fn target_problems(name: &str, target: &TargetSpec, found: &mut Vec<Problem>) {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name == "host" || name.is_empty() || !name.chars().all(plain) {
        let hint = "letters, digits, `-` and `_`; `host` is this machine";
        found.push(Problem::new(format!("target.{name}"), "cannot be a target's name").with_hint(hint));
    }
    if target.count == 0 {
        found.push(Problem::new(format!("target.{name}.count"), "must be at least 1"));
    }
    guest_key_problems(name, target, found);
    address_problems(name, target, found);
}

/// Who is reached by ssh, and who is a domain.
fn address_problems(name: &str, target: &TargetSpec, found: &mut Vec<Problem>) {
    let kind = target.kind;
    let by_ssh = matches!(kind, TargetKind::Ssh | TargetKind::Libvirt);
    let given = [
        ("address", &target.address, by_ssh, "add `address = \"user@host\"`"),
        (
            "domain",
            &target.domain,
            kind == TargetKind::Libvirt,
            "add `domain = \"NAME\"` (`virsh list --all`)",
        ),
    ];
    for (key, value, wanted, hint) in given {
        match value {
            None if wanted => {
                let problem = Problem::new(format!("target.{name}"), format!("needs `{key}`"));
                found.push(problem.with_hint(hint));
            }
            Some(_) if !wanted => found.push(meaningless_key_problem(name, key, kind)),
            // A word that begins so would be an option to ssh or virsh.
            Some(value) if value.starts_with('-') || value.is_empty() => {
                found.push(Problem::new(format!("target.{name}.{key}"), format!("is no {key}")));
            }
            _ => {}
        }
    }
    if target.connect.is_some() && kind != TargetKind::Libvirt {
        found.push(meaningless_key_problem(name, "connect", kind));
    }
    if kind == TargetKind::Libvirt && target.count > 1 {
        let problem = Problem::new(format!("target.{name}.count"), "a domain is one machine");
        found.push(problem.with_hint("write each domain as a target of its own"));
    }
}

fn meaningless_key_problem(name: &str, key: &str, kind: TargetKind) -> Problem {
    Problem::new(format!("target.{name}.{key}"), format!("means nothing for a target of kind `{kind}`"))
}

/// Keys of guests: what they need, and who has no use for them.
fn guest_key_problems(name: &str, target: &TargetSpec, found: &mut Vec<Problem>) {
    if target.kind == TargetKind::Vm {
        if target.kernel.is_none() {
            let hint = "add `kernel = \"debian-cloud\"` (`perflab kernel list`), or a file";
            found.push(Problem::new(format!("target.{name}"), "needs `kernel`").with_hint(hint));
        }
        guest_size_problems(name, target, found);
        return;
    }
    let given = [
        ("kernel", target.kernel.is_some()),
        ("modules", target.modules.is_some()),
        ("load", !target.load.is_empty()),
        ("append", !target.append.is_empty()),
        ("cpus", target.cpus.is_some()),
        ("memory", target.memory.is_some()),
        ("root", target.root.is_some()),
        ("programs", !target.programs.is_empty()),
        ("pin", !target.pin.is_empty()),
        ("nodes", !target.nodes.is_empty()),
        ("huge-pages", target.huge_pages.is_some()),
        ("cpu-model", target.cpu_model.is_some()),
        ("accelerator", target.accelerator.is_some()),
        ("channel", target.channel.is_some_and(|channel| !is_usable_channel(target.kind, channel))),
        ("boot-within", target.boot_within.is_some()),
        ("cache", target.cache.is_some()),
        ("disks", !target.disks.is_empty()),
    ];
    for (key, _) in given.into_iter().filter(|(_, given)| *given) {
        found.push(meaningless_key_problem(name, key, target.kind));
    }
}

/// Whether the agent of a target that is no guest can be spoken to that way.
fn is_usable_channel(kind: TargetKind, channel: AgentChannel) -> bool {
    kind == TargetKind::Process && channel == AgentChannel::Vsock
}

fn guest_size_problems(name: &str, target: &TargetSpec, found: &mut Vec<Problem>) {
    let nodes = target.nodes.iter().enumerate();
    let nodes = nodes.map(|(index, node)| (format!("nodes[{index}].memory"), Some(&node.memory)));
    let others = [("memory", &target.memory), ("huge-pages", &target.huge_pages)];
    for (key, text) in others.map(|(key, text)| (key.to_owned(), text.as_ref())).into_iter().chain(nodes) {
        if let Some(Err(wrong)) = text.map(|text| crate::Bytes::parse(text)) {
            found.push(Problem::new(format!("target.{name}.{key}"), wrong.to_string()));
        }
    }
    if !target.nodes.is_empty() && (target.cpus.is_some() || target.memory.is_some()) {
        let problem =
            Problem::new(format!("target.{name}.nodes"), "say already how many cpus and how much memory");
        found.push(problem.with_hint("leave `cpus` and `memory` out"));
    }
}

fn factor_side_problems(name: &str, factor: &Factor, study: &Study, found: &mut Vec<Problem>) {
    use FactorKind::{Commands, DropCaches, File, Sysctl};
    if factor.on.is_none() {
        return;
    }
    let key = format!("factor.{name}.on");
    if study.target.is_empty() {
        found.push(Problem::new(key, "the study has no targets").with_hint("add `[target.guest]`"));
    } else if !matches!(factor.kind, Sysctl | File | DropCaches | Commands) {
        let message = format!("means nothing for a factor of kind `{}`", factor.kind);
        found.push(Problem::new(key, message));
    }
}

fn target_count_problems(name: &str, factor: &Factor, study: &Study, found: &mut Vec<Problem>) {
    if factor.kind != FactorKind::Targets {
        return;
    }
    let all = study.target_count();
    if all == 0 {
        let hint = "add `[target.guest]` with a `count`";
        found.push(Problem::new(format!("factor.{name}"), "the study has no targets").with_hint(hint));
    }
    for (index, level) in factor.levels.iter().enumerate() {
        let number = matches!(level.value, crate::Scalar::Int(n) if n >= 1 && n <= i64::from(all));
        if !number && all > 0 {
            let key = format!("factor.{name}.levels[{index}]");
            let problem = Problem::new(key, format!("`{}` is no number of targets", level.value));
            found.push(problem.with_hint(format!("from 1 to {all}, which is how many the study has")));
        }
    }
}
