//! The names of what processors and the kernel count, as perf spells them: `instructions`, `L1-dcache-load-misses:u`, `r01c2`,
//! `uncore_imc/cas_count_read/`, `sched:sched_migrate_task`.
//!
//! A name says what is meant; whether this machine counts it, and by which number, is found where it is opened. Types and
//! numbers are those of include/uapi/linux/perf_event.h.

use perflab_model::study::is_kernel_file_name;

/// An event that can be counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterEvent {
    /// As it is recorded: the usual one of several names, with its modes as they were written.
    pub name: String,
    /// Who counts it.
    pub source: CounterSource,
    /// In which modes of the processor; none means in all.
    pub modes: Vec<CounterMode>,
}

/// Who counts an event, and what it is called there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CounterSource {
    /// The processor, by a name that each of them has
    Hardware {
        /// of `enum perf_hw_id`
        config: u64,
    },
    /// The processor's caches
    Cache {
        /// cache, operation and result
        config: u64,
    },
    /// The processor, by the number in its manual: `r01c2`
    Raw {
        /// as it goes into the event's register
        config: u64,
    },
    /// The kernel
    Software(SoftwareEvent),
    /// A unit that sysfs describes: `pmu/event/`, `pmu/event=0x3c,umask=1/`
    Pmu {
        /// its folder in /sys/bus/event_source/devices
        pmu: String,
        /// what stands between the slashes
        terms: String,
    },
    /// What a processor's slots were used for: `topdown`, by the events that it has for it
    TopDown,
    /// A tracepoint, counted each time it is passed
    Tracepoint {
        /// `sched`
        group: String,
        /// `sched_migrate_task`
        name: String,
    },
}

/// An event of the kernel's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoftwareEvent {
    /// Its name.
    pub name: &'static str,
    /// Of `enum perf_sw_ids`.
    pub config: u64,
    /// The unit of its counts.
    pub unit: &'static str,
    /// Whether it is counted while a program itself runs, so that it can be where the kernel's events may not.
    pub counts_in_user_mode: bool,
}

/// A mode of the processor in which an event is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterMode {
    /// programs: `:u`
    User,
    /// the kernel: `:k`
    Kernel,
    /// a hypervisor: `:h`
    Hypervisor,
}

/// Names of the processor's events (`enum perf_hw_id`).
const HARDWARE: &[(&str, u64)] = &[
    ("cycles", 0),
    ("instructions", 1),
    ("cache-references", 2),
    ("cache-misses", 3),
    ("branches", 4),
    ("branch-misses", 5),
    ("bus-cycles", 6),
    ("stalled-cycles-frontend", 7),
    ("stalled-cycles-backend", 8),
    ("ref-cycles", 9),
];

const fn software(
    name: &'static str,
    config: u64,
    unit: &'static str,
    counts_in_user_mode: bool,
) -> SoftwareEvent {
    SoftwareEvent { name, config, unit, counts_in_user_mode }
}

/// The kernel's own events (`enum perf_sw_ids`).
const SOFTWARE: &[SoftwareEvent] = &[
    software("cpu-clock", 0, "ns", true),
    software("task-clock", 1, "ns", true),
    software("page-faults", 2, "1", true),
    software("context-switches", 3, "1", false),
    software("cpu-migrations", 4, "1", false),
    software("minor-faults", 5, "1", true),
    software("major-faults", 6, "1", true),
    software("alignment-faults", 7, "1", true),
    software("emulation-faults", 8, "1", true),
    software("cgroup-switches", 11, "1", false),
];

/// Level 1 of the top-down method.
const TOP_DOWN: &str = "topdown";

/// Other names that perf knows.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("cpu-cycles", "cycles"),
    ("branch-instructions", "branches"),
    ("faults", "page-faults"),
    ("cs", "context-switches"),
    ("migrations", "cpu-migrations"),
    ("idle-cycles-frontend", "stalled-cycles-frontend"),
    ("idle-cycles-backend", "stalled-cycles-backend"),
];

/// Caches, what is done to them, and what comes of it, each by its number (`enum perf_hw_cache_id` and the two behind it).
const CACHES: &[&str] = &["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"];

const CACHE_RESULTS: &[(&str, u64)] = &[
    ("loads", 0),
    ("load-misses", 0x1_0000),
    ("stores", 0x100),
    ("store-misses", 0x1_0100),
    ("prefetches", 0x200),
    ("prefetch-misses", 0x1_0200),
];

