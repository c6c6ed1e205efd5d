//! Everything that the text of a study alone can get wrong, by table, beyond types and unknown keys.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::problem::{Problem, suggest_name};
use crate::quantity::{Bytes, Nanos, QuantityError, Ratio};
use crate::study::answer::StudyAnswer;
use crate::study::document::{
    DiskKind, DiskModel, KernelLayoutRule, ProfileScope, ProfileSpec, SamplingSide, SlotOrder, Study,
};
use crate::study::duet::duet_problems;
use crate::study::event_check::event_problems;
use crate::study::factor::Factor;
use crate::study::factor_kind::FactorKind;
use crate::study::study_list::StudyList;
use crate::study::target::{
    AgentChannel, GuestNetworkChoice, TargetKind, TargetSpec, qemu_option_problem, salloc_option_problem,
    ssh_option_problem,
};
use crate::study::target_key::TargetKey;
use crate::study::workload_spec::BesideSpec;

/// All problems of `study` that it says itself, each with its key.
#[must_use]
pub fn find_study_problems(study: &Study) -> Vec<Problem> {
    let mut found = Vec::new();
    if study.run.iterations == 0 {
        found.push(Problem::new("run.iterations", "must be at least 1").with_hint("10 is a good start"));
    }
    found.extend(stopping_rule_problems(study));
    if study.workload.is_empty() {
        found.push(
            Problem::new("workload", "no workload to run").with_hint("add `[workload.memory-bandwidth]`"),
        );
    }
    for (name, workload) in &study.workload {
        found.extend(workload.problems(name));
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
        beside_factor_problems(name, factor, study, &mut found);
        syscall_factor_problems(name, factor, study, &mut found);
    }
    found.extend(placement_problem(study));
    found.extend(monitors_factor_problem(study));
    found.extend(study.monitors.every_problem());
    found.extend(
        study.answers.iter().enumerate().flat_map(|(index, answer)| answer_problems(index, answer, study)),
    );
    found.extend(study.hooks.problems());
    found.extend(event_problems(&study.events));
    for (name, beside) in &study.beside {
        if beside.command.is_empty() {
            let problem = Problem::new(format!("beside.{name}.command"), "runs nothing");
            found.push(problem.with_hint("name a program and its arguments"));
        }
        if name == BesideSpec::NONE {
            let problem = Problem::new(format!("beside.{name}"), "`none` is the level at which nothing runs");
            found.push(problem.with_hint("give it another name"));
        }
    }
    for (name, preset) in &study.preset {
        found.extend(preset.problems().into_iter().map(|problem| {
            let key = format!("preset.{name}.{}", problem.key);
            Problem { key: key.trim_end_matches('.').to_owned(), ..problem }
        }));
        if name.contains(':') {
            let problem = Problem::new(format!("preset.{name}"), "a colon stands before a preset's part");
            found.push(problem.with_hint("give it a name without one"));
        }
    }
    for (name, fixed) in &study.settings {
        if fixed.on.is_some() && study.target.is_empty() {
            let problem = Problem::new(format!("settings.{name}.on"), "the study has no targets");
            found.push(problem.with_hint("leave `on` out"));
        }
    }
    for (name, choice) in &study.metric {
        if let Some(text) = &choice.margin
            && let Err(error) = parse_margin(text)
        {
            found.push(Problem::new(format!("metric.{name}.margin"), error.to_string()));
        }
    }
    disk_problems(study, &mut found);
    profile_problems(study, &mut found);
    all_target_problems(study, &mut found);
    found.extend(layout_problem(study));
    found.extend(duet_problems(study));
    found
}

/// What an answer names and the study has not; `index` is its place in the list.
fn answer_problems(index: usize, answer: &StudyAnswer, study: &Study) -> Vec<Problem> {
    let key = |part: &str| format!("answers[{index}]{part}");
    let mut found = Vec::new();
    if answer.name.trim_matches('*').is_empty() {
        found.push(Problem::new(key(""), "names no configuration").with_hint("write config-…"));
    }
    if let Some(only) = &answer.only
        && !study.workload.contains_key(only)
    {
        let hint = suggest_name(only, study.workload.keys().map(String::as_str));
        found.push(Problem::new(key(".only"), format!("the study has no workload `{only}`")).with_hint(hint));
    }
    for text in &answer.set {
        let Some((name, level)) = text.split_once('=') else {
            let problem = Problem::new(key(".set"), format!("`{text}` is not FACTOR=LEVEL"));
            found.push(problem.with_hint("write, for example, filesystem=xfs"));
            continue;
        };
        let Some(factor) = study.factor.get(name) else {
            let hint = suggest_name(name, study.factor.keys().map(String::as_str));
            let problem = Problem::new(key(".set"), format!("the study has no factor `{name}`"));
            found.push(problem.with_hint(hint));
            continue;
        };
        let levels = || factor.levels.iter().map(|level| level.name.as_str());
        if factor.levels.expression().is_none() && !levels().any(|known| known == level) {
            let message = format!("the factor `{name}` has no level `{level}`");
            found.push(Problem::new(key(".set"), message).with_hint(suggest_name(level, levels())));
        }
    }
    found
}

