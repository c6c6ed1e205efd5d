//! What the environment lacks for a plan, found before anything is changed.

use std::collections::BTreeSet;

use perflab_model::study::{FactorKind, Side};
use perflab_model::{Case, Manifest, What};
use perflab_workload::{Catalogue, Definition, install};
use rustix::fs::{Access, access};

use super::Host;
use super::stream::Stream;
use super::{io, profile};
use crate::settings::{Knob, knobs};
use crate::{ConductError, Permissions, Refusal, disk, plan};

/// Checks everything; all refusals come together. On a `side` of a study with targets, the settings of that side, and
/// what the workloads need where the workloads run.
pub(crate) fn all(
    manifest: &Manifest,
    host: &Host,
    permissions: &Permissions,
    side: Option<Side>,
) -> Result<(), ConductError> {
    let mut found = settings(manifest, host, side);
    if side != Some(Side::Host) {
        found.splice(..0, definitions(manifest, &host.catalogue).into_iter().filter_map(not_ready));
        found.extend(profile::refusal(manifest, host));
        found.extend(io::refusal(manifest));
        found.extend(disks(manifest, permissions));
        found.extend(scratch_room(manifest, &host.catalogue, permissions));
    }
    if found.is_empty() { Ok(()) } else { Err(ConductError::Refused(found)) }
}

/// Installs what is missing; the installers' words are part of the stream.
pub(super) fn install(
    manifest: &Manifest,
    catalogue: &Catalogue,
    stream: &Stream,
) -> Result<(), ConductError> {
    for definition in definitions(manifest, catalogue) {
        if definition.ready().is_err() {
            let steps = install::plan(definition)?;
            let name = format!("install {}", definition.name);
            let mut heard = Ok(());
            let mut say = |text: &str| {
                let what = What::Output { slot: None, name: name.clone(), text: text.into() };
                heard = std::mem::replace(&mut heard, Ok(())).and_then(|()| stream.send(what));
            };
            install::apply(&steps, &mut say)?;
            heard?;
        }
    }
    Ok(())
}

/// The catalogue's definitions that the plan uses, each once.
pub(super) fn definitions<'a>(manifest: &Manifest, catalogue: &'a Catalogue) -> Vec<&'a Definition> {
    let names: BTreeSet<&str> = manifest.plan.cases.iter().map(|case| case.uses.as_str()).collect();
    names.into_iter().filter_map(|name| catalogue.get(name)).collect()
}

fn disks(manifest: &Manifest, permissions: &Permissions) -> Vec<Refusal> {
    let wanted = manifest.plan.cases.iter().map(|case| disk::wanted(&manifest.study, case));
    let mut found: Vec<Refusal> = Vec::new();
    for refusal in wanted.flat_map(|disk| disk::refusals(disk.as_ref(), permissions)) {
        if !found.contains(&refusal) {
            found.push(refusal);
        }
    }
    found
}

fn not_ready(definition: &Definition) -> Option<Refusal> {
    definition.ready().err().map(Refusal::from)
}

fn settings(manifest: &Manifest, host: &Host, side: Option<Side>) -> Vec<Refusal> {
    let Ok(scope) = plan::scope(&manifest.study, &manifest.facts) else { return Vec::new() };
    let wanted = |case: &Case| knobs(&manifest.study, case, &scope, &host.root, side).unwrap_or_default();
    let all = manifest.plan.cases.iter().flat_map(wanted);
    let mut found: Vec<Refusal> = Vec::new();
    for refusal in all.filter_map(|knob| refused(&knob.knob, host)) {
        if !found.contains(&refusal) {
            found.push(refusal);
        }
    }
    found
}

fn refused(knob: &Knob, host: &Host) -> Option<Refusal> {
    let (name, path) = match knob {
        Knob::File { name, path, .. } => (name.as_str(), path.clone()),
        Knob::DropCaches(_) => ("dropping caches", host.root.path("/proc/sys/vm/drop_caches")),
        Knob::Commands { .. } => return None,
    };
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

fn scratch_room(manifest: &Manifest, catalogue: &Catalogue, permissions: &Permissions) -> Option<Refusal> {
    // A disk of the study's own has the room that the study gives it.
    if manifest.study.disk.is_some() {
        return None;
    }
    let base = permissions.scratch.clone().unwrap_or_else(std::env::temp_dir);
    let full =
        definitions(manifest, catalogue).into_iter().find_map(|definition| definition.room(&base).err())?;
    Some(Refusal { what: full.to_string(), hint: "name another place with --scratch DIR".into() })
}
