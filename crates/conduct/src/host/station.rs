//! One machine at work: its scratch directory and settings prepared, a slot made ready and carried out, everything
//! undone. The host's own session goes through all slots; an agent does one when it is told to.

use std::collections::BTreeSet;
use std::path::PathBuf;

use perflab_model::expression::ExpressionScope;
use perflab_model::study::FactorSide;
use perflab_model::{Case, Manifest, RunEventKind, Slot};
use perflab_observe::RealtimeGuard;

use super::profile::IterationProfiler;
use super::stream::EventSender;
use super::{LocalMachine, check, iteration};
use crate::executions::ExecutionRecord;
use crate::settings::{
    AppliedSettings, FactorSetting, Setting, SettingChange, UndoJournal, resolve_settings,
};
use crate::{ConductError, RunPermissions, StopRequest, disk, plan};

/// A machine that carries out the slots of a run.
pub(crate) struct SlotExecutor<'a> {
    pub(super) host: &'a LocalMachine,
    pub(super) manifest: &'a Manifest,
    pub(crate) stream: EventSender,
    pub(super) stop: &'a StopRequest,
    pub(super) scope: ExpressionScope,
    pub(super) scratch: Option<PathBuf>,
    /// Whose settings are changed here; everybody's where the study has no targets.
    side: Option<FactorSide>,
    pub(super) profiler: Option<IterationProfiler>,
    permissions: &'a RunPermissions,
    settings: AppliedSettings,
    /// Factors and levels of which it was said that the kernel rounds them.
    reported_roundings: BTreeSet<(String, String)>,
    /// None where it cannot be written: then only the guard ends what a killed perflab was running.
    _executions: Option<ExecutionRecord>,
}

impl<'a> SlotExecutor<'a> {
    /// A machine on which nothing is changed yet.
    pub(crate) fn new(
        host: &'a LocalMachine,
        manifest: &'a Manifest,
        permissions: &'a RunPermissions,
        stream: EventSender,
        stop: &'a StopRequest,
        side: Option<FactorSide>,
    ) -> Self {
        let journal = UndoJournal::new(&host.state, &manifest.id, &manifest.boot_id);
        let bench = AppliedSettings::new(journal).with_stop_flag(stop.flag());
        let scope = plan::expression_scope(&manifest.study, &manifest.facts).unwrap_or_default();
        SlotExecutor {
            host,
            manifest,
            stream,
            stop,
            scope,
            scratch: None,
            side,
            profiler: None,
            permissions,
            settings: bench,
            reported_roundings: BTreeSet::new(),
            _executions: ExecutionRecord::write(&host.state, &manifest.boot_id).ok(),
        }
    }

    /// Makes the scratch directory that the workloads need. What was begun is undone where it fails.
    pub(crate) fn prepare_run(mut self) -> Result<Self, ConductError> {
        let profiler = IterationProfiler::for_study(self.manifest)?;
        match self.make_scratch() {
            Ok(scratch) => Ok(SlotExecutor { scratch, profiler, ..self }),
            Err(error) => {
                self.settings.undo_all();
                Err(error)
            }
        }
    }

    fn make_scratch(&mut self) -> Result<Option<PathBuf>, ConductError> {
        let manifest = self.manifest;
        let needs = check::used_definitions(manifest, &self.host.catalogue);
        let wanted = needs.iter().any(|definition| definition.needs.scratch);
        let disk = manifest.study.disk.as_ref();
        self.warn_emulated()?;
        if disk::disk_varies(&manifest.study) {
            return Ok(None); // each iteration makes its own
        }
        let journal = self.settings.journal();
        (wanted || disk.is_some())
            .then(|| {
                disk::prepare_scratch_disk(
                    disk,
                    &manifest.id,
                    &self.scope,
                    self.permissions,
                    &self.host.perflab,
                    journal,
                )
            })
            .transpose()
    }

    /// Figures of a disk that is not there are never shown as those of one that is.
    fn warn_emulated(&self) -> Result<(), ConductError> {
        let models = disk::emulated_models(&self.manifest.study, &self.manifest.plan.cases);
        models.into_iter().try_for_each(|model| {
            self.stream.send_warning(
                format!(
                    "the disk {} is emulated: an image, served with the delays of its data sheet",
                    model.name()
                ),
                "figures say what such a disk would do, not what one of this machine's does",
            )
        })
    }

    /// Brings the settings to what the case wants, and drops caches where it wants that.
    pub(crate) fn prepare_slot(&mut self, case: &Case) -> Result<(), ConductError> {
        for what in self.apply_settings(case)? {
            self.stream.send(what)?;
        }
        for wanted in &self.case_settings(case) {
            if let Setting::DropCaches(which) = &wanted.setting {
                crate::settings::drop_caches(&self.host.root, *which)?;
            }
        }
        Ok(())
    }

