//! A wish to stop, from ^C or from who ends processes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The first one is noted, the second one ends the process.
pub fn note(stop: &Arc<AtomicBool>) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_default(signal, Arc::clone(stop))?;
        flag::register(signal, Arc::clone(stop))?;
    }
    Ok(())
}

/// Lets `work` hear of a wish to stop; whether there was one. A second one ends the process, and so does each one afterwards.
pub fn listening<T>(work: impl FnOnce(&AtomicBool) -> T) -> io::Result<(T, bool)> {
    let stop = Arc::new(AtomicBool::new(false));
    note(&stop)?;
    let done = work(&stop);
    Ok((done, stop.swap(true, Ordering::Relaxed)))
}
