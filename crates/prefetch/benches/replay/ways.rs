//! The ways of reading a plan ahead that are raced.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::AtomicBool;

use io_uring::{IoUring, opcode, squeue, types};
use perflab_model::io::PAGE;
use perflab_prefetch::{Budget, Part, Plan, replay};

use crate::Surprise;

/// Requests that a ring takes at a time.
const RING: u32 = 256;

/// Reads everything that a plan names.
pub type Way = fn(&Plan<'_>) -> Result<(), Surprise>;

/// All of them, ours first.
pub const WAYS: [(&str, Way); 5] = [
    ("perflab's replay", ours),
    ("readahead, then a byte each", by_readahead),
    ("io_uring: fadvise, then a byte each", by_advice),
    ("io_uring: read", by_ring),
    ("pread", by_pread),
];

fn ours(plan: &Plan<'_>) -> Result<(), Surprise> {
    let part = Part { metadata: true, steps: 0..plan.steps.len() };
    let done = replay(plan, part, Budget { rate: None }, &AtomicBool::new(false));
    let all = done.skipped.is_empty() && done.pages == plan.pages();
    if all { Ok(()) } else { Err(format!("not everything was read: {} pages", done.pages).into()) }
}

/// A stretch: its file's place among the opened ones, its first byte, and how many it has.
type Stretch = (usize, u64, u64);

fn stretches(plan: &Plan<'_>) -> Result<(Vec<File>, Vec<Stretch>), Surprise> {
    let (mut opened, mut all) = (Vec::new(), Vec::new());
    for step in &plan.steps {
        all.extend(step.pages.iter().map(|(first, count)| (opened.len(), first * PAGE, count * PAGE)));
        opened.push(File::open(&step.file.path)?);
    }
    Ok((opened, all))
}

fn by_readahead(plan: &Plan<'_>) -> Result<(), Surprise> {
    let (files, all) = stretches(plan)?;
    for (file, at, bytes) in &all {
        let (at, bytes) = (i64::try_from(*at)?, usize::try_from(*bytes)?);
        // SAFETY: numbers and an open descriptor; no memory of ours is involved.
        unsafe { libc::readahead(files[*file].as_raw_fd(), at, bytes) };
    }
    a_byte_each(&files, &all)
}

/// Waits until the last page of each has come.
fn a_byte_each(files: &[File], all: &[Stretch]) -> Result<(), Surprise> {
    for (file, at, bytes) in all {
        files[*file].read_at(&mut [0], at + bytes - PAGE)?;
    }
    Ok(())
}

fn by_pread(plan: &Plan<'_>) -> Result<(), Surprise> {
    let (files, all) = stretches(plan)?;
    let mut buffer = room(&all)?;
    for (file, at, bytes) in all {
        files[file].read_at(&mut buffer[..usize::try_from(bytes)?], at)?;
    }
    Ok(())
}

/// Room for the longest stretch.
fn room(all: &[Stretch]) -> Result<Vec<u8>, Surprise> {
    Ok(vec![0; usize::try_from(all.iter().map(|(_, _, bytes)| *bytes).max().unwrap_or(0))?])
}

fn by_advice(plan: &Plan<'_>) -> Result<(), Surprise> {
    let (files, all) = stretches(plan)?;
    through_a_ring(&all, |(file, at, bytes)| {
        let file = types::Fd(files[file].as_raw_fd());
        let advice = opcode::Fadvise::new(file, i64::try_from(bytes)?, libc::POSIX_FADV_WILLNEED);
        Ok(advice.offset(at).build())
    })?;
    a_byte_each(&files, &all)
}

fn by_ring(plan: &Plan<'_>) -> Result<(), Surprise> {
    let (files, all) = stretches(plan)?;
    // What is read is not wanted: all requests may write to one place.
    let mut buffer = room(&all)?;
    through_a_ring(&all, |(file, at, bytes)| {
        let file = types::Fd(files[file].as_raw_fd());
        let read = opcode::Read::new(file, buffer.as_mut_ptr(), u32::try_from(bytes)?);
        Ok(read.offset(at).build())
    })
}

fn through_a_ring(
    all: &[Stretch],
    mut entry: impl FnMut(Stretch) -> Result<squeue::Entry, Surprise>,
) -> Result<(), Surprise> {
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