    /// Brings the settings to what the case wants; gives what there is to tell of it.
    pub(crate) fn apply_settings(&mut self, case: &Case) -> Result<Vec<RunEventKind>, ConductError> {
        let mut told = Vec::new();
        for FactorSetting { factor, level, setting: knob } in self.case_settings(case) {
            let changes = self.settings.apply(std::slice::from_ref(&knob));
            let changes = changes.map_err(|error| ConductError::Level {
                factor: factor.clone(),
                level: level.clone(),
                source: Box::new(error),
            })?;
            for change in changes {
                told.extend(self.rounding_warning(&factor, &level, &change));
                let SettingChange { setting, from, to, asked } = change;
                told.push(RunEventKind::SettingApplied { setting, from, to, asked });
            }
        }
        Ok(told)
    }

    /// Said once for each level: what is compared is not what the study says.
    fn rounding_warning(
        &mut self,
        factor: &str,
        level: &str,
        change: &SettingChange,
    ) -> Option<RunEventKind> {
        let asked = change.asked.as_ref()?;
        self.reported_roundings.insert((factor.into(), level.into())).then(|| RunEventKind::Warning {
            message: format!(
                "factor `{factor}`, level `{level}`: the kernel made `{}` of `{asked}` in {}",
                change.to, change.setting
            ),
            advice: "give the value that is in force, or take it as another level's name".into(),
        })
    }

    /// Where a tracer writes what it saw of an iteration, until the recorder takes it.
    pub(super) fn tracer_path(&self, index: u32, tracer: &str) -> Result<PathBuf, ConductError> {
        let folder = self.host.traces.path(&self.host.state, &self.manifest.boot_id)?;
        Ok(folder.join(format!("{index}.{tracer}")))
    }

    fn case_settings(&self, case: &Case) -> Vec<FactorSetting> {
        let wanted = resolve_settings(&self.manifest.study, case, &self.scope, &self.host.root, self.side);
        wanted.unwrap_or_default()
    }

    /// Carries out the slot's iteration; `begin` returns when its process is to be started. `false` where it failed.
    pub(crate) fn carry_out(
        &mut self,
        index: u32,
        slot: &Slot,
        case: &Case,
        begin: &dyn Fn() -> Option<RealtimeGuard>,
    ) -> Result<bool, ConductError> {
        if !disk::disk_varies(&self.manifest.study) {
            return iteration::run_iteration(self, index, slot, case, begin);
        }
        let mark = self.settings.journal().next_number();
        self.scratch = Some(self.make_fresh_disk(case)?);
        let good = iteration::run_iteration(self, index, slot, case, begin);
        self.settings.journal().undo_since(mark)?;
        good
    }

    /// The case's own disk, made for one iteration.
    fn make_fresh_disk(&mut self, case: &Case) -> Result<PathBuf, ConductError> {
        let disk = disk::resolve_disk(&self.manifest.study, case);
        let id = &self.manifest.id;
        let perflab = &self.host.perflab;
        disk::prepare_scratch_disk(
            disk.as_ref(),
            id,
            &self.scope,
            self.permissions,
            perflab,
            self.settings.journal(),
        )
    }

    /// Undoes everything where there is no run to tell it to. What fails stays in the journal for the next start.
    pub(crate) fn undo_quietly(self) {
        let _ = self.settings.undo_all();
    }

    /// Undoes everything; gives what is not back. Done even if nobody listens; an error says that nobody does.
    pub(crate) fn undo_all(self) -> Result<Vec<String>, ConductError> {
        let (undone, failed) = self.settings.undo_all();
        for setting in undone {
            self.stream.send(RunEventKind::SettingUndone { setting, to: "as before".into() })?;
        }
        let failed: Vec<String> = failed.iter().map(ConductError::with_causes).collect();
        for error in &failed {
            self.stream.send_warning(
                format!("a setting could not be undone: {error}"),
                "perflab tries again at its next start",
            )?;
        }
        Ok(failed)
    }
}

/// What a run ended with, given what is not back after it.
pub(crate) fn with_undo_failures<T>(
    outcome: Result<T, ConductError>,
    mut left: Vec<String>,
) -> Result<T, ConductError> {
    if left.is_empty() {
        return outcome;
    }
    left.extend(outcome.err().map(|error| format!("the run ended with: {}", error.with_causes())));
    Err(ConductError::LeftChanged(left))
}
