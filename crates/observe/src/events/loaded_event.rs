//! An event that the kernel counts: our BPF programs, loaded and attached to their tracepoints, and what their maps hold.
//!
//! Nothing is pinned: programs, maps and what attaches them are descriptors of this process, and go with it, however it ends.

#![expect(unsafe_code, reason = "an ioctl attaches a program to a tracepoint")]

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use aya::maps::{Array, HashMap, MapData, MapError, PerCpuArray, PerCpuHashMap};
use aya::programs::{ProgramError, TracePoint};
use aya::{Ebpf, EbpfError, EbpfLoader};
use perf_event_open_sys::{bindings as sys, ioctls};
use perflab_model::study::{EventOwner, KeptOfEvents};

use crate::events::event_program::EventProgram;
use crate::events::value_buckets::{BUCKETS, ValueBuckets};
use crate::perf_event::open_perf_event;

/// Built of events.bpf.c beside it by `cargo xtask bpf`.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/events.bpf.o");

/// Tasks of a workload that are followed at a time.
const MOST_TASKS: u32 = 65_536;

/// `struct counts` of events.bpf.c, in words: count, sum, largest, and the epoch that this is of.
const COUNTS: usize = 4;

/// `LOST_KEYS` of events.bpf.c.
const LATE_KEYS: u32 = 1;

/// `struct histogram`, in words.
const HISTOGRAM: usize = COUNTS + BUCKETS;

/// What events came to since they were attached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct EventTally {
    pub(crate) count: u64,
    pub(crate) sum: u64,
    /// The largest since the last edge.
    pub(crate) max: u64,
    /// Where values are kept.
    pub(crate) buckets: Option<ValueBuckets>,
}

impl EventTally {
    fn add_cpu(&mut self, words: &[u64], epoch: u64) {
        let [count, sum, max, of_epoch, buckets @ ..] = words else { return };
        self.count = self.count.saturating_add(*count);
        self.sum = self.sum.wrapping_add(*sum);
        if *of_epoch == epoch {
            self.max = self.max.max(*max);
        }
        if !buckets.is_empty() {
            self.buckets.get_or_insert_default().add(buckets);
        }
    }

    pub(crate) fn add(&mut self, other: &EventTally) {
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.wrapping_add(other.sum);
        self.max = self.max.max(other.max);
        if let Some(buckets) = &other.buckets {
            self.buckets.get_or_insert_default().merge(buckets);
        }
    }
}

/// What could not be counted, on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LostOfCpu {
    /// Pairs that had no room, as too many had begun; records that could not be read; values below 0.
    pub(crate) events: u64,
    /// Ends without a begin.
    pub(crate) unmatched: u64,
}

/// All that an event's maps hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct EventReading {
    /// By key as it is shown; of an event without keys, one that is empty.
    pub(crate) by_key: BTreeMap<String, EventTally>,
    /// Of each CPU that the kernel may have.
    pub(crate) lost: Vec<LostOfCpu>,
    /// Events that came while another BPF program ran on the CPU: the kernel calls no program then.
    pub(crate) missed: u64,
    /// Events whose key came when there was no room for another: they are counted, as others.
    pub(crate) late_keys: u64,
}

/// Keys that came when there was no room for more.
pub(crate) const OTHER_KEYS: &str = "other";

/// Programs that are attached. Detached and unloaded when dropped.
pub(crate) struct LoadedEvent {
    pub(crate) program: EventProgram,
    maps: EventMaps,
    epoch: u64,
    epochs: Array<MapData, u64>,
    lost: PerCpuArray<MapData, u64>,
    /// Its programs are held by what attaches them, and by this.
    _object: Ebpf,
    programs: Vec<OwnedFd>,
    _attached: Vec<OwnedFd>,
}

impl fmt::Debug for LoadedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedEvent").field("program", &self.program).finish_non_exhaustive()
    }
}

enum EventMaps {
    Counts(PerCpuArray<MapData, [u64; COUNTS]>, PerCpuHashMap<MapData, [u64; 2], [u64; COUNTS]>),
    Histograms(PerCpuArray<MapData, [u64; HISTOGRAM]>, PerCpuHashMap<MapData, [u64; 2], [u64; HISTOGRAM]>),
}

