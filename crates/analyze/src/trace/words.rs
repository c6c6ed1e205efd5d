//! The answer in sentences, each with its numbers: what a person would say who had looked at the pictures for an hour.

use super::compare::{Change, Comparison};
use super::onset::Onset;
use super::pattern::{Efficiency, Mode, Period};
use super::report::Report;
use super::times::Clock;

/// What one trace says.
pub fn sentences(report: &Report) -> Vec<String> {
    let mut all = vec![overview(report)];
    all.extend(sentences_about_probes(report));
    all.extend(off_cpu(report));
    all.extend(report.causes.iter().filter(|cause| cause.share.outliers > 0).map(|cause| {
        let without = report.is_judged(report.quantiles[2]).then(|| {
            let [_, _, without, _] = cause.without;
            format!("; without it p99.9 would be {} instead of {}", time(without), time(report.quantiles[2]))
        });
        format!(
            "`{}` dominates {} of {} outliers ({}) and is {} of their excess time{}.",
            cause.name,
            count(cause.share.outliers),
            count(report.outlier_count),
            percent(cause.share.coverage),
            percent(cause.share.excess),
            without.unwrap_or_default(),
        )
    }));
    all.extend((report.unexplained.outliers > 0).then(|| unexplained(report)));
    all.extend(report.onsets.iter().map(onset));
    all.extend(report.efficiencies.iter().map(efficiency));
    all.extend(modes(report));
    all.extend(report.periods.iter().map(period));
    all.extend(doubts(report));
    all
}

/// What outliers are beyond: the limit, or they are among the longest of all.
fn outlier_bounds(report: &Report) -> String {
    let below = report.outliers.iter().filter(|outlier| outlier.time <= report.limit).count();
    match below {
        0 => format!("above {}", time(report.limit)),
        below => format!(
            "{} above {}, {} among the longest below that;",
            count(report.outlier_count - below),
            time(report.limit),
            count(below)
        ),
    }
}

fn overview(report: &Report) -> String {
    let clock = match report.clock {
        Clock::OnCpu => "on the CPU",
        Clock::Wall if report.clock_chosen => {
            "by the clock on the wall (threads waited for longer than they ran; `--clock cpu` leaves waiting out)"
        }
        Clock::Wall => "by the clock on the wall",
    };
    let judged = |name: &str, ns: i64| report.is_judged(ns).then(|| format!("{name} {}", time(ns)));
    let [p50, p99, p999, _] = report.quantiles;
    let shown = [judged("p50", p50), judged("p99", p99), judged("p99.9", p999)];
    let shown: String = shown.into_iter().flatten().map(|one| one + ", ").collect();
    // Where probes cost more than operations take, what is left of the sum is chance.
    let is_sum_judged = report.probe_cost.as_ref().is_none_or(|cost| cost.middle_judged);
    let (sum, of_sum) = match is_sum_judged {
        true => (
            format!("took {} ", time(report.time)),
            format!(" took {} of that time", percent(report.outlier_time)),
        ),
        false => ("were timed ".into(), String::new()),
    };
    format!(
        "{} operations `{}` {sum}{clock}: {shown}the longest {}. {} outliers ({} and ten times the spread around \
         them){of_sum}.",
        count(report.operations),
        report.operation,
        time(report.longest),
        count(report.outlier_count),
        outlier_bounds(report),
    )
}

/// What the probes cost, and what therefore is not judged.
pub fn sentences_about_probes(report: &Report) -> Vec<String> {
    let Some(cost) = &report.probe_cost else { return Vec::new() };
    let taken = time(cost.operation);
    let mut all = vec![if cost.middle_judged {
        format!("Probes cost {taken} at each of them, which is taken off.")
    } else {
        format!(
            "Probes cost {taken} at each of them, which is taken off and more than what is left: their number, what they waited \
             and times above {} are judged, the middle is not.",
            time(cost.judged_above)
        )
    }];
    if cost.inside > 0 {
        all.push(format!(
            "{} of that, in the mean, are the probes of operations inside an operation, which are taken off too.",
            time(cost.inside)
        ));
    }
    all.extend(cost.spans.iter().filter(|span| !span.judged).map(|span| {
        format!(
            "The probes of `{}` cost {} each time, more than it takes: as a cause counts only where it took ten times that.",
            span.name,
            time(span.cost)
        )
    }));
    all
}

