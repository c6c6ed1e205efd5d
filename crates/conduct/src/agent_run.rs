//! The working thread of an agent: one run after the other, each configured, carried out and left.
//!
//! Rows of monitors go to the host as they come, everything else when the point is reached that it belongs before.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{JoinHandle, spawn};

use perflab_disk::scratch_disk::{DiskSite, resolve_disks};
use perflab_model::study::{FactorSide, TomlSource};
use perflab_model::{
    FactDocument, Manifest, Nanos, Overhead, Problem, Refusal, RunEventKind, RunStatus, StopRequest,
};
use perflab_observe::{Sampler, SamplerOverhead};
use perflab_settings::resolve_settings;
use perflab_workload::Catalogue;

use crate::agent_worker::{AgentWorker, ReportSink, WorkerOrder, WorkerReport, wait_until_instant};
use crate::barrier::BarrierPoint;
use crate::error::ConductError;
use crate::executor::{self, SlotExecutor};
use crate::framed_reports::{FramedReportWriter, FramedReports, error_reasons};
use crate::iteration_trace;
use crate::overhead_meter::{OverheadMeter, start_monitors};
use crate::plan::{expression_scope, needs_scratch};
use crate::preflight;
use crate::protocol::{AgentOrder, AgentReport, AgentRunConfig};
use crate::run_context::{EventSender, LocalMachine, RunPermissions};
use crate::target_role::TargetRole;

/// What the working thread has to do, and how it reports.
pub(crate) struct AgentRuns<'g> {
    pub(crate) writer: FramedReportWriter,
    pub(crate) todo: Receiver<AgentOrder>,
    pub(crate) stop: StopRequest,
    /// The host is gone: no further order is carried out.
    pub(crate) gone: &'g AtomicBool,
}

