//! Family `clocksource`: what the kernel tells the time by.

use super::notes::Notes;

const DIRECTORY: &str = "/sys/devices/system/clocksource/clocksource0";

pub(super) fn collect(notes: &mut Notes<'_>) {
    notes.file("clocksource.current", &format!("{DIRECTORY}/current_clocksource"));
    notes.file("clocksource.available", &format!("{DIRECTORY}/available_clocksource"));
}
