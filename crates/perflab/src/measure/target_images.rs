//! Kernels and roots of a study's targets, which are got before it runs.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use perflab_conduct::LocalMachine;
use perflab_guest::{
    DistributionRoot, DistributionRootError, KernelError, KernelRequest, RootProgress, describe_root_packages,
};
use perflab_model::quantity::format_quantity;
use perflab_model::study::TargetKind;
use perflab_model::{Facts, Manifest, Nanos, PlannedTarget, RunPlan, StopRequest, fact_table};

use crate::app::App;
use crate::failure::Failure;
use crate::laboratory::kernel::get_kernel;

/// Whether a target has a kernel or a root that perflab gets.
pub fn wants_images(manifest: &Manifest) -> bool {
    plan_targets(&manifest.plan).any(|target| kernel_name(target).is_some() || root_text(target).is_some())
}

/// What a guest is to boot, where it is no file.
fn kernel_name(target: &PlannedTarget) -> Option<&str> {
    let name = target.spec.kernel.as_deref().filter(|_| target.spec.kind == TargetKind::Vm)?;
    let is_file = Path::new(name).is_file() && !name.ends_with(".toml");
    (!is_file).then_some(name)
}

/// What the root of a target is to be, where that is a release.
fn root_text(target: &PlannedTarget) -> Option<&str> {
    let takes_one = matches!(target.spec.kind, TargetKind::Vm | TargetKind::Container);
    target.spec.root.as_deref().filter(|text| takes_one && DistributionRoot::parse(text).is_some())
}

/// Fetches and builds the kernels of targets, and makes their roots, as far as they are not here, once it is said how long that and the study
/// take.
pub fn get_missing_images(
    context: &App,
    machine: &LocalMachine,
    manifest: &Manifest,
    stop: &StopRequest,
) -> Result<(), Failure> {
    let (kernels, roots) = (missing_kernels(manifest)?, missing_roots(manifest)?);
    let names: Vec<String> = kernels
        .iter()
        .map(|request| match request.build_time() {
            Some(time) => format!("{} ({})", request.text, format_quantity(time.as_secs_f64(), "s")),
            None => request.text.clone(),
        })
        .collect();
    if !names.is_empty() {
        context.note(format!("kernels to get first, once: {}", names.join(", ")));
    }
    if !roots.is_empty() {
        let names: Vec<&str> = roots.iter().map(|root| root.text.as_str()).collect();
        context.note(format!("roots to make first, once, in a minute or two each: {}", names.join(", ")));
    }
    if let Some(takes) = manifest.study.takes.as_ref().filter(|_| !kernels.is_empty() || !roots.is_empty()) {
        context.note(format!("the study itself: {takes}"));
    }
    kernels.iter().try_for_each(|request| get_kernel(context, request).map(drop))?;
    Ok(roots.iter().try_for_each(|root| make_root(context, root, &machine.perflab, stop))?)
}

/// All targets that the plan has anywhere.
fn plan_targets(plan: &RunPlan) -> impl Iterator<Item = &PlannedTarget> {
    plan.targets.iter().chain(plan.target_variants.iter().flat_map(|variant| &variant.targets))
}

/// Roots of releases that are not here.
fn missing_roots(manifest: &Manifest) -> Result<Vec<DistributionRoot>, DistributionRootError> {
    let mut missing: Vec<DistributionRoot> = Vec::new();
    for text in plan_targets(&manifest.plan).filter_map(root_text) {
        let Some(root) = DistributionRoot::parse(text).transpose()? else { continue };
        if root.find().is_none() && !missing.iter().any(|known| known.is_same(&root)) {
            missing.push(root);
        }
    }
    Ok(missing)
}

/// Kernels that are not here.
fn missing_kernels(manifest: &Manifest) -> Result<Vec<KernelRequest>, KernelError> {
    let plan = &manifest.plan;
    let mut missing: Vec<KernelRequest> = Vec::new();
    let layouts = plan.slots.last().map_or(0, |last| plan.slot_kernel_layout(last, &manifest.study.run));
    let targets: Vec<&PlannedTarget> = plan_targets(&manifest.plan).collect();
    for target in
        (0..=layouts).flat_map(|layout| targets.iter().map(move |one| one.with_kernel_layout(layout)))
    {
        let Some(name) = kernel_name(&target) else { continue };
        if missing.iter().any(|known| known.text == name) {
            continue;
        }
        let request = KernelRequest::parse(name)?;
        if request.cached_image(&mut |_| ())?.is_none() {
            missing.push(request);
        }
    }
    Ok(missing)
}

/// The packages of the roots that are here, which make a root what it is: of the same name, another machine may have others.
pub fn add_root_facts(facts: &mut Facts, plan: &RunPlan) {
    for text in plan_targets(plan).filter_map(|target| target.spec.root.as_deref()) {
        let made = DistributionRoot::parse(text).map(|made| made.ok().and_then(|made| made.find()));
        let Some(folder) = made.unwrap_or_else(|| Some(text.into())) else { continue };
        if let Some(packages) = describe_root_packages(&folder) {
            facts.add(
                fact_table::ROOT_PACKAGES.key(text),
                packages.as_str(),
                "var/lib/dpkg/status of the root",
            );
        }
    }
}

/// What debootstrap does, in its order; each word begins many of its lines.
const STAGES: [&str; 4] = ["Retrieving", "Extracting", "Unpacking", "Configuring"];

/// Makes a root, with what debootstrap is at beside a spinner; where nobody sees one, its stages are told.
fn make_root(
    context: &App,
    root: &DistributionRoot,
    perflab: &Path,
    stop: &StopRequest,
) -> Result<(), DistributionRootError> {
    let is_shown = std::io::stderr().is_terminal() && !context.quiet;
    let target = if is_shown { ProgressDrawTarget::stderr_with_hz(4) } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(None, target);
    let style = ProgressStyle::with_template("{spinner:.dim} {prefix}  {elapsed} so far  {wide_msg:.dim}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.set_prefix(root.text.clone());
    let begun = Instant::now();
    let mut stage = "";
    let made = root.make(perflab, stop, &mut |progress| match progress {
        RootProgress::Waiting(line) => bar.suspend(|| context.note_line(&format!("{}: {line}", root.text))),
        RootProgress::Line(line) => {
            bar.set_message(line.to_owned());
            bar.tick();
            let begun = STAGES.iter().find(|word| line.starts_with(**word)).filter(|word| **word != stage);
            if let Some(word) = begun.filter(|_| !is_shown) {
                stage = word;
                context.note_line(&format!("{}: {}", root.text, word.to_lowercase()));
            }
        }
    });
    bar.finish_and_clear();
    let made = made?;
    let (time, place) = (Nanos::from(begun.elapsed()), made.path.display());
    context.note(match made.is_new {
        true => format!("{}: made in {time}, in {place}", root.text),
        false => format!("{}: made by another process meanwhile, in {place}", root.text),
    });
    Ok(())
}
