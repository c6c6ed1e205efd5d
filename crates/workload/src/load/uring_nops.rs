//! Operations that do nothing, through an io_uring: what the ring itself costs, with no device behind it.
//!
//! The question is that of MMTests' `io_uring` (<https://github.com/gormanm/mmtests>), which runs the `nop` test of fio's `t/io_uring`.
//! The ring is described by J. Axboe, *Efficient IO with io_uring* (2019), <https://kernel.dk/io_uring.pdf>.

use std::io;
use std::time::Instant;

use io_uring::IoUring;
use serde_json::json;

use crate::load::args::{BuiltinLoadArgs, LoadError};
use crate::system_calls::push_no_operation;

/// Entries that the kernel allows in a ring (`IORING_MAX_ENTRIES`).
const MOST_ENTRIES: usize = 32_768;

/// Milliseconds that the kernel's thread polls an empty ring before it sleeps.
const POLLING_MS: u32 = 1_000;

/// Who takes the operations from the ring.
#[derive(Clone, Copy, PartialEq)]
enum RingSubmission {
    /// a system call for each batch
    Call,
    /// a thread of the kernel that polls (`IORING_SETUP_SQPOLL`)
    Polled,
}

pub(crate) fn measure_uring_nops(options: &mut BuiltinLoadArgs) -> Result<serde_json::Value, LoadError> {
    let depth = options.count_within("depth", 32, 1..=MOST_ENTRIES)?;
    let batches = options.count("batches", 100_000, 1)?;
    let submission = options
        .choice("submission", &[("call", RingSubmission::Call), ("polled", RingSubmission::Polled)])?;
    options.require_all_used()?;
    let mut ring = make_ring(depth, submission).map_err(LoadError::system_error("make an io_uring"))?;
    let begun = Instant::now();
    for _ in 0..batches {
        run_batch(&mut ring, depth).map_err(LoadError::system_error("use an io_uring"))?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let operations = depth as f64 * batches as f64;
    Ok(json!({
        "operations_per_second": operations / seconds,
        "operation_ns": seconds * 1e9 / operations,
        "batch_us": seconds * 1e6 / batches as f64,
        "seconds": seconds,
    }))
}

fn make_ring(depth: usize, submission: RingSubmission) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    if submission == RingSubmission::Polled {
        builder.setup_sqpoll(POLLING_MS);
    }
    builder.build(depth as u32)
}

/// Submits as many as the ring holds, and takes all their completions.
fn run_batch(ring: &mut IoUring, depth: usize) -> io::Result<()> {
    let (mut submitted, mut completed) = (0, 0);
    while completed < depth {
        while submitted < depth && push_no_operation(&mut ring.submission()) {
            submitted += 1;
        }
        ring.submit_and_wait(submitted - completed)?;
        for entry in ring.completion() {
            if entry.result() < 0 {
                return Err(io::Error::from_raw_os_error(-entry.result()));
            }
            completed += 1;
        }
    }
    Ok(())
}
