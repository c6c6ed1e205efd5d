//! The text of `perf script`: a head line per sample, and a line per frame below it.
//!
//! The head has odd forms: commands with blanks and colons in them, process -1, no CPU, no period, a sample without a
//! stack. A line without a time in it is unreadable, with the frames below it: no command is guessed from it.

use perflab_model::{FrameKind, Nanos, NodeId, StackFrame, StackSample, Unit};

use crate::imported_profile::{self, ProfileBuilder, ProfilePosition};

/// A head line, taken apart.
#[derive(Debug, Clone, PartialEq)]
struct ScriptHead<'a> {
    comm: &'a str,
    pid: Option<i32>,
    tid: i32,
    cpu: Option<u32>,
    at: Nanos,
    period: Option<u64>,
    event: &'a str,
}

/// Whether a file's beginning looks like it: a head line, and below it a frame, or another head.
pub(crate) fn is_perf_script(bytes: &[u8]) -> bool {
    let begin = String::from_utf8_lossy(bytes.get(..bytes.len().min(4096)).unwrap_or_default()).into_owned();
    begin
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .take(1)
        .any(|line| parse_script_head(line).is_some())
}

pub(crate) fn read_perf_script(bytes: &[u8]) -> ProfileBuilder {
    let mut reading = ProfileBuilder::default();
    reading.about.source = "perf script".into();
    let mut now: Option<(ScriptHead<'_>, Vec<StackFrame>)> = None;
    let mut is_skipping = false;
    let mut has_periods = true;
    let text = String::from_utf8_lossy(bytes);
    for (number, line) in (1..).zip(text.lines()) {
        let is_frame = line.starts_with(['\t', ' '])
            && parse_script_frame(line).is_some()
            && (now.is_some() || is_skipping);
        if line.trim().is_empty() || line.starts_with('#') {
            // A blank line ends a sample; a comment is nobody's.
        } else if is_frame {
            if let (Some((_, frames)), Some(frame)) = (&mut now, parse_script_frame(line)) {
                frames.push(frame);
            }
            continue;
        } else if let Some(found) = parse_script_head(line) {
            has_periods &= found.period.is_some();
            is_skipping = false;
            add_script_sample(&mut reading, now.replace((found, Vec::new())));
            continue;
        } else {
            reading.count_unreadable(
                ProfilePosition::Line(number),
                "neither a sample's head nor a frame below one",
            );
            is_skipping = true;
        }
        add_script_sample(&mut reading, now.take());
    }
    add_script_sample(&mut reading, now.take());
    let clock = reading.about.event.contains("cpu-clock") || reading.about.event.contains("task-clock");
    let unit = if !has_periods {
        "1"
    } else if clock {
        "ns"
    } else if reading.about.event.starts_with("cycles") {
        "cycles"
    } else {
        "events"
    };
    reading.about.unit = Unit::new(unit);
    reading.about.hides = imported_profile::hidden_from_event(&reading.about.event, false);
    reading.add_note(
        "the text of perf script has no losses: samples that the kernel dropped are not counted",
        "import perf.data itself where you have it",
    );
    reading
}

/// Stores a sample; its frames were read innermost first.
fn add_script_sample(reading: &mut ProfileBuilder, sample: Option<(ScriptHead<'_>, Vec<StackFrame>)>) {
    let Some((head, frames)) = sample else { return };
    if reading.about.event.is_empty() {
        reading.about.event = head.event.into();
    }
    let mut leaf: Option<NodeId> = None;
    for frame in frames.into_iter().rev() {
        let frame = reading.weaver.intern_frame(frame);
        leaf = Some(reading.weaver.intern_node(leaf, frame));
    }
    let comm = reading.weaver.intern_comm(head.comm);
    let pid = head.pid.or(Some(head.tid));
    let (at, cpu, tid, weight) = (Some(head.at), head.cpu, Some(head.tid), head.period.unwrap_or(1));
    reading.samples.push(StackSample { at, cpu, pid, tid, comm, leaf, count: 1, weight });
}

/// `comm  [pid/]tid [cpu] time: [period] event:`. What follows the comm is found from the time on the left.
fn parse_script_head(line: &str) -> Option<ScriptHead<'_>> {
    let (time_begin, time_end) = find_script_time(line)?;
    let at = parse_script_nanos(line.get(time_begin..time_end)?)?;
    let mut before = line.get(..time_begin)?.trim_end();
    let cpu = before.strip_suffix(']').and_then(|rest| {
        let (rest, cpu) = rest.rsplit_once('[')?;
        let cpu = cpu.parse().ok()?;
        before = rest.trim_end();
        Some(cpu)
    });
    let (comm, ids) = before.rsplit_once(char::is_whitespace)?;
    let (pid, tid) = match ids.split_once('/') {
        Some((pid, tid)) => (Some(pid.parse().ok()?), tid.parse().ok()?),
        None => (None, ids.parse().ok()?),
    };
    let after = line.get(time_end + 1..)?.trim();
    let (period, event) = match after.split_once(char::is_whitespace) {
        Some((period, event)) if period.bytes().all(|byte| byte.is_ascii_digit()) => {
            (period.parse().ok(), event.trim())
        }
        _ => (None, after),
    };
    let event = event.split_whitespace().next()?.strip_suffix(':')?;
    Some(ScriptHead { comm: comm.trim(), pid, tid, cpu, at, period, event })
}

/// Where the time stands: the first `digits.digits:` after a blank. A command may hold anything else.
fn find_script_time(line: &str) -> Option<(usize, usize)> {
    let is_time = |text: &str| {
        let (seconds, rest) = text.split_once('.')?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let is_sound = !seconds.is_empty() && seconds.bytes().all(|byte| byte.is_ascii_digit());
        (is_sound && (6..=9).contains(&digits) && rest.get(digits..)?.starts_with(':'))
            .then(|| seconds.len() + 1 + digits)
    };
    let begins =
        line.char_indices().filter(|(at, _)| line.get(..*at).is_some_and(|before| before.ends_with(' ')));
    begins.filter_map(|(at, _)| Some((at, at + is_time(line.get(at..)?)?))).next()
}

fn parse_script_nanos(text: &str) -> Option<Nanos> {
    let (seconds, fraction) = text.split_once('.')?;
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction).map(Nanos)
}