fn off_cpu(report: &Report) -> Option<String> {
    let (away, operations) = report.off_cpu;
    (away > 0 && report.clock == Clock::OnCpu).then(|| {
        format!(
            "In {} operations the thread was off the CPU for {} in all, which is in no time here (`--clock wall` shows it).",
            count(operations),
            time(away)
        )
    })
}

fn unexplained(report: &Report) -> String {
    format!(
        "{} outliers ({}) are explained by nothing that was traced: a cache or TLB miss, an interrupt, or the host of this \
         virtual machine.",
        count(report.unexplained.outliers),
        percent(report.unexplained.coverage)
    )
}

fn onset(onset: &Onset) -> String {
    let state: Vec<String> =
        onset.state.iter().map(|(name, value)| format!("{name} {}", grouped(*value))).collect();
    let before = if onset.rate_before > 0.0 {
        format!("from one in {} operations to one in {}", each(onset.rate_before), each(onset.rate_after))
    } else {
        format!("from never to one in {} operations", each(onset.rate_after))
    };
    let crossed = onset.crossed.as_ref().map_or(String::new(), |crossing| {
        format!(
            " Right there `{}` went from {} to {} for the first time; it was beyond {} in {} of the occurrences since.",
            crossing.number,
            grouped(crossing.from),
            grouped(crossing.to),
            grouped(crossing.from),
            percent(crossing.holds)
        )
    });
    let state = if state.is_empty() { String::new() } else { format!(" (then: {})", state.join(", ")) };
    format!("`{}` sets in at operation {}, {before}{state}.{crossed}", onset.cause, grouped(onset.row.into()))
}

fn efficiency(efficiency: &Efficiency) -> String {
    let price = match efficiency.saved {
        0 => "and saved nothing".to_owned(),
        saved => format!(
            "and saved {}: {:.2} each time, {} for each",
            grouped(saved),
            saved as f64 / efficiency.operations.max(1) as f64,
            time(efficiency.time / saved)
        ),
    };
    format!(
        "`{}` ran in {} operations for {} {price} (`{}`); {} times it saved none.",
        efficiency.cause,
        count(efficiency.operations),
        time(efficiency.time),
        efficiency.number,
        count(efficiency.in_vain)
    )
}

fn modes(report: &Report) -> Vec<String> {
    let mut names: Vec<&str> = report.modes.iter().map(|mode| mode.cause.as_str()).collect();
    names.dedup();
    let said = |name: &str| {
        let of = report.modes.iter().filter(|mode| mode.cause == name);
        let parts: Vec<String> = of
            .map(|mode: &Mode| {
                format!("{} ({}, {})", time(mode.time), count(mode.count), percent(mode.share))
            })
            .collect();
        let told: usize = report.modes.iter().filter(|mode| mode.cause == name).map(|mode| mode.count).sum();
        let rest = report.cause(name).map_or(0, |cause| cause.operations.saturating_sub(told));
        let rest = match rest {
            0 => String::new(),
            rest => format!("; {} times it took no time that the clock can tell", count(rest)),
        };
        format!("`{name}` is {} mechanisms by its time: {}{rest}.", parts.len(), parts.join(", "))
    };
    names.into_iter().map(said).collect()
}

fn period(period: &Period) -> String {
    let which = match period.longer_than {
        0 => format!("`{}`", period.cause),
        limit => format!("`{}` of more than {}", period.cause, time(limit)),
    };
    let of = if period.of == "operation" { "operation".into() } else { format!("`{}`", period.of) };
    format!(
        "{which} comes with every {} {of} ({} of the intervals).",
        nth(period.every),
        percent(period.share)
    )
}

