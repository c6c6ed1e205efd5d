//! What a run needs before it begins: what killed runs left is put back, what the environment lacks for the plan is
//! found, or installed.

use std::collections::BTreeSet;

use perflab_disk::scratch_disk;
use perflab_model::study::{FactorKind, LostTargetPolicy};
use perflab_model::{Manifest, PlannedPlacement, Refusal, RunEventKind, Setting, describe_error_chain};
use perflab_observe::{CpuTopology, KernelConfig, Root, collect_facts};
use perflab_settings::{SettingSite, find_preset_refusal};
use perflab_workload::{Catalogue, WorkloadDefinition, WorkloadError, find_delay_refusal, install};
use rustix::fs::{Access, access};

use crate::error::ConductError;
use crate::execution_place::ExecutionPlace;
use crate::iteration_trace;
use crate::launcher::launch::LaunchableTarget;
use crate::run_context::{EventSender, LocalMachine, RunPermissions};
use crate::target_role::TargetRole;

/// What this machine lacks for a run as it is now, before anything is done; nothing where another error keeps that from being
/// known.
pub fn find_refusals(manifest: &Manifest, host: &LocalMachine) -> Vec<Refusal> {
    let role = TargetRole::of_host(&manifest.study);
    let checked =
        check_environment(manifest, host, &RunPermissions { apply: true, ..RunPermissions::default() }, role);
    let mut found = match checked {
        Err(ConductError::Refused(found)) => found,
        _ => Vec::new(),
    };
    let targets = resolve_targets(manifest).err();
    found.extend(targets.map(|error| Refusal { what: describe_error_chain(&error), hint: String::new() }));
    found
}

/// The targets, by the variants of the plan, under each layout of their kernels in turn; a plan that varies nothing has one. All are looked at before anything is started.
pub(crate) fn resolve_targets(manifest: &Manifest) -> Result<Vec<Vec<LaunchableTarget>>, ConductError> {
    let plan = &manifest.plan;
    let variants = plan.target_variants.iter().map(|variant| (Some(&variant.levels), &variant.targets));
    let all: Vec<_> =
        variants.chain(plan.target_variants.is_empty().then_some((None, &plan.targets))).collect();
    let rules = &manifest.study.run;
    let layouts = plan.slots.last().map_or(0, |last| plan.slot_kernel_layout(last, rules));
    let mut resolved = Vec::new();
    for (layout, (levels, targets)) in
        (0..=layouts).flat_map(|layout| all.iter().map(move |one| (layout, *one)))
    {
        let planned = targets.iter().map(|target| target.with_kernel_layout(layout));
        let targets: Vec<LaunchableTarget> = planned.map(LaunchableTarget::resolve).collect();
        check_targets(&targets, manifest.study.run.on_lost_target).map_err(|error| {
            let Some(levels) = levels else { return error };
            let levels: Vec<String> =
                levels.iter().map(|(factor, level)| format!("factor `{factor}`, level `{level}`")).collect();
            ConductError::Variant { levels: levels.join("; "), source: Box::new(error) }
        })?;
        resolved.push(targets);
    }
    Ok(resolved)
}

/// Checks what this machine needs for its part in the run; all refusals come together.
pub(crate) fn check_environment(
    manifest: &Manifest,
    host: &LocalMachine,
    permissions: &RunPermissions,
    role: TargetRole,
) -> Result<(), ConductError> {
    let mut found = check_settings(manifest, host, role);
    if role.runs_workloads() {
        found.splice(
            ..0,
            used_definitions(manifest, &host.catalogue)
                .into_iter()
                .flat_map(|definition| check_definition(definition, &host.root)),
        );
        found.extend(iteration_trace::check_profile(manifest, host));
        found.extend(iteration_trace::check_io_trace(manifest));
        found.extend(check_placements(manifest, host)?);
        found.extend(check_delays(manifest));
        found.extend(check_disks(manifest, permissions));
        found.extend(check_scratch_room(manifest, &host.catalogue));
    }
    if found.is_empty() { Ok(()) } else { Err(ConductError::Refused(found)) }
}

/// Finds the targets that cannot be launched, which end the run unless the study says that the others go on.
pub(crate) fn check_targets(
    targets: &[LaunchableTarget],
    on_lost: LostTargetPolicy,
) -> Result<(), ConductError> {
    let failed: Vec<ConductError> = targets.iter().filter_map(LaunchableTarget::problem).collect();
    if on_lost == LostTargetPolicy::Continue && failed.len() < targets.len() {
        return Ok(());
    }
    join_launch_errors(failed)
}