impl AgentRuns<'_> {
    /// Carries out orders until there are no more.
    pub(crate) fn serve(&self, mut machine: LocalMachine) -> io::Result<()> {
        while let Ok(order) = self.todo.recv() {
            match order {
                AgentOrder::Rehearse { at } => self.rehearse_start(at)?,
                AgentOrder::Configure(config) => {
                    if let Err(refused) = self.carry_out_run(&mut machine, *config) {
                        self.writer.write_report(&AgentReport::Refused(error_reasons(&refused)))?;
                    }
                }
                // Without a run there is nothing to do, and all of it is done.
                _ => {}
            }
        }
        Ok(())
    }

    fn rehearse_start(&self, at: Nanos) -> io::Result<()> {
        match wait_until_instant(at, &self.stop.flag()) {
            Some(woken) => self.writer.write_report(&AgentReport::Woke { at: woken.at }),
            None => Ok(()),
        }
    }

    /// One run, until it is left or the host is gone. Whatever happens, everything is undone.
    fn carry_out_run(&self, machine: &mut LocalMachine, config: AgentRunConfig) -> Result<(), ConductError> {
        let sources: Vec<TomlSource> =
            config.definitions.into_iter().map(|(file, text)| TomlSource::new(file, text)).collect();
        machine.catalogue =
            Catalogue::from_sources(&sources).map_err(|error| refusal_error(error.to_string()))?;
        let mut manifest = config.manifest;
        // Expressions are about the machine that the workload runs on.
        manifest.facts = perflab_observe::collect_facts(&machine.root, manifest.study.facts.as_deref())?;
        let documents =
            perflab_observe::collect_fact_documents(&machine.root, manifest.study.facts.as_deref())?;
        manifest.boot_id = perflab_observe::read_boot_id(&machine.root);
        resolve_plan_here(&mut manifest, &machine.catalogue)
            .map_err(|problem| ConductError::Refused(vec![preflight::refusal_of_value(&problem.message)]))?;
        let (permissions, role) = (RunPermissions::default(), TargetRole::Workload);
        preflight::check_environment(&manifest, machine, &permissions, role)?;
        let (sink, events) = channel();
        let stream = EventSender::new(sink);
        let executor = SlotExecutor::new(machine, &manifest, stream, &self.stop, role)?;
        let executor = executor.with_names(config.names).prepare_run()?;
        let monitors = AgentMonitors::start(&manifest, machine, &self.writer);
        if let Some(text) = iteration_trace::outside_symbols(&manifest, machine) {
            // Whoever does not listen any more is noticed by the listening thread.
            let _ = self.writer.write_kernel_symbols(&text);
        }
        let reports = FramedReports { writer: self.writer.clone(), events };
        self.carry_out_orders(AgentWorker::new(executor, reports, None), monitors, documents)
    }

    fn carry_out_orders(
        &self,
        mut worker: AgentWorker<'_, FramedReports>,
        monitors: AgentMonitors,
        documents: Vec<FactDocument>,
    ) -> Result<(), ConductError> {
        let meter = OverheadMeter::start();
        worker.reports.send_stamped(RunEventKind::Facts(worker.executor.manifest.facts.clone()));
        for document in documents {
            worker.reports.send_stamped(RunEventKind::Document(document));
        }
        worker.report_reached(BarrierPoint::First);
        let worked = worker.carry_out_orders(|| self.next_worker_order());
        let AgentWorker { executor, reports, .. } = worker;
        let undone = executor.undo_all();
        if worked.as_ref().is_ok_and(|left| *left) {
            reports.report(WorkerReport::Reached { point: BarrierPoint::Last, good: true });
            // Any other order than to leave can only be one that was meant for before.
            while self.next_order().is_some_and(|order| order != AgentOrder::Leave) {}
        }
        let edges = undone.as_ref().map(|undone| undone.edges).unwrap_or_default();
        let cost = monitors.stop().combine(edges);
        // The run's wall clock is the host's.
        let overhead = Overhead { wall: Nanos(0), ..meter.overhead(&cost) };
        let status = undone.as_ref().map_or(RunStatus::Failed, |one| one.final_status(RunStatus::Finished));
        reports.send_stamped(RunEventKind::Ended { status, overhead });
        if worked? {
            reports.report(WorkerReport::Reached { point: BarrierPoint::End, good: true });
        }
        executor::with_undo_failures(Ok(()), undone?.left)
    }

    fn next_order(&self) -> Option<AgentOrder> {
        self.todo.recv().ok().filter(|_| !self.gone.load(Ordering::SeqCst))
    }

    /// The next order that a worker carries out; any other has no meaning where the run has got to.
    fn next_worker_order(&self) -> Option<WorkerOrder> {
        loop {
            match self.next_order()? {
                AgentOrder::Prepare { index, slot } => {
                    // What ended the last iteration does not end this one.
                    self.stop.withdraw();
                    return Some(WorkerOrder::Prepare { index, slot });
                }
                AgentOrder::Start { index, at } => return Some(WorkerOrder::Start { index, at }),
                AgentOrder::Undo => return Some(WorkerOrder::Undo),
                _ => {}
            }
        }
    }
}

/// Works out what the plan leaves to each target: the values of its settings, the size and the folder of its disk.
fn resolve_plan_here(manifest: &mut Manifest, catalogue: &Catalogue) -> Result<(), Problem> {
    let scope = expression_scope(&manifest.study, &manifest.facts)?;
    manifest.plan.settings = resolve_settings(&manifest.study, &scope, FactorSide::Guest)?;
    let (site, cases) = (DiskSite { scope: &scope, scratch: None }, &manifest.plan.cases);
    let has_scratch = needs_scratch(&manifest.study, cases, catalogue);
    let disks = resolve_disks(&manifest.study, cases, has_scratch, Some(site))?;
    manifest.plan.disks = disks;
    Ok(())
}

fn refusal_error(what: String) -> ConductError {
    ConductError::Refused(vec![Refusal { what, hint: String::new() }])
}

/// Running monitors.
struct AgentMonitors {
    sampler: Sampler,
    teller: JoinHandle<()>,
}

impl AgentMonitors {
    fn start(manifest: &Manifest, machine: &LocalMachine, writer: &FramedReportWriter) -> Self {
        let (sink, events) = channel();
        let sampler = start_monitors(manifest, machine, sink);
        let writer = writer.clone();
        // Ends with the sampler, or when nobody listens: the stream's end is noticed elsewhere.
        let tell =
            move || events.into_iter().try_for_each(|event| writer.write_event(event)).unwrap_or_default();
        AgentMonitors { sampler, teller: spawn(tell) }
    }

    /// Stops them, and waits until their last row is sent.
    fn stop(self) -> SamplerOverhead {
        let cost = self.sampler.stop();
        let _ = self.teller.join();
        cost
    }
}
