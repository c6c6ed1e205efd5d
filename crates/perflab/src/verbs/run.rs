//! `perflab run STUDY`

use std::process::Command;
use std::sync::mpsc::channel;

use anyhow::Context as _;
use perflab_archive::RunDir;
use perflab_conduct::executions::end_abandoned;
use perflab_conduct::plan::study_warnings;
use perflab_conduct::settings::setting_problems;
use perflab_conduct::{Choices, ConductError, Host, InStep, Permissions, Stop, Target, plan};
use perflab_model::study::Source;
use perflab_model::{Manifest, Status, Study};
use perflab_workload::run::ExecutionGuard;

use crate::arguments;
use crate::consume::{Enough, Progress, Recording, feed};
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::{manifest, shipped, signals};

/// Runs a study and shows what came out.
pub fn run(context: &Context, wanted: &arguments::Run) -> anyhow::Result<Exit> {
    undo_leftovers(context);
    let manifest = prepare(context, wanted, |_| ())?;
    let stop = stop_on_interrupt()?;
    let host = host(context, context.catalogue()?)?;
    let permissions =
        Permissions { apply: wanted.apply, install: wanted.install, scratch: wanted.scratch.clone() };
    let (status, run) = carry_out(context, &*target(host, &manifest), &manifest, &permissions, &stop)?;
    super::report::after_run(context, &run, wanted.no_report)?;
    Ok(exit(context, status, &run))
}

/// This machine as the target of a run.
pub fn host(context: &Context, catalogue: perflab_workload::Catalogue) -> anyhow::Result<Host> {
    let perflab = std::env::current_exe().context("cannot find perflab's own binary")?;
    Ok(Host {
        root: context.root.clone(),
        state: perflab_observe::own_directories::state(),
        perflab,
        catalogue,
        runs_as_typed: false,
        traces: Default::default(),
    })
}

/// Processes and settings of a killed run first: they would be part of what is measured.
pub fn undo_leftovers(context: &Context) {
    let boot = perflab_observe::boot_id(&context.root);
    let ended = end_abandoned(&perflab_observe::own_directories::states(), &boot, false).ended;
    if ended > 0 {
        stderr_line!("perflab: a run was killed; ended {ended} of its processes, which were still running");
    }
    for path in super::laboratory::remove_half_made(context) {
        stderr_line!("perflab: a perflab was killed; removed {}, which it left half-made", path.display());
    }
    for found in super::laboratory::leftovers(context) {
        if !found.undone.is_empty() {
            let count = found.undone.len();
            stderr_line!(
                "perflab: run {} was killed; put back {count} of its settings: {}",
                found.run,
                found.undone.join(", ")
            );
        }
        for failed in found.failed {
            stderr_line!("warning: still not put back: {failed}");
        }
    }
}

/// The manifest of the study, as changed by the arguments and by `change`.
pub fn prepare(
    context: &Context,
    wanted: &arguments::Run,
    change: impl FnOnce(&mut Study),
) -> anyhow::Result<Manifest> {
    let source = shipped::find(&wanted.study)?;
    let mut study = source.read()?;
    say_warnings(&source, &study);
    change(&mut study);
    if let Some(iterations) = wanted.iterations {
        if iterations == 0 {
            let message = "`--iterations 0` would measure nothing";
            return Err(
                Usage::new(message, "give 1 or more, or leave it out for the study's own number").into()
            );
        }
        study.run.iterations = iterations;
        study.run.until = None;
    }
    let mut facts = perflab_observe::facts(&context.root, study.facts.as_deref())?;
    let catalogue = context.catalogue()?;
    let seed = wanted.seed.or(study.run.seed).unwrap_or_else(rand::random);
    study.run.seed = Some(seed);
    if let Some(profile) = &mut study.profile {
        profile.symbols = perflab_analyze::flame::rules::anchors();
    }
    let choices = Choices { set: choices(&wanted.set)?, only: wanted.only.clone(), seed };
    let plan = plan(&study, &catalogue, &facts, &choices).map_err(|found| source.problems(found))?;
    for name in plan.metrics.keys() {
        if let Some(version) = catalogue.get(name).and_then(perflab_workload::Definition::version) {
            facts.add(&format!("workload.{name}.version"), version.as_str(), "its version command");
        }
    }
    let study = perflab_conduct::plan::narrowed(&study, &choices).map_err(|found| source.problems(found))?;
    check_settings(context, &source, &study)?;
    Ok(manifest::manifest(&source, study, plan, facts, wanted.label.clone(), &context.root))
}