/// One error that says of each target why it could not be started, with where its console is kept.
pub(crate) fn join_launch_errors(mut failed: Vec<ConductError>) -> Result<(), ConductError> {
    if failed.is_empty() {
        return Ok(());
    }
    let is_target = |error: &ConductError| matches!(error, ConductError::Target { .. });
    let first = failed.remove(failed.iter().position(is_target).unwrap_or(0));
    let ConductError::Target { target, mut reason } = first else { return Err(first) };
    for other in failed {
        reason.push('\n');
        reason.push_str(&describe_error_chain(&other));
    }
    Err(ConductError::Target { target, reason })
}

/// Installs what is missing; the installers' output is part of the stream.
pub(crate) fn install_missing(
    manifest: &Manifest,
    catalogue: &Catalogue,
    stream: &EventSender,
) -> Result<(), ConductError> {
    for definition in used_definitions(manifest, catalogue) {
        if definition.check_requirements().is_err() {
            let steps = install::plan_install(definition)?;
            let name = format!("install {}", definition.name);
            let mut heard = Ok(());
            let mut say = |text: &str| {
                let what = RunEventKind::Output { slot: None, name: name.clone(), text: text.into() };
                heard = std::mem::replace(&mut heard, Ok(())).and_then(|()| stream.send(what));
            };
            install::run_install(&steps, &mut say)?;
            heard?;
        }
    }
    Ok(())
}

/// The catalogue's definitions that the plan uses, each once.
pub fn used_definitions<'a>(manifest: &Manifest, catalogue: &'a Catalogue) -> Vec<&'a WorkloadDefinition> {
    let names: BTreeSet<&str> = manifest.plan.cases.iter().map(|case| case.uses.as_str()).collect();
    names.into_iter().filter_map(|name| catalogue.get(name)).collect()
}

/// Placements that this machine cannot have, or that its kernel refuses.
fn check_placements(manifest: &Manifest, host: &LocalMachine) -> Result<Vec<Refusal>, ConductError> {
    if manifest.plan.placements.is_empty() {
        return Ok(Vec::new());
    }
    let topology = CpuTopology::read(&host.root)?;
    let refusal = |planned: &PlannedPlacement| {
        let PlannedPlacement { factor, level, placement } = planned;
        let what = |reason: String| format!("factor `{factor}`, level `{level}`: {reason}");
        let place = match ExecutionPlace::find(placement, &topology) {
            Ok(place) => place,
            Err(error) => {
                let hint =
                    "leave the level out, or name CPUs and nodes of this machine: cpus=0-3 memory=bind:0";
                return Some(Refusal { what: what(error.to_string()), hint: hint.into() });
            }
        };
        let error = place.request().err()?;
        let hint = "run outside of the container or the cpuset that forbids it, or leave the level out";
        Some(Refusal { what: what(format!("the kernel refuses it: {error}")), hint: hint.into() })
    };
    Ok(manifest.plan.placements.iter().filter_map(refusal).collect())
}

/// Whether system calls can be delayed here, where the plan delays some.
fn check_delays(manifest: &Manifest) -> Option<Refusal> {
    let planned = manifest.plan.delays.first()?;
    let reason = find_delay_refusal()?;
    let what = format!("factor `{}`: system calls cannot be delayed here: {reason}", planned.factor);
    Some(Refusal { what, hint: "run outside of the container or sandbox, or leave the factor out".into() })
}

fn check_disks(manifest: &Manifest, permissions: &RunPermissions) -> Vec<Refusal> {
    let mut found: Vec<Refusal> = Vec::new();
    for refusal in
        manifest.plan.disks.iter().flat_map(|disk| scratch_disk::check_disk(disk, permissions.apply))
    {
        if !found.contains(&refusal) {
            found.push(refusal);
        }
    }
    found
}

/// The errors of workloads end with their own remedy.
fn refusal_of_workload(error: perflab_workload::WorkloadError) -> Refusal {
    Refusal { what: error.to_string(), hint: String::new() }
}

