//! Family `cgroup`: version, and the CPU and memory limits that hold for us. A limit holds for all that is below it, so
//! the strictest from our own group up to the root counts. The group's name is left out: it often differs from run to run.

use perflab_model::Value;

use super::notes::Notes;

const OWN: &str = "/proc/self/cgroup";
const MOUNT: &str = "/sys/fs/cgroup";

/// Version 1 writes "no limit" as the largest number of whole pages.
const NO_LIMIT: i64 = i64::MAX - 0xffff;

pub(super) fn collect(notes: &mut Notes<'_>) {
    let Some(text) = notes.read(OWN) else { return };
    match controller(&text, "memory").or_else(|| controller(&text, "cpu")) {
        Some(_) => version_1(notes, &text),
        None => version_2(notes, &text),
    }
}

fn version_1(notes: &mut Notes<'_>, own: &str) {
    notes.add("cgroup.version", 1, OWN);
    let memory =
        controller(own, "memory").map(|path| chain(&format!("{MOUNT}/memory"), path)).unwrap_or_default();
    let limit = strictest(&memory, |group| number(notes, &format!("{group}/memory.limit_in_bytes")));
    record(
        notes,
        "cgroup.memory_limit",
        limit.filter(|bytes| *bytes < NO_LIMIT as f64).map(whole),
        "memory.limit_in_bytes",
    );
    let cpu = controller(own, "cpu").map(|path| chain(&format!("{MOUNT}/cpu"), path)).unwrap_or_default();
    let cpus = strictest(&cpu, |group| {
        let quota = number(notes, &format!("{group}/cpu.cfs_quota_us")).filter(|quota| *quota > 0.0)?;
        Some(quota / number(notes, &format!("{group}/cpu.cfs_period_us"))?)
    });
    record(notes, "cgroup.cpu_limit", cpus.map(Value::Float), "cpu.cfs_quota_us");
}

fn version_2(notes: &mut Notes<'_>, own: &str) {
    let Some(path) = own.lines().find_map(|line| line.strip_prefix("0::")) else { return };
    notes.add("cgroup.version", 2, OWN);
    let groups = chain(MOUNT, path);
    let limit = strictest(&groups, |group| number(notes, &format!("{group}/memory.max")));
    record(notes, "cgroup.memory_limit", limit.map(whole), "memory.max");
    let cpus = strictest(&groups, |group| {
        let text = notes.read(&format!("{group}/cpu.max"))?;
        let (quota, period) = text.split_once(' ')?;
        Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
    });
    record(notes, "cgroup.cpu_limit", cpus.map(Value::Float), "cpu.max");
}

/// Our path in the hierarchy of a controller of version 1: `4:memory:/a/b`, `3:cpu,cpuacct:/a`.
fn controller<'t>(own: &'t str, name: &str) -> Option<&'t str> {
    own.lines().find_map(|line| {
        let (names, path) = line.split_once(':')?.1.split_once(':')?;
        names.split(',').any(|one| one == name).then_some(path)
    })
}

/// Our group and all above it, the root last.
fn chain(mount: &str, path: &str) -> Vec<String> {
    let mut groups = vec![format!("{mount}{}", path.trim_end_matches('/'))];
    while let Some((above, _)) =
        groups.last().filter(|last| *last != mount).and_then(|last| last.rsplit_once('/'))
    {
        groups.push(above.to_owned());
    }
    groups
}

fn strictest(groups: &[String], limit: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    groups.iter().filter_map(|group| limit(group)).filter(|limit| limit.is_finite()).min_by(f64::total_cmp)
}

fn number(notes: &Notes<'_>, path: &str) -> Option<f64> {
    notes.read(path)?.parse::<f64>().ok().filter(|number| number.is_finite())
}

fn whole(number: f64) -> Value {
    Value::Int(number as i64)
}

fn record(notes: &mut Notes<'_>, key: &str, limit: Option<Value>, file: &str) {
    notes.add(
        key,
        limit.unwrap_or_else(|| Value::from("none")),
        &format!("{MOUNT}: {file} of our group and those above"),
    );
}
