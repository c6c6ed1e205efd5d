//! Sampling a guest's processors from outside: all stopped at random instants, looked at, and let go.
//!
//! Nothing in the guest takes part, so that code with interrupts off is seen as any other. The guest's clocks stand still while it is
//! stopped.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use perflab_model::{Nanos, StopRequest};
use perflab_observe::{RealtimeGuard, monotonic_now, thread_cpu_time};
use perflab_stacks::{ProcessorSample, SampledKernel, StoppedRegisters};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::error::GuestError;
use crate::gdb_stub::{GdbStub, StoppedMemory, split_into_pieces};
use crate::qmp::QmpConnection;

/// What is read of a kernel stack at first, in bytes; a deeper one costs another exchange.
const STACK_BYTES: u64 = 4096;

/// Samples that are kept of an iteration at most: two hours of four processors at 50 Hz.
const MOST_SAMPLES: usize = 1 << 20;

/// Where a guest is found that can be sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledGuest {
    /// its name, for messages
    pub name: String,
    /// where the socket `qmp` of its QEMU is; the gdb stub's is put beside it
    pub folder: PathBuf,
    /// its processors
    pub cpus: u32,
}

/// A sampler, ready.
#[derive(Debug)]
pub struct ProcessorSampler {
    name: String,
    stub: GdbStub,
    kernel: SampledKernel,
    cpus: u32,
}

/// What was sampled.
#[derive(Debug, Default)]
pub struct ProcessorRecording {
    /// in order of time
    pub samples: Vec<ProcessorSample>,
    /// samples after those, for which there was no room
    pub lost: u64,
    /// when it began
    pub begun: Nanos,
    /// and ended
    pub ended: Nanos,
    /// when the guest was stopped, and for how long
    pub stops: Vec<(Nanos, Nanos)>,
    /// the CPU time that this took the sampler
    pub cost: Nanos,
    /// why it ended before it was asked to
    pub failure: Option<String>,
}

impl ProcessorSampler {
    /// Has QEMU open its gdb stub, and reads what of the guest's kernel is needed; `kallsyms` are lines of its own.
    ///
    /// # Errors
    /// [`GuestError::Monitor`]: QEMU has no stub, or gives no answer; [`GuestError::NotSampled`]: its kernel's stacks cannot be had.
    pub fn attach(
        guest: &SampledGuest,
        kallsyms: String,
        release: &str,
        stop: &StopRequest,
    ) -> Result<ProcessorSampler, GuestError> {
        let SampledGuest { name, folder, cpus } = guest.clone();
        let socket = folder.join("gdb");
        let listen = format!("gdbserver unix:{},server=on,wait=off", socket.display());
        let said = QmpConnection::connect(&name, &folder.join("qmp"), stop)?.execute_line(&listen)?;
        let lost = |source: io::Error| GuestError::Monitor { name: name.clone(), reason: source.to_string() };
        let mut stub = GdbStub::connect(&socket).map_err(|error| {
            // What it says to a command that went well is that it waits for a debugger.
            let reason = format!("its gdb stub does not listen: {error} ({})", said.trim());
            GuestError::Monitor { name: name.clone(), reason }
        })?;
        let mut memory = StoppedMemory::new(&mut stub);
        let kernel = SampledKernel::read(kallsyms, release, &mut memory);
        if let Some(error) = memory.failure.take() {
            return Err(lost(error));
        }
        let kernel = kernel.map_err(|source| GuestError::NotSampled { name: name.clone(), source })?;
        stub.resume().map_err(lost)?;
        Ok(ProcessorSampler { name, stub, kernel, cpus })
    }

