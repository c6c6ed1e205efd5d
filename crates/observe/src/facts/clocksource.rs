//! Family `clocksource`: what the kernel tells the time by.

use super::notes::FactCollector;

const DIRECTORY: &str = "/sys/devices/system/clocksource/clocksource0";

pub(super) fn collect_clocksource_facts(notes: &mut FactCollector<'_>) {
    notes.add_file("clocksource.current", &format!("{DIRECTORY}/current_clocksource"));
    notes.add_file("clocksource.available", &format!("{DIRECTORY}/available_clocksource"));
}
