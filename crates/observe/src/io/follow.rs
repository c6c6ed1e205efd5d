//! A recording of what one process, which somebody else started, and its descendants bring into the page cache. Made ready
//! beforehand, because buffers take tens of milliseconds to make, and begun within one while the process is held.

use std::time::Duration;

use perflab_model::io::{IoRecording, IoTold};

use super::IoError;
use super::recorder::{Decoder, PAGES, Reader, Role, describe, instance};
use super::tracefs::{Instance, TraceFs};

/// Raw bytes that are kept of a recording, enough for 300,000 stretches of files; what comes later is left out.
const MOST: usize = 16 << 20;

/// Buffers that wait for a process.
#[derive(Debug)]
pub struct Follower {
    pages: Instance,
    decoder: Decoder,
    missing: Vec<String>,
}

impl Follower {
    /// Makes buffers, which wait.
    ///
    /// # Errors
    /// Why nothing can be traced, with what to do.
    pub fn prepare() -> Result<Self, IoError> {
        let tracefs = TraceFs::find()?;
        let (mut described, missing) = describe(&tracefs)?;
        described.retain(|(event, _)| event.name == PAGES);
        let pages = instance(&tracefs, "follow", Role::Pages, &described)?;
        pages.set("options/event-fork", "1")?;
        Ok(Follower { pages, decoder: Decoder::of(described, None), missing })
    }

    /// Begins to record what this process brings, and those that it makes.
    ///
    /// # Errors
    /// A process that is gone.
    pub fn follow(self, process: u32) -> Result<Following, IoError> {
        self.pages.set("set_event_pid", &process.to_string())?;
        let begun = crate::monotonic_now();
        self.pages.set("tracing_on", "1")?;
        let reader = Reader::start(&[&self.pages], Some(MOST))?;
        let told = IoTold { begun, missing: self.missing, tree: true, ..IoTold::default() };
        Ok(Following { pages: self.pages, decoder: self.decoder, reader, told })
    }
}

/// A recording that goes on.
#[derive(Debug)]
pub struct Following {
    pages: Instance,
    decoder: Decoder,
    reader: Reader,
    told: IoTold,
}

impl Following {
    /// Waits until every process that was followed has ended, or `most` is over, or `given_up` says so.
    pub fn wait(&self, most: Duration, given_up: impl Fn() -> bool) {
        const GLANCE: Duration = Duration::from_millis(50);
        let begun = std::time::Instant::now();
        let lives = || self.pages.read("set_event_pid").is_ok_and(|pids| !pids.trim().is_empty());
        while begun.elapsed() < most && !given_up() && lives() {
            std::thread::sleep(GLANCE);
        }
    }

    /// Ends it, and returns what was seen. Files are not looked up yet: see [`identify`](super::identify).
    ///
    /// # Errors
    /// A reader that died.
    pub fn stop(mut self) -> Result<IoRecording, IoError> {
        self.pages.set("tracing_on", "0")?;
        self.told.ended = crate::monotonic_now();
        let (pages, cost) = self.reader.stop()?;
        self.told.cost = cost;
        self.told.lost = self.pages.lost();
        Ok(IoRecording { events: self.decoder.events(&pages), files: Vec::new(), told: self.told })
    }
}