/// What does not go with `until`.
#[must_use]
pub fn stopping_rule_problems(study: &Study) -> Vec<Problem> {
    let Some(until) = study.run.until else { return Vec::new() };
    let key = "run.until";
    let mut found = Vec::new();
    if study.run.order == SlotOrder::Sequential {
        let hint = "leave `order` out: only complete blocks can be looked at fairly";
        found.push(Problem::new(key, "does not go with the sequential order").with_hint(hint));
    }
    if study.run.boots > 1 {
        let problem = Problem::new(key, "looks at iterations, and with `boots` a boot is what counts");
        found.push(problem.with_hint("give a number of `iterations`, and more `boots`"));
    }
    if until.is_decided() && study.run.layout > 1 {
        let problem =
            Problem::new(key, "`decided` looks at iterations, and with `layout` a layout is what counts");
        found.push(problem.with_hint("give a number of `iterations`, a multiple of the layouts"));
    }
    if until.is_decided() && !study.factor.values().any(|factor| factor.levels.may_have_several()) {
        let problem = Problem::new(key, "there is nothing to decide: no factor has two levels");
        found.push(
            problem.with_hint("add a factor, or ask for a precision: until = \"precision 1%, at most 60\""),
        );
    }
    found
}

fn profile_problems(study: &Study, found: &mut Vec<Problem>) {
    let Some(profile) = &study.profile else { return };
    let highest = profile.highest_frequency();
    if !(1..=highest).contains(&profile.sampling_frequency()) {
        let message = format!("must be between 1 and {highest} samples a second");
        let problem = Problem::new("profile.frequency", message);
        found.push(problem.with_hint(match profile.from {
            SamplingSide::Inside => "499 costs next to nothing, 4999 is felt",
            SamplingSide::Outside => "50 costs about a hundredth of the guest's time, 1000 a quarter",
        }));
    }
    if profile.from == SamplingSide::Outside {
        outside_sampling_problems(study, profile, found);
    }
    if !study.target.is_empty() && profile.pid.is_some() {
        let problem = Problem::new("profile.pid", "names a process of this host, and this study has targets");
        found.push(
            problem.with_hint("profile the workload (`scope = \"workload\"`), or everything in the targets"),
        );
    }
}

/// What cannot be where guests are sampled from outside.
fn outside_sampling_problems(study: &Study, profile: &ProfileSpec, found: &mut Vec<Problem>) {
    let key = "profile.from";
    if study.target.is_empty() {
        let problem =
            Problem::new(key, "there is no guest to sample from outside: this study runs on this host");
        found.push(problem.with_hint("add `[target.guest]` with `kind = \"vm\"`, or leave `from` out"));
    }
    for (name, _) in study.target.iter().filter(|(_, target)| target.kind != TargetKind::Vm) {
        let message =
            format!("target `{name}` is no guest that perflab starts, and cannot be sampled from outside");
        let hint = "leave `from` out, so that its own kernel samples, or make it `kind = \"vm\"`";
        found.push(Problem::new(key, message).with_hint(hint));
    }
    if profile.scope == ProfileScope::Workload {
        let problem = Problem::new("profile.scope", "from outside, all that a guest does is sampled");
        found.push(problem.with_hint("leave `scope` out; samples have the names of their tasks"));
    }
}

/// A change that matters is none of nothing, and none of the whole.
fn parse_margin(text: &str) -> Result<Ratio, QuantityError> {
    Ratio::parse_within(text, (Bound::Excluded(0.0), Bound::Excluded(1.0)))
}

