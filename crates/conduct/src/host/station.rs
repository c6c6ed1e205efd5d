//! One machine at work: its scratch directory and settings prepared, a slot made ready and carried out, everything
//! undone. The host's own session goes through all slots; an agent does one when it is told to.

use std::collections::BTreeSet;
use std::path::PathBuf;

use perflab_model::expression::Scope;
use perflab_model::study::Side;
use perflab_model::{Case, Manifest, Slot, What};
use perflab_observe::RealTime;

use super::profile::Profiler;
use super::stream::Stream;
use super::{Host, check, iteration};
use crate::executions::ExecutionRecord;
use crate::settings::{Bench, Change, FactorKnob, Knob, UndoJournal, knobs};
use crate::{ConductError, Permissions, Stop, disk, plan};

/// A machine that carries out the slots of a run.
pub(crate) struct Station<'a> {
    pub(super) host: &'a Host,
    pub(super) manifest: &'a Manifest,
    pub(crate) stream: Stream,
    pub(super) stop: &'a Stop,
    pub(super) scope: Scope,
    pub(super) scratch: Option<PathBuf>,
    /// Whose settings are changed here; everybody's where the study has no targets.
    side: Option<Side>,
    pub(super) profiler: Option<Profiler>,
    permissions: &'a Permissions,
    bench: Bench,
    /// Factors and levels of which it was said that the kernel rounds them.
    told_rounded: BTreeSet<(String, String)>,
    /// None where it cannot be written: then only the guard ends what a killed perflab was running.
    _executions: Option<ExecutionRecord>,
}

impl<'a> Station<'a> {
    /// A machine on which nothing is changed yet.
    pub(crate) fn new(
        host: &'a Host,
        manifest: &'a Manifest,
        permissions: &'a Permissions,
        stream: Stream,
        stop: &'a Stop,
        side: Option<Side>,
    ) -> Self {
        let journal = UndoJournal::new(&host.state, &manifest.id, &manifest.boot_id);
        let bench = Bench::new(journal).ended_by(stop.flag());
        let scope = plan::scope(&manifest.study, &manifest.facts).unwrap_or_default();
        Station {
            host,
            manifest,
            stream,
            stop,
            scope,
            scratch: None,
            side,
            profiler: None,
            permissions,
            bench,
            told_rounded: BTreeSet::new(),
            _executions: ExecutionRecord::write(&host.state, &manifest.boot_id).ok(),
        }
    }

    /// Makes the scratch directory that the workloads need. What was begun is undone where it fails.
    pub(crate) fn prepare(mut self) -> Result<Self, ConductError> {
        let profiler = Profiler::wanted(self.manifest)?;
        match self.make_scratch() {
            Ok(scratch) => Ok(Station { scratch, profiler, ..self }),
            Err(error) => {
                self.bench.undo();
                Err(error)
            }
        }
    }

    fn make_scratch(&mut self) -> Result<Option<PathBuf>, ConductError> {
        let manifest = self.manifest;
        let needs = check::definitions(manifest, &self.host.catalogue);
        let wanted = needs.iter().any(|definition| definition.needs.scratch);
        let disk = manifest.study.disk.as_ref();
        self.say_emulated()?;
        if disk::varies(&manifest.study) {
            return Ok(None); // each iteration makes its own
        }
        let journal = self.bench.journal();
        (wanted || disk.is_some())
            .then(|| {
                disk::prepare(disk, &manifest.id, &self.scope, self.permissions, &self.host.perflab, journal)
            })
            .transpose()
    }

    /// Figures of a disk that is not there are never shown as those of one that is.
    fn say_emulated(&self) -> Result<(), ConductError> {
        let models = disk::emulated(&self.manifest.study, &self.manifest.plan.cases);
        models.into_iter().try_for_each(|model| {
            self.stream.warn(
                format!(
                    "the disk {} is emulated: an image, served with the delays of its data sheet",
                    model.name()
                ),
                "figures say what such a disk would do, not what one of this machine's does",
            )
        })
    }

    /// Brings the settings to what the case wants, and drops caches where it wants that.
    pub(crate) fn ready(&mut self, case: &Case) -> Result<(), ConductError> {
        for what in self.settle(case)? {
            self.stream.send(what)?;
        }
        for wanted in &self.wanted(case) {
            if let Knob::DropCaches(which) = &wanted.knob {
                crate::settings::drop_caches(&self.host.root, *which)?;
            }
        }
        Ok(())
    }

