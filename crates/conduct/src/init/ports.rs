//! Ports of virtio-serial, found by name, and devices that take their time to appear.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::InitError;

/// A driver finds its devices within milliseconds; a starved virtual processor takes its time.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(2);

/// Opens the port of that name.
pub(super) fn open_port(name: &str) -> Result<File, InitError> {
    let path = wait_for_port(name)?;
    let opened = OpenOptions::new().read(true).write(true).open(&path);
    opened.map_err(InitError::system_error("open", path.display().to_string()))
}

/// The device of the port of that name.
pub(super) fn wait_for_port(name: &str) -> Result<PathBuf, InitError> {
    wait_for(|| find_port(name), || format!("the port {name}"))
}

/// Waits for a device.
pub(super) fn wait_for_device(device: &Path) -> Result<(), InitError> {
    wait_for(|| device.exists().then_some(()), || device.display().to_string())
}

fn find_port(name: &str) -> Option<PathBuf> {
    let ports = fs::read_dir("/sys/class/virtio-ports").ok()?;
    let port = ports
        .flatten()
        .find(|port| fs::read_to_string(port.path().join("name")).is_ok_and(|text| text.trim() == name))?;
    Some(Path::new("/dev").join(port.file_name())).filter(|path| path.exists())
}

fn wait_for<T>(mut look: impl FnMut() -> Option<T>, what: impl Fn() -> String) -> Result<T, InitError> {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if begun.elapsed() > PATIENCE {
            return Err(InitError::Missing { what: what(), seconds: PATIENCE.as_secs() });
        }
        std::thread::sleep(LOOK);
    }
}