impl CounterEvent {
    /// Reads a name.
    ///
    /// # Errors
    /// What is wrong with it, and the nearest name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let name = usual_name(text);
        if let Some(source) = parse_plain_source(name)? {
            return Ok(CounterEvent { name: name.into(), source, modes: Vec::new() });
        }
        let (before, after) = text.rsplit_once(':').ok_or_else(|| describe_unknown_event(text))?;
        let before = usual_name(before);
        let with_modes = |source| -> Result<Self, String> {
            Ok(CounterEvent { name: format!("{before}:{after}"), source, modes: parse_modes(text, after)? })
        };
        if let Some(source) = parse_plain_source(before)? {
            if let CounterSource::Software(event) = source {
                check_software_modes(text, event, after)?;
            }
            return with_modes(source);
        }
        if let Some((group, event)) = before.split_once(':').filter(|_| is_modes(after)) {
            return with_modes(parse_tracepoint(text, group, event)?);
        }
        let source = parse_tracepoint(text, before, after)?;
        Ok(CounterEvent { name: text.into(), source, modes: Vec::new() })
    }

    /// The same of programs alone, where the kernel may not be counted; none where that would count nothing.
    pub fn in_user_mode(&self) -> Option<Self> {
        let counts = match &self.source {
            CounterSource::Software(event) => event.counts_in_user_mode,
            CounterSource::Tracepoint { .. } => false,
            _ => true,
        };
        // Clocks count alike in all modes.
        let suffix = if self.unit() == "ns" { "" } else { ":u" };
        (counts && self.modes.is_empty()).then(|| CounterEvent {
            name: format!("{}{suffix}", self.name),
            source: self.source.clone(),
            modes: vec![CounterMode::User],
        })
    }

    /// The unit of its counts, as far as the name says: `ns` of clocks, else `1`.
    pub fn unit(&self) -> &'static str {
        match &self.source {
            CounterSource::Software(event) => event.unit,
            _ => "1",
        }
    }

    /// Whether a processor has few of them, so that events may have to take turns.
    pub fn takes_turns(&self) -> bool {
        !matches!(self.source, CounterSource::Software(_) | CounterSource::Tracepoint { .. })
    }

    /// The names that every machine's perf knows, in the order in which they are shown.
    pub fn generic_names() -> Vec<String> {
        let hardware = HARDWARE.iter().map(|(name, _)| (*name).to_owned()).chain([TOP_DOWN.to_owned()]);
        let software = SOFTWARE.iter().map(|event| event.name.to_owned());
        let caches = CACHES
            .iter()
            .flat_map(|cache| CACHE_RESULTS.iter().map(move |(result, _)| format!("{cache}-{result}")));
        hardware.chain(software).chain(caches).collect()
    }
}

fn usual_name(name: &str) -> &str {
    OTHER_NAMES.iter().find(|(other, _)| *other == name).map_or(name, |(_, usual)| usual)
}

/// What is no tracepoint and has no modes.
fn parse_plain_source(name: &str) -> Result<Option<CounterSource>, String> {
    if let Some((_, config)) = HARDWARE.iter().find(|(known, _)| *known == name) {
        return Ok(Some(CounterSource::Hardware { config: *config }));
    }
    if let Some(event) = SOFTWARE.iter().find(|event| event.name == name) {
        return Ok(Some(CounterSource::Software(*event)));
    }
    if name == TOP_DOWN {
        return Ok(Some(CounterSource::TopDown));
    }
    if let Some(config) = cache_config(name) {
        return Ok(Some(CounterSource::Cache { config }));
    }
    if let Some(body) = name.strip_suffix('/') {
        let (pmu, terms) = body
            .split_once('/')
            .filter(|(pmu, terms)| is_kernel_file_name(pmu) && !terms.is_empty() && !terms.contains('/'))
            .ok_or_else(|| format!("`{name}` is no event: one of a unit is UNIT/EVENT/, as in `msr/tsc/`"))?;
        return Ok(Some(CounterSource::Pmu { pmu: pmu.into(), terms: terms.into() }));
    }
    let raw = name.strip_prefix('r').filter(|digits| {
        !digits.is_empty() && digits.len() <= 16 && digits.chars().all(|digit| digit.is_ascii_hexdigit())
    });
    Ok(raw
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .map(|config| CounterSource::Raw { config }))
}