/// `address name+0x12 (module)`; the name may hold blanks and parentheses. `[unknown]` stands for no name.
fn parse_script_frame(line: &str) -> Option<StackFrame> {
    let (address, rest) = line.trim().split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let (name, module) = match rest.rsplit_once(" (") {
        Some((name, module)) if module.ends_with(')') => (name, module.strip_suffix(')')?),
        _ if rest.ends_with("(inlined)") => (rest, "(inlined)"),
        _ => (rest, ""),
    };
    let name = name.trim();
    let module = Some(module).filter(|module| !module.is_empty() && *module != "inlined");
    let is_kernel = module
        .is_some_and(|module| module.starts_with("[kernel") || module.starts_with("[guest.kernel"))
        || (address >> 63 == 1 && module.is_none_or(|module| module.starts_with('[')));
    let kind = if is_kernel { FrameKind::Kernel } else { FrameKind::User };
    let file = module.and_then(|module| module.rsplit('/').next()).unwrap_or("unknown");
    let nameless = || if file.starts_with('[') { file.to_owned() } else { format!("[{file}]") };
    let named = if name == "[unknown]" || name.is_empty() {
        StackFrame::new(&nameless(), kind)
    } else {
        script_frame(name, kind)
    };
    let inlined = rest.ends_with("(inlined)");
    Some(StackFrame { module: module.map(str::to_owned), inlined, ..named })
}

/// A name without its offset: the same function at another place is the same function.
fn script_frame(name: &str, kind: FrameKind) -> StackFrame {
    let plain = match name.rsplit_once("+0x") {
        Some((plain, digits)) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) && !plain.is_empty() => {
            plain
        }
        _ => name,
    };
    StackFrame::new(plain, kind)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "\
# a comment
hackbench  4021 [001]  100.000001:    1001001 cpu-clock:pppH: 
\tffffffff81a00e5f kmem_cache_free+0x5f ([kernel.kallsyms])
\tffffffff81b00000 do_syscall_64+0x10 ([kernel.kallsyms])
\t    7f0000001000 __libc_read+0xe (/usr/lib/libc.so.6)
\t    555500001000 [unknown] (/usr/bin/hack bench)

