//! `command;outer;inner 42` a line, sorted: what flamegraph.pl, inferno and our own import read.

use std::collections::{BTreeMap, HashMap};

use perflab_model::profile::{CommId, FrameKind, NodeId, StackFrame};

use super::ProfileSelection;

/// Folded text with the raw names of functions; kernel functions end in `_[k]`, other inlined ones in `_[i]`. A
/// sample without a stack is its command alone.
#[must_use]
pub fn write_folded(chosen: ProfileSelection<'_>) -> String {
    let mut counts: HashMap<(CommId, Option<NodeId>), (&str, u64)> = HashMap::new();
    for sample in chosen.selected_samples() {
        let (_, count) = counts.entry((sample.comm, sample.leaf)).or_insert((chosen.comm_of(sample), 0));
        *count = count.saturating_add(sample.count);
    }
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for ((_, leaf), (comm, count)) in counts {
        let frames = chosen
            .frames_outermost_first(leaf)
            .into_iter()
            .filter_map(|id| chosen.profile.frame(id))
            .map(write_folded_frame);
        let parts: Vec<String> = std::iter::once(strip_separators(comm)).chain(frames).collect();
        let all = lines.entry(parts.join(";")).or_default();
        *all = all.saturating_add(count);
    }
    lines.into_iter().map(|(stack, count)| format!("{stack} {count}\n")).collect()
}

fn write_folded_frame(frame: &StackFrame) -> String {
    let suffix = match (frame.kind, frame.inlined) {
        (FrameKind::Kernel, _) => "_[k]",
        (_, true) => "_[i]",
        _ => "",
    };
    format!("{}{suffix}", strip_separators(frame.raw_name()))
}

/// Without the signs that end frames and lines.
fn strip_separators(name: &str) -> String {
    let plain: String =
        name.chars().map(|sign| if sign == ';' || sign.is_control() { ':' } else { sign }).collect();
    if plain.is_empty() { "[unknown]".into() } else { plain }
}