fn doubts(report: &Report) -> Vec<String> {
    let told = &report.told;
    let mut all = Vec::new();
    all.extend(
        told.cut
            .as_ref()
            .map(|reason| format!("The trace is not whole: {reason}. What is before that is used.")),
    );
    all.extend((told.lost > 0).then(|| format!("The tracer lost {} operations.", told.lost)));
    all.extend(
        (told.backwards > 0)
            .then(|| format!("In {} operations the clock ran backwards; they are left out.", told.backwards)),
    );
    all.extend((told.beyond > 0).then(|| format!("{} operations had more spans or numbers than the tracer holds; the rest is time of the span around.", told.beyond)));
    all.extend(
        (told.unbalanced > 0)
            .then(|| format!("In {} operations `leave` and `enter` did not match.", told.unbalanced)),
    );
    let left = [
        (told.abandoned, "left without an end"),
        (told.nested, "inside another"),
        (told.open, "open at its end"),
    ];
    let left: Vec<String> =
        left.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    all.extend((!left.is_empty()).then(|| format!("Of the operations that began, {}.", left.join(", "))));
    all.extend((told.rescued > 0).then(|| {
        format!(
            "The program ended without closing its trace; its last {} operations are there.",
            told.rescued
        )
    }));
    all.extend((told.forks > 0).then(|| {
        format!("The program forked {} times; what its children did is not in the trace.", told.forks)
    }));
    all.extend(told.refused.map(|errno| {
        format!(
            "The kernel refused its events (errno {errno}): page faults and time off the CPU are not known. As root, or with \
             kernel.perf_event_paranoid at 2 or below, they are, unless a container's seccomp filter forbids perf_event_open."
        )
    }));
    all.extend(
        (told.events_lost > 0)
            .then(|| format!("The kernel had no room for {} of its events.", told.events_lost)),
    );
    all
}

/// What two traces say about a change.
pub fn compared(comparison: &Comparison) -> Vec<String> {
    let (before, after) = &comparison.names;
    let changes: Vec<String> = comparison.quantiles.iter().map(change).collect();
    let mut all = vec![
        format!("From {before} to {after}: {}.", changes.join("; ")),
        format!(
            "Above {} (the outliers' limit of {before}) are {} operations of {before} and {} of {after}; all operations took {} \
             and {}.",
            time(comparison.limit),
            count(comparison.above.0),
            count(comparison.above.1),
            time(comparison.time.0),
            time(comparison.time.1)
        ),
    ];
    all.extend(comparison.causes.iter().filter(|cause| cause.outliers != (0, 0)).map(|cause| {
        format!(
            "`{}` dominates {} of those in {before} and {} in {after}.",
            cause.name,
            count(cause.outliers.0),
            count(cause.outliers.1)
        )
    }));
    all
}

fn change(change: &Change) -> String {
    let interval = change.interval.map_or(String::new(), |(low, high)| {
        let clear = if change.is_clear() { "" } else { ", no clear change" };
        format!(" (× {:.3}, 95 %: {low:.3} to {high:.3}{clear})", change.ratio())
    });
    if !change.judged {
        return format!("{} not judged, as the probes cost more", change.name);
    }
    format!("{} {} to {}{interval}", change.name, time(change.before), time(change.after))
}

/// Nanoseconds for people, three digits that count.
pub(super) fn time(ns: i64) -> String {
    let value = ns as f64;
    let (divisor, unit) = match ns.abs() {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (1e3, "µs"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    let scaled = value / divisor;
    let decimals = if scaled < 10.0 {
        2
    } else if scaled < 100.0 {
        1
    } else {
        0
    };
    format!("{scaled:.decimals$} {unit}")
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn count(number: usize) -> String {
    grouped(number as i64)
}

/// Digits in groups of three.
pub(super) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if number < 0 { format!("−{out}") } else { out }
}

fn each(rate: f64) -> String {
    let each = 1.0 / rate;
    if each < 10.0 { format!("{each:.1}") } else { grouped(each.round() as i64) }
}

fn nth(number: u32) -> String {
    let ending = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{}{ending}", grouped(number.into()))
}
