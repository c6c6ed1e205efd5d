//! What a study may set where its targets are containers, which share this host's kernel.
//!
//! What is the kernel's is set on this host, whose journal no workload of a container can reach, and which knows what other runs hold.
//! In a container is set what it has of its own, and what ends with it.

use std::path::{Path, PathBuf};

use perflab_model::study::{FactorKind, FactorSide, Study, TargetKind};
use perflab_model::{PlannedSetting, PresetLevel, Problem, Setting, SettingMechanism, normalize_path};
use perflab_observe::Root;

use crate::namespaced_sysctls::is_namespaced_file;
use crate::setting_place::{setting_key, written_paths};

/// Settings on the wrong side of a study with containers, and disks that would stay behind one that is killed.
pub(crate) fn container_problems(study: &Study, settings: &[PlannedSetting], root: &Root) -> Vec<Problem> {
    if study.target.values().all(|target| target.kind != TargetKind::Container) {
        return Vec::new();
    }
    let mut found: Vec<Problem> = Vec::new();
    for planned in settings {
        let problem = match planned.on.unwrap_or(FactorSide::Host) {
            FactorSide::Host => host_side_problem(planned, root),
            FactorSide::Guest => container_side_problem(planned, root),
        };
        let key = setting_key(study, planned);
        let problem = problem.map(|(message, hint)| Problem::new(key, message).with_hint(hint));
        found.extend(problem.filter(|problem| !found.iter().any(|known| known.key == problem.key)));
    }
    let is_model = |name: &String, key: Option<&str>| key.unwrap_or(name) == "model";
    let varied = study.factor.iter().filter(|(_, factor)| factor.kind == FactorKind::Disk);
    let varied = varied.filter(|(name, factor)| is_model(name, factor.key.as_deref()));
    let models = varied.map(|(name, _)| format!("factor.{name}"));
    let fixed = study.disk.as_ref().and_then(|disk| disk.model.as_ref()).map(|_| "disk.model".to_owned());
    found.extend(models.chain(fixed).map(|key| {
        let hint = "leave the model out, or use guests: `kind = \"vm\"`";
        Problem::new(key, "an emulated disk would stay behind a container that is killed").with_hint(hint)
    }));
    found
}

/// Whether all files that it writes are of a namespace that a container has of its own; none where it writes none.
fn writes_namespaced_files(setting: &Setting, root: &Root) -> Option<bool> {
    let paths = written_paths(setting, root);
    let is_namespaced = |path: &PathBuf| {
        let below = path.strip_prefix(&root.0).unwrap_or(path);
        is_namespaced_file(&normalize_path(&Path::new("/").join(below)))
    };
    (!paths.is_empty()).then(|| paths.iter().all(is_namespaced))
}

fn host_side_problem(planned: &PlannedSetting, root: &Root) -> Option<(&'static str, &'static str)> {
    if writes_namespaced_files(&planned.setting, root) == Some(true) {
        return Some((
            "it belongs to a namespace, and a container has one of its own",
            "add `on = \"guest\"`: it is set in the container then",
        ));
    }
    match &planned.setting {
        Setting::Preset(level) if level.mechanism == Some(SettingMechanism::ControlGroup) => Some((
            "it limits what is executed on this host, and the workload is executed in a container",
            "add `on = \"guest\"`",
        )),
        _ => None,
    }
}

fn container_side_problem(planned: &PlannedSetting, root: &Root) -> Option<(&'static str, &'static str)> {
    let lasts = |level: &PresetLevel| level.mechanism.is_none_or(SettingMechanism::lasts);
    let is_own = match &planned.setting {
        Setting::Commands { .. } | Setting::DropCaches(_) => true,
        Setting::Preset(level) if !lasts(level) => true,
        setting => writes_namespaced_files(setting, root) == Some(true),
    };
    (!is_own).then_some((
        "a container has this host's kernel, and this setting with it",
        "leave `on` out: it is set on this host, for all containers, and put back whoever is killed",
    ))
}