fn check_definition(definition: &WorkloadDefinition, root: &Root) -> Vec<Refusal> {
    let machine = if definition.needs.asks_for_machine() { check_machine(definition, root) } else { Ok(()) };
    let found = [definition.check_requirements(), machine];
    found.into_iter().filter_map(Result::err).map(refusal_of_workload).collect()
}

/// Holds what a workload needs of the machine against the one below `root`.
fn check_machine(definition: &WorkloadDefinition, root: &Root) -> Result<(), WorkloadError> {
    let families = ["cpu", "memory", "numa"].map(str::to_owned);
    // A family that is not known would be a defect; nothing is held against the machine then.
    let facts = collect_facts(root, Some(&families)).unwrap_or_default();
    let config = KernelConfig::read(root);
    definition.check_machine(&facts, |option| Some(config.as_ref()?.option(option).to_owned()))
}

fn check_settings(manifest: &Manifest, host: &LocalMachine, role: TargetRole) -> Vec<Refusal> {
    let mut found: Vec<Refusal> = Vec::new();
    for planned in manifest.plan.settings.iter().filter(|one| one.is_set_on(role.side())) {
        let refusal = check_setting(&planned.setting, host);
        found.extend(refusal.filter(|refusal| !found.contains(refusal)));
    }
    found
}

/// A value of the study that has no meaning on this machine: a fact that it names is not known here.
pub(crate) fn refusal_of_value(error: &dyn std::fmt::Display) -> Refusal {
    Refusal {
        what: error.to_string(),
        hint: "the study's values are worked out on each machine: name facts that all of them have".into(),
    }
}

fn check_setting(setting: &Setting, host: &LocalMachine) -> Option<Refusal> {
    if let Setting::Preset(level) = setting {
        return find_preset_refusal(level, SettingSite { root: &host.root, disk: None });
    }
    let (name, path) = setting.needed_file()?;
    let path = host.root.path(&path.to_string_lossy());
    if !path.exists() {
        let what = format!("{name}: {} is not there", path.display());
        return Some(Refusal {
            what,
            hint: "this kernel lacks it: check the name, or leave the factor out".into(),
        });
    }
    access(&path, Access::WRITE_OK).err().map(|errno| Refusal {
        what: format!("{name}: {} cannot be written: {errno}", path.display()),
        hint: format!("run as root, or leave the factor out ({} settings need root)", FactorKind::Sysctl),
    })
}

fn check_scratch_room(manifest: &Manifest, catalogue: &Catalogue) -> Option<Refusal> {
    // A disk of the study's own has the room that the study gives it.
    if manifest.study.disk.is_some() {
        return None;
    }
    let base = manifest.plan.disks.first()?.folder.as_deref()?;
    let full = used_definitions(manifest, catalogue)
        .into_iter()
        .find_map(|definition| definition.check_disk_room(base).err())?;
    Some(Refusal { what: full.to_string(), hint: "name another place with --scratch DIR".into() })
}

#[cfg(test)]
mod tests {
    use perflab_model::PlannedTarget;
    use perflab_model::study::{TargetKind, TargetSpec};

    use super::*;

    fn guest(name: &str) -> LaunchableTarget {
        let spec = TargetSpec { kernel: Some("/no/such/kernel".into()), ..TargetSpec::new(TargetKind::Vm) };
        LaunchableTarget::resolve(PlannedTarget { name: name.into(), spec })
    }

    fn process(name: &str) -> LaunchableTarget {
        let spec = TargetSpec::new(TargetKind::Process);
        LaunchableTarget::resolve(PlannedTarget { name: name.into(), spec })
    }

    #[test]
    fn guests_that_cannot_be_launched_are_all_found_before_unless_the_others_go_on() {
        let targets = [guest("one"), process("two"), guest("three")];
        let error = check_targets(&targets, LostTargetPolicy::Stop).unwrap_err();
        let ConductError::Target { target, reason } = error else { panic!("{error}") };
        assert_eq!(target, "one");
        let reasons: Vec<&str> =
            reason.lines().map(|line| line.split("; known here: ").next().unwrap()).collect();
        insta::assert_snapshot!(reasons.join("\n"), @"
        there is no kernel `/no/such/kernel`: no file, and no recipe
        target three: there is no kernel `/no/such/kernel`: no file, and no recipe
        ");
        assert!(check_targets(&targets, LostTargetPolicy::Continue).is_ok());
        assert!(check_targets(&targets[2..], LostTargetPolicy::Continue).is_err(), "nobody is left");
    }
}