impl LoadedEvent {
    /// Loads the programs and attaches them. Of a workload's events, those of what this thread starts from now on.
    ///
    /// # Errors
    /// The kernel refuses; with why.
    pub(crate) fn attach(program: EventProgram, cpu: u32) -> Result<Self, String> {
        let is_workloads = program.owner == EventOwner::Workload;
        if is_workloads && !crate::processes::is_in_first_pid_namespace() {
            return Err("tasks of a workload are followed by their numbers, which are others in this PID namespace; of = \"machine\" counts all".into());
        }
        let keys = if program.keys.is_empty() { 1 } else { program.most_keys };
        let (counts, histograms) =
            if program.kept == KeptOfEvents::Histogram { (1, keys) } else { (keys, 1) };
        let mut object = EbpfLoader::new()
            // Where fields lie stands in `config`: nothing is asked of the kernel's own BTF, which takes long to read.
            .btf(None)
            .override_global("config", program.config.as_slice(), true)
            .map_max_entries("keyed", counts)
            .map_max_entries("keyed_histograms", histograms)
            .map_max_entries("begun", if program.is_pair { program.in_flight } else { 1 })
            .map_max_entries("tasks", if is_workloads { MOST_TASKS } else { 1 })
            .load(OBJECT)
            .map_err(|error| describe_object_error(&error))?;
        if is_workloads {
            let map = object.map_mut("tasks").ok_or(MISSING)?;
            let mut tasks: HashMap<_, u32, u8> =
                HashMap::try_from(map).map_err(|error| describe_map_error(&error))?;
            let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            tasks.insert(own, 1, 0).map_err(|error| describe_map_error(&error))?;
        }
        let (mut programs, mut attached) = (Vec::new(), Vec::new());
        for place in &program.places {
            let found = object.program_mut(place.program).ok_or(MISSING)?;
            let loaded: &mut TracePoint = found.try_into().map_err(|error| describe_program_error(&error))?;
            loaded.load().map_err(|error| describe_program_error(&error))?;
            let fd = loaded.fd().map_err(|error| describe_program_error(&error))?.as_fd();
            let refused = |error: io::Error| describe_refusal(&error);
            attached.push(attach_program(fd, place.tracepoint, cpu).map_err(refused)?);
            programs.push(fd.try_clone_to_owned().map_err(refused)?);
        }
        let mut take = |name: &str| object.take_map(name).ok_or(MISSING);
        let wrong = |error: MapError| describe_map_error(&error);
        let maps = if program.kept == KeptOfEvents::Histogram {
            let plain = PerCpuArray::try_from(take("plain_histogram")?).map_err(wrong)?;
            EventMaps::Histograms(plain, PerCpuHashMap::try_from(take("keyed_histograms")?).map_err(wrong)?)
        } else {
            let plain = PerCpuArray::try_from(take("plain")?).map_err(wrong)?;
            EventMaps::Counts(plain, PerCpuHashMap::try_from(take("keyed")?).map_err(wrong)?)
        };
        let epochs = Array::try_from(take("epoch")?).map_err(wrong)?;
        let lost = PerCpuArray::try_from(take("lost")?).map_err(wrong)?;
        Ok(LoadedEvent {
            program,
            maps,
            epoch: 0,
            epochs,
            lost,
            _object: object,
            programs,
            _attached: attached,
        })
    }

    /// Forgets largest values: those from now on are of what comes.
    ///
    /// # Errors
    /// The kernel refuses to take it.
    pub(crate) fn begin_epoch(&mut self) -> Result<(), String> {
        self.epoch += 1;
        self.epochs.set(0, self.epoch, 0).map_err(|error| describe_map_error(&error))
    }

    /// What there is since it was attached.
    ///
    /// # Errors
    /// The kernel refuses to read a map.
    pub(crate) fn read(&self) -> Result<EventReading, String> {
        let by_key = match &self.maps {
            EventMaps::Counts(plain, keyed) => self.read_tallies(plain, keyed),
            EventMaps::Histograms(plain, keyed) => self.read_tallies(plain, keyed),
        };
        let by_key = by_key.map_err(|error| describe_map_error(&error))?;
        let lost = self.read_lost().map_err(|error| describe_map_error(&error))?;
        let late_keys = self.lost.get(&LATE_KEYS, 0).map_err(|error| describe_map_error(&error))?;
        let late_keys = late_keys.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
        Ok(EventReading { by_key, lost, missed: self.read_missed(), late_keys })
    }

    /// As the kernel says it of each program; one before 5.12 does not.
    fn read_missed(&self) -> u64 {
        let of_program = |program: &OwnedFd| -> Option<u64> {
            let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", program.as_raw_fd())).ok()?;
            text.lines().find_map(|line| line.strip_prefix("recursion_misses:")?.trim().parse().ok())
        };
        self.programs.iter().filter_map(of_program).fold(0, u64::saturating_add)
    }