    /// How its kernel's stacks are unwound, for people.
    pub fn unwinds_by(&self) -> &'static str {
        self.kernel.unwinds_by()
    }

    /// Begins to sample about `frequency` times a second.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn start(self, frequency: u32) -> Result<RunningProcessorSampler, GuestError> {
        let (ended, end) = channel();
        let name = self.name.clone();
        let spawned = std::thread::Builder::new().name("guest-sampler".into()).spawn(move || {
            let mut sampler = self;
            // While the guest is stopped, nothing else comes first.
            let _first = RealtimeGuard::acquire();
            let mut recording = ProcessorRecording { begun: monotonic_now(), ..Default::default() };
            let mut random = ChaCha8Rng::seed_from_u64(recording.begun.0);
            let mean = 1.0 / f64::from(frequency.max(1));
            // Half to one and a half times the interval: no timer of the guest's keeps step with it.
            let mut gap = || Duration::from_secs_f64(mean * (0.5 + random.random::<f64>()));
            let mut due = Instant::now() + gap();
            while end.recv_timeout(due.saturating_duration_since(Instant::now()))
                == Err(RecvTimeoutError::Timeout)
            {
                if let Err(error) = sampler.take_sample(&mut recording) {
                    recording.failure = Some(error.to_string());
                    break;
                }
                // A stop that came late on a busy host moves the next one no further than that.
                due = (due + gap()).max(Instant::now());
            }
            recording.ended = monotonic_now();
            recording.cost = thread_cpu_time();
            (sampler, recording)
        });
        let thread =
            spawned.map_err(|source| GuestError::Start { program: "guest-sampler".into(), source })?;
        Ok(RunningProcessorSampler { name, ended, thread: Some(thread) })
    }

    fn take_sample(&mut self, recording: &mut ProcessorRecording) -> io::Result<()> {
        let all = self.stub.stop(self.cpus)?;
        let at = monotonic_now();
        let sampled = self.look_at_processors(&all, at);
        self.stub.resume()?;
        recording.stops.push((at, monotonic_now().since(at)));
        for sample in sampled? {
            if recording.samples.len() < MOST_SAMPLES {
                recording.samples.push(sample);
            } else {
                recording.lost += 1;
            }
        }
        Ok(())
    }

    fn look_at_processors(
        &mut self,
        all: &[StoppedRegisters],
        at: Nanos,
    ) -> io::Result<Vec<ProcessorSample>> {
        let mut memory = StoppedMemory::new(&mut self.stub);
        let each = || (0_u32..).zip(all);
        let pieces = |cpu: u32, wanted: Vec<(u64, usize)>| {
            wanted.into_iter().flat_map(move |(at, length)| split_into_pieces(cpu, at, length))
        };
        let needed: Vec<_> = each()
            .flat_map(|(cpu, registers)| pieces(cpu, self.kernel.needed_memory(registers, STACK_BYTES)))
            .collect();
        memory.prefetch(&needed);
        let mut names = Vec::new();
        for (cpu, registers) in each() {
            memory.cpu = cpu;
            names.extend(pieces(cpu, self.kernel.task_name(registers, &mut memory).into_iter().collect()));
        }
        memory.prefetch(&names);
        let mut sampled = Vec::new();
        for (cpu, registers) in each() {
            memory.cpu = cpu;
            let stack = self.kernel.sample(registers, &mut memory);
            sampled.push(ProcessorSample { at, cpu, instruction: registers.instruction, stack });
        }
        memory.failure.map_or(Ok(sampled), Err)
    }
}

/// A sampler that samples.
#[derive(Debug)]
pub struct RunningProcessorSampler {
    name: String,
    ended: Sender<()>,
    thread: Option<JoinHandle<(ProcessorSampler, ProcessorRecording)>>,
}

impl RunningProcessorSampler {
    /// Ends sampling.
    ///
    /// # Errors
    /// The thread died.
    pub fn stop(mut self) -> Result<(ProcessorSampler, ProcessorRecording), GuestError> {
        // One that ended by itself hears nothing.
        let _ = self.ended.send(());
        let joined = self.thread.take().map(JoinHandle::join);
        joined.and_then(Result::ok).ok_or_else(|| GuestError::Monitor {
            name: self.name.clone(),
            reason: "the thread that samples it ended before its time".into(),
        })
    }
}

impl Drop for RunningProcessorSampler {
    fn drop(&mut self) {
        let _ = self.ended.send(());
        // The guest is let go when the thread's sampler is dropped.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
