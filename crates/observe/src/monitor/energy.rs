//! Series `energy` on a clock: a row a domain, from the PMU `power`, else powercap, else hwmon.
//!
//! Powercap's counters start again at 0 after `max_energy_range_uj`: they are added up here, so that a series only grows.

use perflab_formats::kernel::cpu_state::WrappingCounter;
use perflab_formats::kernel::small_values::parse_cpu_list;
use perflab_model::{CellRow, SeriesSchema, TableCell};

use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext};
use crate::monitor::folder::SmallFile;
use crate::perf_counter::{CounterScope, EventCode, PerfCounter};
use crate::root::Root;

/// Events of the PMU `power` (arch/x86/events/rapl.c).
const EVENTS: &[&str] = &["energy-pkg", "energy-cores", "energy-ram", "energy-gpu", "energy-psys"];

/// Where its counts lie, and what one of them is.
enum EnergySource {
    /// microjoules a count
    Event { counter: PerfCounter, scale: f64 },
    /// microjoules
    File { file: SmallFile, range: Option<u64>, counter: WrappingCounter },
}

struct EnergyDomain {
    domain: String,
    name: String,
    source: EnergySource,
}

struct EnergyMonitor {
    schema: SeriesSchema,
    domains: Vec<EnergyDomain>,
    buffer: Vec<u8>,
}

pub(crate) fn open_energy(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let root = opening.root;
    let mut refused = None;
    let sources: [(&str, Vec<EnergyDomain>); 3] = [
        ("perf power/energy-*/", open_events(root)),
        ("/sys/class/powercap/*/energy_uj", open_files(root, "/sys/class/powercap", &mut refused)),
        ("/sys/class/hwmon/*/energy*_input", open_files(root, "/sys/class/hwmon", &mut refused)),
    ];
    let found = sources.into_iter().find(|(_, domains)| !domains.is_empty());
    let Some((source, domains)) = found else {
        let source = refused.unwrap_or_else(|| rustix::io::Errno::NODEV.into());
        return Err(ObserveError::read_failed(opening.file.source, source));
    };
    let schema = SeriesSchema { source: source.into(), ..opening.declared_schema() };
    Ok(Box::new(EnergyMonitor { schema, domains, buffer: vec![0; 4096] }))
}

/// The events, on one CPU of each package.
fn open_events(root: &Root) -> Vec<EnergyDomain> {
    const POWER: &str = "/sys/bus/event_source/devices/power";
    let cpus = root.read(&format!("{POWER}/cpumask")).map(|text| parse_cpu_list(&text)).unwrap_or_default();
    let mut found = Vec::new();
    for event in EVENTS.iter().filter(|_| root.is_host()) {
        let code = EventCode::resolve_of_unit(root, "power", event).ok();
        let Some(code) = code.filter(|code| code.unit == "uJ") else { continue };
        for cpu in &cpus {
            let opened = PerfCounter::open(&code, &[], CounterScope::Cpu(*cpu), None);
            let Ok(counter) = opened.and_then(|counter| counter.start().map(|()| counter)) else { continue };
            let scale = code.scale;
            let (domain, name) = (format!("cpu{cpu}"), (*event).to_owned());
            found.push(EnergyDomain { domain, name, source: EnergySource::Event { counter, scale } });
        }
    }
    found
}

/// Files of microjoules below the folders of a class: `energy_uj` of a zone, `energy1_input` of a sensor.
fn open_files(root: &Root, class: &str, refused: &mut Option<std::io::Error>) -> Vec<EnergyDomain> {
    let mut found = Vec::new();
    let mut buffer = vec![0; 64];
    for zone in root.list(class) {
        let folder = format!("{class}/{zone}");
        let files = root
            .list(&folder)
            .into_iter()
            .filter(|name| name == "energy_uj" || (name.starts_with("energy") && name.ends_with("_input")));
        for name in files {
            let mut file = SmallFile::new(root.path(&format!("{folder}/{name}")));
            match file.read(&mut buffer) {
                Ok(text) if text.trim().parse::<u64>().is_ok() => {}
                Ok(_) => continue,
                Err(error) => {
                    refused.get_or_insert(error);
                    continue;
                }
            }
            let read = |name: &str| root.read(&format!("{folder}/{name}")).ok();
            let label = name.strip_suffix("_input").and_then(|sensor| read(&format!("{sensor}_label")));
            let range = read("max_energy_range_uj").and_then(|text| text.trim().parse().ok());
            let counter = WrappingCounter::default();
            found.push(EnergyDomain {
                domain: if name == "energy_uj" { zone.clone() } else { format!("{zone}/{name}") },
                name: label.or_else(|| read("name")).unwrap_or_default(),
                source: EnergySource::File { file, range, counter },
            });
        }
    }
    found
}

impl EnergySource {
    /// Microjoules so far.
    fn read(&mut self, buffer: &mut Vec<u8>) -> Option<u64> {
        match self {
            EnergySource::Event { counter, scale } => Some((counter.read()?.count as f64 * *scale) as u64),
            EnergySource::File { file, range, counter } => {
                let now = file.read(buffer).ok()?.trim().parse().ok()?;
                Some(counter.advance(now, *range))
            }
        }
    }
}

impl Monitor for EnergyMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        for domain in &mut self.domains {
            let energy = domain.source.read(&mut self.buffer).and_then(|energy| i64::try_from(energy).ok());
            rows.push(vec![
                TableCell::Text(domain.domain.clone()),
                TableCell::Text(domain.name.clone()),
                energy.map_or(TableCell::Missing, TableCell::Int),
            ]);
        }
        Ok(())
    }
}