    fn read_tallies<const WORDS: usize>(
        &self,
        plain: &PerCpuArray<MapData, [u64; WORDS]>,
        keyed: &PerCpuHashMap<MapData, [u64; 2], [u64; WORDS]>,
    ) -> Result<BTreeMap<String, EventTally>, MapError> {
        let mut by_key: BTreeMap<String, EventTally> = BTreeMap::new();
        let mut add = |key: String, cpus: &[[u64; WORDS]]| {
            let tally = by_key.entry(key).or_default();
            cpus.iter().for_each(|words| tally.add_cpu(words, self.epoch));
        };
        let rest = plain.get(&0, 0)?;
        if self.program.keys.is_empty() {
            add(String::new(), &rest);
            return Ok(by_key);
        }
        if rest.iter().any(|words| words.first().is_some_and(|count| *count > 0)) {
            add(OTHER_KEYS.to_owned(), &rest);
        }
        for key in keyed.keys() {
            let key = key?;
            add(self.program.show_key(key), &keyed.get(&key, 0)?);
        }
        Ok(by_key)
    }

    fn read_lost(&self) -> Result<Vec<LostOfCpu>, MapError> {
        // As `enum lost` of events.bpf.c has them.
        let [begins, tasks, values, unmatched] = [0, 2, 3, 4].map(|kind: u32| self.lost.get(&kind, 0));
        let (begins, tasks, values, unmatched) = (begins?, tasks?, values?, unmatched?);
        let cpus = begins.iter().zip(tasks.iter()).zip(values.iter()).zip(unmatched.iter());
        Ok(cpus
            .map(|(((begins, tasks), values), unmatched)| LostOfCpu {
                events: begins + tasks + values,
                unmatched: *unmatched,
            })
            .collect())
    }
}

/// Has a program run whenever a tracepoint is passed, on every CPU, until what it returns is closed. The event is opened on one CPU
/// and never switched on: the kernel calls programs of a tracepoint whether its events count or not.
fn attach_program(program: BorrowedFd<'_>, tracepoint: u64, cpu: u32) -> io::Result<OwnedFd> {
    let mut attr = sys::perf_event_attr {
        type_: sys::PERF_TYPE_TRACEPOINT,
        size: size_of::<sys::perf_event_attr>() as u32,
        config: tracepoint,
        ..Default::default()
    };
    attr.set_disabled(1);
    let event = open_perf_event(&attr, -1, Some(cpu), None)?;
    let number = program.as_raw_fd().unsigned_abs();
    // SAFETY: both descriptors are open, one a perf event of a tracepoint and the other a program.
    let done = unsafe { ioctls::SET_BPF(event.as_raw_fd(), number) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(event) }
}

const MISSING: &str =
    "the object of BPF programs in this perflab lacks a part: build it again (`cargo xtask bpf`)";

fn describe_object_error(error: &EbpfError) -> String {
    match find_io_error(error) {
        Some(source) => describe_refusal(source),
        None => perflab_model::describe_error_chain(error),
    }
}

fn describe_map_error(error: &MapError) -> String {
    match find_io_error(error) {
        Some(source) => describe_refusal(source),
        None => perflab_model::describe_error_chain(error),
    }
}

fn describe_program_error(error: &ProgramError) -> String {
    if let ProgramError::LoadError { io_error, verifier_log } = error {
        let log = verifier_log.to_string();
        let said = log.lines().rev().find(|line| !line.trim().is_empty() && !line.starts_with("processed "));
        let said = said.map_or_else(String::new, |line| format!(": {line}"));
        return format!("{}{said}", describe_refusal(io_error));
    }
    match find_io_error(error) {
        Some(source) => describe_refusal(source),
        None => perflab_model::describe_error_chain(error),
    }
}

fn find_io_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a io::Error> {
    let mut error = Some(error);
    while let Some(found) = error {
        if let Some(source) = found.downcast_ref::<io::Error>() {
            return Some(source);
        }
        error = found.source();
    }
    None
}

/// Why the kernel takes no program, or attaches none.
fn describe_refusal(error: &io::Error) -> String {
    let why = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "it needs CAP_BPF and CAP_PERFMON, and no lockdown of confidentiality"
        }
        Some(libc::ENOSYS) => "this kernel has no BPF (CONFIG_BPF_SYSCALL), or a seccomp profile refuses it",
        Some(libc::ENOMEM) => "no memory is left for its maps; fewer `keys` need less",
        Some(libc::E2BIG) => "as many programs as the kernel allows are at this tracepoint",
        _ => return format!("bpf(2): {error}"),
    };
    format!("bpf(2): {error}: {why}")
}
