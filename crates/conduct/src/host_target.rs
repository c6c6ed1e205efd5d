//! This host as a target inside this process: the worker that an agent has, and what lies between it and the run.
//!
//! Alone, the thread that conducts is the worker: an order is carried out when its report is asked for, and an iteration
//! costs no wake-up of another thread. Beside targets, which that thread has to listen to, the worker has one of its own:
//! orders and reports are values, and an eventfd wakes whoever waits for them. Either way an error keeps its class, what
//! happens goes to the run's stream at once, as it needs no check, and the worker's thread starts the workload, as perf
//! events and tracers demand of the one that begins them; a request to stop the run is the worker's own.

use std::cell::RefCell;
use std::collections::VecDeque;
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
pub(crate) enum HostTarget<'a> {
    /// The thread that conducts is the worker.
    Alone(Box<HostWorker<'a>>),
    /// The worker has a thread of its own.
    BesideTargets(HostThread<'a>),
}

impl<'a> HostTarget<'a> {
    /// Starts it, and waits until it is prepared.
    ///
    /// # Errors
    /// It cannot be prepared; what was begun is undone.
    pub(crate) fn start<'env: 'a>(
        scope: &'a Scope<'a, 'env>,
        run: RunContext<'env>,
        role: TargetRole,
    ) -> Result<Self, ConductError> {
        match role {
            TargetRole::Everything => Ok(HostTarget::Alone(Box::new(HostWorker::prepare(&run, role)?))),
            _ => HostThread::start(scope, run, role).map(HostTarget::BesideTargets),
        }
    }

    /// Becomes readable with every report that is not there before it is asked for.
    pub(crate) fn waker(&self) -> io::Result<OwnedFd> {
        match self {
            HostTarget::Alone(_) => make_waker(),
            HostTarget::BesideTargets(thread) => thread.wake.try_clone(),
        }
    }

    /// Has it carry out an order, of which a report will come.
    pub(crate) fn send(&mut self, order: WorkerOrder) {
        match self {
            HostTarget::Alone(worker) => worker.order = Some(order),
            HostTarget::BesideTargets(thread) => thread.send(order),
        }
    }

    /// A report that has come; alone, the order is carried out for it.
    pub(crate) fn next_report(&mut self) -> Option<WorkerReport> {
        match self {
            HostTarget::Alone(worker) => worker.next_report(),
            HostTarget::BesideTargets(thread) => thread.next_report(),
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
    pub(crate) fn undo_all(self) -> UndoOutcome {
        match self {
            HostTarget::Alone(worker) => worker.undo_all(),
            HostTarget::BesideTargets(thread) => thread.undo_all(),
        }
    }

    fn await_report(&mut self) -> Option<WorkerReport> {
        match self {
            HostTarget::Alone(worker) => worker.next_report(),
            HostTarget::BesideTargets(thread) => thread.await_report(),
        }
    }
}

fn make_waker() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Makes a worker ready for its first order.
fn prepare_worker<'a, S: ReportSink>(
    run: &RunContext<'a>,
    role: TargetRole,
    reports: S,
) -> Result<AgentWorker<'a, S>, (S, ConductError)> {
    let prepare = || {
        let executor = SlotExecutor::new(run.machine, run.manifest, run.stream.clone(), run.stop, role)?;
        let mut executor = executor.with_hooks()?;
        executor = match role.runs_workloads() {
            true => executor.prepare_run()?,
            false => executor.open_counters().map(|()| executor)?,
        };
        match executor.check_duet() {
            Ok(duet) => Ok((executor, duet)),
            Err(error) => {
                executor.undo_quietly();
                Err(error)
            }
        }
    };
    match prepare() {
        Ok((executor, duet)) => Ok(AgentWorker::new(executor, reports, duet)),
        Err(error) => Err((reports, error)),
    }
}

/// The worker on the thread that conducts.
pub(crate) struct HostWorker<'a> {
    worker: Option<AgentWorker<'a, ReportQueue>>,
    /// What is carried out when its report is asked for.
    order: Option<WorkerOrder>,
}

/// Reports that nobody has asked for yet.
#[derive(Default)]
struct ReportQueue(RefCell<VecDeque<WorkerReport>>);

impl ReportSink for ReportQueue {
    fn report(&self, report: WorkerReport) {
        self.0.borrow_mut().push_back(report);
    }
}

impl<'a> HostWorker<'a> {
    fn prepare(run: &RunContext<'a>, role: TargetRole) -> Result<Self, ConductError> {
        let worker = prepare_worker(run, role, ReportQueue::default()).map_err(|(_, error)| error)?;
        Ok(HostWorker { worker: Some(worker), order: None })
    }

    fn next_report(&mut self) -> Option<WorkerReport> {
        let worker = self.worker.as_mut()?;
        if let Some(order) = self.order.take()
            && let Err(error) = worker.carry_out(order)
        {
            // No further slot will come; what was changed is undone in its time.
            worker.reports.report(WorkerReport::Failed(error));
        }
        worker.reports.0.borrow_mut().pop_front()
    }

    fn undo_all(mut self) -> UndoOutcome {
        self.worker.take().map_or_else(|| Ok(UndoneRun::default()), |worker| worker.executor.undo_all())
    }
}

impl Drop for HostWorker<'_> {
    fn drop(&mut self) {
        // After a panic the settings are undone by whoever guards the run.
        if let Some(worker) = self.worker.take().filter(|_| !std::thread::panicking()) {
            worker.executor.undo_quietly();
        }
    }
}

/// The worker on a thread of its own.
pub(crate) struct HostThread<'scope> {
    orders: Sender<WorkerOrder>,
    reports: Receiver<WorkerReport>,
    wake: Arc<OwnedFd>,
    /// Whether an order is being carried out.
    is_busy: bool,
    worker: Option<ScopedJoinHandle<'scope, UndoOutcome>>,
}

impl<'scope> HostThread<'scope> {
    fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        run: RunContext<'env>,
        role: TargetRole,
    ) -> Result<Self, ConductError> {
        let failed = |source: io::Error| ConductError::Speak { source };
        let wake = Arc::new(make_waker().map_err(failed)?);
        let ((orders, todo), (sender, reports)) = (channel(), channel());
        let sink = HostReports { sender, wake: Arc::clone(&wake) };
        let worker = Builder::new().name("workloads".into());
        let worker =
            worker.spawn_scoped(scope, move || run_worker(&run, role, sink, &todo)).map_err(failed)?;
        let mut thread = HostThread { orders, reports, wake, is_busy: true, worker: Some(worker) };
        match thread.await_report() {
            Some(WorkerReport::Failed(error)) => Err(error),
            _ => Ok(thread),
        }
    }

    fn send(&mut self, order: WorkerOrder) {
        self.is_busy = true;
        // One that is gone has panicked: the wait for its report finds out.
        let _ = self.orders.send(order);
    }

    fn next_report(&mut self) -> Option<WorkerReport> {
        match self.reports.try_recv() {
            Ok(report) => {
                self.is_busy = false;
                Some(report)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => self.resume_panic(),
        }
    }

    fn undo_all(mut self) -> UndoOutcome {
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

/// The thread's whole life.
fn run_worker(
    run: &RunContext<'_>,
    role: TargetRole,
    reports: HostReports,
    todo: &Receiver<WorkerOrder>,
) -> UndoOutcome {
    let mut worker = match prepare_worker(run, role, reports) {
        Ok(worker) => worker,
        Err((reports, error)) => {
            reports.report(WorkerReport::Failed(error));
            return Ok(UndoneRun::default());
        }
    };
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
