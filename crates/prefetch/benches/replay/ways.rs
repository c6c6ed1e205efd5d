//! The modes of reading a plan ahead that are raced.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::AtomicBool;

use io_uring::{IoUring, opcode, squeue, types};
use perflab_model::io_trace::PAGE;
use perflab_prefetch::{ReplayBudget, ReplayPart, ReplayPlan, replay_part};

use crate::ReplayBenchError;

/// Requests that a ring takes at a time.
const RING: u32 = 256;

/// Reads everything that a plan names.
pub type ReadMethod = fn(&ReplayPlan<'_>) -> Result<(), ReplayBenchError>;

/// All of them, ours first.
pub const READ_METHODS: [(&str, ReadMethod); 5] = [
    ("perflab's replay", read_by_replay),
    ("readahead, then a byte each", read_by_readahead),
    ("io_uring: fadvise, then a byte each", read_by_advice),
    ("io_uring: read", read_by_ring),
    ("pread", read_by_pread),
];

fn read_by_replay(plan: &ReplayPlan<'_>) -> Result<(), ReplayBenchError> {
    let part = ReplayPart { metadata: true, steps: 0..plan.steps.len() };
    let done = replay_part(plan, part, ReplayBudget { rate: None }, &AtomicBool::new(false));
    let all = done.skipped.is_empty() && done.pages == plan.page_count();
    if all { Ok(()) } else { Err(format!("not everything was read: {} pages", done.pages).into()) }
}

/// A stretch: its file's place among the opened ones, its first byte, and how many it has.
type FileRange = (usize, u64, u64);

fn open_ranges(plan: &ReplayPlan<'_>) -> Result<(Vec<File>, Vec<FileRange>), ReplayBenchError> {
    let (mut opened, mut all) = (Vec::new(), Vec::new());
    for step in &plan.steps {
        all.extend(step.pages.iter().map(|(first, count)| (opened.len(), first * PAGE, count * PAGE)));
        opened.push(File::open(&step.file.path)?);
    }
    Ok((opened, all))
}

fn read_by_readahead(plan: &ReplayPlan<'_>) -> Result<(), ReplayBenchError> {
    let (files, all) = open_ranges(plan)?;
    for (file, at, bytes) in &all {
        let (at, bytes) = (i64::try_from(*at)?, usize::try_from(*bytes)?);
        // SAFETY: numbers and an open descriptor; no memory of ours is involved.
        unsafe { libc::readahead(files[*file].as_raw_fd(), at, bytes) };
    }
    wait_for_ranges(&files, &all)
}

/// Waits until the last page of each has come.
fn wait_for_ranges(files: &[File], all: &[FileRange]) -> Result<(), ReplayBenchError> {
    for (file, at, bytes) in all {
        files[*file].read_at(&mut [0], at + bytes - PAGE)?;
    }
    Ok(())
}

fn read_by_pread(plan: &ReplayPlan<'_>) -> Result<(), ReplayBenchError> {
    let (files, all) = open_ranges(plan)?;
    let mut buffer = make_buffer(&all)?;
    for (file, at, bytes) in all {
        files[file].read_at(&mut buffer[..usize::try_from(bytes)?], at)?;
    }
    Ok(())
}

/// Room for the longest stretch.
fn make_buffer(all: &[FileRange]) -> Result<Vec<u8>, ReplayBenchError> {
    Ok(vec![0; usize::try_from(all.iter().map(|(_, _, bytes)| *bytes).max().unwrap_or(0))?])
}

fn read_by_advice(plan: &ReplayPlan<'_>) -> Result<(), ReplayBenchError> {
    let (files, all) = open_ranges(plan)?;
    submit_to_ring(&all, |(file, at, bytes)| {
        let file = types::Fd(files[file].as_raw_fd());
        let advice = opcode::Fadvise::new(file, i64::try_from(bytes)?, libc::POSIX_FADV_WILLNEED);
        Ok(advice.offset(at).build())
    })?;
    wait_for_ranges(&files, &all)
}

fn read_by_ring(plan: &ReplayPlan<'_>) -> Result<(), ReplayBenchError> {
    let (files, all) = open_ranges(plan)?;
    // What is read is not wanted: all requests may write to one place.
    let mut buffer = make_buffer(&all)?;
    submit_to_ring(&all, |(file, at, bytes)| {
        let file = types::Fd(files[file].as_raw_fd());
        let read = opcode::Read::new(file, buffer.as_mut_ptr(), u32::try_from(bytes)?);
        Ok(read.offset(at).build())
    })
}

fn submit_to_ring(
    all: &[FileRange],
    mut entry: impl FnMut(FileRange) -> Result<squeue::Entry, ReplayBenchError>,
) -> Result<(), ReplayBenchError> {
    let mut ring = IoUring::new(RING)?;
    for some in all.chunks(RING as usize) {
        for stretch in some {
            // SAFETY: files and buffers are the caller's, and the requests are waited for below.
            unsafe { ring.submission().push(&entry(*stretch)?)? };
        }
        ring.submit_and_wait(some.len())?;
        ring.completion().for_each(drop);
    }
    Ok(())
}