    /// Brings the settings to what the case wants; gives what there is to tell of it.
    pub(crate) fn settle(&mut self, case: &Case) -> Result<Vec<What>, ConductError> {
        let mut told = Vec::new();
        for FactorKnob { factor, level, knob } in self.wanted(case) {
            let changes = self.bench.set(std::slice::from_ref(&knob));
            let changes = changes.map_err(|error| ConductError::Level {
                factor: factor.clone(),
                level: level.clone(),
                source: Box::new(error),
            })?;
            for change in changes {
                told.extend(self.rounded(&factor, &level, &change));
                let Change { setting, from, to, asked } = change;
                told.push(What::SettingApplied { setting, from, to, asked });
            }
        }
        Ok(told)
    }

    /// Said once for each level: what is compared is not what the study says.
    fn rounded(&mut self, factor: &str, level: &str, change: &Change) -> Option<What> {
        let asked = change.asked.as_ref()?;
        self.told_rounded.insert((factor.into(), level.into())).then(|| What::Warning {
            message: format!(
                "factor `{factor}`, level `{level}`: the kernel made `{}` of `{asked}` in {}",
                change.to, change.setting
            ),
            advice: "give the value that is in force, or take it as another level's name".into(),
        })
    }

    /// Where a tracer writes what it saw of an iteration, until the recorder takes it.
    pub(super) fn scratch(&self, index: u32, tracer: &str) -> Result<PathBuf, ConductError> {
        let folder = self.host.traces.path(&self.host.state, &self.manifest.boot_id)?;
        Ok(folder.join(format!("{index}.{tracer}")))
    }

    fn wanted(&self, case: &Case) -> Vec<FactorKnob> {
        let wanted = knobs(&self.manifest.study, case, &self.scope, &self.host.root, self.side);
        wanted.unwrap_or_default()
    }

    /// Carries out the slot's iteration; `begin` returns when its process is to be started. `false` where it failed.
    pub(crate) fn work(
        &mut self,
        index: u32,
        slot: &Slot,
        case: &Case,
        begin: &dyn Fn() -> Option<RealTime>,
    ) -> Result<bool, ConductError> {
        if !disk::varies(&self.manifest.study) {
            return iteration::run(self, index, slot, case, begin);
        }
        let mark = self.bench.journal().mark();
        self.scratch = Some(self.fresh_disk(case)?);
        let good = iteration::run(self, index, slot, case, begin);
        self.bench.journal().undo_since(mark)?;
        good
    }

    /// The case's own disk, made for one iteration.
    fn fresh_disk(&mut self, case: &Case) -> Result<PathBuf, ConductError> {
        let disk = disk::wanted(&self.manifest.study, case);
        let id = &self.manifest.id;
        let perflab = &self.host.perflab;
        disk::prepare(disk.as_ref(), id, &self.scope, self.permissions, perflab, self.bench.journal())
    }

    /// Undoes everything where there is no run to tell it to. What fails stays in the journal for the next start.
    pub(crate) fn abandon(self) {
        let _ = self.bench.undo();
    }

    /// Undoes everything; gives what is not back. Done even if nobody listens; an error says that nobody does.
    pub(crate) fn undo(self) -> Result<Vec<String>, ConductError> {
        let (undone, failed) = self.bench.undo();
        for setting in undone {
            self.stream.send(What::SettingUndone { setting, to: "as before".into() })?;
        }
        let failed: Vec<String> = failed.iter().map(ConductError::with_causes).collect();
        for error in &failed {
            self.stream.warn(
                format!("a setting could not be undone: {error}"),
                "perflab tries again at its next start",
            )?;
        }
        Ok(failed)
    }
}

/// What a run ended with, given what is not back after it.
pub(crate) fn ended<T>(outcome: Result<T, ConductError>, mut left: Vec<String>) -> Result<T, ConductError> {
    if left.is_empty() {
        return outcome;
    }
    left.extend(outcome.err().map(|error| format!("the run ended with: {}", error.with_causes())));
    Err(ConductError::LeftChanged(left))
}
