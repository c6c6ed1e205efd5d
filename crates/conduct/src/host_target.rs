//! This host as a target inside this process: a worker on a thread of its own, reached over a channel.
//!
//! It is the worker that an agent has, and differs in what lies between: orders and reports are values, an eventfd
//! wakes whoever waits for them, and an error keeps its class. What happens goes to the run's stream at once, as it
//! needs no check. It is the thread that starts the workload, as perf events and tracers demand of the one that
//! begins them; a request to stop the run is the worker's own.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use perflab_model::RunEventKind;
use rustix::event::{EventfdFlags, eventfd};

use crate::agent_worker::{AgentWorker, ReportSink, WorkerOrder, WorkerReport};
use crate::barrier::BarrierPoint;
use crate::error::ConductError;
use crate::executor::{SlotExecutor, UndoneRun};
use crate::run_context::RunContext;
use crate::target_role::TargetRole;

/// What undoing gives.
type UndoOutcome = Result<UndoneRun, ConductError>;

/// This host. Dropped before it was ordered to undo, it undoes everything and reports nothing.
pub(crate) struct HostTarget<'scope> {
    orders: Sender<WorkerOrder>,
    reports: Receiver<WorkerReport>,
    wake: Arc<OwnedFd>,
    /// Whether an order is being carried out.
    is_busy: bool,
    worker: Option<ScopedJoinHandle<'scope, UndoOutcome>>,
}

impl<'scope> HostTarget<'scope> {
    /// Starts it, and waits until it is prepared.
    ///
    /// # Errors
    /// It cannot be prepared; what was begun is undone.
    pub(crate) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        run: RunContext<'env>,
        role: TargetRole,
    ) -> Result<Self, ConductError> {
        let failed = |source: io::Error| ConductError::Speak { source };
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let wake = Arc::new(wake.map_err(|errno| failed(errno.into()))?);
        let ((orders, todo), (sender, reports)) = (channel(), channel());
        let sink = HostReports { sender, wake: Arc::clone(&wake) };
        let worker = Builder::new().name("workloads".into());
        let worker =
            worker.spawn_scoped(scope, move || run_worker(&run, role, sink, &todo)).map_err(failed)?;
        let mut host = HostTarget { orders, reports, wake, is_busy: true, worker: Some(worker) };
        host.await_idle().map(|()| host)
    }

    /// Becomes readable with every report.
    pub(crate) fn waker(&self) -> io::Result<OwnedFd> {
        self.wake.try_clone()
    }

    /// Has it carry out an order, of which a report will come.
    pub(crate) fn send(&mut self, order: WorkerOrder) {
        self.is_busy = true;
        // One that is gone has panicked: the wait for its report finds out.
        let _ = self.orders.send(order);
    }

    /// A report that has come.
    pub(crate) fn next_report(&mut self) -> Option<WorkerReport> {
        match self.reports.try_recv() {
            Ok(report) => {
                self.is_busy = false;
                Some(report)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => self.resume_panic(),
        }
    }

    /// Waits until no order is being carried out.
    ///
    /// # Errors
    /// The last order could not be carried out.
    pub(crate) fn await_idle(&mut self) -> Result<(), ConductError> {
        match self.await_report() {
            Some(WorkerReport::Failed(error)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Brings the settings to what a case wants; gives the changes.
    pub(crate) fn settle(&mut self, case: u32) -> Result<Vec<RunEventKind>, ConductError> {
        self.send(WorkerOrder::Settle { case });
        match self.await_report() {
            Some(WorkerReport::Failed(error)) => Err(error),
            Some(WorkerReport::Changed(changes)) => Ok(changes),
            _ => Ok(Vec::new()),
        }
    }

    /// Undoes every setting; gives what could not be put back.
    pub(crate) fn undo_all(mut self) -> UndoOutcome {
        self.send(WorkerOrder::Undo);
        self.join()
    }

    fn await_report(&mut self) -> Option<WorkerReport> {
        if !self.is_busy {
            return None;
        }
        self.is_busy = false;
        self.reports.recv().ok().or_else(|| self.resume_panic())
    }

    /// The worker ended although it was not ordered to: it panicked, and so does the run.
    fn resume_panic(&mut self) -> Option<WorkerReport> {
        let _ = self.join();
        None
    }

    fn join(&mut self) -> UndoOutcome {
        let joined = self.worker.take().map(ScopedJoinHandle::join);
        joined.map_or_else(
            || Ok(UndoneRun::default()),
            |joined| joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        )
    }
}

/// Reports to the thread that conducts.
struct HostReports {
    sender: Sender<WorkerReport>,
    wake: Arc<OwnedFd>,
}

impl ReportSink for HostReports {
    fn report(&self, report: WorkerReport) {
        // Nobody waits once the run is given up: the end of the orders ends the worker.
        let _ = self.sender.send(report);
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
    }
}

/// The worker's whole life.
fn run_worker(
    run: &RunContext<'_>,
    role: TargetRole,
    reports: HostReports,
    todo: &Receiver<WorkerOrder>,
) -> UndoOutcome {
    let (machine, manifest, stream) = (run.machine, run.manifest, run.stream.clone());
    let executor = SlotExecutor::new(machine, manifest, stream, run.stop, role);
    let prepared = executor.and_then(SlotExecutor::with_hooks);
    let prepared = prepared.and_then(|executor| match role.runs_workloads() {
        true => executor.prepare_run(),
        false => executor.open_counters().map(|()| executor),
    });
    let mut executor = match prepared {
        Ok(executor) => executor,
        Err(error) => {
            reports.report(WorkerReport::Failed(error));
            return Ok(UndoneRun::default());
        }
    };
    let duet = match executor.check_duet() {
        Ok(duet) => duet,
        Err(error) => {
            executor.undo_quietly();
            reports.report(WorkerReport::Failed(error));
            return Ok(UndoneRun::default());
        }
    };
    let mut worker = AgentWorker { executor, reports, duet };
    worker.report_reached(BarrierPoint::First);
    loop {
        match worker.carry_out_orders(|| todo.recv().ok()) {
            Ok(true) => return worker.executor.undo_all(),
            Ok(false) => {
                worker.executor.undo_quietly();
                return Ok(UndoneRun::default());
            }
            // No further slot will come; what was changed is undone in its time.
            Err(error) => worker.reports.report(WorkerReport::Failed(error)),
        }
    }
}