/// Says what is hardly meant, in its place.
pub fn say_warnings(source: &Source, study: &Study) {
    let warnings = source.problems(study_warnings(study));
    warnings.to_string().lines().for_each(|line| stderr_line!("warning: {line}"));
}

/// What can be known of the study's settings without changing any.
pub fn check_settings(context: &Context, source: &Source, study: &Study) -> anyhow::Result<()> {
    let facts = perflab_observe::facts(&context.root, None)?;
    let scope = perflab_conduct::plan::scope(study, &facts).unwrap_or_default();
    let found = setting_problems(study, &scope, &context.root);
    if found.is_empty() { Ok(()) } else { Err(source.problems(found).into()) }
}

/// `factor=level` pairs.
pub fn choices(texts: &[String]) -> Result<Vec<(String, String)>, Usage> {
    let pair = |text: &String| match text.split_once('=') {
        Some((factor, level)) => Ok((factor.trim().to_owned(), level.trim().to_owned())),
        None => Err(Usage::new(
            format!("`--set {text}` is not FACTOR=LEVEL"),
            "write, for example, --set pages=huge, or --set cpus=1,cpus=4 for two levels of one factor",
        )),
    };
    texts.iter().map(pair).collect()
}

/// ^C once stops cleanly; twice ends the process at once, with its settings put back.
pub fn stop_on_interrupt() -> anyhow::Result<Stop> {
    let stop = Stop::new();
    signals::note(&stop.flag())?;
    Ok(stop)
}

/// Where the study runs: in its targets where it has some, else here.
fn target(host: Host, manifest: &Manifest) -> Box<dyn Target + Sync> {
    if manifest.study.target.is_empty() { Box::new(host) } else { Box::new(InStep { host }) }
}

/// Connects the source of events to its consumers.
pub fn carry_out(
    context: &Context,
    target: &(dyn Target + Sync),
    manifest: &Manifest,
    permissions: &Permissions,
    stop: &Stop,
) -> anyhow::Result<(Status, RunDir)> {
    let archive = context.archive()?;
    archive.make_writable()?;
    let mut recording = Recording::new(archive);
    let mut progress = Progress::new(context.quiet);
    let mut enough = Enough::new(manifest, stop);
    let (sink, events) = channel();
    let guard = guard();
    let (outcome, broken) = std::thread::scope(|scope| {
        let source = scope.spawn(|| {
            let sink = sink;
            target.run(manifest, permissions, &sink, stop)
        });
        let broken = feed(&events, &mut [&mut recording, &mut progress, &mut enough], stop);
        (source.join(), broken)
    });
    drop(guard);
    let recorded = recording.finish();
    // What was cut off may have been a perflab with settings of its own.
    undo_leftovers(context);
    let status = outcome.map_err(|_| anyhow::anyhow!("the measuring thread panicked: please report this"))?;
    if let Some(error) = broken {
        return Err(error.context("the run was stopped, and its settings undone"));
    }
    let status = status?;
    if let (Status::Finished, Some(missed)) = (status, enough.missed(manifest)) {
        stderr_line!("{missed}");
    }
    let run = recorded?.ok_or(ConductError::NobodyListens)?;
    Ok((status, run))
}

/// Has what runs ended should this process be killed.
fn guard() -> Option<ExecutionGuard> {
    let command = std::env::current_exe().map(|own| {
        let mut command = Command::new(own);
        command.arg("execution-guard");
        command
    });
    let started = command.and_then(ExecutionGuard::start);
    let warn = |error| stderr_line!("warning: what runs would outlive perflab, were it killed: {error}");
    started.map_err(warn).ok()
}

fn exit(context: &Context, status: Status, run: &RunDir) -> Exit {
    match status {
        Status::Finished => Exit::Fine,
        Status::Failed => {
            context.say(format!(
                "some iterations failed: `perflab show {} --iterations` lists them",
                run.short()
            ));
            Exit::WorkloadFailed
        }
        _ => {
            context.say(format!("stopped; what was measured is kept: `perflab show {}`", run.short()));
            Exit::WorkloadFailed
        }
    }
}
