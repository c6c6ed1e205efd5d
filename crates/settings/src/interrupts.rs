//! `irqs = "0-1"`: device interrupts go to these CPUs. The kernel keeps some where they are, which is tolerated.

use std::path::PathBuf;

use perflab_model::placement::parse_number_list;
use perflab_model::{Refusal, ValueTolerance};
use perflab_observe::Root;

use crate::error::SettingError;
use crate::setting::SettingContent;
use crate::setting_file::{FileWrite, PresetFileState, expand_pattern};

const FILES: &str = "/proc/irq/*/smp_affinity_list";

/// What new interrupts get.
const DEFAULT: &str = "/proc/irq/default_smp_affinity";

/// What is written for a list of CPUs.
///
/// # Errors
/// It is no list of CPUs that are online, or there are no files.
pub(crate) fn plan_interrupts(name: &str, level: &str, root: &Root) -> Result<Vec<FileWrite>, SettingError> {
    let refuse = |what: String, hint: &str| {
        Err(SettingError::Refused(Refusal { what: format!("{name}: {what}"), hint: hint.into() }))
    };
    let cpus = match parse_number_list(level) {
        Ok(cpus) if !cpus.is_empty() => cpus,
        _ => return refuse(format!("`{level}` is no list of CPUs"), "write 0, or 0-1,4"),
    };
    let online = root.read("/sys/devices/system/cpu/online").unwrap_or_default();
    let online = parse_number_list(&online).unwrap_or_default();
    if let Some(cpu) = cpus.iter().find(|cpu| !online.contains(cpu)) {
        return refuse(format!("CPU {cpu} is not online"), "name CPUs of /sys/devices/system/cpu/online");
    }
    let write = |path: PathBuf| FileWrite { path, value: level.into(), tolerance: ValueTolerance::Some };
    let writes: Vec<FileWrite> = expand_pattern(&root.0, FILES).into_iter().map(write).collect();
    if writes.is_empty() {
        return refuse("there are no files below /proc/irq".into(), "leave it out on this machine");
    }
    Ok(writes)
}

/// Where each interrupt may go.
pub(crate) fn read_state(root: &Root) -> Vec<PresetFileState> {
    let paths = expand_pattern(&root.0, FILES).into_iter().chain([root.path(DEFAULT)]);
    let state = |path: PathBuf| {
        let value = SettingContent::read(&path).ok()?.value;
        // Of the two kinds of files, one has a list and the other a mask.
        let level =
            if path.ends_with("default_smp_affinity") { list_of_mask(&value)? } else { value.clone() };
        Some(PresetFileState { path, level: Some(level), value: Some(value), offered: Vec::new() })
    };
    paths.filter(|path| path.exists()).filter_map(state).collect()
}

/// A mask of processors as a list of them: `ff,00000003` is `0-1,32-39`.
fn list_of_mask(mask: &str) -> Option<String> {
    let digits: Vec<u32> = mask.chars().rev().filter_map(|digit| digit.to_digit(16)).collect();
    let bits = digits.iter().enumerate().flat_map(|(place, digit)| {
        (0..4).filter(move |bit| digit >> bit & 1 == 1).map(move |bit| place * 4 + bit)
    });
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for cpu in bits {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let show = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    (!digits.is_empty()).then(|| ranges.iter().map(show).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documentation/core-api/irq/irq-affinity.rst has `ffffffff` for 32 CPUs.
    #[test]
    fn a_mask_is_a_list_of_cpus() {
        for (mask, list) in
            [("3", "0-1"), ("ff,00000003", "0-1,32-39"), ("ffffffff", "0-31"), ("a", "1,3"), ("0", "")]
        {
            assert_eq!(list_of_mask(mask).as_deref(), Some(list), "{mask}");
        }
    }
}