fn matrix_problems(key: &str, values: &StudyList<crate::scalar::Scalar>, found: &mut Vec<Problem>) {
    if values.is_empty() && values.expression().is_none() {
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
    if factor.levels.is_empty() && factor.levels.expression().is_none() {
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

fn level_problem(key: &str, kind: FactorKind, level: &crate::study::factor::FactorLevel) -> Option<Problem> {
    let (applies, undoes) = (!level.apply.is_empty(), !level.undo.is_empty());
    let spec = kind.spec();
    let problem = |(message, hint): (String, &str)| Problem::new(key, message).with_hint(hint);
    if spec.takes_commands {
        let message = format!("the level `{}` has only one of `apply` and `undo`", level.name);
        let hint = "what is applied must be undone: give both, or neither for a level that changes nothing";
        return (applies != undoes).then(|| problem((message, hint)));
    }
    if applies || undoes {
        let message = format!("`apply` and `undo` do nothing in a factor of kind `{kind}`");
        return Some(problem((message, "use `kind = \"commands\"`")));
    }
    (spec.refuse_value)(&level.value).map(problem)
}

fn factor_key_problems(name: &str, factor: &Factor, study: &Study, found: &mut Vec<Problem>) {
    if let Some(workload) = &factor.workload
        && !study.workload.contains_key(workload)
    {
        let hint = crate::problem::suggest_name(workload, study.workload.keys().map(String::as_str));
        let key = format!("factor.{name}.workload");
        found.push(Problem::new(key, format!("the study has no workload `{workload}`")).with_hint(hint));
    }
    let Some(file) = factor.kind.spec().file else { return };
    let (key, message, hint) = match &factor.key {
        None => {
            let message = format!("a factor of kind `{}` needs a `key`", factor.kind);
            let hint = "add `key = \"vm.swappiness\"` or, for a file, its path";
            (format!("factor.{name}"), message, hint)
        }
        Some(key) => match (file.refuse_key)(key) {
            Some((message, hint)) => (format!("factor.{name}.key"), message, hint),
            None => return,
        },
    };
    found.push(Problem::new(key, message).with_hint(hint));
}

/// A workload is in one place.
/// Monitors are on or off: a second factor of them would say the same, or the contrary.
fn monitors_factor_problem(study: &Study) -> Option<Problem> {
    let mut of_monitors = study.factor.iter().filter(|(_, factor)| factor.kind == FactorKind::Monitors);
    let (name, _) = of_monitors.nth(1)?;
    let problem = Problem::new(format!("factor.{name}"), "is a second factor of kind `monitors`");
    Some(problem.with_hint("one says whether they are read: leave one out"))
}

/// A system call is delayed by one factor, whoever calls it.
fn syscall_factor_problems(name: &str, factor: &Factor, study: &Study, found: &mut Vec<Problem>) {
    if factor.kind != FactorKind::Syscall {
        return;
    }
    let call = |name: &str, factor: &Factor| factor.key.as_deref().unwrap_or(name).to_owned();
    let own = call(name, factor);
    let mut before = study.factor.iter().take_while(|(other, _)| *other != name);
    let same = before.find(|(other, one)| one.kind == FactorKind::Syscall && call(other, one) == own);
    if let Some((other, _)) = same {
        let message = format!("delays the system call `{own}`, which the factor `{other}` delays already");
        found.push(Problem::new(format!("factor.{name}"), message).with_hint("make them one factor"));
    }
    if study.run.order == SlotOrder::Duet {
        let message = "delays system calls, and `duet` runs two levels at once";
        let hint = "leave `order` out: levels take turns in blocks";
        found.push(Problem::new(format!("factor.{name}"), message).with_hint(hint));
    }
}

fn placement_problem(study: &Study) -> Option<Problem> {
    let mut placing = study.factor.iter().filter(|(_, factor)| factor.kind == FactorKind::Placement);
    let (first, one) = placing.next()?;
    let concerns_same = |other: &Factor| {
        let [one, other] = [&one.workload, &other.workload];
        one.is_none() || other.is_none() || one == other
    };
    let (second, _) = placing.find(|(_, other)| concerns_same(other))?;
    let problem =
        Problem::new(format!("factor.{second}"), format!("places what the factor `{first}` places already"));
    Some(problem.with_hint("make them one factor: levels = [\"siblings memory=local\", …]"))
}

/// A factor over what runs beside names what the study has.
fn beside_factor_problems(name: &str, factor: &Factor, study: &Study, found: &mut Vec<Problem>) {
    if factor.kind != FactorKind::Beside {
        return;
    }
    for (index, level) in factor.levels.iter().enumerate() {
        let named = level.value.to_string();
        if named == BesideSpec::NONE || study.beside.contains_key(&named) {
            continue;
        }
        let known = study.beside.keys().map(String::as_str).chain([BesideSpec::NONE]);
        let hint = crate::problem::suggest_name(&named, known.collect::<Vec<_>>().iter().copied());
        let key = format!("factor.{name}.levels[{index}]");
        found.push(Problem::new(key, format!("the study has no `[beside.{named}]`")).with_hint(hint));
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

impl crate::study::document::MetricChoice {
    /// The margin as a fraction: 0.02 for `"2%"`.
    pub fn margin_fraction(&self) -> Option<f64> {
        self.margin.as_deref().and_then(|text| parse_margin(text).ok()).map(|margin| margin.0)
    }
}

/// All such problems.
fn all_target_problems(study: &Study, found: &mut Vec<Problem>) {
    for (name, target) in &study.target {
        target_problems(name, &with_first_levels(study, name, target), found);
    }
    let allocations = study.target.iter().filter(|(_, target)| target.kind == TargetKind::Slurm);
    for (name, _) in allocations.skip(1) {
        let problem = Problem::new(format!("target.{name}"), "a run has one allocation of Slurm's");
        found.push(problem.with_hint("ask for all its nodes with `count` of one target"));
    }
    for (name, factor) in &study.factor {
        factor_side_problems(name, factor, study, found);
        target_count_problems(name, factor, study, found);
        target_key_problems(name, factor, study, found);
    }
    shared_target_key_problems(study, found);
    if study.run.boots == 0 {
        found.push(Problem::new("run.boots", "must be at least 1"));
    }
    if study.run.kernel_layout == KernelLayoutRule::EachBoot {
        let has_kernels = study.target.values().any(|target| target.kind == TargetKind::Vm);
        if study.run.boots < 2 || !has_kernels {
            let problem =
                Problem::new("run.kernel-layout", "there is one boot, or no guest, to have layouts");
            found.push(
                problem.with_hint("give guests (`[target.guest]`, `kind = \"vm\"`) and `boots`, six or more"),
            );
        }
    }
    if study.run.boots > 1 && study.target.is_empty() {
        let hint = "add `[target.guest]`, or repeat the run under one `--label`";
        found.push(Problem::new("run.boots", "there is nothing to start anew").with_hint(hint));
    }
    if study.run.boot_each_case {
        boot_each_case_problems(study, found);
    }
}

/// More layouts than this are no better known.
const MOST_LAYOUTS: u32 = 1000;

/// Layouts that cannot be run under equally often.
fn layout_problem(study: &Study) -> Option<Problem> {
    let (layouts, iterations) = (study.run.layout, study.run.iterations);
    let key = "run.layout";
    if !(1..=MOST_LAYOUTS).contains(&layouts) {
        return Some(Problem::new(key, format!("must be from 1 to {MOST_LAYOUTS}")));
    }
    let is_uneven = study.run.until.is_none() && layouts > 1 && !iterations.is_multiple_of(layouts);
    is_uneven.then(|| {
        let message = format!("{iterations} iterations are not equally many under each of {layouts} layouts");
        let enough = iterations.div_ceil(layouts).max(2).saturating_mul(layouts);
        Problem::new(key, message).with_hint(format!("set `iterations = {enough}`: two or more a layout"))
    })
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
    reboot_problems(name, target, found);
    address_problems(name, target, found);
    slurm_problems(name, target, found);
}

/// The shortest time that Slurm gives nodes for.
const SHORTEST_ALLOCATION: Nanos = Nanos(60_000_000_000);

/// What an allocation is asked for with, and who has no use for it.
fn slurm_problems(name: &str, target: &TargetSpec, found: &mut Vec<Problem>) {
    let texts = [
        ("partition", &target.partition),
        ("constraint", &target.constraint),
        ("account", &target.account),
        ("reservation", &target.reservation),
    ];
    if target.kind == TargetKind::Slurm {
        for (key, _) in texts.iter().filter(|(_, text)| text.as_ref().is_some_and(String::is_empty)) {
            let problem = Problem::new(format!("target.{name}.{key}"), "is empty");
            found.push(problem.with_hint("leave it out: Slurm has a default"));
        }
        if target.time.is_some_and(|time| time.0 < SHORTEST_ALLOCATION) {
            let problem = Problem::new(format!("target.{name}.time"), "must be at least 1 minute");
            found.push(
                problem.with_hint("the nodes are given back at the end of the run, however long it took"),
            );
        }
        if let Some((message, hint)) = salloc_option_problem(&target.options) {
            found.push(Problem::new(format!("target.{name}.options"), message).with_hint(hint));
        }
        return;
    }
    let others = [
        ("exclusive", target.exclusive.is_some()),
        ("time", target.time.is_some()),
        ("wait", target.wait.is_some()),
        ("options", !target.options.is_empty()),
    ];
    let texts = texts.into_iter().map(|(key, text)| (key, text.is_some()));
    for (key, _) in texts.chain(others).filter(|(_, is_there)| *is_there) {
        found.push(meaningless_key_problem(name, key, target.kind));
    }
}

/// Who is reached by ssh, and who is a domain.
fn address_problems(name: &str, target: &TargetSpec, found: &mut Vec<Problem>) {
    let kind = target.kind;
    let by_ssh = matches!(kind, TargetKind::Ssh | TargetKind::Libvirt);
    let present = [
        ("address", &target.address, by_ssh, "add `address = \"user@host\"`"),
        (
            "domain",
            &target.domain,
            kind == TargetKind::Libvirt,
            "add `domain = \"NAME\"` (`virsh list --all`)",
        ),
    ];
    for (key, value, wanted, hint) in present {
        match value {
            // The inventory has its address.
            None if wanted && key == "address" && target.host.is_some() => {}
            None if wanted => {
                let problem = Problem::new(format!("target.{name}"), format!("needs `{key}`"));
                found.push(problem.with_hint(hint));
            }
            Some(_) if !wanted => found.push(meaningless_key_problem(name, key, kind)),
            // A word that begins like this would be an option to ssh or virsh.
            Some(value) if value.starts_with('-') || value.is_empty() => {
                found.push(Problem::new(format!("target.{name}.{key}"), format!("is no {key}")));
            }
            _ => {}
        }
    }
    host_problems(name, target, found);
    if target.connect.is_some() && kind != TargetKind::Libvirt {
        found.push(meaningless_key_problem(name, "connect", kind));
    }
    if kind == TargetKind::Libvirt && target.count > 1 {
        let problem = Problem::new(format!("target.{name}.count"), "a domain is one machine");
        found.push(problem.with_hint("write each domain as a target of its own"));
    }
}

/// Who is a host of an inventory, and what ssh is told.
fn host_problems(name: &str, target: &TargetSpec, found: &mut Vec<Problem>) {
    let mut refuse = |key: &str, message: &str, hint: &str| {
        found.push(Problem::new(format!("target.{name}.{key}"), message).with_hint(hint));
    };
    if target.host.is_some() && target.kind == TargetKind::Ssh {
        if target.address.is_some() {
            refuse("host", "has its address in the inventory", "leave `address` out, or `host`");
        }
        if target.count > 1 {
            refuse("count", "a host is one machine", "name a group of the inventory, or several targets");
        }
    }
    if let Some((message, hint)) = ssh_option_problem(&target.ssh_options) {
        refuse("ssh-options", &message, &hint);
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for variable in target.variables.keys().filter(|name| name.is_empty() || !name.chars().all(plain)) {
        let hint = "letters, digits and `_`: templates read `-` as minus";
        refuse(&format!("variables.{variable}"), "cannot be a variable's name", hint);
    }
    if target.host.is_some() && target.kind != TargetKind::Ssh {
        found.push(meaningless_key_problem(name, "host", target.kind));
    }
    if !target.ssh_options.is_empty() && !matches!(target.kind, TargetKind::Ssh | TargetKind::Libvirt) {
        found.push(meaningless_key_problem(name, "ssh-options", target.kind));
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
        if let Some((message, hint)) = qemu_option_problem(&target.qemu_options) {
            found.push(Problem::new(format!("target.{name}.qemu-options"), message).with_hint(hint));
        }
        guest_device_problems(name, target, found);
        return;
    }
    if target.kind == TargetKind::Container && target.root.is_none() {
        let hint = "add `root = \"debootstrap:trixie\"`, or a folder that holds the root of a system; or `root = \"host\"`";
        found.push(Problem::new(format!("target.{name}"), "needs `root`").with_hint(hint));
    }
    let reboots = target.kind == TargetKind::Ssh && target.reboot.is_some();
    let present = [
        ("kernel", target.kernel.is_some() && !reboots),
        ("modules", target.modules.is_some()),
        ("load", !target.load.is_empty()),
        ("append", !target.append.is_empty() && !reboots),
        ("cpus", target.cpus.is_some()),
        ("memory", target.memory.is_some()),
        ("root", target.root.is_some() && target.kind != TargetKind::Container),
        ("programs", !target.programs.is_empty()),
        ("pin", !target.pin.is_empty()),
        ("nodes", !target.nodes.is_empty()),
        ("huge-pages", target.huge_pages.is_some()),
        ("cpu-model", target.cpu_model.is_some()),
        ("accelerator", target.accelerator.is_some()),
        ("channel", target.channel.is_some_and(|channel| !is_usable_channel(target.kind, channel))),
        ("boot-within", target.boot_within.is_some() && !reboots),
        ("cache", target.cache.is_some()),
        ("qemu-options", !target.qemu_options.is_empty()),
        ("disks", !target.disks.is_empty()),
        ("disk-queues", target.disk_queues.is_some()),
        ("iothreads", target.iothreads.is_some()),
        ("network", target.network.is_some()),
        ("forward", !target.forward.is_empty()),
    ];
    for (key, _) in present.into_iter().filter(|(_, present)| *present) {
        found.push(meaningless_key_problem(name, key, target.kind));
    }
}

/// Whether the agent of a target that is not a guest can be spoken to that way.
fn is_usable_channel(kind: TargetKind, channel: AgentChannel) -> bool {
    kind == TargetKind::Process && channel == AgentChannel::Vsock
}

fn guest_size_problems(name: &str, target: &TargetSpec, found: &mut Vec<Problem>) {
    let nodes = target.nodes.iter().enumerate();
    let nodes = nodes.map(|(index, node)| (format!("nodes[{index}].memory"), Some(&node.memory)));
    let others = [("memory", &target.memory), ("huge-pages", &target.huge_pages)];
    for (key, text) in others.map(|(key, text)| (key.to_owned(), text.as_ref())).into_iter().chain(nodes) {
        if let Some(Err(wrong)) = text.map(|text| Bytes::parse(text)) {
            found.push(Problem::new(format!("target.{name}.{key}"), wrong.to_string()));
        }
    }
    if !target.nodes.is_empty() && (target.cpus.is_some() || target.memory.is_some()) {
        let problem =
            Problem::new(format!("target.{name}.nodes"), "say already how many cpus and how much memory");
        found.push(problem.with_hint("leave `cpus` and `memory` out"));
    }
}

/// A machine that is to run another kernel.
fn reboot_problems(name: &str, target: &TargetSpec, found: &mut Vec<Problem>) {
    let mut refuse = |key: &str, message: String, hint: &str| {
        found.push(Problem::new(format!("target.{name}.{key}"), message).with_hint(hint));
    };
    if target.reboot.is_some() && target.kind != TargetKind::Ssh {
        let hint = "a guest boots its `kernel` for every start; a machine that ssh reaches can be rebooted";
        refuse("reboot", format!("means nothing for a target of kind `{}`", target.kind), hint);
    }
    if target.reboot.is_some() && target.count > 1 {
        refuse("count", "a machine is one, and runs one kernel at a time".into(), "leave `count` out");
    }
    let reboots = target.kind == TargetKind::Ssh && target.reboot.is_some();
    if target.initrd.is_some() && !reboots {
        refuse(
            "initrd",
            "means nothing without `reboot`".into(),
            "guests have a first file system of perflab's",
        );
    }
    if let Some(path) = target.initrd.as_ref().filter(|path| !path.starts_with('/')) {
        refuse("initrd", format!("`{path}` is no path on the machine"), "write it from the root on");
    }
    let is_path = |kernel: &str| kernel.starts_with('/');
    let plain = |c: char| c.is_ascii_alphanumeric() || "._+~-".contains(c);
    let odd = |kernel: &&String| !is_path(kernel) && (kernel.is_empty() || !kernel.chars().all(plain));
    if let Some(kernel) = target.kernel.as_ref().filter(|_| reboots).filter(odd) {
        let hint =
            "name a release that is installed there, as `uname -r` prints it, or the path of an image there";
        refuse("kernel", format!("`{kernel}` is no kernel of another machine"), hint);
    }
}

/// The disks and network cards of a guest: how many queues and threads, and which ports of the host.
fn guest_device_problems(name: &str, target: &TargetSpec, found: &mut Vec<Problem>) {
    let mut refuse = |key: &str, message: String, hint: &str| {
        found.push(Problem::new(format!("target.{name}.{key}"), message).with_hint(hint));
    };
    if target.disk_queues.is_some_and(|queues| !(1..=MOST_QUEUES).contains(&queues)) {
        refuse(
            "disk-queues",
            format!("must be from 1 to {MOST_QUEUES}"),
            "as many as it has processors is QEMU's own choice",
        );
    }
    if target.iothreads.is_some_and(|threads| threads > MOST_IOTHREADS) {
        refuse(
            "iothreads",
            format!("must be from 0 to {MOST_IOTHREADS}"),
            "more threads than disks do nothing",
        );
    }
    if target.forward.is_empty() {
        return;
    }
    if !target.network.is_some_and(GuestNetworkChoice::has_host) {
        refuse(
            "forward",
            "leads to a guest that the host does not reach".into(),
            "add `network = \"host\"` or `\"all\"`",
        );
    }
    if target.count > 1 {
        refuse(
            "forward",
            "a port of this host leads to one guest".into(),
            "write each guest as a target of its own",
        );
    }
    let mut ports: Vec<u16> = target.forward.iter().map(|forward| forward.host).collect();
    ports.sort_unstable();
    if let Some(twice) = ports.windows(2).find(|pair| pair[0] == pair[1]) {
        refuse("forward", format!("names port {} of this host twice", twice[0]), "give each its own");
    }
}

/// Request queues of a disk: QEMU takes no more than its processors, of which no guest has more than this many useful ones.
const MOST_QUEUES: u32 = 256;

/// Threads for disks.
const MOST_IOTHREADS: u32 = 64;

fn factor_side_problems(name: &str, factor: &Factor, study: &Study, found: &mut Vec<Problem>) {
    if factor.on.is_none() {
        return;
    }
    let key = format!("factor.{name}.on");
    if study.target.is_empty() {
        found.push(Problem::new(key, "the study has no targets").with_hint("add `[target.guest]`"));
    } else if !factor.kind.is_set_on_machine() {
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
        // How many hosts a group has, the inventory says.
        let most = if study.has_hosts() { i64::from(u32::MAX) } else { i64::from(all) };
        let number = matches!(level.value, crate::scalar::Scalar::Int(n) if n >= 1 && n <= most);
        if !number && all > 0 {
            let key = format!("factor.{name}.levels[{index}]");
            let problem = Problem::new(key, format!("`{}` is no number of targets", level.value));
            found.push(problem.with_hint(format!("from 1 to {all}, which is how many the study has")));
        }
    }
}

/// A target with the first level of each factor over its keys: what a factor gives need not stand in its table.
fn with_first_levels(study: &Study, name: &str, target: &TargetSpec) -> TargetSpec {
    let varied = study.factor.values().filter(|factor| factor.kind == FactorKind::Target);
    varied.fold(target.clone(), |spec, factor| {
        let key = factor.key.as_deref().map(TargetKey::new).filter(|key| key.concerns(name));
        let applied = key.zip(factor.levels.first()).map(|(key, level)| key.apply(&spec, &level.value));
        // A level that cannot be is told as such.
        applied.and_then(Result::ok).unwrap_or(spec)
    })
}

/// Two factors that give one key of a target its value: only one of them would be in force.
fn shared_target_key_problems(study: &Study, found: &mut Vec<Problem>) {
    let keys = study.factor.iter().filter(|(_, factor)| factor.kind == FactorKind::Target);
    let keys: Vec<(&String, TargetKey<'_>)> =
        keys.filter_map(|(name, factor)| Some((name, TargetKey::new(factor.key.as_deref()?)))).collect();
    for (index, (name, key)) in keys.iter().enumerate() {
        let is_shared = |other: &&(&String, TargetKey<'_>)| {
            let other = &other.1;
            other.key == key.key
                && (other.target.is_none() || key.target.is_none() || other.target == key.target)
        };
        let earlier = keys.iter().take(index).find(is_shared).filter(|_| key.takes_one_value());
        if let Some((other, _)) = earlier {
            let message =
                format!("factor `{other}` varies `{}` already: only one of them would be in force", key.key);
            let hint = "leave one of them out, or give all levels to one";
            found.push(Problem::new(format!("factor.{name}.key"), message).with_hint(hint));
        }
    }
}

/// A factor over a key of the targets: who they are, what it is, and what its levels make of them.
fn target_key_problems(name: &str, factor: &Factor, study: &Study, found: &mut Vec<Problem>) {
    if factor.kind != FactorKind::Target {
        return;
    }
    let at = format!("factor.{name}");
    let Some(key) = factor.key.as_deref().map(TargetKey::new) else {
        let problem = Problem::new(at, "a factor of kind `target` needs a `key`");
        found.push(problem.with_hint("add `key = \"kernel\"`"));
        return;
    };
    let concerned: Vec<(&String, &TargetSpec)> =
        study.target.iter().filter(|(target, _)| key.concerns(target)).collect();
    if concerned.is_empty() {
        let problem = Problem::new(format!("{at}.key"), "the study has no such target");
        found.push(problem.with_hint("add `[target.guest]`, or name one: key = \"guest.kernel\""));
    }
    for (target, spec) in concerned {
        let spec = with_first_levels(study, target, spec);
        for (index, level) in factor.levels.iter().enumerate() {
            match key.apply(&spec, &level.value) {
                Ok(changed) => {
                    let (mut known, mut changed_found) = (Vec::new(), Vec::new());
                    target_problems(target, &spec, &mut known);
                    target_problems(target, &changed, &mut changed_found);
                    changed_found.retain(|one| !known.contains(one));
                    let problem = |one: Problem| {
                        Problem::new(format!("{at}.levels[{index}]"), one.message)
                            .with_hint(one.hint.unwrap_or_default())
                    };
                    found.extend(changed_found.into_iter().map(problem));
                }
                Err(error) => {
                    let problem = Problem::new(format!("{at}.levels[{index}]"), error.message);
                    found.push(problem.with_hint(error.hint));
                }
            }
        }
    }
    if study.run.until.is_some() {
        let problem = Problem::new(at, "starts targets anew, which does not go with `until`");
        found.push(problem.with_hint("give a number of `iterations`, and `boots`"));
    }
}

#[cfg(test)]
mod tests {
    use crate::study::*;

    const GOOD: &str = r#"
title = "pages"
[values]
half = "memory / 2"
[run]
iterations = 8
time-limit = "30s"
[workload.sweep]
use = "page-faults"
parameters = { size = "half" }
matrix = { threads = [1, 2] }
[factor.pages]
kind = "parameter"
levels = ["ordinary", "huge"]
[factor.caches]
kind = "drop-caches"
levels = [0, 3]
[factor.daemon]
kind = "commands"
levels = [{ name = "off" }, { name = "on", apply = ["true"], undo = ["true"] }]
[monitors]
vmstat = "100ms"
[metric.faults]
margin = "2%"
"#;

    fn parse_error_text(text: &str) -> String {
        TomlSource::new("s.toml", text).parse_study().unwrap_err().to_string()
    }

    #[test]
    fn a_good_study_reads() {
        let study = TomlSource::new("s.toml", GOOD).parse_study().unwrap();
        assert_eq!(study.run.iterations, 8);
        assert_eq!(study.run.warmup, 1);
        assert_eq!(study.factor["caches"].levels[1].name, "3");
        assert_eq!(study.factor["daemon"].levels[1].apply, ["true"]);
        assert_eq!(study.metric["faults"].margin_fraction(), Some(0.02));
    }

    #[test]
    fn an_unknown_key_gets_the_nearest_name() {
        let text = GOOD.replace("iterations = 8", "iteratons = 8");
        assert_eq!(
            parse_error_text(&text),
            "s.toml:6:1: `run.iteratons`: the key `iteratons` is not known here; did you mean `iterations`?"
        );
    }

    #[test]
    fn a_wrong_type_is_named_with_its_place() {
        let text = GOOD.replace("iterations = 8", "iterations = \"many\"");
        let text = parse_error_text(&text);
        insta::assert_snapshot!(text, @r#"s.toml:6:14: `run.iterations`: invalid type: string "many", expected a whole number, 0 or more"#);
    }

    #[test]
    fn a_number_without_its_unit_is_shown_with_one() {
        let text = GOOD.replace("\"2%\"", "2");
        let text = parse_error_text(&text);
        assert!(
            text.ends_with(
                "`metric.faults.margin`: invalid type: integer `2`, expected a text; write `margin = \"2%\"`"
            ),
            "{text}"
        );
        let text = parse_error_text(&GOOD.replace("vmstat = \"100ms\"", "vmstat = 100"));
        assert!(text.ends_with("expected a text; write `vmstat = \"100ms\"`"), "{text}");
    }

    #[test]
    fn all_that_an_empty_study_lacks_is_told_at_once() {
        let problems = TomlSource::new("s.toml", "").parse_study().unwrap_err();
        let messages: Vec<&str> = problems.list.iter().map(|problem| problem.message.as_str()).collect();
        assert_eq!(messages, ["the key `title` is missing", "the key `workload` is missing"]);
    }

    #[test]
    fn a_level_twice_is_refused() {
        let text = GOOD.replace("\"huge\"", "\"ordinary\"");
        let text = parse_error_text(&text);
        insta::assert_snapshot!(text, @"s.toml:14:23: `factor.pages.levels[1]`: the level `ordinary` stands here twice; remove one, or give one of them a `name` of its own");
    }

    #[test]
    fn two_factors_over_one_key_of_a_target_are_refused() {
        let study = "title = \"t\"\nworkload.spin.command = \"true\"\n\
            [target.box]\nkind = \"container\"\nroot = \"/a\"\n\
            [factor.root]\nkind = \"target\"\nkey = \"root\"\nlevels = [\"/a\", \"/b\"]\n";
        let twice = "[factor.again]\nkind = \"target\"\nkey = \"box.root\"\nlevels = [\"/b\", \"/c\"]\n";
        let text = parse_error_text(&(study.to_owned() + twice));
        insta::assert_snapshot!(text, @"s.toml:12:1: `factor.again.key`: factor `root` varies `root` already: only one of them would be in force; leave one of them out, or give all levels to one");
    }

    #[test]
    fn every_problem_is_reported_at_once() {
        let text =
            GOOD.replace("[0, 3]", "[0, 7]").replace("2%", "two").replace("iterations = 8", "iterations = 0");
        let problems = TomlSource::new("s.toml", text).parse_study().unwrap_err();
        let keys: Vec<&str> = problems.list.iter().map(|problem| problem.key.as_str()).collect();
        assert_eq!(keys, ["run.iterations", "factor.caches.levels[1]", "metric.faults.margin"]);
        assert!(problems.list.iter().all(|problem| problem.span.is_some()));
    }

    #[test]
    fn a_stored_study_is_not_judged_again() {
        // Written when a margin could have an exponent or a sign.
        let mut stored =
            serde_json::to_value(TomlSource::new("s.toml", GOOD).parse_study().unwrap()).unwrap();
        stored["metric"]["faults"]["margin"] = "+2e0%".into();
        stored["run"]["until"] = "precision 0.07%, at least 10, at most 60".into();
        let read: Study = serde_json::from_value(stored).unwrap();
        assert_eq!(read.metric["faults"].margin.as_deref(), Some("+2e0%"));
        assert_eq!(read.run.until.map(|rule| rule.at_most), Some(60));
    }

    #[test]
    fn text_that_is_not_toml_is_placed() {
        let text = parse_error_text("title = \nworkload = 3");
        insta::assert_snapshot!(text, @"s.toml:1:9: string values must be quoted, expected literal string");
    }

    #[test]
    fn a_table_named_twice_is_placed() {
        let text = parse_error_text(&format!("{GOOD}[factor.pages]\nkind = \"label\"\nlevels = [1]\n"));
        insta::assert_snapshot!(text, @"s.toml:25:9: duplicate key");
    }

    #[test]
    fn the_schema_names_every_table() {
        let schema = study_json_schema();
        for table in ["run", "workload", "factor", "monitors", "metric", "disk"] {
            assert!(schema["properties"][table].is_object(), "{table}");
        }
    }

    #[test]
    fn targets_are_checked_with_what_refers_to_them() {
        let targets = "[target.guest]\nkind = \"process\"\ncount = 2\n[factor.guests]\nkind = \"targets\"\nlevels = [1, 2]\n";
        let study = TomlSource::new("s.toml", format!("{GOOD}{targets}")).parse_study().unwrap();
        assert_eq!((study.target_count(), study.run.boots), (2, 1));
        let text = parse_error_text(&format!("{GOOD}{}", targets.replace("[1, 2]", "[1, 3]")));
        insta::assert_snapshot!(text, @"s.toml:30:14: `factor.guests.levels[1]`: `3` is no number of targets; from 1 to 2, which is how many the study has");
        let text = parse_error_text(&format!("{GOOD}{}", targets.replace("process", "ssh")));
        insta::assert_snapshot!(text, @r#"s.toml:25:9: `target.guest`: needs `address`; add `address = "user@host"`"#);
        let text = parse_error_text(
            &GOOD.replace("kind = \"drop-caches\"", "kind = \"drop-caches\"\non = \"guest\""),
        );
        insta::assert_snapshot!(text, @"s.toml:17:1: `factor.caches.on`: the study has no targets; add `[target.guest]`");
        let text = parse_error_text(&GOOD.replace("iterations = 8", "iterations = 8\nboots = 2"));
        insta::assert_snapshot!(text, @"s.toml:7:1: `run.boots`: there is nothing to start anew; add `[target.guest]`, or repeat the run under one `--label`");
    }

    #[test]
    fn nodes_of_slurm_are_asked_for_once_and_with_what_slurm_takes() {
        let node = "[target.node]\nkind = \"slurm\"\ncount = 4\npartition = \"night\"\ntime = \"2h\"\noptions = [\"--gres=gpu:1\"]\n";
        let study = TomlSource::new("s.toml", format!("{GOOD}{node}")).parse_study().unwrap();
        assert_eq!(study.target_count(), 4);
        let refused = [
            node.replace("count", "nodes"),
            node.replace("2h", "30s"),
            node.replace("gres=gpu:1", "part=day"),
            node.replace("--gres=gpu:1", "gpu:1"),
            node.replace("slurm", "process"),
            format!("{node}[target.other]\nkind = \"slurm\"\n"),
        ];
        let texts = refused.map(|targets| parse_error_text(&format!("{GOOD}{targets}")));
        insta::assert_snapshot!(texts.join("\n"), @r"
        s.toml:27:9: `target.node.nodes`: invalid type: integer `4`, expected a list of the NUMA nodes of a guest; how many machines there are says `count`
        s.toml:29:1: `target.node.time`: must be at least 1 minute; the nodes are given back at the end of the run, however long it took
        s.toml:30:1: `target.node.options`: perflab sets `--partition` itself; say it with `partition`
        s.toml:30:1: `target.node.options`: `gpu:1` is no option of salloc; write an option and its value as one word, `--gres=gpu:1`
        s.toml:28:1: `target.node.partition`: means nothing for a target of kind `process`
        s.toml:29:1: `target.node.time`: means nothing for a target of kind `process`
        s.toml:30:1: `target.node.options`: means nothing for a target of kind `process`
        s.toml:31:9: `target.other`: a run has one allocation of Slurm's; ask for all its nodes with `count` of one target
        ");
    }

    #[test]
    fn a_study_without_targets_is_stored_without_a_word_of_them() {
        let study = TomlSource::new("s.toml", GOOD).parse_study().unwrap();
        let stored = serde_json::to_value(&study).unwrap();
        let keys = |value: &serde_json::Value| {
            value.as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>().join(" ")
        };
        insta::assert_snapshot!(keys(&stored), @"description disk factor facts metric monitors reference run title values workload");
        insta::assert_snapshot!(keys(&stored["run"]), @"iterations order quiet seed time-limit total-time-limit warmup");
    }

    #[test]
    fn a_factor_over_the_disk_needs_a_disk_and_a_key_that_varies() {
        let text = GOOD.replace(
            "kind = \"drop-caches\"\nlevels = [0, 3]",
            "kind = \"disk\"\nlevels = [\"ext4\", \"ext9\"]",
        );
        let said = parse_error_text(&text);
        insta::assert_snapshot!(said, @r#"
s.toml:15:9: `factor.caches`: there is no disk to make afresh; add `[disk]` with `kind = "image"` and a `size`
s.toml:15:9: `factor.caches`: `caches` of a disk cannot be varied; known here: filesystem, mount, model
"#);
        let text = text.replace("[factor.caches]", "[factor.filesystem]");
        insta::assert_snapshot!(parse_error_text(&text), @r#"
        s.toml:15:9: `factor.filesystem`: there is no disk to make afresh; add `[disk]` with `kind = "image"` and a `size`
        s.toml:17:19: `factor.filesystem.levels[1]`: `ext9` is not known here; known here: ext4, xfs, btrfs
        "#);
    }

    #[test]
    fn what_an_answer_names_must_be_in_the_study() {
        let study = "title = \"t\"\nanswers = [\"config-a-*\", ANSWER]\n[workload.echo]\n\
                     [factor.pages]\nkind = \"parameter\"\nlevels = [\"ordinary\", \"huge\"]\n";
        let keys = |answer: &str| {
            let found = TomlSource::new("s.toml", study.replace("ANSWER", answer)).parse_study().err();
            found.map(|found| found.list.into_iter().map(|problem| problem.key).collect::<Vec<_>>())
        };
        assert_eq!(keys("{ name = \"config-b\", only = \"echo\", set = [\"pages=huge\"] }"), None);
        for (answer, key) in [
            ("\"*\"", "answers[1]"),
            ("{ name = \"config-b\", only = \"ech\" }", "answers[1].only"),
            ("{ name = \"config-b\", set = [\"pages\"] }", "answers[1].set"),
            ("{ name = \"config-b\", set = [\"page=huge\"] }", "answers[1].set"),
            ("{ name = \"config-b\", set = [\"pages=giant\"] }", "answers[1].set"),
        ] {
            assert_eq!(keys(answer), Some(vec![key.to_owned()]), "{answer}");
        }
        assert!(keys("{ nam = \"config-b\" }").is_some() && keys("7").is_some());
        let text =
            parse_error_text(&study.replace("ANSWER", "{ name = \"config-b\", set = [\"pages=hug\"] }"));
        insta::assert_snapshot!(text, @"s.toml:2:47: `answers[1].set`: the factor `pages` has no level `hug`; did you mean `huge`?");
    }
}
