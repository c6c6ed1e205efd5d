//! Folded stacks, `comm;outer;inner 42` a line, read and written.
//!
//! stackcollapse-perf.pl, inferno, bpftrace and py-spy write them. Suffixes say where a frame ran: `_[k]` kernel,
//! `_[i]` inlined, `_[j]` compiled at run time, and modules are `[name]`. Times, processes and what was lost are not in
//! such a file, and are not made up. Lines are written sorted, as flamegraph.pl, inferno and our own import read them.

use std::collections::{BTreeMap, HashMap};

use perflab_model::{CommId, FrameKind, NodeId, StackFrame, StackSample, Unit};

use crate::ProfilePosition;
use crate::imported_profile::ProfileBuilder;
use crate::profile_selection::ProfileSelection;

pub(crate) fn read_folded(bytes: &[u8]) -> ProfileBuilder {
    let mut reading = ProfileBuilder::default();
    reading.about.source = "folded".into();
    reading.about.unit = Unit::new("1");
    let has_kernel = contains_bytes(bytes, b"_[k]");
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        match std::str::from_utf8(line)
            .map_err(|error| format!("not UTF-8: {error}"))
            .and_then(parse_folded_line)
        {
            Ok((stack, count)) => add_folded_sample(&mut reading, stack, count, has_kernel),
            Err(reason) => reading.count_unreadable(ProfilePosition::Line(number), reason),
        }
    }
    reading.add_note(
        "folded text has no times, processes or losses: samples that its maker dropped are not counted",
        "import perf.data itself where you have it",
    );
    reading
}

/// Whether a text begins with stacks and their counts, of which one has a caller: other texts have lines of a word and a number.
pub(crate) fn is_folded(beginning: &[u8]) -> bool {
    // The last line may be cut.
    let end = beginning.iter().rposition(|byte| *byte == b'\n').unwrap_or(beginning.len());
    let Ok(text) = std::str::from_utf8(beginning.get(..end).unwrap_or_default()) else { return false };
    let lines = || text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines().all(|line| parse_folded_line(line).is_ok()) && lines().any(|line| line.contains(';'))
}

fn contains_bytes(bytes: &[u8], requested: &[u8]) -> bool {
    bytes.windows(requested.len()).any(|window| window == requested)
}

/// A line's stack and count.
fn parse_folded_line(line: &str) -> Result<(&str, u64), String> {
    let (stack, count) = line.trim_end().rsplit_once(' ').ok_or("no count after the stack")?;
    // Some writers give fractions; half a sample is none, and a rounded one would be a guess.
    let count = count.strip_suffix(".0").unwrap_or(count);
    let count = count.parse::<u64>().map_err(|_| format!("`{count}` is no count of samples"))?;
    let stack = stack.trim_end();
    if stack.is_empty() { Err("no stack before the count".into()) } else { Ok((stack, count)) }
}

/// The first part is the command's name, as every collapse script has it.
fn add_folded_sample(reading: &mut ProfileBuilder, stack: &str, count: u64, has_kernel: bool) {
    let mut parts = stack.split(';');
    let comm = reading.weaver.intern_comm(parts.next().unwrap_or_default());
    let mut leaf: Option<NodeId> = None;
    for part in parts.filter(|part| !part.is_empty()) {
        let frame = reading.weaver.intern_frame(parse_folded_frame(part, has_kernel));
        leaf = Some(reading.weaver.intern_node(leaf, frame));
    }
    let (at, cpu, pid, tid) = (None, None, None, None);
    reading.samples.push(StackSample { at, cpu, pid, tid, comm, leaf, count, weight: count });
}

/// Frames say where they ran if any frame of the file does.
fn parse_folded_frame(part: &str, has_kernel: bool) -> StackFrame {
    let otherwise = if has_kernel { FrameKind::User } else { FrameKind::Unknown };
    let (name, kind, inlined) = match part.rsplit_once("_[") {
        Some((name, "k]")) => (name, FrameKind::Kernel, false),
        Some((name, "i]")) => (name, otherwise, true),
        Some((name, "j]")) => (name, FrameKind::User, false),
        _ => (part, otherwise, false),
    };
    StackFrame { inlined, ..StackFrame::new(name, kind) }
}

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn suffixes_say_where_a_frame_ran() {
        let imported =
            read_folded(b"sh;main;do_syscall_64_[k];kfree.part.0_[k] 3\nsh;main;inner_[i] 1\n").finish();
        let frames: Vec<_> =
            imported.batch.frames.iter().map(|f| (f.name.as_str(), f.kind, f.inlined)).collect();
        let (kernel, user) = (FrameKind::Kernel, FrameKind::User);
        let requested = [
            ("main", user, false),
            ("do_syscall_64", kernel, false),
            ("kfree", kernel, false),
            ("inner", user, true),
        ];
        assert_eq!(frames, requested);
        assert_eq!(imported.batch.frames[2].raw_name(), "kfree.part.0");
        assert_eq!(imported.batch.samples.iter().map(|one| one.count).collect::<Vec<_>>(), [3, 1]);
    }

    #[test]
    fn rubbish_is_counted_with_its_line_and_the_rest_is_kept() {
        let reading = read_folded(b"a;b 1\nrubbish\n\n# a comment\na;b c\n\xff\xfe 2\n 7\nlone 4\n");
        assert_eq!(reading.about.unreadable, 4);
        let lines: Vec<ProfilePosition> = reading.remarks().iter().map(|remark| remark.place).collect();
        assert_eq!(lines, [2, 5, 6, 7].map(ProfilePosition::Line));
        assert_eq!(reading.samples.iter().map(|one| one.count).sum::<u64>(), 5);
        assert_eq!(reading.samples[1].leaf, None, "a command without frames has no stack");
    }

    proptest! {
        #[test]
        fn every_line_is_a_sample_or_unreadable(lines in prop::collection::vec("[ -~]{1,30}", 0..20)) {
            let reading = read_folded(lines.join("\n").as_bytes());
            let skipped = lines.iter().filter(|line| line.starts_with('#')).count();
            let seen = reading.samples.len() + reading.about.unreadable as usize;
            prop_assert_eq!(seen + skipped, lines.len());
        }
    }
}
