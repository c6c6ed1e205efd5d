//! The Firefox Profiler's JSON: threads with samples at their times, kernel and user functions in categories.

use std::collections::HashMap;
use std::time::Duration;

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, ProcessHandle, Profile,
    ReferenceTimestamp, SamplingInterval, StackHandle, ThreadHandle, Timestamp,
};
use perflab_model::{FrameId, FrameKind, NodeId, StackSample};

use crate::profile_selection::ProfileSelection;

/// The rate that is written where the source has none.
const RATE: u64 = 1000;

/// The file; times count from the first sample. Samples without a time stand a sampling interval apart.
///
/// # Errors
/// Where the JSON cannot be written, which would be a mistake of ours.
pub fn write_firefox(chosen: ProfileSelection<'_>) -> Result<String, serde_json::Error> {
    let nanos = (1_000_000_000 / chosen.first_profiled().frequency.unwrap_or(RATE).max(1)).max(1);
    let zero = ReferenceTimestamp::from_duration_since_unix_epoch(Duration::ZERO);
    let profile = Profile::new(chosen.name, zero, SamplingInterval::from_nanos(nanos));
    let mut writing = FirefoxWriter::new(chosen, profile);
    let first = chosen.selected_samples().filter_map(|sample| sample.at).min().map_or(0, |at| at.0);
    for (number, sample) in (0..).zip(chosen.selected_samples()) {
        let since = sample.at.map_or(nanos.saturating_mul(number), |at| at.0.saturating_sub(first));
        writing.add_sample(sample, Timestamp::from_nanos_since_reference(since), nanos);
    }
    writing.profile.set_symbolicated(true);
    serde_json::to_string(&writing.profile)
}

/// A file that is being put together.
struct FirefoxWriter<'a> {
    chosen: ProfileSelection<'a>,
    profile: Profile,
    kernel: CategoryHandle,
    user: CategoryHandle,
    processes: HashMap<i32, ProcessHandle>,
    threads: HashMap<(i32, i32, &'a str), ThreadHandle>,
    stacks: HashMap<(ThreadHandle, NodeId), StackHandle>,
}

impl<'a> FirefoxWriter<'a> {
    fn new(chosen: ProfileSelection<'a>, mut profile: Profile) -> Self {
        let kernel = profile.add_category("Kernel", CategoryColor::Orange);
        let user = profile.add_category("User", CategoryColor::Blue);
        let (processes, threads, stacks) = (HashMap::new(), HashMap::new(), HashMap::new());
        FirefoxWriter { chosen, profile, kernel, user, processes, threads, stacks }
    }

    fn add_sample(&mut self, sample: &StackSample, at: Timestamp, nanos: u64) {
        let thread = self.thread(sample, at);
        let stack = sample.leaf.and_then(|leaf| self.stack(thread, leaf));
        let weight = i32::try_from(sample.count).unwrap_or(i32::MAX);
        self.profile.add_sample(
            thread,
            at,
            stack,
            CpuDelta::from_nanos(nanos.saturating_mul(sample.count)),
            weight,
        );
    }

    /// The thread of a sample; where the source has none, its command stands for it.
    fn thread(&mut self, sample: &StackSample, at: Timestamp) -> ThreadHandle {
        let name = self.chosen.comm_of(sample);
        let (pid, tid) = (sample.pid.unwrap_or(0), sample.tid.unwrap_or(0));
        if let Some(known) = self.threads.get(&(pid, tid, name)) {
            return *known;
        }
        let number = |id: i32| u32::try_from(id).unwrap_or(u32::MAX);
        let profile = &mut self.profile;
        let process = self.processes.entry(pid).or_insert_with(|| profile.add_process(name, number(pid), at));
        let thread = profile.add_thread(*process, number(tid), at, pid == tid);
        self.profile.set_thread_name(thread, name);
        self.threads.insert((pid, tid, name), thread);
        thread
    }

    fn stack(&mut self, thread: ThreadHandle, leaf: NodeId) -> Option<StackHandle> {
        if let Some(known) = self.stacks.get(&(thread, leaf)) {
            return Some(*known);
        }
        let frames = self.chosen.frames_outermost_first(Some(leaf)).into_iter();
        let frames: Vec<FrameInfo> = frames.filter_map(|id| self.frame(id)).collect();
        let stack = self.profile.intern_stack_frames(thread, frames.into_iter())?;
        self.stacks.insert((thread, leaf), stack);
        Some(stack)
    }

    fn frame(&mut self, id: FrameId) -> Option<FrameInfo> {
        let frame = self.chosen.profile.frame(id)?;
        let category = match frame.kind {
            FrameKind::Kernel => self.kernel,
            FrameKind::User => self.user,
            FrameKind::Unknown => CategoryHandle::OTHER,
        };
        let label = Frame::Label(self.profile.intern_string(&frame.name));
        Some(FrameInfo { frame: label, category_pair: category.into(), flags: FrameFlags::empty() })
    }
}