fn cache_config(name: &str) -> Option<u64> {
    CACHES.iter().zip(0_u64..).find_map(|(cache, number)| {
        let rest = name.get(..cache.len()).filter(|head| head.eq_ignore_ascii_case(cache));
        let result = rest.and_then(|_| name.get(cache.len()..)?.strip_prefix('-'))?;
        CACHE_RESULTS.iter().find(|(known, _)| *known == result).map(|(_, config)| number | config)
    })
}

fn parse_tracepoint(name: &str, group: &str, event: &str) -> Result<CounterSource, String> {
    if is_kernel_file_name(group) && is_kernel_file_name(event) {
        return Ok(CounterSource::Tracepoint { group: group.into(), name: event.into() });
    }
    Err(describe_unknown_event(name))
}

/// Clocks run alike in all modes, and what happens in the kernel alone is nothing in programs.
fn check_software_modes(text: &str, event: SoftwareEvent, modes: &str) -> Result<(), String> {
    match modes.contains('k') {
        _ if event.unit == "ns" => {
            Err(format!("`{text}`: a clock counts alike in all modes; write `{}`", event.name))
        }
        false if !event.counts_in_user_mode => {
            Err(format!("`{text}`: it happens in the kernel alone; write `{}`", event.name))
        }
        _ => Ok(()),
    }
}

fn is_modes(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| "ukh".contains(letter))
}

fn parse_modes(name: &str, text: &str) -> Result<Vec<CounterMode>, String> {
    if !is_modes(text) {
        return Err(format!(
            "`{name}`: `{text}` is no mode of the processor; `:u` counts programs, `:k` the kernel, `:h` a hypervisor"
        ));
    }
    let mode = |letter| match letter {
        'u' => CounterMode::User,
        'k' => CounterMode::Kernel,
        _ => CounterMode::Hypervisor,
    };
    Ok(text.chars().map(mode).collect())
}

fn describe_unknown_event(name: &str) -> String {
    let known = CounterEvent::generic_names();
    let bare = name.split_once(':').map_or(name, |(bare, _)| bare);
    match perflab_model::nearest_name(bare, known.iter().map(String::as_str)) {
        Some(near) => format!("`{name}` is no event; did you mean `{near}`?"),
        None => format!(
            "`{name}` is no event; one of a unit is UNIT/EVENT/, a raw one rNNN, a tracepoint GROUP:NAME, and \
             `perflab monitor show counters` lists the others"
        ),
    }
}

/// Encodes the terms of an event of a unit into its three numbers (`config`, `config1`, `config2`): `event=0x3c,umask=0x1`,
/// where `format` gives where a term lies, as sysfs says it: `config:0-7,21`. A term without a value is 1.
///
/// # Errors
/// Which term is not understood, and why.
pub fn encode_event_terms(terms: &str, format: impl Fn(&str) -> Option<String>) -> Result<[u64; 3], String> {
    let mut configs = [0; 3];
    for term in terms.split(',').map(str::trim).filter(|term| !term.is_empty()) {
        let (name, value) = term.split_once('=').unwrap_or((term, "1"));
        let value = parse_term_value(value).ok_or_else(|| format!("`{term}`: `{value}` is no number"))?;
        if let Some(index) = ["config", "config1", "config2"].iter().position(|known| *known == name) {
            if let Some(config) = configs.get_mut(index) {
                *config |= value;
            }
            continue;
        }
        let place = format(name).ok_or_else(|| format!("the unit has no `{name}`"))?;
        place_term_value(&mut configs, &place, value)
            .ok_or_else(|| format!("`{term}`: it does not fit into `{}`", place.trim()))?;
    }
    Ok(configs)
}