Web Content: 7  31/32 100.500000: cpu-clock:pppH: 
\t    7f0000001000 std::vector<int, A>::push(int) const+0x1 (/lib/x.so)

:-1 -1 [000] 101.000000: 1001001 cpu-clock:pppH: 
\tffffffff81b00000 do_exit+0x10 ([kernel.kallsyms])

swapper     0 [000] 101.000000002: 1001001 cpu-clock:pppH: 

";

    fn describe_builder(reading: &ProfileBuilder) -> Vec<String> {
        let mut weaver = reading.weaver.clone();
        let batch = weaver.take_batch(0, reading.samples.clone());
        let line = |one: &StackSample| {
            let chain = std::iter::successors(one.leaf, |leaf| batch.nodes[leaf.0 as usize].parent);
            let mut names: Vec<_> = chain
                .map(|leaf| batch.frames[batch.nodes[leaf.0 as usize].frame.0 as usize].name.clone())
                .collect();
            names.reverse();
            let comm = &batch.comms[one.comm.0 as usize];
            format!(
                "{comm}|{:?}|{:?}|{:?}|{}|{}",
                one.pid.unwrap(),
                one.tid.unwrap(),
                one.cpu,
                one.weight,
                names.join(";")
            )
        };
        batch.samples.iter().map(line).collect()
    }

    #[test]
    fn odd_commands_missing_periods_and_empty_stacks_are_kept() {
        assert!(is_perf_script(TEXT.as_bytes()) && !is_perf_script(b"a;b;c 3\n"));
        let reading = read_perf_script(TEXT.as_bytes());
        let requested = [
            "hackbench|4021|4021|Some(1)|1001001|[hack bench];__libc_read;do_syscall_64;kmem_cache_free",
            "Web Content: 7|31|32|None|1|std::vector<int, A>::push(int) const",
            ":-1|-1|-1|Some(0)|1001001|do_exit",
            "swapper|0|0|Some(0)|1001001|",
        ];
        assert_eq!(describe_builder(&reading), requested);
        assert_eq!(reading.about.unreadable, 0);
        assert_eq!(
            reading.samples.iter().map(|one| one.at.unwrap().0).collect::<Vec<_>>(),
            [100_000_001_000, 100_500_000_000, 101_000_000_000, 101_000_000_002]
        );
        assert_eq!((reading.samples[2].is_of_dying_task(), reading.samples[3].leaf), (true, None));
    }

    #[test]
    fn rubbish_is_said_with_its_line() {
        let reading = read_perf_script(
            b"what is this\n\tffffffff81b00000 x ([kernel.kallsyms])\n\na 1 [000] 1.000000: 1 cycles: \n",
        );
        assert_eq!((reading.samples.len(), reading.about.unreadable), (1, 1));
        assert_eq!(reading.remarks()[0].place, ProfilePosition::Line(1));
    }

    proptest! {
        #[test]
        fn any_command_comes_back(comm in "[!-~]([ -~]{0,12}[!-~])?", tid in 0..99_999_i32, micros in 0..999_999_u32) {
            prop_assume!(!comm.starts_with('#') && find_script_time(&format!("{comm} ")).is_none());
            let line = format!("{comm} {tid} [003] 55.{micros:06}: 7 cycles:P: ");
            let found = parse_script_head(&line).unwrap();
            prop_assert_eq!(found, ScriptHead { comm: comm.trim(), pid: None, tid, cpu: Some(3), at: parse_script_nanos(&format!("55.{micros:06}")).unwrap(), period: Some(7), event: "cycles:P" });
        }

        #[test]
        fn nothing_makes_it_panic(text in "[ -~\n\t]{0,200}") {
            read_perf_script(text.as_bytes());
        }
    }

    #[test]
    fn what_stands_before_the_event_is_its_period_only_where_it_is_a_number() {
        let head = parse_script_head("swapper 0 [000] 12.500000: sched:sched_switch: prev_comm=a").unwrap();
        assert_eq!((head.period, head.event), (None, "sched:sched_switch"));
        let head =
            parse_script_head("swapper 0 [000] 12.500000: 77 sched:sched_switch: prev_comm=a").unwrap();
        assert_eq!((head.period, head.event), (Some(77), "sched:sched_switch"));
    }
}