fn parse_term_value(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Puts a value where its format says: its lowest bits go into the first range.
fn place_term_value(configs: &mut [u64; 3], place: &str, mut value: u64) -> Option<()> {
    let (word, ranges) = place.trim().split_once(':')?;
    let config =
        configs.get_mut(["config", "config1", "config2"].iter().position(|known| *known == word)?)?;
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        let width = last.checked_sub(first)?.checked_add(1).filter(|_| last < 64)?;
        let mask = u64::MAX.checked_shr(64 - width)?;
        *config |= (value & mask) << first;
        value = value.checked_shr(width).unwrap_or(0);
    }
    (value == 0).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str) -> CounterEvent {
        CounterEvent::parse(name).unwrap()
    }

    /// Numbers of perf_event_open(2): LLC is 2, its loads' misses have the result 1 in the third byte.
    #[test]
    fn names_are_those_of_perf() {
        assert_eq!(parse("instructions").source, CounterSource::Hardware { config: 1 });
        assert_eq!(parse("cpu-cycles"), parse("cycles"));
        assert_eq!(parse("cs:k").name, "context-switches:k");
        assert_eq!(parse("LLC-load-misses").source, CounterSource::Cache { config: 0x1_0002 });
        assert_eq!(parse("l1-dcache-stores").source, CounterSource::Cache { config: 0x100 });
        assert_eq!(parse("r1a8").source, CounterSource::Raw { config: 0x1a8 });
        let CounterSource::Software(clock) = parse("task-clock").source else { panic!() };
        assert_eq!((clock.config, clock.unit), (1, "ns"));
        assert_eq!(
            parse("uncore_imc/cas_count_read/").source,
            CounterSource::Pmu { pmu: "uncore_imc".into(), terms: "cas_count_read".into() }
        );
        assert_eq!(
            parse("sched:sched_switch").source,
            CounterSource::Tracepoint { group: "sched".into(), name: "sched_switch".into() }
        );
    }

    #[test]
    fn modes_stand_behind_and_a_tracepoint_may_be_called_like_one() {
        assert_eq!(parse("cycles:uk").modes, [CounterMode::User, CounterMode::Kernel]);
        assert_eq!(parse("cpu/event=0x3c/:k").modes, [CounterMode::Kernel]);
        assert_eq!(parse("sched:sched_switch:k").modes, [CounterMode::Kernel]);
        let odd = parse("sched:u");
        assert_eq!(odd.modes, []);
        assert!(matches!(odd.source, CounterSource::Tracepoint { .. }));
    }

    #[test]
    fn of_programs_alone_is_another_event_where_it_is_any() {
        let alone = |name: &str| parse(name).in_user_mode().map(|event| event.name);
        assert_eq!(alone("instructions").as_deref(), Some("instructions:u"));
        assert_eq!(alone("task-clock").as_deref(), Some("task-clock"));
        assert_eq!(
            (alone("context-switches"), alone("sched:sched_switch"), alone("cycles:k")),
            (None, None, None)
        );
    }

    #[test]
    fn what_is_no_event() {
        for name in [
            "task-clock:u",
            "cs:u",
            "instrctions",
            "cycles:x",
            "msr//",
            "../etc/passwd/",
            "a/b/c/",
            "sched:../x",
            "r",
            "",
        ] {
            assert!(CounterEvent::parse(name).is_err(), "{name}");
        }
    }

    /// The formats are those of Intel's PMU (`/sys/bus/event_source/devices/cpu/format`), and of `offcore_rsp`.
    #[test]
    fn terms_go_where_the_format_says() {
        let format = |name: &str| {
            let known = [
                ("event", "config:0-7"),
                ("umask", "config:8-15"),
                ("edge", "config:18"),
                ("offcore_rsp", "config1:0-63"),
                ("wide", "config:0-7,32-35"),
            ];
            known.iter().find(|(term, _)| *term == name).map(|(_, place)| format!("{place}\n"))
        };
        let encode = |terms: &str| encode_event_terms(terms, format);
        assert_eq!(encode("event=0x3c,umask=0x1"), Ok([0x13c, 0, 0]));
        assert_eq!(encode("event=0xd1,umask=8,edge"), Ok([0x4_08d1, 0, 0]));
        assert_eq!(encode("event=0xb7,offcore_rsp=0xffffffffffffffff"), Ok([0xb7, u64::MAX, 0]));
        // AMD's event numbers have their upper four bits elsewhere.
        assert_eq!(encode("wide=0x1c7"), Ok([0x1_0000_00c7, 0, 0]));
        assert_eq!(encode("config=0x10,config2=3"), Ok([0x10, 0, 3]));
        assert!(encode("umask=0x100").is_err() && encode("nothing=1").is_err() && encode("event=x").is_err());
    }
}
